/* files.h - files that are replaced and read as a whole.
 *
 * Thread: any. */
#ifndef LOCKSTEP_FILES_H
#define LOCKSTEP_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/status.h"

/* The longest path that is worked with, its NUL included. */
#define FILES_PATH_MAX 1152

/* LS_EIO, with the text "what path: " and the system's reason. */
int files_error(int os_errno, const char *what, const char *path);

/* Make a folder and those above it. One that exists is fine.
 * Errors: LS_EIO, which names the folder; LS_ELIMIT its name is too long. */
LS_MUST_USE int files_make_folders(const char *folder);

/* Have on disk which files are in the folder that `path` is in. Without it a
 * new name may be gone after a power cut. Errors: LS_EIO. */
LS_MUST_USE int files_sync_folder_of(const char *path);

struct files_part {
    const void *data;
    size_t size;
};

/* Write all of it. Errors: LS_EIO, which names `path`. */
LS_MUST_USE int files_write(int fd, const struct files_part *part,
                            const char *path);

/* Make `path` hold these parts: whoever opens it sees what it held before, or
 * all of this.
 * temporary: a path beside it that nobody else uses meanwhile; nothing is left
 *            there.
 * durable:   it is on disk when this returns.
 * Errors: LS_EIO, which names the file; `path` is as it was. */
LS_MUST_USE int files_replace(const char *path, const char *temporary,
                              const struct files_part *parts, size_t n,
                              bool durable);

/* Read a whole file.
 * data:   own: free() it; never NULL.
 * Errors: LS_ENOENT there is none; LS_ELIMIT more than `most` bytes; LS_EIO;
 *         LS_ENOMEM. All name the path. */
LS_MUST_USE int files_read(const char *path, size_t most, void **data,
                           size_t *size);

#endif
