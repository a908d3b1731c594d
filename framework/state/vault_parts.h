/* vault_parts.h - the inside of a vault: manifests, and who may remove what.
 *
 * Three kinds of file are in its folder. NAME is an entry: a value or nothing,
 * its manifest, a tail. NAME+INDEX+UNIQUE is a shard, and .part@UNIQUE an entry
 * that is being written.
 *
 * UNIQUE, of ls_file_unique(), says who wrote a file. So a shard needs no other
 * name while it is written: nobody looks at it before a manifest names it, no
 * two writers have the same one, and what a dead writer has left is known.
 *
 * Shards that no manifest names any more are removed by who has replaced the
 * manifest, once the new one is on disk; where that has failed, by who clears
 * the folder after the writer's death. */
#ifndef LOCKSTEP_STATE_VAULT_PARTS_H
#define LOCKSTEP_STATE_VAULT_PARTS_H

#include "lockstep/codec.h"
#include "lockstep/file.h"
#include "lockstep/vault.h"

#define VAULT_PART      ".part@"
#define VAULT_VALUE     "value" /* the shard of an entry that was put */
#define VAULT_TAIL_SIZE 26
/* NAME+255+UNIQUE, its NUL included; at most 255 bytes, as disks have it. */
#define VAULT_FILE_MAX (LS_VAULT_NAME_MAX + 5 + LS_FILE_UNIQUE_MAX)

/* Of its folder's path: room is left for "/" and any name. */
#define VAULT_FOLDER_MAX (LS_PATH_MAX - 256)

struct ls_vault {
    char folder[VAULT_FOLDER_MAX + 1];
};

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

/* vault_manifest.c */
/* As it is written, and the tail that finds it.
 * data: borrow: until the writer is used again. */
int vault_manifest_write(ls_writer *writer, const struct vault_shard *shards,
                         size_t n, const void **data, size_t *size,
                         unsigned char tail[VAULT_TAIL_SIZE]);
/* From an open entry. out: own: free() it; written on success only.
 * Errors: LS_EPROTO, with the path. */
int vault_manifest_read(ls_file *file, const char *path, const char *name,
                        struct vault_manifest **out);
bool vault_manifest_names(const struct vault_manifest *manifest,
                          const char *file);
bool vault_manifest_has_files(const struct vault_manifest *manifest);
/* LS_EPROTO. */
int vault_damaged(const char *path, const char *why);

/* vault.c */
int vault_check_name(const char *what, const char *name);
void vault_path(const ls_vault *vault, const char *file,
                char path[LS_PATH_MAX]);
/* Put an entry of these shards; data: what stands in front of the manifest. */
int vault_replace(const ls_vault *vault, const char *name,
                  const struct vault_shard *shards, size_t n,
                  const struct ls_file_part *data, bool durable);
/* Whether a shard's file is of no entry that is there, or may be there. */
bool vault_is_orphan(const ls_vault *vault, const char *name, const char *file);
/* The files of shards that the entry does not name any more. What cannot be
 * removed goes when the folder is cleared. */
void vault_remove_shards(const ls_vault *vault, const char *name,
                         const struct vault_shard *shards, size_t n);

#endif
