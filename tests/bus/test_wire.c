#include "wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lockstep/status.h"

/* A frame of exactly its size on the heap: a read beyond it is seen by the
 * sanitizers. */
struct bytes {
    uint8_t *data;
    size_t size;
};

static struct bytes copy_of(const uint8_t *data, size_t size)
{
    struct bytes bytes = {malloc(size == 0 ? 1 : size), size};
    assert_non_null(bytes.data);
    if (size != 0)
        memcpy(bytes.data, data, size);
    return bytes;
}

static struct wire_header header_of(enum wire_kind kind)
{
    return (struct wire_header){.kind = kind,
                                .job = 0xdeadbeef,
                                .origin = 4294967295u,
                                .incarnation = UINT64_MAX - 1,
                                .sequence = 1ull << 63,
                                .flags = WIRE_FLAG_DROP};
}

static const enum wire_kind kinds[] = {
    WIRE_KIND_EVENT,  WIRE_KIND_CHUNK,   WIRE_KIND_HEARTBEAT,
    WIRE_KIND_CREDIT, WIRE_KIND_CHANNEL, WIRE_KIND_FAREWELL};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static bool has_payload(enum wire_kind kind)
{
    return kind != WIRE_KIND_CREDIT && kind != WIRE_KIND_FAREWELL;
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
    header.reason = LS_EABORTED;
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

static void test_header_of_every_kind_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_KINDS; i++) {
        uint8_t frame[WIRE_HEAD_MAX];
        const size_t size = make_frame(frame, kinds[i], true);
        struct wire_header header;
        char topic_class;
        uint32_t to;
        assert_int_equal(
            wire_header_read(frame, size, &topic_class, &to, &header), LS_OK);
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
    assert_int_equal(wire_header_read(frame, make_frame(frame, kind, true),
                                      &topic_class, &to, header),
                     LS_OK);
}

static void test_header_keeps_what_only_its_kind_has(void **state)
{
    (void)state;
    struct wire_header header;
    read_kind(WIRE_KIND_CHUNK, &header);
    assert_int_equal(header.total, 3000000);
    assert_int_equal(header.offset, 1048576);
    read_kind(WIRE_KIND_CREDIT, &header);
    assert_int_equal(header.limit_messages, 16384);
    assert_true(header.limit_bytes == UINT64_MAX);
    read_kind(WIRE_KIND_FAREWELL, &header);
    assert_int_equal(header.reason, LS_EABORTED);
}

static void test_payload_in_a_second_frame_is_told_from_an_empty_one(void **s)
{
    (void)s;
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = header_of(WIRE_KIND_EVENT);
    char topic_class;
    uint32_t to;
    size_t topic = wire_topic_event(frame, "x");
    size_t size = topic + wire_header_write(frame + topic, &header);
    assert_int_equal(wire_header_read(frame, size, &topic_class, &to, &header),
                     LS_OK);
    assert_null(header.data);
    header.data = frame;
    header.size = 0;
    header.name_size = 0;
    size = topic + wire_header_write(frame + topic, &header);
    assert_int_equal(wire_header_read(frame, size, &topic_class, &to, &header),
                     LS_OK);
    assert_non_null(header.data);
    assert_int_equal(header.size, 0);
}

static void test_name_of_an_event_is_its_topics(void **state)
{
    (void)state;
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = header_of(WIRE_KIND_EVENT);
    char topic_class;
    uint32_t to;
    size_t size = wire_topic_event(frame, "loss::batch");
    size += wire_header_write(frame + size, &header);
    assert_int_equal(wire_header_read(frame, size, &topic_class, &to, &header),
                     LS_OK);
    assert_int_equal(topic_class, WIRE_EVENT);
    assert_int_equal(header.name_size, 11);
    assert_memory_equal(header.name, "loss::batch", 11);
}

/* The dump of docs/wire-format.md. */
static void test_event_has_the_bytes_that_are_documented(void **state)
{
    (void)state;
    static const uint8_t wanted[] = {
        0x65, 0x67, 0x72, 0x65, 0x65, 0x74, 0x00, 0x99, 0x01, 0x01, 0xce,
        0xb7, 0x16, 0x11, 0xd3, 0xce, 0x00, 0x00, 0x00, 0x07, 0xcf, 0x11,
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

static void test_every_truncation_of_a_header_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * N_KINDS; i++) {
        uint8_t frame[WIRE_HEAD_MAX];
        const size_t size = make_frame(frame, kinds[i / 2], i % 2 == 0);
        assert_int_equal(read_exact(frame, size), LS_OK);
        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(read_exact(frame, cut), LS_EPROTO);
        frame[size] = 0;
        assert_int_equal(read_exact(frame, size + 1), LS_EPROTO);
    }
}

