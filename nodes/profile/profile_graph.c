#include "profile_graph.h"

#include <stdlib.h>
#include <string.h>

#define EXCHANGE "ls.exchange."

/* A step's half, or a wait inside one. */
struct item {
    int64_t begin, end;
    uint64_t iteration;
    uint16_t name;
    uint8_t depth;
    size_t wait;
};

struct builder {
    struct profile_graph *graph;
    size_t node;
    struct item *items; /* own; room for all records, twice */
    size_t n;
    uint16_t thread;
};

/* Make room for one more. */
static int reserve(void **items, size_t *capacity, size_t n, size_t size)
{
    if (n < *capacity)
        return LS_OK;
    const size_t wanted = 2 * *capacity + 64;
    void *const grown = realloc(*items, wanted * size);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "no memory for what nodes waited for");
    *items = grown;
    *capacity = wanted;
    return LS_OK;
}

static int compare_awaited(const void *a, const void *b)
{
    const struct profile_awaited *const p = a, *const q = b;
    return (p->at > q->at) - (p->at < q->at);
}

/* A wait for the `n` last that were added to those awaited. */
static int add_wait(struct builder *to, const struct ls_trace_record *of,
                    int64_t end, size_t n)
{
    struct profile_graph *const graph = to->graph;
    const int64_t begin = of->begin_ns;
    const int status = reserve((void **)&graph->waits, &graph->waits_capacity,
                               graph->n_waits, sizeof *graph->waits);
    if (status != LS_OK)
        return status;
    const size_t first = graph->n_awaited - n;
    if (n > 1)
        qsort(graph->awaited + first, n, sizeof *graph->awaited,
              compare_awaited);
    to->items[to->n++] = (struct item){
        .begin = begin, .end = end, .depth = UINT8_MAX, .wait = graph->n_waits};
    graph->waits[graph->n_waits++] = (struct profile_wait){
        .node = to->node,
        .number = of->number,
        .name = of->name,
        .thread = of->thread,
        .barrier = of->kind == LS_TRACE_BARRIER,
        .begin = begin,
        .end = end,
        .error = profile_error(graph->profile, to->node, begin),
        .first = first,
        .n = n};
    return LS_OK;
}

static int add_awaited(struct builder *to, size_t node, int64_t at, size_t *n)
{
    struct profile_graph *const graph = to->graph;
    const int status =
        reserve((void **)&graph->awaited, &graph->awaited_capacity,
                graph->n_awaited, sizeof *graph->awaited);
    if (status != LS_OK)
        return status;
    graph->awaited[graph->n_awaited++] = (struct profile_awaited){
        node, at, profile_error(graph->profile, node, at)};
    ++*n;
    return LS_OK;
}

static int add_epoch(struct builder *to, const struct ls_trace_record *record)
{
    const struct profile *const profile = to->graph->profile;
    size_t n = 0;
    int status = LS_OK;
    for (size_t i = 0; i < profile->n_nodes && status == LS_OK; i++) {
        const struct ls_trace_record *const its =
            i == to->node ? NULL
                          : profile_record(profile, i, LS_TRACE_BARRIER,
                                           record->name, record->number);
        if (its != NULL)
            status = add_awaited(to, i, its->begin_ns, &n);
    }
    return status == LS_OK ? add_wait(to, record, record->end_ns, n) : status;
}

/* ---- exchanges ----------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    const struct ls_trace_record *const p =
        *(const struct ls_trace_record *const *)a;
    const struct ls_trace_record *const q =
        *(const struct ls_trace_record *const *)b;
    return (p->begin_ns > q->begin_ns) - (p->begin_ns < q->begin_ns);
}

/* Records of a kind and a name, by time. out: own. */
static int by_time(const struct ls_trace_file *file, uint8_t kind,
                   uint16_t name, const struct ls_trace_record ***out,
                   size_t *n)
{
    *n = 0;
    *out = calloc(file->n_records + 1, sizeof **out);
    if (*out == NULL)
        return ls_error(LS_ENOMEM, "no memory for what was received");
    for (size_t i = 0; i < file->n_records; i++)
        if (file->records[i].kind == kind && file->records[i].name == name)
            (*out)[(*n)++] = &file->records[i];
    qsort(*out, *n, sizeof **out, compare_times);
    return LS_OK;
}

