/* The subscriptions that say something: presence and listening; and names. */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/status.h"

#include "test.h"
#include "wire_fixture.h"

/* ---- a subscriber replays its topics in byte order --------------------- */

TEST(presence_sorts_behind_all_other_topics)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    uint8_t other[WIRE_TOPIC_MAX];
    const struct wire_presence presence = {
        .link = 1, .incarnation = 1, .job = "j", .endpoint = "e"};
    const struct wire_listen listen = {UINT64_MAX, UINT32_MAX, "~~~"};
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
    struct wire_presence p = {.link = UINT64_MAX,
                              .relayed = true,
                              .relay = UINT32_MAX,
                              .id = UINT32_MAX,
                              .incarnation = UINT64_MAX,
                              .config_hash = UINT64_MAX,
                              .host = UINT64_MAX};
    memset(p.signature, 'a', WIRE_SIGNATURE_MAX);
    memset(p.job, 'j', LS_JOB_MAX);
    memset(p.role, 'r', WIRE_ROLE_MAX);
    memset(p.labels, 'l', WIRE_LABELS_MAX);
    memset(p.endpoint, '/', LS_ENDPOINT_MAX);
    return p;
}

static void assert_presence_comes_back(const struct wire_presence *presence)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence back;
    const size_t size = wire_presence_write(topic, presence);
    assert_true(size < WIRE_TOPIC_MAX);
    assert_ok(wire_presence_read(topic, size, &back));
    assert_true(back.link == presence->link);
    assert_string_equal(back.signature, presence->signature);
    assert_int_equal(back.relayed, presence->relayed);
    assert_int_equal(back.relay, presence->relay);
    assert_int_equal(back.id, presence->id);
    assert_true(back.incarnation == presence->incarnation);
    assert_true(back.config_hash == presence->config_hash);
    assert_true(back.host == presence->host);
    assert_string_equal(back.job, presence->job);
    assert_string_equal(back.role, presence->role);
    assert_string_equal(back.labels, presence->labels);
    assert_string_equal(back.endpoint, presence->endpoint);
}

TEST(presence_comes_back)
{
    const struct wire_presence plain = {.link = 7,
                                        .job = "a.job-1_2",
                                        .id = 0,
                                        .incarnation = 1,
                                        .role = "",
                                        .labels = "gpu,fast",
                                        .endpoint = "ipc:///run/x/y.ipc"};
    const struct wire_presence longest = longest_presence();
    assert_presence_comes_back(&plain);
    assert_presence_comes_back(&longest);
}

#define LABELS_63                                                              \
    "lllllllllllllllllllllllllllllll,lllllllllllllllllllllllllllllll"

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

/* libzmq before 4.3.5 cannot send a subscription of 246 to 255 bytes. */
TEST(a_presence_of_any_length_can_be_sent)
{
    struct wire_presence presence = longest_presence();
    uint8_t topic[WIRE_TOPIC_MAX];
    unsigned n_padded = 0;
    presence.signature[0] = presence.labels[0] = '\0';
    for (size_t n = 1; n < LS_ENDPOINT_MAX; n++) {
        memset(presence.endpoint, 'e', n);
        presence.endpoint[n] = '\0';
        const size_t size = wire_presence_write(topic, &presence);
        assert_true(size < 246 || size > 255);
        assert_int_equal(size, strlen((char *)topic));
        n_padded += topic[4] == '0';
        assert_presence_comes_back(&presence);
    }
    assert_int_equal(n_padded, 10);
}

/* With so many zeros before its link, and an endpoint that makes it `size`. */
static int read_padded(size_t zeros, size_t size)
{
    char text[WIRE_TOPIC_MAX];
    const size_t fixed = strlen("~H3/7/j/0/0///") + strlen("/1/1/") + zeros;
    char endpoint[LS_ENDPOINT_MAX + 1];
    memset(endpoint, 'e', size - fixed);
    endpoint[size - fixed] = '\0';
    (void)snprintf(text, sizeof text, "~H3/%.*s7/j/0/0///%s/1/1/", (int)zeros,
                   "00000000000000000000", endpoint);
    assert_int_equal(strlen(text), size);
    return read_presence(text, size);
}

TEST(zeros_before_a_link_are_read_where_they_are_written)
{
    assert_ok(read_padded(0, 256));
    assert_ok(read_padded(1, 256));
    assert_ok(read_padded(10, 256));
    assert_fails(read_padded(11, 256), LS_EPROTO);
    assert_fails(read_padded(1, 255), LS_EPROTO);
    assert_fails(read_padded(1, 257), LS_EPROTO);
    assert_fails(read_padded(1, 200), LS_EPROTO);
}

