#include "lockstep/trace.h"

#include <stdlib.h>
#include <string.h>

#include "lockstep/simulation.h"
#include "simulated.h"
#include "test.h"
#include "trace_gate.h"

static ls_trace *new_trace(ls_runtime *runtime, size_t n)
{
    const struct ls_trace_options options = {.runtime = runtime,
                                             .node = 3,
                                             .job = "jump",
                                             .role = "collector",
                                             .n_records = n};
    ls_trace *trace = NULL;
    assert_ok(ls_trace_create(&trace, &options));
    return trace;
}

static struct ls_trace_file taken(ls_trace *trace)
{
    struct ls_trace_file file = {0};
    assert_ok(ls_trace_take(trace, UINT64_C(0x123456789a), "a test", &file));
    return file;
}

/* A record that can be told from any other, in all of its words. */
static struct ls_trace_record whole(uint64_t number)
{
    return (struct ls_trace_record){.begin_ns = (int64_t)number,
                                    .end_ns = (int64_t)number,
                                    .number = number,
                                    .size = number,
                                    .peer = (uint32_t)number,
                                    .life = (uint32_t)number,
                                    .kind = LS_TRACE_SEND};
}

static void assert_whole(const struct ls_trace_record *record)
{
    const uint64_t number = record->number;
    assert_int_equal(record->begin_ns, number);
    assert_int_equal(record->end_ns, number);
    assert_int_equal(record->size, number);
    assert_int_equal(record->peer, (uint32_t)number);
    assert_int_equal(record->life, (uint32_t)number);
}

TEST(what_was_added_is_taken_with_its_names_in_order)
{
    ls_trace *trace = new_trace(NULL, 0);
    const uint16_t collect = ls_trace_name(trace, "collect");
    assert_int_equal(ls_trace_name(trace, "collect"), collect);
    assert_int_not_equal(ls_trace_name(trace, "learn"), collect);
    struct ls_trace_record record = whole(7);
    record.name = collect;
    ls_trace_add(trace, &record);
    record = whole(6);
    ls_trace_add(trace, &record);

    struct ls_trace_file file = taken(trace);
    assert_string_equal(file.job, "jump");
    assert_string_equal(file.role, "collector");
    assert_string_equal(file.reason, "a test");
    assert_int_equal(file.node, 3);
    assert_int_equal(file.incarnation, UINT64_C(0x123456789a));
    assert_int_equal(file.lost, 0);
    assert_false(file.all);
    assert_int_equal(file.n_records, 2);
    assert_int_equal(file.records[0].number, 6);
    assert_int_equal(file.records[1].number, 7);
    assert_string_equal(file.names[file.records[1].name], "collect");
    assert_string_equal(file.names[file.records[1].thread], "main");
    assert_string_equal(file.names[0], "?");
    ls_trace_clear(&file);
    ls_trace_destroy(&trace);
    assert_null(trace);
    ls_trace_destroy(&trace);
    ls_trace_destroy(NULL);
}

TEST(a_full_ring_keeps_the_last_and_counts_the_others)
{
    ls_trace *trace = new_trace(NULL, 8);
    for (uint64_t i = 0; i < 29; i++) {
        const struct ls_trace_record record = whole(i);
        ls_trace_add(trace, &record);
    }
    struct ls_trace_file file = taken(trace);
    assert_int_equal(file.n_records, 8);
    assert_int_equal(file.lost, 21);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(file.records[i].number, 21 + i);
    ls_trace_clear(&file);
    ls_trace_destroy(&trace);
}

TEST(what_ended_last_comes_first)
{
    struct ls_trace_record records[64];
    ls_trace *trace = new_trace(NULL, 64);
    assert_int_equal(ls_trace_recent(trace, records, 64), 0);
    for (uint64_t number = 1; number <= 100; number++) {
        const struct ls_trace_record record = whole(number);
        ls_trace_add(trace, &record);
    }
    assert_int_equal(ls_trace_recent(trace, records, 3), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_whole(&records[i]);
        assert_int_equal(records[i].number, 100 - i);
    }
    const size_t n = ls_trace_recent(trace, records, 64);
    assert_in_range(n, 60, 64); /* as many as the ring is sure of */
    assert_int_equal(records[n - 1].number, 101 - n);
    assert_int_equal(ls_trace_recent(trace, records, 0), 0);
    ls_trace_destroy(&trace);
}

