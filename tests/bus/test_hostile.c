/* Peers that lie: nothing dies, everything is counted, the world goes on. */
#include "raw_peer.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "assembly.h"
#include "base/sanitized.h"
#include "test.h"

/* More than anybody may make known. */
#define N_NAMES (SANITIZED ? 20000u : 100000u)

/* Two nodes of one world, and a raw peer at the first. */
struct siege {
    struct world world;
    ls_node *node, *other;
    struct counter heard, flushed, ready;
    struct raw_peer raw;
};

static void on_member(void *self, const struct ls_member *member)
{
    struct siege *siege = self;
    if (member->state == LS_MEMBER_READY && member->id == 666)
        counter_add(&siege->ready, 1);
}

static void listen_node(ls_node *node, size_t index, void *self)
{
    struct siege *siege = self;
    if (index == 0) {
        assert_ok(ls_on(node, "x", count, &siege->heard));
        assert_ok(ls_on(node, "flush", count, &siege->flushed));
        assert_ok(ls_node_on_member(node, on_member, siege));
    }
}

static void siege_options(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->silence_ms = 60000; /* raw peers do not keep beating */
    options->linger_ms = 100;    /* and do not close when told farewell */
    options->heartbeat_ms = 50;
    options->world_max = 3;
    options->insecure = true; /* they cannot prove who they are */
}

static struct siege *siege_start(void)
{
    struct siege *siege = calloc(1, sizeof *siege);
    assert_non_null(siege);
    counter_init(&siege->heard);
    counter_init(&siege->flushed);
    counter_init(&siege->ready);
    world_start(&siege->world, &(struct world_plan){.n = 2,
                                                    .transport = "tcp",
                                                    .tune = siege_options,
                                                    .prepare = listen_node,
                                                    .self = siege});
    siege->node = siege->world.at[0].node;
    siege->other = siege->world.at[1].node;
    raw_open(&siege->raw, 666, ls_node_endpoint(siege->node));
    return siege;
}

/* The raw peer becomes a member that is ready. */
static void join_as_member(struct siege *siege)
{
    raw_be_present(&siege->raw);
    raw_await_presence(&siege->raw, siege->node);
    raw_heartbeat(&siege->raw, siege->node);
    assert_reaches(&siege->ready, 1);
}

static uint64_t refused(const struct siege *siege)
{
    struct ls_node_stats stats;
    ls_node_stats(siege->node, &stats);
    return stats.refused;
}

/* The two nodes still work; then all ends. */
static void siege_end(struct siege *siege)
{
    const int before = counter_get(&siege->heard);
    for (int i = 0; i < 10; i++)
        assert_ok(ls_emit(siege->other, "x", "data", 4));
    assert_reaches(&siege->heard, before + 10);
    raw_close(&siege->raw);
    world_destroy(&siege->world);
    counter_fini(&siege->heard);
    counter_fini(&siege->flushed);
    counter_fini(&siege->ready);
    free(siege);
}

TEST(a_raw_peer_can_be_an_honest_member)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    raw_event(&siege->raw, "x", &header, "hello", 5);
    assert_reaches(&siege->heard, 1);
    assert_int_equal(refused(siege), 0);
    siege_end(siege);
}

/* It said that it was where another is; a leaf would seem to that one, and to
 * nobody else, not to be behind its hub. */
TEST(an_address_that_nobody_names_any_more_is_given_up)
{
    struct siege *siege = siege_start();
    struct raw_peer other;
    raw_open(&other, 667, NULL);
    strcpy(siege->raw.endpoint, other.endpoint);
    raw_be_present(&siege->raw);
    raw_await_node(&other, siege->node, true);
    raw_close(&siege->raw);
    raw_await_node(&other, siege->node, false);
    transport_lock(siege->node->transport);
    assert_null(link_find(siege->node, other.endpoint));
    transport_unlock(siege->node->transport);
    raw_close(&other);
    raw_open(&siege->raw, 666, ls_node_endpoint(siege->node));
    siege_end(siege);
}

