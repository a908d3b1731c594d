/* Nodes on a simulated network: worlds as on libzmq, and the same run again
 * from the same seed. */
#include "network_fixture.h"
#include "network_parts.h"
#include "test.h"

#define MEMBERS 9
#define EVENTS  50
#define BULK    (32u << 10) /* bytes */
#define BULKS   2

struct cluster;

/* One node, as a program of its own on its host. */
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
    size_t heard, out_of_order, n_lost, n_left, n_bulk;
    struct ls_node_stats stats; /* at its end */
    int next[MEMBERS + 1];      /* number expected of each */
};

struct cluster {
    struct net net;
    size_t n;
    enum ls_topology topology;
    int64_t late_ms; /* the last node starts so much later */
    size_t bulk;     /* they have long events too, of so many bytes, */
    bool reliable;   /* which are */
    uint32_t window; /* of messages; 0: as usual */
    bool globs;      /* some listen to all that begins alike */
    bool apart;      /* they are on hosts of their own */
    bool (*done)(const struct member *member);
    void (*script)(struct cluster *cluster);
    struct member members[MEMBERS];
};

static int on_number(void *self, const struct ls_event *event)
{
    struct member *m = self;
    int number = 0;
    memcpy(&number, event->data, sizeof number);
    ls_mutex_lock(&m->mutex);
    m->heard++;
    if (number != m->next[event->origin]++)
        m->out_of_order++;
    ls_cond_signal(&m->changed);
    ls_mutex_unlock(&m->mutex);
    return LS_OK;
}

static int on_bulk(void *self, const struct ls_event *event)
{
    struct member *m = self;
    ls_mutex_lock(&m->mutex);
    m->n_bulk += event->size == m->cluster->bulk ? 1 : 0;
    ls_cond_signal(&m->changed);
    ls_mutex_unlock(&m->mutex);
    return LS_OK;
}

static void on_member(void *self, const struct ls_member *member)
{
    struct member *m = self;
    ls_mutex_lock(&m->mutex);
    m->n_lost += member->state == LS_MEMBER_LOST ? 1 : 0;
    m->n_left += member->state == LS_MEMBER_LEFT ? 1 : 0;
    ls_cond_signal(&m->changed);
    ls_mutex_unlock(&m->mutex);
}

static bool heard_all(const struct member *m)
{
    return m->heard == EVENTS * m->cluster->n;
}

static bool heard_bulk(const struct member *m)
{
    return m->n_bulk == BULKS * m->cluster->n && heard_all(m);
}

static bool lost_one(const struct member *m)
{
    return m->n_lost != 0;
}

static int make(struct member *m)
{
    char bind[64];
    struct ls_node_options options;
    net_node(&options, bind, m->index, m->cluster->n, m->runtime);
    options.id = (uint32_t)m->index;
    options.topology = m->cluster->topology;
    options.emit_timeout_ms = LONG_MS;
    if (m->cluster->apart) /* hosts of their own */
        options.shared_bytes = 0;
    if (m->cluster->bulk != 0) /* its farewell is behind what is under way */
        options.linger_ms = LONG_MS;
    if (m->cluster->window != 0)
        options.window_messages = m->cluster->window;
    int status = ls_node_create(&m->node, &options);
    if (status == LS_OK)
        status = ls_on(
            m->node, m->cluster->globs && m->index % 3 != 0 ? "num*" : "number",
            on_number, m);
    if (status == LS_OK)
        status = ls_on(m->node, "bulk", on_bulk, m);
    if (status == LS_OK)
        status = ls_node_on_member(m->node, on_member, m);
    return status;
}

static int emit_bulk(struct member *m)
{
    void *bytes = calloc(1, m->cluster->bulk);
    int status = bytes != NULL ? LS_OK : LS_ENOMEM;
    for (int i = 0; i < BULKS && status == LS_OK; i++)
        status = ls_emit_with(
            m->node, &(struct ls_emission){
                         .event = "bulk",
                         .data = bytes,
                         .size = m->cluster->bulk,
                         .delivery = m->cluster->reliable ? LS_DELIVERY_RELIABLE
                                                          : LS_DELIVERY_BLOCK});
    free(bytes);
    return status;
}

