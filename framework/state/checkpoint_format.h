/* checkpoint_format.h - the names and the bytes of a checkpoint
 * (docs/checkpoints.md). Thread: any. */
#ifndef LOCKSTEP_STATE_CHECKPOINT_FORMAT_H
#define LOCKSTEP_STATE_CHECKPOINT_FORMAT_H

#include "lockstep/checkpoint.h"

#define BLOB_NAMES "blob_names" /* the first shard of an entry */
#define MANIFEST   "manifest"   /* stands for the node in its name */

/* NODE.000005 */
void checkpoint_name(char out[LS_VAULT_NAME_MAX + 1], const char *node,
                     int64_t epoch);
/* Whether a name is that of a node, exactly as it is written. */
bool checkpoint_epoch(const char *name, const char *node, int64_t *epoch);
/* For users. Errors: LS_EINVAL. */
int checkpoint_check_node(const char *node);

/* The shard blob_names. */
struct blob_names {
    struct ls_checkpoint_blob *blobs; /* own */
    size_t n;
};
extern const struct ls_record blob_names_record;

#endif
