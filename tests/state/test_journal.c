/* A file of records: whatever happens to its writer, what was added is there,
 * and nothing else. */
#define _GNU_SOURCE /* syscall */
#include "lockstep/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file_bytes.h"
#include "lockstep/file.h"
#include "state/folder_fixture.h"
#include "test.h"

/* In place of the C library's: a disk that fails. */
static bool syncs_fail, cuts_fail;

int fdatasync(int fd)
{
    (void)fd;
    errno = EIO;
    return syncs_fail ? -1 : 0;
}

int ftruncate(int fd, off_t length)
{
    errno = EIO;
    return cuts_fail ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

#define HEAD_SIZE   12
#define RECORD_HEAD 24

/* What a reader has seen: the texts of all records, one behind the other. */
struct seen {
    char text[4096];
    size_t n;
};

static int see(void *self, const struct ls_journal_record *record)
{
    struct seen *seen = self;
    const size_t used = strlen(seen->text);
    assert_true(used + record->size + 2 < sizeof seen->text);
    (void)snprintf(seen->text + used, sizeof seen->text - used, "%.*s;",
                   (int)record->size, (const char *)record->data);
    seen->n++;
    return LS_OK;
}

static int try_open(const char *path, ls_journal **out, struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    return ls_journal_open(out, &(struct ls_journal_options){
                                    .path = path, .fn = see, .self = seen});
}

static void append(ls_journal *journal, const char *text)
{
    const struct ls_journal_record record = {text, strlen(text)};
    assert_ok(ls_journal_append(journal, &record));
    assert_ok(ls_journal_flush(journal));
}

static void assert_holds(const char *path, const char *texts)
{
    ls_journal *journal;
    struct seen seen;
    assert_ok(try_open(path, &journal, &seen));
    assert_string_equal(seen.text, texts);
    ls_journal_close(&journal);
}

static void write_three(const char *path)
{
    ls_journal *journal;
    struct seen seen;
    assert_ok(try_open(path, &journal, &seen));
    append(journal, "one");
    append(journal, "");
    append(journal, "three");
    ls_journal_close(&journal);
}

/* Where the records of write_three() end. */
static const size_t ends[] = {HEAD_SIZE, HEAD_SIZE + RECORD_HEAD + 3,
                              HEAD_SIZE + 2 * RECORD_HEAD + 3,
                              HEAD_SIZE + 3 * RECORD_HEAD + 8};
static const char *const texts[] = {"", "one;", "one;;", "one;;three;"};

EACH_TEST(folder_set_up, folder_tear_down)

TEST(what_was_added_is_read_in_order)
{
    const struct place *place = *state;
    write_three(place->path);
    assert_holds(place->path, "one;;three;");
    ls_journal *journal;
    struct seen seen;
    assert_ok(try_open(place->path, &journal, &seen));
    append(journal, "four");
    struct ls_journal_stats stats;
    ls_journal_stats(journal, &stats);
    assert_int_equal(stats.records, 4);
    assert_int_equal(stats.bytes, ends[3] + RECORD_HEAD + 4);
    assert_int_equal(stats.torn, 0);
    ls_journal_close(&journal);
    assert_null(journal);
    ls_journal_close(&journal);
    assert_holds(place->path, "one;;three;four;");
}

static uint64_t syncs_of(const ls_journal *journal)
{
    struct ls_journal_stats stats;
    ls_journal_stats(journal, &stats);
    return stats.syncs;
}

TEST(records_in_a_row_cost_one_flush)
{
    const struct place *place = *state;
    ls_journal *journal;
    struct seen seen;
    const struct ls_journal_record record = {"kept", 4};
    assert_ok(try_open(place->path, &journal, &seen));
    const uint64_t before = syncs_of(journal);
    for (int i = 0; i < 3; i++)
        assert_ok(ls_journal_append(journal, &record));
    assert_int_equal(syncs_of(journal), before);
    assert_ok(ls_journal_flush(journal));
    assert_int_equal(syncs_of(journal), before + 1);
    assert_ok(ls_journal_flush(journal));
    assert_int_equal(syncs_of(journal), before + 1);
    ls_journal_close(&journal);
    assert_holds(place->path, "kept;kept;kept;");
}

/* Three records, the first n of them flushed each, and the second wiped out, as
 * a disk may that lost power. */
static int open_with_a_hole(const char *path, int n, ls_journal **journal,
                            struct seen *seen)
{
    unsigned char bytes[256];
    assert_ok(try_open(path, journal, seen));
    const struct ls_journal_record records[] = {
        {"one", 3}, {"two", 3}, {"3", 1}};
    for (int i = 0; i < 3; i++) {
        assert_ok(ls_journal_append(*journal, &records[i]));
        if (i < n)
            assert_ok(ls_journal_flush(*journal));
    }
    ls_journal_close(journal);
    const size_t size = read_bytes(path, bytes, sizeof bytes);
    memset(bytes + ends[1], 0, RECORD_HEAD + 3);
    write_bytes(path, bytes, size);
    return try_open(path, journal, seen);
}

TEST(a_hole_in_what_was_not_flushed_is_the_end)
{
    const struct place *place = *state;
    ls_journal *journal;
    struct seen seen;
    for (int n = 0; n < 2; n++) {
        assert_ok(open_with_a_hole(place->path, n, &journal, &seen));
        assert_string_equal(seen.text, "one;");
        append(journal, "more");
        ls_journal_close(&journal);
        assert_holds(place->path, "one;more;");
        assert_int_equal(unlink(place->path), 0);
    }
    assert_fails(open_with_a_hole(place->path, 2, &journal, &seen), LS_EPROTO);
}

TEST(a_file_cut_anywhere_loses_only_what_was_not_finished)
{
    const struct place *place = *state;
    unsigned char bytes[256];
    write_three(place->path);
    const size_t size = read_bytes(place->path, bytes, sizeof bytes);
    assert_int_equal(size, ends[3]);
    for (size_t length = 0; length < size; length++) {
        size_t whole = 0;
        while (ends[whole + 1] <= length)
            whole++;
        write_bytes(place->path, bytes, length);
        ls_journal *journal;
        struct seen seen;
        struct ls_journal_stats stats;
        assert_ok(try_open(place->path, &journal, &seen));
        assert_string_equal(seen.text, texts[whole]);
        ls_journal_stats(journal, &stats);
        assert_int_equal(stats.torn,
                         length - (length < HEAD_SIZE ? 0 : ends[whole]));
        append(journal, "more");
        ls_journal_close(&journal);
        char expected[64];
        (void)snprintf(expected, sizeof expected, "%smore;", texts[whole]);
        assert_holds(place->path, expected);
    }
}

TEST(space_that_was_never_written_is_cut_off)
{
    const struct place *place = *state;
    for (size_t n = 1; n < 10000; n = 2 * n + 1) {
        write_three(place->path);
        assert_int_equal(truncate(place->path, (off_t)(ends[3] + n)), 0);
        assert_holds(place->path, "one;;three;");
        struct stat found;
        assert_int_equal(stat(place->path, &found), 0);
        assert_int_equal(found.st_size, ends[3]);
        assert_int_equal(unlink(place->path), 0);
    }
}

/* A record behind it tells that it was on disk; the last one may never have
 * come there. */
static void check_flipped(const char *path, size_t at)
{
    ls_journal *journal = NULL;
    struct seen seen;
    const int status = try_open(path, &journal, &seen);
    char offset[32];
    if (at < HEAD_SIZE) {
        assert_int_equal(status, at < 8 ? LS_EPROTO : LS_EMISMATCH);
    } else if (at >= ends[2]) {
        assert_int_equal(status, LS_OK);
        assert_string_equal(seen.text, "one;;");
        struct ls_journal_stats stats;
        ls_journal_stats(journal, &stats);
        assert_int_equal(stats.torn, ends[3] - ends[2]);
    } else {
        const size_t begin = at < ends[1] ? ends[0] : ends[1];
        assert_int_equal(status, LS_EPROTO);
        (void)snprintf(offset, sizeof offset, "at byte %zu:", begin);
        assert_error_has(offset);
    }
    ls_journal_close(&journal);
}

TEST(no_flipped_bit_goes_unnoticed)
{
    const struct place *place = *state;
    unsigned char bytes[256], after[256];
    write_three(place->path);
    const size_t size = read_bytes(place->path, bytes, sizeof bytes);
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1 << bit);
            write_bytes(place->path, bytes, size);
            check_flipped(place->path, at);
            /* What is refused is left as it is. */
            if (at < ends[2]) {
                assert_int_equal(read_bytes(place->path, after, sizeof after),
                                 size);
                assert_memory_equal(after, bytes, size);
            }
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
}

