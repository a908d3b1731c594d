/* A run as a trace of Perfetto: protobuf, of which little is needed.
 *
 *     Trace            1 packet
 *     TracePacket      8 timestamp, 10 trusted_packet_sequence_id,
 *                      11 track_event, 60 track_descriptor
 *     TrackDescriptor  1 uuid, 2 name, 3 process, 4 thread, 5 parent_uuid
 *     ProcessDescriptor  1 pid, 6 process_name
 *     ThreadDescriptor   1 pid, 2 tid, 5 thread_name
 *     TrackEvent       9 type, 11 track_uuid, 22 categories, 23 name,
 *                      47 flow_ids, 48 terminating_flow_ids
 *
 * Times are counted from the first record on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "profile_show.h"
#include "slices.h"

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, SEQUENCE = 1 };

/* A message that is being written: the bytes of its fields. An event has room
 * for an arrow to each node of the largest job. Begun by n = 0: so many bytes
 * are not cleared for each. */
struct message {
    size_t n;
    unsigned char bytes[16384];
};

#define AROUND 64 /* bytes of what an event is put into */

static void put_varint(struct message *to, uint64_t value)
{
    if (to->n + 10 > sizeof to->bytes)
        return;
    for (; value >= 0x80; value >>= 7)
        to->bytes[to->n++] = (unsigned char)(value | 0x80);
    to->bytes[to->n++] = (unsigned char)value;
}

static void put_number(struct message *to, unsigned field, uint64_t value)
{
    put_varint(to, field << 3);
    put_varint(to, value);
}

static void put_bytes(struct message *to, unsigned field, const void *data,
                      size_t size)
{
    if (size > sizeof to->bytes - to->n - 20)
        return;
    put_varint(to, field << 3 | 2);
    put_varint(to, size);
    memcpy(to->bytes + to->n, data, size);
    to->n += size;
}

static void put_text(struct message *to, unsigned field, const char *text)
{
    put_bytes(to, field, text, strlen(text));
}

static void put_fixed64(struct message *to, unsigned field, uint64_t value)
{
    if (sizeof to->bytes - to->n < 20 + AROUND)
        return;
    put_varint(to, field << 3 | 1);
    for (int i = 0; i < 8; i++)
        to->bytes[to->n++] = (unsigned char)(value >> 8 * i);
}

static void add_packet(struct buffer *to, const struct message *packet)
{
    struct message head;
    head.n = 0;
    put_varint(&head, 1 << 3 | 2);
    put_varint(&head, packet->n);
    buffer_add(to, head.bytes, head.n);
    buffer_add(to, packet->bytes, packet->n);
}

static uint64_t track_of(size_t node, uint16_t thread)
{
    return ((uint64_t)node + 1) << 20 | ((uint64_t)thread + 1);
}

static void add_process(struct buffer *to, const struct profile *profile,
                        size_t node)
{
    const struct ls_trace_file *const file = &profile->nodes[node].file;
    struct message process, track, packet;
    char name[96];
    process.n = track.n = packet.n = 0;
    (void)snprintf(name, sizeof name, "%s %" PRIu32, file->role, file->node);
    put_number(&process, 1, node + 1);
    put_text(&process, 6, name);
    put_number(&track, 1, ((uint64_t)node + 1) << 20);
    put_bytes(&track, 3, process.bytes, process.n);
    put_number(&packet, 10, SEQUENCE);
    put_bytes(&packet, 60, track.bytes, track.n);
    add_packet(to, &packet);
}

static void add_thread(struct buffer *to, const struct profile *profile,
                       size_t node, uint16_t thread)
{
    struct message one, track, packet;
    one.n = track.n = packet.n = 0;
    put_number(&one, 1, node + 1);
    put_number(&one, 2, (node + 1) * 1000 + thread);
    put_text(&one, 5, profile->names[thread]);
    put_number(&track, 1, track_of(node, thread));
    put_number(&track, 5, ((uint64_t)node + 1) << 20);
    put_bytes(&track, 4, one.bytes, one.n);
    put_number(&packet, 10, SEQUENCE);
    put_bytes(&packet, 60, track.bytes, track.n);
    add_packet(to, &packet);
}

struct writer {
    struct buffer file;
    const struct profile_graph *graph;
    int64_t begin;
    struct arrow *from; /* own; by where they begin */
    struct arrow *to;   /* own; by where they end */
    size_t n_arrows;
    size_t node;
};

