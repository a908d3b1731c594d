/* A store that is a folder. */
#include "store_files.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "file_bytes.h"
#include "nodes/store_spec.h"
#include "state/folder_fixture.h"
#include "test.h"

struct files_pair {
    struct store_pair pair; /* what the spec sees */
    struct place *place;
};

static struct store *open_store(const struct place *place, size_t max_bytes)
{
    struct store *store = NULL;
    spec_ok(store_files_open(
        &store, &(struct store_files_options){.folder = place->folder,
                                              .max_bytes = max_bytes}));
    return store;
}

static int pair_up(void **state)
{
    struct files_pair *both = calloc(1, sizeof *both);
    void *place = NULL;
    assert_non_null(both);
    (void)folder_set_up(&place);
    both->place = place;
    both->pair.here = open_store(place, SPEC_MAX_BYTES);
    both->pair.there = open_store(place, SPEC_MAX_BYTES);
    *state = both;
    return 0;
}

static int pair_down(void **state)
{
    struct files_pair *both = *state;
    void *place = both->place;
    store_close(&both->pair.here);
    store_close(&both->pair.there);
    free(both);
    return folder_tear_down(&place);
}

static void in_folder(const struct place *place, const char *name,
                      char path[256])
{
    (void)snprintf(path, 256, "%s/%s", place->folder, name);
}

static int n_files(const struct place *place)
{
    DIR *entries = opendir(place->folder);
    assert_non_null(entries);
    int n = -2; /* "." and ".." */
    while (readdir(entries) != NULL)
        n++;
    assert_int_equal(closedir(entries), 0);
    return n;
}

EACH_TEST(folder_set_up, folder_tear_down)

TEST(a_damaged_file_is_named_whatever_is_wrong)
{
    const struct place *place = *state;
    struct store *store = open_store(place, 0);
    const char *const name = "data";
    unsigned char bytes[256];
    char path[256];
    struct store_blob blob;
    in_folder(place, name, path);
    spec_put_text(store, name, "seven b");
    const size_t size = read_bytes(path, bytes, sizeof bytes);
    assert_in_range(size, 7 + 1, sizeof bytes - 1);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= 0x10;
        write_bytes(path, bytes, size);
        assert_fails(store_get(store, &name, 1, &blob, 0), LS_EPROTO);
        assert_error_has(path);
        bytes[at] ^= 0x10;
        write_bytes(path, bytes, at);
        assert_fails(store_get(store, &name, 1, &blob, 0), LS_EPROTO);
    }
    write_bytes(path, bytes, size);
    spec_has_text(store, name, "seven b");
    store_close(&store);
    assert_null(store);
    store_close(&store);
}

TEST(what_is_kept_is_there_for_the_next_life)
{
    const struct place *place = *state;
    struct store *store = open_store(place, 0);
    spec_ok(store_put(
        store, &(struct store_put){
                   .name = "policy", .data = "p", .size = 1, .keep = true}));
    store_close(&store);
    store = open_store(place, 0);
    spec_has_text(store, "policy", "p");
    store_close(&store);
}

static void make_file(const struct place *place, const char *name)
{
    char path[256];
    in_folder(place, name, path);
    write_bytes(path, "x", 1);
}

static bool is_there(const struct place *place, const char *name)
{
    char path[256];
    struct stat found;
    in_folder(place, name, path);
    return stat(path, &found) == 0;
}

TEST(what_dead_writers_left_goes_when_it_is_opened)
{
    const struct place *place = *state;
    char host[65] = "", earlier_life[160], dead[160], living[160], other[160];
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    (void)snprintf(earlier_life, sizeof earlier_life, ".part@%ld@1@0@%s",
                   (long)getpid(), host);
    (void)snprintf(dead, sizeof dead, ".part@%ld@1@0@%s", 0x7ffffffL, host);
    (void)snprintf(living, sizeof living, ".part@%ld@1@0@%s", (long)getppid(),
                   host);
    (void)snprintf(other, sizeof other, ".part@%ld@1@0@not-%s", 0x7ffffffL,
                   host);
    static const char *const no_parts[] = {".part@", ".part@1@2", "value",
                                           ".part@x@1@0@host"};
    make_file(place, earlier_life);
    make_file(place, dead);
    make_file(place, living);
    make_file(place, other);
    for (size_t i = 0; i < 4; i++)
        make_file(place, no_parts[i]);
    struct store *store = open_store(place, 0);
    assert_false(is_there(place, earlier_life));
    assert_false(is_there(place, dead));
    assert_true(is_there(place, living));
    assert_true(is_there(place, other));
    for (size_t i = 0; i < 4; i++)
        assert_true(is_there(place, no_parts[i]));
    store_close(&store);
}

