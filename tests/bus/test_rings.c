/* Events, calls and what they need, between the nodes of one host: through
 * shared memory when they come alone, over the connection when they do not;
 * in order, each once, and counted the same. */
#include <stdlib.h>

#include "base/seeds.h"
#include "blocks_inside.h"
#include "lockstep/call.h"
#include "lockstep/random.h"
#include "memory_ops.h"
#include "network_fixture.h"
#include "runtime_ops.h"
#include "wire.h"

/* ---- two nodes --------------------------------------------------------- */

struct two {
    struct world world;
    ls_rpc *calls[2];
    struct counter events, answered;
    _Atomic uint64_t next; /* number of an event */
    atomic_int disorder, seen_by_call;
};

static int on_number(void *self, const struct ls_event *event)
{
    struct two *two = self;
    uint64_t number;
    memcpy(&number, event->data, sizeof number);
    if (number != atomic_load(&two->next))
        atomic_fetch_add(&two->disorder, 1);
    atomic_store(&two->next, number + 1);
    counter_add(&two->events, 1);
    return LS_OK;
}

static int serve_seen(void *self, ls_request *request)
{
    struct two *two = self;
    atomic_store(&two->seen_by_call, counter_get(&two->events));
    return ls_request_complete(&request, NULL, 0);
}

static void prepare(ls_node *node, size_t index, void *self)
{
    struct two *two = self;
    assert_ok(ls_rpc_open(&two->calls[index], node, NULL));
    assert_ok(ls_rpc_serve(two->calls[index], "seen", LS_CALL_ANYONE,
                           serve_seen, two));
    if (index == 1)
        assert_ok(ls_on(node, "number", on_number, two));
}

static struct two *two_start_on(const char *over,
                                void (*tune)(struct ls_node_options *options,
                                             size_t index))
{
    struct two *two = calloc(1, sizeof *two);
    assert_non_null(two);
    counter_init(&two->events);
    world_start(&two->world, &(struct world_plan){.n = 2,
                                                  .transport = over,
                                                  .tune = tune,
                                                  .prepare = prepare,
                                                  .self = two});
    return two;
}

static struct two *two_start(const char *over)
{
    return two_start_on(over, NULL);
}

static void two_end(struct two *two)
{
    for (size_t i = 0; i < 2; i++)
        ls_rpc_close(&two->calls[i]);
    world_destroy(&two->world);
    counter_fini(&two->events);
    free(two);
}

static struct ls_node_stats stats_of(const struct two *two, size_t index)
{
    struct ls_node_stats stats;
    ls_node_stats(two->world.at[index].node, &stats);
    return stats;
}

static void ask(struct two *two, size_t from)
{
    void *answer;
    size_t size;
    assert_ok(ls_call_ask(two->calls[from],
                          &(struct ls_call_options){
                              .to = ls_node_id(two->world.at[1 - from].node),
                              .name = "seen",
                              .timeout_ms = LONG_MS},
                          &answer, &size));
    free(answer);
}

static void emit_number(struct two *two, uint64_t number, size_t size)
{
    uint8_t *bytes = calloc(1, size);
    memcpy(bytes, &number, sizeof number);
    assert_ok(ls_emit(two->world.at[0].node, "number", bytes, size));
    free(bytes);
}

/* The first calls ask for it, and go over the connection. */
static void become_near(struct two *two)
{
    const int64_t deadline = long_deadline();
    do
        ask(two, 0);
    while ((stats_of(two, 0).near == 0 || stats_of(two, 1).near == 0) &&
           ls_now(ls_runtime_threads()) < deadline);
    assert_int_not_equal(stats_of(two, 0).near, 0);
    assert_int_not_equal(stats_of(two, 1).near, 0);
}

/* Now and then one goes over the connection: what comes behind one that did, or
 * is sent again. */
