#include "pool.h"

#include <stdlib.h>

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

struct pool_member *pool_add(struct pool *pool, uint32_t id,
                             enum pool_role role)
{
    struct pool_member *member = pool_find(pool, id);
    if (member == NULL) {
        member = calloc(1, sizeof *member);
        if (member == NULL)
            return NULL;
        member->id = id;
        member->next = pool->first;
        pool->first = member;
    }
    member->role = role;
    return member;
}

static bool is_eligible(const struct pool_member *member, enum pool_role role,
                        int64_t now)
{
    return member->role == role && member->state == POOL_FREE &&
           member->rest_until <= now;
}

struct pool_member *pool_pick(struct pool *pool, enum pool_role role,
                              int64_t now)
{
    uint64_t n = 0;
    for (struct pool_member *m = pool->first; m != NULL; m = m->next)
        n += is_eligible(m, role, now) ? 1 : 0;
    uint64_t skip = ls_rng_below(&pool->rng, n);
    for (struct pool_member *m = pool->first; m != NULL; m = m->next)
        if (is_eligible(m, role, now) && skip-- == 0)
            return m;
    return NULL;
}

size_t pool_count(const struct pool *pool, enum pool_role role)
{
    size_t n = 0;
    for (struct pool_member *m = pool->first; m != NULL; m = m->next)
        n += m->role == role && m->state != POOL_GONE ? 1 : 0;
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