TEST(records_in_each_others_places_are_noticed)
{
    const struct place *place = *state;
    unsigned char bytes[256];
    ls_journal *journal;
    struct seen seen;
    assert_ok(try_open(place->path, &journal, &seen));
    append(journal, "a");
    append(journal, "b");
    append(journal, "c");
    ls_journal_close(&journal);
    const size_t size = read_bytes(place->path, bytes, sizeof bytes);
    unsigned char swapped[RECORD_HEAD + 1];
    unsigned char *first = bytes + HEAD_SIZE;
    memcpy(swapped, first, sizeof swapped);
    memcpy(first, first + sizeof swapped, sizeof swapped);
    memcpy(first + sizeof swapped, swapped, sizeof swapped);
    write_bytes(place->path, bytes, size);
    assert_fails(try_open(place->path, &journal, &seen), LS_EPROTO);
}

static int refuse_empty(void *self, const struct ls_journal_record *record)
{
    (void)self;
    return record->size > 0 ? LS_OK : ls_error(LS_EMISMATCH, "not mine");
}

TEST(a_reader_that_refuses_a_record_ends_the_opening)
{
    const struct place *place = *state;
    write_three(place->path);
    ls_journal *journal = NULL;
    assert_fails(ls_journal_open(&journal,
                                 &(struct ls_journal_options){
                                     .path = place->path, .fn = refuse_empty}),
                 LS_EMISMATCH);
    assert_null(journal);
    assert_error_has("byte 39: not mine");
}

