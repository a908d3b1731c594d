/* Ranks on threads and alone: what they do together, and how they end. */
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#include "line.h"
#include "lockstep/file.h"
#include "lockstep/log.h"
#include "lockstep/queue.h"

/* Who and where ------------------------------------------------------------ */

static int see_places(void *self, ls_driver *driver)
{
    const uint32_t rank = ls_driver_rank(driver);
    atomic_uint *seen = self;
    CHECK(ls_driver_local_rank(driver) == rank);
    CHECK(ls_driver_seed(driver) == 5);
    CHECK(ls_group_rank(ls_driver_group(driver)) == rank);
    CHECK(ls_driver_runtime(driver) == ls_runtime_threads());
    atomic_fetch_add(seen, 1u << (4 * rank));
    return LS_OK;
}

TEST(each_rank_runs_once)
{
    atomic_uint seen = 0;
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, see_places, &seen));
    assert_int_equal(seen, 1);
    seen = 0;
    assert_ok(run_threads(4, see_places, &seen));
    assert_int_equal(seen, 0x1111);
    assert_string_equal(ls_driver_kind_name(LS_DRIVER_SINGLE), "single");
    assert_string_equal(ls_driver_kind_name(LS_DRIVER_THREADS), "threads");
    assert_string_equal(ls_driver_kind_name(LS_DRIVER_BUS), "bus");
    assert_string_equal(ls_driver_kind_name(LS_DRIVER_GROUP), "group");
    assert_null(ls_driver_kind_name((enum ls_driver_kind)4));
}

static int be_joined(void *self, ls_driver *driver)
{
    CHECK(ls_driver_kind_of(driver) == LS_DRIVER_GROUP);
    CHECK(ls_driver_size(driver) == 1);
    return see_places(self, driver);
}

TEST(a_group_that_exists_is_joined_and_kept)
{
    ls_group *group;
    atomic_uint seen = 0;
    assert_ok(ls_group_threads(&group, ls_runtime_threads(), 1));
    for (int i = 0; i < 2; i++)
        assert_ok(ls_driver_run(
            &(struct ls_driver_options){
                .kind = LS_DRIVER_GROUP, .group = group, .seed = 5},
            be_joined, &seen));
    assert_int_equal(seen, 2);
    assert_ok(ls_group_destroy(&group));
}

static int note_hash(void *self, ls_driver *driver)
{
    uint64_t *hash = self;
    CHECK(ls_driver_size(driver) == 2);
    CHECK(ls_driver_local_rank(driver) == ls_driver_rank(driver));
    TRY(line_setup(driver, &line_ops));
    *hash = ls_driver_hash(driver);
    return LS_OK;
}

/* Two models, each of two ranks, with seeds of their own. */
static int split_and_join(void *self, ls_driver *driver)
{
    const uint32_t rank = ls_driver_rank(driver);
    uint64_t *hashes = self;
    ls_group *half;
    TRY(ls_group_split(&half, ls_driver_group(driver), rank % 2, 60000));
    TRY(ls_driver_run(&(struct ls_driver_options){.kind = LS_DRIVER_GROUP,
                                                  .group = half,
                                                  .seed = rank % 2},
                      note_hash, &hashes[rank]));
    return ls_group_destroy(&half);
}

TEST(sub_groups_train_by_themselves)
{
    uint64_t hashes[4];
    assert_ok(run_threads(4, split_and_join, hashes));
    assert_int_equal(hashes[0], hashes[2]);
    assert_int_equal(hashes[1], hashes[3]);
    assert_true(hashes[0] != hashes[1]);
}

TEST(options_that_lack_something_are_refused)
{
    static const struct {
        struct ls_driver_options options;
        const char *text;
    } none[] = {
        {{.kind = (enum ls_driver_kind)9}, "9 is not a kind"},
        {{.kind = LS_DRIVER_THREADS}, "n_threads"},
        {{.kind = LS_DRIVER_THREADS, .n_threads = UINT32_MAX}, "1 to 4096"},
        {{.kind = LS_DRIVER_BUS}, "no node"},
        {{.kind = LS_DRIVER_GROUP}, "no group"},
        {{.kind = LS_DRIVER_SINGLE, .timeout_ms = -1}, "timeout_ms"}};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_fails(ls_driver_run(&none[i].options, see_places, NULL),
                     LS_EINVAL);
        assert_error_has(none[i].text);
    }
}

static int draw(void *self, ls_driver *driver)
{
    uint64_t *drawn = self;
    drawn[ls_driver_rank(driver)] = ls_rng_next(ls_driver_random(driver));
    return LS_OK;
}

