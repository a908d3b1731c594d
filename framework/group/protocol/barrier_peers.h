/* barrier_peers.h - the members as one barrier sees them, ordered by id and
 * incarnation. A new life of a node is a new peer: it inherits nothing.
 * Thread: serial. */
#ifndef BARRIER_PEERS_H
#define BARRIER_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* How far a peer has come in an epoch; those up to LEFT are in order. */
enum ls_epoch_phase {
    LS_EPOCH_NONE,
    LS_EPOCH_ENTERED,
    LS_EPOCH_READY,
    LS_EPOCH_LEFT,
    LS_EPOCH_GAVE_UP
};

struct ls_epoch_peer {
    uint32_t id;
    uint64_t incarnation;
    uint64_t host;   /* 0: of its own */
    bool joined;     /* ready, as the bus sees it */
    bool gone;       /* was lost or left: forgotten at the next entry */
    bool withdrew;   /* gone, but only its barrier: the node is here, which
                      * says nothing; kept until it is gone too, or speaks */
    bool counted;    /* has been in a view */
    uint64_t since;  /* the first epoch that it is, or will be, counted in */
    uint64_t rounds; /* the last epoch that it entered, plus 1; 0: none known */
    uint64_t asked;  /* the last epoch that it has inquired about, plus 1 */

    /* In the epoch under way. */
    bool in_view;
    uint32_t place; /* in the tree */
    bool lost;      /* for this epoch, even if it comes back */
    bool gave_up;   /* said so, but the leader has not: see on_abort() */
    bool chased;    /* was asked at once because it is ahead */
    bool answered;  /* said what it knows: see ls_epoch_inquire() */
    enum ls_epoch_phase phase;
    enum ls_epoch_phase branch; /* all below it in the tree are so far too */
    enum ls_epoch_phase told;   /* the most that it was sent of this node */
    uint32_t n_lost;    /* the most members that it said to be stuck without */
    uint64_t lost_hash; /* of those */

    /* The most that it said of an epoch that this node has yet to enter. */
    struct {
        enum ls_epoch_phase phase; /* NONE: it said nothing */
        uint64_t epoch;
        uint64_t view;
        uint64_t since;
        uint32_t rules;
        uint32_t flags;
        uint32_t last;
        bool branch; /* it said so of all below it too */
        int status;  /* GAVE_UP: why, and whether for good, and who first */
        bool final;
        uint32_t origin;
    } ahead;
};

struct ls_epoch_peers {
    struct ls_epoch_peer *items; /* own */
    size_t n;
    size_t capacity;
};

void ls_epoch_peers_fini(struct ls_epoch_peers *peers);

/* NULL when there is none. Borrow: until the next add or compact. */
struct ls_epoch_peer *ls_epoch_peers_find(const struct ls_epoch_peers *peers,
                                          uint32_t id, uint64_t incarnation);

/* The life of `id` that the bus holds for ready; NULL when there is none. */
struct ls_epoch_peer *ls_epoch_peers_joined(const struct ls_epoch_peers *peers,
                                            uint32_t id);

/* Whether there is a life of `id` that is not gone, joined or not. */
bool ls_epoch_peers_has(const struct ls_epoch_peers *peers, uint32_t id);

/* Add a peer that is not there, zeroed but for its name. NULL: no memory. */
struct ls_epoch_peer *ls_epoch_peers_add(struct ls_epoch_peers *peers,
                                         uint32_t id, uint64_t incarnation);

/* Drop those that are gone, node and barrier. */
void ls_epoch_peers_compact(struct ls_epoch_peers *peers);

#endif
