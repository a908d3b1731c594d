/* trace.h - the flight recorder: what the threads of a node did last, and when.
 *
 * A recorder has one ring of records, which the node's threads write without
 * locks; when it is full, the oldest are overwritten, and counted. It can be
 * taken at any time: what was taken, struct ls_trace_file, is also what a file
 * RUN/trace/node-ID.lstrace holds. Names are kept once, in a table.
 *
 * Times are those of the runtime's monotonic clock (ls_now()), so of one
 * machine, or of one simulated host: who compares nodes aligns their clocks,
 * from the heartbeats and messages that both sides have recorded.
 *
 * Unless it is to record everything, a recorder leaves out what would cost too
 * much, so that it takes less than 1 % of their time: where iterations take
 * less than 80 us for each half of a step it keeps every nth, with all its
 * steps or without any; where an event is emitted or handled more often than
 * every 48 microseconds, it keeps those whose sequence is a multiple of 2, 4, 8
 * …, on both sides. Thread: any, unless it says otherwise. Source:
 * docs/trace-format.md. */
#ifndef LOCKSTEP_TRACE_H
#define LOCKSTEP_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ls_trace_kind {
    LS_TRACE_FORWARD = 1, /* a step's forward half; number: the iteration, from
                           * 0; depth: of how many other steps it runs inside */
    LS_TRACE_BACKWARD,    /* its backward half; alike */
    LS_TRACE_ITERATION,   /* all of it; number: the iteration; name: 0 */
    LS_TRACE_BARRIER,     /* this node's wait: begin: it entered the epoch; end:
                           * it left it; number: the epoch; name: the barrier's;
                           * peer: the member that entered last, as far as known
                           * here; size: 0, or as a positive number the error
                           * that ended it */
    LS_TRACE_SEND,        /* a call that emits; name: the event; number: its
                           * sequence, or 0: it has none (it goes to one node);
                           * peer: that node; size: of the payload */
    LS_TRACE_RECEIVE,     /* a handler's call; name: the event; peer, life: who
                           * emitted it; number: its sequence; size: alike */
    LS_TRACE_BEAT,        /* this node is about to send a heartbeat; number: of
                           * the heartbeat, from 1 in each life */
    LS_TRACE_HEARD,       /* a heartbeat has come; peer, life: whose; number */
    LS_TRACE_KINDS        /* how many there are, and one */
};

#define LS_TRACE_NOBODY UINT32_MAX /* as a peer */
#define LS_TRACE_OPEN   INT64_MAX  /* as an end: it had not ended by then */

struct ls_trace_record {
    int64_t begin_ns, end_ns; /* ns; end_ns is not before begin_ns */
    uint64_t number;
    uint64_t size;
    uint32_t peer;   /* a node's id, or LS_TRACE_NOBODY */
    uint32_t life;   /* the low half of the peer's incarnation; 0: unknown */
    uint16_t name;   /* in the table of names */
    uint16_t thread; /* in the table of names: where it happened */
    uint8_t kind;    /* enum ls_trace_kind */
    uint8_t depth;
    uint8_t unused[2]; /* 0 */
};

/* ---- what was taken ---------------------------------------------------- */

#define LS_TRACE_NAME_MAX    64   /* bytes, with the NUL; longer ones are cut */
#define LS_TRACE_NAMES_MAX   1024 /* in a table */
#define LS_TRACE_RECORDS_MAX (1u << 24)

/* A recording, in memory. */
struct ls_trace_file {
    char job[80], role[64];
    uint32_t node;
    uint64_t incarnation;
    int64_t now_ns;   /* when it was taken, on the clock of the records */
    int64_t wall_ns;  /* the same moment: ns since 1970-01-01 UTC */
    char reason[256]; /* why it was taken */
    bool all;         /* nothing was left out to be fast */
    uint64_t lost;    /* records that were overwritten, or found no room */
    uint64_t unnamed; /* names that found no room in the table */
    char **names;     /* own; the first is "?": any that found no room */
    size_t n_names;   /* at least 1 */
    struct ls_trace_record *records; /* own; by the time of their end; then
                                      * those that are open */
    size_t n_records;
};

