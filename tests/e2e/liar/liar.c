/* A member of a service job that takes every work and answers wrongly.
 *
 *   liar FOLDER ID ROLE LIE
 *
 * It joins the job "job" whose sockets are in FOLDER, as node ID of that ROLE,
 * learner or collector. It prints "asked NAME" for each call, and ends with its
 * input. It speaks the messages of calls itself, byte by byte
 * (docs/wire-format.md#calls), so that it can say what no program of the
 * library would. LIE is what it does when it is asked for data:
 *
 *   garbage   bytes that are not a value
 *   nil       a value that is not a map
 *   unknown   the right answer, and a field that nobody knows
 *   missing   the right answer without one of its fields
 *   work      the right answer for a work that there is not
 *   attempt   the right answer for an attempt that never was
 *   buffer    the right answer for a buffer that there is not
 *   large     one byte more than an answer may have
 *   broken    messages that are none, then a failure
 *   replay    the right answer, 100 times
 *   stranger  answers to calls that nobody made, then the right one
 *   resource  garbage when it is asked what it has to offer */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/channel.h>
#include <lockstep/codec.h>
#include <lockstep/lockstep.h>

#define CHANNEL       "ls.call"
#define KIND_REQUEST  1
#define KIND_COMPLETE 3
#define KIND_FAILED   4
#define TOO_LARGE     (LS_CALL_DATA_MAX + 1)
#define REPEATS       100

struct liar {
    const char *lie;
    ls_channel *channel;
    ls_writer *writer;
};

/* What is asked, and of whom. */
struct asked {
    uint32_t from;
    uint64_t life, number; /* of the caller; of the call */
    const char *name;
    ls_document *data;
};

static int failed(const char *what)
{
    fprintf(stderr, "liar: %s: %s\n", what, ls_error_text());
    return 1;
}

static bool is(const struct liar *liar, const char *lie)
{
    return strcmp(liar->lie, lie) == 0;
}

/* ---- messages ---------------------------------------------------------- */

static unsigned char *put_u64(unsigned char *at, uint64_t value)
{
    *at++ = 0xcf;
    for (int shift = 56; shift >= 0; shift -= 8)
        *at++ = (unsigned char)(value >> shift);
    return at;
}

/* Whom it is for may have gone; then nobody needs it. */
static void send_bytes(struct liar *liar, uint32_t to, const void *bytes,
                       size_t size)
{
    if (ls_channel_send_reliable(liar->channel, to, bytes, size) != LS_OK)
        fprintf(stderr, "liar: not sent: %s\n", ls_error_text());
}

static void say(struct liar *liar, const struct asked *asked,
                unsigned char kind, const void *data, size_t size)
{
    static unsigned char bytes[LS_CHANNEL_MESSAGE_MAX];
    bytes[0] = 0x95; /* an array of five */
    bytes[1] = 1;    /* version */
    bytes[2] = kind;
    unsigned char *at = put_u64(bytes + 3, asked->life);
    at = put_u64(at, asked->number);
    /* Data as bin 32, a text as bin 16. */
    const bool is_data = kind == KIND_COMPLETE;
    *at++ = is_data ? 0xc6 : 0xc5;
    for (int shift = is_data ? 24 : 8; shift >= 0; shift -= 8)
        *at++ = (unsigned char)(size >> shift);
    memcpy(at, data, size);
    send_bytes(liar, asked->from, bytes, (size_t)(at - bytes) + size);
}

static void say_written(struct liar *liar, const struct asked *asked,
                        unsigned repeats)
{
    const void *data;
    size_t size;
    if (ls_writer_bytes(liar->writer, &data, &size) != LS_OK)
        exit(failed("writing"));
    for (unsigned i = 0; i < repeats; i++)
        say(liar, asked, KIND_COMPLETE, data, size);
    ls_writer_clear(liar->writer);
}

/* ---- what is right ----------------------------------------------------- */

static const char *text_of(const struct asked *asked, const char *key)
{
    const char *text = "";
    const ls_value *root = ls_document_root(asked->data);
    return ls_value_string(ls_value_get(root, key), &text) == LS_OK ? text : "";
}

static void put_text(struct liar *liar, const char *key, const char *text)
{
    ls_write_string(liar->writer, key);
    ls_write_string(liar->writer, text);
}

static void put_int(struct liar *liar, const char *key, int64_t value)
{
    ls_write_string(liar->writer, key);
    ls_write_int(liar->writer, value);
}