static void calls_go_near(const char *over)
{
    struct two *two = two_start(over);
    const int64_t deadline = long_deadline();
    become_near(two);
    for (size_t i = 0;
         stats_of(two, 0).near < 200 && ls_now(ls_runtime_threads()) < deadline;
         i++)
        ask(two, i % 2);
    assert_true(stats_of(two, 0).near >= 200);
    two_end(two);
}

TEST(calls_between_nodes_of_one_host_go_through_memory)
{
    calls_go_near("tcp");
    calls_go_near("ipc");
    calls_go_near("inproc");
}

/* Emit one after the other, each when the last was handled, until so many have
 * gone near. n: in and out, the next number. */
static void emit_until_near(struct two *two, uint64_t *n, uint64_t wanted)
{
    const int64_t deadline = long_deadline();
    while (stats_of(two, 0).near < wanted &&
           ls_now(ls_runtime_threads()) < deadline) {
        emit_number(two, (*n)++, 32);
        assert_reaches(&two->events, (int)*n);
    }
    assert_true(stats_of(two, 0).near >= wanted);
}

static void events_go_near(const char *over)
{
    struct two *two = two_start(over);
    uint64_t n = 0;
    emit_until_near(two, &n, 50);
    assert_int_equal(atomic_load(&two->disorder), 0);
    two_end(two);
}

TEST(an_event_that_comes_alone_goes_through_memory)
{
    events_go_near("tcp");
    events_go_near("inproc");
}

/* ---- before it rests --------------------------------------------------- */

static atomic_int yields; /* of all threads */

static void count_yield(ls_runtime *runtime)
{
    (void)runtime;
    atomic_fetch_add(&yields, 1);
}

static ls_runtime *counting;

static void count_yields(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->runtime = counting;
}

/* Whose bus thread has nothing to do but to read them. */
TEST(who_has_read_a_frame_looks_for_more_before_it_rests)
{
    struct ls_memory_ops memory = *ls_runtime_threads()->ops->memory;
    struct ls_runtime_ops ops = *ls_runtime_threads()->ops;
    ls_runtime runtime = {.ops = &ops};
    memory.yield = count_yield;
    ops.memory = &memory;
    counting = &runtime;
    atomic_store(&yields, 0);
    struct two *two = two_start_on("tcp", count_yields);
    uint64_t n = 0;
    emit_until_near(two, &n, 50);
    assert_int_not_equal(atomic_load(&yields), 0);
    two_end(two);
}

static void set_shared_at(struct two *two, int64_t at)
{
    ls_node *node = two->world.at[0].node;
    transport_lock(node->transport);
    node->batch.shared_at = at;
    transport_unlock(node->transport);
}

TEST(none_goes_through_memory_just_after_several_have_shared_a_frame)
{
    struct two *two = two_start("inproc");
    uint64_t n = 0;
    emit_until_near(two, &n, 5);
    set_shared_at(two, INT64_MAX / 2);
    const uint64_t before = stats_of(two, 0).near;
    for (int i = 0; i < 20; i++) {
        emit_number(two, n++, 32);
        assert_reaches(&two->events, (int)n);
    }
    /* None of these; an acknowledgement from before may be late. */
    assert_true(stats_of(two, 0).near < before + 10);
    set_shared_at(two, 0);
    emit_until_near(two, &n, before + 5);
    assert_int_equal(atomic_load(&two->disorder), 0);
    two_end(two);
}

static void nothing_overtakes(const char *over)
{
    static const size_t sizes[] = {8, 5000, 8, 100000, 300000, 64};
    struct two *two = two_start(over);
    become_near(two);
    for (uint64_t n = 0; n < 120; n++) {
        emit_number(two, n, sizes[n % 6]);
        if (n % 2 == 1) {
            ask(two, 0);
            assert_int_equal(atomic_load(&two->seen_by_call), (int)n + 1);
        }
    }
    assert_int_equal(atomic_load(&two->disorder), 0);
    two_end(two);
}

