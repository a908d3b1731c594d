/* pool.h, assign.h and scheduler.h, as a specification. */
#include "assign.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lockstep/runtime.h"
#include "scheduler.h"
#include "test.h"

/* The pool ----------------------------------------------------------------- */

static struct pool_member *add(struct pool *pool, uint32_t id,
                               const struct fsm_kind *kind, enum pool_state is)
{
    struct pool_member *member = pool_add(pool, id);
    assert_non_null(member);
    (void)snprintf(member->role, sizeof member->role, "%s",
                   fsm_kind_doer(kind));
    member->state = is;
    return member;
}

TEST(one_of_the_free_is_picked_at_random)
{
    struct pool pool = {.first = NULL};
    int picked[5] = {0};
    ls_rng_seed(&pool.rng, 1, 0);
    for (uint32_t id = 0; id < 3; id++)
        (void)add(&pool, id, &fsm_kind_collector, POOL_FREE);
    (void)add(&pool, 3, &fsm_kind_collector, POOL_TAKEN);
    (void)add(&pool, 4, &fsm_kind_learner, POOL_FREE);
    for (int i = 0; i < 3000; i++)
        picked[pool_pick(&pool, &fsm_kind_collector, 0)->id]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(picked[i], 850, 1150);
    assert_int_equal(picked[3] + picked[4], 0);
    pool_fini(&pool);
}

/* GPUs count for learners, and before processors. */
TEST(who_offers_most_is_picked)
{
    static const double gpu[] = {0, 2, 2, 1}, cpu[] = {64, 4, 8, 16};
    struct pool pool = {.first = NULL};
    for (uint32_t id = 0; id < 8; id++) {
        struct pool_member *member =
            add(&pool, id, id < 4 ? &fsm_kind_learner : &fsm_kind_collector,
                POOL_FREE);
        member->gpu = gpu[id % 4];
        member->cpu = cpu[id % 4];
    }
    static const uint32_t learners[] = {2, 1, 3, 0};
    static const uint32_t collectors[] = {4, 7, 6, 5};
    for (size_t i = 0; i < 4; i++) {
        struct pool_member *learner = pool_pick(&pool, &fsm_kind_learner, 0);
        struct pool_member *collector =
            pool_pick(&pool, &fsm_kind_collector, 0);
        assert_int_equal(learner->id, learners[i]);
        assert_int_equal(collector->id, collectors[i]);
        learner->state = collector->state = POOL_TAKEN;
    }
    assert_null(pool_pick(&pool, &fsm_kind_learner, 0));
    pool_fini(&pool);
}

TEST(who_rests_is_not_picked_and_wakes_the_machine)
{
    struct pool pool = {.first = NULL};
    struct pool_member *member = add(&pool, 1, &fsm_kind_learner, POOL_FREE);
    member->rest_until = 10;
    assert_null(pool_pick(&pool, &fsm_kind_learner, 9));
    assert_int_equal(pool_wake_at(&pool, 9), 10);
    assert_ptr_equal(pool_pick(&pool, &fsm_kind_learner, 10), member);
    assert_int_equal(pool_wake_at(&pool, 10), LS_FOREVER);
    pool_fini(&pool);
}

TEST(members_are_counted_for_their_kinds_unless_gone)
{
    struct pool pool = {.first = NULL};
    (void)add(&pool, 1, &fsm_kind_learner, POOL_TAKEN);
    (void)add(&pool, 2, &fsm_kind_collector, POOL_NEW);
    (void)add(&pool, 3, &fsm_kind_collector, POOL_GONE);
    assert_int_equal(pool_count(&pool, &fsm_kind_learner), 1);
    assert_int_equal(pool_count(&pool, &fsm_kind_collector), 1);
    assert_ptr_equal(pool_add(&pool, 3), pool_find(&pool, 3));
    pool_fini(&pool);
}

