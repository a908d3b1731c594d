/* learner_service.h, as a specification: learners that do a work together. A
 * coordinator made by hand gives it to the first of them. */
#include "learner_bench.h"
#include "test.h"

enum { RANKS = 3, MASTER = 0 };

/* As the toy of learner_bench.h, but that all learn from what all have. */
struct rank {
    struct toy_learner toy; /* first: its functions are used */
    ls_group *group;        /* borrow */
    int64_t own;            /* samples that it has learned from itself */
    int64_t skew;           /* by which its weights go wrong */
    struct bench_node at;
    learner_service *service;
    ls_task *task;
    ls_thread *runner;
    int status;
};

struct ranks {
    struct rank ranks[RANKS]; /* of nodes 1, 2, 3 */
    struct bench_node master;
    struct toy_store *store;
    ls_writer *writer;
    unsigned n_data;
};

static void set_group(void *self, ls_group *group)
{
    struct rank *rank = self;
    rank->group = group;
}

static int learn_together(void *self, const struct learner_lesson *lesson)
{
    struct rank *rank = self;
    int64_t n = (int64_t)lesson->n;
    rank->own += n;
    int status = toy_learn(&rank->toy, lesson);
    if (status == LS_OK && rank->group != NULL)
        status = ls_group_all_reduce(rank->group, &n, 1, LS_GROUP_I64,
                                     LS_GROUP_SUM, LS_WAIT_DEFAULT);
    rank->toy.weights += n - 1 + rank->skew;
    return status;
}

static const struct learner_ops rank_ops = {.reset = toy_reset,
                                            .load = toy_load,
                                            .save = toy_save,
                                            .load_training = toy_load_training,
                                            .save_training = toy_save_training,
                                            .set_group = set_group,
                                            .learn = learn_together};

static void make_node(struct bench_node *at, uint32_t id, unsigned round)
{
    struct ls_node_options options;
    char bind[64], attach[64];
    const char *to = attach;
    ls_node_options_init(&options);
    (void)snprintf(bind, sizeof bind, "inproc://ranks-%u-%u", round,
                   (unsigned)id);
    (void)snprintf(attach, sizeof attach, "inproc://ranks-%u-1", round);
    options.bind = bind;
    options.attach = &to;
    options.n_attach = 1;
    options.id = id;
    options.role = id == MASTER ? "coordinator" : "learner";
    options.world_size = options.world_max = RANKS + 1;
    options.start_timeout_ms = BENCH_MS;
    assert_ok(ls_node_create(&at->node, &options));
    assert_ok(ls_rpc_open(&at->calls, at->node, NULL));
}

static void run(void *arg)
{
    struct rank *rank = arg;
    rank->status = ls_task_run(rank->task, UINT64_MAX);
}

static void make_rank(struct ranks *all, size_t i, unsigned round)
{
    struct rank *rank = &all->ranks[i];
    make_node(&rank->at, (uint32_t)i + 1, round);
    gate_init(&rank->toy.gate);
    assert_ok(ls_task_create(&rank->task,
                             &(struct ls_task_options){.node = rank->at.node}));
    assert_ok(learner_service_create(
        &rank->service,
        &(struct learner_service_options){.common = {.node = rank->at.node,
                                                     .calls = rank->at.calls,
                                                     .store = &all->store->base,
                                                     .coordinator = MASTER,
                                                     .gpu = 1.0,
                                                     .cpu = 2.0},
                                          .ops = &rank_ops,
                                          .self = rank,
                                          .stacks = 2,
                                          .loaders = 1}));
    learner_service_use(rank->service, rank->task);
}

static struct ranks *open_ranks(void)
{
    static unsigned round;
    struct ranks *all = calloc(1, sizeof *all);
    round++;
    all->store = toy_open(ls_runtime_threads());
    assert_ok(ls_writer_create(&all->writer));
    for (size_t i = 0; i < RANKS; i++)
        make_rank(all, i, round);
    make_node(&all->master, MASTER, round);
    struct bench_node *nodes[RANKS + 1];
    for (size_t i = 0; i <= RANKS; i++) {
        nodes[i] = i < RANKS ? &all->ranks[i].at : &all->master;
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &nodes[i]->starter,
                                  "start", bench_start_node, nodes[i]));
    }
    for (size_t i = 0; i <= RANKS; i++) {
        assert_ok(ls_thread_join(&nodes[i]->starter, bench_deadline()));
        assert_ok(nodes[i]->status);
    }
    for (size_t i = 0; i < RANKS; i++) {
        assert_ok(
            ls_rpc_connect(all->master.calls, (uint32_t)i + 1, 0, BENCH_MS));
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &all->ranks[i].runner,
                                  "runner", run, &all->ranks[i]));
    }
    return all;
}

