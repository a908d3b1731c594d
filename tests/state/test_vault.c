/* A folder of entries: what was put is read, and nothing else is. */
#include "lockstep/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "file_bytes.h"
#include "lockstep/file.h"
#include "lockstep/runtime.h"
#include "state/folder_fixture.h"
#include "test.h"

#define OK(call) assert_int_equal(call, LS_OK)

static ls_vault *open_vault(const struct place *place)
{
    ls_vault *vault;
    OK(ls_vault_open(&vault,
                     &(struct ls_vault_options){.folder = place->folder}));
    return vault;
}

static void in_folder(const struct place *place, const char *name,
                      char path[512])
{
    (void)snprintf(path, 512, "%s/%s", place->folder, name);
}

static void write_file(const struct place *place, const char *name,
                       const void *data, size_t size)
{
    char path[512];
    in_folder(place, name, path);
    write_bytes(path, data, size);
}

static bool is_there(const struct place *place, const char *name)
{
    char path[512];
    struct stat found;
    in_folder(place, name, path);
    return stat(path, &found) == 0;
}

static unsigned n_files(const struct place *place)
{
    DIR *entries = opendir(place->folder);
    unsigned n = 0;
    assert_non_null(entries);
    while (readdir(entries) != NULL)
        n++;
    assert_int_equal(closedir(entries), 0);
    return n - 2; /* "." and ".." */
}

static void put(ls_vault *vault, const char *name, const char *text)
{
    OK(ls_vault_put(vault, name, text, strlen(text), false));
}

static void has(ls_vault *vault, const char *name, const char *text)
{
    void *data = NULL;
    size_t size = 0;
    OK(ls_vault_get(vault, name, 1000, &data, &size));
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    free(data);
}

static int get_fails(ls_vault *vault, const char *name)
{
    void *data = NULL;
    size_t size = 77;
    const int status = ls_vault_get(vault, name, 1000, &data, &size);
    assert_int_not_equal(status, LS_OK);
    assert_null(data);
    assert_int_equal(size, 77);
    return status;
}

/* Shards "0", "1" and so on, of these texts. */
static ls_vault_writer *write_shards(ls_vault *vault, const char *name,
                                     const char *const *texts, size_t n)
{
    ls_vault_writer *writer;
    OK(ls_vault_writer_create(&writer, vault, name));
    for (size_t i = 0; i < n; i++) {
        const size_t half = strlen(texts[i]) / 2;
        OK(ls_vault_writer_shard(writer, (const char[]){(char)('0' + i), 0}));
        OK(ls_vault_writer_add(writer, texts[i], half));
        OK(ls_vault_writer_add(writer, texts[i] + half,
                               strlen(texts[i]) - half));
    }
    return writer;
}

/* In place of the C library's. */
static bool syncs_fail;
static ls_vault *replaced; /* NULL: none is while its shards are looked for */

int fdatasync(int fd)
{
    (void)fd;
    errno = EIO;
    return syncs_fail ? -1 : 0;
}

int fsync(int fd)
{
    (void)fd;
    return 0;
}

static void replace_again(void)
{
    static const char *const text[] = {"again"};
    ls_vault *const vault = replaced;
    replaced = NULL;
    ls_vault_writer *writer = write_shards(vault, "a", text, 1);
    OK(ls_vault_writer_commit(writer));
    ls_vault_writer_destroy(&writer);
    replaced = vault;
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list more;
    if ((flags & O_CREAT) != 0) {
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    if (replaced != NULL && strstr(path, "/a+0+") != NULL)
        replace_again();
    return openat(AT_FDCWD, path, flags, mode);
}

static const char *const three[] = {"first", "", "the third"};

static void put_three(ls_vault *vault, const char *name)
{
    ls_vault_writer *writer = write_shards(vault, name, three, 3);
    OK(ls_vault_writer_commit(writer));
    ls_vault_writer_destroy(&writer);
}

static int note_name(void *self, const char *name)
{
    strncat(self, name, 1);
    return name[0] == 'z' ? LS_ECANCELED : LS_OK;
}

/* ---- values ------------------------------------------------------------ */

EACH_TEST(folder_set_up, folder_tear_down)

TEST(a_value_is_read_as_it_was_put)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    assert_fails(get_fails(vault, "a"), LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), place->folder));
    put(vault, "a", "one");
    OK(ls_vault_put(vault, "b~7", NULL, 0, true));
    has(vault, "a", "one");
    has(vault, "b~7", "");
    put(vault, "a", "another");
    has(vault, "a", "another");
    assert_int_equal(n_files(place), 2);
    OK(ls_vault_drop(vault, "a"));
    assert_fails(get_fails(vault, "a"), LS_ENOENT);
    assert_fails(ls_vault_drop(vault, "a"), LS_ENOENT);
    ls_vault_close(&vault);
    assert_null(vault);
    ls_vault_close(&vault);
    ls_vault_close(NULL);
    vault = open_vault(place);
    has(vault, "b~7", "");
    ls_vault_close(&vault);
}

