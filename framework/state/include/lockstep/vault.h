/* vault.h - a folder of named entries, each whole or seen to be damaged.
 *
 * An entry is one value, put in one call; or shards with names of their own,
 * each as large as the disk, written and read piece by piece. Its manifest
 * names them with their sizes and checksums (XXH3), and is written last. The
 * manifest is the end of the entry's file, FOLDER/NAME. A value stands in front
 * of it, from the first byte on, so whoever reads a kind of value that knows
 * its own end finds it there; a shard has a file of its own beside it.
 *
 * Putting an entry again replaces it: who reads sees the old one or the new
 * one, however many write and read, in any processes. Of two that write one
 * entry at the same time the last one holds. What was written to be durable is
 * on disk when that call returns; a loss of power before leaves the old one.
 * Other files may lie in the folder, and stay as they are.
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
#define LS_VAULT_SHARDS_MAX 256 /* of an entry; a reader has them all open */

typedef struct ls_vault ls_vault;

struct ls_vault_options {
    const char *folder; /* copied; made, with those above it, unless: */
    bool found;         /* somebody else makes it, and clears it */
};

/* Open it, and clear it: what writers of this machine that have died left
 * unfinished goes.
 * out:    own; NULL after an error; give it to ls_vault_close().
 * Errors: LS_ELIMIT the folder's path is too long. */
LS_MUST_USE LS_API int ls_vault_open(ls_vault **out,
                                     const struct ls_vault_options *options);
/* No reader or writer of it may be open. NULL and a pointer to NULL are fine.
 */
LS_API void ls_vault_close(ls_vault **vault);

/* ---- values ------------------------------------------------------------ */

/* Make `size` bytes the entry.
 * data:    may be NULL when size is 0.
 * durable: it outlives a loss of power once this returns. If not, the entry
 *          may be damaged after one.
 * Errors:  LS_EIO: the entry is what it was, unless all went well until its
 *          new name was to be synced. */
LS_MUST_USE LS_API int ls_vault_put(ls_vault *vault, const char *name,
                                    const void *data, size_t size,
                                    bool durable);

/* Read an entry: of one with shards, all of them, one behind the other.
 * data:   own: free() it; never NULL. Written on success only.
 * Errors: LS_ENOENT there is none; LS_EPROTO it is damaged, or no entry: the
 *         text names the file; LS_ELIMIT more than `most` bytes; LS_EAGAIN it
 *         was replaced again and again meanwhile. */
LS_MUST_USE LS_API int ls_vault_get(ls_vault *vault, const char *name,
                                    size_t most, void **data, size_t *size);

/* Forget an entry, a damaged one too. Errors: LS_ENOENT there is none. */
LS_API int ls_vault_drop(ls_vault *vault, const char *name);

/* Call fn with each name of a file that may be an entry, in no order, until it
 * fails. Errors: LS_ENOENT the folder is gone; what fn returns. */
LS_MUST_USE LS_API int ls_vault_each(ls_vault *vault,
                                     int (*fn)(void *self, const char *name),
                                     void *self);

/* ---- shards ------------------------------------------------------------ */

struct ls_vault_shard {
    char name[LS_VAULT_NAME_MAX + 1]; /* of one that was put: "value" */
    uint64_t size;
    uint64_t check; /* XXH3, 64 bits, of its bytes */
};

typedef struct ls_vault_writer ls_vault_writer;

/* Write an entry with shards. Nothing of it is seen until it is committed.
 * vault:  borrow: until the writer is destroyed.
 * out:    own; NULL after an error; give it to ls_vault_writer_destroy(). */
LS_MUST_USE LS_API int ls_vault_writer_create(ls_vault_writer **out,
                                              ls_vault *vault,
                                              const char *name);
/* Begin the next shard; the one before is complete, and on disk.
 * Errors: LS_EINVAL also one of that name is there; LS_ELIMIT too many. After
 *         LS_EIO, here and below, the entry cannot be written: destroy it. */
LS_MUST_USE LS_API int ls_vault_writer_shard(ls_vault_writer *writer,
                                             const char *name);
/* Add to the shard. Goes to the disk as it is: pieces are best large.
 * Errors: LS_ESTATE none was begun. */
LS_MUST_USE LS_API int ls_vault_writer_add(ls_vault_writer *writer,
                                           const void *data, size_t size);
/* Make these shards the entry, on disk; the writer takes no more.
 * Errors: LS_ESTATE there is none, or it was committed before; LS_EIO as
 *         ls_vault_put(). */
LS_MUST_USE LS_API int ls_vault_writer_commit(ls_vault_writer *writer);
/* What was not committed goes. NULL and a pointer to NULL are fine. */
LS_API void ls_vault_writer_destroy(ls_vault_writer **writer);

typedef struct ls_vault_reader ls_vault_reader;

/* Read an entry as it is now, whatever takes its place meanwhile.
 * vault:  borrow: until the reader is destroyed.
 * out:    own; NULL after an error; give it to ls_vault_reader_destroy().
 * Errors: as ls_vault_get(); LS_EPROTO also when a shard is missing, or has
 *         another size. */
LS_MUST_USE LS_API int ls_vault_reader_create(ls_vault_reader **out,
                                              ls_vault *vault,
                                              const char *name);
LS_API size_t ls_vault_reader_n(const ls_vault_reader *reader);
/* Borrow: until the reader is destroyed. NULL: there is no shard `at`. */
LS_API const struct ls_vault_shard *
ls_vault_reader_shard(const ls_vault_reader *reader, size_t at);
/* Read shard `at` from its beginning. Errors: LS_EINVAL there is none. */
LS_MUST_USE LS_API int ls_vault_reader_begin(ls_vault_reader *reader,
                                             size_t at);
/* Read on in it. Pieces may be used once the shard was read to its end without
 * an error, since only then its checksum is known to be right.
 * size:   of data; not 0.
 * got:    so many bytes were read; 0: there are no more.
 * Errors: LS_EPROTO they are damaged: with the last piece, which is not given;
 *         LS_ESTATE no shard was begun. */
LS_MUST_USE LS_API int ls_vault_reader_read(ls_vault_reader *reader, void *data,
                                            size_t size, size_t *got);
/* NULL and a pointer to NULL are fine. */
LS_API void ls_vault_reader_destroy(ls_vault_reader **reader);

#endif