TEST(a_ring_of_an_odd_size_is_refused)
{
    static const size_t sizes[] = {1, 3, 65535, 2 * LS_TRACE_RECORDS_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ls_trace *trace = NULL;
        const struct ls_trace_options options = {.n_records = sizes[i]};
        assert_fails(ls_trace_create(&trace, &options), LS_EINVAL);
        assert_error_has("power of two");
        assert_null(trace);
    }
}

TEST(names_are_clean_cut_and_no_more_than_there_is_room_for)
{
    ls_trace *trace = new_trace(NULL, 2);
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[199] = '\0';
    memcpy(longer + 62, "\xc3\xa9", 2); /* a character that does not fit */
    assert_int_equal(strlen(ls_trace_text(trace, ls_trace_name(trace, longer))),
                     62);
    assert_string_equal(
        ls_trace_text(trace, ls_trace_name(trace, "a\033[1m\xff\xc3\xa9")),
        "a?[1m?\xc3\xa9");
    for (int i = 0; i < 2 * LS_TRACE_NAMES_MAX; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "n%d", i);
        (void)ls_trace_name(trace, text);
    }
    assert_int_equal(ls_trace_name(trace, "one more"), 0);
    struct ls_trace_file file = taken(trace);
    assert_int_equal(file.n_names, LS_TRACE_NAMES_MAX);
    assert_int_equal(file.unnamed, LS_TRACE_NAMES_MAX + 4);
    ls_trace_clear(&file);
    ls_trace_destroy(&trace);
}

TEST(what_has_not_ended_is_known_as_open)
{
    ls_trace *trace = new_trace(NULL, 2);
    ls_trace_mark *mark = ls_trace_mark_open(trace);
    struct ls_trace_record record = whole(5);
    record.kind = LS_TRACE_FORWARD;
    struct ls_trace_file file = taken(trace);
    assert_int_equal(file.n_records, 0);
    ls_trace_clear(&file);

    ls_trace_mark_begin(mark, &record);
    ls_trace_add(trace, &record);
    file = taken(trace);
    assert_int_equal(file.n_records, 2);
    assert_int_equal(file.records[1].end_ns, LS_TRACE_OPEN);
    assert_int_equal(file.records[1].begin_ns, 5);
    assert_int_equal(file.records[1].kind, LS_TRACE_FORWARD);
    ls_trace_clear(&file);

    ls_trace_mark_end(mark);
    assert_int_equal(ls_trace_open(trace, &record, 1), 0);
    ls_trace_mark_begin(mark, &record);
    ls_trace_mark_close(&mark);
    assert_null(mark);
    assert_int_equal(ls_trace_open(trace, &record, 1), 0);
    ls_trace_destroy(&trace);
}

TEST(marks_are_given_away_until_there_is_none)
{
    ls_trace *trace = new_trace(NULL, 2);
    ls_trace_mark *marks[65];
    for (int i = 0; i < 65; i++)
        marks[i] = ls_trace_mark_open(trace);
    assert_non_null(marks[63]);
    assert_null(marks[64]);
    ls_trace_mark_begin(marks[64], &(struct ls_trace_record){0});
    ls_trace_mark_end(marks[64]);
    ls_trace_mark_close(&marks[64]);
    ls_trace_mark_close(&marks[10]);
    assert_non_null(ls_trace_mark_open(trace));
    assert_null(ls_trace_mark_open(NULL));
    ls_trace_destroy(&trace);
}

/* ---- threads ----------------------------------------------------------- */

enum { WRITERS = 4, EACH = 20000 };

struct writer {
    ls_trace *trace;
    uint64_t from;
};

static void write_many(void *self)
{
    const struct writer *const writer = self;
    ls_trace_mark *mark = ls_trace_mark_open(writer->trace);
    for (uint64_t i = 0; i < EACH; i++) {
        const struct ls_trace_record record = whole(writer->from + i);
        ls_trace_mark_begin(mark, &record);
        ls_trace_add(writer->trace, &record);
        ls_trace_mark_end(mark);
    }
    ls_trace_mark_close(&mark);
}

static void assert_all_whole(ls_trace *trace)
{
    struct ls_trace_file file = taken(trace);
    for (size_t i = 0; i < file.n_records; i++) {
        struct ls_trace_record record = file.records[i];
        if (record.end_ns == LS_TRACE_OPEN)
            record.end_ns = record.begin_ns;
        assert_whole(&record);
    }
    ls_trace_clear(&file);
}

