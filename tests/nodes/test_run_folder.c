/* The folder of a run: begun, gone on with, joined, ended. */
#include "file_bytes.h"
#include "run_folder.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    char root[64];
    char out[96]; /* root/a/job */
    struct run_folder_options options;
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    (void)snprintf(place->root, sizeof place->root,
                   "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(place->root));
    (void)snprintf(place->out, sizeof place->out, "%s/a/job", place->root);
    place->options = (struct run_folder_options){
        .out = place->out, .job = "job", .learning = 0x1234};
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", place->root);
    assert_int_equal(system(command), 0);
    free(place);
    return 0;
}

static void begin(const struct place *place, struct run_folder *out)
{
    if (run_folder_begin(out, &place->options) != LS_OK)
        fail_msg("%s", ls_error_text());
}

static const char *path_in(const struct place *place, const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", place->out, name);
    return path;
}

static bool is_there(const struct place *place, const char *name)
{
    struct stat found;
    return lstat(path_in(place, name), &found) == 0;
}

static void write_file(const struct place *place, const char *name,
                       const char *text)
{
    write_bytes(path_in(place, name), text, strlen(text));
}

static void assert_latest(const struct place *place, const char *name)
{
    char to[32] = "";
    assert_true(readlink(path_in(place, "latest"), to, sizeof to - 1) > 0);
    assert_string_equal(to, name);
}

/* A run that has left something, and ended like that. */
static void run(const struct place *place, const char *name, bool done)
{
    struct run_folder folder;
    char kept[32];
    begin(place, &folder);
    assert_string_equal(folder.name, name);
    (void)snprintf(kept, sizeof kept, "%s/kept", name);
    write_file(place, kept, "of worth");
    run_folder_end(&folder, done);
}

EACH_TEST(set_up, tear_down)

TEST(runs_are_numbered_and_latest_points_to_the_last)
{
    const struct place *place = *state;
    run(place, "1", true);
    assert_latest(place, "1");
    run(place, "2", true);
    run(place, "3", true);
    assert_latest(place, "3");
    assert_true(is_there(place, "1/kept"));
}

TEST(a_run_that_was_interrupted_goes_on)
{
    const struct place *place = *state;
    struct run_folder folder;
    char token[RUN_FOLDER_TOKEN_MAX + 1];
    begin(place, &folder);
    assert_int_equal(folder.lives, 0);
    memcpy(token, folder.token, sizeof token);
    write_file(place, "1/kept", "of worth");
    for (unsigned lives = 1; lives < 4; lives++) {
        run_folder_end(&folder, false);
        begin(place, &folder);
        assert_string_equal(folder.name, "1");
        assert_string_equal(folder.token, token);
        assert_int_equal(folder.lives, lives);
    }
    run_folder_end(&folder, true);
    run(place, "2", true);
}

/* On machines that are taken away every hour. */
TEST(a_run_may_have_thousands_of_lives)
{
    const struct place *place = *state;
    const size_t lives = 4096;
    struct run_folder folder;
    run(place, "1", false);
    FILE *record = fopen(path_in(place, "1/record"), "a");
    assert_non_null(record);
    for (size_t i = 1; i < lives; i++)
        assert_true(fputs("goes on\n", record) >= 0);
    assert_int_equal(fclose(record), 0);
    begin(place, &folder);
    assert_string_equal(folder.name, "1");
    assert_int_equal(folder.lives, lives);
    run_folder_end(&folder, true);
    run(place, "2", true);
}

TEST(another_that_would_learn_otherwise_is_a_new_run)
{
    struct place *place = *state;
    run(place, "1", false);
    place->options.learning++;
    run(place, "2", false);
    place->options.job = "else";
    run(place, "3", false);
    /* The last of those that learn the same decides. */
    place->options.job = "job";
    place->options.learning--;
    run(place, "1", true);
    assert_latest(place, "1");
    run(place, "4", false);
    run(place, "4", false);
}

