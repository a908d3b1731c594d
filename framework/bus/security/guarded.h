/* guarded.h - files and folders that decide who may speak: read only when
 * nobody else can have written or seen them, written whole or not at all.
 *
 * A folder is held open and its files are reached through it, so that what was
 * checked is what is used, whoever renames what meanwhile.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_GUARDED_H
#define LOCKSTEP_BUS_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lockstep/status.h"

#define GUARDED_PATH_MAX 4096

enum guard {
    GUARD_NONE,    /* anything will do */
    GUARD_WRITING, /* of this user or root, and nobody else may write */
    GUARD_ALL      /* of this user, nobody else may do anything with it, and no
                    * symbolic link */
};

struct guarded_folder {
    int fd; /* own; -1: none */
    char path[GUARDED_PATH_MAX];
};

/* Open a folder. make: create it (0700) when it is not there; others may do
 * so at the same time.
 * out:    give it to guarded_close(), also after an error.
 * Errors: LS_EINVAL path is NULL, empty or too long; LS_ENOENT; LS_ECONFIG it
 *         is not a folder, or not guarded as asked; LS_EIO. */
LS_MUST_USE int guarded_open(struct guarded_folder *out, const char *path,
                             enum guard guard, bool make);
/* Step into a folder of it, in the same way: made, and GUARD_ALL. */
LS_MUST_USE int guarded_enter(struct guarded_folder *folder, const char *name);
void guarded_close(struct guarded_folder *folder);

/* Split a path into its folder, which is opened without a guard, and the name
 * of a file. name: borrow: part of path. Errors: those of guarded_open(). */
LS_MUST_USE int guarded_open_parent(struct guarded_folder *out,
                                    const char *path, const char **name);

/* Read a whole file of at most `max` bytes.
 * out:    max + 1 bytes; wipe it after a secret.
 * Errors: LS_ENOENT; LS_ECONFIG it is not a regular file, not guarded as asked,
 * or longer; LS_EIO. */
LS_MUST_USE int guarded_read(const struct guarded_folder *folder,
                             const char *name, enum guard guard, void *out,
                             size_t max, size_t *size);

/* Write a new file: it is there whole or not at all, and nothing that was there
 * is touched. mode: 0600 or 0644.
 * Errors: LS_EEXIST; LS_EIO. */
LS_MUST_USE int guarded_create(const struct guarded_folder *folder,
                               const char *name, mode_t mode, const void *bytes,
                               size_t size);

/* Take back what guarded_create() has written. */
void guarded_remove(const struct guarded_folder *folder, const char *name);

#endif
