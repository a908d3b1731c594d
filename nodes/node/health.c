#ifdef __linux__
#define _GNU_SOURCE /* struct ucred */
#endif
#include "health.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

/* An answer is one msgpack map, then the end of the stream. */
#define ANSWER_MAX 1024

struct health_desk {
    int fd;            /* own; listens */
    ls_thread *thread; /* own */
    uint32_t id;
    void (*look)(void *self, struct health *out);
    void *self;
    ls_writer *writer; /* own */
    int64_t seen;      /* iterations that the last ask found */
    int64_t seen_at;   /* when an ask found them first */
};

#define FIELD(member, type) LS_FIELD(struct health, member, type, false)
static const struct ls_field fields[] = {
    {.name = "state",
     .type = LS_FIELD_INT,
     .offset = offsetof(struct health, state),
     .most = HEALTH_N_STATES - 1},
    FIELD(iterations, LS_FIELD_INT),
    FIELD(unmoved_ms, LS_FIELD_INT),
    FIELD(idle, LS_FIELD_BOOL),
    {.name = "at",
     .type = LS_FIELD_CHARS,
     .offset = offsetof(struct health, at),
     .size = sizeof(((struct health *)NULL)->at)},
};
static const struct ls_record health_record = {.name = "the answer of a node",
                                               .size = sizeof(struct health),
                                               .fields = fields,
                                               .n_fields = sizeof fields /
                                                           sizeof fields[0],
                                               .open = true};

/* "\0lockstep/1000/8f3c…/2": nodes of another job, or of this one in another
 * folder, have other names. */
static socklen_t name_of(struct sockaddr_un *out, const struct plan *plan,
                         uint32_t id)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1,
                           "lockstep/%lu/%016" PRIx64 "/%" PRIu32,
                           (unsigned long)geteuid(), plan_place(plan), id);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1u + (size_t)n);
}

/* Whether the other end may ask, or be believed. */
static bool is_trusted(int fd)
{
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
#else
    (void)fd;
    return true;
#endif
}

/* ---- the node's end ------------------------------------------------------ */

/* Who asks has made the node look at itself: what moves is what has grown from
 * one ask to the next. */
static void look_now(health_desk *desk, struct health *out)
{
    const int64_t now = ls_now(ls_runtime_threads());
    *out = (struct health){.state = HEALTH_STARTING};
    desk->look(desk->self, out);
    if (out->iterations != desk->seen) {
        desk->seen = out->iterations;
        desk->seen_at = now;
    }
    out->unmoved_ms = (now - desk->seen_at) / LS_NS_PER_MS;
}

static void answer(health_desk *desk, int fd)
{
    struct health health;
    const void *data;
    size_t size;
    if (!is_trusted(fd))
        return;
    look_now(desk, &health);
    ls_writer_clear(desk->writer);
    ls_record_write(&health_record, &health, desk->writer);
    /* It is short, so it is sent whole or not at all; who has gone needs none.
     */
    if (ls_writer_bytes(desk->writer, &data, &size) == LS_OK)
        (void)send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void serve(void *arg)
{
    health_desk *desk = arg;
    ls_log_set_node(desk->id);
    for (;;) {
        const int fd = accept(desk->fd, NULL, NULL);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return; /* shut down */
        answer(desk, fd);
        (void)close(fd);
    }
}

static int listen_at(int *out, const struct plan *plan, uint32_t id)
{
    struct sockaddr_un name;
    const socklen_t size = name_of(&name, plan, id);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return ls_error_from(errno, "a socket for lockstep health");
    if (bind(fd, (const struct sockaddr *)&name, size) < 0 ||
        listen(fd, 8) < 0) {
        const int failed = errno;
        (void)close(fd);
        return ls_error_from(failed, "listening for lockstep health");
    }
    *out = fd;
    return LS_OK;
}

int health_desk_open(health_desk **out, const struct plan *plan, uint32_t id,
                     void (*look)(void *self, struct health *out), void *self)
{
    health_desk *desk = calloc(1, sizeof *desk);
    if (desk == NULL)
        return ls_error(LS_ENOMEM, "answering lockstep health");
    *desk = (health_desk){
        .fd = -1, .id = id, .look = look, .self = self, .seen = -1};
    int status = ls_writer_create(&desk->writer);
    if (status == LS_OK)
        status = listen_at(&desk->fd, plan, id);
    if (status == LS_OK)
        status = ls_thread_spawn(ls_runtime_threads(), &desk->thread, "health",
                                 serve, desk);
    if (status != LS_OK)
        health_desk_close(&desk);
    else
        *out = desk;
    return status;
}

void health_desk_close(health_desk **desk)
{
    if (desk == NULL || *desk == NULL)
        return;
    if ((*desk)->fd >= 0)
        (void)shutdown((*desk)->fd, SHUT_RDWR); /* ends accept() */
    if ((*desk)->thread != NULL &&
        ls_thread_join(&(*desk)->thread, LS_FOREVER) != LS_OK)
        return;
    if ((*desk)->fd >= 0)
        (void)close((*desk)->fd);
    ls_writer_destroy(&(*desk)->writer);
    free(*desk);
    *desk = NULL;
}

/* ---- who asks ------------------------------------------------------------ */

static int failed(uint32_t id)
{
    switch (errno) {
    case ECONNREFUSED:
    case ENOENT:
        return ls_error(LS_ENOENT, "node %" PRIu32 " does not run here", id);
    case EAGAIN:
        return ls_error(LS_ETIMEDOUT, "node %" PRIu32 " does not answer", id);
    default:
        return ls_error_from(errno, "asking a node for its health");
    }
}

static int talk(int fd, const struct plan *plan, uint32_t id,
                struct health *out)
{
    struct sockaddr_un name;
    unsigned char bytes[ANSWER_MAX];
    size_t used = 0;
    ssize_t n;
    const socklen_t size = name_of(&name, plan, id);
    if (connect(fd, (const struct sockaddr *)&name, size) < 0)
        return failed(id);
    if (!is_trusted(fd))
        return ls_error(LS_EIO, "another user answers for node %" PRIu32, id);
    while (used < sizeof bytes &&
           (n = recv(fd, bytes + used, sizeof bytes - used, 0)) != 0) {
        if (n < 0 && errno != EINTR)
            return failed(id);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used == 0) /* it ended meanwhile */
        return ls_error(LS_ENOENT, "node %" PRIu32 " ended", id);
    return ls_record_decode(&health_record, out, bytes, used, NULL);
}

int health_ask(struct health *out, const struct plan *plan, uint32_t id,
               int wait_ms)
{
    const struct timeval wait = {.tv_sec = wait_ms / 1000,
                                 .tv_usec = wait_ms % 1000 * 1000};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return ls_error_from(errno, "asking a node for its health");
    int status;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0)
        status = failed(id);
    else
        status = talk(fd, plan, id, out);
    (void)close(fd);
    return status;
}
