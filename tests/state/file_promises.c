#include "state/file_promises.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"
#include "test.h"

#define PATH_BYTES 256

static const char *in(const char *folder, const char *name, char *path)
{
    const int n = snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    assert_in_range(n, 1, PATH_BYTES - 1);
    return path;
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[PATH_BYTES], temporary[PATH_BYTES];
    const struct ls_file_part parts[] = {{text, strlen(text)}, {NULL, 0}};
    assert_ok(ls_file_replace(in(folder, name, path),
                              in(folder, ".new", temporary), parts, 2, true));
}

static void holds(const char *folder, const char *name, const char *text)
{
    char path[PATH_BYTES];
    void *data = NULL;
    size_t size = 0;
    assert_ok(ls_file_read(in(folder, name, path), 4096, &data, &size));
    assert_non_null(data);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    free(data);
}

static void drop(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    assert_ok(ls_file_remove(in(folder, name, path)));
}

static ls_file *open_file(const char *folder, const char *name, unsigned flags)
{
    char path[PATH_BYTES];
    ls_file *file = NULL;
    assert_ok(ls_file_open(&file, in(folder, name, path), flags));
    return file;
}

static void close_file(ls_file **file)
{
    assert_ok(ls_file_close(file));
    assert_null(*file);
}

void a_file_is_read_as_it_was_written(const char *folder)
{
    put(folder, "f", "some text");
    holds(folder, "f", "some text");
    put(folder, "f", "");
    holds(folder, "f", "");
    drop(folder, "f");
    assert_ok(ls_file_close(NULL));
}

void a_file_that_is_replaced_is_old_or_new(const char *folder)
{
    char path[PATH_BYTES], temporary[PATH_BYTES];
    put(folder, "f", "old");
    const struct ls_file_part parts[] = {{"n", 1}, {"ew", 2}};
    (void)in(folder, "f", path);
    /* A folder that is not there. */
    assert_fails(
        ls_file_replace(path, in(folder, "none/t", temporary), parts, 2, true),
        LS_EIO);
    assert_error_has(temporary);
    holds(folder, "f", "old");
    assert_ok(
        ls_file_replace(path, in(folder, "t", temporary), parts, 2, false));
    holds(folder, "f", "new");
    assert_false(ls_file_exists(temporary));
    drop(folder, "f");
}

void reading_has_limits(const char *folder)
{
    char path[PATH_BYTES];
    void *data = NULL;
    size_t size = 17;
    (void)in(folder, "f", path);
    assert_fails(ls_file_read(path, 10, &data, &size), LS_ENOENT);
    assert_error_has(path);
    put(folder, "f", "12345");
    assert_fails(ls_file_read(path, 4, &data, &size), LS_ELIMIT);
    assert_error_has(path);
    assert_null(data);
    assert_int_equal(size, 17);
    assert_ok(ls_file_read(path, 5, &data, &size));
    free(data);
    drop(folder, "f");
    assert_fails(ls_file_read(folder, 10, &data, &size), LS_EIO);
    char longer[LS_PATH_MAX + 8];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_fails(ls_file_read(longer, 10, &data, &size), LS_ELIMIT);
    assert_fails(ls_folder_make(longer), LS_ELIMIT);
    ls_file *file = (ls_file *)(void *)&file;
    assert_fails(ls_file_open(&file, longer, LS_FILE_WRITE), LS_ELIMIT);
    assert_null(file);
    assert_fails(ls_file_replace(longer, path, NULL, 0, true), LS_ELIMIT);
    assert_fails(ls_file_replace(path, longer, NULL, 0, true), LS_ELIMIT);
    assert_false(ls_file_exists(path));
    assert_fails(ls_file_sync_name(longer), LS_EIO);
}

void parts_are_read_and_written_where_they_are(const char *folder)
{
    char bytes[8] = "";
    uint64_t size = 0;
    ls_file *file = open_file(folder, "f", LS_FILE_WRITE | LS_FILE_CREATE);
    assert_ok(ls_file_write_at(file, "abcdef", 6, 0));
    assert_ok(ls_file_write_at(file, "XY", 2, 2));
    assert_ok(ls_file_write_at(file, "", 0, 100));
    assert_ok(ls_file_size(file, &size));
    assert_int_equal(size, 6);
    assert_ok(ls_file_read_at(file, bytes, 3, 1));
    assert_memory_equal(bytes, "bXY", 3);
    assert_ok(ls_file_read_at(file, bytes, 0, 6));
    assert_fails(ls_file_read_at(file, bytes, 2, 5), LS_EIO);
    assert_error_has("cut short");
    assert_ok(ls_file_sync(file));
    /* Others see it at once. */
    holds(folder, "f", "abXYef");
    close_file(&file);
    drop(folder, "f");
}

