/* An entry outlives a loss of power and a full disk as what it was, or as what
 * it was to be; and neither leaves anything behind for good. */
#include "lockstep/vault.h"

#include "state/power_trial.h"
#include "test.h"

#define FOLDER "out/job"
/* Longer than a page, so that parts of it can be lost. */
#define LONG 9000

/* What an entry is made of, in this order. */
enum form { NONE, VALUE, SHARDS };

struct change {
    enum form before, after;
    bool durable; /* else only values */
    bool done;    /* it returned LS_OK */
    /* Seen so often, in all rooms. */
    unsigned old_seen, new_seen, damaged;
};

static int write_entry(ls_vault *vault, enum form form, char letter,
                       bool durable)
{
    char bytes[LONG];
    ls_vault_writer *writer;
    memset(bytes, letter, sizeof bytes);
    if (form == NONE)
        return ls_vault_drop(vault, "e");
    if (form == VALUE)
        return ls_vault_put(vault, "e", bytes, sizeof bytes, durable);
    int status = ls_vault_writer_create(&writer, vault, "e");
    if (status == LS_OK)
        status = ls_vault_writer_shard(writer, "a");
    if (status == LS_OK)
        status = ls_vault_writer_add(writer, bytes, 5000);
    if (status == LS_OK)
        status = ls_vault_writer_shard(writer, "b");
    if (status == LS_OK)
        status = ls_vault_writer_add(writer, bytes, 4000);
    if (status == LS_OK)
        status = ls_vault_writer_commit(writer);
    ls_vault_writer_destroy(&writer);
    return status;
}

static void make_old(struct room *room)
{
    const struct change *change = room->self;
    ls_vault *vault;
    assert_ok(
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = FOLDER}));
    if (change->before != NONE)
        assert_ok(write_entry(vault, change->before, 'o', true));
    ls_vault_close(&vault);
}

static void make_new(struct room *room)
{
    struct change *change = room->self;
    ls_vault *vault;
    change->done = false;
    if (ls_vault_open(&vault, &(struct ls_vault_options){.folder = FOLDER}) !=
        LS_OK)
        return;
    change->done =
        write_entry(vault, change->after, 'n', change->durable) == LS_OK;
    ls_vault_close(&vault);
}

/* What is there: all 'o', all 'n', '-' nothing, '!' damaged. */
static char look(ls_vault *vault)
{
    void *data;
    size_t size;
    const int status = ls_vault_get(vault, "e", LONG, &data, &size);
    if (status == LS_ENOENT)
        return '-';
    if (status == LS_EPROTO)
        return '!';
    assert_int_equal(status, LS_OK);
    assert_int_equal(size, LONG);
    const char letter = *(char *)data;
    assert_int_equal(memcmp(data, (char *)data + 1, LONG - 1), 0);
    free(data);
    return letter;
}

static int count(void *self, const char *name)
{
    unsigned *n = self;
    (void)name;
    ++*n;
    return LS_OK;
}

static unsigned n_files(void)
{
    unsigned n = 0;
    assert_ok(ls_folder_each(FOLDER, count, &n));
    return n;
}

/* How many files it has. */
static unsigned files_of(enum form form)
{
    return form == SHARDS ? 3 : form == VALUE;
}

/* The next life clears the folder, and nothing is left but the entry. */
static void judge(struct room *room)
{
    struct change *change = room->self;
    ls_vault *vault;
    assert_ok(
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = FOLDER}));
    const char found = look(vault);
    const bool is_old = found == (change->before == NONE ? '-' : 'o');
    const bool is_new = found == (change->after == NONE ? '-' : 'n');
    change->old_seen += is_old;
    change->new_seen += is_new;
    change->damaged += found == '!';
    if (change->durable) {
        assert_true(is_old || is_new);
        assert_int_equal(n_files(),
                         files_of(is_new ? change->after : change->before));
    }
    if (change->durable && change->done && change->after != NONE)
        assert_true(is_new);
    /* And it goes on. */
    assert_ok(write_entry(vault, SHARDS, 'x', true));
    assert_int_equal(look(vault), 'x');
    ls_vault_close(&vault);
}

static struct change play_change(enum form before, enum form after,
                                 bool durable, uint64_t n_seeds)
{
    struct change change = {
        .before = before, .after = after, .durable = durable};
    play_all(&(struct trial){.before = make_old,
                             .during = make_new,
                             .after = judge,
                             .self = &change},
             n_seeds);
    return change;
}

