/* Control messages between the nodes of one host through shared memory: whole,
 * in order, to the thread that listens; what is overwritten is counted. */
#include <stdlib.h>

#include "base/seeds.h"
#include "blocks_inside.h"
#include "line.h"
#include "lockstep/channel.h"
#include "lockstep/random.h"
#include "network_fixture.h"
#include "test.h"

/* ---- a line ------------------------------------------------------------ */

static struct line line;

struct note {
    uint32_t number, rest[59];
};
_Static_assert(sizeof(struct note) <= LINE_BYTES, "a note fits");

static void write_note(uint32_t number)
{
    struct note note = {.number = number};
    const size_t n = number % 59 + 1;
    for (size_t i = 0; i < n; i++)
        note.rest[i] = number;
    line_write(NULL, &line, &note, sizeof note.number + n * sizeof *note.rest);
}

/* The next note: its number; 0: there is none. Fails if it is not whole. */
static uint32_t read_note(uint32_t *heard, uint64_t *lost)
{
    unsigned char bytes[8 * LINE_WORDS];
    struct note note;
    const size_t size = line_read(NULL, &line, heard, lost, bytes);
    if (size == 0)
        return 0;
    memcpy(&note, bytes, size);
    const size_t n = note.number % 59 + 1;
    assert_int_equal(size, sizeof note.number + n * sizeof *note.rest);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(note.rest[i], note.number);
    return note.number;
}

TEST(what_is_written_is_read_once_in_order)
{
    uint32_t heard = 0;
    uint64_t lost = 0;
    line_begin(NULL, &line);
    assert_int_equal(read_note(&heard, &lost), 0);
    for (uint32_t number = 1; number <= 3 * LINE_SLOTS; number++) {
        write_note(number);
        if (number % 3 != 0)
            continue;
        for (uint32_t i = number - 2; i <= number; i++)
            assert_int_equal(read_note(&heard, &lost), i);
        assert_int_equal(read_note(&heard, &lost), 0);
    }
    assert_int_equal(lost, 0);
}

TEST(a_reader_that_is_behind_gets_the_last_ones_and_knows_how_many_it_missed)
{
    uint32_t heard = 0;
    uint64_t lost = 0;
    line_begin(NULL, &line);
    for (uint32_t number = 1; number <= LINE_SLOTS + 5; number++)
        write_note(number);
    for (uint32_t number = 6; number <= LINE_SLOTS + 5; number++)
        assert_int_equal(read_note(&heard, &lost), number);
    assert_int_equal(read_note(&heard, &lost), 0);
    assert_int_equal(lost, 5);
}

TEST(the_longest_fits)
{
    unsigned char bytes[LINE_BYTES], read[8 * LINE_WORDS];
    uint32_t heard = 0;
    uint64_t lost = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    line_begin(NULL, &line);
    line_write(NULL, &line, bytes, sizeof bytes);
    assert_int_equal(line_read(NULL, &line, &heard, &lost, read), sizeof bytes);
    assert_memory_equal(read, bytes, sizeof bytes);
}

enum { NOTES = 20000 };

static void write_many(void *self)
{
    (void)self;
    for (uint32_t number = 1; number <= NOTES; number++)
        write_note(number);
}

TEST(a_reader_beside_the_writer_never_gets_half_of_one)
{
    ls_thread *writer = NULL;
    uint32_t heard = 0, last = 0, read = 0;
    uint64_t lost = 0;
    line_begin(NULL, &line);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &writer, "writer",
                              write_many, NULL));
    while (heard < NOTES) {
        const uint32_t number = read_note(&heard, &lost);
        if (number == 0)
            continue;
        assert_true(number > last);
        last = number;
        read++;
    }
    assert_ok(ls_thread_join(&writer, long_deadline()));
    assert_int_equal(read + lost, NOTES);
}

/* Number 0 is that of a slot that is being written. */
TEST(a_reader_gets_no_half_of_one_when_numbers_begin_anew)
{
    uint32_t heard = UINT32_MAX;
    uint64_t lost = 0;
    line_begin(NULL, &line);
    atomic_store(&line.written, UINT32_MAX);
    for (uint32_t number = 1; number < LINE_SLOTS; number++)
        write_note(50 + number);
    /* The next one is half there. */
    atomic_store(&line.slots[0].number, 0);
    atomic_store(&line.slots[0].words[0], 0);
    for (uint32_t number = 1; number < LINE_SLOTS; number++)
        assert_int_equal(read_note(&heard, &lost), 50 + number);
    assert_int_equal(read_note(&heard, &lost), 0);
    assert_int_equal(lost, 0);
}

