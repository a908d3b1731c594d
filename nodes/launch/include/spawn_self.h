/* spawn_self.h - this very program, started once more; or another.
 *
 * Thread: any. */
#ifndef LOCKSTEP_SPAWN_SELF_H
#define LOCKSTEP_SPAWN_SELF_H

#include <spawn.h>
#include <stddef.h>
#include <sys/types.h>

#include "lockstep/status.h"

/* The arguments of a program. All zero: none. */
struct arguments {
    char **argv; /* own; NULL at its end */
    size_t n, capacity;
    int status; /* LS_ENOMEM: one of them is missing */
};

/* Add one: copied. A pair is left out when its value is NULL or empty. */
void arguments_add(struct arguments *arguments, const char *text);
void arguments_add_pair(struct arguments *arguments, const char *name,
                        const char *value);
void arguments_add_number(struct arguments *arguments, const char *name,
                          unsigned long long number);
void arguments_add_set(struct arguments *arguments, const char *path,
                       const char *value);
void arguments_fini(struct arguments *arguments);

/* A pipe whose ends no other program gets, unless it is told to, and whose
 * numbers are above those that a program is given. pipe_fds: read, write.
 * Errors: LS_EIO with the system's reason. */
LS_MUST_USE int spawn_pipe(int pipe_fds[2]);
/* -1: is closed. */
void spawn_close_pipe(int pipe_fds[2]);

/* Start it. It begins with signals as any program does, whatever this one
 * does. arguments: argv[0] is only its name: what runs is this program.
 * actions: borrow: what becomes of descriptors.
 * Errors: LS_EIO with the system's reason; LS_ENOMEM. */
LS_MUST_USE int spawn_self(pid_t *out, const struct arguments *arguments,
                           const posix_spawn_file_actions_t *actions);

/* Start another program, argv[0], which is looked for in PATH; in a group of
 * its own, so that Ctrl-C at the terminal is for this one alone. Errors: as
 * spawn_self(). */
LS_MUST_USE int spawn_tool(pid_t *out, const struct arguments *arguments,
                           const posix_spawn_file_actions_t *actions);

#endif
