/* Checkpoints of all ranks, and weights alone. */
#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

#include "driver_inside.h"
#include "line.h"
#include "lockstep/log.h"
#include "lockstep/trainer.h"

/* What a rank is to do, and what came of it. */
struct job {
    const char *folder;
    int64_t number; /* to save, or to load */
    uint32_t
        fails_in;     /* this rank's blob cannot be saved or loaded; 99: none */
    uint32_t lies_in; /* this one writes another's entry; 99: none */
    struct ls_driver_loaded loaded;
    uint64_t hashes[4];
    uint64_t draws[4];
    int64_t shared[4], own[4];
    int statuses[4];
};

static int odd_size(void *self, uint64_t *out)
{
    (void)self;
    *out = 1;
    return LS_OK;
}

static int odd_save(void *self, ls_blob_sink *sink)
{
    (void)self;
    return ls_blob_sink_add(sink, "x", 1);
}

static int odd_load(void *self, ls_blob_source *source)
{
    char byte;
    (void)self;
    return ls_blob_source_read(source, &byte, 1);
}

static int fail_to_save(void *self, ls_blob_sink *sink)
{
    (void)self;
    (void)sink;
    return ls_error(LS_EIO, "no ink");
}

/* A model, and numbers that are the same in all ranks and in none. */
static int begin(struct job *job, ls_driver *driver)
{
    static const struct ls_blob_ops good = {odd_size, odd_save, odd_load};
    static const struct ls_blob_ops bad = {odd_size, fail_to_save, odd_load};
    const uint32_t rank = ls_driver_rank(driver);
    const struct ls_blob_form number = {.type = LS_BLOB_I64};
    TRY(line_setup(driver, &line_ops));
    TRY(ls_blobs_add(ls_driver_blobs(driver),
                     &(struct ls_blob){.name = "shared",
                                       .form = number,
                                       .memory = &job->shared[rank]}));
    TRY(ls_blobs_add(ls_driver_blobs(driver),
                     &(struct ls_blob){.name = "odd",
                                       .form = {LS_BLOB_BYTES, 1, {0}},
                                       .ops = &good}));
    TRY(ls_blobs_add(ls_driver_rank_blobs(driver),
                     &(struct ls_blob){.name = "own",
                                       .form = number,
                                       .memory = &job->own[rank]}));
    return ls_blobs_add(
        ls_driver_rank_blobs(driver),
        &(struct ls_blob){.name = "fragile",
                          .form = {LS_BLOB_BYTES, 1, {0}},
                          .ops = rank == job->fails_in ? &bad : &good});
}

static int become_another(ls_driver *driver, const char *folder)
{
    TRY(ls_checkpoints_close(&driver->saves.own));
    return ls_checkpoints_open(
        &driver->saves.own,
        &(struct ls_checkpoints_options){.folder = folder, .node = "rank.7"});
}

static int save(void *self, ls_driver *driver)
{
    struct job *job = self;
    const uint32_t rank = ls_driver_rank(driver);
    size_t n;
    TRY(begin(job, driver));
    job->shared[rank] = 100 + job->number;
    job->own[rank] = 10 * job->number + rank;
    double *w = ls_driver_parameters(driver, &n)[0].value;
    w[0] = (double)job->number;
    for (int64_t i = 0; i < job->number; i++) /* draws, and steps */
        (void)ls_rng_next(ls_driver_random(driver));
    TRY(ls_driver_zero_grad(driver));
    TRY(ls_driver_step(driver));
    TRY(ls_driver_open_checkpoints(
        driver, job->folder, &(struct ls_checkpoint_retention){.last = 9}));
    if (rank == job->lies_in)
        TRY(become_another(driver, job->folder));
    job->statuses[rank] = ls_driver_save(driver, job->number, false);
    job->hashes[rank] = ls_driver_hash(driver);
    if (job->statuses[rank] == LS_OK)
        job->draws[rank] = ls_rng_next(ls_driver_random(driver));
    return job->statuses[rank];
}