TEST(each_rank_draws_its_own_numbers_which_follow_from_the_seed)
{
    uint64_t drawn[3], again[3];
    assert_ok(run_threads(3, draw, drawn));
    assert_ok(run_threads(3, draw, again));
    assert_memory_equal(drawn, again, sizeof drawn);
    assert_true(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
}

/* Together ----------------------------------------------------------------- */

static ls_writer *number(int64_t value)
{
    ls_writer *writer;
    if (ls_writer_create(&writer) != LS_OK)
        return NULL;
    ls_write_int(writer, value);
    return writer;
}

static int value_of(const ls_document *document)
{
    int64_t value;
    return ls_value_int(ls_document_root(document), &value) == LS_OK
               ? (int)value
               : -1;
}

static int exchange_with_all(ls_driver *driver)
{
    const uint32_t rank = ls_driver_rank(driver), size = ls_driver_size(driver);
    ls_document *all[4] = {NULL}, *from;
    size_t n;
    ls_writer *mine = number(10 + (int64_t)rank);
    TRY(ls_driver_broadcast_object(driver, mine, size - 1, &from));
    CHECK(value_of(from) == 9 + (int)size);
    ls_document_destroy(&from);
    TRY(ls_driver_all_gather_object(driver, mine, all, &n));
    CHECK(n == size);
    for (size_t i = 0; i < n; i++) {
        CHECK(value_of(all[i]) == 10 + (int)i);
        ls_document_destroy(&all[i]);
    }
    ls_writer_destroy(&mine);
    return LS_OK;
}

static int exchange(void *self, ls_driver *driver)
{
    const uint32_t rank = ls_driver_rank(driver), size = ls_driver_size(driver);
    bool any;
    (void)self;
    TRY(ls_driver_barrier(driver));
    TRY(exchange_with_all(driver));
    TRY(ls_driver_any(driver, rank == size - 1, &any));
    CHECK(any);
    TRY(ls_driver_any(driver, false, &any));
    CHECK(!any);
    return LS_OK;
}

TEST(what_one_rank_has_reaches_all)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, exchange, NULL));
    assert_ok(run_threads(4, exchange, NULL));
}

/* Sections without the others ---------------------------------------------- */

static int alone(void *self, ls_driver *driver)
{
    ls_document *own[4] = {NULL}, *from;
    size_t n;
    bool any;
    unsigned *ran = self;
    ls_writer *mine = number(7);
    TRY(ls_driver_barrier(driver)); /* would wait for ever */
    TRY(ls_driver_broadcast_object(driver, mine, 0, &from));
    CHECK(from == NULL); /* even in the root */
    TRY(ls_driver_all_gather_object(driver, mine, own, &n));
    CHECK(n == 1 && value_of(own[0]) == 7);
    ls_document_destroy(&own[0]);
    CHECK_FAILS(ls_driver_all_gather_object(driver, NULL, own, &n), LS_EINVAL);
    CHECK_ERROR_HAS("no value");
    CHECK(own[0] == NULL);
    TRY(ls_driver_any(driver, false, &any));
    CHECK(!any);
    struct ls_driver_loaded loaded;
    CHECK_FAILS(ls_driver_save(driver, 1, false), LS_ESTATE);
    CHECK_FAILS(ls_driver_load(driver, 1, &loaded), LS_ESTATE);
    CHECK_FAILS(ls_driver_open_checkpoints(driver, "none", NULL), LS_ESTATE);
    CHECK_ERROR_HAS("without the others");
    CHECK_FAILS(ls_driver_setup(driver, &(struct ls_driver_setup){0}),
                LS_ESTATE);
    CHECK_ERROR_HAS("without the others");
    ls_writer_destroy(&mine);
    ++*ran;
    return LS_OK;
}

static int learn_alone(void *self, ls_driver *driver)
{
    size_t n;
    (void)self;
    const double *gradient = ls_driver_parameters(driver, &n)[0].gradient;
    struct line *line = ls_driver_model(driver);
    line->gradient[0] = 1.0;
    TRY(ls_driver_zero_grad(driver));
    CHECK_FAILS(ls_driver_backward(driver, 1.0, true), LS_ESTATE);
    CHECK_ERROR_HAS("without the others");
    CHECK(gradient[0] == 0.0); /* it can be done again outside */
    TRY(ls_driver_backward(driver, 1.0, false));
    CHECK(gradient[0] == 1.0);
    CHECK_FAILS(ls_driver_save_model(driver, "none"), LS_ESTATE);
    CHECK_FAILS(ls_driver_load_model(driver, "none"), LS_ESTATE);
    CHECK_ERROR_HAS("without the others");
    return LS_OK;
}

static int set_up_and_learn_alone(void *self, ls_driver *driver)
{
    TRY(line_setup(driver, &line_ops));
    return ls_driver_rank_zero(driver, learn_alone, self);
}

TEST(what_takes_all_ranks_changes_nothing_without_them)
{
    assert_ok(run_threads(2, set_up_and_learn_alone, NULL));
}

static int run_alone(void *self, ls_driver *driver)
{
    TRY(ls_driver_rank_zero(driver, alone, self));
    return exchange(NULL, driver); /* all is as before */
}

TEST(rank_zero_runs_alone_and_the_others_wait)
{
    unsigned ran = 0;
    assert_ok(run_threads(3, run_alone, &ran));
    assert_int_equal(ran, 1);
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, run_alone, &ran));
    assert_int_equal(ran, 2);
}

static int fail_alone(void *self, ls_driver *driver)
{
    (void)self;
    (void)driver;
    return ls_error(LS_EIO, "no disk");
}

static int fail_nested(void *self, ls_driver *driver)
{
    return ls_driver_rank_zero(driver, fail_alone, self);
}

static int survive(void *self, ls_driver *driver)
{
    (void)self;
    for (int nested = 0; nested < 2; nested++) {
        const int status = ls_driver_rank_zero(
            driver, nested == 1 ? fail_nested : fail_alone, NULL);
        if (ls_driver_rank(driver) == 0) {
            CHECK(status == LS_EIO);
            CHECK(strcmp(ls_error_text(), "no disk") == 0);
        } else {
            CHECK(status == LS_EABORTED);
            CHECK(ls_error_cause() == LS_EIO);
            CHECK(strcmp(ls_error_text(), "rank 0: no disk") == 0);
        }
    }
    return exchange(NULL, driver); /* barriers are on again */
}