TEST(a_value_is_at_the_beginning_of_its_file)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    void *data;
    size_t size;
    put(vault, "j", "plain");
    ls_vault_close(&vault);
    OK(ls_file_read(place->path, 1000, &data, &size));
    assert_memory_equal(data, "plain", 5);
    assert_in_range(size, 5 + 26, 5 + 100); /* what it costs */
    free(data);
}

/* To the byte, as docs/state.md has it. */
TEST(the_bytes_are_those_of_the_page)
{
    static const unsigned char expected[] =
        "one"
        "\x81\xa6shards\x91\x83\xa4name\xa5value\xa4size\x03\xa4xxh3\xcf"
        "\x91\x1f\xab\xa7\x32\x1f\xe1\xa0"
        "\xc4\x18lsvault1\x29\0\0\0\0\0\0\0"
        "\x45\x4f\xf6\xa2\xd8\x81\xce\x73";
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    void *data;
    size_t size;
    put(vault, "j", "one");
    ls_vault_close(&vault);
    OK(ls_file_read(place->path, 1000, &data, &size));
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(data, expected, size);
    free(data);
}

TEST(a_value_has_limits)
{
    ls_vault *vault = open_vault(*state);
    void *data = NULL;
    size_t size;
    put(vault, "a", "12345");
    OK(ls_vault_get(vault, "a", 5, &data, &size));
    free(data);
    assert_fails(ls_vault_get(vault, "a", 4, &data, &size), LS_ELIMIT);
    assert_error_has("/a");
    ls_vault_close(&vault);
    char longer[LS_PATH_MAX];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_fails(
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = longer}),
        LS_ELIMIT);
    assert_null(vault);
}

/* As one that is looked at. */
TEST(a_folder_that_is_not_there_has_no_entries)
{
    const struct place *place = *state;
    const struct ls_vault_options options = {.folder = place->path,
                                             .found = true};
    ls_vault *vault;
    char names[16];
    OK(ls_vault_open(&vault, &options));
    assert_false(ls_file_exists(place->path));
    assert_fails(get_fails(vault, "a"), LS_ENOENT);
    assert_fails(ls_vault_drop(vault, "a"), LS_ENOENT);
    assert_fails(ls_vault_put(vault, "a", "", 0, false), LS_EIO);
    assert_fails(ls_vault_each(vault, note_name, names), LS_ENOENT);
    ls_vault_close(&vault);
}

TEST(a_folder_in_place_of_an_entry_is_dropped_if_it_is_empty)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    char path[512], inside[512];
    in_folder(place, "a", path);
    in_folder(place, "a/b", inside);
    OK(ls_folder_make(inside));
    assert_fails(get_fails(vault, "a"), LS_EPROTO);
    assert_fails(ls_vault_drop(vault, "a"), LS_EIO);
    assert_error_has(path);
    OK(ls_folder_remove(inside));
    OK(ls_vault_drop(vault, "a"));
    assert_int_equal(n_files(place), 0);
    ls_vault_close(&vault);
}

