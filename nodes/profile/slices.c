#include "slices.h"

#include <stdlib.h>

const char *const slice_kinds[SLICE_KINDS] = {[SLICE_ITERATION] = "iteration",
                                              [SLICE_STEP] = "step",
                                              [SLICE_WAIT] = "wait",
                                              [SLICE_SEND] = "send",
                                              [SLICE_RECEIVE] = "receive"};

static int compare_slices(const void *a, const void *b)
{
    const struct slice *const p = a, *const q = b;
    if (p->thread != q->thread)
        return p->thread < q->thread ? -1 : 1;
    if (p->begin != q->begin)
        return p->begin < q->begin ? -1 : 1;
    if (p->end != q->end)
        return p->end > q->end ? -1 : 1;
    return (p->kind > q->kind) - (p->kind < q->kind);
}

/* Clocks are read one after the other: an end may be a little late. */
static void nest(struct slice *slices, size_t n)
{
    struct slice *stack[64];
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        struct slice *const slice = &slices[i];
        if (i > 0 && slice->thread != slices[i - 1].thread)
            depth = 0;
        while (depth > 0 && stack[depth - 1]->end <= slice->begin)
            depth--;
        if (depth > 0 && slice->end > stack[depth - 1]->end)
            slice->end = stack[depth - 1]->end;
        if (depth < sizeof stack / sizeof stack[0])
            stack[depth++] = slice;
    }
}

static bool kind_of(const struct ls_trace_record *record, uint8_t *out)
{
    switch (record->kind) {
    case LS_TRACE_ITERATION:
        *out = SLICE_ITERATION;
        return true;
    case LS_TRACE_FORWARD:
    case LS_TRACE_BACKWARD:
        *out = SLICE_STEP;
        return true;
    case LS_TRACE_SEND:
        *out = SLICE_SEND;
        return true;
    case LS_TRACE_RECEIVE:
        *out = SLICE_RECEIVE;
        return true;
    default:
        return false;
    }
}

int slices_make(struct slice **out, size_t *n,
                const struct profile_graph *graph, size_t node)
{
    const struct ls_trace_file *const file = &graph->profile->nodes[node].file;
    size_t used = 0;
    struct slice *const slices =
        calloc(file->n_records + graph->n_waits + 1, sizeof *slices);
    if (slices == NULL)
        return ls_error(LS_ENOMEM, "no memory for a timeline");
    for (size_t i = 0; i < file->n_records; i++) {
        const struct ls_trace_record *const record = &file->records[i];
        uint8_t kind;
        if (kind_of(record, &kind))
            slices[used++] = (struct slice){.begin = record->begin_ns,
                                            .end = record->end_ns,
                                            .of = record,
                                            .name = record->name,
                                            .thread = record->thread,
                                            .kind = kind};
    }
    for (size_t i = 0; i < graph->n_waits; i++) {
        const struct profile_wait *const wait = &graph->waits[i];
        if (wait->node == node)
            slices[used++] = (struct slice){.begin = wait->begin,
                                            .end = wait->end,
                                            .of = wait,
                                            .name = wait->name,
                                            .thread = wait->thread,
                                            .kind = SLICE_WAIT};
    }
    qsort(slices, used, sizeof *slices, compare_slices);
    nest(slices, used);
    *out = slices;
    *n = used;
    return LS_OK;
}

/* ---- arrows -------------------------------------------------------------- */

struct arrows {
    struct arrow *items; /* own; room for all */
    size_t n;
};

static void add_arrow(struct arrows *to, const void *from, const void *at)
{
    to->items[to->n] = (struct arrow){from, at, to->n + 1};
    to->n++;
}

static void add_messages(struct arrows *to, const struct profile *profile,
                         size_t node)
{
    const struct ls_trace_file *const file = &profile->nodes[node].file;
    for (size_t i = 0; i < file->n_records; i++) {
        const struct ls_trace_record *const came = &file->records[i];
        const size_t from = came->kind == LS_TRACE_RECEIVE && came->number > 0
                                ? profile_find(profile, came->peer)
                                : profile->n_nodes;
        const struct ls_trace_record *const sent =
            from == profile->n_nodes ||
                    came->life !=
                        (uint32_t)profile->nodes[from].file.incarnation
                ? NULL
                : profile_record(profile, from, LS_TRACE_SEND, came->name,
                                 came->number);
        if (sent != NULL)
            add_arrow(to, sent, came);
    }
}

/* That of this node which begins then; NULL: it was not in step. Waits lie by
 * node, and those of an epoch have the same number. */
static const struct profile_wait *wait_at(const struct profile_graph *graph,
                                          size_t node, int64_t at)
{
    const struct profile_line *const line = &graph->lines[node];
    const size_t i = profile_line_at(line, at);
    return i < line->n && line->pieces[i].wait != PROFILE_NO_WAIT
               ? &graph->waits[line->pieces[i].wait]
               : NULL;
}

static void add_release(struct arrows *to, const struct profile_graph *graph,
                        const struct profile_wait *wait)
{
    if (!wait->barrier || wait->n == 0)
        return;
    const struct profile_awaited *const last =
        &graph->awaited[wait->first + wait->n - 1];
    const struct profile_wait *const from =
        last->at > wait->begin ? wait_at(graph, last->node, last->at) : NULL;
    if (from != NULL)
        add_arrow(to, from, wait);
}

static int compare_arrows(const void *a, const void *b)
{
    const struct arrow *const p = a, *const q = b;
    if (p->from != q->from)
        return p->from < q->from ? -1 : 1;
    return (p->id > q->id) - (p->id < q->id);
}

int arrows_make(struct arrow **out, size_t *n,
                const struct profile_graph *graph)
{
    const struct profile *const profile = graph->profile;
    size_t most = graph->n_waits + 1;
    for (size_t i = 0; i < profile->n_nodes; i++)
        most += profile->nodes[i].file.n_records;
    struct arrows arrows = {.items = calloc(most, sizeof *arrows.items)};
    if (arrows.items == NULL)
        return ls_error(LS_ENOMEM, "no memory for arrows");
    for (size_t i = 0; i < profile->n_nodes; i++)
        add_messages(&arrows, profile, i);
    for (size_t i = 0; i < graph->n_waits; i++)
        add_release(&arrows, graph, &graph->waits[i]);
    qsort(arrows.items, arrows.n, sizeof *arrows.items, compare_arrows);
    *out = arrows.items;
    *n = arrows.n;
    return LS_OK;
}

int64_t slices_begin(const struct profile *profile)
{
    int64_t begin = INT64_MAX;
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const struct ls_trace_file *const file = &profile->nodes[i].file;
        for (size_t k = 0; k < file->n_records; k++)
            if (file->records[k].begin_ns < begin)
                begin = file->records[k].begin_ns;
    }
    return begin == INT64_MAX ? 0 : begin;
}
