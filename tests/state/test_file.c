/* Files and folders: each promise of lockstep/file.h on the disk of the
 * operating system. */
#include "lockstep/file.h"

#include <errno.h>
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

#include <cmocka.h>

#include "state/file_promises.h"
#include "state/folder_fixture.h"

/* In place of the C library's: so that it is seen what is synced, and that an
 * error is passed on. */
static unsigned n_file_syncs, n_folder_syncs;
static int sync_error;

static int note_sync(int fd)
{
    struct stat found;
    assert_int_equal(fstat(fd, &found), 0);
    if (S_ISDIR(found.st_mode))
        n_folder_syncs++;
    else
        n_file_syncs++;
    errno = sync_error;
    return sync_error != 0 ? -1 : 0;
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
}

#define PROMISE(name)                                                          \
    static void test_##name(void **state)                                      \
    {                                                                          \
        const struct place *place = *state;                                    \
        forget_syncs();                                                        \
        name(place->folder);                                                   \
    }
FILE_PROMISES(PROMISE)
#undef PROMISE

/* ---- what only a real disk shows ----------------------------------------- */

static void test_a_durable_replace_syncs_bytes_and_name(void **state)
{
    const struct place *place = *state;
    char temporary[128];
    const struct ls_file_part part = {"x", 1};
    forget_syncs();
    (void)snprintf(temporary, sizeof temporary, "%s.part", place->path);
    assert_int_equal(ls_file_replace(place->path, temporary, &part, 1, false),
                     LS_OK);
    assert_int_equal(n_file_syncs + n_folder_syncs, 0);
    assert_int_equal(ls_file_replace(place->path, temporary, &part, 1, true),
                     LS_OK);
    assert_int_equal(n_file_syncs, 1);
    assert_int_equal(n_folder_syncs, 1);
}

static void test_a_sync_that_fails_is_told(void **state)
{
    const struct place *place = *state;
    ls_file *file;
    forget_syncs();
    assert_int_equal(
        ls_file_open(&file, place->path, LS_FILE_WRITE | LS_FILE_CREATE),
        LS_OK);
    assert_int_equal(ls_file_sync(file), LS_OK);
    assert_int_equal(n_file_syncs, 1);
    sync_error = EIO;
    assert_int_equal(ls_file_sync(file), LS_EIO);
    assert_non_null(strstr(ls_error_text(), place->path));
    assert_int_equal(ls_file_sync_name(place->path), LS_EIO);
    assert_int_equal(n_folder_syncs, 1);
    /* Some file systems cannot sync a folder. */
    sync_error = EINVAL;
    assert_int_equal(ls_file_sync_name(place->path), LS_OK);
    forget_syncs();
    assert_int_equal(ls_file_close(&file), LS_OK);
}

static void test_folders_that_are_made_are_synced(void **state)
{
    const struct place *place = *state;
    char inner[128], outer[128];
    forget_syncs();
    (void)snprintf(outer, sizeof outer, "%s/a", place->folder);
    (void)snprintf(inner, sizeof inner, "%s/a/b", place->folder);
    assert_int_equal(ls_folder_make(inner), LS_OK);
    assert_int_equal(n_folder_syncs, 2);
    assert_int_equal(ls_folder_make(inner), LS_OK);
    assert_int_equal(n_folder_syncs, 2);
    assert_int_equal(ls_folder_remove(inner), LS_OK);
    sync_error = EACCES; /* who may not read it */
    assert_int_equal(ls_folder_make(inner), LS_OK);
    assert_int_equal(ls_folder_remove(inner), LS_OK);
    sync_error = EIO;
    assert_int_equal(ls_folder_make(inner), LS_EIO);
    assert_int_equal(ls_folder_remove(inner), LS_OK);
    assert_int_equal(ls_folder_remove(outer), LS_OK);
}

static void test_what_is_no_regular_file_is_refused(void **state)
{
    const struct place *place = *state;
    ls_file *file = NULL;
    void *data;
    size_t size;
    forget_syncs();
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_int_equal(ls_file_open(&file, place->path, 0), LS_EIO);
    assert_int_equal(ls_file_open(&file, place->path, LS_FILE_WRITE), LS_EIO);
    assert_non_null(strstr(ls_error_text(), "no regular file"));
    assert_int_equal(ls_file_read(place->path, 10, &data, &size), LS_EIO);
    assert_int_equal(ls_file_open(&file, "/dev/full", LS_FILE_WRITE), LS_EIO);
    assert_null(file);
}

static void test_a_link_stands_for_its_target(void **state)
{
    const struct place *place = *state;
    char link[128], temporary[128], target[LS_PATH_MAX];
    const struct ls_file_part part = {"7", 1};
    void *data;
    size_t size;
    forget_syncs();
    (void)snprintf(link, sizeof link, "%s/latest", place->folder);
    (void)snprintf(temporary, sizeof temporary, "%s.part", place->path);
    assert_int_equal(ls_file_read_link(link, target), LS_ENOENT);
    assert_int_equal(ls_file_symlink("j", link), LS_OK);
    assert_int_equal(ls_file_read_link(link, target), LS_OK);
    assert_string_equal(target, "j");
    assert_false(ls_file_exists(link)); /* that is, its target */
    assert_int_equal(ls_file_replace(place->path, temporary, &part, 1, false),
                     LS_OK);
    assert_true(ls_file_exists(link));
    assert_int_equal(ls_file_read(link, 10, &data, &size), LS_OK);
    assert_int_equal(size, 1);
    free(data);
    assert_int_equal(ls_file_symlink("other", link), LS_EEXIST);
    assert_int_equal(ls_file_read_link(place->path, target), LS_EINVAL);
    assert_non_null(strstr(ls_error_text(), place->path));
    assert_int_equal(ls_file_remove(link), LS_OK);
    assert_true(ls_file_exists(place->path));

    static char far[LS_PATH_MAX + 1];
    memset(far, 'x', LS_PATH_MAX);
    assert_int_equal(ls_file_symlink(far, link), LS_OK);
    assert_int_equal(ls_file_read_link(link, target), LS_ELIMIT);
    far[LS_PATH_MAX - 1] = '\0';
    assert_int_equal(ls_file_remove(link), LS_OK);
    assert_int_equal(ls_file_symlink(far, link), LS_OK);
    assert_int_equal(ls_file_read_link(link, target), LS_OK);
    assert_string_equal(target, far);
    assert_int_equal(ls_file_remove(link), LS_OK);
}

/* A process ends, however it does, and its lock is gone. */
static void test_a_lock_ends_with_its_process(void **state)
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
    assert_int_equal(ls_file_open(&file, place->path, 0), LS_OK);
    assert_int_equal(ls_file_lock(file, false), LS_OK);
    assert_int_equal(ls_file_close(&file), LS_OK);
}

/* "PID@TOKEN@NUMBER@HOST" */
static void test_a_name_of_a_dead_process_is_left_over(void **state)
{
    char host[65] = "", name[256];
    (void)state;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
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

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, folder_set_up, folder_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PROMISE(name) TEST(test_##name),
        FILE_PROMISES(PROMISE)
#undef PROMISE
            TEST(test_a_durable_replace_syncs_bytes_and_name),
        TEST(test_a_sync_that_fails_is_told),
        TEST(test_folders_that_are_made_are_synced),
        TEST(test_what_is_no_regular_file_is_refused),
        TEST(test_a_link_stands_for_its_target),
        TEST(test_a_lock_ends_with_its_process),
        TEST(test_a_name_of_a_dead_process_is_left_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
