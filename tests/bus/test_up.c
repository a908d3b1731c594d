/* What goes up a link, to the node at its end alone: from a member of a higher
 * id to one of a lower, and from whom it says. */
#include "lockstep/channel.h"

#include <stdatomic.h>

#include "raw_peer.h"

#include "test.h"
#include "transport.h"

#define LOWER  0u /* than the id of the node, which is 1 */
#define HIGHER 666u

/* A node with a channel, and a raw peer that is a member. */
struct above {
    struct world world;
    ls_node *node;
    ls_channel *channel;
    struct counter heard, ready, asked;
    char data[64]; /* that was heard last */
    struct raw_peer raw;
    size_t size;         /* of what is sent near, when asked */
    atomic_bool is_slow; /* it works at what it hears */
    _Atomic(uint64_t) burnt;
};

static void on_member(void *self, const struct ls_member *member)
{
    struct above *above = self;
    if (member->state == LS_MEMBER_READY)
        counter_add(&above->ready, 1);
}

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    struct above *above = self;
    uint64_t burnt = 0;
    for (uint32_t i = 0; above->is_slow && i < 4000; i++)
        burnt = burnt * 31 + i;
    above->burnt = burnt;
    assert_true(from == above->raw.id && incarnation == above->raw.incarnation);
    (void)snprintf(above->data, sizeof above->data, "%.*s", (int)size,
                   (const char *)data);
    counter_add(&above->heard, 1);
}

/* On the bus thread. */
static void on_timer(void *self, int64_t now)
{
    static const char data[LS_CHANNEL_MESSAGE_MAX];
    struct above *above = self;
    (void)now;
    if (ls_channel_send_near(above->channel, above->raw.id, data,
                             above->size) != LS_OK)
        abort();
    counter_add(&above->asked, 1);
}

static void tune(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->silence_ms = 60000;   /* raw peers do not keep beating */
    options->linger_ms = 100;      /* and do not close when told farewell */
    options->heartbeat_ms = 20000; /* nor does a link serve them less soon */
    options->world_max = 3;
    options->insecure = true; /* they cannot prove who they are */
}

static void prepare(ls_node *node, size_t index, void *self)
{
    static const struct ls_channel_ops ops = {.message = on_message,
                                              .timer = on_timer};
    struct above *above = self;
    (void)index;
    above->node = node;
    assert_ok(ls_node_on_member(node, on_member, above));
    assert_ok(ls_channel_open(&above->channel, node, "talk", &ops, above));
}

static void join(struct above *above, struct raw_peer *raw)
{
    const int ready = counter_get(&above->ready);
    raw_be_present(raw);
    raw_await_presence(raw, above->node);
    raw_heartbeat(raw, above->node);
    assert_reaches(&above->ready, ready + 1);
}

static struct above *above_start(uint32_t id)
{
    struct above *above = calloc(1, sizeof *above);
    assert_non_null(above);
    counter_init(&above->heard);
    counter_init(&above->ready);
    counter_init(&above->asked);
    raw_open(&above->raw, id, NULL); /* ops ask who it is: before they can */
    world_start(&above->world, &(struct world_plan){.n = 1,
                                                    .transport = "tcp",
                                                    .tune = tune,
                                                    .prepare = prepare,
                                                    .self = above});
    raw_connect(&above->raw, ls_node_endpoint(above->node));
    return above;
}

static void above_end(struct above *above)
{
    ls_channel_close(&above->channel);
    raw_close(&above->raw);
    world_destroy(&above->world);
    counter_fini(&above->heard);
    counter_fini(&above->ready);
    counter_fini(&above->asked);
    free(above);
}

static struct ls_node_stats stats_of(const struct above *above)
{
    struct ls_node_stats stats;
    ls_node_stats(above->node, &stats);
    return stats;
}

/* ---- what comes up ----------------------------------------------------- */

static struct wire_header header_of(struct raw_peer *raw, enum wire_kind kind)
{
    struct wire_header header = raw_header(raw, kind);
    header.name = kind == WIRE_KIND_CHANNEL ? "talk" : "x";
    header.name_size = strlen(header.name);
    return header;
}

static size_t frame_for(uint8_t *frame, uint32_t to, struct wire_header *header,
                        const char *text)
{
    size_t n = wire_topic_inbox(frame, to);
    header->data = (const uint8_t *)text;
    header->size = strlen(text);
    n += wire_header_write(frame + n, header);
    memcpy(frame + n, text, header->size);
    return n + header->size;
}

