/* Who publishes may be the one to whom libzmq says that somebody subscribed:
 * then it, or who polls, has to look. */
#include <stdlib.h>
#include <string.h>

#include "closer_fixture.h"
#include "test.h"
#include "transport_fixture.h"
#include "transport_zmq.h"
#include "world_fixture.h"

/* A transport, and one who subscribes there. */
struct looked {
    transport *transport;
    struct zmq_transport *t;
    char endpoint[LS_ENDPOINT_MAX + 1];
    ls_security *security;
    void *context, *sub;
    int n;
    int64_t rest; /* ns */
    uint64_t worked;
    atomic_bool calm;
};

static void note_subscribed(void *self, const uint8_t *topic, size_t size,
                            bool subscribed, const struct speaker *by)
{
    struct looked *looked = self;
    (void)by;
    if (subscribed && size == 1 && topic[0] == 'x')
        looked->n++;
}

static const struct transport_events events = {.subscription = note_subscribed};

static struct looked *looked_start(void)
{
    struct looked *looked = calloc(1, sizeof *looked);
    assert_non_null(looked);
    assert_ok(ls_security_none(&looked->security));
    assert_ok(open_transport(&looked->transport, ls_runtime_threads(),
                             "tcp://127.0.0.1:*", looked->security,
                             looked->endpoint));
    looked->t = (struct zmq_transport *)(void *)looked->transport;
    /* What it does at first is over. */
    (void)transport_poll(looked->transport, LS_NOW, &events, looked);
    looked->context = zmq_ctx_new();
    looked->sub = zmq_socket(looked->context, ZMQ_SUB);
    return looked;
}

static void looked_end(struct looked *looked)
{
    zmq_close(looked->sub);
    zmq_ctx_term(looked->context);
    transport_close(&looked->transport);
    ls_security_destroy(&looked->security);
    free(looked);
}

/* Somebody subscribes: that is met, and not read. */
static void subscribe(struct looked *looked)
{
    zmq_pollitem_t item = {.socket = looked->t->xpub, .events = ZMQ_POLLIN};
    assert_int_equal(zmq_connect(looked->sub, looked->endpoint), 0);
    assert_int_equal(zmq_setsockopt(looked->sub, ZMQ_SUBSCRIBE, "x", 1), 0);
    transport_lock(looked->transport);
    assert_int_equal(zmq_poll(&item, 1, LONG_MS), 1);
    transport_unlock(looked->transport);
}

static void publish(struct looked *looked, bool looks)
{
    transport_lock(looked->transport);
    looked->t->looked_at = looks ? LS_NOW / 2 : ls_now(ls_runtime_threads());
    assert_ok(transport_publish(looked->transport, "y", 1, NULL, 0));
    transport_unlock(looked->transport);
}

static void poll_until_subscribed(struct looked *looked)
{
    const int64_t deadline = long_deadline();
    while (looked->n == 0 && ls_now(ls_runtime_threads()) < deadline)
        (void)transport_poll(looked->transport, deadline, &events, looked);
}

TEST(who_publishes_looks_and_wakes_who_polls)
{
    struct looked *looked = looked_start();
    subscribe(looked);
    publish(looked, true);
    assert_true(atomic_load(&looked->t->woken));
    poll_until_subscribed(looked);
    assert_int_equal(looked->n, 1);
    looked_end(looked);
}

TEST(who_polls_looks_before_it_rests_where_one_publishes_after_the_other)
{
    struct looked *looked = looked_start();
    subscribe(looked);
    publish(looked, false);
    poll_until_subscribed(looked);
    assert_int_equal(looked->n, 1);
    looked_end(looked);
}

/* As if the bus thread rested for good. */
static void rest(struct looked *looked)
{
    looked->t->stands_by = true;
    looked->t->stands_until = LS_FOREVER;
    atomic_store(&looked->t->rests_until, LS_FOREVER);
}

