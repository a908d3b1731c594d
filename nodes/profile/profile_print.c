/* The table of a profile, on stdout. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "json.h"
#include "output.h"
#include "profile_show.h"
#include "sum.h"

/* Rows below this part of their node's time are left out of the text. */
#define SHOWN 0.001
/* Steps whose speed is thought about, and the least that is worth a line. */
enum { IFS_MAX = 5 };
#define IF_SHOWN 0.005
#define NAMED    0.01

struct what_if {
    const struct profile_row *row;
    double gain;
    bool others;
};

static double part(double of, double whole)
{
    return whole > 0 ? of / whole : 0.0;
}

static const struct ls_trace_file *file_of(const struct profile_table *table,
                                           size_t node)
{
    return &table->profile->nodes[node].file;
}

static const char *name_of(const struct profile_table *table,
                           const struct profile_row *row)
{
    return profile_step_text(table->profile, row->name);
}

/* The steps that others wait for most, best first. Returns how many. */
static int think(const struct profile_table *table,
                 const struct profile_graph *graph, struct what_if *out,
                 size_t *n)
{
    *n = 0;
    for (size_t k = 0; k < IFS_MAX; k++) {
        const struct profile_row *best = NULL;
        for (size_t i = 0; i < table->n_rows; i++) {
            const struct profile_row *const row = &table->rows[i];
            bool had = row->name == PROFILE_NO_STEP;
            for (size_t j = 0; j < *n; j++)
                had = had || out[j].row == row;
            if (!had && row->blamed_ns > NAMED * table->waited_ns &&
                (best == NULL || row->blamed_ns > best->blamed_ns))
                best = row;
        }
        if (best == NULL)
            return LS_OK;
        const int status =
            profile_what_if(table, graph, best, &out[*n].gain, &out[*n].others);
        if (status != LS_OK)
            return status;
        out[(*n)++].row = best;
    }
    return LS_OK;
}

/* ---- text ---------------------------------------------------------------- */

static void print_rows(const struct profile_table *table)
{
    printf("%-14s %-16s %10s %10s %8s %8s %8s\n", "node", "step", "p50 ms",
           "p99 ms", "works", "waits", "blame");
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct profile_row *const row = &table->rows[i];
        const struct ls_trace_file *const file = file_of(table, row->node);
        const double time = table->times_ns[row->node];
        char node[32];
        if (row->worked_ns + row->waited_ns < SHOWN * time)
            continue;
        (void)snprintf(node, sizeof node, "%" PRIu32 " %.12s", file->node,
                       file->role);
        output_print(
            stdout, "%-14s %-16.16s %10.3f %10.3f %7.1f%% %7.1f%% %7.1f%%\n",
            node, name_of(table, row), row->p50_ns / 1e6, row->p99_ns / 1e6,
            100 * part(row->worked_ns, time), 100 * part(row->waited_ns, time),
            100 * part(row->blamed_ns, table->waited_ns));
    }
}

static void print_blame(const struct profile_table *table)
{
    const double waited = table->waited_ns;
    bool named = false;
    printf("\n");
    if (waited <= 0) {
        printf("nobody waited in a barrier or an exchange\n");
        return;
    }
    for (size_t i = 0; i < table->profile->n_nodes; i++) {
        const struct profile_row *most;
        const double blame = profile_blame(table, i, &most);
        const struct ls_trace_file *const file = file_of(table, i);
        if (most == NULL || part(blame, waited) < NAMED)
            continue;
        output_print(
            stdout,
            "%s %" PRIu32
            " caused %.0f%% of all waiting (%.2f s), %.0f%% of it in %s\n",
            file->role, file->node, 100 * part(blame, waited), blame / 1e9,
            100 * part(most->blamed_ns, blame), name_of(table, most));
        named = true;
    }
    if (!named)
        printf("nobody is to blame for the waiting\n");
    printf("all waiting: %.2f s; %.0f%% of it while messages were under way, "
           "%.0f%% within the error of the clocks\n",
           waited / 1e9, 100 * part(table->messages_ns, waited),
           100 * part(table->undecided_ns, waited));
}

static void print_ifs(const struct profile_table *table,
                      const struct what_if *ifs, size_t n)
{
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        const struct profile_row *const row = ifs[i].row;
        const struct ls_trace_file *const file = file_of(table, row->node);
        if (ifs[i].gain < IF_SHOWN)
            continue;
        output_print(
            stdout, "%s%s on %s %" PRIu32 " %s: -%.0f%% per iteration\n",
            first ? "\n" : "", name_of(table, row), file->role, file->node,
            ifs[i].others ? "at the median of the others" : "in half the time",
            100 * ifs[i].gain);
        first = false;
    }
}

