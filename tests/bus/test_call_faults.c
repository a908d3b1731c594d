/* Calls between four nodes under faults drawn from a seed: lost and doubled
 * messages, cuts, resets, pauses, kills, farewells and restarts. Each call ends
 * once, none is done twice, and no answer is to another call. Bodies, in shared
 * memory or not, are what was sent for as long as they are kept, and leave no
 * block behind. */
#include "network_fixture.h"

#include "base/seeds.h"
#include "blocks_fixture.h"
#include "lockstep/call.h"
#include "lockstep/payload.h"
#include "lockstep/random.h"
#include "quiet.h"
#include "test.h"

#define MEMBERS 4
#define LIVES   48
#define FAULTS  14
#define CALLS   160 /* of one life */
#define KEPT    3   /* bodies that a life keeps */
#define STRIDE  31  /* bytes of a body between two that are looked at */

struct cluster;
struct life;

/* One call, and what became of it. */
struct record {
    struct life *life;
    ls_call *call; /* NULL: destroyed */
    uint32_t to;
    bool started, dropped; /* dropped: destroyed while it was open */
    int ends, runs;        /* runs: of its handler, anywhere */
};

/* What an answer says. */
struct reply {
    struct record *of;
    const struct life *by;
};

struct kept {
    const struct record *of; /* NULL: nothing is kept */
    struct ls_body body;
};

/* One life of a node, as a program on a host of its own. */
struct life {
    struct cluster *cluster;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    ls_rpc *calls;
    size_t index;
    bool up, quits;
    ls_mutex mutex;
    ls_cond changed;
    struct ls_rng random;
    ls_request *held[64];
    size_t n_held;
    struct record records[CALLS];
    size_t n_records;
    struct kept kept[KEPT];
};

struct cluster {
    struct net net;
    uint64_t seed;
    bool quiet; /* no more calls */
    struct life lives[LIVES];
    size_t n_lives;
    struct life *now[MEMBERS]; /* who lives; NULL: dead */
    uint64_t ended[8], stale;
    uint64_t n_made;  /* bodies */
    int64_t n_bodies; /* that are not released */
    uint64_t n_mirrored, n_blocks, n_blocks_full;
    const char *wrong; /* the first */
};

static void must(struct cluster *c, bool right, const char *what)
{
    if (!right && c->wrong == NULL)
        c->wrong = what;
}

/* ---- bodies ------------------------------------------------------------ */

static void release(void *data, void *hint)
{
    struct cluster *c = hint;
    c->n_bodies--;
    free(data);
}

static void release_payload(void *data, void *hint)
{
    struct cluster *c = hint;
    c->n_bodies--;
    ls_payload_free(data, NULL);
}

/* Each second one is made where it is read, if that can be. */
static struct ls_body new_body(const struct life *life, size_t size)
{
    struct cluster *c = life->cluster;
    const bool in_place = c->n_made++ % 2 == 0;
    void *data = in_place ? NULL : malloc(size);
    if (in_place)
        assert_ok(ls_payload_alloc(&data, life->node, size));
    assert_non_null(data);
    c->n_bodies++;
    return (struct ls_body){data, size, in_place ? release_payload : release,
                            c};
}

static unsigned char byte_at(const struct record *record, size_t i)
{
    return (unsigned char)((size_t)(record - record->life->records) + i / 7);
}

/* Of each third call, and of each third of these long, or very long. */
static size_t body_size(const struct record *record)
{
    const size_t n = (size_t)(record - record->life->records);
    if (n % 3 != 0)
        return 0;
    return n % 9 != 0 ? 100 + n : n % 18 != 0 ? 40000 + n : 65536 + 300 * n;
}

static struct ls_body body_of(struct record *record)
{
    const size_t size = body_size(record);
    if (size == 0)
        return (struct ls_body){.data = NULL};
    const struct ls_body body = new_body(record->life, size);
    unsigned char *const data = body.data;
    for (size_t i = 0; i < size; i += STRIDE)
        data[i] = byte_at(record, i);
    return body;
}

