#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/middleware.h"
#include "lockstep/signal.h"

#include "barrier_sabotage.h"
#include "command.h"
#include "render_parts.h"
#include "service_sabotage.h"
#include "signal_name.h"
#include "sweep_show.h"

#define SHOW_NS (100 * LS_NS_PER_MS)

static const struct sabotage {
    const char *name;
    int what; /* enum service_sabotage, or enum ls_sabotage */
    bool of_services;
} sabotages[] = {
    {"no-retransmit", LS_SABOTAGE_NO_REPEAT, false},
    {"ack-without-epoch", LS_SABOTAGE_NO_EPOCH, false},
    {"count-instead-of-set", LS_SABOTAGE_COUNT, false},
    {"one-phase", LS_SABOTAGE_ONE_PHASE, false},
    {"eager", LS_SABOTAGE_EAGER, false},
    {"same-attempt", SERVICE_SABOTAGE_SAME_ATTEMPT, true},
    {"stale-samples", SERVICE_SABOTAGE_STALE_SAMPLES, true},
    {"from-scratch", SERVICE_SABOTAGE_FROM_SCRATCH, true},
    {"no-fencing", SERVICE_SABOTAGE_NO_FENCING, true},
};
#define N_SABOTAGES (sizeof sabotages / sizeof sabotages[0])

struct shown {
    const struct options *options;
    const struct plan *plan;
    const char *faults;
    ls_progress *progress; /* own; NULL: not wanted */
    int64_t began_at, shown_at;
    atomic_int signal; /* that ended the sweep; 0: none */
};

static void on_signal(void *self, int signal)
{
    struct shown *shown = self;
    atomic_store(&shown->signal, signal);
}

/* Of those that fit the job. */
static int find_sabotage(const char *name, bool of_services, int *out)
{
    const char *names[N_SABOTAGES];
    size_t n = 0;
    *out = 0;
    for (size_t i = 0; i < N_SABOTAGES && name != NULL; i++) {
        if (sabotages[i].of_services != of_services)
            continue;
        names[n++] = sabotages[i].name;
        if (strcmp(name, sabotages[i].name) == 0) {
            *out = sabotages[i].what;
            return LS_OK;
        }
    }
    if (name == NULL)
        return LS_OK;
    const char *nearest = ls_nearest(name, names, n);
    return ls_error(LS_EINVAL, "--sabotage %s: %s%s%s", name,
                    nearest != NULL ? "did you mean \"" : "",
                    nearest != NULL ? nearest
                                    : "expected one of those in lockstep help "
                                      "sim",
                    nearest != NULL ? "\"?" : "");
}

/* What nodes do in a sweep. */
static int prepare(struct plan *plan, const struct options *options)
{
    plan->barrier.epochs = plan->sim.epochs;
    plan->barrier.pace_ms = plan->sim.pace_ms;
    plan->barrier.events = plan->sim.events;
    plan->barrier.failures = INT64_MAX;
    plan->service.pace_ms = plan->sim.pace_ms;
    const bool of_services = plan_is_service(plan);
    return find_sabotage(options->sabotage, of_services,
                         of_services ? &plan->service.sabotage
                                     : &plan->barrier.sabotage);
}

static bool show_progress(void *self, uint64_t n_done)
{
    struct shown *shown = self;
    char line[160];
    const int64_t now = ls_now(ls_runtime_threads());
    const bool more = atomic_load(&shown->signal) == 0;
    if (shown->progress == NULL || now - shown->shown_at < SHOW_NS)
        return more;
    shown->shown_at = now;
    (void)snprintf(line, sizeof line,
                   "%s  %zu nodes  faults %s  %s of %s seeds  %.0f/s",
                   shown->plan->job, shown->plan->n_nodes, shown->faults,
                   render_count((int64_t)n_done).text,
                   render_count((int64_t)shown->options->n_seeds).text,
                   (double)n_done * 1e9 / (double)(now - shown->began_at));
    ls_progress_show(shown->progress, line);
    return more;
}

/* The command that runs this seed again. */
static void print_again(const struct shown *shown, uint64_t seed)
{
    const struct options *options = shown->options;
    (void)fprintf(stderr,
                  "  the same again, with every event in a file:\n    lockstep "
                  "sim %s --seed %" PRIu64 " --faults %s",
                  options->config, seed, shown->faults);
    for (size_t i = 0; i < options->n_sets; i++)
        (void)fprintf(stderr, " --set '%s=%s'", options->sets[i].path,
                      options->sets[i].value);
    if (options->sabotage != NULL)
        (void)fprintf(stderr, " --sabotage %s", options->sabotage);
    (void)fprintf(stderr, " --event-log seed-%" PRIu64 ".log\n", seed);
}

