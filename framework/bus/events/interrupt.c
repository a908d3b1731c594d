/* What ends the waits of a node before their time: a status that each of them
 * asks for, and whom to wake so that it does. */
#include "bus.h"

#include <errno.h>
#include <stdlib.h>

/* Held while they are called: nobody is woken who has taken its watch away. The
 * first of all locks of a node. */
static void wake_all(struct interrupts *interrupts)
{
    ls_mutex_lock(&interrupts->lock);
    for (size_t i = 0; i < interrupts->n; i++)
        interrupts->at[i].fn(interrupts->at[i].self);
    ls_mutex_unlock(&interrupts->lock);
}

void ls_node_interrupt(ls_node *node, int status)
{
    if (node_check(node) != LS_OK)
        return;
    dispatch_interrupt(node, status);
    if (node->transport != NULL) {
        transport_lock(node->transport);
        ls_cond_broadcast(&node->changed);
        transport_unlock(node->transport);
    }
    wake_all(&node->interrupts);
}

void ls_node_interrupt_soon(ls_node *node, int status)
{
    const int before = errno;
    if (ls_forked_since(node->forks) || node->transport == NULL)
        return;
    atomic_store(&node->loop.interrupt_soon, status);
    node_wake(node);
    errno = before;
}

int ls_node_interrupted(const ls_node *node)
{
    const int status = atomic_load(&node->dispatch.interrupted);
    return status == LS_OK
               ? LS_OK
               : ls_error(status, "node %u: the wait was interrupted",
                          node->options.id);
}

static struct interrupt_watch *watch_of(const struct interrupts *interrupts,
                                        const void *self)
{
    for (size_t i = 0; i < interrupts->n; i++)
        if (interrupts->at[i].self == self)
            return &interrupts->at[i];
    return NULL;
}

static int add(struct interrupts *interrupts, void (*fn)(void *self),
               void *self)
{
    struct interrupt_watch *more =
        realloc(interrupts->at, (interrupts->n + 1) * sizeof *more);
    if (more == NULL)
        return ls_error(LS_ENOMEM, "no memory to watch for interrupts");
    interrupts->at = more;
    more[interrupts->n++] = (struct interrupt_watch){fn, self};
    return LS_OK;
}

int ls_node_on_interrupt(ls_node *node, void (*fn)(void *self), void *self)
{
    struct interrupts *interrupts = &node->interrupts;
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    int status = LS_OK;
    ls_mutex_lock(&interrupts->lock);
    struct interrupt_watch *watch = watch_of(interrupts, self);
    if (fn == NULL && watch != NULL)
        *watch = interrupts->at[--interrupts->n];
    else if (fn != NULL && watch != NULL)
        watch->fn = fn;
    else if (fn != NULL)
        status = add(interrupts, fn, self);
    ls_mutex_unlock(&interrupts->lock);
    return status;
}