static int load(void *self, ls_driver *driver)
{
    struct job *job = self;
    const uint32_t rank = ls_driver_rank(driver);
    struct ls_driver_loaded loaded;
    TRY(begin(job, driver));
    TRY(ls_driver_open_checkpoints(driver, job->folder, NULL));
    job->statuses[rank] = ls_driver_load(driver, job->number, &loaded);
    if (job->statuses[rank] != LS_OK)
        return job->statuses[rank];
    if (rank == 0)
        job->loaded = loaded;
    job->hashes[rank] = ls_driver_hash(driver);
    job->draws[rank] = ls_rng_next(ls_driver_random(driver));
    return LS_OK;
}

static struct job job_of(const struct scratch *scratch, int64_t number)
{
    return (struct job){.folder = scratch->folder,
                        .number = number,
                        .fails_in = 99,
                        .lies_in = 99};
}

static void break_file(const struct scratch *scratch, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", scratch->folder, name);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -40, SEEK_END), 0);
    const int was = fgetc(file);
    assert_int_equal(fseek(file, -40, SEEK_END), 0);
    assert_int_equal(fputc(was ^ 1, file), was ^ 1);
    assert_int_equal(fclose(file), 0);
}

#define WITH_FOLDER(name) TEST_WITH(name, scratch_set_up, scratch_tear_down)

WITH_FOLDER(what_is_saved_is_loaded_in_all_ranks)
{
    struct job saved = job_of(*state, 3), loaded = job_of(*state, 3);
    assert_ok(run_threads(3, save, &saved));
    assert_ok(run_threads(3, load, &loaded));
    assert_int_equal(loaded.loaded.number, 3);
    assert_true(loaded.loaded.is_same_ranks);
    assert_false(loaded.loaded.stopped);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(loaded.hashes[i], saved.hashes[0]);
        assert_int_equal(loaded.draws[i], saved.draws[i]);
        assert_int_equal(loaded.shared[i], 103);
        assert_int_equal(loaded.own[i], 30 + i);
    }
}

static int save_zeros(void *self, ls_driver *driver)
{
    struct job *job = self;
    TRY(begin(job, driver));
    *ls_driver_random(driver) = (struct ls_rng){{0}};
    TRY(ls_driver_open_checkpoints(driver, job->folder, NULL));
    return ls_driver_save(driver, job->number, false);
}

/* As in a foreign file: a shuffle by it would never end. */
WITH_FOLDER(a_generator_of_zeros_is_not_loaded)
{
    struct job saved = job_of(*state, 3), loaded = job_of(*state, 3);
    assert_ok(run_threads(2, save_zeros, &saved));
    assert_fails(run_threads(2, load, &loaded), LS_EPROTO);
    assert_error_has("zeros");
}

WITH_FOLDER(other_numbers_of_ranks_load_what_is_shared)
{
    struct job saved = job_of(*state, 3);
    assert_ok(run_threads(3, save, &saved));
    for (uint32_t n = 2; n <= 4; n += 2) {
        struct job loaded = job_of(*state, LS_CHECKPOINT_NONE);
        assert_ok(run_threads(n, load, &loaded));
        assert_false(loaded.loaded.is_same_ranks);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(loaded.hashes[i], saved.hashes[0]);
            assert_int_equal(loaded.shared[i], 103);
            assert_int_equal(loaded.own[i], 0);
        }
    }
}

WITH_FOLDER(the_newest_that_is_whole_in_all_ranks_is_loaded)
{
    static const char *const damaged[] = {"manifest.000003", "rank.1.000002",
                                          "shared.000001"};
    for (int64_t i = 1; i <= 3; i++) {
        struct job saved = job_of(*state, i);
        assert_ok(run_threads(2, save, &saved));
    }
    for (int64_t i = 3; i >= 1; i--) {
        struct job loaded = job_of(*state, LS_CHECKPOINT_NONE);
        assert_ok(run_threads(2, load, &loaded));
        assert_int_equal(loaded.loaded.number, i);
        assert_int_equal(loaded.shared[1], 100 + i);
        break_file(*state, damaged[3 - i]);
    }
    struct job none = job_of(*state, LS_CHECKPOINT_NONE);
    assert_fails(run_threads(2, load, &none), LS_EPROTO);
    assert_error_has("all 3 checkpoints are damaged");
}

static int load_and_save(void *self, ls_driver *driver)
{
    struct ls_driver_loaded loaded;
    struct job *job = self;
    TRY(begin(job, driver));
    TRY(ls_driver_open_checkpoints(
        driver, job->folder, &(struct ls_checkpoint_retention){.last = 9}));
    TRY(ls_driver_load(driver, 1, &loaded));
    return ls_driver_save(driver, 2, true);
}