/* As bytes: those of the file.
 * data:   own: free() it.
 * Errors: LS_EINVAL it is not one that ls_trace_decode() accepts; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_trace_encode(const struct ls_trace_file *file,
                                       void **data, size_t *size);

/* Read what anybody wrote.
 * out:    own; written on success only; give it to ls_trace_clear().
 * Errors: LS_EPROTO it is not a recording, or damaged: the text says which
 *         field or record, and what is wrong with it; LS_EMISMATCH it has
 *         another version; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_trace_decode(struct ls_trace_file *out,
                                       const void *data, size_t size);

/* Free what it owns, and make it empty. NULL is fine. */
LS_API void ls_trace_clear(struct ls_trace_file *file);

/* ---- recording --------------------------------------------------------- */

typedef struct ls_trace ls_trace;

struct ls_trace_options {
    ls_runtime *runtime; /* borrow; NULL: that of threads */
    uint32_t node;
    const char *job, *role; /* copied; NULL: "" */
    size_t n_records;       /* of the ring, 64 bytes each: 2 to
                             * LS_TRACE_RECORDS_MAX, a power of two; 0: 65,536 */
    bool all; /* record everything, whatever that costs: for a profile */
};

/* out:    own; NULL after an error; give it to ls_trace_destroy().
 * Errors: LS_EINVAL n_records; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_trace_create(ls_trace **out,
                                       const struct ls_trace_options *options);
/* Whoever records has ended. NULL and a pointer to NULL are fine. */
LS_API void ls_trace_destroy(ls_trace **trace);

/* The number of a name, for records; the same text has the same number. 0: the
 * table is full; it is counted. Look it up once, not for each record. */
LS_API uint16_t ls_trace_name(ls_trace *trace, const char *text);

/* Now, for records. Unlike ls_now() it never lets other threads of a simulation
 * run: a run is the same with a recorder and without. */
LS_API int64_t ls_trace_now(ls_trace *trace);

/* Add a record. Its thread is set to that of the caller. */
LS_API void ls_trace_add(ls_trace *trace, const struct ls_trace_record *record);

/* What somebody is at, for as long as it takes: so that it is known while it
 * has not ended. One owner at a time; anybody may take the recording meanwhile.
 */
typedef struct ls_trace_mark ls_trace_mark;

/* NULL: trace is NULL, or has given away all of its 64. Give it to
 * ls_trace_mark_close(). */
LS_API ls_trace_mark *ls_trace_mark_open(ls_trace *trace);
LS_API void ls_trace_mark_close(ls_trace_mark **mark);
/* It begins; end_ns and size are ignored. mark: NULL is fine, here and below.
 */
LS_API void ls_trace_mark_begin(ls_trace_mark *mark,
                                const struct ls_trace_record *record);
LS_API void ls_trace_mark_end(ls_trace_mark *mark);

/* What is under way now: up to n records, by the order of the marks. Returns
 * how many. */
LS_API size_t ls_trace_open(ls_trace *trace, struct ls_trace_record *out,
                            size_t n);
/* What ended last: up to n records, the newest first, less those that are just
 * written. Returns how many. */
LS_API size_t ls_trace_recent(ls_trace *trace, struct ls_trace_record *out,
                              size_t n);
/* The text of a name. Borrow: until the recorder is destroyed. */
LS_API const char *ls_trace_text(const ls_trace *trace, uint16_t name);

/* Copy what is there now; others may go on recording.
 * incarnation: of the node
 * reason: copied; cut to what fits
 * out:    own; written on success only; give it to ls_trace_clear().
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_trace_take(ls_trace *trace, uint64_t incarnation,
                                     const char *reason,
                                     struct ls_trace_file *out);

#ifdef __cplusplus
}
#endif

#endif
