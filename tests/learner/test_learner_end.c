#include "fixture.h"
#include "runtime_ops.h"
#include "test.h"

/* ---- the end ----------------------------------------------------------- */

struct waiting {
    ls_learner *learner;
    int put, get, await;
};

static void wait_to_put(void *arg)
{
    struct waiting *waiting = arg;
    struct ls_learner_batch batch = batch_of(9);
    waiting->put = ls_learner_put(waiting->learner, &batch, -1);
}

static void wait_to_get(void *arg)
{
    struct waiting *waiting = arg;
    struct ls_learner_result result = {.info = NULL};
    waiting->get = ls_learner_get(waiting->learner, &result, -1);
}

static void wait_for_weights(void *arg)
{
    struct waiting *waiting = arg;
    waiting->await = ls_learner_await_weights(waiting->learner, -1);
}

EACH_TEST(set_up, tear_down)

TEST(stop_wakes_whoever_waits)
{
    trainer.load_gate = &gates[0];
    ls_learner *learner = start((struct ls_learner_options){.queue = 1});
    put(learner, 0);
    await_waiting(&gates[0], 1);
    put(learner, 1);
    struct waiting waiting = {.learner = learner};
    ls_thread *threads[3];
    spawn(runtime, &threads[0], wait_to_put, &waiting);
    spawn(runtime, &threads[1], wait_to_get, &waiting);
    spawn(runtime, &threads[2], wait_for_weights, &waiting);
    assert_fails(ls_learner_stop(learner, 0), LS_ETIMEDOUT);
    for (size_t i = 0; i < 3; i++)
        join(&threads[i]);
    assert_int_equal(waiting.put, LS_ECLOSED);
    assert_int_equal(waiting.get, LS_ECLOSED);
    assert_int_equal(waiting.await, LS_ECLOSED);
    assert_ok(ls_learner_check(learner));
    open_gate(&gates[0]);
    end(learner);
}

TEST(stop_discards_what_is_under_way)
{
    trainer.compute_gates = gates;
    ls_learner *learner = start(
        (struct ls_learner_options){.stacks = 2, .loaders = 2, .passes = 1000});
    for (size_t i = 0; i < 5; i++)
        put(learner, i);
    await_waiting(&gates[0], 1);
    assert_fails(ls_learner_stop(learner, 0), LS_ETIMEDOUT);
    open_gate(&gates[0]);
    assert_ok(ls_learner_stop(learner, -1));
    assert_true(counts_of(learner).discarded == 5);
    assert_int_equal(trainer.drops, 5);
    struct ls_learner_batch batch = batch_of(5);
    assert_fails(ls_learner_put(learner, &batch, -1), LS_ECLOSED);
    assert_error_is("learner: it is stopped");
    assert_ok(ls_learner_stop(learner, 0));
    end(learner);
}

TEST(stop_names_the_loader_whose_load_does_not_return)
{
    trainer.load_gate = &gates[0];
    ls_learner *learner =
        start((struct ls_learner_options){.loaders = 1, .stacks = 1});
    put(learner, 0);
    await_waiting(&gates[0], 1);
    assert_fails(ls_learner_stop(learner, 1), LS_ETIMEDOUT);
    assert_error_is("learner: loader 0 does not end: its load does not return");
    open_gate(&gates[0]);
    end(learner);
}

TEST(stop_names_the_learner_thread)
{
    trainer.compute_gates = gates;
    ls_learner *learner =
        start((struct ls_learner_options){.loaders = 1, .stacks = 1});
    put(learner, 0);
    await_waiting(&gates[0], 1);
    assert_fails(ls_learner_stop(learner, 1), LS_ETIMEDOUT);
    assert_error_is("learner: the learner thread does not end: the op that it "
                    "runs does not return");
    open_gate(&gates[0]);
    end(learner);
}

TEST(a_drop_that_does_not_return_is_an_op_too)
{
    trainer.drop_gate = &gates[0];
    ls_learner *learner = start((struct ls_learner_options){.loaders = 1});
    put(learner, 0);
    await_waiting(&gates[0], 1);
    assert_fails(ls_learner_stop(learner, 1), LS_ETIMEDOUT);
    assert_error_is("learner: the learner thread does not end: the op that it "
                    "runs does not return");
    open_gate(&gates[0]);
    end(learner);
}

TEST(stop_names_the_device_whose_compute_does_not_return)
{
    trainer.compute_gates = gates;
    open_gate(&gates[0]);
    ls_learner *learner = start((struct ls_learner_options){.n_devices = 2});
    put(learner, 0);
    await_waiting(&gates[1], 1);
    assert_fails(ls_learner_stop(learner, 1), LS_ETIMEDOUT);
    assert_error_is("learner: the thread of device 1 does not end: its compute "
                    "does not return");
    open_gate(&gates[1]);
    end(learner);
}

TEST(destroy_stops)
{
    ls_learner *learner =
        start((struct ls_learner_options){.loaders = 2, .stacks = 2});
    put(learner, 0);
    ls_learner_destroy(&learner);
    assert_null(learner);
    assert_int_equal(trainer.drops, 1);
    ls_learner_destroy(&learner);
    ls_learner_destroy(NULL);
}

/* ---- what fails -------------------------------------------------------- */

