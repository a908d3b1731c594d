/* trained.h - a model with the memory of its parameters, and its optimisers
 * with theirs. Thread: the rank's. */
#ifndef LOCKSTEP_DRIVER_TRAINED_H
#define LOCKSTEP_DRIVER_TRAINED_H

#include "lockstep/driver.h"

struct trained_optimiser {
    const struct ls_optimiser_ops *ops; /* borrow */
    void *config;                       /* borrow */
    char name[LS_PARAMETER_NAME_MAX + 1];
    size_t members[LS_PARAMETERS_MAX]; /* numbers of its parameters */
    size_t n;
    size_t count;  /* numbers of all of them */
    void *slots;   /* own; n_slots × count */
    uint64_t step; /* how many were made */
};

struct trained {
    const struct ls_model_ops *ops; /* `copy`; NULL: there is none */
    struct ls_model_ops copy;       /* fini() outlives the user's function */
    void *state;                    /* own */
    bool is_init;
    struct ls_parameter *parameters; /* own */
    size_t n;
    size_t count;           /* numbers of all parameters */
    enum ls_blob_type type; /* of all of them */
    ls_group *group;        /* borrow: whose memory it is */
    void *values;           /* own */
    void *gradients;        /* own; one number more: whether to stop */
    struct trained_optimiser *optimisers; /* own */
    size_t n_optimisers;
};

/* Make it, with the values of rank 0; its blobs go to setup->blobs.
 * After an error trained_fini() it, too. */
int trained_init(struct trained *trained, ls_group *group,
                 const struct ls_driver_setup *how,
                 const struct ls_model_setup *setup, struct ls_rng *first,
                 int timeout_ms);
void trained_fini(struct trained *trained);

/* All gradients become means over the group. *stop: in, whether this rank
 * wishes to stop; out, whether any does. */
int trained_exchange(struct trained *trained, bool *stop, int timeout_ms);
void trained_zero(struct trained *trained);
int trained_step(struct trained *trained, size_t at);
uint64_t trained_hash(const struct trained *trained);

#endif
