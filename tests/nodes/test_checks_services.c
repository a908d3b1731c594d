/* What the checks say to stories that the nodes of a service cluster tell: a
 * job that goes well, and each promise broken once. */
#include "checks_services_story.h"
#include "test.h"

static void all_goes_well(void *arg)
{
    all_begin(arg);
    for (int64_t step = 1; step <= 2; step++) {
        a_sample_comes(arg, step == 1 ? "one" : "two");
        gives_batch(arg, 4, LEARNER, 1, step == 1 ? "one" : "two");
        ends_learned(arg, 4, 1);
        commits(arg, LEARNER, 1, step);
        informs(arg, step, false);
        drops(arg, step == 1 ? "one" : "two");
    }
    informs(arg, 2, true);
    collecting_ends(arg);
    learning_ends(arg, LEARNER, 1);
    is_over(arg, 2);
}

TEST(a_job_that_goes_well)
{
    judge(all_goes_well, NULL);
}

static void a_learner_is_lost(struct world *world)
{
    all_begin(world);
    asks(world, 5, LEARNER, CALL_LEARNER_DEMAND, "learn", 1);
    commits(world, LEARNER, 1, 1);
    checks_killed(world->lives[LEARNER]);
    ends(world, 5, LS_CALL_LOST);
    starts_learner(world, 6, RESERVE, 2);
    begins(world, RESERVE, "learn", 2);
    ends_started(world, 6);
}

static void the_reserve_goes_on(void *arg)
{
    a_learner_is_lost(arg);
    loads(arg, RESERVE, "learn", 2, 1);
    commits(arg, RESERVE, 2, 2);
    informs(arg, 2, true);
    collecting_ends(arg);
    learning_ends(arg, RESERVE, 2);
    is_over(arg, 0);
}

TEST(a_lost_work_goes_on_with_its_next_attempt)
{
    judge(the_reserve_goes_on, NULL);
}

static void the_reserve_begins_anew(void *arg)
{
    a_learner_is_lost(arg);
    loads(arg, RESERVE, "learn", 2, 1);
    commits(arg, RESERVE, 2, 1);
}

TEST(no_version_is_committed_twice)
{
    judge(the_reserve_begins_anew,
          "once: node 2 commits version 1 of policy after version 1");
}

static void the_reserve_loads_nothing(void *arg)
{
    a_learner_is_lost(arg);
    commits(arg, RESERVE, 2, 0);
}

TEST(a_later_attempt_goes_on_from_the_last_version)
{
    judge(the_reserve_loads_nothing,
          "once: node 2 commits version 0 of policy after version 1");
}

static void an_old_policy_is_loaded(void *arg)
{
    a_learner_is_lost(arg);
    passes(arg, 1);
    loads(arg, COLLECTOR, "collect", 1, 0);
}

TEST(what_was_committed_is_what_is_loaded)
{
    judge(an_old_policy_is_loaded,
          "lost: node 3 loads version 0 of policy, when version 1 was "
          "committed");
}

static void other_training_is_loaded(void *arg)
{
    a_learner_is_lost(arg);
    passes(arg, 1);
    loads_with(arg, RESERVE, "learn", 2, 1, 1, "another");
}

static void the_same_or_none_is_loaded(void *arg)
{
    a_learner_is_lost(arg);
    passes(arg, 1);
    loads_with(arg, RESERVE, "learn", 2, 1, 0, "another");
    loads_with(arg, RESERVE, "learn", 2, 1, 1, "");
    loads_with(arg, RESERVE, "learn", 2, 1, 1, "the training");
    commits(arg, RESERVE, 2, 2);
    informs(arg, 2, true);
    collecting_ends(arg);
    learning_ends(arg, RESERVE, 2);
    is_over(arg, 0);
}

TEST(the_training_that_was_committed_is_what_is_loaded)
{
    judge(other_training_is_loaded,
          "lost: node 2 loads version 1 of policy with another training state "
          "than it was committed with");
    judge(the_same_or_none_is_loaded, NULL);
}

static void two_begin_the_same(void *arg)
{
    all_begin(arg);
    begins(arg, RESERVE, "learn", 1);
}

