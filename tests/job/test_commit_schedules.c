/* The commit over thousands of schedules drawn from a seed: messages in any
 * order between nodes, writes that fail, deadlines at any moment, nodes and the
 * committer dying at any of their messages, and coming again. The test knows
 * what is on the disks. */
#include <string.h>

#include "base/seeds.h"
#include "commit.h"
#include "lockstep/random.h"
#include "test.h"

#define NODES   4
#define EPOCHS  64
#define LETTERS 256

enum kind { WRITE, WRITTEN, VERDICT, TOLD };

struct letter {
    enum kind kind;
    size_t node;
    int64_t epoch;
    int64_t round;
    int status;
    enum commit_verdict verdict;
};

/* What is on disk; 0: nothing. */
struct disk {
    int64_t entries[NODES][EPOCHS];
    int64_t manifests[EPOCHS]; /* the round whose entries it names */
};

struct world {
    uint64_t seed;
    struct ls_rng random;
    struct disk disk;
    struct commit commit;
    struct commit_node nodes[NODES];
    struct keeper keepers[NODES];
    bool alive[NODES];
    struct letter letters[LETTERS];
    size_t n_letters;
    int64_t epoch;
    int64_t round;
    int64_t newest; /* that was reported as saved */
    size_t n_saved, n_failed;
};

static bool chance(struct world *w, uint64_t one_in)
{
    return ls_rng_below(&w->random, one_in) == 0;
}

static void post(struct world *w, struct letter letter)
{
    assert_true(w->n_letters < LETTERS);
    w->letters[w->n_letters++] = letter;
}

/* ---- the committer ---- */

static void ask_write(void *self, size_t node)
{
    struct world *w = self;
    post(w, (struct letter){.kind = WRITE,
                            .node = node,
                            .epoch = w->epoch,
                            .round = w->round});
}

static void tell(void *self, size_t node, enum commit_verdict verdict)
{
    struct world *w = self;
    post(w, (struct letter){.kind = VERDICT,
                            .node = node,
                            .epoch = w->epoch,
                            .round = w->round,
                            .verdict = verdict});
}

/* The one write that counts: all that it names is on disk. It may fail, and
 * then be there nevertheless. */
static void name_all(void *self)
{
    struct world *w = self;
    const bool fails = chance(w, 12), there = !fails || chance(w, 2);
    for (size_t i = 0; i < NODES; i++)
        if (w->disk.entries[i][w->epoch] != w->round)
            fail_msg("seed %llu: epoch %lld names an entry that node %zu has "
                     "not",
                     (unsigned long long)w->seed, (long long)w->epoch, i);
    if (there)
        w->disk.manifests[w->epoch] = w->round;
    if (!fails)
        commit_named(&w->commit, LS_OK, false);
    else
        commit_named(&w->commit, ls_error(LS_EIO, "the disk"), !there);
}

static const struct commit_ops ops = {ask_write, name_all, tell};

/* ---- what holds ---- */

static bool is_whole(const struct disk *disk, int64_t epoch)
{
    if (disk->manifests[epoch] == 0)
        return false;
    for (size_t i = 0; i < NODES; i++)
        if (disk->entries[i][epoch] != disk->manifests[epoch])
            return false;
    return true;
}

static int64_t newest(const struct disk *disk)
{
    for (int64_t i = EPOCHS - 1; i >= 0; i--)
        if (is_whole(disk, i))
            return i;
    return -1;
}

static void check(const struct world *w)
{
    for (int64_t i = 0; i < EPOCHS; i++)
        if (w->disk.manifests[i] != 0 && !is_whole(&w->disk, i))
            fail_msg("seed %llu: epoch %lld is partial",
                     (unsigned long long)w->seed, (long long)i);
    if (newest(&w->disk) < w->newest)
        fail_msg("seed %llu: epoch %lld was saved and is gone",
                 (unsigned long long)w->seed, (long long)w->newest);
}

/* ---- letters come ---- */