static void end_rank(struct rank *rank)
{
    if (rank->at.node == NULL)
        return;
    gate_turn(&rank->toy.gate, false);
    ls_task_cancel(rank->task, LS_ECANCELED, "the test is over");
    assert_ok(ls_thread_join(&rank->runner, bench_deadline()));
    ls_task_destroy(&rank->task);
    ls_rpc_close(&rank->at.calls);
    learner_service_destroy(&rank->service);
    bench_kill(&rank->at, LS_EHANDLER);
    gate_fini(&rank->toy.gate);
}

static void close_ranks(struct ranks *all)
{
    struct store *store = &all->store->base;
    for (size_t i = 0; i < RANKS; i++)
        end_rank(&all->ranks[i]);
    bench_kill(&all->master, LS_OK);
    ls_writer_destroy(&all->writer);
    store_close(&store);
    free(all);
}

/* The coordinator's part, with what is in the writer ------------------------
 */

static ls_call *call_to(struct ranks *all, ls_rpc *calls, uint32_t to,
                        const char *name)
{
    struct ls_call_options options = {
        .to = to, .name = name, .timeout_ms = BENCH_MS};
    ls_call *call = NULL;
    assert_ok(ls_writer_bytes(all->writer, &options.data, &options.size));
    assert_ok(ls_call_start(&call, calls, &options));
    ls_writer_clear(all->writer);
    return call;
}

static ls_call *ask(struct ranks *all, uint32_t to, const char *name)
{
    return call_to(all, all->master.calls, to, name);
}

static struct learner_work shared_work(int64_t attempt, int64_t first,
                                       int64_t second)
{
    struct learner_work work = work_of("l1", attempt, 100);
    if (second != 0) {
        work.n_ranks = 2;
        work.ranks[0] = first;
        work.ranks[1] = second;
    }
    return work;
}

static void give(struct ranks *all, uint32_t to,
                 const struct learner_work *work)
{
    learner_work_write(work, all->writer);
    ls_call *call = ask(all, to, CALL_LEARNER_START);
    (void)completes(call);
    ls_call_destroy(&call);
}

static ls_call *demand_of_it(struct ranks *all, uint32_t to,
                             struct work_key key)
{
    work_key_write(&key, all->writer);
    return ask(all, to, CALL_LEARNER_DEMAND);
}

/* A batch of two samples; `missing` of them are not in the store. */
static ls_call *give_batch(struct ranks *all, uint32_t to, struct work_key key,
                           size_t missing)
{
    struct drawn_sample items[2];
    memset(items, 0, sizeof items);
    for (size_t i = 0; i < 2; i++) {
        struct sample *sample = &items[i].sample;
        (void)snprintf(sample->data_id, sizeof sample->data_id, "d.%u",
                       all->n_data++);
        strcpy(sample->task_id, "c");
        strcpy(sample->buffer_id, "buffer_1");
        strcpy(sample->compressor, "none");
        sample->unroll_len = 4;
        sample->parts = 1;
        sample->size = (int64_t)strlen(sample->data_id);
        const struct store_put put = {.name = sample->data_id,
                                      .data = sample->data_id,
                                      .size = strlen(sample->data_id)};
        if (i < 2 - missing)
            assert_ok(store_put(&all->store->base, &put));
    }
    learner_batch_write(
        &(struct learner_batch){.key = key, .n = 2, .items = items},
        all->writer);
    return ask(all, to, CALL_LEARNER_LEARN);
}

static ls_call *begin_batch(struct ranks *all, uint32_t to, struct work_key key)
{
    ls_call *call = demand_of_it(all, to, key);
    assert_false(demand_of(call).done);
    return give_batch(all, to, key, 0);
}

static struct learner_result end_batch(ls_call *call)
{
    struct learner_result out;
    const struct ls_call_result *result = completes(call);
    assert_ok(learner_result_read(&out, result->data, result->size));
    ls_call_destroy(&call);
    return out;
}