static void one_begins_twice(void *arg)
{
    all_begin(arg);
    lets_go(arg, LEARNER, "learn", 1);
    begins(arg, LEARNER, "learn", 1);
}

static void one_begins_two(void *arg)
{
    all_begin(arg);
    starts_collector(arg, 5, COLLECTOR, "other", 1);
    begins(arg, COLLECTOR, "other", 1);
}

TEST(a_work_is_begun_once_by_whom_it_was_given)
{
    judge(two_begin_the_same,
          "once: node 2 begins work learn/1, which it was not given");
    judge(one_begins_twice,
          "once: work learn/1 was begun by node 1 and by node 1");
    judge(one_begins_two,
          "once: node 3 begins work other/1 and holds work collect/1");
}

static void it_is_given_to_two(void *arg)
{
    all_begin(arg);
    starts_collector(arg, 5, OTHER, "collect", 1);
}

static void it_is_given_out_again(void *arg)
{
    all_begin(arg);
    starts_collector(arg, 5, OTHER, "collect", 2);
}

static void it_is_given_after_a_refusal(void *arg)
{
    opens(arg);
    starts_collector(arg, 1, COLLECTOR, "collect", 1);
    ends(arg, 1, LS_CALL_START_FAILED);
    starts_collector(arg, 2, OTHER, "collect", 1);
    begins(arg, OTHER, "collect", 1);
    ends_started(arg, 2);
    breaks_off(arg);
}

static void it_is_given_after_silence(void *arg)
{
    opens(arg);
    starts_collector(arg, 1, COLLECTOR, "collect", 1);
    ends(arg, 1, LS_CALL_TIMEOUT);
    starts_collector(arg, 2, OTHER, "collect", 1);
}

/* The loss of a member overtakes what it had answered. */
static void it_is_given_after_a_loss(void *arg)
{
    opens(arg);
    starts_collector(arg, 1, COLLECTOR, "collect", 1);
    begins(arg, COLLECTOR, "collect", 1);
    loses(arg, COLLECTOR);
    ends_started(arg, 1);
    starts_collector(arg, 2, OTHER, "collect", 2);
    ends(arg, 2, LS_CALL_LOST);
    breaks_off(arg);
}

TEST(a_work_is_given_out_again_when_it_was_given_up)
{
    judge(it_is_given_to_two, "once: work collect/1 was given to node 3, and "
                              "is given to node 4 again");
    judge(it_is_given_out_again,
          "once: work collect/2 is given out while attempt 1 of node 3 was "
          "not given up");
    judge(it_is_given_after_a_refusal, NULL);
    judge(it_is_given_after_a_loss, NULL);
    judge(it_is_given_after_silence, "once: work collect/1 was given to node "
                                     "3, and is given to node 4 again");
}

/* The coordinator, killed. */
static void comes_back(struct world *world)
{
    checks_killed(world->lives[COORDINATOR]);
    assert_ok(checks_begin(world->checks, &world->lives[COORDINATOR],
                           COORDINATOR, world->hosts[COORDINATOR]));
    opens(world);
}

static void a_later_life_gives_it_out(void *arg)
{
    struct world *world = arg;
    all_begin(world);
    comes_back(world);
    starts_collector(world, 1, OTHER, "collect", 2);
    begins(world, OTHER, "collect", 2);
    breaks_off(world);
}

TEST(a_later_coordinator_may_give_up_what_it_finds)
{
    judge(a_later_life_gives_it_out, NULL);
}

static void a_later_life_goes_on(void *arg)
{
    struct world *world = arg;
    opens(world);
    starts_collector(world, 1, COLLECTOR, "collect", 1);
    begins(world, COLLECTOR, "collect", 1);
    comes_back(world); /* before it hears that */
    collecting_ends(world);
    is_over(world, 0);
}

static void a_later_life_ignores_what_it_was_told(void *arg)
{
    struct world *world = arg;
    all_begin(world);
    comes_back(world);
    asks_what_it_holds(world, 1, COLLECTOR);
    ends_holding(world, 1, "collect", 1);
    starts_collector(world, 2, OTHER, "collect", 2);
}

