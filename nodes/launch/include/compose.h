/* compose.h - the launcher that makes every node a container, by
 * docker-compose.
 *
 * The file of docker-compose lies in the folder of the run. Nodes speak over a
 * network of their own, each with a key that is made for this run where the job
 * names none. Here each container is a `docker start --attach`: what the node
 * reports comes on its stdout, what it says on its stderr, and its exit code is
 * the container's. */
#ifndef LOCKSTEP_COMPOSE_H
#define LOCKSTEP_COMPOSE_H

#include "options.h"
#include "supervise.h"

typedef struct compose compose;

/* All borrow. Looks whether Docker, docker-compose and the image are there, and
 * makes keys; the containers are made when the first is started.
 * Errors: LS_EUNREACHABLE one of them is missing: the text says what to do;
 *         LS_ECONFIG the transport is not tcp; LS_EIO; LS_ELIMIT; LS_ENOMEM. */
LS_MUST_USE int compose_create(compose **out, const struct options *options,
                               const struct plan *plan, supervisor *watcher);
/* Remove the containers, their network, and the keys. False: as
 * child_destroy(). */
bool compose_destroy(compose **compose);
struct launcher compose_launcher(compose *compose);

#endif
