/* tape.h - a run that is kept with its payloads, and played again.
 *
 * Each node writes what it emits, and in which order it handles what comes,
 * into a part of its own; the run puts the parts into one file, with its
 * configuration: docs/recording-format.md. Played again as a simulation, each
 * node handles events in the recorded order, and what it emits is compared
 * with what it emitted then. The first that differs ends the replay. */
#ifndef LOCKSTEP_TAPE_H
#define LOCKSTEP_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/file.h"
#include "lockstep/node.h"
#include "lockstep/record.h"

/* ---- recording --------------------------------------------------------- */

/* What one node of a run does, on its way to a file. Thread: any. */
typedef struct tape_recorder tape_recorder;

/* The part of node `id`: "run.lsrec.node-2". path: LS_PATH_MAX bytes. Errors:
 * LS_ELIMIT it is too long. */
LS_MUST_USE int tape_part_path(char *path, const char *tape, uint32_t id);

/* out:    own; NULL after an error; give it to tape_recorder_destroy().
 * tape:   the path of the whole recording.
 * Errors: LS_EIO, LS_ENOMEM. */
LS_MUST_USE int tape_recorder_create(tape_recorder **out, const char *tape,
                                     uint32_t id);
/* Writes the rest, and says in the log what went wrong, if anything did: the
 * recording then ends where it did, and nothing else. */
void tape_recorder_destroy(tape_recorder **recorder);
/* Borrow: as long as the recorder. What it says never fails. */
const struct ls_event_gate *tape_recorder_gate(const tape_recorder *recorder);

/* ---- a recording ------------------------------------------------------- */

struct tape_node {
    uint32_t id;
    char role[64];
    uint64_t bytes; /* of its part */
    bool whole;     /* it came to its end: it was not killed, say */
};

struct tape_set {
    char *path, *value; /* own */
};

/* What is known of the run. All zero: nothing is owned. */
struct tape_about {
    char lockstep[32];     /* the version */
    char *config;          /* own; the path, as it was given */
    char *text;            /* own; what the file said */
    char *seed;            /* own; as given; NULL: as the file says */
    uint64_t plugin;       /* XXH3 of the plugin's file; 0: it has none */
    bool done;             /* it came to its own end */
    struct tape_set *sets; /* own */
    size_t n_sets;
    struct tape_node *nodes; /* own */
    size_t n_nodes;
};
void tape_about_clear(struct tape_about *about);

/* Before the run: whether its recording may replace what is at `path`; one that
 * is not there is made, empty. Until it is closed no other run is recorded
 * there: their parts would have the same names.
 * out:    own; close it once the parts are joined.
 * Errors: LS_EEXIST it is neither empty nor a recording, and whatever it is is
 *         not lost; LS_EAGAIN another run is being recorded there; LS_EIO,
 *         LS_ENOENT it cannot be written there. */
LS_MUST_USE int tape_claim(ls_file **out, const char *path);

/* As the run begins: remove what an earlier one has left, and write what is
 * known of this one, a recording of nothing, to "run.lsrec.head": the parts can
 * be put together by it, if nobody is left to do so.
 * Errors: LS_EEXIST a file that no run has left has the name of that, of a
 *         part or of "run.lsrec.part", the file that becomes the recording;
 *         LS_EIO, LS_ENOMEM, LS_ELIMIT. */
LS_MUST_USE int tape_begin(const char *path, struct tape_about *about);
/* Put the parts together, and remove them. about: `bytes` and `whole` of its
 * nodes are filled in; a part that is not there counts as empty.
 * Errors: LS_EIO, LS_ENOMEM, LS_ELIMIT; the parts stay. */
LS_MUST_USE int tape_join(const char *path, struct tape_about *about);
/* The same for a run that nobody has ended: its process was killed, or found no
 * room. It is none that was done. Errors: LS_ENOENT there is no such run; those
 * of tape_claim(), LS_EAGAIN as long as it is being recorded, tape_open() and
 * tape_join(). */
LS_MUST_USE int tape_join_left(const char *path);
/* Remove the parts, and what is known of the run. */
void tape_clean(const char *path, const struct tape_about *about);

/* XXH3 of a file; 0: it cannot be read. */
uint64_t tape_hash_file(const char *path);

/* ---- replay ------------------------------------------------------------ */

struct tape;
struct tape_player;

/* out:    own; NULL after an error; give it to tape_close().
 * Errors: LS_ENOENT there is no such file; LS_EPROTO it is not a recording, or
 * is cut short or damaged, or a flight recorder's; LS_ENOMEM. */
LS_MUST_USE int tape_open(struct tape **out, const char *path);
void tape_close(struct tape **tape);
/* Borrow: until it is closed. */
const struct tape_about *tape_about(const struct tape *tape);

/* Compare what node `id` alone emits. What the others emit is replaced by what
 * they emitted then. Errors: LS_EINVAL there is no such node. */
LS_MUST_USE int tape_only(struct tape *tape, uint32_t id);

/* A node of the replay. Of one thread, that of the simulation.
 * where:  says what the node is at, for messages: "step collect, iteration 3".
 *         Borrow, with its self: until the replay is over.
 * NULL:   the recording has no such node. Borrow. */
const struct ls_event_gate *
tape_play(struct tape *tape, uint32_t id,
          void (*where)(void *self, char *text, size_t size), void *self);

/* The first difference has been found: the place for a breakpoint. Returns
 * LS_EMISMATCH. card: what differs; kept. */
int tape_diverged(struct tape *tape, const char *card);

struct tape_figures {
    uint64_t compared; /* emitted, as then */
    uint64_t replaced; /* emitted otherwise, by nodes that are not compared */
    uint64_t ordered;  /* handled in the recorded order */
    uint64_t beyond;   /* emitted after the end of what was recorded */
    bool over; /* all nodes have come to the end of what was recorded, of a run
                * that was broken off: it ended the replay */
    bool late; /* a difference, if there is one, was found after the run */
};
/* After the replay, which came to its own end if `done`: looks whether all
 * that was recorded was emitted again. Returns the card of the first
 * difference; NULL: there was none. Borrow. */
const char *tape_end(struct tape *tape, bool done,
                     struct tape_figures *figures);

#endif
