/* A store on a simulated network that cuts, resets, loses and doubles, and
 * whose home is killed and comes back: what is got was put, as a whole; what
 * was put is not forgotten; and every call ends in time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seeds.h"
#include "quiet.h"
#include "simulation_fixture.h"
#include "state/folder_fixture.h"
#include "store_bus.h"

#define N_CLIENTS  3
#define N_FAULTS   8
#define WAIT_MS    3000
#define VALUE_MAX  400000
#define HOME       0
#define LATE_NS    (500 * LS_NS_PER_MS) /* a host may be slow to look */
#define RECOVER_NS (60 * LS_NS_PER_S)

struct cluster;

/* Client i alone writes the names data-i and policy-i, numbers from 1 on. */
struct client {
    struct cluster *cluster;
    uint64_t index;
    ls_host *host;
    ls_runtime *runtime;
    ls_thread *thread;
    ls_node *node;
    ls_rpc *calls;
    struct store *store;
    struct ls_rng rng;
    uint64_t put, kept;           /* begun */
    uint64_t sure_put, sure_kept; /* returned */
    uint64_t sure_put_life;       /* in this life of the home */
    uint64_t n_put, n_got;
};

struct cluster {
    struct simulation sim;
    const char *folder;
    struct ls_rng *rng;
    struct client clients[N_CLIENTS];
    ls_host *home;
    ls_thread *home_thread;
    uint64_t life; /* of the home; odd while it is there */
    bool home_ends, ends;
    size_t n_done; /* clients that have recovered */
    ls_mutex mutex;
    ls_cond changed;
};

static void violation(const struct cluster *c, const char *what,
                      unsigned long long a, unsigned long long b)
{
    ls_simulation_violation(c->sim.simulation, "%s (%llu, %llu): %s", what, a,
                            b, ls_error_text());
}

/* ---- nodes ------------------------------------------------------------- */

static int make_node(ls_runtime *runtime, uint32_t id, ls_node **node,
                     ls_rpc **calls)
{
    static const char *const home[] = {"tcp://127.0.0.1:21500"};
    char bind[64];
    struct ls_node_options options;
    ls_node_options_init(&options);
    (void)snprintf(bind, sizeof bind, "tcp://127.0.0.1:%u", 21500 + id);
    options.id = id;
    options.bind = bind;
    options.attach = home;
    options.n_attach = id == HOME ? 0 : 1;
    options.world_size = 1;
    options.runtime = runtime;
    options.window_bytes = 2u << 20;
    int status = ls_node_create(node, &options);
    if (status == LS_OK)
        status = ls_rpc_open(calls, *node, NULL);
    return status;
}

static void home_main(void *self)
{
    struct cluster *c = self;
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    struct store *store = NULL;
    int status = make_node(ls_host_runtime(c->home), HOME, &node, &calls);
    const struct store_bus_options options = {
        .node = node, .calls = calls, .keep = c->folder};
    if (status == LS_OK)
        status = store_bus_open(&store, &options);
    if (status == LS_OK)
        status = ls_node_start(node);
    if (status != LS_OK)
        violation(c, "the home does not begin", c->life, 0);
    ls_mutex_lock(&c->mutex);
    while (!c->home_ends && status == LS_OK)
        status = ls_cond_wait(&c->changed, &c->mutex, LS_FOREVER);
    ls_mutex_unlock(&c->mutex);
    ls_node_stop(node, LS_OK);
    ls_rpc_close(&calls);
    store_close(&store);
    ls_node_destroy(&node);
}

static void begin_home(struct cluster *c)
{
    char name[32];
    c->life++;
    c->home_ends = false;
    (void)snprintf(name, sizeof name, "home%llu", (unsigned long long)c->life);
    c->home = simulation_host(&c->sim, name);
    assert_ok(ls_thread_spawn(ls_host_runtime(c->home), &c->home_thread, "home",
                              home_main, c));
}

static void end_home(struct cluster *c, bool killed)
{
    if (killed)
        ls_network_kill(c->sim.network, c->home);
    ls_mutex_lock(&c->mutex);
    c->life++;
    c->home_ends = true;
    ls_cond_broadcast(&c->changed);
    ls_mutex_unlock(&c->mutex);
    assert_ok(ls_thread_join(&c->home_thread, LS_FOREVER));
}

/* ---- clients ----------------------------------------------------------- */

/* Words that say who wrote it, and as which; all the same. */
static size_t fill(uint64_t *words, const struct client *client,
                   uint64_t number, bool keep)
{
    const uint64_t word = number << 8 | client->index << 1 | (keep ? 1 : 0);
    /* Some are long enough to come in parts. */
    const size_t most = (number % 8 == 0 ? VALUE_MAX : 2000) / sizeof word;
    const size_t n = 1 + number * 7919 % most;
    for (size_t i = 0; i < n; i++)
        words[i] = word;
    return n * sizeof word;
}

static void name_of(const struct client *client, bool keep, char name[32])
{
    (void)snprintf(name, 32, "%s-%llu", keep ? "policy" : "data",
                   (unsigned long long)client->index);
}