static void must_be_body(const struct record *record, const void *body,
                         size_t size)
{
    const unsigned char *bytes = body;
    bool right = size == body_size(record);
    for (size_t i = 0; i < size && right; i += STRIDE)
        right = bytes[i] == byte_at(record, i);
    must(record->life->cluster, right, "a body");
}

static struct ls_body copy_of(const struct life *life,
                              const struct ls_body *body)
{
    if (body->size == 0)
        return *body;
    const struct ls_body copy = new_body(life, body->size);
    memcpy(copy.data, body->data, body->size);
    return copy;
}

/* Keep it, if there is room; returns whether it is. */
static bool keep(struct life *life, const struct record *of,
                 const struct ls_body *body)
{
    struct kept *kept = NULL;
    ls_mutex_lock(&life->mutex);
    for (size_t i = 0; i < KEPT && body->size > 65536; i++)
        if (life->kept[i].of == NULL)
            kept = &life->kept[i];
    if (kept != NULL)
        *kept = (struct kept){of, *body};
    ls_mutex_unlock(&life->mutex);
    return kept != NULL;
}

/* It is still what it was. */
static void let_go_one(struct life *life, size_t i)
{
    ls_mutex_lock(&life->mutex);
    struct kept kept = life->kept[i];
    life->kept[i].of = NULL;
    ls_mutex_unlock(&life->mutex);
    if (kept.of == NULL)
        return;
    if (!ls_host_is_dead(life->host))
        must_be_body(kept.of, kept.body.data, kept.body.size);
    if (life->cluster->seed % 4 == 0)
        must(life->cluster, ls_body_keep(&kept.body) == LS_OK, "keep");
    ls_body_release(&kept.body);
}

static void let_go(struct life *life)
{
    for (size_t i = 0; i < KEPT; i++)
        let_go_one(life, i);
}

/* ---- serving ----------------------------------------------------------- */

static void on_cancel(void *self)
{
    struct life *life = self;
    ls_cond_signal(&life->changed);
}

/* Answer with the body that came. */
static void mirror(struct life *life, ls_request *request,
                   const struct reply *answer)
{
    struct ls_body body, copy;
    ls_request_take_body(request, &body);
    life->cluster->n_mirrored += body.size != 0 ? 1 : 0;
    copy = copy_of(life, &body);
    if (keep(life, answer->of, &body)) {
        (void)ls_request_complete_with(&request, answer, sizeof *answer, &copy);
        return;
    }
    (void)ls_request_complete_with(&request, answer, sizeof *answer, &body);
    ls_body_release(&copy);
}

static void finish_one(struct life *life, ls_request *request)
{
    size_t size;
    struct record *const *of = ls_request_data(request, &size);
    const struct reply answer = {.of = *of, .by = life};
    if ((*of - (*of)->life->records) % 5 == 0)
        (void)ls_request_fail(&request, "as it was asked");
    else
        mirror(life, request, &answer);
}

static int on_request(void *self, ls_request *request)
{
    struct life *life = self;
    size_t size;
    struct record *const *of = ls_request_data(request, &size);
    must(life->cluster, size == sizeof(struct record *), "data");
    must(life->cluster, (*of)->to == ls_node_id(life->node), "another's");
    must(life->cluster,
         ls_request_from(request) == (uint32_t)(*of)->life->index + 1, "whose");
    const void *body = ls_request_body(request, &size);
    must_be_body(*of, body, size);
    (*of)->runs++;
    ls_mutex_lock(&life->mutex);
    const bool holds = life->n_held < 64 && ls_rng_below(&life->random, 2) == 0;
    ls_mutex_unlock(&life->mutex);
    if (!holds) {
        finish_one(life, request);
        return LS_OK;
    }
    ls_request_on_cancel(request, on_cancel, life);
    ls_mutex_lock(&life->mutex);
    life->held[life->n_held++] = request;
    ls_mutex_unlock(&life->mutex);
    return LS_OK;
}

static void answer_one(struct life *life)
{
    ls_mutex_lock(&life->mutex);
    ls_request *request = NULL;
    if (life->n_held != 0)
        request = life->held[--life->n_held];
    ls_mutex_unlock(&life->mutex);
    if (request != NULL)
        finish_one(life, request);
}

/* ---- asking ------------------------------------------------------------ */

