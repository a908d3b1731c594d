#include "group_story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/network.h"
#include "lockstep/simulation.h"
#include "test.h"

enum { WAIT_MS = 60000, SHORT_MS = 400, RECORD_NONE = 1 };
/* Most of what ranks bring has room there, and not all. */
#define ALLOC_BYTES ((size_t)1 << 20)

/* How an operation ended in one life. */
struct record {
    int status; /* RECORD_NONE: it was not called */
    int64_t ended_at;
    uint32_t named; /* LS_ELOST: the node; UINT32_MAX: none */
};

struct life {
    struct story *story;
    uint32_t number; /* of the node, from 0 */
    bool returned;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    ls_group *group;
    int64_t killed_at; /* 0: never */
    struct record records[STORY_GENERATIONS][STORY_STEPS];
    bool has_formed;
    bool ended_well;
    uint64_t shared, lent, dropped;
    char text[LS_ERROR_TEXT_MAX]; /* of what ended it otherwise */
};

struct story {
    const struct story_kind *kind;
    uint64_t seed;
    ls_simulation *simulation;
    ls_network *network;
    uint32_t n;
    struct life lives[STORY_LIVES_MAX];
    uint32_t n_lives;
    char wrong[LS_ERROR_TEXT_MAX];
};

static char wrong_text[LS_ERROR_TEXT_MAX + 64];

static void say_wrong(struct story *story, const char *format, ...)
    LS_PRINTF(2, 3);