WITH_FOLDER(who_goes_on_from_an_earlier_one_replaces_those_after_it)
{
    for (int64_t i = 1; i <= 3; i++) {
        struct job saved = job_of(*state, i);
        assert_ok(run_threads(2, save, &saved));
    }
    struct job again = job_of(*state, 0), loaded = job_of(*state, -1);
    assert_ok(run_threads(2, load_and_save, &again));
    assert_ok(run_threads(2, load, &loaded));
    assert_int_equal(loaded.loaded.number, 2);
    assert_true(loaded.loaded.stopped);
    assert_int_equal(loaded.shared[1], 101); /* that of the first */
}

/* Two numbers, which rank 1 registers the other way round. */
static int load_crossed(void *self, ls_driver *driver)
{
    const struct job *job = self;
    const uint32_t rank = ls_driver_rank(driver);
    int64_t values[2] = {1, 2};
    struct ls_driver_loaded loaded;
    TRY(line_setup(driver, &line_ops));
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = i ^ rank;
        TRY(ls_blobs_add(ls_driver_blobs(driver),
                         &(struct ls_blob){.name = at == 0 ? "one" : "two",
                                           .form = {.type = LS_BLOB_I64},
                                           .memory = &values[at]}));
    }
    TRY(ls_driver_open_checkpoints(driver, job->folder, NULL));
    TRY(ls_driver_save(driver, 1, false));
    TRY(ls_driver_load(driver, 1, &loaded));
    CHECK(values[0] == 1 && values[1] == 2);
    return LS_OK;
}

WITH_FOLDER(blobs_that_ranks_have_in_another_order_are_not_mixed_up)
{
    struct job job = job_of(*state, 1);
    assert_fails(run_threads(2, load_crossed, &job), LS_EMISMATCH);
    assert_error_has("two");
}

/* One rank has a blob more than the other. */
static int load_with_one_more(void *self, ls_driver *driver)
{
    const struct job *job = self;
    int64_t values[2] = {1, 2};
    struct ls_driver_loaded loaded;
    TRY(line_setup(driver, &line_ops));
    for (int i = 0; i < 1 + (ls_driver_rank(driver) == job->number); i++)
        TRY(ls_blobs_add(ls_driver_blobs(driver),
                         &(struct ls_blob){.name = i == 0 ? "one" : "two",
                                           .form = {.type = LS_BLOB_I64},
                                           .memory = &values[i]}));
    TRY(ls_driver_open_checkpoints(driver, job->folder, NULL));
    TRY(ls_driver_save(driver, job->number, false));
    CHECK_FAILS(ls_driver_load(driver, job->number, &loaded), LS_EMISMATCH);
    CHECK_ERROR_HAS("two");
    return ls_driver_barrier(driver); /* they are in step */
}

WITH_FOLDER(a_blob_that_one_rank_has_alone_fails_the_load_in_all)
{
    for (int64_t who = 0; who < 2; who++) {
        struct job job = job_of(*state, who);
        assert_ok(run_threads(2, load_with_one_more, &job));
    }
}

static int fail_to_load_and_save(void *self, ls_driver *driver)
{
    struct ls_driver_loaded loaded;
    struct job *job = self;
    TRY(begin(job, driver));
    TRY(ls_driver_open_checkpoints(
        driver, job->folder, &(struct ls_checkpoint_retention){.last = 9}));
    CHECK(ls_driver_load(driver, 1, &loaded) != LS_OK);
    return ls_driver_save(driver, job->number, false);
}

/* The run does not go on from it. */
WITH_FOLDER(a_load_that_fails_removes_nothing)
{
    struct job again = job_of(*state, 4), loaded = job_of(*state, 3);
    for (int64_t i = 1; i <= 3; i++) {
        struct job saved = job_of(*state, i);
        assert_ok(run_threads(2, save, &saved));
    }
    break_file(*state, "rank.1.000001");
    assert_ok(run_threads(2, fail_to_load_and_save, &again));
    assert_ok(run_threads(2, load, &loaded));
    assert_int_equal(loaded.shared[1], 103);
}

