/* run_secret.h - the secret that the nodes of one run have in common.
 *
 * `run` makes it. Nodes that are processes read it from a pipe, so that it is
 * in no command line and no environment; clients read run.secret in its folder,
 * which is there from the run's start to its end, and open to this user alone.
 * Thread: serial. */
#ifndef LOCKSTEP_RUN_SECRET_H
#define LOCKSTEP_RUN_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/security.h"

struct plan;

#define RUN_SECRET_NAME "run.secret"

struct run_secret {
    bool there; /* else a node takes that of its job */
    uint8_t bytes[LS_SECRET_BYTES];
};

/* Make one, and the file, in place of one that a killed run has left. Without a
 * file the run goes on: only clients are kept out, and the log says so. Where
 * the plan needs no secret, none is made. */
void run_secret_make(struct run_secret *out, const struct plan *plan);
/* Forget it, and remove the file, and the folder when nothing else is there. */
void run_secret_end(struct run_secret *secret, const struct plan *plan);

/* A descriptor to read it from, which a child may inherit as `--secret-fd`.
 * fd:     own; -1: there is no secret.
 * Errors: LS_EIO. */
LS_MUST_USE int run_secret_open(const struct run_secret *secret, int *fd);
/* Read what run_secret_open() has opened, and close it. fd: -1: there is none.
 * Errors: LS_EINVAL there is something else. */
LS_MUST_USE int run_secret_read(struct run_secret *out, int fd);
/* Overwrite it. */
void run_secret_wipe(struct run_secret *secret);

/* Where the file of a plan is. Errors: LS_ELIMIT. */
LS_MUST_USE int run_secret_path(const struct plan *plan, char *out,
                                size_t size);

#endif
