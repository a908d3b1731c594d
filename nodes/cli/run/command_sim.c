/* `lockstep sim`. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/signal.h"

#include "barrier_sabotage.h"
#include "bus_sabotage.h"
#include "command.h"
#include "command_begin.h"
#include "output.h"
#include "progress_line.h"
#include "service_sabotage.h"
#include "signal_name.h"
#include "sweep_minimize.h"
#include "sweep_show.h"
#include "written.h"

#define SHOW_NS (100 * LS_NS_PER_MS)
/* Faults are taken away for so long. */
#define MINIMIZE_NS (60 * LS_NS_PER_S)

/* Whose part is missing; a part of all nodes fits every job. */
enum broken { BARRIER, SERVICE, BUS };

static const struct sabotage {
    const char *name;
    int what; /* enum ls_sabotage, service_sabotage or ls_bus_sabotage */
    enum broken part;
} sabotages[] = {
    {"no-retransmit", LS_SABOTAGE_NO_REPEAT, BARRIER},
    {"ack-without-epoch", LS_SABOTAGE_NO_EPOCH, BARRIER},
    {"count-instead-of-set", LS_SABOTAGE_COUNT, BARRIER},
    {"one-phase", LS_SABOTAGE_ONE_PHASE, BARRIER},
    {"eager", LS_SABOTAGE_EAGER, BARRIER},
    {"same-attempt", SERVICE_SABOTAGE_SAME_ATTEMPT, SERVICE},
    {"stale-samples", SERVICE_SABOTAGE_STALE_SAMPLES, SERVICE},
    {"from-scratch", SERVICE_SABOTAGE_FROM_SCRATCH, SERVICE},
    {"no-fencing", SERVICE_SABOTAGE_NO_FENCING, SERVICE},
    {"own-weights", SERVICE_SABOTAGE_OWN_WEIGHTS, SERVICE},
    {"first-event", LS_BUS_SABOTAGE_FIRST_EVENT, BUS},
    {"later-events", LS_BUS_SABOTAGE_LATER_EVENTS, BUS},
    {"no-oldest", LS_BUS_SABOTAGE_NO_OLDEST, BUS},
    {"untold-loss", LS_BUS_SABOTAGE_UNTOLD, BUS},
    {"events-once", LS_BUS_SABOTAGE_EVENTS, BUS},
    {"no-excuse", LS_BUS_SABOTAGE_NO_EXCUSE, BUS},
    {"lost-credit", LS_BUS_SABOTAGE_LOST_CREDIT, BUS},
    {"shut-out", LS_BUS_SABOTAGE_SHUT_OUT, BUS},
};
#define N_SABOTAGES (sizeof sabotages / sizeof sabotages[0])

struct shown {
    const struct options *options;
    const struct plan *plan;
    const char *faults;
    progress_line *progress; /* own; NULL: not wanted */
    int64_t began_at, shown_at;
    atomic_int signal; /* that asked for the end; 0: none */
};

/* Of those that fit the job. */
static int find_sabotage(const char *name, enum broken part,
                         const struct sabotage **out)
{
    const char *names[N_SABOTAGES];
    size_t n = 0;
    for (size_t i = 0; i < N_SABOTAGES; i++) {
        if (sabotages[i].part != part && sabotages[i].part != BUS)
            continue;
        names[n++] = sabotages[i].name;
        if (strcmp(name, sabotages[i].name) == 0) {
            *out = &sabotages[i];
            return LS_OK;
        }
    }
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
    const struct sabotage *sabotage = NULL;
    plan->barrier.epochs = plan->sim.epochs;
    plan->barrier.pace_ms = plan->sim.pace_ms;
    plan->barrier.events = plan->sim.events;
    plan->barrier.blocking = plan->sim.blocking;
    plan->barrier.failures = INT64_MAX;
    plan->service.pace_ms = plan->sim.pace_ms;
    if (options->sabotage == NULL)
        return LS_OK;
    const int status =
        find_sabotage(options->sabotage,
                      plan_is_service(plan) ? SERVICE : BARRIER, &sabotage);
    if (status != LS_OK)
        return status;
    if (sabotage->part == SERVICE)
        plan->service.fsm.sabotage = (enum service_sabotage)sabotage->what;
    else
        *(sabotage->part == BUS ? &plan->barrier.bus_sabotage
                                : &plan->barrier.sabotage) = sabotage->what;
    return LS_OK;
}

