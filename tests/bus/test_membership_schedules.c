/* Three to six membership machines in one thread, over thousands of schedules
 * drawn from a seed: letters that are late or lost, connections that break and
 * of which one end learns late, cuts, pauses, deaths, farewells and new lives.
 * Whatever happened, once it is quiet all that live agree on who is ready, and
 * in which life.
 *
 * The network here is what a node makes of its sockets, and no more: each dials
 * each; what one shows goes up its link, what one publishes comes down those of
 * the others. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/covered.h"
#include "lockstep/log.h"
#include "lockstep/random.h"
#include "membership.h"
#include "test.h"

#define NODES     6
#define MS        LS_NS_PER_MS
#define STEP      (10 * MS)
#define HEARTBEAT (100 * MS)
#define SILENCE   (800 * MS)
#define ASK       (300 * MS)
#define REDIAL    (1000 * MS)
#define LETTERS   128 /* that wait in one direction of a connection */
#define ENDS      64
#define SHOWN     8
#define FORGOTTEN 256 /* ended lives that a node must never have as members */
#define FAULTS    14

enum kind { CHALLENGE, PRESENT, ABSENT, PROOF, BEAT, VERDICT, FAREWELL };

struct letter {
    int64_t due;
    enum kind kind;
    uint64_t life, number;
    struct verdict verdict; /* its text is left out */
    size_t n;
    struct {
        uint32_t id;
        uint64_t life;
        enum wire_member_state state;
        int reason;
    } list[NODES];
};

struct queue {
    struct letter at[LETTERS];
    size_t first, n;
    int64_t due; /* of the last */
};

/* From the node that dials to an address. */
struct link {
    bool open, closing, attached, withdrawn;
    bool connected, known, trusted; /* known: it may publish to this one */
    uint64_t number, connection;
    int64_t connect_at, asked_at, heard_at, redial;
    struct member *peer;
    struct queue up, down;
    uint64_t shown[SHOWN]; /* lives, over this connection */
    size_t n_shown;
};

/* What becomes known of a connection that broke, to who was dialled. */
struct ending {
    int64_t due; /* 0: none */
    size_t at;
    uint64_t process;
    struct wire_presence shown;
    uint64_t connection;
};

struct node {
    struct schedule *schedule;
    size_t index;
    bool alive, paused, leaving;
    uint64_t process, life, beats; /* its life changes when it rejoins */
    int64_t now, beat_at, said_at, dies_at;
    struct membership m;
    struct link links[NODES];
    int64_t probed_at[NODES];
    struct {
        uint32_t id;
        uint64_t life;
    } ended[FORGOTTEN];
    size_t n_ended;
};

struct schedule {
    uint64_t seed;
    struct ls_rng random;
    int64_t now;
    size_t n;
    struct node nodes[NODES];
    struct ending ends[ENDS];
    size_t n_ends;
    bool cut[NODES][NODES];
    uint64_t connections, processes; /* so far */
    int64_t delay;                   /* of a letter, at most */
    uint64_t loss;          /* of a hundred letters that are published */
    bool star_of_addresses; /* all are given the address of the first alone */
    size_t n_lost;          /* how often one was declared lost */
    char story[4096];
};

static uint64_t below(struct schedule *s, uint64_t bound)
{
    return ls_rng_below(&s->random, bound);
}

static void note(struct schedule *s, const char *what, size_t a, size_t b)
{
    const size_t used = strlen(s->story);
    (void)snprintf(s->story + used, sizeof s->story - used,
                   "  %6.2f s: %s %zu %zu\n", (double)s->now / 1e9, what, a + 1,
                   b + 1);
}

static uint64_t new_life(struct schedule *s)
{
    return ls_rng_next(&s->random) | 1;
}

/* ---- connections ------------------------------------------------------- */

static struct letter *put(struct schedule *s, struct queue *queue,
                          enum kind kind)
{
    if (queue->n == LETTERS)
        return NULL;
    struct letter *letter = &queue->at[(queue->first + queue->n++) % LETTERS];
    const int64_t due = s->now + (int64_t)below(s, (uint64_t)s->delay + 1);
    queue->due = due > queue->due ? due : queue->due;
    letter->due = queue->due;
    letter->kind = kind;
    letter->n = 0;
    return letter;
}

