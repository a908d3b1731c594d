#include "fixture.h"

#include <math.h>
#include <stdio.h>

#include "written.h"

static ls_learner_info *new_info(void)
{
    ls_learner_info *info;
    assert_int_equal(ls_learner_info_create(&info), LS_OK);
    return info;
}

static void assert_written(const struct ls_learner_metrics *metrics,
                           const char *wanted)
{
    ls_writer *writer;
    assert_int_equal(ls_writer_create(&writer), LS_OK);
    ls_learner_metrics_write(metrics, writer);
    assert_json(writer, wanted);
}

static void a_learner_that_did_nothing_has_all_the_keys(void **state)
{
    (void)state;
    struct ls_learner_metrics metrics = {.learner = NULL};
    ls_learner *learner = start((struct ls_learner_options){.loaders = 1});
    assert_int_equal(ls_learner_metrics(learner, &metrics, true), LS_OK);
    assert_written(&metrics,
                   "{\"info\":{\"learner_queue\":{\"size_count\":0,"
                   "\"size_mean\":\"NaN\",\"size_std\":\"NaN\","
                   "\"size_quantiles\":[]},\"learner\":{},"
                   "\"timing_breakdown\":{\"learner_grad_time_ms\":0.0,"
                   "\"learner_load_time_ms\":0.0,"
                   "\"learner_load_wait_time_ms\":0.0,"
                   "\"learner_dequeue_time_ms\":0.0}}}");
    end(learner);
}

static void figures_are_written_under_their_keys(void **state)
{
    (void)state;
    ls_window *window;
    struct ls_learner_metrics metrics = {.learner = new_info(),
                                         .learner_grad_time_ms = 1.5,
                                         .learner_load_time_ms = 2.25,
                                         .learner_load_wait_time_ms = 0.125,
                                         .learner_dequeue_time_ms = 4.0};
    assert_int_equal(ls_window_create(&window, 50), LS_OK);
    for (int i = 0; i < 4; i++)
        ls_window_push(window, i % 2 == 0 ? 1.0 : 3.0);
    ls_window_summary(window, &metrics.learner_queue);
    assert_int_equal(ls_learner_info_add(metrics.learner, "loss", 0.5), LS_OK);
    assert_written(&metrics,
                   "{\"info\":{\"learner_queue\":{\"size_count\":4,"
                   "\"size_mean\":2.0,\"size_std\":1.0,"
                   "\"size_quantiles\":[1.0,1.0,2.0,3.0,3.0]},"
                   "\"learner\":{\"loss\":0.5},"
                   "\"timing_breakdown\":{\"learner_grad_time_ms\":1.5,"
                   "\"learner_load_time_ms\":2.25,"
                   "\"learner_load_wait_time_ms\":0.125,"
                   "\"learner_dequeue_time_ms\":4.0}}}");
    ls_window_destroy(&window);
    ls_learner_info_destroy(&metrics.learner);
}

static void the_queue_is_looked_at_after_each_step(void **state)
{
    (void)state;
    trainer.compute_gates = gates;
    ls_learner *learner = start((struct ls_learner_options){.queue = 4});
    struct ls_learner_metrics metrics = {.learner = NULL};
    put(learner, 0);
    await_waiting(&gates[0], 1);
    for (size_t i = 1; i < 5; i++)
        put(learner, i);
    open_gate(&gates[0]);
    for (size_t i = 0; i < 5; i++) {
        (void)get(learner); /* and its step is in the figures */
        assert_int_equal(ls_learner_metrics(learner, &metrics, true), LS_OK);
        assert_true(metrics.learner_queue.count > i);
    }
    assert_true(metrics.learner_queue.count == 5);
    assert_true(metrics.learner_queue.mean == 2.0); /* 4 3 2 1 0 */
    assert_true(metrics.learner_queue.std == sqrt(2.0));
    assert_true(metrics.learner_queue.quantiles[0] == 0.0);
    assert_true(metrics.learner_queue.quantiles[4] == 4.0);
    end(learner);
}

static void the_info_is_that_of_all_passes_and_devices(void **state)
{
    (void)state;
    struct ls_learner_metrics metrics = {.learner = new_info()};
    ls_learner *learner =
        start((struct ls_learner_options){.passes = 3, .n_devices = 2});
    put(learner, 0);
    for (int i = 0; i < 3; i++)
        (void)get(learner);
    assert_int_equal(ls_learner_metrics(learner, &metrics, true), LS_OK);
    assert_true(ls_learner_info_get(metrics.learner, "loss") == 105.0);
    assert_true(ls_learner_info_get(metrics.learner, "max_pass") == 2.0);
    ls_learner_info_destroy(&metrics.learner);
    end(learner);
}

static void the_info_is_kept_unless_it_may_be_overwritten(void **state)
{
    (void)state;
    struct ls_learner_metrics metrics = {.learner = new_info()};
    ls_learner_info *const kept = metrics.learner;
    ls_learner *learner = start((struct ls_learner_options){.queue = 4});
    assert_int_equal(ls_learner_info_add(kept, "mine", 7.0), LS_OK);
    put(learner, 0);
    (void)get(learner);
    assert_int_equal(ls_learner_metrics(learner, &metrics, false), LS_OK);
    assert_ptr_equal(metrics.learner, kept);
    assert_int_equal(ls_learner_info_count(kept), 1);
    assert_true(ls_learner_info_get(kept, "mine") == 7.0);
    assert_int_equal(ls_learner_metrics(learner, &metrics, true), LS_OK);
    assert_ptr_equal(metrics.learner, kept);
    assert_true(isnan(ls_learner_info_get(kept, "mine")));
    assert_true(ls_learner_info_get(kept, "loss") == 0.0);
    /* A copy: the learner goes on, and it stays as it is. */
    put(learner, 1);
    (void)get(learner);
    assert_int_equal(ls_learner_info_count(kept), 2);
    ls_learner_info_destroy(&metrics.learner);
    end(learner);
}

static void without_loaders_nothing_is_waited_for_but_batches(void **state)
{
    (void)state;
    struct ls_learner_metrics metrics = {.learner = NULL};
    ls_learner *learner = start((struct ls_learner_options){.queue = 4});
    put(learner, 0);
    (void)get(learner);
    assert_int_equal(ls_learner_metrics(learner, &metrics, true), LS_OK);
    assert_true(metrics.learner_load_wait_time_ms == 0.0);
    const struct ls_learner_counts counts = counts_of(learner);
    assert_true(counts.load_wait_ns == 0);
    assert_true(counts.dequeue_ns > 0 && counts.grad_ns > 0);
    end(learner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        learner_test(a_learner_that_did_nothing_has_all_the_keys),
        learner_test(figures_are_written_under_their_keys),
        learner_test(the_queue_is_looked_at_after_each_step),
        learner_test(the_info_is_that_of_all_passes_and_devices),
        learner_test(the_info_is_kept_unless_it_may_be_overwritten),
        learner_test(without_loaders_nothing_is_waited_for_but_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