TEST(a_call_does_not_overtake_an_event_that_was_emitted_before)
{
    nothing_overtakes("tcp");
    nothing_overtakes("inproc");
}

/* ---- what a ring may hold ---------------------------------------------- */

/* As rings_send() would, but what it never would: the first node writes into
 * its own memory for the second. */
static void write_frame(struct two *two, const void *bytes, size_t size)
{
    ls_node *node = two->world.at[0].node;
    const struct block_pair *pair = NULL;
    transport_lock(node->transport);
    for (unsigned i = 0; i < BLOCK_READERS && pair == NULL; i++)
        pair = node->blocks->pairs[i];
    assert_non_null(pair);
    const struct block_words *theirs = ls_memory_data(pair->memory);
    struct block_words *own = ls_memory_own(node->blocks->memory);
    struct ring *ring = &own->rings[pair->place];
    if (size == 0)
        atomic_fetch_add(&ring->written, 3);
    else
        assert_true(ring_write(
            NULL, ring, atomic_load(&theirs->rings[pair->answer.row].taken),
            bytes, size, NULL, 0));
    ls_memory_ring(pair->memory);
    transport_unlock(node->transport);
}

static size_t frame_of(const struct two *two, uint8_t *out, uint32_t to,
                       uint32_t origin, uint64_t life, enum wire_kind kind)
{
    struct wire_header header = bus_header(two->world.at[0].node, kind);
    header.origin = origin;
    header.incarnation = life;
    const size_t n = wire_topic_inbox(out, to);
    return n + wire_header_write(out + n, &header);
}

static void assert_refused(struct two *two, const char *why)
{
    const int64_t deadline = long_deadline();
    struct ls_refusal refusal = {.n = 0};
    while (ls_node_refusals(two->world.at[1].node, &refusal, 1) != 1 &&
           ls_now(ls_runtime_threads()) < deadline)
        ls_yield_core(ls_runtime_threads());
    assert_int_equal(refusal.kind, LS_REFUSAL_FORM);
    assert_has(refusal.who, "node ");
    assert_has(refusal.why, why);
    ask(two, 0); /* it goes on */
}

static void is_refused(const char *why, int what)
{
    struct two *two = two_start("tcp");
    const uint32_t me = ls_node_id(two->world.at[0].node);
    const uint32_t to = ls_node_id(two->world.at[1].node);
    const uint64_t life = ls_node_incarnation(two->world.at[0].node);
    uint8_t bytes[WIRE_HEAD_MAX];
    size_t size = 0;
    become_near(two);
    if (what == 1)
        size = (size_t)snprintf((char *)bytes, sizeof bytes, "no frame");
    else if (what == 2)
        size = frame_of(two, bytes, to + 1, me, life, WIRE_KIND_ACK);
    else if (what == 3)
        size = frame_of(two, bytes, to, to, life, WIRE_KIND_ACK);
    else if (what == 4)
        size = frame_of(two, bytes, to, me, life + 1, WIRE_KIND_ACK);
    else if (what == 5)
        size = frame_of(two, bytes, to, me, life, WIRE_KIND_FAREWELL);
    write_frame(two, bytes, size);
    assert_refused(two, why);
    two_end(two);
}

TEST(what_is_no_frame_is_refused_counted_and_named)
{
    is_refused("what lies in its ring is no frame", 0);
    is_refused("", 1);
}

TEST(a_frame_for_another_or_of_another_or_of_another_kind_is_refused)
{
    is_refused("for another, or of another", 2);
    is_refused("for another, or of another", 3);
    is_refused("for another, or of another", 4);
    is_refused("that can be in none", 5);
}

/* ---- schedules --------------------------------------------------------- */

/* Nodes of a simulated host each, that share memory, emit to each other what is
 * short and what is long, now close together and now not. Nothing is lost on
 * their network, but it is slow: what is nevertheless sent over it is long
 * behind what goes through memory. */
enum { SENT = 60, DELAY_MS = 20, MANY = 6 };

