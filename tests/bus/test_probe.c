/* Probes: whether anyone listens at an address, on libzmq. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "test.h"
#include "transport_fixture.h"
#include "transport_zmq.h"
#include "world_fixture.h"

struct probing {
    transport *transport;
    char endpoint[LS_ENDPOINT_MAX + 1];
    char asked[LS_ENDPOINT_MAX + 1];
    enum transport_probed answer;
    int n;
    ls_security *security;
};

static void on_probed(void *self, const char *endpoint,
                      enum transport_probed answer)
{
    struct probing *p = self;
    assert_string_equal(endpoint, p->asked);
    p->answer = answer;
    p->n++;
}

static const struct transport_events events = {.probed = on_probed};

static void begin(struct probing *p, const char *bind)
{
    memset(p, 0, sizeof *p);
    assert_ok(ls_security_none(&p->security));
    assert_ok(open_transport(&p->transport, ls_runtime_threads(), bind,
                             p->security, p->endpoint));
}

static enum transport_probed probe(struct probing *p, const char *endpoint)
{
    const int64_t deadline = long_deadline();
    const int before = p->n;
    snprintf(p->asked, sizeof p->asked, "%s", endpoint);
    assert_ok(transport_probe(p->transport, endpoint));
    while (p->n == before && ls_now(ls_runtime_threads()) < deadline)
        (void)transport_poll(p->transport, deadline, &events, p);
    assert_int_equal(p->n, before + 1);
    return p->answer;
}

/* A socket that is bound and, with a backlog, listens, but never accepts. */
static int bound_socket(int backlog, char *endpoint, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    if (backlog >= 0)
        assert_int_equal(listen(fd, backlog), 0);
    snprintf(endpoint, size, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

TEST(a_bound_address_listens)
{
    char ipc[64];
    snprintf(ipc, sizeof ipc, "ipc:///tmp/ls-probe-%d.ipc", (int)getpid());
    const char *const binds[] = {"tcp://127.0.0.1:*", "inproc://probed", ipc};
    struct probing asks;
    begin(&asks, "inproc://asks");
    for (size_t i = 0; i < 3; i++) {
        struct probing bound;
        begin(&bound, binds[i]);
        assert_int_equal(probe(&asks, bound.endpoint), TRANSPORT_LISTENS);
        transport_unbind(bound.transport);
        assert_int_equal(probe(&asks, bound.endpoint), TRANSPORT_REFUSES);
        transport_close(&bound.transport);
        ls_security_destroy(&bound.security);
    }
    transport_close(&asks.transport);
    ls_security_destroy(&asks.security);
}

TEST(a_stopped_process_still_listens)
{
    struct probing asks;
    char endpoint[64];
    begin(&asks, "inproc://asks");
    const int fd = bound_socket(8, endpoint, sizeof endpoint);
    assert_int_equal(probe(&asks, endpoint), TRANSPORT_LISTENS);
    close(fd);
    assert_int_equal(probe(&asks, endpoint), TRANSPORT_REFUSES);
    transport_close(&asks.transport);
    ls_security_destroy(&asks.security);
}

TEST(localhost_needs_no_resolver)
{
    struct probing asks;
    char endpoint[64], named[64];
    begin(&asks, "inproc://asks");
    const int fd = bound_socket(8, endpoint, sizeof endpoint);
    snprintf(named, sizeof named, "tcp://localhost%s", strrchr(endpoint, ':'));
    assert_int_equal(probe(&asks, named), TRANSPORT_LISTENS);
    close(fd);
    transport_close(&asks.transport);
    ls_security_destroy(&asks.security);
}

TEST(who_does_not_answer_is_unknown)
{
    enum { CROWD = 4 };
    struct probing asks;
    char endpoint[64];
    int crowd[CROWD];
    begin(&asks, "inproc://asks");
    /* A full queue answers nobody. */
    const int fd = bound_socket(0, endpoint, sizeof endpoint);
    struct sockaddr_in at;
    socklen_t n = sizeof at;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(crowd[i], (struct sockaddr *)&at, n);
    }
    assert_int_equal(probe(&asks, endpoint), TRANSPORT_UNKNOWN);
    for (size_t i = 0; i < CROWD; i++)
        close(crowd[i]);
    close(fd);
    transport_close(&asks.transport);
    ls_security_destroy(&asks.security);
}

TEST(a_host_name_is_unknown)
{
    struct probing asks;
    begin(&asks, "inproc://asks");
    assert_int_equal(probe(&asks, "tcp://no-such-host.invalid:21500"),
                     TRANSPORT_UNKNOWN);
    transport_close(&asks.transport);
    ls_security_destroy(&asks.security);
}

TEST(what_is_no_address_is_refused)
{
    struct probing asks;
    begin(&asks, "inproc://asks");
    assert_fails(transport_probe(asks.transport, "udp://127.0.0.1:1"),
                 LS_EINVAL);
    assert_error_has("udp://127.0.0.1:1");
    transport_close(&asks.transport);
    ls_security_destroy(&asks.security);
}

TEST(a_probe_under_way_ends_with_the_transport)
{
    struct probing asks;
    char endpoint[64];
    begin(&asks, "inproc://asks");
    const int fd = bound_socket(8, endpoint, sizeof endpoint);
    assert_ok(transport_probe(asks.transport, endpoint));
    assert_ok(transport_probe(asks.transport, "inproc://asks"));
    transport_close(&asks.transport);
    ls_security_destroy(&asks.security);
    assert_int_equal(asks.n, 0);
    close(fd);
}

/* ---- the rest of a transport on libzmq --------------------------------- */

TEST(what_libzmq_refuses_is_said)
{
    errno = EMFILE;
    assert_fails(transport_zmq_error("zmq_socket"), LS_ELIMIT);
    assert_has(ls_error_text(), "ulimit");
    errno = EPROTONOSUPPORT;
    assert_fails(transport_zmq_error("zmq_bind"), LS_EIO);
    assert_has(ls_error_text(), "zmq_bind: ");
}
