/* runtime_network.h - what the bus hangs on a runtime.
 *
 * A node asks its runtime which network it is on; the runtime itself knows
 * nothing of networks. */
#ifndef LOCKSTEP_RUNTIME_NETWORK_H
#define LOCKSTEP_RUNTIME_NETWORK_H

#include "lockstep/runtime.h"

/* NULL: that of the operating system. */
void *ls_runtime_network(const ls_runtime *runtime);
void ls_runtime_set_network(ls_runtime *runtime, void *network);

#endif