static bool take(struct schedule *s, struct queue *queue, struct letter *out)
{
    if (queue->n == 0 || queue->at[queue->first].due > s->now)
        return false;
    *out = queue->at[queue->first];
    queue->first = (queue->first + 1) % LETTERS;
    queue->n--;
    return true;
}

static struct wire_presence presence_of(const struct node *node, size_t to,
                                        uint64_t life)
{
    struct wire_presence p = {.link = node->links[to].number,
                              .job = "job",
                              .id = (uint32_t)node->index + 1,
                              .incarnation = life};
    (void)snprintf(p.endpoint, sizeof p.endpoint, "%zu", node->index + 1);
    return p;
}

static void show(struct node *node, size_t to, enum kind kind, uint64_t life)
{
    if (!node->links[to].connected)
        return; /* it is said anew with the next connection */
    struct letter *letter = put(node->schedule, &node->links[to].up, kind);
    assert_non_null(letter);
    letter->life = life;
}

/* Who was dialled learns it some time, maybe after the next one began. */
static void disconnect(struct node *node, size_t to, int64_t within)
{
    struct schedule *s = node->schedule;
    struct link *link = &node->links[to];
    for (size_t i = 0, at = 0; i < link->n_shown && at < ENDS; at++) {
        if (s->ends[at].due != 0)
            continue;
        s->ends[at] = (struct ending){
            .due = s->now + 1 + (int64_t)below(s, (uint64_t)within),
            .at = to,
            .process = s->nodes[to].process,
            .shown = presence_of(node, to, link->shown[i++]),
            .connection = link->connection};
        s->n_ends++;
    }
    link->connected = link->known = link->trusted = false;
    link->n_shown = 0;
    link->up.n = link->down.n = 0;
    link->connect_at = s->now + (int64_t)below(s, 100 * (uint64_t)MS);
}

static void connect(struct node *node, size_t to)
{
    struct schedule *s = node->schedule;
    struct link *link = &node->links[to];
    link->connect_at = s->now + 50 * MS;
    if (!s->nodes[to].alive || s->cut[node->index][to])
        return;
    link->connected = true;
    link->connection = ++s->connections;
    link->asked_at = s->now;
    (void)put(s, &link->up, CHALLENGE);
    if (!link->withdrawn)
        show(node, to, PRESENT, node->life);
}

static void open_link(struct node *node, size_t to)
{
    struct link *link = &node->links[to];
    const bool attached = link->attached;
    *link = (struct link){.open = true,
                          .attached = attached,
                          .connect_at = node->schedule->now,
                          .heard_at = node->schedule->now,
                          .redial = REDIAL};
    link->number = new_life(node->schedule);
}

static void close_link(struct node *node, size_t to)
{
    struct link *link = &node->links[to];
    if (link->peer != NULL)
        link->peer->linked = false;
    disconnect(node, to, 20 * MS);
    link->open = link->closing = false;
    link->peer = NULL;
}

static void link_present(struct node *node, size_t to)
{
    if (!node->links[to].withdrawn || node->leaving)
        return;
    node->links[to].withdrawn = false;
    show(node, to, PRESENT, node->life);
}

/* ---- what the machines ask for ----------------------------------------- */

static void publish(struct node *node, const struct letter *letter, size_t to)
{
    struct schedule *s = node->schedule;
    struct link *link = &s->nodes[to].links[node->index];
    if (!link->connected || !link->known || below(s, 100) < s->loss)
        return;
    struct letter *copy = put(s, &link->down, letter->kind);
    if (copy == NULL)
        return;
    const int64_t due = copy->due;
    *copy = *letter;
    copy->due = due;
}

static void on_tell(void *self, const struct verdict *verdict)
{
    struct node *node = self;
    publish(node,
            &(struct letter){
                .kind = VERDICT, .life = node->life, .verdict = *verdict},
            verdict->to - 1);
}

static bool on_dial(void *self, struct member *member, uint32_t id,
                    const char *endpoint)
{
    struct node *node = self;
    struct link *link = &node->links[id - 1];
    (void)endpoint;
    if (id == node->index + 1)
        return true;
    if (link->closing)
        close_link(node, id - 1);
    if (!link->open)
        open_link(node, id - 1);
    else if (member != NULL)
        link_present(node, id - 1);
    return true;
}

