/* vault_manifest.h - what an entry of a vault says of its shards: the end of
 * its file.
 *
 * Thread: any. */
#ifndef LOCKSTEP_STATE_VAULT_MANIFEST_H
#define LOCKSTEP_STATE_VAULT_MANIFEST_H

#include "lockstep/codec.h"
#include "lockstep/file.h"
#include "lockstep/vault.h"

#define VAULT_TAIL_SIZE 26
/* NAME+255+UNIQUE, its NUL included; at most 255 bytes, as disks have it. */
#define VAULT_FILE_MAX (LS_VAULT_NAME_MAX + 5 + LS_FILE_UNIQUE_MAX)

struct vault_shard {
    struct ls_vault_shard told;
    char file[VAULT_FILE_MAX]; /* "": in front of the manifest, at: */
    uint64_t offset;
};

struct vault_manifest {
    uint64_t check; /* of its bytes: tells two of one entry apart */
    size_t n;
    struct vault_shard shards[];
};

/* As it is written, its checksum, and the tail that finds it.
 * data: borrow: until the writer is used again. */
int vault_manifest_write(ls_writer *writer, const struct vault_shard *shards,
                         size_t n, const void **data, size_t *size,
                         unsigned char tail[VAULT_TAIL_SIZE], uint64_t *check);
/* From an open entry. out: own: free() it; written on success only.
 * Errors: LS_EPROTO, with the path. */
int vault_manifest_read(ls_file *file, const char *path, const char *name,
                        struct vault_manifest **out);
bool vault_manifest_names(const struct vault_manifest *manifest,
                          const char *file);
bool vault_manifest_has_files(const struct vault_manifest *manifest);
/* Whether it may be the name of an entry or a shard. */
bool vault_is_name(const char *name);
/* The same, for users: `what` says which. Errors: LS_EINVAL. */
int vault_check_name(const char *what, const char *name);
/* LS_EPROTO. */
int vault_damaged(const char *path, const char *why);

#endif
