/* learn_group.h - means over several that compute at the same time.
 *
 * Each of n members has a thread of its own. A mean is taken when all have come
 * for it, in the order of the members, so it does not depend on who came last.
 * A round is over when all members have left; who leaves while others still
 * wait for a mean ends the round for them. */
#ifndef LEARN_GROUP_H
#define LEARN_GROUP_H

#include "lockstep/plugin.h"
#include "lockstep/runtime.h"

struct learn_group;

/* n: members, >= 1. Errors: LS_ENOMEM. */
LS_MUST_USE int learn_group_create(struct learn_group **out,
                                   ls_runtime *runtime, size_t n);

/* What a member hands to its policy. Borrow: as long as the group. */
const struct ls_learn_group *learn_group_member(struct learn_group *group,
                                                size_t member);

/* A member has returned: it takes no further part in this round. */
void learn_group_leave(struct learn_group *group);

/* NULL and a pointer to NULL are fine. */
void learn_group_destroy(struct learn_group **group);

#endif