static void on_began(void *self, struct member *member)
{
    struct node *node = self;
    struct link *link = &node->links[member->id - 1];
    if (link->open && link->peer == member)
        link_present(node, member->id - 1);
}

static void fail_at(const struct node *node, const struct member *member,
                    const char *what)
{
    fail_msg("seed %" PRIu64 ": node %zu (%" PRIx64 ") has node %u as %d "
             "(%" PRIx64 "), which %s\n%s",
             node->schedule->seed, node->index + 1, node->life, member->id,
             member->state, member->incarnation, what, node->schedule->story);
}

static void remember_end(struct node *node, const struct member *member)
{
    if (node->m.renewing)
        return;
    node->ended[node->n_ended % FORGOTTEN].id = member->id;
    node->ended[node->n_ended++ % FORGOTTEN].life = member->incarnation;
}

static void check_not_ended(const struct node *node,
                            const struct member *member)
{
    for (size_t i = 0; i < node->n_ended && i < FORGOTTEN; i++)
        if (node->ended[i].id == member->id &&
            node->ended[i].life == member->incarnation)
            fail_at(node, member, "had ended there");
}

static void retire(struct node *node, const struct member *member)
{
    struct link *link = &node->links[member->id - 1];
    const bool left = member->state == LS_MEMBER_LEFT;
    if (link->peer != member || (!left && member->reason != LS_ELOST))
        return;
    link->closing = link->closing || !link->attached;
    if (!left || link->withdrawn)
        return;
    link->withdrawn = true;
    show(node, member->id - 1, ABSENT, node->life);
}

static void on_changed(void *self, struct member *member,
                       enum member_change change)
{
    struct node *node = self;
    if (change == MEMBER_BECAME_READY)
        check_not_ended(node, member);
    if (change != MEMBER_ENDED && change != MEMBER_FORGOTTEN)
        return;
    node->schedule->n_lost += member->state == LS_MEMBER_LOST ? 1 : 0;
    remember_end(node, member);
    if (!node->m.renewing)
        retire(node, member);
}

/* ---- lives ------------------------------------------------------------- */

static void free_member(void *self, struct member *member)
{
    (void)self, (void)member;
}

static void begin(struct schedule *s, size_t index)
{
    static const struct membership_ops ops = {.began = on_began,
                                              .changed = on_changed,
                                              .dial = on_dial,
                                              .tell = on_tell};
    struct node *node = &s->nodes[index];
    const struct membership_options options = {.id = (uint32_t)index + 1,
                                               .job = "job",
                                               .endpoint = "mine",
                                               .topology = LS_TOPOLOGY_MESH,
                                               .world_max = (uint32_t)s->n,
                                               .heartbeat_ns = HEARTBEAT,
                                               .silence_ns = SILENCE,
                                               .member_size =
                                                   sizeof(struct member)};
    *node = (struct node){.schedule = s,
                          .index = index,
                          .alive = true,
                          .now = s->now,
                          .process = ++s->processes,
                          .life = new_life(s)};
    membership_init(&node->m, &options, &ops, node);
    membership_begin(&node->m, node->life);
    node->m.formed = true;
    for (size_t to = 0; to < s->n; to++) {
        if (to == index || (s->star_of_addresses && to != 0))
            continue;
        node->links[to].attached = true;
        open_link(node, to);
    }
}

static void die(struct schedule *s, size_t index, int64_t within)
{
    struct node *node = &s->nodes[index];
    if (!node->alive)
        return;
    node->alive = false;
    for (size_t i = 0; i < s->n; i++) {
        if (node->links[i].connected)
            disconnect(node, i, within);
        if (s->nodes[i].alive && s->nodes[i].links[index].connected)
            disconnect(&s->nodes[i], index, within);
    }
    membership_fini(&node->m, free_member);
}

/* ---- what a node reads ------------------------------------------------- */

static struct speaker speaker_of(const struct node *from, size_t to)
{
    return (struct speaker){.spoken = true,
                            .proved = true,
                            .id = (uint32_t)from->index + 1,
                            .connection = from->links[to].connection};
}