static void say(struct raw_peer *raw, uint32_t to, struct wire_header *header,
                const char *text)
{
    uint8_t frame[WIRE_HEAD_MAX];
    raw_say_up(raw, frame, frame_for(frame, to, header, text), false);
}

static void say_honestly(struct raw_peer *raw, const char *text)
{
    struct wire_header header = header_of(raw, WIRE_KIND_CHANNEL);
    say(raw, 1, &header, text);
}

TEST(what_a_member_sends_up_is_heard_on_its_channel)
{
    struct above *above = above_start(HIGHER);
    join(above, &above->raw);
    say_honestly(&above->raw, "hello");
    assert_reaches(&above->heard, 1);
    assert_string_equal(above->data, "hello");
    assert_int_equal(stats_of(above).refused, 0);
    above_end(above);
}

static void await_refused(const struct above *above, uint64_t n)
{
    const int64_t deadline = long_deadline();
    while (stats_of(above).refused < n)
        raw_assert_before(deadline);
}

/* So much of what was said was; and what is honest is heard after it. */
static void assert_refused(struct above *above, uint64_t n)
{
    const int heard = counter_get(&above->heard);
    say_honestly(&above->raw, "still here");
    assert_reaches(&above->heard, heard + 1);
    assert_int_equal(stats_of(above).refused, n);
}

TEST(what_is_not_for_this_node_alone_is_refused)
{
    static const enum wire_kind kinds[] = {WIRE_KIND_EVENT, WIRE_KIND_RELIABLE,
                                           WIRE_KIND_ACK, WIRE_KIND_CREDIT,
                                           WIRE_KIND_FAREWELL};
    struct above *above = above_start(HIGHER);
    join(above, &above->raw);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct wire_header header = header_of(&above->raw, kinds[i]);
        header.of = WIRE_KIND_EVENT;
        say(&above->raw, 1, &header, "");
    }
    struct wire_header header = header_of(&above->raw, WIRE_KIND_CHANNEL);
    say(&above->raw, 2, &header, "for another");
    assert_refused(above, 6);
    above_end(above);
}

TEST(garbage_that_is_sent_up_is_refused)
{
    uint8_t frame[WIRE_HEAD_MAX];
    struct above *above = above_start(HIGHER);
    join(above, &above->raw);
    raw_say_up(&above->raw, "i", 1, false);
    raw_say_up(&above->raw, "\xff\xff\xff\xff", 4, false);
    struct wire_header header = header_of(&above->raw, WIRE_KIND_CHANNEL);
    const size_t size = frame_for(frame, 1, &header, "short");
    for (size_t cut = 2; cut < size; cut++)
        raw_say_up(&above->raw, frame, cut, false);
    assert_refused(above, size);
    above_end(above);
}

/* Its payload would be in the second. */
TEST(two_frames_that_are_sent_up_are_refused_both)
{
    uint8_t frame[WIRE_HEAD_MAX];
    struct above *above = above_start(HIGHER);
    join(above, &above->raw);
    struct wire_header header = header_of(&above->raw, WIRE_KIND_CHANNEL);
    size_t n = wire_topic_inbox(frame, 1);
    header.data = NULL;
    n += wire_header_write(frame + n, &header);
    raw_say_up(&above->raw, frame, n, true);
    raw_say_up(&above->raw, "payload", 7, false);
    assert_refused(above, 2);
    above_end(above);
}

TEST(nobody_speaks_up_for_another)
{
    struct above *above = above_start(HIGHER);
    struct raw_peer other;
    join(above, &above->raw);
    raw_open(&other, HIGHER + 1, ls_node_endpoint(above->node));
    join(above, &other);
    const uint64_t early = stats_of(above).early;
    struct wire_header header = header_of(&other, WIRE_KIND_CHANNEL);
    header.origin = above->raw.id;
    header.incarnation = above->raw.incarnation;
    say(&other, 1, &header, "I am another");
    other.job = "another";
    header = header_of(&other, WIRE_KIND_CHANNEL);
    say(&other, 1, &header, "of another job");
    await_refused(above, 2);
    assert_refused(above, 2);
    assert_int_equal(stats_of(above).early, early);
    raw_close(&other);
    above_end(above);
}

