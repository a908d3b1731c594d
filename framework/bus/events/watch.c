/* Watching members: who is told of each change, in order with events. */
#include "bus.h"

#include <stdlib.h>

static void unwatch(ls_node *node, const void *self)
{
    int status = LS_OK;
    struct member_watch **at = &node->watches.first;
    while (*at != NULL && ((*at)->self != self || (*at)->removed))
        at = &(*at)->next;
    struct member_watch *watch = *at;
    if (watch == NULL)
        return;
    watch->removed = true;
    watch->waiters++; /* so that it stays to be looked at */
    while (watch->running && !dispatch_is_current(node) && status == LS_OK)
        status =
            ls_cond_wait(&node->router.idle, &node->router.lock, LS_FOREVER);
    watch->waiters--;
    /* The dispatch thread frees it, after its next round at the latest. */
}

/* Tell a new watch alone of those that are ready, in order with events. */
static int tell_ready(ls_node *node, uint64_t watch)
{
    enum { AT_ONCE = 16 };
    size_t at = 0, n;
    do {
        struct message *message = message_take_one(node->pool);
        struct ls_member *members = malloc(AT_ONCE * sizeof *members);
        if (message == NULL || members == NULL) {
            free(message);
            free(members);
            return ls_error(LS_ENOMEM, "no memory to tell who is ready");
        }
        n = 0;
        transport_lock(node->transport);
        for (; at < node->world.n && n < AT_ONCE; at++)
            if (node->world.at[at]->state == LS_MEMBER_READY)
                world_member(node->world.at[at], &members[n++]);
        transport_unlock(node->transport);
        message->kind = MESSAGE_MEMBER;
        message->members = members;
        message->n_members = n;
        message->watch = watch;
        dispatch_append(node, message);
    } while (n == AT_ONCE);
    return LS_OK;
}

int ls_node_on_member(ls_node *node,
                      void (*fn)(void *self, const struct ls_member *member),
                      void *self)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    struct member_watch *watch = fn == NULL ? NULL : calloc(1, sizeof *watch);
    if (fn != NULL && watch == NULL)
        return ls_error(LS_ENOMEM, "no memory to watch members");
    uint64_t number = 0;
    ls_mutex_lock(&node->router.lock);
    unwatch(node, self);
    if (watch != NULL) {
        *watch = (struct member_watch){.next = node->watches.first,
                                       .fn = fn,
                                       .self = self,
                                       .number = ++node->watches.n};
        number = watch->number;
        node->watches.first = watch;
    }
    ls_mutex_unlock(&node->router.lock);
    const int status = number != 0 && node->transport != NULL
                           ? tell_ready(node, number)
                           : LS_OK;
    if (status != LS_OK) {
        ls_mutex_lock(&node->router.lock);
        unwatch(node, self);
        ls_mutex_unlock(&node->router.lock);
    }
    return status;
}

/* only: the number of a watch; 0: all. Router held, and let go of meanwhile. */
static void tell_watches(ls_node *node, const struct ls_member *member,
                         uint64_t only)
{
    struct member_watch *watch = node->watches.first;
    for (; watch != NULL; watch = watch->next) {
        if (watch->removed || (only != 0 && only != watch->number))
            continue;
        watch->running = true;
        ls_mutex_unlock(&node->router.lock);
        watch->fn(watch->self, member);
        ls_mutex_lock(&node->router.lock);
        watch->running = false;
        ls_cond_broadcast(&node->router.idle);
    }
}

void watch_members(ls_node *node, const struct message *message)
{
    ls_mutex_lock(&node->router.lock);
    for (size_t i = 0; i < message->n_members; i++)
        if (message->members[i].id != node->options.id)
            tell_watches(node, &message->members[i], message->watch);
    struct member_watch **at = &node->watches.first;
    while (*at != NULL) {
        struct member_watch *gone = *at;
        if (gone->removed && gone->waiters == 0) {
            *at = gone->next;
            free(gone);
        } else {
            at = &gone->next;
        }
    }
    ls_mutex_unlock(&node->router.lock);
}

void watch_free(struct watches *watches)
{
    while (watches->first != NULL) {
        struct member_watch *watch = watches->first;
        watches->first = watch->next;
        free(watch);
    }
}
