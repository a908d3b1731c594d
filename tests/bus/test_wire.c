#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "lockstep/status.h"

#include "test.h"
#include "wire_fixture.h"

static const enum wire_kind kinds[] = {
    WIRE_KIND_EVENT,   WIRE_KIND_CHUNK,    WIRE_KIND_HEARTBEAT,
    WIRE_KIND_CREDIT,  WIRE_KIND_CHANNEL,  WIRE_KIND_FAREWELL,
    WIRE_KIND_VERDICT, WIRE_KIND_RELIABLE, WIRE_KIND_ACK};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static bool has_payload(enum wire_kind kind)
{
    return kind != WIRE_KIND_CREDIT && kind != WIRE_KIND_FAREWELL &&
           kind != WIRE_KIND_ACK;
}

/* A frame of this kind for an inbox, with a payload inside unless told. */
static size_t make_frame(uint8_t *out, enum wire_kind kind, bool inline_data)
{
    static const uint8_t data[] = "payload";
    struct wire_header header = header_of(kind);
    header.name = "some.event";
    header.name_size = 10;
    header.total = 3000000;
    header.offset = 1048576;
    header.limit_messages = 16384;
    header.limit_bytes = UINT64_MAX;
    header.config_hash = 0xc0ffee;
    header.reason = LS_EABORTED;
    header.subject = 0x123456789abcdef;
    header.members = UINT32_MAX;
    header.silence_ms = 2000;
    header.to_incarnation = 0xfedcba9876543210;
    header.number = UINT64_MAX - 2;
    header.also = 0x8000000000000006;
    header.of = WIRE_KIND_CHUNK;
    header.data = inline_data ? data : NULL;
    header.size = sizeof data;
    size_t n = wire_topic_inbox(out, 4294967295u);
    n += wire_header_write(out + n, &header);
    if (inline_data && has_payload(kind)) {
        memcpy(out + n, data, sizeof data);
        n += sizeof data;
    }
    return n;
}

TEST(header_of_every_kind_comes_back)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        uint8_t frame[WIRE_HEAD_MAX];
        const size_t size = make_frame(frame, kinds[i], true);
        struct wire_header header;
        char topic_class;
        uint32_t to;
        assert_ok(wire_header_read(frame, size, &topic_class, &to, &header));
        assert_int_equal(topic_class, WIRE_INBOX);
        assert_int_equal(to, 4294967295u);
        assert_int_equal(header.kind, kinds[i]);
        assert_int_equal(header.job, 0xdeadbeef);
        assert_int_equal(header.origin, 4294967295u);
        assert_true(header.incarnation == UINT64_MAX - 1);
        assert_true(header.sequence == 1ull << 63);
        assert_int_equal(header.flags, WIRE_FLAG_DROP);
        assert_int_equal(header.name_size, 10);
        assert_memory_equal(header.name, "some.event", 10);
        if (has_payload(kinds[i])) {
            assert_int_equal(header.size, 8);
            assert_memory_equal(header.data, "payload", 8);
        }
    }
}

static void read_kind(enum wire_kind kind, struct wire_header *header)
{
    static uint8_t frame[WIRE_HEAD_MAX];
    char topic_class;
    uint32_t to;
    assert_ok(wire_header_read(frame, make_frame(frame, kind, true),
                               &topic_class, &to, header));
}

