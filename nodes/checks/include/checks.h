/* checks.h - what must hold in a simulation of members, whatever goes wrong.
 *
 *   early    nobody leaves an epoch before everyone has entered it
 *   all      when one leaves an epoch, so do all who entered it
 *   named    who fails by another says by whom
 *   alike    who fail in the same epoch do so with the same status and name the
 *            same node, if they know each other and one member came or went
 *            since each, and who failed in it earlier for the same reason,
 *            ended the epoch before; whom a deadline names, and who counts
 *            whom, are each one's own
 *   bound    no wait lasts longer than its deadline; after the last fault they
 *            soon leave epochs again; who left the last one ends
 *   stall    who goes on after a pause does not hold the others for silent
 *   events   a reliable event is got once and in order by each whom its sender
 *            holds for a member when it emits it, or the sender counts it as
 *            unacknowledged, since that has ended soon after
 *   queues   what is under way in the network stays below a bound
 *   end      after the run nothing is under way, and every connection closed
 *
 * "all" can hold only where nobody is declared lost who lives: two sides of a
 * cut that lasts longer than silence_ms decide each for itself, and so does who
 * was paused for so long. So an epoch during which somebody was declared lost
 * by mistake is excused from it. From "early" nothing is excused, but that one
 * who waits was sent on to a later epoch by such a mistake.
 *
 * A life is one incarnation of a node; one that was killed is excused from what
 * it did not do, but others leave no epoch with it that they entered when they
 * knew it to be gone. A broken promise is told to ls_simulation_violation(),
 * with the name of the check first.
 * Thread: that of the simulation. */
#ifndef LOCKSTEP_CHECKS_H
#define LOCKSTEP_CHECKS_H

#include "lockstep/network.h"
#include "lockstep/simulation.h"

#include "node_watch.h"
#include "plan.h"

typedef struct checks checks;
struct check_life;

struct checks_figures {
    /* Of members. */
    uint64_t epochs;   /* that somebody left */
    uint64_t leaves;   /* of all members */
    uint64_t failures; /* waits that failed */
    uint64_t events;   /* got */
    uint64_t mistakes; /* living nodes that somebody declared lost */
    uint64_t excused;  /* breaks of a promise that a mistake explains */

    /* Of services. */
    uint64_t works;      /* attempts that were given out */
    uint64_t retried;    /* of these: not the first of their work */
    uint64_t calls;      /* of the coordinator */
    uint64_t unanswered; /* of these: that ended in any other way */
    uint64_t samples;    /* that collectors brought */
    uint64_t batches;    /* that learners got */
    uint64_t versions;   /* of policies, committed */
    uint64_t takeovers;  /* lives of a coordinator after the first */
    uint64_t joined;     /* learners that did a work with the one that was given
                          * it */
    uint64_t carried;    /* samples that one had drawn of an earlier life */
};

/* All: borrow. out: own; destroy it before the simulation, after the run.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int checks_create(checks **out, ls_simulation *simulation,
                              const ls_network *network,
                              const struct plan *plan);
void checks_destroy(checks **checks);

/* A node begins a life on a host. out: borrow: as long as the checks.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int checks_begin(checks *checks, struct check_life **out,
                             size_t index, const ls_host *host);
/* To be handed to the node; good as long as the checks. */
struct node_watch checks_watch(const struct check_life *life);
/* It was killed; it was paused, and resumed; it has ended. */
void checks_killed(struct check_life *life);
void checks_paused(struct check_life *life);
void checks_resumed(struct check_life *life);
/* Its clock was set ahead by so long; back, if negative. */
void checks_clock_set(struct check_life *life, int64_t by_ns);
/* When the clocks of all that are there go on: one that was set back stands
 * until it is as late as it was. Now, if none stands. */
int64_t checks_all_move_at(const checks *checks);
void checks_ended(struct check_life *life);

/* The last fault is over, and undone. */
void checks_quiet(checks *checks);
/* The first has ended well. */
void checks_done(checks *checks);
/* The first has long ended well, nothing goes wrong any more, and others are
 * still there. */
void checks_straggled(checks *checks);

/* After the run, in another one of the same simulation: what is left to judge,
 * and that nothing is left. */
void checks_finish(checks *checks);

struct checks_figures checks_figures(const checks *checks);

#endif
