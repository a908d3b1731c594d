/* store_pair.h - two stores as one: policies in one, all else in the other.
 *
 * A policy is what has a name that begins with STORE_PAIR_POLICY; the state
 * machine gives names that do. Thread: as store.h says. */
#ifndef LOCKSTEP_STORE_PAIR_H
#define LOCKSTEP_STORE_PAIR_H

#include "store.h"

#define STORE_PAIR_POLICY "policy_"

/* Names that are got at once must all be of one kind: LS_EINVAL.
 * policies, data: moved on success: closing the pair closes them.
 * out:    own; written on success only; give it to store_close().
 * Errors: LS_ENOMEM. */
LS_MUST_USE int store_pair_open(struct store **out, struct store **policies,
                                struct store **data);

#endif