static void say_wrong(struct story *story, const char *format, ...)
{
    va_list arguments;
    if (story->wrong[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(story->wrong, sizeof story->wrong, format, arguments);
    va_end(arguments);
}

static uint64_t draw(struct story *story, uint64_t n)
{
    return ls_rng_below(ls_simulation_random(story->simulation), n);
}

/* Numbers of a story that do not depend on when they are asked for. */
static uint64_t fixed(const struct story *story, uint64_t what, uint64_t n)
{
    uint64_t x = story->seed * UINT64_C(0x9e3779b97f4a7c15) +
                 what * UINT64_C(0xd1b54a32d192ed03);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % n;
}

static uint32_t id_of(uint32_t number)
{
    static const uint32_t ids[] = {12, 7, 4294967295u, 1000000, 65536, 3, 99};
    if (number >= sizeof ids / sizeof ids[0])
        return 200 + 11 * number;
    return ids[number];
}

/* --- what a rank does --------------------------------------------------- */

struct act {
    struct life *life;
    uint32_t step;
    uint32_t rank, n;
    uint64_t generation;
};

/* What a rank brings to a step, at place i; small, so that sums are exact. */
static int64_t value_of(const struct act *act, uint32_t rank, size_t i)
{
    return (int64_t)(act->step * 100 + rank * 10 + i % 7);
}

static int64_t sum_of(const struct act *act, size_t i)
{
    int64_t sum = 0;
    for (uint32_t rank = 0; rank < act->n; rank++)
        sum += value_of(act, rank, i);
    return sum;
}

/* From none to some hundred KiB. */
static size_t length_of(const struct act *act)
{
    static const size_t lengths[] = {0, 1, 3, 40, 700, 6000, 40000};
    return lengths[fixed(act->life->story, 10 + act->step, 7)];
}

static void check(const struct act *act, bool right, const char *what)
{
    if (!right && !ls_host_is_dead(act->life->host))
        say_wrong(act->life->story,
                  "generation %" PRIu64 ", step %" PRIu32 ", rank %" PRIu32
                  " of %" PRIu32 ": a wrong result of %s",
                  act->generation, act->step, act->rank, act->n, what);
}

/* What a host writes after it was killed would have been too late. */
static bool is_alive(const struct act *act)
{
    return !ls_host_is_dead(act->life->host);
}

/* Whether this rank's numbers lie in memory of the group: in a step those of
 * all ranks, of some, or of none. */
static bool allocates(const struct act *act)
{
    const uint64_t which = fixed(act->life->story, 250 + act->step, 4);
    return which < 2 || (which == 2 && act->rank % 2 == 0);
}

/* Zeroed. */
static int64_t *get(const struct act *act, size_t n)
{
    void *memory = NULL;
    if (!allocates(act))
        return calloc(n + 1, sizeof(int64_t));
    assert_ok(ls_group_alloc(act->life->group, &memory, n * sizeof(int64_t)));
    return memory;
}

static void drop(const struct act *act, int64_t *numbers)
{
    if (!allocates(act))
        free(numbers);
    else
        assert_ok(ls_group_free(act->life->group, numbers));
}

static int do_all_reduce(const struct act *act, int timeout_ms,
                         const char *name)
{
    const size_t n = length_of(act);
    int64_t *numbers = get(act, n);
    for (size_t i = 0; i < n && is_alive(act); i++)
        numbers[i] = value_of(act, act->rank, i);
    const struct ls_group_operation operation = {.kind = LS_GROUP_ALL_REDUCE,
                                                 .name = name,
                                                 .count = n,
                                                 .type = LS_GROUP_I64,
                                                 .in = numbers,
                                                 .out = numbers,
                                                 .timeout_ms = timeout_ms};
    const int status = ls_group_do(act->life->group, &operation);
    bool right = true;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        right = right && numbers[i] == sum_of(act, i);
    check(act, right, "all_reduce");
    drop(act, numbers);
    return status;
}

static int do_reduce_scatter(const struct act *act)
{
    const size_t n = length_of(act) / 4;
    int64_t *numbers = get(act, n * act->n);
    int64_t *share = get(act, n);
    for (size_t i = 0; i < n * act->n && is_alive(act); i++)
        numbers[i] = value_of(act, act->rank, i);
    const int status =
        ls_group_reduce_scatter(act->life->group, numbers, n, LS_GROUP_I64,
                                LS_GROUP_SUM, share, WAIT_MS);
    bool right = true;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        right = right && share[i] == sum_of(act, act->rank * n + i);
    check(act, right, "reduce_scatter");
    drop(act, share);
    drop(act, numbers);
    return status;
}

static int do_broadcast(const struct act *act)
{
    const size_t n = length_of(act);
    const uint32_t root =
        (uint32_t)fixed(act->life->story, 50 + act->step, act->n);
    int64_t *numbers = get(act, n);
    for (size_t i = 0; i < n && act->rank == root && is_alive(act); i++)
        numbers[i] = value_of(act, root, i);
    const int status = ls_group_broadcast(act->life->group, numbers,
                                          n * sizeof *numbers, root, WAIT_MS);
    bool right = true;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        right = right && numbers[i] == value_of(act, root, i);
    check(act, right, "broadcast");
    drop(act, numbers);
    return status;
}

static bool are_all(const struct act *act, const int64_t *all, size_t n)
{
    bool right = true;
    for (uint32_t rank = 0; rank < act->n; rank++)
        for (size_t i = 0; i < n; i++)
            right = right && all[rank * n + i] == value_of(act, rank, i);
    return right;
}

static int do_gather(const struct act *act, bool to_all)
{
    const size_t n = length_of(act) / 4;
    const uint32_t root =
        (uint32_t)fixed(act->life->story, 90 + act->step, act->n);
    int64_t *numbers = get(act, n);
    int64_t *all = get(act, n * act->n);
    for (size_t i = 0; i < n && is_alive(act); i++)
        numbers[i] = value_of(act, act->rank, i);
    const int status =
        to_all ? ls_group_all_gather(act->life->group, numbers,
                                     n * sizeof *numbers, all, WAIT_MS)
               : ls_group_gather(act->life->group, numbers, n * sizeof *numbers,
                                 all, root, WAIT_MS);
    check(act,
          status != LS_OK || (!to_all && act->rank != root) ||
              are_all(act, all, n),
          "gather");
    drop(act, all);
    drop(act, numbers);
    return status;
}

static int do_scatter(const struct act *act)
{
    const size_t n = length_of(act) / 4;
    int64_t *all = get(act, n * act->n);
    int64_t *own = get(act, n);
    for (uint32_t rank = 0; rank < act->n && act->rank == act->n - 1; rank++)
        for (size_t i = 0; i < n && is_alive(act); i++)
            all[rank * n + i] = value_of(act, rank, i);
    const int status = ls_group_scatter(act->life->group, all, n * sizeof *all,
                                        own, act->n - 1, WAIT_MS);
    bool right = true;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        right = right && own[i] == value_of(act, act->rank, i);
    check(act, right, "scatter");
    drop(act, own);
    drop(act, all);
    return status;
}

/* Each brings another size. */
static int do_any(const struct act *act)
{
    const size_t n = (length_of(act) / 8 + act->rank) * (act->rank % 3);
    struct ls_group_parts parts;
    int64_t *numbers = get(act, n);
    for (size_t i = 0; i < n && is_alive(act); i++)
        numbers[i] = value_of(act, act->rank, i);
    const struct ls_group_operation operation = {.kind = LS_GROUP_ALL_GATHER,
                                                 .name = "any",
                                                 .count = n * sizeof *numbers,
                                                 .in = numbers,
                                                 .parts = &parts};
    const int status = ls_group_do(act->life->group, &operation);
    bool right = status != LS_OK || parts.n == act->n;
    for (uint32_t rank = 0; rank < act->n && status == LS_OK && right; rank++) {
        const size_t theirs = (length_of(act) / 8 + rank) * (rank % 3);
        const int64_t *data = parts.items[rank].data;
        right = parts.items[rank].size == theirs * sizeof *data;
        for (size_t i = 0; i < theirs && right; i++)
            right = data[i] == value_of(act, rank, i);
    }
    check(act, right, "all_gather of any sizes");
    ls_group_parts_free(&parts);
    drop(act, numbers);
    return status;
}

/* Three at once, each longer than the one before, of which the last one's end
 * is that of the step. */
static int do_several(const struct act *act)
{
    ls_collective *started[3] = {NULL};
    int64_t *numbers[3];
    const size_t n = length_of(act) / 2;
    int status = LS_OK;
    for (int k = 0; k < 3; k++) {
        numbers[k] = get(act, n + (size_t)k);
        for (size_t i = 0; i < n + (size_t)k && is_alive(act); i++)
            numbers[k][i] = value_of(act, act->rank, i) + k;
        const struct ls_group_operation operation = {.kind =
                                                         LS_GROUP_ALL_REDUCE,
                                                     .name = "several",
                                                     .count = n + (size_t)k,
                                                     .type = LS_GROUP_I64,
                                                     .in = numbers[k],
                                                     .out = numbers[k]};
        if (status == LS_OK)
            status = ls_group_start(&started[k], act->life->group, &operation);
    }
    for (int k = 0; k < 3; k++) {
        if (started[k] == NULL)
            continue;
        status = ls_collective_wait(started[k], LS_WAIT_DEFAULT);
        bool right = true;
        for (size_t i = 0; i < n + (size_t)k && status == LS_OK; i++)
            right =
                right && numbers[k][i] == sum_of(act, i) + (int64_t)act->n * k;
        check(act, right, "one of several");
    }
    for (int k = 0; k < 3; k++) {
        ls_collective_destroy(&started[k]);
        drop(act, numbers[k]);
    }
    return status;
}

/* Around a ring, then all meet: a pair that fails says so to two only. */
static int do_pairs(const struct act *act)
{
    const uint32_t next = (act->rank + 1) % act->n;
    const uint32_t before = (act->rank + act->n - 1) % act->n;
    int64_t brings = value_of(act, act->rank, 0), gets = -1;
    ls_collective *sent = NULL;
    const struct ls_group_operation send = {.kind = LS_GROUP_SEND,
                                            .root = next,
                                            .count = sizeof brings,
                                            .in = &brings};
    if (act->n > 1) {
        int status = ls_group_start(&sent, act->life->group, &send);
        if (status == LS_OK)
            status = ls_group_receive(act->life->group, &gets, sizeof gets,
                                      before, WAIT_MS);
        check(act, status != LS_OK || gets == value_of(act, before, 0),
              "receive");
        ls_collective_destroy(&sent);
    }
    return ls_group_barrier(act->life->group, WAIT_MS);
}

/* One rank calls something else, or comes when the others' time is up. */
static int do_quarrel(const struct act *act)
{
    const uint32_t odd =
        (uint32_t)fixed(act->life->story, 130 + act->step, act->n);
    const bool late = fixed(act->life->story, 170 + act->step, 2) == 0;
    ls_runtime *runtime = ls_host_runtime(act->life->host);
    if (act->n == 1)
        return ls_group_barrier(act->life->group, WAIT_MS);
    if (act->rank != odd)
        return do_all_reduce(act, late ? SHORT_MS : 0, "quarrel");
    if (!late)
        return ls_group_barrier(act->life->group, WAIT_MS);
    ls_rest_until(runtime, ls_now(runtime) + 3 * SHORT_MS * LS_NS_PER_MS);
    return do_all_reduce(act, SHORT_MS, "quarrel");
}

static uint64_t kind_of(const struct story *story, uint32_t step)
{
    return fixed(story, step, story->kind->quarrels ? 12 : 9);
}

static bool is_quarrel(const struct story *story, uint32_t step)
{
    return kind_of(story, step) > 8;
}

static int do_step(const struct act *act)
{
    const struct story *story = act->life->story;
    switch (kind_of(story, act->step)) {
    case 0:
        return ls_group_barrier(act->life->group, WAIT_MS);
    case 1:
        return do_broadcast(act);
    case 2:
        return do_gather(act, true);
    case 3:
        return do_all_reduce(act, 0, "plain");
    case 4:
        return do_reduce_scatter(act);
    case 5:
        return do_gather(act, false);
    case 6:
        return do_scatter(act);
    case 7:
        return do_any(act);
    case 8:
        return fixed(story, 200 + act->step, 2) == 0 ? do_several(act)
                                                     : do_pairs(act);
    default:
        return do_quarrel(act);
    }
}

/* --- a life ------------------------------------------------------------- */

static uint32_t named_node(const char *text)
{
    const char *at = strstr(text, ": node ");
    return at == NULL ? UINT32_MAX : (uint32_t)strtoul(at + 7, NULL, 10);
}

static void note(struct act *act, int status)
{
    struct life *life = act->life;
    if (act->generation >= STORY_GENERATIONS)
        return;
    struct record *record = &life->records[act->generation][act->step];
    /* By a link that went silent: to the others it has died. */
    if (status == LS_ELOST && life->killed_at == 0 &&
        strstr(ls_error_text(), "have declared this node lost") != NULL)
        life->killed_at = ls_simulation_now(life->story->simulation);
    record->status = status;
    record->ended_at = ls_simulation_now(life->story->simulation);
    record->named =
        status == LS_ELOST ? named_node(ls_error_text()) : UINT32_MAX;
}

/* All agree on the step to go on with: who has come back knows of none. */
static int agree(struct life *life, uint32_t *step)
{
    int64_t most = *step;
    const int status = ls_group_all_reduce(life->group, &most, 1, LS_GROUP_I64,
                                           LS_GROUP_MAX, WAIT_MS);
    if (status == LS_OK)
        *step = (uint32_t)most;
    return status;
}

/* Form, go through the steps, and form again whenever somebody is lost. */
static int live(struct life *life)
{
    uint32_t step = 0;
    while (step < STORY_STEPS) {
        int status =
            ls_group_form(life->group, life->returned ? 10 * WAIT_MS : WAIT_MS);
        if (status != LS_OK)
            return status;
        life->has_formed = true;
        status = agree(life, &step);
        while (step < STORY_STEPS && status == LS_OK) {
            struct act act = {.life = life,
                              .step = step,
                              .rank = ls_group_rank(life->group),
                              .n = ls_group_size(life->group),
                              .generation = ls_group_generation(life->group)};
            status = do_step(&act);
            note(&act, status);
            if (status == LS_OK || status == LS_EMISMATCH ||
                status == LS_ETIMEDOUT) {
                status = LS_OK;
                step++;
            }
        }
        if (status != LS_OK && status != LS_ELOST)
            return status;
    }
    /* Nobody goes before all have ended the last one. */
    const int status = ls_group_barrier(life->group, WAIT_MS);
    return status == LS_ELOST ? LS_OK : status;
}

static int begin(struct life *life)
{
    struct story *story = life->story;
    const struct ls_group_options options = {
        .on_loss = LS_ON_LOSS_GO_ON,
        /* Those who come back could meet apart from the rest. */
        .expected = story->kind->returns ? story->n / 2 + 1 : 0,
        .grace_ms = story->kind->returns ? 3000 : 0,
        .exit_ready = story->kind->exit_ready,
        .room = story->kind->shares ? LS_GROUP_ROOM_AUTO : LS_GROUP_ROOM_NEVER,
        .alloc_bytes = ALLOC_BYTES};
    struct ls_node_options node_options;
    const char *attach[STORY_NODES_MAX];
    char places[STORY_NODES_MAX][40];
    const bool star = fixed(story, 300, 3) == 0 && !story->kind->kills;
    for (uint32_t i = 0; i < story->n; i++) {
        snprintf(places[i], sizeof places[i], "tcp://127.0.0.1:%u", 21500 + i);
        attach[i] = places[i];
    }
    ls_node_options_init(&node_options);
    node_options.id = id_of(life->number);
    node_options.bind = places[life->number];
    node_options.attach = attach;
    node_options.n_attach = star ? (life->number == 0 ? 0 : 1) : story->n;
    node_options.topology = star ? LS_TOPOLOGY_STAR : LS_TOPOLOGY_MESH;
    node_options.world_size = life->returned ? 2 : story->n;
    node_options.world_max = story->n;
    node_options.start_timeout_ms = WAIT_MS;
    node_options.runtime = ls_host_runtime(life->host);
    int status = ls_node_create(&life->node, &node_options);
    if (status == LS_OK)
        status = ls_group_create(&life->group, life->node, &options);
    return status == LS_OK ? ls_node_start(life->node) : status;
}

static void life_main(void *arg)
{
    struct life *life = arg;
    int status = begin(life);
    if (status == LS_OK)
        status = live(life);
    life->ended_well = status == LS_OK;
    if (status != LS_OK)
        snprintf(life->text, sizeof life->text, "%s", ls_error_text());
    if (life->group != NULL) {
        struct ls_group_stats stats;
        ls_group_stats(life->group, &stats);
        life->shared = stats.shared;
        life->lent = stats.lent;
        life->dropped = stats.dropped;
    }
    ls_group_destroy(&life->group);
    ls_node_stop(life->node, LS_OK);
    ls_node_destroy(&life->node);
}

static void spawn(struct story *story, uint32_t number, bool returned)
{
    struct life *life = &story->lives[story->n_lives++];
    char name[16];
    life->story = story;
    life->number = number;
    life->returned = returned;
    for (size_t g = 0; g < STORY_GENERATIONS; g++)
        for (size_t s = 0; s < STORY_STEPS; s++)
            life->records[g][s].status = RECORD_NONE;
    snprintf(name, sizeof name, "node%u", (unsigned)id_of(number) % 1000);
    assert_ok(ls_host_create(&life->host, story->simulation, name));
    assert_ok(ls_network_join(story->network, life->host));
    assert_ok(ls_thread_spawn(ls_host_runtime(life->host), &life->thread,
                              "main", life_main, life));
}

/* --- what goes wrong ---------------------------------------------------- */

static void kill_one(struct story *story)
{
    const uint32_t number = (uint32_t)draw(story, story->n);
    struct life *life = &story->lives[number];
    if (life->killed_at != 0)
        return;
    life->killed_at = ls_simulation_now(story->simulation);
    ls_network_kill(story->network, life->host);
}

static void bring_back(struct story *story)
{
    for (uint32_t i = 0; i < story->n; i++) {
        bool back = story->lives[i].killed_at == 0;
        for (uint32_t j = story->n; j < story->n_lives; j++)
            back = back || story->lives[j].number == i;
        if (!back && draw(story, 2) == 0)
            spawn(story, i, true);
    }
}

static void trouble(struct story *story)
{
    const ls_host *a = story->lives[draw(story, story->n)].host;
    const ls_host *b = story->lives[draw(story, story->n)].host;
    if (a != b && draw(story, 3) == 0)
        ls_network_reset(story->network, a, b);
}

static bool have_all_formed(const struct story *story)
{
    for (uint32_t i = 0; i < story->n; i++)
        if (!story->lives[i].has_formed)
            return false;
    return true;
}

static void disturb(struct story *story)
{
    ls_runtime *runtime = ls_simulation_runtime(story->simulation);
    while (!have_all_formed(story))
        ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_MS / 4);
    /* Through memory all of it is over within a few milliseconds. */
    const bool hurries = story->kind->shares && story->kind->returns;
    const int64_t beat = hurries ? LS_NS_PER_MS / 20 : LS_NS_PER_MS;
    uint32_t kills = story->kind->kills ? (uint32_t)draw(story, 3) : 0;
    const uint32_t most =
        story->kind->returns ? (story->n - 1) / 2 : story->n - 1;
    if (kills > most)
        kills = most;
    for (int i = 0; i < 12; i++) {
        ls_rest_until(runtime,
                      ls_now(runtime) + (int64_t)draw(story, 20) * beat);
        trouble(story);
        if (kills > 0 && draw(story, 4) == 0) {
            kill_one(story);
            kills--;
        }
        if (story->kind->returns)
            bring_back(story);
    }
}

static void story_main(void *arg)
{
    struct story *story = arg;
    for (uint32_t i = 0; i < story->n; i++)
        spawn(story, i, false);
    disturb(story);
    for (uint32_t i = 0; i < story->n_lives; i++)
        assert_ok(ls_thread_join(&story->lives[i].thread, LS_FOREVER));
}

/* --- what must be so ---------------------------------------------------- */

static uint32_t n_killed(const struct story *story)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < story->n; i++)
        n += story->lives[i].killed_at != 0 ? 1 : 0;
    return n;
}

