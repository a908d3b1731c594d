/* checkpoint.h - one node's view of a folder of checkpoints.
 *
 * A checkpoint is the state of all nodes of a run at the end of one epoch. It
 * is written in two phases. First each node writes its own entry, NODE.%06d,
 * with one shard per blob, and gets a description of it. When all entries are
 * on disk, one node writes the manifest, manifest.%06d, which names them with
 * their sizes and checksums. A checkpoint without a valid manifest does not
 * exist: whatever happens before it is on disk, the one before is the newest.
 *
 * The nodes may share one folder or have one each. The manifest is in that of
 * the node that commits; entries that are named in it and do not lie there are
 * for their nodes to look at.
 *
 * Epochs are 0 … INT64_MAX, in any order with any gaps, but a new checkpoint is
 * always later than all others in its folder (ls_checkpoints_rewind()). At
 * least six digits of them are written. Errors of damage, LS_EPROTO, name the
 * file. Errors of all calls: LS_EIO and LS_ENOMEM as in lockstep/file.h.
 * Thread: serial, but for the done function.
 * Source: docs/checkpoints.md, which has the format. */
#ifndef LOCKSTEP_CHECKPOINT_H
#define LOCKSTEP_CHECKPOINT_H

#include "lockstep/blobs.h"
#include "lockstep/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LS_CHECKPOINT_NODE_MAX  80 /* bytes of a node's name */
#define LS_CHECKPOINT_NODES_MAX 4096
#define LS_CHECKPOINT_NONE      INT64_C(-1) /* as an epoch */

/* ---- opening ----------------------------------------------------------- */

/* Which checkpoints a commit keeps: those that any line names. All zero: every
 * one. The newest is always kept. */
struct ls_checkpoint_retention {
    size_t last;        /* the newest so many; 0: one */
    int64_t every;      /* those whose epoch is a multiple of it; 0: none */
    size_t best;        /* the best so many; 0: none. Of equals the newer one */
    const char *metric; /* by this metric; those without it, or with NaN, are
                         * not among the best. Copied; NULL: no `best` */
    bool least;         /* the smaller the better */
};

struct ls_checkpoints_options {
    const char *folder; /* copied; created unless only looked at */
    const char *node;   /* copied; a vault's name, not "manifest"; NULL: none,
                         * nothing is written for one */
    bool commits;       /* writes and removes manifests. With neither, nothing
                         * in the folder is created, changed or locked */
    struct ls_checkpoint_retention retention; /* of who commits */
    /* Called whenever a write behind has ended, on its thread: take its result
     * soon with ls_checkpoints_wait(), on yours. NULL: nobody is told. */
    void (*done)(void *self);
    void *self;
};

typedef struct ls_checkpoints ls_checkpoints;

/* Open it, and remove what dead writers of this machine left unfinished.
 * out:    own; NULL after an error; give it to ls_checkpoints_close().
 * Errors: LS_EINVAL the node's name, or the retention; LS_EAGAIN another
 *         process has this folder for the same node, or to commit: two runs in
 *         one folder; LS_ENOENT it is only looked at, and not there; LS_ELIMIT
 *         its path is too long. */
LS_MUST_USE LS_API int
ls_checkpoints_open(ls_checkpoints **out,
                    const struct ls_checkpoints_options *options);
/* Waits for what is written behind; its error, if nobody has taken it, is
 * returned. All is closed, whatever is returned. */
LS_API int ls_checkpoints_close(ls_checkpoints **checkpoints);

/* ---- phase 1: this node's entry ---------------------------------------- */

/* What the manifest says of one node's entry. */
struct ls_checkpoint_entry {
    char node[LS_CHECKPOINT_NODE_MAX + 1];
    uint64_t size;  /* of all its shards, in bytes */
    uint64_t check; /* of its own manifest: two entries that have it in common
                     * are the same, byte for byte */
};
/* The table of such a struct, for messages. */
LS_API extern const struct ls_record ls_checkpoint_entry_record;

