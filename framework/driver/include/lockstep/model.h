/* model.h - what a trainer is given: a model, optimisers, data.
 *
 * They are tables of functions; the framework allocates what they keep. The
 * numbers that are trained are in memory of the driver's (lockstep/driver.h):
 * so it adds up gradients over ranks, sets them to zero, and saves and loads
 * weights and optimisers, without a function of yours.
 *
 * Functions that return int return LS_OK, or a negative status with a sentence
 * left by ls_error().
 * Thread: the rank's. */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/blobs.h"
#include "lockstep/device.h"
#include "lockstep/learner_info.h"
#include "lockstep/random.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parameters -------------------------------------------------------- */

/* The longest name, in bytes without the NUL. */
#define LS_PARAMETER_NAME_MAX 63
/* The most parameters of a model. */
#define LS_PARAMETERS_MAX 192

/* An array that is trained. */
struct ls_parameter {
    char name[LS_PARAMETER_NAME_MAX + 1]; /* of [A-Za-z0-9._@~-]; unique */
    struct ls_blob_form form; /* F32 or F64, the same for the whole model */
    void *value;              /* in host memory; zero at first */
    void *gradient;           /* as long as value */
};

/* Numbers of its form. */
LS_API size_t ls_parameter_count(const struct ls_parameter *parameter);

/* ---- models ------------------------------------------------------------ */

/* What a model works on. Borrow: for the call. */
struct ls_batch {
    size_t n;                /* samples */
    const uint64_t *indices; /* n, in the data set */
    const void *items;       /* n × item_bytes, in host memory */
    size_t bytes;            /* n × item_bytes */
    ls_device_stack *stack;  /* items is its host buffer, and is in the memory
                              * of the data's device, too */
};

enum ls_mode { LS_MODE_TRAIN, LS_MODE_EVALUATE };

struct ls_model_setup {
    void *config;           /* borrow: as long as the model */
    ls_device *device;      /* where the model computes. Borrow, alike */
    ls_device *data_device; /* where batches are moved to */
    uint64_t seed;          /* the same in all ranks */
    uint32_t rank, ranks;
    struct ls_rng *random; /* of this rank alone; saved and loaded. Borrow,
                            * alike */
    ls_blobs *blobs;       /* for other state that is the same in all ranks:
                            * saved by rank 0, loaded by all */
    ls_blobs *rank_blobs;  /* for state of this rank: saved by each, and
                            * loaded when the number of ranks is the same */
};

struct ls_model_ops {
    const char *name; /* static text, for messages */
    size_t state_bytes;
    /* Everything but the parameters. NULL: nothing to do. */
    int (*init)(void *model, const struct ls_model_setup *setup);
    void (*fini)(void *model); /* NULL: nothing to do */
    /* Name and form of parameter `at`, from 0; false: there are not so many.
     * Called after init. */
    bool (*parameter)(const void *model, size_t at, struct ls_parameter *out);
    /* Keep the parameters and write their first values.
     * parameters: in order of `at`. Borrow: as long as the model.
     * random:     the same in all ranks. */
    int (*begin)(void *model, const struct ls_parameter *parameters,
                 struct ls_rng *random);
    /* Compute the loss and other figures of a batch, and keep what backward()
     * needs. figures: empty. */
    int (*train)(void *model, const struct ls_batch *batch,
                 ls_learner_info *figures);
    /* Add scale × the gradients of the mean loss of that batch. */
    int (*backward)(void *model, double scale);
    /* Figures alone: each a mean over the batch, with a name of at most 63
     * bytes. NULL: it is never evaluated. */
    int (*evaluate)(void *model, const struct ls_batch *batch,
                    ls_learner_info *figures);
    /* What follows is training, or evaluating: for parts that differ, such as
     * dropout. NULL: none does. */
    int (*set_mode)(void *model, enum ls_mode mode);
    /* Compute in lower precision from now on, or no longer. NULL: it cannot. */
    int (*auto_cast)(void *model, bool on);
};

/* ---- optimisers -------------------------------------------------------- */

/* The most arrays that an optimiser keeps for each parameter. */
#define LS_SLOTS_MAX 4

struct ls_optimiser_ops {
    const char *name; /* static text, for messages */
    size_t n_slots;   /* arrays kept for each parameter, as long as it and of
                       * its type, zero at first: momentum, variance … They are
                       * saved and loaded. At most LS_SLOTS_MAX */
    /* Change the values of one parameter by its gradient.
     * config: as given to the driver; it may change between steps.
     * slots:  n_slots of them.
     * step:   1 in the first step; saved and loaded. */
    int (*step)(void *config, const struct ls_parameter *parameter,
                void *const *slots, uint64_t step);
};

/* One that is used. */
struct ls_optimiser {
    const struct ls_optimiser_ops *ops; /* borrow: until the last step */
    void *config;                       /* borrow, alike */
    const char *name; /* of its state in checkpoints; unique; of the characters
                       * and length of a parameter's. NULL: the ops' */
    /* Which parameters: names, ended by NULL. NULL: all that no other one
     * takes. Borrow: until the setup returns. */
    const char *const *parameters;
};

/* ---- data -------------------------------------------------------------- */

struct ls_data {
    uint64_t length;   /* samples */
    size_t item_bytes; /* of a sample; at least 1 */
    /* Write n samples, one after the other. */
    int (*load)(void *self, const uint64_t *indices, size_t n, void *items);
    void *self; /* borrow */
};

#ifdef __cplusplus
}
#endif

#endif
