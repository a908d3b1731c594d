/* processes.h - the launcher that makes every node a process. */
#ifndef LOCKSTEP_PROCESSES_H
#define LOCKSTEP_PROCESSES_H

#include "options.h"
#include "run_secret.h"
#include "supervise.h"

typedef struct processes processes;

/* All borrow. For ipc, a folder for the sockets is made, which nobody else can
 * look into; destroy removes it.
 * Errors: LS_EIO the folder; LS_ENOMEM. */
LS_MUST_USE int processes_create(processes **out, const struct options *options,
                                 const struct plan *plan,
                                 const struct run_secret *secret,
                                 supervisor *watcher);
/* Kill all nodes, without waiting for them: this process is about to die, and
 * one that is stopped would not hear of it. Thread: any. */
void processes_kill(processes *processes);
/* All nodes are gone. False: as child_destroy(). */
bool processes_destroy(processes **processes);
struct launcher processes_launcher(processes *processes);

#endif