/* What another node says of the entry that it has written. By its name that
 * node finds it again, so it must be its own.
 * out:    written on success only.
 * Errors: LS_EPROTO it is another node's; those of ls_record_read(). */
LS_MUST_USE LS_API int ls_checkpoint_entry_read(struct ls_checkpoint_entry *out,
                                                const ls_value *said,
                                                const char *node);

/* Write all global blobs. It is on disk when this returns; an entry of this
 * epoch that no manifest names is replaced. Copies nothing: what it needs
 * beside the blobs is a few MiB.
 * out:    may be NULL.
 * Errors: LS_EEXIST this folder has a manifest of this epoch or a later one;
 *         LS_ESTATE it was opened without a node; LS_EINVAL the epoch is
 *         negative, or the blobs have over INT64_MAX bytes together; what a
 *         blob's ops return, with its name; what an earlier write behind left,
 *         with that epoch: nothing is written then, and the next call may.
 *         After LS_EIO (a full disk) nothing of it is left. */
LS_MUST_USE LS_API int ls_checkpoints_write(ls_checkpoints *checkpoints,
                                            int64_t epoch,
                                            const ls_blobs *blobs,
                                            struct ls_checkpoint_entry *out);

/* The same, behind: copies all blobs into a buffer, which is kept, and returns;
 * a thread writes. At most one is in flight: this waits for the one before.
 * Errors: as above; LS_ETIMEDOUT the one before is still being written. */
LS_MUST_USE LS_API int ls_checkpoints_write_behind(ls_checkpoints *checkpoints,
                                                   int64_t epoch,
                                                   const ls_blobs *blobs,
                                                   int wait_ms);
/* Wait until it is on disk, and take its result, once.
 * epoch, out: may be NULL; epoch is also told after an error of the write.
 * Errors: those of the write; LS_ETIMEDOUT it goes on; LS_ENOENT there is none
 *         whose result was not taken. */
LS_MUST_USE LS_API int ls_checkpoints_wait(ls_checkpoints *checkpoints,
                                           int wait_ms, int64_t *epoch,
                                           struct ls_checkpoint_entry *out);
/* Have the buffer ready for these blobs, so that the first write behind costs
 * no more than the others. Errors: what an earlier write behind left, and
 * LS_ETIMEDOUT, as there; what a blob's size() returns. */
LS_MUST_USE LS_API int ls_checkpoints_prepare(ls_checkpoints *checkpoints,
                                              const ls_blobs *blobs);

/* ---- phase 2: the manifest --------------------------------------------- */

#define LS_CHECKPOINT_TEXT_MAX   65 /* of names, with the NUL */
#define LS_CHECKPOINT_VALUES_MAX 256

struct ls_checkpoint_metric {
    char name[LS_CHECKPOINT_TEXT_MAX];
    double value;
};

struct ls_checkpoint_note {
    char name[LS_CHECKPOINT_TEXT_MAX]; /* "last_epoch" */
    char *text;                        /* own */
};

/* All that is said of a checkpoint. Give what was read to
 * ls_checkpoint_manifest_clear(); what you build yourself is borrowed. */
struct ls_checkpoint_manifest {
    int64_t epoch;
    int64_t time_ns;                  /* since 1970; written by the commit */
    char run[LS_CHECKPOINT_TEXT_MAX]; /* of which run; free text */
    bool stopped;                     /* the job ended with this epoch: who goes
                                       * on from it runs no other */
    struct ls_checkpoint_entry *entries;
    size_t n_entries; /* 1 … LS_CHECKPOINT_NODES_MAX */
    struct ls_checkpoint_metric *metrics;
    size_t n_metrics;
    struct ls_checkpoint_note *notes; /* of the job, small */
    size_t n_notes;
};
/* For messages, and to print. */
LS_API extern const struct ls_record ls_checkpoint_manifest_record;
LS_API void ls_checkpoint_manifest_clear(struct ls_checkpoint_manifest *gone);
/* The entry of a node. NULL: there is none. Borrow: as the manifest's. */
LS_API const struct ls_checkpoint_entry *
ls_checkpoint_manifest_entry(const struct ls_checkpoint_manifest *manifest,
                             const char *node);