/* Those that one recording has lost. */
static int64_t of_lost(const struct ls_trace_file *file)
{
    return file->lost < INT64_MAX ? (int64_t)file->lost : INT64_MAX;
}

static void print_text(const struct profile_table *table,
                       const struct what_if *ifs, size_t n)
{
    int64_t lost = 0;
    for (size_t i = 0; i < table->profile->n_nodes; i++)
        lost = sum_of(lost, of_lost(file_of(table, i)));
    output_print(
        stdout, "%s: %s iterations of %zu nodes; ", file_of(table, 0)->job,
        output_count((int64_t)table->iterations).text, table->profile->n_nodes);
    if (isfinite(table->error_ns))
        printf("clocks agree within %.0f us\n\n", table->error_ns / 1e3);
    else
        printf("a node was heard by nobody, and its clock is not known\n\n");
    print_rows(table);
    print_blame(table);
    print_ifs(table, ifs, n);
    if (lost > 0)
        printf("\nthe beginning is missing: %s records had no room any more "
               "(trace.records)\n",
               output_count(lost).text);
}

/* ---- JSON ---------------------------------------------------------------- */

static void write_who(ls_writer *to, const struct profile_table *table,
                      const struct profile_row *row)
{
    const struct ls_trace_file *const file = file_of(table, row->node);
    json_int(to, "node", file->node);
    json_string(to, "role", file->role);
    json_string(to, "step", name_of(table, row));
}

static void write_rows(ls_writer *to, const struct profile_table *table)
{
    ls_write_string(to, "steps");
    ls_write_array(to, (uint32_t)table->n_rows);
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct profile_row *const row = &table->rows[i];
        const double time = table->times_ns[row->node];
        ls_write_map_begin(to);
        write_who(to, table, row);
        json_int(to, "iterations", (int64_t)row->n);
        json_double(to, "p50_ms", row->p50_ns / 1e6);
        json_double(to, "p99_ms", row->p99_ns / 1e6);
        json_double(to, "worked_s", row->worked_ns / 1e9);
        json_double(to, "waited_s", row->waited_ns / 1e9);
        json_double(to, "works", part(row->worked_ns, time));
        json_double(to, "waits", part(row->waited_ns, time));
        json_double(to, "blame", part(row->blamed_ns, table->waited_ns));
        ls_write_map_end(to);
    }
}

static void write_blame(ls_writer *to, const struct profile_table *table)
{
    const struct profile_row *most;
    uint32_t n = 0;
    for (size_t i = 0; i < table->profile->n_nodes; i++) {
        (void)profile_blame(table, i, &most);
        n += most != NULL;
    }
    ls_write_string(to, "blame");
    ls_write_array(to, n);
    for (size_t i = 0; i < table->profile->n_nodes; i++) {
        const double blame = profile_blame(table, i, &most);
        if (most == NULL)
            continue;
        ls_write_map_begin(to);
        write_who(to, table, most);
        json_double(to, "share", part(blame, table->waited_ns));
        json_double(to, "seconds", blame / 1e9);
        json_double(to, "of_step", part(most->blamed_ns, blame));
        ls_write_map_end(to);
    }
}

static void write_ifs(ls_writer *to, const struct profile_table *table,
                      const struct what_if *ifs, size_t n)
{
    ls_write_string(to, "faster");
    ls_write_array(to, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        ls_write_map_begin(to);
        write_who(to, table, ifs[i].row);
        json_string(to, "at", ifs[i].others ? "median of others" : "half");
        json_double(to, "gain", ifs[i].gain);
        ls_write_map_end(to);
    }
}

static int print_json(const struct profile_table *table,
                      const struct what_if *ifs, size_t n)
{
    ls_writer *line = NULL;
    int status = ls_writer_create(&line);
    if (status != LS_OK)
        return status;
    ls_write_map_begin(line);
    json_string(line, "event", "profile");
    json_string(line, "job", file_of(table, 0)->job);
    json_int(line, "iterations", (int64_t)table->iterations);
    json_double(line, "clock_error_us", table->error_ns / 1e3);
    json_double(line, "waited_s", table->waited_ns / 1e9);
    json_double(line, "messages_s", table->messages_ns / 1e9);
    json_double(line, "undecided_s", table->undecided_ns / 1e9);
    write_rows(line, table);
    write_blame(line, table);
    write_ifs(line, table, ifs, n);
    ls_write_map_end(line);
    status = json_print_line(line);
    ls_writer_destroy(&line);
    return status;
}

int profile_print(const struct profile_table *table,
                  const struct profile_graph *graph, bool json)
{
    struct what_if ifs[IFS_MAX];
    size_t n;
    const int status = think(table, graph, ifs, &n);
    if (status != LS_OK)
        return status;
    if (json)
        return print_json(table, ifs, n);
    print_text(table, ifs, n);
    return LS_OK;
}