static struct learner_result step(struct ranks *all, uint32_t to,
                                  struct work_key key)
{
    return end_batch(begin_batch(all, to, key));
}

static void close_it(struct ranks *all, uint32_t to, struct work_key key)
{
    work_key_write(&key, all->writer);
    ls_call *call = ask(all, to, CALL_LEARNER_CLOSE);
    (void)completes(call);
    ls_call_destroy(&call);
}

static void assert_alike(const struct ranks *all, size_t one, size_t other)
{
    const struct toy_learner *a = &all->ranks[one].toy,
                             *b = &all->ranks[other].toy;
    assert_int_equal(a->weights, b->weights);
    assert_memory_equal(&a->training, &b->training, sizeof a->training);
}

/* Together ------------------------------------------------------------------
 */

TEST(each_learns_from_its_share_and_all_have_the_same_weights)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    for (int64_t i = 0; i < 5; i++) {
        const struct learner_result result = step(all, 1, work.key);
        assert_int_equal(result.cur_learner_iter, i + 1);
        assert_int_equal(result.policy_version, i + 1);
        assert_int_equal(result.n, 2); /* of both shares */
        assert_true(result.priorities[0] == 0.5 && result.priorities[1] == 0.5);
    }
    close_it(all, 1, work.key);
    assert_int_equal(all->ranks[0].own, 5);
    assert_int_equal(all->ranks[1].own, 5);
    assert_int_equal(all->ranks[0].toy.weights, 10);
    assert_alike(all, 0, 1);
    /* The first one alone commits, and tells of iterations. */
    assert_int_equal(all->store->n_policies, 6);
    struct learner_figures figures;
    learner_service_figures(all->ranks[0].service, &figures);
    assert_int_equal(figures.iterations, 5);
    learner_service_figures(all->ranks[1].service, &figures);
    assert_int_equal(
        figures.iterations + figures.commits + figures.common.works, 0);
    close_ranks(all);
}

TEST(a_rank_holds_nothing_for_the_coordinator)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    struct service_resource resource;
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    service_nothing_write(all->writer);
    ls_call *call = ask(all, 2, CALL_RESOURCE);
    const struct ls_call_result *result = completes(call);
    assert_ok(service_resource_read(&resource, result->data, result->size));
    assert_string_equal(resource.task_id, "");
    ls_call_destroy(&call);
    close_ranks(all);
}

TEST(the_next_attempt_goes_on_with_another_rank)
{
    struct ranks *all = open_ranks();
    struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    (void)step(all, 1, work.key);
    close_it(all, 1, work.key);
    work = shared_work(2, 2, 3);
    give(all, 2, &work);
    assert_int_equal(step(all, 2, work.key).policy_version, 3);
    close_it(all, 2, work.key);
    assert_int_equal(all->ranks[2].toy.weights, 6);
    assert_alike(all, 1, 2);
    close_ranks(all);
}

/* Many times, for those that the thread that learns is the first to hear of. */
TEST(a_close_while_they_learn_is_no_failure)
{
    struct ranks *all = open_ranks();
    struct gate *gate = &all->ranks[1].toy.gate;
    for (int64_t attempt = 1; attempt <= 30; attempt++) {
        const struct learner_work work = shared_work(attempt, 1, 2);
        give(all, 1, &work);
        gate_turn(gate, true);
        ls_call *call = begin_batch(all, 1, work.key);
        gate_await(gate, 1, 0);
        close_it(all, 1, work.key); /* it does not wait for the other */
        fails_with(call, "work l1 is closed");
        gate_turn(gate, false);
        gate_await(gate, 0, (int)attempt); /* before it is shut again */
    }
    struct learner_figures figures;
    learner_service_figures(all->ranks[0].service, &figures);
    assert_int_equal(figures.common.given_back, 0);
    close_ranks(all);
}

/* It fails ------------------------------------------------------------------
 */

TEST(a_rank_that_is_lost_gives_the_work_back_and_is_named)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    gate_turn(&all->ranks[1].toy.gate, true);
    ls_call *call = begin_batch(all, 1, work.key);
    gate_await(&all->ranks[1].toy.gate, 1, 0);
    ls_rpc_close(&all->ranks[1].at.calls);
    ls_node_stop(all->ranks[1].at.node, LS_EHANDLER);
    fails_with(call, "node 2");
    assert_int_equal(all->store->last_version, 1);
    close_ranks(all);
}

