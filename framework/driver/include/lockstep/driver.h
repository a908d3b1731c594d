/* driver.h - what a trainer needs from the place it runs on: one interface for
 * a single process, threads, and many processes on the bus.
 *
 * ls_driver_run() calls a function once for each rank, with that rank's driver:
 *
 *   single   one rank, on the calling thread
 *   threads  n ranks, each on a thread of this process
 *   bus      the rank of this node; every node of the world calls it
 *   group    the rank of a group that exists (lockstep/group.h)
 *
 * The function is the same on all four. What ranks do together is a collective
 * of their group: it ends alike in all of them. A rank that fails leaves the
 * group, so that no other waits for it: those fail with LS_EABORTED, and the
 * first cause is reported once. It fails when the function returns: so return
 * at once what fails here, LS_ENOMEM too, with which a rank may not have come
 * to the collective that the others wait in. What takes all ranks returns
 * LS_ESTATE in a section that runs without them (ls_driver_without_sync()).
 * Thread: the rank's; a driver is used by its rank alone.
 * Source: docs/driver.md. */
#ifndef LOCKSTEP_DRIVER_H
#define LOCKSTEP_DRIVER_H

#include "lockstep/checkpoint.h"
#include "lockstep/group.h"
#include "lockstep/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's view. */
typedef struct ls_driver ls_driver;

enum ls_driver_kind {
    LS_DRIVER_SINGLE,
    LS_DRIVER_THREADS,
    LS_DRIVER_BUS,
    LS_DRIVER_GROUP
};
/* "single", "threads", "bus", "group"; NULL: there is no such kind. */
LS_API const char *ls_driver_kind_name(enum ls_driver_kind kind);

struct ls_driver_options {
    enum ls_driver_kind kind;
    uint32_t n_threads; /* threads: the number of ranks */
    ls_node *node;   /* bus: created, and not yet started; the driver starts it,
                      * forms a group of all nodes of its world, and stops it at
                      * the end. Borrow */
    ls_group *group; /* group: formed. Borrow */
    ls_runtime *runtime; /* NULL: the node's, else ls_runtime_threads() */
    uint64_t seed;       /* the same in all ranks; all that is random follows
                          * from it */
    int timeout_ms;      /* of each collective; 0: 60000 */
    /* A file for the report of the first cause, one line of JSON; replaced if
     * it exists, but for a link, as /dev/stderr is one. NULL: no report.
     * Borrow: until the run returns. */
    const char *report;
};

/* Returns LS_OK or an error, which ends the run on all ranks. */
typedef int ls_driver_fn(void *self, ls_driver *driver);

/* Call fn(self, driver) for each rank that is here, and return when all have
 * returned.
 * Errors: LS_EINVAL the kind, or what it needs; what fn returned in the rank
 *         that failed first, with its rank in the text; in another process:
 *         LS_EABORTED or LS_ELOST, which name that rank; those of
 *         ls_node_start() and ls_group_form(); LS_ENOMEM; LS_EAGAIN no room for
 *         a thread. */
LS_MUST_USE LS_API int ls_driver_run(const struct ls_driver_options *options,
                                     ls_driver_fn *fn, void *self);

/* ---- who and where ----------------------------------------------------- */

LS_API enum ls_driver_kind ls_driver_kind_of(const ls_driver *driver);
LS_API uint32_t ls_driver_rank(const ls_driver *driver);
LS_API uint32_t ls_driver_size(const ls_driver *driver); /* ranks */
/* Among the ranks of this host. */
LS_API uint32_t ls_driver_local_rank(const ls_driver *driver);
LS_API ls_group *ls_driver_group(const ls_driver *driver); /* borrow */
LS_API ls_runtime *ls_driver_runtime(const ls_driver *driver);
LS_API uint64_t ls_driver_seed(const ls_driver *driver);
/* A generator of this rank's own, which follows from the seed and the rank. It
 * is saved and loaded with checkpoints. Borrow. */
LS_API struct ls_rng *ls_driver_random(ls_driver *driver);

/* ---- what all ranks do together ---------------------------------------- */

/* How much is left out in a section (ls_driver_without_sync()). */
enum ls_sync_off {
    LS_NO_BARRIER = 1, /* barriers return at once */
    LS_NO_EXCHANGE     /* and broadcasts and gathers have this rank alone */
};

/* Nobody returns before all have called it. Errors: those of a collective, here
 * and below. */
LS_MUST_USE LS_API int ls_driver_barrier(ls_driver *driver);
/* As ls_group_broadcast_object(). Under LS_NO_EXCHANGE *out is NULL, in the
 * root too: whoever runs a section alone knows its values. */
LS_MUST_USE LS_API int ls_driver_broadcast_object(ls_driver *driver,
                                                  ls_writer *value,
                                                  uint32_t root,
                                                  ls_document **out);
/* As ls_group_all_gather_object(): a document for each rank, and their number.
 * out: room for ls_driver_size(). Under LS_NO_EXCHANGE: this rank's alone. */
