/* runtime_disk.h - what files hang on a runtime.
 *
 * Whoever opens a file asks the runtime of its thread which disk it is on; the
 * runtime itself knows nothing of disks. */
#ifndef LOCKSTEP_RUNTIME_DISK_H
#define LOCKSTEP_RUNTIME_DISK_H

#include "lockstep/runtime.h"

/* NULL: that of the operating system. */
void *ls_runtime_disk(const ls_runtime *runtime);
void ls_runtime_set_disk(ls_runtime *runtime, void *disk);

#endif
