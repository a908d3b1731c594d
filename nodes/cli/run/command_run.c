/* `lockstep run`. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/signal.h"

#include "command.h"
#include "command_begin.h"
#include "command_replay.h"
#include "command_run.h"
#include "compose.h"
#include "node_output.h"
#include "outlet.h"
#include "output.h"
#include "processes.h"
#include "render.h"
#include "run_secret.h"
#include "simulated.h"
#include "supervise.h"
#include "threads.h"
#include "watchdog.h"

/* Signals that end a run in good order. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
#define N_ENDS (sizeof ends / sizeof ends[0])

/* A run that was told to end, or is out of time, has so long; the supervisor
 * takes less, but then what it wrote waits for somebody who reads it. */
#define STOP_MS 12000

static const char not_stopped[] =
    "the run did not end in time: is nobody reading its output? Its nodes "
    "end with it; an ipc folder may be left behind";

static int64_t timeout_ms(const struct options *options)
{
    return (int64_t)(options->timeout_s * 1000.0);
}

/* Before nodes run there is no supervisor, and --timeout is for what a plugin
 * does in its init and fini. A signal ends the process then, as any other. */
static int guard(watchdog **out, const struct options *options)
{
    if (options->timeout_s <= 0.0)
        return LS_OK;
    const int status = watchdog_create(out, NULL, NULL);
    if (status == LS_OK)
        watchdog_set(*out, timeout_ms(options),
                     ls_status_exit_code(LS_ETIMEDOUT),
                     "the plugin did not return in time (--timeout) from its "
                     "init or fini, before any node ran");
    return status;
}

struct watched {
    supervisor *watcher; /* borrow */
    watchdog *dog;       /* own */
};

static void on_signal(void *self, int signal)
{
    struct watched *watched = self;
    watchdog_set(watched->dog, STOP_MS, 128 + signal, not_stopped);
    supervisor_interrupt(watched->watcher, signal);
}

static void on_ask(void *self, int signal)
{
    struct watched *watched = self;
    supervisor_ask(watched->watcher, signal);
}

static void kill_all(void *self)
{
    processes_kill(self);
}

static int run_processes(const struct options *options,
                         const struct setup *setup,
                         const struct run_secret *secret, supervisor *watcher,
                         ls_signals *signals, bool *left)
{
    processes *launched = NULL;
    const int status =
        processes_create(&launched, options, &setup->plan, secret, watcher);
    if (status != LS_OK)
        return command_failed(status);
    const struct launcher launcher = processes_launcher(launched);
    ls_signal_on_second(signals, kill_all, launched);
    const int exit_code =
        supervise(watcher, &launcher, options->timeout_s, left);
    if (*left)
        return exit_code;
    ls_signal_on_second(signals, NULL, NULL);
    *left = !processes_destroy(&launched);
    return exit_code;
}

static int run_threads(const struct options *options, const struct setup *setup,
                       const struct run_secret *secret, supervisor *watcher,
                       bool *left)
{
    threads *launched = NULL;
    const int status = threads_create(&launched, setup, secret, watcher);
    if (status != LS_OK)
        return command_failed(status);
    const struct launcher launcher = threads_launcher(launched);
    const int exit_code =
        supervise(watcher, &launcher, options->timeout_s, left);
    if (!*left)
        threads_destroy(&launched);
    return exit_code;
}

static int run_compose(const struct options *options, const struct setup *setup,
                       supervisor *watcher, bool *left)
{
    compose *launched = NULL;
    const int status =
        compose_create(&launched, options, &setup->plan, watcher);
    if (status != LS_OK)
        return command_failed(status);
    const struct launcher launcher = compose_launcher(launched);
    const int exit_code =
        supervise(watcher, &launcher, options->timeout_s, left);
    *left = !compose_destroy(&launched) || *left;
    return exit_code;
}