TEST(a_section_that_fails_is_left_properly)
{
    assert_ok(run_threads(3, survive, NULL));
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, survive, NULL));
}

static int no_barrier(void *self, ls_driver *driver)
{
    bool any;
    (void)self;
    if (ls_driver_rank(driver) == 0)
        TRY(ls_driver_barrier(driver)); /* the others do not */
    TRY(ls_driver_any(driver, ls_driver_rank(driver) == 1, &any));
    CHECK(any); /* exchanges go on */
    TRY(exchange_with_all(driver));
    return ls_error(LS_EAGAIN, "as it should");
}

static int leave_out_barriers(void *self, ls_driver *driver)
{
    (void)self;
    CHECK(ls_driver_without_sync(driver, LS_NO_BARRIER, no_barrier, NULL) ==
          LS_EAGAIN);
    return exchange(NULL, driver);
}

TEST(barriers_can_be_left_out_alone)
{
    assert_ok(run_threads(2, leave_out_barriers, NULL));
}

/* Failures ----------------------------------------------------------------- */

static int fail_in_one(void *self, ls_driver *driver)
{
    const uint32_t who = *(const uint32_t *)self;
    if (ls_driver_rank(driver) == who)
        return ls_error(LS_EHANDLER, "something \xff broke");
    const int status = ls_driver_barrier(driver);
    CHECK(status == LS_EABORTED);
    CHECK(ls_error_cause() == LS_EHANDLER);
    return status;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = calloc(1, 1024);
    assert_non_null(file);
    assert_non_null(line);
    assert_non_null(fgets(line, 1023, file));
    assert_int_equal(fgetc(file), EOF); /* one report */
    assert_int_equal(fclose(file), 0);
    return line;
}

TEST_WITH(the_first_cause_is_returned_and_reported_once, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    char path[96];
    uint32_t who = 2;
    (void)snprintf(path, sizeof path, "%s/report.json", scratch->folder);
    assert_fails(
        ls_driver_run(&(struct ls_driver_options){.kind = LS_DRIVER_THREADS,
                                                  .n_threads = 4,
                                                  .report = path},
                      fail_in_one, &who),
        LS_EHANDLER);
    assert_error_has("rank 2: something");
    char *report = read_file(path);
    assert_has(report, "{\"exc_type\":\"LS_EHANDLER\","
                       "\"exc_value\":\"something ? broke\",\"exc_time\":\"20");
    assert_has(report, "\"exc_global_rank\":2,\"exc_local_rank\":2,\"node\":2,"
                       "\"step\":\"\",\"text\":\"something ? broke\"}");
    free(report);
}

/* Nor does it change what the run ends with. */
TEST(a_report_that_cannot_be_written_is_none)
{
    uint32_t who = 0;
    assert_fails(
        ls_driver_run(&(struct ls_driver_options){.report = "/dev/null/report"},
                      fail_in_one, &who),
        LS_EHANDLER);
    assert_error_has("rank 0: something");
}

TEST_WITH(a_report_replaces_no_link, scratch_set_up, scratch_tear_down)
{
    const struct scratch *scratch = *state;
    char path[96], target[LS_PATH_MAX];
    uint32_t who = 0;
    (void)snprintf(path, sizeof path, "%s/link", scratch->folder);
    assert_ok(ls_file_symlink("elsewhere", path));
    assert_fails(ls_driver_run(&(struct ls_driver_options){.report = path},
                               fail_in_one, &who),
                 LS_EHANDLER);
    assert_ok(ls_file_read_link(path, target));
    assert_string_equal(target, "elsewhere");
}

/* Rank 1 after rank 0, whose failure it does not see. */
static int fail_in_turn(void *self, ls_driver *driver)
{
    ls_queue *turn = self;
    char item = 0;
    if (ls_driver_rank(driver) == 1) {
        TRY(ls_queue_get(turn, &item, LS_FOREVER));
        return ls_error(LS_EINVAL, "the second");
    }
    (void)ls_error(LS_EIO, "the first");
    ls_driver_on_exception(driver, LS_EIO, "reading", NULL);
    TRY(ls_queue_put(turn, &item, LS_FOREVER));
    return LS_OK;
}

TEST_WITH(of_two_causes_the_first_counts, scratch_set_up, scratch_tear_down)
{
    const struct scratch *scratch = *state;
    char path[96];
    ls_queue *turn;
    (void)snprintf(path, sizeof path, "%s/report.json", scratch->folder);
    assert_ok(ls_queue_create(
        &turn, ls_runtime_threads(),
        &(struct ls_queue_options){.capacity = 1, .item_size = 1}));
    assert_fails(
        ls_driver_run(&(struct ls_driver_options){.kind = LS_DRIVER_THREADS,
                                                  .n_threads = 2,
                                                  .report = path},
                      fail_in_turn, turn),
        LS_EIO);
    assert_error_has("rank 0: the first");
    char *report = read_file(path);
    assert_has(report, "\"step\":\"reading\",\"text\":\"reading: the first\"");
    free(report);
    ls_queue_destroy(&turn);
}

