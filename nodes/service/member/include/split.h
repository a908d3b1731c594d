/* split.h - which steps of its data a sample means.
 *
 * Several samples may refer to one trajectory, each to a part of it: from
 * split_begin on unroll_len steps, one step when unroll_len is 1. A sample that
 * is not split means all of it.
 * Thread: any. */
#ifndef LOCKSTEP_SPLIT_H
#define LOCKSTEP_SPLIT_H

#include "sample.h"

/* What is told of part `part` of `n_parts` of a trajectory: `whole`, but for
 * what part it is. n_parts: 1: it is not split; else it divides unroll_len. */
void split_sample(const struct sample *whole, int64_t part, int64_t n_parts,
                  struct sample *out);

#endif