static void come_to_node(struct world *w, const struct letter *letter)
{
    struct keeper *keeper = &w->keepers[letter->node];
    int64_t *entry = &w->disk.entries[letter->node][letter->epoch];
    struct letter answer = *letter;
    if (!w->alive[letter->node])
        return;
    if (letter->kind == WRITE) {
        const bool fails = chance(w, 10);
        *entry = fails ? 0 : letter->round;
        if (!fails)
            keeper_wrote(keeper, letter->epoch, letter->round);
        answer.kind = WRITTEN;
        answer.status = fails ? LS_EIO : LS_OK;
    } else {
        if (keeper_drops(keeper, letter->round, letter->verdict))
            *entry = 0;
        answer.kind = TOLD;
    }
    post(w, answer);
}

static void come(struct world *w, const struct letter *letter)
{
    if (letter->kind == WRITE || letter->kind == VERDICT)
        come_to_node(w, letter);
    else if (letter->round != w->round)
        return; /* calls match answers to questions */
    else if (letter->kind == TOLD)
        commit_told(&w->commit, letter->node);
    else
        commit_written(&w->commit, letter->node,
                       letter->status == LS_OK
                           ? LS_OK
                           : ls_error(letter->status, "the disk is full"));
}

/* To each node in order, as on the bus; otherwise in any. */
static void deliver(struct world *w)
{
    size_t at = (size_t)ls_rng_below(&w->random, w->n_letters);
    const struct letter picked = w->letters[at];
    for (size_t i = 0; i < at; i++)
        if (w->letters[i].node == picked.node &&
            (w->letters[i].kind == WRITE || w->letters[i].kind == VERDICT) ==
                (picked.kind == WRITE || picked.kind == VERDICT)) {
            at = i;
            break;
        }
    const struct letter letter = w->letters[at];
    memmove(&w->letters[at], &w->letters[at + 1],
            (--w->n_letters - at) * sizeof letter);
    come(w, &letter);
}

/* ---- a life ---- */

static bool kill_one(struct world *w)
{
    const size_t node = (size_t)ls_rng_below(&w->random, NODES);
    if (node == 0)
        return true; /* the committer, which ends all */
    if (!w->alive[node])
        return false;
    w->alive[node] = false;
    (void)ls_error(LS_ELOST, "node %zu was lost", node);
    commit_lost(&w->commit, node);
    return false;
}

/* Returns whether the committer has died. */
static bool save(struct world *w)
{
    int steps = 0;
    w->round++;
    commit_begin(&w->commit, &ops, w, w->nodes, NODES);
    for (size_t i = 0; i < NODES; i++)
        if (!w->alive[i]) {
            (void)ls_error(LS_ELOST, "node %zu is gone", i);
            commit_lost(&w->commit, i);
        }
    while (w->commit.phase != COMMIT_ENDED) {
        assert_true(++steps < 1000);
        if (chance(w, 40) && kill_one(w))
            return true;
        if (w->n_letters == 0 || chance(w, 40)) {
            (void)ls_error(LS_ETIMEDOUT, "too slow");
            commit_late(&w->commit);
        } else {
            deliver(w);
        }
        check(w);
    }
    if (w->commit.saved) {
        assert_int_equal(w->commit.failure.status, LS_OK);
        w->newest = w->epoch;
        w->n_saved++;
    } else {
        assert_true(w->commit.failure.status != LS_OK);
        assert_true(w->commit.failure.text[0] != '\0');
        w->n_failed++;
    }
    return false;
}

/* All go on from the newest; later ones are removed first, newest first. */
static void restart(struct world *w)
{
    const int64_t from = newest(&w->disk);
    assert_true(from >= w->newest);
    for (int64_t i = EPOCHS - 1; i > from; i--) {
        w->disk.manifests[i] = 0;
        check(w);
        for (size_t j = 0; j < NODES; j++)
            w->disk.entries[j][i] = 0;
    }
    w->n_letters = 0;
    memset(w->keepers, 0, sizeof w->keepers);
    for (size_t i = 0; i < NODES; i++)
        w->alive[i] = true;
    w->epoch = from;
}

