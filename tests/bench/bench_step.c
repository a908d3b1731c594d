/* What a step costs: a pipeline of ten that yield, against ten nested calls,
 * and against two plain callbacks for each, which is what the same work would
 * take without a step's locals. Per step and iteration. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "lockstep/fiber.h"
#include "lockstep/runtime.h"
#include "lockstep/task.h"

#define N_STEPS      10
#define N_ITERATIONS 100000

/* Called through volatile pointers, so that nothing is inlined or left out. */
static volatile int64_t sum;

static void must(int status)
{
    if (status < 0) {
        (void)fprintf(stderr, "bench_step: %s\n", ls_error_text());
        exit(1);
    }
}

static double per_step(int64_t start)
{
    return (double)(ls_now(ls_runtime_threads()) - start) /
           (double)(N_STEPS * N_ITERATIONS);
}

static void nested(int left);
static void (*volatile nested_at)(int left) = nested;

static void nested(int left)
{
    const int64_t before = sum;
    sum = before + 1;
    if (left > 1)
        nested_at(left - 1);
    sum = sum - 1;
}

static double nested_calls(void *self)
{
    (void)self;
    const int64_t start = ls_now(ls_runtime_threads());
    for (int i = 0; i < N_ITERATIONS; i++)
        nested_at(N_STEPS);
    return per_step(start);
}

static void before(int64_t *kept)
{
    *kept = sum;
    sum = sum + 1;
}

static void after(int64_t *kept)
{
    sum = *kept;
}

static double two_callbacks(void *self)
{
    (void)self;
    int64_t kept[N_STEPS];
    void (*volatile before_at)(int64_t *) = before;
    void (*volatile after_at)(int64_t *) = after;
    const int64_t start = ls_now(ls_runtime_threads());
    for (int i = 0; i < N_ITERATIONS; i++) {
        for (int k = 0; k < N_STEPS; k++)
            before_at(&kept[k]);
        for (int k = N_STEPS; k-- > 0;)
            after_at(&kept[k]);
    }
    return per_step(start);
}

static void fiber_main(void *arg)
{
    (void)arg;
    sum = sum + 1;
    ls_fiber_yield();
    sum = sum - 1;
}

static double fibers(void *self)
{
    ls_fiber_pool *pool = self;
    ls_fiber *live[N_STEPS];
    const int64_t start = ls_now(ls_runtime_threads());
    for (int i = 0; i < N_ITERATIONS; i++) {
        for (int k = 0; k < N_STEPS; k++) {
            must(ls_fiber_create(&live[k], pool, fiber_main, NULL));
            (void)ls_fiber_resume(live[k]);
        }
        for (int k = N_STEPS; k-- > 0;) {
            (void)ls_fiber_resume(live[k]);
            ls_fiber_destroy(&live[k]);
        }
    }
    return per_step(start);
}

static int yields(ls_step *step, void *self)
{
    (void)self;
    sum = sum + 1;
    const int status = ls_yield(step);
    sum = sum - 1;
    return status;
}

static int only_forward(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    sum = sum + 1;
    sum = sum - 1;
    return LS_OK;
}

static double pipeline(void *self)
{
    const int64_t start = ls_now(ls_runtime_threads());
    must(ls_task_run(self, N_ITERATIONS));
    return per_step(start);
}

static ls_task *task_of(ls_step_fn *fn)
{
    ls_task *task;
    must(ls_task_create(&task, &(struct ls_task_options){0}));
    for (int i = 0; i < N_STEPS; i++)
        must(ls_task_use_fn(task, fn, NULL));
    return task;
}

int main(int argc, char **argv)
{
    struct bench_options options;
    bench_options_read(&options, argc, argv);

    ls_task *yielding = task_of(yields);
    ls_task *forward = task_of(only_forward);
    ls_fiber_pool *pool;
    must(ls_fiber_pool_create(&pool, 0, 0));
    struct bench_figure figures[] = {
        {.name = "nested calls", .unit = "ns/step", .run = nested_calls},
        {.name = "two plain callbacks",
         .unit = "ns/step",
         .run = two_callbacks},
        {.name = "bare fiber, whole life",
         .unit = "ns/step",
         .run = fibers,
         .self = pool},
        {.name = "step without a yield",
         .unit = "ns/step",
         .run = pipeline,
         .self = forward},
        {.name = "step with a yield",
         .unit = "ns/step",
         .run = pipeline,
         .self = yielding},
    };
    enum { CALLS = 0, YIELD = 4, N_FIGURES = 5 };
    bench_run(figures, N_FIGURES, &options);
    bench_print("step", figures, N_FIGURES, &options);
    bench_print_derived(
        "step", "a yield more than a call (target <= 60)", "ns/step",
        figures[YIELD].median - figures[CALLS].median, &options);
    bench_print_derived("step", "iteration of ten with a yield", "ns",
                        N_STEPS * figures[YIELD].median, &options);

    ls_fiber_pool_destroy(&pool);
    ls_task_destroy(&yielding);
    ls_task_destroy(&forward);
    return 0;
}