TEST(header_keeps_what_only_its_kind_has)
{
    struct wire_header header;
    read_kind(WIRE_KIND_CHUNK, &header);
    assert_int_equal(header.total, 3000000);
    assert_int_equal(header.offset, 1048576);
    read_kind(WIRE_KIND_CREDIT, &header);
    assert_int_equal(header.limit_messages, 16384);
    assert_true(header.limit_bytes == UINT64_MAX);
    read_kind(WIRE_KIND_HEARTBEAT, &header);
    assert_true(header.config_hash == 0xc0ffee);
    read_kind(WIRE_KIND_FAREWELL, &header);
    assert_int_equal(header.reason, LS_EABORTED);
    read_kind(WIRE_KIND_VERDICT, &header);
    assert_int_equal(header.reason, LS_EABORTED);
    assert_true(header.subject == 0x123456789abcdef);
    assert_true(header.members == UINT32_MAX);
    assert_int_equal(header.silence_ms, 2000);
    read_kind(WIRE_KIND_RELIABLE, &header);
    assert_true(header.to_incarnation == 0xfedcba9876543210);
    assert_true(header.number == UINT64_MAX - 2);
    assert_int_equal(header.of, WIRE_KIND_CHUNK);
    assert_int_equal(header.total, 3000000);
    assert_int_equal(header.offset, 1048576);
    read_kind(WIRE_KIND_ACK, &header);
    assert_true(header.to_incarnation == 0xfedcba9876543210);
    assert_true(header.number == UINT64_MAX - 2);
    assert_true(header.also == 0x8000000000000006);
    assert_int_equal(header.limit_messages, 16384);
    assert_true(header.limit_bytes == UINT64_MAX);
}

TEST(a_reliable_one_that_makes_no_sense_is_refused)
{
    struct wire_header good = header_of(WIRE_KIND_RELIABLE), header;
    good.name = "x";
    good.name_size = 1;
    good.number = 1;
    good.of = WIRE_KIND_EVENT;
    for (size_t i = 0; i < 3; i++) {
        uint8_t frame[WIRE_HEAD_MAX];
        struct wire_header bad = good;
        char topic_class;
        uint32_t to;
        bad.number = i == 1 ? 0 : bad.number;
        bad.of = i == 2 ? WIRE_KIND_HEARTBEAT : bad.of;
        size_t size = wire_topic_inbox(frame, 1);
        size += wire_header_write(frame + size, &bad);
        assert_int_equal(
            wire_header_read(frame, size, &topic_class, &to, &header),
            i == 0 ? LS_OK : LS_EPROTO);
    }
}

