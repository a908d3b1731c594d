#ifdef __linux__
#define _GNU_SOURCE /* struct ucred */
#endif
#include "health.h"

#include <errno.h>
#include <fcntl.h>
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
#define ANSWER_MAX (512 * 1024)
#define PEERS_MAX  1024
/* Who asks may do so while another is answered. */
#define BACKLOG 64
/* How long a process without a descriptor waits for one. */
#define EXHAUSTED_MS 100

struct health_desk {
    int fd;            /* own; listens */
    int spare;         /* own; -1: none. Given up to take a question when there
                        * is no other descriptor */
    ls_thread *thread; /* own */
    uint32_t id;
    void (*look)(void *self, struct health *out);
    void *self;
    ls_writer *writer; /* own */
    int64_t seen;      /* iterations that the last ask found */
    int64_t seen_at;   /* when an ask found them first */
};

#define AT(of, member) .name = #member, .offset = offsetof(of, member)
#define TEXT(of, member)                                                       \
    .type = LS_FIELD_CHARS, .size = sizeof(((of *)NULL)->member), AT(of, member)
#define INT(of, member) .type = LS_FIELD_INT, AT(of, member)

static const struct ls_field peer_fields[] = {
    {AT(struct health_peer, id), .type = LS_FIELD_UINT32},
    {TEXT(struct health_peer, state)},
    {TEXT(struct health_peer, role)},
    {TEXT(struct health_peer, endpoint)},
    {INT(struct health_peer, heard_ms), .least = -1, .most = INT64_MAX},
    {INT(struct health_peer, awaited_ns), .most = INT64_MAX},
};
static const struct ls_record peer_record = {
    .name = "a peer in the answer of a node",
    .size = sizeof(struct health_peer),
    .fields = peer_fields,
    .n_fields = sizeof peer_fields / sizeof peer_fields[0],
    .open = true};
static const struct ls_field peer_item = {.type = LS_FIELD_RECORD,
                                          .record = &peer_record};

#define LATER .presence = LS_MAY_MISS /* not in the first version */
static const struct ls_field fields[] = {
    {INT(struct health, state), .most = HEALTH_N_STATES - 1},
    {INT(struct health, iterations)},
    {INT(struct health, unmoved_ms)},
    {AT(struct health, idle), .type = LS_FIELD_BOOL},
    {TEXT(struct health, at)},
    {TEXT(struct health, run), LATER},
    {TEXT(struct health, role), LATER},
    {TEXT(struct health, host), LATER},
    {INT(struct health, pid), LATER},
    {AT(struct health, incarnation), .type = LS_FIELD_UINT, LATER},
    {INT(struct health, clock_ns), LATER},
    {INT(struct health, running_ns), LATER},
    {TEXT(struct health, step), LATER},
    {INT(struct health, step_ns), LATER, .fallback = -1},
    {INT(struct health, env_step), LATER, .fallback = -1},
    {AT(struct health, events), .type = LS_FIELD_UINT, LATER},
    {AT(struct health, lost), .type = LS_FIELD_UINT, LATER},
    {AT(struct health, dropped), .type = LS_FIELD_UINT, LATER},
    {TEXT(struct health, losses), LATER},
    {INT(struct health, waited_ns), LATER},
    {INT(struct health, window_ns), LATER},
    {INT(struct health, waiting_ns), LATER},
    {AT(struct health, slowest), .type = LS_FIELD_UINT32, LATER},
    {INT(struct health, slowest_ns), LATER},
    {AT(struct health, peers), .type = LS_FIELD_LIST, .item = &peer_item,
     .count = offsetof(struct health, n_peers), .most = PEERS_MAX, .own = true,
     LATER},
};
static const struct ls_record health_record = {.name = "the answer of a node",
                                               .size = sizeof(struct health),
                                               .fields = fields,
                                               .n_fields = sizeof fields /
                                                           sizeof fields[0],
                                               .open = true};

void health_clear(struct health *health)
{
    ls_record_clear(&health_record, health);
}

/* "\0lockstep/1000/8f3c…/2": nodes of another job, or of this one in another
 * folder, have other names. */
#define NAME "lockstep/%lu/%016" PRIx64 "/"

static socklen_t name_of(struct sockaddr_un *out, uint64_t place, uint32_t id)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n =
        snprintf(out->sun_path + 1, sizeof out->sun_path - 1, NAME "%" PRIu32,
                 (unsigned long)geteuid(), place, id);
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
    out->pid = (int64_t)getpid();
    out->clock_ns = now;
    if (gethostname(out->host, sizeof out->host - 1) < 0)
        out->host[0] = '\0';
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
    health_clear(&health);
}

/* The process has no descriptor for a question: the spare one is. */
static void answer_by_spare(health_desk *desk)
{
    if (desk->spare >= 0)
        (void)close(desk->spare);
    const int fd = accept(desk->fd, NULL, NULL);
    if (fd >= 0) {
        answer(desk, fd);
        (void)close(fd);
    }
    desk->spare = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 && desk->spare < 0) /* others were faster */
        ls_rest_until(ls_runtime_threads(),
                      ls_deadline(ls_runtime_threads(), EXHAUSTED_MS));
}