void what_is_beyond_the_end_is_zeros(const char *folder)
{
    char bytes[10];
    ls_file *file = open_file(folder, "f", LS_FILE_WRITE | LS_FILE_CREATE);
    assert_ok(ls_file_write_at(file, "ab", 2, 8));
    assert_ok(ls_file_read_at(file, bytes, 10, 0));
    assert_memory_equal(bytes, "\0\0\0\0\0\0\0\0ab", 10);
    close_file(&file);
    drop(folder, "f");
}

void a_cut_file_is_as_long_as_it_was_told(const char *folder)
{
    char bytes[4];
    uint64_t size = 0;
    put(folder, "f", "abcdef");
    ls_file *file = open_file(folder, "f", LS_FILE_WRITE);
    assert_ok(ls_file_cut(file, 2));
    holds(folder, "f", "ab");
    /* What was there is gone, also when it grows again. */
    assert_ok(ls_file_cut(file, 4));
    assert_ok(ls_file_read_at(file, bytes, 4, 0));
    assert_memory_equal(bytes, "ab\0\0", 4);
    close_file(&file);
    file = open_file(folder, "f", LS_FILE_WRITE | LS_FILE_EMPTY);
    assert_ok(ls_file_size(file, &size));
    assert_int_equal(size, 0);
    close_file(&file);
    drop(folder, "f");
}

void flags_say_what_may_be_done(const char *folder)
{
    char path[PATH_BYTES], byte;
    ls_file *file = NULL;
    (void)in(folder, "f", path);
    assert_fails(ls_file_open(&file, path, 0), LS_ENOENT);
    assert_fails(ls_file_open(&file, path, LS_FILE_WRITE), LS_ENOENT);
    assert_null(file);
    put(folder, "f", "abc");
    file = open_file(folder, "f", LS_FILE_WRITE | LS_FILE_CREATE);
    assert_ok(ls_file_read_at(file, &byte, 1, 2));
    close_file(&file);
    file = open_file(folder, "f", 0);
    assert_fails(ls_file_write_at(file, "x", 1, 0), LS_EIO);
    assert_error_has(path);
    assert_fails(ls_file_cut(file, 0), LS_EIO);
    close_file(&file);
    assert_fails(ls_file_open(&file, path, LS_FILE_EMPTY), LS_EINVAL);
    assert_fails(ls_file_open(&file, path, LS_FILE_CREATE), LS_EINVAL);
    assert_error_has(path);
    assert_null(file);
    holds(folder, "f", "abc");
    drop(folder, "f");
    (void)in(folder, "none/f", path);
    assert_fails(ls_file_open(&file, path, LS_FILE_WRITE | LS_FILE_CREATE),
                 LS_ENOENT);
    assert_error_has("folder");
}

void a_locked_file_is_somebody_elses(const char *folder)
{
    put(folder, "f", "");
    ls_file *one = open_file(folder, "f", 0);
    ls_file *other = open_file(folder, "f", LS_FILE_WRITE);
    assert_ok(ls_file_lock(one, false));
    assert_ok(ls_file_lock(one, false)); /* it has */
    assert_fails(ls_file_lock(other, false), LS_EAGAIN);
    assert_fails(ls_file_lock(other, true), LS_EAGAIN);
    close_file(&one);
    assert_ok(ls_file_lock(other, false));
    close_file(&other);
    drop(folder, "f");
}

void a_lock_may_be_shared(const char *folder)
{
    put(folder, "f", "");
    ls_file *one = open_file(folder, "f", 0);
    ls_file *other = open_file(folder, "f", LS_FILE_WRITE);
    ls_file *third = open_file(folder, "f", 0);
    assert_ok(ls_file_lock(one, false));
    assert_ok(ls_file_lock(one, true));
    assert_ok(ls_file_lock(other, true));
    assert_ok(ls_file_lock(third, true));
    assert_fails(ls_file_lock(third, false), LS_EAGAIN);
    close_file(&one);
    /* And third has none any more. */
    assert_ok(ls_file_lock(other, false));
    assert_fails(ls_file_lock(third, true), LS_EAGAIN);
    close_file(&other);
    assert_ok(ls_file_lock(third, true));
    close_file(&third);
    drop(folder, "f");
}

void a_file_knows_whether_it_has_its_name(const char *folder)
{
    put(folder, "f", "one");
    ls_file *file = open_file(folder, "f", 0);
    assert_true(ls_file_is_named(file));
    put(folder, "f", "two");
    assert_false(ls_file_is_named(file));
    drop(folder, "f");
    assert_false(ls_file_is_named(file));
    close_file(&file);
}

void a_name_moves_and_goes(const char *folder)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    (void)in(folder, "from", from);
    (void)in(folder, "to", to);
    assert_fails(ls_file_rename(from, to), LS_ENOENT);
    assert_fails(ls_file_remove(from), LS_ENOENT);
    put(folder, "from", "new");
    (void)in(folder, "none/to", to);
    assert_fails(ls_file_rename(from, to), LS_ENOENT);
    assert_error_has(to);
    holds(folder, "from", "new");
    (void)in(folder, "to", to);
    put(folder, "to", "old");
    assert_ok(ls_file_rename(from, to));
    assert_false(ls_file_exists(from));
    assert_true(ls_file_exists(to));
    holds(folder, "to", "new");
    assert_ok(ls_file_rename(to, to));
    assert_ok(ls_file_sync_name(to));
    assert_ok(ls_file_remove(to));
    assert_false(ls_file_exists(to));
}