static void show(struct shown *shown, uint64_t n_done)
{
    char line[160];
    const int64_t now = ls_now(ls_runtime_threads());
    if (shown->progress == NULL || now - shown->shown_at < SHOW_NS)
        return;
    shown->shown_at = now;
    (void)snprintf(line, sizeof line,
                   "%s  %zu nodes  faults %s  %s of %s seeds  %.0f/s",
                   shown->plan->job, shown->plan->n_nodes, shown->faults,
                   output_count((int64_t)n_done).text,
                   output_count((int64_t)shown->options->n_seeds).text,
                   (double)n_done * 1e9 / (double)(now - shown->began_at));
    progress_line_show(shown->progress, line);
}

static bool note_progress(void *self, uint64_t n_done)
{
    struct shown *shown = self;
    show(shown, n_done);
    return atomic_load(&shown->signal) == 0;
}

static void on_signal(void *self, int signal)
{
    struct shown *shown = self;
    atomic_store(&shown->signal, signal);
}

/* The same command for some of the seeds. */
static void put_arguments(void *self, struct arguments *out, uint64_t first,
                          uint64_t n, uint64_t every)
{
    const struct options *options = ((struct shown *)self)->options;
    arguments_add(out, "lockstep");
    arguments_add(out, "sim");
    for (size_t i = 0; i < options->n_sets; i++)
        arguments_add_set(out, options->sets[i].path, options->sets[i].value);
    arguments_add_pair(out, "--out", options->out);
    arguments_add_pair(out, "--faults", options->faults);
    arguments_add_pair(out, "--sabotage", options->sabotage);
    arguments_add_number(out, "--first", first);
    arguments_add_number(out, "--seeds", n);
    arguments_add_number(out, "--every", every);
    arguments_add(out, "--");
    arguments_add(out, options->config);
}

static bool note_run(void *self, uint64_t n_runs)
{
    struct shown *shown = self;
    char line[80];
    (void)snprintf(line, sizeof line, "taking faults away  %s runs",
                   output_count((int64_t)n_runs).text);
    if (shown->progress != NULL)
        progress_line_show(shown->progress, line);
    return atomic_load(&shown->signal) == 0;
}

/* How what --minimize writes begins. */
#define NEEDED_BEGINS "# lockstep sim --seed "

static int check_needed(const char *path)
{
    static const struct written_form form = {"what --minimize writes",
                                             NEEDED_BEGINS};
    const int status =
        path != NULL ? written_check_replaced(path, &form) : LS_OK;
    return status == LS_OK ? LS_OK : ls_error_at(status, "--minimize");
}

static int write_needed(const struct faults *needed,
                        const struct sweep_result *result, const char *path)
{
    struct ls_file_part text = {.size = 0};
    char *bytes = NULL;
    FILE *to = open_memstream(&bytes, &text.size);
    if (to == NULL)
        return ls_error_from(errno, "no memory for a file");
    (void)fprintf(to, NEEDED_BEGINS "%" PRIu64 ": %s\n", result->seed,
                  result->text);
    faults_write(needed, to);
    int status =
        fclose(to) == 0 ? LS_OK : ls_error_from(errno, "no memory for a file");
    text.data = bytes;
    if (status == LS_OK)
        status = written_replace(path, &text, 1, false);
    free(bytes);
    return status;
}

/* Write down which faults the violation needs. Returns their file; NULL: it
 * was said why there is none. */
static const char *minimize(struct shown *shown,
                            const struct sweep_options *what,
                            const struct sweep_result *result)
{
    struct sweep_options options = *what;
    struct sweep_minimized minimized;
    const char *path = shown->options->minimize;
    options.progress = note_run;
    int status = sweep_minimize(&minimized, &options, result, MINIMIZE_NS);
    if (shown->progress != NULL)
        progress_line_end(shown->progress);
    if (status != LS_OK) {
        (void)command_failed(status);
        return NULL;
    }
    status = write_needed(&minimized.faults, result, path);
    if (status == LS_OK)
        (void)fprintf(stderr,
                      "  of %zu faults it needs the %zu in %s%s; %s runs\n",
                      minimized.n_before, minimized.faults.n_script, path,
                      minimized.in_time ? "" : ", or fewer: time was up",
                      output_count((int64_t)minimized.runs).text);
    else
        (void)command_failed(status);
    faults_fini(&minimized.faults);
    return status == LS_OK ? path : NULL;
}

