/* The bus thread stands by while another thread has its turn. */
#include <stdlib.h>

#include "test.h"
#include "transport_fixture.h"
#include "transport_zmq.h"
#include "world_fixture.h"

/* A transport whose bus thread is this one; another has borrowed its turn when
 * a timer wakes it. */
struct stood {
    transport *transport;
    struct zmq_transport *t;
    ls_security *security;
    int64_t next; /* timer, which is known as the turn is given back */
    int n_asked;  /* whose turn it is */
    int64_t until[3];
    bool woken; /* by who gives it back */
};

static void poll_for_ms(struct stood *stood,
                        const struct transport_events *events)
{
    const int64_t now = ls_now(ls_runtime_threads());
    (void)transport_poll(stood->transport, now + LS_NS_PER_MS, events, stood);
}

static struct stood *stood_start(void)
{
    char endpoint[LS_ENDPOINT_MAX + 1];
    static const struct transport_events events = {.rests = NULL};
    struct stood *stood = calloc(1, sizeof *stood);
    assert_non_null(stood);
    assert_ok(ls_security_none(&stood->security));
    assert_ok(open_transport(&stood->transport, ls_runtime_threads(),
                             "tcp://127.0.0.1:*", stood->security, endpoint));
    stood->t = (struct zmq_transport *)(void *)stood->transport;
    /* From now on it stands by. */
    assert_false(transport_lend(stood->transport, true, LS_FOREVER));
    while (!stood->t->stands_by)
        poll_for_ms(stood, &events);
    return stood;
}

static void stood_end(struct stood *stood)
{
    transport_close(&stood->transport);
    ls_security_destroy(&stood->security);
    free(stood);
}

/* Lent as it begins to wait; given back when it has asked twice. */
static bool rests_while_lent(void *self, bool begins)
{
    struct stood *stood = self;
    if (begins)
        return transport_lend(stood->transport, true, LS_FOREVER);
    stood->until[stood->n_asked++] = atomic_load(&stood->t->stands_until);
    if (stood->n_asked == 2) {
        (void)transport_lend(stood->transport, false, stood->next);
        stood->woken = atomic_load(&stood->t->woken);
        transport_wake(stood->transport); /* or it would wait on */
    }
    return stood->n_asked > 2;
}

static void stand(struct stood *stood, int64_t next)
{
    static const struct transport_events events = {.rests = rests_while_lent};
    stood->next = next;
    stood->n_asked = 0;
    while (stood->n_asked == 0) /* it passes before it waits, at times */
        poll_for_ms(stood, &events);
    assert_int_equal(stood->n_asked, 3);
}

TEST(who_is_woken_while_its_turn_is_lent_stands_by_until_that_is_given_back)
{
    struct stood *stood = stood_start();
    stand(stood, LS_NOW);
    assert_true(stood->until[1] > stood->until[0]);
    assert_true(stood->woken); /* there is something to do */
    stood_end(stood);
}

TEST(who_stands_by_knows_the_next_timer_and_is_not_woken_for_it)
{
    struct stood *stood = stood_start();
    const int64_t next = long_deadline();
    assert_true(transport_lend(stood->transport, true, LS_FOREVER));
    (void)transport_lend(stood->transport, false, next);
    stand(stood, next);
    assert_int_equal(stood->until[1], next);
    assert_false(stood->woken);
    stood_end(stood);
}