/* What it says before it is a member is not heard, and is counted. */
TEST(what_comes_too_early_is_counted)
{
    struct ls_node_stats stats;
    struct siege *siege = siege_start();
    raw_be_present(&siege->raw);
    raw_await_presence(&siege->raw, siege->node);
    ls_node_stats(siege->node, &stats);
    const uint64_t before = stats.early;
    for (int i = 0; i < 3; i++) {
        struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
        raw_event(&siege->raw, "x", &header, "data", 4);
    }
    raw_heartbeat(&siege->raw, siege->node);
    assert_reaches(&siege->ready, 1);
    ls_node_stats(siege->node, &stats);
    assert_int_equal(stats.early, before + 3);
    assert_int_equal(counter_get(&siege->heard), 0);
    siege_end(siege);
}

struct said {
    struct counter lines;
    const char *text;
};

static void count_said(void *self, const char *line)
{
    struct said *said = self;
    if (strstr(line, said->text) != NULL)
        counter_add(&said->lines, 1);
}

TEST(who_vanishes_is_said_to_be_lost)
{
    struct said said = {.text = "node 666 is lost: it is gone"};
    struct siege *siege = siege_start();
    join_as_member(siege);
    counter_init(&said.lines);
    ls_log_redirect(count_said, &said);
    raw_close(&siege->raw);
    assert_reaches(&said.lines, 1);
    ls_log_redirect(NULL, NULL);
    raw_open(&siege->raw, 667, NULL);
    siege_end(siege);
    counter_fini(&said.lines);
}

/* ---- subscriptions ----------------------------------------------------- */

TEST(garbage_subscriptions_are_refused)
{
    static const char *const garbage[] = {
        "~",
        "~H",
        "~Hx/",
        "~H3/",
        "~H3/7/lockstep/0/0///e/1",
        "~R3/",
        "~X",
        "l",
        "l1",
        "l1/",
        "lx/1/y",
        "l1/1/a b",
        "z",
        "\x80\xff",
        "~H99/lockstep/1",
        "l1/1/[",
        "~H3/7/lockstep/0/0///tcp://127.0.0.1:1/x/1/",
        "\x01\x01",
        "~H3/7/lockstep/0/0///tcp://127.0.0.1:1/99999999999/1/"};
    const size_t n = sizeof garbage / sizeof garbage[0];
    struct siege *siege = siege_start();
    for (size_t i = 0; i < n; i++)
        raw_subscribe(&siege->raw, garbage[i], strlen(garbage[i]));
    static char huge[WIRE_TOPIC_MAX]; /* longer ones end the connection */
    memset(huge, 'l', sizeof huge);
    raw_subscribe(&siege->raw, huge, sizeof huge);
    memset(huge, '~', sizeof huge);
    raw_subscribe(&siege->raw, huge, sizeof huge);
    raw_be_present(&siege->raw);
    raw_await_listed(&siege->raw);
    assert_int_equal(refused(siege), n + 2);
    siege_end(siege);
}

TEST(a_presence_of_another_job_is_refused)
{
    struct siege *siege = siege_start();
    siege->raw.job = "another";
    raw_be_present(&siege->raw);
    siege->raw.job = "lockstep";
    siege->raw.id = 667;
    raw_be_present(&siege->raw);
    raw_await_listed(&siege->raw);
    assert_int_equal(refused(siege), 1);
    assert_int_equal(ls_node_members(siege->node, NULL, 0), 2);
    siege_end(siege);
}

TEST(what_is_no_address_is_not_dialled)
{
    static const char *const abroad[] = {"tcp://127.0.0.1:0;192.0.2.1:80",
                                         "epgm://lo;239.192.1.1:5555",
                                         "udp://127.0.0.1:80", "nonsense"};
    const size_t n = sizeof abroad / sizeof abroad[0];
    struct siege *siege = siege_start();
    for (size_t i = 0; i < n; i++) {
        struct raw_peer liar = siege->raw;
        liar.id = (uint32_t)i + 1000;
        strcpy(liar.endpoint, abroad[i]);
        raw_be_present(&liar);
    }
    siege->raw.id = 2000; /* behind the others in byte order */
    raw_be_present(&siege->raw);
    raw_await_listed(&siege->raw);
    assert_int_equal(refused(siege), n);
    siege_end(siege);
}