TEST(fresh_begins_another_and_tells_what_it_leaves)
{
    struct place *place = *state;
    struct run_folder folder;
    run(place, "1", false);
    place->options.fresh = true;
    begin(place, &folder);
    assert_string_equal(folder.name, "2");
    assert_int_equal(folder.behind, 1);
    assert_int_equal(folder.lives, 0);
    write_file(place, "2/kept", "of worth");
    run_folder_end(&folder, true);
    begin(place, &folder);
    assert_int_equal(folder.behind, 0); /* 2 has ended: nothing would go on */
    run_folder_end(&folder, true);
}

/* Neither one that was interrupted is gone on with, nor is one that has ended
 * the last. */
TEST(a_run_aside_is_not_taken_notice_of)
{
    struct place *place = *state;
    struct run_folder folder;
    begin(place, &folder);
    write_file(place, "1/weights", "of worth");
    run_folder_end(&folder, false);
    for (int done = 0; done < 2; done++) {
        place->options.fresh = place->options.aside = true;
        begin(place, &folder);
        assert_string_equal(folder.name, done ? "3" : "2");
        write_file(place, done ? "3/weights" : "2/weights", "of none");
        run_folder_end(&folder, done);
        place->options.fresh = place->options.aside = false;
        begin(place, &folder);
        assert_string_equal(folder.name, "1");
        run_folder_end(&folder, false);
    }
}

TEST(resume_goes_on_with_the_latest_or_the_one_that_is_named)
{
    struct place *place = *state;
    run(place, "1", false);
    place->options.fresh = true;
    run(place, "2", false);
    place->options.fresh = false;
    place->options.resume = "latest";
    run(place, "2", false);
    place->options.resume = "1";
    run(place, "1", false);
    assert_latest(place, "1");
    place->options.resume = "latest";
    run(place, "2", true);
}

TEST(resume_fails_where_there_is_nothing_to_go_on_with)
{
    struct place *place = *state;
    struct run_folder folder;
    place->options.resume = "latest";
    assert_fails(run_folder_begin(&folder, &place->options), LS_ENOENT);
    assert_error_has("--resume: there is no run in ");
    assert_false(is_there(place, "")); /* not even the folder of all runs */
    place->options.resume = NULL;
    run(place, "1", true);
    place->options.resume = "latest";
    assert_fails(run_folder_begin(&folder, &place->options), LS_ENOENT);
    assert_error_has("/a/job/1 has ended, and there is nothing left to do");
    place->options.resume = "1";
    assert_fails(run_folder_begin(&folder, &place->options), LS_ENOENT);
    assert_error_has("has ended");
    static const char *const none[] = {"2", "0", "01", "1234567890"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        place->options.resume = none[i];
        assert_fails(run_folder_begin(&folder, &place->options), LS_ENOENT);
        assert_error_has("there is no run");
    }
    assert_false(is_there(place, "2"));
    assert_latest(place, "1");
}

TEST(resume_refuses_a_run_that_would_learn_something_else)
{
    struct place *place = *state;
    struct run_folder folder;
    run(place, "1", false);
    place->options.learning++;
    place->options.resume = "1";
    assert_fails(run_folder_begin(&folder, &place->options), LS_EMISMATCH);
    assert_error_has("/a/job/1 would learn something else");
    place->options.resume = "latest";
    assert_fails(run_folder_begin(&folder, &place->options), LS_ENOENT);
    place->options.learning--;
    place->options.job = "other";
    place->options.resume = "1";
    assert_fails(run_folder_begin(&folder, &place->options), LS_EMISMATCH);
    place->options.job = "job";
    struct run_folder owner;
    begin(place, &owner);
    assert_fails(run_folder_begin(&folder, &place->options), LS_EAGAIN);
    run_folder_end(&owner, false);
}

TEST(nobody_goes_on_with_what_is_worked_on)
{
    const struct place *place = *state;
    struct run_folder first, second;
    begin(place, &first);
    assert_fails(run_folder_begin(&second, &place->options), LS_EAGAIN);
    assert_error_has("run 1");
    assert_error_has("--fresh");
    run_folder_end(&first, false);
}