static bool is_woken(struct looked *looked)
{
    return atomic_load(&looked->t->woken);
}

TEST(who_rests_for_long_is_woken_to_look)
{
    struct looked *looked = looked_start();
    rest(looked);
    publish(looked, false);
    assert_true(is_woken(looked));
    looked_end(looked);
}

TEST(who_does_not_rest_for_long_is_not_woken)
{
    struct looked *looked = looked_start();
    atomic_store(&looked->t->rests_until,
                 ls_now(ls_runtime_threads()) + LOOK_LATER_NS);
    publish(looked, false);
    assert_false(is_woken(looked));
    atomic_store(&looked->t->rests_until, LS_FOREVER);
    publish(looked, false); /* it looks for both */
    assert_false(is_woken(looked));
    looked_end(looked);
}

/* How long who polls rests, at most. */
static bool note_rest(void *self, bool begins)
{
    struct looked *looked = self;
    if (begins)
        looked->rest =
            atomic_load(&looked->t->rests_until) - ls_now(ls_runtime_threads());
    return !begins; /* it does not wait */
}

static int64_t longest_rest(struct looked *looked)
{
    static const struct transport_events rests = {
        .subscription = note_subscribed, .rests = note_rest};
    looked->rest = -1;
    while (looked->rest < 0)
        (void)transport_poll(looked->transport, long_deadline(), &rests,
                             looked);
    return looked->rest;
}

TEST(who_was_met_at_rest_does_not_rest_for_long_for_a_while)
{
    struct looked *looked = looked_start();
    assert_true(longest_rest(looked) > LS_NS_PER_S + LOOK_LATER_NS);
    publish(looked, false); /* not at rest */
    assert_true(longest_rest(looked) > LS_NS_PER_S + LOOK_LATER_NS);
    rest(looked);
    publish(looked, true);
    publish(looked, false);
    assert_true(atomic_load(&looked->t->met_at) != LS_NOW);
    looked->t->met_at = /* however slow this test is */
        ls_now(ls_runtime_threads()) + LS_NS_PER_S;
    assert_true(longest_rest(looked) <= LS_NS_PER_S + LOOK_LATER_NS);
    looked->t->met_at = ls_now(ls_runtime_threads()) - LOOK_LATER_NS;
    assert_true(longest_rest(looked) > LS_NS_PER_S + LOOK_LATER_NS);
    looked_end(looked);
}

/* Who sends up waits for an answer, for which two milliseconds are long. */
static bool note_unlooked(void *self, bool begins)
{
    struct looked *looked = self;
    if (begins)
        looked->n = atomic_load(&looked->t->unlooked) ? 1 : 0;
    return !begins; /* it does not wait */
}

static bool is_unlooked_at_rest(struct looked *looked)
{
    static const struct transport_events rests = {.rests = note_unlooked};
    publish(looked, false);
    atomic_store(&looked->t->left_at, /* however slow this test is */
                 ls_now(ls_runtime_threads()) + LS_NS_PER_S);
    looked->n = -1;
    while (looked->n < 0)
        (void)transport_poll(looked->transport, long_deadline(), &rests,
                             looked);
    return looked->n == 1;
}

TEST(who_was_sent_something_up_looks_before_it_rests)
{
    struct looked *looked = looked_start();
    assert_true(is_unlooked_at_rest(looked));
    looked->t->hears = true;
    assert_false(is_unlooked_at_rest(looked));
    looked_end(looked);
}

TEST(who_borrows_the_turn_is_not_woken_and_looks_at_the_end)
{
    struct looked *looked = looked_start();
    rest(looked);
    assert_true(transport_lend(looked->transport, true, LS_FOREVER));
    publish(looked, false);
    assert_true(atomic_load(&looked->t->unlooked));
    (void)transport_lend(looked->transport, false, LS_FOREVER);
    assert_false(atomic_load(&looked->t->unlooked));
    assert_false(is_woken(looked)); /* there was nothing */
    assert_true(transport_lend(looked->transport, true, LS_FOREVER));
    subscribe(looked);
    publish(looked, false);
    assert_false(is_woken(looked));
    (void)transport_lend(looked->transport, false, LS_FOREVER);
    assert_true(is_woken(looked));
    looked_end(looked);
}