TEST(names_are_bounded)
{
    struct siege *siege = siege_start();
    for (unsigned i = 0; i < N_NAMES; i++) {
        char topic[64];
        const int size = snprintf(topic, sizeof topic, "l4d/666/name.%u", i);
        raw_subscribe(&siege->raw, topic, (size_t)size);
    }
    for (unsigned i = N_NAMES / 2; i < N_NAMES; i++) {
        char topic[64];
        const int size = snprintf(topic, sizeof topic, "l4d/666/name.%u", i);
        raw_unsubscribe(&siege->raw, topic, (size_t)size);
    }
    raw_be_present(&siege->raw);
    raw_await_listed(&siege->raw);
    assert_in_range(refused(siege), N_NAMES - MAX_EVENTS, N_NAMES);
    assert_ok(ls_on(siege->node, "x", count, &siege->heard)); /* known */
    assert_ok(ls_off(siege->node, "x", count, &siege->heard));
    siege_end(siege);
}

TEST(listeners_are_bounded)
{
    struct siege *siege = siege_start();
    for (unsigned i = 0; i < N_NAMES; i++) {
        char topic[64];
        const int size = snprintf(topic, sizeof topic, "l4d/%u/x", i + 10);
        raw_subscribe(&siege->raw, topic, (size_t)size);
    }
    raw_be_present(&siege->raw);
    raw_await_listed(&siege->raw);
    assert_in_range(refused(siege), N_NAMES - MAX_LISTENERS, N_NAMES);
    siege_end(siege);
}

/* It would take the places of all others. */
TEST(one_connection_is_of_one_listener)
{
    const unsigned n = MAX_LISTENERS + 1;
    struct siege *siege = siege_start();
    for (unsigned i = 1; i <= n; i++) {
        char topic[64];
        const int size = snprintf(topic, sizeof topic, "l%x/666/x", i);
        raw_subscribe(&siege->raw, topic, (size_t)size);
    }
    raw_be_present(&siege->raw);
    raw_await_listed(&siege->raw);
    assert_int_equal(refused(siege), n - 1);
    siege_end(siege);
}

/* ---- messages ---------------------------------------------------------- */

/* What was sent before this has been handled once this is heard. Once. */
static void raw_flush(struct siege *siege)
{
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    const int before = counter_get(&siege->flushed);
    raw_event(&siege->raw, "flush", &header, "", 0);
    assert_reaches(&siege->flushed, before + 1);
}

/* A member says that somebody is there. */
static void name_another(struct siege *siege, uint32_t id, const char *endpoint)
{
    uint8_t members[1024];
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_HEARTBEAT);
    struct wire_member other = {
        .id = id, .incarnation = 5, .state = WIRE_MEMBER_PRESENT};
    header.name = siege->raw.job;
    header.name_size = strlen(siege->raw.job);
    strcpy(other.endpoint, endpoint);
    size_t size = wire_members_begin(members, 1);
    size += wire_member_write(members + size, &other);
    raw_event(&siege->raw, NULL, &header, members, size);
}

/* As somebody else each time, while what it says is read. */
TEST(an_address_is_not_dialled_anew_for_ever)
{
    enum { N = 1200 };
    struct siege *siege = siege_start();
    join_as_member(siege);
    for (uint32_t i = 0; i < N; i++)
        name_another(siege, 1000 + i % 2, "tcp://127.0.0.1:9");
    raw_flush(siege);
    transport_lock(siege->node->transport);
    assert_int_equal(link_find(siege->node, "tcp://127.0.0.1:9")->id, 1000);
    transport_unlock(siege->node->transport);
    siege_end(siege);
}

/* All of these reach the node: they begin with what it subscribed to. */
TEST(garbage_frames_are_refused)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    const size_t size = raw_frame(frame, "x", &header, "data", 4);
    uint64_t n = 0;
    for (size_t cut = 3; cut < size; cut++, n++)
        raw_send(&siege->raw, frame, cut, false);
    for (unsigned i = 0; i < 1000; i++, n++) {
        uint8_t noise[64] = "ex";
        for (size_t j = 3; j < sizeof noise; j++)
            noise[j] = (uint8_t)(i * 131 + j * 29 + (i >> 3) * j);
        raw_send(&siege->raw, noise, sizeof noise, false);
    }
    raw_send(&siege->raw, "c\0", 2, false);
    raw_flush(siege);
    assert_int_equal(refused(siege), n + 1);
    siege_end(siege);
}

TEST(frames_too_many_are_refused)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    size_t size = raw_frame(frame, "x", &header, "data", 4);
    raw_send(&siege->raw, frame, size, true); /* a payload, and another */
    raw_send(&siege->raw, "more", 4, false);
    size = raw_frame(frame, "x", &header, NULL, 0); /* one that never comes */
    raw_send(&siege->raw, frame, size, false);
    for (int i = 0; i < 20; i++)
        raw_send(&siege->raw, frame, size, i != 19);
    raw_flush(siege);
    assert_int_equal(refused(siege), 3);
    assert_int_equal(counter_get(&siege->heard), 0);
    siege_end(siege);
}