static void read_absence(struct node *node, struct node *from, uint64_t life)
{
    struct link *link = &from->links[node->index];
    const struct speaker by = speaker_of(from, node->index);
    const struct wire_presence p = presence_of(from, node->index, life);
    size_t i = 0;
    while (i < link->n_shown && link->shown[i] != life)
        i++;
    if (i == link->n_shown)
        return;
    link->shown[i] = link->shown[--link->n_shown];
    (void)membership_absent(&node->m, &by, &p, node->now);
}

static void read_up(struct node *node, struct node *from,
                    const struct letter *letter)
{
    struct link *link = &from->links[node->index];
    const struct speaker by = speaker_of(from, node->index);
    const struct wire_presence p = presence_of(from, node->index, letter->life);
    switch (letter->kind) {
    case CHALLENGE: {
        link->known = true;
        struct letter *proof = put(node->schedule, &link->down, PROOF);
        if (proof != NULL)
            proof->life = node->life;
        break;
    }
    case PRESENT:
        assert_true(link->n_shown < SHOWN);
        link->shown[link->n_shown++] = letter->life;
        (void)membership_present(&node->m, &by, &p, node->now);
        break;
    default:
        read_absence(node, from, letter->life);
        break;
    }
}

static void read_proof(struct node *node, size_t of,
                       const struct letter *letter)
{
    struct link *link = &node->links[of];
    struct member *member = NULL;
    char endpoint[24];
    (void)snprintf(endpoint, sizeof endpoint, "%zu", of + 1);
    const struct answer answer = {.id = (uint32_t)of + 1,
                                  .incarnation = letter->life,
                                  .expected = true,
                                  .as = (uint32_t)of + 1,
                                  .endpoint = endpoint,
                                  .member = link->peer};
    const int status =
        membership_answers(&node->m, &answer, node->now, &member);
    if (status == LS_EEXIST) /* it may be the next, soon */
        link->asked_at = node->now - ASK + 50 * MS;
    if (status != LS_OK)
        return;
    link->trusted = true;
    link->heard_at = node->now;
    link->redial = REDIAL;
    link->peer = member;
    member->linked = true;
    if (!member_has_ended(member))
        link_present(node, of);
}

static void read_beat(struct node *node, struct member *from,
                      const struct letter *letter)
{
    bool listed_me = false;
    if (membership_heartbeat(from, letter->number) != LS_OK)
        return;
    for (size_t i = 0; i < letter->n; i++) {
        struct wire_member listed = {.id = letter->list[i].id,
                                     .incarnation = letter->list[i].life,
                                     .state = letter->list[i].state,
                                     .reason = letter->list[i].reason};
        (void)snprintf(listed.endpoint, sizeof listed.endpoint, "%u",
                       listed.id);
        listed_me = listed_me || (listed.id == node->index + 1 &&
                                  listed.incarnation == node->life);
        membership_listed(&node->m, from, &listed, node->now);
    }
    membership_list_ends(&node->m, from, listed_me, node->now);
}

static void read_control(struct node *node, struct link *link,
                         struct member *origin, const struct letter *letter)
{
    struct verdict verdict = letter->verdict;
    verdict.text = "";
    if (letter->kind == BEAT)
        read_beat(node, origin, letter);
    else if (letter->kind == FAREWELL)
        membership_farewell(&node->m, origin, LS_OK, node->now);
    else
        (void)membership_verdict(&node->m, link->peer, &verdict, link->attached,
                                 node->now);
}

/* As in bus.c: from one that is not a member only what may make it one. */
static void read_down(struct node *node, size_t of, const struct letter *letter)
{
    struct link *link = &node->links[of];
    struct member *origin = NULL;
    bool early;
    if (letter->kind == PROOF) {
        read_proof(node, of, letter);
        return;
    }
    if (!link->trusted || link->closing)
        return;
    const int status =
        membership_origin(&node->m, link->peer, (uint32_t)of + 1, letter->life,
                          node->now, &origin, &early);
    if (link->peer != NULL)
        link->peer->heard_at = node->now;
    if (status != LS_OK || link->peer == NULL)
        return;
    const bool ended = member_has_ended(origin);
    const bool lost = origin->state == LS_MEMBER_LOST;
    if (!ended || letter->kind == VERDICT || (letter->kind == BEAT && lost))
        read_control(node, link, origin, letter);
    if (lost && letter->kind != VERDICT)
        membership_remind(&node->m, origin, node->now);
}

