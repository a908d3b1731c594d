/* barrier_parts.h - what the files of the barrier share: its life and its waits
 * (barrier.c), what its options mean (barrier_rules.c), and what its errors say
 * (barrier_text.c). */
#ifndef BARRIER_PARTS_H
#define BARRIER_PARTS_H

#include "barrier_epoch.h"
#include "lockstep/barrier.h"
#include "lockstep/channel.h"

#define LS_BARRIER_CHANNEL "ls.barrier."

/* Where a member is that has no barrier of this name: for error texts. */
#define LS_BARRIER_ELSEWHERE_MAX 8

struct ls_barrier_elsewhere {
    uint32_t id;
    char text[64]; /* "waits in barrier \"x\"", cut; "": no more */
};

/* Between the state machine and the network a simulation may spoil messages, to
 * see that it would be noticed: the one hook for that. The mutex is held. */
struct ls_barrier_filter {
    /* Whether a message is swallowed instead of sent. */
    bool (*swallows)(int filtered, const struct ls_barrier_message *message);
    /* Change a message that came, and who sent it. */
    void (*received)(int filtered, const struct ls_epoch *epoch, uint32_t *from,
                     uint64_t *incarnation, struct ls_barrier_message *message);
};

struct ls_barrier {
    ls_node *node;       /* borrow */
    ls_runtime *runtime; /* borrow */
    ls_channel *channel; /* own */
    ls_mutex mutex;
    ls_cond ended;
    char name[LS_EVENT_MAX + 1];
    char group[sizeof((struct ls_member *)0)->labels]; /* "": everyone */
    void (*left)(void *self, const struct ls_barrier_epoch_info *info);
    void *self;
    uint32_t most;          /* members that there may be; 0: any number */
    unsigned forks;         /* ls_forks_now(), when it was made */
    struct ls_epoch *epoch; /* own; this and what follows under the mutex */
    bool withdrawn;         /* taken down: it said so, and says no more */
    bool waiting;
    int64_t sleeps_until; /* while waiting */
    bool closed;          /* the node stops */
    const struct ls_barrier_filter
        *filter;  /* NULL: messages pass as they are */
    int filtered; /* for the filter */
    struct ls_barrier_elsewhere elsewhere[LS_BARRIER_ELSEWHERE_MAX];
    size_t n_elsewhere; /* told in all; the last ones are kept */
    struct ls_barrier_stats stats;
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
};

/* own; NULL when there are none, or no memory for them. */
struct ls_member *ls_barrier_copy_members(const ls_barrier *barrier, size_t *n);

/* --- barrier_rules.c ------------------------------------------------------ */

/* Whether a member of the world is in the barrier's group. */
bool ls_barrier_has_member(const ls_barrier *barrier,
                           const struct ls_member *member);

struct ls_epoch_rules
ls_barrier_rules(const ls_node *node, const struct ls_barrier_options *options);

/* Errors: LS_EINVAL. */
LS_MUST_USE int ls_barrier_check(const ls_node *node, const char *name,
                                 const struct ls_barrier_options *options);

/* --- barrier_text.c; the mutex is held ------------------------------------ */

/* Set the error text for an epoch that failed; returns its status. */
int ls_barrier_explain(ls_barrier *barrier, const struct ls_epoch_end *end);

/* In which barrier this node is; returns the size of the text. */
size_t ls_barrier_say_where(const ls_barrier *barrier,
                            char text[static LS_BARRIER_REASON_MAX]);

/* Keep what UNKNOWN says of its sender, until anything else comes from it. */
void ls_barrier_note_elsewhere(ls_barrier *barrier, uint32_t from,
                               const struct ls_barrier_message *message);

#endif
