/* trainer.h - the loop that trains: epochs of batches, evaluations, callbacks
 * and checkpoints, alike on one rank and on many.
 *
 *     before_training
 *     for each epoch:
 *         before_epoch
 *         for each batch: before_batch, train, backward;
 *             after the last of `accumulate`: before_step, step
 *             after_batch
 *         evaluate: before_evaluation … after_evaluation
 *         after_epoch
 *     after_training
 *
 * Every rank runs the loop. All wait for each other before and after the
 * training, and after each evaluation and epoch; gradients are means over all
 * ranks, so the weights are equal in all of them, to the bit.
 *
 * An error in one rank ends the training in all: on_exception is called once in
 * each, and tells whose error it was. Stopping early is no error.
 *
 * What a checkpoint is loaded into goes on as if nothing had happened: with the
 * same number of ranks the weights come out equal, to the bit.
 * Thread: the rank's. */
#ifndef LOCKSTEP_TRAINER_H
#define LOCKSTEP_TRAINER_H

#include "lockstep/driver.h"
#include "lockstep/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_trainer ls_trainer;

/* Returns LS_OK or an error, which ends the training. */
typedef int ls_trainer_fn(void *self, ls_trainer *trainer);

/* Each may be NULL. Called in every rank; those of several tables in order. */
struct ls_trainer_callbacks {
    const char *name; /* static text, for messages */
    ls_trainer_fn *before_training;
    ls_trainer_fn *after_training; /* also when it was stopped early */
    ls_trainer_fn *before_epoch;   /* also of one that is resumed midway,
                                    * or behind its last batch */
    ls_trainer_fn *after_epoch;
    ls_trainer_fn *before_batch;
    ls_trainer_fn *before_step; /* gradients are means over all ranks */
    ls_trainer_fn *after_batch; /* ls_trainer_figures() */
    ls_trainer_fn *before_evaluation;
    ls_trainer_fn *after_evaluation; /* ls_trainer_evaluation() */
    ls_trainer_fn *on_save;          /* before it: blobs are to be up to date */
    ls_trainer_fn *on_load;          /* after it, if there was anything */
    void (*on_exception)(void *self, ls_trainer *trainer,
                         const struct ls_exception *what);
    void *self;
};

struct ls_trainer_options {
    const struct ls_data *data;       /* borrow */
    const struct ls_data *evaluation; /* NULL: there is none. Borrow */
    uint64_t epochs;                  /* in all, also over several lives */
    uint32_t batch_size;              /* of a rank; 0: 1 */
    uint32_t evaluation_batch_size;   /* 0: batch_size */
    uint32_t accumulate; /* batches for each step; 0: 1. Gradients of each count
                          * 1/accumulate, and go to the other ranks once */
    uint32_t evaluate_every; /* epochs; 0: 1 */
    enum ls_spread spread;   /* of the data: LS_SPREAD_PAD or LS_SPREAD_CUT;
                              * evaluation is always exact */
    bool in_order;           /* no shuffling */
    bool drop_last;

    const char *folder; /* of checkpoints; NULL: none. One is written after each
                         * epoch, and when the training is stopped */
    struct ls_checkpoint_retention retention; /* all zero: every one is kept */
    uint64_t save_every; /* steps: also after every so many; 0: not */
    bool resume;         /* go on from the newest, if there is any */

    /* A file for the figures (lockstep/metrics.h): "train.NAME" of each rank's
     * last batch at each step, "evaluation.NAME" of all. Written with each
     * checkpoint and epoch. NULL: none. */
    const char *metrics;

    const struct ls_trainer_callbacks *callbacks; /* borrow */
    size_t n_callbacks;
};

struct ls_trainer_result {
    uint64_t epochs; /* ended, in all lives */
    uint64_t steps;  /* of the optimisers, in all lives */
    bool stopped;    /* early */
};

/* Train. After ls_driver_setup(). All ranks call it with the same options. A
 * training that was stopped early is not resumed: it ends at once.
 * out:    may be NULL; written after an error, too.
 * Errors: LS_ESTATE there is no model, or, with a folder, the driver's
 *         checkpoints are open: without one they stay so; LS_EINVAL no data, no
 *         epochs, no batch in an epoch, or spread; LS_EEXIST the folder has
 *         checkpoints, and resume is not set, or this driver trains; what a
 *         callback, the model, an optimiser or the data returns, with epoch and
 *         batch in the text; those of collectives and checkpoints; LS_ELIMIT
 *         the figures of an evaluation have more than LS_LEARNER_INFO_MAX names
 *         in all, or one of more than 63 bytes; those of ls_metrics_add();
 *         LS_EPROTO a checkpoint, or what another rank says, is none of a
 *         trainer. */
LS_MUST_USE LS_API int ls_trainer_run(ls_driver *driver,
                                      const struct ls_trainer_options *options,
                                      struct ls_trainer_result *out);

/* ---- in callbacks ------------------------------------------------------ */

LS_API ls_driver *ls_trainer_driver(const ls_trainer *trainer);
LS_API uint64_t ls_trainer_epoch(const ls_trainer *trainer); /* from 0 */
LS_API uint64_t ls_trainer_steps(const ls_trainer *trainer);
/* Which batch of the epoch this is, from 0; behind the last one as many as
 * there are. And how many there are. */
LS_API uint64_t ls_trainer_batch(const ls_trainer *trainer);
LS_API uint64_t ls_trainer_batches(const ls_trainer *trainer);
/* Of the last batch of this rank. Borrow. */
LS_API const ls_learner_info *ls_trainer_figures(const ls_trainer *trainer);
/* A figure of the last evaluation: its mean over all samples, in all ranks; of
 * "min_…" and "max_…" the least and the greatest. NaN: there is none. */
LS_API double ls_trainer_evaluation(const ls_trainer *trainer,
                                    const char *name);
/* End the training soon, in all ranks at the same point: after the next step,
 * or at the end of the epoch. It is enough that one rank says so. */
LS_API void ls_trainer_stop(ls_trainer *trainer);

#ifdef __cplusplus
}
#endif

#endif