/* Watch for signals, run, and say whether anything is left behind. */
static int run_watched(const struct options *options, const struct setup *setup,
                       supervisor *watcher, struct run_folder *folder,
                       bool *done, bool *left)
{
    ls_signals *signals = NULL, *asks = NULL;
    struct watched watched = {.watcher = watcher};
    /* Before there are other threads, which the signal would kill through. */
    int status = ls_signal_watch_each(&asks, (const int[]){SIGUSR1, SIGUSR2}, 2,
                                      on_ask, &watched);
    if (status == LS_OK)
        status = outlet_open();
    if (status == LS_OK)
        status = watchdog_create(&watched.dog, NULL, NULL);
    if (status == LS_OK)
        status = ls_signal_watch(&signals, ends, N_ENDS, on_signal, &watched);
    if (status != LS_OK) {
        watchdog_destroy(&watched.dog);
        outlet_close();
        ls_signal_unwatch(&asks);
        return command_failed(status);
    }
    if (options->timeout_s > 0.0)
        watchdog_set(watched.dog, timeout_ms(options) + STOP_MS,
                     ls_status_exit_code(LS_ETIMEDOUT), not_stopped);
    struct run_secret secret = {.there = false};
    int exit_code;
    if (options->as == AS_COMPOSE) { /* a secret goes over no network */
        exit_code = run_compose(options, setup, watcher, left);
    } else {
        run_secret_make(&secret, &setup->plan);
        exit_code = options->as == AS_THREADS
                        ? run_threads(options, setup, &secret, watcher, left)
                        : run_processes(options, setup, &secret, watcher,
                                        signals, left);
        run_secret_end(&secret, &setup->plan);
    }
    *done = supervisor_is_done(watcher);
    run_folder_end(folder, *done);
    /* All of it is done, and only whoever reads is waited for: by what is left
     * of the time of one that was told to end. */
    outlet_drain();
    if (!*left)
        outlet_close();
    ls_signal_unwatch(&signals);
    watchdog_destroy(&watched.dog);
    ls_signal_unwatch(&asks);
    return exit_code;
}

struct in_simulation {
    const struct options *options; /* borrow */
    simulated *all;                /* own */
    FILE *log;                     /* own; NULL: none */
    watchdog *dog;                 /* own */
};

/* By the clock of the machine: a step that does not return to the simulation
 * stops the clock that --timeout is for. */
static void say_late(void *self, const char *text)
{
    const struct in_simulation *in = self;
    char where[600];
    simulated_where(in->all, where, sizeof where);
    (void)fprintf(stderr, "lockstep: %s %g s (--timeout)%s%s\n", text,
                  in->options->timeout_s, where[0] != '\0' ? "; " : "", where);
    if (in->log != NULL)
        (void)fflush(in->log);
}

static int watch_simulated(struct in_simulation *in)
{
    if (in->options->timeout_s <= 0.0)
        return LS_OK;
    const int status = watchdog_create(&in->dog, say_late, in);
    if (status == LS_OK)
        watchdog_set(in->dog, timeout_ms(in->options),
                     ls_status_exit_code(LS_ETIMEDOUT),
                     "the run was not done after");
    return status;
}

/* In a simulation nothing is left outside of this process, so a signal may
 * end it as it does any other. */
static int run_simulated(const struct options *options,
                         const struct setup *setup, struct run_folder *folder,
                         bool *done, simulated *all)
{
    render *shown = NULL;
    supervisor *watcher = NULL;
    ls_runtime *runtime = simulated_runtime(all);
    int exit_code = 1;
    int status = render_create(&shown, &setup->plan, options->json,
                               setup->plan.n_nodes, runtime);
    if (status == LS_OK)
        status = supervisor_create(&watcher, &setup->plan, shown, runtime);
    if (status == LS_OK)
        command_show_run(shown, folder, &setup->plan);
    if (status == LS_OK)
        status =
            simulated_supervise(all, watcher, options->timeout_s, &exit_code);
    if (status != LS_OK) {
        exit_code = command_failed(status);
        simulated_print(all, stderr);
    } else {
        *done = supervisor_is_done(watcher);
        run_folder_end(folder, *done);
    }
    supervisor_destroy(&watcher);
    render_destroy(&shown);
    return exit_code;
}

static void write_line(void *self, const char *line)
{
    (void)self;
    (void)fprintf(stderr, "%s\n", line);
}

/* The log leaves lines out for a reader that rests, since others wait for who
 * logs. In a simulation nobody does. A terminal has its colours, and a reader.
 */
static void log_all(void)
{
    if (isatty(STDERR_FILENO) == 0)
        ls_log_redirect(write_line, NULL);
}

