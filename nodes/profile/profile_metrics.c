/* The table of a profile, in Prometheus' text form. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "buffer.h"
#include "profile_show.h"

/* As the value of a label. */
static void add_escaped(struct buffer *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            buffer_add(to, "\\", 1);
        buffer_add(to, text, 1);
    }
}

static void add_labels(struct buffer *to, const struct profile_table *table,
                       const struct profile_row *row, const char *more)
{
    const struct ls_trace_file *const file =
        &table->profile->nodes[row->node].file;
    buffer_text(to, "{job_name=\"");
    add_escaped(to, file->job);
    buffer_text(to, "\",node=\"%" PRIu32 "\",role=\"", file->node);
    add_escaped(to, file->role);
    buffer_text(to, "\",step=\"");
    add_escaped(to, profile_step_text(table->profile, row->name));
    buffer_text(to, "\"%s}", more);
}

static void add_family(struct buffer *to, const char *name, const char *type,
                       const char *help)
{
    buffer_text(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_times(struct buffer *to, const struct profile_table *table)
{
    static const char name[] = "lockstep_step_seconds";
    add_family(to, name, "summary",
               "Work in a step, of each iteration, without waits.");
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct profile_row *const row = &table->rows[i];
        buffer_text(to, "%s", name);
        add_labels(to, table, row, ",quantile=\"0.5\"");
        buffer_text(to, " %.9g\n%s", row->p50_ns / 1e9, name);
        add_labels(to, table, row, ",quantile=\"0.99\"");
        buffer_text(to, " %.9g\n%s_sum", row->p99_ns / 1e9, name);
        add_labels(to, table, row, "");
        buffer_text(to, " %.9g\n%s_count", row->worked_ns / 1e9, name);
        add_labels(to, table, row, "");
        buffer_text(to, " %zu\n", row->n);
    }
}

static void add_rows(struct buffer *to, const struct profile_table *table,
                     const char *name, size_t offset, const char *help)
{
    add_family(to, name, "counter", help);
    for (size_t i = 0; i < table->n_rows; i++) {
        double ns;
        memcpy(&ns, (const char *)&table->rows[i] + offset, sizeof ns);
        buffer_text(to, "%s", name);
        add_labels(to, table, &table->rows[i], "");
        buffer_text(to, " %.9g\n", ns / 1e9);
    }
}

static void add_one(struct buffer *to, const char *name, const char *type,
                    double ns, const char *help)
{
    add_family(to, name, type, help);
    if (isfinite(ns))
        buffer_text(to, "%s %.9g\n", name, ns / 1e9);
    else
        buffer_text(to, "%s +Inf\n", name);
}

const struct written_form profile_metrics_form = {
    "what --metrics writes", "# HELP lockstep_step_seconds "};

int profile_write_metrics(const struct profile_table *table, const char *path)
{
    struct buffer to = {.n = 0};
    add_times(&to, table);
    add_rows(&to, table, "lockstep_step_waited_seconds_total",
             offsetof(struct profile_row, waited_ns),
             "Waits of a node inside a step.");
    add_rows(&to, table, "lockstep_step_blamed_seconds_total",
             offsetof(struct profile_row, blamed_ns),
             "Waits of other nodes that a step has caused.");
    add_one(&to, "lockstep_waited_seconds_total", "counter", table->waited_ns,
            "All waits of all nodes.");
    add_one(&to, "lockstep_messages_seconds_total", "counter",
            table->messages_ns, "Waits while messages were under way.");
    add_one(&to, "lockstep_undecided_seconds_total", "counter",
            table->undecided_ns, "Waits within the error of the clocks.");
    add_one(&to, "lockstep_clock_error_seconds", "gauge", table->error_ns,
            "By how much the clocks may differ at most.");
    return buffer_write(&to, path);
}