static int lose_a_service(void *self, ls_driver *driver)
{
    const int status = *(const int *)self;
    struct ls_exception what;
    if (ls_driver_rank(driver) == 0)
        return ls_driver_barrier(driver);
    (void)ls_error(status, "the service is gone");
    ls_driver_on_exception(driver, status, "asking", &what);
    CHECK(what.is_first);
    return ls_error(status, "the service is gone");
}

/* What this rank alone has asked may fail with what other ranks' failures look
 * like. */
TEST_WITH(a_rank_that_loses_somebody_else_is_the_first_cause, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    const int statuses[] = {LS_ELOST, LS_EABORTED};
    char path[96];
    (void)snprintf(path, sizeof path, "%s/report.json", scratch->folder);
    for (size_t i = 0; i < 2; i++) {
        int status = statuses[i];
        assert_fails(
            ls_driver_run(&(struct ls_driver_options){.kind = LS_DRIVER_THREADS,
                                                      .n_threads = 2,
                                                      .report = path},
                          lose_a_service, &status),
            status);
        assert_error_has("rank 1: the service is gone");
        char *report = read_file(path);
        assert_has(report, ls_status_name(status));
        assert_has(report, "\"text\":\"asking: the service is gone\"");
        free(report);
    }
}

static int break_down(void *self, ls_driver *driver)
{
    (void)self;
    (void)driver;
    return ls_error(LS_EIO, "no paper");
}

/* Rank 1 says that it has failed before rank 0 does, whose failure it was told
 * of. */
static int be_told(void *self, ls_driver *driver)
{
    ls_queue *turn = self;
    struct ls_exception what;
    char item = 0;
    const int status = ls_driver_rank_zero(driver, break_down, NULL);
    if (ls_driver_rank(driver) == 0) {
        TRY(ls_queue_get(turn, &item, LS_FOREVER));
        return ls_error(status, "no paper");
    }
    ls_driver_on_exception(driver, status, NULL, &what);
    TRY(ls_queue_put(turn, &item, LS_FOREVER));
    CHECK(status == LS_EABORTED && !what.is_first);
    return LS_OK;
}

/* The same in a group of their own. */
static int be_told_in_a_sub_group(void *self, ls_driver *driver)
{
    ls_queue *turn = self;
    ls_group *half;
    char item = 0;
    TRY(ls_group_split(&half, ls_driver_group(driver), 0, 60000));
    if (ls_driver_rank(driver) == 0) {
        ls_group_leave(half, LS_EIO);
        TRY(ls_group_destroy(&half));
        TRY(ls_queue_get(turn, &item, LS_FOREVER));
        return ls_error(LS_EIO, "no paper");
    }
    const int status = ls_group_barrier(half, 60000);
    ls_driver_on_exception(driver, status, NULL, NULL);
    TRY(ls_group_destroy(&half));
    TRY(ls_queue_put(turn, &item, LS_FOREVER));
    CHECK(status == LS_EABORTED);
    return LS_OK;
}

TEST(who_was_told_of_a_failure_is_not_its_cause)
{
    ls_driver_fn *const fns[] = {be_told, be_told_in_a_sub_group};
    ls_queue *turn;
    assert_ok(ls_queue_create(
        &turn, ls_runtime_threads(),
        &(struct ls_queue_options){.capacity = 1, .item_size = 1}));
    for (size_t i = 0; i < 2; i++) {
        assert_fails(run_threads(2, fns[i], turn), LS_EIO);
        assert_error_has("rank 0: no paper");
    }
    ls_queue_destroy(&turn);
}

static int fail_late(void *self, ls_driver *driver)
{
    (void)self;
    return ls_driver_rank(driver) == 1 ? ls_error(LS_EIO, "at the end") : LS_OK;
}

TEST(nobody_has_succeeded_when_another_fails)
{
    assert_fails(run_threads(2, fail_late, NULL), LS_EIO);
    assert_error_has("rank 1: at the end");
}

static int fail_by_hand(void *self, ls_driver *driver)
{
    struct ls_exception what;
    (void)self;
    (void)ls_error(LS_EPROTO, "odd bytes");
    ls_driver_on_exception(driver, LS_EPROTO, "reading", &what);
    CHECK(strcmp(ls_error_text(), "odd bytes") == 0);
    CHECK(what.status == LS_EPROTO && what.is_first);
    CHECK(strcmp(what.type, "LS_EPROTO") == 0);
    CHECK(strcmp(what.value, "odd bytes") == 0);
    CHECK(strcmp(what.text, "reading: odd bytes") == 0);
    CHECK(strlen(what.time) == strlen("2026-01-01-00:00:00"));
    CHECK_FAILS(ls_driver_barrier(driver), LS_EPROTO); /* it has left */
    return LS_OK;
}

TEST(a_rank_that_says_that_it_failed_has_left)
{
    assert_fails(run_kind(LS_DRIVER_SINGLE, 0, fail_by_hand, NULL), LS_EPROTO);
    assert_error_has("rank 0: odd bytes");
}

/* The model ---------------------------------------------------------------- */

static int load_batch(struct ls_batch *batch, ls_driver *driver, uint64_t first,
                      size_t n, uint64_t *indices, ls_device_stack **stack)
{
    TRY(ls_device_stack_create(stack, ls_driver_data_device(driver),
                               n * sizeof(struct line_item)));
    for (size_t i = 0; i < n; i++)
        indices[i] = first + i;
    *batch = (struct ls_batch){.n = n,
                               .indices = indices,
                               .items = ls_device_stack_host(*stack),
                               .bytes = n * sizeof(struct line_item),
                               .stack = *stack};
    TRY(line_load(NULL, indices, n, ls_device_stack_host(*stack)));
    return ls_driver_move(driver, batch);
}