TEST(whatever_a_line_says_reading_ends_and_stays_within_it)
{
    const struct seeds seeds = seeds_of(2000);
    struct ls_rng rng;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        unsigned char *const bytes = (unsigned char *)&line;
        unsigned char read[8 * LINE_WORDS];
        uint64_t lost = 0;
        ls_rng_seed(&rng, seed, 0);
        for (size_t i = 0; i < sizeof line; i++)
            bytes[i] = (unsigned char)ls_rng_next(&rng);
        uint32_t heard = (uint32_t)ls_rng_next(&rng);
        if (seed % 2 == 0) /* as a reader that has kept up finds it */
            heard = atomic_load(&line.written) - 3;
        for (unsigned i = 0; i < LINE_SLOTS; i++)
            if (seed % 3 == 0)
                atomic_store(&line.slots[(heard + 1 + i) % LINE_SLOTS].number,
                             heard + 1 + i);
        for (unsigned i = 0; i <= LINE_SLOTS; i++)
            assert_in_range(line_read(NULL, &line, &heard, &lost, read), 0,
                            LINE_BYTES);
        assert_int_equal(heard, atomic_load(&line.written));
    }
}

/* ---- nodes ------------------------------------------------------------- */

/* Two nodes with a channel each. */
struct pair_of {
    struct world world;
    ls_channel *channel[2];
    struct counter came, near;
    _Atomic(const void *) by; /* a mark of the thread that ran the op */
    uint32_t from;
    char text[32];
};

static _Thread_local char mark;

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    struct pair_of *p = self;
    (void)incarnation;
    p->from = from;
    snprintf(p->text, sizeof p->text, "%.*s", (int)size, (const char *)data);
    atomic_store(&p->by, &mark);
    counter_add(&p->came, 1);
}

static void on_near(void *self)
{
    counter_add(&((struct pair_of *)self)->near, 1);
}

static const struct ls_channel_ops ops = {.message = on_message,
                                          .near = on_near};

static void open_channel(ls_node *node, size_t index, void *self)
{
    struct pair_of *p = self;
    assert_ok(ls_channel_open(&p->channel[index], node, "talk", &ops, p));
}

static struct pair_of *pair_start(const char *over)
{
    struct pair_of *p = calloc(1, sizeof *p);
    assert_non_null(p);
    counter_init(&p->came);
    counter_init(&p->near);
    world_start(&p->world, &(struct world_plan){.n = 2,
                                                .transport = over,
                                                .prepare = open_channel,
                                                .self = p});
    return p;
}

static void pair_end(struct pair_of *p)
{
    for (size_t i = 0; i < 2; i++)
        ls_channel_close(&p->channel[i]);
    world_destroy(&p->world);
    counter_fini(&p->came);
    counter_fini(&p->near);
    free(p);
}

static void send_near(struct pair_of *p, const char *text)
{
    assert_ok(ls_channel_send_near(
        p->channel[0], ls_node_id(p->world.at[1].node), text, strlen(text)));
}

static struct ls_node_stats stats_of(const struct pair_of *p, size_t index)
{
    struct ls_node_stats stats;
    ls_node_stats(p->world.at[index].node, &stats);
    return stats;
}

/* The first asks for it, and goes over the connection. */
static void become_near(struct pair_of *p)
{
    send_near(p, "hello");
    assert_reaches(&p->came, 1);
    assert_reaches(&p->near, 2);
    assert_true(ls_channel_is_near(p->channel[0]));
    assert_true(ls_channel_is_near(p->channel[1]));
}

/* That of the first node. */
static struct line *line_to_second(struct pair_of *p)
{
    ls_node *node = p->world.at[0].node;
    transport_lock(node->transport);
    const struct block_pair *pair = NULL;
    for (unsigned i = 0; i < BLOCK_READERS && pair == NULL; i++)
        pair = node->blocks->pairs[i];
    assert_non_null(pair);
    struct block_words *words = ls_memory_own(node->blocks->memory);
    transport_unlock(node->transport);
    return &words->lines[pair->place];
}