TEST(who_has_its_turn_back_and_rests_on_is_woken_to_look)
{
    struct looked *looked = looked_start();
    rest(looked);
    assert_true(transport_lend(looked->transport, true, LS_FOREVER));
    (void)transport_lend(looked->transport, false, LS_FOREVER);
    assert_false(is_woken(looked));
    publish(looked, false);
    assert_true(is_woken(looked));
    looked_end(looked);
}

/* ---- who sends up without end ------------------------------------------- */

/* It works at what it hears, for longer than the other takes to send it. */
static void work_at(void *self, const uint8_t *frame, size_t size,
                    const struct speaker *by)
{
    struct looked *looked = self;
    (void)frame;
    (void)size;
    (void)by;
    for (uint32_t i = 0; i < 4000; i++)
        looked->worked = looked->worked * 31 + i;
}

static void note_refused(void *self, const struct transport_refusal *refusal)
{
    struct looked *looked = self;
    assert_true(refusal->too_much);
    assert_non_null(strstr(refusal->why, "sent up messages faster"));
    looked->n++;
}

static void flood(void *self)
{
    struct looked *looked = self;
    const int mark = 4096; /* what is beyond it is lost there */
    void *socket = zmq_socket(looked->context, ZMQ_XSUB);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_SNDHWM, &mark, sizeof mark), 0);
    assert_int_equal(zmq_connect(socket, looked->endpoint), 0);
    while (!atomic_load(&looked->calm))
        assert_int_equal(zmq_send(socket, "x", 1, 0), 1);
    zmq_close(socket);
}

TEST(who_floods_is_cut_off_though_it_never_subscribed)
{
    static const struct transport_events working = {.subscription =
                                                        note_subscribed,
                                                    .said = work_at,
                                                    .refused = note_refused};
    struct looked *looked = looked_start();
    ls_thread *thread = NULL;
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &thread, "flood", flood, looked));
    const int64_t deadline = long_deadline();
    while (looked->n == 0 && ls_now(ls_runtime_threads()) < deadline)
        (void)transport_poll(looked->transport, deadline, &working, looked);
    atomic_store(&looked->calm, true);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(looked->n, 1);
    looked_end(looked);
}

/* ---- links that are closed meanwhile ------------------------------------- */

TEST(whoever_is_told_of_a_message_may_close_links)
{
    static const struct transport_events closing = {.subscription =
                                                        note_subscribed,
                                                    .message = closer_message,
                                                    .take = closer_take};
    struct looked *looked = looked_start();
    struct closer closer;
    closer_open(&closer, ls_runtime_threads(), "tcp://127.0.0.1:*",
                looked->security, looked->endpoint);
    const int64_t deadline = long_deadline();
    while (looked->n < N_LINKS && ls_now(ls_runtime_threads()) < deadline)
        (void)transport_poll(looked->transport, deadline, &events, looked);
    transport_lock(looked->transport);
    assert_ok(transport_publish(looked->transport, "x1", 2, NULL, 0));
    assert_ok(transport_publish(looked->transport, "x2", 2, NULL, 0));
    transport_unlock(looked->transport);
    ls_rest_until(ls_runtime_threads(),
                  ls_now(ls_runtime_threads()) + 50 * LS_NS_PER_MS);
    while (closer.n_heard == 0 && ls_now(ls_runtime_threads()) < deadline)
        (void)transport_poll(closer.transport, deadline, &closing, &closer);
    (void)transport_poll(closer.transport, LS_NOW, &closing, &closer);
    assert_int_equal(closer.n_heard, 1);
    transport_close(&closer.transport);
    looked_end(looked);
}
