/* A world of five under faults drawn from a seed: cuts, resets, pauses, losses,
 * kills, farewells and restarts. Once it is quiet, all that live agree on who
 * is there. */
#include "network_fixture.h"

#include "base/seeds.h"
#include "lockstep/random.h"
#include "quiet.h"
#include "test.h"

#define MEMBERS 5
#define LIVES   64
#define FAULTS  12

struct cluster;

/* One life of a node, as a program on a host of its own. */
struct life {
    struct cluster *cluster;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    size_t index, port;
    bool first, dead, quits;
    ls_mutex mutex;
    ls_cond changed;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

struct cluster {
    struct net net;
    enum ls_topology topology;
    uint64_t seed;
    struct life lives[LIVES];
    size_t n_lives;
    struct life *now[MEMBERS]; /* who lives; NULL: dead */
    char story[4096];
};

/* ---- a life ------------------------------------------------------------ */

static int begin(struct life *life)
{
    static const char *const all[] = {
        "tcp://127.0.0.1:21500", "tcp://127.0.0.1:21501",
        "tcp://127.0.0.1:21502", "tcp://127.0.0.1:21503",
        "tcp://127.0.0.1:21504"};
    const bool star = life->cluster->topology == LS_TOPOLOGY_STAR;
    char bind[64];
    struct ls_node_options options;
    ls_node_options_init(&options);
    (void)snprintf(bind, sizeof bind, "tcp://127.0.0.1:%zu", life->port);
    options.id = (uint32_t)life->index + 1;
    options.bind = bind;
    options.attach = all;
    options.n_attach = star ? (life->index == 0 ? 0 : 1) : MEMBERS;
    options.topology = life->cluster->topology;
    options.world_size = life->first ? MEMBERS : 1;
    options.world_max = MEMBERS;
    options.start_timeout_ms = 60000;
    options.linger_ms = 1000;
    options.runtime = ls_host_runtime(life->host);
    const int status = ls_node_create(&life->node, &options);
    return status == LS_OK ? ls_node_start(life->node) : status;
}

static void life_main(void *arg)
{
    struct life *life = arg;
    const int status = begin(life);
    ls_mutex_lock(&life->mutex);
    life->status = status;
    if (status != LS_OK)
        (void)snprintf(life->text, sizeof life->text, "%s", ls_error_text());
    while (!life->quits)
        if (ls_cond_wait(&life->changed, &life->mutex, LS_FOREVER) != LS_OK)
            abort();
    ls_mutex_unlock(&life->mutex);
    ls_node_destroy(&life->node);
}

static void begin_life(struct cluster *c, size_t index, size_t port)
{
    struct life *life = &c->lives[c->n_lives++];
    *life = (struct life){.cluster = c,
                          .index = index,
                          .port = port,
                          .first = c->n_lives <= MEMBERS,
                          .status = LS_EAGAIN};
    assert_ok(ls_host_create(&life->host, c->net.simulation, "host"));
    assert_ok(ls_network_join(c->net.network, life->host));
    ls_runtime *runtime = ls_host_runtime(life->host);
    assert_ok(ls_mutex_init(&life->mutex, runtime));
    assert_ok(ls_cond_init(&life->changed, runtime));
    assert_ok(ls_thread_spawn(runtime, &life->thread, "life", life_main, life));
    c->now[index] = life;
}

static void quit(struct life *life)
{
    ls_mutex_lock(&life->mutex);
    life->quits = true;
    ls_cond_signal(&life->changed);
    ls_mutex_unlock(&life->mutex);
}

/* ---- faults ------------------------------------------------------------ */

static void note(struct cluster *c, const char *what, size_t a, size_t b)
{
    const size_t used = strlen(c->story);
    (void)snprintf(c->story + used, sizeof c->story - used,
                   "  %6.3f s: %s %zu %zu\n", (double)net_now(&c->net) / 1e9,
                   what, a + 1, b + 1);
}

static ls_host *host_of(const struct cluster *c, size_t index)
{
    return c->now[index] != NULL ? c->now[index]->host : NULL;
}

static void kill_one(struct cluster *c, size_t index)
{
    struct life *life = c->now[index];
    if (life == NULL || ls_host_is_paused(life->host))
        return;
    note(c, "kill", index, index);
    ls_network_kill(c->net.network, life->host);
    life->dead = true;
    c->now[index] = NULL;
    quit(life);
}

/* Its program ends, as one does that has failed. */
static void leave_one(struct cluster *c, size_t index)
{
    struct life *life = c->now[index];
    if (life == NULL || life->status != LS_OK || ls_host_is_paused(life->host))
        return;
    note(c, "leave", index, index);
    c->now[index] = NULL;
    quit(life);
    assert_ok(ls_thread_join(&life->thread, LS_FOREVER));
}

static void restart_one(struct cluster *c, size_t index, bool same_port)
{
    if (c->now[index] != NULL || c->n_lives == LIVES)
        return;
    note(c, same_port ? "restart" : "restart elsewhere", index, index);
    const size_t port = 21500 + index + (same_port ? 0 : 10 * c->n_lives);
    begin_life(c, index, port);
}

static void cut_off(struct cluster *c, size_t a)
{
    note(c, "cut off", a, a);
    assert_ok(ls_network_cut(c->net.network, host_of(c, a), NULL));
    assert_ok(ls_network_cut(c->net.network, NULL, host_of(c, a)));
}

static void fault(struct cluster *c, struct ls_rng *random)
{
    const size_t a = (size_t)ls_rng_below(random, MEMBERS);
    const size_t b =
        (a + 1 + (size_t)ls_rng_below(random, MEMBERS - 1)) % MEMBERS;
    ls_host *from = host_of(c, a), *to = host_of(c, b);
    const bool star = c->topology == LS_TOPOLOGY_STAR;
    switch (ls_rng_below(random, 9)) {
    case 0:
        if (from != NULL && to != NULL) {
            note(c, "cut", a, b);
            assert_ok(ls_network_cut(c->net.network, from, to));
        }
        break;
    case 1:
        if (from != NULL)
            cut_off(c, a);
        break;
    case 2:
        note(c, "reset", a, b);
        if (from != NULL)
            ls_network_reset(c->net.network, from, to);
        break;
    case 3:
        if (from != NULL)
            note(c, "pause", a, a), ls_host_pause(from);
        break;
    case 4:
    case 5:
        note(c, "heal", 0, 0);
        ls_network_heal(c->net.network, NULL, NULL);
        for (size_t i = 0; i < MEMBERS; i++)
            if (c->now[i] != NULL)
                ls_host_resume(c->now[i]->host);
        break;
    case 6:
        kill_one(c, a);
        break;
    case 7:
        leave_one(c, a);
        break;
    default:
        /* Leaves find the hub at its address alone. */
        restart_one(c, a, star || ls_rng_below(random, 2) == 0);
        break;
    }
}

static void heal_all(struct cluster *c)
{
    const struct ls_network_path quiet = {.delay_ns = 50 * LS_NS_PER_US};
    note(c, "quiet", 0, 0);
    ls_network_heal(c->net.network, NULL, NULL);
    assert_ok(ls_network_shape(c->net.network, NULL, NULL, &quiet));
    for (size_t i = 0; i < MEMBERS; i++)
        if (c->now[i] != NULL)
            ls_host_resume(c->now[i]->host);
}

/* ---- what must hold ---------------------------------------------------- */

static const char *state_name(enum ls_member_state state)
{
    static const char *const names[] = {"seen", "ready", "left", "lost"};
    return names[state];
}

static void tell_wrong(const struct cluster *c, const struct life *life,
                       const struct ls_member *m)
{
    fail_msg("seed %llu: node %zu has node %u as %s (%llx), which %s\n%s",
             (unsigned long long)c->seed, life->index + 1, m->id,
             state_name(m->state), (unsigned long long)m->incarnation,
             c->now[m->id - 1] == NULL ? "is dead" : "lives", c->story);
}

static void assert_agrees(const struct cluster *c, const struct life *life)
{
    struct ls_member members[MEMBERS];
    size_t n_ready = 0, n_living = 0;
    if (life->status != LS_OK)
        fail_msg("seed %llu: node %zu: %s\n%s", (unsigned long long)c->seed,
                 life->index + 1, life->text, c->story);
    const size_t n = ls_node_members(life->node, members, MEMBERS);
    for (size_t i = 0; i < n && i < MEMBERS; i++) {
        const struct life *other = c->now[members[i].id - 1];
        const bool ready = members[i].state == LS_MEMBER_READY;
        const bool right =
            ready ? other != NULL && ls_node_incarnation(other->node) ==
                                         members[i].incarnation
                  : other == NULL;
        if (!right)
            tell_wrong(c, life, &members[i]);
        n_ready += ready ? 1 : 0;
    }
    for (size_t i = 0; i < MEMBERS; i++)
        n_living += c->now[i] != NULL ? 1 : 0;
    if (n_ready + 1 != n_living)
        fail_msg("seed %llu: node %zu knows %zu of %zu\n%s",
                 (unsigned long long)c->seed, life->index + 1, n_ready + 1,
                 n_living, c->story);
}

static void assert_all_agree(const struct cluster *c)
{
    for (size_t i = 0; i < MEMBERS; i++)
        if (c->now[i] != NULL)
            assert_agrees(c, c->now[i]);
}

static void end_all(struct cluster *c)
{
    for (size_t i = 0; i < MEMBERS; i++)
        if (c->now[i] != NULL)
            quit(c->now[i]);
    for (size_t i = 0; i < c->n_lives; i++)
        if (c->lives[i].thread != NULL)
            assert_ok(ls_thread_join(&c->lives[i].thread, LS_FOREVER));
}

static void storm(struct net *net)
{
    struct cluster *c = net->self;
    struct ls_rng *random = ls_simulation_random(net->simulation);
    for (size_t i = 0; i < MEMBERS; i++)
        begin_life(c, i, 21500 + i);
    net_rest(net, 2000);
    for (size_t i = 0; i < FAULTS; i++) {
        fault(c, random);
        net_rest(net, (int64_t)ls_rng_below(random, 3000));
    }
    heal_all(c);
    if (c->topology == LS_TOPOLOGY_STAR)
        restart_one(c, 0, true);
    net_rest(net, 15000);
    assert_all_agree(c);
    end_all(c);
}

/* The first, to which the others are attached, leaves and comes back. */
static void return_of_the_first(struct net *net)
{
    struct cluster *c = net->self;
    for (size_t i = 0; i < MEMBERS; i++)
        begin_life(c, i, 21500 + i);
    net_rest(net, 5000);
    leave_one(c, 0);
    restart_one(c, 0, true);
    net_rest(net, 15000);
    assert_all_agree(c);
    end_all(c);
}

/* Meanwhile one stands still: for the others it is lost, for it nobody is. */
static void return_past_a_sleeper(struct net *net)
{
    struct cluster *c = net->self;
    for (size_t i = 0; i < MEMBERS; i++)
        begin_life(c, i, 21500 + i);
    net_rest(net, 5000);
    ls_host_pause(host_of(c, 1));
    leave_one(c, 0);
    restart_one(c, 0, true);
    net_rest(net, 3000);
    ls_host_resume(host_of(c, 1));
    net_rest(net, 15000);
    assert_all_agree(c);
    end_all(c);
}

static void assert_all_know_it_left(struct cluster *c, size_t leaver)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        struct ls_member members[MEMBERS];
        if (i == leaver)
            continue;
        const size_t n = ls_node_members(c->now[i]->node, members, MEMBERS);
        for (size_t j = 0; j < n; j++)
            if (members[j].id == leaver + 1 &&
                members[j].state != LS_MEMBER_LEFT)
                tell_wrong(c, c->now[i], &members[j]);
    }
}