TEST(what_is_written_is_old_or_new)
{
    for (enum form before = NONE; before <= SHARDS; before++) {
        for (enum form after = VALUE; after <= SHARDS; after++) {
            const struct change seen = play_change(before, after, true, 60);
            assert_true(seen.old_seen > 0 && seen.new_seen > 0);
            assert_int_equal(seen.damaged, 0);
        }
    }
}

TEST(what_is_dropped_is_whole_or_gone)
{
    for (enum form before = VALUE; before <= SHARDS; before++) {
        const struct change seen = play_change(before, NONE, true, 60);
        assert_true(seen.old_seen > 0 && seen.new_seen > 0);
        assert_int_equal(seen.damaged, 0);
    }
}

/* So the ones above show something: and damage is seen as that. */
TEST(what_is_not_durable_may_be_damaged)
{
    const struct change seen = play_change(VALUE, VALUE, false, 600);
    assert_true(seen.damaged > 0 && seen.old_seen > 0 && seen.new_seen > 0);
}

/* The simulated disk keeps names in order, others need not: so a folder is
 * synced before what is on disk counts on its names. */
static unsigned syncs_since(const struct room *room, uint64_t *before)
{
    const uint64_t now = room_stats(room).syncs;
    const unsigned n = (unsigned)(now - *before);
    *before = now;
    return n;
}

static void count_syncs(struct room *room)
{
    ls_vault *vault;
    make_old(room);
    assert_ok(
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = FOLDER}));
    uint64_t before = room_stats(room).syncs;
    assert_ok(write_entry(vault, VALUE, 'n', false));
    assert_int_equal(syncs_since(room, &before), 0);
    assert_ok(write_entry(vault, VALUE, 'n', true));
    assert_int_equal(syncs_since(room, &before), 2); /* bytes, name */
    assert_ok(write_entry(vault, SHARDS, 'n', true));
    assert_int_equal(syncs_since(room, &before), 2 + 1 + 2);
    assert_ok(write_entry(vault, VALUE, 'n', false));
    assert_int_equal(syncs_since(room, &before), 1); /* then shards go */
    assert_ok(write_entry(vault, SHARDS, 'n', true));
    (void)syncs_since(room, &before);
    assert_ok(write_entry(vault, NONE, 'n', false));
    assert_int_equal(syncs_since(room, &before), 1);
    ls_vault_close(&vault);
}

static void play_syncs(struct room *room)
{
    room_live(room, "a", count_syncs);
}

TEST(names_are_on_disk_before_they_are_needed)
{
    struct change change = {.before = NONE};
    (void)room_run(1, play_syncs, &change);
}

/* ---- kills ------------------------------------------------------------- */

/* A life that ends between its shards and its manifest has written all of them;
 * none outlives the folder's being cleared. */
static void write_and_die(struct room *room)
{
    ls_vault *vault;
    ls_vault_writer *writer;
    (void)room->self;
    assert_ok(
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = FOLDER}));
    assert_ok(write_entry(vault, SHARDS, 'o', true));
    assert_ok(ls_vault_writer_create(&writer, vault, "e"));
    assert_ok(ls_vault_writer_shard(writer, "a"));
    assert_ok(ls_vault_writer_add(writer, "n", 1));
    assert_ok(ls_vault_writer_shard(writer, "b"));
    assert_int_equal(n_files(), 5);
    ls_host_kill(room->host);
    assert_fails(ls_vault_writer_commit(writer), LS_EIO);
    ls_vault_writer_destroy(&writer);
    ls_vault_close(&vault);
}

static void find_old(struct room *room)
{
    const uint64_t before = room_stats(room).syncs;
    ls_vault *vault;
    assert_ok(
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = FOLDER}));
    /* Of the folder's own name, and for both shards. */
    assert_int_equal(room_stats(room).syncs - before, 2);
    assert_int_equal(n_files(), 3);
    assert_int_equal(look(vault), 'o');
    ls_vault_close(&vault);
}

static void kill_and_find(struct room *room)
{
    room_live(room, "a", write_and_die);
    room_live(room, "a", find_old);
}

