/* profile_show.h - a profile for people and for programs.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_PROFILE_SHOW_H
#define LOCKSTEP_PROFILE_SHOW_H

#include "profile_table.h"
#include "written.h"

/* The table, who caused the waiting, and what faster steps would give, on
 * stdout; json: as one line.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int profile_print(const struct profile_table *table,
                              const struct profile_graph *graph, bool json);

/* Write a file; whole, or it is as it was before. Errors of all: LS_EIO names
 * it; LS_ENOMEM.
 *
 * The table, in Prometheus' text form.
 * Source: prometheus.io/docs/instrumenting/exposition_formats. */
LS_MUST_USE int profile_write_metrics(const struct profile_table *table,
                                      const char *path);

/* All steps, waits and handlers, for ui.perfetto.dev: a process for each node,
 * and arrows from who emitted to the handler, and from the last that entered an
 * epoch to those that waited for it.
 * Source: docs/profiling.md; Perfetto's trace_packet.proto and
 * track_event.proto. */
LS_MUST_USE int profile_write_perfetto(const struct profile_graph *graph,
                                       const char *path);

/* The same with the table, as one page that needs nothing else. */
LS_MUST_USE int profile_write_html(const struct profile_table *table,
                                   const struct profile_graph *graph,
                                   const char *path);

/* How they begin: written_check_replaced(). */
extern const struct written_form profile_metrics_form, profile_perfetto_form,
    profile_html_form;

#endif