static void read_all(struct schedule *s, struct node *node)
{
    struct letter letter;
    for (size_t i = 0; i < ENDS && s->n_ends != 0; i++) {
        struct ending *ending = &s->ends[i];
        const struct speaker by = {.id = ending->shown.id,
                                   .connection = ending->connection};
        if (ending->due == 0 || ending->due > s->now ||
            ending->at != node->index)
            continue;
        ending->due = 0;
        s->n_ends--;
        if (ending->process == node->process)
            (void)membership_absent(&node->m, &by, &ending->shown, node->now);
    }
    for (size_t k = 0, at = below(s, s->n); k < s->n; k++) {
        const size_t i = (at + k) % s->n;
        if (i == node->index || s->cut[node->index][i])
            continue;
        while (s->nodes[i].alive &&
               take(s, &s->nodes[i].links[node->index].up, &letter))
            read_up(node, &s->nodes[i], &letter);
        while (take(s, &node->links[i].down, &letter))
            read_down(node, i, &letter);
    }
}

/* ---- what a node does of itself ---------------------------------------- */

static void announce(struct node *node)
{
    struct letter beat = {.kind = BEAT, .life = node->life};
    node->m.announce = false;
    node->said_at = node->now;
    node->beat_at = node->now + HEARTBEAT;
    beat.number = ++node->beats;
    for (size_t i = 0; i < node->m.n; i++) {
        const struct member *member = node->m.at[i];
        if (!membership_lists(&node->m, member, node->now))
            continue;
        beat.list[beat.n].id = member->id;
        beat.list[beat.n].life = member->incarnation;
        beat.list[beat.n].reason = member->reason;
        beat.list[beat.n++].state = membership_lists_as(member);
    }
    for (size_t to = 0; to < node->schedule->n; to++)
        publish(node, &beat, to);
    membership_announced(&node->m, node->now);
    for (size_t to = 0; node->leaving && to < node->schedule->n; to++)
        publish(node, &(struct letter){.kind = FAREWELL, .life = node->life},
                to);
}

static void rejoin(struct node *node)
{
    struct schedule *s = node->schedule;
    if (!node->m.rejoins || node->leaving)
        return;
    const uint64_t life = new_life(s);
    for (size_t to = 0; to < s->n; to++) {
        if (!node->links[to].open || node->links[to].withdrawn)
            continue;
        show(node, to, PRESENT, life);
        show(node, to, ABSENT, node->life);
    }
    /* What ends of connections show is of the life that was shown: disconnect()
     * keeps it. */
    node->life = life;
    node->n_ended = 0;
    note(s, "rejoins:", node->index, node->index);
    membership_renew(&node->m, life, node->now);
}

static void probe(struct node *node)
{
    struct schedule *s = node->schedule;
    node->m.probes_wanted = false;
    for (size_t i = 0; i < node->m.n; i++) {
        struct member *member = node->m.at[i];
        if (member->probe != PROBE_WANTED)
            continue;
        member->probe = PROBE_ASKED;
        node->probed_at[member->id - 1] =
            s->now + 1 + (int64_t)below(s, (uint64_t)s->delay + 1);
    }
}

static void read_probes(struct node *node)
{
    struct schedule *s = node->schedule;
    char endpoint[24];
    for (size_t i = 0; i < s->n; i++) {
        if (node->probed_at[i] == 0 || node->probed_at[i] > s->now)
            continue;
        node->probed_at[i] = 0;
        (void)snprintf(endpoint, sizeof endpoint, "%zu", i + 1);
        membership_probed(&node->m, endpoint,
                          !s->nodes[i].alive && !s->cut[node->index][i],
                          node->now);
    }
}