static void test_every_changed_byte_is_refused_or_read_in_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * N_KINDS; i++) {
        uint8_t frame[WIRE_HEAD_MAX];
        const size_t size = make_frame(frame, kinds[i / 2], i % 2 == 0);
        for (size_t at = 0; at < size; at++) {
            const uint8_t was = frame[at];
            for (unsigned value = 0; value < 256; value++) {
                frame[at] = (uint8_t)value;
                (void)read_exact(frame, size);
            }
            frame[at] = was;
        }
    }
}

static void test_other_versions_are_refused_by_name(void **state)
{
    (void)state;
    uint8_t frame[WIRE_HEAD_MAX];
    const size_t size = make_frame(frame, WIRE_KIND_EVENT, true);
    const size_t topic = strlen((char *)frame) + 1;
    assert_int_equal(frame[topic + 1], WIRE_VERSION);
    frame[topic + 1] = WIRE_VERSION + 1;
    assert_int_equal(read_exact(frame, size), LS_EPROTO);
    assert_non_null(strstr(ls_error_text(), "version 2"));
}

static int read_topic(const char *topic, size_t size)
{
    uint8_t frame[WIRE_HEAD_MAX + WIRE_TOPIC_MAX];
    struct wire_header header = header_of(WIRE_KIND_EVENT);
    memcpy(frame, topic, size);
    return read_exact(frame, size + wire_header_write(frame + size, &header));
}

static void test_topics_that_are_none_are_refused(void **state)
{
    (void)state;
    char longest[LS_EVENT_MAX + 3] = "e";
    memset(longest + 1, 'x', LS_EVENT_MAX);
    assert_int_equal(read_topic(longest, LS_EVENT_MAX + 2), LS_OK);
    memset(longest + 1, 'x', LS_EVENT_MAX + 1);
    assert_int_equal(read_topic(longest, LS_EVENT_MAX + 3), LS_EPROTO);
    assert_int_equal(read_topic("i4294967295", 12), LS_OK);
    assert_int_equal(read_topic("i4294967296", 12), LS_EPROTO);
    assert_int_equal(read_topic("i99999999999999999999", 22), LS_EPROTO);
    assert_int_equal(read_topic("i-1", 4), LS_EPROTO);
    assert_int_equal(read_topic("i", 2), LS_EPROTO);
    assert_int_equal(read_topic("i1x", 4), LS_EPROTO);
    assert_int_equal(read_topic("c", 2), LS_OK);
    assert_int_equal(read_topic("cx", 3), LS_EPROTO);
    assert_int_equal(read_topic("e", 2), LS_EPROTO);
    assert_int_equal(read_topic("", 1), LS_EPROTO);
    assert_int_equal(read_topic("~H", 3), LS_EPROTO);
    assert_int_equal(read_topic("l1/1/x", 7), LS_EPROTO);
    assert_int_equal(read_topic("z", 2), LS_EPROTO);
}