static void serve(void *arg)
{
    health_desk *desk = arg;
    ls_log_set_node(desk->id);
    for (;;) {
        const int fd = accept(desk->fd, NULL, NULL);
        if (fd >= 0) {
            answer(desk, fd);
            (void)close(fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                   errno == ENOMEM) {
            answer_by_spare(desk);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return; /* shut down */
        }
    }
}

static int listen_at(int *out, uint64_t place, uint32_t id)
{
    struct sockaddr_un name;
    const socklen_t size = name_of(&name, place, id);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return ls_error_from(errno, "a socket for lockstep health");
    if (bind(fd, (const struct sockaddr *)&name, size) < 0 ||
        listen(fd, BACKLOG) < 0) {
        const int failed = errno;
        (void)close(fd);
        return ls_error_from(failed, "listening for lockstep health");
    }
    *out = fd;
    return LS_OK;
}

int health_desk_open(health_desk **out, uint64_t place, uint32_t id,
                     void (*look)(void *self, struct health *out), void *self)
{
    health_desk *desk = calloc(1, sizeof *desk);
    if (desk == NULL)
        return ls_error(LS_ENOMEM, "answering lockstep health");
    *desk = (health_desk){.fd = -1,
                          .spare = -1,
                          .id = id,
                          .look = look,
                          .self = self,
                          .seen = -1};
    int status = ls_writer_create(&desk->writer);
    if (status == LS_OK)
        status = listen_at(&desk->fd, place, id);
    if (status == LS_OK)
        desk->spare = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
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
    if ((*desk)->spare >= 0)
        (void)close((*desk)->spare);
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
    case EAGAIN: /* also: more ask already than can wait */
        return ls_error(LS_ETIMEDOUT, "node %" PRIu32 " does not answer", id);
    case ECONNRESET: /* before it took the question */
        return ls_error(LS_ENOENT, "node %" PRIu32 " ended", id);
    default:
        return ls_error_from(errno, "asking a node for its health");
    }
}

/* Without waiting: a node that is stopped takes no more than its backlog. */
static int ask(int *out, uint64_t place, uint32_t id)
{
    struct sockaddr_un name;
    const socklen_t size = name_of(&name, place, id);
    const int fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int status = LS_OK;
    if (fd < 0)
        return ls_error_from(errno, "asking a node for its health");
    if (connect(fd, (const struct sockaddr *)&name, size) < 0)
        status = failed(id);
    else if (!is_trusted(fd))
        status = ls_error(LS_EIO, "another user answers for node %" PRIu32, id);
    if (status == LS_OK)
        *out = fd;
    else
        (void)close(fd);
    return status;
}

/* One read, until the deadline at most. */
static ssize_t receive(int fd, unsigned char *to, size_t size, int64_t deadline)
{
    const int64_t left_us =
        (deadline - ls_now(ls_runtime_threads())) / LS_NS_PER_US;
    const struct timeval wait = {.tv_sec = left_us / 1000000,
                                 .tv_usec = left_us % 1000000};
    const bool waits = left_us > 0;
    if (waits &&
        (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
         fcntl(fd, F_SETFL, 0) < 0))
        return -1;
    return recv(fd, to, size, waits ? 0 : MSG_DONTWAIT);
}

static int hear(struct health *out, int fd, uint32_t id, unsigned char *bytes,
                int64_t deadline)
{
    size_t used = 0;
    ssize_t n;
    while (used < ANSWER_MAX &&
           (n = receive(fd, bytes + used, ANSWER_MAX - used, deadline)) != 0) {
        if (n < 0 && errno != EINTR)
            return failed(id);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used == 0) /* it ended meanwhile */
        return ls_error(LS_ENOENT, "node %" PRIu32 " ended", id);
    return ls_record_decode(&health_record, out, bytes, used, NULL);
}

static void note(struct health_answer *answer, int status)
{
    answer->status = status;
    if (status != LS_OK)
        (void)snprintf(answer->text, sizeof answer->text, "%s",
                       ls_error_text());
}

void health_ask_all(struct health_answer *out, uint64_t place,
                    const uint32_t *ids, size_t n, int wait_ms)
{
    const int64_t deadline = ls_deadline(ls_runtime_threads(), wait_ms);
    int *fds = calloc(n + 1, sizeof *fds);
    unsigned char *bytes = malloc(ANSWER_MAX);
    const bool room = fds != NULL && bytes != NULL;
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct health_answer){.status = LS_OK};
        note(&out[i], room ? ask(&fds[i], place, ids[i])
                           : ls_error(LS_ENOMEM, "asking the nodes"));
    }
    /* They answer while others are heard. */
    for (size_t i = 0; i < n; i++) {
        if (!room || out[i].status != LS_OK)
            continue;
        note(&out[i], hear(&out[i].health, fds[i], ids[i], bytes, deadline));
        (void)close(fds[i]);
    }
    free(fds);
    free(bytes);
}

int health_ask(struct health *out, uint64_t place, uint32_t id, int wait_ms)
{
    struct health_answer answer;
    health_ask_all(&answer, place, &id, 1, wait_ms);
    if (answer.status != LS_OK)
        return ls_error(answer.status, "%s", answer.text);
    *out = answer.health;
    return LS_OK;
}

size_t health_find(uint64_t place, uint32_t *out, size_t capacity)
{
    char line[512], name[96];
    size_t n = 0;
    (void)snprintf(name, sizeof name, " @" NAME, (unsigned long)geteuid(),
                   place);
    FILE *sockets = fopen("/proc/net/unix", "r");
    while (sockets != NULL && fgets(line, sizeof line, sockets) != NULL) {
        const char *at = strstr(line, name);
        char *end;
        if (at == NULL)
            continue;
        const unsigned long id = strtoul(at + strlen(name), &end, 10);
        if (id > UINT32_MAX || (*end != '\n' && *end != '\0'))
            continue;
        size_t i = 0; /* a question that nobody took yet has the same name */
        while (i < n && i < capacity && out[i] != id)
            i++;
        if (i == n && n < capacity)
            out[n] = (uint32_t)id;
        n += i == n;
    }
    if (sockets != NULL)
        (void)fclose(sockets);
    return n;
}
