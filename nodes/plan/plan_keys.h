/* plan_keys.h - which keys of a configuration do something in which kind of
 * job; where one does not, it is refused.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_KEYS_H
#define LOCKSTEP_PLAN_KEYS_H

#include "lockstep/config.h"

struct plan;

/* Part of plan_read(), after the nodes. */
void plan_refuse_keys(const struct plan *plan, ls_config_section *root);
/* The same: whether the sockets of its nodes can be in `dir`. */
void plan_check_dir(const struct plan *plan, ls_config_section *world);

#endif