static void write_from_threads(ls_runtime *runtime)
{
    ls_trace *trace = new_trace(runtime, 64);
    struct writer writers[WRITERS];
    ls_thread *threads[WRITERS];
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){trace, i * EACH};
        assert_ok(ls_thread_spawn(runtime, &threads[i], "writer", write_many,
                                  &writers[i]));
    }
    for (int i = 0; i < 200; i++)
        assert_all_whole(trace);
    for (size_t i = 0; i < WRITERS; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    struct ls_trace_file file = taken(trace);
    assert_int_equal(file.n_records + file.lost, WRITERS * EACH);
    assert_in_range(file.n_records, 1, 64);
    assert_string_equal(file.names[file.records[0].thread], "writer");
    ls_trace_clear(&file);
    ls_trace_destroy(&trace);
}

TEST(threads_write_while_another_takes_whole_records_alone)
{
    write_from_threads(ls_runtime_threads());
}

static void write_simulated(void *self)
{
    write_from_threads(ls_host_runtime(self));
}

TEST(in_a_simulation_it_works_alike_and_changes_nothing)
{
    ls_simulation *simulation = simulate(1);
    ls_host *host = new_host(simulation, "node");
    ls_trace *trace = new_trace(ls_host_runtime(host), 2);
    assert_true(ls_trace_all(trace));
    assert_int_equal(ls_trace_now(trace), ls_trace_now(trace));
    ls_trace_destroy(&trace);
    run(simulation, write_simulated, host);
    ls_simulation_destroy(&simulation);
}

TEST(a_gate_keeps_less_of_what_is_frequent_and_all_again_of_what_is_not)
{
    ls_trace *trace = new_trace(NULL, 2);
    struct trace_gate gate = {0};
    int64_t now = 0;
    uint64_t kept = 0;
    for (uint64_t i = 1; i <= 100000; i++, now += 200) {
        if (!trace_gate_keeps(&gate, i))
            continue;
        kept++;
        trace_gate_kept(&gate, trace, now);
    }
    assert_in_range(kept, 100, 430); /* of 20 ms: 48 to 192 us apart */
    for (uint64_t i = 1; i < 2000; i++, now += LS_NS_PER_MS)
        if (trace_gate_keeps(&gate, i))
            trace_gate_kept(&gate, trace, now);
    assert_true(trace_gate_keeps(&gate, 1));
    ls_trace_destroy(&trace);
}

/* ---- bytes ------------------------------------------------------------- */

static void bytes_of(ls_trace *trace, void **data, size_t *size)
{
    struct ls_trace_file file = taken(trace);
    assert_ok(ls_trace_encode(&file, data, size));
    ls_trace_clear(&file);
}

TEST(a_recording_is_the_same_after_it_was_bytes)
{
    ls_trace *trace = new_trace(NULL, 16);
    struct ls_trace_record record = {.begin_ns = -5,
                                     .end_ns = INT64_MAX,
                                     .number = UINT64_MAX,
                                     .size = 1,
                                     .peer = LS_TRACE_NOBODY,
                                     .life = 9,
                                     .name = ls_trace_name(trace, "sync"),
                                     .kind = LS_TRACE_BARRIER,
                                     .depth = 2};
    ls_trace_add(trace, &record);
    struct ls_trace_file file = taken(trace), again = {0};
    void *data;
    size_t size;
    assert_ok(ls_trace_encode(&file, &data, &size));
    assert_ok(ls_trace_decode(&again, data, size));
    assert_string_equal(again.job, file.job);
    assert_string_equal(again.role, file.role);
    assert_string_equal(again.reason, file.reason);
    assert_int_equal(again.node, file.node);
    assert_int_equal(again.incarnation, file.incarnation);
    assert_int_equal(again.now_ns, file.now_ns);
    assert_int_equal(again.wall_ns, file.wall_ns);
    assert_int_equal(again.lost, file.lost);
    assert_int_equal(again.n_names, file.n_names);
    for (size_t i = 0; i < file.n_names; i++)
        assert_string_equal(again.names[i], file.names[i]);
    assert_int_equal(again.n_records, 1);
    assert_memory_equal(again.records, file.records, sizeof *file.records);
    free(data);
    ls_trace_clear(&again);
    ls_trace_clear(&file);
    ls_trace_clear(NULL);
    ls_trace_destroy(&trace);
}

static void assert_not_encoded(struct ls_trace_record record, const char *why)
{
    ls_trace *trace = new_trace(NULL, 2);
    ls_trace_add(trace, &record);
    struct ls_trace_file file = taken(trace);
    void *data = NULL;
    size_t size;
    assert_fails(ls_trace_encode(&file, &data, &size), LS_EINVAL);
    assert_error_has(why);
    assert_null(data);
    ls_trace_clear(&file);
    ls_trace_destroy(&trace);
}