static void put_false(struct liar *liar, const char *key)
{
    ls_write_string(liar->writer, key);
    ls_write_bool(liar->writer, false);
}

static void put_key(struct liar *liar, const struct asked *asked)
{
    int64_t attempt = 0;
    const ls_value *root = ls_document_root(asked->data);
    if (ls_value_int(ls_value_get(root, "attempt"), &attempt) != LS_OK)
        attempt = 1;
    put_text(liar, "task_id",
             is(liar, "work") ? "collect_9999" : text_of(asked, "task_id"));
    put_int(liar, "attempt", attempt + (is(liar, "attempt") ? 7 : 0));
}

/* The buffer of its work, as the start has named it. */
static char buffer_id[128];

static void note_buffer(const struct asked *asked)
{
    const char *text;
    const ls_value *info =
        ls_value_get(ls_document_root(asked->data), "task_info");
    if (ls_value_string(ls_value_get(info, "buffer_id"), &text) == LS_OK)
        (void)snprintf(buffer_id, sizeof buffer_id, "%s", text);
}

/* That a collector is done with its work, after nothing. */
static void put_collected(struct liar *liar)
{
    ls_write_string(liar->writer, "info");
    ls_write_map(liar->writer, is(liar, "missing") ? 3 : 4);
    ls_write_string(liar->writer, "collector_done");
    ls_write_bool(liar->writer, true);
    put_int(liar, "cur_episode", 0);
    put_int(liar, "cur_sample", 0);
    if (!is(liar, "missing"))
        put_int(liar, "cur_step", 0);
}

static void put_demand(struct liar *liar)
{
    put_false(liar, "done");
    put_int(liar, "batch_size", is(liar, "missing") ? 1 << 30 : 4);
    put_int(liar, "cur_learner_iter", 0);
    put_int(liar, "policy_version", 0);
}

static void put_data(struct liar *liar, const struct asked *asked)
{
    const bool learns = strncmp(asked->name, "learner", 7) == 0;
    ls_write_map(liar->writer,
                 (learns ? 7u : 4u) + (is(liar, "unknown") ? 1u : 0u));
    put_key(liar, asked);
    put_text(liar, "buffer_id", is(liar, "buffer") ? "nowhere" : buffer_id);
    if (is(liar, "unknown"))
        put_text(liar, "surprise", "nobody knows it");
    if (learns)
        put_demand(liar);
    else
        put_collected(liar);
}

static void put_closed(struct liar *liar, const struct asked *asked)
{
    const bool learns = strncmp(asked->name, "learner", 7) == 0;
    ls_write_map(liar->writer, 3);
    put_key(liar, asked);
    if (learns) {
        put_text(liar, "buffer_id", buffer_id);
        return;
    }
    ls_write_string(liar->writer, "finish_info");
    ls_write_map(liar->writer, 6);
    put_false(liar, "eval_flag");
    ls_write_string(liar->writer, "reward_mean");
    ls_write_nil(liar->writer);
    put_int(liar, "step_count", 0);
    put_int(liar, "episode_count", 0);
    put_int(liar, "sample_count", 0);
    put_int(liar, "policy_version", 0);
}

/* ---- answers ----------------------------------------------------------- */

/* From nobody, to nobody, cut short; each with a number that was never. */
static void say_strange(struct liar *liar, const struct asked *asked)
{
    struct asked other = *asked;
    for (uint64_t i = 0; i < REPEATS; i++) {
        other.number = asked->number + 1000000 + i;
        say(liar, &other, i % 2 == 0 ? KIND_COMPLETE : KIND_FAILED, "", 0);
        other.life = asked->life + 1;
        say(liar, &other, KIND_COMPLETE, "\x80", 1);
        other.life = asked->life;
    }
}

static void say_broken(struct liar *liar, const struct asked *asked)
{
    static const char *const messages[] = {
        "", "\xc1", "\x95\x01", "\x95\x02\x03", "\x9f\x01\x63", "{}"};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        send_bytes(liar, asked->from, messages[i], strlen(messages[i]));
    say(liar, asked, 99, "", 0);
    say(liar, asked, KIND_FAILED, "it is broken", 12);
}

