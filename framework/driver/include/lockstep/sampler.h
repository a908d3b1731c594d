/* sampler.h - which samples a rank takes next, in batches.
 *
 * An epoch goes through all samples of a data set, 0 … length-1, in an order
 * that follows from (seed, epoch) alone; its ranks take turns: of what is left,
 * rank r takes every ranks-th sample, beginning with number r. So the ranks
 * together take the same samples in the same order however many they are, and
 * an epoch that was interrupted goes on with any other number of ranks or batch
 * size: what has been consumed by all is one number.
 *
 * Drawing and consuming are apart, so that batches can be loaded ahead: what is
 * saved begins behind what was consumed, whatever was drawn.
 *
 *     while (ls_sampler_next(sampler, indices, &n) == LS_OK && n > 0) {
 *         train(indices, n);
 *         ls_sampler_consume(sampler, 1);
 *     }
 *
 * An iteration begins with the first batch drawn. It ends when there is no
 * batch left and all that were drawn are consumed, or by ls_sampler_end().
 * Thread: serial.
 * Source: docs/samplers.md, which has the generator and test vectors. */
#ifndef LOCKSTEP_SAMPLER_H
#define LOCKSTEP_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/blobs.h"
#include "lockstep/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LS_SAMPLER_LENGTH_MAX (UINT64_C(1) << 48)
#define LS_SAMPLER_BATCH_MAX  INT32_MAX
#define LS_SAMPLER_RANKS_MAX  (1u << 20)

/* What becomes of a last round that has no sample for every rank. */
enum ls_spread {
    LS_SPREAD_PAD,  /* "dist": it is filled up with samples from the beginning
                     * of the epoch: all ranks take equally many */
    LS_SPREAD_CUT,  /* "cut": it is left out: equally many, none twice */
    LS_SPREAD_EXACT /* "unrepeatdist": the first ranks take one more: every
                     * sample exactly once. For evaluation: ranks may have
                     * unequal numbers of batches */
};
/* "dist"; NULL: there is no such spread. */
LS_API const char *ls_spread_name(enum ls_spread spread);

struct ls_sampler_options {
    uint64_t
        length; /* of the data set, in samples; 1 … LS_SAMPLER_LENGTH_MAX */
    enum ls_spread spread;
    bool in_order;        /* 0, 1, 2 …; else shuffled */
    uint64_t seed;        /* of all ranks the same */
    uint32_t rank, ranks; /* rank < ranks; ranks 0: 1 */
    uint32_t batch_size;  /* samples, of this rank; 0: 1 */
    bool drop_last;       /* no batch with fewer */
};

typedef struct ls_sampler ls_sampler;

/* out:    own; NULL after an error; give it to ls_sampler_destroy(). At the
 *         beginning of epoch 0.
 * Errors: LS_EINVAL an option is out of its range: the text names it; LS_ENOMEM
 *         (8 bytes for each sample, unless in_order). */
LS_MUST_USE LS_API int
ls_sampler_create(ls_sampler **out, const struct ls_sampler_options *options);
/* NULL and a pointer to NULL are fine. */
LS_API void ls_sampler_destroy(ls_sampler **sampler);

/* Go to the beginning of another epoch; in the same epoch the position stays.
 * Errors: LS_ESTATE during an iteration. */
LS_MUST_USE LS_API int ls_sampler_set_epoch(ls_sampler *sampler,
                                            uint64_t epoch);
/* Go on as another rank, or in other batches, from the same position.
 * Errors: LS_ESTATE during an iteration; LS_EINVAL out of range. */
LS_MUST_USE LS_API int ls_sampler_set_ranks(ls_sampler *sampler, uint32_t rank,
                                            uint32_t ranks);
LS_MUST_USE LS_API int ls_sampler_set_batches(ls_sampler *sampler,
                                              uint32_t batch_size,
                                              bool drop_last);

/* Draw the next batch.
 * indices: room for batch_size of them.
 * n:       how many; 0: none is left in this epoch.
 * Errors:  none now; check it as any other. */
LS_MUST_USE LS_API int ls_sampler_next(ls_sampler *sampler, uint64_t *indices,
                                       size_t *n);
/* The oldest n batches that were drawn and not consumed are consumed: by all
 * ranks, which are in step.
 * Errors: LS_EINVAL fewer are. */
LS_API int ls_sampler_consume(ls_sampler *sampler, uint64_t n);
/* End an iteration early: batches drawn and not consumed will be drawn again.
 * Without one it has no effect. */
LS_API void ls_sampler_end(ls_sampler *sampler);

/* Of this rank, in a whole epoch with these ranks and batches. */
LS_API uint64_t ls_sampler_samples(const ls_sampler *sampler);
LS_API uint64_t ls_sampler_batches(const ls_sampler *sampler);
/* Batches that are not consumed yet. */
LS_API uint64_t ls_sampler_remaining(const ls_sampler *sampler);
/* Which batch of the epoch comes next: ls_sampler_batches() less those that
 * remain, also after a change of ranks or batches, when it is not the number of
 * batches that were consumed. */
LS_API uint64_t ls_sampler_batch_index(const ls_sampler *sampler);
LS_API uint64_t ls_sampler_epoch(const ls_sampler *sampler);

/* Where a sampler is, for any number of ranks. */
struct ls_sampler_state {
    uint64_t seed, epoch;
    uint64_t consumed; /* samples, by all ranks, with those that padded */
    char type[16];     /* ls_spread_name() */
    uint64_t length;
    bool shuffle;
};
/* Its table: a map of these names. */
LS_API extern const struct ls_record ls_sampler_state_record;

LS_API void ls_sampler_save(const ls_sampler *sampler,
                            struct ls_sampler_state *out);
/* Go on from there; the seed and shuffle are those of the state. If everything
 * had been consumed: from the beginning of the epoch.
 * Errors: LS_ESTATE during an iteration; LS_EMISMATCH another length, or
 *         another type; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_sampler_load(ls_sampler *sampler,
                                       const struct ls_sampler_state *state);

/* Register its state as a blob: a checkpoint saves and loads it.
 * name:   "sampler".
 * Errors: those of ls_blobs_add(). Loading: LS_EPROTO not such a state; those
 *         of ls_sampler_load(). */
LS_MUST_USE LS_API int ls_sampler_add_blob(ls_sampler *sampler, ls_blobs *blobs,
                                           const char *name);

#ifdef __cplusplus
}
#endif

#endif
