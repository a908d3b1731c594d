/* Files and folders: each promise of lockstep/file.h on the disk of the
 * operating system. */
#define _GNU_SOURCE /* unshare */
#include "lockstep/file.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state/file_promises.h"
#include "state/folder_fixture.h"
#include "test.h"

/* In place of the C library's: so that it is seen what is synced, and that an
 * error is passed on. */
static unsigned n_file_syncs, n_folder_syncs;
static int sync_error;
static bool only_folders_fail;

static int note_sync(int fd)
{
    struct stat found;
    assert_int_equal(fstat(fd, &found), 0);
    if (S_ISDIR(found.st_mode))
        n_folder_syncs++;
    else
        n_file_syncs++;
    errno = sync_error;
    return sync_error != 0 && (S_ISDIR(found.st_mode) || !only_folders_fail)
               ? -1
               : 0;
}

int fsync(int fd)
{
    return note_sync(fd);
}

int fdatasync(int fd)
{
    return note_sync(fd);
}

static void forget_syncs(void)
{
    n_file_syncs = n_folder_syncs = 0;
    sync_error = 0;
    only_folders_fail = false;
}

EACH_TEST(folder_set_up, folder_tear_down)

#define PROMISE(name)                                                          \
    TEST(name)                                                                 \
    {                                                                          \
        const struct place *place = *state;                                    \
        forget_syncs();                                                        \
        name(place->folder);                                                   \
    }
FILE_PROMISES(PROMISE)
#undef PROMISE

/* ---- names -------------------------------------------------------------- */

TEST(a_path_is_a_folder_and_a_name)
{
    char path[16];
    (void)state;
    assert_ok(ls_file_path(path, sizeof path, "/tmp/mine", "state"));
    assert_string_equal(path, "/tmp/mine/state");
    assert_fails(ls_file_path(path, sizeof path - 1, "/tmp/mine", "state"),
                 LS_ELIMIT);
    assert_error_has("the folder /tmp/mine… has too long a name");
}

/* ---- what only a real disk shows ----------------------------------------- */

TEST(a_durable_replace_syncs_bytes_and_name)
{
    const struct place *place = *state;
    char temporary[128];
    const struct ls_file_part part = {"x", 1};
    forget_syncs();
    (void)snprintf(temporary, sizeof temporary, "%s.part", place->path);
    assert_ok(ls_file_replace(place->path, temporary, &part, 1, false));
    assert_int_equal(n_file_syncs + n_folder_syncs, 0);
    assert_ok(ls_file_replace(place->path, temporary, &part, 1, true));
    assert_int_equal(n_file_syncs, 1);
    assert_int_equal(n_folder_syncs, 1);
}

static char replaced_by(const struct place *place, char letter)
{
    char temporary[128], found;
    void *data;
    size_t size;
    const struct ls_file_part part = {&letter, 1};
    (void)snprintf(temporary, sizeof temporary, "%s.part", place->path);
    assert_fails(ls_file_replace(place->path, temporary, &part, 1, true),
                 LS_EIO);
    assert_false(ls_file_exists(temporary));
    assert_ok(ls_file_read(place->path, 1, &data, &size));
    found = *(char *)data;
    free(data);
    return found;
}

TEST(a_replace_whose_sync_fails_is_an_error)
{
    const struct place *place = *state;
    const struct ls_file_part part = {"o", 1};
    char temporary[128];
    forget_syncs();
    (void)snprintf(temporary, sizeof temporary, "%s.part", place->path);
    assert_ok(ls_file_replace(place->path, temporary, &part, 1, true));
    sync_error = EIO;
    assert_int_equal(replaced_by(place, 'n'), 'o');
    only_folders_fail = true; /* it has its new name by then */
    assert_int_equal(replaced_by(place, 'n'), 'n');
    forget_syncs();
}

TEST(a_sync_that_fails_is_told)
{
    const struct place *place = *state;
    ls_file *file;
    forget_syncs();
    assert_ok(ls_file_open(&file, place->path, LS_FILE_WRITE | LS_FILE_CREATE));
    assert_ok(ls_file_sync(file));
    assert_int_equal(n_file_syncs, 1);
    sync_error = EIO;
    assert_fails(ls_file_sync(file), LS_EIO);
    assert_non_null(strstr(ls_error_text(), place->path));
    assert_fails(ls_file_sync_name(place->path), LS_EIO);
    assert_int_equal(n_folder_syncs, 1);
    /* Some file systems cannot sync a folder. */
    sync_error = EINVAL;
    assert_ok(ls_file_sync_name(place->path));
    forget_syncs();
    assert_ok(ls_file_close(&file));
}

