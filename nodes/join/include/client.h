/* client.h - a node that joins the world of a job without being in its plan, to
 * call one of its nodes.
 *
 * It serves nothing, listens to nothing, and keeps step with nobody: the job
 * does not notice it, but for PLAN_CLIENTS_MAX of them at once.
 * Thread: serial. */
#ifndef LOCKSTEP_CLIENT_H
#define LOCKSTEP_CLIENT_H

#include "lockstep/call.h"

#include "plan.h"
#include "socket_folder.h"

struct client_options {
    const struct plan *plan; /* borrow */
    size_t host;             /* index of the node that it wants to call */
    /* With keys: whose key it has; else it takes an id that is free. */
    uint32_t id;
    bool has_id;
    /* As of `lockstep node`; NULL, 0: found in the run's file, else in the
     * plan. Borrow. */
    const char *bind, *advertise;
    const char *const *attach;
    size_t n_attach;
    int64_t deadline; /* ls_now() of ls_runtime_threads() */
};

struct client {
    ls_node *node;         /* own */
    ls_rpc *calls;         /* own */
    ls_security *security; /* own */
    struct socket_folder folder;
};

/* Join, and wait for the host.
 * out:    written on success only; give it to client_leave().
 * Errors: LS_EINVAL its id; LS_ECONFIG where the nodes are cannot be known;
 *         LS_EUNREACHABLE the host was not found in time; those of
 *         node_security_open_client(), ls_node_start() and ls_rpc_open(). */
LS_MUST_USE int client_join(struct client *out,
                            const struct client_options *options);
void client_leave(struct client *client);

/* Where one listens that is not in the plan, and speaks with one at `address`:
 * on this host, in the same way. Nodes that come back need their own ports, so
 * these are of the upper half.
 * folder: made for a socket, if it takes one.
 * Errors: those of socket_folder_make(). */
LS_MUST_USE int client_bind(const struct plan *plan, const char *address,
                            struct socket_folder *folder,
                            char out[LS_ENDPOINT_MAX + 1]);

#endif