/* Messages in it, in all. What else the nodes say to each other may be near,
 * and counted there, at any time. */
static uint32_t in_line(struct pair_of *p)
{
    return atomic_load(&line_to_second(p)->written);
}

static void a_thread_gets_it(const char *over)
{
    struct pair_of *p = pair_start(over);
    assert_false(ls_channel_is_near(p->channel[1]));
    assert_ok(ls_channel_listen(p->channel[1], long_deadline())); /* at once */
    become_near(p);
    assert_ptr_not_equal(atomic_load(&p->by), &mark);
    const uint64_t before = stats_of(p, 0).near;
    const uint32_t in_line_before = in_line(p);
    send_near(p, "to who listens");
    assert_int_equal(in_line(p), in_line_before + 1);
    assert_true(stats_of(p, 0).near > before);
    assert_int_equal(counter_get(&p->came), 1);
    assert_int_equal(ls_channel_listen(p->channel[1], LS_NOW), LS_ETIMEDOUT);
    assert_int_equal(counter_get(&p->came), 2);
    assert_ptr_equal(atomic_load(&p->by), &mark);
    assert_string_equal(p->text, "to who listens");
    assert_int_equal(p->from, ls_node_id(p->world.at[0].node));
    pair_end(p);
}

TEST(a_thread_that_listens_gets_what_is_sent_near)
{
    a_thread_gets_it("tcp");
    a_thread_gets_it("ipc");
    a_thread_gets_it("inproc");
}

struct sleeper {
    struct pair_of *pair;
    int status;
};

static void listen_once(void *self)
{
    struct sleeper *listener = self;
    listener->status =
        ls_channel_listen(listener->pair->channel[1], long_deadline());
}

static ls_thread *sleeper_start(struct sleeper *listener, struct pair_of *p)
{
    ls_thread *thread = NULL;
    *listener = (struct sleeper){.pair = p};
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "listener",
                              listen_once, listener));
    return thread;
}

TEST(one_that_sleeps_is_woken_and_a_ring_ends_it)
{
    struct pair_of *p = pair_start("tcp");
    struct sleeper listener;
    become_near(p);
    ls_thread *thread = sleeper_start(&listener, p);
    for (int i = 2; i < 200; i++) {
        send_near(p, "wake up");
        assert_reaches(&p->came, i);
    }
    ls_channel_ring(p->channel[1]);
    assert_ok(ls_thread_join(&thread, long_deadline()));
    assert_ok(listener.status);
    ls_channel_ring(p->channel[1]);
    assert_ok(ls_channel_listen(p->channel[1], LS_FOREVER));
    pair_end(p);
}

TEST(what_nobody_listened_to_in_time_is_counted)
{
    struct pair_of *p = pair_start("tcp");
    become_near(p);
    for (int i = 0; i < 8 + 3; i++)
        send_near(p, "once more");
    assert_int_equal(ls_channel_listen(p->channel[1], LS_NOW), LS_ETIMEDOUT);
    while (counter_get(&p->came) < 1 + 8)
        assert_int_equal(ls_channel_listen(p->channel[1], LS_NOW),
                         LS_ETIMEDOUT);
    assert_int_equal(stats_of(p, 1).near_lost, 3);
    pair_end(p);
}

/* As lines_send() would, but what it never would: the first node writes into
 * its own memory for the second. */
static void write_bytes(struct pair_of *p, const void *bytes, size_t size)
{
    struct line *const to = line_to_second(p);
    transport_lock(p->world.at[0].node->transport);
    line_write(NULL, to, bytes, size);
    transport_unlock(p->world.at[0].node->transport);
}

TEST(what_is_no_message_is_refused_counted_and_named)
{
    struct pair_of *p = pair_start("tcp");
    struct ls_refusal refusal;
    become_near(p);
    write_bytes(p, (const unsigned char[]){4, 't', 'a', 'l'}, 4);
    send_near(p, "the next one");
    while (counter_get(&p->came) < 2)
        assert_int_equal(ls_channel_listen(p->channel[1], LS_NOW),
                         LS_ETIMEDOUT);
    assert_string_equal(p->text, "the next one");
    assert_int_equal(stats_of(p, 1).refused, 1);
    assert_int_equal(ls_node_refusals(p->world.at[1].node, &refusal, 1), 1);
    assert_int_equal(refusal.kind, LS_REFUSAL_FORM);
    assert_has(refusal.who, "node ");
    assert_has(refusal.why, "a name of 4 bytes, and 3 bytes are left");
    pair_end(p);
}

