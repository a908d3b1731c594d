/* tally.h - figures over many batches of different sizes, and many ranks.
 * Thread: serial. */
#ifndef LOCKSTEP_DRIVER_TALLY_H
#define LOCKSTEP_DRIVER_TALLY_H

#include "lockstep/codec.h"
#include "lockstep/learner_info.h"

#define TALLY_NAME_MAX 63

struct tally {
    size_t n;
    struct tally_item {
        char name[TALLY_NAME_MAX + 1];
        double value;  /* a sum; of min_ and max_ that */
        double weight; /* samples in it */
    } items[LS_LEARNER_INFO_MAX];
};

/* Add the figures of a batch of n samples; NaNs are left out.
 * Errors: LS_ELIMIT too many names, or one that is too long. */
int tally_add(struct tally *tally, const ls_learner_info *figures, size_t n);
void tally_write(const struct tally *tally, ls_writer *out);
/* Add what another one wrote. Errors: LS_EPROTO, LS_ELIMIT. */
int tally_merge(struct tally *tally, const ls_value *other);
double tally_get(const struct tally *tally, const char *name);

#endif
