#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/middleware.h"

#include "barrier_sabotage.h"
#include "command.h"
#include "json.h"
#include "render_parts.h"
#include "sweep.h"

#define SHOW_NS (100 * LS_NS_PER_MS)

static const struct sabotage {
    const char *name;
    enum ls_sabotage what;
} sabotages[] = {
    {"no-retransmit", LS_SABOTAGE_NO_REPEAT},
    {"ack-without-epoch", LS_SABOTAGE_NO_EPOCH},
    {"count-instead-of-set", LS_SABOTAGE_COUNT},
    {"one-phase", LS_SABOTAGE_ONE_PHASE},
    {"eager", LS_SABOTAGE_EAGER},
};
#define N_SABOTAGES (sizeof sabotages / sizeof sabotages[0])

struct shown {
    const struct options *options;
    const struct plan *plan;
    const char *faults;
    ls_progress *progress; /* own; NULL: not wanted */
    int64_t began_at, shown_at;
};

static int find_sabotage(const char *name, int *out)
{
    const char *names[N_SABOTAGES];
    *out = LS_SABOTAGE_NONE;
    if (name == NULL)
        return LS_OK;
    for (size_t i = 0; i < N_SABOTAGES; i++) {
        names[i] = sabotages[i].name;
        if (strcmp(name, names[i]) == 0) {
            *out = (int)sabotages[i].what;
            return LS_OK;
        }
    }
    const char *nearest = ls_nearest(name, names, N_SABOTAGES);
    return ls_error(LS_EINVAL, "--sabotage %s: %s%s%s", name,
                    nearest != NULL ? "did you mean \"" : "",
                    nearest != NULL ? nearest
                                    : "expected one of those in lockstep help "
                                      "sim",
                    nearest != NULL ? "\"?" : "");
}

/* What members do in a sweep. */
static int prepare(struct plan *plan, const struct options *options)
{
    plan->barrier.epochs = plan->sim.epochs;
    plan->barrier.pace_ms = plan->sim.pace_ms;
    plan->barrier.events = plan->sim.events;
    plan->barrier.failures = INT64_MAX;
    return find_sabotage(options->sabotage, &plan->barrier.sabotage);
}

static void show_progress(void *self, uint64_t n_done)
{
    struct shown *shown = self;
    char line[160];
    const int64_t now = ls_now(ls_runtime_threads());
    if (shown->progress == NULL || now - shown->shown_at < SHOW_NS)
        return;
    shown->shown_at = now;
    (void)snprintf(line, sizeof line,
                   "%s  %zu nodes  faults %s  %s of %s seeds  %.0f/s",
                   shown->plan->job, shown->plan->n_nodes, shown->faults,
                   render_count((int64_t)n_done).text,
                   render_count((int64_t)shown->options->n_seeds).text,
                   (double)n_done * 1e9 / (double)(now - shown->began_at));
    ls_progress_show(shown->progress, line);
}

static void row(const char *name, const char *text)
{
    printf("  %-13s  %s\n", name, text);
}

static void print_network(const struct ls_network_stats *network)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "%s sent; %s lost, %s doubled, %s overtaken, %s lost with "
                   "their connection",
                   render_count((int64_t)network->sent).text,
                   render_count((int64_t)network->lost).text,
                   render_count((int64_t)network->duplicated).text,
                   render_count((int64_t)network->reordered).text,
                   render_count((int64_t)network->broken).text);
    row("messages", text);
}

static void print_faults(const uint64_t *injected)
{
    char text[256] = "none";
    size_t used = 0;
    for (size_t i = 0; i < FAULT_N_KINDS; i++) {
        if (injected[i] > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s",
                                     used > 0 ? ", " : "",
                                     render_count((int64_t)injected[i]).text,
                                     fault_names[i]);
    }
    row("faults", text);
}

