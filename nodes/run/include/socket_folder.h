/* socket_folder.h - a folder for the ipc sockets of one run. */
#ifndef LOCKSTEP_SOCKET_FOLDER_H
#define LOCKSTEP_SOCKET_FOLDER_H

#include <stdint.h>

#include "lockstep/status.h"

struct socket_folder {
    char path[256]; /* "": none */
};

/* Make one under XDG_RUNTIME_DIR, else /tmp, open to this user alone: anyone
 * who reaches a socket can speak to a node. What cannot be in the address of a
 * socket is passed over.
 * job: whose nodes have sockets there, JOB-ID.ipc; "": no node.
 * Errors: LS_EIO. */
LS_MUST_USE int socket_folder_make(struct socket_folder *out, const char *job);

/* Make one that others make as well, or find theirs: its name follows from
 * `key` and the user. Errors: LS_EIO, also if others can enter it. */
LS_MUST_USE int socket_folder_share(struct socket_folder *out, uint64_t key,
                                    const char *job);
/* Remove it if nobody has a socket there any more. */
void socket_folder_leave(struct socket_folder *folder);

/* Remove it and what nodes that were killed left in it. */
void socket_folder_remove(struct socket_folder *folder);

#endif
