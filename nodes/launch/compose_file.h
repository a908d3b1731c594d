/* compose_file.h - the nodes of a run as a file of docker-compose.
 *
 * A container for each node, on a network of the run's own; the folders that
 * they share lie in them under the same paths as here. Pure: it starts nothing.
 */
#ifndef LOCKSTEP_COMPOSE_FILE_H
#define LOCKSTEP_COMPOSE_FILE_H

#include "plan.h"
#include "spawn_self.h"

/* Where keys of the run lie in a container. */
#define COMPOSE_KEYS "/run/keys"

/* All borrow. */
struct compose_file {
    const struct plan *plan;
    const char *project; /* begins the names of the containers */
    const char *config;  /* an absolute path; its folder is mounted */
    const char *out;     /* of all runs; likewise */
    const char *keys;    /* of the file; likewise; NULL: it names none */
    const char *made;    /* those of the run: MADE/all is mounted, and in it
                          * MADE/secret/node-ID.cert_secret; NULL: it has none */
    const struct arguments *commands; /* by index */
    unsigned long user, group;
};

/* "PROJECT-node-3". */
#define COMPOSE_NAME_MAX 63
void compose_name(const struct compose_file *file, size_t index,
                  char out[COMPOSE_NAME_MAX + 1]);

/* text: own. Errors: LS_ENOMEM. */
LS_MUST_USE int compose_file_text(const struct compose_file *file, char **text,
                                  size_t *size);

#endif
