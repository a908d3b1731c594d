/* file.h - files and folders that hold state.
 *
 * All state that must outlive its process is read and written through these
 * calls. They use the disk of the calling thread's runtime: the operating
 * system's, or in a simulation one of lockstep/disk.h, where tests cut the
 * power.
 *
 * Other processes see at once what a call has written, and it outlives the
 * process. It survives a loss of power once it is synced: the bytes of a file
 * by ls_file_sync(), its name by ls_file_sync_name(). Until then the disk may
 * keep any part of it, in any order.
 * Errors of all calls: LS_EIO the system refused, with its reason, and
 * LS_ENOMEM; both name the path.
 * Thread: any; one ls_file: serial.
 * Source: docs/runtime.md, fsync(2). */
#ifndef LOCKSTEP_FILE_H
#define LOCKSTEP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The longest path allowed, its NUL included. */
#define LS_PATH_MAX 1280

/* ---- whole files ------------------------------------------------------- */

struct ls_file_part {
    const void *data;
    size_t size;
};

/* Make `path` contain these parts: anyone who opens it sees either the old
 * contents or all of the new ones.
 * temporary: a path in the same folder that nobody else uses meanwhile; nothing
 *            is left there.
 * durable:   the contents and the name are on disk when this returns; a loss of
 *            power before that leaves the old contents or all of the new ones.
 * Errors: LS_EIO: `path` is unchanged, unless only the sync of its new name
 *         failed; it is a device, a pipe or a socket, which is never replaced;
 *         its folder does not exist. LS_ELIMIT a path is too long. */
LS_MUST_USE LS_API int ls_file_replace(const char *path, const char *temporary,
                                       const struct ls_file_part *parts,
                                       size_t n, bool durable);

/* Read a whole file.
 * data:   own: free() it; never NULL.
 * Errors: LS_ENOENT there is no such file; LS_ELIMIT over `most` bytes, or the
 *         path is too long. */
LS_MUST_USE LS_API int ls_file_read(const char *path, size_t most, void **data,
                                    size_t *size);

/* ---- parts of a file --------------------------------------------------- */

typedef struct ls_file ls_file;

enum ls_file_flags {
    LS_FILE_WRITE = 1,  /* else read only */
    LS_FILE_CREATE = 2, /* if it does not exist; with LS_FILE_WRITE */
    LS_FILE_EMPTY = 4   /* cut to 0 bytes; with LS_FILE_WRITE */
};

/* out:    own; NULL after an error; give it to ls_file_close().
 * flags:  of enum ls_file_flags.
 * Errors: LS_ENOENT there is no such file, or no folder to create it in; LS_EIO
 *         also: not a regular file; LS_ELIMIT the path is too long; LS_EINVAL a
 *         flag that goes with LS_FILE_WRITE, without it. */
LS_MUST_USE LS_API int ls_file_open(ls_file **out, const char *path,
                                    unsigned flags);
/* NULL and a pointer to NULL are fine. The file is closed, whatever is
 * returned. Errors: LS_EIO what was written before may be lost. */
LS_API int ls_file_close(ls_file **file);

LS_MUST_USE LS_API int ls_file_size(ls_file *file, uint64_t *out);
/* Reads all `size` bytes. Errors: LS_EIO the file ends before. */
LS_MUST_USE LS_API int ls_file_read_at(ls_file *file, void *data, size_t size,
                                       uint64_t offset);
/* Writes all `size` bytes; after an error part of them may be there. A gap
 * behind the old end reads as zeros. */
LS_MUST_USE LS_API int ls_file_write_at(ls_file *file, const void *data,
                                        size_t size, uint64_t offset);
/* Set the length; anything beyond it is gone. */
LS_MUST_USE LS_API int ls_file_cut(ls_file *file, uint64_t size);

/* Put its bytes on disk before returning; this does not include its name.
 * Errors: LS_EIO: the system may have discarded the bytes that it could not
 *         write, so no later call can tell whether they are on disk. */
LS_MUST_USE LS_API int ls_file_sync(ls_file *file);

/* Lock it, exclusively or shared, until it is closed or the process ends,
 * however it ends. A holder may change from one kind to the other.
 * Errors: LS_EAGAIN somebody else holds it, or shares what you want
 *         exclusively; you then hold no lock. */
LS_MUST_USE LS_API int ls_file_lock(ls_file *file, bool shared);

/* Whether its path still names this file. */
LS_API bool ls_file_is_named(ls_file *file);

/* ---- names ------------------------------------------------------------- */

/* The path of what is called `name` in a folder, also of "name/below".
 * out:    `size` bytes.
 * Errors: LS_ELIMIT it is longer than that; what `out` holds then is of no use.
 */
LS_MUST_USE LS_API int ls_file_path(char *out, size_t size, const char *folder,
                                    const char *name);
LS_API bool ls_file_exists(const char *path); /* a file or a folder */
/* Replaces what is there. Errors: LS_ENOENT there is no `from`, or no folder
 * for `to`; LS_EIO `to` is a device, a pipe or a socket. */
LS_MUST_USE LS_API int ls_file_rename(const char *from, const char *to);
/* Errors: LS_ENOENT there is no such file. */
LS_API int ls_file_remove(const char *path);
/* Make `path` another name for `target`, which is relative to its folder.
 * Errors: LS_EEXIST `path` exists. LS_EIO the disk does not support it. */
LS_MUST_USE LS_API int ls_file_symlink(const char *target, const char *path);

/* The target of such a name.
 * Errors: LS_ENOENT there is no `path`; LS_EINVAL it is not a link; LS_ELIMIT
 *         the target is too long. */
LS_MUST_USE LS_API int ls_file_read_link(const char *path,
                                         char out[LS_PATH_MAX]);

/* Put the names in the folder of `path` on disk. */
LS_MUST_USE LS_API int ls_file_sync_name(const char *path);

/* Create a folder and those above it, on disk when this returns. An existing
 * one is fine, also if who made it was killed meanwhile. Errors: LS_ELIMIT its
 * name is too long; LS_ENOENT it or one above it is a dangling link, or was
 * removed meanwhile; LS_EIO also: it or one above it is a file. */
LS_MUST_USE LS_API int ls_folder_make(const char *folder);
/* Errors: LS_ENOENT there is no such folder; LS_EEXIST it is not empty. */
LS_API int ls_folder_remove(const char *folder);

/* Call fn with each name that was there at the time of the call, in no order,
 * until fn fails. Errors: LS_ENOENT there is no such folder; what fn returns.
 */
LS_MUST_USE LS_API int ls_folder_each(const char *folder,
                                      int (*fn)(void *self, const char *name),
                                      void *self);

/* ---- unfinished files -------------------------------------------------- */

#define LS_FILE_UNIQUE_MAX 128

/* A name for an unfinished file, "PID@TOKEN@NUMBER@HOST", that no other call
 * returns, in any process or any life of this one. */
LS_API void ls_file_unique(char out[LS_FILE_UNIQUE_MAX]);
/* Whether such a name belongs to a process of this machine, or container, that
 * has ended. False for any other name. */
LS_API bool ls_file_is_left_over(const char *unique);

#ifdef __cplusplus
}
#endif

#endif