TEST(what_is_no_name_is_refused)
{
    static const char *const names[] = {"", ".a", "a/b", "a+b", "a b", "ä"};
    char longest[LS_VAULT_NAME_MAX + 2];
    ls_vault *vault = open_vault(*state);
    ls_vault_writer *writer;
    ls_vault_reader *reader;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_fails(ls_vault_put(vault, names[i], "", 0, false), LS_EINVAL);
        assert_fails(get_fails(vault, names[i]), LS_EINVAL);
        assert_fails(ls_vault_drop(vault, names[i]), LS_EINVAL);
        assert_fails(ls_vault_writer_create(&writer, vault, names[i]),
                     LS_EINVAL);
        assert_null(writer);
        assert_fails(ls_vault_reader_create(&reader, vault, names[i]),
                     LS_EINVAL);
        assert_null(reader);
    }
    memset(longest, 'n', sizeof longest);
    longest[LS_VAULT_NAME_MAX + 1] = '\0';
    assert_fails(ls_vault_put(vault, longest, "", 0, false), LS_EINVAL);
    longest[LS_VAULT_NAME_MAX] = '\0';
    put_three(vault, longest);
    has(vault, longest, "firstthe third");
    ls_vault_close(&vault);
}

TEST(all_entries_are_listed)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    char names[16] = "";
    put(vault, "x", "");
    put_three(vault, "y");
    write_file(place, ".part@1@2@3@another", "", 0);
    OK(ls_vault_each(vault, note_name, names));
    assert_int_equal(strlen(names), 2);
    assert_non_null(strchr(names, 'x'));
    assert_non_null(strchr(names, 'y'));
    put(vault, "z", "");
    assert_fails(ls_vault_each(vault, note_name, names), LS_ECANCELED);
    ls_vault_close(&vault);
    char gone[512];
    in_folder(place, "gone", gone);
    OK(ls_vault_open(&vault, &(struct ls_vault_options){.folder = gone}));
    assert_int_equal(rmdir(gone), 0);
    assert_fails(ls_vault_each(vault, note_name, names), LS_ENOENT);
    ls_vault_close(&vault);
}

/* ---- shards ------------------------------------------------------------ */

/* Read in pieces of this size. */
static void read_shard(ls_vault_reader *reader, size_t at, size_t piece,
                       const char *text)
{
    char read[64] = "";
    size_t n = 0, got = 1;
    OK(ls_vault_reader_begin(reader, at));
    while (got > 0) {
        assert_in_range(n + piece, 0, sizeof read - 1);
        OK(ls_vault_reader_read(reader, read + n, piece, &got));
        n += got;
    }
    read[n] = '\0';
    assert_string_equal(read, text);
}

TEST(shards_are_read_as_they_were_written)
{
    ls_vault *vault = open_vault(*state);
    ls_vault_reader *reader;
    put_three(vault, "a");
    has(vault, "a", "firstthe third");
    OK(ls_vault_reader_create(&reader, vault, "a"));
    assert_int_equal(ls_vault_reader_n(reader), 3);
    assert_null(ls_vault_reader_shard(reader, 3));
    for (size_t piece = 1; piece < 12; piece++) {
        for (size_t i = 3; i-- > 0;) {
            const struct ls_vault_shard *shard =
                ls_vault_reader_shard(reader, i);
            assert_int_equal(shard->size, strlen(three[i]));
            assert_int_equal(shard->name[0], '0' + (int)i);
            read_shard(reader, i, piece, three[i]);
        }
    }
    ls_vault_reader_destroy(&reader);
    assert_null(reader);
    ls_vault_reader_destroy(NULL);
    put(vault, "b", "text"); /* a value is one shard */
    OK(ls_vault_reader_create(&reader, vault, "b"));
    assert_int_equal(ls_vault_reader_n(reader), 1);
    assert_string_equal(ls_vault_reader_shard(reader, 0)->name, "value");
    read_shard(reader, 0, 3, "text");
    ls_vault_reader_destroy(&reader);
    ls_vault_close(&vault);
}