static void answer_data(struct liar *liar, const struct asked *asked)
{
    static const char large[TOO_LARGE];
    if (is(liar, "garbage")) {
        say(liar, asked, KIND_COMPLETE, "\xc1\xc1\xc1", 3);
    } else if (is(liar, "nil")) {
        say(liar, asked, KIND_COMPLETE, "\xc0", 1);
    } else if (is(liar, "large")) {
        say(liar, asked, KIND_COMPLETE, large, sizeof large);
        say(liar, asked, KIND_FAILED, "it was too large", 16);
    } else if (is(liar, "broken")) {
        say_broken(liar, asked);
    } else {
        if (is(liar, "stranger"))
            say_strange(liar, asked);
        put_data(liar, asked);
        say_written(liar, asked, is(liar, "replay") ? REPEATS : 1);
    }
}

static void answer_resource(struct liar *liar, const struct asked *asked)
{
    if (is(liar, "resource")) {
        say(liar, asked, KIND_COMPLETE, "\x81\xa3gpu", 5);
        return;
    }
    ls_write_map(liar->writer, 2);
    put_int(liar, "gpu", 0);
    put_int(liar, "cpu", 1);
    say_written(liar, asked, 1);
}

static void answer(struct liar *liar, const struct asked *asked)
{
    const char *name = asked->name;
    printf("asked %s\n", name);
    fflush(stdout);
    if (strcmp(name, "resource") == 0) {
        answer_resource(liar, asked);
    } else if (strstr(name, "_start_task") != NULL) {
        note_buffer(asked);
        ls_write_map(liar->writer, 1);
        put_text(liar, "message", "gladly");
        say_written(liar, asked, 1);
    } else if (strstr(name, "_close_task") != NULL) {
        put_closed(liar, asked);
        say_written(liar, asked, 1);
    } else if (strstr(name, "data_task") != NULL) {
        answer_data(liar, asked);
    } else { /* ls.connect, and what else there is */
        say(liar, asked, KIND_COMPLETE, "", 0);
    }
}

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    struct liar *liar = self;
    struct asked asked = {.from = from, .life = incarnation};
    ls_document *message = NULL;
    const ls_value *root;
    const void *bytes;
    int64_t kind = 0;
    if (ls_document_read(&message, data, size, NULL) != LS_OK)
        return;
    root = ls_document_root(message);
    if (ls_value_int(ls_value_at(root, 1), &kind) == LS_OK &&
        kind == KIND_REQUEST &&
        ls_value_uint(ls_value_at(root, 3), &asked.number) == LS_OK &&
        ls_value_string(ls_value_at(root, 6), &asked.name) == LS_OK &&
        ls_value_binary(ls_value_at(root, 7), &bytes, &size) == LS_OK) {
        if (size == 0 ||
            ls_document_read(&asked.data, bytes, size, NULL) == LS_OK)
            answer(liar, &asked);
        ls_document_destroy(&asked.data);
    }
    ls_document_destroy(&message);
}

/* ---- life -------------------------------------------------------------- */

static int live(ls_node *node, struct liar *liar)
{
    static const struct ls_channel_ops ops = {.message = on_message};
    char line[64];
    if (ls_writer_create(&liar->writer) != LS_OK ||
        ls_channel_open(&liar->channel, node, CHANNEL, &ops, liar) != LS_OK ||
        ls_node_start(node) != LS_OK)
        return failed("start");
    while (fgets(line, sizeof line, stdin) != NULL)
        ;
    ls_node_stop(node, LS_OK);
    return 0;
}

int main(int argc, char **argv)
{
    struct ls_node_options options;
    char bind[LS_ENDPOINT_MAX], seed[LS_ENDPOINT_MAX];
    const char *const attach = seed;
    struct liar liar = {.channel = NULL};
    ls_node *node;
    if (argc != 5) {
        fputs("usage: liar FOLDER ID ROLE LIE\n", stderr);
        return 2;
    }
    (void)snprintf(bind, sizeof bind, "ipc://%s/job-%s.ipc", argv[1], argv[2]);
    (void)snprintf(seed, sizeof seed, "ipc://%s/job-0.ipc", argv[1]);
    liar.lie = argv[4];
    ls_node_options_init(&options);
    options.job = "job";
    options.id = (uint32_t)strtoul(argv[2], NULL, 10);
    options.role = argv[3];
    options.bind = bind;
    options.attach = &attach;
    options.n_attach = 1;
    options.world_size = 2; /* itself, and the coordinator */
    options.members = (const uint32_t[]){options.id, 0};
    options.world_max = 64;
    options.start_timeout_ms = 60000;
    if (ls_node_create(&node, &options) != LS_OK)
        return failed("create");
    const int code = live(node, &liar);
    ls_channel_close(&liar.channel);
    ls_node_destroy(&node);
    ls_writer_destroy(&liar.writer);
    return code;
}