static bool is_killed(const struct story *story, uint32_t id)
{
    for (uint32_t i = 0; i < story->n; i++)
        if (id_of(i) == id && story->lives[i].killed_at != 0)
            return true;
    return false;
}

/* What a life has seen counts if it was alive. */
static const struct record *record_of(const struct life *life, uint64_t g,
                                      uint32_t step)
{
    const struct record *record = &life->records[g][step];
    if (record->status == RECORD_NONE ||
        (life->killed_at != 0 && record->ended_at >= life->killed_at))
        return NULL;
    return record;
}

static void count(struct story_tally *tally, int status)
{
    tally->well += status == LS_OK ? 1 : 0;
    tally->lost += status == LS_ELOST ? 1 : 0;
    tally->mismatched += status == LS_EMISMATCH ? 1 : 0;
    tally->late += status == LS_ETIMEDOUT ? 1 : 0;
}

/* Of a loss and a deadline, or a quarrel, at the same time each may hear of the
 * other first (docs/barrier.md); it fails for all still. */
static bool are_two_causes(const struct story *story, uint32_t step,
                           const struct record *one, const struct record *other)
{
    return is_quarrel(story, step) && n_killed(story) > 0 &&
           one->status != LS_OK && other->status != LS_OK;
}

static void compare(struct story *story, uint64_t g, uint32_t step,
                    struct story_tally *tally)
{
    const struct record *first = NULL;
    for (uint32_t i = 0; i < story->n_lives; i++) {
        const struct life *life = &story->lives[i];
        const struct record *record = record_of(life, g, step);
        if (record == NULL)
            continue;
        if (first == NULL)
            count(tally, record->status);
        if (first != NULL && first->status != record->status &&
            !are_two_causes(story, step, first, record))
            say_wrong(story,
                      "generation %" PRIu64 ", step %" PRIu32
                      ": one has %s, node %" PRIu32 " has %s",
                      g, step, ls_status_name(first->status),
                      id_of(life->number), ls_status_name(record->status));
        if (record->status == LS_ELOST &&
            (!is_killed(story, record->named) ||
             (n_killed(story) == 1 && first != NULL &&
              first->status == LS_ELOST && first->named != record->named)))
            say_wrong(story,
                      "generation %" PRIu64 ", step %" PRIu32 ": node %" PRIu32
                      " names node %" PRIu32,
                      g, step, id_of(life->number), record->named);
        first = record;
    }
}