static void pursue(struct node *node, size_t to)
{
    struct link *link = &node->links[to];
    const int64_t heard = link->peer == NULL ? 0 : link->peer->heard_at;
    const int64_t since = heard > link->heard_at ? heard : link->heard_at;
    const bool works =
        link->peer != NULL && link->peer->state == LS_MEMBER_READY;
    if (link->closing) {
        close_link(node, to);
        return;
    }
    if (!link->connected && link->connect_at <= node->now)
        connect(node, to);
    if (!works && since + link->redial <= node->now) {
        link->redial =
            2 * link->redial < 4 * REDIAL ? 2 * link->redial : 4 * REDIAL;
        disconnect(node, to, 20 * MS);
        link->heard_at = node->now;
    } else if (link->connected && link->asked_at + ASK <= node->now &&
               since + 2 * HEARTBEAT <= node->now) {
        link->asked_at = node->now;
        (void)put(node->schedule, &link->up, CHALLENGE);
    }
}

static void check_accounts(const struct node *node)
{
    for (size_t i = 0; i < node->m.n; i++) {
        const struct member *member = node->m.at[i];
        unsigned n = 0;
        for (size_t j = 0; j < MEMBERSHIP_SHOWINGS; j++)
            n += member->showings[j].n;
        if (n != member->n_present)
            fail_at(node, member, "is present another number of times");
    }
}

static bool nobody_is_here(const struct node *node)
{
    for (size_t i = 0; i < node->m.n; i++)
        if (node->m.at[i]->n_present != 0)
            return false;
    return true;
}

/* As the bus thread: messages first, with the time of the last round. */
static void run_node(struct schedule *s, struct node *node)
{
    read_all(s, node);
    read_probes(node);
    node->now = s->now;
    (void)membership_tick(&node->m, node->now);
    rejoin(node);
    probe(node);
    for (size_t to = 0; to < s->n && !node->leaving; to++)
        if (node->links[to].open)
            pursue(node, to);
    if (node->beat_at <= node->now ||
        (node->m.announce && node->said_at + STEP <= node->now))
        announce(node);
    check_accounts(node);
    if (node->leaving && (nobody_is_here(node) || node->dies_at <= node->now))
        die(s, node->index, 20 * MS);
}

static void run(struct schedule *s, int64_t ns)
{
    for (const int64_t until = s->now + ns; s->now < until;) {
        s->now += STEP;
        const size_t first = (size_t)below(s, s->n);
        for (size_t i = 0; i < s->n; i++) {
            struct node *node = &s->nodes[(first + i) % s->n];
            if (node->alive && !node->paused && below(s, 8) != 0)
                run_node(s, node);
        }
    }
}

/* ---- faults ------------------------------------------------------------ */

static void leave(struct schedule *s, size_t index)
{
    struct node *node = &s->nodes[index];
    if (!node->alive || node->paused || node->leaving)
        return;
    note(s, "leaves:", index, index);
    node->leaving = node->m.leaving = true;
    node->dies_at = s->now + SILENCE;
    node->m.announce = true;
}

static void heal(struct schedule *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->nodes[i].paused = false;
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < s->n; j++)
            s->cut[i][j] = false;
}

static void cut(struct schedule *s, size_t a, size_t b)
{
    s->cut[a][b] = s->cut[b][a] = true;
}

static void reset(struct schedule *s, size_t a, size_t b)
{
    if (s->nodes[a].alive && s->nodes[a].links[b].connected)
        disconnect(&s->nodes[a], b, SILENCE);
}

static void fault(struct schedule *s)
{
    const size_t a = (size_t)below(s, s->n);
    const size_t b = (a + 1 + (size_t)below(s, s->n - 1)) % s->n;
    switch (below(s, 10)) {
    case 0:
        note(s, "cut", a, b);
        cut(s, a, b);
        break;
    case 1:
        note(s, "cut off", a, a);
        for (size_t i = 0; i < s->n; i++)
            cut(s, a, i);
        break;
    case 2:
        note(s, "two parts to", a, a);
        for (size_t i = 0; i <= a; i++)
            for (size_t j = a + 1; j < s->n; j++)
                cut(s, i, j);
        break;
    case 3:
        note(s, "reset", a, b);
        reset(s, a, b);
        reset(s, b, a);
        break;
    case 4:
        note(s, "pause", a, a);
        s->nodes[a].paused = true;
        break;
    case 5:
    case 6:
        note(s, "heal", a, a);
        heal(s);
        break;
    case 7:
        note(s, "dies:", a, a);
        die(s, a, 2 * SILENCE);
        break;
    case 8:
        leave(s, a);
        break;
    default:
        if (!s->nodes[a].alive) {
            note(s, "begins:", a, a);
            begin(s, a);
        }
        break;
    }
}

