/* threads.h - the launcher that makes every node a thread of this process. */
#ifndef LOCKSTEP_THREADS_H
#define LOCKSTEP_THREADS_H

#include "run_secret.h"
#include "setup.h"
#include "supervise.h"

typedef struct threads threads;

/* All borrow, the secret until this returns. Errors: LS_EIO the folder for ipc
 * sockets; those of node_security_open(). */
LS_MUST_USE int threads_create(threads **out, const struct setup *setup,
                               const struct run_secret *secret,
                               supervisor *watcher);
/* All nodes have ended. */
void threads_destroy(threads **threads);
struct launcher threads_launcher(threads *threads);

#endif
