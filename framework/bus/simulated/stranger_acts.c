/* The things that a stranger does, one at a time. */
#include "stranger_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY_PORT                                                            \
    40000u /* nobody is bound there in any simulation of ours                  \
            */
#define FIRST_UNKNOWN 2000u
#define LIES_MAX      20u
#define FLOOD_CHUNKS  14u
#define MUTANTS_MAX   16u

static const struct victim *draw_victim(ls_stranger *self)
{
    return &self->victims[stranger_draw(self, self->n_victims)];
}

static const struct stranger_link *draw_link(ls_stranger *self)
{
    return &self->links[stranger_draw(self, self->n_links)];
}

/* ---- where it subscribes, as another ----------------------------------- */

static void present_as(ls_stranger *self, const struct wire_presence *as)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    const struct stranger_link *link = draw_link(self);
    struct wire_presence p = *as;
    if (p.link == 0)
        p.link = link->number;
    if (p.job[0] == '\0')
        (void)snprintf(p.job, sizeof p.job, "%s", self->options.job);
    const size_t size = wire_presence_write(topic, &p);
    stranger_subscribe(link, topic, size, true);
    if (stranger_draw(self, 4) != 0)
        stranger_subscribe(link, topic, size, false);
}

static struct wire_presence presence_of(uint32_t id, uint64_t incarnation,
                                        const char *endpoint)
{
    struct wire_presence p = {.id = id, .incarnation = incarnation};
    (void)snprintf(p.endpoint, sizeof p.endpoint, "%s", endpoint);
    return p;
}

/* In the life in which it is there; and so withdraw it. */
static void withdraw(ls_stranger *self)
{
    const struct victim *victim = draw_victim(self);
    const struct wire_presence p = presence_of(
        victim->id, victim->incarnation,
        stranger_draw(self, 2) == 0 ? victim->endpoint : self->endpoint);
    present_as(self, &p);
}

static void be_another_life(ls_stranger *self)
{
    const struct victim *victim = draw_victim(self);
    const struct wire_presence p = presence_of(
        victim->id, ls_rng_next(&self->rng) | 1,
        stranger_draw(self, 2) == 0 ? victim->endpoint : self->endpoint);
    present_as(self, &p);
}

static void listen_as(ls_stranger *self)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    const struct stranger_link *link = draw_link(self);
    struct wire_listen listen = {.link = link->number,
                                 .id = draw_victim(self)->id};
    (void)snprintf(listen.event, sizeof listen.event, "%s",
                   self->options.event);
    const size_t size = wire_listen_write(topic, &listen);
    stranger_subscribe(link, topic, size, true);
    stranger_subscribe(link, topic, size, false);
}

/* ---- as itself --------------------------------------------------------- */

/* As it was shown to it: so much is signed. */
static void relay(ls_stranger *self)
{
    struct wire_presence p = draw_victim(self)->shown;
    p.link = 0;
    p.relayed = true;
    p.relay = self->options.id;
    present_as(self, &p);
}

/* As itself, at the address of another. */
static void be_at_anothers_place(ls_stranger *self)
{
    const struct wire_presence p = presence_of(
        self->options.id, self->incarnation, draw_victim(self)->endpoint);
    present_as(self, &p);
}

static void be_of_another_world(ls_stranger *self)
{
    struct wire_presence p =
        presence_of(self->options.id, self->incarnation, self->endpoint);
    (void)snprintf(p.job, sizeof p.job, "another");
    present_as(self, &p);
}

static void mutate_topics(ls_stranger *self)
{
    uint8_t topic[STRANGER_FRAME_MAX];
    const struct stranger_link *link = draw_link(self);
    struct wire_presence p =
        presence_of(self->options.id, self->incarnation, self->endpoint);
    const struct wire_listen listen = {
        .link = link->number, .id = self->options.id, .event = "nothing"};
    p.link = link->number;
    (void)snprintf(p.job, sizeof p.job, "%s", self->options.job);
    for (uint64_t i = stranger_draw(self, MUTANTS_MAX); i > 0; i--) {
        size_t size = stranger_draw(self, 2) == 0
                          ? wire_presence_write(topic, &p)
                          : wire_listen_write(topic, &listen);
        size = stranger_mutate(self, topic, size, WIRE_TOPIC_MAX);
        stranger_subscribe(link, topic, size, true);
        if (stranger_draw(self, 2) == 0)
            stranger_subscribe(link, topic, size, false);
    }
}

static void come_again(ls_stranger *self)
{
    stranger_dial_again(self, &self->links[stranger_draw(self, self->n_links)]);
}

