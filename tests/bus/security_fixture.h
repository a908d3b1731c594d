/* security_fixture.h - each test has a folder of its own, open to this user
 * alone, and catches what is logged. */
#ifndef LOCKSTEP_TESTS_BUS_SECURITY_FIXTURE_H
#define LOCKSTEP_TESTS_BUS_SECURITY_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/security.h"
#include "test.h"

struct path {
    char text[512];
};

struct scratch {
    char folder[64];
    size_t n_open; /* descriptors: as many are open at the end */
    int n_lines;   /* that were logged */
    char last_line[4096];
};

static inline struct path in(const struct scratch *scratch, const char *name)
{
    struct path path;
    (void)snprintf(path.text, sizeof path.text, "%s/%s", scratch->folder, name);
    return path;
}

/* All that is in a folder; links are not followed. */
static inline void empty_folder(int fd)
{
    DIR *entries = fdopendir(fd);
    assert_non_null(entries);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (unlinkat(fd, name, 0) == 0)
            continue;
        const int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        assert_true(inner >= 0);
        empty_folder(inner);
        assert_int_equal(unlinkat(fd, name, AT_REMOVEDIR), 0);
    }
    assert_int_equal(closedir(entries), 0);
}

static inline void remove_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    assert_true(fd >= 0);
    empty_folder(fd);
    assert_int_equal(rmdir(folder), 0);
}

static inline void keep_line(void *self, const char *line)
{
    struct scratch *scratch = self;
    scratch->n_lines++;
    (void)snprintf(scratch->last_line, sizeof scratch->last_line, "%s", line);
}

static inline size_t count_files(const char *folder)
{
    size_t n = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    while (readdir(entries) != NULL)
        n++;
    assert_int_equal(closedir(entries), 0);
    return n - 2;
}

static inline int scratch_set_up(void **state)
{
    struct scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    scratch->n_open = count_files("/proc/self/fd");
    memcpy(scratch->folder, "/tmp/lockstep-XXXXXX",
           sizeof "/tmp/lockstep-XXXXXX");
    assert_non_null(mkdtemp(scratch->folder));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", scratch->folder, 1), 0);
    ls_log_redirect(keep_line, scratch);
    *state = scratch;
    return 0;
}

static inline int scratch_tear_down(void **state)
{
    struct scratch *scratch = *state;
    ls_log_redirect(NULL, NULL);
    remove_folder(scratch->folder);
    assert_int_equal(count_files("/proc/self/fd"), scratch->n_open);
    free(scratch);
    return 0;
}

/* The mode of a file, without its type. */
static inline unsigned mode_of(const char *path)
{
    struct stat is;
    assert_int_equal(lstat(path, &is), 0);
    return is.st_mode & 07777;
}

static inline bool is_there(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0;
}

static inline void write_file(const char *path, const void *bytes, size_t size,
                              mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

/* out: NUL-terminated. */
static inline size_t read_file(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    const ssize_t n = read(fd, out, room - 1);
    assert_true(n >= 0);
    out[n] = '\0';
    assert_int_equal(close(fd), 0);
    return (size_t)n;
}

/* That a call failed so, with all of these words in its text. */
static inline void failed(int status, int wanted, const char *word)
{
    if (status != wanted || strstr(ls_error_text(), word) == NULL)
        fail_msg("%s, \"%s\"; expected %s, \"…%s…\"", ls_status_name(status),
                 ls_error_text(), ls_status_name(wanted), word);
}

#endif