/* ---- what must hold ---------------------------------------------------- */

static void check_node(const struct schedule *s, const struct node *node)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct member *member =
            membership_find(&node->m, (uint32_t)i + 1);
        const struct node *other = &s->nodes[i];
        const bool ready = member != NULL && member->state == LS_MEMBER_READY;
        if (i == node->index)
            continue;
        if (other->alive && !ready)
            fail_msg("seed %" PRIu64 ": node %zu has not node %zu\n%s", s->seed,
                     node->index + 1, i + 1, s->story);
        if (ready && !other->alive)
            fail_at(node, member, "is dead");
        if (ready && other->life != member->incarnation)
            fail_at(node, member, "is another by now");
        if (ready && (member->n_present != 1 || member->n_rival != 0))
            fail_at(node, member, "is not present once");
        if (ready && !member->ready_there)
            fail_at(node, member, "does not say the same");
    }
}

static void check_agree(const struct schedule *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->nodes[i].alive)
            check_node(s, &s->nodes[i]);
}

static struct schedule *begin_all(uint64_t seed)
{
    struct schedule *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->seed = seed;
    ls_rng_seed(&s->random, seed, 0);
    s->n = 3 + (size_t)below(s, NODES - 2);
    s->now = LS_NS_PER_S;
    s->delay = seed % 3 == 0 ? 200 * MS : seed % 3 == 1 ? 40 * MS : 0;
    s->loss = seed % 2 == 0 ? 10 : 0;
    s->star_of_addresses = seed % 5 == 0;
    for (size_t i = 0; i < s->n; i++)
        begin(s, i);
    return s;
}

static void end_all(struct schedule *s)
{
    for (size_t i = 0; i < s->n; i++)
        die(s, i, 1);
    free(s);
}

static void be_quiet(struct schedule *s)
{
    note(s, "quiet", 0, 0);
    heal(s);
    s->delay = MS;
    s->loss = 0;
    run(s, SILENCE); /* who leaves has left */
    if (s->star_of_addresses && !s->nodes[0].alive)
        begin(s, 0);
    run(s, 12 * SILENCE);
}

static void storm(uint64_t seed)
{
    struct schedule *s = begin_all(seed);
    run(s, (int64_t)below(s, 2 * (uint64_t)LS_NS_PER_S));
    for (size_t i = 0; i < FAULTS; i++) {
        fault(s);
        run(s, (int64_t)below(s, 2 * (uint64_t)SILENCE));
    }
    be_quiet(s);
    check_agree(s);
    end_all(s);
}

/* All live, and a connection is soon made again: nobody is lost. */
static void calm(uint64_t seed)
{
    struct schedule *s = begin_all(seed);
    s->delay = (int64_t)below(s, SILENCE / 20);
    s->loss = 0;
    run(s, 4 * SILENCE);
    for (size_t i = 0; i < FAULTS; i++) {
        reset(s, (size_t)below(s, s->n), (size_t)below(s, s->n));
        run(s, (int64_t)below(s, SILENCE));
    }
    if (s->n_lost != 0)
        fail_msg("seed %" PRIu64 ": %zu are lost", seed, s->n_lost);
    be_quiet(s);
    check_agree(s);
    end_all(s);
}

static void sweep(uint64_t n, void (*body)(uint64_t seed))
{
    const struct seeds seeds = seeds_of(n);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        body(seed);
}

TEST(after_any_storm_all_that_live_agree)
{
    sweep(800, storm);
}

TEST(broken_connections_alone_make_nobody_lost)
{
    sweep(100, calm);
}

/* After those above. No world here is full, or has a hub. */
TEST(the_schedules_took_every_transition)
{
    static const enum ls_transition elsewhere[] = {LS_TAKES_MEMBER_BARRED,
                                                   LS_TAKES_MEMBER_REMINDED,
                                                   LS_TAKES_MEMBER_ACCUSES};
    covered_check("member", elsewhere, sizeof elsewhere / sizeof *elsewhere);
}

int main(void)
{
    covered_begin();
    return tests_run();
}
