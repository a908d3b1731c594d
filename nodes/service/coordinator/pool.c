#include "pool.h"

#include <stdlib.h>

#include "lockstep/place.h"
#include "lockstep/runtime.h"

void pool_fini(struct pool *pool)
{
    while (pool->first != NULL) {
        struct pool_member *gone = pool->first;
        pool->first = gone->next;
        free(gone);
    }
}

struct pool_member *pool_find(const struct pool *pool, uint32_t id)
{
    struct pool_member *member = pool->first;
    while (member != NULL && member->id != id)
        member = member->next;
    return member;
}

struct pool_member *pool_add(struct pool *pool, uint32_t id)
{
    struct pool_member *member = pool_find(pool, id);
    if (member != NULL || (member = calloc(1, sizeof *member)) == NULL)
        return member;
    member->id = id;
    member->next = pool->first;
    pool->first = member;
    return member;
}

bool pool_suits(const struct pool_member *member, const struct fsm_kind *kind)
{
    return ls_place_has(kind->where, member->id, member->role, member->labels);
}

static bool is_eligible(const struct pool_member *member,
                        const struct fsm_kind *kind, int64_t now)
{
    return member->state == POOL_FREE && member->rest_until <= now &&
           pool_suits(member, kind);
}

int pool_compare_cpu(const struct pool_member *member,
                     const struct pool_member *other)
{
    return (member->cpu > other->cpu) - (member->cpu < other->cpu);
}

struct pool_member *pool_pick(struct pool *pool, const struct fsm_kind *kind,
                              int64_t now)
{
    const struct pool_member *best = NULL;
    uint64_t n = 0; /* as good as the best */
    for (struct pool_member *m = pool->first; m != NULL; m = m->next) {
        const int more = !is_eligible(m, kind, now) ? -1
                         : best == NULL             ? 1
                                                    : kind->compare(m, best);
        if (more > 0)
            best = m;
        n = more > 0 ? 1 : n + (more == 0 ? 1 : 0);
    }
    uint64_t skip = ls_rng_below(&pool->rng, n);
    for (struct pool_member *m = pool->first; m != NULL && best != NULL;
         m = m->next)
        if (is_eligible(m, kind, now) && kind->compare(m, best) == 0 &&
            skip-- == 0)
            return m;
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    const struct pool_member *const *one = a, *const *other = b;
    return ((*one)->id > (*other)->id) - ((*one)->id < (*other)->id);
}

bool pool_pick_several(struct pool *pool, const struct fsm_kind *kind,
                       int64_t now, struct pool_member **out, size_t n)
{
    size_t picked = 0;
    while (picked < n && (out[picked] = pool_pick(pool, kind, now)) != NULL)
        out[picked++]->state = POOL_TAKEN; /* until the next one is picked */
    for (size_t i = 0; i < picked; i++)
        out[i]->state = POOL_FREE;
    qsort(out, picked, sizeof(struct pool_member *), by_id);
    return picked == n;
}

bool pool_is_asking(const struct pool *pool, const struct fsm_kind *kind,
                    int64_t now)
{
    for (const struct pool_member *m = pool->first; m != NULL; m = m->next)
        if (pool_suits(m, kind) &&
            (m->state == POOL_BUSY ||
             ((m->state == POOL_NEW || m->state == POOL_CONNECTED) &&
              m->rest_until <= now)))
            return true;
    return false;
}

size_t pool_count(const struct pool *pool, const struct fsm_kind *kind)
{
    size_t n = 0;
    for (struct pool_member *m = pool->first; m != NULL; m = m->next)
        n += pool_suits(m, kind) && m->state != POOL_GONE ? 1 : 0;
    return n;
}

int64_t pool_wake_at(const struct pool *pool, int64_t now)
{
    int64_t at = LS_FOREVER;
    for (struct pool_member *m = pool->first; m != NULL; m = m->next)
        if ((m->state == POOL_NEW || m->state == POOL_CONNECTED ||
             m->state == POOL_FREE) &&
            m->rest_until > now && m->rest_until < at)
            at = m->rest_until;
    return at;
}