static void test_the_longest_of_everything_fits(void **state)
{
    (void)state;
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

/* ---- a subscriber replays its topics in byte order --------------------- */

static void test_presence_sorts_behind_all_other_topics(void **state)
{
    (void)state;
    uint8_t topic[WIRE_TOPIC_MAX];
    uint8_t other[WIRE_TOPIC_MAX];
    const struct wire_presence presence = {.job = "j", .endpoint = "e"};
    const struct wire_listen listen = {UINT32_MAX, UINT64_MAX, "~~~"};
    (void)wire_presence_write(topic, &presence);
    (void)wire_topic_control(other);
    assert_true(other[0] < topic[0]);
    (void)wire_topic_event(other, "~~~");
    assert_true(other[0] < topic[0] && other[0] < WIRE_LISTEN);
    (void)wire_topic_inbox(other, UINT32_MAX);
    assert_true(other[0] < topic[0]);
    (void)wire_listen_write(other, &listen);
    assert_true(other[0] < topic[0]);
}

/* ---- presence ---------------------------------------------------------- */

static struct wire_presence longest_presence(void)
{
    struct wire_presence p = {.relayed = true,
                              .relay = UINT32_MAX,
                              .id = UINT32_MAX,
                              .incarnation = UINT64_MAX,
                              .config_hash = UINT64_MAX};
    memset(p.job, 'j', LS_JOB_MAX);
    memset(p.role, 'r', WIRE_ROLE_MAX);
    memset(p.endpoint, '/', LS_ENDPOINT_MAX);
    return p;
}

static void assert_presence_comes_back(const struct wire_presence *presence)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence back;
    const size_t size = wire_presence_write(topic, presence);
    assert_true(size < WIRE_TOPIC_MAX);
    assert_int_equal(wire_presence_read(topic, size, &back), LS_OK);
    assert_int_equal(back.relayed, presence->relayed);
    assert_int_equal(back.relay, presence->relay);
    assert_int_equal(back.id, presence->id);
    assert_true(back.incarnation == presence->incarnation);
    assert_true(back.config_hash == presence->config_hash);
    assert_string_equal(back.job, presence->job);
    assert_string_equal(back.role, presence->role);
    assert_string_equal(back.endpoint, presence->endpoint);
}

static void test_presence_comes_back(void **state)
{
    (void)state;
    const struct wire_presence plain = {.job = "a.job-1_2",
                                        .id = 0,
                                        .incarnation = 1,
                                        .role = "",
                                        .endpoint = "ipc:///run/x/y.ipc"};
    const struct wire_presence longest = longest_presence();
    assert_presence_comes_back(&plain);
    assert_presence_comes_back(&longest);
}

static int read_presence(const char *text, size_t size)
{
    const struct bytes topic = copy_of((const uint8_t *)text, size);
    struct wire_presence out;
    memset(&out, 0x5a, sizeof out);
    const struct wire_presence untouched = out;
    const int status = wire_presence_read(topic.data, size, &out);
    if (status != LS_OK)
        assert_memory_equal(&out, &untouched, sizeof out);
    else
        assert_true(memchr(out.endpoint, '\0', sizeof out.endpoint) != NULL);
    free(topic.data);
    return status;
}

static void test_malformed_presences_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "~",
        "~H",
        "~H1",
        "~X1/j/1/1/0//e",
        "~H/j/1/1/0//e",
        "~Hx/j/1/1/0//e",
        "~H-1/j/1/1/0//e",
        "~H1/j/1/1/0/e",                     /* a part too few */
        "~H1/j/1/1/0//",                     /* no endpoint */
        "~H1/j/4294967296/1/0//e",           /* an id too large */
        "~H1/j//1/0//e",                     /* no id */
        "~H1/j/1/g/0//e",                    /* no number */
        "~H1/j/1/11111111111111111/0//e",    /* an incarnation too long */
        "~H1/j/1/1/FF//e",                   /* capitals */
        "~H1/j/1/1/0/rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr/e",
        "~R1/j/1/1/0//e",                    /* relayed by nobody */
        "H1/j/1/1/0//e"};
    assert_int_equal(read_presence("~H1/j/1/1/0//e", 14), LS_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(read_presence(bad[i], strlen(bad[i])), LS_EPROTO);
    assert_int_equal(read_presence("~H1/j/1/1/0//e\0f", 16), LS_EPROTO);
    static char huge[100000];
    memset(huge, 'x', sizeof huge);
    memcpy(huge, "~H1/j/1/1/0//", 13);
    assert_int_equal(read_presence(huge, sizeof huge), LS_EPROTO);
    assert_int_equal(read_presence(huge, 13 + LS_ENDPOINT_MAX + 1), LS_EPROTO);
}

static void test_presence_of_another_version_says_so(void **state)
{
    (void)state;
    assert_int_equal(read_presence("~H2/whatever follows", 20), LS_EMISMATCH);
    assert_non_null(strstr(ls_error_text(), "version 2"));
}