struct half;
struct schedule {
    struct net net;
    uint64_t seed;
    uint32_t window; /* messages */
    size_t n;        /* nodes */
    struct half {
        struct schedule *schedule;
        ls_runtime *runtime;
        ls_node *node;
        ls_thread *thread;
        ls_mutex mutex;
        ls_cond changed;
        uint64_t next, disorder;
        struct ls_node_stats stats;
    } half[MANY];
    uint64_t n_near;          /* events that went through memory */
    int64_t emitted_at, took; /* ns; by the last event that was handled */
    void (*emit)(struct half *half, size_t index);
};

static int on_event(void *self, const struct ls_event *event)
{
    struct half *half = self;
    uint64_t number;
    memcpy(&number, event->data, sizeof number);
    ls_mutex_lock(&half->mutex);
    half->disorder += number != half->next ? 1 : 0;
    half->next = number + 1;
    half->schedule->took =
        net_now(&half->schedule->net) - half->schedule->emitted_at;
    ls_cond_broadcast(&half->changed);
    ls_mutex_unlock(&half->mutex);
    return LS_OK;
}

static void begin_half(struct half *half, size_t index)
{
    char bind[64];
    struct ls_node_options options;
    net_node(&options, bind, index, half->schedule->n, half->runtime);
    options.shared_bytes = 512 << 10;
    options.emit_timeout_ms = options.start_timeout_ms = LONG_MS;
    options.window_messages = half->schedule->window;
    options.window_bytes = 2 << 20;
    options.heartbeat_ms = 100;
    options.linger_ms = LONG_MS;
    assert_ok(ls_node_create(&half->node, &options));
    assert_ok(ls_on(half->node, "number", on_event, half));
    assert_ok(ls_node_start(half->node));
}

/* Emit number n to the other. Returns whether it went through memory. */
static bool emit_to_other(struct half *half, uint64_t n, size_t size)
{
    static uint8_t all[2][70000];
    uint8_t *bytes = all[half - half->schedule->half];
    struct ls_node_stats before, after;
    ls_node_stats(half->node, &before);
    memcpy(bytes, &n, sizeof n);
    assert_ok(ls_emit_with(half->node,
                           &(struct ls_emission){.event = "number",
                                                 .data = bytes,
                                                 .size = size,
                                                 .scope = LS_SCOPE_REMOTE}));
    ls_node_stats(half->node, &after);
    return after.near != before.near;
}

static void emit_all(struct half *half, size_t index)
{
    static const size_t sizes[] = {8, 8, 200, 5000, 8, 70000};
    struct ls_rng rng;
    ls_rng_seed(&rng, half->schedule->seed, index);
    for (uint64_t n = 0; n < SENT; n++) {
        half->schedule->n_near +=
            emit_to_other(half, n, sizes[ls_rng_below(&rng, 6)]);
        if (ls_rng_below(&rng, 3) != 0)
            ls_rest_until(half->runtime,
                          ls_now(half->runtime) +
                              (int64_t)ls_rng_below(&rng, 100 * LS_NS_PER_MS));
    }
}

static void half_main(void *arg)
{
    struct half *half = arg;
    const size_t index = (size_t)(half - half->schedule->half);
    int status = LS_OK;
    begin_half(half, index);
    half->schedule->emit(half, index);
    const int64_t deadline = ls_deadline(half->runtime, LONG_MS);
    ls_mutex_lock(&half->mutex);
    while (half->next < SENT && status == LS_OK)
        status = ls_cond_wait(&half->changed, &half->mutex, deadline);
    ls_mutex_unlock(&half->mutex);
    /* A heartbeat more, whose accounts are settled. */
    ls_rest_until(half->runtime, ls_deadline(half->runtime, 3000));
    ls_node_stats(half->node, &half->stats);
    assert_ok(ls_node_destroy(&half->node));
}

