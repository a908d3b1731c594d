/* Large payloads in shared memory, in a simulated world of six under faults
 * that are drawn from a seed: messages that are lost, doubled and late, resets,
 * pauses that are taken for losses, a kill. Handlers read slowly, and look
 * twice: nobody ever reads what is not what was sent, and in the end every
 * block has come back. Some payloads are made where they are read, are sent
 * several times, and freed late. */
#include "network_fixture.h"

#include "base/seeds.h"
#include "blocks_fixture.h"
#include "lockstep/payload.h"
#include "lockstep/random.h"
#include "test.h"

#define MEMBERS 6
#define EVENTS  24
#define FAULTS  10
#define KIB     1024u

struct cluster;

struct site {
    struct cluster *cluster;
    ls_host *host;
    ls_runtime *runtime;
    ls_thread *thread;
    ls_node *node;
    size_t index;
    uint64_t last[2][MEMBERS], lives[2][MEMBERS]; /* that came, of each */
    void *kept; /* the latest payload that was made in place */
    bool emitted, quit;
    ls_mutex mutex;
    ls_cond changed;
    struct ls_rng rng;
};

struct cluster {
    struct net net;
    uint64_t seed, came, blocks, blocks_full, in_place;
    struct site members[MEMBERS];
};

struct head {
    uint64_t number, size, mark;
};

static uint64_t word_of(uint64_t mark, size_t at)
{
    return mark * UINT64_C(0x9e3779b97f4a7c15) + at;
}

/* In every page there are some. */
static bool is_whole(const struct ls_event *event, const struct head *head)
{
    struct head now;
    memcpy(&now, event->data, sizeof now);
    if (memcmp(&now, head, sizeof now) != 0 || head->size != event->size)
        return false;
    for (size_t at = 1024; at + 8 <= event->size; at += 1024) {
        uint64_t word;
        memcpy(&word, (const char *)event->data + at, sizeof word);
        if (word != word_of(head->mark, at))
            return false;
    }
    return true;
}

static void complain(const struct site *m, const struct ls_event *event,
                     const char *what)
{
    fail_msg("seed %llu: node %zu, event %llu of node %u: %s",
             (unsigned long long)m->cluster->seed, m->index + 1,
             (unsigned long long)event->sequence, event->origin, what);
}

static int on_large(void *self, const struct ls_event *event)
{
    struct site *const m = self;
    struct head head;
    memcpy(&head, event->data, sizeof head);
    if (ls_host_is_dead(m->host))
        return LS_OK;
    if (!is_whole(event, &head))
        complain(m, event, "it is not what was sent");
    const size_t from = event->origin - 1;
    const int sure = strcmp(event->name, "sure") == 0;
    const bool counts = event->sequence != 0 && from != m->index;
    if (m->lives[sure][from] == event->incarnation && counts &&
        m->last[sure][from] >= event->sequence)
        complain(m, event, "it is out of order");
    if (counts) {
        m->lives[sure][from] = event->incarnation;
        m->last[sure][from] = event->sequence;
    }
    const uint64_t most = ls_rng_below(&m->rng, 8) == 0 ? 300 : 8;
    ls_rest_until(m->runtime,
                  ls_now(m->runtime) +
                      (int64_t)ls_rng_below(&m->rng, most * LS_NS_PER_MS));
    if (!ls_host_is_dead(m->host) && !is_whole(event, &head))
        complain(m, event, "it was overwritten while it was read");
    m->cluster->came++;
    return LS_OK;
}

static int make(struct site *m)
{
    char bind[64];
    struct ls_node_options options;
    net_node(&options, bind, m->index, MEMBERS, m->runtime);
    options.world_max = MEMBERS;
    options.start_timeout_ms = 60000;
    options.heartbeat_ms = 50;
    options.silence_ms = 400;
    options.linger_ms = 1000;
    options.shared_bytes = 512 * KIB;
    int status = ls_node_create(&m->node, &options);
    if (status == LS_OK)
        status = ls_on(m->node, "large", on_large, m);
    if (status == LS_OK)
        status = ls_on(m->node, "sure", on_large, m);
    return status == LS_OK ? ls_node_start(m->node) : status;
}

