/* path.h - what happens to a frame on its way from one host to another. Each
 * direction between two hosts is a path of its own, with random numbers of its
 * own: the fate of its n-th frame does not depend on the other paths. */
#ifndef TAPSWITCH_PATH_H
#define TAPSWITCH_PATH_H

#include <stdbool.h>

#include <lockstep/random.h>

#define PATH_COPIES_MAX 2

struct path {
    int64_t delay_ns;
    int64_t jitter_ns; /* added: even in -jitter_ns … jitter_ns */
    double loss;       /* 0 … 1 */
    double duplicate;  /* 0 … 1: comes twice */
    double reorder; /* 0 … 1: is held back, so that later ones overtake it */
    bool cut;
    int64_t last_due; /* of those that keep their order */
    struct ls_rng random;
};

enum path_fate {
    PATH_PASSES,
    PATH_PASSES_TWICE,
    PATH_PASSES_LATE, /* it is one of those that are held back */
    PATH_LOSES,
    PATH_IS_CUT
};

/* When a frame that is sent now comes out: as many of due as come, which is 0,
 * 1 or 2 of them. */
enum path_fate path_send(struct path *path, int64_t now,
                         int64_t due[PATH_COPIES_MAX]);

#endif
