#include "lockstep/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ls_window {
    size_t capacity;
    uint64_t count;
    double *values; /* own; the nth value pushed is at n % capacity */
    double *sorted; /* own; scratch of a summary, so that it cannot fail */
};

static const double quantile_levels[] = {0.0, 0.1, 0.5, 0.9, 1.0};

int ls_window_create(ls_window **out, size_t capacity)
{
    *out = NULL;
    if (capacity == 0)
        return ls_error(LS_EINVAL, "window: capacity must be at least 1");
    ls_window *window = calloc(1, sizeof *window);
    if (window == NULL)
        return ls_error(LS_ENOMEM, "no memory for a window");
    window->capacity = capacity;
    window->values = calloc(capacity, sizeof *window->values);
    window->sorted = calloc(capacity, sizeof *window->sorted);
    if (window->values == NULL || window->sorted == NULL) {
        ls_window_destroy(&window);
        return ls_error(LS_ENOMEM, "no memory for a window of %zu values",
                        capacity);
    }
    *out = window;
    return LS_OK;
}

void ls_window_push(ls_window *window, double value)
{
    window->values[window->count++ % window->capacity] = value;
}

static size_t held_by(uint64_t count, size_t capacity)
{
    return count < capacity ? (size_t)count : capacity;
}

/* A total order: NaN is behind all others. */
static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    if (isnan(a) || isnan(b))
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a > b) - (a < b);
}

static double mean_of(const double *values, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

/* In two passes: a sum of squares would lose the digits of small deviations
 * from a large mean. */
static double std_of(const double *values, size_t n, double mean)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (double)n);
}

static double quantile_of(const double *sorted, size_t n, double level)
{
    const double position = level * (double)(n - 1);
    const size_t below = (size_t)position;
    const double part = position - (double)below;
    const double low = sorted[below];
    if (part == 0.0 || low == sorted[below + 1]) /* two infinities, too */
        return low;
    /* From the nearer end, so that rounding never leads past the other. */
    const double high = sorted[below + 1];
    return part < 0.5 ? low + (high - low) * part
                      : high - (high - low) * (1.0 - part);
}

void ls_window_summary(const ls_window *window, struct ls_window_summary *out)
{
    const size_t held = held_by(window->count, window->capacity);
    *out = (struct ls_window_summary){
        .count = window->count, .held = held, .mean = NAN, .std = NAN};
    const size_t n_levels = sizeof quantile_levels / sizeof *quantile_levels;
    if (held > 0) {
        memcpy(window->sorted, window->values, held * sizeof *window->sorted);
        qsort(window->sorted, held, sizeof *window->sorted, compare_doubles);
        out->mean = mean_of(window->sorted, held);
        out->std = std_of(window->sorted, held, out->mean);
    }
    for (size_t i = 0; i < n_levels; i++)
        out->quantiles[i] =
            held > 0 ? quantile_of(window->sorted, held, quantile_levels[i])
                     : NAN;
}

size_t ls_window_values(const ls_window *window, double *out, size_t capacity)
{
    const size_t held = held_by(window->count, window->capacity);
    for (size_t i = 0; i < held && i < capacity; i++)
        out[i] = window->values[(window->count - held + i) % window->capacity];
    return held;
}

void ls_window_destroy(ls_window **window)
{
    if (window == NULL || *window == NULL)
        return;
    free((*window)->values);
    free((*window)->sorted);
    free(*window);
    *window = NULL;
}

struct timer_run {
    int64_t ns;
    double units;
};

struct ls_timer {
    ls_runtime *runtime; /* borrow */
    size_t capacity;
    uint64_t count;
    bool running;
    int64_t started;
    struct timer_run *runs; /* own; the nth run is at n % capacity */
};

int ls_timer_create(ls_timer **out, ls_runtime *runtime, size_t capacity)
{
    *out = NULL;
    if (capacity == 0)
        return ls_error(LS_EINVAL, "timer: capacity must be at least 1");
    ls_timer *timer = calloc(1, sizeof *timer);
    if (timer == NULL)
        return ls_error(LS_ENOMEM, "no memory for a timer");
    timer->runtime = runtime;
    timer->capacity = capacity;
    timer->runs = calloc(capacity, sizeof *timer->runs);
    if (timer->runs == NULL) {
        ls_timer_destroy(&timer);
        return ls_error(LS_ENOMEM, "no memory for a timer of %zu runs",
                        capacity);
    }
    *out = timer;
    return LS_OK;
}

int ls_timer_start(ls_timer *timer)
{
    if (timer->running)
        return ls_error(LS_ESTATE, "timer: it is running: stop it first");
    timer->running = true;
    timer->started = ls_now(timer->runtime);
    return LS_OK;
}

int ls_timer_stop(ls_timer *timer, double units)
{
    const int64_t now = ls_now(timer->runtime);
    if (!timer->running)
        return ls_error(LS_ESTATE, "timer: it is not running: start it first");
    if (!(units >= 0.0))
        return ls_error(LS_EINVAL, "timer: units must be at least 0, not %g",
                        units);
    timer->running = false;
    timer->runs[timer->count++ % timer->capacity] =
        (struct timer_run){.ns = now - timer->started, .units = units};
    return LS_OK;
}

void ls_timer_summary(const ls_timer *timer, struct ls_timer_summary *out)
{
    const size_t held = held_by(timer->count, timer->capacity);
    int64_t ns = 0;
    double units = 0.0;
    for (size_t i = 0; i < held; i++) {
        ns += timer->runs[i].ns;
        units += timer->runs[i].units;
    }
    const double seconds = (double)ns / (double)LS_NS_PER_S;
    *out = (struct ls_timer_summary){
        .count = timer->count,
        .mean_s = held > 0 ? seconds / (double)held : 0.0,
        .throughput = ns > 0 ? units / seconds : 0.0,
    };
}

size_t ls_timer_values(const ls_timer *timer, double *out_s, size_t capacity)
{
    const size_t held = held_by(timer->count, timer->capacity);
    for (size_t i = 0; i < held && i < capacity; i++) {
        const uint64_t run = timer->count - held + i;
        out_s[i] =
            (double)timer->runs[run % timer->capacity].ns / (double)LS_NS_PER_S;
    }
    return held;
}

void ls_timer_destroy(ls_timer **timer)
{
    if (timer == NULL || *timer == NULL)
        return;
    free((*timer)->runs);
    free(*timer);
    *timer = NULL;
}
