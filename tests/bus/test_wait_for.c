/* Waiting for an event. */
#include "network_fixture.h"
#include "test.h"

struct waiting {
    struct world world;
    ls_node *a, *b;
    struct counter heard; /* "hi" at a */
    struct counter called, may_leave;
    int wait_ms;
    int fn_status;
    bool slow;
};

static void listen_a(ls_node *node, size_t index, void *self)
{
    struct waiting *w = self;
    if (index == 0)
        assert_ok(ls_on(node, "hi", count, &w->heard));
}

static struct waiting *waiting_start(void)
{
    struct waiting *w = calloc(1, sizeof *w);
    assert_non_null(w);
    counter_init(&w->heard);
    counter_init(&w->called);
    counter_init(&w->may_leave);
    world_start(&w->world,
                &(struct world_plan){.n = 2, .prepare = listen_a, .self = w});
    w->a = w->world.at[0].node;
    w->b = w->world.at[1].node;
    w->wait_ms = LONG_MS;
    return w;
}

static void waiting_end(struct waiting *w)
{
    world_destroy(&w->world);
    counter_fini(&w->heard);
    counter_fini(&w->called);
    counter_fini(&w->may_leave);
    free(w);
}

static int on_event(void *self, const struct ls_event *event)
{
    struct waiting *w = self;
    (void)event;
    counter_add(&w->called, 1);
    if (w->slow && !counter_reaches(&w->may_leave, 1))
        abort();
    return w->fn_status == LS_OK ? LS_OK
                                 : ls_error(w->fn_status, "not this one");
}

/* What a second thread does: it waits on node a. */
struct waiter {
    struct waiting *w;
    ls_thread *thread;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

static void wait_for_it(void *self)
{
    struct waiter *waiter = self;
    struct waiting *w = waiter->w;
    (void)ls_error(LS_OK, "%s", "");
    waiter->status = ls_wait_for(w->a, "it", w->wait_ms, on_event, w);
    memcpy(waiter->text, ls_error_text(), strlen(ls_error_text()) + 1);
}

static void waiter_start(struct waiter *waiter, struct waiting *w)
{
    *waiter = (struct waiter){.w = w};
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &waiter->thread, "wait",
                              wait_for_it, waiter));
}

static void waiter_end(struct waiter *waiter)
{
    assert_ok(ls_thread_join(&waiter->thread, LS_FOREVER));
}

/* Emit from the other node until the waiter has been woken: it may not listen
 * yet. */
static void emit_it(struct waiting *w)
{
    emit_until_heard(w->b, "it", &w->called);
}

TEST(wait_returns_with_the_event)
{
    struct waiting *w = waiting_start();
    struct waiter waiter;
    for (int i = 1; i <= 5; i++) {
        waiter_start(&waiter, w);
        emit_it(w);
        waiter_end(&waiter);
        assert_int_equal(waiter.status, LS_OK);
        assert_int_equal(counter_get(&w->called), i); /* the next one alone */
    }
    waiting_end(w);
}

TEST(wait_does_not_see_what_came_before)
{
    struct waiting *w = waiting_start();
    assert_ok(ls_emit(w->a, "it", NULL, 0));
    assert_fails(ls_wait_for(w->a, "it", 5, on_event, w), LS_ETIMEDOUT);
    assert_error_has("\"it\"");
    assert_fails(ls_wait_for(w->a, "it", 0, on_event, w), LS_ETIMEDOUT);
    assert_int_equal(counter_get(&w->called), 0);
    waiting_end(w);
}

/* Waits and listeners of one event add up to one delivery of each. */
TEST(waits_do_not_multiply_deliveries)
{
    struct waiting *w = waiting_start();
    struct ls_node_stats stats;
    assert_fails(ls_wait_for(w->a, "hi", 1, NULL, NULL), LS_ETIMEDOUT);
    assert_fails(ls_wait_for(w->a, "hi", 1, NULL, NULL), LS_ETIMEDOUT);
    assert_ok(ls_on(w->a, "hi", count, &w->called));
    assert_ok(ls_emit(w->b, "hi", NULL, 0));
    assert_reaches(&w->called, 1);
    assert_ok(ls_emit(w->b, "hi", NULL, 0));
    assert_reaches(&w->called, 2);
    assert_int_equal(counter_get(&w->heard), 2);
    assert_int_equal(counter_get(&w->called), 2);
    ls_node_stats(w->a, &stats);
    assert_int_equal(stats.received, 2);
    waiting_end(w);
}

