/* What a stranger says where it is dialled: frames as any member's, and
 * mutants of them. */
#include "stranger_parts.h"

#include <stdlib.h>
#include <string.h>

struct wire_header stranger_header(ls_stranger *self, enum wire_kind kind)
{
    return (struct wire_header){.kind = kind,
                                .job = wire_job_hash(self->options.job),
                                .origin = self->options.id,
                                .incarnation = self->incarnation,
                                .sequence = ++self->sequence};
}

/* On an event's topic, in the inbox of a node, or (both NULL) to all. out:
 * WIRE_HEAD_MAX bytes and those of the payload. */
static size_t put_frame(uint8_t *out, const char *event,
                        const struct victim *to, struct wire_header *header,
                        const void *data, size_t size)
{
    size_t n = event != NULL ? wire_topic_event(out, event)
               : to != NULL  ? wire_topic_inbox(out, to->id)
                             : wire_topic_control(out);
    header->data = out;
    header->size = size;
    n += wire_header_write(out + n, header);
    if (size != 0)
        memcpy(out + n, data, size);
    return n + size;
}

void stranger_say(const ls_stranger *self, const char *event,
                  const struct victim *to, struct wire_header *header,
                  const void *data, size_t size)
{
    uint8_t *frame = malloc(WIRE_HEAD_MAX + size);
    if (frame == NULL)
        return;
    const size_t all = put_frame(frame, event, to, header, data, size);
    (void)!transport_publish(self->transport, frame, all, NULL, 0);
    free(frame);
}

void stranger_prove(ls_stranger *self, const char *challenge, uint32_t id,
                    uint64_t incarnation)
{
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = stranger_header(self, WIRE_KIND_PROOF);
    header.origin = id;
    header.incarnation = incarnation;
    header.sequence = 0;
    header.name = self->options.job;
    header.name_size = strlen(self->options.job);
    header.data = frame;
    size_t n = wire_topic_challenge(frame, challenge);
    n += wire_header_write(frame + n, &header);
    (void)!transport_publish(self->transport, frame, n, NULL, 0);
}

/* ---- heartbeats -------------------------------------------------------- */

static struct wire_member lists(const struct victim *victim)
{
    struct wire_member listed = {.id = victim->id,
                                 .incarnation = victim->incarnation,
                                 .state = WIRE_MEMBER_READY,
                                 .limit_messages = 1u << 30,
                                 .limit_bytes = UINT64_MAX / 2};
    memcpy(listed.endpoint, victim->endpoint, sizeof listed.endpoint);
    return listed;
}

static size_t write_members(const ls_stranger *self, uint8_t *out,
                            const struct wire_member *more, uint32_t n)
{
    uint32_t all = n;
    for (size_t i = 0; i < self->n_victims; i++)
        all += self->victims[i].here != 0 ? 1 : 0;
    size_t size = wire_members_begin(out, all);
    for (size_t i = 0; i < self->n_victims; i++) {
        const struct wire_member listed = lists(&self->victims[i]);
        if (self->victims[i].here != 0)
            size += wire_member_write(out + size, &listed);
    }
    for (uint32_t i = 0; i < n; i++)
        size += wire_member_write(out + size, &more[i]);
    return size;
}

void stranger_heartbeat(ls_stranger *self, const struct wire_member *more,
                        uint32_t n)
{
    uint8_t *members = malloc(wire_members_size(self->n_victims + n));
    if (members == NULL)
        return;
    struct wire_header header = stranger_header(self, WIRE_KIND_HEARTBEAT);
    header.sequence = ++self->heartbeats;
    header.name = self->options.job;
    header.name_size = strlen(self->options.job);
    const size_t size = write_members(self, members, more, n);
    stranger_say(self, NULL, NULL, &header, members, size);
    free(members);
}

/* ---- frames to be spoilt ----------------------------------------------- */

static size_t heartbeat(ls_stranger *self, const struct victim *to,
                        uint8_t *out)
{
    uint8_t members[1024];
    struct wire_header header = stranger_header(self, WIRE_KIND_HEARTBEAT);
    header.sequence = ++self->heartbeats;
    header.name = self->options.job;
    header.name_size = strlen(self->options.job);
    const struct wire_member listed = lists(to);
    size_t size = wire_members_begin(members, 1);
    size += wire_member_write(members + size, &listed);
    return put_frame(out, NULL, NULL, &header, members, size);
}

