/* checkpoint_folder.h - what the verbs of `lockstep checkpoint` share: the
 * folder that is asked about, and how its checkpoints are read and shown.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_CHECKPOINT_FOLDER_H
#define LOCKSTEP_CHECKPOINT_FOLDER_H

#include "lockstep/checkpoint.h"
#include "lockstep/file.h"

#include "options.h"

struct checkpoint_folder {
    const struct options *options; /* borrow; NULL: of another command */
    char path[LS_PATH_MAX];        /* of the checkpoints themselves */
    ls_checkpoints *checkpoints;   /* own */
    int64_t *epochs;               /* own; ascending */
    size_t n;
};

/* Find the folder that the options name, and open it: to look at, or, with a
 * retention, to remove.
 * retention: borrow; NULL: it is only looked at.
 * out:    give it to checkpoint_folder_close(), also after an error.
 * Errors: LS_ENOENT there is no such folder, or the run has saved none; those
 *         of ls_checkpoints_open(). */
LS_MUST_USE int
checkpoint_folder_open(struct checkpoint_folder *out,
                       const struct options *options,
                       const struct ls_checkpoint_retention *retention);
/* The same of a run, for who has no such options: `options` is NULL.
 * run:    its folder.
 * Errors: LS_ENOENT it has saved none; LS_ELIMIT; those of
 *         ls_checkpoints_open(). */
LS_MUST_USE int checkpoint_folder_of_run(struct checkpoint_folder *out,
                                         const char *run);
void checkpoint_folder_close(struct checkpoint_folder *folder);

/* Which epoch is meant: one by its number, or PLAN_FROM_BEST: of those that
 * are whole, the one with the best metric, of equals the newer. What is better
 * and damaged is named on stderr.
 * metric: NULL: PLAN_METRIC. least: the smaller the better.
 * Errors: LS_ENOENT there is no such one: those there are are named; LS_EPROTO
 *         all that have the metric are damaged. */
LS_MUST_USE int checkpoint_folder_find(const struct checkpoint_folder *folder,
                                       int64_t asked, const char *metric,
                                       bool least, int64_t *epoch);
/* The i-th that the options ask for; the newest there is, if they name none. */
LS_MUST_USE int checkpoint_folder_epoch(const struct checkpoint_folder *folder,
                                        size_t i, int64_t *epoch);
/* Its manifest. out: ls_checkpoint_manifest_clear(). Errors: also those of
 * ls_checkpoints_manifest(). */
LS_MUST_USE int
checkpoint_folder_manifest(const struct checkpoint_folder *folder, size_t i,
                           struct ls_checkpoint_manifest *out);

/* What one checkpoint is worth, after all its bytes were read. */
struct checkpoint_health {
    size_t n_elsewhere;          /* entries that lie on other machines */
    size_t n_damaged;            /* the manifest counts, too */
    size_t n_unreadable;         /* of these: the system does not give them */
    char why[LS_ERROR_TEXT_MAX]; /* of the first damage: names file and blob */
};
/* Read it all. What cannot be read, as it belongs to somebody else or its disk
 * fails, is one more damage: the others are looked at as well.
 * damaged: called with the text of each damage; NULL: nobody asks.
 * Errors: LS_ENOENT it was removed; LS_ENOMEM. */
LS_MUST_USE int checkpoint_folder_verify(const struct checkpoint_folder *folder,
                                         int64_t epoch,
                                         void (*damaged)(const char *text),
                                         struct checkpoint_health *out);
/* "whole", "damaged", "unreadable", "3 of 5 here". Returns text. */
const char *checkpoint_health_text(const struct checkpoint_health *health,
                                   size_t n_entries, char text[64]);

/* Read one blob. data: own: free() it. */
LS_MUST_USE int checkpoint_folder_load(const struct checkpoint_folder *folder,
                                       int64_t epoch,
                                       const struct ls_checkpoint_entry *entry,
                                       const struct ls_checkpoint_blob *blob,
                                       void **data);

/* All entries together, in bytes. */
uint64_t checkpoint_bytes(const struct ls_checkpoint_manifest *manifest);

/* For tables. Return text. */
#define CHECKPOINT_CELL 40
const char *checkpoint_bytes_text(uint64_t bytes, char text[CHECKPOINT_CELL]);
const char *checkpoint_time_text(int64_t time_ns, char text[CHECKPOINT_CELL]);

/* What somebody else's manifest says, on a terminal: a `?` for each control
 * character. text: CHECKPOINT_SAID bytes; the rest is cut off. Returns text. */
#define CHECKPOINT_SAID 512
const char *checkpoint_said(const char *said, char text[CHECKPOINT_SAID]);

/* The verbs, each in a file of its own: checkpoint_NAME.c. */
LS_MUST_USE int checkpoint_ls(const struct options *options);
LS_MUST_USE int checkpoint_show(const struct options *options);
LS_MUST_USE int checkpoint_verify(const struct options *options);
LS_MUST_USE int checkpoint_diff(const struct options *options);
LS_MUST_USE int checkpoint_export(const struct options *options);
LS_MUST_USE int checkpoint_rm(const struct options *options);

#endif