/* It goes on as another life; what it says of the one before is old. */
static void begin_anew(ls_stranger *self)
{
    if (stranger_draw(self, 2) == 0)
        stranger_present(self, false);
    self->before = self->incarnation;
    self->incarnation = ls_rng_next(&self->rng) | 1;
    self->heartbeats = 0;
    stranger_present(self, true);
}

/* ---- where it is dialled, or up to where it dials ----------------------- */

/* Published; or sent up, to one it goes to. */
static void send_frame(ls_stranger *self, const uint8_t *frame, size_t size)
{
    const struct stranger_link *link = draw_link(self);
    if (size <= TRANSPORT_UP_MAX && link->link != NULL &&
        stranger_draw(self, 3) == 0)
        (void)!transport_link_send(link->link, frame, size, NULL, 0);
    else
        (void)!transport_publish(self->transport, frame, size, NULL, 0);
}

static void mutate_frames(ls_stranger *self)
{
    uint8_t frame[STRANGER_FRAME_MAX];
    for (uint64_t i = stranger_draw(self, MUTANTS_MAX); i > 0; i--) {
        size_t size = stranger_honest(self, draw_victim(self), frame);
        size = stranger_mutate(self, frame, size, sizeof frame);
        send_frame(self, frame, size);
    }
}

/* Frames as that one would send them. */
static void say_as(ls_stranger *self, uint32_t id, uint64_t incarnation)
{
    uint8_t frame[STRANGER_FRAME_MAX];
    const uint32_t own_id = self->options.id;
    const uint64_t own = self->incarnation;
    self->options.id = id;
    self->incarnation = incarnation;
    for (uint64_t i = 1 + stranger_draw(self, 4); i > 0; i--) {
        const size_t size = stranger_honest(self, draw_victim(self), frame);
        send_frame(self, frame, size);
    }
    self->options.id = own_id;
    self->incarnation = own;
}

static void say_as_another(ls_stranger *self)
{
    const struct victim *as = draw_victim(self);
    say_as(self, as->id, as->incarnation);
}

static void say_as_before(ls_stranger *self)
{
    if (self->before != 0)
        say_as(self, self->options.id, self->before);
}

static void lie_about_others(ls_stranger *self)
{
    struct wire_member lies[LIES_MAX];
    const uint32_t n = 1 + (uint32_t)stranger_draw(self, LIES_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct victim *victim = draw_victim(self);
        const bool unknown = stranger_draw(self, 2) == 0;
        lies[i] = (struct wire_member){
            .id = unknown ? FIRST_UNKNOWN + (uint32_t)stranger_draw(self, 1000)
                          : victim->id,
            .incarnation = unknown || stranger_draw(self, 2) == 0
                               ? ls_rng_next(&self->rng) | 1
                               : victim->incarnation,
            .state = (enum wire_member_state)stranger_draw(self, 5)};
        if (unknown && stranger_draw(self, 4) == 0)
            memcpy(lies[i].endpoint, victim->endpoint, sizeof lies[i].endpoint);
        else
            (void)snprintf(lies[i].endpoint, sizeof lies[i].endpoint,
                           "tcp://127.0.0.1:%u",
                           NOBODY_PORT + (unsigned)stranger_draw(self, 4000));
    }
    stranger_heartbeat(self, lies, n);
}

static void judge(ls_stranger *self)
{
    static const int reasons[] = {LS_ELOST, LS_ESTATE, LS_EEXIST, LS_ELIMIT,
                                  LS_EUNREACHABLE};
    const struct victim *victim = draw_victim(self);
    struct wire_header header = stranger_header(self, WIRE_KIND_VERDICT);
    header.sequence = 0;
    header.subject = victim->incarnation;
    header.members = 1000;
    header.reason = reasons[stranger_draw(self, 5)];
    stranger_say(self, NULL, victim, &header, NULL, 0);
}

/* An event that only members may emit; on its topic, or in the inbox of one. */
static void emit_as_itself(ls_stranger *self, const char *event, size_t size)
{
    static const uint8_t zeros[16];
    const struct victim *to = draw_victim(self);
    const bool reliable = stranger_draw(self, 2) == 0;
    struct wire_header header =
        stranger_header(self, reliable ? WIRE_KIND_RELIABLE : WIRE_KIND_EVENT);
    if (reliable) {
        header.of = WIRE_KIND_EVENT;
        header.to_incarnation = to->incarnation;
        header.number = 1 + stranger_draw(self, 5000);
        header.total = (uint32_t)size;
        header.name = event;
        header.name_size = strlen(event);
    }
    stranger_say(self, reliable ? NULL : event, to, &header, zeros, size);
}

