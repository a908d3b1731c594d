/* pool.h - the members that works can be given to, by where their kinds are
 * placed.
 *
 * A member is connected to, asked what it has to offer, and free then. A work
 * takes it out of the pool until the work is over; then it is asked again.
 * Pure. Thread: serial. */
#ifndef LOCKSTEP_SERVICE_POOL_H
#define LOCKSTEP_SERVICE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/random.h"

#include "fsm_kinds.h"

enum pool_state {
    POOL_GONE,      /* not ready: lost, or left */
    POOL_NEW,       /* to be connected to */
    POOL_CONNECTED, /* to be asked for its resource */
    POOL_BUSY,      /* a call to it tells what it is next */
    POOL_FREE,
    POOL_TAKEN /* a work has it */
};

struct pool_member {
    struct pool_member *next;
    uint32_t id;
    uint64_t incarnation;
    char role[32], labels[64]; /* "": not known yet */
    enum pool_state state;
    int64_t rest_until; /* nothing is begun with it before */
    double gpu, cpu;    /* what it offers */
};

struct pool {
    struct pool_member *first; /* own */
    struct ls_rng rng;         /* picks among equals */
};

void pool_fini(struct pool *pool);

/* The member of this id; added as one that is gone when it is new. It lives as
 * long as the pool. NULL: no memory. */
struct pool_member *pool_add(struct pool *pool, uint32_t id);
struct pool_member *pool_find(const struct pool *pool, uint32_t id);

/* Of the free members that do not rest the one that offers most for a kind. One
 * of several at random; NULL: there is none. */
struct pool_member *pool_pick(struct pool *pool, const struct fsm_kind *kind,
                              int64_t now);
/* For `compare` of a kind: by processors. */
int pool_compare_cpu(const struct pool_member *member,
                     const struct pool_member *other);

/* The same of n members at once. out: n of them, their ids rising. Returns
 * whether there are so many. */
bool pool_pick_several(struct pool *pool, const struct fsm_kind *kind,
                       int64_t now, struct pool_member **out, size_t n);

/* Whether one that a kind is for has yet to tell what it offers: it does, or
 * fails to and rests, by the deadline of a call. */
bool pool_is_asking(const struct pool *pool, const struct fsm_kind *kind,
                    int64_t now);

/* How many that a kind is for are not gone. */
size_t pool_count(const struct pool *pool, const struct fsm_kind *kind);
bool pool_suits(const struct pool_member *member, const struct fsm_kind *kind);

/* When the next of those ends its rest with whom something is to be begun;
 * LS_FOREVER: none. */
int64_t pool_wake_at(const struct pool *pool, int64_t now);

#endif
