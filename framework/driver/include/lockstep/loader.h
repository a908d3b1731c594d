/* loader.h - the batches of a data set that are a rank's: sampled, loaded into
 * memory of the data's device, and resumed where they were.
 *
 * One batch is there at a time; who wants the next ones loaded meanwhile has
 * lockstep/learner.h.
 * Thread: the rank's. */
#ifndef LOCKSTEP_LOADER_H
#define LOCKSTEP_LOADER_H

#include "lockstep/driver.h"
#include "lockstep/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_loader ls_loader;

struct ls_loader_options {
    const struct ls_data *data; /* borrow: as long as the loader */
    enum ls_spread spread;
    bool in_order;
    bool drop_last;
    uint32_t batch_size; /* of this rank; 0: 1 */
    const char *blob;    /* save its position under this name, with what all
                          * ranks share; NULL: it is not saved. Copied */
};

/* After ls_driver_setup(). The sampler has the driver's seed, rank and ranks.
 * out:    own; NULL after an error; give it to ls_loader_destroy() before
 *         the driver's function returns.
 * Errors: LS_ESTATE the driver has no device yet; LS_EINVAL item_bytes 0, or as
 *         ls_sampler_create(); those of ls_device_stack_create() and
 *         ls_blobs_add(). */
LS_MUST_USE LS_API int
ls_loader_create(ls_loader **out, ls_driver *driver,
                 const struct ls_loader_options *options);
/* NULL and a pointer to NULL are fine. */
LS_API void ls_loader_destroy(ls_loader **loader);

/* Of this loader: to set the epoch, and to see how much remains. Borrow. */
LS_API ls_sampler *ls_loader_sampler(ls_loader *loader);

/* Draw a batch, load it and move it.
 * batch:  NULL: none is left in this epoch. Borrow: until the next call.
 * Errors: what load() of the data returns; those of ls_driver_move(). The batch
 *         is then drawn and not consumed: ls_sampler_end() to try it again. */
LS_MUST_USE LS_API int ls_loader_next(ls_loader *loader,
                                      const struct ls_batch **batch);
/* The batch is done with: what is saved begins behind it.
 * Errors: LS_EINVAL there is none. */
LS_API int ls_loader_consume(ls_loader *loader);

#ifdef __cplusplus
}
#endif

#endif