static int live(struct member *m)
{
    int status = make(m);
    if (m->index + 1 == m->cluster->n)
        ls_rest_until(m->runtime,
                      ls_now(m->runtime) + m->cluster->late_ms * LS_NS_PER_MS);
    if (status == LS_OK)
        status = ls_node_start(m->node);
    if (m->cluster->bulk != 0 && status == LS_OK)
        status = emit_bulk(m);
    for (int i = 0; i < EVENTS && status == LS_OK; i++)
        status = ls_emit(m->node, "number", &i, sizeof i);
    const int64_t deadline = ls_deadline(m->runtime, LONG_MS);
    ls_mutex_lock(&m->mutex);
    while (!m->cluster->done(m) && status == LS_OK)
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
    ls_node_stats(m->node, &m->stats);
    ls_node_destroy(&m->node);
}

static void cluster_body(struct net *net)
{
    struct cluster *c = net->self;
    for (size_t i = 0; i < c->n; i++) {
        struct member *m = &c->members[i];
        m->cluster = c;
        m->index = i;
        m->runtime = ls_host_runtime(net->hosts[i]);
        assert_ok(ls_mutex_init(&m->mutex, m->runtime));
        assert_ok(ls_cond_init(&m->changed, m->runtime));
        assert_ok(
            ls_thread_spawn(m->runtime, &m->thread, "node", member_main, m));
    }
    if (c->script != NULL)
        c->script(c);
    for (size_t i = 0; i < c->n; i++)
        assert_ok(ls_thread_join(&c->members[i].thread, LS_FOREVER));
}

/* Returns the hash of the run. */
static uint64_t run(struct cluster *c, uint64_t seed,
                    const struct ls_network_path *path)
{
    net_open(&c->net, seed, path);
    c->net.self = c;
    c->net.body = cluster_body;
    c->apart = path != NULL;
    if (c->done == NULL)
        c->done = heard_all;
    assert_ok(ls_simulation_run(c->net.simulation, net_body, &c->net));
    const uint64_t hash = ls_simulation_hash(c->net.simulation);
    assert_balanced(&c->net);
    net_close(&c->net);
    return hash;
}

static void assert_all_heard(const struct cluster *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct member *m = &c->members[i];
        if (m->status != LS_OK)
            fail_msg("node %zu: %s", i, m->text);
        assert_int_equal(m->heard, EVENTS * c->n);
        assert_int_equal(m->out_of_order, 0);
        assert_int_equal(m->n_lost, 0);
    }
}

/* ---- worlds ------------------------------------------------------------ */

static const struct ls_network_path slow = {.delay_ns = 20 * LS_NS_PER_MS,
                                            .jitter_ns = 20 * LS_NS_PER_MS};

static void form(enum ls_topology topology, size_t n, int64_t late_ms)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cluster c = {.n = n, .topology = topology, .late_ms = late_ms};
        (void)run(&c, seed, seed % 2 == 0 ? &slow : NULL);
        assert_all_heard(&c);
    }
}

TEST(a_mesh_forms_and_hears_events_in_order)
{
    form(LS_TOPOLOGY_MESH, 3, 0);
    form(LS_TOPOLOGY_MESH, MEMBERS, 0);
}

TEST(a_star_forms_and_hears_events_in_order)
{
    form(LS_TOPOLOGY_STAR, 3, 0);
    form(LS_TOPOLOGY_STAR, MEMBERS, 0);
}

/* Over a satellite; a proof is back later than it is asked for again. */
TEST(a_world_forms_when_a_round_trip_takes_longer_than_half_a_second)
{
    static const struct ls_network_path far = {.delay_ns = 300 * LS_NS_PER_MS,
                                               .jitter_ns = 50 * LS_NS_PER_MS};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cluster c = {.n = 3, .topology = LS_TOPOLOGY_MESH};
        (void)run(&c, seed, &far);
        assert_all_heard(&c);
    }
}

static void count_waits(void *self, const char *missing)
{
    int *n = self;
    assert_string_equal(missing, "1 more");
    *n += 1;
}

/* One more, that takes a leaf for its hub; meanwhile it says every 2 s for whom
 * it waits. */