static void test_cut_and_changed_presences_are_refused_or_read(void **state)
{
    (void)state;
    char text[WIRE_TOPIC_MAX];
    const struct wire_presence longest = longest_presence();
    const size_t size = wire_presence_write((uint8_t *)text, &longest);
    const size_t fixed = size - LS_ENDPOINT_MAX; /* its end is its end */
    for (size_t cut = 0; cut <= fixed; cut++)
        assert_int_not_equal(read_presence(text, cut), LS_OK);
    for (size_t at = 0; at < size; at++) {
        const char was = text[at];
        for (unsigned value = 0; value < 256; value++) {
            text[at] = (char)value;
            (void)read_presence(text, size);
        }
        text[at] = was;
    }
}

/* ---- listening --------------------------------------------------------- */

static int read_listen(const char *text, size_t size)
{
    const struct bytes topic = copy_of((const uint8_t *)text, size);
    struct wire_listen out;
    const int status = wire_listen_read(topic.data, size, &out);
    free(topic.data);
    return status;
}

static void test_listening_comes_back(void **state)
{
    (void)state;
    struct wire_listen listen = {UINT32_MAX, UINT64_MAX, ""};
    struct wire_listen back;
    uint8_t topic[WIRE_TOPIC_MAX];
    memset(listen.event, 'a', LS_EVENT_MAX);
    listen.event[7] = '/';
    const size_t size = wire_listen_write(topic, &listen);
    assert_int_equal(wire_listen_read(topic, size, &back), LS_OK);
    assert_int_equal(back.id, listen.id);
    assert_true(back.incarnation == listen.incarnation);
    assert_string_equal(back.event, listen.event);
}

static void test_malformed_listenings_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "l",         "l1",         "l1/",         "l1/1",
        "l1/1/",     "l/1/x",      "l1//x",       "lx/1/x",
        "l1/x/x",    "l1/1/a b",   "l1/1/a*",     "l1/1/\x7f",
        "l1/1/\xc3", "m1/1/event", "l4294967296/1/x"};
    assert_int_equal(read_listen("l1/1/x", 6), LS_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(read_listen(bad[i], strlen(bad[i])), LS_EPROTO);
    assert_int_equal(read_listen("l1/1/x\0y", 8), LS_EPROTO);
    static char huge[100000];
    memset(huge, 'x', sizeof huge);
    memcpy(huge, "l1/1/", 5);
    assert_int_equal(read_listen(huge, sizeof huge), LS_EPROTO);
    assert_int_equal(read_listen(huge, 5 + LS_EVENT_MAX + 1), LS_EPROTO);
    assert_int_equal(read_listen(huge, 5 + LS_EVENT_MAX), LS_OK);
}

/* ---- members ----------------------------------------------------------- */

static const struct wire_member some_members[] = {
    {.id = 7,
     .incarnation = 8,
     .present = true,
     .endpoint = "tcp://127.0.0.1:21500",
     .sent_messages = 1,
     .sent_bytes = UINT64_MAX,
     .limit_messages = 16384,
     .limit_bytes = 1u << 23},
    {.id = UINT32_MAX, .incarnation = UINT64_MAX},
    {.id = 0, .present = true, .endpoint = "inproc://x"}};
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

static void test_members_come_back(void **state)
{
    (void)state;
    uint8_t data[2048];
    const size_t size = write_some(data);
    assert_true(size <= wire_members_size(N_SOME));
    struct wire_cursor cursor;
    struct wire_member member;
    assert_int_equal(wire_members_read(&cursor, data, size), LS_OK);
    for (size_t i = 0; i < N_SOME; i++) {
        const struct wire_member *wanted = &some_members[i];
        assert_int_equal(wire_member_read(&cursor, &member), 1);
        assert_int_equal(member.id, wanted->id);
        assert_true(member.incarnation == wanted->incarnation);
        assert_int_equal(member.present, wanted->present);
        assert_string_equal(member.endpoint, wanted->endpoint);
        assert_true(member.sent_messages == wanted->sent_messages);
        assert_true(member.sent_bytes == wanted->sent_bytes);
        assert_true(member.limit_messages == wanted->limit_messages);
        assert_true(member.limit_bytes == wanted->limit_bytes);
    }
    assert_int_equal(wire_member_read(&cursor, &member), 0);
}