/* Of three checkpoints the third can be loaded after this, which saves a
 * fourth. */
static void check_third_stays(void *folder, ls_driver_fn *fn)
{
    struct job again = job_of(folder, 4), loaded = job_of(folder, 3);
    for (int64_t i = 1; i <= 3; i++) {
        struct job saved = job_of(folder, i);
        assert_ok(run_threads(2, save, &saved));
    }
    assert_ok(run_threads(2, fn, &again));
    assert_ok(run_threads(2, load, &loaded));
    assert_int_equal(loaded.shared[1], 103);
}

static int load_then_fail_and_save(void *self, ls_driver *driver)
{
    struct ls_driver_loaded loaded;
    const struct job *job = self;
    TRY(begin(self, driver));
    TRY(ls_driver_open_checkpoints(
        driver, job->folder, &(struct ls_checkpoint_retention){.last = 9}));
    TRY(ls_driver_load(driver, 1, &loaded));
    CHECK(ls_driver_load(driver, 99, &loaded) != LS_OK);
    return ls_driver_save(driver, job->number, false);
}

/* Nor does the next save remove what an earlier load was to. */
WITH_FOLDER(a_load_that_fails_takes_back_what_one_before_was_to_remove)
{
    check_third_stays(*state, load_then_fail_and_save);
}

static int end_and_save_elsewhere(void *self, ls_driver *driver)
{
    const struct job *job = self;
    char folder[128];
    (void)snprintf(folder, sizeof folder, "%s/ended", job->folder);
    TRY(line_setup(driver, &line_ops));
    for (int i = 0; i < 2; i++) /* the second one has nothing to do */
        TRY(ls_trainer_run(driver,
                           &(struct ls_trainer_options){.data = &line_data,
                                                        .epochs = 1,
                                                        .batch_size = 40,
                                                        .folder = folder,
                                                        .resume = true},
                           NULL));
    TRY(ls_driver_open_checkpoints(
        driver, job->folder, &(struct ls_checkpoint_retention){.last = 9}));
    return ls_driver_save(driver, job->number, false);
}

/* What was loaded from one folder says nothing of another. */
WITH_FOLDER(a_folder_is_saved_to_after_another_was_loaded_from)
{
    check_third_stays(*state, end_and_save_elsewhere);
}

/* Hosts of their own ---------------------------------------------------------
 */

static void folder_of(const struct job *job, const ls_driver *driver,
                      char out[128])
{
    (void)snprintf(out, 128, "%s/host%u", job->folder, ls_driver_rank(driver));
}

static int save_on_hosts(void *self, ls_driver *driver)
{
    struct job *job = self;
    char folder[128];
    TRY(begin(job, driver));
    folder_of(job, driver, folder);
    TRY(ls_driver_open_checkpoints(
        driver, folder, &(struct ls_checkpoint_retention){.last = 2}));
    for (int64_t i = 1; i <= job->number; i++)
        TRY(ls_driver_save(driver, i, false));
    return LS_OK;
}

static int load_on_hosts(void *self, ls_driver *driver)
{
    struct ls_driver_loaded loaded;
    struct job *job = self;
    char folder[128];
    TRY(begin(job, driver));
    folder_of(job, driver, folder);
    TRY(ls_driver_open_checkpoints(driver, folder, NULL));
    TRY(ls_driver_load(driver, LS_CHECKPOINT_NONE, &loaded));
    if (ls_driver_rank(driver) == 0)
        job->loaded = loaded;
    return LS_OK;
}

static unsigned count_files(const struct scratch *scratch, const char *folder)
{
    char path[128];
    const struct dirent *entry;
    unsigned n = 0;
    (void)snprintf(path, sizeof path, "%s/%s", scratch->folder, folder);
    DIR *entries = opendir(path);
    assert_non_null(entries);
    while ((entry = readdir(entries)) != NULL)
        n += entry->d_name[0] != '.';
    assert_int_equal(closedir(entries), 0);
    return n;
}

/* No disk fills up with entries of checkpoints that are gone. */
WITH_FOLDER(what_rank_zero_removes_goes_on_all_hosts)
{
    struct job saved = job_of(*state, 5);
    assert_ok(run_threads(3, save_on_hosts, &saved));
    assert_int_equal(count_files(*state, "host0"), 6);
    assert_int_equal(count_files(*state, "host1"), 2);
    assert_int_equal(count_files(*state, "host2"), 2);
}

