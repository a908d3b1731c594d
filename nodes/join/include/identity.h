/* identity.h - the key of a node that is given its id: made once, and kept in a
 * folder.
 *
 * Several nodes may share the folder, as containers of one service share a
 * volume: each takes the first key in it that no living node has, and makes one
 * more when all are taken. So as many nodes as before have the keys that they
 * had before.
 *
 *   FOLDER/replica-0.key, replica-1.key, …
 *
 * Thread: serial. */
#ifndef LOCKSTEP_IDENTITY_H
#define LOCKSTEP_IDENTITY_H

#include <stdbool.h>

#include "lockstep/file.h"
#include "lockstep/security.h"

#include "socket_folder.h"

struct identity {
    char path[LS_PATH_MAX];       /* of the secret key; "": none is open */
    char key[LS_PUBLIC_KEY_MAX];  /* the public one */
    bool lasting;                 /* it is there after a restart */
    int lock;                     /* own; held as long as it is open */
    struct socket_folder passing; /* own; of one that does not last */
};

/* Take one.
 * folder: made if it is not there; NULL: $XDG_STATE_HOME/lockstep/JOB, or
 *         ~/.local/state/lockstep/JOB; where that cannot be written, a key for
 *         this life alone, and a warning.
 * out:    give it to identity_close().
 * Errors: LS_EIO the folder cannot be written; LS_ECONFIG a file in it is open
 *         to others, or holds no key; LS_ELIMIT. */
LS_MUST_USE int identity_open(struct identity *out, const char *folder,
                              const char *job);
/* Others may take it then. One that is not open is fine. */
void identity_close(struct identity *identity);

#endif