static void schedule_body(struct net *net)
{
    struct schedule *s = net->self;
    for (size_t i = 0; i < s->n; i++) {
        struct half *half = &s->half[i];
        *half = (struct half){.schedule = s,
                              .runtime = ls_host_runtime(net->hosts[i])};
        assert_ok(ls_mutex_init(&half->mutex, half->runtime));
        assert_ok(ls_cond_init(&half->changed, half->runtime));
        assert_ok(ls_thread_spawn(half->runtime, &half->thread, "half",
                                  half_main, half));
    }
    for (size_t i = 0; i < s->n; i++) {
        assert_ok(ls_thread_join(&s->half[i].thread, LS_FOREVER));
        ls_cond_fini(&s->half[i].changed);
        ls_mutex_fini(&s->half[i].mutex);
    }
}

static void run_schedule_of(struct schedule *s, size_t n, uint64_t seed,
                            int64_t delay_ns,
                            void (*emit)(struct half *half, size_t index),
                            uint32_t window)
{
    const struct ls_network_path path = {.delay_ns = delay_ns};
    memset(s, 0, sizeof *s);
    net_open(&s->net, seed, &path);
    s->net.body = schedule_body;
    s->net.self = s;
    s->seed = seed;
    s->emit = emit;
    s->window = window;
    s->n = n;
    assert_ok(ls_simulation_run(s->net.simulation, net_body, &s->net));
    net_close(&s->net);
}

static void run_schedule(struct schedule *s, uint64_t seed, int64_t delay_ns,
                         void (*emit)(struct half *half, size_t index),
                         uint32_t window)
{
    run_schedule_of(s, 2, seed, delay_ns, emit, window);
}

static void assert_all_came(const struct schedule *s, size_t index)
{
    const struct half *half = &s->half[index];
    if (half->next != SENT || half->disorder != 0 || half->stats.lost != 0 ||
        half->stats.missed != 0)
        fail_msg("seed %llu, node %zu: up to %llu, %llu in disorder, "
                 "%llu lost, %llu missed",
                 (unsigned long long)s->seed, index + 1,
                 (unsigned long long)half->next,
                 (unsigned long long)half->disorder,
                 (unsigned long long)half->stats.lost,
                 (unsigned long long)half->stats.missed);
}

TEST(in_every_schedule_all_come_in_order_and_none_is_counted_lost)
{
    const struct seeds seeds = seeds_of(60);
    uint64_t near = 0, n = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        static struct schedule s;
        run_schedule(&s, seed, DELAY_MS * LS_NS_PER_MS, emit_all, 32);
        for (size_t i = 0; i < 2; i++)
            assert_all_came(&s, i);
        near += s.n_near;
        n += (uint64_t)2 * SENT;
    }
    assert_in_range(near, n / 8, n * 7 / 8); /* of both kinds */
}

/* Goes on as soon as it is, when the other may be about to sleep. */
static void await_handled(struct half *half, struct half *other, uint64_t n)
{
    const int64_t deadline = ls_deadline(half->runtime, LONG_MS);
    ls_mutex_lock(&other->mutex);
    while (other->next == n)
        assert_ok(ls_cond_wait(&other->changed, &other->mutex, deadline));
    ls_mutex_unlock(&other->mutex);
}

/* One after the other. What went through memory and is late was not seen by a
 * bus thread that went to sleep. */
static void emit_alone(struct half *half, size_t index)
{
    struct schedule *s = half->schedule;
    struct half *other = &s->half[1];
    for (uint64_t n = 0; index == 0 && n < SENT; n++) {
        s->emitted_at = net_now(&s->net);
        const bool near = emit_to_other(half, n, sizeof n);
        await_handled(half, other, n);
        if (near && s->took > LS_NS_PER_MS)
            fail_msg("seed %llu: event %llu came after %lld us",
                     (unsigned long long)s->seed, (unsigned long long)n,
                     (long long)(s->took / LS_NS_PER_US));
        s->n_near += near;
        /* Until it is known that all has come that went over the network. */
        const uint64_t most = (near ? 20u : 500u) * (uint64_t)LS_NS_PER_MS;
        if (near && n % 4 != 0)
            continue;
        ls_rest_until(half->runtime,
                      ls_now(half->runtime) +
                          (int64_t)ls_rng_below(
                              ls_simulation_random(s->net.simulation), most));
    }
    if (index == 0)
        assert_true(s->n_near > SENT / 2);
    if (index == 0)
        half->next = SENT; /* none comes back */
}