TEST(other_versions_and_jobs_are_refused)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    const size_t size = raw_frame(frame, "x", &header, "data", 4);
    frame[4] = WIRE_VERSION + 1;
    raw_send(&siege->raw, frame, size, false);
    header.job ^= 1;
    raw_event(&siege->raw, "x", &header, "data", 4);
    header.job ^= 1;
    header.origin = 555; /* not whose connection this is */
    raw_event(&siege->raw, "x", &header, "data", 4);
    raw_flush(siege);
    assert_int_equal(refused(siege), 3);
    assert_int_equal(counter_get(&siege->heard), 0);
    siege_end(siege);
}

/* Those who subscribed to the topic got it, and a hub would count it for those
 * who listen to the name. */
TEST(what_is_not_what_its_topic_says_is_refused)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    header.name = "x";
    header.name_size = 1;
    raw_event(&siege->raw, "flush", &header, "data", 4);
    raw_event(&siege->raw, "x", &header, "data", 4); /* even so */
    raw_event(&siege->raw, NULL, &header, "data", 4);
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 0);
    assert_int_equal(refused(siege), 3);
    siege_end(siege);
}

/* A filter is a name in the table as well, but no event has it. */
TEST(no_event_has_the_name_of_a_filter)
{
    struct siege *siege = siege_start();
    assert_ok(ls_on(siege->node, "loss.*", count, &siege->heard));
    join_as_member(siege);
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    raw_event(&siege->raw, "loss.*", &header, "data", 4);
    raw_event(&siege->raw, "loss.?", &header, "data", 4);
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 0);
    header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    raw_event(&siege->raw, "loss.batch", &header, "data", 4);
    assert_reaches(&siege->heard, 1);
    siege_end(siege);
}

TEST(counts_that_lie_are_refused)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    uint8_t members[5];
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_HEARTBEAT);
    raw_event(&siege->raw, NULL, &header, members,
              wire_members_begin(members, UINT32_MAX));
    header = raw_header(&siege->raw, WIRE_KIND_BATCH);
    header.total = UINT32_MAX;
    uint8_t frame[WIRE_HEAD_MAX];
    size_t size = wire_topic_event(frame, "x");
    size += wire_header_write(frame + size, &header);
    raw_send(&siege->raw, frame, size, false);
    uint8_t *large = calloc(1, WIRE_CHUNK_BYTES + 1);
    assert_non_null(large);
    header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    raw_event(&siege->raw, "x", &header, large, WIRE_CHUNK_BYTES + 1);
    free(large);
    raw_flush(siege);
    assert_int_equal(refused(siege), 3);
    siege_end(siege);
}

/* Credit, farewell and channel messages that make no sense are harmless. */
TEST(figures_that_lie_are_harmless)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_CREDIT);
    header.limit_messages = header.limit_bytes = UINT64_MAX;
    raw_event(&siege->raw, NULL, &header, NULL, 0); /* for another life */
    header.sequence = ls_node_incarnation(siege->node);
    raw_event(&siege->raw, NULL, &header, NULL, 0);
    header.limit_messages = header.limit_bytes = 0;
    raw_event(&siege->raw, NULL, &header, NULL, 0);
    header = raw_header(&siege->raw, WIRE_KIND_CHANNEL);
    header.name = "nobody";
    header.name_size = 6;
    raw_event(&siege->raw, NULL, &header, "data", 4);
    header.sequence = UINT64_MAX; /* a gap as large as can be */
    header.kind = WIRE_KIND_EVENT;
    header.name_size = 0;
    raw_event(&siege->raw, "x", &header, "data", 4);
    raw_event(&siege->raw, "x", &header, "data", 4); /* not once more */
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 1);
    siege_end(siege);
}

static void send_chunk(struct siege *siege, uint32_t total, uint32_t offset,
                       const void *data, size_t size)
{
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_CHUNK);
    header.sequence = 9;
    header.total = total;
    header.offset = offset;
    raw_event(&siege->raw, "x", &header, data, size);
}