/* Sweep until a signal says that it is enough; a second one ends at once. */
static int sweep_watched(struct sweep_result *out, struct shown *shown,
                         const struct sweep_options *options)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    ls_signals *signals = NULL;
    int status = ls_signal_watch(&signals, ends, sizeof ends / sizeof *ends,
                                 on_signal, shown);
    if (status == LS_OK)
        status = sweep_run(out, options);
    ls_signal_unwatch(&signals);
    return status;
}

/* What came of it; returns the exit code. */
static int show(struct shown *shown, const struct sweep_result *result)
{
    const struct options *options = shown->options;
    const bool whole = result->violated || result->runs == options->n_seeds;
    const struct sweep_shown figures = {
        .plan = shown->plan,
        .result = result,
        .faults = shown->faults,
        .first = options->first_seed,
        .signal = whole ? 0 : atomic_load(&shown->signal)};
    int status = LS_OK;
    if (options->json)
        status = sweep_print_json(&figures);
    else
        sweep_print(&figures);
    if (status != LS_OK)
        return command_failed(status);
    if (result->violated) {
        (void)fprintf(stderr, "lockstep: seed %" PRIu64 ": %s\n", result->seed,
                      result->text);
        print_again(shown, result->seed);
        return 1;
    }
    if (whole)
        return 0;
    (void)fprintf(stderr, "lockstep: interrupted by %s after %s of %s seeds\n",
                  signal_name(figures.signal),
                  render_count((int64_t)result->runs).text,
                  render_count((int64_t)options->n_seeds).text);
    return 128 + figures.signal;
}

static int sweep(struct shown *shown, const struct setup *setup,
                 const struct faults *faults, FILE *log)
{
    const struct options *options = shown->options;
    struct sweep_result result;
    const int status =
        sweep_watched(&result, shown,
                      &(struct sweep_options){.plan = &setup->plan,
                                              .plugin = setup->plugin,
                                              .faults = faults,
                                              .first = options->first_seed,
                                              .n = options->n_seeds,
                                              .log = log,
                                              .last_events = stderr,
                                              .progress = show_progress,
                                              .self = shown});
    if (status != LS_OK)
        return command_failed(status);
    if (shown->progress != NULL)
        ls_progress_end(shown->progress);
    return show(shown, &result);
}

static int run_sweep(const struct options *options, struct setup *setup,
                     const struct faults *faults)
{
    FILE *log = NULL;
    struct shown shown = {.options = options,
                          .plan = &setup->plan,
                          .faults =
                              options->faults != NULL ? options->faults : "all",
                          .began_at = ls_now(ls_runtime_threads())};
    int status = prepare(&setup->plan, options);
    if (status == LS_OK && !options->json)
        status = ls_progress_create(&shown.progress, ls_runtime_threads(),
                                    STDERR_FILENO, -1);
    if (status != LS_OK)
        return command_failed(status);
    status = command_event_log(&log, options->event_log);
    const int exit_code = status == LS_OK ? sweep(&shown, setup, faults, log)
                                          : ls_status_exit_code(status);
    if (log != NULL && fclose(log) != 0)
        (void)fprintf(stderr, "lockstep: %s was not written in full\n",
                      options->event_log);
    ls_progress_destroy(&shown.progress);
    return exit_code;
}

static void swallow(void *self, const char *line)
{
    (void)self;
    (void)line;
}

/* What nodes complain of is what was done to them; it is in the event log. */
static void be_quiet(void)
{
    if (getenv("LS_LOG") == NULL)
        ls_log_redirect(swallow, NULL);
}

int command_sim(const struct options *options)
{
    struct setup setup;
    struct faults faults;
    be_quiet();
    int status = command_setup(&setup, options);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    status = command_faults(&faults,
                            options->faults != NULL ? options->faults : "all",
                            &setup.plan);
    if (status != LS_OK) {
        setup_fini(&setup);
        return ls_status_exit_code(status);
    }
    const int exit_code = run_sweep(options, &setup, &faults);
    faults_fini(&faults);
    setup_fini(&setup);
    return exit_code;
}