TEST(a_payload_has_to_be_where_total_and_offset_put_it)
{
    const struct {
        enum wire_kind kind, of;
        uint8_t flags;
        uint32_t total, offset;
        size_t size;
        bool fits;
    } cases[] = {{WIRE_KIND_EVENT, 0, 0, 0, 0, 5, true},
                 {WIRE_KIND_CHUNK, 0, 0, 9, 4, 5, true},
                 {WIRE_KIND_CHUNK, 0, 0, 9, 4, 0, false},
                 {WIRE_KIND_CHUNK, 0, 0, 9, 4, 6, false},
                 {WIRE_KIND_CHUNK, 0, 0, 9, 9, 1, false},
                 {WIRE_KIND_CHUNK, 0, 0, 0, 0, 5, false},
                 {WIRE_KIND_CHUNK, 0, 0, UINT32_MAX, UINT32_MAX, 2, false},
                 {WIRE_KIND_CHUNK, 0, WIRE_FLAG_WITHDRAW, 9, 0, 0, true},
                 {WIRE_KIND_CHUNK, 0, WIRE_FLAG_WITHDRAW, 9, 0, 1, false},
                 {WIRE_KIND_CHUNK, 0, WIRE_FLAG_WITHDRAW, 9, 1, 0, false},
                 {WIRE_KIND_EVENT, 0, WIRE_FLAG_WITHDRAW, 0, 0, 5, false},
                 {WIRE_KIND_EVENT, 0, WIRE_FLAG_WITHDRAW, 0, 0, 0, false},
                 {WIRE_KIND_RELIABLE, WIRE_KIND_EVENT, WIRE_FLAG_WITHDRAW, 5, 0,
                  5, false},
                 {WIRE_KIND_RELIABLE, WIRE_KIND_EVENT, 0, 5, 0, 5, true},
                 {WIRE_KIND_RELIABLE, WIRE_KIND_EVENT, 0, 0, 0, 5, false},
                 {WIRE_KIND_RELIABLE, WIRE_KIND_EVENT, 0, 5, 1, 5, false},
                 {WIRE_KIND_RELIABLE, WIRE_KIND_CHUNK, 0, 9, 4, 5, true},
                 {WIRE_KIND_RELIABLE, WIRE_KIND_CHUNK, 0, 9, 4, 6, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wire_header header = header_of(cases[i].kind);
        header.of = cases[i].of;
        header.flags = cases[i].flags;
        header.total = cases[i].total;
        header.offset = cases[i].offset;
        if (wire_payload_fits(&header, cases[i].size) != cases[i].fits)
            fail_msg("case %zu", i);
    }
}

TEST(payload_in_a_second_frame_is_told_from_an_empty_one)
{
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = header_of(WIRE_KIND_EVENT);
    char topic_class;
    uint32_t to;
    size_t topic = wire_topic_event(frame, "x");
    size_t size = topic + wire_header_write(frame + topic, &header);
    assert_ok(wire_header_read(frame, size, &topic_class, &to, &header));
    assert_null(header.data);
    header.data = frame;
    header.size = 0;
    header.name_size = 0;
    size = topic + wire_header_write(frame + topic, &header);
    assert_ok(wire_header_read(frame, size, &topic_class, &to, &header));
    assert_non_null(header.data);
    assert_int_equal(header.size, 0);
}

TEST(name_of_an_event_is_its_topics)
{
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = header_of(WIRE_KIND_EVENT);
    char topic_class;
    uint32_t to;
    size_t size = wire_topic_event(frame, "loss::batch");
    size += wire_header_write(frame + size, &header);
    assert_ok(wire_header_read(frame, size, &topic_class, &to, &header));
    assert_int_equal(topic_class, WIRE_EVENT);
    assert_int_equal(header.name_size, 11);
    assert_memory_equal(header.name, "loss::batch", 11);
}

/* The dump of docs/wire-format.md. */
TEST(event_has_the_bytes_that_are_documented)
{
    static const uint8_t wanted[] = {
        0x65, 0x67, 0x72, 0x65, 0x65, 0x74, 0x00, 0x99, 0x03, 0x01, 0xce,
        0x4a, 0x3e, 0x48, 0x6a, 0xce, 0x00, 0x00, 0x00, 0x07, 0xcf, 0x11,
        0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xcf, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x2a, 0x00, 0xd9, 0x00, 0xc6, 0x00, 0x00,
        0x00, 0x05, 0x68, 0x65, 0x6c, 0x6c, 0x6f};
    static const uint8_t payload[] = {'h', 'e', 'l', 'l', 'o'};
    struct wire_header header = {.kind = WIRE_KIND_EVENT,
                                 .job = wire_job_hash("lockstep"),
                                 .origin = 7,
                                 .incarnation = 0x1122334455667788,
                                 .sequence = 42,
                                 .data = payload,
                                 .size = sizeof payload};
    uint8_t frame[WIRE_HEAD_MAX];
    size_t size = wire_topic_event(frame, "greet");
    size += wire_header_write(frame + size, &header);
    memcpy(frame + size, payload, sizeof payload);
    size += sizeof payload;
    assert_int_equal(size, sizeof wanted);
    assert_memory_equal(frame, wanted, size);
}

/* Read a frame of just this size; whatever it is, all that the header points
 * to lies inside it. */
static int read_exact(const uint8_t *data, size_t size)
{
    const struct bytes frame = copy_of(data, size);
    struct wire_header header;
    char topic_class;
    uint32_t to;
    const int status =
        wire_header_read(frame.data, size, &topic_class, &to, &header);
    if (status == LS_OK) {
        const uint8_t *end = frame.data + size;
        const uint8_t *name = (const uint8_t *)header.name;
        if (header.name_size != 0)
            assert_true(name > frame.data && name + header.name_size <= end);
        if (header.data != NULL)
            assert_true(header.data > frame.data &&
                        header.data + header.size == end);
    } else {
        assert_int_equal(status, LS_EPROTO);
    }
    free(frame.data);
    return status;
}

TEST(every_truncation_of_a_header_is_refused)
{
    for (size_t i = 0; i < 2 * N_KINDS; i++) {
        uint8_t frame[WIRE_HEAD_MAX];
        const size_t size = make_frame(frame, kinds[i / 2], i % 2 == 0);
        assert_ok(read_exact(frame, size));
        for (size_t cut = 0; cut < size; cut++)
            assert_fails(read_exact(frame, cut), LS_EPROTO);
        frame[size] = 0;
        assert_fails(read_exact(frame, size + 1), LS_EPROTO);
    }
}

TEST(every_changed_byte_is_refused_or_read_in_bounds)
{
    for (size_t i = 0; i < 2 * N_KINDS; i++) {
        uint8_t frame[WIRE_HEAD_MAX];
        const size_t size = make_frame(frame, kinds[i / 2], i % 2 == 0);
        read_every_change(frame, size, read_exact);
    }
}

TEST(other_versions_are_refused_by_name)
{
    uint8_t frame[WIRE_HEAD_MAX];
    const size_t size = make_frame(frame, WIRE_KIND_EVENT, true);
    const size_t topic = strlen((char *)frame) + 1;
    assert_int_equal(frame[topic + 1], WIRE_VERSION);
    frame[topic + 1] = WIRE_VERSION + 1;
    assert_fails(read_exact(frame, size), LS_EPROTO);
    assert_error_has("version 3");
}

static int read_topic(const char *topic, size_t size)
{
    uint8_t frame[WIRE_HEAD_MAX + WIRE_TOPIC_MAX];
    struct wire_header header = header_of(WIRE_KIND_CHANNEL);
    memcpy(frame, topic, size);
    return read_exact(frame, size + wire_header_write(frame + size, &header));
}

TEST(topics_that_are_none_are_refused)
{
    char longest[LS_EVENT_MAX + 3] = "e";
    memset(longest + 1, 'x', LS_EVENT_MAX);
    assert_ok(read_topic(longest, LS_EVENT_MAX + 2));
    memset(longest + 1, 'x', LS_EVENT_MAX + 1);
    assert_fails(read_topic(longest, LS_EVENT_MAX + 3), LS_EPROTO);
    assert_ok(read_topic("i4294967295", 12));
    assert_fails(read_topic("i4294967296", 12), LS_EPROTO);
    assert_fails(read_topic("i99999999999999999999", 22), LS_EPROTO);
    assert_fails(read_topic("i-1", 4), LS_EPROTO);
    assert_fails(read_topic("i", 2), LS_EPROTO);
    assert_fails(read_topic("i1x", 4), LS_EPROTO);
    assert_ok(read_topic("i0", 3));
    /* Nobody subscribes to these: a hub would count them for node 0 or 7. */
    assert_fails(read_topic("i00", 4), LS_EPROTO);
    assert_fails(read_topic("i07", 4), LS_EPROTO);
    assert_ok(read_topic("c", 2));
    assert_fails(read_topic("cx", 3), LS_EPROTO);
    assert_fails(read_topic("e", 2), LS_EPROTO);
    assert_fails(read_topic("", 1), LS_EPROTO);
    assert_fails(read_topic("~H", 3), LS_EPROTO);
    assert_fails(read_topic("l1/1/x", 7), LS_EPROTO);
    assert_fails(read_topic("z", 2), LS_EPROTO);
}

TEST(the_longest_of_everything_fits)
{
    char name[LS_EVENT_MAX + 1];
    memset(name, 'n', LS_EVENT_MAX);
    name[LS_EVENT_MAX] = '\0';
    uint8_t frame[4 * WIRE_HEAD_MAX];
    for (size_t i = 0; i < N_KINDS; i++) {
        struct wire_header header = header_of(kinds[i]);
        header.name = name;
        header.name_size = LS_EVENT_MAX;
        header.data = frame;
        const size_t topic = wire_topic_event(frame, name);
        assert_true(topic + wire_header_write(frame + topic, &header) <=
                    WIRE_HEAD_MAX);
    }
}

TEST(jobs_hash_differently)
{
    assert_int_equal(wire_job_hash("a"), wire_job_hash("a"));
    assert_int_not_equal(wire_job_hash("a"), wire_job_hash("b"));
    assert_int_not_equal(wire_job_hash(""), wire_job_hash("a"));
}