static void attach_to_a_leaf(struct cluster *c)
{
    static const char *const leaf[] = {"tcp://127.0.0.1:21501"};
    struct ls_node_options options;
    ls_node *node = NULL;
    net_rest(&c->net, 1000);
    const uint64_t connects = net_stats(&c->net).connects;
    ls_node_options_init(&options);
    options.id = 8;
    options.bind = "tcp://127.0.0.1:21508";
    options.attach = leaf;
    options.n_attach = 1;
    options.topology = LS_TOPOLOGY_STAR;
    options.world_size = 2;
    options.runtime = ls_host_runtime(c->net.hosts[8]);
    options.start_timeout_ms = 5000;
    int n_waits = 0;
    options.waiting = count_waits;
    options.waiting_self = &n_waits;
    assert_ok(ls_node_create(&node, &options));
    assert_int_equal(ls_node_start(node), LS_EUNREACHABLE);
    assert_int_equal(n_waits, 2);
    assert_non_null(strstr(ls_error_text(), "it is not a hub, but a leaf"));
    assert_int_equal(net_stats(&c->net).connects, connects + 1);
    ls_node_destroy(&node);
}

TEST(a_leaf_dials_its_hub_alone)
{
    struct cluster c = {.n = 3,
                        .topology = LS_TOPOLOGY_STAR,
                        .late_ms = 7000,
                        .script = attach_to_a_leaf};
    (void)run(&c, 1, NULL);
    assert_all_heard(&c);
}

static void wait_for_three(void *arg)
{
    static const uint32_t members[] = {1, 2, 3};
    struct member *m = arg;
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = 1;
    options.bind = "tcp://127.0.0.1:21501";
    options.world_size = 3;
    options.members = members;
    options.runtime = m->runtime;
    m->status = ls_node_create(&m->node, &options);
    if (m->status == LS_OK)
        m->status = ls_node_start(m->node);
    (void)snprintf(m->text, sizeof m->text, "%s", ls_error_text());
    ls_node_destroy(&m->node);
}

/* One of three comes, fails, and leaves. */
static void fail_at_once(struct net *net)
{
    static const char *const attach[] = {"tcp://127.0.0.1:21501"};
    struct member first = {.runtime = ls_host_runtime(net->hosts[1])};
    struct ls_node_options options;
    ls_node *second = NULL;
    ls_node_options_init(&options);
    options.id = 2;
    options.role = "learner";
    options.bind = "tcp://127.0.0.1:21502";
    options.attach = attach;
    options.n_attach = 1;
    options.world_size = 2;
    options.runtime = ls_host_runtime(net->hosts[2]);
    assert_ok(ls_node_create(&second, &options));
    first.index = 1;
    assert_ok(ls_thread_spawn(first.runtime, &first.thread, "first",
                              wait_for_three, &first));
    assert_ok(ls_node_start(second));
    ls_node_stop(second, LS_EIO);
    ls_node_destroy(&second);
    assert_ok(ls_thread_join(&first.thread, LS_FOREVER));
    assert_int_equal(first.status, LS_EUNREACHABLE);
    assert_non_null(strstr(first.text, "missing: node 2, 3; "
                                       "node 2 (learner) was here, and left "
                                       "with LS_EIO"));
}

TEST(who_came_and_left_before_the_world_was_formed_is_named_with_its_reason)
{
    net_run(NULL, fail_at_once);
}

static void cut_a_while(struct cluster *c);

TEST(who_listens_by_a_glob_hears_the_same)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct cluster c = {.n = 5,
                            .topology = seed % 3 == 0 ? LS_TOPOLOGY_STAR
                                                      : LS_TOPOLOGY_MESH,
                            .script = seed % 3 == 1 ? cut_a_while : NULL,
                            .globs = true};
        (void)run(&c, seed, seed % 2 == 0 ? &slow : NULL);
        assert_all_heard(&c);
    }
}

TEST(a_world_waits_for_the_last)
{
    form(LS_TOPOLOGY_MESH, 3, 5000);
    form(LS_TOPOLOGY_STAR, 3, 5000);
}

/* ---- faults ------------------------------------------------------------ */

static void cut_a_while(struct cluster *c)
{
    ls_host **hosts = c->net.hosts;
    net_rest(&c->net, 1);
    for (int i = 0; i < 10; i++) {
        assert_ok(ls_network_cut(c->net.network, hosts[i % 2], NULL));
        net_rest(&c->net, 500);
        ls_network_heal(c->net.network, NULL, NULL);
        net_rest(&c->net, 10);
    }
}

