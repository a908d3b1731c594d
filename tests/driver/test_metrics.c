/* Figures of all ranks in one file. */
#include "file_bytes.h"
#include "lockstep/metrics.h"

#include <math.h>

#include "line.h"
#include "lockstep/trainer.h"

static void read_all(const char *path, char *out, size_t size)
{
    out[read_bytes(path, out, size - 1)] = '\0';
}

static void path_in(const struct scratch *scratch, const char *name,
                    char out[128])
{
    (void)snprintf(out, 128, "%s/%s", scratch->folder, name);
}

static int note_and_flush(void *self, ls_driver *driver)
{
    const uint32_t rank = ls_driver_rank(driver);
    ls_metrics *metrics;
    TRY(ls_metrics_open(&metrics, driver, self));
    TRY(ls_metrics_add(metrics, "loss", 1, 0.5 + rank));
    if (rank == 1)
        TRY(ls_metrics_add(metrics, "a \"b\"", -2, (double)NAN));
    TRY(ls_metrics_flush(metrics));
    TRY(ls_metrics_flush(metrics)); /* nothing more */
    if (rank == 0)
        TRY(ls_metrics_add(metrics, "loss", 2, 3.0));
    TRY(ls_metrics_flush(metrics));
    ls_metrics_close(&metrics);
    CHECK(metrics == NULL);
    ls_metrics_close(NULL);
    return LS_OK;
}

TEST_WITH(figures_of_all_ranks_are_lines_in_their_order, scratch_set_up,
          scratch_tear_down)
{
    char path[128], text[1024];
    path_in(*state, "m.jsonl", path);
    for (int again = 0; again < 2; again++) { /* a new one replaces it */
        assert_ok(run_threads(2, note_and_flush, path));
        read_all(path, text, sizeof text);
        assert_string_equal(
            text, "{\"step\":1,\"rank\":0,\"name\":\"loss\",\"value\":0.5}\n"
                  "{\"step\":1,\"rank\":1,\"name\":\"loss\",\"value\":1.5}\n"
                  "{\"step\":-2,\"rank\":1,\"name\":\"a \\\"b\\\"\","
                  "\"value\":\"NaN\"}\n"
                  "{\"step\":2,\"rank\":0,\"name\":\"loss\",\"value\":3.0}\n");
    }
}

static int flush_alone(void *self, ls_driver *driver)
{
    (void)driver;
    CHECK_FAILS(ls_metrics_flush(self), LS_ESTATE);
    return LS_OK;
}

static int flush_alone_and_together(void *self, ls_driver *driver)
{
    ls_metrics *metrics;
    TRY(ls_metrics_open(&metrics, driver, self));
    TRY(ls_metrics_add(metrics, "loss", 1, ls_driver_rank(driver)));
    TRY(ls_driver_rank_zero(driver, flush_alone, metrics));
    TRY(ls_metrics_flush(metrics));
    ls_metrics_close(&metrics);
    return LS_OK;
}

TEST_WITH(what_one_rank_cannot_flush_alone_is_kept, scratch_set_up,
          scratch_tear_down)
{
    char path[128], text[1024];
    path_in(*state, "m.jsonl", path);
    assert_ok(run_threads(2, flush_alone_and_together, path));
    read_all(path, text, sizeof text);
    assert_string_equal(
        text, "{\"step\":1,\"rank\":0,\"name\":\"loss\",\"value\":0.0}\n"
              "{\"step\":1,\"rank\":1,\"name\":\"loss\",\"value\":1.0}\n");
}

enum { MANY = 20000 };

static int note_many(void *self, ls_driver *driver)
{
    ls_metrics *metrics;
    TRY(ls_metrics_open(&metrics, driver, self));
    for (int64_t i = 0; ls_driver_rank(driver) == 1 && i < MANY; i++)
        TRY(ls_metrics_add(metrics, "x", i, 1.0));
    TRY(ls_metrics_flush(metrics));
    ls_metrics_close(&metrics);
    return LS_OK;
}

