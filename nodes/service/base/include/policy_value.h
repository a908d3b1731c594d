/* policy_value.h - a policy as it lies in the store, under its policy_id, and
 * what its training goes on from, beside it.
 *
 * A msgpack map {iter, version, policy, attempt}: the weights as the plugin
 * writes them, and when and by whom. What training goes on from is such a map
 * as well, under one of two other names, in turn: it is there before the policy
 * of its version is, and that of the version before is still there. Thread:
 * any. Source: docs/services.md, "Stores". */
#ifndef LOCKSTEP_POLICY_VALUE_H
#define LOCKSTEP_POLICY_VALUE_H

#include "lockstep/record.h"
#include "safe_name.h"

struct policy_value {
    int64_t iter;    /* of the learner, from 0: the one that it was written in;
                      * both the first and what was there before it say 0 */
    int64_t version; /* how many were written before it */
    struct ls_bytes weights; /* borrow when written; own when read */
    int64_t attempt; /* of the learner work; 0: an earlier version wrote it */
};

/* Under which name lies what the training of this version goes on from.
 * out: SAFE_NAME_MAX + 1 bytes. Errors: LS_ELIMIT policy_id is too long. */
LS_MUST_USE int policy_training_name(char *out, const char *policy_id,
                                     int64_t version);

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
