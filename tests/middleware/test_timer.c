/* The times of all steps of a task. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lockstep/log.h"
#include "lockstep/middleware.h"
#include "runtime_ops.h"

/* A runtime of threads whose clock moves only when a step works. */
static int64_t clock_ns;

static int64_t clock_now(ls_runtime *runtime)
{
    (void)runtime;
    return clock_ns;
}

static struct ls_runtime_ops ops;
static ls_runtime runtime = {.ops = &ops};

static int both_halves(ls_step *step, void *self)
{
    (void)self;
    clock_ns += 3 * LS_NS_PER_MS;
    const int status = ls_yield(step);
    clock_ns += 2 * LS_NS_PER_MS;
    return status;
}

/* Takes as many ms as its run: 1, 2, 3 … */
static int ever_longer(ls_step *step, void *self)
{
    (void)step;
    int *run = self;
    clock_ns += ++*run * LS_NS_PER_MS;
    return LS_OK;
}

static int failing(ls_step *step, void *self)
{
    (void)self;
    const int status = ls_yield(step);
    return status != LS_OK ? status : ls_error(LS_EIO, "as it should");
}

struct world {
    ls_task *task;
    ls_step_times *times;
    int run;
};

static int setup(void **state)
{
    static struct world world;
    ops = *ls_runtime_threads()->ops;
    ops.now = clock_now;
    world = (struct world){.task = NULL};
    const struct ls_task_options options = {.runtime = &runtime};
    *state = &world;
    return ls_task_create(&world.task, &options);
}

static int teardown(void **state)
{
    struct world *world = *state;
    ls_task_destroy(&world->task);
    ls_step_times_destroy(&world->times);
    return world->times != NULL;
}

static void test_steps_used_before_and_after_are_timed(void **state)
{
    struct world *world = *state;
    ls_task_use_fn(world->task, both_halves, NULL);
    assert_int_equal(
        ls_task_use(world->task, ls_mw_timer(world->task,
                                             &(struct ls_step_times_options){
                                                 .out = &world->times})),
        LS_OK);
    ls_task_use_fn(world->task, ever_longer, &world->run);
    assert_int_equal(ls_task_run(world->task, 3), LS_OK);

    struct ls_step_time times[4];
    assert_int_equal(ls_step_times_get(world->times, times, 4), 2);
    const size_t both = strcmp(times[0].name, "both_halves") == 0 ? 0 : 1;
    assert_string_equal(times[both].name, "both_halves");
    assert_int_equal(times[both].count, 3);
    assert_true(times[both].last_ms == 5.0);
    assert_true(times[both].mean_ms == 5.0);
    assert_string_equal(times[1 - both].name, "ever_longer");
    assert_int_equal(times[1 - both].count, 3);
    assert_true(times[1 - both].last_ms == 3.0);
    assert_true(times[1 - both].mean_ms == 2.0);
}

static void test_the_mean_is_of_the_window(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        ls_task_use(world->task,
                    ls_mw_timer(world->task,
                                &(struct ls_step_times_options){
                                    .out = &world->times, .window = 2})),
        LS_OK);
    ls_task_use_fn(world->task, ever_longer, &world->run);
    assert_int_equal(ls_task_run(world->task, 5), LS_OK);
    struct ls_step_time time;
    assert_int_equal(ls_step_times_get(world->times, &time, 1), 1);
    assert_int_equal(time.count, 5);
    assert_true(time.mean_ms == 4.5);
    double ms[3] = {0};
    const char *const name = "ever_longer";
    assert_int_equal(ls_step_times_samples(world->times, name, ms, 1), 2);
    assert_true(ms[0] == 4.0 && ms[1] == 0.0);
    assert_int_equal(ls_step_times_samples(world->times, name, ms, 3), 2);
    assert_true(ms[0] == 4.0 && ms[1] == 5.0 && ms[2] == 0.0);
    assert_int_equal(ls_step_times_samples(world->times, "no", ms, 3),
                     LS_ENOENT);
}