TEST(in_no_schedule_a_frame_passes_by_one_that_goes_to_sleep)
{
    const struct seeds seeds = seeds_of(100);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        static struct schedule s;
        /* Nobody waits for room. */
        run_schedule(&s, seed, DELAY_MS * LS_NS_PER_MS, emit_alone, 4 * SENT);
    }
}

/* One after the other, in blocks, to all others: seven have room, and the
 * eighth would wait for the network. */
static void emit_in_blocks(struct half *half, size_t index)
{
    enum { FIRST = 10 }; /* until they are a pair, and all has come */
    struct schedule *s = half->schedule;
    for (uint64_t n = 0; index == 0 && n < SENT; n++) {
        if (n < FIRST)
            ls_rest_until(half->runtime, ls_deadline(half->runtime, 500));
        s->emitted_at = net_now(&s->net);
        s->n_near += emit_to_other(half, n, 70000);
        for (size_t i = 1; i < s->n; i++)
            await_handled(half, &s->half[i], n);
        if (n >= FIRST && s->took > LS_NS_PER_MS)
            fail_msg("seed %llu: event %llu came after %lld us",
                     (unsigned long long)s->seed, (unsigned long long)n,
                     (long long)(s->took / LS_NS_PER_US));
    }
    if (index == 0)
        half->next = SENT; /* none comes back */
}

TEST(who_waits_for_room_for_long_ones_is_told_through_memory)
{
    const struct seeds seeds = seeds_of(20);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        static struct schedule s;
        run_schedule(&s, seed, DELAY_MS * LS_NS_PER_MS, emit_in_blocks, 32);
    }
}

TEST(many_are_woken_for_a_long_one_as_soon_as_one_is)
{
    const struct seeds seeds = seeds_of(20);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        static struct schedule s;
        run_schedule_of(&s, MANY, seed, DELAY_MS * LS_NS_PER_MS, emit_in_blocks,
                        32);
    }
}

/* While the other stands still, some of them into memory, then one that follows
 * so closely that it goes over the network: it finds all of them unread. */
static void emit_to_one_that_stands_still(struct half *half, size_t index)
{
    enum { GROUP = 5 };
    struct schedule *s = half->schedule;
    ls_host *other = s->net.hosts[1];
    for (uint64_t n = 0; index == 0 && n < SENT; n++) {
        if (n % GROUP == 0) {
            ls_rest_until(half->runtime, ls_deadline(half->runtime, 500));
            ls_host_pause(other);
        }
        const bool near = emit_to_other(half, n, sizeof n);
        s->n_near += near;
        if (n % GROUP < GROUP - 2)
            ls_rest_until(half->runtime,
                          ls_now(half->runtime) + 50 * LS_NS_PER_US);
        if (n % GROUP != GROUP - 1)
            continue;
        assert_true(!near || n < GROUP);
        ls_rest_until(half->runtime, ls_deadline(half->runtime, 1));
        ls_host_resume(other);
        await_handled(half, &s->half[1], n);
    }
    if (index == 0)
        half->next = SENT; /* none comes back */
}

TEST(what_comes_over_the_network_overtakes_nothing_that_lies_in_a_ring)
{
    static struct schedule s;
    run_schedule(&s, 1, 10 * LS_NS_PER_US, emit_to_one_that_stands_still, 32);
    assert_all_came(&s, 1);
    assert_in_range(s.n_near, SENT / 2, SENT - 1);
}