static void begin_leaving(struct cluster *c, size_t leaver)
{
    for (size_t i = 0; i < MEMBERS; i++)
        begin_life(c, i, 21500 + i);
    net_rest(&c->net, 5000);
    note(c, "leave", leaver, leaver);
    quit(c->now[leaver]);
    c->now[leaver] = NULL;
}

/* One leaves, and each of the others knows it has left. */
static void leaving(struct net *net)
{
    struct cluster *c = net->self;
    begin_leaving(c, MEMBERS - 1);
    net_rest(net, 5000);
    assert_all_know_it_left(c, MEMBERS - 1);
    assert_all_agree(c);
    end_all(c);
}

/* Its connections break meanwhile, and what was under way is lost: it says so
 * again to those who come back. */
static void leaving_over_resets(struct net *net)
{
    struct cluster *c = net->self;
    struct ls_rng random;
    ls_rng_seed(&random, c->seed, 1);
    const size_t leaver = (size_t)ls_rng_below(&random, MEMBERS);
    begin_leaving(c, leaver);
    const ls_host *host = c->lives[leaver].host;
    for (int i = 0; i < 3; i++) {
        net_rest(net, (int64_t)ls_rng_below(&random, 20));
        ls_network_reset(c->net.network, host, NULL);
    }
    net_rest(net, 5000);
    assert_all_know_it_left(c, leaver);
    end_all(c);
}