TEST(a_put_that_fails_leaves_nothing_behind)
{
    const struct place *place = *state;
    struct store *store = open_store(place, 0);
    spec_put_text(store, "a", "old");
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction action;
    struct rlimit before, small;
    assert_int_equal(sigaction(SIGXFSZ, &ignore, &action), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct counter released;
    counter_init(&released);
    const int status = spec_put_moved(store, "a", 4000, &released);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(sigaction(SIGXFSZ, &action, NULL), 0);
    assert_int_equal(status, LS_EIO);
    assert_int_equal(counter_get(&released), 1);
    counter_fini(&released);
    assert_int_equal(n_files(place), 1);
    spec_has_text(store, "a", "old");
    store_close(&store);
}

TEST(what_the_system_refuses_is_named)
{
    const struct place *place = *state;
    struct store *store = open_store(place, 0);
    char path[256], inner[200];
    const char *const name = "folder";
    struct store_blob blob;
    in_folder(place, name, path);
    assert_int_equal(mkdir(path, 0777), 0);
    make_file(place, "folder/file");
    assert_fails(store_get(store, &name, 1, &blob, 0), LS_EPROTO);
    assert_error_has(path);
    assert_fails(store_drop(store, name, 0), LS_EIO); /* it is not empty */
    const struct store_put put = {.name = name, .data = "x", .size = 1};
    assert_fails(store_put(store, &put), LS_EIO);
    assert_int_equal(n_files(place), 1);
    in_folder(place, "folder/file", path);
    assert_int_equal(remove(path), 0);
    assert_ok(store_drop(store, name, 0));
    assert_int_equal(n_files(place), 0);
    store_close(&store);
    make_file(place, "file");
    (void)snprintf(inner, sizeof inner, "%s/file/sub", place->folder);
    assert_fails(store_files_open(
                     &store, &(struct store_files_options){.folder = inner}),
                 LS_EIO);
    assert_error_has("file");
    char longer[1200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_fails(store_files_open(
                     &store, &(struct store_files_options){.folder = longer}),
                 LS_ELIMIT);
}

static int note_name(void *self, const char *name)
{
    char *names = self;
    strncat(names, name, 1);
    return name[0] == 'z' ? LS_ECANCELED : LS_OK;
}

TEST(all_names_can_be_looked_at)
{
    const struct place *place = *state;
    struct store *store = open_store(place, 0);
    char names[16] = "";
    make_file(place, ".part@1@2@3@another");
    spec_put_text(store, "x", "");
    spec_put_text(store, "y", "");
    spec_ok(store_files_each(store, note_name, names));
    assert_int_equal(strlen(names), 2);
    assert_non_null(strchr(names, 'x'));
    assert_non_null(strchr(names, 'y'));
    spec_put_text(store, "z", "");
    assert_fails(store_files_each(store, note_name, names), LS_ECANCELED);
    store_close(&store);
}

/* It was replaced between its look and its write, and wakes up now. */
TEST(what_a_lower_rank_writes_too_late_is_not_read)
{
    const struct place *place = *state;
    struct store *store = open_store(place, 0);
    char lower[256], aside[256], names[16] = "";
    in_folder(place, "p~1", lower);
    in_folder(place, ".aside", aside);
    spec_ok(spec_put_ranked(store, "p", "one", 1));
    assert_int_equal(rename(lower, aside), 0);
    spec_ok(spec_put_ranked(store, "p", "two", 2));
    assert_int_equal(rename(aside, lower), 0);
    spec_has_text(store, "p", "two");
    spec_ok(store_files_each(store, note_name, names));
    assert_int_equal(names[0], 'p');
    spec_ok(spec_put_ranked(store, "p", "three", 3)); /* takes both away */
    assert_int_not_equal(access(lower, F_OK), 0);
    spec_has_text(store, "p", "three");
    store_close(&store);
}

TEST(what_only_looks_like_a_rank_is_none)
{
    static const char *const files[] = {"p~007",
                                        "p~ 7",
                                        "p~+7",
                                        "p~-1",
                                        "p~7x",
                                        "p~",
                                        "p~99999999999999999999"};
    const struct place *place = *state;
    struct store *store = open_store(place, 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char names[16] = "";
        make_file(place, files[i]);
        spec_ok(store_files_each(store, note_name, names));
        if (names[0] != '\0')
            fail_msg("%s is taken for a value", files[i]);
        spec_lacks(store, "p");
    }
    store_close(&store);
}

STORE_SPEC(pair_up, pair_down)
