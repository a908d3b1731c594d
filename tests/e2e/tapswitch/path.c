#include "path.h"

static bool happens(struct path *path, double probability)
{
    return ls_rng_double(&path->random) < probability;
}

static int64_t draw_due(struct path *path, int64_t now)
{
    const double jitter = 2 * ls_rng_double(&path->random) - 1;
    const int64_t due =
        now + path->delay_ns + (int64_t)(jitter * (double)path->jitter_ns);
    return due < now ? now : due;
}

/* As in a cable, jitter alone changes no order. */
static int64_t in_order(struct path *path, int64_t due)
{
    if (due < path->last_due)
        due = path->last_due;
    path->last_due = due;
    return due;
}

enum path_fate path_send(struct path *path, int64_t now,
                         int64_t due[PATH_COPIES_MAX])
{
    const bool lost = happens(path, path->loss);
    const bool twice = happens(path, path->duplicate);
    const bool late = happens(path, path->reorder);
    due[0] = draw_due(path, now);
    if (path->cut)
        return PATH_IS_CUT;
    if (lost)
        return PATH_LOSES;
    if (late) {
        due[0] += path->delay_ns + path->jitter_ns;
        return PATH_PASSES_LATE;
    }
    due[0] = due[1] = in_order(path, due[0]);
    return twice ? PATH_PASSES_TWICE : PATH_PASSES;
}