/* A kind is for whom its place says, and nobody else. */
TEST(a_kind_may_be_placed_by_label)
{
    struct fsm_kind kind = fsm_kind_collector;
    struct pool pool = {.first = NULL};
    struct pool_member *member = add(&pool, 1, &fsm_kind_collector, POOL_FREE);
    kind.where = "label:fast";
    assert_null(pool_pick(&pool, &kind, 0));
    (void)snprintf(member->labels, sizeof member->labels, "gpu,fast");
    assert_ptr_equal(pool_pick(&pool, &kind, 0), member);
    pool_fini(&pool);
}

/* Works -------------------------------------------------------------------- */

TEST(works_of_a_kind_go_in_the_order_of_asking)
{
    struct pool pool = {.first = NULL};
    struct works works = {.first = NULL};
    struct kind_use collect = {.kind = &fsm_kind_collector, .expiry = 100};
    struct kind_use evaluate = {.kind = &fsm_kind_evaluation, .expiry = 100};
    struct work *first = works_add(&works, &collect, 0, 0);
    struct work *second = works_add(&works, &collect, 0, 0);
    struct work *evaluation = works_add(&works, &evaluate, 0, 0);
    struct pool_member *member = add(&pool, 1, &fsm_kind_collector, POOL_FREE);
    assert_ptr_equal(works_assign(&works, &evaluate, &pool, 0), evaluation);
    assert_int_equal(member->state, POOL_TAKEN);
    assert_null(works_assign(&works, &collect, &pool, 0));
    member->state = POOL_FREE;
    assert_null(works_assign(&works, &evaluate, &pool, 0));
    assert_ptr_equal(works_assign(&works, &collect, &pool, 0), first);
    member->state = POOL_FREE;
    assert_ptr_equal(works_assign(&works, &collect, &pool, 0), second);
    works_fini(&works);
    pool_fini(&pool);
}

TEST(what_was_lost_comes_to_the_front_as_the_next_attempt)
{
    struct pool pool = {.first = NULL};
    struct works works = {.first = NULL};
    struct kind_use collect = {.kind = &fsm_kind_collector, .expiry = 100};
    (void)works_add(&works, &collect, 0, 0);
    struct work *lost = works_add(&works, &collect, 0, 0);
    (void)add(&pool, 1, &fsm_kind_collector, POOL_FREE);
    works_requeue(&works, lost, 50);
    assert_int_equal(lost->key.attempt, 2);
    assert_ptr_equal(works_assign(&works, &collect, &pool, 50), lost);
    works_fini(&works);
    pool_fini(&pool);
}

TEST(a_queued_work_expires_and_a_refused_one_goes_on_ageing)
{
    struct pool pool = {.first = NULL};
    struct works works = {.first = NULL};
    struct kind_use collect = {.kind = &fsm_kind_collector, .expiry = 30};
    struct kind_use learn = {.kind = &fsm_kind_learner, .expiry = 600};
    struct work *work = works_add(&works, &collect, 0, 0);
    (void)works_add(&works, &learn, 0, 0);
    (void)add(&pool, 1, &fsm_kind_collector, POOL_FREE);
    assert_ptr_equal(works_assign(&works, &collect, &pool, 0), work);
    assert_null(works_expired(&works, 100)); /* it has a member */
    works_return(work);
    assert_int_equal(work->key.attempt, 1);
    assert_int_equal(works_wake_at(&works, 10), 30);
    assert_null(works_expired(&works, 29));
    assert_ptr_equal(works_expired(&works, 30), work);
    works_fini(&works);
    pool_fini(&pool);
}

/* The scheduler ------------------------------------------------------------ */

static struct kind_use uses[] = {{.kind = &fsm_kind_evaluation},
                                 {.kind = &fsm_kind_learner},
                                 {.kind = &fsm_kind_collector}};
static struct kind_use *const evaluation = &uses[0];
static struct kind_use *const learner = &uses[1];
static struct kind_use *const collector = &uses[2];

static struct scheduler scheduler(void)
{
    struct scheduler made = {.uses = uses,
                             .n_uses = 3,
                             .eval_interval = 60,
                             .eval_episodes = 3,
                             .stop_value = 100,
                             .retry = 5};
    evaluation->out = learner->out = collector->out = 0;
    scheduler_init(&made);
    return made;
}

