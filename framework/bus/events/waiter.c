/* Waiting for events: for the next one, or for what has come since. */
#include "bus.h"

#include <stdlib.h>
#include <string.h>

#define WAITER_KEEPS     16
#define WAITER_KEEPS_MAX 65536

/* One that came, with what it points at behind it. */
struct kept {
    struct kept *next;
    struct ls_event event;
    char name[LS_EVENT_MAX + 1];
    max_align_t data[];
};

struct ls_waiter {
    ls_node *node; /* borrow */
    char event[LS_EVENT_MAX + 1];
    size_t capacity;
    struct kept *first, **end; /* own; this and the rest under router */
    size_t n;
    uint64_t dropped;
};

static int tell(int status, const char *event)
{
    return status == LS_OK ? LS_OK
                           : ls_error(status, "waiting for event \"%s\": %s",
                                      event, ls_status_sentence(status));
}

/* Why nothing is waited for any longer, with a text. An error that is kept is
 * taken at once: of several waits one has it, and the others go on. Router
 * held. */
static int ended(ls_node *node, const char *event, bool *took)
{
    *took = false;
    if (node_is_stopping(node))
        return tell(LS_ECLOSED, event);
    const int kept = dispatch_take_error(node);
    *took = kept != LS_OK;
    return *took ? kept : tell(atomic_load(&node->dispatch.interrupted), event);
}

/* Whoever does the work of the bus thread brings the events. */
static int check_op(const ls_node *node, const char *event, int64_t deadline)
{
    return deadline != LS_NOW && bus_is_current(node)
               ? ls_error(LS_ESTATE,
                          "an op of a channel cannot wait for event \"%s\": "
                          "its thread brings the events",
                          event)
               : LS_OK;
}

static int check_thread(const ls_node *node, const char *event)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    return dispatch_is_current(node)
               ? ls_error(LS_ESTATE,
                          "a handler cannot wait for event \"%s\": "
                          "events are handled by its own thread",
                          event)
               : LS_OK;
}

/* One wait for any news. Returns whether it was the last one. Router held, and
 * let go of meanwhile. */
static bool wait_once(ls_node *node, struct ls_due *due)
{
    ls_mutex *const lock = &node->router.lock;
    return ls_cond_wait(&node->router.idle, lock, due->at) != LS_OK &&
           due_has_passed_without(node, due, lock);
}

/* ---- for the next one -------------------------------------------------- */

struct wait {
    ls_node *node;
    ls_event_fn *fn;
    void *self;
    bool came;
    struct ls_failure failure; /* of fn */
    struct ls_failure end;     /* why it ended without the event */
    bool took;                 /* that is the error that the node kept */
};

static int came(void *self, const struct ls_event *event)
{
    struct wait *w = self;
    const int status = w->fn != NULL ? w->fn(w->self, event) : LS_OK;
    if (status != LS_OK && ls_error_text()[0] == '\0')
        (void)ls_error_at(status, "%s", ls_status_sentence(status));
    ls_failure_keep(&w->failure, status);
    ls_mutex_lock(&w->node->router.lock);
    w->came = true;
    ls_cond_broadcast(&w->node->router.idle);
    ls_mutex_unlock(&w->node->router.lock);
    return LS_OK;
}

static int wait_locked(struct wait *w, const char *event, struct ls_due *due)
{
    ls_node *const node = w->node;
    while (!w->came) {
        const int status = ended(node, event, &w->took);
        if (status != LS_OK)
            return status;
        if (wait_once(node, due) && !w->came)
            return tell(LS_ETIMEDOUT, event);
    }
    return LS_OK;
}

int ls_wait_for(ls_node *node, const char *event, int wait_ms, ls_event_fn *fn,
                void *self)
{
    int status = check_thread(node, event);
    if (status != LS_OK)
        return status;
    struct ls_due due = ls_due_at(node, ls_deadline(node->runtime, wait_ms));
    status = check_op(node, event, due.at);
    if (status != LS_OK)
        return status;
    struct wait w = {.node = node, .fn = fn, .self = self};
    status = router_listen_from_now(node, event, came, &w, "ls_wait_for", true);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&node->router.lock);
    status = wait_locked(&w, event, &due);
    ls_failure_keep(&w.end, status);
    if (!w.came)
        (void)router_off_waiting(node, event, came, &w);
    /* Maybe meanwhile: fn was running. */
    if (w.came && w.took)
        dispatch_put_back(node, &w.end);
    ls_mutex_unlock(&node->router.lock);
    if (!w.came)
        return ls_failure_return(&w.end);
    return ls_failure_return(&w.failure) == LS_OK
               ? LS_OK
               : ls_error_at(w.failure.status, "waiting for event \"%s\"",
                             event);
}