TEST(others_beside_it_do_not_disturb_it)
{
    struct place *place = *state;
    struct run_folder first, second;
    begin(place, &first);
    place->options.learning++;
    begin(place, &second);
    assert_string_equal(second.name, "2");
    run_folder_end(&second, true);
    assert_latest(place, "1");
    run_folder_end(&first, true);
}

TEST(who_joins_keeps_it_from_others)
{
    const struct place *place = *state;
    struct run_folder owner, node, other;
    begin(place, &owner);
    write_file(place, "1/kept", "of worth");
    assert_fails(run_folder_join(&node, place->out, "1", true), LS_EAGAIN);
    assert_ok(run_folder_share(&owner));
    assert_ok(run_folder_join(&node, place->out, "1", true));
    assert_string_equal(node.token, owner.token);
    run_folder_end(&owner, false); /* killed, for one */
    assert_fails(run_folder_begin(&other, &place->options), LS_EAGAIN);
    run_folder_end(&node, false);
    begin(place, &other);
    assert_string_equal(other.name, "1");
    /* One that keeps nothing needs no lock. */
    assert_ok(run_folder_join(&node, place->out, "1", false));
    run_folder_end(&node, false);
    run_folder_end(&other, true);
    assert_true(is_there(place, "1/kept"));
}

TEST(who_joins_must_name_a_run)
{
    const struct place *place = *state;
    struct run_folder node;
    static const char *const names[] = {"",   "0",      "01",        "-1",
                                        "1x", "latest", "1234567890"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_fails(run_folder_join(&node, place->out, names[i], true),
                     LS_EINVAL);
    assert_fails(run_folder_join(&node, place->out, "1", true), LS_ENOENT);
}

TEST(what_left_nothing_leaves_nothing)
{
    struct place *place = *state;
    struct run_folder folder;
    begin(place, &folder);
    run_folder_end(&folder, false);
    assert_int_equal(access(place->out, F_OK), -1);
    run(place, "1", true);
    begin(place, &folder);
    assert_latest(place, "2");
    run_folder_end(&folder, true);
    assert_false(is_there(place, "2"));
    assert_latest(place, "1");
}

TEST(latest_never_points_to_what_is_no_run)
{
    const struct place *place = *state;
    struct run_folder folder;
    assert_int_equal(ls_folder_make(place->out), LS_OK);
    assert_int_equal(ls_folder_make(path_in(place, "7")), LS_OK);
    begin(place, &folder);
    assert_latest(place, "8");
    run_folder_end(&folder, false);
    assert_false(is_there(place, "latest"));
    run(place, "8", true);
    assert_int_equal(ls_folder_make(path_in(place, "20")), LS_OK);
    begin(place, &folder);
    run_folder_end(&folder, false);
    assert_latest(place, "8");
}

TEST(what_the_user_has_there_stays)
{
    const struct place *place = *state;
    struct run_folder folder;
    assert_ok(ls_folder_make(place->out));
    begin(place, &folder);
    run_folder_end(&folder, false);
    assert_int_equal(access(place->out, F_OK), 0); /* it was there before */

    assert_ok(ls_folder_make(path_in(place, "7")));
    write_file(place, "latest", "mine");
    begin(place, &folder);
    assert_string_equal(folder.name, "8");
    write_file(place, "8/kept", "of worth");
    run_folder_end(&folder, true);
    assert_true(is_there(place, "7"));
    void *text;
    size_t size;
    assert_ok(ls_file_read(path_in(place, "latest"), 100, &text, &size));
    assert_memory_equal(text, "mine", 4);
    free(text);
}

TEST(a_record_that_is_none_is_told)
{
    const struct place *place = *state;
    struct run_folder folder;
    static const char *const bad[] = {
        "lockstep run 2\njob job\nlearning 1234\ntoken 12\n",
        "lockstep run 1\njob job\nlearning xyz\ntoken 12\n",
        "lockstep run 2\njob job\nlearning 1234\n", "mine"};
    run(place, "1", false);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(place, "1/record", bad[i]);
        assert_fails(run_folder_begin(&folder, &place->options), LS_EPROTO);
        assert_error_has("1/record");
        assert_fails(run_folder_join(&folder, place->out, "1", true),
                     LS_EPROTO);
    }
    static char huge[8192];
    memset(huge, 'x', sizeof huge - 1);
    write_file(place, "1/record", huge);
    assert_fails(run_folder_begin(&folder, &place->options), LS_EPROTO);
    /* A line that a power cut has cut short says nothing. */
    write_file(place, "1/record",
               "lockstep run 1\njob job\nlearning 1234\ntoken 12\nend");
    begin(place, &folder);
    assert_string_equal(folder.name, "1");
    assert_int_equal(folder.lives, 1);
    run_folder_end(&folder, true);
    run(place, "2", true);
}

