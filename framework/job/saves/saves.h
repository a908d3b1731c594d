/* saves.h - a folder of checkpoints that several nodes write together: what
 * each of them does, and what the one that leads asks of them. Jobs stand on
 * it, and the step of lockstep/checkpoint_step.h.
 *
 * A node that saves writes its entry into a folder, which all share or each has
 * for itself. One that has none sends its blobs to the node that leads, which
 * writes the entry for it. Thread: as its functions say. */
#ifndef LOCKSTEP_SAVES_H
#define LOCKSTEP_SAVES_H

#include "ask.h"
#include "commit.h"
#include "lockstep/checkpoint.h"

/* What becomes of a checkpoint that was saved by other nodes. */
enum saves_others {
    SAVES_REFUSE, /* it is an error */
    SAVES_DIVIDE, /* all entries are for all nodes, who divide them */
    SAVES_SKIP    /* who is in it has its own, and the others have nothing */
};

/* What the owner of one does besides; each may be NULL. */
struct saves_ops {
    /* Before the blobs of this node are read or written: returns when they do
     * not change until the question is answered. With the mutex held. */
    int (*still)(void *self, struct question *question);
    /* Before an entry of another life is loaded. With the mutex held. */
    int (*before_load)(void *self, int64_t epoch,
                       const struct ls_checkpoint_entry *entry);
    /* Divides a checkpoint of other nodes. With the mutex held. */
    int (*divide)(void *self, struct question *question);
    /* What this node knows of how good the state is that is saved; NaN:
     * nothing. */
    double (*metric)(void *self);
    /* This one now exists: where it is led. Its error is that of the save. */
    int (*saved)(void *self, const struct ls_checkpoint_manifest *manifest);
};

/* What a save is of. */
struct saves_point {
    int64_t epoch;
    bool stopped;
    const char *why; /* static text, for a note; NULL: none */
};

/* How good the state of an epoch was, as one node has found. */
struct saves_verdict {
    int64_t epoch;
    double value;
    bool told; /* to the one that leads, with a save that goes on */
};

struct saves {
    /* Set by the owner, before saves_open(). All borrow. */
    struct asker *asker;
    const char *what; /* "job sums", for messages */
    const char *run;  /* for manifests */
    uint32_t id, leader;
    ls_blobs *blobs;    /* NULL: nothing of this node is saved */
    const char *folder; /* NULL: none */
    bool sends;         /* without a folder it sends its blobs */
    struct ls_checkpoint_retention retention;
    int timeout_ms;     /* of one question */
    const char *metric; /* name of what ops->metric() and saves_judge() say: a
                         * manifest has the mean of the nodes that know it.
                         * NULL: none */
    enum saves_others others;
    const struct saves_ops *ops;
    void *self;
    /* Whose blobs are saved, ascending; where it is led. They may change
     * between two saves. guests: who has no folder; NULL: all have one. */
    const uint32_t *nodes;
    const bool *guests;
    size_t n_nodes;

    ls_mutex mutex;        /* of what follows */
    ls_checkpoints *store; /* own; NULL: it is closed, or there is none */
    struct keeper keeper;
    int64_t round;              /* of the last save that is led here */
    struct saves_guest *hosted; /* own; folders of those without one */
    size_t n_hosted;
    struct saves_behind *behind; /* own; a save that goes on; NULL: none */

    struct saves_verdict *verdicts; /* own; under the asker's mutex */
    size_t n_verdicts;
};

/* The name of a node in checkpoints: "node-7". */
void saves_name(uint32_t id, char name[LS_CHECKPOINT_NODE_MAX + 1]);

/* Errors: LS_ENOMEM. */
LS_MUST_USE int saves_init(struct saves *saves, ls_runtime *runtime);
void saves_fini(struct saves *saves);
/* Errors: those of ls_checkpoints_open(). */
LS_MUST_USE int saves_open(struct saves *saves);
int saves_close(struct saves *saves);

/* ---- what each node does ----------------------------------------------- */

