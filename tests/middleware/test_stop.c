/* Finishing a run when enough is reached, and cancelling it by a signal. */
#include <float.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "latch.h"
#include "lockstep/middleware.h"
#include "test.h"

enum { FOR_EVER = 100 };

/* 10 steps and one update an iteration; an evaluation every other one. */
static int work(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    context->env_step += 10;
    context->train_iter++;
    if (context->total_step % 2 == 1)
        context->eval_value = (double)context->total_step - 8;
    return LS_OK;
}

struct row {
    const char *name;
    struct ls_stop_options options;
    int64_t iterations;
};

static const struct row rows[] = {
    {"no limit", {.eval_value = NAN}, FOR_EVER},
    {"all zero", {.on_signal = false}, FOR_EVER},
    {"the first step", {.env_step = 1}, 1},
    {"the first update", {.train_iter = 1}, 1},
    {"steps that are reached exactly", {.env_step = 30}, 3},
    {"steps that are passed", {.env_step = 31}, 4},
    {"updates", {.train_iter = 7}, 7},
    {"the first of two", {.env_step = 50, .train_iter = 2}, 2},
    {"a value", {.eval_value = 2.5}, 12},
    {"a value below zero", {.eval_value = -6}, 4},
    {"a value of about zero", {.eval_value = DBL_MIN}, 10},
    {"a value that no evaluation reaches", {.eval_value = 1e9}, FOR_EVER},
};

TEST(the_run_ends_in_the_iteration_that_reaches_a_limit)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("    %s\n", rows[i].name);
        ls_task *task;
        const struct ls_task_options options = {.runtime = NULL};
        assert_ok(ls_task_create(&task, &options));
        ls_task_use(task, ls_mw_stop(task, &rows[i].options));
        ls_task_use_fn(task, work, NULL);
        assert_ok(ls_task_run(task, FOR_EVER));
        assert_int_equal(ls_task_iterations(task), rows[i].iterations);
        ls_task_destroy(&task);
    }
}

static void refuses(const struct ls_context_type *context,
                    const struct ls_stop_options *options)
{
    ls_task *task;
    assert_ok(
        ls_task_create(&task, &(struct ls_task_options){.context = context}));
    assert_fails(ls_task_use(task, ls_mw_stop(task, options)), LS_EINVAL);
    assert_error_has("stop");
    ls_task_destroy(&task);
}

/* It would never end. */
TEST(a_limit_on_a_number_that_is_not_there_is_refused)
{
    static const struct ls_field words[] = {
        {"total_step", LS_FIELD_INT, .offset = 0, .keep = true},
        {"env_step", LS_FIELD_TEXT, .offset = 8},
        {"train_iter", LS_FIELD_TEXT, .offset = 16},
        {"eval_value", LS_FIELD_TEXT, .offset = 24}};
    const struct ls_context_type none = {"none", 8, words, 1};
    const struct ls_context_type texts = {"texts", 32, words, 4};
    const struct ls_stop_options limits[] = {
        {.env_step = 1}, {.train_iter = 1}, {.eval_value = 1}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        refuses(&none, &limits[i]);
        refuses(&texts, &limits[i]);
    }
    refuses(NULL, &(struct ls_stop_options){.train_iter = -1});
    refuses(NULL, &(struct ls_stop_options){.env_step = -1});
}

/* Waits, as a step does that waits for others, until the run is cancelled. */
struct waiter {
    int signal; /* what its step sends */
    ls_task *task;
    struct latch cancelled;
};

static void wake(void *self, int status)
{
    (void)status;
    struct waiter *waiter = self;
    latch_hit(&waiter->cancelled);
}

static int be_interrupted(ls_step *step, void *self)
{
    (void)step;
    struct waiter *waiter = self;
    kill(getpid(), waiter->signal);
    latch_wait(&waiter->cancelled);
    return ls_task_cancelled(waiter->task);
}

static void cancels(int signal, const char *text)
{
    struct waiter waiter = {.signal = signal};
    const struct ls_task_options options = {.runtime = NULL};
    const struct ls_stop_options stop = {.on_signal = true};
    assert_ok(ls_task_create(&waiter.task, &options));
    latch_init(&waiter.cancelled, 1);
    assert_ok(ls_task_on_cancel(waiter.task, wake, &waiter));
    ls_task_use(waiter.task, ls_mw_stop(waiter.task, &stop));
    ls_task_use_fn(waiter.task, be_interrupted, &waiter);
    assert_fails(ls_task_run(waiter.task, FOR_EVER), LS_ECANCELED);
    assert_error_has(text);
    ls_task_destroy(&waiter.task);
    latch_fini(&waiter.cancelled);

    sigset_t now;
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    assert_int_equal(sigismember(&now, signal), 0);
}

TEST(a_signal_cancels_the_run)
{
    cancels(SIGINT, "interrupted (SIGINT)");
    cancels(SIGTERM, "asked to end (SIGTERM)");
}
