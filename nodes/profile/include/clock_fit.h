/* clock_fit.h - how the clocks of two nodes compare, from what both have seen.
 *
 * A heartbeat that one node sent and the other heard says that the second clock
 * showed at most so much when the first showed that; one the other way says at
 * least. Both clocks are taken for straight lines, neither faster or slower
 * than the other by more than 500 ppm (RFC 5905's MAXFREQ): the lines that
 * contradict nothing are a convex polygon of offset and drift. The fit is the
 * line through the middle of what is possible at the first and at the last
 * observation, and its error at any time is the distance to the farthest
 * possible line. The quickest messages decide, whatever the others took.
 * Source: Cristian, "Probabilistic clock synchronization", 1989; Moon, Skelly
 * and Towsley, "Estimation and removal of clock skew from network delay
 * measurements", 1999; RFC 5905, section 10.
 * Thread: any. */
#ifndef LOCKSTEP_CLOCK_FIT_H
#define LOCKSTEP_CLOCK_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* When the clock here showed `here`, the other showed at most `there`, or at
 * least. Both in ns. */
struct clock_bound {
    int64_t here, there;
    bool most;
};

/* A corner of the polygon: the other clock shows, at `from` + x here,
 * x + `offset` + a + b * x. */
struct clock_corner {
    double a, b; /* ns; ns per ns */
};

/* All zero: the clock is the other one. */
struct clock_fit {
    int64_t from, offset;
    struct clock_corner line;     /* the fit */
    struct clock_corner *corners; /* own; give it to clock_fit_clear() */
    size_t n_corners;
    double slack_ns; /* 0; else no straight line agrees with all, as when a
                      * machine has slept: all were taken for wrong by this */
};

/* out:    written on success only.
 * Errors: LS_ENOENT the bounds are all of one side; LS_EMISMATCH no line is
 *         within an hour of them; LS_ENOMEM. */
LS_MUST_USE int clock_fit(struct clock_fit *out,
                          const struct clock_bound *bounds, size_t n);
void clock_fit_clear(struct clock_fit *fit);

/* What the other clock showed, when this one showed `here`. */
int64_t clock_fit_there(const struct clock_fit *fit, int64_t here);
/* The other way: what this one showed. */
int64_t clock_fit_here(const struct clock_fit *fit, int64_t there);
/* By how much that may be wrong at most, either way; ns. */
double clock_fit_error(const struct clock_fit *fit, int64_t here);

#endif