TEST(a_rank_that_fails_gives_the_work_back)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    all->ranks[1].toy.fails = 1;
    fails_with(begin_batch(all, 1, work.key), "node 2");
    /* Both are free again. */
    const struct learner_work next = shared_work(2, 1, 2);
    give(all, 1, &next);
    (void)step(all, 1, next.key);
    close_ranks(all);
}

TEST(other_weights_give_the_work_back_before_they_are_committed)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    all->ranks[1].skew = 1;
    fails_with(begin_batch(all, 1, work.key),
               "rank 1, node 2, has other weights than rank 0, node 1");
    assert_int_equal(all->store->last_version, 1);
    close_ranks(all);
}

TEST(a_share_that_cannot_be_got_fails_that_batch_alone)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    assert_false(demand_of(demand_of_it(all, 1, work.key)).done);
    fails_with(give_batch(all, 1, work.key, 1), /* of the second rank */
               "rank 1, node 2, has not got its share");
    (void)step(all, 1, work.key);
    assert_false(demand_of(demand_of_it(all, 1, work.key)).done);
    fails_with(give_batch(all, 1, work.key, 2), "the toy has no");
    assert_int_equal(step(all, 1, work.key).policy_version, 2);
    assert_int_equal(all->ranks[0].own, 2);
    close_ranks(all);
}

/* Called away ---------------------------------------------------------------
 */

TEST(a_work_of_its_own_comes_first)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    const struct learner_work own = shared_work(2, 2, 0);
    give(all, 2, &own);
    assert_int_equal(step(all, 2, own.key).policy_version, 2);
    fails_with(begin_batch(all, 1, work.key), "node 2");
    close_ranks(all);
}

TEST(a_later_attempt_calls_a_rank_away)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    const struct learner_work next = shared_work(2, 2, 3),
                              more = shared_work(3, 1, 3);
    give(all, 2, &next);
    (void)step(all, 2, next.key);
    close_it(all, 1, work.key);
    give(all, 1, &more);
    (void)step(all, 1, more.key);
    fails_with(begin_batch(all, 2, next.key), "node 3");
    close_ranks(all);
}

/* Asked by others -----------------------------------------------------------
 */

static ls_call *ask_rank(struct ranks *all, uint32_t from, uint32_t to,
                         const struct learner_work *work)
{
    learner_work_write(work, all->writer);
    return call_to(
        all, from == MASTER ? all->master.calls : all->ranks[from - 1].at.calls,
        to, CALL_RANK_START);
}

TEST(nobody_but_the_first_rank_is_joined)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(1, 1, 2);
    is_refused(ask_rank(all, 3, 2, &work), LS_CALL_REFUSED, "no rank");
    is_refused(ask_rank(all, 1, 3, &work), LS_CALL_REFUSED, "no rank");
    close_ranks(all);
}

/* Whatever attempt it names, the next rank is joined. */
TEST(who_is_no_learner_is_not_joined)
{
    struct ranks *all = open_ranks();
    struct learner_work theirs = shared_work(1000000, 1, 2);
    const struct learner_work work = shared_work(1, 1, 2);
    theirs.ranks[0] = MASTER;
    is_refused(ask_rank(all, MASTER, 2, &theirs), LS_CALL_REFUSED,
               "node 0 is no learner");
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    close_ranks(all);
}

TEST(who_has_a_work_of_its_own_does_not_join)
{
    struct ranks *all = open_ranks();
    const struct learner_work own = shared_work(1, 2, 0),
                              work = shared_work(2, 1, 2);
    give(all, 2, &own);
    is_refused(ask_rank(all, 1, 2, &work), LS_CALL_REFUSED,
               "has a work of its own");
    close_ranks(all);
}

TEST(an_attempt_that_is_over_is_not_joined)
{
    struct ranks *all = open_ranks();
    const struct learner_work work = shared_work(5, 1, 2),
                              before = shared_work(4, 1, 2);
    give(all, 1, &work);
    (void)step(all, 1, work.key);
    close_it(all, 1, work.key);
    is_refused(ask_rank(all, 1, 2, &before), LS_CALL_REFUSED,
               "attempt 5 has begun");
    close_ranks(all);
}
