#include "fixture.h"

#include <math.h>

#include "test.h"
#include "written.h"

static ls_learner_info *new_info(void)
{
    ls_learner_info *info;
    assert_ok(ls_learner_info_create(&info));
    return info;
}

static void assert_written(const struct ls_learner_metrics *metrics,
                           const char *wanted)
{
    ls_writer *writer;
    assert_ok(ls_writer_create(&writer));
    ls_learner_metrics_write(metrics, writer);
    assert_json(writer, wanted);
}

EACH_TEST(set_up, tear_down)

TEST(a_learner_that_did_nothing_has_all_the_keys)
{
    struct ls_learner_metrics metrics = {.learner = NULL};
    ls_learner *learner = start((struct ls_learner_options){.loaders = 1});
    assert_ok(ls_learner_metrics(learner, &metrics, true));
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

TEST(figures_are_written_under_their_keys)
{
    ls_window *window;
    struct ls_learner_metrics metrics = {.learner = new_info(),
                                         .learner_grad_time_ms = 1.5,
                                         .learner_load_time_ms = 2.25,
                                         .learner_load_wait_time_ms = 0.125,
                                         .learner_dequeue_time_ms = 4.0};
    assert_ok(ls_window_create(&window, 50));
    for (int i = 0; i < 4; i++)
        ls_window_push(window, i % 2 == 0 ? 1.0 : 3.0);
    ls_window_summary(window, &metrics.learner_queue);
    assert_ok(ls_learner_info_add(metrics.learner, "loss", 0.5));
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

TEST(the_queue_is_looked_at_after_each_step)
{
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
        assert_ok(ls_learner_metrics(learner, &metrics, true));
        assert_true(metrics.learner_queue.count > i);
    }
    assert_true(metrics.learner_queue.count == 5);
    assert_true(metrics.learner_queue.mean == 2.0); /* 4 3 2 1 0 */
    assert_true(metrics.learner_queue.std == sqrt(2.0));
    assert_true(metrics.learner_queue.quantiles[0] == 0.0);
    assert_true(metrics.learner_queue.quantiles[4] == 4.0);
    end(learner);
}

TEST(the_info_is_that_of_all_passes_and_devices)
{
    struct ls_learner_metrics metrics = {.learner = new_info()};
    ls_learner *learner =
        start((struct ls_learner_options){.passes = 3, .n_devices = 2});
    put(learner, 0);
    for (int i = 0; i < 3; i++)
        (void)get(learner);
    assert_ok(ls_learner_metrics(learner, &metrics, true));
    assert_true(ls_learner_info_get(metrics.learner, "loss") == 105.0);
    assert_true(ls_learner_info_get(metrics.learner, "max_pass") == 2.0);
    ls_learner_info_destroy(&metrics.learner);
    end(learner);
}

TEST(the_info_is_kept_unless_it_may_be_overwritten)
{
    struct ls_learner_metrics metrics = {.learner = new_info()};
    ls_learner_info *const kept = metrics.learner;
    ls_learner *learner = start((struct ls_learner_options){.queue = 4});
    assert_ok(ls_learner_info_add(kept, "mine", 7.0));
    put(learner, 0);
    (void)get(learner);
    assert_ok(ls_learner_metrics(learner, &metrics, false));
    assert_ptr_equal(metrics.learner, kept);
    assert_int_equal(ls_learner_info_count(kept), 1);
    assert_true(ls_learner_info_get(kept, "mine") == 7.0);
    assert_ok(ls_learner_metrics(learner, &metrics, true));
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

TEST(without_loaders_nothing_is_waited_for_but_batches)
{
    struct ls_learner_metrics metrics = {.learner = NULL};
    ls_learner *learner = start((struct ls_learner_options){.queue = 4});
    put(learner, 0);
    (void)get(learner);
    assert_ok(ls_learner_metrics(learner, &metrics, true));
    assert_true(metrics.learner_load_wait_time_ms == 0.0);
    const struct ls_learner_counts counts = counts_of(learner);
    assert_true(counts.load_wait_ns == 0);
    assert_true(counts.dequeue_ns > 0 && counts.grad_ns > 0);
    end(learner);
}
