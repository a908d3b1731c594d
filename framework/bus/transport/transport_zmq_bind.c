/* Where a node is to be reached. */
#include "transport_zmq.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int refused(const char *bind)
{
    const int error = zmq_errno();
    if (error == EADDRINUSE)
        return ls_error(LS_EADDRINUSE,
                        "cannot bind %s: another program has this address; "
                        "end it, or choose another port",
                        bind);
    if (error == EADDRNOTAVAIL || error == ENODEV || error == EINVAL ||
        error == EPROTONOSUPPORT)
        return ls_error(LS_EINVAL,
                        "cannot bind %s: no address of this host (%s)", bind,
                        zmq_strerror(error));
    return ls_error(LS_EIO, "cannot bind %s: %s", bind, zmq_strerror(error));
}

/* libzmq removes a socket file before it binds, also one that is in use. */
static bool ipc_in_use(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return false;
    const bool answered =
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return answered;
}

/* libzmq binds to numbers and to the names of interfaces. The address with a
 * host name looked up, or as it is: once for all ports of a range, and before
 * any bind, whose errno the resolver may overwrite. */
static void look_up(const char *address, char *literal, size_t size)
{
    char host[LS_ENDPOINT_MAX + 1], number[64];
    const struct addrinfo want = {.ai_family = AF_INET,
                                  .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    snprintf(literal, size, "%s", address);
    if (!transport_tcp_host(address, host, sizeof host) ||
        strcmp(host, "*") == 0 || if_nametoindex(host) != 0 ||
        getaddrinfo(host, NULL, &want, &found) != 0)
        return;
    if (getnameinfo(found->ai_addr, found->ai_addrlen, number, sizeof number,
                    NULL, 0, NI_NUMERICHOST) == 0 &&
        strrchr(address + strlen("tcp://"), ':') != NULL)
        snprintf(literal, size, "tcp://%s%s", number, strrchr(address, ':'));
    freeaddrinfo(found);
}

static int bind_range(void *socket, const char *bind, const char *literal,
                      unsigned first, unsigned last)
{
    const int host = (int)(strrchr(literal, ':') - literal);
    for (unsigned port = first; port <= last; port++) {
        char one[LS_ENDPOINT_MAX + 64];
        snprintf(one, sizeof one, "%.*s:%u", host, literal, port);
        if (zmq_bind(socket, one) == 0)
            return LS_OK;
        if (zmq_errno() != EADDRINUSE)
            return refused(one);
    }
    return ls_error(LS_EADDRINUSE,
                    "cannot bind %s: every port of the range is in use", bind);
}

int transport_zmq_bind(void *socket, const char *bind, char *endpoint)
{
    char literal[LS_ENDPOINT_MAX + 64];
    unsigned first = 0, last = 0;
    int status = LS_OK;
    if (strncmp(bind, "tcp://", 6) == 0 &&
        !transport_ports(bind, &first, &last))
        return transport_no_ports(bind);
    look_up(bind, literal, sizeof literal);
    if (!transport_zmq_set_family(socket, literal))
        return transport_zmq_error("zmq_setsockopt");
    if (strncmp(bind, "ipc://", 6) == 0 && ipc_in_use(bind + 6))
        status = ls_error(LS_EADDRINUSE,
                          "cannot bind %s: a program answers there", bind);
    else if (first != last)
        status = bind_range(socket, bind, literal, first, last);
    else if (zmq_bind(socket, literal) != 0)
        status = refused(bind);
    if (status != LS_OK)
        return status;
    size_t size = LS_ENDPOINT_MAX + 1;
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0)
        return ls_error(LS_EINVAL,
                        "cannot bind %s: the address is longer "
                        "than %d bytes",
                        bind, LS_ENDPOINT_MAX);
    return LS_OK;
}

void transport_zmq_close(struct zmq_transport *t)
{
    const bool bound =
        t->bound[0] != '\0' && zmq_unbind(t->xpub, t->bound) == 0;
    /* libzmq gives a port up on a thread of its own: whoever comes next can
     * have it when that is done. */
    if (bound && strncmp(t->bound, "tcp://", 6) == 0)
        transport_zmq_monitor_unbound(t);
    transport_zmq_monitor_close(t);
    zmq_close(t->xpub);
    if (strncmp(t->bound, "ipc://", 6) == 0)
        unlink(t->bound + 6);
    /* libzmq does so only if it was the one that removed the file. */
    if (t->has_folder) {
        *strrchr(t->bound, '/') = '\0';
        (void)rmdir(t->bound + 6);
    }
}
