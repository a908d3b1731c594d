/* What holds for all of lockstep.h: what could not be made is NULL, so a
 * program may destroy it without asking whether it was. */
#include "lockstep/lockstep.h"
#include "test.h"

#include <signal.h>

/* Not made with these arguments, and destroyed all the same. The pointer is one
 * that a program has not set. */
#define UNMADE(type, destroy, call)                                            \
    do {                                                                       \
        type *it = (type *)(void *)&garbage;                                   \
        type **out = &it;                                                      \
        assert_int_not_equal(call, LS_OK);                                     \
        assert_null(it);                                                       \
        destroy(out);                                                          \
    } while (0)

static char garbage[8];

TEST(base)
{
    ls_runtime *const threads = ls_runtime_threads();
    const int no_signal = SIGKILL;
    UNMADE(ls_window, ls_window_destroy, ls_window_create(out, 0));
    UNMADE(ls_timer, ls_timer_destroy, ls_timer_create(out, threads, 0));
    UNMADE(ls_queue, ls_queue_destroy,
           ls_queue_create(out, threads, &(struct ls_queue_options){0}));
    UNMADE(ls_fiber_pool, ls_fiber_pool_destroy,
           ls_fiber_pool_create(out, 1, 0));
    UNMADE(ls_simulation, ls_simulation_destroy,
           ls_simulation_create(
               out, &(struct ls_simulation_options){.stack_bytes = 1}));
    UNMADE(ls_document, ls_document_destroy,
           ls_document_read(out, "\xc1", 1, NULL));
    UNMADE(ls_config, ls_config_destroy, ls_config_load(out, "/nonexistent"));
    UNMADE(ls_config, ls_config_destroy, ls_config_parse(out, "text", "a: ["));
    UNMADE(ls_signals, ls_signal_unwatch,
           ls_signal_watch(out, &no_signal, 1, NULL, NULL));
}

TEST(bus)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_node_options_init(&options);
    options.world_size = 0;
    UNMADE(ls_node, ls_node_destroy, ls_node_create(out, &options));
    options.world_size = 1;
    options.bind = "inproc://unmade";
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&calls, node, NULL));
    UNMADE(ls_call, ls_call_destroy,
           ls_call_start(out, calls,
                         &(struct ls_call_options){
                             .to = 7, .name = "", .timeout_ms = -1}));
    UNMADE(ls_channel, ls_channel_close,
           ls_channel_open(out, node, "",
                           &(struct ls_channel_ops){.message = NULL}, NULL));
    UNMADE(
        ls_barrier, ls_barrier_destroy,
        ls_barrier_create(out, node, &(struct ls_barrier_options){.name = ""}));
    ls_rpc_close(&calls);
    ls_node_destroy(&node);
    UNMADE(ls_security, ls_security_destroy,
           ls_security_file(out, "/nonexistent"));
    UNMADE(ls_security, ls_security_destroy, ls_security_job(out, ""));
    UNMADE(ls_security, ls_security_destroy,
           ls_security_curve(out, "/nonexistent", 1));
    UNMADE(ls_security, ls_security_destroy,
           ls_security_giving(out, "/nonexistent", 1));
    UNMADE(ls_security, ls_security_destroy,
           ls_security_asking(out, "/nonexistent"));
    UNMADE(ls_security, ls_security_destroy,
           ls_security_leased(out, "/nonexistent", 1, "/nonexistent"));
}

TEST(tasks_and_learners)
{
    ls_runtime *const threads = ls_runtime_threads();
    ls_device *device = NULL;
    UNMADE(ls_task, ls_task_destroy, ls_task_create(out, NULL));
    UNMADE(ls_context, ls_context_destroy,
           ls_context_create(out, &(struct ls_context_type){.name = "none"}));
    UNMADE(ls_device, ls_device_close, ls_device_open(out, threads, "gpu"));
    assert_ok(ls_device_open(&device, threads, "cpu"));
    UNMADE(ls_device_stack, ls_device_stack_destroy,
           ls_device_stack_create(out, device, 0));
    ls_device_close(&device);
    UNMADE(ls_learner, ls_learner_destroy,
           ls_learner_create(out, threads,
                             &(struct ls_learner_options){.ops = NULL}));
    UNMADE(ls_minibatch_ring, ls_minibatch_ring_destroy,
           ls_minibatch_ring_create(
               out, &(struct ls_minibatch_ring_options){.size = 0}));
}