/* What the raw peer has in its window. */
static uint64_t held_of_it(struct siege *siege)
{
    transport_lock(siege->node->transport);
    const struct hop *hop = world_find(siege->node, 666)->hop;
    const uint64_t held = hop->kept_messages - hop->released_messages;
    transport_unlock(siege->node->transport);
    return held;
}

/* One long event, which is not whole, has all the room that there is for such:
 * of others nothing is held, and nothing is released. */
TEST(what_was_not_held_makes_no_room)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    uint8_t *large = calloc(1, WIRE_CHUNK_BYTES);
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_CHUNK);
    const uint32_t half = (uint32_t)siege->node->options.window_bytes / 2;
    header.total = 2 * half;
    for (; header.offset < half; header.offset += WIRE_CHUNK_BYTES)
        raw_event(&siege->raw, "flush", &header, large, WIRE_CHUNK_BYTES);
    header.total = 8;
    for (header.sequence = 1; header.sequence <= 4; header.sequence++)
        for (header.offset = 0; header.offset < 8; header.offset += 4)
            raw_event(&siege->raw, "x", &header, "data", 4);
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 4);
    raw_flush(siege); /* what came before it has been released */
    const uint32_t n = half / WIRE_CHUNK_BYTES;
    assert_in_range(held_of_it(siege), n, n + 1);
    free(large);
    siege_end(siege);
}

TEST(chunks_that_make_no_whole_are_dropped)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    for (int i = 0; i < 200; i++) /* each claims memory anew */
        send_chunk(siege, 60u << 20, 0, "", 0);
    send_chunk(siege, UINT32_MAX, 0, "data", 4); /* over the limit */
    send_chunk(siege, 100, 0, "data", 4);
    send_chunk(siege, 100, 8, "data", 4); /* a hole */
    send_chunk(siege, 100, 4, "data", 4);
    send_chunk(siege, 6, 0, "data", 4);
    send_chunk(siege, 6, 4, "data", 4); /* longer than it said */
    send_chunk(siege, 0, 0, "", 0);
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 0);
    size_t n = 0;
    for (const struct assembly *a = siege->node->assemblies; a; a = a->next)
        n++;
    assert_in_range(n, 0, 1);
    siege_end(siege);
}

TEST(a_chunk_that_came_before_is_left_out)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    send_chunk(siege, 12, 0, "once", 4);
    send_chunk(siege, 12, 4, "upon", 4);
    send_chunk(siege, 12, 4, "upon", 4);
    send_chunk(siege, 12, 0, "once", 4);
    send_chunk(siege, 12, 8, "time", 4);
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 1);
    assert_int_equal(refused(siege), 0);
    siege_end(siege);
}

/* Only a long one is, and that without a payload: it counts in no window. */
TEST(a_whole_event_is_not_taken_back)
{
    struct siege *siege = siege_start();
    join_as_member(siege);
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    header.flags = WIRE_FLAG_WITHDRAW;
    raw_event(&siege->raw, "x", &header, "data", 4);
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 0);
    assert_int_equal(refused(siege), 1);
    siege_end(siege);
}

/* A batch of one, under the topic that is already in the frame. */
static void send_batch(struct siege *siege, uint8_t *frame, size_t size,
                       bool named)
{
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_BATCH);
    header.name = "x";
    header.name_size = named ? 1 : 0;
    size += wire_header_write(frame + size, &header);
    uint8_t *payloads = frame + size;
    size += wire_batch_write(frame + size, "data", 4);
    wire_batch_count(payloads, 1);
    raw_send(&siege->raw, frame, size, false);
}

TEST(a_batch_is_refused_in_an_inbox)
{
    uint8_t frame[WIRE_HEAD_MAX + 64];
    struct siege *siege = siege_start();
    join_as_member(siege);
    send_batch(siege, frame, wire_topic_event(frame, "x"), false);
    assert_reaches(&siege->heard, 1);
    send_batch(siege, frame, wire_topic_inbox(frame, ls_node_id(siege->node)),
               true);
    raw_flush(siege);
    assert_int_equal(counter_get(&siege->heard), 1);
    assert_int_equal(refused(siege), 1);
    siege_end(siege);
}

/* ---- bytes that are no ZeroMQ ------------------------------------------ */

