/* membership_fixture.h - one membership machine, and all that it tells. */
#ifndef MEMBERSHIP_FIXTURE_H
#define MEMBERSHIP_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "membership.h"
#include "test.h"

#define ME        5u
#define MY_LIFE   0x5005ull
#define FIRST     0xaull /* lives of others */
#define SECOND    0xbull
#define THIRD     0xcull
#define HEARTBEAT (100 * LS_NS_PER_MS)
#define SILENCE   (1000 * LS_NS_PER_MS)
#define KEPT      64

struct machine {
    struct membership m;
    int64_t now;
    bool dials_nobody;
    uint64_t heartbeats;
    struct verdict told[KEPT];
    char texts[KEPT][LS_ENDPOINT_MAX + 1];
    size_t n_told;
    uint32_t dialled[KEPT];
    size_t n_dialled;
    struct {
        uint32_t id;
        uint64_t life;
        enum member_change change;
    } changes[KEPT];
    size_t n_changes;
};

/* ---- what it tells ----------------------------------------------------- */

static inline void on_began(void *self, struct member *member)
{
    (void)self, (void)member;
}

static inline void on_changed(void *self, struct member *member,
                              enum member_change change)
{
    struct machine *a = self;
    assert_true(a->n_changes < KEPT);
    a->changes[a->n_changes].id = member->id;
    a->changes[a->n_changes].life = member->incarnation;
    a->changes[a->n_changes++].change = change;
}

static inline bool on_dial(void *self, struct member *member, uint32_t id,
                           const char *endpoint)
{
    struct machine *a = self;
    (void)member, (void)endpoint;
    assert_true(a->n_dialled < KEPT);
    if (!a->dials_nobody)
        a->dialled[a->n_dialled++] = id;
    return !a->dials_nobody;
}

static inline void on_tell(void *self, const struct verdict *verdict)
{
    struct machine *a = self;
    assert_true(a->n_told < KEPT);
    (void)snprintf(a->texts[a->n_told], sizeof a->texts[0], "%s",
                   verdict->text);
    a->told[a->n_told] = *verdict;
    a->told[a->n_told].text = a->texts[a->n_told];
    a->n_told++;
}

static inline const struct verdict *told(const struct machine *a, uint32_t to,
                                         int reason, uint64_t subject)
{
    for (size_t i = 0; i < a->n_told; i++)
        if (a->told[i].to == to && a->told[i].reason == reason &&
            a->told[i].subject == subject)
            return &a->told[i];
    return NULL;
}

static inline bool dialled(const struct machine *a, uint32_t id)
{
    for (size_t i = 0; i < a->n_dialled; i++)
        if (a->dialled[i] == id)
            return true;
    return false;
}

static inline size_t changed(const struct machine *a, uint32_t id,
                             uint64_t life, enum member_change change)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_changes; i++)
        n += a->changes[i].id == id && a->changes[i].life == life &&
                     a->changes[i].change == change
                 ? 1
                 : 0;
    return n;
}

static inline void forget_told(struct machine *a)
{
    a->n_told = a->n_dialled = a->n_changes = 0;
}

/* ---- its beginning and end --------------------------------------------- */

static inline struct machine *machine_with(enum ls_topology topology, bool hub,
                                           uint32_t id, uint32_t world_max)
{
    static const struct membership_ops ops = {.began = on_began,
                                              .changed = on_changed,
                                              .dial = on_dial,
                                              .tell = on_tell};
    const struct membership_options options = {.id = id,
                                               .job = "job",
                                               .endpoint = "tcp://me:1",
                                               .role = "learner",
                                               .labels = "gpu",
                                               .config_hash = 77,
                                               .topology = topology,
                                               .hub = hub,
                                               .world_max = world_max,
                                               .heartbeat_ns = HEARTBEAT,
                                               .silence_ns = SILENCE,
                                               .member_size =
                                                   sizeof(struct member)};
    struct machine *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->now = LS_NS_PER_S;
    membership_init(&a->m, &options, &ops, a);
    membership_begin(&a->m, MY_LIFE);
    return a;
}

static inline struct machine *machine(void)
{
    return machine_with(LS_TOPOLOGY_MESH, false, ME, 64);
}

static inline void free_member(void *self, struct member *member)
{
    (void)self, (void)member;
}

static inline void end(struct machine *a)
{
    membership_fini(&a->m, free_member);
    free(a);
}

/* ---- what it sees and hears -------------------------------------------- */

static inline struct member *of(struct machine *a, uint32_t id)
{
    struct member *member = membership_find(&a->m, id);
    assert_non_null(member);
    return member;
}

static inline uint64_t link_of(uint32_t id)
{
    return 1000 + id;
}

static inline struct wire_presence presence_of(uint32_t id, uint64_t life)
{
    struct wire_presence p = {.link = link_of(id),
                              .job = "job",
                              .id = id,
                              .incarnation = life,
                              .config_hash = 77,
                              .role = "worker",
                              .labels = "fast"};
    (void)snprintf(p.endpoint, sizeof p.endpoint, "tcp://10.0.0.%u:1", id);
    return p;
}

/* It has proved to be this node. */
static inline struct speaker proved(uint32_t id)
{
    return (struct speaker){
        .spoken = true, .proved = true, .id = id, .connection = id};
}

