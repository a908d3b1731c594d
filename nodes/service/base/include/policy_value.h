/* policy_value.h - a policy as it lies in the store, under its policy_id.
 *
 * A msgpack map {iter, version, policy}: the weights as the plugin writes them,
 * and when. Thread: any. Source: docs/services.md, "Stores". */
#ifndef LOCKSTEP_POLICY_VALUE_H
#define LOCKSTEP_POLICY_VALUE_H

#include "lockstep/record.h"

struct policy_value {
    int64_t iter;    /* of the learner, from 0: the one that it was written in;
                      * both the first and what was there before it say 0 */
    int64_t version; /* how many were written before it */
    struct ls_bytes weights; /* borrow when written; own when read */
};

/* Write it as exactly one value. */
void policy_value_write(const struct policy_value *value, ls_writer *out);
/* Read it back.
 * out:    written on success only; give out->weights to ls_bytes_clear().
 * Errors: LS_EPROTO it is none; LS_ENOMEM. */
LS_MUST_USE int policy_value_read(struct policy_value *out, const void *data,
                                  size_t size);

/* The iterations that have gone into it. */
int64_t policy_value_iterations(const struct policy_value *value);

/* Read one, and give its weights to `load`. out: the rest of it; written on
 * success only. Errors: those of reading it and of load. */
LS_MUST_USE int
policy_value_load(struct policy_value *out, const void *data, size_t size,
                  int (*load)(void *self, const struct ls_bytes *weights),
                  void *self);

#endif