TEST(shards_that_are_used_wrongly_are_errors)
{
    ls_vault *vault = open_vault(*state);
    ls_vault_writer *writer;
    ls_vault_reader *reader;
    char byte;
    size_t got;
    OK(ls_vault_writer_create(&writer, vault, "a"));
    assert_fails(ls_vault_writer_commit(writer), LS_ESTATE);
    assert_fails(ls_vault_writer_add(writer, "x", 1), LS_ESTATE);
    assert_fails(ls_vault_writer_shard(writer, "a/b"), LS_EINVAL);
    for (unsigned i = 0; i < LS_VAULT_SHARDS_MAX; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "s%u", i);
        OK(ls_vault_writer_shard(writer, name));
        assert_fails(ls_vault_writer_shard(writer, name), LS_EINVAL);
    }
    assert_fails(ls_vault_writer_shard(writer, "one"), LS_ELIMIT);
    OK(ls_vault_writer_commit(writer));
    assert_fails(ls_vault_writer_commit(writer), LS_ESTATE);
    assert_fails(ls_vault_writer_shard(writer, "more"), LS_ESTATE);
    assert_fails(ls_vault_writer_add(writer, "x", 1), LS_ESTATE);
    ls_vault_writer_destroy(&writer);
    assert_null(writer);
    ls_vault_writer_destroy(NULL);
    OK(ls_vault_reader_create(&reader, vault, "a"));
    assert_int_equal(ls_vault_reader_n(reader), LS_VAULT_SHARDS_MAX);
    assert_fails(ls_vault_reader_read(reader, &byte, 1, &got), LS_ESTATE);
    assert_fails(ls_vault_reader_begin(reader, LS_VAULT_SHARDS_MAX), LS_EINVAL);
    ls_vault_reader_destroy(&reader);
    ls_vault_close(&vault);
}

/* Whatever the caller does then. */
static void takes_no_more(ls_vault *vault, ls_vault_writer **writer)
{
    assert_fails(ls_vault_writer_add(*writer, "x", 1), LS_ESTATE);
    assert_fails(ls_vault_writer_shard(*writer, "more"), LS_ESTATE);
    assert_fails(ls_vault_writer_commit(*writer), LS_ESTATE);
    has(vault, "a", "firstthe third");
    ls_vault_writer_destroy(writer);
}

TEST(a_writer_that_failed_writes_nothing)
{
    const struct place *place = *state;
    char aside[sizeof place->folder + 8];
    ls_vault *vault = open_vault(place);
    put_three(vault, "a");
    ls_vault_writer *writer = write_shards(vault, "a", three, 1);
    syncs_fail = true;
    assert_fails(ls_vault_writer_shard(writer, "next"), LS_EIO);
    syncs_fail = false;
    takes_no_more(vault, &writer);
    writer = write_shards(vault, "a", three, 1);
    syncs_fail = true;
    assert_fails(ls_vault_writer_commit(writer), LS_EIO);
    syncs_fail = false;
    takes_no_more(vault, &writer);
    /* No file can be made for it. */
    (void)snprintf(aside, sizeof aside, "%s.aside", place->folder);
    writer = write_shards(vault, "a", three, 1);
    OK(rename(place->folder, aside));
    assert_fails(ls_vault_writer_shard(writer, "next"), LS_EIO);
    OK(rename(aside, place->folder));
    takes_no_more(vault, &writer);
    assert_int_equal(n_files(place), 4);
    ls_vault_close(&vault);
}

/* Of 8 bytes, 9 in two pieces, none, and 1: three of them have no file. */
static void put_small(ls_vault *vault, uint64_t *check)
{
    ls_vault_writer *writer;
    OK(ls_vault_writer_create(&writer, vault, "a"));
    ls_vault_writer_set_small(writer, 8);
    OK(ls_vault_writer_shard(writer, "0"));
    OK(ls_vault_writer_add(writer, "12345678", 8));
    OK(ls_vault_writer_shard(writer, "1"));
    OK(ls_vault_writer_add(writer, "abcd", 4));
    OK(ls_vault_writer_add(writer, "efghi", 5));
    OK(ls_vault_writer_shard(writer, "2"));
    OK(ls_vault_writer_shard(writer, "3"));
    OK(ls_vault_writer_add(writer, "x", 1));
    OK(ls_vault_writer_commit(writer));
    *check = ls_vault_writer_check(writer);
    ls_vault_writer_destroy(&writer);
}