/* The first arrow of this end, in either order. */
static size_t find_arrow(const struct arrow *arrows, size_t n, const void *of,
                         bool by_to)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const void *const at = by_to ? arrows[mid].to : arrows[mid].from;
        if (at < of)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void add_event(struct writer *self, int64_t at,
                      const struct message *event)
{
    struct message packet;
    packet.n = 0;
    put_number(&packet, 8, (uint64_t)(at - self->begin));
    put_number(&packet, 10, SEQUENCE);
    put_bytes(&packet, 11, event->bytes, event->n);
    add_packet(&self->file, &packet);
}

static void begin_event(struct message *event, const struct writer *self,
                        const struct slice *slice, uint64_t type)
{
    event->n = 0;
    put_number(event, 9, type);
    put_number(event, 11, track_of(self->node, slice->thread));
}

static void put_flows(const struct writer *self, struct message *event,
                      const void *of, bool ends)
{
    const struct arrow *const arrows = ends ? self->to : self->from;
    for (size_t i = find_arrow(arrows, self->n_arrows, of, ends);
         i < self->n_arrows && (ends ? arrows[i].to : arrows[i].from) == of;
         i++)
        put_fixed64(event, ends ? 48 : 47, arrows[i].id);
}

static void add_begin(struct writer *self, const struct slice *slice)
{
    const struct profile *const profile = self->graph->profile;
    struct message event;
    begin_event(&event, self, slice, TYPE_BEGIN);
    put_text(&event, 22, slice_kinds[slice->kind]);
    put_text(&event, 23,
             slice->kind == SLICE_ITERATION ? "iteration"
                                            : profile->names[slice->name]);
    put_flows(self, &event, slice->of, false);
    if (slice->kind == SLICE_RECEIVE)
        put_flows(self, &event, slice->of, true);
    add_event(self, slice->begin, &event);
}

static void add_end(struct writer *self, const struct slice *slice)
{
    struct message event;
    if (slice->kind == SLICE_WAIT) {
        begin_event(&event, self, slice, TYPE_INSTANT);
        const size_t was = event.n;
        put_flows(self, &event, slice->of, true);
        if (event.n > was) { /* an arrow leads here */
            put_text(&event, 22, "release");
            put_text(&event, 23, "released");
            add_event(self, slice->end, &event);
        }
    }
    begin_event(&event, self, slice, TYPE_END);
    add_event(self, slice->end, &event);
}

static int add_node(struct writer *self)
{
    struct slice *slices;
    const struct slice *stack[64];
    size_t n, depth = 0;
    const int status = slices_make(&slices, &n, self->graph, self->node);
    if (status != LS_OK)
        return status;
    add_process(&self->file, self->graph->profile, self->node);
    for (size_t i = 0; i < n; i++) {
        const bool other = i == 0 || slices[i].thread != slices[i - 1].thread;
        while (depth > 0 && (other || stack[depth - 1]->end <= slices[i].begin))
            add_end(self, stack[--depth]);
        if (other)
            add_thread(&self->file, self->graph->profile, self->node,
                       slices[i].thread);
        if (depth == sizeof stack / sizeof stack[0])
            continue;
        add_begin(self, &slices[i]);
        stack[depth++] = &slices[i];
    }
    while (depth > 0)
        add_end(self, stack[--depth]);
    free(slices);
    return LS_OK;
}

static int compare_ends(const void *a, const void *b)
{
    const struct arrow *const p = a, *const q = b;
    if (p->to != q->to)
        return p->to < q->to ? -1 : 1;
    return (p->id > q->id) - (p->id < q->id);
}

static int add_all(struct writer *self)
{
    int status = arrows_make(&self->from, &self->n_arrows, self->graph);
    if (status != LS_OK)
        return status;
    self->to = calloc(self->n_arrows + 1, sizeof *self->to);
    if (self->to == NULL)
        return ls_error(LS_ENOMEM, "no memory for arrows");
    memcpy(self->to, self->from, self->n_arrows * sizeof *self->to);
    qsort(self->to, self->n_arrows, sizeof *self->to, compare_ends);
    for (; self->node < self->graph->profile->n_nodes && status == LS_OK;
         self->node++)
        status = add_node(self);
    return status;
}

/* The packet of the first process: add_process(). */
const struct written_form profile_perfetto_form = {"a timeline for Perfetto",
                                                   "\n?P\x01\xe2\x03"};

int profile_write_perfetto(const struct profile_graph *graph, const char *path)
{
    struct writer self = {.graph = graph,
                          .begin = slices_begin(graph->profile)};
    int status = add_all(&self);
    free(self.from);
    free(self.to);
    if (status == LS_OK)
        return buffer_write(&self.file, path);
    free(self.file.bytes);
    return status;
}
