/* The barrier under thousands of fault schedules, each from its seed; and the
 * same barrier broken in four ways, which the schedules must find out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum broken {
    BROKEN_NOTHING,
    BROKEN_NO_REPEAT,    /* nothing is sent twice */
    BROKEN_IGNORE_EPOCH, /* what is said of one epoch counts in another */
    BROKEN_COUNT,        /* messages are counted, not senders */
    BROKEN_ONE_PHASE,    /* who knows that all have entered leaves */
    BROKEN_HASTY         /* who is stuck gives up by itself */
};
static enum broken broken;
#define LS_EPOCH_BROKEN(what) (broken == BROKEN_##what)

#include "barrier_epoch.c"
#include "barrier_members.c"
#include "barrier_receive.c"

#include "barrier_world.h"

static void destroy_world(struct world *world)
{
    for (size_t i = 0; i < world->n_heap; i++)
        free(world->heap[i].bytes);
    for (size_t i = 0; i < world->plan.n; i++)
        ls_epoch_destroy(&world->lives[i].machine);
    free(world->heap);
    free(world->records);
}

static void schedule_faults(struct world *world)
{
    const struct plan *plan = &world->plan;
    const int64_t span = plan->late + (int64_t)plan->waits * plan->think / 2;
    for (unsigned i = 0; i < plan->crashes; i++)
        soon(world, CRASH, (size_t)ls_rng_below(&world->rng, plan->n), span);
    for (unsigned i = 0; i < plan->aborts; i++)
        soon(world, ABORT, (size_t)ls_rng_below(&world->rng, plan->n), span);
    if (plan->false_lost) {
        const size_t about = (size_t)ls_rng_below(&world->rng, plan->n);
        const int64_t from = up_to(world, span);
        for (size_t i = 0; i < plan->n; i++) {
            if (i == about || chance(world, 0.5))
                continue;
            push(world, (struct happening){
                            .at = from + up_to(world, 10 * WORLD_MS),
                            .action = LOST,
                            .node = i,
                            .peer = about,
                            .incarnation = world->lives[about].incarnation});
        }
    }
}

static void create_world(struct world *world, const struct plan *plan,
                         uint64_t seed)
{
    static const uint32_t strange[] = {4294967295u, 7, 1000000, 4294967294u};
    *world = (struct world){.plan = *plan};
    ls_rng_seed(&world->rng, seed, 0);
    world->records = calloc(WORLD_EPOCHS_MAX, sizeof *world->records);
    assert_non_null(world->records);
    for (size_t i = 0; i < plan->n; i++) {
        world->lives[i].id = i < 4 ? strange[i] : (uint32_t)(i * 100 + 1);
        world->lives[i].incarnation = 1 + ls_rng_below(&world->rng, 900);
        soon(world, ENTER, i, plan->late);
    }
    schedule_faults(world);
}

static bool all_done(const struct world *world)
{
    for (size_t i = 0; i < world->plan.n; i++) {
        if (!world->lives[i].done)
            return false;
    }
    return true;
}

/* Nobody has left an epoch that another has failed, be it before a crash. */
static void check_uniform(struct world *world)
{
    for (uint64_t epoch = 0; epoch < WORLD_EPOCHS_MAX; epoch++) {
        const struct record *record = &world->records[epoch];
        bool left = false;
        bool failed = false;
        for (size_t i = 0; i < world->plan.n; i++) {
            left = left || record->left[i];
            failed = failed || record->failed[i];
        }
        if (left && failed)
            violate(world, "some left and some failed", 0, epoch);
    }
}

/* Run one seed; returns the virtual time that it took. */
static int64_t play(struct world *world, const struct plan *plan, uint64_t seed)
{
    create_world(world, plan, seed);
    while (world->n_heap > 0 && !all_done(world) &&
           world->violation[0] == '\0') {
        const struct happening what = pop(world);
        world->now = what.at;
        if (world->now > plan->give_up_at) {
            violate(world, "no end", 0, 0);
            free(what.bytes);
            break;
        }
        act(world, &what);
        free(what.bytes);
    }
    if (world->n_heap == 0 && !all_done(world))
        violate(world, "all wait for ever", 0, 0);
    const bool accurate = !plan->false_lost && plan->deadline == 0 &&
                          plan->aborts == 0 && !plan->restart;
    if (accurate)
        check_uniform(world);
    destroy_world(world);
    return world->now;
}

/* LOCKSTEP_SEEDS=20 plays twenty times as many. */
static uint64_t factor(void)
{
    const char *text = getenv("LOCKSTEP_SEEDS");
    return text == NULL ? 1 : strtoull(text, NULL, 10);
}

static void play_all(struct plan plan, uint64_t n_seeds)
{
    static struct world world;
    n_seeds *= factor();
    for (uint64_t seed = 1; seed <= n_seeds; seed++) {
        plan.n = 2 + seed % 8;
        play(&world, &plan, seed);
        if (world.violation[0] != '\0')
            fail_msg("seed %llu, %zu nodes: %s", (unsigned long long)seed,
                     plan.n, world.violation);
    }
}

