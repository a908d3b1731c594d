/* The lists inside messages: the payloads of a batch, the members of a
 * heartbeat. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "lockstep/status.h"

#include "test.h"
#include "wire_fixture.h"

/* ---- batches ----------------------------------------------------------- */

#define N_BATCH 3

/* A frame with the payloads "one", "" and 1024 bytes. */
static size_t make_batch(uint8_t *out)
{
    static const uint8_t large[WIRE_BATCH_PAYLOAD_MAX] = {9};
    struct wire_header header = header_of(WIRE_KIND_BATCH);
    size_t n = wire_topic_event(out, "x");
    n += wire_header_write(out + n, &header);
    const size_t payloads = n;
    n += wire_batch_write(out + n, "one", 3);
    n += wire_batch_write(out + n, NULL, 0);
    n += wire_batch_write(out + n, large, sizeof large);
    wire_batch_count(out + payloads, N_BATCH);
    return n;
}

TEST(payloads_of_a_batch_come_back)
{
    static const size_t sizes[N_BATCH] = {3, 0, WIRE_BATCH_PAYLOAD_MAX};
    uint8_t frame[4096];
    const size_t size = make_batch(frame);
    struct wire_header header;
    char topic_class;
    uint32_t to;
    assert_ok(wire_header_read(frame, size, &topic_class, &to, &header));
    assert_int_equal(header.kind, WIRE_KIND_BATCH);
    assert_int_equal(header.total, N_BATCH);
    const uint8_t *at = header.data;
    const uint8_t *data = NULL;
    for (size_t i = 0; i < N_BATCH; i++) {
        size_t n = 0;
        wire_batch_next(&at, &data, &n);
        assert_int_equal(n, sizes[i]);
        if (i == 0)
            assert_memory_equal(data, "one", 3);
    }
    assert_ptr_equal(at, frame + size);
    assert_int_equal(data[0], 9);
}

/* Read a batch of just this size, and all its payloads. */
static int read_batch(const uint8_t *data, size_t size)
{
    const struct bytes frame = copy_of(data, size);
    struct wire_header header;
    char topic_class;
    uint32_t to;
    const int status =
        wire_header_read(frame.data, size, &topic_class, &to, &header);
    if (status == LS_OK && header.kind == WIRE_KIND_BATCH) {
        const uint8_t *at = header.data;
        const uint8_t *payload = NULL;
        unsigned sum = 0;
        for (uint32_t i = 0; i < header.total; i++) {
            size_t n = 0;
            wire_batch_next(&at, &payload, &n);
            for (size_t j = 0; j < n; j++)
                sum += payload[j]; /* in bounds, or a sanitizer sees it */
        }
        assert_true(at == frame.data + size && sum < 1u << 20);
    }
    free(frame.data);
    return status;
}

TEST(cut_and_changed_batches_are_refused_or_read)
{
    uint8_t frame[4096];
    const size_t size = make_batch(frame);
    for (size_t cut = 0; cut < size; cut++)
        assert_fails(read_batch(frame, cut), LS_EPROTO);
    read_every_change(frame, size, read_batch);
}

TEST(a_batch_of_none_or_of_more_than_come_is_refused)
{
    uint8_t frame[4096];
    const size_t size = make_batch(frame);
    const size_t payloads = size - WIRE_BATCH_PAYLOAD_MAX - 3 - 3 * 3;
    static const uint32_t lies[] = {0, N_BATCH - 1, N_BATCH + 1, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        wire_batch_count(frame + payloads, lies[i]);
        assert_fails(read_batch(frame, size), LS_EPROTO);
    }
    wire_batch_count(frame + payloads, N_BATCH);
    assert_ok(read_batch(frame, size));
    wire_batch_count(frame + payloads, 0);
    assert_fails(read_batch(frame, payloads), LS_EPROTO);
}

/* ---- members ----------------------------------------------------------- */

static const struct wire_member some_members[] = {
    {.id = 7,
     .incarnation = 8,
     .state = WIRE_MEMBER_PRESENT,
     .endpoint = "tcp://127.0.0.1:21500",
     .sent_messages = 1,
     .sent_bytes = UINT64_MAX,
     .limit_messages = 16384,
     .limit_bytes = 1u << 23},
    {.id = UINT32_MAX, .incarnation = UINT64_MAX},
    {.id = 0,
     .state = WIRE_MEMBER_LEFT,
     .reason = LS_EIO,
     .endpoint = "inproc://x"}};
#define N_SOME (sizeof some_members / sizeof some_members[0])

static size_t write_some(uint8_t *out)
{
    size_t size = wire_members_begin(out, N_SOME);
    for (size_t i = 0; i < N_SOME; i++)
        size += wire_member_write(out + size, &some_members[i]);
    return size;
}

/* Returns how many were read, or what stopped it. */
static int read_members(const uint8_t *data, size_t size)
{
    const struct bytes bytes = copy_of(data, size);
    struct wire_cursor cursor;
    struct wire_member member;
    int n = 0;
    int status = wire_members_read(&cursor, bytes.data, size);
    while (status >= 0 && (status = wire_member_read(&cursor, &member)) == 1)
        n++;
    free(bytes.data);
    return status < 0 ? status : n;
}

TEST(members_come_back)
{
    uint8_t data[2048];
    const size_t size = write_some(data);
    assert_true(size <= wire_members_size(N_SOME));
    struct wire_cursor cursor;
    struct wire_member member;
    assert_ok(wire_members_read(&cursor, data, size));
    for (size_t i = 0; i < N_SOME; i++) {
        const struct wire_member *wanted = &some_members[i];
        assert_int_equal(wire_member_read(&cursor, &member), 1);
        assert_int_equal(member.id, wanted->id);
        assert_true(member.incarnation == wanted->incarnation);
        assert_int_equal(member.state, wanted->state);
        assert_int_equal(member.reason, wanted->reason);
        assert_string_equal(member.endpoint, wanted->endpoint);
        assert_true(member.sent_messages == wanted->sent_messages);
        assert_true(member.sent_bytes == wanted->sent_bytes);
        assert_true(member.limit_messages == wanted->limit_messages);
        assert_true(member.limit_bytes == wanted->limit_bytes);
    }
    assert_int_equal(wire_member_read(&cursor, &member), 0);
}

TEST(cut_and_changed_members_are_refused_or_read)
{
    uint8_t data[2048];
    const size_t size = write_some(data);
    assert_int_equal(read_members(data, size), N_SOME);
    for (size_t cut = 0; cut < size; cut++)
        assert_fails(read_members(data, cut), LS_EPROTO);
    assert_fails(read_members(data, size + 1), LS_EPROTO);
    read_every_change(data, size, read_members);
}

TEST(a_count_of_members_is_not_believed)
{
    uint8_t data[2048];
    const size_t size = write_some(data);
    (void)wire_members_begin(data, UINT32_MAX);
    assert_fails(read_members(data, size), LS_EPROTO);
    (void)wire_members_begin(data, 0);
    assert_fails(read_members(data, size), LS_EPROTO);
    assert_int_equal(read_members(data, 5), 0);
    struct wire_cursor cursor;
    assert_fails(wire_members_read(&cursor, NULL, 0), LS_EPROTO);
}
