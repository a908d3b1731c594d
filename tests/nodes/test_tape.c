/* Recordings: written by nodes, put together, read, and played again. */
#define _GNU_SOURCE /* memfd_create */
#include "tape.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lockstep/event.h"
#include "lockstep/file.h"
#include "test.h"

struct fixture {
    char folder[64], path[96];
    void *data; /* own; of the file */
    size_t size;
    struct tape *tape; /* own */
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder,
                   "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/run",
                   fixture->folder);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    tape_close(&fixture->tape);
    free(fixture->data);
    (void)ls_file_remove(fixture->path);
    assert_int_equal(rmdir(fixture->folder), 0); /* no part is left */
    free(fixture);
    return 0;
}

EACH_TEST(set_up, tear_down)

static int emit_to(const struct ls_event_gate *gate, const char *event,
                   const char *text, const char **said)
{
    const struct ls_emission emission = {
        .event = event, .data = text, .size = strlen(text)};
    const void *data = text;
    size_t size = strlen(text);
    const int status = gate->emits(gate->self, &emission, &data, &size);
    if (said != NULL)
        *said = data;
    return status;
}

static bool handle(const struct ls_event_gate *gate, const char *event,
                   uint32_t origin)
{
    return gate->handles(gate->self,
                         &(struct ls_event){.name = event, .origin = origin});
}

static void describe(struct tape_about *about, struct tape_node nodes[2],
                     bool done)
{
    nodes[0] = (struct tape_node){.id = 1, .role = "learner"};
    nodes[1] = (struct tape_node){.id = 7, .role = "collector"};
    *about = (struct tape_about){.lockstep = "1",
                                 .config = (char *)(uintptr_t) "a.yaml",
                                 .text = (char *)(uintptr_t) "job: a",
                                 .done = done,
                                 .nodes = nodes,
                                 .n_nodes = 2};
}

static void load(struct fixture *fixture)
{
    free(fixture->data);
    assert_ok(
        ls_file_read(fixture->path, SIZE_MAX, &fixture->data, &fixture->size));
    assert_ok(tape_open(&fixture->tape, fixture->path));
}

/* Node 1 emits "a" and "b", node 7 emits "c" to all, and they handle these. */
static void write_parts(const struct fixture *fixture)
{
    tape_recorder *one = NULL, *two = NULL;
    assert_ok(tape_recorder_create(&one, fixture->path, 1));
    assert_ok(tape_recorder_create(&two, fixture->path, 7));
    const struct ls_event_gate *gate = tape_recorder_gate(one);
    assert_ok(emit_to(gate, "a", "first", NULL));
    assert_ok(emit_to(gate, "a", "second", NULL));
    assert_ok(emit_to(gate, "b", "other", NULL));
    assert_true(handle(gate, "c", 7));
    gate = tape_recorder_gate(two);
    assert_true(handle(gate, "a", 1));
    assert_true(handle(gate, "b", 1));
    assert_true(handle(gate, "a", 1));
    assert_ok(emit_to(gate, "c", "third", NULL));
    tape_recorder_destroy(&one);
    tape_recorder_destroy(&two);
}

static void record(struct fixture *fixture, bool done)
{
    struct tape_about about;
    struct tape_node nodes[2];
    write_parts(fixture);
    describe(&about, nodes, done);
    assert_ok(tape_join(fixture->path, &about));
    load(fixture);
}

static void say_where(void *self, char *text, size_t size)
{
    (void)snprintf(text, size, "%s", (const char *)self);
}

static const struct ls_event_gate *play(struct fixture *fixture, uint32_t id)
{
    static char where[] = "in step jump";
    return tape_play(fixture->tape, id, say_where, where);
}

static void emit_all_of_one(const struct ls_event_gate *one)
{
    assert_ok(emit_to(one, "a", "first", NULL));
    assert_ok(emit_to(one, "b", "other", NULL)); /* in order of each name */
    assert_ok(emit_to(one, "a", "second", NULL));
}

