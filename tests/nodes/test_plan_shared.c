/* Several learners that share each batch. */
#include <string.h>

#include "plan_reading.h"
#include "test.h"

#define NODES "plugin: p\nnodes:\n"
#define TWO                                                                    \
    NODES "- {role: learner, id: 9}\n"                                         \
          "- {role: evaluator, id: 1}\n"                                       \
          "- {role: collector, id: 10, count: 3}\n"                            \
          "- {role: collector, id: 2}\n"                                       \
          "- {role: learner, id: 0}\n"

static void assert_words(const struct plan *plan, uint32_t id,
                         const char *expected)
{
    char text[PLAN_ROLE_MAX];
    size_t index = 0;
    assert_ok(plan_find(plan, id, &index));
    assert_string_equal(plan_role_words(plan, index, text), expected);
}

TEST(each_learner_has_the_collectors_of_its_part_in_order_of_ids)
{
    struct plan plan;
    read_good(&plan, TWO "learner: {driver: bus}\n");
    assert_true(plan_is_shared(&plan));
    assert_words(&plan, 0, "learner,learner.0");
    assert_words(&plan, 9, "learner,learner.1");
    assert_words(&plan, 1, "evaluator");
    assert_words(&plan, 2, "collector,collector.0");
    assert_words(&plan, 10, "collector,collector.0");
    assert_words(&plan, 11, "collector,collector.1");
    assert_words(&plan, 12, "collector,collector.1");
    plan_fini(&plan);
}

TEST(one_learner_has_all)
{
    struct plan plan;
    read_good(&plan, FIVE);
    assert_false(plan_is_shared(&plan));
    assert_int_equal(plan.learner.driver, PLAN_SINGLE);
    assert_words(&plan, 0, "learner");
    assert_words(&plan, 1, "collector");
    assert_int_equal(plan_part(&plan, 1), 0);
    plan_fini(&plan);
    read_good(&plan, FIVE "learner: {device: [cpu, cpu]}\n");
    assert_int_equal(plan.learner.driver, PLAN_THREADS);
    plan_fini(&plan);
    read_good(&plan, FIVE "learner: {driver: threads, device: [cpu, cpu]}\n");
    plan_fini(&plan);
}

TEST(what_cannot_be_shared_is_refused)
{
    assert_problem(TWO, "2:1",
                   "exactly one learner; here are 2. To have them "
                   "share each batch, set learner.driver: bus");
    assert_problem(FIVE "learner: {driver: buss}\n", "6:19",
                   "did you mean \"bus\"");
    assert_problem(FIVE "learner: {driver: single, device: [cpu, cpu]}\n",
                   "6:19", "2 devices share each batch, which is threads");
    assert_problem(FIVE "learner: {driver: threads}\n", "6:19",
                   "there is one device");
    assert_problem(FIVE "learner: {driver: bus}\n", "6:19",
                   "there is one learner");
    assert_problem(TWO "- {role: collector, id: 99}\n"
                       "learner: {driver: bus}\n",
                   "2:1", "5 collectors cannot be divided evenly among the 2");
    assert_problem(TWO "learner: {driver: bus, device: [cpu, cpu]}\n", "8:19",
                   "one device each; here are 2");
    assert_problem(TWO "learner: {driver: bus, queue: 1}\n", "8:31",
                   "no queue");
}

#define SERVED(n)                                                              \
    NODES "- role: coordinator\n"                                              \
          "- {role: learner, count: " n "}\n"                                  \
          "- {role: collector, count: 3}\n"

TEST(learners_of_a_coordinator_are_ranks_of_one_work)
{
    struct plan plan;
    char text[PLAN_ROLE_MAX];
    read_good(&plan, SERVED("2") "learner: {driver: bus}\n");
    assert_int_equal(plan_ranks(&plan), 2);
    assert_false(plan_is_shared(&plan)); /* by parts of collectors */
    assert_string_equal(plan_role_words(&plan, 1, text), "learner");
    plan_fini(&plan);
    read_good(&plan, SERVED("3"));
    assert_int_equal(plan_ranks(&plan), 1);
    plan_fini(&plan);
    /* Two are in reserve; what the collectors bring in one go is cut to what
     * can be shared. */
    read_good(&plan, SERVED("4") "learner: {driver: bus, ranks: 2, queue: 1}\n"
                                 "collector: {envs: 3}\n");
    assert_int_equal(plan_ranks(&plan), 2);
    assert_int_equal(plan.service.fsm.batch_size, 8);
    plan_fini(&plan);
}

TEST(what_ranks_cannot_do_is_refused)
{
    assert_problem(SERVED("1") "learner: {driver: bus}\n", "6:19",
                   "there is one learner");
    assert_problem(SERVED("2") "learner: {driver: bus, ranks: 3}\n", "6:31",
                   "3 ranks; here are 2 learners");
    assert_problem(SERVED("2") "learner: {ranks: 2}\n", "6:18",
                   "ranks goes with driver: bus");
    assert_problem(SERVED("3") "learner: {driver: bus}\n"
                               "coordinator: {batch: 8}\n",
                   "7:22", "8 samples cannot be shared evenly by 3 ranks");
    assert_problem(SERVED("2") "learner: {driver: bus, loaders: 2}\n", "6:33",
                   "in another order in one rank than in another");
    assert_problem(SERVED("2") "learner: {driver: bus, stacks: 33}\n", "6:32",
                   "32 of them under way at most");
    assert_problem(NODES "- role: coordinator\n"
                         "- {role: learner, count: 2, on_loss: go_on}\n"
                         "- {role: collector, count: 2}\n"
                         "learner: {driver: bus}\n",
                   "2:1", "nobody learns without one of the 2 ranks");
    assert_problem(TWO "learner: {driver: bus, ranks: 2}\n", "8:31",
                   "with driver: bus all learners share each batch");
}

static uint64_t learns(const char *text)
{
    struct plan plan;
    read_good(&plan, text);
    const uint64_t hash = plan_learning_hash(&plan);
    plan_fini(&plan);
    return hash;
}

/* Else a run would go on with batches that are divided in another way. */
TEST(another_number_of_ranks_learns_something_else)
{
    static const char *const texts[] = {
        SERVED("6") "coordinator: {batch: 12}\n",
        SERVED("6") "coordinator: {batch: 12}\n"
                    "learner: {driver: bus, ranks: 2}\n",
        SERVED("6") "coordinator: {batch: 12}\n"
                    "learner: {driver: bus, ranks: 3}\n",
        SERVED("6") "coordinator: {batch: 12}\n"
                    "learner: {driver: bus}\n"};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(learns(texts[i]) != learns(texts[k]));
    assert_true(learns(texts[3]) ==
                learns(SERVED("6") "coordinator: {batch: 12}\n"
                                   "learner: {driver: bus, ranks: 6}\n"
                                   "collector: {threads: 4}\n"));
}