TEST(short_cuts_lose_no_event)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cluster c = {.n = 3, .script = cut_a_while};
        (void)run(&c, seed, &slow);
        assert_all_heard(&c);
    }
}

static void kill_the_last(struct cluster *c)
{
    net_rest(&c->net, 1000);
    ls_network_kill(c->net.network, c->net.hosts[c->n - 1]);
}

/* The dead one too comes to an end: it finds itself alone. */
TEST(one_that_is_killed_is_lost_to_all)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cluster c = {.n = 5, .script = kill_the_last, .done = lost_one};
        (void)run(&c, seed, NULL);
        for (size_t i = 0; i < c.n; i++) {
            assert_int_equal(c.members[i].status, LS_OK);
            assert_true(c.members[i].n_lost >= 1);
        }
    }
}

/* ---- slow links -------------------------------------------------------- */

/* 64 KiB at 10 kB/s take 6.5 s at least, and one is lost after 2 s of silence:
 * heartbeats go before bulk. */
TEST(nobody_is_lost_behind_long_events_on_a_slow_link)
{
    static const struct ls_network_path thin = {.delay_ns = LS_NS_PER_MS,
                                                .bytes_per_s = 10000};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct cluster c = {.n = 3, .bulk = BULK, .done = heard_bulk};
        (void)run(&c, seed, &thin);
        assert_all_heard(&c);
    }
}

/* What waits behind other bytes is not lost: it is not sent again and again,
 * which would make the wait longer still. */
TEST(a_slow_link_carries_reliable_events_about_once)
{
    static const struct ls_network_path thin = {.delay_ns = LS_NS_PER_MS,
                                                .bytes_per_s = 10000};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct cluster c = {
            .n = 3, .bulk = BULK, .reliable = true, .done = heard_bulk};
        uint64_t sent = 0, resent = 0;
        (void)run(&c, seed, &thin);
        assert_all_heard(&c);
        for (size_t i = 0; i < c.n; i++) {
            sent += c.members[i].stats.sent;
            resent += c.members[i].stats.resent;
        }
        assert_true(resent < sent / 4);
    }
}

static int take(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return LS_OK;
}

/* In a world that has room for so many. */
static ls_node *begin_within(uint32_t world_max, ls_host *host, uint32_t id,
                             const char *attach)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_node_options_init(&options);
    options.id = id;
    options.bind = id == 0 ? "tcp://127.0.0.1:21500" : "tcp://127.0.0.1:21501";
    options.attach = &attach;
    options.n_attach = attach == NULL ? 0 : 1;
    options.world_size = id == 0 ? 1 : 2;
    options.world_max = world_max;
    options.runtime = ls_host_runtime(host);
    options.shared_bytes = 0;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_on(node, "x", take, NULL));
    assert_ok(ls_node_start(node));
    return node;
}

static ls_node *begin_on(ls_host *host, uint32_t id, const char *attach)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    return begin_within(options.world_max, host, id, attach);
}

/* On a way whose round trips differ: little comes again, once they are known.
 */
static void emit_at_intervals(struct net *net)
{
    const struct ls_emission emission = {.event = "x",
                                         .delivery = LS_DELIVERY_RELIABLE};
    ls_node *node = begin_on(net->hosts[0], 0, NULL);
    ls_node *other = begin_on(net->hosts[1], 1, ls_node_endpoint(node));
    struct ls_node_stats early, late;
    for (int i = 0; i < 600; i++) {
        if (i == 100)
            ls_node_stats(node, &early);
        assert_ok(ls_emit_with(node, &emission));
        net_rest(net, 10);
    }
    ls_node_stats(node, &late);
    *(uint64_t *)net->self += late.resent - early.resent;
    ls_node_destroy(&other);
    ls_node_destroy(&node);
}

TEST(reliable_events_are_not_sent_again_where_nothing_is_lost)
{
    static const struct ls_network_path uneven = {
        .delay_ns = LS_NS_PER_MS, .jitter_ns = 60 * LS_NS_PER_MS};
    uint64_t resent = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct net net;
        net_open(&net, seed, &uneven);
        net.body = emit_at_intervals;
        net.self = &resent;
        assert_ok(ls_simulation_run(net.simulation, net_body, &net));
        net_close(&net);
    }
    assert_true(resent < 25);
}

