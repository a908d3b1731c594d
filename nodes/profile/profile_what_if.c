/* A run, replayed with one step faster: each node goes through its pieces
 * again, work takes its time, and a wait ends as long after the last that it is
 * for as it did. Where clocks are so wrong that nodes wait for each other,
 * waits add up beyond what int64_t holds: times of the replay are doubles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile_table.h"

struct replay {
    const struct profile_table *table;
    const struct profile_graph *graph;
    const struct profile_row *row; /* whose step is faster; NULL: none */
    double *factors;               /* own; by sample of the row */
    double **ends;                 /* own; by node and piece: when it ends */
    size_t *placed; /* own; by node: how many pieces have ended */
    double end;
};

/* When something happens that happened at `at`. False: that is not known yet.
 */
static bool when(const struct replay *self, size_t node, int64_t at,
                 double *out)
{
    const struct profile_line *const line = &self->graph->lines[node];
    *out = (double)at;
    if (line->n == 0 || at <= line->pieces[0].begin)
        return true;
    const size_t i = profile_line_at(line, at - 1);
    if (i >= line->n) { /* behind its end */
        *out += self->ends[node][line->n - 1] -
                (double)line->pieces[line->n - 1].end;
        return self->placed[node] == line->n;
    }
    if (i >= self->placed[node])
        return false;
    const struct profile_piece *const piece = &line->pieces[i];
    const double begin = i > 0 ? self->ends[node][i - 1] : (double)piece->begin;
    const double part =
        (double)(at - piece->begin) / (double)(piece->end - piece->begin);
    *out = begin + part * (self->ends[node][i] - begin);
    return true;
}

static bool end_of_wait(const struct replay *self,
                        const struct profile_wait *wait, double begin,
                        double *out)
{
    int64_t last = wait->begin;
    double now = begin;
    for (size_t i = 0; i < wait->n; i++) {
        const struct profile_awaited *const awaited =
            &self->graph->awaited[wait->first + i];
        double then;
        if (!when(self, awaited->node, awaited->at, &then))
            return false;
        now = fmax(now, then);
        last = awaited->at > last ? awaited->at : last;
    }
    *out = now + (wait->end > last ? (double)(wait->end - last) : 0.0);
    return true;
}

static double factor_of(const struct replay *self, size_t node,
                        const struct profile_piece *piece)
{
    const struct profile_row *const row = self->row;
    if (row == NULL || row->node != node || row->name != piece->name)
        return 1.0;
    size_t low = 0, high = row->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (row->samples[mid].iteration < piece->iteration)
            low = mid + 1;
        else
            high = mid;
    }
    return low < row->n ? self->factors[low] : 1.0;
}

/* Place what can be placed of a node; whether that was any. anyway: also a wait
 * for what is not known yet, which then takes what it took. */
static bool place(struct replay *self, size_t node, bool anyway)
{
    const struct profile_line *const line = &self->graph->lines[node];
    bool any = false;
    while (self->placed[node] < line->n) {
        const size_t i = self->placed[node];
        const struct profile_piece *const piece = &line->pieces[i];
        const double begin =
            i > 0 ? self->ends[node][i - 1] : (double)piece->begin;
        const double took = (double)(piece->end - piece->begin);
        double end = begin + factor_of(self, node, piece) * took;
        if (piece->wait != PROFILE_NO_WAIT &&
            !end_of_wait(self, &self->graph->waits[piece->wait], begin, &end)) {
            if (!anyway)
                break;
            end = begin + took;
            anyway = false;
        }
        self->ends[node][i] = end;
        self->end = fmax(self->end, end);
        self->placed[node]++;
        any = true;
    }
    return any;
}

/* Clocks that are wrong can make nodes wait for each other: the one that is
 * behind goes on then. */
static size_t behind(const struct replay *self)
{
    const size_t n = self->graph->profile->n_nodes;
    size_t least = n;
    for (size_t i = 0; i < n; i++) {
        const struct profile_line *const line = &self->graph->lines[i];
        const struct profile_line *const other =
            least < n ? &self->graph->lines[least] : NULL;
        if (self->placed[i] < line->n &&
            (other == NULL || line->pieces[self->placed[i]].begin <
                                  other->pieces[self->placed[least]].begin))
            least = i;
    }
    return least;
}