TEST(small_shards_have_no_file)
{
    static const char *const texts[] = {"12345678", "abcdefghi", "", "x"};
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    ls_vault_reader *reader;
    uint64_t check;
    put_small(vault, &check);
    assert_int_equal(n_files(place), 2);
    has(vault, "a", "12345678abcdefghix");
    OK(ls_vault_reader_create(&reader, vault, "a"));
    assert_int_equal(ls_vault_reader_check(reader), check);
    for (size_t i = 4; i-- > 0;)
        read_shard(reader, i, 3, texts[i]);
    ls_vault_reader_destroy(&reader);
    OK(ls_vault_drop(vault, "a"));
    assert_int_equal(n_files(place), 0);
    ls_vault_close(&vault);
}

/* Beyond 4 MiB of them they have files again. */
TEST(small_shards_are_bounded_together)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    ls_vault_writer *writer;
    char *bytes = calloc(1, 1u << 20);
    assert_non_null(bytes);
    OK(ls_vault_writer_create(&writer, vault, "a"));
    ls_vault_writer_set_small(writer, 1u << 20);
    for (char name = 'a'; name < 'f'; name++) {
        OK(ls_vault_writer_shard(writer, (const char[]){name, 0}));
        OK(ls_vault_writer_add(writer, bytes, 1u << 20));
        assert_int_equal(n_files(place), name == 'e');
    }
    ls_vault_writer_destroy(&writer);
    assert_int_equal(n_files(place), 0);
    free(bytes);
    ls_vault_close(&vault);
}

TEST(what_is_not_needed_any_more_goes)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    put_three(vault, "a");
    assert_int_equal(n_files(place), 4);
    ls_vault_writer *writer = write_shards(vault, "a", three, 2);
    assert_int_equal(n_files(place), 6);
    ls_vault_writer_destroy(&writer); /* not committed */
    assert_int_equal(n_files(place), 4);
    has(vault, "a", "firstthe third");
    writer = write_shards(vault, "a", three, 1);
    OK(ls_vault_writer_commit(writer));
    ls_vault_writer_destroy(&writer);
    assert_int_equal(n_files(place), 2);
    has(vault, "a", "first");
    put(vault, "a", "value");
    assert_int_equal(n_files(place), 1);
    put_three(vault, "a");
    OK(ls_vault_drop(vault, "a"));
    assert_int_equal(n_files(place), 0);
    ls_vault_close(&vault);
}

/* Both have seen the first one when they write theirs. */
TEST(the_last_one_of_two_writers_holds)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    put_three(vault, "a");
    ls_vault_writer *one = write_shards(vault, "a", three, 1);
    ls_vault_writer *two = write_shards(vault, "a", three, 2);
    OK(ls_vault_writer_commit(two));
    OK(ls_vault_writer_commit(one));
    ls_vault_writer_destroy(&two);
    ls_vault_writer_destroy(&one);
    has(vault, "a", "first");
    assert_int_equal(n_files(place), 2);
    ls_vault_close(&vault);
}

TEST(a_reader_has_what_was_there_when_it_began)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    ls_vault_reader *readers[2];
    put_three(vault, "a");
    put(vault, "b", "value");
    OK(ls_vault_reader_create(&readers[0], vault, "a"));
    OK(ls_vault_reader_create(&readers[1], vault, "b"));
    put(vault, "a", "new");
    OK(ls_vault_drop(vault, "b"));
    for (size_t i = 0; i < 3; i++)
        read_shard(readers[0], i, 4, three[i]);
    read_shard(readers[1], 0, 4, "value");
    ls_vault_reader_destroy(&readers[0]);
    ls_vault_reader_destroy(&readers[1]);
    ls_vault_close(&vault);
}

TEST(who_never_finds_its_shards_asks_to_try_again)
{
    ls_vault *vault = open_vault(*state);
    ls_vault_reader *reader;
    put_three(vault, "a");
    replaced = vault;
    assert_fails(get_fails(vault, "a"), LS_EAGAIN);
    assert_fails(ls_vault_reader_create(&reader, vault, "a"), LS_EAGAIN);
    assert_error_has("/a is being replaced");
    assert_null(reader);
    replaced = NULL;
    has(vault, "a", "again");
    ls_vault_close(&vault);
}

/* ---- damage ------------------------------------------------------------ */

static void damage_is_named(const struct place *place, ls_vault *vault,
                            const char *file, const char *entry)
{
    char path[512];
    in_folder(place, file, path);
    assert_fails(get_fails(vault, entry), LS_EPROTO);
    if (strstr(ls_error_text(), path) == NULL)
        fail_msg("%s does not name %s", ls_error_text(), path);
}