static void resume_soon(void *arg)
{
    struct net *net = arg;
    net_rest(net, 30);
    ls_host_resume(net->hosts[0]);
}

/* While the first stands still, another takes the port of one that was killed:
 * whoever asks there finds somebody. The world has room for the two. */
static void take_its_port(struct net *net)
{
    ls_thread *thread = NULL;
    ls_node *node = begin_within(2, net->hosts[0], 0, NULL);
    ls_node *other = begin_within(2, net->hosts[1], 1, ls_node_endpoint(node));
    net_rest(net, 1000);
    ls_host_pause(net->hosts[0]);
    ls_network_kill(net->network, net->hosts[1]);
    net_rest(net, 600); /* it asks there less often by now */
    assert_ok(ls_thread_spawn(ls_simulation_runtime(net->simulation), &thread,
                              "resume", resume_soon, net));
    const int64_t since = net_now(net);
    ls_node *next = begin_within(2, net->hosts[2], 2, ls_node_endpoint(node));
    assert_true(net_now(net) - since < 200 * LS_NS_PER_MS);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_node_destroy(&next);
    ls_node_destroy(&other);
    ls_node_destroy(&node);
}

TEST(who_takes_the_address_of_one_that_was_killed_is_met_at_once)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct net net;
        net_open(&net, seed, NULL);
        net.body = take_its_port;
        assert_ok(ls_simulation_run(net.simulation, net_body, &net));
        net_close(&net);
    }
}

/* Long before its window is full. */
static void emit_to_one_that_stands(struct net *net)
{
    static const char bytes[1000];
    const struct ls_emission emission = {
        .event = "x", .data = bytes, .size = sizeof bytes, .timeout_ms = 100};
    ls_node *node = begin_on(net->hosts[0], 0, NULL);
    ls_node *other = begin_on(net->hosts[1], 1, ls_node_endpoint(node));
    int n = 0, status = LS_OK;
    net_rest(net, 1000);
    ls_host_pause(net->hosts[1]);
    while (n < 100 && (status = ls_emit_with(node, &emission)) == LS_OK)
        n++;
    assert_int_equal(status, LS_EAGAIN);
    assert_error_has("node 1 has no room for it: what this node sent it "
                     "before has not arrived yet");
    ls_host_resume(net->hosts[1]);
    assert_ok(ls_emit(node, "x", bytes, sizeof bytes));
    ls_node_destroy(&other);
    ls_node_destroy(&node);
}

TEST(an_emit_does_not_say_of_one_that_stands_that_its_window_is_full)
{
    net_run(NULL, emit_to_one_that_stands);
}

/* It is not waited for when it is lost: neither one that is short nor the rest
 * of one that is long. */
static void emit_to_one_that_is_lost(struct net *net)
{
    static const char bytes[12u << 20];
    for (uint32_t i = 1; i <= 2; i++) {
        const struct ls_emission emission = {.event = "x",
                                             .data = bytes,
                                             .size =
                                                 i == 1 ? 1000 : sizeof bytes,
                                             .to_one = true,
                                             .to = 1,
                                             .timeout_ms = LONG_MS};
        ls_node *node = begin_on(net->hosts[0], 0, NULL);
        ls_node *other = begin_on(net->hosts[i], 1, ls_node_endpoint(node));
        int status = LS_OK;
        net_rest(net, 1000);
        ls_host_pause(net->hosts[i]);
        const int64_t since = net_now(net);
        while (status == LS_OK)
            status = ls_emit_with(node, &emission);
        assert_int_equal(status, LS_ENOENT);
        assert_error_has("node 1 is gone");
        assert_true(net_now(net) - since < 5 * LS_NS_PER_S);
        ls_host_resume(net->hosts[i]);
        ls_node_destroy(&other);
        ls_node_destroy(&node);
    }
}

TEST(an_emit_to_one_that_is_lost_ends)
{
    net_run(NULL, emit_to_one_that_is_lost);
}

/* A slow link has it in many pieces, of which a window of few messages holds
 * some: there must be room for the rest, and for others. */
