/* node_security.h - what a node of a plan, or a client, proves itself with, and
 * whom it listens to: a plan's section `security` made real.
 *
 * Thread: any. */
#ifndef LOCKSTEP_NODE_SECURITY_H
#define LOCKSTEP_NODE_SECURITY_H

#include "plan.h"
#include "run_secret.h"

/* For a node of the plan.
 * out:    own; NULL where it is known who speaks: within one process.
 * id:     counts with keys alone; without, nodes may share what this makes.
 * secret: of its run; NULL, or not there: the job's on this host.
 * Errors: those of ls_security_job() and ls_security_curve(). */
LS_MUST_USE int node_security_open(ls_security **out, const struct plan *plan,
                                   uint32_t id,
                                   const struct run_secret *secret);

/* For a client. running: a run of the plan goes on here, whose secret it reads;
 * else it is the job's.
 * Errors: the same, and those of ls_security_file(). */
LS_MUST_USE int node_security_open_client(ls_security **out,
                                          const struct plan *plan, uint32_t id,
                                          bool running);

/* For where the ids of replicas are given out, beside node `id`; for who asks
 * there; and for the replica that was given `id`, whose key is at `path`. The
 * plan has keys.
 * Errors: those of ls_security_giving(), ls_security_asking() and
 *         ls_security_leased(). */
LS_MUST_USE int node_security_open_giving(ls_security **out,
                                          const struct plan *plan, uint32_t id);
LS_MUST_USE int node_security_open_asking(ls_security **out,
                                          const struct plan *plan);
LS_MUST_USE int node_security_open_leased(ls_security **out,
                                          const struct plan *plan, uint32_t id,
                                          const char *path);

#endif