LS_MUST_USE LS_API int ls_driver_all_gather_object(ls_driver *driver,
                                                   ls_writer *value,
                                                   ls_document **out,
                                                   size_t *n);
/* Whether any rank says yes, in all ranks. Also a barrier. Under
 * LS_NO_EXCHANGE: whether this one does. */
LS_MUST_USE LS_API int ls_driver_any(ls_driver *driver, bool yes, bool *any);

/* Call fn with this much left out. However it returns, things are then as they
 * were before, in nested sections too. Returns what fn does. */
LS_MUST_USE LS_API int ls_driver_without_sync(ls_driver *driver,
                                              enum ls_sync_off off,
                                              ls_driver_fn *fn, void *self);
/* Call fn in rank 0 alone, under LS_NO_EXCHANGE. All ranks call this, and leave
 * it together, however fn ends.
 * Errors: in rank 0 what fn returns; elsewhere then LS_EABORTED, with rank 0's
 *         text, and its status as ls_error_cause(). */
LS_MUST_USE LS_API int ls_driver_rank_zero(ls_driver *driver, ls_driver_fn *fn,
                                           void *self);

/* ---- the model --------------------------------------------------------- */

struct ls_driver_setup {
    const struct ls_model_ops *model;      /* copied */
    void *config;                          /* of the model. Borrow */
    const struct ls_optimiser *optimisers; /* borrow: until it returns */
    size_t n_optimisers;
    const char *device;      /* where the model computes; NULL: "cpu" */
    const char *data_device; /* where batches are moved to; NULL: device */
};

/* Make the model and its optimisers. All ranks call it, and begin with the
 * values of rank 0. Once; after an error of ls_device_open(), again.
 * Errors: LS_ESTATE there is a model; LS_EINVAL a parameter's name or form, or
 *         it is listed twice; an optimiser has none, or one that does not
 *         exist or has another; LS_ELIMIT too many parameters or slots; what
 *         the model returns; those of ls_device_open() and of a collective;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_driver_setup(ls_driver *driver,
                                       const struct ls_driver_setup *setup);

/* The model's state, as it was made: nothing is wrapped around it. NULL: there
 * is none. Borrow. */
LS_API void *ls_driver_model(const ls_driver *driver);
/* Its parameters. Borrow. */
LS_API const struct ls_parameter *ls_driver_parameters(const ls_driver *driver,
                                                       size_t *n);

/* Without a model, what follows is LS_ESTATE. */

LS_MUST_USE LS_API int ls_driver_set_mode(ls_driver *driver, enum ls_mode mode);
LS_MUST_USE LS_API int ls_driver_train(ls_driver *driver,
                                       const struct ls_batch *batch,
                                       ls_learner_info *figures);
/* Errors: LS_ENOENT the model has no evaluate(); what it returns. */
LS_MUST_USE LS_API int ls_driver_evaluate(ls_driver *driver,
                                          const struct ls_batch *batch,
                                          ls_learner_info *figures);
/* Add scale × the gradients of the last batch; then, with `sync`, make them the
 * mean over all ranks. Without it they only accumulate here, and a later one
 * with it takes them along: so several batches cost one exchange.
 * Errors: what the model returns; those of a collective; LS_ESTATE with `sync`
 *         in a section without the others: nothing was added. */
LS_MUST_USE LS_API int ls_driver_backward(ls_driver *driver, double scale,
                                          bool sync);
/* One step of every optimiser, or of one by its number.
 * Errors: LS_EINVAL there is no such one; what it returns. */
LS_MUST_USE LS_API int ls_driver_step(ls_driver *driver);
LS_MUST_USE LS_API int ls_driver_step_one(ls_driver *driver, size_t at);
/* Set all gradients to zero. */
LS_MUST_USE LS_API int ls_driver_zero_grad(ls_driver *driver);
/* Errors: LS_ENOENT the model has no auto_cast(): a framework without tensors
 *         of its own cannot do it for it. */
LS_MUST_USE LS_API int ls_driver_auto_cast(ls_driver *driver, bool on);

/* Have the batch's items in the memory of the data's device when this returns.
 * Errors: those of ls_device_stack_upload() and ls_device_stack_wait(). */
LS_MUST_USE LS_API int ls_driver_move(ls_driver *driver,
                                      const struct ls_batch *batch);
LS_API ls_device *ls_driver_device(const ls_driver *driver); /* the model's */
LS_API ls_device *ls_driver_data_device(const ls_driver *driver);

/* A number that depends on every bit of all values: equal in ranks that have
 * equal weights. FNV-1a, 64 bits; 0: there is no model. */
LS_API uint64_t ls_driver_hash(const ls_driver *driver);

/* ---- tensors as numbers ------------------------------------------------ */

enum ls_reduce {
    LS_REDUCE_NONE, /* all of them */
    LS_REDUCE_SUM,
    LS_REDUCE_MIN,
    LS_REDUCE_MAX,
    LS_REDUCE_MEAN
};
/* What an array of numbers in host memory comes to: one number, or with
 * LS_REDUCE_NONE all of them. One element is itself, whatever the reduction.
 * data:   of the form, which is not of bytes; read in order; aligned or not.
 * out:    room for `capacity` doubles.
 * n:      how many were written.
 * Errors: LS_EINVAL the form, the reduction, or a minimum, maximum or mean of
 *         nothing; LS_ELIMIT there are more than capacity. */