static void on_ended(void *self, ls_call *call)
{
    struct record *record = self;
    struct cluster *c = record->life->cluster;
    const struct ls_call_result *result = ls_call_result(call);
    record->ends++;
    must(c, ls_call_state_is_end(result->state), "no end");
    if (result->state == LS_CALL_COMPLETED) {
        const struct reply *answer = result->data;
        must(c, result->size == sizeof *answer && answer->of == record,
             "the answer to another call");
        must_be_body(record, result->body, result->body_size);
        must(c, answer->by->index + 1 == record->to, "by another");
        must(c, record->runs == 1, "completed, and not done");
        struct ls_body body;
        ls_call_take_body(call, &body);
        if (!keep(record->life, record, &body))
            ls_body_release(&body);
    } else if (result->state == LS_CALL_FAILED) {
        must(c, record->runs == 1, "failed, and not done");
    } else {
        must(c, result->text[0] != '\0', "no text");
    }
}

static void start_one(struct life *life)
{
    struct record *record = &life->records[life->n_records];
    if (life->n_records == CALLS)
        return;
    *record = (struct record){
        .life = life, .to = (uint32_t)ls_rng_below(&life->random, MEMBERS) + 1};
    const struct ls_call_options options = {
        .to = record->to,
        .name = "work",
        .data = &record,
        .size = sizeof record,
        .body = body_of(record),
        .timeout_ms = 1 + (int)ls_rng_below(&life->random, 5000),
        .ended = on_ended,
        .self = record};
    const int status = ls_call_start(&record->call, life->calls, &options);
    record->started = status == LS_OK;
    must(life->cluster,
         status == LS_OK || status == LS_ENOENT || status == LS_EAGAIN ||
             status == LS_ECLOSED,
         "start");
    if (record->started)
        life->n_records++;
}

/* Cancel one, or destroy it while it may be open. */
static void give_up_one(struct life *life)
{
    if (life->n_records == 0)
        return;
    struct record *record =
        &life->records[ls_rng_below(&life->random, life->n_records)];
    if (record->call == NULL)
        return;
    if (ls_rng_below(&life->random, 2) == 0) {
        ls_call_cancel(record->call);
    } else {
        ls_call_destroy(&record->call);
        record->dropped = true;
    }
}