TEST(a_recording_knows_its_run)
{
    struct fixture *fixture = *state;
    record(fixture, true);
    const struct tape_about *about = tape_about(fixture->tape);
    assert_string_equal(about->config, "a.yaml");
    assert_string_equal(about->text, "job: a");
    assert_null(about->seed);
    assert_true(about->done);
    assert_int_equal(about->n_nodes, 2);
    assert_int_equal(about->nodes[1].id, 7);
    assert_true(about->nodes[1].whole);
    assert_null(tape_play(fixture->tape, 2, NULL, NULL));
}

TEST(what_is_the_same_is_no_difference)
{
    struct fixture *fixture = *state;
    struct tape_figures figures;
    record(fixture, true);
    emit_all_of_one(play(fixture, 1));
    assert_ok(emit_to(play(fixture, 7), "c", "third", NULL));
    assert_null(tape_end(fixture->tape, true, &figures));
    assert_int_equal(figures.compared, 4);
    assert_int_equal(figures.replaced + figures.beyond, 0);
}

TEST(events_are_handled_in_the_recorded_order)
{
    struct fixture *fixture = *state;
    record(fixture, true);
    const struct ls_event_gate *gate = play(fixture, 7);
    assert_false(handle(gate, "b", 1));
    assert_true(handle(gate, "a", 1));
    assert_false(handle(gate, "a", 1));
    assert_true(handle(gate, "b", 1));
    assert_true(handle(gate, "a", 1));
    assert_true(handle(gate, "a", 1)); /* not then, so whenever */
    assert_true(handle(gate, "x", 3));
}

TEST(the_first_difference_is_named)
{
    struct fixture *fixture = *state;
    struct tape_figures figures;
    record(fixture, true);
    const struct ls_event_gate *gate = play(fixture, 1);
    assert_ok(emit_to(gate, "a", "first", NULL));
    assert_fails(emit_to(gate, "a", "secant!", NULL), LS_EMISMATCH);
    assert_error_has("node 1 (learner), in step jump: event \"a\" number 2: "
                     "expected 6 bytes to all, XXH3 ");
    assert_error_has("; came 7 bytes to all, XXH3 ");
    assert_error_has("; they differ from byte 3 on");
    assert_ok(emit_to(gate, "b", "whatever", NULL)); /* it is over */
    const char *card = tape_end(fixture->tape, false, &figures);
    assert_non_null(card);
    assert_has(card, "\"a\" number 2");
    assert_false(figures.late);
}

TEST(an_event_too_many_or_too_few_is_a_difference)
{
    struct fixture *fixture = *state;
    struct tape_figures figures;
    record(fixture, true);
    const struct ls_event_gate *gate = play(fixture, 1);
    emit_all_of_one(gate);
    assert_has(tape_end(fixture->tape, true, &figures),
               "node 7 (collector): event \"c\" number 1: expected 5 bytes");
    assert_true(figures.late);
    tape_close(&fixture->tape);
    load(fixture);
    gate = play(fixture, 1);
    emit_all_of_one(gate);
    assert_fails(emit_to(gate, "b", "more", NULL), LS_EMISMATCH);
    assert_error_has("expected nothing more of this name; came 4 bytes");
}

TEST(what_was_waited_for_in_vain_is_named)
{
    struct fixture *fixture = *state;
    struct tape_figures figures;
    record(fixture, true);
    assert_false(handle(play(fixture, 7), "b", 1));
    assert_has(tape_end(fixture->tape, false, &figures),
               "node 7 (collector): expected event \"a\" from node 1; it never "
               "came");
}

TEST(a_broken_off_run_is_replayed_to_its_end)
{
    struct fixture *fixture = *state;
    struct tape_figures figures;
    record(fixture, false);
    const struct ls_event_gate *one = play(fixture, 1), *two = play(fixture, 7);
    emit_all_of_one(one);
    assert_ok(emit_to(one, "a", "more", NULL)); /* the other is not there yet */
    assert_ok(emit_to(two, "c", "third", NULL));
    assert_fails(emit_to(two, "c", "more", NULL), LS_ECANCELED);
    assert_null(tape_end(fixture->tape, false, &figures));
    assert_true(figures.over);
    assert_int_equal(figures.beyond, 2);
}