/* One step over samples 0 … 7, which the ranks share. */
static int one_step(void *self, ls_driver *driver)
{
    const struct ls_model_ops ops = still_ops();
    const size_t n = 8 / ls_driver_size(driver);
    double *out = self;
    uint64_t indices[8];
    struct ls_batch batch;
    ls_device_stack *stack;
    ls_learner_info *figures;
    size_t n_parameters;
    TRY(line_setup(driver, &ops));
    TRY(ls_learner_info_create(&figures));
    TRY(load_batch(&batch, driver, n * ls_driver_rank(driver), n, indices,
                   &stack));
    TRY(ls_driver_set_mode(driver, LS_MODE_TRAIN));
    TRY(ls_driver_zero_grad(driver));
    TRY(ls_driver_train(driver, &batch, figures));
    TRY(ls_driver_backward(driver, 1.0, true));
    TRY(ls_driver_step(driver));
    const struct ls_parameter *all =
        ls_driver_parameters(driver, &n_parameters);
    CHECK(n_parameters == 2);
    CHECK(ls_parameter_count(&all[0]) == 2 && ls_parameter_count(&all[1]) == 1);
    memcpy(out + 3 * ls_driver_rank(driver), all[0].value, 16);
    memcpy(out + 3 * ls_driver_rank(driver) + 2, all[1].value, 8);
    ls_device_stack_destroy(&stack);
    ls_learner_info_destroy(&figures);
    return LS_OK;
}

TEST(gradients_are_means_over_all_ranks)
{
    double alone[3], four[12];
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, one_step, alone));
    assert_ok(run_threads(4, one_step, four));
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(alone[i] - four[i]) < 1e-12);
        for (int rank = 1; rank < 4; rank++)
            assert_memory_equal(&four[3 * rank + i], &four[i], 8);
    }
}

/* Two batches, each rank one sample of each; the gradients meet once. */
static int accumulate(void *self, ls_driver *driver)
{
    const struct ls_model_ops ops = still_ops();
    const bool *sync_first = self;
    uint64_t indices[1];
    struct ls_batch batch;
    ls_device_stack *stack;
    ls_learner_info *figures;
    size_t n;
    double gradients[3], mean[3] = {0};
    TRY(line_setup(driver, &ops));
    TRY(ls_learner_info_create(&figures));
    TRY(ls_driver_zero_grad(driver));
    const struct ls_parameter *all = ls_driver_parameters(driver, &n);
    for (uint64_t i = 0; i < 2; i++) {
        TRY(load_batch(&batch, driver, 2 * i + ls_driver_rank(driver), 1,
                       indices, &stack));
        ls_learner_info_clear(figures);
        TRY(ls_driver_train(driver, &batch, figures));
        const struct line *line = ls_driver_model(driver);
        TRY(ls_group_all_reduce(ls_driver_group(driver),
                                memcpy(gradients, line->gradient, 24), 3,
                                LS_GROUP_F64, LS_GROUP_MEAN, 1000));
        for (int j = 0; j < 3; j++)
            mean[j] += 0.5 * gradients[j];
        TRY(ls_driver_backward(driver, 0.5, i == 1 || *sync_first));
        ls_device_stack_destroy(&stack);
    }
    for (int j = 0; j < 3; j++)
        CHECK(fabs(((const double *)all[0].gradient)[j] - mean[j]) < 1e-12);
    ls_learner_info_destroy(&figures);
    return LS_OK;
}

TEST(accumulated_gradients_meet_once)
{
    for (int sync_first = 0; sync_first < 2; sync_first++) {
        bool yes = sync_first == 1;
        assert_ok(run_threads(2, accumulate, &yes));
    }
}

static int add_rank(void *model, const struct ls_parameter *parameters,
                    struct ls_rng *random)
{
    (void)random; /* it should be drawn from */
    ((struct line *)model)->parameters = parameters;
    ((double *)parameters[0].value)[0] = (double)ls_log_node();
    return LS_OK;
}

static int begin_alike(void *self, ls_driver *driver)
{
    struct ls_model_ops ops = line_ops;
    uint64_t *hashes = self;
    ops.begin = add_rank;
    ls_log_set_node(7 + (int64_t)ls_driver_rank(driver));
    CHECK(ls_driver_hash(driver) == 0);
    TRY(line_setup(driver, &ops));
    ls_log_set_node(-1);
    size_t n;
    CHECK(*(double *)ls_driver_parameters(driver, &n)[0].value == 7.0);
    hashes[ls_driver_rank(driver)] = ls_driver_hash(driver);
    return LS_OK;
}

TEST(all_ranks_begin_with_the_values_of_rank_zero)
{
    uint64_t hashes[3];
    assert_ok(run_threads(3, begin_alike, hashes));
    assert_true(hashes[0] == hashes[1] && hashes[1] == hashes[2]);
    assert_true(hashes[0] != 0);
}

static int plain_step(void *config, const struct ls_parameter *parameter,
                      void *const *slots, uint64_t step)
{
    (void)slots;
    for (size_t i = 0; i < ls_parameter_count(parameter); i++)
        ((double *)parameter->value)[i] = *(double *)config + (double)step;
    return LS_OK;
}