TEST(folders_that_are_made_are_synced)
{
    const struct place *place = *state;
    char inner[128], outer[128];
    forget_syncs();
    (void)snprintf(outer, sizeof outer, "%s/a", place->folder);
    (void)snprintf(inner, sizeof inner, "%s/a/b", place->folder);
    assert_ok(ls_folder_make(inner));
    assert_int_equal(n_folder_syncs, 3);
    /* Whoever has made it may have been killed before its sync. */
    assert_ok(ls_folder_make(inner));
    assert_int_equal(n_folder_syncs, 4);
    assert_ok(ls_folder_remove(inner));
    sync_error = EACCES; /* who may not read it */
    assert_ok(ls_folder_make(inner));
    assert_ok(ls_folder_remove(inner));
    sync_error = EIO;
    assert_fails(ls_folder_make(inner), LS_EIO);
    assert_fails(ls_folder_make(inner), LS_EIO);
    assert_ok(ls_folder_remove(inner));
    assert_ok(ls_folder_remove(outer));
}

TEST(a_link_to_nothing_is_no_folder)
{
    const struct place *place = *state;
    char link[128], inner[160];
    forget_syncs();
    (void)snprintf(link, sizeof link, "%s/a", place->folder);
    (void)snprintf(inner, sizeof inner, "%s/b", link);
    assert_ok(ls_file_symlink("none", link));
    assert_fails(ls_folder_make(link), LS_ENOENT);
    assert_fails(ls_folder_make(inner), LS_ENOENT);
    assert_error_has(link);
    assert_ok(ls_file_remove(link));
    assert_ok(ls_file_symlink(".", link));
    assert_ok(ls_folder_make(link));
    assert_ok(ls_file_remove(link));
}

TEST(what_is_no_regular_file_is_refused)
{
    const struct place *place = *state;
    ls_file *file = NULL;
    void *data;
    size_t size;
    forget_syncs();
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_fails(ls_file_open(&file, place->path, 0), LS_EIO);
    assert_fails(ls_file_open(&file, place->path, LS_FILE_WRITE), LS_EIO);
    assert_error_has("not a regular file");
    assert_fails(ls_file_read(place->path, 10, &data, &size), LS_EIO);
    assert_fails(ls_file_open(&file, "/dev/full", LS_FILE_WRITE), LS_EIO);
    assert_null(file);
}

static bool is_pipe(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0 && S_ISFIFO(found.st_mode);
}

/* Neither by its name nor by one that leads to it, such as /dev/stdout. */
TEST(what_is_no_regular_file_is_not_replaced)
{
    const struct place *place = *state;
    char link[128], temporary[128];
    const struct ls_file_part part = {"7", 1};
    forget_syncs();
    (void)snprintf(link, sizeof link, "%s/latest", place->folder);
    (void)snprintf(temporary, sizeof temporary, "%s.part", place->path);
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_ok(ls_file_symlink("j", link));
    assert_fails(ls_file_replace(place->path, temporary, &part, 1, false),
                 LS_EIO);
    assert_error_has("not a regular file");
    assert_error_has(place->path);
    assert_fails(ls_file_replace(link, temporary, &part, 1, false), LS_EIO);
    assert_false(ls_file_exists(temporary));
    assert_fails(ls_file_rename(link, place->path), LS_EIO);
    assert_error_has("no regular file");
    assert_true(is_pipe(place->path));
    assert_ok(ls_file_remove(link));
}

TEST(a_folder_that_is_not_there_is_named_by_the_file)
{
    const struct place *place = *state;
    char path[128], temporary[160];
    const struct ls_file_part part = {"7", 1};
    forget_syncs();
    (void)snprintf(path, sizeof path, "%s/none/j", place->folder);
    (void)snprintf(temporary, sizeof temporary, "%s.part", path);
    assert_fails(ls_file_replace(path, temporary, &part, 1, false), LS_EIO);
    assert_error_has("none/j: the folder of");
}

TEST(a_link_stands_for_its_target)
{
    const struct place *place = *state;
    char link[128], temporary[128], target[LS_PATH_MAX];
    const struct ls_file_part part = {"7", 1};
    void *data;
    size_t size;
    forget_syncs();
    (void)snprintf(link, sizeof link, "%s/latest", place->folder);
    (void)snprintf(temporary, sizeof temporary, "%s.part", place->path);
    assert_fails(ls_file_read_link(link, target), LS_ENOENT);
    assert_ok(ls_file_symlink("j", link));
    assert_ok(ls_file_read_link(link, target));
    assert_string_equal(target, "j");
    assert_false(ls_file_exists(link)); /* that is, its target */
    assert_ok(ls_file_replace(place->path, temporary, &part, 1, false));
    assert_true(ls_file_exists(link));
    assert_ok(ls_file_read(link, 10, &data, &size));
    assert_int_equal(size, 1);
    free(data);
    assert_fails(ls_file_symlink("other", link), LS_EEXIST);
    assert_fails(ls_file_read_link(place->path, target), LS_EINVAL);
    assert_non_null(strstr(ls_error_text(), place->path));
    assert_ok(ls_file_remove(link));
    assert_true(ls_file_exists(place->path));

    static char far[LS_PATH_MAX + 1];
    memset(far, 'x', LS_PATH_MAX);
    assert_ok(ls_file_symlink(far, link));
    assert_fails(ls_file_read_link(link, target), LS_ELIMIT);
    far[LS_PATH_MAX - 1] = '\0';
    assert_ok(ls_file_remove(link));
    assert_ok(ls_file_symlink(far, link));
    assert_ok(ls_file_read_link(link, target));
    assert_string_equal(target, far);
    assert_ok(ls_file_remove(link));
}

