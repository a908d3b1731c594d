/* vault.h - a folder of named entries, each whole or known to be damaged.
 *
 * An entry is either one value, put in one call, or shards with their own
 * names, each as large as the disk allows, written and read piece by piece. The
 * manifest lists them with their sizes and checksums (XXH3), and is written
 * last. It is the end of the entry's file, FOLDER/NAME. A value comes before
 * it, from the first byte on, so any program that reads a self-delimiting value
 * finds it there; each shard has its own file beside it, unless it is small.
 *
 * Putting an entry again replaces it: readers see the old one or the new one,
 * however many threads write and read, in any processes. If two write one entry
 * at the same time, the last one wins. A durable write is on disk when its call
 * returns; a loss of power before that leaves the old entry.
 * Other files may lie in the folder, and are left alone.
 *
 * Names of entries and shards are 1 to LS_VAULT_NAME_MAX bytes of
 * [A-Za-z0-9._@~-], and do not begin with a dot; any other is LS_EINVAL.
 * Errors of all calls: LS_EIO and LS_ENOMEM as in lockstep/file.h.
 * Thread: any; one reader or writer: serial.
 * Source: docs/state.md, which has the format. */
#ifndef LOCKSTEP_VAULT_H
#define LOCKSTEP_VAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#define LS_VAULT_NAME_MAX   100
#define LS_VAULT_SHARDS_MAX 256 /* of an entry; a reader opens all of them */

typedef struct ls_vault ls_vault;

struct ls_vault_options {
    const char *folder; /* copied; created, with those above it, unless found */
    bool found;         /* somebody else creates it, and cleans it up */
};

/* Open it, and clean it up: removes what dead writers of this machine left
 * unfinished.
 * out:    own; NULL after an error; give it to ls_vault_close().
 * Errors: LS_ELIMIT the folder's path is too long. */
LS_MUST_USE LS_API int ls_vault_open(ls_vault **out,
                                     const struct ls_vault_options *options);
/* Close its readers and writers first. NULL and a pointer to NULL are fine. */
LS_API void ls_vault_close(ls_vault **vault);

/* ---- values ------------------------------------------------------------ */

/* Make `size` bytes the entry.
 * data:    may be NULL when size is 0.
 * durable: it survives a loss of power once this returns. Otherwise the entry
 *          may be damaged after one.
 * Errors:  LS_EIO: the entry is unchanged, unless only the sync of its new name
 *          failed. */
LS_MUST_USE LS_API int ls_vault_put(ls_vault *vault, const char *name,
                                    const void *data, size_t size,
                                    bool durable);

/* Read an entry; of one with shards all of them, concatenated.
 * data:   own: free() it; never NULL. Written on success only.
 * Errors: LS_ENOENT there is no such entry; LS_EPROTO it is damaged, or not an
 *         entry, as a folder or a pipe is not: the text names the file;
 *         LS_ELIMIT over `most` bytes; LS_EAGAIN it kept being replaced
 *         meanwhile. */
LS_MUST_USE LS_API int ls_vault_get(ls_vault *vault, const char *name,
                                    size_t most, void **data, size_t *size);

/* Remove an entry, even a damaged one, or an empty folder in its place.
 * Errors: LS_ENOENT there is none; LS_EIO the system refuses, as it does for a
 *         folder with something in it. */
LS_API int ls_vault_drop(ls_vault *vault, const char *name);

/* Call fn with each name of a file that may be an entry, in no order, until fn
 * fails. Errors: LS_ENOENT the folder is gone; what fn returns. */
LS_MUST_USE LS_API int ls_vault_each(ls_vault *vault,
                                     int (*fn)(void *self, const char *name),
                                     void *self);

/* ---- shards ------------------------------------------------------------ */

struct ls_vault_shard {
    char name[LS_VAULT_NAME_MAX + 1]; /* "value" if ls_vault_put() wrote it */
    uint64_t size;
    uint64_t check; /* XXH3, 64 bits, of its bytes */
};

typedef struct ls_vault_writer ls_vault_writer;

/* Write an entry with shards. Nobody sees any of it until it is committed.
 * vault:  borrow: until the writer is destroyed.
 * out:    own; NULL after an error; give it to ls_vault_writer_destroy(). */
LS_MUST_USE LS_API int ls_vault_writer_create(ls_vault_writer **out,
                                              ls_vault *vault,
                                              const char *name);
/* Shards of up to `size` bytes have no file, whose sync would cost more than
 * their bytes: they come before the manifest, as long as they are 4 MiB at most
 * together, which is held until the commit. Before the first shard. */
LS_API void ls_vault_writer_set_small(ls_vault_writer *writer, size_t size);
/* Begin the next shard; the previous one is then complete, and on disk.
 * Errors: LS_EINVAL also: it has one of that name; LS_ELIMIT too many. After
 *         LS_EIO or LS_ENOMEM, here and below, the entry cannot be written:
 *         every later call is LS_ESTATE, and what was there stays. */
LS_MUST_USE LS_API int ls_vault_writer_shard(ls_vault_writer *writer,
                                             const char *name);
/* Append to the shard. Unbuffered, unless it is small: use large pieces.
 * Errors: LS_ESTATE none was begun. */
LS_MUST_USE LS_API int ls_vault_writer_add(ls_vault_writer *writer,
                                           const void *data, size_t size);
/* Make these shards the entry, on disk; the writer then takes no more, also
 * after an error.
 * Errors: LS_ESTATE there is none, or it was committed before; LS_EIO as
 *         ls_vault_put(). */
LS_MUST_USE LS_API int ls_vault_writer_commit(ls_vault_writer *writer);
/* Of what was committed: as ls_vault_reader_check(). */
LS_API uint64_t ls_vault_writer_check(const ls_vault_writer *writer);
/* Discards what was not committed. NULL and a pointer to NULL are fine. */
LS_API void ls_vault_writer_destroy(ls_vault_writer **writer);

typedef struct ls_vault_reader ls_vault_reader;

/* Read an entry as it is now, even if it is replaced meanwhile.
 * vault:  borrow: until the reader is destroyed.
 * out:    own; NULL after an error; give it to ls_vault_reader_destroy().
 * Errors: as ls_vault_get(); LS_EPROTO also: a shard is missing, or has another
 *         size. */
LS_MUST_USE LS_API int ls_vault_reader_create(ls_vault_reader **out,
                                              ls_vault *vault,
                                              const char *name);
/* The checksum of its manifest: entries that have it in common have the same
 * shards. */
LS_API uint64_t ls_vault_reader_check(const ls_vault_reader *reader);
LS_API size_t ls_vault_reader_n(const ls_vault_reader *reader);
/* Borrow: until the reader is destroyed. NULL: there is no shard `at`. */
LS_API const struct ls_vault_shard *
ls_vault_reader_shard(const ls_vault_reader *reader, size_t at);
/* Read shard `at` from its beginning. Errors: LS_EINVAL there is none. */
LS_MUST_USE LS_API int ls_vault_reader_begin(ls_vault_reader *reader,
                                             size_t at);
/* Read on in it. Do not use the pieces before the shard was read to its end
 * without an error: only then is its checksum known to be right.
 * size:   of data; not 0.
 * got:    the number of bytes read; 0: the end.
 * Errors: LS_EPROTO they are damaged: instead of the last piece; LS_ESTATE no
 *         shard was begun. */
LS_MUST_USE LS_API int ls_vault_reader_read(ls_vault_reader *reader, void *data,
                                            size_t size, size_t *got);
/* NULL and a pointer to NULL are fine. */
LS_API void ls_vault_reader_destroy(ls_vault_reader **reader);

#endif