TEST(a_long_one_goes_over_the_connection)
{
    struct pair_of *p = pair_start("tcp");
    become_near(p);
    const uint32_t before = in_line(p);
    char text[LINE_BYTES];
    memset(text, 'x', sizeof text);
    assert_ok(ls_channel_send_near(
        p->channel[0], ls_node_id(p->world.at[1].node), text, sizeof text));
    assert_reaches(&p->came, 2);
    assert_int_equal(in_line(p), before);
    assert_int_equal(ls_channel_send_near(p->channel[0], 77, "x", 1),
                     LS_ENOENT);
    pair_end(p);
}

TEST(who_is_gone_is_near_no_more)
{
    struct pair_of *p = pair_start("tcp");
    struct sleeper listener;
    become_near(p);
    ls_thread *thread = sleeper_start(&listener, p);
    ls_channel_close(&p->channel[0]);
    assert_ok(ls_node_stop(p->world.at[0].node, LS_OK));
    assert_ok(ls_thread_join(&thread, long_deadline()));
    assert_ok(listener.status);
    assert_false(ls_channel_is_near(p->channel[1]));
    pair_end(p);
}

/* ---- schedules --------------------------------------------------------- */

enum { TIMES = 40, PATIENCE_MS = 1000 };

/* Of two nodes of a simulated host each that share memory, the second listens
 * and sleeps, and now and then something happens that it is to hear of. */
struct schedule {
    struct net net;
    struct half {
        struct schedule *schedule;
        ls_runtime *runtime;
        ls_node *node;
        ls_channel *channel;
        ls_thread *thread;
    } half[2];
    void (*happens)(struct schedule *s); /* all of it; on the first's host */
    int64_t at, late;                    /* ns; the latest, at most */
    int heard;
    bool listens, over;
};

/* The first goes over the network. */
static void note_late(struct schedule *s)
{
    const int64_t late = net_now(&s->net) - s->at;
    if (s->heard > 0 && late > s->late)
        s->late = late;
    s->heard++;
}

static void note_message(void *self, uint32_t from, uint64_t incarnation,
                         const void *data, size_t size)
{
    (void)from;
    (void)incarnation;
    (void)data;
    (void)size;
    note_late(self);
}

static const struct ls_channel_ops late_ops = {.message = note_message};

static void begin_half(struct half *half, size_t index)
{
    char bind[64];
    struct ls_node_options options;
    net_node(&options, bind, index, 2, half->runtime);
    options.start_timeout_ms = LONG_MS;
    assert_ok(ls_node_create(&half->node, &options));
    assert_ok(ls_channel_open(&half->channel, half->node, "talk", &late_ops,
                              half->schedule));
    assert_ok(ls_node_start(half->node));
}

static void end_half(struct half *half)
{
    ls_channel_close(&half->channel);
    assert_ok(ls_node_destroy(&half->node));
}

static void listen_until_over(struct half *half)
{
    struct schedule *s = half->schedule;
    while (!s->over) {
        if (!ls_channel_is_near(half->channel)) {
            ls_rest_until(half->runtime, ls_deadline(half->runtime, 1));
            continue;
        }
        s->listens = true;
        if (ls_channel_listen(half->channel,
                              ls_deadline(half->runtime, PATIENCE_MS)) ==
                LS_OK &&
            !s->over)
            note_late(s);
        s->listens = false;
    }
}

static void half_main(void *arg)
{
    struct half *half = arg;
    struct schedule *s = half->schedule;
    const size_t index = (size_t)(half - s->half);
    begin_half(half, index);
    if (index == 1)
        listen_until_over(half);
    else
        s->happens(s);
    s->over = true;
    end_half(half);
}

static void schedule_body(struct net *net)
{
    struct schedule *s = net->self;
    for (size_t i = 0; i < 2; i++) {
        s->half[i] = (struct half){.schedule = s,
                                   .runtime = ls_host_runtime(net->hosts[i])};
        assert_ok(ls_thread_spawn(s->half[i].runtime, &s->half[i].thread,
                                  "half", half_main, &s->half[i]));
    }
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&s->half[i].thread, LS_FOREVER));
}

