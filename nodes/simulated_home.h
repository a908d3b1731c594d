/* simulated_home.h - what is on the disk of a simulated node.
 *
 * Threads of a node that was killed run on to their ends, unseen; but files are
 * real, and what these threads write nobody may read. So each life writes to a
 * folder of its own, which begins as that of the life before was when it ended.
 * Thread: serial. */
#ifndef LOCKSTEP_SIMULATED_HOME_H
#define LOCKSTEP_SIMULATED_HOME_H

#include <stddef.h>

#include "lockstep/status.h"

#define SIMULATED_PATH_MAX 512

/* The folders of one simulation. */
struct simulated_homes {
    char root[SIMULATED_PATH_MAX]; /* "": none */
    unsigned n;                    /* made so far */
};

/* Make the root, in TMPDIR, else /dev/shm, else /tmp. Errors: what the system
 * says, such as LS_ENOENT, LS_EIO, with the path. */
LS_MUST_USE int simulated_homes_make(struct simulated_homes *out);
/* Remove all of it. */
void simulated_homes_remove(struct simulated_homes *homes);

/* One more folder, with a copy of all that is in `from`; NULL: empty.
 * Errors: the same; LS_ENOMEM. */
LS_MUST_USE int simulated_homes_add(struct simulated_homes *homes,
                                    const char *from,
                                    char out[SIMULATED_PATH_MAX]);

#endif