static void count_passed(void *self, const char *line)
{
    atomic_int *passed = self;
    if (strstr(line, "is passed over: ") != NULL)
        atomic_fetch_add(passed, 1);
}

/* Once each, wherever it is damaged. */
WITH_FOLDER(what_is_passed_over_is_said)
{
    struct job saved = job_of(*state, 5), loaded = job_of(*state, 0);
    atomic_int passed = 0;
    assert_ok(run_threads(2, save_on_hosts, &saved)); /* the last two stay */
    break_file(*state, "host1/rank.1.000005");
    ls_log_redirect(count_passed, &passed);
    assert_ok(run_threads(2, load_on_hosts, &loaded));
    assert_int_equal(loaded.loaded.number, 4);
    assert_int_equal(passed, 1);
    break_file(*state, "host0/shared.000005");
    assert_ok(run_threads(2, load_on_hosts, &loaded));
    ls_log_redirect(NULL, NULL);
    assert_int_equal(loaded.loaded.number, 4);
    assert_int_equal(passed, 2);
}

static int save_one_on_hosts(void *self, ls_driver *driver)
{
    struct job *job = self;
    char folder[128];
    TRY(begin(job, driver));
    folder_of(job, driver, folder);
    TRY(ls_driver_open_checkpoints(
        driver, folder, &(struct ls_checkpoint_retention){.last = 2}));
    return ls_driver_save(driver, job->number, false);
}

/* What a rank saved is not of the one that is loaded in the end. */
WITH_FOLDER(nothing_stays_of_what_is_passed_over)
{
    struct job one = job_of(*state, 1), two = job_of(*state, 2),
               loaded = job_of(*state, 0);
    one.shared[0] = 101;
    two.shared[0] = two.shared[1] = 102;
    two.own[0] = 20;
    loaded.own[0] = -1;
    assert_ok(run_threads(1, save_one_on_hosts, &one));
    assert_ok(run_threads(2, save_one_on_hosts, &two));
    break_file(*state, "host1/rank.1.000002");
    assert_ok(run_threads(2, load_on_hosts, &loaded));
    assert_int_equal(loaded.loaded.number, 1);
    assert_false(loaded.loaded.is_same_ranks);
    assert_int_equal(loaded.shared[1], 101);
    assert_int_equal(loaded.own[0], -1);
}

WITH_FOLDER(a_host_that_has_lost_all_is_no_beginning)
{
    struct job job = job_of(*state, 2);
    assert_ok(run_threads(2, save_on_hosts, &job));
    break_file(*state, "host1/rank.1.000002");
    break_file(*state, "host1/rank.1.000001");
    assert_fails(run_threads(2, load_on_hosts, &job), LS_EPROTO);
    assert_error_has("all 2 checkpoints are damaged");
}

/* ----------------------------------------------------------------------------
 */

WITH_FOLDER(a_save_that_fails_in_one_rank_is_none)
{
    for (uint32_t who = 0; who < 2; who++) {
        struct job saved = job_of(*state, 1), loaded = job_of(*state, -1);
        saved.fails_in = who;
        assert_fails(run_threads(2, save, &saved), LS_EIO);
        assert_error_has("the blob fragile: no ink");
        assert_int_equal(saved.statuses[who], LS_EIO);
        assert_int_equal(saved.statuses[1 - who], LS_EABORTED);
        assert_ok(run_threads(2, load, &loaded));
        assert_int_equal(loaded.loaded.number, LS_CHECKPOINT_NONE);
        assert_true(loaded.loaded.is_same_ranks);
    }
}

WITH_FOLDER(a_save_in_which_one_rank_writes_the_entry_of_another_is_none)
{
    for (uint32_t who = 0; who < 2; who++) {
        struct job saved = job_of(*state, 1), loaded = job_of(*state, -1);
        saved.lies_in = who;
        assert_fails(run_threads(2, save, &saved), LS_EPROTO);
        assert_error_has("it has written the entry of \"rank.7\", "
                         "and not that of \"rank.");
        assert_int_equal(saved.statuses[0], LS_EPROTO);
        assert_int_equal(saved.statuses[1], LS_EPROTO);
        assert_ok(run_threads(2, load, &loaded));
        assert_int_equal(loaded.loaded.number, LS_CHECKPOINT_NONE);
    }
}