/* last: by node, what was taken. */
static int add_taking(struct builder *to, const struct ls_trace_record *half,
                      const struct ls_trace_record *const *last)
{
    const struct profile *const profile = to->graph->profile;
    int64_t end = half->begin_ns;
    size_t n = 0;
    int status = LS_OK;
    for (size_t i = 0; i < profile->n_nodes; i++)
        if (last[i] != NULL && last[i]->begin_ns > end)
            end = last[i]->begin_ns;
    for (size_t i = 0; i < profile->n_nodes && status == LS_OK; i++) {
        if (last[i] == NULL || end == half->begin_ns)
            continue;
        const struct ls_trace_record *const sent = profile_record(
            profile, i, LS_TRACE_SEND, last[i]->name, last[i]->number);
        status = add_awaited(
            to, i, sent != NULL ? sent->begin_ns : last[i]->begin_ns, &n);
    }
    return status == LS_OK && n > 0 ? add_wait(to, half, end, n) : status;
}

/* Each forward half takes the newest message of each sender. */
static int add_exchange(struct builder *to, uint16_t step, uint16_t event)
{
    const struct profile *const profile = to->graph->profile;
    const struct ls_trace_file *const file = &profile->nodes[to->node].file;
    const struct ls_trace_record **halves = NULL, **came = NULL;
    const struct ls_trace_record **last =
        calloc(profile->n_nodes, sizeof *last);
    size_t n_halves = 0, n_came = 0, k = 0;
    int status =
        last == NULL ? ls_error(LS_ENOMEM, "no memory for senders") : LS_OK;
    if (status == LS_OK)
        status = by_time(file, LS_TRACE_FORWARD, step, &halves, &n_halves);
    if (status == LS_OK)
        status = by_time(file, LS_TRACE_RECEIVE, event, &came, &n_came);
    for (size_t i = 0; i < n_halves && status == LS_OK && n_came > 0; i++) {
        for (; k < n_came && came[k]->begin_ns <= halves[i]->end_ns; k++) {
            const size_t from = profile_find(profile, came[k]->peer);
            if (from < profile->n_nodes && from != to->node)
                last[from] = came[k];
        }
        if (halves[i]->thread == to->thread)
            status = add_taking(to, halves[i], last);
    }
    free(last);
    free(halves);
    free(came);
    return status;
}

static int add_exchanges(struct builder *to)
{
    const struct profile *const profile = to->graph->profile;
    int status = LS_OK;
    for (size_t i = 0; i < profile->n_names && status == LS_OK; i++) {
        const char *const event = profile->names[i];
        if (strncmp(event, EXCHANGE, strlen(EXCHANGE)) != 0)
            continue;
        const size_t step = profile_name(profile, event + strlen(EXCHANGE));
        if (step < profile->n_names)
            status = add_exchange(to, (uint16_t)step, (uint16_t)i);
    }
    return status;
}

/* ---- pieces -------------------------------------------------------------- */

/* What is inside comes later. */
static int compare_items(const void *a, const void *b)
{
    const struct item *const p = a, *const q = b;
    if (p->begin != q->begin)
        return p->begin < q->begin ? -1 : 1;
    if (p->end != q->end)
        return p->end > q->end ? -1 : 1;
    return (p->depth > q->depth) - (p->depth < q->depth);
}

static void add_piece(struct profile_line *line, int64_t end,
                      const struct item *of)
{
    const int64_t begin = line->n > 0 ? line->pieces[line->n - 1].end : end;
    if (end > begin)
        line->pieces[line->n++] = (struct profile_piece){
            .begin = begin,
            .end = end,
            .iteration = of != NULL ? of->iteration : PROFILE_NO_ITERATION,
            .name = of != NULL ? of->name : PROFILE_NO_STEP,
            .wait = of != NULL ? of->wait : PROFILE_NO_WAIT};
}

static void cut_pieces(struct profile_line *line, struct item *items, size_t n)
{
    struct item *stack[UINT8_MAX];
    size_t depth = 0;
    /* A beginning, for those behind it; it is taken away again. */
    line->pieces[line->n++] = (struct profile_piece){
        items[0].begin, items[0].begin, PROFILE_NO_ITERATION, PROFILE_NO_STEP,
        PROFILE_NO_WAIT};
    for (size_t i = 0; i < n; i++) {
        struct item *const item = &items[i];
        while (depth > 0 && stack[depth - 1]->end <= item->begin) {
            depth--;
            add_piece(line, stack[depth]->end, stack[depth]);
        }
        const struct item *const around = depth > 0 ? stack[depth - 1] : NULL;
        if (around != NULL && around->wait != PROFILE_NO_WAIT)
            continue; /* inside of a wait there is nothing */
        add_piece(line, item->begin, around);
        if (item->wait != PROFILE_NO_WAIT) {
            item->name = around != NULL ? around->name : PROFILE_NO_STEP;
            item->iteration =
                around != NULL ? around->iteration : PROFILE_NO_ITERATION;
        }
        if (depth < UINT8_MAX)
            stack[depth++] = item;
    }
    while (depth > 0) {
        depth--;
        add_piece(line, stack[depth]->end, stack[depth]);
    }
    line->n--;
    memmove(line->pieces, line->pieces + 1, line->n * sizeof *line->pieces);
}