static const struct plan rough = {
    .waits = 6,
    .loss = 0.2,
    .twice = 0.2,
    .delay = 5 * WORLD_MS,
    .think = 20 * WORLD_MS,
    .late = 30 * WORLD_MS,
    .give_up_at = 300 * LS_NS_PER_S,
};

static void test_all_leave_every_epoch_whatever_the_network_does(void **state)
{
    (void)state;
    play_all(rough, 700);
}

static void test_one_crash_leaves_the_others_agreed(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 1;
    play_all(plan, 1200);
}

static void test_two_crashes_leave_the_others_agreed(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 2;
    play_all(plan, 1200);
}

static void test_any_number_of_crashes_leave_the_others_agreed(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 5;
    plan.waits = 3;
    play_all(plan, 1200);
}

static void test_a_crash_among_busy_nodes_leaves_them_agreed(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 1;
    plan.think = 0;
    plan.waits = 10;
    plan.late = 10 * WORLD_MS;
    plan.delay = LS_NS_PER_MS / 2;
    play_all(plan, 1200);
}

static void test_a_restarted_node_joins_at_the_next_epoch(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 1;
    plan.restart = true;
    plan.retry = true;
    play_all(plan, 700);
}

static void test_two_restarts_do_not_stop_the_world(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 2;
    plan.restart = true;
    plan.retry = true;
    play_all(plan, 700);
}

static void test_a_false_alarm_breaks_no_promise_but_agreement(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.false_lost = true;
    plan.retry = true;
    play_all(plan, 700);
}

static void test_a_false_alarm_beside_a_crash_does_not_stop_them(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.false_lost = true;
    plan.crashes = 1;
    plan.restart = true;
    plan.retry = true;
    play_all(plan, 700);
}

static void test_aborts_and_deadlines_do_not_stop_the_world(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.aborts = 4;
    plan.deadline = 400 * WORLD_MS;
    plan.retry = true;
    play_all(plan, 700);
}

static void test_many_nodes_with_a_few_messages_each(void **state)
{
    (void)state;
    static struct world world;
    const struct plan plan = {.n = WORLD_NODES_MAX,
                              .waits = 20,
                              .delay = WORLD_MS,
                              .give_up_at = 60 * LS_NS_PER_S};
    play(&world, &plan, 1);
    assert_string_equal(world.violation, "");
    /* Request, ready, ack, leave; and none of them twice. */
    assert_true(world.n_sent <= 20 * 4 * (WORLD_NODES_MAX - 1));
    assert_true(world.n_sent >= 19 * 4 * (WORLD_NODES_MAX - 1));
}

/* The seeds must find what is broken; `n_seeds` of them suffice. */
static void check_found(enum broken what, struct plan plan, uint64_t n_seeds)
{
    static struct world world;
    bool found = false;
    broken = what;
    for (uint64_t seed = 1; seed <= n_seeds && !found; seed++) {
        plan.n = 2 + seed % 8;
        play(&world, &plan, seed);
        found = world.violation[0] != '\0';
    }
    broken = BROKEN_NOTHING;
    assert_true(found);
}

static void test_without_repeats_somebody_waits_for_ever(void **state)
{
    (void)state;
    check_found(BROKEN_NO_REPEAT, rough, 100);
}

static void test_an_ack_of_another_epoch_must_not_count(void **state)
{
    (void)state;
    check_found(BROKEN_IGNORE_EPOCH, rough, 1000);
}

static void test_a_message_that_comes_twice_must_not_count_twice(void **state)
{
    (void)state;
    check_found(BROKEN_COUNT, rough, 1000);
}

static void test_with_one_phase_the_survivors_disagree(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 1;
    check_found(BROKEN_ONE_PHASE, plan, 2000);
}

static void test_who_is_stuck_must_not_give_up_by_itself(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 3;
    check_found(BROKEN_HASTY, plan, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_leave_every_epoch_whatever_the_network_does),
        cmocka_unit_test(test_one_crash_leaves_the_others_agreed),
        cmocka_unit_test(test_two_crashes_leave_the_others_agreed),
        cmocka_unit_test(test_any_number_of_crashes_leave_the_others_agreed),
        cmocka_unit_test(test_a_crash_among_busy_nodes_leaves_them_agreed),
        cmocka_unit_test(test_a_restarted_node_joins_at_the_next_epoch),
        cmocka_unit_test(test_two_restarts_do_not_stop_the_world),
        cmocka_unit_test(test_a_false_alarm_breaks_no_promise_but_agreement),
        cmocka_unit_test(test_a_false_alarm_beside_a_crash_does_not_stop_them),
        cmocka_unit_test(test_aborts_and_deadlines_do_not_stop_the_world),
        cmocka_unit_test(test_many_nodes_with_a_few_messages_each),
        cmocka_unit_test(test_without_repeats_somebody_waits_for_ever),
        cmocka_unit_test(test_an_ack_of_another_epoch_must_not_count),
        cmocka_unit_test(test_a_message_that_comes_twice_must_not_count_twice),
        cmocka_unit_test(test_with_one_phase_the_survivors_disagree),
        cmocka_unit_test(test_who_is_stuck_must_not_give_up_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
