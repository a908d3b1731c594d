/* The times of all steps of a task. */
#include <string.h>

#include "lockstep/log.h"
#include "lockstep/middleware.h"
#include "still_clock.h"
#include "test.h"

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
    stop_clock();
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

static void use_timer(ls_task *task, unsigned every, unsigned window,
                      ls_step_times **out)
{
    const struct ls_step_times_options options = {
        .out = out, .every = every, .window = window};
    assert_ok(ls_task_use(task, ls_mw_timer(task, &options)));
}

TEST_WITH(steps_used_before_and_after_are_timed, setup, teardown)
{
    struct world *world = *state;
    ls_task_use_fn(world->task, both_halves, NULL);
    use_timer(world->task, 0, 0, &world->times);
    ls_task_use_fn(world->task, ever_longer, &world->run);
    assert_ok(ls_task_run(world->task, 3));

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

TEST_WITH(the_mean_is_of_the_window, setup, teardown)
{
    struct world *world = *state;
    use_timer(world->task, 0, 2, &world->times);
    ls_task_use_fn(world->task, ever_longer, &world->run);
    assert_ok(ls_task_run(world->task, 5));
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
    assert_fails(ls_step_times_samples(world->times, "no", ms, 3), LS_ENOENT);
}

TEST_WITH(it_outlives_its_task, setup, teardown)
{
    struct world *world = *state;
    use_timer(world->task, 0, 0, &world->times);
    assert_fails(ls_step_times_destroy(&world->times), LS_ESTATE);
    assert_non_null(world->times);
    assert_ok(ls_task_destroy(&world->task));
    assert_ok(ls_step_times_destroy(&world->times));
    assert_null(world->times);
}

TEST_WITH(steps_of_one_name_share_a_record, setup, teardown)
{
    struct world *world = *state;
    use_timer(world->task, 0, 0, &world->times);
    ls_task_use_fn(world->task, both_halves, NULL);
    ls_task_use_fn(world->task, both_halves, NULL);
    assert_ok(ls_task_run(world->task, 2));
    struct ls_step_time time;
    assert_int_equal(ls_step_times_get(world->times, &time, 1), 1);
    assert_int_equal(time.count, 4);
}

TEST_WITH(two_timers_both_record, setup, teardown)
{
    struct world *world = *state;
    ls_step_times *other = NULL;
    use_timer(world->task, 0, 0, &world->times);
    use_timer(world->task, 0, 0, &other);
    ls_task_use_fn(world->task, both_halves, NULL);
    assert_ok(ls_task_run(world->task, 3));
    struct ls_step_time time;
    assert_int_equal(ls_step_times_get(world->times, &time, 1), 1);
    assert_int_equal(time.count, 3);
    assert_int_equal(ls_step_times_get(other, &time, 1), 1);
    assert_int_equal(time.count, 3);
    ls_task_destroy(&world->task);
    ls_step_times_destroy(&other);
}

TEST_WITH(a_step_that_failed_is_not_recorded, setup, teardown)
{
    struct world *world = *state;
    use_timer(world->task, 0, 0, &world->times);
    ls_task_use_fn(world->task, both_halves, NULL);
    ls_task_use_fn(world->task, failing, NULL);
    assert_fails(ls_task_run(world->task, 3), LS_EIO);
    assert_int_equal(ls_step_times_get(world->times, NULL, 0), 0);
}

static int n_lines;

static void count_lines(void *self, const char *line)
{
    (void)self;
    if (strstr(line, "timer: both_halves took 5.000 ms") != NULL)
        n_lines++;
}

TEST_WITH(a_line_per_step_is_logged_every_so_often, setup, teardown)
{
    struct world *world = *state;
    n_lines = 0;
    assert_ok(ls_log_setup("info"));
    ls_log_redirect(count_lines, NULL);
    use_timer(world->task, 3, 0, &world->times);
    ls_task_use_fn(world->task, both_halves, NULL);
    assert_ok(ls_task_run(world->task, 7));
    ls_log_redirect(NULL, NULL);
    assert_int_equal(n_lines, 2);
}

TEST(destroy_takes_nothing)
{
    ls_step_times *none = NULL;
    ls_step_times_destroy(NULL);
    ls_step_times_destroy(&none);
}