/* Every byte flipped, cut at every length, and with one byte more. */
static void damage_all(const struct place *place, ls_vault *vault,
                       const char *file, const char *entry)
{
    char path[512];
    void *data;
    size_t size;
    in_folder(place, file, path);
    OK(ls_file_read(path, 4096, &data, &size));
    unsigned char *bytes = data;
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= (unsigned char)(1u << at % 8);
        write_file(place, file, bytes, size);
        damage_is_named(place, vault, file, entry);
        bytes[at] ^= (unsigned char)(1u << at % 8);
        write_file(place, file, bytes, at);
        damage_is_named(place, vault, file, entry);
    }
    unsigned char *more = calloc(1, size + 1);
    assert_non_null(more);
    memcpy(more, bytes, size);
    write_file(place, file, more, size + 1);
    damage_is_named(place, vault, file, entry);
    write_file(place, file, bytes, size);
    free(more);
    free(data);
}

/* The file of a shard, or the entry's own. */
struct found {
    const char *ends; /* "+1+" is in it; NULL: any of the entry's */
    char name[300];
};

static int find(void *self, const char *name)
{
    struct found *found = self;
    if (strstr(name, found->ends) != NULL)
        (void)snprintf(found->name, sizeof found->name, "%s", name);
    return LS_OK;
}

static struct found file_of_shard(const struct place *place, const char *index)
{
    struct found found = {.ends = index};
    OK(ls_folder_each(place->folder, find, &found));
    assert_true(found.name[0] != '\0');
    return found;
}

TEST(any_damage_is_seen_and_named)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    put(vault, "value", "seven b");
    damage_all(place, vault, "value", "value");
    has(vault, "value", "seven b");
    put_three(vault, "a");
    damage_all(place, vault, "a", "a");
    damage_all(place, vault, file_of_shard(place, "+0+").name, "a");
    damage_all(place, vault, file_of_shard(place, "+1+").name, "a");
    damage_all(place, vault, file_of_shard(place, "+2+").name, "a");
    has(vault, "a", "firstthe third");
    uint64_t check;
    put_small(vault, &check);
    damage_all(place, vault, "a", "a");
    ls_vault_close(&vault);
}

TEST(bytes_between_value_and_manifest_are_seen)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    void *data;
    size_t size;
    put(vault, "j", "one");
    OK(ls_file_read(place->path, 1000, &data, &size));
    char *longer = malloc(size + 1);
    assert_non_null(longer);
    memcpy(longer, "onex", 4);
    memcpy(longer + 4, (char *)data + 3, size - 3);
    write_file(place, "j", longer, size + 1);
    damage_is_named(place, vault, "j", "j");
    write_file(place, "j", (char *)data + 1, size - 1);
    damage_is_named(place, vault, "j", "j");
    free(longer);
    free(data);
    ls_vault_close(&vault);
}

TEST(a_missing_shard_is_named)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    char path[512];
    put_three(vault, "a");
    const struct found shard = file_of_shard(place, "+2+");
    in_folder(place, shard.name, path);
    OK(ls_file_remove(path));
    damage_is_named(place, vault, shard.name, "a");
    OK(ls_vault_drop(vault, "a")); /* what is damaged can go */
    assert_int_equal(n_files(place), 0);
    ls_vault_close(&vault);
}

/* Their manifests name what is not theirs. */
TEST(an_entry_has_its_own_shards_alone)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    char path[512];
    void *data;
    size_t size;
    put(vault, "value", "v");
    put_three(vault, "a");
    in_folder(place, "a", path);
    OK(ls_file_read(path, 4096, &data, &size));
    write_file(place, "b", data, size);
    free(data);
    damage_is_named(place, vault, "b", "b");
    OK(ls_vault_drop(vault, "b"));
    has(vault, "a", "firstthe third");
    in_folder(place, "value", path); /* but a value may be copied */
    OK(ls_file_read(path, 4096, &data, &size));
    write_file(place, "c", data, size);
    free(data);
    has(vault, "c", "v");
    ls_vault_close(&vault);
}

