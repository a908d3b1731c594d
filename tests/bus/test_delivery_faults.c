/* What each policy promises, over a simulated network that loses, doubles and
 * delays single messages and breaks connections, all drawn from a seed. */
#include "network_fixture.h"

#include "base/seeds.h"
#include "lockstep/random.h"
#include "test.h"

#define MEMBERS 3
#define SENDER  1 /* in a star a leaf */
#define EVENTS  100

/* What one node has seen of the numbers of one event. */
struct seen {
    uint64_t came, next, disorder;
};

struct cluster;

struct member {
    struct cluster *cluster;
    ls_runtime *runtime;
    ls_thread *thread;
    ls_node *node;
    size_t index;
    int status;
    char text[LS_ERROR_TEXT_MAX];
    ls_mutex mutex;
    ls_cond changed;
    struct seen reliable, plain, latest;
    uint64_t near; /* messages that it sent through shared memory */
};

struct cluster {
    struct net net;
    uint64_t seed;
    enum ls_topology topology;
    struct member members[MEMBERS];
};

static bool has_all(const struct member *m)
{
    return m->reliable.next == EVENTS && m->latest.next == EVENTS;
}

/* Nobody leaves before the others are done. (All are fibers of one thread.) */
static bool all_have_all(const struct cluster *c)
{
    for (size_t i = 0; i < MEMBERS; i++)
        if (!has_all(&c->members[i]))
            return false;
    return true;
}

static void see(struct member *m, struct seen *seen,
                const struct ls_event *event)
{
    uint64_t number = 0;
    memcpy(&number, event->data, sizeof number);
    ls_mutex_lock(&m->mutex);
    seen->came++;
    if (number < seen->next)
        seen->disorder++;
    else
        seen->next = number + 1;
    ls_mutex_unlock(&m->mutex);
    if (all_have_all(m->cluster))
        for (size_t i = 0; i < MEMBERS; i++)
            ls_cond_broadcast(&m->cluster->members[i].changed);
}

static int on_reliable(void *self, const struct ls_event *event)
{
    struct member *m = self;
    see(m, &m->reliable, event);
    return LS_OK;
}

static int on_plain(void *self, const struct ls_event *event)
{
    struct member *m = self;
    see(m, &m->plain, event);
    return LS_OK;
}

static int on_latest(void *self, const struct ls_event *event)
{
    struct member *m = self;
    see(m, &m->latest, event);
    return LS_OK;
}

static int make(struct member *m)
{
    char bind[64];
    struct ls_node_options options;
    net_node(&options, bind, m->index, MEMBERS, m->runtime);
    options.topology = m->cluster->topology;
    options.start_timeout_ms = 60000;
    options.silence_ms = 60000;
    options.linger_ms = 10000;
    options.shared_bytes = m->cluster->seed % 2 == 0 ? 512 << 10 : 0;
    int status = ls_node_create(&m->node, &options);
    if (status == LS_OK)
        status = ls_on(m->node, "r", on_reliable, m);
    if (status == LS_OK)
        status = ls_on(m->node, "p", on_plain, m);
    if (status == LS_OK)
        status = ls_on(m->node, "v", on_latest, m);
    return status;
}

static int emit(struct member *m, const char *event, uint64_t number,
                enum ls_delivery policy)
{
    return ls_emit_with(m->node, &(struct ls_emission){.event = event,
                                                       .data = &number,
                                                       .size = sizeof number,
                                                       .delivery = policy,
                                                       .timeout_ms = 60000});
}

static int emit_all(struct member *m)
{
    struct ls_rng random;
    int status = LS_OK;
    ls_rng_seed(&random, m->cluster->seed, 7);
    for (uint64_t i = 0; i < EVENTS && status == LS_OK; i++) {
        status = emit(m, "r", i, LS_DELIVERY_RELIABLE);
        if (status == LS_OK)
            status = emit(m, "p", i, LS_DELIVERY_BLOCK);
        if (status == LS_OK)
            status = emit(m, "v", i, LS_DELIVERY_LATEST);
        if (ls_rng_below(&random, 4) == 0)
            ls_rest_until(m->runtime,
                          ls_now(m->runtime) + (int64_t)ls_rng_below(
                                                   &random, 20 * LS_NS_PER_MS));
    }
    return status;
}

