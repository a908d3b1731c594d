/* Probes: a connection of one's own to an address, which the system answers
 * for a process that is busy or stopped, and refuses for one that is gone. */
#define _GNU_SOURCE /* epoll, SOCK_NONBLOCK */
#include "transport_zmq.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAIT_NS LS_NS_PER_S

struct zmq_probe {
    struct zmq_probe *next;
    int fd;           /* connecting; -1: the answer is there */
    int64_t deadline; /* then the answer is there */
    enum transport_probed answer;
    char endpoint[LS_ENDPOINT_MAX + 1];
};

struct address {
    struct sockaddr_storage at;
    socklen_t size;
};

/* A host name would have to be looked up, which takes as long as it takes. */
static bool tcp_address(const char *endpoint, struct address *out)
{
    char host[LS_ENDPOINT_MAX + 1];
    const struct addrinfo want = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                  .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *colon = strrchr(endpoint, ':');
    if (!transport_tcp_host(endpoint, host, sizeof host) ||
        getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                    colon + 1, &want, &found) != 0)
        return false;
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    out->size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool ipc_address(const char *endpoint, struct address *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = endpoint + strlen("ipc://");
    const size_t n = strlen(path);
    if (strncmp(endpoint, "ipc://", 6) != 0 || n >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, n + 1);
    out->size = sizeof address;
    if (path[0] == '@') { /* a name without a file */
        address.sun_path[0] = '\0';
        out->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    }
    memcpy(&out->at, &address, sizeof address);
    return true;
}

static enum transport_probed answer_of(int error)
{
    switch (error) {
    case 0:
    case EAGAIN: /* a socket file's queue is full */
        return TRANSPORT_LISTENS;
    case ECONNREFUSED:
    case ENOENT:
        return TRANSPORT_REFUSES;
    default:
        return TRANSPORT_UNKNOWN;
    }
}

/* A port that nobody listens at, and that the system picked for this end too,
 * answers itself. */
static bool met_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t size = sizeof here, size_there = sizeof there;
    return getsockname(fd, (struct sockaddr *)&here, &size) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &size_there) == 0 &&
           here.ss_family != AF_UNIX && size == size_there &&
           memcmp(&here, &there, size) == 0;
}

/* Out of the epoll first: the file itself lives on for as long as another
 * thread is in a system call with its number, and would still be told of. */
static void close_probe(const struct zmq_transport *t, struct zmq_probe *probe)
{
    if (probe->fd < 0)
        return;
    epoll_ctl(t->epoll, EPOLL_CTL_DEL, probe->fd, NULL);
    close(probe->fd);
    probe->fd = -1;
}

static void answered(const struct zmq_transport *t, struct zmq_probe *probe,
                     int error)
{
    probe->answer = error == 0 && probe->fd >= 0 && met_itself(probe->fd)
                        ? TRANSPORT_REFUSES
                        : answer_of(error);
    close_probe(t, probe);
    probe->deadline = LS_NOW;
}

static int begin(struct zmq_transport *t, struct zmq_probe *probe)
{
    struct address address;
    if (strncmp(probe->endpoint, "inproc://", 9) == 0) {
        answered(t, probe,
                 transport_zmq_inproc_has(probe->endpoint) ? 0 : ECONNREFUSED);
        return LS_OK;
    }
    if (!tcp_address(probe->endpoint, &address) &&
        !ipc_address(probe->endpoint, &address)) {
        answered(t, probe, EHOSTUNREACH);
        return LS_OK;
    }
    probe->fd = socket(address.at.ss_family,
                       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->fd < 0 && (errno == EMFILE || errno == ENFILE))
        return ls_error(LS_ELIMIT,
                        "no file left to probe %s; raise `ulimit -n`",
                        probe->endpoint);
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = probe};
    if (probe->fd < 0 ||
        connect(probe->fd, (struct sockaddr *)&address.at, address.size) == 0)
        answered(t, probe, probe->fd < 0 ? errno : 0);
    else if (errno != EINPROGRESS ||
             epoll_ctl(t->epoll, EPOLL_CTL_ADD, probe->fd, &event) != 0)
        answered(t, probe, errno);
    return LS_OK;
}

int transport_zmq_probe(transport *base, const char *endpoint)
{
    struct zmq_transport *t = zmq_of(base);
    struct zmq_probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL)
        return ls_error(LS_ENOMEM, "no memory for a probe");
    snprintf(probe->endpoint, sizeof probe->endpoint, "%s", endpoint);
    probe->fd = -1;
    probe->answer = TRANSPORT_UNKNOWN;
    probe->deadline = ls_now(base->runtime) + WAIT_NS;
    const int status = begin(t, probe);
    if (status != LS_OK) {
        free(probe);
        return status;
    }
    struct zmq_probe **at = &t->probes;
    while (*at != NULL)
        at = &(*at)->next;
    *at = probe;
    return LS_OK;
}

int64_t transport_zmq_probes_due(const struct zmq_transport *t)
{
    int64_t due = LS_FOREVER;
    for (const struct zmq_probe *p = t->probes; p != NULL; p = p->next)
        due = p->deadline < due ? p->deadline : due;
    return due;
}

bool transport_zmq_probe_ready(struct zmq_transport *t, const void *what)
{
    struct zmq_probe *probe = t->probes;
    while (probe != NULL && probe != what)
        probe = probe->next;
    if (probe == NULL)
        return false;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    answered(t, probe, error);
    return true;
}

void transport_zmq_probes_tell(struct zmq_transport *t,
                               const struct transport_events *events,
                               void *self)
{
    const int64_t now = ls_now(t->base.runtime);
    struct zmq_probe **at = &t->probes;
    while (*at != NULL) {
        struct zmq_probe *probe = *at;
        if (probe->deadline > now) {
            at = &probe->next;
            continue;
        }
        *at = probe->next;
        close_probe(t, probe);
        events->probed(self, probe->endpoint, probe->answer);
        free(probe);
    }
}

void transport_zmq_probes_free(struct zmq_transport *t)
{
    while (t->probes != NULL) {
        struct zmq_probe *probe = t->probes;
        t->probes = probe->next;
        close_probe(t, probe);
        free(probe);
    }
}
