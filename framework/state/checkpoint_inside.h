/* checkpoint_inside.h - what the files of a folder of checkpoints share:
 * opening and writing (checkpoint.c), reading (checkpoint_read.c), committing
 * and removing (checkpoint_commit.c). */
#ifndef LOCKSTEP_STATE_CHECKPOINT_INSIDE_H
#define LOCKSTEP_STATE_CHECKPOINT_INSIDE_H

#include "checkpoint_format.h"
#include "lockstep/file.h"
#include "lockstep/runtime.h"
#include "lockstep/vault.h"

/* Blobs up to this size have no file of their own. */
#define SMALL_BLOB (64u << 10)

/* What is written behind. The thread has it until it is joined. */
struct behind {
    ls_thread *thread;     /* own; NULL: there is no result to take */
    ls_blobs *blobs;       /* own; the copies */
    unsigned char *buffer; /* own; where they lie */
    size_t room;
    int64_t epoch;
    struct ls_checkpoint_entry entry;
    struct ls_failure failure;
};

struct ls_checkpoints {
    ls_vault *vault;   /* own */
    ls_file *locks[2]; /* own; of the node, and of who commits */
    int64_t newest;    /* of the manifests, as far as is known here */
    struct behind behind;
    struct ls_checkpoints_options options; /* its texts are these: */
    char node[LS_CHECKPOINT_NODE_MAX + 1];
    char metric[LS_CHECKPOINT_TEXT_MAX];
    char folder[LS_PATH_MAX];
};

/* The path of an entry or a manifest, for messages. */
#define CHECKPOINT_TEXT (LS_PATH_MAX + LS_VAULT_NAME_MAX + 2)
const char *checkpoint_path(const ls_checkpoints *checkpoints, const char *node,
                            int64_t epoch, char out[CHECKPOINT_TEXT]);

/* Ascending. epochs: own. */
int checkpoint_list(const ls_checkpoints *checkpoints, const char *node,
                    int64_t **epochs, size_t *n);
/* An entry that lies here, as it is described. Errors: LS_ENOENT; LS_EPROTO. */
int checkpoint_open_entry(const ls_checkpoints *checkpoints, int64_t epoch,
                          const struct ls_checkpoint_entry *expected,
                          ls_vault_reader **out);
/* Of this metric, the larger the better; NaN: it has none, or none is asked
 * for. */
double checkpoint_value(const struct ls_checkpoint_manifest *manifest,
                        const char *metric, bool least);
/* Errors: LS_EEXIST the epoch is not later than all that are here. */
int checkpoint_check_later(const ls_checkpoints *checkpoints, int64_t epoch);

/* How each global blob will be saved now. out: own, its blobs; also after an
 * error. */
int checkpoint_measure(const ls_blobs *blobs, struct blob_names *out);
/* Whether what was saved so can be loaded. asked: names, ended by NULL; NULL:
 * all. Errors: LS_ENOENT; LS_EMISMATCH. */
int checkpoint_check_load(const ls_blobs *blobs, const struct blob_names *names,
                          const char *const *asked);

#endif