/* The command that runs this seed again. */
static void print_again(const struct shown *shown, uint64_t seed,
                        const char *faults)
{
    const struct options *options = shown->options;
    (void)fprintf(stderr,
                  "  the same again, with every event in a file:\n    lockstep "
                  "sim %s --seed %" PRIu64 " --faults %s",
                  options->config, seed, faults);
    for (size_t i = 0; i < options->n_sets; i++)
        (void)fprintf(stderr, " --set '%s=%s'", options->sets[i].path,
                      options->sets[i].value);
    if (options->sabotage != NULL)
        (void)fprintf(stderr, " --sabotage %s", options->sabotage);
    (void)fprintf(stderr, " --event-log seed-%" PRIu64 ".log\n", seed);
}

/* What a sweep came to. Returns the exit code. */
static int tell(struct shown *shown, const struct sweep_options *what,
                const struct sweep_result *result)
{
    const struct options *options = shown->options;
    const bool whole = result->violated || result->runs == options->n_seeds;
    const int own = atomic_load(&shown->signal);
    const struct sweep_shown figures = {.plan = shown->plan,
                                        .result = result,
                                        .faults = shown->faults,
                                        .first = options->first_seed,
                                        .coverage = options->coverage,
                                        .signal = whole      ? 0
                                                  : own != 0 ? own
                                                             : result->signal};
    int status = LS_OK;
    if (shown->progress != NULL)
        progress_line_end(shown->progress);
    if (options->json)
        status = sweep_print_json(&figures);
    else
        sweep_print(&figures);
    if (status != LS_OK)
        return command_failed(status);
    if (result->violated) {
        output_print(stderr, "lockstep: seed %" PRIu64 ": %s\n", result->seed,
                     result->text);
        const char *needed = shown->options->minimize != NULL
                                 ? minimize(shown, what, result)
                                 : NULL;
        print_again(shown, result->seed,
                    needed != NULL ? needed : shown->faults);
        return 1;
    }
    if (figures.signal == 0)
        return 0;
    (void)fprintf(stderr, "lockstep: interrupted by %s after %s of %s seeds\n",
                  signal_name(figures.signal),
                  output_count((int64_t)result->runs).text,
                  output_count((int64_t)options->n_seeds).text);
    return 128 + figures.signal;
}

static int sweep(struct shown *shown, const struct setup *setup,
                 const struct faults *faults, FILE *log)
{
    const struct options *options = shown->options;
    struct sweep_result result;
    uint64_t jobs = log != NULL ? 1 : options->jobs;
    if (jobs == 0)
        jobs = (uint64_t)ls_core_count(ls_runtime_threads());
    const struct sweep_options what = {.plan = &setup->plan,
                                       .plugin = setup->plugin,
                                       .faults = faults,
                                       .first = options->first_seed,
                                       .n = options->n_seeds,
                                       .every = options->every,
                                       .log = log,
                                       .last_events = stderr,
                                       .progress = note_progress,
                                       .self = shown,
                                       .jobs = jobs,
                                       .arguments = put_arguments};
    if (options->every > 0) {
        const int status = sweep_serve(&what);
        const int signal = atomic_load(&shown->signal);
        return status != LS_OK ? command_failed(status)
               : signal != 0   ? 128 + signal
                               : 0;
    }
    const int status = sweep_run(&result, &what);
    return status == LS_OK ? tell(shown, &what, &result)
                           : command_failed(status);
}

/* Signals end it after the seed that it is at, and what was swept is shown. */
static int sweep_watched(struct shown *shown, const struct setup *setup,
                         const struct faults *faults, FILE *log)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    ls_signals *signals = NULL;
    const int status = ls_signal_watch(
        &signals, ends, sizeof ends / sizeof ends[0], on_signal, shown);
    if (status != LS_OK)
        return command_failed(status);
    const int exit_code = sweep(shown, setup, faults, log);
    ls_signal_unwatch(&signals);
    return exit_code;
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
    if (status == LS_OK)
        status = check_needed(options->minimize);
    if (status == LS_OK && !options->json && options->every == 0)
        status = progress_line_create(&shown.progress, ls_runtime_threads(),
                                      STDERR_FILENO, -1);
    if (status != LS_OK)
        return command_failed(status);
    status = command_event_log(&log, options->event_log);
    const int exit_code = status == LS_OK
                              ? sweep_watched(&shown, setup, faults, log)
                              : ls_status_exit_code(status);
    progress_line_destroy(&shown.progress);
    return command_end_event_log(log, options->event_log, exit_code);
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
