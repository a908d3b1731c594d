#include "assign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"

#include "coverage.h"

static void work_free(struct work *work)
{
    replay_destroy(&work->buffer);
    for (size_t i = 0; i < work->n_lent; i++)
        free(work->lent[i].drawn);
    free(work->lent);
    while (work->waiting != NULL) {
        struct waiting_data *data = work->waiting;
        work->waiting = data->next;
        free(data);
    }
    free(work);
}

void works_fini(struct works *works)
{
    while (works->first != NULL) {
        struct work *gone = works->first;
        works->first = gone->next;
        work_free(gone);
    }
}

struct work *works_add(struct works *works, struct kind_use *use,
                       uint64_t number, int64_t now)
{
    struct work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return NULL;
    work->use = use;
    work->number = number != 0 ? number : works->last_number + 1;
    if (work->number > works->last_number)
        works->last_number = work->number;
    (void)snprintf(work->key.task_id, sizeof work->key.task_id, "%s_%" PRIu64,
                   use->kind->verb, work->number);
    work->key.attempt = 1;
    work->queued_at = now;
    struct work **end = &works->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = work;
    return work;
}

static void unlink_work(struct works *works, struct work *work)
{
    struct work **at = &works->first;
    while (*at != work)
        at = &(*at)->next;
    *at = work->next;
}

void works_remove(struct works *works, struct work **work)
{
    unlink_work(works, *work);
    work_free(*work);
    *work = NULL;
}

void works_return(struct work *work)
{
    work->state = WORK_QUEUED;
    work->member = NULL;
    work->n_ranks = work->n_missing = 0;
    work->malformed = 0;
    work->doomed = false;
    work->demanded = 0;
    work->again_at = 0;
}

void works_requeue(struct works *works, struct work *work, int64_t now)
{
    works_return(work);
    if (!works->same_attempt)
        work->key.attempt++;
    work->queued_at = now;
    unlink_work(works, work);
    work->next = works->first;
    works->first = work;
}

/* The first of those that do it. NULL: there are not enough. */
static struct pool_member *pick(struct work *work, struct pool *pool,
                                int64_t now)
{
    struct pool_member *ranks[SERVICE_RANKS_MAX];
    const size_t n = work->use->ranks;
    if (n < 2)
        return pool_pick(pool, kind_of(work), now);
    if (!pool_pick_several(pool, kind_of(work), now, ranks, n))
        return NULL;
    for (size_t i = 0; i < n; i++)
        work->ranks[i] = ranks[i]->id;
    work->n_ranks = n;
    return ranks[0];
}

static bool give(struct work *work, struct pool *pool, int64_t now)
{
    const struct fsm_kind *kind = kind_of(work);
    if (kind->may_go != NULL && !kind->may_go(work, pool, now))
        return false;
    struct pool_member *member = pick(work, pool, now);
    if (member == NULL)
        return false;
    member->state = POOL_TAKEN;
    ls_take(LS_TAKES_WORK_STARTS);
    work->state = WORK_STARTING;
    work->member = member;
    work->incarnation = member->incarnation;
    return true;
}

struct work *works_assign(struct works *works, const struct kind_use *use,
                          struct pool *pool, int64_t now)
{
    for (struct work *w = works->first; w != NULL; w = w->next)
        if (w->state == WORK_QUEUED && w->use == use && give(w, pool, now))
            return w;
    return NULL;
}

struct work *works_expired(const struct works *works, int64_t now)
{
    for (struct work *w = works->first; w != NULL; w = w->next)
        if (w->state == WORK_QUEUED && now - w->queued_at >= w->use->expiry)
            return w;
    return NULL;
}

struct work *works_of(const struct works *works,
                      const struct pool_member *member)
{
    struct work *work = works->first;
    while (work != NULL && work->member != member)
        work = work->next;
    return work;
}

size_t works_count(const struct works *works, const struct kind_use *use)
{
    size_t n = 0;
    for (const struct work *w = works->first; w != NULL; w = w->next)
        n += w->use == use ? 1 : 0;
    return n;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t works_wake_at(const struct works *works, int64_t now)
{
    int64_t at = LS_FOREVER;
    for (const struct work *w = works->first; w != NULL; w = w->next) {
        if (w->state == WORK_QUEUED)
            at = earlier(at, w->queued_at + w->use->expiry);
        if (w->state == WORK_AWAITED || w->state == WORK_CLOSING)
            at = earlier(at, w->until);
        if (w->again_at > now)
            at = earlier(at, w->again_at);
    }
    return at;
}