TEST_WITH(any_number_of_figures_is_flushed, scratch_set_up, scratch_tear_down)
{
    char path[128], line[128];
    int64_t n = 0;
    path_in(*state, "m.jsonl", path);
    assert_ok(run_threads(2, note_many, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char wanted[128];
        (void)snprintf(
            wanted, sizeof wanted,
            "{\"step\":%d,\"rank\":1,\"name\":\"x\",\"value\":1.0}\n",
            (int)n++);
        assert_string_equal(line, wanted);
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(n, MANY);
}

struct training {
    char metrics[128], folder[128];
    uint64_t fail_at;
};

static int fail_or_not(void *self, ls_trainer *trainer)
{
    const struct training *training = self;
    return training->fail_at != 0 &&
                   ls_trainer_steps(trainer) == training->fail_at
               ? ls_error(LS_EIO, "broken")
               : LS_OK;
}

static int train(void *self, ls_driver *driver)
{
    struct training *training = self;
    const struct ls_trainer_callbacks callbacks = {.after_batch = fail_or_not,
                                                   .self = training};
    TRY(line_setup(driver, &line_ops));
    return ls_trainer_run(
        driver,
        &(struct ls_trainer_options){.data = &line_data,
                                     .evaluation = &line_data,
                                     .epochs = 2,
                                     .batch_size = 10,
                                     .folder = training->folder,
                                     .save_every = 1,
                                     .resume = true,
                                     .metrics = training->metrics,
                                     .callbacks = &callbacks,
                                     .n_callbacks = 1},
        NULL);
}

/* 2 ranks, 2 steps an epoch: a failure at each; the file is that of a training
 * that nothing interrupted. */
TEST_WITH(a_training_that_goes_on_has_no_figure_twice, scratch_set_up,
          scratch_tear_down)
{
    char wanted[4096], text[4096];
    struct training whole = {.fail_at = 0};
    path_in(*state, "whole", whole.folder);
    path_in(*state, "whole.jsonl", whole.metrics);
    assert_ok(run_threads(2, train, &whole));
    read_all(whole.metrics, wanted, sizeof wanted);
    assert_has(wanted, "{\"step\":1,\"rank\":1,\"name\":\"train.loss\",");
    assert_has(wanted,
               "{\"step\":4,\"rank\":0,\"name\":\"evaluation.max_loss\"");
    assert_null(strstr(wanted, "\"rank\":1,\"name\":\"evaluation"));
    for (uint64_t at = 1; at <= 4; at++) {
        struct training again = {.fail_at = at};
        char name[16];
        (void)snprintf(name, sizeof name, "%d", (int)at);
        path_in(*state, name, again.folder);
        (void)snprintf(name, sizeof name, "%d.jsonl", (int)at);
        path_in(*state, name, again.metrics);
        assert_fails(run_threads(2, train, &again), LS_EIO);
        again.fail_at = 0;
        assert_ok(run_threads(2, train, &again));
        read_all(again.metrics, text, sizeof text);
        assert_string_equal(text, wanted);
    }
}

static int be_refused(void *self, ls_driver *driver)
{
    char long_name[LS_METRIC_NAME_MAX + 2];
    ls_metrics *metrics, *other = (ls_metrics *)&metrics;
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    TRY(ls_metrics_open(&metrics, driver, self));
    CHECK_FAILS(ls_metrics_open(&other, driver, self), LS_EEXIST);
    CHECK(other == NULL);
    CHECK_FAILS(ls_metrics_add(metrics, "", 0, 0.0), LS_EINVAL);
    CHECK_FAILS(ls_metrics_add(metrics, long_name, 0, 0.0), LS_EINVAL);
    CHECK_ERROR_HAS("1 to 95");
    CHECK_FAILS(ls_metrics_add(metrics, "\xff", 0, 0.0), LS_EINVAL);
    TRY(ls_metrics_add(metrics, long_name + 1, 0, 0.0));
    const int status = ls_metrics_flush(metrics); /* no such folder */
    CHECK(status == (ls_driver_rank(driver) == 0 ? LS_EIO : LS_EABORTED));
    ls_metrics_close(&metrics);
    return LS_OK;
}

/* Moved away, as logs are: what comes next begins a new one. */
TEST_WITH(a_file_that_is_gone_is_begun_again, scratch_set_up, scratch_tear_down)
{
    char text[4096];
    struct training training = {.fail_at = 3};
    path_in(*state, "saved", training.folder);
    path_in(*state, "m.jsonl", training.metrics);
    assert_fails(run_threads(2, train, &training), LS_EIO);
    assert_int_equal(remove(training.metrics), 0);
    training.fail_at = 0;
    assert_ok(run_threads(2, train, &training));
    read_all(training.metrics, text, sizeof text);
    assert_int_equal(strncmp(text, "{\"step\":3,\"rank\":0,", 19), 0);
    assert_has(text, "{\"step\":4,\"rank\":0,\"name\":");
}

TEST(what_cannot_be_noted_or_written_is_refused)
{
    char path[] = "/dev/null/m.jsonl";
    assert_ok(run_threads(2, be_refused, path));
}