static void play(uint64_t seed, size_t *saved, size_t *failed)
{
    struct world w = {.seed = seed, .newest = -1};
    ls_rng_seed(&w.random, seed, 0);
    restart(&w);
    for (int i = 0; i < 40; i++) {
        bool dead = false;
        for (size_t j = 0; j < NODES; j++)
            dead = dead || !w.alive[j];
        if (dead)
            restart(&w);
        if (++w.epoch == EPOCHS)
            break;
        if (save(&w))
            restart(&w);
    }
    *saved += w.n_saved;
    *failed += w.n_failed;
}

TEST(a_checkpoint_is_on_all_nodes_or_on_none)
{
    const struct seeds seeds = seeds_of(5000);
    size_t saved = 0, failed = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        play(seed, &saved, &failed);
    assert_true(saved > 0 && failed > 0);
}

/* ---- by hand ---- */

static size_t n_asked, n_named, n_kept, n_dropped;

static void count_write(void *self, size_t node)
{
    (void)self;
    (void)node;
    n_asked++;
}

static void count_name(void *self)
{
    (void)self;
    n_named++;
}

static void count_tell(void *self, size_t node, enum commit_verdict verdict)
{
    (void)self;
    (void)node;
    *(verdict == COMMIT_KEEP ? &n_kept : &n_dropped) += 1;
}

static const struct commit_ops counts = {count_write, count_name, count_tell};

static void begin(struct commit *commit, struct commit_node nodes[3])
{
    n_asked = n_named = n_kept = n_dropped = 0;
    commit_begin(commit, &counts, NULL, nodes, 3);
    assert_int_equal(n_asked, 3);
}

TEST(the_manifest_is_written_once_and_last)
{
    struct commit commit;
    struct commit_node nodes[3];
    begin(&commit, nodes);
    commit_written(&commit, 0, LS_OK);
    commit_written(&commit, 0, LS_OK);
    commit_written(&commit, 2, LS_OK);
    assert_int_equal(n_named, 0);
    commit_written(&commit, 1, LS_OK);
    assert_int_equal(n_named, 1);
    commit_lost(&commit, 1); /* it has done its part */
    commit_named(&commit, LS_OK, false);
    assert_true(commit.saved);
    assert_int_equal(n_kept, 2);
    commit_told(&commit, 0);
    assert_int_equal(commit.phase, COMMIT_TELLING);
    commit_told(&commit, 2);
    assert_int_equal(commit.phase, COMMIT_ENDED);
}

TEST(one_node_that_fails_is_enough_and_all_remove_their_entries)
{
    struct commit commit;
    struct commit_node nodes[3];
    begin(&commit, nodes);
    commit_written(&commit, 0, LS_OK);
    commit_written(&commit, 1, ls_error(LS_EIO, "the disk is full"));
    commit_written(&commit, 2, LS_OK);
    assert_int_equal(n_named, 0);
    assert_int_equal(n_dropped, 3);
    assert_int_equal(commit.failure.status, LS_EIO);
    assert_has(commit.failure.text, "the disk is full");
}

TEST(a_manifest_that_may_be_there_removes_nothing)
{
    struct commit commit;
    struct commit_node nodes[3];
    begin(&commit, nodes);
    for (size_t i = 0; i < 3; i++)
        commit_written(&commit, i, LS_OK);
    commit_named(&commit, ls_error(LS_EIO, "the disk"), false);
    assert_false(commit.saved);
    assert_int_equal(n_kept, 3);
    assert_int_equal(n_dropped, 0);
}

TEST(a_verdict_of_another_round_changes_nothing)
{
    struct keeper keeper = {.waits = false};
    keeper_wrote(&keeper, 4, 17);
    assert_false(keeper_drops(&keeper, 16, COMMIT_DROP));
    assert_true(keeper_drops(&keeper, 17, COMMIT_DROP));
    assert_false(keeper_drops(&keeper, 17, COMMIT_DROP));
}