/* Whether a checkpoint of this epoch may yet be committed, before nodes write
 * their entries: the folder is looked at now.
 * Errors: LS_EINVAL the epoch is below 0; LS_EEXIST this folder has a manifest
 *         of this epoch or a later one; LS_EIO the folder cannot be read, or is
 *         gone; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_checkpoints_check_later(ls_checkpoints *checkpoints,
                                                  int64_t epoch);
/* Write the manifest: the checkpoint exists when this returns. Then remove what
 * the retention does not keep: first the manifests, then the entries that they
 * name and that lie here. What could not be removed is removed by a later one.
 * Errors: LS_ESTATE it was not opened to commit; LS_EINVAL no entry, a node
 *         twice, a name that is none, over 1 MiB of it; LS_EEXIST this folder
 *         has a manifest of this epoch or a later one; LS_EPROTO an entry that
 *         lies here is not the one described. */
LS_MUST_USE LS_API int
ls_checkpoints_commit(ls_checkpoints *checkpoints,
                      const struct ls_checkpoint_manifest *manifest);

/* How good a checkpoint is, once that is known: its manifest is replaced by one
 * that says so as well. What it had under that name goes; the rest stays. A
 * kill or a loss of power leaves the one or the other, whole. One that says so
 * already is not written again.
 * Errors: LS_ESTATE it was not opened to commit; LS_ENOENT there is no manifest
 *         of it; LS_EPROTO it is damaged; LS_EINVAL the name is empty or too
 *         long; LS_ELIMIT it has LS_CHECKPOINT_VALUES_MAX others. */
LS_MUST_USE LS_API int
ls_checkpoints_set_metric(ls_checkpoints *checkpoints, int64_t epoch,
                          const struct ls_checkpoint_metric *metric);

/* The other nodes, after each commit: remove this node's entries that are older
 * than the newest of these epochs, and not among them. The epochs are those of
 * the committer's ls_checkpoints_list() after the commit. */
LS_API int ls_checkpoints_keep(ls_checkpoints *checkpoints,
                               const int64_t *epochs, size_t n);

/* ---- finding ----------------------------------------------------------- */

/* The epochs that this folder has a manifest of, in ascending order; whether
 * it is valid is not looked at.
 * epochs: own: free() it; NULL when n is 0. */
LS_MUST_USE LS_API int ls_checkpoints_list(ls_checkpoints *checkpoints,
                                           int64_t **epochs, size_t *n);
/* The same, of this node's entries; none without a node. */
LS_MUST_USE LS_API int ls_checkpoints_own(ls_checkpoints *checkpoints,
                                          int64_t **epochs, size_t *n);

/* Read one manifest.
 * Errors: LS_ENOENT there is none here; LS_EPROTO it is damaged. */
LS_MUST_USE LS_API int
ls_checkpoints_manifest(ls_checkpoints *checkpoints, int64_t epoch,
                        struct ls_checkpoint_manifest *out);

/* Whether one entry lies here whole: reads all its bytes.
 * expected: from the manifest.
 * Errors: LS_ENOENT it does not lie here; LS_EPROTO it is damaged, or another
 *         one: the text names the file and the blob. */
LS_MUST_USE LS_API int
ls_checkpoints_has(ls_checkpoints *checkpoints, int64_t epoch,
                   const struct ls_checkpoint_entry *expected);

/* The same for the manifest, and all its entries that lie here.
 * n_elsewhere: how many do not; NULL: then one that does not is LS_EPROTO. */
LS_MUST_USE LS_API int ls_checkpoints_verify(ls_checkpoints *checkpoints,
                                             int64_t epoch,
                                             size_t *n_elsewhere);

