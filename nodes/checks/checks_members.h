/* checks_members.h - what the checks of members share. */
#ifndef LOCKSTEP_CHECKS_MEMBERS_H
#define LOCKSTEP_CHECKS_MEMBERS_H

#include "role_member.h"

#include "checks_kind.h"

/* A mistake is known to a member's handler up to so long after the barrier has
 * acted on it; so long "all" is not judged. */
#define CHECKS_NOTICE_NS LS_NS_PER_S

#define CHECKS_VERDICTS_MAX 64

/* The events of one incarnation of a node, as one life got them. */
struct heard {
    uint32_t from;
    uint64_t incarnation;
    uint64_t number;   /* the last one */
    uint64_t *numbers; /* own; all of them, rising */
    size_t n, capacity;
    struct heard *previous;
};

/* An incarnation of a node that a life has seen ready: first from when to when,
 * and until when at last, as it may have been ready again. */
struct ready {
    uint32_t id;
    uint64_t incarnation;
    int64_t at, gone_at; /* LS_FOREVER: it was never gone */
    int64_t until;       /* LS_FOREVER: it is ready */
    struct ready *previous;
};

/* An emit waits while a listener has no room. */
struct emit {
    int64_t began_at;
    int64_t ended_at; /* LS_FOREVER: not yet, or it has failed */
};

struct member_life {
    struct check_life *life;
    struct member_watch watch;
    uint64_t incarnation; /* 0: not known yet */

    bool waiting;
    int64_t entered_at, left_at, renewed_at; /* 0: never */
    int64_t ended_at;                        /* its last wait; 0: none */
    uint64_t next;     /* one past the last epoch that it left; 0: none */
    bool failed_since; /* a wait of it failed since it left that one */
    bool owes;         /* the epoch that it is in must be this one: */
    uint64_t owed;
    uint32_t owed_to;    /* who has left it */
    int64_t owed_from;   /* when that one entered it */
    struct heard *heard; /* own */
    struct ready *ready; /* own; whom it has seen ready */
    struct emit *emits;  /* own; of its events */
    size_t n_emitted;
    int64_t quit_at;             /* it listens no longer; 0: it does */
    struct ls_node_loss *losses; /* own; that it knew of then */
    size_t n_losses;
};

/* Somebody holds a living node for lost. */
struct mistake {
    const struct check_life *by;
    const struct check_life *of; /* NULL: not known */
    uint32_t id;
    int64_t from, to; /* LS_FOREVER: not taken back yet */
    struct mistake *previous;
};

/* A wait that failed by another's doing. */
struct failure {
    const struct member_life *member;
    uint64_t epoch;
    int status;
    uint32_t named;
    int64_t entered_at, ended_at;
    int64_t since; /* it has ended its wait before that, or begun its life */
    struct failure *previous;
};

/* A break of a promise that is one unless there was a mistake. */
struct verdict {
    int64_t from, to;
    bool alike;                  /* nor is it one where members came and went */
    const struct ready *pair[2]; /* borrow; else it is one unless one of the two
                                  * held the other for gone; NULL: of any */
    char text[256];
};

struct member_checks {
    struct mistake *mistakes; /* own; the latest first */
    struct failure *failures; /* own; the latest first */
    struct verdict verdicts[CHECKS_VERDICTS_MAX];
    size_t n_verdicts;
    uint64_t newest; /* one past the latest epoch that anybody left */
    int64_t left_at; /* when anybody left one; 0: never */
    bool stuck;      /* it has been said that nobody does */
};

/* A promise is broken, unless there was a mistake since `from`. */
void checks_accuse(checks *checks, int64_t from, const char *format, ...)
    LS_PRINTF(3, 4);
/* The same; nor is it one where more than one member came or went. */
void checks_accuse_difference(checks *checks, int64_t from, const char *format,
                              ...) LS_PRINTF(3, 4);
/* The same, unless one of two holds the other for gone: who else is mistaken
 * explains nothing. back: NULL: one of them never met the other. */
void checks_accuse_pair(checks *checks, const struct ready *there,
                        const struct ready *back, const char *format, ...)
    LS_PRINTF(4, 5);
/* Judge the accusations made before a time. */
void checks_judge(checks *checks, int64_t before);

/* An incarnation of a node that a life has seen ready; NULL: it has not. */
struct ready *checks_find_ready(const struct member_life *member, uint32_t id,
                                uint64_t incarnation);

/* A wait failed: compare it with the others of its epoch. */
void checks_note_failure(struct member_life *member, int status);

/* Its node is in this life. */
void checks_note_incarnation(struct member_life *member, uint64_t incarnation);

/* What a member tells: see struct member_watch. self: its member_life. */
void checks_on_entering(void *self, uint64_t incarnation);
void checks_on_ended(void *self, int status,
                     const struct ls_barrier_epoch_info *info);
void checks_on_member(void *self, const struct ls_member *member);
void checks_on_emitting(void *self, uint64_t incarnation, uint64_t number);
void checks_on_emitted(void *self, uint64_t number);
void checks_on_heard(void *self, const struct ls_event *event, uint64_t number);
void checks_on_quitting(void *self, const struct ls_node_loss *losses,
                        size_t n);
/* After the run: every event is accounted for. */
void checks_finish_events(checks *checks);

#endif
