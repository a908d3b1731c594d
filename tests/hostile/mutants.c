/* Honest frames of each kind, with bytes changed, cut out and put in. They
 * name no address but one of a socket file that is not there, so that no
 * mutant has anybody dialled beyond this host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "attacks.h"
#include "base/sanitized.h"
#include "foe.h"

#define N_MUTANTS   (SANITIZED ? 5000u : 20000u)
#define OF_ONE_LIFE 1000u /* many end it: then they are not read any more */
#define N_TOPICS    (SANITIZED ? 500u : 2000u)
#define NOWHERE     "ipc:///nowhere/0"
#define FRAME_MAX_  2048u

static uint64_t draw(struct siege *siege, uint64_t below)
{
    siege->seed = siege->seed * 6364136223846793005u + 1442695040888963407u;
    return (siege->seed >> 33) % below;
}

/* ---- honest ones ------------------------------------------------------- */

static size_t heartbeat(struct foe *foe, uint8_t *out)
{
    uint8_t members[512];
    struct wire_header header = foe_header(foe, WIRE_KIND_HEARTBEAT);
    struct wire_member you = foe_lists(foe), other = you;
    header.name = "lockstep";
    header.name_size = 8;
    memcpy(you.endpoint, NOWHERE, sizeof NOWHERE);
    memcpy(other.endpoint, NOWHERE, sizeof NOWHERE);
    other.id = 2;
    other.incarnation = foe->siege->nodes[1].incarnation;
    size_t size = wire_members_begin(members, 2);
    size += wire_member_write(members + size, &you);
    size += wire_member_write(members + size, &other);
    return foe_frame(foe, out, NULL, &header, members, size);
}

static size_t batch(struct foe *foe, uint8_t *out)
{
    uint8_t payloads[64];
    struct wire_header header = foe_header(foe, WIRE_KIND_BATCH);
    size_t size = 0;
    header.total = 3;
    for (int i = 0; i < 3; i++) {
        const size_t lead = wire_batch_write(payloads + size, "abc", 3);
        if (lead == WIRE_BATCH_LEAD)
            memcpy(payloads + size + lead, "abc", 3);
        size += WIRE_BATCH_LEAD + 3;
    }
    foe->sequence += 2;
    return foe_frame(foe, out, "flush", &header, payloads, size);
}

static size_t reliable(struct foe *foe, enum wire_kind of, uint8_t *out)
{
    struct wire_header header = foe_header(foe, WIRE_KIND_RELIABLE);
    header.to_incarnation = foe->node->incarnation;
    header.number = 1 + draw(foe->siege, 8);
    header.of = of;
    header.total = of == WIRE_KIND_CHUNK ? 4096 : 5;
    header.name = of == WIRE_KIND_CHANNEL ? "ls.call" : "";
    header.name_size = strlen(header.name);
    return foe_frame(foe, out, of == WIRE_KIND_CHANNEL ? NULL : "large",
                     &header, "bytes", 5);
}

static size_t to_node(struct foe *foe, enum wire_kind kind, uint8_t *out)
{
    struct wire_header header = foe_header(foe, kind);
    if (kind == WIRE_KIND_CREDIT)
        header.sequence = foe->node->incarnation;
    header.to_incarnation = foe->node->incarnation;
    header.limit_messages = header.limit_bytes = 1u << 30;
    header.subject = foe->node->incarnation;
    header.reason = kind == WIRE_KIND_VERDICT ? LS_ELOST : 0;
    return foe_frame(foe, out, NULL, &header, NULL, 0);
}

static size_t honest(struct foe *foe, bool last, uint8_t *out)
{
    struct siege *siege = foe->siege;
    struct wire_header header;
    switch (draw(siege, last ? 12 : 10)) {
    case 0:
        header = foe_header(foe, WIRE_KIND_EVENT);
        return foe_frame(foe, out, "plain", &header, "hello", 5);
    case 1:
        header = foe_header(foe, WIRE_KIND_CHUNK);
        header.total = 4096;
        return foe_frame(foe, out, "large", &header, "hello", 5);
    case 2:
        return heartbeat(foe, out);
    case 3:
        return to_node(foe, WIRE_KIND_CREDIT, out);
    case 4:
        header = foe_header(foe, WIRE_KIND_CHANNEL);
        header.name = "ls.call";
        header.name_size = 7;
        return foe_frame(foe, out, NULL, &header, "hello", 5);
    case 5:
        return batch(foe, out);
    case 6:
        return reliable(foe, WIRE_KIND_EVENT, out);
    case 7:
        return reliable(foe, WIRE_KIND_CHUNK, out);
    case 8:
        return reliable(foe, WIRE_KIND_CHANNEL, out);
    case 9:
        return to_node(foe, WIRE_KIND_ACK, out);
    case 10:
        return to_node(foe, WIRE_KIND_VERDICT, out);
    default:
        return to_node(foe, WIRE_KIND_FAREWELL, out);
    }
}

