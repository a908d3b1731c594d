/* Every wait at a node ends when the node is interrupted: by a signal's
 * handler, with threads; and in a simulation, where all of them wait for long
 * before. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "lockstep/barrier.h"
#include "lockstep/call.h"
#include "lockstep/middleware.h"
#include "lockstep/network.h"
#include "lockstep/simulation.h"
#include "test.h"

enum { WAIT_MS = 30000, ASKED_MAX = 8 };

/* Two nodes; `a` waits for `b`, which does nothing that would end it. */
struct pair {
    ls_runtime *runtime;
    ls_node *a, *b;
    ls_rpc *calls_a, *calls_b;
    ls_barrier *barrier_a, *barrier_b;
    ls_request *asked[ASKED_MAX];
    size_t n_asked;
};

static int keep(void *self, ls_request *request)
{
    struct pair *pair = self;
    pair->asked[pair->n_asked++] = request;
    return LS_OK;
}

static ls_node *new_node(ls_runtime *runtime, uint32_t id, const char *bind,
                         const char *seed, uint32_t world_size)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_node_options_init(&options);
    options.id = id;
    options.runtime = runtime;
    options.bind = bind;
    options.attach = &seed;
    options.n_attach = seed != NULL ? 1 : 0;
    options.world_size = world_size;
    options.role = id == 0 ? "a" : "b";
    options.start_timeout_ms = WAIT_MS;
    assert_ok(ls_node_create(&node, &options));
    return node;
}

static void pair_open(struct pair *pair, ls_runtime *runtime, const char *at_a,
                      const char *at_b)
{
    *pair = (struct pair){.runtime = runtime};
    pair->a = new_node(runtime, 0, at_a, NULL, 2);
    pair->b = new_node(runtime, 1, at_b, at_a, 2);
    assert_ok(ls_rpc_open(&pair->calls_a, pair->a, NULL));
    assert_ok(ls_rpc_open(&pair->calls_b, pair->b, NULL));
    assert_ok(ls_rpc_serve(pair->calls_b, "keep", LS_CALL_ANYONE, keep, pair));
    const struct ls_barrier_options options = {.name = "both"};
    assert_ok(ls_barrier_create(&pair->barrier_a, pair->a, &options));
    assert_ok(ls_barrier_create(&pair->barrier_b, pair->b, &options));
    assert_ok(ls_node_open(pair->a));
    assert_ok(ls_node_start(pair->b));
    assert_ok(ls_node_join(pair->a));
}

static void pair_close(struct pair *pair)
{
    assert_ok(ls_barrier_destroy(&pair->barrier_a));
    assert_ok(ls_barrier_destroy(&pair->barrier_b));
    ls_rpc_close(&pair->calls_a);
    ls_rpc_close(&pair->calls_b);
    while (pair->n_asked > 0)
        (void)ls_request_fail(&pair->asked[--pair->n_asked], "too late");
    assert_ok(ls_node_destroy(&pair->a));
    assert_ok(ls_node_destroy(&pair->b));
}

/* ---- what waits ---------------------------------------------------------- */

static int wait_for(struct pair *pair)
{
    return ls_wait_for(pair->a, "never", WAIT_MS, NULL, NULL);
}

static int waiter(struct pair *pair)
{
    ls_waiter *made = NULL;
    assert_ok(ls_waiter_create(&made, pair->a, "never", 0));
    const int status = ls_waiter_wait(made, WAIT_MS, NULL, NULL);
    assert_ok(ls_waiter_destroy(&made));
    return status;
}

static const struct ls_call_options question = {
    .to = 1, .name = "keep", .timeout_ms = WAIT_MS};

static int ask(struct pair *pair)
{
    return ls_call_ask(pair->calls_a, &question, NULL, NULL);
}

/* The wait is interrupted, not the call. */
static int call_wait(struct pair *pair)
{
    ls_call *call = NULL;
    assert_ok(ls_call_start(&call, pair->calls_a, &question));
    const int status = ls_call_wait(call, LS_WAIT_DEFAULT);
    assert_false(ls_call_state_is_end(ls_call_state(call)));
    ls_call_destroy(&call);
    return status;
}

