/* What a node does, on its way to its part of a recording. Design notes:
 *
 * - What comes is put behind the other into memory, under a lock; one thread
 *   takes all of it and writes it, while the next is gathered. So it is bounded
 *   by twice HELD_MOST and two events.
 * - A disk that cannot keep up makes the node wait: a recording that lacks
 *   something in its middle is of no use. One that takes nothing for STALL_NS
 *   ends the recording, as one that is full does. The run goes on.
 * - It is of real threads and of the system's disk, in a simulation too. */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lockstep/event.h"
#include "lockstep/file.h"
#include "lockstep/log.h"

#include "tape_format.h"

#define HELD_MOST ((size_t)8 << 20)
#define STALL_NS  (10 * LS_NS_PER_S)

struct bytes {
    unsigned char *at; /* own */
    size_t n, capacity;
};

struct tape_recorder {
    struct ls_event_gate gate;
    uint32_t id;
    ls_file *file;     /* own; of the thread */
    ls_thread *thread; /* own */

    ls_mutex lock; /* what follows */
    ls_cond filled, room;
    struct bytes held;         /* what is to be written */
    struct ls_failure failure; /* why it ended early */
    bool waiting;              /* the thread, for something to write */
    bool closing;
};

/* ---- the thread that writes ---------------------------------------------- */

static void fail(tape_recorder *self, int status)
{
    if (self->failure.status == LS_OK)
        ls_failure_keep(&self->failure, status);
    ls_cond_broadcast(&self->room);
}

static void write_behind(void *arg)
{
    tape_recorder *self = arg;
    struct bytes taken = {NULL, 0, 0};
    uint64_t written = 0;
    ls_mutex_lock(&self->lock);
    while (self->failure.status == LS_OK) {
        int waited = LS_OK;
        while (self->held.n == 0 && !self->closing && waited == LS_OK) {
            self->waiting = true;
            waited = ls_cond_wait(&self->filled, &self->lock, LS_FOREVER);
        }
        self->waiting = false;
        if (self->held.n == 0)
            break;
        const struct bytes full = self->held;
        self->held = taken;
        taken = full;
        ls_cond_broadcast(&self->room);
        ls_mutex_unlock(&self->lock);
        const int status =
            ls_file_write_at(self->file, taken.at, taken.n, written);
        written += taken.n;
        taken.n = 0;
        ls_mutex_lock(&self->lock);
        if (status != LS_OK)
            fail(self, status);
    }
    ls_mutex_unlock(&self->lock);
    free(taken.at);
}

/* ---- what comes -------------------------------------------------------- */

static bool make_room(struct bytes *held, size_t size)
{
    size_t capacity = held->capacity > 0 ? held->capacity : 65536;
    while (capacity - held->n < size)
        capacity *= 2;
    if (capacity == held->capacity)
        return true;
    unsigned char *at = realloc(held->at, capacity);
    if (at == NULL)
        return false;
    held->at = at;
    held->capacity = capacity;
    return true;
}

static void put(struct bytes *held, const void *data, size_t size)
{
    if (size > 0)
        memcpy(held->at + held->n, data, size);
    held->n += size;
}

static void add(tape_recorder *self, const struct tape_head *head,
                const char *name, const void *data)
{
    const size_t data_size = head->kind == TAPE_EMITS ? (size_t)head->size : 0;
    const size_t size = TAPE_HEAD + head->name_size + data_size;
    unsigned char bytes[TAPE_HEAD];
    int64_t deadline = 0;
    bool wake = false;
    tape_head_write(bytes, head);
    ls_mutex_lock(&self->lock);
    while (self->failure.status == LS_OK && self->held.n > 0 &&
           self->held.n + size > HELD_MOST) {
        if (deadline == 0)
            deadline = ls_now(ls_runtime_threads()) + STALL_NS;
        if (ls_cond_wait(&self->room, &self->lock, deadline) != LS_OK)
            fail(self,
                 ls_error(LS_ETIMEDOUT, "its disk has taken nothing for 10 s"));
    }
    if (self->failure.status == LS_OK && !make_room(&self->held, size))
        fail(self, ls_error(LS_ENOMEM, "no memory for %zu bytes", size));
    if (self->failure.status == LS_OK) {
        put(&self->held, bytes, sizeof bytes);
        put(&self->held, name, head->name_size);
        put(&self->held, data, data_size);
        wake = self->waiting;
        self->waiting = false;
    }
    ls_mutex_unlock(&self->lock);
    if (wake)
        ls_cond_signal(&self->filled);
}

static int emits(void *self, const struct ls_emission *emission,
                 const void **data, size_t *size)
{
    const struct tape_head head = {
        .kind = TAPE_EMITS,
        .name_size = (uint16_t)strnlen(emission->event, UINT16_MAX),
        .peer = emission->to_one ? emission->to : TAPE_TO_ALL,
        .size = *size,
        .hash = XXH3_64bits(*data, *size)};
    add(self, &head, emission->event, *data);
    return LS_OK;
}

static bool handles(void *self, const struct ls_event *event)
{
    const struct tape_head head = {
        .kind = TAPE_HANDLES,
        .name_size = (uint16_t)strnlen(event->name, UINT16_MAX),
        .peer = event->origin,
        .size = event->size};
    add(self, &head, event->name, NULL);
    return true;
}

/* ---- its life ---------------------------------------------------------- */

int tape_recorder_create(tape_recorder **out, const char *tape, uint32_t id)
{
    char path[LS_PATH_MAX];
    ls_runtime *const threads = ls_runtime_threads();
    int status = tape_part_path(path, tape, id);
    if (status != LS_OK)
        return status;
    tape_recorder *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the recording of a node");
    self->gate = (struct ls_event_gate){
        .self = self, .emits = emits, .handles = handles};
    self->id = id;
    status = ls_file_open(&self->file, path,
                          LS_FILE_WRITE | LS_FILE_CREATE | LS_FILE_EMPTY);
    if (status == LS_OK)
        status = ls_mutex_init(&self->lock, threads);
    if (status == LS_OK)
        status = ls_cond_init(&self->filled, threads);
    if (status == LS_OK)
        status = ls_cond_init(&self->room, threads);
    if (status == LS_OK)
        status = ls_thread_spawn(threads, &self->thread, "recording",
                                 write_behind, self);
    if (status != LS_OK)
        tape_recorder_destroy(&self);
    *out = self;
    return status;
}

void tape_recorder_destroy(tape_recorder **recorder)
{
    if (recorder == NULL || *recorder == NULL)
        return;
    tape_recorder *self = *recorder;
    if (self->thread != NULL) {
        add(self, &(struct tape_head){.kind = TAPE_END}, "", NULL);
        ls_mutex_lock(&self->lock);
        self->closing = true;
        ls_cond_signal(&self->filled);
        ls_mutex_unlock(&self->lock);
        if (ls_thread_join(&self->thread, LS_FOREVER) != LS_OK)
            ls_log_error("the recording of node %u does not end",
                         (unsigned)self->id);
    }
    int status = ls_failure_return(&self->failure);
    const int closed = ls_file_close(&self->file);
    status = status != LS_OK ? status : closed;
    if (status != LS_OK)
        ls_log_warn("the recording of node %u ends early: %s",
                    (unsigned)self->id, ls_error_text());
    ls_cond_fini(&self->room);
    ls_cond_fini(&self->filled);
    ls_mutex_fini(&self->lock);
    free(self->held.at);
    free(self);
    *recorder = NULL;
}

const struct ls_event_gate *tape_recorder_gate(const tape_recorder *recorder)
{
    return &recorder->gate;
}