static int run_in_simulation(const struct options *options,
                             const struct setup *setup,
                             struct run_folder *folder, bool *done)
{
    struct faults faults;
    struct in_simulation in = {.options = options};
    log_all();
    int status = command_faults(
        &faults, options->faults != NULL ? options->faults : "none",
        &setup->plan);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    status = command_event_log(&in.log, options->event_log);
    if (status != LS_OK) {
        faults_fini(&faults);
        return ls_status_exit_code(status);
    }
    status = simulated_create(
        &in.all, &(struct simulated_options){.plan = &setup->plan,
                                             .plugin = setup->plugin,
                                             .faults = &faults,
                                             .seed = setup->plan.seed,
                                             .log = in.log});
    if (status == LS_OK)
        status = watch_simulated(&in);
    const int exit_code =
        status == LS_OK ? run_simulated(options, setup, folder, done, in.all)
                        : command_failed(status);
    watchdog_destroy(&in.dog);
    simulated_destroy(&in.all);
    ls_log_redirect(NULL, NULL);
    faults_fini(&faults);
    return command_end_event_log(in.log, options->event_log, exit_code);
}

/* Lines that are missing fail a run that has not failed otherwise, as for its
 * own output; what it has done is kept. */
static int end_output(node_output **output, int exit_code)
{
    const int status = node_output_close(output);
    if (status == LS_OK)
        return exit_code;
    const int failed = command_failed(status);
    return exit_code != 0 ? exit_code : failed;
}

static int run_plan(const struct options *options, const struct setup *setup,
                    struct run_folder *folder, bool *done, bool *left)
{
    render *shown = NULL;
    supervisor *watcher = NULL;
    node_output *output = NULL;
    int exit_code = 1;
    int status =
        node_output_open(&output, options->output, &setup->plan, folder);
    if (status == LS_OK)
        status = render_create(&shown, &setup->plan, options->json,
                               setup->plan.n_nodes, NULL);
    if (status == LS_OK)
        status = supervisor_create(&watcher, &setup->plan, shown, NULL);
    if (status == LS_OK) {
        supervisor_set_output(watcher, output);
        command_show_run(shown, folder, &setup->plan);
        exit_code = run_watched(options, setup, watcher, folder, done, left);
    } else {
        exit_code = command_failed(status);
    }
    if (*left)
        return exit_code; /* it may yet be told something */
    supervisor_destroy(&watcher);
    render_destroy(&shown);
    return end_output(&output, exit_code);
}

/* In its folder, which its nodes may join. */
static int begin(const struct options *options, struct setup *setup,
                 struct run_end *end, bool *left)
{
    struct run_folder folder = {.name = ""};
    int status = command_begin(&folder, &setup->plan,
                               options->fresh || options->record != NULL,
                               options->aside, options->resume);
    if (status == LS_OK && folder.name[0] != '\0')
        status = run_folder_share(&folder);
    if (status == LS_OK)
        (void)snprintf(end->folder, sizeof end->folder, "%s",
                       setup->plan.folder);
    const int exit_code =
        status != LS_OK ? command_failed(status)
        : options->as == AS_SIM
            ? run_in_simulation(options, setup, &folder, &end->done)
            : run_plan(options, setup, &folder, &end->done, left);
    run_folder_end(&folder, false);
    return exit_code;
}

int command_run_once(const struct options *options, struct run_end *end)
{
    struct setup setup;
    watchdog *dog = NULL;
    *end = (struct run_end){.done = false};
    int status = guard(&dog, options);
    if (status != LS_OK)
        return command_failed(status);
    status = command_setup(&setup, options);
    watchdog_destroy(&dog);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    if (options->as != AS_THREADS &&
        setup.plan.world.transport == PLAN_INPROC) {
        setup_fini(&setup);
        return command_failed(
            ls_error(LS_ECONFIG,
                     "%s: world.transport inproc joins nodes of "
                     "one process only: add --as threads",
                     options->config));
    }
    if (options->tape != NULL)
        replay_compare(options->tape, &setup);
    struct recording recording = {.claim = NULL};
    const int recorded = options->record != NULL
                             ? record_begin(&recording, options, &setup)
                             : LS_OK;
    if (recorded != LS_OK) {
        const int exit_code = command_failed(recorded);
        setup_fini(&setup);
        return exit_code;
    }
    if (options->as != AS_SIM) {
        command_warn(&setup.plan);
        plan_set_run(&setup.plan, (long)getpid());
    }
    bool left = false;
    int exit_code = begin(options, &setup, end, &left);
    if (options->record != NULL)
        exit_code = record_end(&recording, options, end->done, exit_code);
    if (left)
        _exit(
            output_end(exit_code)); /* a node that does not end would keep us */
    setup_fini(&setup);
    return exit_code;
}

int command_run(const struct options *options)
{
    struct run_end end;
    return command_run_once(options, &end);
}