static int barrier(struct pair *pair)
{
    return ls_barrier_wait(pair->barrier_a, 0, WAIT_MS, NULL);
}

static int sleep_long(ls_step *step, void *self)
{
    (void)self;
    return ls_step_sleep(step, WAIT_MS);
}

static struct ls_middleware sleeper(ls_task *task)
{
    (void)task;
    return (struct ls_middleware){.name = "sleep", .fn = sleep_long};
}

static struct ls_middleware barrier_step(ls_task *task)
{
    return ls_mw_barrier(task,
                         &(struct ls_barrier_options){.timeout_ms = WAIT_MS});
}

static struct ls_middleware exchange_step(ls_task *task)
{
    return ls_mw_exchange(task,
                          &(struct ls_exchange_options){.from = "b",
                                                        .to = "a",
                                                        .fields = "train_iter",
                                                        .timeout_ms = WAIT_MS});
}

static int run(struct pair *pair, struct ls_middleware (*make)(ls_task *task))
{
    const struct ls_task_options options = {.node = pair->a, .roles = "a"};
    ls_task *task = NULL;
    assert_ok(ls_task_create(&task, &options));
    assert_ok(ls_task_use(task, make(task)));
    const int status = ls_task_run(task, 1);
    assert_ok(ls_task_destroy(&task));
    return status;
}

static int step_sleep(struct pair *pair)
{
    return run(pair, sleeper);
}

static int mw_barrier(struct pair *pair)
{
    return run(pair, barrier_step);
}

static int mw_exchange(struct pair *pair)
{
    return run(pair, exchange_step);
}

static const struct {
    const char *name;
    int (*fn)(struct pair *pair);
} waits[] = {{"ls_wait_for", wait_for},     {"ls_waiter_wait", waiter},
             {"ls_call_ask", ask},          {"ls_call_wait", call_wait},
             {"ls_barrier_wait", barrier},  {"ls_step_sleep", step_sleep},
             {"ls_mw_barrier", mw_barrier}, {"ls_mw_exchange", mw_exchange}};

/* ---- threads, and a signal ----------------------------------------------- */

static ls_node *_Atomic target; /* the signal comes to any thread */
static int told;                /* with which status */

static void on_alarm(int number)
{
    (void)number;
    ls_node_interrupt_soon(target, told);
}

static void ring(ls_node *node)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 5000}};
    target = node;
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

/* Its wait is for another that never comes. */
static void check_join(ls_runtime *runtime, const char *bind,
                       void (*interrupt)(ls_node *node))
{
    ls_node *alone = new_node(runtime, 0, bind, NULL, 2);
    assert_ok(ls_node_open(alone));
    interrupt(alone);
    assert_fails(ls_node_join(alone), told);
    assert_error_has("interrupted before its world was formed");
    assert_ok(ls_node_destroy(&alone));
}

/* One under way, and one that begins after. */
static void check_waits(struct pair *pair, void (*interrupt)(ls_node *node))
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        print_message("    %s\n", waits[i].name);
        interrupt(pair->a);
        assert_fails(waits[i].fn(pair), told);
        assert_fails(ls_node_interrupted(pair->a), told);
        assert_fails(waits[i].fn(pair), told);
        ls_node_interrupt(pair->a, LS_OK);
        assert_ok(ls_node_interrupted(pair->a));
    }
}

TEST(a_signal_handler_ends_each_wait_of_a_node)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct pair pair;
    told = LS_ECANCELED;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    pair_open(&pair, ls_runtime_threads(), "inproc://interrupt-a",
              "inproc://interrupt-b");
    check_waits(&pair, ring);
    pair_close(&pair);
    check_join(ls_runtime_threads(), "inproc://interrupt-c", ring);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

/* ---- simulated: nothing else would end them for long --------------------- */

struct ringer {
    ls_runtime *runtime;
    ls_node *node;
    ls_thread *thread;
};
static struct ringer ringer;

