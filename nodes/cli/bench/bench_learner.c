#include "bench_learner.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 16, NAME_MAX_BYTES = 32, TICK_MS = 100 };

struct work {
    const struct options *options;
    ls_runtime *runtime; /* borrow */
    ls_device *devices[DEVICES_MAX];
    size_t n_devices;
    size_t part_bytes;
    void *batch; /* own; what every part is filled with */
};

static void take_time(const struct work *work, int64_t from, uint64_t us)
{
    if (us > 0)
        ls_rest_until(work->runtime, from + (int64_t)us * LS_NS_PER_US);
}

static int load(void *self, const struct ls_learner_place *place)
{
    const struct work *const work = self;
    const int64_t from = ls_now(work->runtime);
    memcpy(ls_device_stack_host(place->memory), work->batch, work->part_bytes);
    const int status =
        ls_device_stack_upload(place->memory, 0, work->part_bytes);
    if (place->device == 0)
        take_time(work, from, work->options->bench.load_us);
    return status;
}

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    (void)place;
    (void)pass;
    (void)info;
    const struct work *const work = self;
    if (work->options->bench.train_us > 0)
        take_time(work, ls_now(work->runtime), work->options->bench.train_us);
    return LS_OK;
}

static const struct ls_learner_ops ops = {.load = load, .compute = compute};

/* "cpu:0,cpu:1": open each. */
static int open_devices(struct work *work, const char *names)
{
    const char *rest = names;
    do {
        char name[NAME_MAX_BYTES] = "";
        const size_t length = strcspn(rest, ",");
        if (work->n_devices == DEVICES_MAX)
            return ls_error(LS_EINVAL, "--devices %s: at most %d of them",
                            names, DEVICES_MAX);
        memcpy(name, rest, length < sizeof name ? length : sizeof name - 1);
        const int status = ls_device_open(&work->devices[work->n_devices],
                                          work->runtime, name);
        if (status < 0)
            return status;
        work->n_devices++;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    } while (rest != NULL);
    return LS_OK;
}

static int open_work(struct work *work)
{
    const struct options *const options = work->options;
    const int status = open_devices(work, options->bench.devices);
    if (status < 0)
        return status;
    const uint64_t bytes = options->bench.batch_bytes;
    work->part_bytes =
        (size_t)((bytes + work->n_devices - 1) / work->n_devices);
    work->batch = calloc(1, work->part_bytes);
    if (work->batch == NULL)
        return ls_error(LS_ENOMEM, "no memory for a batch of %zu bytes",
                        work->part_bytes);
    return LS_OK;
}

static void close_work(struct work *work)
{
    free(work->batch);
    for (size_t i = 0; i < work->n_devices; i++)
        ls_device_close(&work->devices[i]);
}

static int create_learner(ls_learner **out, struct work *work)
{
    const struct options *const options = work->options;
    const struct ls_learner_options wanted = {
        .ops = &ops,
        .self = work,
        .queue = (size_t)options->bench.queue,
        .when_full = LS_QUEUE_BLOCK,
        .out_queue = 1, /* nobody reads the results */
        .out_when_full = LS_QUEUE_DROP_OLDEST,
        .stacks = (size_t)options->bench.stacks,
        .loaders = (size_t)options->bench.loaders,
        .passes = (unsigned)options->bench.passes,
        .first_passes = (unsigned)options->bench.passes,
        .devices = work->devices,
        .n_devices = work->n_devices,
        .part_bytes = work->part_bytes,
    };
    return ls_learner_create(out, work->runtime, &wanted);
}

static double least_0(double value)
{
    return value > 0 ? value : 0;
}

/* What the slower stage could do, of so many loads at once. */
static double ideal_of(const struct options *options,
                       const struct bench_figures *figures)
{
    const uint64_t loaders = options->bench.loaders;
    const uint64_t stacks = options->bench.stacks;
    const uint64_t at_once = loaders < stacks ? loaders : stacks;
    const double load_ms = figures->load_ms / (double)(at_once ? at_once : 1);
    if (options->bench.load_us == 0 && options->bench.train_us == 0)
        return 0;
    return 1e3 / (load_ms > figures->train_ms ? load_ms : figures->train_ms);
}

static void work_out(const struct options *options, struct bench_figures *out)
{
    const struct ls_learner_counts *const counts = &out->counts;
    const double all = (double)out->elapsed_ns;
    const double n_trained = (double)counts->trained;
    const uint64_t loaders = options->bench.loaders;
    const int64_t waited = loaders ? counts->load_wait_ns : counts->dequeue_ns;
    out->load = (double)counts->load_ns / all / (double)(loaders ? loaders : 1);
    out->train = (double)counts->grad_ns / all;
    out->wait = (double)waited / all;
    const double learner = out->train + out->wait + (loaders ? 0 : out->load);
    out->idle = least_0(1 - (loaders ? out->load : learner));
    out->per_s = n_trained * 1e9 / all;
    if (counts->trained == 0)
        return;
    out->load_ms = (double)counts->load_ns / n_trained / 1e6;
    out->train_ms = (double)counts->grad_ns / n_trained / 1e6;
    out->own_us = least_0(1 - learner) * all / (double)counts->steps / 1e3;
    out->ideal_per_s = ideal_of(options, out);
}

static void look(ls_learner *learner, const struct work *work, int64_t from,
                 struct bench_figures *out)
{
    *out = (struct bench_figures){.load_ms = 0};
    ls_learner_counts(learner, &out->counts);
    out->elapsed_ns = ls_now(work->runtime) - from;
    work_out(work->options, out);
}

/* Put batches until the time is over, or enough. */
static int feed(ls_learner *learner, const struct work *work,
                struct bench_figures *out, bench_tick *tick, void *self)
{
    const int64_t from = ls_now(work->runtime);
    const int64_t until =
        from + (int64_t)(work->options->bench.seconds * (double)LS_NS_PER_S);
    int64_t ticked = from;
    bool goes_on = true;
    for (int64_t now = from; goes_on && now < until;
         now = ls_now(work->runtime)) {
        struct ls_learner_batch batch = {.data = work->batch};
        const int status = ls_learner_put(learner, &batch, TICK_MS);
        if (status < 0 && status != LS_ETIMEDOUT)
            return status;
        if (now - ticked >= TICK_MS * LS_NS_PER_MS) {
            ticked = now;
            look(learner, work, from, out);
            goes_on = tick(self, out);
        }
    }
    look(learner, work, from, out);
    return ls_learner_check(learner);
}

int bench_learner(const struct options *options, struct bench_figures *out,
                  bench_tick *tick, void *self)
{
    struct work work = {.options = options, .runtime = ls_runtime_threads()};
    ls_learner *learner = NULL;
    struct bench_figures figures;
    int status = open_work(&work);
    if (status == LS_OK)
        status = create_learner(&learner, &work);
    if (status == LS_OK)
        status = feed(learner, &work, &figures, tick, self);
    if (status == LS_OK)
        *out = figures;
    ls_learner_destroy(&learner);
    close_work(&work);
    return status;
}
