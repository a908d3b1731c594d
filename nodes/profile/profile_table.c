#include "profile_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A share of a wait that is smaller is nobody's: where all wait for all, who is
 * to blame has as many answers as there are ways through them. */
#define SHARE_LEAST 1e-3

struct maker {
    const struct profile_graph *graph;
    struct profile_table *table;
    size_t *rows; /* own; by node and name, from 1; 0: there is none */
    size_t depth; /* of waits for nodes that wait */
};

static size_t *row_at(struct maker *self, size_t node, uint16_t name)
{
    const size_t n_names = self->graph->profile->n_names;
    const size_t column = name == PROFILE_NO_STEP ? n_names : name;
    return &self->rows[node * (n_names + 1) + column];
}

static struct profile_row *row_of(struct maker *self, size_t node,
                                  uint16_t name)
{
    return &self->table->rows[*row_at(self, node, name) - 1];
}

/* ---- who is to blame ----------------------------------------------------- */

static void blame_wait(struct maker *self, const struct profile_wait *wait,
                       int64_t begin, int64_t end, double weight);

/* What a node did from `begin` to `end` is what others waited for. */
static void blame_node(struct maker *self, size_t node, int64_t begin,
                       int64_t end, double weight)
{
    const struct profile_line *const line = &self->graph->lines[node];
    int64_t left = end - begin;
    for (size_t i = profile_line_at(line, begin);
         i < line->n && line->pieces[i].begin < end; i++) {
        const struct profile_piece *const piece = &line->pieces[i];
        const int64_t from = piece->begin > begin ? piece->begin : begin;
        const int64_t to = piece->end < end ? piece->end : end;
        if (piece->wait == PROFILE_NO_WAIT)
            row_of(self, node, piece->name)->blamed_ns +=
                weight * (double)(to - from);
        else
            blame_wait(self, &self->graph->waits[piece->wait], from, to,
                       weight);
        left -= to - from;
    }
    self->table->undecided_ns += weight * (double)left; /* not recorded */
}

/* All from `first` on hold up the time from `begin` to `end`. */
static void blame_all(struct maker *self, const struct profile_wait *wait,
                      size_t first, int64_t begin, int64_t end, double weight)
{
    const struct profile_awaited *const awaited =
        &self->graph->awaited[wait->first];
    const double part = weight / (double)(wait->n - first);
    for (size_t i = first; i < wait->n; i++)
        blame_node(self, awaited[i].node, begin, end, part);
}

static void blame_wait(struct maker *self, const struct profile_wait *wait,
                       int64_t begin, int64_t end, double weight)
{
    int64_t at = begin, before = wait->begin;
    double error = wait->error;
    if (self->depth > self->graph->profile->n_nodes || weight < SHARE_LEAST) {
        self->table->undecided_ns += weight * (double)(end - begin);
        return;
    }
    self->depth++;
    for (size_t i = 0; i < wait->n && at < end; i++) {
        const struct profile_awaited *const next =
            &self->graph->awaited[wait->first + i];
        const int64_t until = next->at < end ? next->at : end;
        const bool decided = isfinite(error + next->error) &&
                             (double)(next->at - before) > error + next->error;
        if (until > at && decided)
            blame_all(self, wait, i, at, until, weight);
        else if (until > at)
            self->table->undecided_ns += weight * (double)(until - at);
        at = until > at ? until : at;
        if (next->at >= before) {
            before = next->at;
            error = next->error;
        }
    }
    self->depth--;
    self->table->messages_ns += weight * (double)(end - at);
}

/* ---- rows ---------------------------------------------------------------- */

static int add_rows(struct maker *self, size_t node)
{
    const struct profile_line *const line = &self->graph->lines[node];
    struct profile_table *const table = self->table;
    for (size_t i = 0; i < line->n; i++) {
        size_t *const at = row_at(self, node, line->pieces[i].name);
        if (*at != 0)
            continue;
        struct profile_row *const rows =
            realloc(table->rows, (table->n_rows + 1) * sizeof *rows);
        if (rows == NULL)
            return ls_error(LS_ENOMEM, "no memory for steps");
        table->rows = rows;
        rows[table->n_rows++] =
            (struct profile_row){.node = node, .name = line->pieces[i].name};
        *at = table->n_rows;
    }
    return LS_OK;
}

static int compare_samples(const void *a, const void *b)
{
    const struct profile_sample *const p = a, *const q = b;
    return (p->iteration > q->iteration) - (p->iteration < q->iteration);
}