TEST(a_killed_writer_leaves_what_was)
{
    (void)room_run(1, kill_and_find, NULL);
}

/* ---- full disks -------------------------------------------------------- */

static void fill(struct room *room)
{
    const struct change *change = room->self;
    ls_vault *vault;
    make_old(room);
    assert_ok(
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = FOLDER}));
    unsigned refused = 0;
    for (uint64_t left = 0;; left += 1 + left / 8) {
        ls_disk_fill(room->disk, room_stats(room).bytes + left);
        const int status = write_entry(vault, change->after, 'n', true);
        if (status == LS_OK)
            break;
        refused++;
        assert_int_equal(status, LS_EIO);
        assert_error_has("No space");
        assert_int_equal(look(vault), change->before == NONE ? '-' : 'o');
        assert_int_equal(n_files(), files_of(change->before));
    }
    assert_true(refused > 10);
    assert_int_equal(look(vault), 'n');
    assert_int_equal(n_files(), files_of(change->after));
    ls_vault_close(&vault);
}

static void fill_disk(struct room *room)
{
    room_live(room, "a", fill);
}

TEST(a_full_disk_leaves_what_was)
{
    for (enum form before = NONE; before <= SHARDS; before++) {
        for (enum form after = VALUE; after <= SHARDS; after++) {
            struct change change = {.before = before, .after = after};
            (void)room_run(1, fill_disk, &change);
        }
    }
}

/* ---- long paths -------------------------------------------------------- */

/* As deep as a run may lie, with the longest names. */
static void keep_deep(struct room *room)
{
    char folder[1024 + 2] = "", name[LS_VAULT_NAME_MAX + 1];
    ls_vault *vault;
    void *data;
    size_t size;
    (void)room;
    for (size_t i = 0; i < 1024; i++)
        folder[i] = i % 200 == 0 ? '/' : 'd';
    memset(name, 'n', LS_VAULT_NAME_MAX);
    name[LS_VAULT_NAME_MAX] = '\0';
    const struct ls_vault_options options = {.folder = folder};
    assert_ok(ls_vault_open(&vault, &options));
    assert_ok(ls_vault_put(vault, name, "x", 1, true));
    assert_ok(ls_vault_get(vault, name, 1, &data, &size));
    free(data);
    ls_vault_close(&vault);
    folder[1024] = 'd';
    assert_fails(ls_vault_open(&vault, &options), LS_ELIMIT);
    assert_null(vault);
}

static void live_deep(struct room *room)
{
    room_live(room, "a", keep_deep);
}

TEST(a_folder_may_lie_deep)
{
    (void)room_run(1, live_deep, NULL);
}

/* ---- together ---------------------------------------------------------- */

/* In one life, whose threads take turns at each flush. */
struct pair {
    ls_vault *vault;
    ls_runtime *runtime;
    unsigned replaced; /* 'n' by 'o' by 'n' … */
    unsigned seen;     /* changes of it */
};

static void replace_often(void *self)
{
    struct pair *pair = self;
    for (; pair->replaced < 20; pair->replaced++)
        assert_ok(write_entry(pair->vault,
                              pair->replaced % 3 == 0 ? VALUE : SHARDS,
                              pair->replaced % 2 == 0 ? 'n' : 'o', true));
}

static void read_often(struct room *room)
{
    struct pair pair = {.runtime = ls_host_runtime(room->host)};
    ls_thread *writer;
    char before = '-';
    assert_ok(ls_vault_open(&pair.vault,
                            &(struct ls_vault_options){.folder = FOLDER}));
    assert_ok(
        ls_thread_spawn(pair.runtime, &writer, "writer", replace_often, &pair));
    while (pair.replaced < 20) {
        const char found = look(pair.vault);
        assert_int_not_equal(found, '!');
        pair.seen += found != before;
        before = found;
        ls_rest_until(pair.runtime, ls_now(pair.runtime) + 200000);
    }
    assert_ok(ls_thread_join(&writer, LS_FOREVER));
    assert_in_range(pair.seen, 10, 20);
    ls_vault_close(&pair.vault);
}

static void read_and_replace(struct room *room)
{
    room_live(room, "a", read_often);
}

TEST(a_reader_sees_each_as_a_whole)
{
    const struct seeds seeds = seeds_of(20);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        (void)room_run(seed, read_and_replace, NULL);
}