static void check_status(const struct client *client, const char *what,
                         int status, int64_t began)
{
    const int64_t took = ls_now(client->runtime) - began;
    if (took > WAIT_MS * LS_NS_PER_MS + LATE_NS)
        violation(client->cluster, "a call took too long",
                  (unsigned long long)took, client->index);
    if (status != LS_OK && status != LS_ELOST && status != LS_ETIMEDOUT &&
        status != LS_ENOENT)
        violation(client->cluster, what, client->index,
                  (unsigned long long)-status);
}

static int try_put(struct client *client, bool keep)
{
    struct cluster *c = client->cluster;
    uint64_t *words = malloc(VALUE_MAX);
    char name[32];
    name_of(client, keep, name);
    const uint64_t number = keep ? ++client->kept : ++client->put;
    const uint64_t life = c->life;
    const int64_t began = ls_now(client->runtime);
    const int status =
        store_put(client->store,
                  &(struct store_put){.name = name,
                                      .data = words,
                                      .size = fill(words, client, number, keep),
                                      .keep = keep,
                                      .wait_ms = WAIT_MS});
    free(words);
    check_status(client, "a put", status, began);
    if (status != LS_OK)
        return status;
    client->n_put++;
    if (keep) {
        client->sure_kept = number;
    } else {
        client->sure_put = number;
        client->sure_put_life = life;
    }
    return LS_OK;
}

/* least, most: numbers that it may have. */
static void check_value(const struct client *reader,
                        const struct client *writer, bool keep,
                        const struct store_blob *blob, uint64_t least,
                        uint64_t most)
{
    const uint64_t *words = blob->data;
    const uint64_t number = words[0] >> 8;
    uint64_t *expected = malloc(VALUE_MAX);
    if (fill(expected, writer, number, keep) != blob->size ||
        memcmp(expected, words, blob->size) != 0)
        violation(reader->cluster, "it is not what was put", number,
                  blob->size);
    if (number < least || number > most)
        violation(reader->cluster, "it is not one that may be there", number,
                  least);
    free(expected);
}

static int try_get(struct client *reader)
{
    struct cluster *c = reader->cluster;
    const struct client *writers[2];
    uint64_t least[2];
    bool keep[2], sure[2];
    char names[2][32];
    const char *const pointers[] = {names[0], names[1]};
    const uint64_t life = c->life;
    for (size_t i = 0; i < 2; i++) {
        writers[i] = &c->clients[ls_rng_below(&reader->rng, N_CLIENTS)];
        keep[i] = ls_rng_below(&reader->rng, 2) == 0;
        least[i] = keep[i] ? writers[i]->sure_kept : writers[i]->sure_put;
        sure[i] = keep[i] || writers[i]->sure_put_life == life;
        name_of(writers[i], keep[i], names[i]);
    }
    struct store_blob blobs[2];
    const int64_t began = ls_now(reader->runtime);
    const int status = store_get(reader->store, pointers, 2, blobs, WAIT_MS);
    check_status(reader, "a get", status, began);
    const bool same_life = c->life == life && life % 2 == 1;
    for (size_t i = 0; i < 2 && status == LS_OK; i++) {
        const bool bound = keep[i] || (sure[i] && same_life);
        check_value(reader, writers[i], keep[i], &blobs[i],
                    bound ? least[i] : 1,
                    keep[i] ? writers[i]->kept : writers[i]->put);
        store_blob_fini(&blobs[i]);
    }
    if (status == LS_ENOENT && same_life && sure[0] && least[0] > 0 &&
        sure[1] && least[1] > 0)
        violation(c, "it was put, and is not there", least[0], least[1]);
    reader->n_got += status == LS_OK;
    return status;
}

static void rest(ls_runtime *runtime, int64_t ms)
{
    ls_rest_until(runtime, ls_now(runtime) + ms * LS_NS_PER_MS);
}

/* When all faults are over, it works again. */
static void recover(struct client *client)
{
    const int64_t deadline = ls_now(client->runtime) + RECOVER_NS;
    int status = LS_ETIMEDOUT;
    while (status != LS_OK && ls_now(client->runtime) < deadline) {
        status = try_put(client, true);
        if (status == LS_OK)
            status = try_put(client, false);
        if (status == LS_OK)
            break;
        rest(client->runtime, 100);
    }
    if (status != LS_OK)
        violation(client->cluster, "it does not work again", client->index, 0);
}

static void client_main(void *self)
{
    struct client *client = self;
    struct cluster *c = client->cluster;
    int status = make_node(client->runtime, (uint32_t)client->index,
                           &client->node, &client->calls);
    if (status == LS_OK)
        status = store_bus_open(
            &client->store, &(struct store_bus_options){.node = client->node,
                                                        .calls = client->calls,
                                                        .coordinator = HOME});
    if (status == LS_OK)
        status = ls_node_start(client->node);
    if (status != LS_OK)
        violation(c, "a client does not begin", client->index, 0);
    while (!c->ends && status == LS_OK) {
        const uint64_t dice = ls_rng_below(&client->rng, 8);
        if (dice == 0)
            (void)try_put(client, true);
        else if (dice < 4)
            (void)try_put(client, false);
        else
            (void)try_get(client);
        rest(client->runtime, (int64_t)ls_rng_below(&client->rng, 60));
    }
    recover(client);
    ls_mutex_lock(&c->mutex);
    c->n_done++;
    ls_cond_broadcast(&c->changed);
    ls_mutex_unlock(&c->mutex);
    ls_node_stop(client->node, LS_OK);
    ls_rpc_close(&client->calls);
    store_close(&client->store);
    ls_node_destroy(&client->node);
}

