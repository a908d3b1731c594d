/* Rooms of nodes on a simulated network: what the bus knows of losses comes to
 * the room, and the same seed gives the same run. */
#include "base/seeds.h"
#include "lockstep/room.h"
#include "network_fixture.h"
#include "test.h"

enum { MEMBERS = 4, OPS = 40, VICTIM = 2 };

enum story { NOTHING, KILLED, PAUSED };

struct cluster;

struct member {
    struct cluster *cluster;
    ls_runtime *runtime;
    ls_thread *thread;
    ls_node *node;
    ls_room *room;
    unsigned index;
    unsigned good; /* operations */
    int status;    /* of the first that failed */
    char text[LS_ERROR_TEXT_MAX];
    int status_after; /* of the last */
};

struct cluster {
    struct net net;
    enum story story;
    struct member members[MEMBERS];
};

static int join(struct member *m)
{
    char bind[64];
    struct ls_node_options options;
    struct ls_room_options room;
    net_node(&options, bind, m->index, MEMBERS, m->runtime);
    ls_room_options_init(&room);
    room.alloc_bytes = 0;
    options.id = 100 - m->index;
    int status = ls_node_create(&m->node, &options);
    if (status == LS_OK)
        status = ls_node_start(m->node);
    if (status == LS_OK)
        status = ls_room_create(&m->room, m->node, &room);
    return status;
}

static void keep(struct member *m, int status)
{
    m->status_after = status;
    m->good += status == LS_OK ? 1 : 0;
    if (status == LS_OK || m->status != LS_OK)
        return;
    m->status = status;
    (void)snprintf(m->text, sizeof m->text, "%s", ls_error_text());
}

static void live(void *arg)
{
    struct member *const m = arg;
    keep(m, join(m));
    for (unsigned i = 0; i < OPS && m->room != NULL; i++) {
        keep(m, ls_room_barrier(m->room, "step", 60000));
        ls_rest_until(m->runtime, ls_now(m->runtime) + 10 * LS_NS_PER_MS);
    }
    ls_room_destroy(&m->room);
    ls_node_destroy(&m->node);
}

static void cluster_body(struct net *net)
{
    struct cluster *const c = net->self;
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct member *const m = &c->members[i];
        m->cluster = c;
        m->index = i;
        m->runtime = ls_host_runtime(net->hosts[i]);
        assert_ok(ls_thread_spawn(m->runtime, &m->thread, "node", live, m));
    }
    net_rest(net, 200);
    if (c->story == KILLED)
        ls_network_kill(net->network, net->hosts[VICTIM]);
    if (c->story == PAUSED) {
        ls_host_pause(net->hosts[VICTIM]);
        net_rest(net, 5000); /* longer than silence_ms */
        ls_host_resume(net->hosts[VICTIM]);
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_ok(ls_thread_join(&c->members[i].thread, LS_FOREVER));
}

static uint64_t play(struct cluster *c, enum story story, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    net_open(&c->net, seed, NULL);
    c->story = story;
    c->net.self = c;
    c->net.body = cluster_body;
    assert_ok(ls_simulation_run(c->net.simulation, net_body, &c->net));
    const uint64_t hash = ls_simulation_hash(c->net.simulation);
    net_close(&c->net);
    return hash;
}

static struct cluster cluster;

TEST(nodes_of_a_simulation_have_rooms_and_a_seed_repeats_them)
{
    const struct seeds seeds = seeds_of(10);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        const uint64_t hash = play(&cluster, NOTHING, seed);
        for (unsigned i = 0; i < MEMBERS; i++)
            if (cluster.members[i].good != OPS + 1)
                fail_msg("SEED=%llu: node %u: %s", (unsigned long long)seed,
                         100 - i, cluster.members[i].text);
        assert_true(play(&cluster, NOTHING, seed) == hash);
    }
}

/* One barrier fails, for all alike; the others succeed. */
static void survivors_go_on(enum story story)
{
    const struct seeds seeds = seeds_of(10);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        (void)play(&cluster, story, seed);
        for (unsigned i = 0; i < MEMBERS; i++) {
            const struct member *const m = &cluster.members[i];
            if (i == VICTIM)
                continue;
            assert_int_equal(m->status, LS_ELOST);
            assert_has(m->text, "step: node 98 is lost");
            assert_int_equal(m->good, OPS);
            assert_int_equal(m->status_after, LS_OK);
        }
    }
}

TEST(who_is_killed_is_lost_to_the_room_as_well)
{
    survivors_go_on(KILLED);
}

TEST(who_falls_silent_is_shut_out_and_finds_that_out)
{
    survivors_go_on(PAUSED);
    assert_int_equal(cluster.members[VICTIM].status_after, LS_ELOST);
    assert_has(cluster.members[VICTIM].text, "this one");
}