/* Nothing is lost, doubled or overtaken on its network. */
static bool is_quiet(const struct story *story)
{
    return story->seed % 4 == 0;
}

static void judge(struct story *story, struct story_tally *tally)
{
    for (uint32_t i = 0; i < story->n; i++) {
        const struct life *life = &story->lives[i];
        if (life->killed_at == 0 && !life->ended_well)
            say_wrong(story, "node %" PRIu32 " has ended: %.400s",
                      id_of(life->number), life->text);
    }
    for (uint64_t g = 0; g < STORY_GENERATIONS; g++)
        for (uint32_t step = 0; step < STORY_STEPS; step++)
            compare(story, g, step, tally);
    tally->dead += n_killed(story);
    for (uint32_t i = 0; i < story->n_lives; i++) {
        tally->shared += story->lives[i].shared;
        tally->lent += story->lives[i].lent;
        tally->dropped += is_quiet(story) ? story->lives[i].dropped : 0;
    }
    for (uint32_t i = story->n; i < story->n_lives; i++)
        tally->returned += story->lives[i].ended_well ? 1 : 0;
}

const char *story_tell(const struct story_kind *kind, uint64_t seed,
                       struct story_tally *tally)
{
    struct story *story = calloc(1, sizeof *story);
    const struct ls_simulation_options options = {.seed = seed};
    assert_non_null(story);
    story->kind = kind;
    story->seed = seed;
    story->n = kind->n != 0 ? kind->n : 2 + (uint32_t)fixed(story, 400, 6);
    const struct ls_network_path path = {
        .delay_ns = 100 * LS_NS_PER_US,
        .jitter_ns = 400 * LS_NS_PER_US,
        .loss = is_quiet(story) ? 0.0 : 0.05,
        .duplicate = is_quiet(story) ? 0.0 : 0.05,
        .reorder = is_quiet(story) ? 0.0 : 0.05,
    };
    assert_ok(ls_simulation_create(&story->simulation, &options));
    assert_ok(ls_network_create(&story->network, story->simulation, &path));
    const int status = ls_simulation_run(story->simulation, story_main, story);
    if (status != LS_OK)
        say_wrong(story, "%.900s", ls_error_text());
    else
        judge(story, tally);
    const bool right = story->wrong[0] == '\0';
    snprintf(wrong_text, sizeof wrong_text,
             "seed %" PRIu64 ", %" PRIu32 " nodes: %s", seed, story->n,
             story->wrong);
    if (status == LS_OK) {
        ls_network_destroy(&story->network);
        ls_simulation_destroy(&story->simulation);
    }
    free(story);
    return right ? NULL : wrong_text;
}