/* Killed as it made its record, or by a loss of power before the bytes were on
 * disk. */
TEST(a_run_that_had_not_begun_is_in_nobodys_way)
{
    struct place *place = *state;
    struct run_folder node;
    static const char *const cut[] = {
        "", "lockstep", "lockstep run 1\njob job\nlearning 1234\ntoken 12"};
    run(place, "1", true);
    assert_ok(ls_folder_make(path_in(place, "2")));
    assert_ok(ls_folder_make(path_in(place, "3")));
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        write_file(place, "3/record", cut[i]);
        run(place, "4", false);
        assert_fails(run_folder_join(&node, place->out, "3", true), LS_ENOENT);
    }
    run(place, "4", true);
}

/* Its weights are there: it had begun. */
TEST(a_record_that_was_cut_beside_what_a_run_left_is_damaged)
{
    struct place *place = *state;
    struct run_folder folder;
    struct run_folder_look look;
    static const char *const cut[] = {"", "lockstep run 1\njob job\nlearn"};
    run(place, "1", false);
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        write_file(place, "1/record", cut[i]);
        assert_fails(run_folder_check(place->out), LS_EPROTO);
        assert_error_has("1/record is not a record of a run");
        assert_fails(run_folder_begin(&folder, &place->options), LS_EPROTO);
        assert_fails(run_folder_look(&look, path_in(place, "1")), LS_EPROTO);
        assert_error_has("1/record is not a record of a run");
    }
}

TEST(a_damaged_record_is_known_before_a_run)
{
    struct place *place = *state;
    assert_ok(ls_folder_make(path_in(place, "1")));
    assert_ok(run_folder_check(place->out));
    write_file(place, "1/record", "job: mine\n");
    assert_fails(run_folder_check(place->out), LS_EPROTO);
    assert_error_has("1/record is not a record of a run");
}

TEST(whether_there_can_be_runs_is_known_without_making_any)
{
    struct place *place = *state;
    assert_ok(run_folder_check(place->out));
    assert_int_equal(access(place->out, F_OK), -1);
    assert_ok(ls_folder_make(place->out));
    assert_ok(run_folder_check(place->out));
    write_file(place, "file", "mine");
    assert_fails(run_folder_check(path_in(place, "file/out")), LS_EIO);
    assert_error_has("job/file");
    assert_fails(run_folder_check("/dev/null/out"), LS_EIO);
    assert_error_has("/dev/null");
}

TEST(what_cannot_be_written_is_told_at_the_start)
{
    struct place *place = *state;
    struct run_folder folder;
    place->options.out = "/dev/null/out";
    assert_fails(run_folder_begin(&folder, &place->options), LS_EIO);
    assert_error_has("/dev/null");
    static char far_too_long[2000];
    memset(far_too_long, 'x', sizeof far_too_long - 1);
    place->options.out = far_too_long;
    assert_fails(run_folder_begin(&folder, &place->options), LS_ELIMIT);
}
