/* pool.h, assign.h and scheduler.h, as a specification. */
#include "assign.h"

#include <math.h>

#include "lockstep/runtime.h"
#include "scheduler.h"
#include "test.h"

/* The pool ----------------------------------------------------------------- */

static struct pool_member *add(struct pool *pool, uint32_t id,
                               enum pool_role role, enum pool_state is)
{
    struct pool_member *member = pool_add(pool, id, role);
    assert_non_null(member);
    member->state = is;
    return member;
}

TEST(one_of_the_free_is_picked_at_random)
{
    struct pool pool = {.first = NULL};
    int picked[5] = {0};
    ls_rng_seed(&pool.rng, 1, 0);
    for (uint32_t id = 0; id < 3; id++)
        (void)add(&pool, id, POOL_COLLECTOR, POOL_FREE);
    (void)add(&pool, 3, POOL_COLLECTOR, POOL_TAKEN);
    (void)add(&pool, 4, POOL_LEARNER, POOL_FREE);
    for (int i = 0; i < 3000; i++)
        picked[pool_pick(&pool, POOL_COLLECTOR, 0)->id]++;
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
            add(&pool, id, id < 4 ? POOL_LEARNER : POOL_COLLECTOR, POOL_FREE);
        member->gpu = gpu[id % 4];
        member->cpu = cpu[id % 4];
    }
    static const uint32_t learners[] = {2, 1, 3, 0};
    static const uint32_t collectors[] = {4, 7, 6, 5};
    for (size_t i = 0; i < 4; i++) {
        struct pool_member *learner = pool_pick(&pool, POOL_LEARNER, 0);
        struct pool_member *collector = pool_pick(&pool, POOL_COLLECTOR, 0);
        assert_int_equal(learner->id, learners[i]);
        assert_int_equal(collector->id, collectors[i]);
        learner->state = collector->state = POOL_TAKEN;
    }
    assert_null(pool_pick(&pool, POOL_LEARNER, 0));
    pool_fini(&pool);
}

TEST(who_rests_is_not_picked_and_wakes_the_machine)
{
    struct pool pool = {.first = NULL};
    struct pool_member *member = add(&pool, 1, POOL_LEARNER, POOL_FREE);
    member->rest_until = 10;
    assert_null(pool_pick(&pool, POOL_LEARNER, 9));
    assert_int_equal(pool_wake_at(&pool, 9), 10);
    assert_ptr_equal(pool_pick(&pool, POOL_LEARNER, 10), member);
    assert_int_equal(pool_wake_at(&pool, 10), LS_FOREVER);
    pool_fini(&pool);
}

TEST(members_are_counted_by_role_unless_gone)
{
    struct pool pool = {.first = NULL};
    (void)add(&pool, 1, POOL_LEARNER, POOL_TAKEN);
    (void)add(&pool, 2, POOL_COLLECTOR, POOL_NEW);
    (void)add(&pool, 3, POOL_COLLECTOR, POOL_GONE);
    assert_int_equal(pool_count(&pool, POOL_LEARNER), 1);
    assert_int_equal(pool_count(&pool, POOL_COLLECTOR), 1);
    assert_ptr_equal(pool_add(&pool, 3, POOL_COLLECTOR), pool_find(&pool, 3));
    pool_fini(&pool);
}

/* Works -------------------------------------------------------------------- */

TEST(evaluations_go_first_then_the_order_of_asking)
{
    struct pool pool = {.first = NULL};
    struct works works = {.expiry = {100, 100, 100}};
    struct work *first = works_add(&works, WORK_COLLECTOR, 0, 0);
    struct work *second = works_add(&works, WORK_COLLECTOR, 0, 0);
    struct work *evaluation = works_add(&works, WORK_EVALUATION, 0, 0);
    struct pool_member *member = add(&pool, 1, POOL_COLLECTOR, POOL_FREE);
    assert_ptr_equal(works_assign(&works, &pool, 0), evaluation);
    assert_int_equal(member->state, POOL_TAKEN);
    assert_null(works_assign(&works, &pool, 0));
    member->state = POOL_FREE;
    assert_ptr_equal(works_assign(&works, &pool, 0), first);
    member->state = POOL_FREE;
    assert_ptr_equal(works_assign(&works, &pool, 0), second);
    works_fini(&works);
    pool_fini(&pool);
}

TEST(what_was_lost_comes_to_the_front_as_the_next_attempt)
{
    struct pool pool = {.first = NULL};
    struct works works = {.expiry = {100, 100, 100}};
    (void)works_add(&works, WORK_COLLECTOR, 0, 0);
    struct work *lost = works_add(&works, WORK_COLLECTOR, 0, 0);
    (void)add(&pool, 1, POOL_COLLECTOR, POOL_FREE);
    works_requeue(&works, lost, 50);
    assert_int_equal(lost->key.attempt, 2);
    assert_ptr_equal(works_assign(&works, &pool, 50), lost);
    works_fini(&works);
    pool_fini(&pool);
}