WITH_FOLDER(a_number_that_is_not_there_is_named)
{
    struct job saved = job_of(*state, 3), loaded = job_of(*state, 2);
    assert_ok(run_threads(2, save, &saved));
    assert_fails(run_threads(2, load, &loaded), LS_ENOENT);
    assert_int_equal(loaded.statuses[1], LS_EABORTED);
    struct job again = job_of(*state, 3);
    assert_fails(run_threads(2, save, &again), LS_EEXIST);
}

static int open_twice(void *self, ls_driver *driver)
{
    const struct job *job = self;
    TRY(ls_driver_open_checkpoints(driver, job->folder, NULL));
    CHECK_FAILS(ls_driver_open_checkpoints(driver, job->folder, NULL),
                LS_ESTATE);
    /* Another run in this folder. */
    return ls_driver_run(&(struct ls_driver_options){.kind = LS_DRIVER_SINGLE},
                         load, self);
}

static int save_alone(void *self, ls_driver *driver)
{
    struct ls_driver_loaded loaded;
    (void)self;
    CHECK_FAILS(ls_driver_save(driver, 1, false), LS_ESTATE);
    CHECK_ERROR_HAS("without the others");
    CHECK_FAILS(ls_driver_load(driver, 1, &loaded), LS_ESTATE);
    return LS_OK;
}

static int save_alone_and_together(void *self, ls_driver *driver)
{
    const struct job *job = self;
    TRY(ls_driver_open_checkpoints(driver, job->folder, NULL));
    TRY(ls_driver_rank_zero(driver, save_alone, NULL));
    return ls_driver_save(driver, 1, false);
}

WITH_FOLDER(one_rank_alone_saves_nothing)
{
    struct job job = job_of(*state, 1);
    assert_ok(run_threads(2, save_alone_and_together, &job));
}

WITH_FOLDER(one_run_at_a_time_has_a_folder)
{
    struct job job = job_of(*state, 1);
    assert_fails(run_kind(LS_DRIVER_SINGLE, 0, open_twice, &job), LS_EAGAIN);
}

/* Weights alone -------------------------------------------------------------
 */

static int save_model(void *self, ls_driver *driver)
{
    struct job *job = self;
    size_t n;
    TRY(line_setup(driver, &line_ops));
    *(double *)ls_driver_parameters(driver, &n)[1].value = (double)job->number;
    job->hashes[ls_driver_rank(driver)] = ls_driver_hash(driver);
    return ls_driver_save_model(driver, job->folder);
}

static int load_model(void *self, ls_driver *driver)
{
    struct job *job = self;
    TRY(line_setup(driver, &line_ops));
    TRY(ls_driver_load_model(driver, job->folder));
    job->hashes[ls_driver_rank(driver)] = ls_driver_hash(driver);
    return LS_OK;
}

WITH_FOLDER(weights_are_saved_by_one_rank_and_loaded_by_all)
{
    struct job saved = job_of(*state, 0), loaded = job_of(*state, 0);
    assert_fails(run_threads(2, load_model, &loaded), LS_ENOENT);
    for (saved.number = 5; saved.number <= 6; saved.number++) {
        assert_ok(run_threads(3, save_model, &saved));
        assert_ok(run_threads(2, load_model, &loaded));
        assert_int_equal(loaded.hashes[0], saved.hashes[0]);
        assert_int_equal(loaded.hashes[1], saved.hashes[0]);
    }
    /* One file of weights, one manifest. */
    const struct scratch *scratch = *state;
    DIR *entries = opendir(scratch->folder);
    const struct dirent *entry;
    unsigned n = 0;
    assert_non_null(entries);
    while ((entry = readdir(entries)) != NULL)
        n += entry->d_name[0] != '.';
    assert_int_equal(closedir(entries), 0);
    assert_int_equal(n, 2);
}

static bool is_there(const struct scratch *scratch, const char *name)
{
    char path[sizeof scratch->folder + 32];
    (void)snprintf(path, sizeof path, "%s/%s", scratch->folder, name);
    return access(path, F_OK) == 0;
}