/* Called with each checkpoint that was passed over, and why. */
typedef void ls_checkpoint_passed_fn(void *self, int64_t epoch,
                                     const char *why);
/* The newest one that is valid as ls_checkpoints_verify() sees it: the manifest
 * and every entry that lies here are whole. Damaged ones are passed over.
 * before:    only earlier ones; LS_CHECKPOINT_NONE: any.
 * elsewhere: entries may lie elsewhere; false: all must be here.
 * passed:    may be NULL.
 * Errors:    LS_ENOENT there is none; LS_EIO the system does not give one, as
 *            for want of a permission: it may be whole, so that an older one is
 *            not taken in its place. */
LS_MUST_USE LS_API int ls_checkpoints_newest(ls_checkpoints *checkpoints,
                                             int64_t before, bool elsewhere,
                                             ls_checkpoint_passed_fn *passed,
                                             void *self, int64_t *epoch);

/* The epochs that have this metric, the best first, of equals the newer one;
 * damaged manifests, and those with NaN, are not among them. Whether their
 * entries are whole is not looked at.
 * epochs: own: free() it; NULL when n is 0. */
LS_MUST_USE LS_API int ls_checkpoints_ranked(ls_checkpoints *checkpoints,
                                             const char *metric, bool least,
                                             int64_t **epochs, size_t *n);

/* ---- loading ----------------------------------------------------------- */

/* What an entry holds, known before the rest is read. */
struct ls_checkpoint_blob {
    char name[LS_VAULT_NAME_MAX + 1];
    struct ls_blob_form form;
};
/* The blobs of an entry, in the order in which they were registered.
 * expected: as below.
 * blobs: own: free() it; NULL when n is 0.
 * Errors: as ls_checkpoints_has(). */
LS_MUST_USE LS_API int
ls_checkpoints_blob_names(ls_checkpoints *checkpoints, int64_t epoch,
                          const struct ls_checkpoint_entry *expected,
                          struct ls_checkpoint_blob **blobs, size_t *n);

/* Load the global blobs from the entry of this node or of another one.
 * expected: from the manifest: node, size and check must be right.
 * names:    the blobs to load, ended by NULL; NULL: all.
 * Errors:   LS_ENOENT the entry does not lie here, or a blob that is asked for
 *           is not in it, or not registered; LS_EMISMATCH one has another type
 *           or shape (the text says which), or, with all, one of the entry is
 *           not registered. Until here nothing was changed. LS_EPROTO it is
 *           damaged, or another one; what a blob's ops return. Then it is
 *           unknown which of them were loaded. */
LS_MUST_USE LS_API int
ls_checkpoints_load(ls_checkpoints *checkpoints, int64_t epoch,
                    const struct ls_checkpoint_entry *expected,
                    const ls_blobs *blobs, const char *const *names);

/* ---- removing ---------------------------------------------------------- */

/* Remove one checkpoint: its manifest, then its entries that lie here.
 * Errors: LS_ENOENT there is no manifest of it; LS_ESTATE it was not opened to
 *         commit. */
LS_API int ls_checkpoints_drop(ls_checkpoints *checkpoints, int64_t epoch);

/* Remove those that the retention of the options does not keep: what a commit
 * does after it. Damaged manifests are neither counted nor removed.
 * Errors: LS_ESTATE it was not opened to commit; that of the first that could
 *         not be removed: the others were tried too. */
LS_API int ls_checkpoints_retain(ls_checkpoints *checkpoints);

/* The run goes on from this epoch: remove later ones, newest first: manifests
 * if it was opened to commit, with their entries that lie here, and this node's
 * entries. What is written behind is waited for, and its result dropped.
 * LS_CHECKPOINT_NONE: all. Errors: LS_ETIMEDOUT it is still being written. */
LS_MUST_USE LS_API int ls_checkpoints_rewind(ls_checkpoints *checkpoints,
                                             int64_t epoch);

#ifdef __cplusplus
}
#endif

#endif