TEST(what_is_sent_up_too_early_is_counted)
{
    struct above *above = above_start(HIGHER);
    raw_be_present(&above->raw);
    raw_await_presence(&above->raw, above->node);
    const uint64_t early = stats_of(above).early;
    say_honestly(&above->raw, "not ready");
    struct wire_header header = header_of(&above->raw, WIRE_KIND_CHANNEL);
    header.incarnation++;
    say(&above->raw, 1, &header, "another life");
    raw_tell_topic(&above->raw, 1, "lx", 2); /* refused, and read last */
    await_refused(above, 1);
    assert_int_equal(stats_of(above).early, early + 2);
    assert_int_equal(counter_get(&above->heard), 0);
    above_end(above);
}

/* As what waited for a connection, and so comes before the presence. */
TEST(what_comes_up_before_a_presence_is_counted)
{
    struct above *above = above_start(HIGHER);
    struct raw_peer other;
    join(above, &above->raw);
    const uint64_t early = stats_of(above).early;
    raw_open(&other, above->raw.id, ls_node_endpoint(above->node));
    say_honestly(&other, "too early");
    raw_tell_topic(&other, 1, "lx", 2); /* refused, and read last */
    await_refused(above, 1);
    assert_int_equal(stats_of(above).early, early + 1);
    assert_int_equal(counter_get(&above->heard), 0);
    raw_close(&other);
    above_end(above);
}

/* Its own queue is bounded: what is beyond that is lost there. */
static void flood(struct above *above)
{
    const int mark = 4096;
    struct raw_peer other;
    raw_open(&other, HIGHER + 1, NULL);
    assert_int_equal(zmq_setsockopt(other.sub, ZMQ_SNDHWM, &mark, sizeof mark),
                     0);
    raw_connect(&other, ls_node_endpoint(above->node));
    join(above, &other);
    const int64_t deadline = long_deadline();
    while (stats_of(above).refused == 0) {
        raw_assert_before(deadline);
        for (int i = 0; i < 1000; i++)
            say_honestly(&other, "again");
    }
    raw_close(&other);
}

TEST(who_sends_up_faster_than_it_can_be_read_is_cut_off)
{
    struct ls_refusal refusal;
    struct above *above = above_start(HIGHER);
    above->raw.id = HIGHER + 1; /* whom its channel hears */
    above->is_slow = true;
    flood(above);
    above->is_slow = false;
    assert_int_equal(ls_node_refusals(above->node, &refusal, 1), 1);
    assert_int_equal(refusal.kind, LS_REFUSAL_WINDOW);
    assert_non_null(strstr(refusal.why, "sent up messages faster"));
    above_end(above);
}

/* ---- what goes up ------------------------------------------------------ */

/* Whether a message on the channel comes over this socket of the peer's within
 * so long. */
static bool comes(void *socket, int wait_ms)
{
    static uint8_t frame[2 * WIRE_CHUNK_BYTES];
    struct wire_header header;
    char topic_class;
    uint32_t to;
    const int64_t deadline =
        ls_now(ls_runtime_threads()) + wait_ms * LS_NS_PER_MS;
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
    while (ls_now(ls_runtime_threads()) < deadline) {
        if (zmq_poll(&item, 1, 10) != 1)
            continue;
        const int size = zmq_recv(socket, frame, sizeof frame, 0);
        if (wire_header_read(frame, (size_t)size, &topic_class, &to, &header) ==
                LS_OK &&
            header.kind == WIRE_KIND_CHANNEL)
            return true;
    }
    return false;
}

static void ask(struct above *above, size_t size)
{
    const int asked = counter_get(&above->asked);
    above->size = size;
    ls_channel_wake_at(above->channel, LS_NOW);
    assert_reaches(&above->asked, asked + 1);
}

static void assert_comes(struct above *above, bool up)
{
    assert_true(comes(up ? above->raw.xpub : above->raw.sub, LONG_MS));
    assert_false(comes(up ? above->raw.sub : above->raw.xpub, 100));
    above_end(above);
}

/* What is sent near to a peer of that id. */
static void assert_goes(uint32_t id, size_t size, bool up)
{
    struct above *above = above_start(id);
    join(above, &above->raw);
    ask(above, size);
    assert_comes(above, up);
}

TEST(what_is_for_a_lower_id_alone_goes_up)
{
    assert_goes(LOWER, 100, true);
}

TEST(what_is_for_a_higher_id_is_published)
{
    assert_goes(HIGHER, 100, false);
}

TEST(what_is_too_long_to_go_up_is_published)
{
    assert_goes(LOWER, TRANSPORT_UP_MAX, false);
}

TEST(what_keeps_its_order_is_published)
{
    struct above *above = above_start(LOWER);
    join(above, &above->raw);
    assert_ok(ls_channel_send(above->channel, LOWER, "in order", 8));
    assert_comes(above, false);
}