static size_t new_size(struct site *m)
{
    return 64 * KIB + (size_t)ls_rng_below(&m->rng, 100 * KIB);
}

static void write_one(struct site *m, uint64_t number, char *data, size_t size)
{
    struct head head = {
        .number = number, .size = size, .mark = ls_rng_next(&m->rng)};
    memcpy(data, &head, sizeof head);
    for (size_t at = 1024; at + 8 <= head.size; at += 1024) {
        const uint64_t word = word_of(head.mark, at);
        memcpy(data + at, &word, sizeof word);
    }
}

/* What the faults do to an emit is not looked at here. */
static void send_one(struct site *m, char *data, size_t size, bool given)
{
    const bool one = ls_rng_below(&m->rng, 3) == 0;
    const bool sure = ls_rng_below(&m->rng, 2) == 0;
    const struct ls_emission in = {
        .event = sure ? "sure" : "large",
        .delivery = sure ? LS_DELIVERY_RELIABLE : LS_DELIVERY_BLOCK,
        .data = data,
        .size = size,
        .release = given ? ls_payload_free : NULL,
        .timeout_ms = 100,
        .to_one = one,
        .to =
            1 + (uint32_t)((m->index + 1 + ls_rng_below(&m->rng, MEMBERS - 1)) %
                           MEMBERS)};
    (void)!ls_emit_with(m->node, &in);
}

static void emit_copy(struct site *m, uint64_t number)
{
    const size_t size = new_size(m);
    char *const data = malloc(size);
    assert_non_null(data);
    write_one(m, number, data, size);
    send_one(m, data, size, false);
    free(data);
}

/* Sent once to three times, and kept until the next one is. */
static void emit_in_place(struct site *m, uint64_t number)
{
    const size_t size = new_size(m);
    struct ls_node_stats stats;
    void *data;
    assert_ok(ls_payload_alloc(&data, m->node, size));
    ls_node_stats(m->node, &stats);
    m->cluster->in_place += stats.blocks_held != 0;
    write_one(m, number, data, size);
    for (uint64_t n = ls_rng_below(&m->rng, 3); n > 0; n--)
        send_one(m, ls_payload_share(data), size, true);
    send_one(m, ls_payload_share(data), size, true);
    ls_payload_free(m->kept, NULL);
    m->kept = data;
}

static void member_main(void *arg)
{
    struct site *const m = arg;
    const bool made = make(m) == LS_OK;
    for (uint64_t i = 1; i <= EVENTS && made; i++) {
        if (ls_rng_below(&m->rng, 2) == 0)
            emit_in_place(m, i);
        else
            emit_copy(m, i);
        ls_rest_until(m->runtime,
                      ls_now(m->runtime) +
                          (int64_t)ls_rng_below(&m->rng, 40 * LS_NS_PER_MS));
    }
    ls_payload_free(m->kept, NULL);
    ls_mutex_lock(&m->mutex);
    m->emitted = true;
    while (!m->quit &&
           ls_cond_wait(&m->changed, &m->mutex, LS_FOREVER) == LS_OK)
        continue;
    ls_mutex_unlock(&m->mutex);
    ls_node_destroy(&m->node);
}

static void fault(struct cluster *c, struct ls_rng *random)
{
    struct net *const net = &c->net;
    ls_host *const a = net->hosts[ls_rng_below(random, MEMBERS)];
    ls_host *const b = net->hosts[ls_rng_below(random, MEMBERS)];
    switch (ls_rng_below(random, 4)) {
    case 0:
    case 1:
        if (a != b)
            ls_network_reset(net->network, a, b);
        break;
    default:
        ls_host_pause(a);
        net_rest(net, (int64_t)ls_rng_below(random, 900));
        ls_host_resume(a);
    }
}

static void begin_member(struct cluster *c, size_t index)
{
    struct site *const m = &c->members[index];
    *m = (struct site){.cluster = c,
                       .host = c->net.hosts[index],
                       .runtime = ls_host_runtime(c->net.hosts[index]),
                       .index = index};
    ls_rng_seed(&m->rng, c->seed, 20 + index);
    assert_ok(ls_mutex_init(&m->mutex, m->runtime));
    assert_ok(ls_cond_init(&m->changed, m->runtime));
    assert_ok(ls_thread_spawn(m->runtime, &m->thread, "node", member_main, m));
}

