#include "run_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/file.h"
#include "lockstep/log.h"
#include "lockstep/runtime.h"

#include "plan.h"

/* Above the numbers that a child gives its descriptors. */
#define FIRST_FD 10

int run_secret_path(const struct plan *plan, char *out, size_t size)
{
    return ls_file_path(out, size, plan->folder, RUN_SECRET_NAME);
}

/* The compiler may leave out what it takes for a useless memset(). */
void run_secret_wipe(struct run_secret *secret)
{
    volatile uint8_t *bytes = secret->bytes;
    for (size_t i = 0; i < sizeof secret->bytes; i++)
        bytes[i] = 0;
    secret->there = false;
}

static int make_file(struct run_secret *out, const struct plan *plan)
{
    char path[LS_PATH_MAX];
    int status = run_secret_path(plan, path, sizeof path);
    if (status != LS_OK)
        return status;
    (void)ls_file_remove(path);
    return ls_secret_create(path, out->bytes);
}

/* For a run whose folder cannot be written. */
static void make_here(struct run_secret *out)
{
    for (size_t i = 0; i < sizeof out->bytes; i += sizeof(uint64_t)) {
        const uint64_t bits = ls_entropy(ls_runtime_threads());
        memcpy(out->bytes + i, &bits, sizeof bits);
    }
}

void run_secret_make(struct run_secret *out, const struct plan *plan)
{
    *out = (struct run_secret){.there = plan_has_secret(plan)};
    if (!out->there || make_file(out, plan) == LS_OK)
        return;
    ls_log_info("lockstep call will not be let in: %s", ls_error_text());
    make_here(out);
}

void run_secret_end(struct run_secret *secret, const struct plan *plan)
{
    char path[LS_PATH_MAX];
    if (secret->there && run_secret_path(plan, path, sizeof path) == LS_OK)
        (void)ls_file_remove(path);
    run_secret_wipe(secret);
}

/* ---- to a child ---------------------------------------------------------- */

/* A pipe has room for it, so nobody need read yet. */
static int fill(int to, const struct run_secret *secret)
{
    const ssize_t n = write(to, secret->bytes, sizeof secret->bytes);
    return n == (ssize_t)sizeof secret->bytes
               ? LS_OK
               : ls_error_from(errno, "handing a node its secret");
}

int run_secret_open(const struct run_secret *secret, int *fd)
{
    int ends[2];
    *fd = -1;
    if (!secret->there)
        return LS_OK;
    if (pipe(ends) < 0)
        return ls_error_from(errno, "making a pipe for a node");
    int status = fill(ends[1], secret);
    (void)close(ends[1]);
    if (status == LS_OK &&
        (*fd = fcntl(ends[0], F_DUPFD_CLOEXEC, FIRST_FD)) < 0)
        status = ls_error_from(errno, "making a pipe for a node");
    (void)close(ends[0]);
    return status;
}

int run_secret_read(struct run_secret *out, int fd)
{
    struct run_secret secret = {.there = fd >= 0};
    size_t used = 0;
    while (fd >= 0 && used < sizeof secret.bytes) {
        const ssize_t n =
            read(fd, secret.bytes + used, sizeof secret.bytes - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    if (fd >= 0)
        (void)close(fd);
    if (fd < 0 || used == sizeof secret.bytes)
        *out = secret;
    run_secret_wipe(&secret);
    return fd < 0 || used == LS_SECRET_BYTES
               ? LS_OK
               : ls_error(LS_EINVAL,
                          "--secret-fd %d: it holds %zu bytes, and a secret "
                          "has %d; it is for nodes that `run` starts",
                          fd, used, LS_SECRET_BYTES);
}
