#include "open_calls.h"

#include <stdlib.h>

#include "lockstep/runtime.h"

#define MOST_BUCKETS 65536

int open_calls_init(struct open_calls *calls, size_t most)
{
    *calls = (struct open_calls){.n_buckets = 16};
    while (calls->n_buckets < most && calls->n_buckets < MOST_BUCKETS)
        calls->n_buckets *= 2;
    calls->buckets = calloc(calls->n_buckets, sizeof(struct open_call *));
    return calls->buckets != NULL
               ? LS_OK
               : ls_error(LS_ENOMEM, "no memory for a table of calls");
}

void open_calls_fini(struct open_calls *calls)
{
    free(calls->buckets);
    deadlines_fini(&calls->due);
    calls->buckets = NULL;
}

/* Numbers are given one after the other, so their low bits are as good as any
 * hash. */
static struct open_call **bucket(const struct open_calls *calls, uint32_t peer,
                                 uint64_t number)
{
    const uint64_t mixed = number + peer * UINT64_C(0x9e3779b1);
    return &calls->buckets[mixed & (calls->n_buckets - 1)];
}

int open_calls_add(struct open_calls *calls, struct open_call *call)
{
    const int status = deadlines_add(&calls->due, &call->due);
    if (status != LS_OK)
        return status;
    struct open_call **at = bucket(calls, call->peer, call->number);
    call->state = LS_CALL_STARTING;
    call->next = *at;
    *at = call;
    call->after = NULL;
    call->before = calls->newest;
    if (calls->newest != NULL)
        calls->newest->after = call;
    else
        calls->oldest = call;
    calls->newest = call;
    calls->n++;
    return LS_OK;
}

void open_calls_remove(struct open_calls *calls, struct open_call *call)
{
    struct open_call **at = bucket(calls, call->peer, call->number);
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (call->before != NULL)
        call->before->after = call->after;
    else
        calls->oldest = call->after;
    if (call->after != NULL)
        call->after->before = call->before;
    else
        calls->newest = call->before;
    deadlines_remove(&calls->due, &call->due);
    calls->n--;
}

struct open_call *open_calls_find(const struct open_calls *calls, uint32_t peer,
                                  uint64_t life, uint64_t own, uint64_t number)
{
    struct open_call *call = *bucket(calls, peer, number);
    while (call != NULL && (call->number != number || call->peer != peer ||
                            call->life != life || call->own != own))
        call = call->next;
    return call;
}

struct open_call *open_calls_due(const struct open_calls *calls, int64_t now)
{
    struct deadline *due = deadlines_first(&calls->due);
    return due != NULL && due->at <= now ? (struct open_call *)due : NULL;
}

int64_t open_calls_wake_at(const struct open_calls *calls)
{
    const struct deadline *due = deadlines_first(&calls->due);
    return due != NULL ? due->at : LS_FOREVER;
}