static void end_member(struct site *m)
{
    ls_mutex_lock(&m->mutex);
    m->quit = true;
    ls_cond_broadcast(&m->changed);
    ls_mutex_unlock(&m->mutex);
}

static bool all_have_emitted(const struct cluster *c)
{
    for (size_t i = 0; i < MEMBERS; i++)
        if (!c->members[i].emitted && !ls_host_is_dead(c->members[i].host))
            return false;
    return true;
}

static void body(struct net *net)
{
    struct cluster *const c = net->self;
    struct ls_rng *const random = ls_simulation_random(net->simulation);
    const struct ls_network_path quiet = {.delay_ns = 50 * LS_NS_PER_US};
    for (size_t i = 0; i < MEMBERS; i++)
        begin_member(c, i);
    const uint64_t kill_at = ls_rng_below(random, 2 * FAULTS);
    for (uint64_t i = 0; i < FAULTS; i++) {
        net_rest(net, 20 + (int64_t)ls_rng_below(random, 120));
        if (i == kill_at)
            ls_network_kill(net->network, net->hosts[MEMBERS - 1]);
        else
            fault(c, random);
    }
    assert_ok(ls_network_shape(net->network, NULL, NULL, &quiet));
    do
        net_rest(net, 10000); /* for slow handlers, and what was lost */
    while (!all_have_emitted(c));
    for (size_t i = 0; i < MEMBERS; i++)
        if (!ls_host_is_dead(c->members[i].host))
            /* All have emitted, handlers are through, and what was lost has
             * been told. */
            assert_no_blocks(c->members[i].node, c->seed, c->members[i].index,
                             &c->blocks, &c->blocks_full);
    for (size_t i = 0; i < MEMBERS; i++)
        end_member(&c->members[i]);
    for (size_t i = 0; i < MEMBERS; i++)
        assert_ok(ls_thread_join(&c->members[i].thread, LS_FOREVER));
}

/* Returns how many payloads went through blocks, and adds how often any was
 * made there. */
static uint64_t one_seed(uint64_t seed, uint64_t *in_place)
{
    struct cluster *const c = calloc(1, sizeof *c);
    struct ls_rng random;
    assert_non_null(c);
    ls_rng_seed(&random, seed, 0);
    const bool rough = ls_rng_below(&random, 2) == 0;
    const struct ls_network_path path = {
        .delay_ns = (int64_t)ls_rng_below(&random, 2 * LS_NS_PER_MS),
        .jitter_ns = (int64_t)ls_rng_below(&random, 2 * LS_NS_PER_MS),
        .loss = rough ? ls_rng_double(&random) * 0.1 : 0,
        .duplicate = ls_rng_double(&random) * 0.1,
        .reorder = ls_rng_double(&random) * 0.2};
    net_open(&c->net, seed, &path);
    c->net.body = body;
    c->net.self = c;
    c->seed = seed;
    assert_ok(ls_simulation_run(c->net.simulation, net_body, &c->net));
    for (size_t i = 0; i < MEMBERS; i++) {
        ls_cond_fini(&c->members[i].changed);
        ls_mutex_fini(&c->members[i].mutex);
    }
    const uint64_t blocks = c->blocks;
    if (getenv("VERBOSE") != NULL)
        print_message("seed %llu: %llu came, %llu in blocks, %llu found none, "
                      "%llu made in place\n",
                      (unsigned long long)seed, (unsigned long long)c->came,
                      (unsigned long long)c->blocks,
                      (unsigned long long)c->blocks_full,
                      (unsigned long long)c->in_place);
    *in_place += c->in_place;
    net_close(&c->net);
    free(c);
    return blocks;
}

TEST(under_faults_nobody_reads_what_was_not_sent_and_every_block_comes_back)
{
    const struct seeds seeds = seeds_of(40);
    uint64_t blocks = 0, in_place = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        blocks += one_seed(seed, &in_place);
    assert_true(blocks > 5 * (seeds.end - seeds.first));
    assert_true(in_place > 2 * (seeds.end - seeds.first));
}