/* The thread that runs most steps. */
static int find_thread(const struct profile *profile,
                       const struct ls_trace_file *file, uint16_t *out)
{
    size_t *const counts = calloc(profile->n_names + 1, sizeof *counts);
    size_t best = 0;
    if (counts == NULL)
        return ls_error(LS_ENOMEM, "no memory for threads");
    for (size_t i = 0; i < file->n_records; i++) {
        const struct ls_trace_record *const record = &file->records[i];
        counts[record->thread] += record->kind == LS_TRACE_FORWARD;
        if (counts[record->thread] > counts[best])
            best = record->thread;
    }
    free(counts);
    *out = (uint16_t)best;
    return LS_OK;
}

static int add_records(struct builder *to, const struct ls_trace_file *file)
{
    int status = LS_OK;
    for (size_t i = 0; i < file->n_records && status == LS_OK; i++) {
        const struct ls_trace_record *const record = &file->records[i];
        if (record->thread != to->thread)
            continue;
        if (record->kind == LS_TRACE_BARRIER)
            status = add_epoch(to, record);
        else if (record->kind == LS_TRACE_FORWARD ||
                 record->kind == LS_TRACE_BACKWARD)
            to->items[to->n++] = (struct item){.begin = record->begin_ns,
                                               .end = record->end_ns,
                                               .iteration = record->number,
                                               .name = record->name,
                                               .depth = record->depth,
                                               .wait = PROFILE_NO_WAIT};
    }
    return status == LS_OK ? add_exchanges(to) : status;
}

static int make_line(struct profile_graph *graph, size_t node)
{
    const struct ls_trace_file *const file = &graph->profile->nodes[node].file;
    struct profile_line *const line = &graph->lines[node];
    struct builder to = {.graph = graph,
                         .node = node,
                         .items =
                             calloc(2 * file->n_records + 1, sizeof *to.items)};
    int status = to.items == NULL
                     ? ls_error(LS_ENOMEM, "no memory for steps")
                     : find_thread(graph->profile, file, &to.thread);
    if (status == LS_OK)
        status = add_records(&to, file);
    if (status == LS_OK && to.n > 0) {
        qsort(to.items, to.n, sizeof *to.items, compare_items);
        line->pieces = calloc(2 * to.n + 2, sizeof *line->pieces);
        if (line->pieces != NULL)
            cut_pieces(line, to.items, to.n);
        else
            status = ls_error(LS_ENOMEM, "no memory for pieces");
    }
    free(to.items);
    return status;
}

int profile_graph_make(struct profile_graph *out, const struct profile *profile)
{
    struct profile_graph graph = {
        .profile = profile,
        .lines = calloc(profile->n_nodes, sizeof *graph.lines)};
    int status = graph.lines == NULL
                     ? ls_error(LS_ENOMEM, "no memory for nodes")
                     : LS_OK;
    for (size_t i = 0; i < profile->n_nodes && status == LS_OK; i++)
        status = make_line(&graph, i);
    if (status != LS_OK) {
        profile_graph_clear(&graph);
        return status;
    }
    *out = graph;
    return LS_OK;
}

void profile_graph_clear(struct profile_graph *graph)
{
    for (size_t i = 0; graph->lines != NULL && i < graph->profile->n_nodes; i++)
        free(graph->lines[i].pieces);
    free(graph->lines);
    free(graph->waits);
    free(graph->awaited);
    *graph = (struct profile_graph){.lines = NULL};
}

size_t profile_line_at(const struct profile_line *line, int64_t at)
{
    size_t low = 0, high = line->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (line->pieces[mid].end <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const char *profile_step_text(const struct profile *profile, uint16_t name)
{
    return name == PROFILE_NO_STEP ? "(no step)" : profile->names[name];
}
