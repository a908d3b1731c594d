/* severed_link.h - a TCP address in front of a node's socket file, whose
 * connections can be reset, held up, or refused at will. */
#ifndef SEVERED_LINK_H
#define SEVERED_LINK_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "world_fixture.h"

#define SEVERED_MAX 64

enum severed_mode {
    LINK_PASSES,  /* what comes is passed on */
    LINK_HOLDS,   /* connections are taken, and nothing is passed on */
    LINK_REFUSES, /* nobody listens */
};

struct severed_link {
    char endpoint[64]; /* what others dial */
    char path[108];    /* where the node is */
    ls_thread *thread;
    ls_mutex mutex;
    ls_cond done;
    enum severed_mode mode;
    bool reset, ending;
    unsigned asked, answered; /* commands */
    int command[2];           /* a pipe */
    int listener;
    struct sockaddr_in address;
    struct {
        int fd[2]; /* who dialled, and the node; -1: none */
    } connections[SEVERED_MAX];
};

static inline void severed_listen(struct severed_link *link)
{
    const int one = 1;
    socklen_t size = sizeof link->address;
    link->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (link->listener < 0 ||
        setsockopt(link->listener, SOL_SOCKET, SO_REUSEADDR, &one,
                   sizeof one) != 0 ||
        bind(link->listener, (struct sockaddr *)&link->address, size) != 0 ||
        listen(link->listener, SEVERED_MAX) != 0 ||
        getsockname(link->listener, (struct sockaddr *)&link->address, &size) !=
            0)
        abort();
}

static inline void severed_close(struct severed_link *link, size_t i)
{
    /* With a reset, as a router that has forgotten the connection answers. */
    const struct linger now = {.l_onoff = 1};
    for (size_t side = 0; side < 2; side++) {
        if (link->connections[i].fd[side] < 0)
            continue;
        (void)setsockopt(link->connections[i].fd[side], SOL_SOCKET, SO_LINGER,
                         &now, sizeof now);
        close(link->connections[i].fd[side]);
        link->connections[i].fd[side] = -1;
    }
}

static inline void severed_accept(struct severed_link *link)
{
    const int one = 1;
    struct sockaddr_un node = {.sun_family = AF_UNIX};
    size_t i = 0;
    while (i < SEVERED_MAX && link->connections[i].fd[0] >= 0)
        i++;
    const int fd = accept(link->listener, NULL, NULL);
    if (fd < 0 || i == SEVERED_MAX) {
        if (fd >= 0)
            close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    memcpy(node.sun_path, link->path, sizeof link->path);
    link->connections[i].fd[0] = fd;
    link->connections[i].fd[1] = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(link->connections[i].fd[1], (struct sockaddr *)&node,
                sizeof node) != 0)
        severed_close(link, i); /* the node is not there */
}

/* Pass on what has come; false: the connection has ended. */
static inline bool severed_pass(int from, int to)
{
    char bytes[65536];
    const ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

/* Do what was asked for. Returns false at the end. */
static inline bool severed_obey(struct severed_link *link)
{
    ls_mutex_lock(&link->mutex);
    for (size_t i = 0; i < SEVERED_MAX && (link->reset || link->ending); i++)
        severed_close(link, i);
    link->reset = false;
    if (link->mode == LINK_REFUSES && link->listener >= 0) {
        close(link->listener);
        link->listener = -1;
    } else if (link->mode != LINK_REFUSES && link->listener < 0) {
        severed_listen(link);
    }
    link->answered = link->asked;
    const bool go_on = !link->ending;
    ls_cond_broadcast(&link->done);
    ls_mutex_unlock(&link->mutex);
    return go_on;
}

static inline void severed_main(void *self)
{
    struct severed_link *link = self;
    struct pollfd fds[2 + 2 * SEVERED_MAX];
    for (;;) {
        ls_mutex_lock(&link->mutex);
        const enum severed_mode mode = link->mode;
        ls_mutex_unlock(&link->mutex);
        fds[0] = (struct pollfd){link->command[0], POLLIN, 0};
        fds[1] = (struct pollfd){link->listener, POLLIN, 0};
        for (size_t i = 0; i < 2 * SEVERED_MAX; i++) {
            const bool passes = mode == LINK_PASSES;
            fds[2 + i] = (struct pollfd){
                passes ? link->connections[i / 2].fd[i % 2] : -1, POLLIN, 0};
        }
        if (poll(fds, 2 + 2 * SEVERED_MAX, -1) < 0)
            continue;
        for (size_t i = 0; i < 2 * SEVERED_MAX; i++) {
            const int *pair = link->connections[i / 2].fd;
            if (fds[2 + i].fd >= 0 && fds[2 + i].revents != 0 &&
                pair[i % 2] >= 0 && !severed_pass(pair[i % 2], pair[1 - i % 2]))
                severed_close(link, i / 2);
        }
        if (fds[1].fd >= 0 && fds[1].revents != 0)
            severed_accept(link);
        char byte;
        if (fds[0].revents != 0 && read(link->command[0], &byte, 1) == 1 &&
            !severed_obey(link))
            return;
    }
}

static inline void severed_ask(struct severed_link *link,
                               enum severed_mode mode, bool reset, bool ending)
{
    ls_mutex_lock(&link->mutex);
    link->mode = mode;
    link->reset = reset;
    link->ending = ending;
    const unsigned number = ++link->asked;
    if (write(link->command[1], "", 1) != 1)
        abort();
    while (link->answered < number)
        if (ls_cond_wait(&link->done, &link->mutex, LS_FOREVER) != LS_OK)
            abort();
    ls_mutex_unlock(&link->mutex);
}

/* From now on; when it returns, all connections there were have been reset. */
static inline void severed_reset(struct severed_link *link,
                                 enum severed_mode mode)
{
    severed_ask(link, mode, true, false);
}

/* From now on nothing passes, and all connections stay. */
static inline void severed_hold(struct severed_link *link)
{
    severed_ask(link, LINK_HOLDS, false, false);
}

static inline void severed_init(struct severed_link *link, const char *path)
{
    memset(link, 0, sizeof *link);
    (void)snprintf(link->path, sizeof link->path, "%s", path);
    link->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (size_t i = 0; i < SEVERED_MAX; i++)
        link->connections[i].fd[0] = link->connections[i].fd[1] = -1;
    severed_listen(link);
    (void)snprintf(link->endpoint, sizeof link->endpoint, "tcp://127.0.0.1:%u",
                   (unsigned)ntohs(link->address.sin_port));
    assert_int_equal(pipe(link->command), 0);
    assert_ok(ls_mutex_init(&link->mutex, ls_runtime_threads()));
    assert_ok(ls_cond_init(&link->done, ls_runtime_threads()));
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &link->thread, "link",
                              severed_main, link));
}

static inline void severed_fini(struct severed_link *link)
{
    severed_ask(link, LINK_REFUSES, true, true);
    assert_ok(ls_thread_join(&link->thread, LS_FOREVER));
    close(link->command[0]);
    close(link->command[1]);
    ls_cond_fini(&link->done);
    ls_mutex_fini(&link->mutex);
}

#endif