/* ---- leftovers --------------------------------------------------------- */

TEST(what_dead_writers_left_goes_when_it_is_opened)
{
    const struct place *place = *state;
    char host[65] = "";
    const long self = (long)getpid(), nobody = 0x7ffffffL;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    const struct {
        const char *before;
        long pid;
        const char *other_host;
        bool goes;
    } files[] = {
        {".part@", self, "", true}, /* of an earlier life */
        {".part@", nobody, "", true},
        {".part@", (long)getppid(), "", false},
        {".part@", nobody, "not-", false},
        {"gone+0+", nobody, "", true},
        {"there+255+", nobody, "", true}, /* its entry names others */
        {"damaged+0+", nobody, "", false},
        {"gone+0+", (long)getppid(), "", false},
        {"gone+0+", nobody, "not-", false},
        {"+0+", nobody, "", false}, /* no shards */
        {"gone+", nobody, "", false},
        {"gone+x+", nobody, "", false},
        {"gone+0", nobody, "", false},
        {".gone+0+", nobody, "", false},
    };
    const size_t n = sizeof files / sizeof files[0];
    char names[32][256];
    ls_vault *vault = open_vault(place);
    put_three(vault, "there");
    ls_vault_close(&vault);
    write_file(place, "damaged", "x", 1);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s%ld@1@0@%s%s",
                       files[i].before, files[i].pid, files[i].other_host,
                       host);
        write_file(place, names[i], "x", 1);
    }
    OK(ls_vault_open(&vault, &(struct ls_vault_options){.folder = place->folder,
                                                        .found = true}));
    ls_vault_close(&vault);
    assert_int_equal(n_files(place), n + 4 + 1);
    vault = open_vault(place);
    for (size_t i = 0; i < n; i++) {
        if (is_there(place, names[i]) == files[i].goes)
            fail_msg("%s %s", names[i], files[i].goes ? "stays" : "goes");
    }
    has(vault, "there", "firstthe third");
    ls_vault_close(&vault);
}

/* Its shards are those of an entry, whoever lives. */
TEST(what_a_dead_writer_has_committed_stays)
{
    const struct place *place = *state;
    ls_vault *vault = open_vault(place);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        put_three(vault, "a");
        (void)write_shards(vault, "a", three, 3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(n_files(place), 7);
    ls_vault_close(&vault);
    vault = open_vault(place);
    assert_int_equal(n_files(place), 4);
    has(vault, "a", "firstthe third");
    ls_vault_close(&vault);
}

/* ---- together ---------------------------------------------------------- */

#define ROUNDS 60

static void replace_often(void *self)
{
    char letters[2000];
    for (unsigned i = 0; i < ROUNDS; i++) {
        ls_vault_writer *writer;
        memset(letters, 'a' + (int)(i % 26), sizeof letters);
        if (i % 3 == 0) {
            OK(ls_vault_put(self, "a", letters, sizeof letters, false));
            continue;
        }
        OK(ls_vault_writer_create(&writer, self, "a"));
        OK(ls_vault_writer_shard(writer, "x"));
        OK(ls_vault_writer_add(writer, letters, 1000));
        OK(ls_vault_writer_shard(writer, "y"));
        OK(ls_vault_writer_add(writer, letters, 1000));
        OK(ls_vault_writer_commit(writer));
        ls_vault_writer_destroy(&writer);
    }
    OK(ls_vault_put(self, "a", "", 0, false));
}

TEST(who_reads_while_it_is_replaced_sees_one_of_them)
{
    ls_vault *vault = open_vault(*state);
    ls_thread *writers[2];
    size_t size = 1;
    put(vault, "a", "a");
    for (size_t i = 0; i < 2; i++)
        OK(ls_thread_spawn(ls_runtime_threads(), &writers[i], "writer",
                           replace_often, vault));
    while (size > 0) {
        void *data;
        OK(ls_vault_get(vault, "a", 2000, &data, &size));
        if (size > 0)
            assert_int_equal(memcmp(data, (char *)data + 1, size - 1), 0);
        free(data);
    }
    for (size_t i = 0; i < 2; i++)
        OK(ls_thread_join(&writers[i], LS_FOREVER));
    ls_vault_close(&vault);
}
