#include "clock_fit.h"

#include <math.h>
#include <stdlib.h>

#include "sum.h"

#define DRIFT_MAX 500e-6
/* Times are whole numbers of ns on both sides. */
#define ROUNDING_NS  2.0
#define SLACK_MIN_NS 100.0
#define SLACK_MAX_NS 3.6e12

struct polygon {
    struct clock_corner *corners; /* own */
    size_t n;
};

/* By how much a line keeps a bound; negative: it does not. */
static double room(const struct clock_fit *fit, const struct clock_bound *bound,
                   struct clock_corner line, double slack)
{
    const double x = (double)difference_of(bound->here, fit->from);
    const double y = (double)difference_of(
        difference_of(bound->there, bound->here), fit->offset);
    const double above = y - line.a - line.b * x;
    return (bound->most ? above : -above) + ROUNDING_NS + slack;
}

/* Of the convex polygon, what keeps the bound. `to` has room for one more. */
static size_t cut(const struct clock_fit *fit, const struct clock_bound *bound,
                  double slack, const struct polygon *from,
                  struct clock_corner *to)
{
    size_t n = 0;
    for (size_t i = 0; i < from->n; i++) {
        const struct clock_corner p = from->corners[i];
        const struct clock_corner q = from->corners[(i + 1) % from->n];
        const double at_p = room(fit, bound, p, slack);
        const double at_q = room(fit, bound, q, slack);
        if (at_p >= 0)
            to[n++] = p;
        if ((at_p >= 0) != (at_q >= 0)) {
            const double part = at_p / (at_p - at_q);
            to[n++] = (struct clock_corner){p.a + part * (q.a - p.a),
                                            p.b + part * (q.b - p.b)};
        }
    }
    return n;
}

/* All lines that are slow enough and keep each bound by itself for some drift:
 * a rectangle. Returns how many corners; 0: there is none. */
static size_t rectangle(const struct clock_fit *fit,
                        const struct clock_bound *bounds, size_t n,
                        double slack, struct clock_corner *to)
{
    double low = -INFINITY, high = INFINITY;
    for (size_t i = 0; i < n; i++) {
        const struct clock_corner steepest = {
            0.0, (bounds[i].most == (bounds[i].here > fit->from)) ? -DRIFT_MAX
                                                                  : DRIFT_MAX};
        const double left = room(fit, &bounds[i], steepest, slack);
        if (bounds[i].most)
            high = fmin(high, left);
        else
            low = fmax(low, -left);
    }
    if (low > high)
        return 0;
    to[0] = (struct clock_corner){low, -DRIFT_MAX};
    to[1] = (struct clock_corner){high, -DRIFT_MAX};
    to[2] = (struct clock_corner){high, DRIFT_MAX};
    to[3] = (struct clock_corner){low, DRIFT_MAX};
    return 4;
}

/* The possible lines into `out`, which has room for n + 4, as has `spare`. */
static size_t possible(const struct clock_fit *fit,
                       const struct clock_bound *bounds, size_t n, double slack,
                       struct clock_corner *out, struct clock_corner *spare)
{
    struct polygon now = {out, rectangle(fit, bounds, n, slack, out)};
    struct clock_corner *next = spare;
    for (size_t i = 0; i < n && now.n > 0; i++) {
        struct clock_corner *const free_again = now.corners;
        now.n = cut(fit, &bounds[i], slack, &now, next);
        now.corners = next;
        next = free_again;
    }
    for (size_t i = 0; i < now.n; i++)
        out[i] = now.corners[i];
    return now.n;
}

static void range_at(const struct clock_fit *fit, double x, double *low,
                     double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < fit->n_corners; i++) {
        const double y = fit->corners[i].a + fit->corners[i].b * x;
        *low = fmin(*low, y);
        *high = fmax(*high, y);
    }
}

/* The middle of the possible drifts, through the middle of what is possible
 * amid the observations. */
static struct clock_corner middle(const struct clock_fit *fit)
{
    double low, high, slowest = INFINITY, fastest = -INFINITY;
    range_at(fit, 0.0, &low, &high);
    for (size_t i = 0; i < fit->n_corners; i++) {
        slowest = fmin(slowest, fit->corners[i].b);
        fastest = fmax(fastest, fit->corners[i].b);
    }
    return (struct clock_corner){(low + high) / 2, (slowest + fastest) / 2};
}

/* Where the numbers are small: amid the bounds. */
static int place(struct clock_fit *fit, const struct clock_bound *bounds,
                 size_t n)
{
    size_t n_most = 0;
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        n_most += bounds[i].most;
        first = bounds[i].here < first ? bounds[i].here : first;
        last = bounds[i].here > last ? bounds[i].here : last;
    }
    if (n_most == 0 || n_most == n)
        return LS_ENOENT;
    fit->from = first / 2 + last / 2;
    fit->offset = difference_of(bounds[0].there, bounds[0].here);
    return LS_OK;
}

int clock_fit(struct clock_fit *out, const struct clock_bound *bounds, size_t n)
{
    struct clock_fit fit = {.slack_ns = 0};
    if (place(&fit, bounds, n) != LS_OK)
        return ls_error(LS_ENOENT, "nothing says how the clocks compare");
    fit.corners = calloc(n + 4, sizeof *fit.corners);
    struct clock_corner *spare = calloc(n + 4, sizeof *spare);
    while (fit.corners != NULL && spare != NULL &&
           fit.slack_ns < SLACK_MAX_NS &&
           (fit.n_corners = possible(&fit, bounds, n, fit.slack_ns, fit.corners,
                                     spare)) == 0)
        fit.slack_ns = fmax(SLACK_MIN_NS, 2 * fit.slack_ns);
    const bool no_memory = fit.corners == NULL || spare == NULL;
    free(spare);
    if (fit.n_corners == 0) {
        free(fit.corners);
        return no_memory
                   ? ls_error(LS_ENOMEM, "no memory to compare clocks")
                   : ls_error(LS_EMISMATCH, "the clocks contradict each other");
    }
    fit.line = middle(&fit);
    *out = fit;
    return LS_OK;
}

void clock_fit_clear(struct clock_fit *fit)
{
    free(fit->corners);
    *fit = (struct clock_fit){.corners = NULL};
}

int64_t clock_fit_there(const struct clock_fit *fit, int64_t here)
{
    const double x = (double)difference_of(here, fit->from);
    return sum_of(sum_of(here, fit->offset),
                  whole_of(fit->line.a + fit->line.b * x));
}

int64_t clock_fit_here(const struct clock_fit *fit, int64_t there)
{
    const double y =
        (double)difference_of(difference_of(there, fit->offset), fit->from) -
        fit->line.a;
    return sum_of(fit->from, whole_of(y / (1.0 + fit->line.b)));
}

double clock_fit_error(const struct clock_fit *fit, int64_t here)
{
    if (fit->n_corners == 0)
        return 0.0;
    const double x = (double)difference_of(here, fit->from);
    const double y = fit->line.a + fit->line.b * x;
    double low, high;
    range_at(fit, x, &low, &high);
    return fmax(high - y, y - low) + ROUNDING_NS;
}
