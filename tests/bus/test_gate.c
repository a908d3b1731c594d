/* The gate of a bound socket, asked by libzmq for those that connect. */
#define _GNU_SOURCE
#include <zmq.h>

#include "test.h"
#include "transport_zmq.h"
#include "world_fixture.h"

#define N_QUICK 16

/* A bound socket behind a gate that is not open yet, clients that have
 * connected, and what libzmq tells of them there. */
struct gated {
    void *zctx, *socket, *monitor;
    void *clients[N_QUICK];
    struct zmq_gate *gate;
    ls_security *security;
    char endpoint[LS_ENDPOINT_MAX + 1];
};

static void assert_told(const struct gated *g, unsigned wanted)
{
    unsigned kind = 0;
    int value;
    assert_true(transport_zmq_monitor_next(g->monitor, 0, &kind, &value));
    assert_int_equal(kind, wanted);
}

static void *own_socket(const struct gated *g, int type)
{
    void *socket = zmq_socket(g->zctx, type);
    assert_non_null(socket);
    assert_true(transport_zmq_set_int(socket, ZMQ_LINGER, 0));
    return socket;
}

static void begin(struct gated *g)
{
    struct zmq_handler *handler;
    assert_ok(transport_zmq_context(&g->zctx, &handler));
    assert_ok(ls_security_none(&g->security));
    assert_ok(transport_zmq_gate_open(&g->gate, handler, g->security));
    g->socket = own_socket(g, ZMQ_XPUB);
    assert_true(transport_zmq_gate_guard(g->gate, g->socket));
    g->monitor = transport_zmq_monitor(
        g->zctx, g->socket, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED,
        LONG_MS);
    assert_non_null(g->monitor);
    assert_ok(transport_zmq_bind(g->socket, "tcp://127.0.0.1:*", g->endpoint));
    for (size_t i = 0; i < N_QUICK; i++) {
        g->clients[i] = own_socket(g, ZMQ_SUB);
        assert_int_equal(zmq_connect(g->clients[i], g->endpoint), 0);
    }
    for (size_t i = 0; i < N_QUICK; i++)
        assert_told(g, ZMQ_EVENT_ACCEPTED);
}

/* The context goes last: its handler answers whoever waits, and ends. */
static void end(struct gated *g)
{
    for (size_t i = 0; i < N_QUICK; i++)
        zmq_close(g->clients[i]);
    zmq_socket_monitor(g->socket, NULL, 0);
    zmq_close(g->monitor);
    zmq_close(g->socket);
    transport_zmq_gate_close(&g->gate);
    transport_zmq_context_release();
    ls_security_destroy(&g->security);
}

TEST(whoever_comes_before_the_gate_is_open_waits_for_it)
{
    struct gated g;
    begin(&g);

    transport_zmq_gate_opens(g.gate, g.endpoint, "");

    for (size_t i = 0; i < N_QUICK; i++)
        assert_told(&g, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    end(&g);
}

TEST(a_gate_that_is_closed_before_it_was_open_lets_go_of_who_waits)
{
    struct gated g;
    begin(&g);

    transport_zmq_gate_close(&g.gate);

    assert_null(g.gate);
    end(&g);
}
