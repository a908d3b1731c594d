/* stats.h - a window of the last values, and a timer built on one.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_STATS_H
#define LOCKSTEP_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last `capacity` values pushed, and how many there have ever been. */
typedef struct ls_window ls_window;

/* What a window holds now. Quantiles are linear between neighbours (Hyndman
 * and Fan 1996, type 7); std is that of the population. mean, std and the
 * quantiles are NaN while the window is empty. A NaN that was pushed makes mean
 * and std NaN, and counts as the largest value in the quantiles. */
struct ls_window_summary {
    uint64_t count; /* values ever pushed */
    size_t held;    /* values in the window */
    double mean;
    double std;
    double quantiles[5]; /* 0, 10, 50, 90, 100 % */
};

/* out:    own; NULL after an error; give it to ls_window_destroy().
 * Errors: LS_EINVAL capacity 0; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_window_create(ls_window **out, size_t capacity);
LS_API void ls_window_push(ls_window *window, double value);
LS_API void ls_window_summary(const ls_window *window,
                              struct ls_window_summary *out);
/* Copy up to `capacity` of the values in the window, the oldest first. Returns
 * how many there are. */
LS_API size_t ls_window_values(const ls_window *window, double *out,
                               size_t capacity);
LS_API void ls_window_destroy(ls_window **window);

/* Times a piece of code over and over: the mean of the last `capacity` runs,
 * and units of work per second. Not re-entrant. */
typedef struct ls_timer ls_timer;

struct ls_timer_summary {
    uint64_t count;    /* runs ever timed */
    double mean_s;     /* of the retained runs; 0 when there is none */
    double throughput; /* sum of units / sum of seconds; 0 when no time went */
};

/* Errors: LS_EINVAL capacity 0; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_timer_create(ls_timer **out, ls_runtime *runtime,
                                       size_t capacity);
/* Errors: LS_ESTATE: it is running already. */
LS_MUST_USE LS_API int ls_timer_start(ls_timer *timer);
/* units: what was done meanwhile, >= 0.
 * Errors: LS_ESTATE: it is not running; LS_EINVAL units, and it runs on. */
LS_MUST_USE LS_API int ls_timer_stop(ls_timer *timer, double units);
LS_API void ls_timer_summary(const ls_timer *timer,
                             struct ls_timer_summary *out);
/* Copy up to `capacity` of the times behind the mean, in seconds, the oldest
 * first. Returns how many there are. */
LS_API size_t ls_timer_values(const ls_timer *timer, double *out_s,
                              size_t capacity);
LS_API void ls_timer_destroy(ls_timer **timer);

#ifdef __cplusplus
}
#endif

#endif
