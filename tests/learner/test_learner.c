#include "fixture.h"
#include "test.h"

/* ---- training ---------------------------------------------------------- */

EACH_TEST(set_up, tear_down)

TEST(batches_are_trained_in_order)
{
    ls_learner *learner = start((struct ls_learner_options){.queue = 4});
    for (size_t i = 0; i < 10; i++) {
        put(learner, i);
        const struct ls_learner_result result = get(learner);
        assert_true(result.env_steps == 10 * i);
        assert_true(result.agent_steps == 20 * i);
        assert_int_equal(result.pass, 0);
        assert_true(result.last);
        assert_int_equal(trainer.trained[i], i);
    }
    const struct ls_learner_counts counts = counts_of(learner);
    assert_true(counts.put == 10 && counts.trained == 10);
    assert_true(counts.steps == 10 && counts.got == 10);
    assert_true(trainer.loads == 10 && trainer.applies == 10);
    end(learner);
}

TEST(each_batch_gets_its_passes_in_turn)
{
    const size_t numbers[] = {0, 1, 0, 1, 0, 1};
    ls_learner *learner =
        start((struct ls_learner_options){.stacks = 2, .passes = 3});
    put(learner, 0);
    put(learner, 1);
    for (unsigned i = 0; i < 6; i++) {
        const struct ls_learner_result result = get(learner);
        assert_int_equal(result.pass, i / 2);
        assert_true(result.env_steps == 10 * numbers[i]);
        assert_int_equal(result.last, i >= 4);
    }
    assert_memory_equal(trainer.trained, numbers, sizeof numbers);
    assert_int_equal(trainer.loads, 2);
    end(learner);
}

TEST(the_first_batch_may_get_fewer_passes)
{
    ls_learner *learner =
        start((struct ls_learner_options){.passes = 3, .first_passes = 1});
    put(learner, 0);
    put(learner, 1);
    assert_true(get(learner).last);
    assert_false(get(learner).last);
    assert_true(get(learner).last);
    end(learner);
}

TEST(loaders_load_and_none_is_lost)
{
    bool seen[N_BATCHES_MAX] = {false};
    ls_learner *learner =
        start((struct ls_learner_options){.stacks = 3, .loaders = 2});
    for (size_t i = 0; i < N_BATCHES_MAX; i++) {
        put(learner, i);
        if (i >= 8)
            seen[get(learner).env_steps / 10] = true;
    }
    for (size_t i = 0; i < 8; i++)
        seen[get(learner).env_steps / 10] = true;
    for (size_t i = 0; i < N_BATCHES_MAX; i++)
        assert_true(seen[i]);
    assert_int_equal(trainer.loads, N_BATCHES_MAX);
    end(learner);
}

TEST(a_loader_holds_no_batch_while_no_stack_is_idle)
{
    trainer.compute_gates = gates;
    ls_learner *learner = start((struct ls_learner_options){
        .queue = 3, .when_full = LS_QUEUE_FAIL, .loaders = 4});
    put(learner, 0);
    await_waiting(&gates[0], 1); /* the only stack is in training */
    for (size_t i = 1; i <= 3; i++)
        put(learner, i);
    struct ls_learner_batch batch = batch_of(4);
    assert_fails(ls_learner_put(learner, &batch, -1), LS_EAGAIN);
    assert_int_equal(counts_of(learner).queued, 3);
    open_gate(&gates[0]);
    end(learner);
}

TEST(what_training_says_is_reduced_over_the_devices)
{
    struct ls_learner_result result = {.info = NULL};
    assert_ok(ls_learner_info_create(&result.info));
    ls_learner *learner =
        start((struct ls_learner_options){.passes = 2, .n_devices = 2});
    put(learner, 0);
    for (unsigned pass = 0; pass < 2; pass++) {
        assert_ok(ls_learner_get(learner, &result, -1));
        assert_true(ls_learner_info_get(result.info, "loss") ==
                    100.0 * pass + 5.0);
        assert_true(ls_learner_info_get(result.info, "max_pass") == pass);
    }
    ls_learner_info_destroy(&result.info);
    end(learner);
}

/* ---- the queues -------------------------------------------------------- */

/* Fill the learner: one batch in training, `n` in the queue. */
static ls_learner *fill(enum ls_when_full policy, size_t n)
{
    trainer.compute_gates = gates;
    ls_learner *learner =
        start((struct ls_learner_options){.queue = n, .when_full = policy});
    put(learner, 0);
    await_waiting(&gates[0], 1);
    for (size_t i = 1; i <= n; i++)
        put(learner, i);
    return learner;
}