static void print_figures(const struct shown *shown,
                          const struct sweep_result *result)
{
    const struct simulated_figures *sum = &result->sum;
    char text[160];
    const double real_s = (double)result->real_ns / 1e9;
    printf("%s: %s seed%s from %" PRIu64 " on, %zu nodes, faults %s: %s\n\n",
           shown->plan->job, render_count((int64_t)result->runs).text,
           result->runs == 1 ? "" : "s", shown->options->first_seed,
           shown->plan->n_nodes, shown->faults,
           result->violated ? "1 violation" : "0 violations");
    (void)snprintf(text, sizeof text, "%s; %s failed waits",
                   render_count((int64_t)sum->checks.epochs).text,
                   render_count((int64_t)sum->checks.failures).text);
    row("epochs", text);
    row("events", render_count((int64_t)sum->checks.events).text);
    print_network(&sum->network);
    print_faults(sum->injected);
    (void)snprintf(text, sizeof text,
                   "%s living nodes were held for lost, which explains %s "
                   "breaks of a promise",
                   render_count((int64_t)sum->checks.mistakes).text,
                   render_count((int64_t)sum->checks.excused).text);
    row("mistakes", text);
    (void)snprintf(text, sizeof text, "%.1f s", (double)sum->virtual_ns / 1e9);
    row("virtual time", text);
    (void)snprintf(text, sizeof text, "%.2f s, %.0f seeds/s", real_s,
                   (double)result->runs / real_s);
    row("real time", text);
    (void)fflush(stdout);
}

static int print_json(const struct shown *shown,
                      const struct sweep_result *result)
{
    const struct simulated_figures *sum = &result->sum;
    const struct ls_network_stats *network = &sum->network;
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map(out, 21 + FAULT_N_KINDS);
    json_string(out, "event", "sweep");
    json_int(out, "first", (int64_t)shown->options->first_seed);
    json_int(out, "runs", (int64_t)result->runs);
    json_int(out, "nodes", (int64_t)shown->plan->n_nodes);
    json_string(out, "faults", shown->faults);
    json_bool(out, "violated", result->violated);
    json_int(out, "seed", result->violated ? (int64_t)result->seed : -1);
    ls_write_string(out, "text");
    json_any_string(out, result->text);
    json_int(out, "epochs", (int64_t)sum->checks.epochs);
    json_int(out, "failures", (int64_t)sum->checks.failures);
    json_int(out, "events", (int64_t)sum->checks.events);
    json_int(out, "mistakes", (int64_t)sum->checks.mistakes);
    json_int(out, "excused", (int64_t)sum->checks.excused);
    json_int(out, "messages", (int64_t)network->sent);
    json_int(out, "delivered", (int64_t)network->delivered);
    json_int(out, "lost", (int64_t)network->lost);
    json_int(out, "doubled", (int64_t)network->duplicated);
    json_int(out, "overtaken", (int64_t)network->reordered);
    json_int(out, "broken", (int64_t)network->broken);
    json_double(out, "virtual_s", (double)sum->virtual_ns / 1e9);
    json_double(out, "real_s", (double)result->real_ns / 1e9);
    for (size_t i = 0; i < FAULT_N_KINDS; i++)
        json_int(out, fault_names[i], (int64_t)sum->injected[i]);
    status = json_print_line(stdout, out);
    ls_writer_destroy(&out);
    return status;
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

static int sweep(struct shown *shown, const struct setup *setup,
                 const struct faults *faults, FILE *log)
{
    const struct options *options = shown->options;
    struct sweep_result result;
    int status =
        sweep_run(&result, &(struct sweep_options){.plan = &setup->plan,
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
    if (options->json)
        status = print_json(shown, &result);
    else
        print_figures(shown, &result);
    if (status != LS_OK)
        return command_failed(status);
    if (!result.violated)
        return 0;
    (void)fprintf(stderr, "lockstep: seed %" PRIu64 ": %s\n", result.seed,
                  result.text);
    print_again(shown, result.seed);
    return 1;
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