TEST(a_queued_work_expires_and_a_refused_one_goes_on_ageing)
{
    struct pool pool = {.first = NULL};
    struct works works = {.expiry = {600, 30, 30}};
    struct work *work = works_add(&works, WORK_COLLECTOR, 0, 0);
    (void)works_add(&works, WORK_LEARNER, 0, 0);
    (void)add(&pool, 1, POOL_COLLECTOR, POOL_FREE);
    assert_ptr_equal(works_assign(&works, &pool, 0), work);
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

static struct scheduler scheduler(void)
{
    struct scheduler made = {.iterations = 10,
                             .eval_interval = 60,
                             .eval_episodes = 3,
                             .stop_value = 100,
                             .retry = 5};
    scheduler_init(&made);
    return made;
}

static void learn(struct scheduler *self, int64_t step, bool done)
{
    scheduler_info(self, &(struct learner_info){.learner_step = step,
                                                .learner_done = done,
                                                .policy_version = step});
}

static enum scheduler_wish wish(const struct scheduler *self, int64_t now)
{
    const char *why;
    return scheduler_next(self, now, 2, &why);
}

TEST(it_wants_a_learner_then_collectors_then_evaluations)
{
    struct scheduler self = scheduler();
    assert_int_equal(wish(&self, 0), SCHEDULER_LEARNER);
    scheduler_asked(&self, WORK_LEARNER, 0);
    assert_int_equal(wish(&self, 0), SCHEDULER_NOTHING); /* no policy yet */
    scheduler_committed(&self, 0, 0);
    assert_int_equal(wish(&self, 0), SCHEDULER_COLLECTOR);
    scheduler_asked(&self, WORK_COLLECTOR, 0);
    assert_int_equal(wish(&self, 0), SCHEDULER_COLLECTOR);
    scheduler_asked(&self, WORK_COLLECTOR, 0);
    assert_int_equal(wish(&self, 0), SCHEDULER_NOTHING); /* one for each */
    learn(&self, 1, false);
    assert_int_equal(wish(&self, 0), SCHEDULER_EVALUATION);
}

TEST(evaluations_keep_their_interval)
{
    struct scheduler self = scheduler();
    self.collector_works = 1;
    self.out[WORK_LEARNER] = self.out[WORK_COLLECTOR] = 1;
    learn(&self, 1, false);
    scheduler_asked(&self, WORK_EVALUATION, 0);
    scheduler_evaluated(&self, 50, 1);
    scheduler_freed(&self, WORK_EVALUATION, false, 10);
    learn(&self, 2, false);
    assert_int_equal(wish(&self, 59), SCHEDULER_NOTHING);
    assert_int_equal(scheduler_wake_at(&self, 59), 60);
    assert_int_equal(wish(&self, 60), SCHEDULER_EVALUATION);
}

TEST(one_that_failed_is_asked_for_again_soon)
{
    struct scheduler self = scheduler();
    self.collector_works = 1;
    self.out[WORK_LEARNER] = self.out[WORK_COLLECTOR] = 1;
    learn(&self, 1, false);
    scheduler_asked(&self, WORK_EVALUATION, 0);
    scheduler_freed(&self, WORK_EVALUATION, true, 10);
    assert_int_equal(wish(&self, 14), SCHEDULER_NOTHING);
    assert_int_equal(wish(&self, 15), SCHEDULER_EVALUATION);
}

TEST(after_the_last_iteration_the_last_policy_is_evaluated)
{
    struct scheduler self = scheduler();
    self.out[WORK_LEARNER] = 1;
    learn(&self, 9, false);
    scheduler_asked(&self, WORK_EVALUATION, 0);
    learn(&self, 10, true);
    assert_int_equal(self.learner_step, 10);
    scheduler_freed(&self, WORK_LEARNER, false, 1);
    scheduler_evaluated(&self, 1, 9);
    scheduler_freed(&self, WORK_EVALUATION, false, 2);
    assert_int_equal(wish(&self, 2), SCHEDULER_EVALUATION); /* of 10 */
    scheduler_asked(&self, WORK_EVALUATION, 2);
    assert_int_equal(wish(&self, 3), SCHEDULER_NOTHING);
    scheduler_evaluated(&self, 2, 10);
    scheduler_freed(&self, WORK_EVALUATION, false, 4);
    assert_int_equal(wish(&self, 4), SCHEDULER_END);
}

TEST(without_a_value_the_last_iteration_is_the_end)
{
    struct scheduler self = scheduler();
    self.stop_value = NAN;
    self.out[WORK_LEARNER] = 1;
    learn(&self, 10, true);
    assert_int_equal(wish(&self, 0), SCHEDULER_END);
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
