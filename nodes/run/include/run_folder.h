/* run_folder.h - each run of a job has a folder of its own: out/JOB/3.
 *
 * Runs are numbered. In the folder a file `record` says of which run it is, and
 * is locked for as long as somebody works on it: the launcher, and the node
 * that keeps what was learned. `latest` beside the folders points to the one
 * that was begun, or gone on with, last.
 *
 * What the same command does when it comes again is told in docs/runs.md: a run
 * that was interrupted goes on when it would learn the same; one that has ended
 * stays as it is, and a new one begins. Nothing is ever removed that the run
 * did not make itself. Thread: serial. */
#ifndef LOCKSTEP_RUN_FOLDER_H
#define LOCKSTEP_RUN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/file.h"

#define RUN_FOLDER_RECORD    "record"
#define RUN_FOLDER_STATE     "checkpoints" /* of the run: lockstep/checkpoint.h */
#define RUN_FOLDER_NAME_MAX  16
#define RUN_FOLDER_TOKEN_MAX 16

struct run_folder {
    char out[LS_PATH_MAX];              /* of all runs of the job */
    char name[RUN_FOLDER_NAME_MAX + 1]; /* "3"; "": there is none */
    /* Of this run alone, of all jobs and hosts. */
    char token[RUN_FOLDER_TOKEN_MAX + 1];
    unsigned lives;  /* that it had before: it goes on; 0: it is new */
    unsigned behind; /* one that would go on, and was left: fresh; 0: none */
    bool made;       /* by this life */
    bool made_out;   /* and `out` too */
    ls_file *record; /* own; locked; NULL: it is not */
};

struct run_folder_options {
    const char *out; /* made, with those above it */
    const char *job;
    uint64_t
        learning; /* plan_learning_hash(); runs go on where it is the same */
    bool fresh;   /* a new run, whatever there is */
    bool aside;   /* what the same command does does not depend on it */
    /* Not a new run: PLAN_LATEST, the last that would learn the same, or the
     * number of one, whatever came after it. NULL: what there is decides. */
    const char *resume;
};

/* Whether runs could have their folders there, without making any, and those
 * that are there have records that can be read.
 * Errors: LS_EIO, which names the file or folder that is in the way; LS_EPROTO
 *         the same of a damaged record. */
LS_MUST_USE int run_folder_check(const char *out);

/* Find the run to go on with, or begin one, and lock it. Of those that begin
 * one at the same moment each gets a folder of its own. out:    written on
 * success only; give it to run_folder_end(). Errors: LS_EAGAIN the run that
 * would go on is being worked on: the text names it; LS_EIO, which names the
 * file: it cannot be written, for one; LS_EPROTO a record that is none;
 * LS_ELIMIT the path is too long; with `resume` LS_ENOENT there is no such run,
 * or it has ended; LS_EMISMATCH it would learn something else. Nothing is made
 * then. */
LS_MUST_USE int run_folder_begin(struct run_folder *out,
                                 const struct run_folder_options *options);
/* From now on others may join it, and nobody may begin it. */
LS_MUST_USE int run_folder_share(struct run_folder *folder);
/* For a node of a run that another process has begun. keeps: it keeps what is
 * learned, so nobody may go on with the run before it has ended.
 * Errors: LS_EINVAL that is not a number; LS_ENOENT there is no such run;
 *         LS_EAGAIN, LS_EIO, LS_EPROTO as above. */
LS_MUST_USE int run_folder_join(struct run_folder *folder, const char *out,
                                const char *name, bool keeps);

/* What is to be known of a run from outside. */
struct run_folder_look {
    char path[LS_PATH_MAX]; /* of its folder, absolute and without links */
    char out[LS_PATH_MAX];  /* that this is in */
    const char *name;       /* in path: "3" */
    char job[128];
    bool done; /* it has come to its end */
};

/* path: of a run's folder; or of all runs of a job: then of the latest. out:
 * written on success only; it must stay where it is.
 * Errors: LS_ENOENT there is no such folder, or it is not a run's; LS_EPROTO
 *         its record is damaged; LS_EIO; LS_ELIMIT. */
LS_MUST_USE int run_folder_look(struct run_folder_look *out, const char *path);
/* Whether somebody works on it. */
bool run_folder_is_busy(const struct run_folder_look *look);

/* It is not worked on any more. done: it has come to its end, and will not go
 * on. A folder that this life has made, and in which nothing was left, goes. */
void run_folder_end(struct run_folder *folder, bool done);

/* Have a link point to a name beside it. Errors: LS_EEXIST something else is
 * there, and stays; LS_EIO; LS_ELIMIT. */
LS_MUST_USE int run_folder_point(const char *link, const char *to);
/* Whether it does. */
bool run_folder_points(const char *link, const char *to);

#endif