static int compare_worked(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* Linear between neighbours, as ls_window_summary(). */
static double quantile(const double *sorted, size_t n, double part)
{
    const double place = part * (double)(n - 1);
    const size_t low = (size_t)place;
    const size_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (place - (double)low) * (sorted[high] - sorted[low]);
}

/* Pieces of the same iteration become one sample. */
static int sum_up(struct profile_row *row)
{
    size_t n = 0;
    if (row->n == 0)
        return LS_OK;
    qsort(row->samples, row->n, sizeof *row->samples, compare_samples);
    for (size_t i = 0; i < row->n; i++) {
        if (n > 0 && row->samples[n - 1].iteration == row->samples[i].iteration)
            row->samples[n - 1].worked_ns += row->samples[i].worked_ns;
        else
            row->samples[n++] = row->samples[i];
    }
    row->n = n;
    double *const sorted = calloc(n, sizeof *sorted);
    if (sorted == NULL)
        return ls_error(LS_ENOMEM, "no memory for the times of steps");
    for (size_t i = 0; i < n; i++)
        sorted[i] = row->samples[i].worked_ns;
    qsort(sorted, n, sizeof *sorted, compare_worked);
    row->p50_ns = quantile(sorted, n, 0.5);
    row->p99_ns = quantile(sorted, n, 0.99);
    free(sorted);
    return LS_OK;
}

static int add_times(struct maker *self, size_t node)
{
    const struct profile_line *const line = &self->graph->lines[node];
    size_t *const counts = calloc(self->table->n_rows + 1, sizeof *counts);
    int status =
        counts == NULL ? ls_error(LS_ENOMEM, "no memory for counts") : LS_OK;
    for (size_t i = 0; i < line->n && status == LS_OK; i++)
        counts[*row_at(self, node, line->pieces[i].name) - 1]++;
    for (size_t i = 0; i < self->table->n_rows && status == LS_OK; i++) {
        struct profile_row *const row = &self->table->rows[i];
        if (row->node == node &&
            (row->samples = calloc(counts[i], sizeof *row->samples)) == NULL)
            status = ls_error(LS_ENOMEM, "no memory for the times of steps");
    }
    free(counts);
    for (size_t i = 0; i < line->n && status == LS_OK; i++) {
        const struct profile_piece *const piece = &line->pieces[i];
        struct profile_row *const row = row_of(self, node, piece->name);
        const double took = (double)(piece->end - piece->begin);
        const bool waited = piece->wait != PROFILE_NO_WAIT;
        self->table->times_ns[node] += took;
        *(waited ? &row->waited_ns : &row->worked_ns) += took;
        row->samples[row->n++] =
            (struct profile_sample){piece->iteration, waited ? 0.0 : took};
    }
    for (size_t i = 0; i < self->table->n_rows && status == LS_OK; i++)
        if (self->table->rows[i].node == node)
            status = sum_up(&self->table->rows[i]);
    return status;
}

static void note_clock(struct maker *self, size_t node)
{
    const struct profile_line *const line = &self->graph->lines[node];
    const size_t middle = line->n / 2;
    if (line->n == 0)
        return;
    self->table->error_ns =
        fmax(self->table->error_ns, profile_error(self->graph->profile, node,
                                                  line->pieces[middle].begin));
}

static int fill(struct maker *self)
{
    const struct profile_graph *const graph = self->graph;
    struct profile_table *const table = self->table;
    int status = LS_OK;
    for (size_t i = 0; i < graph->profile->n_nodes && status == LS_OK; i++) {
        status = add_rows(self, i);
        if (status == LS_OK)
            status = add_times(self, i);
        note_clock(self, i);
    }
    for (size_t i = 0; i < table->n_rows && status == LS_OK; i++)
        if (table->rows[i].name != PROFILE_NO_STEP &&
            table->rows[i].n > table->iterations)
            table->iterations = table->rows[i].n;
    for (size_t i = 0; i < graph->n_waits && status == LS_OK; i++) {
        const struct profile_wait *const wait = &graph->waits[i];
        table->waited_ns += (double)(wait->end - wait->begin);
        blame_wait(self, wait, wait->begin, wait->end, 1.0);
    }
    return status;
}

int profile_table_make(struct profile_table *out,
                       const struct profile_graph *graph)
{
    const struct profile *const profile = graph->profile;
    struct profile_table table = {
        .profile = profile,
        .times_ns = calloc(profile->n_nodes, sizeof *table.times_ns)};
    struct maker self = {.graph = graph,
                         .table = &table,
                         .rows =
                             calloc(profile->n_nodes * (profile->n_names + 1),
                                    sizeof *self.rows)};
    const int status = table.times_ns == NULL || self.rows == NULL
                           ? ls_error(LS_ENOMEM, "no memory for a table")
                           : fill(&self);
    free(self.rows);
    if (status != LS_OK) {
        profile_table_clear(&table);
        return status;
    }
    *out = table;
    return LS_OK;
}

void profile_table_clear(struct profile_table *table)
{
    for (size_t i = 0; i < table->n_rows; i++)
        free(table->rows[i].samples);
    free(table->rows);
    free(table->times_ns);
    *table = (struct profile_table){.n_rows = 0};
}

double profile_blame(const struct profile_table *table, size_t node,
                     const struct profile_row **most)
{
    double sum = 0.0;
    *most = NULL;
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct profile_row *const row = &table->rows[i];
        if (row->node != node)
            continue;
        sum += row->blamed_ns;
        if (row->blamed_ns > 0 &&
            (*most == NULL || row->blamed_ns > (*most)->blamed_ns))
            *most = row;
    }
    return sum;
}
