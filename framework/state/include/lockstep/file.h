/* file.h - files and folders that hold state.
 *
 * All that must outlive its process is read and written through these calls:
 * they go to the disk of the calling thread's runtime, which is the operating
 * system's, or in a simulation one of lockstep/disk.h, where tests cut the
 * power.
 *
 * What a call has written, other processes see at once, and it outlives the
 * process. It outlives a loss of power once it is synced: the bytes of a file
 * by ls_file_sync(), its name by ls_file_sync_name(). Until then the disk may
 * keep any part of it, in any order.
 * Errors of all calls: LS_EIO what the system refused, with its reason, and
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

/* The longest path that is worked with, its NUL included. */
#define LS_PATH_MAX 1280

/* ---- whole files ------------------------------------------------------- */

struct ls_file_part {
    const void *data;
    size_t size;
};

/* Make `path` hold these parts: whoever opens it sees what it held before, or
 * all of this.
 * temporary: a path beside it that nobody else uses meanwhile; nothing is left
 *            there.
 * durable:   it is on disk when this returns, its name too; and a loss of power
 *            in the middle leaves what it held before, or all of this.
 * Errors: LS_EIO: `path` is as it was, unless all went well until its new name
 *         was to be synced. */
LS_MUST_USE LS_API int ls_file_replace(const char *path, const char *temporary,
                                       const struct ls_file_part *parts,
                                       size_t n, bool durable);

/* Read a whole file.
 * data:   own: free() it; never NULL.
 * Errors: LS_ENOENT there is none; LS_ELIMIT more than `most` bytes. */
LS_MUST_USE LS_API int ls_file_read(const char *path, size_t most, void **data,
                                    size_t *size);

/* ---- parts of a file --------------------------------------------------- */

typedef struct ls_file ls_file;

enum ls_file_flags {
    LS_FILE_WRITE = 1,  /* else it is read only */
    LS_FILE_CREATE = 2, /* when there is none; with LS_FILE_WRITE */
    LS_FILE_EMPTY = 4   /* cut to 0 bytes; with LS_FILE_WRITE */
};

/* out:    own; NULL after an error; give it to ls_file_close().
 * flags:  of enum ls_file_flags.
 * Errors: LS_ENOENT there is none; LS_EIO also what is no regular file;
 *         LS_ELIMIT the path is too long. */
LS_MUST_USE LS_API int ls_file_open(ls_file **out, const char *path,
                                    unsigned flags);
/* NULL and a pointer to NULL are fine. It is closed, whatever is returned.
 * Errors: LS_EIO what was written before may be lost. */
LS_API int ls_file_close(ls_file **file);

LS_MUST_USE LS_API int ls_file_size(ls_file *file, uint64_t *out);
/* All of it. Errors: LS_EIO the file ends before. */
LS_MUST_USE LS_API int ls_file_read_at(ls_file *file, void *data, size_t size,
                                       uint64_t offset);
/* All of it; after an error a part of it may be there. Beyond the end: what is
 * between reads as zeros. */
LS_MUST_USE LS_API int ls_file_write_at(ls_file *file, const void *data,
                                        size_t size, uint64_t offset);
/* Make it this long: what is behind is gone. */
LS_MUST_USE LS_API int ls_file_cut(ls_file *file, uint64_t size);

/* Have its bytes on disk when this returns; of its name that says nothing.
 * Errors: LS_EIO: the system may have forgotten the bytes that it could not
 *         write, so no later call tells whether they are on disk. */
LS_MUST_USE LS_API int ls_file_sync(ls_file *file);

/* Have it alone, or with all others that share it, until it is closed or the
 * process ends, however it does. Who has it may change from the one to the
 * other.
 * Errors: LS_EAGAIN somebody else has it, or shares what you want alone; it is
 *         not locked by you then. */
LS_MUST_USE LS_API int ls_file_lock(ls_file *file, bool shared);

/* Whether it is the one that has its path still. */
LS_API bool ls_file_is_named(ls_file *file);

/* ---- names ------------------------------------------------------------- */

LS_API bool ls_file_exists(const char *path); /* or a folder */
/* Over what is there. Errors: LS_ENOENT there is no `from`. */
LS_MUST_USE LS_API int ls_file_rename(const char *from, const char *to);
/* Errors: LS_ENOENT there is none. */
LS_API int ls_file_remove(const char *path);
/* Make `path` another name for `target`, which is as seen from its folder.
 * Errors: LS_EEXIST `path` is there. Some disks have no such thing: LS_EIO. */
LS_MUST_USE LS_API int ls_file_symlink(const char *target, const char *path);

/* What such a name was given for a target.
 * Errors: LS_ENOENT there is no `path`; LS_EINVAL it is no link; LS_ELIMIT the
 *         target is too long. */
LS_MUST_USE LS_API int ls_file_read_link(const char *path,
                                         char out[LS_PATH_MAX]);

/* Have on disk which files are in the folder that `path` is in. */
LS_MUST_USE LS_API int ls_file_sync_name(const char *path);

/* Make a folder and those above it, on disk when this returns. One that exists
 * is fine. Errors: LS_ELIMIT its name is too long; LS_ENOENT one above it was
 * taken away meanwhile, or is a link to nowhere. */
LS_MUST_USE LS_API int ls_folder_make(const char *folder);
/* Errors: LS_ENOENT there is none; LS_EEXIST something is in it. */
LS_API int ls_folder_remove(const char *folder);

/* Call fn with each name that was there when this was called, in no order,
 * until it fails. Errors: LS_ENOENT there is none; what fn returns. */
LS_MUST_USE LS_API int ls_folder_each(const char *folder,
                                      int (*fn)(void *self, const char *name),
                                      void *self);

/* ---- unfinished files -------------------------------------------------- */

#define LS_FILE_UNIQUE_MAX 128

/* A name for an unfinished file, "PID@TOKEN@NUMBER@HOST", that no other call
 * gives, in any process or any life of this one. */
LS_API void ls_file_unique(char out[LS_FILE_UNIQUE_MAX]);
/* Whether such a name is of a process of this machine that has ended. A name
 * that is none: false. */
LS_API bool ls_file_is_left_over(const char *unique);

#ifdef __cplusplus
}
#endif

#endif