static bool ends; /* what it said last */

static void learn(struct scheduler *self, int64_t step, bool done)
{
    scheduler_info(self, &(struct learner_info){.learner_step = step,
                                                .learner_done = done,
                                                .policy_version = step});
}

/* With two collectors. */
static struct kind_use *wish(const struct scheduler *self, int64_t now)
{
    const char *why;
    struct pool pool = {.first = NULL};
    (void)add(&pool, 1, &fsm_kind_collector, POOL_FREE);
    (void)add(&pool, 2, &fsm_kind_collector, POOL_TAKEN);
    struct kind_use *next = scheduler_next(self, &pool, now, &why);
    pool_fini(&pool);
    ends = why != NULL;
    return next;
}

TEST(it_wants_a_learner_then_collectors_then_evaluations)
{
    struct scheduler self = scheduler();
    assert_ptr_equal(wish(&self, 0), learner);
    scheduler_asked(&self, learner, 0);
    assert_null(wish(&self, 0)); /* no policy yet */
    scheduler_committed(&self, 0, 0);
    assert_ptr_equal(wish(&self, 0), collector);
    scheduler_asked(&self, collector, 0);
    assert_ptr_equal(wish(&self, 0), collector);
    scheduler_asked(&self, collector, 0);
    assert_null(wish(&self, 0)); /* one for each */
    learn(&self, 1, false);
    assert_ptr_equal(wish(&self, 0), evaluation);
}

TEST(evaluations_keep_their_interval)
{
    struct scheduler self = scheduler();
    self.collector_works = 1;
    learner->out = collector->out = 1;
    learn(&self, 1, false);
    scheduler_asked(&self, evaluation, 0);
    scheduler_evaluated(&self, 50, 1);
    scheduler_freed(&self, evaluation, false, 10);
    learn(&self, 2, false);
    assert_null(wish(&self, 59));
    assert_int_equal(scheduler_wake_at(&self, 59), 60);
    assert_ptr_equal(wish(&self, 60), evaluation);
}

TEST(one_that_failed_is_asked_for_again_soon)
{
    struct scheduler self = scheduler();
    self.collector_works = 1;
    learner->out = collector->out = 1;
    learn(&self, 1, false);
    scheduler_asked(&self, evaluation, 0);
    scheduler_freed(&self, evaluation, true, 10);
    assert_null(wish(&self, 14));
    assert_ptr_equal(wish(&self, 15), evaluation);
}

TEST(after_the_last_iteration_the_last_policy_is_evaluated)
{
    struct scheduler self = scheduler();
    learner->out = 1;
    learn(&self, 9, false);
    scheduler_asked(&self, evaluation, 0);
    learn(&self, 10, true);
    assert_int_equal(self.learner_step, 10);
    scheduler_freed(&self, learner, false, 1);
    scheduler_evaluated(&self, 1, 9);
    scheduler_freed(&self, evaluation, false, 2);
    assert_ptr_equal(wish(&self, 2), evaluation); /* of 10 */
    scheduler_asked(&self, evaluation, 2);
    assert_null(wish(&self, 3));
    scheduler_evaluated(&self, 2, 10);
    scheduler_freed(&self, evaluation, false, 4);
    assert_null(wish(&self, 4));
    assert_true(ends);
}

TEST(without_a_value_the_last_iteration_is_the_end)
{
    struct scheduler self = scheduler();
    self.stop_value = NAN;
    learner->out = 1;
    learn(&self, 10, true);
    assert_null(wish(&self, 0));
    assert_true(ends);
}

TEST(committed_iterations_follow_the_versions)
{
    struct scheduler self = scheduler();
    scheduler_info(
        &self, &(struct learner_info){.learner_step = 4, .policy_version = 2});
    scheduler_info(
        &self, &(struct learner_info){.learner_step = 5, .policy_version = 2});
    assert_int_equal(self.learner_step, 5);
    assert_int_equal(self.committed, 4);
}
