/* A stranger: where it goes, what it reads, and how long it stays. */
#include "stranger_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEARTBEAT_NS (100 * LS_NS_PER_MS)
#define FIRST_NS     (5 * LS_NS_PER_MS)  /* so that it is dialled */
#define PAUSE_NS     (40 * LS_NS_PER_MS) /* at most, between two acts */
#define STREAM       0x7374726e6772

uint64_t stranger_draw(ls_stranger *self, uint64_t below)
{
    return ls_rng_below(&self->rng, below);
}

static uint64_t draw_life(ls_stranger *self)
{
    return ls_rng_next(&self->rng) | 1;
}

/* ---- where it is present ----------------------------------------------- */

void stranger_subscribe(const struct stranger_link *link, const uint8_t *topic,
                        size_t size, bool on)
{
    if (link->link != NULL)
        (void)!transport_link_subscribe(link->link, topic, size, on);
}

static void present(const ls_stranger *self, const struct stranger_link *link,
                    bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence me = {.link = link->number,
                               .id = self->options.id,
                               .incarnation = self->incarnation,
                               .role = "client"};
    (void)snprintf(me.job, sizeof me.job, "%s", self->options.job);
    memcpy(me.endpoint, self->endpoint, sizeof me.endpoint);
    stranger_subscribe(link, topic, wire_presence_write(topic, &me), on);
}

void stranger_present(ls_stranger *self, bool on)
{
    for (size_t i = 0; i < self->n_links; i++)
        present(self, &self->links[i], on);
    self->present = on;
}

static void dial(ls_stranger *self, struct stranger_link *link)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    link->number = draw_life(self);
    if (transport_link_open(self->transport, &link->link, self) != LS_OK)
        return;
    stranger_subscribe(link, topic, wire_topic_control(topic), true);
    stranger_subscribe(link, topic, wire_topic_inbox(topic, self->options.id),
                       true);
    if (self->present)
        present(self, link, true);
    if (transport_link_connect(link->link, link->endpoint, false, 0) != LS_OK)
        transport_link_close(&link->link, false);
}

void stranger_dial_again(ls_stranger *self, struct stranger_link *link)
{
    if (link->link != NULL)
        transport_link_close(&link->link, false);
    dial(self, link);
}

/* The first, and most of the others. */
static void choose_nodes(ls_stranger *self)
{
    for (size_t i = 0;
         i < self->options.n_nodes && self->n_links < STRANGER_NODES_MAX; i++) {
        if (i != 0 && stranger_draw(self, 4) == 0)
            continue;
        struct stranger_link *link = &self->links[self->n_links++];
        (void)snprintf(link->endpoint, sizeof link->endpoint, "%s",
                       self->options.nodes[i]);
    }
    self->options.nodes = NULL;
}

/* ---- what comes -------------------------------------------------------- */

static struct victim *note_victim(ls_stranger *self, uint32_t id,
                                  uint64_t incarnation)
{
    for (size_t i = 0; i < self->n_victims; i++)
        if (self->victims[i].id == id &&
            self->victims[i].incarnation == incarnation)
            return &self->victims[i];
    if (self->n_victims == STRANGER_KNOWN_MAX) {
        memmove(&self->victims[0], &self->victims[1],
                (STRANGER_KNOWN_MAX - 1) * sizeof *self->victims);
        self->n_victims--;
    }
    struct victim *made = &self->victims[self->n_victims++];
    *made = (struct victim){.id = id, .incarnation = incarnation};
    return made;
}

/* It says who it is only after it has said that it is others. */
static void answer(ls_stranger *self, const char *challenge)
{
    if (self->manner == STRANGER_MUTE)
        return;
    if (self->n_victims != 0 && stranger_draw(self, 4) == 0) {
        const struct victim *as =
            &self->victims[stranger_draw(self, self->n_victims)];
        stranger_prove(self, challenge, as->id, as->incarnation);
        self->acts++;
    }
    stranger_prove(self, challenge, self->options.id, self->incarnation);
}

static void on_subscription(void *arg, const uint8_t *topic, size_t size,
                            bool on, const struct speaker *by)
{
    ls_stranger *self = arg;
    struct wire_presence p;
    (void)by;
    if (size == WIRE_CHALLENGE_SIZE + 2 && topic[0] == WIRE_CHALLENGE && on)
        answer(self, (const char *)topic + 1);
    if (wire_presence_read(topic, size, &p) != LS_OK)
        return;
    struct victim *victim = note_victim(self, p.id, p.incarnation);
    victim->shown = p;
    memcpy(victim->endpoint, p.endpoint, sizeof victim->endpoint);
    if (on)
        victim->here++;
    else if (victim->here != 0)
        victim->here--;
}

