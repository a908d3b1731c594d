/* `lockstep bench`. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/signal.h"

#include "bench_learner.h"
#include "command.h"
#include "json.h"
#include "output.h"
#include "progress_line.h"

enum { BAR_CELLS = 30 };

/* What is shown while it runs, and which signal has ended it. */
struct show {
    progress_line *progress; /* own; NULL: nothing is */
    atomic_int signal;       /* 0: none */
};

static void on_signal(void *self, int signal)
{
    struct show *const show = self;
    atomic_store(&show->signal, signal);
}

static bool show_progress(void *self, const struct bench_figures *figures)
{
    struct show *const show = self;
    char line[160];
    (void)snprintf(line, sizeof line,
                   "learner  %.1f s  %s batches  %.0f/s  train %.0f %%  "
                   "wait %.0f %%",
                   (double)figures->elapsed_ns / 1e9,
                   output_count((int64_t)figures->counts.trained).text,
                   figures->per_s, 100 * figures->train, 100 * figures->wait);
    if (show->progress != NULL)
        progress_line_show(show->progress, line);
    return atomic_load(&show->signal) == 0;
}

static void print_bar(const char *stage, double share, const char *of)
{
    char bar[BAR_CELLS + 1];
    const double cells = share * BAR_CELLS + 0.5;
    const size_t full = cells < BAR_CELLS ? (size_t)cells : BAR_CELLS;
    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', full);
    bar[BAR_CELLS] = '\0';
    printf("  %-5s  %s  %5.1f %%  %s\n", stage, bar, 100 * share, of);
}

static double ratio_of(const struct bench_figures *figures)
{
    return figures->ideal_per_s > 0 ? figures->per_s / figures->ideal_per_s
                                    : NAN;
}

static void print_head(const struct options *options)
{
    printf("learner: %" PRIu64 " stack%s, %" PRIu64 " loader%s, %" PRIu64
           " pass%s, on %s; ",
           options->bench.stacks, options->bench.stacks == 1 ? "" : "s",
           options->bench.loaders, options->bench.loaders == 1 ? "" : "s",
           options->bench.passes, options->bench.passes == 1 ? "" : "es",
           options->bench.devices);
    printf("batches of %s byte%s, load %s us, train %s us\n\n",
           output_count((int64_t)options->bench.batch_bytes).text,
           options->bench.batch_bytes == 1 ? "" : "s",
           output_count((int64_t)options->bench.load_us).text,
           output_count((int64_t)options->bench.train_us).text);
}

static void print_figures(const struct options *options,
                          const struct bench_figures *figures)
{
    const bool alone = options->bench.loaders == 0;
    print_head(options);
    print_bar("load", figures->load,
              alone ? "of the learner's time" : "of the loaders' time");
    print_bar("idle", figures->idle,
              alone ? "of the learner's: its own work"
                    : "of the loaders': no stack is free, or no batch came");
    print_bar("train", figures->train, "of the learner's time");
    print_bar("wait", figures->wait,
              alone ? "of the learner's: no batch came"
                    : "of the learner's: nothing is loaded");
    printf("\n  batch       load %.3f ms, train %.3f ms; the learner's own "
           "work %.2f us a pass\n",
           figures->load_ms, figures->train_ms, figures->own_us);
    printf("  throughput  %.1f batches/s", figures->per_s);
    if (figures->ideal_per_s > 0)
        printf(", %.0f %% of %.1f, if the slower of the two never waited",
               100 * ratio_of(figures), figures->ideal_per_s);
    printf("\n  batches     %s trained in %.1f s\n",
           output_count((int64_t)figures->counts.trained).text,
           (double)figures->elapsed_ns / 1e9);
}

static void write_options(ls_writer *line, const struct options *options)
{
    json_string(line, "event", "bench");
    json_string(line, "what", options->bench.what);
    json_string(line, "devices", options->bench.devices);
    json_int(line, "queue", (int64_t)options->bench.queue);
    json_int(line, "stacks", (int64_t)options->bench.stacks);
    json_int(line, "loaders", (int64_t)options->bench.loaders);
    json_int(line, "passes", (int64_t)options->bench.passes);
    json_int(line, "load_us", (int64_t)options->bench.load_us);
    json_int(line, "train_us", (int64_t)options->bench.train_us);
    json_int(line, "batch_bytes", (int64_t)options->bench.batch_bytes);
}

static int print_json(const struct options *options,
                      const struct bench_figures *figures)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"seconds", (double)figures->elapsed_ns / 1e9},
        {"load_share", figures->load},
        {"idle_share", figures->idle},
        {"train_share", figures->train},
        {"wait_share", figures->wait},
        {"load_ms", figures->load_ms},
        {"train_ms", figures->train_ms},
        {"own_us", figures->own_us},
        {"batches_per_s", figures->per_s},
        {"ideal_per_s", figures->ideal_per_s},
        {"ratio", ratio_of(figures)},
    };
    enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };
    ls_writer *line = NULL;
    int status = ls_writer_create(&line);
    if (status < 0)
        return status;
    ls_write_map_begin(line);
    write_options(line, options);
    json_int(line, "trained", (int64_t)figures->counts.trained);
    json_int(line, "steps", (int64_t)figures->counts.steps);
    for (size_t i = 0; i < N_NUMBERS; i++)
        json_double(line, numbers[i].key, numbers[i].value);
    ls_write_map_end(line);
    status = json_print_line(line);
    ls_writer_destroy(&line);
    return status;
}

/* Measure, until a signal says that it is enough. */
static int measure(const struct options *options, struct show *show,
                   struct bench_figures *out)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    ls_signals *signals = NULL;
    int status = ls_signal_watch(&signals, ends, sizeof ends / sizeof *ends,
                                 on_signal, show);
    if (status == LS_OK && !options->json)
        status = progress_line_create(&show->progress, ls_runtime_threads(),
                                      STDERR_FILENO, -1);
    if (status == LS_OK)
        status = bench_learner(options, out, show_progress, show);
    if (show->progress != NULL)
        progress_line_clear(show->progress);
    progress_line_destroy(&show->progress);
    ls_signal_unwatch(&signals);
    return status;
}

int command_bench(const struct options *options)
{
    struct show show = {.progress = NULL};
    struct bench_figures figures;
    int status = measure(options, &show, &figures);
    if (status == LS_OK && options->json)
        status = print_json(options, &figures);
    else if (status == LS_OK)
        print_figures(options, &figures);
    if (status != LS_OK)
        return command_failed(status);
    const int signal = atomic_load(&show.signal);
    return signal == 0 ? 0 : 128 + signal;
}