/* Also if its manifest is, which then stays: what it was is for people. */
WITH_FOLDER(weights_that_are_damaged_are_saved_anew)
{
    static const char *const damaged[] = {"model.000000", "manifest.000001"};
    struct job saved = job_of(*state, 5), loaded = job_of(*state, 0);
    assert_ok(run_threads(2, save_model, &saved));
    for (int i = 0; i < 2; i++) {
        break_file(*state, damaged[i]);
        assert_fails(run_threads(2, load_model, &loaded), LS_ENOENT);
        assert_ok(run_threads(2, save_model, &saved));
        assert_ok(run_threads(2, load_model, &loaded));
        assert_int_equal(loaded.hashes[1], saved.hashes[0]);
    }
    assert_false(is_there(*state, "model.000000"));
    assert_true(is_there(*state, "manifest.000001"));
    assert_true(is_there(*state, "model.000001"));
}

WITH_FOLDER(weights_come_from_a_checkpoint_too_but_do_not_replace_it)
{
    struct job saved = job_of(*state, 4), loaded = job_of(*state, 0);
    assert_ok(run_threads(2, save, &saved));
    assert_ok(run_threads(3, load_model, &loaded));
    assert_int_equal(loaded.hashes[2], saved.hashes[0]);
    assert_fails(run_threads(2, save_model, &loaded), LS_EMISMATCH);
    assert_error_has("a folder of its own");
    break_file(*state, "shared.000004"); /* it is one still */
    assert_fails(run_threads(2, save_model, &loaded), LS_EMISMATCH);
}

WITH_FOLDER(weights_alone_are_no_checkpoint_of_a_training)
{
    struct job job = job_of(*state, 1), none = job_of(*state, -1);
    assert_ok(run_threads(2, save_model, &job));
    assert_fails(run_threads(2, load, &none), LS_EMISMATCH);
    assert_error_has("has no entry \"shared\"");
    assert_int_equal(none.statuses[1], LS_EABORTED);
}

static bool other_parameter(const void *model, size_t at,
                            struct ls_parameter *out)
{
    const bool is_one = line_parameter(model, at, out);
    if (at == 0)
        out->form.shape[0] = 3;
    return is_one;
}

static int load_other(void *self, ls_driver *driver)
{
    const struct job *job = self;
    struct ls_model_ops other = line_ops;
    other.parameter = other_parameter;
    TRY(line_setup(driver, &other));
    return ls_driver_load_model(driver, job->folder);
}

enum { EXTRAS = 240 };

struct extras {
    const char *folder;
    int64_t values[EXTRAS], private;
};

static int add_extras(struct extras *extras, ls_driver *driver)
{
    const struct ls_blob_form number = {.type = LS_BLOB_I64};
    for (int i = 0; i < EXTRAS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "model.extra.%d", i);
        TRY(ls_blobs_add(ls_driver_blobs(driver),
                         &(struct ls_blob){.name = name,
                                           .form = number,
                                           .memory = &extras->values[i]}));
    }
    return ls_blobs_add(ls_driver_blobs(driver),
                        &(struct ls_blob){.name = "model.private",
                                          .form = number,
                                          .is_private = true,
                                          .memory = &extras->private});
}

static int save_and_load_extras(void *self, ls_driver *driver)
{
    struct extras *extras = self;
    TRY(line_setup(driver, &line_ops));
    TRY(add_extras(extras, driver));
    extras->values[EXTRAS - 1] = 7;
    TRY(ls_driver_save_model(driver, extras->folder));
    extras->values[EXTRAS - 1] = 8;
    TRY(ls_driver_load_model(driver, extras->folder));
    CHECK(extras->values[EXTRAS - 1] == 7);
    return LS_OK;
}

/* What a model adds under such a name is its own, too, however much it is. */
WITH_FOLDER(a_model_has_more_than_its_parameters)
{
    const struct scratch *scratch = *state;
    struct extras extras = {.folder = scratch->folder};
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, save_and_load_extras, &extras));
}

WITH_FOLDER(weights_of_another_shape_are_refused)
{
    struct job job = job_of(*state, 1);
    assert_ok(run_threads(2, save_model, &job));
    assert_fails(run_threads(2, load_other, &job), LS_EMISMATCH);
    assert_error_has("model.w is f64[2], and must be f64[3]");
}
