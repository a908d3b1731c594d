#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "transport.h"

#define BATCH    64   /* messages that change hands under one lock */
#define MAX_IDLE 8192 /* kept by the pool; more are freed */

struct message_pool {
    ls_mutex lock;
    struct message_list idle;
};

void message_list_init(struct message_list *list)
{
    list->first = NULL;
    list->last = &list->first;
    list->n = 0;
}

void message_list_append(struct message_list *list, struct message *message)
{
    message->next = NULL;
    *list->last = message;
    list->last = &message->next;
    list->n += 1 + message->more;
}

void message_list_prepend(struct message_list *list, struct message *message)
{
    message->next = list->first;
    list->first = message;
    if (message->next == NULL)
        list->last = &message->next;
    list->n += 1 + message->more;
}

void message_list_splice(struct message_list *to, struct message_list *from)
{
    if (from->first == NULL)
        return;
    *to->last = from->first;
    to->last = from->last;
    to->n += from->n;
    message_list_init(from);
}

struct message *message_list_take(struct message_list *list)
{
    struct message *message = list->first;
    if (message == NULL)
        return NULL;
    list->first = message->next;
    if (list->first == NULL)
        list->last = &list->first;
    list->n -= 1 + message->more;
    message->next = NULL;
    return message;
}

int message_pool_create(message_pool **out, ls_runtime *runtime)
{
    message_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message pool");
    const int status = ls_mutex_init(&pool->lock, runtime);
    if (status != LS_OK) {
        free(pool);
        return status;
    }
    message_list_init(&pool->idle);
    *out = pool;
    return LS_OK;
}

void message_pool_destroy(message_pool **pool)
{
    if (pool == NULL || *pool == NULL)
        return;
    struct message *message;
    while ((message = message_list_take(&(*pool)->idle)) != NULL)
        free(message);
    ls_mutex_fini(&(*pool)->lock);
    free(*pool);
    *pool = NULL;
}

struct message *message_take(message_pool *pool, struct message_list *batch)
{
    struct message *message = message_list_take(batch);
    if (message != NULL)
        return message;
    ls_mutex_lock(&pool->lock);
    for (unsigned i = 0; i < BATCH; i++) {
        message = message_list_take(&pool->idle);
        if (message == NULL)
            break;
        message_list_append(batch, message);
    }
    ls_mutex_unlock(&pool->lock);
    message = message_list_take(batch);
    return message != NULL ? message : calloc(1, sizeof *message);
}

struct message *message_take_one(message_pool *pool)
{
    ls_mutex_lock(&pool->lock);
    struct message *message = message_list_take(&pool->idle);
    ls_mutex_unlock(&pool->lock);
    return message != NULL ? message : calloc(1, sizeof *message);
}

void message_release_owned(struct message *message)
{
    if (message->release != NULL)
        message->release(message->owned, message->hint);
    else
        free(message->owned);
    message->owned = NULL;
    message->release = NULL;
}

static void message_clear(struct message *message)
{
    transport_release(message);
    message_release_owned(message);
    free(message->members);
    message->members = NULL;
    message->n_members = 0;
    message->watch = 0;
    message->peer = NULL;
    message->local = false;
    message->stream = false;
    message->latest = false;
    message->entry = NULL;
    message->held_bytes = 0;
    message->held_messages = 0;
    message->more = 0;
    message->kind = MESSAGE_EVENT;
}

void message_free(struct message *message)
{
    message_clear(message);
    free(message);
}

void message_give_back(message_pool *pool, struct message_list *list)
{
    list->n = 0;
    for (struct message *m = list->first; m != NULL; m = m->next, list->n++)
        message_clear(m);
    ls_mutex_lock(&pool->lock);
    if (pool->idle.n < MAX_IDLE) {
        /* In front: what was used last is taken first, while it is in cache. */
        message_list_splice(list, &pool->idle);
        message_list_splice(&pool->idle, list);
    }
    ls_mutex_unlock(&pool->lock);
    struct message *message;
    while ((message = message_list_take(list)) != NULL)
        free(message);
}

void message_give_back_one(message_pool *pool, struct message *message)
{
    struct message_list list;
    message_list_init(&list);
    message_list_append(&list, message);
    message_give_back(pool, &list);
}