static void emit(ls_stranger *self)
{
    emit_as_itself(self, self->options.event, stranger_draw(self, 16));
}

static void finish(ls_stranger *self)
{
    emit_as_itself(self, "ls.finish", 0);
}

static void say_on_channel(ls_stranger *self)
{
    uint8_t bytes[64];
    const struct victim *to = draw_victim(self);
    const size_t size = stranger_draw(self, sizeof bytes + 1);
    struct wire_header header = stranger_header(self, WIRE_KIND_CHANNEL);
    header.name = self->options.channel;
    header.name_size = strlen(header.name);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)stranger_draw(self, 256);
    stranger_say(self, NULL, to, &header, bytes, size);
}

static void lie_about_totals(ls_stranger *self)
{
    static const uint32_t totals[] = {0, 1, 4096, 1u << 30, UINT32_MAX};
    const struct victim *to = draw_victim(self);
    const bool reliable = stranger_draw(self, 2) == 0;
    struct wire_header header =
        stranger_header(self, reliable ? WIRE_KIND_RELIABLE : WIRE_KIND_CHUNK);
    header.total = totals[stranger_draw(self, 5)];
    header.offset = totals[stranger_draw(self, 5)];
    header.of = WIRE_KIND_CHUNK;
    header.to_incarnation = to->incarnation;
    header.number = 1 + stranger_draw(self, 4);
    if (reliable) {
        header.name = self->options.event;
        header.name_size = strlen(header.name);
    }
    stranger_say(self, reliable ? NULL : self->options.event, to, &header,
                 "12345678", 8);
}

/* An event that never ends: what came of it is kept. */
static void flood(ls_stranger *self)
{
    uint8_t *bytes = calloc(1, WIRE_CHUNK_BYTES);
    if (stranger_draw(self, 32) != 0 || bytes == NULL) {
        free(bytes);
        return; /* it takes long */
    }
    const uint64_t sequence = ++self->sequence;
    for (uint32_t i = 0; i < FLOOD_CHUNKS; i++) {
        struct wire_header header = stranger_header(self, WIRE_KIND_CHUNK);
        header.sequence = sequence;
        header.total = (FLOOD_CHUNKS + 1) * WIRE_CHUNK_BYTES;
        header.offset = i * WIRE_CHUNK_BYTES;
        stranger_say(self, self->options.event, NULL, &header, bytes,
                     WIRE_CHUNK_BYTES);
    }
    free(bytes);
}

static void leave(ls_stranger *self)
{
    struct wire_header header = stranger_header(self, WIRE_KIND_FAREWELL);
    header.sequence = 0;
    stranger_say(self, NULL, NULL, &header, NULL, 0);
}

/* ---- one of all -------------------------------------------------------- */

static const struct act {
    void (*fn)(ls_stranger *self);
    bool at_links; /* it subscribes; else it publishes, with the lock held */
    bool proved;   /* only where it is known who connects */
    unsigned weight;
} acts[] = {
    {withdraw, true, true, 3},
    {be_another_life, true, true, 3},
    {listen_as, true, true, 2},
    {relay, true, false, 2},
    {be_at_anothers_place, true, false, 2},
    {be_of_another_world, true, false, 1},
    {mutate_topics, true, false, 2},
    {come_again, true, false, 1},
    {begin_anew, true, false, 1},
    {mutate_frames, false, false, 6},
    {say_as_another, false, false, 6},
    {say_as_before, false, false, 2},
    {lie_about_others, false, false, 3},
    {judge, false, false, 4},
    {emit, false, false, 3},
    {finish, false, false, 3},
    {say_on_channel, false, false, 3},
    {lie_about_totals, false, false, 3},
    {flood, false, false, 1},
    {leave, false, false, 1},
};
#define N_ACTS (sizeof acts / sizeof acts[0])

static const struct act *draw_act(ls_stranger *self)
{
    unsigned all = 0;
    for (size_t i = 0; i < N_ACTS; i++)
        all += acts[i].weight;
    uint64_t at = stranger_draw(self, all);
    size_t i = 0;
    while (at >= acts[i].weight)
        at -= acts[i++].weight;
    return &acts[i];
}

void stranger_act(ls_stranger *self)
{
    const struct act *act = draw_act(self);
    if (self->n_victims == 0 || (act->proved && !self->options.proved))
        return;
    if (!act->at_links)
        transport_lock(self->transport);
    act->fn(self);
    if (!act->at_links)
        transport_unlock(self->transport);
}