static int raw_tcp(const char *endpoint)
{
    char host[LS_ENDPOINT_MAX + 1];
    unsigned port = 0;
    assert_int_equal(sscanf(endpoint, "tcp://%[0-9.]:%u", host, &port), 2);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {inet_addr(host)}};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(
        connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

TEST(garbage_over_tcp_is_cut_off)
{
    struct siege *siege = siege_start();
    for (unsigned i = 0; i < 50; i++) {
        uint8_t bytes[1000];
        const int fd = raw_tcp(ls_node_endpoint(siege->node));
        for (size_t j = 0; j < sizeof bytes; j++)
            bytes[j] = (uint8_t)(j * i * 37 + i + (j >> 2));
        if (i % 3 == 0) /* a greeting, then garbage */
            memcpy(bytes, "\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
        (void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        close(fd);
    }
    const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const int fd = raw_tcp(ls_node_endpoint(siege->node));
    (void)!send(fd, request, strlen(request), MSG_NOSIGNAL);
    join_as_member(siege);
    raw_flush(siege);
    close(fd);
    siege_end(siege);
}

/* Say this, until it is answered with READY or the end. Returns the socket. */
static int say(const ls_node *node, const void *bytes, size_t size)
{
    char answer[256] = "";
    size_t used = 0;
    ssize_t n;
    const int fd = raw_tcp(ls_node_endpoint(node));
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    do {
        n = recv(fd, answer + used, sizeof answer - 1 - used, 0);
        used += n > 0 ? (size_t)n : 0;
    } while (n > 0 && (used < 72 || memcmp(answer + 67, "READY", 5) != 0));
    return fd;
}

/* And wait until the node has hung up too. */
static void hang_up(int fd)
{
    char rest[256];
    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, rest, sizeof rest, 0) > 0)
        ;
    close(fd);
}

static void say_and_hang_up(const ls_node *node, const void *bytes, size_t size)
{
    hang_up(say(node, bytes, size));
}

static void count_strangers(void *self, const char *line)
{
    if (strstr(line, "does not speak as a member does") != NULL)
        counter_add(self, 1);
}

/* A client may leave while it comes: that is no offence. */
TEST(who_hangs_up_before_it_subscribes_is_no_stranger)
{
    static const uint8_t greeting[64] = {0xff, 0,    0, 0, 0,   0,   0,   0,
                                         1,    0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] =
        "\x04\x19\x05READY\x0bSocket-Type\0\0\0\3SUB";
    uint8_t bytes[sizeof greeting + sizeof ready - 1];
    struct counter strangers;
    struct siege *siege = siege_start();
    join_as_member(siege); /* it has subscribed, as all that stay do */
    counter_init(&strangers);
    ls_log_redirect(count_strangers, &strangers);
    memcpy(bytes, greeting, sizeof greeting);
    memcpy(bytes + sizeof greeting, ready, sizeof ready - 1);
    for (int i = 0; i < 5; i++)
        say_and_hang_up(siege->node, bytes, sizeof bytes);
    assert_int_equal(refused(siege), 0);
    /* Nor when one that said nothing, as a probe does, goes meanwhile. */
    const int coming = say(siege->node, bytes, sizeof bytes);
    hang_up(raw_tcp(ls_node_endpoint(siege->node)));
    hang_up(coming);
    say_and_hang_up(siege->node, "\1\0\1\1", 4); /* ZMTP 1.0 */
    assert_reaches(&strangers, 1);
    assert_int_equal(refused(siege), 1);
    ls_log_redirect(NULL, NULL);
    siege_end(siege);
    counter_fini(&strangers);
}

TEST(a_stranger_does_not_change_why_a_start_fails)
{
    static const char *const nobody = "tcp://127.0.0.1:1";
    struct counter strangers;
    struct ls_node_options options;
    ls_node *node;
    counter_init(&strangers);
    ls_log_redirect(count_strangers, &strangers);
    ls_node_options_init(&options);
    options.id = 7;
    options.world_size = 2;
    options.attach = &nobody;
    options.n_attach = 1;
    options.start_timeout_ms = 100;
    options.insecure = true;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_open(node));
    say_and_hang_up(node, "\1\0\1\1", 4);
    assert_reaches(&strangers, 1);
    assert_fails(ls_node_join(node), LS_EUNREACHABLE);
    assert_has(ls_error_text(), "no answer");
    assert_has(ls_error_text(), "refused: it does not speak");
    ls_node_destroy(&node);
    ls_log_redirect(NULL, NULL);
    counter_fini(&strangers);
}