static inline int present_as(struct machine *a, uint32_t id,
                             const struct wire_presence *p)
{
    const struct speaker by = proved(id);
    return membership_present(&a->m, &by, p, a->now);
}

static inline int present(struct machine *a, uint32_t id, uint64_t life)
{
    const struct wire_presence p = presence_of(id, life);
    return present_as(a, id, &p);
}

/* The same node, over another connection, dialled by another life of it. */
static inline int present_over(struct machine *a, uint32_t id, uint64_t life,
                               uint64_t link)
{
    struct wire_presence p = presence_of(id, life);
    const struct speaker by = {
        .spoken = true, .proved = true, .id = id, .connection = link};
    p.link = link;
    return membership_present(&a->m, &by, &p, a->now);
}

static inline int absent(struct machine *a, uint32_t id, uint64_t life)
{
    const struct speaker by = proved(id);
    const struct wire_presence p = presence_of(id, life);
    return membership_absent(&a->m, &by, &p, a->now);
}

/* Its connection broke. */
static inline void broke(struct machine *a, uint32_t id, uint64_t life)
{
    const struct speaker by = {.id = id, .connection = id};
    const struct wire_presence p = presence_of(id, life);
    assert_ok(membership_absent(&a->m, &by, &p, a->now));
}

struct said {
    uint32_t id;
    uint64_t life;
    enum wire_member_state state;
};

/* A heartbeat with this list. */
static inline void hears_list(struct machine *a, uint32_t from,
                              const struct said *list, size_t n)
{
    struct member *member = of(a, from);
    bool listed_me = false;
    member->heard_at = a->now;
    assert_ok(membership_heartbeat(member, ++a->heartbeats));
    for (size_t i = 0; i < n; i++) {
        struct wire_member listed = {.id = list[i].id,
                                     .incarnation = list[i].life,
                                     .state = list[i].state,
                                     .reason = LS_ELOST};
        (void)snprintf(listed.endpoint, sizeof listed.endpoint,
                       "tcp://10.0.0.%u:1", list[i].id);
        listed_me = listed_me || (list[i].id == a->m.options.id &&
                                  list[i].life == a->m.incarnation);
        membership_listed(&a->m, member, &listed, a->now);
    }
    membership_list_ends(&a->m, member, listed_me, a->now);
}

#define hears(a, from, ...)                                                    \
    hears_list((a), (from), (const struct said[]){__VA_ARGS__},                \
               sizeof((const struct said[]){__VA_ARGS__}) /                    \
                   sizeof(struct said))
#define READY_ME(a)                                                            \
    {                                                                          \
        (a)->m.options.id, (a)->m.incarnation, WIRE_MEMBER_READY               \
    }

static inline void settle(struct machine *a, uint32_t id)
{
    hears(a, id, READY_ME(a));
    membership_announced(&a->m, a->now);
}

static inline struct member *ready(struct machine *a, uint32_t id,
                                   uint64_t life)
{
    assert_ok(present(a, id, life));
    settle(a, id);
    assert_int_equal(of(a, id)->state, LS_MEMBER_READY);
    assert_true(of(a, id)->incarnation == life);
    return of(a, id);
}

/* So much time, in which all that are ready and here are heard. */
static inline void pass(struct machine *a, int64_t ns)
{
    for (const int64_t until = a->now + ns; a->now < until;) {
        a->now += HEARTBEAT / 2;
        for (size_t i = 0; i < a->m.n; i++)
            if (member_is_here(a->m.at[i]))
                a->m.at[i]->heard_at = a->now;
        (void)membership_tick(&a->m, a->now);
    }
}

/* So much, in which one is not heard. */
static inline void pass_without(struct machine *a, int64_t ns, uint32_t id)
{
    struct member *silent = of(a, id);
    const int64_t heard_at = silent->heard_at;
    for (const int64_t until = a->now + ns; a->now < until;) {
        a->now += HEARTBEAT / 2;
        for (size_t i = 0; i < a->m.n; i++)
            if (a->m.at[i] != silent && member_is_here(a->m.at[i]))
                a->m.at[i]->heard_at = a->now;
        (void)membership_tick(&a->m, a->now);
    }
    assert_true(silent->heard_at == heard_at || silent->heard_at == 0);
}

/* Its host is asked, and answers. */
static inline void probe(struct machine *a, uint32_t id, bool refuses)
{
    a->now += HEARTBEAT;
    (void)membership_tick(&a->m, a->now);
    assert_true(a->m.probes_wanted);
    assert_int_equal(of(a, id)->probe, PROBE_WANTED);
    of(a, id)->probe = PROBE_ASKED;
    membership_probed(&a->m, of(a, id)->endpoint, refuses, a->now);
}

static inline int told_by(struct machine *a, uint32_t from, int reason,
                          bool attached)
{
    const struct verdict verdict = {.reason = reason,
                                    .subject = a->m.incarnation,
                                    .members = 3,
                                    .text = "tcp://other:1"};
    return membership_verdict(&a->m,
                              from == 0 ? NULL : membership_find(&a->m, from),
                              &verdict, attached, a->now);
}

#endif
