/* Reports as bytes, and over a pipe. */
#include "report.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct report sample(int64_t node)
{
    struct report report = {.kind = REPORT_EVALUATION,
                            .node = node,
                            .iteration = 7,
                            .env_step = INT64_MAX,
                            .env_steps_per_s = 0.25,
                            .eval_value = 481.5,
                            .episodes = 20,
                            .overlap_ns = 12345,
                            .slowest = 2,
                            .slowest_ns = 1500000000,
                            .status = LS_ELOST};
    (void)snprintf(report.endpoint, sizeof report.endpoint, "tcp://a:1");
    (void)snprintf(report.losses, sizeof report.losses, "\"x\" a\n\"y\" b");
    (void)snprintf(report.text, sizeof report.text, "why it is so");
    report_set_metrics(&report, "\x81\xa1n\x07", 4);
    return report;
}

TEST(what_goes_in_comes_out)
{
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    struct report in = sample(3), out;
    assert_ok(ls_writer_create(&writer));
    ls_record_write(&report_record, &in, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    memset(&out, 0xff, sizeof out);
    assert_ok(ls_record_decode(&report_record, &out, data, size, NULL));
    assert_int_equal(out.kind, in.kind);
    assert_int_equal(out.node, 3);
    assert_true(out.env_step == INT64_MAX);
    assert_true(out.env_steps_per_s == 0.25);
    assert_true(out.eval_value == 481.5);
    assert_int_equal(out.overlap_ns, 12345);
    assert_int_equal(out.status, LS_ELOST);
    assert_string_equal(out.endpoint, "tcp://a:1");
    assert_int_equal(out.slowest, 2);
    assert_int_equal(out.slowest_ns, 1500000000);
    assert_string_equal(out.weights, "");
    assert_string_equal(out.losses, "\"x\" a\n\"y\" b");
    assert_string_equal(out.text, "why it is so");
    assert_int_equal(out.metrics.size, 4);
    assert_memory_equal(out.metrics.bytes, "\x81\xa1n\x07", 4);

    in.eval_value = NAN;
    ls_writer_clear(writer);
    ls_record_write(&report_record, &in, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_record_decode(&report_record, &out, data, size, NULL));
    assert_true(isnan(out.eval_value));
    ls_writer_destroy(&writer);
}

TEST(metrics_without_room_are_left_out)
{
    static const unsigned char many[REPORT_METRICS_MAX + 1];
    struct report report = sample(3);
    report_set_metrics(&report, many, REPORT_METRICS_MAX);
    assert_int_equal(report.metrics.size, REPORT_METRICS_MAX);
    report_set_metrics(&report, many, sizeof many);
    assert_int_equal(report.metrics.size, 0);
}

static void assert_refused(void (*write)(ls_writer *), const char *because)
{
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    struct report out;
    assert_ok(ls_writer_create(&writer));
    write(writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_fails(ls_record_decode(&report_record, &out, data, size, NULL),
                 LS_EPROTO);
    if (strstr(ls_error_text(), because) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", ls_error_text(), because);
    ls_writer_destroy(&writer);
}

static void write_number(ls_writer *out)
{
    ls_write_int(out, 3);
}

static void write_unknown_kind(ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "kind");
    ls_write_int(out, REPORT_N_KINDS);
}

static void write_wrong_type(ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "env_step");
    ls_write_string(out, "many");
}

static void write_long_metrics(ls_writer *out)
{
    static const unsigned char many[REPORT_METRICS_MAX + 1];
    ls_write_map(out, 1);
    ls_write_string(out, "metrics");
    ls_write_binary(out, many, sizeof many);
}

static void write_long_text(ls_writer *out)
{
    char text[LS_ERROR_TEXT_MAX + 1];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    ls_write_map(out, 1);
    ls_write_string(out, "text");
    ls_write_string(out, text);
}

TEST(reader_refuses_what_is_no_report)
{
    assert_refused(write_number, "not a map");
    assert_refused(write_unknown_kind, "kind: it is 7");
    assert_refused(write_wrong_type, "env_step");
    assert_refused(write_long_text, "text");
    assert_refused(write_long_metrics, "metrics");
    struct report out;
    assert_fails(ls_record_decode(&report_record, &out, "", 0, NULL),
                 LS_EPROTO);
}

struct collected {
    int64_t nodes[8];
    size_t n;
};

static void collect(void *self, const struct report *report)
{
    struct collected *collected = self;
    assert_true(collected->n < 8);
    collected->nodes[collected->n++] = report->node;
}

TEST(pipe_brings_reports_in_order)
{
    int fds[2];
    report_pipe *out = NULL;
    assert_int_equal(pipe(fds), 0);
    assert_ok(report_pipe_create(&out, fds[1]));
    const struct report_sink sink = report_pipe_sink(out);
    for (int64_t i = 0; i < 5; i++) {
        const struct report report = sample(i);
        sink.put(sink.self, &report);
    }
    report_pipe_destroy(&out);
    report_pipe_destroy(&out);
    assert_int_equal(close(fds[1]), 0);
    struct collected collected = {.n = 0};
    assert_ok(report_drain(fds[0], (struct report_sink){collect, &collected}));
    assert_int_equal(collected.n, 5);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(collected.nodes[i], i);
    assert_int_equal(close(fds[0]), 0);
}

static void keep_one(void *self, const struct report *report)
{
    *(struct report *)self = *report;
}

/* As texts of others are that have no room, and are cut. */
TEST(half_a_character_loses_no_report)
{
    int fds[2];
    report_pipe *out = NULL;
    struct report report = sample(3), came = {.node = -1};
    memset(report.refusal, 'x', sizeof report.refusal - 4);
    memcpy(report.refusal + sizeof report.refusal - 4, "\xe2\x80", 3);
    assert_int_equal(pipe(fds), 0);
    assert_ok(report_pipe_create(&out, fds[1]));
    const struct report_sink sink = report_pipe_sink(out);
    sink.put(sink.self, &report);
    report_pipe_destroy(&out);
    assert_int_equal(close(fds[1]), 0);
    assert_ok(report_drain(fds[0], (struct report_sink){keep_one, &came}));
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(came.node, 3);
    assert_string_equal(came.text, "why it is so");
    assert_int_equal(strlen(came.refusal), sizeof came.refusal - 2);
    assert_string_equal(came.refusal + strlen(came.refusal) - 3, "x??");
}

static void drain_bytes(const void *data, size_t size, int status)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], data, size), size);
    assert_int_equal(close(fds[1]), 0);
    struct collected collected = {.n = 0};
    assert_int_equal(
        report_drain(fds[0], (struct report_sink){collect, &collected}),
        status);
    assert_int_equal(collected.n, 0);
    assert_int_equal(close(fds[0]), 0);
}

TEST(writer_that_was_killed_leaves_a_part)
{
    drain_bytes("\x10", 1, LS_OK);
    drain_bytes("\x10\0\0\0abc", 7, LS_OK);
}

TEST(bytes_that_are_no_reports_are_refused)
{
    drain_bytes("\xff\xff\xff\x7f", 4, LS_EPROTO);
    drain_bytes("\x01\0\0\0\xc1", 5, LS_EPROTO);
}