TEST(compacting_leaves_just_the_records_given)
{
    const struct place *place = *state;
    write_three(place->path);
    ls_journal *journal;
    struct seen seen;
    const struct ls_journal_record records[] = {{"a", 1}, {"bc", 2}};
    struct ls_journal_stats stats;
    assert_ok(try_open(place->path, &journal, &seen));
    assert_ok(ls_journal_compact(journal, records, 2));
    ls_journal_stats(journal, &stats);
    assert_int_equal(stats.records, 2);
    assert_int_equal(stats.bytes, HEAD_SIZE + 2 * RECORD_HEAD + 3);
    append(journal, "d");
    assert_holds(place->path, "a;bc;d;");
    assert_ok(ls_journal_compact(journal, NULL, 0));
    append(journal, "e");
    ls_journal_close(&journal);
    assert_holds(place->path, "e;");
}

TEST(a_compacting_that_fails_leaves_the_old_records)
{
    const struct place *place = *state;
    char in_the_way[128];
    (void)snprintf(in_the_way, sizeof in_the_way, "%s.new", place->path);
    assert_int_equal(mkdir(in_the_way, 0777), 0);
    write_three(place->path);
    ls_journal *journal;
    struct seen seen;
    const struct ls_journal_record record = {"a", 1};
    assert_ok(try_open(place->path, &journal, &seen));
    assert_fails(ls_journal_compact(journal, &record, 1), LS_EIO);
    assert_error_has(in_the_way);
    append(journal, "four");
    ls_journal_close(&journal);
    assert_holds(place->path, "one;;three;four;");
}

TEST(a_record_that_is_too_long_is_refused)
{
    const struct place *place = *state;
    ls_journal *journal;
    struct seen seen;
    char *data = calloc(1, LS_JOURNAL_RECORD_MAX + 1);
    const struct ls_journal_record longest = {data, LS_JOURNAL_RECORD_MAX};
    const struct ls_journal_record longer = {data, LS_JOURNAL_RECORD_MAX + 1};
    assert_ok(try_open(place->path, &journal, &seen));
    assert_fails(ls_journal_append(journal, &longer), LS_ELIMIT);
    assert_fails(ls_journal_compact(journal, &longer, 1), LS_ELIMIT);
    assert_ok(ls_journal_append(journal, &longest));
    ls_journal_close(&journal);
    assert_ok(ls_journal_open(
        &journal, &(struct ls_journal_options){.path = place->path}));
    struct ls_journal_stats stats;
    ls_journal_stats(journal, &stats);
    assert_int_equal(stats.records, 1);
    ls_journal_close(&journal);
    free(data);
}

TEST(what_is_no_journal_is_refused)
{
    const struct place *place = *state;
    ls_journal *journal;
    struct seen seen;
    static const char *const others[] = {"x", "lsjrnl\n", "a file of text"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        write_bytes(place->path, others[i], strlen(others[i]));
        assert_fails(try_open(place->path, &journal, &seen), LS_EPROTO);
        assert_non_null(strstr(ls_error_text(), place->path));
    }
}

TEST(a_path_that_cannot_be_written_is_named)
{
    const struct place *place = *state;
    ls_journal *journal;
    struct seen seen;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/none/j", place->folder);
    assert_fails(try_open(path, &journal, &seen), LS_EIO);
    assert_error_has(path);
    assert_fails(try_open(place->folder, &journal, &seen), LS_EIO);
    assert_fails(try_open("/dev/full", &journal, &seen), LS_EIO);
    /* With room for what it is compacted to. */
    char longer[LS_PATH_MAX - 3];
    const size_t end = sizeof longer - 1;
    memset(longer, '/', sizeof longer);
    memcpy(longer, place->folder, strlen(place->folder));
    memcpy(longer + end - 1, "j", 2);
    assert_fails(try_open(longer, &journal, &seen), LS_ELIMIT);
    assert_null(journal);
    memcpy(longer + end - 2, "j", 2);
    assert_ok(try_open(longer, &journal, &seen));
    assert_ok(ls_journal_compact(journal, NULL, 0));
    ls_journal_close(&journal);
}

