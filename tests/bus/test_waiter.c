/* Waiting for what has come since the waiter was made. */
#include <signal.h>

#include "node_fixture.h"
#include "test.h"

static int number(void *self, const struct ls_event *event)
{
    assert_string_equal(event->name, "answer");
    assert_int_equal(event->size, sizeof(int));
    memcpy(self, event->data, sizeof(int));
    return LS_OK;
}

static void answer(ls_node *node, int value)
{
    assert_ok(ls_emit(node, "answer", &value, sizeof value));
}

/* Everything that was emitted before has been handled. */
static void settle(ls_node *node)
{
    ls_waiter *waiter = NULL;
    assert_ok(ls_waiter_create(&waiter, node, "settled", 1));
    assert_ok(ls_emit(node, "settled", NULL, 0));
    assert_ok(ls_waiter_wait(waiter, LONG_MS, NULL, NULL));
    assert_ok(ls_waiter_destroy(&waiter));
}

TEST(what_comes_before_the_wait_is_kept_in_order)
{
    struct ls_node_options options = usual(0);
    ls_node *node = started(&options);
    ls_waiter *waiter = NULL;
    int value = 0;
    answer(node, 7); /* too early */
    settle(node);
    assert_ok(ls_waiter_create(&waiter, node, "ans*", 0));
    assert_fails(ls_node_destroy(&node), LS_ESTATE);
    for (int i = 1; i <= 3; i++)
        answer(node, i);
    settle(node);
    for (int i = 1; i <= 3; i++) {
        assert_ok(ls_waiter_wait(waiter, 0, number, &value));
        assert_int_equal(value, i);
    }
    assert_fails(ls_waiter_wait(waiter, 0, number, &value), LS_ETIMEDOUT);
    assert_error_has("ans*");
    assert_int_equal(ls_waiter_dropped(waiter), 0);
    assert_ok(ls_waiter_destroy(&waiter));
    assert_ok(ls_waiter_destroy(&waiter));
    assert_ok(ls_node_destroy(&node));
}

struct busy {
    struct counter entered, may_go;
};

static int be_busy(void *self, const struct ls_event *event)
{
    struct busy *busy = self;
    (void)event;
    counter_add(&busy->entered, 1);
    return counter_reaches(&busy->may_go, 1) ? LS_OK : LS_ETIMEDOUT;
}

/* Those for which a handler has not had time yet; the next one joins them. */
TEST(what_is_queued_already_is_for_those_that_listened_then)
{
    static const char *const events[] = {"answer", "ans*"};
    for (size_t i = 0; i < 2; i++) {
        struct ls_node_options options = usual(0);
        ls_node *node = started(&options);
        struct busy busy;
        ls_waiter *early = NULL, *late = NULL, *gone = NULL;
        int value = 0;
        counter_init(&busy.entered);
        counter_init(&busy.may_go);
        assert_ok(ls_on(node, "work", be_busy, &busy));
        assert_ok(ls_emit(node, "work", NULL, 0));
        assert_reaches(&busy.entered, 1);
        assert_ok(ls_waiter_create(&early, node, events[i], 0));
        answer(node, 7);
        assert_ok(ls_waiter_create(&late, node, events[i], 0));
        assert_ok(ls_waiter_create(&gone, node, events[i], 0));
        assert_ok(ls_waiter_destroy(&gone));
        for (int n = 0; n < 100; n++) /* the queue does not grow by that */
            assert_fails(ls_wait_for(node, "answer", 0, NULL, NULL),
                         LS_ETIMEDOUT);
        struct ls_node_stats stats;
        ls_node_stats(node, &stats);
        assert_true(stats.queued < 5);
        answer(node, 8);
        counter_add(&busy.may_go, 1);
        assert_ok(ls_waiter_wait(early, LONG_MS, number, &value));
        assert_int_equal(value, 7);
        assert_ok(ls_waiter_wait(late, LONG_MS, number, &value));
        assert_int_equal(value, 8);
        settle(node);
        assert_fails(ls_waiter_wait(late, 0, NULL, NULL), LS_ETIMEDOUT);
        assert_ok(ls_waiter_destroy(&early));
        assert_ok(ls_waiter_destroy(&late));
        assert_ok(ls_node_destroy(&node));
        counter_fini(&busy.entered);
        counter_fini(&busy.may_go);
    }
}