static void play(struct replay *self)
{
    const size_t n = self->graph->profile->n_nodes;
    memset(self->placed, 0, n * sizeof *self->placed);
    self->end = -INFINITY;
    for (;;) {
        bool any = false;
        for (size_t i = 0; i < n; i++)
            any = place(self, i, false) || any;
        const size_t late = behind(self);
        if (late == n)
            return;
        if (!any)
            (void)place(self, late, true);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* What the others of the role took in this iteration: their median; 0: none
 * did. times: room for one of each row. */
static double median_of_others(const struct profile_table *table,
                               const struct profile_row *row,
                               uint64_t iteration, double *times)
{
    const struct profile_node *const nodes = table->profile->nodes;
    size_t n = 0;
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct profile_row *const other = &table->rows[i];
        if (other == row || other->name != row->name ||
            strcmp(nodes[other->node].file.role, nodes[row->node].file.role) !=
                0)
            continue;
        size_t low = 0, high = other->n;
        while (low < high) {
            const size_t mid = low + (high - low) / 2;
            if (other->samples[mid].iteration < iteration)
                low = mid + 1;
            else
                high = mid;
        }
        if (low < other->n && other->samples[low].iteration == iteration)
            times[n++] = other->samples[low].worked_ns;
    }
    if (n == 0)
        return 0.0;
    qsort(times, n, sizeof *times, compare_doubles);
    return (times[(n - 1) / 2] + times[n / 2]) / 2;
}

/* Whether the others are faster in the whole by 1 % at least. */
static bool set_factors(struct replay *self, const struct profile_row *row,
                        double *times)
{
    double was = 0.0, is = 0.0;
    for (size_t i = 0; i < row->n; i++) {
        const double mine = row->samples[i].worked_ns;
        const double median = median_of_others(
            self->table, row, row->samples[i].iteration, times);
        self->factors[i] = median > 0 && median < mine ? median / mine : 1.0;
        was += mine;
        is += mine * self->factors[i];
    }
    const bool others = is < 0.99 * was;
    for (size_t i = 0; i < row->n && !others; i++)
        self->factors[i] = 0.5;
    return others;
}

static int make(struct replay *self, const struct profile_row *row,
                double **times)
{
    const size_t n = self->graph->profile->n_nodes;
    self->factors = calloc(row->n + 1, sizeof *self->factors);
    self->ends = calloc(n, sizeof *self->ends);
    self->placed = calloc(n, sizeof *self->placed);
    *times = calloc(self->table->n_rows, sizeof **times);
    bool whole = self->factors != NULL && self->ends != NULL &&
                 self->placed != NULL && *times != NULL;
    for (size_t i = 0; i < n && whole; i++) {
        self->ends[i] =
            calloc(self->graph->lines[i].n + 1, sizeof **self->ends);
        whole = self->ends[i] != NULL;
    }
    return whole ? LS_OK : ls_error(LS_ENOMEM, "no memory to replay the run");
}

int profile_what_if(const struct profile_table *table,
                    const struct profile_graph *graph,
                    const struct profile_row *row, double *out, bool *others)
{
    struct replay self = {.table = table, .graph = graph};
    double *times = NULL;
    double begin = INFINITY;
    const int status = make(&self, row, &times);
    if (status == LS_OK) {
        *others = set_factors(&self, row, times);
        for (size_t i = 0; i < graph->profile->n_nodes; i++)
            if (graph->lines[i].n > 0)
                begin = fmin(begin, (double)graph->lines[i].pieces[0].begin);
        play(&self);
        const double was = self.end - begin;
        self.row = row;
        play(&self);
        *out = was > 0 ? 1.0 - (self.end - begin) / was : 0.0;
    }
    for (size_t i = 0; self.ends != NULL && i < graph->profile->n_nodes; i++)
        free(self.ends[i]);
    free(self.factors);
    free(self.ends);
    free(self.placed);
    free(times);
    return status;
}