/* A limit on the size of files makes a write short first, and fail then. */
static void limit_files(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(a_full_disk_takes_no_part_of_a_record)
{
    const struct place *place = *state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old;
    assert_int_equal(sigaction(SIGXFSZ, &ignore, &old), 0);
    for (size_t room = 0; room < RECORD_HEAD + 4; room++) {
        write_three(place->path);
        ls_journal *journal;
        struct seen seen;
        struct ls_journal_stats stats;
        const struct ls_journal_record record = {"four", 4};
        assert_ok(try_open(place->path, &journal, &seen));
        limit_files((rlim_t)(ends[3] + room));
        const int status = ls_journal_append(journal, &record);
        limit_files(before.rlim_cur);
        assert_int_equal(status, LS_EIO);
        ls_journal_stats(journal, &stats);
        assert_int_equal(stats.bytes, ends[3]);
        assert_holds(place->path, "one;;three;");
        append(journal, "5");
        ls_journal_close(&journal);
        assert_holds(place->path, "one;;three;5;");
        assert_int_equal(unlink(place->path), 0);
    }
    assert_int_equal(sigaction(SIGXFSZ, &old, NULL), 0);
}

/* A part of the record is there, and cannot be cut off. */
static void break_an_append(const struct place *place, ls_journal *journal)
{
    const struct ls_journal_record record = {"four", 4};
    struct rlimit before;
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(sigaction(SIGXFSZ, &ignore, &old), 0);
    limit_files((rlim_t)(ends[3] + 5));
    cuts_fail = true;
    const int status = ls_journal_append(journal, &record);
    limit_files(before.rlim_cur);
    cuts_fail = false;
    assert_int_equal(sigaction(SIGXFSZ, &old, NULL), 0);
    assert_fails(status, LS_EIO);
    assert_error_has(place->path);
}

/* Nothing is added any more, and nothing said to be on disk, until what is
 * there is known. */
static void is_broken(ls_journal *journal)
{
    const struct ls_journal_record record = {"lost", 4};
    for (int i = 0; i < 2; i++) {
        assert_fails(ls_journal_append(journal, &record), LS_EIO);
        assert_fails(ls_journal_flush(journal), LS_EIO);
        assert_error_has("open it anew");
    }
}

TEST(after_a_flush_that_failed_nothing_is_added)
{
    const struct place *place = *state;
    const struct ls_journal_record kept = {"kept", 4};
    ls_journal *journal;
    struct seen seen;
    assert_ok(try_open(place->path, &journal, &seen));
    assert_ok(ls_journal_append(journal, &kept));
    syncs_fail = true;
    assert_fails(ls_journal_flush(journal), LS_EIO);
    assert_error_has(place->path);
    syncs_fail = false;
    is_broken(journal);
    assert_ok(ls_journal_compact(journal, &kept, 1));
    append(journal, "more");
    ls_journal_close(&journal);
    assert_holds(place->path, "kept;more;");
    syncs_fail = true;
    assert_fails(try_open(place->path, &journal, &seen), LS_EIO);
    assert_null(journal);
    syncs_fail = false;
}

TEST(after_an_append_that_cannot_be_undone_nothing_is_added)
{
    const struct place *place = *state;
    ls_journal *journal;
    struct seen seen;
    struct ls_journal_stats stats;
    write_three(place->path);
    assert_ok(try_open(place->path, &journal, &seen));
    break_an_append(place, journal);
    is_broken(journal);
    ls_journal_close(&journal);
    assert_ok(try_open(place->path, &journal, &seen));
    assert_string_equal(seen.text, "one;;three;");
    ls_journal_stats(journal, &stats);
    assert_int_equal(stats.torn, 5);
    append(journal, "four");
    ls_journal_close(&journal);
    assert_holds(place->path, "one;;three;four;");
}

TEST(a_removed_journal_leaves_nothing)
{
    const struct place *place = *state;
    char unfinished[sizeof place->path + 4];
    (void)snprintf(unfinished, sizeof unfinished, "%s.new", place->path);
    write_bytes(place->path, "half", 4);
    write_bytes(unfinished, "half", 4);
    ls_journal_remove(place->path);
    assert_int_equal(access(place->path, F_OK), -1);
    assert_int_equal(access(unfinished, F_OK), -1);
}
