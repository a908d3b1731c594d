/* An offer of memory: a unix socket, and a thread that hands the descriptor to
 * whoever brings the key. Design notes:
 *
 * - Both sides see the other's user as the kernel knows it, SO_PEERCRED, and
 *   have nothing to do with any other than their own: a key that leaks to
 *   another user of the machine opens nothing.
 * - A packet is whole or not there. Who connects and says nothing is let go
 *   after a second; the next one waits for that long at most.
 * - A socket is given its name when it listens already. Until then its name is
 *   the same with a dot in front. So one that has the name of an offer, and
 *   refuses, has no owner any more, and may be removed by anybody
 *   (runtime_threads_sweep.c). One with a dot may be about to listen: if it is
 *   removed nevertheless, its owner finds it gone, and makes another. */
#define _GNU_SOURCE /* accept4, SO_PEERCRED */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime_ops.h"
#include "runtime_threads_offer.h"

enum { BACKLOG = 128, TRIES = 3 };
#define PATIENCE_NS LS_NS_PER_S
#define SLICES      10

struct os_offer {
    ls_offer base;
    ls_memory *memory; /* borrow */
    uint8_t key[LS_MEMORY_KEY_BYTES];
    int socket, stop;               /* own */
    char path[LS_OFFER_PATH_BYTES]; /* of the socket; "": there is none */
    ls_thread *thread;              /* own */
};

/* A memory, and its bell, if it has one. */
enum { DESCRIPTORS = 2 };

/* Room for them beside a packet. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
};

static bool is_own_user(int socket)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           who.uid == geteuid();
}

/* Whether it is ready for `events` before the deadline. */
static bool await_input(ls_runtime *runtime, int fd, int64_t deadline)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        const int64_t now = ls_now(runtime);
        int ms = 0;
        if (deadline > now)
            ms = deadline - now > LS_NS_PER_S
                     ? 1000
                     : (int)((deadline - now) / LS_NS_PER_MS) + 1;
        const int n = poll(&one, 1, ms);
        if (n > 0)
            return true;
        if (n == 0 ? deadline <= now : errno != EINTR)
            return false;
    }
}