static void in_every_schedule(void (*happens)(struct schedule *s))
{
    const struct ls_network_path path = {.delay_ns = 50 * LS_NS_PER_US};
    const struct seeds seeds = seeds_of(100);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        static struct schedule schedule;
        memset(&schedule, 0, sizeof schedule);
        net_open(&schedule.net, seed, &path);
        schedule.net.body = schedule_body;
        schedule.net.self = &schedule;
        schedule.happens = happens;
        assert_ok(ls_simulation_run(schedule.net.simulation, net_body,
                                    &schedule.net));
        if (schedule.late > LS_NS_PER_MS)
            fail_msg("seed %llu: one was heard of after %lld us",
                     (unsigned long long)seed,
                     (long long)(schedule.late / LS_NS_PER_US));
        net_close(&schedule.net);
    }
}

static void rest_for_some_ns(struct schedule *s, ls_runtime *runtime,
                             uint64_t most)
{
    struct ls_rng *rng = ls_simulation_random(s->net.simulation);
    ls_rest_until(runtime, ls_now(runtime) + (int64_t)ls_rng_below(rng, most));
}

/* Do it, and wait until it is heard of; then for a while. */
static void once(struct schedule *s, ls_runtime *runtime,
                 void (*act)(struct schedule *s))
{
    const int before = s->heard;
    s->at = net_now(&s->net);
    act(s);
    while (s->heard == before && net_now(&s->net) < s->at + LS_NS_PER_S)
        ls_rest_until(runtime, ls_deadline(runtime, 1));
    rest_for_some_ns(s, runtime, 20 * LS_NS_PER_MS);
}

static void send_one(struct schedule *s)
{
    assert_ok(ls_channel_send_near(s->half[0].channel, 2, "x", 1));
}

static void send_all(struct schedule *s)
{
    for (int i = 0; i < TIMES; i++)
        once(s, s->half[0].runtime, send_one);
    assert_int_equal(s->heard, TIMES);
}

TEST(in_no_schedule_a_message_passes_by_one_that_goes_to_sleep)
{
    in_every_schedule(send_all);
}

static void become_near_both(struct schedule *s)
{
    ls_runtime *runtime = s->half[0].runtime;
    once(s, runtime, send_one);
    for (size_t i = 0; i < 2; i++)
        while (!ls_channel_is_near(s->half[i].channel))
            ls_rest_until(runtime, ls_deadline(runtime, 1));
}

static ls_thread *spawn_beside(struct half *half, void (*fn)(void *self))
{
    ls_thread *thread = NULL;
    assert_ok(
        ls_thread_spawn(half->runtime, &thread, "ringer", fn, half->schedule));
    return thread;
}

static void ring_one(struct schedule *s)
{
    ls_channel_ring(s->half[1].channel);
}

static void ring_all(void *self)
{
    struct schedule *s = self;
    for (int i = 1; i < TIMES; i++)
        once(s, s->half[1].runtime, ring_one);
    assert_int_equal(s->heard, TIMES);
}

static void be_rung(struct schedule *s)
{
    become_near_both(s);
    ls_thread *thread = spawn_beside(&s->half[1], ring_all);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
}

TEST(nor_does_a_ring)
{
    in_every_schedule(be_rung);
}

/* So that it goes to sleep again and again, until nobody is near. */
static void keep_it_awake(void *self)
{
    struct schedule *s = self;
    while (ls_channel_is_near(s->half[1].channel)) {
        ls_channel_ring(s->half[1].channel);
        rest_for_some_ns(s, s->half[1].runtime, 20 * LS_NS_PER_US);
    }
}

static void leave(struct schedule *s)
{
    become_near_both(s);
    ls_thread *thread = spawn_beside(&s->half[1], keep_it_awake);
    end_half(&s->half[0]);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    const int64_t gone_at = net_now(&s->net);
    while (s->listens)
        rest_for_some_ns(s, s->half[0].runtime, 20 * LS_NS_PER_US);
    s->late = net_now(&s->net) - gone_at;
}

TEST(nor_does_it_that_the_other_leaves)
{
    in_every_schedule(leave);
}