void an_open_file_outlives_its_name(const char *folder)
{
    char bytes[3];
    put(folder, "f", "abc");
    ls_file *file = open_file(folder, "f", 0);
    drop(folder, "f");
    assert_ok(ls_file_read_at(file, bytes, 3, 0));
    assert_memory_equal(bytes, "abc", 3);
    close_file(&file);
}

void folders_are_made_with_those_above(const char *folder)
{
    char path[PATH_BYTES], above[PATH_BYTES];
    (void)in(folder, "a/b", path);
    assert_ok(ls_folder_make(path));
    assert_ok(ls_folder_make(path));
    assert_true(ls_file_exists(path));
    put(path, "f", "text");
    holds(folder, "a/b/f", "text");
    holds(folder, "a//b/f", "text");
    drop(path, "f");
    assert_ok(ls_folder_remove(path));
    assert_fails(ls_folder_remove(path), LS_ENOENT);
    assert_ok(ls_folder_remove(in(folder, "a", above)));
}

void a_folder_that_holds_something_stays(const char *folder)
{
    char path[PATH_BYTES];
    (void)in(folder, "a", path);
    assert_ok(ls_folder_make(path));
    put(path, "f", "");
    assert_fails(ls_folder_remove(path), LS_EEXIST);
    assert_error_has(path);
    assert_fails(ls_file_remove(path), LS_EIO);
    assert_fails(ls_folder_remove(in(path, "f", (char[PATH_BYTES]){0})),
                 LS_EIO);
    drop(path, "f");
    assert_ok(ls_folder_remove(path));
}

static int note_name(void *self, const char *name)
{
    char *names = self;
    assert_int_equal(strlen(name), 1);
    names[strlen(names)] = name[0];
    return name[0] == 'z' ? LS_ECANCELED : LS_OK;
}

static int remove_name(void *folder, const char *name)
{
    char path[PATH_BYTES];
    return ls_file_remove(in(folder, name, path));
}

void all_names_of_a_folder_are_listed(const char *folder)
{
    char names[8] = "", path[PATH_BYTES];
    assert_ok(ls_folder_each(folder, note_name, names));
    assert_string_equal(names, "");
    put(folder, "x", "");
    put(folder, "y", "");
    assert_ok(ls_folder_each(folder, note_name, names));
    assert_int_equal(strlen(names), 2);
    assert_true(strchr(names, 'x') != NULL && strchr(names, 'y') != NULL);
    put(folder, "z", "");
    assert_fails(ls_folder_each(folder, note_name, names), LS_ECANCELED);
    /* They may go meanwhile. */
    memcpy(path, folder, strlen(folder) + 1);
    assert_ok(ls_folder_each(folder, remove_name, path));
    memset(names, 0, sizeof names);
    assert_ok(ls_folder_each(folder, note_name, names));
    assert_string_equal(names, "");
    (void)in(folder, "none", path);
    assert_fails(ls_folder_each(path, note_name, names), LS_ENOENT);
    assert_error_has(path);
}

void what_is_in_the_way_is_named(const char *folder)
{
    char path[PATH_BYTES], inner[PATH_BYTES];
    ls_file *file = NULL;
    put(folder, "f", "");
    (void)in(folder, "f", path);
    (void)in(folder, "f/g", inner);
    assert_fails(ls_folder_make(path), LS_EIO);
    assert_error_has(path);
    assert_fails(ls_folder_make(inner), LS_EIO);
    assert_error_has(inner);
    assert_error_has("the folder");
    assert_fails(ls_file_open(&file, inner, LS_FILE_WRITE | LS_FILE_CREATE),
                 LS_EIO);
    assert_error_has(inner);
    assert_fails(ls_file_open(&file, folder, LS_FILE_WRITE), LS_EIO);
    assert_null(file);
    assert_ok(ls_folder_make(in(folder, "d", path)));
    assert_fails(ls_file_rename(in(folder, "f", inner), path), LS_EIO);
    assert_ok(ls_folder_remove(path));
    drop(folder, "f");
}

void no_two_unfinished_files_have_one_name(const char *folder)
{
    char one[LS_FILE_UNIQUE_MAX], other[LS_FILE_UNIQUE_MAX];
    (void)folder;
    ls_file_unique(one);
    ls_file_unique(other);
    assert_string_not_equal(one, other);
    assert_null(strchr(one, '/'));
    assert_false(ls_file_is_left_over(one));
    assert_false(ls_file_is_left_over(""));
    assert_false(ls_file_is_left_over("12@"));
}