static void send_memory(int socket, const ls_memory *memory)
{
    const int fds[DESCRIPTORS] = {memory->lent, memory->bell};
    const size_t size = memory->bell < 0 ? sizeof fds[0] : sizeof fds;
    char byte = 'm';
    union control control = {.bytes = {0}};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    struct cmsghdr *const header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), fds, size);
    packet.msg_controllen = CMSG_SPACE(size);
    /* Who has gone meanwhile needs none. */
    (void)sendmsg(socket, &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool is_same_key(const uint8_t *a, const uint8_t *b)
{
    unsigned differs = 0;
    for (size_t i = 0; i < LS_MEMORY_KEY_BYTES; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

/* In slices: a host that stands still stops both sides, and then whoever comes
 * with the key needs more than a moment that is over. It costs one of them. */
static bool await_key(ls_runtime *runtime, int socket)
{
    bool came = false;
    for (int i = 0; i < SLICES && !came; i++)
        came = await_input(runtime, socket,
                           ls_now(runtime) + PATIENCE_NS / SLICES);
    return came;
}

static void answer(struct os_offer *offer, int socket)
{
    uint8_t key[LS_MEMORY_KEY_BYTES + 1];
    ls_runtime *const runtime = offer->base.runtime;
    if (is_own_user(socket) && await_key(runtime, socket) &&
        recv(socket, key, sizeof key, MSG_DONTWAIT) == LS_MEMORY_KEY_BYTES &&
        is_same_key(key, offer->key))
        send_memory(socket, offer->memory);
}

static void serve(void *argument)
{
    struct os_offer *const offer = argument;
    for (;;) {
        struct pollfd both[2] = {{.fd = offer->socket, .events = POLLIN},
                                 {.fd = offer->stop, .events = POLLIN}};
        if (poll(both, 2, -1) < 0 && errno != EINTR)
            return;
        if (both[1].revents != 0)
            return;
        const int socket =
            accept4(offer->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0) {
            /* Who waits stays there, and would be found at once again. */
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                (void)await_input(offer->base.runtime, offer->stop,
                                  ls_now(offer->base.runtime) + PATIENCE_NS);
            continue;
        }
        answer(offer, socket);
        (void)close(socket);
    }
}

static int set_address(struct sockaddr_un *out, const char *path)
{
    const size_t size = strlen(path) + 1;
    if (size > sizeof out->sun_path)
        return ls_error(LS_EINVAL,
                        "\"%s\": the path of a socket has at most %zu bytes",
                        path, sizeof out->sun_path - 1);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path, path, size);
    return LS_OK;
}

/* path: that it will have. */
static int listen_as(const struct os_offer *offer,
                     const struct sockaddr_un *address, const char *path)
{
    if (bind(offer->socket, (const struct sockaddr *)(const void *)address,
             sizeof *address) != 0)
        return ls_error_from(errno, path);
    if (listen(offer->socket, BACKLOG) == 0)
        return LS_OK;
    const int status = ls_error_from(errno, path);
    (void)unlink(address->sun_path);
    return status;
}

/* Errors: LS_ENOENT it was removed before it had its name. */
static int name_it(struct os_offer *offer, const char *from, const char *path)
{
    struct stat about;
    /* The name was drawn: it is nobody's, and nobody takes it meanwhile. */
    int status = lstat(path, &about) != 0
                     ? LS_OK
                     : ls_error(LS_EEXIST, "%s exists", path);
    if (status == LS_OK && rename(from, path) != 0)
        status = ls_error_from(errno, path);
    if (status == LS_OK)
        memcpy(offer->path, path, strlen(path) + 1);
    else
        (void)unlink(from);
    return status;
}

static int try_to_listen(struct os_offer *offer, const char *path)
{
    char hidden[LS_OFFER_PATH_BYTES + 1];
    struct sockaddr_un address;
    const char *const slash = strrchr(path, '/');
    const char *const name = slash != NULL ? slash + 1 : path;
    (void)snprintf(hidden, sizeof hidden, "%.*s.%s", (int)(name - path), path,
                   name);
    int status = set_address(&address, hidden);
    if (status != LS_OK)
        return status;
    offer->socket =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (offer->socket < 0)
        return ls_error_from(errno, "no socket to offer memory on");
    status = listen_as(offer, &address, path);
    return status == LS_OK ? name_it(offer, hidden, path) : status;
}

static int listen_there(struct os_offer *offer, const char *path)
{
    int status = LS_ENOENT;
    for (int i = 0; i < TRIES && status == LS_ENOENT; i++) {
        if (offer->socket >= 0)
            (void)close(offer->socket);
        status = try_to_listen(offer, path);
    }
    if (status != LS_OK)
        return status;
    offer->stop = eventfd(0, EFD_CLOEXEC);
    if (offer->stop < 0)
        return ls_error_from(errno, "no descriptor to end an offer by");
    return ls_thread_spawn(offer->base.runtime, &offer->thread, "ls-offer",
                           serve, offer);
}

int ls_threads_offer_begin(ls_offer **out, ls_memory *memory, const char *path,
                           const uint8_t *key)
{
    struct os_offer *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "no memory for an offer of memory");
    made->base.runtime = memory->runtime;
    made->memory = memory;
    memcpy(made->key, key, sizeof made->key);
    made->socket = made->stop = -1;
    const int status = listen_there(made, path);
    if (status != LS_OK) {
        ls_threads_offer_end(&made->base);
        return status;
    }
    ls_threads_offers_sweep(path);
    *out = &made->base;
    return LS_OK;
}

void ls_threads_offer_end(ls_offer *base)
{
    struct os_offer *const offer = (struct os_offer *)(void *)base;
    const uint64_t one = 1;
    int joined = LS_OK;
    if (offer->thread != NULL &&
        write(offer->stop, &one, sizeof one) == (ssize_t)sizeof one)
        joined = ls_thread_join(&offer->thread, LS_FOREVER);
    assert(joined == LS_OK);
    (void)joined;
    if (offer->path[0] != '\0')
        (void)unlink(offer->path);
    if (offer->socket >= 0)
        (void)close(offer->socket);
    if (offer->stop >= 0)
        (void)close(offer->stop);
    free(offer);
}

/* Two hosts may see one folder, of another machine, and two containers of one
 * host may have folders of one name. */
static uint64_t number_of(const struct stat *folder)
{
    const uint64_t parts[] = {ls_threads_host(), (uint64_t)folder->st_dev,
                              (uint64_t)folder->st_ino};
    return parts[0] == 0 ? 0 : XXH3_64bits(parts, sizeof parts);
}

/* XDG_RUNTIME_DIR may be that of the user whom this process was before sudo or
 * su: a folder that is made there is in that user's way ever after. */
static bool is_own_folder(const char *path)
{
    struct stat about;
    return path != NULL && path[0] == '/' && stat(path, &about) == 0 &&
           S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

int ls_threads_folder(ls_runtime *runtime, char *out, size_t size,
                      uint64_t *host)
{
    (void)runtime;
    const char *const run = getenv("XDG_RUNTIME_DIR");
    struct stat about;
    if (is_own_folder(run))
        (void)snprintf(out, size, "%s/lockstep", run);
    else
        (void)snprintf(out, size, "/tmp/lockstep-%u", (unsigned)geteuid());
    if (mkdir(out, S_IRWXU) != 0 && errno != EEXIST)
        return ls_error_from(errno, out);
    /* In /tmp anybody may have made it first. */
    if (lstat(out, &about) != 0 || !S_ISDIR(about.st_mode) ||
        about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return ls_error(
            LS_EIO, "%s is no folder that only this user can write to", out);
    if (host != NULL)
        *host = number_of(&about);
    return LS_OK;
}

/* The descriptors in a packet. Returns false: there are none, or not all could
 * be opened here: without its bell a memory's owner would not be woken. */
static bool receive_memory(int socket, ls_memory *memory)
{
    char byte;
    union control control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    int fds[DESCRIPTORS];
    if (recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
        return false;
    const struct cmsghdr *const header = CMSG_FIRSTHDR(&packet);
    if (header == NULL || header->cmsg_level != SOL_SOCKET ||
        header->cmsg_type != SCM_RIGHTS)
        return false;
    const size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof fds[0];
    memcpy(fds, CMSG_DATA(header), n * sizeof fds[0]);
    memory->fd = n > 0 ? fds[0] : -1;
    memory->bell = n > 1 ? fds[1] : -1;
    return n > 0 && (packet.msg_flags & MSG_CTRUNC) == 0;
}

static int ask(ls_memory *memory, int socket, const char *path,
               const uint8_t *key, int64_t deadline)
{
    struct sockaddr_un address;
    const int status = set_address(&address, path);
    if (status != LS_OK)
        return status;
    if (connect(socket, (const struct sockaddr *)(const void *)&address,
                sizeof address) != 0)
        return ls_error(LS_EUNREACHABLE,
                        "nobody offers memory at %s: %s; a host or a container "
                        "that does not share this folder has its own memory",
                        path, strerror(errno));
    if (!is_own_user(socket))
        return ls_error(LS_EUNREACHABLE,
                        "memory at %s is offered by another user", path);
    if (send(socket, key, LS_MEMORY_KEY_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        LS_MEMORY_KEY_BYTES)
        return ls_error(LS_EUNREACHABLE, "the offer at %s has ended", path);
    if (!await_input(memory->runtime, socket, deadline))
        return ls_error(LS_ETIMEDOUT, "the offer at %s does not answer", path);
    if (!receive_memory(socket, memory))
        return ls_error(LS_EUNREACHABLE, "the offer at %s is for others", path);
    return LS_OK;
}

int ls_threads_take(ls_memory *memory, const char *path, const uint8_t *key,
                    int64_t deadline)
{
    const int one =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (one < 0)
        return ls_error_from(errno, "no socket to take memory on");
    const int status = ask(memory, one, path, key, deadline);
    (void)close(one);
    return status;
}
