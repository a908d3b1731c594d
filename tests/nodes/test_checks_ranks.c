/* What the checks say to stories of learners that do a work together: one that
 * goes well, and each promise broken once. */
#include "checks_services_story.h"
#include "test.h"

static void starts_ranks(struct world *world, uint64_t number, size_t to,
                         int64_t attempt, int64_t first, int64_t second)
{
    const struct learner_work work = {.key = key_of("learn", attempt),
                                      .policy_id = "policy",
                                      .buffer_id = "buffer",
                                      .learner_id = "learner",
                                      .batch_size = 2,
                                      .iterations = 2,
                                      .send_policy_freq = 1,
                                      .send_info_freq = 1,
                                      .n_ranks = 2,
                                      .ranks = {first, second}};
    ls_writer *data = writer();
    learner_work_write(&work, data);
    calls(world, number, to, CALL_LEARNER_START, data);
}

static void joins(struct world *world, size_t i, int64_t attempt)
{
    const struct service_watch *watch = watch_of(world, i);
    const struct work_key key = key_of("learn", attempt);
    watch->joined(watch->self, &key);
}

static void parts(struct world *world, size_t i, int64_t attempt)
{
    const struct service_watch *watch = watch_of(world, i);
    const struct work_key key = key_of("learn", attempt);
    watch->parted(watch->self, &key);
}

static void steps(struct world *world, size_t i, int64_t iter, uint64_t weights)
{
    const struct service_watch *watch = watch_of(world, i);
    const struct work_key key = key_of("learn", 1);
    watch->stepped(watch->self, &key, iter, weights);
}

static void both_begin(struct world *world)
{
    opens(world);
    starts_ranks(world, 1, LEARNER, 1, LEARNER, RESERVE);
    begins(world, LEARNER, "learn", 1);
    ends_started(world, 1);
    joins(world, RESERVE, 1);
    commits(world, LEARNER, 1, 0);
}

static void all_goes_well(void *arg)
{
    both_begin(arg);
    for (int64_t i = 0; i < 2; i++) {
        steps(arg, LEARNER, i, (uint64_t)i);
        steps(arg, RESERVE, i, (uint64_t)i);
        commits(arg, LEARNER, 1, i + 1);
        informs(arg, i + 1, false);
    }
    informs(arg, 2, true);
    learning_ends(arg, LEARNER, 1);
    parts(arg, RESERVE, 1);
    is_over(arg, 0);
}

static void a_rank_is_lost(void *arg)
{
    both_begin(arg);
    loses(arg, RESERVE);
    asks(arg, 5, LEARNER, CALL_LEARNER_CLOSE, "learn", 1);
    lets_go(arg, LEARNER, "learn", 1);
    ends_closed(arg, 5, "learn", 1);
    starts_ranks(arg, 6, LEARNER, 2, LEARNER, RESERVE);
    begins(arg, LEARNER, "learn", 2);
    ends_started(arg, 6);
    breaks_off(arg);
}

/* The coordinator hears of several losses at once, and gives the work out after
 * the first. */
static void a_rank_is_lost_already(void *arg)
{
    opens(arg);
    loses(arg, RESERVE);
    starts_ranks(arg, 1, LEARNER, 1, LEARNER, RESERVE);
    begins(arg, LEARNER, "learn", 1);
    ends_started(arg, 1);
    asks(arg, 5, LEARNER, CALL_LEARNER_CLOSE, "learn", 1);
    lets_go(arg, LEARNER, "learn", 1);
    ends_closed(arg, 5, "learn", 1);
    starts_ranks(arg, 6, LEARNER, 2, LEARNER, RESERVE);
    breaks_off(arg);
}

static void a_rank_was_lost_long_ago(void *arg)
{
    opens(arg);
    loses(arg, RESERVE);
    starts_collector(arg, 8, COLLECTOR, "collect", 1);
    ends_started(arg, 8);
    starts_ranks(arg, 1, LEARNER, 1, LEARNER, RESERVE);
    begins(arg, LEARNER, "learn", 1);
    ends_started(arg, 1);
    asks(arg, 5, LEARNER, CALL_LEARNER_CLOSE, "learn", 1);
    lets_go(arg, LEARNER, "learn", 1);
    ends_closed(arg, 5, "learn", 1);
    starts_ranks(arg, 6, LEARNER, 2, LEARNER, RESERVE);
}

TEST(a_work_of_two_goes_well_and_is_given_again_when_one_is_lost)
{
    judge(all_goes_well, NULL);
    judge(a_rank_is_lost, NULL);
    judge(a_rank_is_lost_already, NULL);
    judge(a_rank_was_lost_long_ago,
          "once: work learn/2 is given out while attempt 1 of node 1 was not "
          "given up");
}

static void nobody_is_lost(void *arg)
{
    both_begin(arg);
    asks(arg, 5, LEARNER, CALL_LEARNER_CLOSE, "learn", 1);
    lets_go(arg, LEARNER, "learn", 1);
    ends_closed(arg, 5, "learn", 1);
    starts_ranks(arg, 6, LEARNER, 2, LEARNER, RESERVE);
}

TEST(it_is_not_closed_and_given_again_without_a_reason)
{
    judge(nobody_is_lost, "once: work learn/2 is given out while attempt 1 of "
                          "node 1 was not given up");
}

static void it_goes_to_the_second(void *arg)
{
    opens(arg);
    starts_ranks(arg, 1, RESERVE, 1, LEARNER, RESERVE);
}

TEST(it_is_given_to_the_first_of_its_ranks)
{
    judge(it_goes_to_the_second,
          "once: work learn/1 is given to node 2, which is not the first of "
          "its ranks");
}

static void one_joins_that_is_none(void *arg)
{
    both_begin(arg);
    joins(arg, COLLECTOR, 1);
}

static void one_joins_too_early(void *arg)
{
    opens(arg);
    starts_ranks(arg, 1, LEARNER, 1, LEARNER, RESERVE);
    joins(arg, RESERVE, 1);
}

static void one_joins_twice(void *arg)
{
    both_begin(arg);
    joins(arg, RESERVE, 1);
}

TEST(its_ranks_alone_join_it_once_it_has_begun)
{
    judge(one_joins_that_is_none,
          "once: node 3 joins work learn/1, of which it is no rank, or which "
          "nobody has begun");
    judge(one_joins_too_early,
          "once: node 2 joins work learn/1, of which it is no rank, or which "
          "nobody has begun");
    judge(one_joins_twice,
          "once: node 2 joins work learn/1 and does work learn/1");
}

static void the_second_commits(void *arg)
{
    both_begin(arg);
    commits(arg, RESERVE, 1, 1);
}

TEST(the_first_alone_commits)
{
    judge(the_second_commits,
          "once: node 2 commits for work learn/1, which it has not begun");
}

static void their_weights_differ(void *arg)
{
    both_begin(arg);
    steps(arg, RESERVE, 0, 7);
    steps(arg, LEARNER, 0, 8);
}

TEST(all_have_the_same_weights)
{
    judge(their_weights_differ,
          "equal: node 1 has other weights than node 2 after iteration 0 of "
          "work learn/1");
}