static void run(uint64_t seed, enum ls_topology topology,
                const struct ls_network_path *path,
                void (*body)(struct net *net))
{
    struct cluster *c = calloc(1, sizeof *c);
    assert_non_null(c);
    net_open(&c->net, seed, path);
    c->seed = seed;
    c->topology = topology;
    c->net.self = c;
    c->net.body = body;
    const int status = ls_simulation_run(c->net.simulation, net_body, &c->net);
    if (status != LS_OK)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, ls_error_text(),
                 c->story);
    net_close(&c->net);
    free(c);
}

static void sweep(enum ls_topology topology, void (*body)(struct net *net))
{
    const struct seeds seeds = seeds_of(150);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        run(seed, topology, net_path_of(seed), body);
}

TEST(all_that_live_agree_in_a_mesh)
{
    sweep(LS_TOPOLOGY_MESH, storm);
}

TEST(all_that_live_agree_in_a_star)
{
    sweep(LS_TOPOLOGY_STAR, storm);
}

TEST(one_that_leaves_is_found_when_it_is_back)
{
    sweep(LS_TOPOLOGY_MESH, return_of_the_first);
    sweep(LS_TOPOLOGY_STAR, return_of_the_first);
}

TEST(who_slept_meanwhile_becomes_a_member_too)
{
    sweep(LS_TOPOLOGY_MESH, return_past_a_sleeper);
    sweep(LS_TOPOLOGY_STAR, return_past_a_sleeper);
}

TEST(who_leaves_is_not_taken_for_lost)
{
    sweep(LS_TOPOLOGY_MESH, leaving);
    sweep(LS_TOPOLOGY_STAR, leaving);
}

TEST(a_reset_does_not_eat_a_farewell)
{
    sweep(LS_TOPOLOGY_MESH, leaving_over_resets);
    sweep(LS_TOPOLOGY_STAR, leaving_over_resets);
}

int main(void)
{
    return tests_run_quietly();
}
