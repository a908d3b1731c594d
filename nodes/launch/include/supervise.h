/* supervise.h - watch the nodes of a run from their start to their end.
 *
 * The supervisor starts the first node, waits until it listens, starts the
 * others with its endpoint, and then waits for what happens: all done, one
 * failed, Ctrl-C, time up. A node that fails is started again, or done without,
 * when its policy says so. Whatever it is, in the end no node is left. It does
 * not know whether nodes are processes or threads: a launcher starts and stops
 * them, and notes what they say and how they end.
 * Thread: owner; the notes are for any thread. */
#ifndef LOCKSTEP_SUPERVISE_H
#define LOCKSTEP_SUPERVISE_H

#include "node_output.h"
#include "plan.h"
#include "render.h"
#include "report.h"

typedef struct supervisor supervisor;

/* How a node is started. All borrowed. */
struct launch {
    const struct plan_endpoints *endpoints;
    unsigned generation;  /* how often it was started before */
    const uint32_t *gone; /* ids of those that the run goes on without */
    size_t n_gone;
};

struct launcher {
    /* Start a node, also again, once its end was noted. On failure no end is
     * noted. Thread: that of supervise(). */
    int (*start)(void *self, size_t index, const struct launch *launch);
    /* Tell a node to stop; hard: make it. Nothing when it has ended. */
    void (*stop)(void *self, size_t index, bool hard);
    /* What a node is at that does not stop, as node_run_where() has it. NULL:
     * that is not seen from here; the node reports it (REPORT_STUCK). */
    void (*where)(void *self, size_t index, char *text, size_t size);
    /* SIGUSR1: have a node write what it did last; SIGUSR2: have it save. NULL:
     * that is not done from here. Thread: that of supervise(). */
    void (*ask)(void *self, size_t index, int signal);
    void *self;
    const char *dir;      /* for ipc sockets; may be NULL */
    bool outside_reaches; /* nodes can be called from other processes: tell them
                           * where, see run_file.h */
};

/* render: borrow. runtime: of the launcher's nodes; NULL: threads. out: own;
 * give it to supervisor_destroy(), when no launcher will note anything any
 * more. Errors: LS_ENOMEM. */
LS_MUST_USE int supervisor_create(supervisor **out, const struct plan *plan,
                                  render *render, ls_runtime *runtime);
void supervisor_destroy(supervisor **supervisor);
/* What becomes of the lines of its nodes; NULL, the default: all are shown. The
 * last ones of a node that the run fails by are shown in any case.
 * output: borrow: until destroy. Thread: owner, before supervise(). */
void supervisor_set_output(supervisor *supervisor, node_output *output);

/* Run to the end. timeout_s: 0: none. Returns the exit code; everything has
 * been rendered. *left: a node did not stop even when made to: it is still
 * there, and what it uses must be too. */
LS_MUST_USE int supervise(supervisor *supervisor,
                          const struct launcher *launcher, double timeout_s,
                          bool *left);

/* A node's reports go here. */
struct report_sink supervisor_sink(supervisor *supervisor);
/* A line that a node wrote to stderr; pid: of a node that is a process. */
void supervisor_note_line(supervisor *supervisor, size_t index,
                          const char *line);
void supervisor_note_pid(supervisor *supervisor, size_t index, long pid);
/* The node is gone. */
void supervisor_note_end(supervisor *supervisor, size_t index, int exit_code,
                         int signal);
/* Once supervise() has returned: whether the run has come to its own end, and
 * there is nothing to go on with. */
bool supervisor_is_done(const supervisor *supervisor);
/* SIGUSR1: have all nodes write what they did last, soon; SIGUSR2: have them
 * save. */
void supervisor_ask(supervisor *supervisor, int signal);
/* End the run with exit code 128 + signal. */
void supervisor_interrupt(supervisor *supervisor, int signal);

#endif