TEST(so_many_are_kept_and_the_rest_is_counted)
{
    struct ls_node_options options = usual(0);
    ls_node *node = started(&options);
    ls_waiter *waiter = (ls_waiter *)(void *)&waiter;
    int value = 0;
    assert_fails(ls_waiter_create(&waiter, node, "answer", 65537), LS_EINVAL);
    assert_null(waiter);
    assert_fails(ls_waiter_create(&waiter, node, "an answer", 1), LS_EINVAL);
    assert_ok(ls_waiter_create(&waiter, node, "answer", 2));
    for (int i = 1; i <= 5; i++)
        answer(node, i);
    settle(node);
    assert_int_equal(ls_waiter_dropped(waiter), 3);
    for (int i = 1; i <= 2; i++) {
        assert_ok(ls_waiter_wait(waiter, LONG_MS, number, &value));
        assert_int_equal(value, i);
    }
    answer(node, 6);
    assert_ok(ls_waiter_wait(waiter, LONG_MS, number, &value));
    assert_int_equal(value, 6);
    assert_ok(ls_node_stop(node, LS_OK));
    assert_fails(ls_waiter_wait(waiter, LONG_MS, NULL, NULL), LS_ECLOSED);
    assert_ok(ls_waiter_destroy(&waiter));
    assert_ok(ls_node_destroy(&node));
}

static int is_a_handler(void *self, const struct ls_event *event)
{
    (void)event;
    ls_waiter **waiter = self;
    assert_fails(ls_waiter_wait(*waiter, LONG_MS, NULL, NULL), LS_ESTATE);
    assert_fails(ls_waiter_destroy(waiter), LS_ESTATE);
    assert_error_has("cannot destroy the waiter for event \"answer\"");
    return ls_error(LS_EPROTO, "as asked");
}

TEST(a_wait_ends_as_others_do)
{
    struct ls_node_options options = usual(0);
    ls_node *node = started(&options);
    ls_waiter *waiter = NULL;
    assert_ok(ls_waiter_create(&waiter, node, "answer", 0));
    assert_ok(ls_on(node, "wrong", is_a_handler, &waiter));
    assert_ok(ls_emit(node, "wrong", NULL, 0));
    assert_fails(ls_waiter_wait(waiter, LONG_MS, NULL, NULL), LS_EPROTO);
    assert_error_has("as asked");
    ls_node_interrupt(node, LS_ECANCELED);
    assert_fails(ls_waiter_wait(waiter, LONG_MS, NULL, NULL), LS_ECANCELED);
    ls_node_interrupt(node, LS_OK);
    assert_fails(ls_waiter_wait(waiter, 0, NULL, NULL), LS_ETIMEDOUT);
    assert_ok(ls_waiter_destroy(&waiter));
    assert_ok(ls_node_destroy(&node));
}

static int refuse(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return ls_error(LS_EPROTO, "as asked");
}

/* Whatever would end a wait. */
TEST(what_is_kept_is_taken_first)
{
    struct ls_node_options options = usual(0);
    ls_node *node = started(&options);
    ls_waiter *waiter = NULL;
    int value = 0;
    assert_ok(ls_waiter_create(&waiter, node, "answer", 0));
    assert_ok(ls_on(node, "wrong", refuse, NULL));
    for (int i = 1; i <= 3; i++)
        answer(node, i);
    settle(node);
    assert_ok(ls_emit(node, "wrong", NULL, 0));
    ls_node_interrupt(node, LS_ECANCELED);
    assert_ok(ls_waiter_wait(waiter, 0, number, &value));
    assert_int_equal(value, 1);
    assert_fails(ls_waiter_wait(waiter, 0, refuse, NULL), LS_EPROTO);
    assert_ok(ls_node_stop(node, LS_OK));
    assert_ok(ls_waiter_wait(waiter, 0, number, &value));
    assert_int_equal(value, 3);
    assert_fails(ls_waiter_wait(waiter, 0, number, &value), LS_ECLOSED);
    assert_fails(ls_node_take_error(node), LS_EPROTO); /* nobody took it */
    assert_ok(ls_waiter_destroy(&waiter));
    assert_fails(ls_waiter_create(&waiter, node, "answer", 0), LS_ECLOSED);
    assert_null(waiter);
    assert_ok(ls_node_destroy(&node));
}

static ls_node *interrupted;

static void on_alarm(int number)
{
    (void)number;
    ls_node_interrupt_soon(interrupted, LS_ECANCELED);
}

TEST(a_signal_handler_can_end_a_wait)
{
    struct ls_node_options options = usual(0);
    struct sigaction action = {.sa_handler = on_alarm}, before;
    interrupted = started(&options);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(raise(SIGALRM), 0);
    assert_fails(ls_wait_for(interrupted, "never", LONG_MS, NULL, NULL),
                 LS_ECANCELED);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_ok(ls_node_destroy(&interrupted));
}