static void test_cut_and_changed_members_are_refused_or_read(void **state)
{
    (void)state;
    uint8_t data[2048];
    const size_t size = write_some(data);
    assert_int_equal(read_members(data, size), N_SOME);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(read_members(data, cut), LS_EPROTO);
    assert_int_equal(read_members(data, size + 1), LS_EPROTO);
    for (size_t at = 0; at < size; at++) {
        const uint8_t was = data[at];
        for (unsigned value = 0; value < 256; value++) {
            data[at] = (uint8_t)value;
            (void)read_members(data, size);
        }
        data[at] = was;
    }
}

static void test_a_count_of_members_is_not_believed(void **state)
{
    (void)state;
    uint8_t data[2048];
    const size_t size = write_some(data);
    (void)wire_members_begin(data, UINT32_MAX);
    assert_int_equal(read_members(data, size), LS_EPROTO);
    (void)wire_members_begin(data, 0);
    assert_int_equal(read_members(data, size), LS_EPROTO);
    assert_int_equal(read_members(data, 5), 0);
    struct wire_cursor cursor;
    assert_int_equal(wire_members_read(&cursor, NULL, 0), LS_EPROTO);
}

/* ---- names ------------------------------------------------------------- */

static void test_names_are_printable_without_what_patterns_use(void **state)
{
    (void)state;
    char name[LS_EVENT_MAX + 2];
    assert_false(wire_name_valid(NULL));
    assert_false(wire_name_valid(""));
    assert_true(wire_name_valid("a"));
    assert_true(wire_name_valid("::a/b.c{}~!#"));
    for (int c = 1; c < 256; c++) {
        const char text[] = {'x', (char)c, '\0'};
        const bool valid = c > ' ' && c <= '~' && !strchr("*?[]\\", c);
        assert_int_equal(wire_name_valid(text), valid);
    }
    memset(name, 'x', sizeof name);
    name[LS_EVENT_MAX + 1] = '\0';
    assert_false(wire_name_valid(name));
    name[LS_EVENT_MAX] = '\0';
    assert_true(wire_name_valid(name));
}

static void test_words_are_letters_digits_and_what_is_named(void **state)
{
    (void)state;
    assert_true(wire_word_valid("Az09.-", 6, ".-"));
    assert_false(wire_word_valid("Az09.-", 5, ".-"));
    assert_false(wire_word_valid("a/b", 10, ".-"));
    assert_false(wire_word_valid("a\nb", 10, ".-"));
    assert_true(wire_word_valid("", 10, ""));
}

static void test_jobs_hash_differently(void **state)
{
    (void)state;
    assert_int_equal(wire_job_hash("a"), wire_job_hash("a"));
    assert_int_not_equal(wire_job_hash("a"), wire_job_hash("b"));
    assert_int_not_equal(wire_job_hash(""), wire_job_hash("a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_of_every_kind_comes_back),
        cmocka_unit_test(test_header_keeps_what_only_its_kind_has),
        cmocka_unit_test(
            test_payload_in_a_second_frame_is_told_from_an_empty_one),
        cmocka_unit_test(test_name_of_an_event_is_its_topics),
        cmocka_unit_test(test_event_has_the_bytes_that_are_documented),
        cmocka_unit_test(test_every_truncation_of_a_header_is_refused),
        cmocka_unit_test(test_every_changed_byte_is_refused_or_read_in_bounds),
        cmocka_unit_test(test_other_versions_are_refused_by_name),
        cmocka_unit_test(test_topics_that_are_none_are_refused),
        cmocka_unit_test(test_the_longest_of_everything_fits),
        cmocka_unit_test(test_presence_sorts_behind_all_other_topics),
        cmocka_unit_test(test_presence_comes_back),
        cmocka_unit_test(test_malformed_presences_are_refused),
        cmocka_unit_test(test_presence_of_another_version_says_so),
        cmocka_unit_test(test_cut_and_changed_presences_are_refused_or_read),
        cmocka_unit_test(test_listening_comes_back),
        cmocka_unit_test(test_malformed_listenings_are_refused),
        cmocka_unit_test(test_members_come_back),
        cmocka_unit_test(test_cut_and_changed_members_are_refused_or_read),
        cmocka_unit_test(test_a_count_of_members_is_not_believed),
        cmocka_unit_test(test_names_are_printable_without_what_patterns_use),
        cmocka_unit_test(test_words_are_letters_digits_and_what_is_named),
        cmocka_unit_test(test_jobs_hash_differently),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