/* ---- changed ----------------------------------------------------------- */

/* Behind the first `keep` bytes, so that it gets where it is read. */
static size_t mutate(struct siege *siege, uint8_t *frame, size_t size,
                     size_t keep)
{
    const uint64_t n = 1 + draw(siege, 4);
    for (uint64_t i = 0; i < n && size > keep + 8; i++) {
        const size_t at = keep + draw(siege, size - keep);
        const size_t some = 1 + draw(siege, 8);
        switch (draw(siege, 6)) {
        case 0: /* cut out */
            if (at + some > size)
                break;
            memmove(frame + at, frame + at + some, size - at - some);
            size -= some;
            break;
        case 1: /* put in */
            if (size + some > FRAME_MAX_)
                break;
            memmove(frame + at + some, frame + at, size - at);
            for (size_t j = 0; j < some; j++)
                frame[at + j] = (uint8_t)draw(siege, 256);
            size += some;
            break;
        case 2: /* end */
            size = at;
            break;
        case 3:
            frame[at] = (uint8_t)draw(siege, 256);
            break;
        case 4: /* as large as can be */
            for (size_t j = at; j < at + some && j < size; j++)
                frame[j] = 0xff;
            break;
        default:
            frame[at] ^= (uint8_t)(1u << draw(siege, 8));
            break;
        }
    }
    return size;
}

/* Until all was read, or the foe is not heard any more. */
static void until_read(struct foe *foe)
{
    struct siege *siege = foe->siege;
    const uint64_t before =
        figure(process_ask(siege, foe->node, "figures"), "flush");
    const int64_t deadline = now_ms() + WAIT_MS;
    /* A verdict may have said that what comes does not count: a credit says
     * that it does again. */
    uint8_t frame[FRAME_MAX_];
    (void)foe_send(foe, frame, to_node(foe, WIRE_KIND_CREDIT, frame));
    struct wire_header header = foe_header(foe, WIRE_KIND_EVENT);
    header.sequence = 0;
    (void)foe_say(foe, "flush", &header, "", 0);
    while (now_ms() < deadline) {
        if (foe_is_dropped(foe, 1, LOOK_MS) ||
            strncmp(process_ask(siege, foe->node, "figures"), "figures", 7) !=
                0 ||
            figure(foe->node->line, "flush") > before)
            return;
    }
    case_fails(siege, "node 1 reads no more of node %" PRIu32, foe->id);
}

static void frames(struct siege *siege)
{
    struct process *node = &siege->nodes[0];
    uint8_t frame[FRAME_MAX_ + 16];
    for (uint32_t i = 0; i < N_MUTANTS; i += OF_ONE_LIFE) {
        struct foe *foe = foe_open(siege, FOE_MEMBER, node);
        if (!foe_join(foe))
            return;
        for (uint32_t j = 0; j < OF_ONE_LIFE; j++) {
            size_t size = honest(foe, j > OF_ONE_LIFE * 9 / 10, frame);
            size = mutate(siege, frame, size, draw(siege, 4) == 0 ? 0 : 3);
            if (j % 4 == 0 && size <= WIRE_TOPIC_MAX)
                foe_send_up(foe, frame, size);
            else
                (void)foe_send(foe, frame, size);
            if (j % 64 == 0)
                foes_pump(siege);
        }
        until_read(foe);
        foe_close(foe);
    }
}

static void topics(struct siege *siege)
{
    uint8_t topic[FRAME_MAX_ + 16];
    struct foe *foe = foe_open(siege, FOE_MEMBER, &siege->nodes[0]);
    for (uint32_t i = 0; i < N_TOPICS; i++) {
        struct wire_presence p = {.link = foe->link,
                                  .id = foe->id,
                                  .incarnation = foe->incarnation,
                                  .relayed = i % 4 == 0,
                                  .relay = foe->id,
                                  .job = "lockstep",
                                  .role = "foe",
                                  .endpoint = NOWHERE};
        const struct wire_listen listen = {
            .link = foe->link, .id = foe->id, .event = "plain"};
        size_t size = i % 2 == 0 ? wire_presence_write(topic, &p)
                                 : wire_listen_write(topic, &listen);
        size = mutate(siege, topic, size, draw(siege, 4) == 0 ? 0 : 3);
        foe_subscribe(foe, topic, size, true);
        if (i % 3 == 0)
            foe_subscribe(foe, topic, size, false);
    }
    if (!foe_is_answered(foe))
        case_fails(siege, "node 1 reads no more of its subscriptions");
}

void attack_mutants(struct siege *siege)
{
    case_begin(siege, "mutated frames");
    frames(siege);
    (void)case_grows(siege, &siege->nodes[0], "refused", N_MUTANTS / 4);
    case_end(siege);
    case_begin(siege, "mutated subscriptions");
    topics(siege);
    (void)case_grows(siege, &siege->nodes[0], "refused", N_TOPICS / 4);
    case_end(siege);
}