static void test_it_outlives_its_task(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        ls_task_use(world->task, ls_mw_timer(world->task,
                                             &(struct ls_step_times_options){
                                                 .out = &world->times})),
        LS_OK);
    assert_int_equal(ls_step_times_destroy(&world->times), LS_ESTATE);
    assert_non_null(world->times);
    assert_int_equal(ls_task_destroy(&world->task), LS_OK);
    assert_int_equal(ls_step_times_destroy(&world->times), LS_OK);
    assert_null(world->times);
}

static void test_steps_of_one_name_share_a_record(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        ls_task_use(world->task, ls_mw_timer(world->task,
                                             &(struct ls_step_times_options){
                                                 .out = &world->times})),
        LS_OK);
    ls_task_use_fn(world->task, both_halves, NULL);
    ls_task_use_fn(world->task, both_halves, NULL);
    assert_int_equal(ls_task_run(world->task, 2), LS_OK);
    struct ls_step_time time;
    assert_int_equal(ls_step_times_get(world->times, &time, 1), 1);
    assert_int_equal(time.count, 4);
}

static void test_two_timers_both_record(void **state)
{
    struct world *world = *state;
    ls_step_times *other = NULL;
    assert_int_equal(
        ls_task_use(world->task, ls_mw_timer(world->task,
                                             &(struct ls_step_times_options){
                                                 .out = &world->times})),
        LS_OK);
    assert_int_equal(
        ls_task_use(world->task, ls_mw_timer(world->task,
                                             &(struct ls_step_times_options){
                                                 .out = &other})),
        LS_OK);
    ls_task_use_fn(world->task, both_halves, NULL);
    assert_int_equal(ls_task_run(world->task, 3), LS_OK);
    struct ls_step_time time;
    assert_int_equal(ls_step_times_get(world->times, &time, 1), 1);
    assert_int_equal(time.count, 3);
    assert_int_equal(ls_step_times_get(other, &time, 1), 1);
    assert_int_equal(time.count, 3);
    ls_task_destroy(&world->task);
    ls_step_times_destroy(&other);
}

static void test_a_step_that_failed_is_not_recorded(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        ls_task_use(world->task, ls_mw_timer(world->task,
                                             &(struct ls_step_times_options){
                                                 .out = &world->times})),
        LS_OK);
    ls_task_use_fn(world->task, both_halves, NULL);
    ls_task_use_fn(world->task, failing, NULL);
    assert_int_equal(ls_task_run(world->task, 3), LS_EIO);
    assert_int_equal(ls_step_times_get(world->times, NULL, 0), 0);
}

static int n_lines;

static void count_lines(void *self, const char *line)
{
    (void)self;
    if (strstr(line, "timer: both_halves took 5.000 ms") != NULL)
        n_lines++;
}

static void test_a_line_per_step_is_logged_every_so_often(void **state)
{
    struct world *world = *state;
    n_lines = 0;
    assert_int_equal(ls_log_setup("info"), LS_OK);
    ls_log_redirect(count_lines, NULL);
    assert_int_equal(
        ls_task_use(world->task,
                    ls_mw_timer(world->task,
                                &(struct ls_step_times_options){
                                    .out = &world->times, .every = 3})),
        LS_OK);
    ls_task_use_fn(world->task, both_halves, NULL);
    assert_int_equal(ls_task_run(world->task, 7), LS_OK);
    ls_log_redirect(NULL, NULL);
    assert_int_equal(n_lines, 2);
}

static void test_destroy_takes_nothing(void **state)
{
    (void)state;
    ls_step_times *none = NULL;
    ls_step_times_destroy(NULL);
    ls_step_times_destroy(&none);
}

#define test(function)                                                         \
    cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_steps_used_before_and_after_are_timed),
        test(test_the_mean_is_of_the_window),
        test(test_it_outlives_its_task),
        test(test_steps_of_one_name_share_a_record),
        test(test_two_timers_both_record),
        test(test_a_step_that_failed_is_not_recorded),
        test(test_a_line_per_step_is_logged_every_so_often),
        cmocka_unit_test(test_destroy_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