TEST(what_no_reader_would_accept_is_not_written)
{
    assert_not_encoded((struct ls_trace_record){.kind = 0}, "no known kind");
    assert_not_encoded((struct ls_trace_record){.kind = LS_TRACE_KINDS},
                       "no known kind");
    assert_not_encoded(
        (struct ls_trace_record){.kind = 1, .begin_ns = 2, .end_ns = 1},
        "ends before it begins");
    assert_not_encoded((struct ls_trace_record){.kind = 1, .name = 1000},
                       "not in the table");
}

static void assert_file_not_encoded(const struct ls_trace_file *file,
                                    const char *why)
{
    void *data = NULL;
    size_t size;
    assert_fails(ls_trace_encode(file, &data, &size), LS_EINVAL);
    assert_error_has(why);
    assert_null(data);
}

TEST(a_recording_without_names_or_with_unclean_ones_is_not_written)
{
    char fine[] = "?", unclean[] = "a\nb";
    char *names[] = {fine, unclean};
    struct ls_trace_file file = {.names = names, .n_names = 1};
    void *data = NULL;
    size_t size;
    assert_ok(ls_trace_encode(&file, &data, &size));
    free(data);
    file.n_names = 0;
    assert_file_not_encoded(&file, "0 names");
    file.n_names = 2;
    assert_file_not_encoded(&file, "name 1");
    file.n_names = 1;
    strcpy(file.reason, unclean);
    assert_file_not_encoded(&file, "reason");
}

static void assert_refused(const void *data, size_t size, int wanted,
                           const char *why)
{
    struct ls_trace_file file;
    assert_fails(ls_trace_decode(&file, data, size), wanted);
    assert_error_has(why);
}

/* Changes the byte `after` bytes behind the end of this text. */
static void change(unsigned char *data, size_t size, const char *text,
                   size_t after, unsigned char value)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i + n + after < size; i++)
        if (memcmp(data + i, text, n) == 0) {
            data[i + n + after] = value;
            return;
        }
    fail_msg("there is no %s", text);
}

static void assert_changed_refused(const char *text, size_t after,
                                   unsigned char value, int wanted,
                                   const char *why)
{
    ls_trace *trace = new_trace(NULL, 2);
    const struct ls_trace_record record = whole(1);
    ls_trace_add(trace, &record);
    void *data;
    size_t size;
    bytes_of(trace, &data, &size);
    change(data, size, text, after, value);
    assert_refused(data, size, wanted, why);
    free(data);
    ls_trace_destroy(&trace);
}

TEST(damage_is_named)
{
    /* records: c4 30, then 48 bytes: of them 40 and 41 are the name's, 44 is
     * the kind, 46 and 47 are unused */
    assert_changed_refused("records", 1, 47, LS_EPROTO, "");
    assert_changed_refused("records", 2 + 44, 9, LS_EPROTO,
                           "record 0: it is of no known kind");
    assert_changed_refused("records", 2 + 7, 1, LS_EPROTO,
                           "record 0: it ends before it begins");
    assert_changed_refused("records", 2 + 40, 200, LS_EPROTO,
                           "record 0: it has a name that is not");
    assert_changed_refused("records", 2 + 42, 200, LS_EPROTO,
                           "record 0: it has a name that is not");
    assert_changed_refused("records", 2 + 47, 1, LS_EPROTO,
                           "record 0: its last bytes are not 0");
    assert_changed_refused("version", 0, 2, LS_EMISMATCH, "of version 2");
    assert_changed_refused("lockstep-", 0, 'x', LS_EPROTO, "format");
    assert_changed_refused("names", 2, '\n', LS_EPROTO, "control characters");
    assert_changed_refused("jum", 0, 27, LS_EPROTO, "control characters");
    assert_refused("", 0, LS_EPROTO, "a recording");
    assert_refused("\x80", 1, LS_EPROTO, "format");
}

TEST(what_was_cut_short_is_refused_wherever)
{
    ls_trace *trace = new_trace(NULL, 2);
    void *data;
    size_t size;
    bytes_of(trace, &data, &size);
    for (size_t i = 0; i < size; i++) {
        struct ls_trace_file file;
        assert_fails(ls_trace_decode(&file, data, i), LS_EPROTO);
    }
    free(data);
    ls_trace_destroy(&trace);
}