static int begin(struct life *life)
{
    static const char *const all[] = {
        "tcp://127.0.0.1:21500", "tcp://127.0.0.1:21501",
        "tcp://127.0.0.1:21502", "tcp://127.0.0.1:21503"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = (uint32_t)life->index + 1;
    options.bind = all[life->index];
    options.attach = all;
    options.n_attach = MEMBERS;
    options.world_max = MEMBERS;
    options.start_timeout_ms = 60000;
    options.linger_ms = 500;
    options.shared_bytes = life->cluster->seed % 2 == 0 ? 512 << 10 : 0;
    options.runtime = ls_host_runtime(life->host);
    int status = ls_node_create(&life->node, &options);
    if (status == LS_OK)
        status = ls_rpc_open(
            &life->calls, life->node,
            &(struct ls_rpc_options){
                .max_calls = 24,
                .max_requests = 4,
                .n_workers = ls_rng_below(&life->random, 2) == 0 ? 2 : 0});
    if (status == LS_OK)
        status =
            ls_rpc_serve(life->calls, "work", LS_CALL_ANYONE, on_request, life);
    return status == LS_OK ? ls_node_start(life->node) : status;
}

static void end(struct life *life)
{
    struct ls_rpc_stats stats;
    if (ls_rng_below(&life->random, 2) == 0)
        ls_node_stop(life->node, LS_OK);
    ls_rpc_stats(life->calls, &stats);
    for (size_t i = 0; i < 6; i++)
        life->cluster->ended[i] += stats.ended[i];
    life->cluster->stale += stats.stale;
    ls_rpc_close(&life->calls);
    while (life->n_held != 0)
        answer_one(life);
    for (size_t i = 0; i < life->n_records; i++) {
        const struct record *r = &life->records[i];
        must(life->cluster, r->dropped ? r->ends <= 1 : r->ends == 1,
             "a call that has not ended once");
        ls_call_destroy(&life->records[i].call);
    }
    ls_node_destroy(&life->node);
    ls_rest_until(ls_host_runtime(life->host),
                  ls_now(ls_host_runtime(life->host)) + LS_NS_PER_S);
    let_go(life); /* though the node is no more */
}

static bool rest(struct life *life)
{
    ls_runtime *runtime = ls_host_runtime(life->host);
    const int64_t at = ls_now(runtime) +
                       (int64_t)ls_rng_below(&life->random, 200 * LS_NS_PER_MS);
    ls_mutex_lock(&life->mutex);
    if (!life->quits && ls_cond_wait(&life->changed, &life->mutex, at) == LS_OK)
        (void)life; /* somebody cancelled */
    const bool quits = life->quits;
    ls_mutex_unlock(&life->mutex);
    return !quits;
}

static void life_main(void *arg)
{
    struct life *life = arg;
    life->up = begin(life) == LS_OK;
    must(life->cluster, life->up || ls_host_is_dead(life->host), "begin");
    while (rest(life)) {
        const uint64_t what = ls_rng_below(&life->random, 10);
        if (what < 5 && !life->cluster->quiet)
            start_one(life);
        else if (what < 6 && !life->cluster->quiet)
            give_up_one(life);
        else
            answer_one(life);
        if (life->cluster->quiet || what == 0)
            let_go_one(life, ls_rng_below(&life->random, KEPT));
    }
    end(life);
}

/* ---- faults ------------------------------------------------------------ */

static void begin_life(struct cluster *c, size_t index)
{
    struct life *life = &c->lives[c->n_lives++];
    *life = (struct life){.cluster = c, .index = index};
    ls_rng_seed(&life->random, c->seed, c->n_lives);
    assert_ok(ls_host_create(&life->host, c->net.simulation, "host"));
    assert_ok(ls_network_join(c->net.network, life->host));
    ls_runtime *runtime = ls_host_runtime(life->host);
    assert_ok(ls_mutex_init(&life->mutex, runtime));
    assert_ok(ls_cond_init(&life->changed, runtime));
    assert_ok(ls_thread_spawn(runtime, &life->thread, "life", life_main, life));
    c->now[index] = life;
}

static void quit(struct cluster *c, size_t index, bool kills)
{
    struct life *life = c->now[index];
    if (life == NULL || ls_host_is_paused(life->host))
        return;
    if (kills)
        ls_network_kill(c->net.network, life->host);
    else if (!life->up)
        return;
    c->now[index] = NULL;
    ls_mutex_lock(&life->mutex);
    life->quits = true;
    ls_cond_signal(&life->changed);
    ls_mutex_unlock(&life->mutex);
    if (!kills)
        assert_ok(ls_thread_join(&life->thread, LS_FOREVER));
}

static void heal(struct cluster *c)
{
    ls_network_heal(c->net.network, NULL, NULL);
    for (size_t i = 0; i < MEMBERS; i++)
        if (c->now[i] != NULL)
            ls_host_resume(c->now[i]->host);
}

static void fault(struct cluster *c, struct ls_rng *random)
{
    const size_t a = (size_t)ls_rng_below(random, MEMBERS);
    const size_t b =
        (a + 1 + (size_t)ls_rng_below(random, MEMBERS - 1)) % MEMBERS;
    ls_host *from = c->now[a] != NULL ? c->now[a]->host : NULL;
    ls_host *to = c->now[b] != NULL ? c->now[b]->host : NULL;
    switch (ls_rng_below(random, 8)) {
    case 0:
        if (from != NULL && to != NULL)
            assert_ok(ls_network_cut(c->net.network, from, to));
        break;
    case 1:
        if (from != NULL && to != NULL)
            ls_network_reset(c->net.network, from, to);
        break;
    case 2:
        if (from != NULL)
            ls_host_pause(from);
        break;
    case 3:
    case 4:
        heal(c);
        break;
    case 5:
        quit(c, a, true);
        break;
    case 6:
        quit(c, a, false);
        break;
    default:
        if (c->now[a] == NULL && c->n_lives < LIVES)
            begin_life(c, a);
    }
}

static void assert_nothing_open(const struct cluster *c)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        struct ls_rpc_stats stats;
        if (c->now[i] == NULL)
            continue;
        ls_rpc_stats(c->now[i]->calls, &stats);
        if (stats.open_calls != 0 || stats.open_requests != 0)
            fail_msg("seed %llu: node %zu: %zu calls and %zu requests are open",
                     (unsigned long long)c->seed, i + 1, stats.open_calls,
                     stats.open_requests);
    }
}