static int live(struct member *m)
{
    int status = make(m);
    if (status == LS_OK)
        status = ls_node_start(m->node);
    if (status == LS_OK && m->index == SENDER)
        status = emit_all(m);
    const int64_t deadline = ls_deadline(m->runtime, 120000);
    ls_mutex_lock(&m->mutex);
    while (!all_have_all(m->cluster) && status == LS_OK)
        status = ls_cond_wait(&m->changed, &m->mutex, deadline);
    ls_mutex_unlock(&m->mutex);
    return status;
}

static void member_main(void *arg)
{
    struct member *m = arg;
    m->status = live(m);
    if (m->status != LS_OK)
        (void)snprintf(m->text, sizeof m->text, "%s", ls_error_text());
    struct ls_node_stats stats;
    ls_node_stats(m->node, &stats);
    m->near = stats.near;
    ls_node_destroy(&m->node);
}

static void body(struct net *net)
{
    struct cluster *c = net->self;
    struct ls_rng *random = ls_simulation_random(net->simulation);
    for (size_t i = 0; i < MEMBERS; i++) {
        struct member *m = &c->members[i];
        m->cluster = c;
        m->index = i;
        m->runtime = ls_host_runtime(net->hosts[i]);
        assert_ok(ls_mutex_init(&m->mutex, m->runtime));
        assert_ok(ls_cond_init(&m->changed, m->runtime));
        assert_ok(
            ls_thread_spawn(m->runtime, &m->thread, "node", member_main, m));
    }
    for (int i = 0; i < 8; i++) {
        const size_t a = (size_t)ls_rng_below(random, MEMBERS);
        const size_t b =
            (a + 1 + (size_t)ls_rng_below(random, MEMBERS - 1)) % MEMBERS;
        net_rest(net, 20 + (int64_t)ls_rng_below(random, 200));
        ls_network_reset(net->network, net->hosts[a], net->hosts[b]);
    }
    for (size_t i = 0; i < MEMBERS; i++)
        assert_ok(ls_thread_join(&c->members[i].thread, LS_FOREVER));
}

static void check(const struct cluster *c, const struct member *m)
{
    if (m->status == LS_OK && m->reliable.came == EVENTS &&
        m->reliable.next == EVENTS && m->reliable.disorder == 0 &&
        m->plain.disorder == 0 && m->latest.disorder == 0)
        return;
    fail_msg("seed %llu, node %zu: %s %s; reliable: %llu came, up to %llu, "
             "%llu again; plain: %llu in disorder; latest: up to %llu, %llu "
             "in disorder",
             (unsigned long long)c->seed, m->index + 1,
             ls_status_name(m->status), m->text,
             (unsigned long long)m->reliable.came,
             (unsigned long long)m->reliable.next,
             (unsigned long long)m->reliable.disorder,
             (unsigned long long)m->plain.disorder,
             (unsigned long long)m->latest.next,
             (unsigned long long)m->latest.disorder);
}

/* Returns how many messages went through shared memory. */
static uint64_t one_seed(uint64_t seed, enum ls_topology topology)
{
    struct cluster *c = calloc(1, sizeof *c);
    struct ls_rng random;
    uint64_t near = 0;
    assert_non_null(c);
    ls_rng_seed(&random, seed, 0);
    const struct ls_network_path path = {
        .delay_ns = (int64_t)ls_rng_below(&random, 20 * LS_NS_PER_MS),
        .jitter_ns = (int64_t)ls_rng_below(&random, 10 * LS_NS_PER_MS),
        .loss = ls_rng_double(&random) * 0.2,
        .duplicate = ls_rng_double(&random) * 0.2,
        .reorder = ls_rng_double(&random) * 0.3};
    net_open(&c->net, seed, &path);
    c->net.body = body;
    c->net.self = c;
    c->seed = seed;
    c->topology = topology;
    assert_ok(ls_simulation_run(c->net.simulation, net_body, &c->net));
    for (size_t i = 0; i < MEMBERS; i++) {
        check(c, &c->members[i]);
        near += c->members[i].near;
        ls_cond_fini(&c->members[i].changed);
        ls_mutex_fini(&c->members[i].mutex);
    }
    net_close(&c->net);
    free(c);
    return near;
}

static void sweep(enum ls_topology topology)
{
    const struct seeds seeds = seeds_of(100);
    uint64_t near = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        near += one_seed(seed, topology);
    if (seeds.end - seeds.first > 10)
        assert_int_equal(near != 0, topology == LS_TOPOLOGY_MESH);
}

TEST(every_policy_keeps_its_promise_in_a_mesh)
{
    sweep(LS_TOPOLOGY_MESH);
}

TEST(every_policy_keeps_its_promise_in_a_star)
{
    sweep(LS_TOPOLOGY_STAR);
}
