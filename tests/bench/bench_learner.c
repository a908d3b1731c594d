/* What the learner itself takes for a pass, beside a compute that does nothing;
 * and how much of the loads it hides behind the training when both take as
 * long, with one stack and with four. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "lockstep/learner.h"

#define N_PASSES  20000
#define N_OVERLAP 50
#define WORK_NS   (2 * LS_NS_PER_MS) /* of a load, and of a pass */

static void must(int status)
{
    if (status < 0) {
        (void)fprintf(stderr, "bench_learner: %s\n", ls_error_text());
        exit(1);
    }
}

static int64_t now(void)
{
    return ls_now(ls_runtime_threads());
}

/* Of the learner thread, until it has said that it is done. */
struct work {
    size_t n_passes;
    int64_t first_at;
    int64_t last_at;
    ls_mutex mutex;
    ls_cond changed;
    bool done; /* under mutex */
};

static int nothing_to_load(void *self, const struct ls_learner_place *place)
{
    (void)self;
    (void)place;
    return LS_OK;
}

static int nothing_to_compute(void *self, const struct ls_learner_place *place,
                              unsigned pass, ls_learner_info *info)
{
    struct work *const work = self;
    (void)place;
    (void)pass;
    if (work->first_at == 0)
        work->first_at = now();
    if (--work->n_passes == 0) {
        work->last_at = now();
        ls_mutex_lock(&work->mutex);
        work->done = true;
        ls_cond_signal(&work->changed);
        ls_mutex_unlock(&work->mutex);
    }
    return ls_learner_info_add(info, "loss", 0.5);
}

static int load_a_while(void *self, const struct ls_learner_place *place)
{
    (void)self;
    (void)place;
    ls_rest_until(ls_runtime_threads(), now() + WORK_NS);
    return LS_OK;
}

static int compute_a_while(void *self, const struct ls_learner_place *place,
                           unsigned pass, ls_learner_info *info)
{
    const int status = nothing_to_compute(self, place, pass, info);
    ls_rest_until(ls_runtime_threads(), now() + WORK_NS);
    return status;
}

static const struct ls_learner_ops idle_ops = {.load = nothing_to_load,
                                               .compute = nothing_to_compute};
static const struct ls_learner_ops busy_ops = {.load = load_a_while,
                                               .compute = compute_a_while};

/* Nobody else is woken meanwhile, who would take the learner's processor. */
static void await_done(struct work *work)
{
    int status = LS_OK;
    ls_mutex_lock(&work->mutex);
    while (!work->done && status == LS_OK)
        status = ls_cond_wait(&work->changed, &work->mutex, LS_FOREVER);
    ls_mutex_unlock(&work->mutex);
}

/* What the learner took for a pass in the last run, beside the pass itself and
 * its waits for what is loaded; in ns. */
static double own_ns;

/* ns from one pass to the next. */
static double train(struct ls_learner_options options, size_t n_batches)
{
    const size_t passes = options.passes > 0 ? options.passes : 1;
    struct work work = {.n_passes = n_batches * passes};
    ls_learner *learner;
    must(ls_mutex_init(&work.mutex, ls_runtime_threads()));
    must(ls_cond_init(&work.changed, ls_runtime_threads()));
    options.self = &work;
    options.queue = n_batches;
    options.out_when_full = LS_QUEUE_DROP_OLDEST;
    const int64_t from = now();
    must(ls_learner_create(&learner, ls_runtime_threads(), &options));
    for (size_t i = 0; i < n_batches; i++) {
        struct ls_learner_batch batch = {.env_steps = 1};
        must(ls_learner_put(learner, &batch, -1));
    }
    await_done(&work);
    struct ls_learner_counts counts;
    ls_learner_counts(learner, &counts);
    own_ns =
        (double)(work.last_at - from - counts.grad_ns - counts.load_wait_ns) /
        (double)(n_batches * passes);
    ls_learner_destroy(&learner);
    ls_cond_fini(&work.changed);
    ls_mutex_fini(&work.mutex);
    return (double)(work.last_at - work.first_at) /
           (double)(n_batches * passes - 1);
}

static double pass(void *self)
{
    (void)self;
    return train((struct ls_learner_options){.ops = &idle_ops,
                                             .stacks = 2,
                                             .loaders = 2,
                                             .passes = N_PASSES / 2},
                 2);
}

static double batch_without_loaders(void *self)
{
    (void)self;
    return train((struct ls_learner_options){.ops = &idle_ops}, N_PASSES);
}

static double batch_with_loaders(void *self)
{
    (void)self;
    return train((struct ls_learner_options){.ops = &idle_ops,
                                             .stacks = 4,
                                             .loaders = 4},
                 N_PASSES);
}

static double own_with_loaders(void *self)
{
    (void)batch_with_loaders(self);
    return own_ns;
}

static double one_stack(void *self)
{
    (void)self;
    const double ns = train((struct ls_learner_options){.ops = &busy_ops,
                                                        .stacks = 1,
                                                        .loaders = 1},
                            N_OVERLAP);
    return 1e9 / ns;
}

static double four_stacks(void *self)
{
    (void)self;
    const double ns = train((struct ls_learner_options){.ops = &busy_ops,
                                                        .stacks = 4,
                                                        .loaders = 4},
                            N_OVERLAP);
    return 1e9 / ns;
}

/* What a pass or a load really takes here: a rest is longer than was asked. */
static double ideal(void *self)
{
    (void)self;
    const int64_t from = now();
    for (int i = 0; i < N_OVERLAP; i++)
        ls_rest_until(ls_runtime_threads(), now() + WORK_NS);
    return (double)N_OVERLAP * 1e9 / (double)(now() - from);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    bench_options_read(&options, argc, argv);
    struct bench_figure figures[] = {
        {.name = "a pass that does nothing", .unit = "ns", .run = pass},
        {.name = "a batch that does nothing, no loaders",
         .unit = "ns",
         .run = batch_without_loaders},
        {.name = "a batch that does nothing, 4 loaders",
         .unit = "ns",
         .run = batch_with_loaders},
        {.name = "of that the learner's own (target < 2000)",
         .unit = "ns",
         .run = own_with_loaders},
        {.name = "2 ms each, 1 stack", .unit = "batches/s", .run = one_stack},
        {.name = "2 ms each, 4 stacks",
         .unit = "batches/s",
         .run = four_stacks},
        {.name = "2 ms each, ideal", .unit = "batches/s", .run = ideal},
    };
    enum { ONE = 4, FOUR = 5, IDEAL = 6, N_FIGURES = 7 };
    bench_run(figures, N_FIGURES, &options);
    bench_print("learner", figures, N_FIGURES, &options);
    bench_print_derived("learner", "4 stacks, of the ideal (target >= 0.9)", "",
                        figures[FOUR].median / figures[IDEAL].median, &options);
    bench_print_derived("learner", "4 stacks, of 1 stack (target >= 1.8)", "",
                        figures[FOUR].median / figures[ONE].median, &options);
    return 0;
}