LS_MUST_USE LS_API int ls_numeric(const struct ls_blob_form *form,
                                  const void *data, enum ls_reduce reduce,
                                  double *out, size_t capacity, size_t *n);

/* ---- saving and loading ------------------------------------------------ */

/* What checkpoints have beside model and optimisers: register before the first
 * save or load. Borrow. */
LS_API ls_blobs *ls_driver_blobs(ls_driver *driver); /* the same in all ranks,
                                                      * in the same order:
                                                      * saved by rank 0, loaded
                                                      * by all */
LS_API ls_blobs *
ls_driver_rank_blobs(ls_driver *driver); /* of each rank: loaded
                                          * when there are as
                                          * many ranks */

/* Where checkpoints go. All ranks call these, and what fails in one rank fails
 * in all: where it failed with its status, elsewhere with LS_EABORTED.
 * folder:    each rank writes to the folder of this name on its host; rank 0
 *            commits. Copied.
 * retention: NULL: the newest alone.
 * Errors: LS_ESTATE one is open; those of ls_checkpoints_open(). */
LS_MUST_USE LS_API int
ls_driver_open_checkpoints(ls_driver *driver, const char *folder,
                           const struct ls_checkpoint_retention *retention);

/* Save all of it as checkpoint `number`, later than any before it: entry
 * "shared" of rank 0, and "rank.N" of each. It exists in whole or not at all.
 * What rank 0's retention removes then goes from the folders of all ranks.
 * stopped: the training has ended.
 * Errors:  LS_ESTATE none is open; LS_EPROTO a rank has written the entry of
 *          another; those of ls_checkpoints_write(), and of
 *          ls_checkpoints_commit(). */
LS_MUST_USE LS_API int ls_driver_save(ls_driver *driver, int64_t number,
                                      bool stopped);

struct ls_driver_loaded {
    int64_t number;     /* LS_CHECKPOINT_NONE: there was none to load */
    bool stopped;       /* as saved */
    bool is_same_ranks; /* there are as many ranks as when it was saved: what
                         * each rank saved was loaded, too */
};
/* Load one, or the newest that is whole in all ranks; later ones are removed by
 * the next save to this folder. Rank 0 reads what is shared and sends it to the
 * others.
 * number: LS_CHECKPOINT_NONE: the newest; none is no error then.
 * Errors: the next save then removes nothing. LS_ESTATE none is open;
 *         LS_ENOENT, LS_EPROTO, LS_EMISMATCH as ls_checkpoints_load(), the
 *         newest that is damaged is passed over, as the log of rank 0 says;
 *         LS_EPROTO also: all are; LS_EMISMATCH also: it is not one of
 *         ls_driver_save(), or the ranks have other blobs. */
LS_MUST_USE LS_API int ls_driver_load(ls_driver *driver, int64_t number,
                                      struct ls_driver_loaded *out);

/* The weights alone, with blobs of ls_driver_blobs() that are named "model.…",
 * in a folder of their own, as a checkpoint with the entry "model"
 * (docs/checkpoints.md): rank 0 writes, and reads and sends them to the
 * others. Each save replaces the one before, but for one whose manifest is
 * damaged: that stays for people, as in any folder of checkpoints. A load also
 * takes the weights of a checkpoint of ls_driver_save().
 * Errors: as above; save: LS_EMISMATCH the folder has other checkpoints; load:
 *         LS_ENOENT there are none. */
LS_MUST_USE LS_API int ls_driver_save_model(ls_driver *driver,
                                            const char *folder);
LS_MUST_USE LS_API int ls_driver_load_model(ls_driver *driver,
                                            const char *folder);

/* ---- failures ---------------------------------------------------------- */

struct ls_exception {
    int status;
    const char *type;     /* its name, "LS_EINVAL" */
    const char *value;    /* what went wrong: `text` without the step */
    char time[32];        /* UTC, "%Y-%m-%d-%H:%M:%S" */
    uint32_t global_rank; /* where it went wrong */
    uint32_t local_rank;
    uint32_t node;    /* the id of its node; of a thread its rank */
    const char *step; /* in which step of the loop; "": in none */
    bool is_first;    /* this rank failed by itself; else because another did */
    char text[LS_ERROR_TEXT_MAX + 64];
};

/* This rank has failed: leave the group, and if it is the first cause, write
 * the report. Whoever returns an error to ls_driver_run() need not call it;
 * only the first call has an effect. The last error of the thread is kept.
 * status: not LS_OK; its text is ls_error_text().
 * step:   may be NULL.
 * out:    may be NULL. */
LS_API void ls_driver_on_exception(ls_driver *driver, int status,
                                   const char *step, struct ls_exception *out);

#ifdef __cplusplus
}
#endif

#endif