TEST(one_node_is_compared_and_the_others_say_what_they_said)
{
    struct fixture *fixture = *state;
    struct tape_figures figures;
    const char *said;
    record(fixture, true);
    assert_fails(tape_only(fixture->tape, 2), LS_EINVAL);
    assert_ok(tape_only(fixture->tape, 7));
    assert_ok(emit_to(play(fixture, 1), "a", "wrong", &said));
    assert_memory_equal(said, "first", 5);
    assert_fails(emit_to(play(fixture, 7), "c", "wrong", NULL), LS_EMISMATCH);
    (void)tape_end(fixture->tape, false, &figures);
    assert_int_equal(figures.replaced, 1);
}

/* ---- files that are none ------------------------------------------------- */

/* In memory: they are many. */
static void refuse(const void *data, size_t size, const char *why)
{
    char path[64];
    struct tape *tape = NULL;
    const int file = memfd_create("tape", 0);
    assert_true(file >= 0);
    assert_int_equal(write(file, data, size), size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    assert_fails(tape_open(&tape, path), LS_EPROTO);
    assert_null(tape);
    assert_error_has(path);
    assert_error_has(why);
    close(file);
}

TEST(a_file_that_is_cut_short_anywhere_is_refused)
{
    struct fixture *fixture = *state;
    record(fixture, true);
    refuse("", 0, "it is empty");
    for (size_t size = 1; size < fixture->size; size++)
        refuse(fixture->data, size, "it is cut short");
}

TEST(a_file_with_any_byte_changed_is_refused)
{
    struct fixture *fixture = *state;
    record(fixture, true);
    unsigned char *bytes = fixture->data;
    for (size_t i = 0; i < fixture->size; i++) {
        bytes[i] ^= 0x10;
        refuse(bytes, fixture->size, "");
        bytes[i] ^= 0x10;
    }
    bytes[fixture->size - 1] ^= 1;
    refuse(bytes, fixture->size, "it is damaged");
    bytes[fixture->size - 1] ^= 1;
    bytes[8]++;
    refuse(bytes, fixture->size, "it is of version 2 of recordings");
}

TEST(a_recording_with_an_override_of_nothing_is_refused)
{
    struct fixture *fixture = *state;
    struct tape_set sets[2] = {{(char *)(uintptr_t) "seed", NULL},
                               {NULL, (char *)(uintptr_t) "1"}};
    struct tape_about about;
    struct tape_node nodes[2];
    describe(&about, nodes, true);
    for (size_t i = 0; i < 2; i++) {
        about.sets = &sets[i];
        about.n_sets = 1;
        write_parts(fixture);
        assert_ok(tape_join(fixture->path, &about));
        assert_fails(tape_open(&fixture->tape, fixture->path), LS_EPROTO);
        assert_error_has("override 0 has no text");
    }
}

TEST(another_file_is_refused_by_what_it_is)
{
    static const char trace[] = "\x8d\xa6"
                                "format\xae"
                                "lockstep-trace";
    refuse(trace, sizeof trace - 1, "it is a flight recorder's: a ring");
    refuse("job: cartpole\n", 14, "it is not a recording");
}

/* ---- parts --------------------------------------------------------------- */

static void claim(const char *path)
{
    ls_file *file = NULL;
    assert_ok(tape_claim(&file, path));
    assert_ok(ls_file_close(&file));
}

TEST(only_a_recording_is_replaced_by_one)
{
    struct fixture *fixture = *state;
    const struct ls_file_part part = {"job: mine\n", 10};
    char temporary[sizeof fixture->path + 8];
    void *data = NULL;
    size_t size = 0;
    ls_file *file = NULL;
    (void)snprintf(temporary, sizeof temporary, "%s.part", fixture->path);
    claim(fixture->path); /* nothing is there */
    claim(fixture->path); /* now an empty file */
    assert_ok(ls_file_replace(fixture->path, temporary, &part, 1, false));
    assert_fails(tape_claim(&file, fixture->path), LS_EEXIST);
    assert_error_has("is not a recording: name another file");
    assert_ok(ls_file_read(fixture->path, 100, &data, &size));
    assert_int_equal(size, 10);
    free(data);
    assert_ok(ls_file_remove(fixture->path));
    record(fixture, true);
    claim(fixture->path);
}

TEST(one_run_at_a_time_is_recorded_in_a_file)
{
    struct fixture *fixture = *state;
    ls_file *first = NULL, *second = NULL;
    assert_ok(tape_claim(&first, fixture->path));
    assert_fails(tape_claim(&second, fixture->path), LS_EAGAIN);
    assert_error_has("another run is being recorded there");
    assert_null(second);
    assert_ok(ls_file_close(&first));
    claim(fixture->path);
}

TEST(a_part_that_is_broken_off_counts_up_to_its_last_record)
{
    struct fixture *fixture = *state;
    struct tape_about about;
    struct tape_node nodes[2];
    char path[LS_PATH_MAX];
    tape_recorder *recorder = NULL;
    ls_file *file = NULL;
    uint64_t size;
    assert_ok(tape_recorder_create(&recorder, fixture->path, 1));
    assert_ok(emit_to(tape_recorder_gate(recorder), "a", "first", NULL));
    assert_ok(emit_to(tape_recorder_gate(recorder), "a", "second", NULL));
    tape_recorder_destroy(&recorder);
    assert_ok(tape_part_path(path, fixture->path, 1));
    assert_ok(ls_file_open(&file, path, LS_FILE_WRITE));
    assert_ok(ls_file_size(file, &size));
    assert_ok(ls_file_cut(file, size - 24 - 1)); /* its end, and a byte */
    assert_ok(ls_file_close(&file));
    describe(&about, nodes, false);
    assert_ok(tape_join(fixture->path, &about)); /* of node 7 there is none */
    load(fixture);
    assert_false(tape_about(fixture->tape)->nodes[0].whole);
    assert_int_equal(tape_about(fixture->tape)->nodes[0].bytes, 24 + 1 + 5);
    assert_int_equal(tape_about(fixture->tape)->nodes[1].bytes, 0);
    assert_fails(emit_to(play(fixture, 1), "a", "fist", NULL), LS_EMISMATCH);
}

static const char *head_of(const struct fixture *fixture)
{
    static char head[sizeof fixture->path + 8];
    (void)snprintf(head, sizeof head, "%s.head", fixture->path);
    return head;
}

/* Its process was killed: what it had said of itself as it began is left. */
TEST(a_run_that_nobody_ended_is_put_together)
{
    struct fixture *fixture = *state;
    struct tape_about about;
    struct tape_node nodes[2];
    ls_file *running = NULL;
    describe(&about, nodes, true);
    assert_fails(tape_join_left(fixture->path), LS_ENOENT);
    assert_ok(tape_claim(&running, fixture->path));
    assert_ok(tape_begin(fixture->path, &about));
    write_parts(fixture);
    assert_fails(tape_join_left(fixture->path), LS_EAGAIN);
    assert_error_has("another run is being recorded there");
    assert_ok(ls_file_close(&running));
    assert_ok(tape_join_left(fixture->path));
    assert_fails(tape_join_left(fixture->path), LS_ENOENT);
    load(fixture);
    assert_false(tape_about(fixture->tape)->done);
    assert_string_equal(tape_about(fixture->tape)->text, "job: a");
    assert_true(tape_about(fixture->tape)->nodes[1].whole);
    emit_all_of_one(play(fixture, 1));
}

TEST(a_run_that_begins_removes_what_an_earlier_one_has_left)
{
    struct fixture *fixture = *state;
    struct tape_about about;
    struct tape_node nodes[2];
    describe(&about, nodes, true);
    write_parts(fixture);
    assert_ok(tape_begin(fixture->path, &about));
    assert_ok(tape_join_left(fixture->path));
    load(fixture);
    assert_int_equal(tape_about(fixture->tape)->nodes[0].bytes, 0);
    assert_int_equal(tape_about(fixture->tape)->nodes[1].bytes, 0);
}

/* The next run may have fewer nodes. */
TEST(a_run_that_begins_removes_parts_of_nodes_that_it_has_not)
{
    struct fixture *fixture = *state;
    struct tape_about about;
    struct tape_node nodes[2];
    char part[LS_PATH_MAX];
    describe(&about, nodes, true);
    assert_ok(tape_begin(fixture->path, &about));
    write_parts(fixture);
    about.n_nodes = 1;
    assert_ok(tape_begin(fixture->path, &about));
    assert_ok(tape_part_path(part, fixture->path, 7));
    assert_false(ls_file_exists(part));
    tape_clean(fixture->path, &about);
}

static void write_mine(const char *path)
{
    const struct ls_file_part part = {"mine, not yours", 15};
    char temporary[LS_PATH_MAX];
    (void)snprintf(temporary, sizeof temporary, "%s~", path);
    assert_ok(ls_file_replace(path, temporary, &part, 1, false));
}

/* Beside the recording, whatever a run would write there. */
TEST(a_file_beside_a_recording_that_is_another_is_kept)
{
    struct fixture *fixture = *state;
    static const char *const endings[] = {"head", "part", "node-1", "node-7"};
    struct tape_about about;
    struct tape_node nodes[2];
    char path[sizeof fixture->path + 8], expected[64];
    describe(&about, nodes, true);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        (void)snprintf(path, sizeof path, "%s.%s", fixture->path, endings[i]);
        write_mine(path);
        assert_fails(tape_begin(fixture->path, &about), LS_EEXIST);
        (void)snprintf(expected, sizeof expected,
                       "run.%s exists, and is not a recording", endings[i]);
        assert_error_has(expected);
        assert_true(ls_file_exists(path));
        assert_ok(ls_file_remove(path));
    }
    assert_ok(tape_begin(fixture->path, &about));
    tape_clean(fixture->path, &about);
}

