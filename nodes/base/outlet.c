/* In the C library here, stdout and stderr are variables that may be set: the
 * GNU C Library Reference Manual, "Standard Streams". So what plugins and
 * libraries print comes here as well. */
#define _GNU_SOURCE /* fopencookie */
#include "outlet.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

#define PATIENCE_MS 100
#define ROOM_BYTES  ((size_t)16 << 20)

struct outlet {
    int fd;
    FILE *own;         /* in place of: */
    FILE *had;         /* borrow */
    ls_thread *thread; /* own; writes */
    ls_mutex mutex;
    ls_cond changed;
    char *waiting; /* own; n bytes of capacity */
    size_t n, capacity;
    bool busy;   /* the thread has taken what waited, and writes it */
    bool behind; /* whoever reads it is slow */
    bool closing;
    int failed; /* an errno: of the first time; it stays */
};

static struct outlet outlets[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
enum { N = sizeof outlets / sizeof outlets[0] };

/* 0: it is not open. A child that a plugin forks has no such threads. */
static pid_t owner;

/* An errno; 0: all was written. */
static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

static void note_failed(struct outlet *self, int failed)
{
    if (self->failed == 0)
        self->failed = failed;
}

static bool is_empty(const struct outlet *self)
{
    return self->n == 0 && !self->busy;
}

/* ---- the thread -------------------------------------------------------- */

static void write_waiting(struct outlet *self)
{
    char *bytes = self->waiting;
    const size_t size = self->n;
    self->waiting = NULL;
    self->n = self->capacity = 0;
    self->busy = true;
    ls_mutex_unlock(&self->mutex);
    const int failed = write_all(self->fd, bytes, size);
    free(bytes);
    ls_mutex_lock(&self->mutex);
    self->busy = false;
    note_failed(self, failed);
    self->behind = self->behind && self->n > 0;
    ls_cond_broadcast(&self->changed);
}

static void write_out(void *arg)
{
    struct outlet *self = arg;
    ls_mutex_lock(&self->mutex);
    while (self->n > 0 || !self->closing) {
        if (self->n > 0)
            write_waiting(self);
        else
            (void)!ls_cond_wait(&self->changed, &self->mutex, LS_FOREVER);
    }
    ls_mutex_unlock(&self->mutex);
}

/* ---- whoever writes ---------------------------------------------------- */

static void add(struct outlet *self, const void *data, size_t size)
{
    if (self->capacity - self->n < size) {
        const size_t capacity = 2 * (self->n + size);
        char *grown = realloc(self->waiting, capacity);
        if (grown == NULL) {
            note_failed(self, ENOMEM);
            return;
        }
        self->waiting = grown;
        self->capacity = capacity;
    }
    memcpy(self->waiting + self->n, data, size);
    self->n += size;
}

static void put(struct outlet *self, const void *data, size_t size)
{
    if (size == 0)
        return;
    ls_mutex_lock(&self->mutex);
    add(self, data, size);
    ls_cond_broadcast(&self->changed);
    const int64_t deadline = ls_deadline(ls_runtime_threads(), PATIENCE_MS);
    while (!self->behind && !is_empty(self))
        self->behind =
            ls_cond_wait(&self->changed, &self->mutex, deadline) != LS_OK &&
            !is_empty(self);
    ls_mutex_unlock(&self->mutex);
}

void outlet_write(int fd, const void *data, size_t size)
{
    struct outlet *self = NULL;
    for (size_t i = 0; i < N && owner != 0 && owner == getpid(); i++)
        self = outlets[i].fd == fd ? &outlets[i] : self;
    if (self != NULL)
        put(self, data, size);
    else
        (void)write_all(fd, data, size);
}

static ssize_t write_stream(void *cookie, const char *data, size_t size)
{
    const struct outlet *self = cookie;
    outlet_write(self->fd, data, size);
    return (ssize_t)size;
}

static void write_log(void *self, const char *line)
{
    (void)self;
    (void)fprintf(stderr, "%s\n", line);
}

/* ---- life -------------------------------------------------------------- */

static int start(struct outlet *self)
{
    ls_runtime *runtime = ls_runtime_threads();
    self->closing = self->behind = false;
    int status = ls_mutex_init(&self->mutex, runtime);
    if (status != LS_OK)
        return status;
    status = ls_cond_init(&self->changed, runtime);
    if (status != LS_OK) {
        ls_mutex_fini(&self->mutex);
        return status;
    }
    self->own =
        fopencookie(self, "w", (cookie_io_functions_t){.write = write_stream});
    status = self->own == NULL ? ls_error(LS_ENOMEM, "what the run writes")
                               : ls_thread_spawn(runtime, &self->thread,
                                                 "outlet", write_out, self);
    if (status != LS_OK) {
        if (self->own != NULL)
            (void)fclose(self->own);
        ls_cond_fini(&self->changed);
        ls_mutex_fini(&self->mutex);
    }
    return status;
}

static void drain(struct outlet *self)
{
    ls_mutex_lock(&self->mutex);
    while (!is_empty(self))
        (void)!ls_cond_wait(&self->changed, &self->mutex, LS_FOREVER);
    ls_mutex_unlock(&self->mutex);
}

static void stop(struct outlet *self)
{
    ls_mutex_lock(&self->mutex);
    self->closing = true;
    ls_cond_broadcast(&self->changed);
    ls_mutex_unlock(&self->mutex);
    (void)!ls_thread_join(&self->thread, LS_FOREVER);
    (void)fclose(self->own);
    free(self->waiting);
    self->waiting = NULL;
    self->n = self->capacity = 0;
    ls_cond_fini(&self->changed);
    ls_mutex_fini(&self->mutex);
}

int outlet_open(void)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    int status = start(&outlets[0]);
    if (status != LS_OK)
        return status;
    status = start(&outlets[1]);
    if (status != LS_OK) {
        stop(&outlets[0]);
        return status;
    }
    outlets[0].had = stdout;
    outlets[1].had = stderr;
    (void)setvbuf(outlets[1].own, NULL, _IONBF, 0);
    stdout = outlets[0].own;
    stderr = outlets[1].own;
    owner = getpid();
    if (isatty(STDERR_FILENO) == 0) /* there it has colours */
        ls_log_redirect(write_log, NULL);
    return LS_OK;
}

void outlet_drain(void)
{
    if (owner == 0)
        return;
    (void)fflush(stdout);
    for (size_t i = 0; i < N; i++)
        drain(&outlets[i]);
}

void outlet_close(void)
{
    if (owner == 0)
        return;
    outlet_drain();
    ls_log_redirect(NULL, NULL);
    owner = 0;
    stdout = outlets[0].had;
    stderr = outlets[1].had;
    for (size_t i = 0; i < N; i++)
        stop(&outlets[i]);
}

void outlet_await_room(void)
{
    struct outlet *self = &outlets[1];
    if (owner == 0)
        return;
    ls_mutex_lock(&self->mutex);
    while (self->n > ROOM_BYTES)
        (void)!ls_cond_wait(&self->changed, &self->mutex, LS_FOREVER);
    ls_mutex_unlock(&self->mutex);
}

int outlet_failed(void)
{
    struct outlet *self = &outlets[0];
    if (owner == 0)
        return self->failed;
    ls_mutex_lock(&self->mutex);
    const int failed = self->failed;
    ls_mutex_unlock(&self->mutex);
    return failed;
}
