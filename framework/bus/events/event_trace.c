#include "event_trace.h"

/* Looked up when the first one is recorded: peers make many names known, and
 * the table of names is small. */
static uint16_t name_of(ls_node *node, struct event_entry *entry)
{
    unsigned name = atomic_load(&entry->trace_name);
    if (name == 0) {
        name = ls_trace_name(node->options.trace, entry->name);
        atomic_store(&entry->trace_name, name != 0 ? name : UINT16_MAX);
    }
    return name == UINT16_MAX ? 0 : (uint16_t)name;
}

/* 0 says that nothing is recorded. */
static int64_t begin(ls_node *node)
{
    const int64_t now = ls_trace_now(node->options.trace);
    return now != 0 ? now : 1;
}

int64_t event_trace_emit(ls_node *node, struct event_entry *entry,
                         uint64_t sequence)
{
    return sequence != 0 ||
                   trace_gate_keeps(&entry->emits, ++entry->n_unnumbered)
               ? begin(node)
               : 0;
}

void event_trace_emitted(ls_node *node, struct event_entry *entry,
                         uint64_t sequence, int64_t begin,
                         const struct peer *to, size_t size)
{
    ls_trace *const trace = node->options.trace;
    const struct ls_trace_record record = {
        .kind = LS_TRACE_SEND,
        .name = name_of(node, entry),
        .begin_ns = begin,
        .end_ns = ls_trace_now(trace),
        .number = sequence,
        .size = size,
        .peer = to != NULL ? to->member.id : LS_TRACE_NOBODY,
        .life = to != NULL ? (uint32_t)to->member.incarnation : 0};
    ls_trace_add(trace, &record);
    trace_gate_kept(&entry->emits, trace, record.end_ns);
}

static struct ls_trace_record call_of(ls_node *node, struct event_entry *entry,
                                      const struct ls_event *event,
                                      int64_t begin)
{
    return (struct ls_trace_record){.kind = LS_TRACE_RECEIVE,
                                    .name = name_of(node, entry),
                                    .begin_ns = begin,
                                    .number = event->sequence,
                                    .size = event->size,
                                    .peer = event->origin,
                                    .life = (uint32_t)event->incarnation};
}

int64_t event_trace_call(ls_node *node, struct event_entry *entry,
                         const struct ls_event *event)
{
    if (event->sequence == 0 &&
        !trace_gate_keeps(&entry->handled, ++entry->n_unnumbered_handled))
        return 0;
    const int64_t now = begin(node);
    const struct ls_trace_record record = call_of(node, entry, event, now);
    ls_trace_mark_begin(node->dispatch.mark, &record);
    return now;
}

void event_trace_handled(ls_node *node, struct event_entry *entry,
                         const struct ls_event *event, int64_t begin)
{
    ls_trace *const trace = node->options.trace;
    struct ls_trace_record record = call_of(node, entry, event, begin);
    record.end_ns = ls_trace_now(trace);
    ls_trace_mark_end(node->dispatch.mark);
    ls_trace_add(trace, &record);
    trace_gate_kept(&entry->handled, trace, record.end_ns);
}