/* A process ends, however it does, and its lock is gone. */
TEST(a_lock_ends_with_its_process)
{
    const struct place *place = *state;
    ls_file *file;
    forget_syncs();
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const bool good =
            ls_file_open(&file, place->path, LS_FILE_WRITE | LS_FILE_CREATE) ==
                LS_OK &&
            ls_file_lock(file, false) == LS_OK;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_ok(ls_file_open(&file, place->path, 0));
    assert_ok(ls_file_lock(file, false));
    assert_ok(ls_file_close(&file));
}

/* Call fn as the first process of a container of its own; false: this user may
 * not make one. It writes what it finds to `out`. */
static pid_t contain(void (*fn)(const char *in, int out, int end),
                     const char *in, int out, int end)
{
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (unshare(CLONE_NEWPID) != 0)
        _exit(0);
    const pid_t first = fork();
    if (first == 0) {
        fn(in, out, end);
        _exit(0);
    }
    (void)waitpid(first, NULL, 0);
    _exit(0);
}

/* It stays until the others are done: its number is nobody else's until then.
 */
static void write_a_name(const char *in, int out, int end)
{
    char name[LS_FILE_UNIQUE_MAX] = "", byte;
    (void)in;
    ls_file_unique(name);
    if (write(out, name, sizeof name) == (ssize_t)sizeof name)
        (void)!read(end, &byte, 1);
}

static void look_at_a_name(const char *in, int out, int end)
{
    char name[LS_FILE_UNIQUE_MAX];
    (void)end;
    /* Of the first process there, as this one is here. */
    (void)snprintf(name, sizeof name, "1@1@0@%s", strrchr(in, '@') + 1);
    const char answer = ls_file_is_left_over(name) ? 'y' : 'n';
    (void)!write(out, &answer, 1);
}

TEST(a_name_of_another_container_is_not_left_over)
{
    int one[2], other[2], end[2];
    char name[LS_FILE_UNIQUE_MAX], answer = '?';
    assert_int_equal(pipe(one) | pipe(other) | pipe(end), 0);
    const pid_t writer = contain(write_a_name, NULL, one[1], end[0]);
    assert_int_equal(close(one[1]), 0);
    const ssize_t n = read(one[0], name, sizeof name);
    if (n == (ssize_t)sizeof name) {
        const pid_t looker = contain(look_at_a_name, name, other[1], end[0]);
        assert_int_equal(read(other[0], &answer, 1), 1);
        assert_int_equal(waitpid(looker, NULL, 0), looker);
    }
    assert_int_equal(write(end[1], "", 1), 1);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    const int all[] = {one[0], other[0], other[1], end[0], end[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_int_equal(close(all[i]), 0);
    if (n == 0)
        skip(); /* this user may not make containers */
    assert_int_equal(answer, 'n');
}

/* Else all hosts with such names are one, and each removes what the others are
 * writing. */
TEST(a_name_says_where_it_was_written_however_long_that_is_called)
{
    char host[64 + 1], name[LS_FILE_UNIQUE_MAX];
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWUTS) != 0 ||
            sethostname(host, sizeof host - 1) != 0)
            _exit(2);
        ls_file_unique(name);
        _exit(strncmp(strrchr(name, '@') + 1, host, sizeof host - 1) == 0 ? 0
                                                                          : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 2)
        skip(); /* this user may not name hosts */
    assert_int_equal(status, 0);
}

/* "PID@TOKEN@NUMBER@HOST" */
TEST(a_name_of_a_dead_process_is_left_over)
{
    char own[LS_FILE_UNIQUE_MAX], name[256];
    ls_file_unique(own);
    const char *const host = strrchr(own, '@') + 1;
    const struct {
        const char *format;
        long pid;
        bool left_over;
    } names[] = {{"%ld@1@0@%s", (long)getpid(), true}, /* an earlier life */
                 {"%ld@1@0@%s", 0x7ffffffL, true},
                 {"%ld@1@0@%s", (long)getppid(), false}, /* it lives */
                 {"%ld@1@0@not-%s", 0x7ffffffL, false},
                 {"%ld@1@0%s", 0x7ffffffL, false},
                 {"x%ld@1@0@%s", 0x7ffffffL, false},
                 {"%ld@1@0@%s", 0L, false}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(name, sizeof name, names[i].format, names[i].pid, host);
        assert_int_equal(ls_file_is_left_over(name), names[i].left_over);
    }
}