TEST(another_file_is_not_put_together)
{
    struct fixture *fixture = *state;
    write_mine(head_of(fixture));
    assert_fails(tape_join_left(fixture->path), LS_EPROTO);
    assert_error_has("run.head: it is not a recording");
    assert_true(ls_file_exists(head_of(fixture)));
    assert_ok(ls_file_remove(head_of(fixture)));
}

TEST(a_recording_that_finds_no_room_leaves_only_what_the_nodes_wrote)
{
    struct fixture *fixture = *state;
    struct tape_about about;
    struct tape_node nodes[2];
    char temporary[128], part[LS_PATH_MAX];
    tape_recorder *recorder = NULL;
    struct rlimit before, little;
    assert_ok(tape_recorder_create(&recorder, fixture->path, 1));
    assert_ok(emit_to(tape_recorder_gate(recorder), "a", "first", NULL));
    tape_recorder_destroy(&recorder);
    describe(&about, nodes, true);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_fails(tape_join(fixture->path, &about), LS_EIO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_error_has("writing");
    (void)snprintf(temporary, sizeof temporary, "%s.part", fixture->path);
    assert_int_equal(access(temporary, F_OK), -1);
    assert_ok(tape_part_path(part, fixture->path, 1));
    assert_int_equal(access(part, F_OK), 0);
    tape_clean(fixture->path, &about);
}

TEST(what_is_recorded_while_the_disk_writes_is_kept)
{
    struct fixture *fixture = *state;
    struct tape_about about;
    struct tape_node nodes[2];
    tape_recorder *recorder = NULL;
    enum { SIZE = 1 << 20, N = 24 }; /* over all that is held at a time */
    char *text = calloc(1, SIZE);
    assert_non_null(text);
    memset(text, 'x', SIZE - 1);
    assert_ok(tape_recorder_create(&recorder, fixture->path, 1));
    for (int i = 0; i < N; i++)
        assert_ok(emit_to(tape_recorder_gate(recorder), "a", text, NULL));
    tape_recorder_destroy(&recorder);
    describe(&about, nodes, true);
    assert_ok(tape_join(fixture->path, &about));
    load(fixture);
    assert_true(tape_about(fixture->tape)->nodes[0].whole);
    for (int i = 0; i < N; i++)
        assert_ok(emit_to(play(fixture, 1), "a", text, NULL));
    free(text);
}
