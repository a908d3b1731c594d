/* driver_inside.h - one rank, as the files of this layer see it. */
#ifndef LOCKSTEP_DRIVER_INSIDE_H
#define LOCKSTEP_DRIVER_INSIDE_H

#include "lockstep/driver.h"

#include "trained.h"

/* Where checkpoints go. */
struct driver_saves {
    ls_checkpoints *own;    /* own; this rank's entries; NULL: none is open */
    ls_checkpoints *shared; /* own; rank 0: what is shared, and the commits */
    bool rewinds;           /* the next save removes what is later than … */
    int64_t rewind_to;      /* … this */
};

/* What the ranks of one ls_driver_run() that are in this process share. */
struct driver_run {
    const struct ls_driver_options *options; /* borrow */
    ls_runtime *runtime;
    ls_driver_fn *fn;
    void *self;
    int timeout_ms;
    ls_group **groups; /* borrow; of the ranks that are here */

    ls_mutex mutex;
    struct ls_failure first; /* the cause, or what others passed on */
    bool first_is_a_cause;
    bool first_is_sure; /* and it cannot have been passed on */
};

struct ls_driver {
    struct driver_run *run; /* borrow */
    ls_group *group;        /* borrow */
    uint32_t rank, size, local_rank;
    struct ls_rng random;
    int off; /* 0, or of enum ls_sync_off */
    bool has_failed;
    bool was_told; /* when the ranks last agreed: another had failed */
    ls_device *device, *data_device; /* own; may be the same */
    struct trained trained;
    bool is_ready;                /* the model was made */
    ls_blobs *blobs, *rank_blobs; /* own */
    struct driver_saves saves;
};

/* Streams of the seed: far from those that samplers use, which are epochs. */
#define STREAM_WEIGHTS       UINT64_MAX
#define STREAM_OF_RANK(rank) (UINT64_MAX - 1 - (rank))

/* All ranks say how they fared; what failed in one fails in all. Also a
 * barrier. In the rank that failed its own error; elsewhere LS_EABORTED, which
 * names the lowest that did, with its status as the cause. Under LS_NO_EXCHANGE
 * it is this rank's alone. */
int driver_agree(ls_driver *driver, int status);

/* What needs all ranks cannot be done in a section that runs without them.
 * Errors: LS_ESTATE. */
int driver_need_all(const ls_driver *driver);

/* As ls_driver_backward(). stop, if not NULL, with sync: in, whether this rank
 * wishes to stop; out, whether any does. */
int driver_backward(ls_driver *driver, double scale, bool sync, bool *stop);

/* Whether there is nothing where checkpoints were opened, damaged or not; all
 * ranks ask. */
int driver_is_empty(ls_driver *driver, bool *out);
void driver_close_checkpoints(ls_driver *driver);

/* Those of the setup, if there are any. */
void driver_close_devices(ls_driver *driver);

#endif