static int several(void *self, ls_driver *driver)
{
    static const struct ls_optimiser_ops plain = {.name = "plain",
                                                  .step = plain_step};
    static const char *const only_b[] = {"b", NULL};
    static double ten = 10.0, twenty = 20.0;
    const struct ls_optimiser both[] = {
        {.ops = &plain, .config = &ten, .name = "rest"},
        {.ops = &plain, .config = &twenty, .parameters = only_b}};
    size_t n;
    (void)self;
    TRY(ls_driver_setup(driver, &(struct ls_driver_setup){.model = &line_ops,
                                                          .optimisers = both,
                                                          .n_optimisers = 2}));
    const struct ls_parameter *all = ls_driver_parameters(driver, &n);
    TRY(ls_driver_step_one(driver, 1));
    CHECK(*(double *)all[1].value == 21.0);
    TRY(ls_driver_step(driver));
    CHECK(*(double *)all[1].value == 22.0);
    CHECK(((double *)all[0].value)[1] == 11.0);
    CHECK_FAILS(ls_driver_step_one(driver, 2), LS_EINVAL);
    return LS_OK;
}

TEST(each_parameter_has_its_optimiser)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, several, NULL));
}

static int fail_at_second(void *config, const struct ls_parameter *parameter,
                          void *const *slots, uint64_t step)
{
    (void)config;
    (void)parameter;
    (void)slots;
    return step == 2 ? ls_error(LS_ELIMIT, "the step is too large") : LS_OK;
}

static int fail_to_compute(void *model, const struct ls_batch *batch,
                           ls_learner_info *figures)
{
    (void)model;
    (void)batch;
    (void)figures;
    return ls_error(LS_EIO, "no figures");
}

static int fail_to_begin(void *model, const struct ls_parameter *parameters,
                         struct ls_rng *random)
{
    (void)model;
    (void)parameters;
    (void)random;
    return ls_error(LS_ENOENT, "no first values");
}

/* What a function of the tables returns, with its owner's name. */
static int pass_errors_on(void *self, ls_driver *driver)
{
    static const struct ls_optimiser_ops ops = {.name = "second",
                                                .step = fail_at_second};
    const struct ls_optimiser optimiser = {.ops = &ops};
    struct ls_model_ops model = line_ops;
    (void)self;
    model.train = model.evaluate = fail_to_compute;
    TRY(ls_driver_setup(driver,
                        &(struct ls_driver_setup){.model = &model,
                                                  .optimisers = &optimiser,
                                                  .n_optimisers = 1}));
    TRY(ls_driver_step(driver));
    CHECK_FAILS(ls_driver_step(driver), LS_ELIMIT);
    CHECK_ERROR_HAS("the optimiser second, parameter w: the step is too large");
    CHECK_FAILS(ls_driver_train(driver, NULL, NULL), LS_EIO);
    CHECK_ERROR_HAS("the model line: no figures");
    CHECK_FAILS(ls_driver_evaluate(driver, NULL, NULL), LS_EIO);
    return LS_OK;
}

TEST(what_a_function_returns_is_returned_with_its_name)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, pass_errors_on, NULL));
}

static int use_options(void *self, ls_driver *driver)
{
    struct ls_model_ops plain = line_ops;
    (void)self;
    plain.auto_cast = NULL;
    plain.evaluate = NULL;
    plain.set_mode = NULL;
    TRY(ls_driver_setup(
        driver, &(struct ls_driver_setup){
                    .model = ls_driver_rank(driver) == 0 ? &line_ops : &plain,
                    .device = "cpu",
                    .data_device = "cpu:0"}));
    CHECK(ls_driver_device(driver) != ls_driver_data_device(driver));
    const struct line *line = ls_driver_model(driver);
    TRY(ls_driver_set_mode(driver, LS_MODE_EVALUATE));
    const int status = ls_driver_auto_cast(driver, true);
    if (ls_driver_rank(driver) == 0) {
        TRY(status);
        CHECK(line->low_precision && line->mode == LS_MODE_EVALUATE);
        return LS_OK;
    }
    CHECK(status == LS_ENOENT);
    CHECK_ERROR_HAS("the model line has no auto_cast()");
    CHECK_FAILS(ls_driver_evaluate(driver, NULL, NULL), LS_ENOENT);
    return LS_OK;
}

TEST(what_a_model_may_leave_out_is_refused_by_name)
{
    assert_ok(run_threads(2, use_options, NULL));
}

static int use_nothing(void *self, ls_driver *driver)
{
    size_t n;
    (void)self;
    CHECK_FAILS(ls_driver_set_mode(driver, LS_MODE_TRAIN), LS_ESTATE);
    CHECK_FAILS(ls_driver_train(driver, NULL, NULL), LS_ESTATE);
    CHECK_FAILS(ls_driver_evaluate(driver, NULL, NULL), LS_ESTATE);
    CHECK_FAILS(ls_driver_backward(driver, 1.0, true), LS_ESTATE);
    CHECK_FAILS(ls_driver_step(driver), LS_ESTATE);
    CHECK_FAILS(ls_driver_step_one(driver, 0), LS_ESTATE);
    CHECK_FAILS(ls_driver_zero_grad(driver), LS_ESTATE);
    CHECK_FAILS(ls_driver_auto_cast(driver, true), LS_ESTATE);
    CHECK_FAILS(ls_driver_move(driver, &(struct ls_batch){0}), LS_ESTATE);
    CHECK_FAILS(ls_driver_save_model(driver, "x"), LS_ESTATE);
    CHECK_FAILS(ls_driver_load_model(driver, "x"), LS_ESTATE);
    struct ls_driver_loaded loaded;
    CHECK_FAILS(ls_driver_load(driver, 1, &loaded), LS_ESTATE);
    CHECK_FAILS(ls_driver_save(driver, 1, false), LS_ESTATE);
    CHECK_ERROR_HAS("ls_driver_open_checkpoints()");
    CHECK(ls_driver_model(driver) == NULL);
    CHECK(ls_driver_parameters(driver, &n) == NULL && n == 0);
    CHECK_FAILS(
        ls_driver_setup(driver, &(struct ls_driver_setup){.model = &line_ops,
                                                          .device = "tpu"}),
        LS_EINVAL);
    return LS_OK;
}