/* Works on a question by the one that leads; a question_fn. LS_ESTATE: nothing
 * is saved here. */
int saves_answer(struct saves *saves, struct question *question);
/* Whether it is one of those. */
bool saves_knows(const char *what);
/* All global blobs, for an answer. out: own. Errors: those of ls_blobs_pack().
 */
LS_MUST_USE int saves_pack(const ls_blobs *blobs, struct ls_body *out);

/* This node has found how good an epoch was. It says so with each save, until
 * one succeeds.
 * saved:  the last epoch that it took part in saving: of what is later than
 *         that, only the newest can yet be saved, and the others are dropped.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int saves_judge(struct saves *saves, int64_t saved, int64_t epoch,
                            double value);

/* ---- what the one that leads does -------------------------------------- */

/* Save it on all nodes or on none.
 * Errors: of a node, or of the folder, with what and epoch; LS_EINVAL there is
 *         no node to save; LS_EEXIST the folder has a checkpoint of this epoch
 *         or a later one: no node writes then. */
LS_MUST_USE int saves_save(struct saves *saves,
                           const struct saves_point *point);
/* The same behind: waits for the one before, and until all nodes have copied
 * their blobs; where there is no room for a thread, until they are saved.
 * Errors: of the copies; of the one before: nothing is begun then.
 * point:  copied.
 * epoch:  of which it is the error. */
LS_MUST_USE int saves_save_behind(struct saves *saves,
                                  const struct saves_point *point,
                                  int64_t *epoch);
/* Wait for the one that goes on. Errors: its own. epoch: of it; NONE: there
 * was none. */
int saves_finish(struct saves *saves, int64_t *epoch);
/* Whether one goes on. */
bool saves_is_busy(struct saves *saves);

/* Have all remove what is later: manifests first, then entries. */
LS_MUST_USE int saves_rewind(struct saves *saves, int64_t epoch);

/* A checkpoint to go on from. */
struct saves_found {
    struct ls_checkpoint_manifest manifest; /* own: saves_found_clear() */
    bool others;                            /* other nodes have saved it */
};
void saves_found_clear(struct saves_found *found);
/* That of a node; NULL: it has none. */
const struct ls_checkpoint_entry *saves_entry(const struct saves_found *found,
                                              uint32_t id);
/* Whether all nodes have this epoch whole.
 * out:    also after an error what was read of it.
 * Errors: LS_ENOENT, LS_EPROTO it is not to be used; LS_EMISMATCH. */
LS_MUST_USE int saves_look_at(struct saves *saves, int64_t epoch,
                              struct saves_found *out);
/* The newest that all nodes have whole.
 * before: only earlier ones; LS_CHECKPOINT_NONE: any.
 * ends:   that of an end, too.
 * Errors: LS_ENOENT there is not a checkpoint at all; LS_EPROTO none of them
 *         can be used: the log says why. */
LS_MUST_USE int saves_newest(struct saves *saves, int64_t before, bool ends,
                             struct saves_found *out);
/* The best by the metric of the retention, of those that all nodes have whole.
 * Errors: LS_ENOENT none has that metric; LS_EPROTO none of those that have can
 *         be used: the log says why. */
LS_MUST_USE int saves_best(struct saves *saves, struct saves_found *out);
/* For a run that begins from scratch. Errors: LS_EEXIST there are some. */
LS_MUST_USE int saves_check_none(struct saves *saves);
/* Have each node load its own.
 * names: of blobs, ended by NULL; NULL: all. */
LS_MUST_USE int saves_load(struct saves *saves, const struct saves_found *found,
                           const char *const *names);

/* ---- between its files ------------------------------------------------- */

/* With the mutex held: the entries of a node that has no folder. Errors: those
 * of ls_checkpoints_open(). */
LS_MUST_USE int saves_host(struct saves *saves, uint32_t id,
                           ls_checkpoints **out);
/* With the mutex held: what was written here for others and is later goes. */
LS_MUST_USE int saves_rewind_hosted(struct saves *saves, int64_t epoch);

#endif