TEST(a_long_event_does_not_fill_a_window_of_few)
{
    static const struct ls_network_path thin = {.delay_ns = LS_NS_PER_MS,
                                                .bytes_per_s = 20000};
    struct cluster c = {
        .n = 2, .bulk = 4 * BULK, .window = 16, .done = heard_bulk};
    (void)run(&c, 1, &thin);
    assert_all_heard(&c);
}

/* ---- listeners that come while a long one is emitted --------------------- */

enum { COMING = 10 };

static int hear_long(void *self, const struct ls_event *event)
{
    (void)event;
    (void)atomic_fetch_add((atomic_uint *)self, 1);
    return LS_OK;
}

static ls_node *begin_narrow(ls_host *host, size_t index)
{
    char bind[64];
    struct ls_node_options options;
    ls_node *node = NULL;
    net_node(&options, bind, index, 1, ls_host_runtime(host));
    options.window_bytes = 2 << 20;
    options.shared_bytes = 0;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_start(node));
    return node;
}

/* Nobody has room for all of it, and most come when it is under way. */
static void emit_while_they_come(struct net *net)
{
    static const char bytes[24u << 20];
    const struct ls_emission emission = {.event = "long",
                                         .data = bytes,
                                         .size = sizeof bytes,
                                         .delivery = LS_DELIVERY_DROP};
    ls_node *nodes[COMING];
    atomic_uint heard = 0;
    for (size_t i = 0; i < COMING; i++)
        nodes[i] = begin_narrow(net->hosts[i], i);
    assert_ok(ls_on(nodes[1], "long", hear_long, &heard));
    net_rest(net, 1000);
    for (size_t i = 2; i < COMING; i++)
        assert_ok(ls_on(nodes[i], "long", hear_long, &heard));
    /* That they do comes at this moment. */
    ls_rest_until(ls_simulation_runtime(net->simulation),
                  net_now(net) + NETWORK_DELAY_NS);
    assert_ok(ls_emit_with(nodes[0], &emission));
    for (size_t i = 0; i < COMING; i++)
        ls_node_destroy(&nodes[i]);
    assert_int_equal(heard, 0);
}

TEST(who_comes_while_a_long_event_is_dropped_misses_it)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct net net;
        net_open(&net, seed, NULL);
        net.body = emit_while_they_come;
        assert_ok(ls_simulation_run(net.simulation, net_body, &net));
        net_close(&net);
    }
}

/* ---- seeds ------------------------------------------------------------- */

static const struct ls_network_path bad = {.delay_ns = LS_NS_PER_MS,
                                           .jitter_ns = 5 * LS_NS_PER_MS,
                                           .loss = 0.05,
                                           .duplicate = 0.05,
                                           .reorder = 0.05,
                                           .bytes_per_s = 10000000};

static bool heard_some(const struct member *m)
{
    return m->heard > EVENTS * m->cluster->n / 2;
}

static void upset(struct cluster *c)
{
    ls_host **hosts = c->net.hosts;
    net_rest(&c->net, 20);
    ls_network_reset(c->net.network, hosts[0], NULL);
    ls_host_pause(hosts[2]);
    net_rest(&c->net, 20);
    ls_host_resume(hosts[2]);
    assert_ok(ls_network_cut(c->net.network, hosts[1], hosts[2]));
    net_rest(&c->net, 20);
    ls_network_heal(c->net.network, NULL, NULL);
}

static uint64_t upset_run(uint64_t seed, enum ls_topology topology)
{
    struct cluster c = {
        .n = 5, .topology = topology, .script = upset, .done = heard_some};
    return run(&c, seed, &bad);
}

TEST(a_seed_gives_the_same_run_again)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const uint64_t mesh = upset_run(seed, LS_TOPOLOGY_MESH);
        const uint64_t star = upset_run(seed, LS_TOPOLOGY_STAR);
        void *elsewhere = malloc(12345); /* addresses do not matter */
        assert_true(upset_run(seed, LS_TOPOLOGY_MESH) == mesh);
        assert_true(upset_run(seed, LS_TOPOLOGY_STAR) == star);
        assert_true(upset_run(seed + 100, LS_TOPOLOGY_MESH) != mesh);
        free(elsewhere);
    }
}