static void storm(struct net *net)
{
    struct cluster *c = net->self;
    struct ls_rng *random = ls_simulation_random(net->simulation);
    for (size_t i = 0; i < MEMBERS; i++)
        begin_life(c, i);
    net_rest(net, 2000);
    for (size_t i = 0; i < FAULTS; i++) {
        fault(c, random);
        net_rest(net, (int64_t)ls_rng_below(random, 2500));
    }
    heal(c);
    net_rest(net, 1000);
    c->quiet = true;
    net_rest(net, 20000);
    assert_nothing_open(c);
    for (size_t i = 0; i < MEMBERS; i++)
        if (c->now[i] != NULL && c->now[i]->up)
            assert_no_blocks(c->now[i]->node, c->seed, c->now[i]->index,
                             &c->n_blocks, &c->n_blocks_full);
    for (size_t i = 0; i < MEMBERS; i++)
        quit(c, i, false);
    for (size_t i = 0; i < c->n_lives; i++)
        if (c->lives[i].thread != NULL)
            assert_ok(ls_thread_join(&c->lives[i].thread, LS_FOREVER));
}

static void check(const struct cluster *c)
{
    for (size_t i = 0; i < c->n_lives; i++)
        for (size_t j = 0; j < c->lives[i].n_records; j++)
            if (c->lives[i].records[j].runs > 1)
                fail_msg("seed %llu: node %zu's call %zu was done twice",
                         (unsigned long long)c->seed, i + 1, j);
    if (c->wrong != NULL)
        fail_msg("seed %llu: %s", (unsigned long long)c->seed, c->wrong);
}

static void one_seed(uint64_t seed, uint64_t totals[10])
{
    struct cluster *c = calloc(1, sizeof *c);
    assert_non_null(c);
    net_open(&c->net, seed, net_path_of(seed));
    c->seed = seed;
    c->net.self = c;
    c->net.body = storm;
    if (ls_simulation_run(c->net.simulation, net_body, &c->net) != LS_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, ls_error_text());
    check(c);
    for (size_t i = 0; i < 6; i++)
        totals[i] += c->ended[i];
    totals[6] += c->stale;
    totals[7] += c->n_mirrored;
    totals[8] += c->n_blocks;
    totals[9] += c->n_blocks_full;
    for (size_t i = 0; i < c->n_lives; i++) {
        ls_cond_fini(&c->lives[i].changed);
        ls_mutex_fini(&c->lives[i].mutex);
    }
    net_close(&c->net);
    if (c->n_bodies != 0)
        fail_msg("seed %llu: %lld bodies are not released",
                 (unsigned long long)seed, (long long)c->n_bodies);
    free(c);
}

TEST(each_call_ends_once_and_is_done_at_most_once)
{
    const struct seeds seeds = seeds_of(200);
    uint64_t totals[10] = {0};
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        one_seed(seed, totals);
    print_message("completed %llu, failed %llu, refused %llu, lost %llu, "
                  "timeout %llu, cancelled %llu; stale %llu; bodies %llu; "
                  "blocks %llu, full %llu\n",
                  (unsigned long long)totals[0], (unsigned long long)totals[1],
                  (unsigned long long)totals[2], (unsigned long long)totals[3],
                  (unsigned long long)totals[4], (unsigned long long)totals[5],
                  (unsigned long long)totals[6], (unsigned long long)totals[7],
                  (unsigned long long)totals[8], (unsigned long long)totals[9]);
    if (seeds.end - seeds.first < 50)
        return;
    for (size_t i = 0; i < 6; i++) /* none of the ends is left out */
        assert_true(totals[i] != 0);
    assert_true(totals[7] != 0 && totals[8] != 0);
}

int main(void)
{
    return tests_run_quietly();
}