TEST(a_later_coordinator_goes_on_with_what_is_held)
{
    judge(a_later_life_ignores_what_it_was_told,
          "once: work collect/2 is given out while attempt 1 of node 3 was "
          "not given up");
}

TEST(a_later_coordinator_may_go_on_with_what_it_finds)
{
    judge(a_later_life_goes_on, NULL);
}

static void a_work_is_left(void *arg)
{
    all_begin(arg);
    learning_ends(arg, LEARNER, 1);
    is_over(arg, 0);
}

TEST(each_work_is_closed_or_given_up)
{
    judge(a_work_is_left, "lost: work collect/1 of node 3 was neither closed "
                          "nor given up");
}

static void a_sample_stays(void *arg)
{
    all_begin(arg);
    a_sample_comes(arg, "one");
    collecting_ends(arg);
    learning_ends(arg, LEARNER, 1);
    is_over(arg, 1);
}

static void a_sample_is_not_counted(void *arg)
{
    all_begin(arg);
    a_sample_comes(arg, "one");
    drops(arg, "one");
    collecting_ends(arg);
    learning_ends(arg, LEARNER, 1);
    is_over(arg, 0);
}

static void a_sample_is_given_that_is_gone(void *arg)
{
    all_begin(arg);
    a_sample_comes(arg, "one");
    drops(arg, "one");
    gives_batch(arg, 4, LEARNER, 1, "one");
}

static void a_sample_is_dropped_too_early(void *arg)
{
    all_begin(arg);
    a_sample_comes(arg, "one");
    gives_batch(arg, 4, LEARNER, 1, "one");
    drops(arg, "one");
    ends_learned(arg, 4, 1);
}

static void a_sample_comes_again(void *arg)
{
    all_begin(arg);
    a_sample_comes(arg, "one");
    a_sample_comes(arg, "one");
}

TEST(no_sample_is_lost)
{
    judge(a_sample_stays, "lost: sample one was never dropped from the store");
    judge(a_sample_is_not_counted,
          "lost: 1 samples came, 0 were accepted, 0 refused and 0 too late");
    judge(a_sample_is_given_that_is_gone,
          "lost: node 1 is to learn from sample one, which is not there");
    judge(a_sample_is_dropped_too_early,
          "lost: sample one was dropped while node 1 had it");
    judge(a_sample_comes_again, "once: sample one comes twice");
}

static void a_call_is_left(void *arg)
{
    all_begin(arg);
    asks(arg, 5, LEARNER, CALL_LEARNER_DEMAND, "learn", 1);
    is_over(arg, 0);
}

static void a_call_outlasts_its_deadline(void *arg)
{
    all_begin(arg);
    asks(arg, 5, LEARNER, CALL_LEARNER_DEMAND, "learn", 1);
    passes(arg, 13);
}

static void a_call_waits_for_the_clock_of_its_caller(void *arg)
{
    struct world *world = arg;
    all_begin(world);
    asks(world, 5, LEARNER, CALL_LEARNER_DEMAND, "learn", 1);
    checks_clock_set(world->lives[COORDINATOR], -20 * LS_NS_PER_S);
    passes(world, 20);
    ends(world, 5, LS_CALL_TIMEOUT);
    breaks_off(world);
}

static void a_call_ends_twice(void *arg)
{
    all_begin(arg);
    asks(arg, 5, LEARNER, CALL_LEARNER_DEMAND, "learn", 1);
    ends(arg, 5, LS_CALL_LOST);
    ends(arg, 5, LS_CALL_TIMEOUT);
}

TEST(each_call_ends_once_and_in_time)
{
    judge(a_call_is_left, "calls: learner_get_data_task to node 1 is open "
                          "after the job's end");
    judge(a_call_outlasts_its_deadline,
          "calls: learner_get_data_task to node 1 is open after");
    judge(a_call_waits_for_the_clock_of_its_caller, NULL);
    judge(a_call_ends_twice, "calls: call 5 ends, which is not open");
}

static void an_answer_is_of_another_attempt(void *arg)
{
    all_begin(arg);
    asks_for_data(arg, 3, COLLECTOR, "collect", 1);
    ends_with_sample(arg, 3, "collect", 2, "one");
}