TEST(wait_returns_the_error_of_its_function)
{
    struct waiting *w = waiting_start();
    struct waiter waiter;
    w->fn_status = LS_EMISMATCH;
    waiter_start(&waiter, w);
    emit_it(w);
    waiter_end(&waiter);
    assert_int_equal(waiter.status, LS_EMISMATCH);
    assert_has(waiter.text, "not this one");
    assert_ok(ls_node_take_error(w->a)); /* it was told already */
    waiting_end(w);
}

static int joined(struct waiter *waiter, int wait_ms)
{
    return ls_thread_join(&waiter->thread,
                          ls_deadline(ls_runtime_threads(), wait_ms));
}

/* The deadline passes while the function runs: its result counts, and nothing
 * of the call is used once it has returned. */
TEST(wait_ends_after_its_function)
{
    struct waiting *w = waiting_start();
    struct waiter waiter;
    w->slow = true;
    w->fn_status = LS_EABORTED;
    w->wait_ms = 50;
    while (counter_get(&w->called) == 0) { /* until it was heard in time */
        waiter_start(&waiter, w);
        assert_ok(ls_emit(w->b, "it", NULL, 0));
        while (counter_get(&w->called) == 0 && joined(&waiter, 5) != LS_OK)
            ;
    }
    assert_fails(joined(&waiter, w->wait_ms + 20), LS_ETIMEDOUT);
    counter_add(&w->may_leave, 1);
    waiter_end(&waiter);
    assert_int_equal(waiter.status, LS_EABORTED);
    waiting_end(w);
}

static int break_down(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return ls_error(LS_EIO, "broken");
}

TEST(wait_ends_with_the_error_of_another_handler)
{
    struct waiting *w = waiting_start();
    struct waiter waiter;
    assert_ok(ls_on(w->a, "hi", break_down, NULL));
    waiter_start(&waiter, w);
    assert_ok(ls_emit(w->b, "hi", NULL, 0));
    waiter_end(&waiter);
    assert_int_equal(waiter.status, LS_EIO);
    assert_has(waiter.text, "handler break_down");
    assert_ok(ls_node_take_error(w->a)); /* taken thereby */
    waiting_end(w);
}

TEST(wait_ends_when_the_node_stops)
{
    struct waiting *w = waiting_start();
    struct waiter waiter;
    w->wait_ms = -1;
    waiter_start(&waiter, w);
    ls_node_stop(w->a, LS_OK);
    waiter_end(&waiter);
    assert_int_equal(waiter.status, LS_ECLOSED);
    waiting_end(w);
}

TEST(interrupt_wakes_with_its_status)
{
    struct waiting *w = waiting_start();
    struct waiter waiter;
    w->wait_ms = -1;
    waiter_start(&waiter, w);
    int status;
    do /* until it was waiting */
        ls_node_interrupt(w->a, LS_ECANCELED);
    while ((status = joined(&waiter, 2)) == LS_ETIMEDOUT);
    assert_ok(status);
    assert_int_equal(waiter.status, LS_ECANCELED);
    ls_node_interrupt(w->a, LS_OK);
    waiting_end(w);
}

static void count_wakes(void *self)
{
    ++*(int *)self;
}

static void count_two(void *self)
{
    *(int *)self += 2;
}