static struct message *on_take(void *arg)
{
    ls_stranger *self = arg;
    return &self->message;
}

static void on_message(void *arg, void *owner, struct message *message)
{
    (void)arg;
    (void)owner;
    transport_release(message);
}

static void on_probed(void *arg, const char *endpoint,
                      enum transport_probed answer)
{
    (void)arg;
    (void)endpoint;
    (void)answer;
}

static const struct transport_events events = {.subscription = on_subscription,
                                               .message = on_message,
                                               .take = on_take,
                                               .probed = on_probed};

/* ---- its life ---------------------------------------------------------- */

static void keep_up(ls_stranger *self, int64_t now)
{
    if (now >= self->heartbeat_at) {
        self->heartbeat_at = now + HEARTBEAT_NS;
        if (self->manner == STRANGER_CLIENT) {
            transport_lock(self->transport);
            stranger_heartbeat(self, NULL, 0);
            transport_unlock(self->transport);
        }
    }
    if (now < self->next_at)
        return;
    self->next_at = now + (int64_t)stranger_draw(self, PAUSE_NS);
    self->acts++;
    stranger_act(self);
}

static void live(void *arg)
{
    ls_stranger *self = arg;
    for (size_t i = 0; i < self->n_links; i++)
        dial(self, &self->links[i]);
    stranger_present(self, true);
    while (!self->stopped) {
        const int64_t now = ls_now(self->runtime);
        if (now >= self->until)
            break;
        keep_up(self, now);
        const int64_t next = self->next_at < self->heartbeat_at
                                 ? self->next_at
                                 : self->heartbeat_at;
        (void)transport_poll(self->transport,
                             next < self->until ? next : self->until, &events,
                             self);
    }
    for (size_t i = 0; i < self->n_links; i++)
        if (self->links[i].link != NULL)
            transport_link_close(&self->links[i].link, false);
    transport_unbind(self->transport);
}

static int begin(ls_stranger *self)
{
    const int64_t now = ls_now(self->runtime);
    int status = self->options.proved ? LS_OK : ls_security_none(&self->none);
    if (status == LS_OK)
        status = transport_open(
            &self->transport,
            &(struct transport_options){.runtime = self->runtime,
                                        .bind = "tcp://127.0.0.1:*",
                                        .advertise = "",
                                        .id = self->options.id,
                                        .incarnation = self->incarnation,
                                        .security = self->none},
            self->endpoint);
    if (status != LS_OK)
        return status;
    self->next_at = now + FIRST_NS;
    self->heartbeat_at = now;
    self->until = self->options.length_ns != 0 ? now + self->options.length_ns
                                               : LS_FOREVER;
    return ls_thread_spawn(self->runtime, &self->thread, "stranger", live,
                           self);
}

int ls_stranger_create(ls_stranger **out,
                       const struct ls_stranger_options *options)
{
    ls_stranger *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "a stranger");
    self->options = *options;
    self->runtime = ls_host_runtime(options->host);
    ls_rng_seed(&self->rng, options->seed, STREAM);
    self->incarnation = draw_life(self);
    self->manner = (enum stranger_manner)stranger_draw(self, 4);
    if (self->manner == STRANGER_N_MANNERS)
        self->manner = STRANGER_CLIENT; /* who can do most */
    choose_nodes(self);
    const int status = begin(self);
    if (status != LS_OK) {
        ls_stranger_destroy(&self);
        return status;
    }
    *out = self;
    return LS_OK;
}

void ls_stranger_destroy(ls_stranger **stranger)
{
    if (stranger == NULL || *stranger == NULL)
        return;
    ls_stranger *self = *stranger;
    self->stopped = true;
    if (self->thread != NULL) {
        transport_wake(self->transport);
        (void)!ls_thread_join(&self->thread, LS_FOREVER);
    }
    if (self->transport != NULL)
        transport_close(&self->transport);
    ls_security_destroy(&self->none);
    free(self);
    *stranger = NULL;
}

uint64_t ls_stranger_acts(const ls_stranger *stranger)
{
    return stranger->acts;
}
