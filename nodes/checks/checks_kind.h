/* checks_kind.h - what the checks of all jobs share, and what is particular to
 * a kind of job. */
#ifndef LOCKSTEP_CHECKS_KIND_H
#define LOCKSTEP_CHECKS_KIND_H

#include "checks.h"

/* How late the end of a wait may be noticed: clocks drift, threads queue. */
#define CHECKS_SLACK_NS (2 * LS_NS_PER_S)

struct check_life {
    checks *all;
    size_t index;
    const ls_host *host;
    struct node_watch watch;
    void *state; /* own; of the kind */
    bool dead, over;
    int64_t began_at, died_at, paused_at, resumed_at, over_at; /* 0: never */
    int64_t stands_until; /* its clock, which was set back */
    struct check_life *previous;
};

/* What is particular to jobs of members, or of services. */
struct checks_kind {
    /* Make and free the state of a life. Errors: LS_ENOMEM. */
    int (*begin)(struct check_life *life);
    void (*forget)(struct check_life *life);
    /* Make and free the state of all. Errors: LS_ENOMEM. */
    int (*create)(checks *checks);
    void (*destroy)(checks *checks);
    /* Some are there long after the first has ended well; or NULL. */
    void (*straggled)(checks *checks);
    /* Before each jump of virtual time; and after the run. */
    void (*look)(checks *checks);
    void (*finish)(checks *checks);
};
extern const struct checks_kind checks_members, checks_services;

struct checks {
    ls_simulation *simulation;
    const ls_network *network;
    const struct plan *plan;
    const struct checks_kind *kind;
    void *state;              /* own; of the kind */
    struct check_life *lives; /* own; the latest first */
    int64_t quiet_at;         /* 0: there are faults to come */
    int64_t done_at;          /* the first; 0: none is */
    struct checks_figures figures;
};

int64_t checks_now(const checks *checks);
/* Since when its host runs and its clock moves; later than now: it stands. */
int64_t checks_moves_since(const struct check_life *life);
uint32_t checks_id(const struct check_life *life);
/* Whether it is the id of a node of the job; else it is a stranger's. */
bool checks_is_of_job(const checks *self, uint32_t id);
/* calloc(); NULL: said as a violation. Own. */
void *checks_allocate(const checks *checks, size_t bytes);

#endif