/* ---- what goes wrong ---------------------------------------------------- */

static void cut_for_a_while(struct cluster *c, ls_runtime *runtime)
{
    const ls_host *one = c->clients[ls_rng_below(c->rng, N_CLIENTS)].host;
    const bool both = ls_rng_below(c->rng, 2) == 0;
    assert_ok(ls_network_cut(c->sim.network, one, NULL));
    if (both)
        assert_ok(ls_network_cut(c->sim.network, NULL, one));
    rest(runtime, 50 + (int64_t)ls_rng_below(c->rng, 6000));
    ls_network_heal(c->sim.network, NULL, NULL);
}

static void inject(struct cluster *c, ls_runtime *runtime)
{
    switch (ls_rng_below(c->rng, 4)) {
    case 0:
        ls_network_reset(c->sim.network, NULL, NULL);
        break;
    case 1:
        cut_for_a_while(c, runtime);
        break;
    case 2:
        ls_host_pause(c->home);
        rest(runtime, 50 + (int64_t)ls_rng_below(c->rng, 4000));
        ls_host_resume(c->home);
        break;
    default:
        end_home(c, ls_rng_below(c->rng, 4) != 0);
        rest(runtime, (int64_t)ls_rng_below(c->rng, 3000));
        begin_home(c);
    }
}

static void script(void *self)
{
    struct cluster *c = self;
    ls_runtime *runtime = ls_simulation_runtime(c->sim.simulation);
    assert_ok(ls_mutex_init(&c->mutex, runtime));
    assert_ok(ls_cond_init(&c->changed, runtime));
    begin_home(c);
    for (size_t i = 0; i < N_CLIENTS; i++) {
        struct client *client = &c->clients[i];
        assert_ok(ls_thread_spawn(client->runtime, &client->thread, "client",
                                  client_main, client));
    }
    for (int i = 0; i < N_FAULTS; i++) {
        rest(runtime, 20 + (int64_t)ls_rng_below(c->rng, 800));
        inject(c, runtime);
    }
    c->ends = true;
    for (size_t i = 0; i < N_CLIENTS; i++)
        assert_ok(ls_thread_join(&c->clients[i].thread, LS_FOREVER));
    end_home(c, false);
    ls_cond_fini(&c->changed);
    ls_mutex_fini(&c->mutex);
}

static void prepare_client(struct cluster *c, size_t i, uint64_t seed)
{
    struct client *client = &c->clients[i];
    char name[32];
    client->cluster = c;
    client->index = i + 1;
    (void)snprintf(name, sizeof name, "client%zu", i + 1);
    ls_rng_seed(&client->rng, seed, i + 1);
    client->host = simulation_host(&c->sim, name);
    client->runtime = ls_host_runtime(client->host);
}

static void remove_kept(const char *folder)
{
    char path[256];
    for (int i = 1; i <= N_CLIENTS; i++) {
        (void)snprintf(path, sizeof path, "%s/policy-%d", folder, i);
        (void)unlink(path);
    }
}

static void run(const char *folder, uint64_t seed, uint64_t *n_put,
                uint64_t *n_got)
{
    struct cluster c = {.folder = folder};
    const struct ls_network_path path = {.delay_ns = 200 * LS_NS_PER_US,
                                         .jitter_ns = LS_NS_PER_MS,
                                         .loss = 0.01,
                                         .duplicate = 0.01,
                                         .reorder = 0.02};
    simulation_open(&c.sim, seed, &path);
    c.rng = ls_simulation_random(c.sim.simulation);
    for (size_t i = 0; i < N_CLIENTS; i++)
        prepare_client(&c, i, seed);
    simulation_run(&c.sim, script, &c);
    for (size_t i = 0; i < N_CLIENTS; i++) {
        *n_put += c.clients[i].n_put;
        *n_got += c.clients[i].n_got;
    }
    simulation_close(&c.sim);
    remove_kept(folder);
}

EACH_TEST(folder_set_up, folder_tear_down)

TEST(it_keeps_its_promises_whatever_fails)
{
    const struct place *place = *state;
    const struct seeds seeds = seeds_of(40);
    uint64_t n_put = 0, n_got = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        run(place->folder, seed, &n_put, &n_got);
    print_message("%llu puts, %llu gets\n", (unsigned long long)n_put,
                  (unsigned long long)n_got);
    assert_true(n_put > N_CLIENTS && n_got > 0);
}

int main(void)
{
    return tests_run_quietly();
}
