/* commit.h - both sides of a save that is on all nodes or on none, as state
 * machines: no bus, no disk, no clock.
 *
 * The committer has each node write its entry (phase 1). Once all are on disk,
 * it writes the manifest, which names them all (phase 2): that one write is the
 * commit. Then it tells each node whether to keep its entry. If a node fails,
 * is lost, or is too slow, there is no manifest, and the previous epoch stays
 * the newest. A node removes an entry only when it is told to; one whose
 * committer is lost does not know, and keeps it. docs/jobs.md has the table. */
#ifndef LOCKSTEP_SAVES_COMMIT_H
#define LOCKSTEP_SAVES_COMMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* ---- the committer ----------------------------------------------------- */

enum commit_phase {
    COMMIT_WRITING, /* until all entries are on disk */
    COMMIT_NAMING,  /* until the manifest is */
    COMMIT_TELLING, /* until all nodes know */
    COMMIT_ENDED
};

enum commit_verdict { COMMIT_KEEP, COMMIT_DROP };

/* What it does; each may be called inside any input. `node` is an index. */
struct commit_ops {
    void (*write)(void *self, size_t node);
    void (*name)(void *self); /* ends with commit_named() */
    void (*tell)(void *self, size_t node, enum commit_verdict verdict);
};

struct commit_node {
    bool written; /* its entry is on disk */
    bool gone;    /* lost: it is told nothing */
    bool told;
};

struct commit {
    const struct commit_ops *ops;
    void *self;
    enum commit_phase phase;
    enum commit_verdict verdict; /* from TELLING on */
    bool saved;                  /* the manifest is on disk */
    struct ls_failure failure;   /* why it is not */
    size_t n;
    struct commit_node *nodes; /* borrow */
};

/* nodes: n of them, at least one; borrow. */
void commit_begin(struct commit *commit, const struct commit_ops *ops,
                  void *self, struct commit_node *nodes, size_t n);
/* Begin one that cannot be: no node writes, and all are told. */
void commit_refuse(struct commit *commit, const struct commit_ops *ops,
                   void *self, struct commit_node *nodes, size_t n, int status);
/* The answer of a node to write. status: LS_OK its entry is on disk; any other
 * is the failure of the save, with this thread's error text. */
void commit_written(struct commit *commit, size_t node, int status);
/* gone: after an error, that there is certainly no manifest. */
void commit_named(struct commit *commit, int status, bool gone);
void commit_told(struct commit *commit, size_t node);
/* It is lost, with this thread's error text. Once its entry is on disk, the
 * save does not need it. */
void commit_lost(struct commit *commit, size_t node);
/* The deadline of the phase has passed: of writing, or of telling. The text of
 * this thread's error says which nodes are missing. */
void commit_late(struct commit *commit);

/* ---- a node ------------------------------------------------------------ */

/* The entry that waits for its verdict. */
struct keeper {
    bool waits;
    int64_t epoch;
    int64_t round; /* of the save; no two have the same */
};

/* It is on disk. One before it, whose committer was lost, is kept. */
void keeper_wrote(struct keeper *keeper, int64_t epoch, int64_t round);
/* Whether to remove the entry now. A verdict of another round changes
 * nothing: it may be about another entry of the same epoch. */
bool keeper_drops(struct keeper *keeper, int64_t round,
                  enum commit_verdict verdict);
#endif
