/* profile.h - the recordings of a run, read, and on one clock.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_PROFILE_H
#define LOCKSTEP_PROFILE_H

#include "lockstep/trace.h"

#include "clock_fit.h"

/* In the folder of a run. */
#define PROFILE_FOLDER "trace"
#define PROFILE_SUFFIX ".lstrace"

struct profile_node {
    struct ls_trace_file file; /* own; all times are of the first node's clock;
                                * no record is open; names and threads are those
                                * of the profile */
    struct clock_fit clock;    /* own; compared to the parent's */
    size_t parent;             /* its own index: the first node */
    bool aligned; /* else only wall clocks say how its clock compares */
};

/* All zero: nothing. */
struct profile {
    struct profile_node *nodes; /* own; by id */
    size_t n_nodes;
    char **names; /* own; each once */
    size_t n_names;
};

/* Read every recording in `folder`, RUN/trace.
 * out:    written on success only; give it to profile_clear().
 * Errors: LS_ENOENT there is no recording; LS_EPROTO, LS_EMISMATCH a file is no
 *         recording, or that of another node or job, or has times that no
 *         clock shows: the text names it;
 *         LS_EIO; LS_ELIMIT too many names, or a file too large; LS_ENOMEM. */
LS_MUST_USE int profile_read(struct profile *out, const char *folder);

/* The same of recordings in memory: LS_ENOENT, LS_EPROTO, LS_EMISMATCH,
 * LS_ELIMIT, LS_ENOMEM. files: moved: each is empty afterwards,
 * whatever is returned. */
LS_MUST_USE int profile_make(struct profile *out, struct ls_trace_file *files,
                             size_t n);
void profile_clear(struct profile *profile);

/* By how much a time of this node may be wrong at most, either way; ns. */
double profile_error(const struct profile *profile, size_t node, int64_t at);

/* The number of a name; n_names when there is none. */
size_t profile_name(const struct profile *profile, const char *text);

/* The node of this id; n_nodes when there is none. */
size_t profile_find(const struct profile *profile, uint32_t id);

/* The record of this kind, name and number; NULL when there is none. */
const struct ls_trace_record *profile_record(const struct profile *profile,
                                             size_t node, uint8_t kind,
                                             uint16_t name, uint64_t number);

#endif