static void ring_later(void *self)
{
    (void)self;
    ls_rest_until(ringer.runtime, ls_now(ringer.runtime) + LS_NS_PER_S);
    ls_node_interrupt_soon(ringer.node, told);
}

static void simulated_ring(ls_node *node)
{
    if (ringer.thread != NULL)
        assert_ok(ls_thread_join(&ringer.thread, LS_FOREVER));
    ringer.node = node;
    ringer.runtime = ls_node_runtime(node);
    assert_ok(ls_thread_spawn(ringer.runtime, &ringer.thread, "ringer",
                              ring_later, NULL));
}

static void meet(void *self)
{
    ls_barrier *const *other = self;
    assert_ok(ls_barrier_wait(*other, 0, WAIT_MS, NULL));
}

/* Who should have met it there learns whose wait was interrupted, and both meet
 * again. */
static void check_other(struct pair *pair)
{
    ls_thread *thread;
    simulated_ring(pair->a);
    assert_fails(barrier(pair), told);
    ls_node_interrupt(pair->a, LS_OK);
    assert_fails(ls_barrier_wait(pair->barrier_b, 0, WAIT_MS, NULL),
                 LS_EABORTED);
    assert_error_has("node 0 gave up with LS_ECANCELED");
    assert_int_equal(ls_error_cause(), LS_ECANCELED);
    assert_ok(ls_thread_spawn(pair->runtime, &thread, "other", meet,
                              &pair->barrier_b));
    assert_ok(barrier(pair));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
}

/* ---- a run that is cancelled, with any status too ------------------------ */

static void cancel_later(void *task)
{
    ls_runtime *runtime = ls_task_runtime(task);
    ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_S);
    ls_task_cancel(task, told, "enough");
}

static void check_cancel(struct pair *pair,
                         struct ls_middleware (*make)(ls_task *task))
{
    const struct ls_task_options options = {.node = pair->a, .roles = "a"};
    ls_task *task = NULL;
    ls_thread *thread = NULL;
    assert_ok(ls_task_create(&task, &options));
    assert_ok(ls_task_use(task, make(task)));
    assert_ok(
        ls_thread_spawn(pair->runtime, &thread, "cancel", cancel_later, task));
    assert_fails(ls_task_run(task, 1), told);
    assert_error_has("enough");
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_node_interrupted(pair->a));
}

static void simulated(void *self)
{
    ls_runtime *runtime = self;
    struct pair pair;
    const int64_t begun = ls_now(runtime);
    pair_open(&pair, runtime, "tcp://127.0.0.1:21500", "tcp://127.0.0.1:21501");
    if (told == LS_ECANCELED)
        check_other(&pair);
    check_waits(&pair, simulated_ring);
    check_cancel(&pair, sleeper);
    check_cancel(&pair, barrier_step);
    check_cancel(&pair, exchange_step);
    pair_close(&pair);
    check_join(runtime, "tcp://127.0.0.1:21502", simulated_ring);
    assert_ok(ls_thread_join(&ringer.thread, LS_FOREVER));
    assert_true(ls_now(runtime) - begun < 20 * LS_NS_PER_S);
}

/* With each status that there is: none of them means something else there. */
TEST(a_wait_that_is_under_way_ends_and_the_next_one_too)
{
    for (uint64_t seed = 0; - (int)seed > LS_EINVARIANT; seed++) {
        told = -1 - (int)seed;
        const struct ls_simulation_options options = {.seed = seed};
        ls_simulation *simulation;
        ls_network *network;
        ls_host *host;
        assert_ok(ls_simulation_create(&simulation, &options));
        assert_ok(ls_network_create(&network, simulation, NULL));
        assert_ok(ls_host_create(&host, simulation, "host"));
        assert_ok(ls_network_join(network, host));
        ringer = (struct ringer){.node = NULL};
        assert_ok(
            ls_simulation_run(simulation, simulated, ls_host_runtime(host)));
        ls_network_destroy(&network);
        ls_simulation_destroy(&simulation);
    }
}
