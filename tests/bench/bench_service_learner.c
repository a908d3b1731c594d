/* How much of the loads a learner of a coordinator hides behind its training,
 * when both take as long: one stack and no loaders, against two and two. */
#include "../nodes/learner_bench.h"
#include "bench.h"

#define N_BATCHES 40
#define WORK_NS   (5 * LS_NS_PER_MS) /* of a load, and of a pass */
#define LEAST     1.6

struct shape {
    size_t stacks, loaders;
};

/* Batches a second, from the first demand to the last answer. */
static double run(void *self)
{
    const struct shape *shape = self;
    struct learner_bench *bench =
        learner_prepare_with(0, shape->stacks, shape->loaders);
    const struct learner_work work = work_of("l1", 1, N_BATCHES);
    ls_call *calls[N_BATCHES];
    bench->bench->store->get_takes_ns = WORK_NS;
    bench->toy.learn_takes_ns = WORK_NS;
    bench_start(bench->bench);
    start(bench, &work);
    const int64_t from = ls_now(ls_runtime_threads());
    for (size_t i = 0; i < N_BATCHES; i++) {
        (void)demanded(bench, work.key);
        calls[i] = begin_learn(bench, work.key);
    }
    for (size_t i = 0; i < N_BATCHES; i++)
        (void)learned(bench, calls[i]);
    const int64_t took = ls_now(ls_runtime_threads()) - from;
    learner_stop(bench);
    return N_BATCHES * (double)LS_NS_PER_S / (double)took;
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct shape one = {1, 0}, two = {2, 2};
    struct bench_figure figures[] = {
        {.name = "1 stack, 0 loaders", .unit = "/s", .run = run, .self = &one},
        {.name = "2 stacks, 2 loaders", .unit = "/s", .run = run, .self = &two},
    };
    bench_options_read(&options, argc, argv);
    bench_run(figures, 2, &options);
    bench_print("service_learner", figures, 2, &options);
    const double ratio = figures[1].median / figures[0].median;
    bench_print_derived("service_learner", "2 and 2 to 1 and 0", "x", ratio,
                        &options);
    if (ratio >= LEAST)
        return 0;
    (void)fprintf(stderr,
                  "bench_service_learner: %.2f, and at least %.1f is "
                  "wanted\n",
                  ratio, LEAST);
    return 1;
}