TEST(malformed_presences_are_refused)
{
    static const char *const bad[] = {
        "~",
        "~H",
        "~H3",
        "~X3/7/j/0/0///e/1/1/",
        "~H/7/j/0/0///e/1/1/",
        "~Hx/7/j/0/0///e/1/1/",
        "~H-2/7/j/0/0///e/1/1/",
        "~H02/7/j/0/0///e/1/1/",         /* a number has one spelling */
        "~H3//j/0/0///e/1/1/",           /* no link */
        "~H3/0/j/0/0///e/1/1/",          /* nor such a one */
        "~H3/07/j/0/0///e/1/1/",         /* spelled otherwise */
        "~H3/7/j/0/0///e/1/1/x",         /* a signature of other digits */
        "~H3/7/j/0/0//e/1/1/",           /* a part too few */
        "~H3/7/j/0///e/1/1/",            /* no host */
        "~H3/7/j/0/1x///e/1/1/",         /* nor such a one */
        "~H3/7/j/0/00///e/1/1/",         /* spelled otherwise */
        "~H3/7/j/0/0////1/1/",           /* no endpoint */
        "~H3/7/j/0/0///e/4294967296/1/", /* an id too large */
        "~H3/7/j/0/0///e//1/",           /* no id */
        "~H3/7/j/0/0///e/1/g/",          /* no number */
        "~H3/7/j/0/0///e/1/0/",          /* no incarnation */
        "~H3/7/j/0/0///e/1/11111111111111111/", /* an incarnation too long */
        "~H3/7/j/FF/0///e/1/1/",                /* capitals */
        "~H3/7/j/0/0/rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr//e/1/1/",
        "~H3/7/j/0/0//" LABELS_63 "x/e/1/1/",
        "~H3/7/j/0/0///e",      /* nothing behind the endpoint */
        "~R3/7/j/0/0///e/1/1/", /* relayed by nobody */
        "H1/j/0/0///e/1/1/"};
    assert_ok(read_presence("~H3/7/j/0/0///e/1/1/", 20));
    assert_ok(read_presence("~H3/7/j/0/ffffffffffffffff///e/f/1/1/", 37));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(read_presence(bad[i], strlen(bad[i])), LS_EPROTO);
    assert_fails(read_presence("~H3/7/j/0/0///e/1/1/\0f", 22), LS_EPROTO);
    static char huge[100000];
    memset(huge, 'x', sizeof huge);
    memcpy(huge, "~H3/7/j/0/0///", 14);
    assert_fails(read_presence(huge, 14 + LS_ENDPOINT_MAX), LS_EPROTO);
    memcpy(huge + 14 + LS_ENDPOINT_MAX, "/1/1/", 5);
    assert_ok(read_presence(huge, 14 + LS_ENDPOINT_MAX + 5));
    memcpy(huge + 14 + LS_ENDPOINT_MAX, "x/1/1/", 6);
    assert_fails(read_presence(huge, 14 + LS_ENDPOINT_MAX + 6), LS_EPROTO);
    assert_fails(read_presence(huge, sizeof huge), LS_EPROTO);
}

TEST(presence_of_another_version_says_so)
{
    assert_fails(read_presence("~H4/whatever follows", 20), LS_EMISMATCH);
    assert_error_has("version 4");
}

TEST(cut_and_changed_presences_are_refused_or_read)
{
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

TEST(listening_comes_back)
{
    struct wire_listen listen = {UINT64_MAX, UINT32_MAX, ""};
    struct wire_listen back;
    uint8_t topic[WIRE_TOPIC_MAX];
    memset(listen.event, 'a', LS_EVENT_MAX);
    listen.event[7] = '/';
    const size_t size = wire_listen_write(topic, &listen);
    assert_ok(wire_listen_read(topic, size, &back));
    assert_int_equal(back.id, listen.id);
    assert_true(back.link == listen.link);
    assert_string_equal(back.event, listen.event);
}

TEST(malformed_listenings_are_refused)
{
    static const char *const bad[] = {
        "l",       "l1",        "l1/",       "l1/1",       "l1/1/",
        "l/1/x",   "l1//x",     "lx/1/x",    "l1/x/x",     "l1/1/a b",
        "l1/1/*a", "l1/1/\x7f", "l1/1/\xc3", "m1/1/event", "l1/4294967296/x",
        "l0/1/x",  "l01/1/x",   "l1/01/x"};
    assert_ok(read_listen("l1/1/x", 6));
    assert_ok(read_listen("l1/1/*", 6));
    assert_ok(read_listen("l1/1/a*", 7));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(read_listen(bad[i], strlen(bad[i])), LS_EPROTO);
    assert_fails(read_listen("l1/1/x\0y", 8), LS_EPROTO);
    static char huge[100000];
    memset(huge, 'x', sizeof huge);
    memcpy(huge, "l1/1/", 5);
    assert_fails(read_listen(huge, sizeof huge), LS_EPROTO);
    assert_fails(read_listen(huge, 5 + LS_EVENT_MAX + 1), LS_EPROTO);
    assert_ok(read_listen(huge, 5 + LS_EVENT_MAX));
}

/* ---- names ------------------------------------------------------------- */

TEST(names_are_printable_without_what_patterns_use)
{
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

TEST(words_are_letters_digits_and_what_is_named)
{
    assert_true(wire_word_valid("Az09.-", 6, ".-"));
    assert_false(wire_word_valid("Az09.-", 5, ".-"));
    assert_false(wire_word_valid("a/b", 10, ".-"));
    assert_false(wire_word_valid("a\nb", 10, ".-"));
    assert_true(wire_word_valid("", 10, ""));
}