TEST(without_a_model_nothing_is_done)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, use_nothing, NULL));
}

/* Models that are none ------------------------------------------------------
 */

static struct ls_parameter odd[3];
static size_t n_odd;

static bool odd_parameter(const void *model, size_t at,
                          struct ls_parameter *out)
{
    (void)model;
    if (at >= n_odd)
        return false;
    *out = odd[at < 3 ? at : 2];
    if (at >= 3)
        (void)snprintf(out->name, sizeof out->name, "p%zu", at);
    return true;
}

static int fail_init(void *model, const struct ls_model_setup *setup)
{
    (void)model;
    (void)setup;
    return ls_error(LS_EIO, "no weights");
}

struct refused {
    const struct ls_model_ops *ops;
    const struct ls_optimiser *optimisers;
    size_t n;
    int status;
    const char *text;
};

static int set_up_refused(void *self, ls_driver *driver)
{
    const struct refused *refused = self;
    const struct ls_driver_setup setup = {.model = refused->ops,
                                          .optimisers = refused->optimisers,
                                          .n_optimisers = refused->n};
    const int status = ls_driver_setup(driver, &setup);
    CHECK(status == refused->status);
    CHECK_ERROR_HAS(refused->text);
    CHECK_FAILS(ls_driver_zero_grad(driver), LS_ESTATE);
    CHECK_FAILS(ls_driver_setup(driver, &setup), LS_ESTATE);
    return LS_OK;
}

static void assert_refused(const struct ls_model_ops *ops,
                           const struct ls_optimiser *optimisers, size_t n,
                           int status, const char *text)
{
    struct refused refused = {ops, optimisers, n, status, text};
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, set_up_refused, &refused));
}

TEST(parameters_that_are_none_are_refused)
{
    struct ls_model_ops ops = line_ops;
    ops.parameter = odd_parameter;
    assert_refused(&ops, NULL, 0, LS_EINVAL, "has no parameters");
    odd[0] = (struct ls_parameter){.name = "a", .form = {.type = LS_BLOB_I32}};
    n_odd = 1;
    assert_refused(&ops, NULL, 0, LS_EINVAL, "is i32, and must be of f32");
    odd[0].form.type = LS_BLOB_F32;
    odd[1] = (struct ls_parameter){.name = "b", .form = {.type = LS_BLOB_F64}};
    n_odd = 2;
    assert_refused(&ops, NULL, 0, LS_EINVAL, "all are of one type");
    odd[1] = odd[0];
    assert_refused(&ops, NULL, 0, LS_EINVAL, "two parameters named a");
    (void)snprintf(odd[1].name, sizeof odd[1].name, "a/b");
    assert_refused(&ops, NULL, 0, LS_EINVAL, "model.a/b");
    memset(odd[1].name, 'a', sizeof odd[1].name);
    assert_refused(&ops, NULL, 0, LS_EINVAL, "over 63 bytes");
    odd[1] = (struct ls_parameter){.name = "b",
                                   .form = {.type = LS_BLOB_F32, .n_dims = 9}};
    assert_refused(&ops, NULL, 0, LS_EINVAL, "the parameter b");
    odd[1].form.n_dims = 0;
    odd[2] = odd[1];
    odd[2].name[0] = 'c';
    n_odd = LS_PARAMETERS_MAX + 1;
    assert_refused(&ops, NULL, 0, LS_ELIMIT, "more than 192");
    n_odd = 33; /* 2^62 bytes each: in all, 2^62 more than 0 modulo 2^64 */
    odd[0].form = odd[1].form = odd[2].form =
        (struct ls_blob_form){LS_BLOB_F32, 1, {UINT64_C(1) << 60}};
    assert_refused(&ops, NULL, 0, LS_ELIMIT, "too many numbers");
    ops = line_ops;
    ops.init = fail_init;
    assert_refused(&ops, NULL, 0, LS_EIO, "the model line: no weights");
    ops = line_ops;
    ops.begin = fail_to_begin;
    assert_refused(&ops, NULL, 0, LS_ENOENT, "the model line: no first values");
}