/* All calls that wait are told, and so are those that come later. */
static void assert_ends_with(struct ls_learner_options options, int status,
                             const char *text)
{
    ls_learner *learner = start(options);
    struct ls_learner_result result = {.info = NULL};
    struct ls_learner_batch batch = batch_of(1);
    put(learner, 0);
    assert_int_equal(ls_learner_await_weights(learner, -1), status);
    assert_error_is(text);
    assert_int_equal(ls_learner_get(learner, &result, -1), status);
    assert_error_is(text);
    assert_int_equal(ls_learner_put(learner, &batch, -1), status);
    assert_error_is(text);
    assert_int_equal(ls_learner_check(learner), status);
    assert_error_is(text);
    assert_int_equal(counts_of(learner).steps, 0);
    end(learner);
}

TEST(a_loader_that_fails_is_named)
{
    trainer.load_status = LS_EIO;
    trainer.text = "no such file";
    assert_ends_with((struct ls_learner_options){.loaders = 1}, LS_EIO,
                     "learner: loader 0: no such file");
}

TEST(a_load_without_loaders_is_named)
{
    trainer.load_status = LS_EIO;
    trainer.text = "no such file";
    assert_ends_with((struct ls_learner_options){.loaders = 0}, LS_EIO,
                     "learner: load: no such file");
}

TEST(a_compute_that_fails_is_named_with_its_device)
{
    trainer.compute_status = LS_EHANDLER;
    trainer.compute_device = 1;
    trainer.text = "the loss is not finite";
    assert_ends_with((struct ls_learner_options){.n_devices = 3}, LS_EHANDLER,
                     "learner: compute on device 1: the loss is not finite");
    assert_int_equal(trainer.applies, 0);
}

TEST(the_device_that_made_others_give_up_is_named)
{
    trainer.compute_status = LS_EHANDLER;
    trainer.compute_device = 1;
    trainer.others_abort = true;
    trainer.text = "the loss is not finite";
    assert_ends_with((struct ls_learner_options){.n_devices = 3}, LS_EHANDLER,
                     "learner: compute on device 1: the loss is not finite");
}

TEST(devices_that_only_give_up_are_named)
{
    trainer.others_abort = true;
    assert_ends_with((struct ls_learner_options){.n_devices = 2}, LS_EABORTED,
                     "learner: compute on device 0: another one failed");
}

TEST(an_apply_that_fails_is_named)
{
    trainer.apply_status = LS_EHANDLER;
    assert_ends_with((struct ls_learner_options){.loaders = 1}, LS_EHANDLER,
                     "learner: apply: a handler or a step failed");
}

TEST(results_of_before_a_failure_can_be_taken)
{
    ls_learner *learner = start((struct ls_learner_options){.queue = 2});
    put(learner, 0);
    assert_ok(ls_learner_await_weights(learner, -1));
    trainer.apply_status = LS_EHANDLER; /* handed over with the next batch */
    put(learner, 1);
    assert_fails(ls_learner_await_weights(learner, -1), LS_EHANDLER);
    assert_true(get(learner).env_steps == 0);
    struct ls_learner_result result = {.info = NULL};
    assert_fails(ls_learner_get(learner, &result, -1), LS_EHANDLER);
    end(learner);
}

/* ---- options ----------------------------------------------------------- */

static void assert_refused(struct ls_learner_options options, const char *text)
{
    ls_learner *learner = NULL;
    assert_fails(ls_learner_create(&learner, runtime, &options), LS_EINVAL);
    assert_null(learner);
    if (text != NULL)
        assert_error_is(text);
}

TEST(create_refuses_bad_options)
{
    const struct ls_learner_ops empty = {.load = note_load};
    const enum ls_when_full none = (enum ls_when_full)7;
    ls_device *devices[] = {NULL};
    assert_refused((struct ls_learner_options){.queue = 1},
                   "learner: it needs an op compute");
    assert_refused((struct ls_learner_options){.ops = &empty},
                   "learner: it needs an op compute");
    assert_refused(
        (struct ls_learner_options){.ops = &trainer_ops, .when_full = none},
        NULL);
    assert_refused(
        (struct ls_learner_options){.ops = &trainer_ops, .out_when_full = none},
        NULL);
    assert_refused((struct ls_learner_options){.ops = &trainer_ops,
                                               .passes = 2,
                                               .first_passes = 3},
                   NULL);
    assert_refused(
        (struct ls_learner_options){.ops = &trainer_ops, .devices = devices},
        "learner: part_bytes must be at least 1 with devices");
}

TEST(a_batch_must_be_shared_evenly_by_the_devices)
{
    struct ls_learner_options options = {
        .ops = &trainer_ops, .n_devices = 4, .batch_size = 3};
    assert_refused(options,
                   "learner: a batch of 3 samples cannot be shared evenly by "
                   "4 devices: choose a multiple of 4");
    options.batch_size = 6;
    assert_refused(options,
                   "learner: a batch of 6 samples cannot be shared evenly by "
                   "4 devices: choose a multiple of 4");
    options.batch_size = 8;
    end(start(options));
}

/* ---- without threads --------------------------------------------------- */

static int refuse_thread(ls_runtime *of, ls_thread **out, const char *name,
                         void (*fn)(void *arg), void *arg)
{
    (void)fn;
    (void)arg;
    (void)of;
    *out = NULL;
    return ls_error(LS_EAGAIN, "no thread %s", name);
}

TEST(one_without_a_thread_says_so)
{
    struct ls_runtime_ops ops = *runtime->ops;
    ls_runtime short_of_threads = {.ops = &ops};
    const struct ls_learner_options options = {.ops = &trainer_ops,
                                               .self = &trainer};
    ls_learner *learner;
    ops.thread_spawn = refuse_thread;
    assert_fails(ls_learner_create(&learner, &short_of_threads, &options),
                 LS_EAGAIN);
    assert_error_is("no thread learn");
    assert_null(learner);
}
