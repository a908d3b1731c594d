/* faults.h - what goes wrong in a simulation, from a file or by name.
 *
 * A file has three parts: `network`, how messages travel; `random`, faults that
 * are drawn from the seed; `script`, faults at given times. What may stand in
 * it: lockstep help faults.
 * Thread: serial. */
#ifndef LOCKSTEP_FAULTS_H
#define LOCKSTEP_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lockstep/network.h"
#include "lockstep/random.h"

#include "plan.h"

enum fault_kind {
    FAULT_CUT,
    FAULT_HEAL,
    FAULT_RESET,
    FAULT_SHAPE,
    FAULT_PAUSE,
    FAULT_RESUME,
    FAULT_KILL,
    FAULT_RESTART,
    FAULT_STRANGER,
    FAULT_CLOCK,
    FAULT_POWER, /* a kill, and the node's disk loses power */
    FAULT_FULL,  /* next to nothing more fits on it */
    FAULT_ROOM,
    FAULT_N_KINDS
};
extern const char *const fault_names[FAULT_N_KINDS + 1]; /* NULL at last */

/* In place of an id. */
#define FAULT_ALL UINT32_MAX

struct fault {
    int64_t at; /* ns from the beginning */
    enum fault_kind kind;
    uint32_t from, to; /* ids, or FAULT_ALL; a node's own fault: from */
    bool both;         /* a cut or a heal: the way back as well */
    struct ls_network_path path; /* FAULT_SHAPE */
    int64_t length_ns; /* FAULT_STRANGER: how long it stays; 0: to the end;
                        * FAULT_CLOCK: how far it is set ahead, or back: < 0 */
};

/* Numbers of faults are drawn from 0 to these, lengths and times too. */
struct faults_random {
    uint64_t cuts, resets, pauses, kills, strangers, steps, power_cuts, full;
    double one_way; /* so many of the cuts are of one direction, 0 … 1 */
    int64_t cut_ns, pause_ns, stranger_ns, full_ns;
    int64_t restart_ns; /* a killed node comes back half to one and a half of
                         * this later; 0: never */
    int64_t offset_ns;  /* a node's clock is ahead by up to so much */
    double drift;       /* and goes faster or slower by so much */
    int64_t step_ns;    /* a step sets it ahead or back by up to so much */
    int64_t within_ns;  /* all of them begin before */
};

struct faults {
    ls_config *config;           /* own */
    struct ls_network_path path; /* between all, at first */
    struct faults_random random;
    struct fault *script; /* own; n_script, as in the file */
    size_t n_script;
};

/* name: none, lossy, cuts, pauses, crashes, stranger, all, or a file.
 * plan: whose nodes the script may name; borrow: for the call.
 * out:  own; give it to faults_fini(), also after an error.
 * Errors: LS_ENOENT neither one of these names nor a file; LS_ECONFIG:
 *         ls_config_report(out->config) has every problem; LS_ENOMEM. */
LS_MUST_USE int faults_load(struct faults *out, const char *name,
                            const struct plan *plan);
void faults_fini(struct faults *faults);

/* The YAML behind a name of faults_load(); NULL: there is no such name. */
const char *faults_preset(const char *name);

/* One run's faults: the script's, and those that rng draws, in order of time.
 * out: own: free(); n of them. Errors: LS_ENOMEM. */
LS_MUST_USE int faults_draw(const struct faults *faults,
                            const struct plan *plan, struct ls_rng *rng,
                            struct fault **out, size_t *n);

/* What ends a fault of this kind; FAULT_N_KINDS: nothing does. */
enum fault_kind faults_end_of(enum fault_kind kind);

/* Whether what fault i did is undone by a later one: what a reset or a stranger
 * did is over at once, and a shape by the next one. */
bool faults_is_undone(const struct fault *list, size_t n, size_t i);

/* Write a file that loads as these: what is drawn from the seed but for clocks
 * is left out. */
void faults_write(const struct faults *faults, FILE *out);

/* A node's clock. */
void faults_draw_skew(const struct faults *faults, struct ls_rng *rng,
                      int64_t *offset_ns, double *drift);

/* "1.250 s: cut 0 > 2": as a script would say it. */
void faults_print(const struct fault *fault, char *text, size_t size);

#endif