static void an_answer_is_of_another_work(void *arg)
{
    all_begin(arg);
    asks(arg, 8, COLLECTOR, CALL_COLLECTOR_CLOSE, "collect", 1);
    ends_closed(arg, 8, "before", 1);
}

static void an_answer_breaks_the_format(void *arg)
{
    all_begin(arg);
    asks_for_data(arg, 3, COLLECTOR, "collect", 1);
    ends_started(arg, 3);
}

static void one_ends_what_it_does_not_hold(void *arg)
{
    all_begin(arg);
    lets_go(arg, COLLECTOR, "collect", 2);
}

static const char *garbled;

static void a_call_is_garbled(void *arg)
{
    ls_writer *data = writer();
    ls_write_string(data, "nonsense");
    opens(arg);
    calls(arg, 1, COLLECTOR, garbled, data);
}

TEST(each_call_can_be_read)
{
    static const char *const names[] = {
        CALL_LEARNER_START, CALL_COLLECTOR_START, CALL_LEARNER_LEARN,
        CALL_COLLECTOR_DATA, CALL_LEARNER_CLOSE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        garbled = names[i];
        judge(a_call_is_garbled, "calls: ");
    }
}

TEST(nobody_answers_for_another_work)
{
    judge(an_answer_is_of_another_attempt,
          "stale: node 3 answers collector_data_task of work collect/1 for "
          "work collect/2");
    judge(an_answer_is_of_another_work,
          "stale: node 3 answers collector_close_task of work collect/1 for "
          "work before/1");
    judge(an_answer_breaks_the_format,
          "stale: node 3 answers collector_data_task:");
    judge(one_ends_what_it_does_not_hold,
          "stale: node 3 ends work collect/2, which it does not hold");
}

static void an_info_is_missing(void *arg)
{
    all_begin(arg);
    informs(arg, 2, false);
    informs(arg, 2, true);
    collecting_ends(arg);
    learning_ends(arg, LEARNER, 1);
    is_over(arg, 0);
}

static void it_is_done_too_early(void *arg)
{
    all_begin(arg);
    informs(arg, 1, false);
    informs(arg, 1, true);
    collecting_ends(arg);
    learning_ends(arg, LEARNER, 1);
    is_over(arg, 0);
}

static void it_is_done_twice(void *arg)
{
    all_begin(arg);
    informs(arg, 2, true);
    informs(arg, 2, true);
}

static void an_info_is_of_before(void *arg)
{
    all_begin(arg);
    informs(arg, 2, false);
    informs(arg, 1, false);
}

/* The one that got the last could not write it: its disk was full. */
static void a_later_life_gets_the_last_again(void *arg)
{
    struct world *world = arg;
    all_begin(world);
    informs(world, 1, false);
    informs(world, 2, true);
    comes_back(world);
    informs(world, 2, true);
    collecting_ends(world);
    learning_ends(world, LEARNER, 1);
    is_over(world, 0);
}

TEST(a_later_coordinator_gets_the_last_info_again)
{
    judge(a_later_life_gets_the_last_again, NULL);
}

TEST(n_iterations_are_n_plus_1_infos)
{
    judge(an_info_is_missing, "infos: 2 infos of 2 iterations");
    judge(it_is_done_too_early,
          "infos: the last info is of iteration 1, and there were to be 2");
    judge(it_is_done_twice, "infos: an info comes after the last one");
    judge(an_info_is_of_before, "infos: the info of iteration 1 comes after "
                                "that of iteration 2");
}

static void a_coordinator_stays(void *arg)
{
    all_begin(arg);
}

TEST(no_coordinator_outlasts_its_run)
{
    judge(a_coordinator_stays, "end: node 0 coordinates after the end");
}

static void the_dead_speak(void *arg)
{
    struct world *world = arg;
    all_begin(world);
    checks_killed(world->lives[LEARNER]);
    commits(world, LEARNER, 1, 7);
    checks_killed(world->lives[COORDINATOR]);
    starts_collector(world, 5, OTHER, "collect", 1);
    is_over(world, 0);
}

TEST(what_the_dead_say_nobody_hears)
{
    judge(the_dead_speak, NULL);
}