TEST(a_full_queue_is_not_ready)
{
    ls_learner *learner = fill(LS_QUEUE_BLOCK, 2);
    struct ls_learner_batch batch = batch_of(3);
    assert_fails(ls_learner_put(learner, &batch, 0), LS_EAGAIN);
    assert_error_is("learner: not ready: the queue of 2 is full");
    assert_fails(ls_learner_put(learner, &batch, 1), LS_ETIMEDOUT);
    assert_error_is("learner: not ready: the queue of 2 was full until the "
                    "deadline");
    assert_int_equal(number_of(&batch), 3);
    open_gate(&gates[0]);
    assert_ok(ls_learner_put(learner, &batch, -1));
    const struct ls_learner_counts counts = counts_of(learner);
    assert_true(counts.put == 4 && counts.refused == 2);
    end(learner);
}

TEST(policy_fail_never_waits)
{
    ls_learner *learner = fill(LS_QUEUE_FAIL, 1);
    struct ls_learner_batch batch = batch_of(3);
    assert_fails(ls_learner_put(learner, &batch, -1), LS_EAGAIN);
    assert_int_equal(number_of(&batch), 3);
    open_gate(&gates[0]);
    end(learner);
}

TEST(policy_drop_oldest_keeps_the_newest)
{
    ls_learner *learner = fill(LS_QUEUE_DROP_OLDEST, 2);
    put(learner, 3);
    assert_int_equal(trainer.drops, 1);
    assert_true(counts_of(learner).dropped == 1);
    open_gate(&gates[0]);
    const size_t numbers[] = {0, 2, 3};
    for (size_t i = 0; i < 3; i++)
        assert_true(get(learner).env_steps == 10 * numbers[i]);
    end(learner);
}

TEST(results_that_nobody_takes_hold_the_learner)
{
    ls_learner *learner = start((struct ls_learner_options){.out_queue = 2});
    for (size_t i = 0; i < 6; i++)
        put(learner, i);
    for (size_t i = 0; i < 6; i++)
        assert_true(get(learner).env_steps == 10 * i);
    assert_true(counts_of(learner).results_dropped == 0);
    for (size_t i = 0; i < 6; i++)
        put(learner, i);
    end(learner); /* also while it waits for room */
}

TEST(old_results_make_room)
{
    trainer.compute_gates = gates;
    ls_learner *learner = start((struct ls_learner_options){
        .out_queue = 2, .out_when_full = LS_QUEUE_DROP_OLDEST});
    for (size_t i = 0; i < 5; i++)
        put(learner, i);
    open_gate(&gates[0]);
    while (ls_learner_await_weights(learner, -1) == LS_OK &&
           counts_of(learner).steps < 5)
        ;
    assert_ok(ls_learner_stop(learner, -1));
    const struct ls_learner_counts counts = counts_of(learner);
    assert_true(counts.steps == 5 && counts.results_dropped >= 3);
    end(learner);
}

TEST(results_are_refused_when_there_is_no_room)
{
    ls_learner *learner = start((struct ls_learner_options){
        .out_queue = 1, .out_when_full = LS_QUEUE_FAIL});
    for (size_t i = 0; i < 5; i++)
        put(learner, i);
    while (ls_learner_await_weights(learner, -1) == LS_OK &&
           counts_of(learner).steps < 5)
        ;
    assert_ok(ls_learner_stop(learner, -1));
    assert_true(get(learner).env_steps == 0);
    assert_true(counts_of(learner).results_dropped == 4);
    end(learner);
}

TEST(no_result_is_said_at_once_or_at_the_deadline)
{
    struct ls_learner_result result = {.pass = 77};
    ls_learner *learner = start((struct ls_learner_options){.queue = 1});
    assert_fails(ls_learner_get(learner, &result, 0), LS_EAGAIN);
    assert_error_is("learner: results: the queue is empty");
    assert_fails(ls_learner_get(learner, &result, 1), LS_ETIMEDOUT);
    assert_int_equal(result.pass, 77);
    end(learner);
}

/* ---- weights ----------------------------------------------------------- */

TEST(new_weights_are_told_once)
{
    ls_learner *learner = start((struct ls_learner_options){.queue = 4});
    assert_false(ls_learner_take_weights_updated(learner));
    put(learner, 0);
    (void)get(learner);
    assert_true(ls_learner_take_weights_updated(learner));
    assert_false(ls_learner_take_weights_updated(learner));
    put(learner, 1);
    assert_ok(ls_learner_await_weights(learner, -1));
    assert_fails(ls_learner_await_weights(learner, 0), LS_EAGAIN);
    assert_error_is("learner: no new weights");
    assert_fails(ls_learner_await_weights(learner, 1), LS_ETIMEDOUT);
    end(learner);
}