static size_t batch(ls_stranger *self, uint8_t *out)
{
    uint8_t payloads[3 * (WIRE_BATCH_LEAD + 8)];
    struct wire_header header = stranger_header(self, WIRE_KIND_BATCH);
    size_t size = 0;
    header.total = 3;
    for (uint64_t i = 0; i < 3; i++) {
        const size_t lead = wire_batch_write(payloads + size, &i, sizeof i);
        if (lead == WIRE_BATCH_LEAD)
            memcpy(payloads + size + lead, &i, sizeof i);
        size += WIRE_BATCH_LEAD + sizeof i;
    }
    return put_frame(out, self->options.event, NULL, &header, payloads, size);
}

static size_t reliable(ls_stranger *self, const struct victim *to, uint8_t *out)
{
    static const enum wire_kind of[] = {WIRE_KIND_EVENT, WIRE_KIND_CHUNK,
                                        WIRE_KIND_CHANNEL};
    struct wire_header header = stranger_header(self, WIRE_KIND_RELIABLE);
    header.of = of[stranger_draw(self, 3)];
    header.name = header.of == WIRE_KIND_CHANNEL ? self->options.channel
                                                 : self->options.event;
    header.name_size = strlen(header.name);
    header.to_incarnation = to->incarnation;
    header.number = 1 + stranger_draw(self, 8);
    header.total = header.of == WIRE_KIND_CHUNK ? 4096 : 8;
    return put_frame(out, NULL, to, &header, "12345678", 8);
}

static size_t of_kind(ls_stranger *self, const struct victim *to,
                      enum wire_kind kind, uint8_t *out)
{
    const bool part = kind == WIRE_KIND_CHUNK;
    const bool event = part || kind == WIRE_KIND_EVENT;
    const bool payload = event || kind == WIRE_KIND_CHANNEL;
    struct wire_header header = stranger_header(self, kind);
    if (kind == WIRE_KIND_CREDIT)
        header.sequence = to->incarnation;
    if (kind == WIRE_KIND_CHANNEL) {
        header.name = self->options.channel;
        header.name_size = strlen(header.name);
    }
    header.total = part ? 4096 : 0;
    header.to_incarnation = header.subject = to->incarnation;
    header.limit_messages = header.limit_bytes = 1u << 30;
    header.reason = kind == WIRE_KIND_VERDICT ? LS_ELOST : 0;
    return put_frame(out, event ? self->options.event : NULL,
                     kind == WIRE_KIND_FAREWELL ? NULL : to, &header,
                     "12345678", payload ? 8 : 0);
}

size_t stranger_honest(ls_stranger *self, const struct victim *to,
                       uint8_t out[STRANGER_FRAME_MAX])
{
    static const enum wire_kind kinds[] = {WIRE_KIND_EVENT,   WIRE_KIND_CHUNK,
                                           WIRE_KIND_CREDIT,  WIRE_KIND_CHANNEL,
                                           WIRE_KIND_VERDICT, WIRE_KIND_ACK,
                                           WIRE_KIND_FAREWELL};
    const size_t n = sizeof kinds / sizeof *kinds;
    const uint64_t which = stranger_draw(self, n + 3);
    if (which == n)
        return heartbeat(self, to, out);
    if (which == n + 1)
        return batch(self, out);
    if (which == n + 2)
        return reliable(self, to, out);
    return of_kind(self, to, kinds[which], out);
}

/* ---- mutants ----------------------------------------------------------- */

size_t stranger_mutate(ls_stranger *self, uint8_t *bytes, size_t size,
                       size_t most)
{
    /* What comes before is the topic: without it nobody gets the frame. */
    const size_t keep = stranger_draw(self, 4) == 0 ? 0 : 3;
    const uint64_t n = 1 + stranger_draw(self, 4);
    for (uint64_t i = 0; i < n && size > keep + 8; i++) {
        const size_t at = keep + stranger_draw(self, size - keep);
        const size_t some = 1 + stranger_draw(self, 8);
        switch (stranger_draw(self, 5)) {
        case 0: /* cut out */
            if (at + some > size)
                break;
            memmove(bytes + at, bytes + at + some, size - at - some);
            size -= some;
            break;
        case 1: /* put in */
            if (size + some > most)
                break;
            memmove(bytes + at + some, bytes + at, size - at);
            for (size_t j = 0; j < some; j++)
                bytes[at + j] = (uint8_t)stranger_draw(self, 256);
            size += some;
            break;
        case 2: /* as large as can be */
            for (size_t j = at; j < at + some && j < size; j++)
                bytes[j] = 0xff;
            break;
        case 3: /* end */
            size = at + 1;
            break;
        default:
            bytes[at] ^= (uint8_t)(1u << stranger_draw(self, 8));
            break;
        }
    }
    return size;
}