/* ---- for what has come since ------------------------------------------- */

static struct kept *copy_of(const struct ls_event *event)
{
    struct kept *kept = malloc(sizeof *kept + event->size);
    if (kept == NULL)
        return NULL;
    kept->next = NULL;
    kept->event = *event;
    memcpy(kept->name, event->name, strlen(event->name) + 1);
    kept->event.name = kept->name;
    kept->event.data = kept->data;
    if (event->size != 0)
        memcpy(kept->data, event->data, event->size);
    return kept;
}

static int keep(void *self, const struct ls_event *event)
{
    struct ls_waiter *waiter = self;
    ls_node *const node = waiter->node;
    struct kept *kept = copy_of(event);
    ls_mutex_lock(&node->router.lock);
    const bool room = kept != NULL && waiter->n < waiter->capacity;
    if (room) {
        *waiter->end = kept;
        waiter->end = &kept->next;
        waiter->n++;
        ls_cond_broadcast(&node->router.idle);
    } else {
        waiter->dropped++;
    }
    ls_mutex_unlock(&node->router.lock);
    if (!room)
        free(kept);
    return LS_OK;
}

int ls_waiter_create(ls_waiter **out, ls_node *node, const char *event,
                     size_t capacity)
{
    *out = NULL;
    if (capacity > WAITER_KEEPS_MAX)
        return ls_error(LS_EINVAL, "a waiter keeps at most %d events",
                        WAITER_KEEPS_MAX);
    ls_waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter == NULL)
        return ls_error(LS_ENOMEM, "no memory for a waiter");
    waiter->node = node;
    waiter->capacity = capacity != 0 ? capacity : WAITER_KEEPS;
    waiter->end = &waiter->first;
    const int status =
        router_listen_from_now(node, event, keep, waiter, "ls_waiter", false);
    if (status != LS_OK) {
        free(waiter);
        return status;
    }
    memcpy(waiter->event, event, strlen(event) + 1);
    ls_node_hold(node);
    *out = waiter;
    return LS_OK;
}

/* What is kept comes before any reason not to wait. Router held. */
static int take(ls_waiter *waiter, struct ls_due *due, struct kept **out)
{
    ls_node *const node = waiter->node;
    bool took;
    while (waiter->first == NULL) {
        int status = ended(node, waiter->event, &took);
        if (status == LS_OK)
            status = check_op(node, waiter->event, due->at);
        if (status != LS_OK)
            return status;
        if (wait_once(node, due) && waiter->first == NULL)
            return tell(LS_ETIMEDOUT, waiter->event);
    }
    *out = waiter->first;
    waiter->first = (*out)->next;
    if (waiter->first == NULL)
        waiter->end = &waiter->first;
    waiter->n--;
    return LS_OK;
}

int ls_waiter_wait(ls_waiter *waiter, int wait_ms, ls_event_fn *fn, void *self)
{
    ls_node *const node = waiter->node;
    struct ls_due due = ls_due_at(node, ls_deadline(node->runtime, wait_ms));
    struct kept *kept = NULL;
    int status = check_thread(node, waiter->event);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&node->router.lock);
    status = take(waiter, &due, &kept);
    ls_mutex_unlock(&node->router.lock);
    if (kept != NULL && fn != NULL)
        status = fn(self, &kept->event);
    free(kept);
    return status;
}

uint64_t ls_waiter_dropped(const ls_waiter *waiter)
{
    ls_node *const node = waiter->node;
    if (node_check(node) != LS_OK)
        return 0;
    ls_mutex_lock(&node->router.lock);
    const uint64_t dropped = waiter->dropped;
    ls_mutex_unlock(&node->router.lock);
    return dropped;
}

int ls_waiter_destroy(ls_waiter **waiter_p)
{
    if (waiter_p == NULL || *waiter_p == NULL)
        return LS_OK;
    ls_waiter *waiter = *waiter_p;
    int status = check_thread(waiter->node, waiter->event);
    if (status != LS_OK && dispatch_is_current(waiter->node))
        return ls_error(LS_ESTATE,
                        "a handler cannot destroy the waiter for event \"%s\"",
                        waiter->event);
    if (status == LS_OK)
        status = ls_off(waiter->node, waiter->event, keep, waiter);
    if (status == LS_ESTATE)
        return status;
    while (waiter->first != NULL) {
        struct kept *kept = waiter->first;
        waiter->first = kept->next;
        free(kept);
    }
    ls_node_let_go(waiter->node);
    free(waiter);
    *waiter_p = NULL;
    return LS_OK;
}