TEST(who_watches_is_woken_by_each_interrupt)
{
    int first = 0, second = 0;
    struct waiting *w = waiting_start();
    assert_ok(ls_node_on_interrupt(w->a, count_wakes, &first));
    assert_ok(ls_node_on_interrupt(w->a, count_wakes, &second));
    ls_node_interrupt(w->a, LS_ECANCELED);
    assert_int_equal(first, 1);
    assert_int_equal(second, 1);
    assert_fails(ls_node_interrupted(w->a), LS_ECANCELED);
    assert_ok(ls_node_on_interrupt(w->a, count_two, &first)); /* in place */
    assert_ok(ls_node_on_interrupt(w->a, NULL, &second));
    assert_ok(ls_node_on_interrupt(w->a, NULL, &second)); /* nobody's */
    ls_node_interrupt(w->a, LS_OK);
    assert_int_equal(first, 3);
    assert_int_equal(second, 1);
    assert_ok(ls_node_interrupted(w->a));
    assert_ok(ls_node_on_interrupt(w->a, NULL, &first));
    ls_node_interrupt(w->a, LS_OK);
    assert_int_equal(first, 3);
    waiting_end(w);
}

/* ---- in simulations, whoever comes first --------------------------------- */

struct scene {
    ls_runtime *runtime;
    ls_node *node;
    int n_called;
    int status[2];
};

static struct scene scene;

static int note_called(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    scene.n_called++;
    ls_rest_until(scene.runtime, ls_now(scene.runtime) + LS_NS_PER_MS);
    return LS_OK;
}

static void wait_long(void *self)
{
    *(int *)self = ls_wait_for(scene.node, "it", LONG_MS, note_called, NULL);
}

static void wait_for_answers(void *self)
{
    ls_waiter *waiter = NULL;
    assert_ok(ls_waiter_create(&waiter, scene.node, "it", 0));
    *(int *)self = ls_waiter_wait(waiter, LONG_MS, NULL, NULL);
    assert_ok(ls_waiter_destroy(&waiter));
}

static void scene_open(struct net *net)
{
    struct ls_node_options options;
    scene = (struct scene){.runtime = ls_host_runtime(net->hosts[0])};
    ls_node_options_init(&options);
    options.runtime = scene.runtime;
    assert_ok(ls_node_create(&scene.node, &options));
    assert_ok(ls_on(scene.node, "bad", break_down, NULL));
    assert_ok(ls_node_start(scene.node));
}

static void play(void (*body)(struct net *net))
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct net net;
        net_open(&net, seed, NULL);
        net.body = body;
        assert_ok(ls_simulation_run(net.simulation, net_body, &net));
        net_close(&net);
    }
}

static ls_thread *spawn_wait(void (*fn)(void *status), int *status)
{
    ls_thread *thread = NULL;
    assert_ok(ls_thread_spawn(scene.runtime, &thread, "wait", fn, status));
    return thread;
}

static void have_both_wait(struct net *net)
{
    scene_open(net);
    ls_thread *threads[] = {spawn_wait(wait_long, &scene.status[0]),
                            spawn_wait(wait_for_answers, &scene.status[1])};
    net_rest(net, 1);
    assert_ok(ls_emit(scene.node, "bad", NULL, 0));
    net_rest(net, 1);
    assert_ok(ls_node_stop(scene.node, LS_OK));
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    const size_t first = scene.status[0] == LS_EIO ? 0 : 1;
    assert_int_equal(scene.status[first], LS_EIO);
    assert_int_equal(scene.status[1 - first], LS_ECLOSED);
    assert_ok(ls_node_destroy(&scene.node));
}

/* The other goes on, and does not return as if its event had come. */
TEST(an_error_ends_one_wait_of_several)
{
    play(have_both_wait);
}

static void have_both_come(struct net *net)
{
    scene_open(net);
    ls_thread *thread = spawn_wait(wait_long, &scene.status[0]);
    net_rest(net, 1);
    assert_ok(ls_emit(scene.node, "bad", NULL, 0));
    assert_ok(ls_emit(scene.node, "it", NULL, 0));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(scene.status[0], scene.n_called == 1 ? LS_OK : LS_EIO);
    assert_fails(ls_node_take_error(scene.node),
                 scene.n_called == 1 ? LS_EIO : LS_OK);
    assert_ok(ls_node_destroy(&scene.node));
}

/* While its function runs, a wait does not end: the error is left to others. */
TEST(an_error_just_before_the_event_is_not_lost)
{
    play(have_both_come);
}