TEST(optimisers_that_are_none_are_refused)
{
    static const char *const w[] = {"w", NULL}, *const none[] = {"v", NULL};
    struct ls_optimiser_ops greedy = sgd_ops;
    struct ls_optimiser pair[] = {sgd, sgd};
    assert_refused(&line_ops, pair, 2, LS_EINVAL, "two optimisers named sgd");
    pair[1].name = "other";
    assert_refused(&line_ops, pair, 2, LS_EINVAL,
                   "the optimiser other has no parameters");
    pair[0].parameters = pair[1].parameters = w;
    assert_refused(&line_ops, pair, 2, LS_EINVAL,
                   "the parameter w has two optimisers, sgd and other");
    pair[0].parameters = none;
    assert_refused(&line_ops, pair, 2, LS_EINVAL, "no parameter v");
    char name[LS_PARAMETER_NAME_MAX + 2];
    memset(name, 'o', sizeof name);
    name[LS_PARAMETER_NAME_MAX + 1] = '\0';
    pair[0].parameters = NULL;
    pair[0].name = name;
    assert_refused(&line_ops, pair, 1, LS_EINVAL, "over 63 bytes");
    pair[0].name = "a/b";
    assert_refused(&line_ops, pair, 1, LS_EINVAL, "optimiser.a/b");
    greedy.n_slots = LS_SLOTS_MAX + 1;
    pair[0] = (struct ls_optimiser){.ops = &greedy};
    assert_refused(&line_ops, pair, 1, LS_ELIMIT, "5 slots");
}

/* Numbers ------------------------------------------------------------------ */

TEST(one_element_is_a_scalar_whatever_the_reduction)
{
    static const float one[] = {2.5f};
    static const struct ls_blob_form forms[] = {{.type = LS_BLOB_F32},
                                                {LS_BLOB_F32, 2, {1, 1}}};
    for (size_t i = 0; i < 2; i++) {
        for (int reduce = LS_REDUCE_NONE; reduce <= LS_REDUCE_MEAN; reduce++) {
            double out = 0.0;
            size_t n;
            assert_ok(ls_numeric(&forms[i], one, (enum ls_reduce)reduce, &out,
                                 1, &n));
            assert_int_equal(n, 1);
            assert_true(out == 2.5);
        }
    }
}

TEST(several_elements_are_a_list_or_reduced)
{
    static const int64_t numbers[] = {3, -1, 4, 2};
    static const struct ls_blob_form form = {LS_BLOB_I64, 2, {2, 2}};
    static const struct {
        enum ls_reduce reduce;
        double wanted;
    } cases[] = {{LS_REDUCE_SUM, 8.0},
                 {LS_REDUCE_MIN, -1.0},
                 {LS_REDUCE_MAX, 4.0},
                 {LS_REDUCE_MEAN, 2.0}};
    double out[4];
    size_t n;
    assert_ok(ls_numeric(&form, numbers, LS_REDUCE_NONE, out, 4, &n));
    assert_int_equal(n, 4);
    for (int i = 0; i < 4; i++)
        assert_true(out[i] == (double)numbers[i]);
    for (size_t i = 0; i < 4; i++) {
        assert_ok(ls_numeric(&form, numbers, cases[i].reduce, out, 1, &n));
        assert_int_equal(n, 1);
        assert_true(out[0] == cases[i].wanted);
    }
    assert_fails(ls_numeric(&form, numbers, LS_REDUCE_NONE, out, 3, &n),
                 LS_ELIMIT);
}

TEST(numbers_of_every_type)
{
    static const uint8_t u8[] = {200, 100};
    static const int32_t i32[] = {-5, 5};
    static const double f64[] = {0.5, (double)NAN};
    double out[2];
    size_t n;
    assert_ok(ls_numeric(&(struct ls_blob_form){LS_BLOB_U8, 1, {2}}, u8,
                         LS_REDUCE_SUM, out, 2, &n));
    assert_true(out[0] == 300.0);
    assert_ok(ls_numeric(&(struct ls_blob_form){LS_BLOB_I32, 1, {2}}, i32,
                         LS_REDUCE_MIN, out, 2, &n));
    assert_true(out[0] == -5.0);
    assert_ok(ls_numeric(&(struct ls_blob_form){LS_BLOB_F64, 1, {2}}, f64,
                         LS_REDUCE_MAX, out, 2, &n));
    assert_true(isnan(out[0]));
    assert_ok(ls_numeric(&(struct ls_blob_form){LS_BLOB_F64, 1, {0}}, f64,
                         LS_REDUCE_SUM, out, 2, &n));
    assert_true(out[0] == 0.0);
    assert_ok(ls_numeric(&(struct ls_blob_form){LS_BLOB_F64, 1, {0}}, f64,
                         LS_REDUCE_NONE, out, 2, &n));
    assert_int_equal(n, 0);
}

TEST(numbers_need_not_be_aligned)
{
    static const double numbers[] = {1.5, -2.5};
    char raw[sizeof numbers + 1];
    double out;
    size_t n;
    memcpy(raw + 1, numbers, sizeof numbers);
    assert_ok(ls_numeric(&(struct ls_blob_form){LS_BLOB_F64, 1, {2}}, raw + 1,
                         LS_REDUCE_SUM, &out, 1, &n));
    assert_true(out == -1.0);
}

TEST(what_are_not_numbers_is_refused)
{
    static const struct ls_blob_form bytes = {LS_BLOB_BYTES, 1, {4}},
                                     none = {LS_BLOB_F64, 1, {0}};
    double out;
    size_t n;
    assert_fails(ls_numeric(&bytes, "abcd", LS_REDUCE_SUM, &out, 1, &n),
                 LS_EINVAL);
    assert_fails(ls_numeric(&none, "", LS_REDUCE_MEAN, &out, 1, &n), LS_EINVAL);
    assert_error_has("without elements");
    assert_fails(ls_numeric(&none, "", (enum ls_reduce)5, &out, 1, &n),
                 LS_EINVAL);
}
