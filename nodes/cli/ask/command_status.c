/* `lockstep status` and `lockstep top`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/runtime.h"

#include "command.h"
#include "health.h"
#include "output.h"
#include "run_file.h"
#include "run_folder.h"
#include "screen.h"
#include "status_view.h"

/* A node that runs answers at once. */
#define WAIT_MS 1000

/* Whom to ask. */
struct target {
    const struct options *options; /* borrow */
    struct setup setup;            /* own; of a configuration */
    bool has_setup;
    struct run_folder_look run; /* of a folder */
    char job[128], folder[LS_PATH_MAX];
    uint64_t place;
    uint32_t known[PLAN_NODES_MAX]; /* nodes that it must have */
    size_t n_known;
};

/* What they said at one moment. */
struct told {
    uint32_t *ids;                 /* own */
    struct health_answer *answers; /* own */
    size_t n;
    bool others; /* another run of the same job answers */
};

/* ---- whom to ask --------------------------------------------------------- */

static int aim_at_config(struct target *target)
{
    const int status = setup_load(&target->setup, target->options);
    const struct plan *plan = &target->setup.plan;
    target->has_setup = true;
    if (status != LS_OK)
        return status;
    (void)snprintf(target->job, sizeof target->job, "%s", plan->job);
    (void)snprintf(target->folder, sizeof target->folder, "%s", plan->folder);
    target->place = plan_place(plan);
    for (size_t i = 0; i < plan->n_nodes; i++)
        target->known[target->n_known++] = plan->nodes[i].id;
    return LS_OK;
}

/* Nodes that were started one by one, or are threads that nobody can call, have
 * no file that tells of them. */
static int read_run_file(struct target *target)
{
    struct run_file *file = malloc(sizeof *file);
    if (file == NULL)
        return ls_error(LS_ENOMEM, "looking for the nodes");
    const struct plan plan = {.folder = target->run.path};
    int status = run_file_read(file, &plan);
    for (size_t i = 0; i < file->n_nodes && status == LS_OK; i++)
        target->known[target->n_known++] = file->nodes[i].id;
    if (status == LS_OK && file->place != 0)
        target->place = file->place;
    free(file);
    return status == LS_ENOENT ? LS_OK : status;
}

static int aim_at_run(struct target *target)
{
    struct run_folder_look *run = &target->run;
    const struct options *options = target->options;
    if (options->n_sets > 0 || options->seed != NULL || options->out != NULL)
        return ls_error(LS_EINVAL,
                        "%s is the folder of a run: --set, --nodes, --seed and "
                        "--out are for a configuration",
                        options->config);
    const int status = run_folder_look(run, options->config);
    if (status != LS_OK)
        return status;
    memcpy(target->job, run->job, sizeof target->job);
    memcpy(target->folder, run->path, sizeof target->folder);
    target->place = plan_place_of(run->job, run->out);
    return read_run_file(target);
}

static int aim(struct target *target)
{
    struct stat found;
    const char *path = target->options->config;
    if (stat(path, &found) < 0)
        return errno == ENOENT
                   ? ls_error(LS_ENOENT,
                              "%s: there is no such run, or configuration",
                              path)
                   : ls_error_from(errno, path);
    return S_ISDIR(found.st_mode) ? aim_at_run(target) : aim_at_config(target);
}

/* ---- asking -------------------------------------------------------------- */

static void forget(struct told *told)
{
    for (size_t i = 0; i < told->n; i++)
        if (told->answers[i].status == LS_OK)
            health_clear(&told->answers[i].health);
    free(told->ids);
    free(told->answers);
    *told = (struct told){.n = 0};
}

static void add_id(struct told *told, uint32_t id)
{
    for (size_t i = 0; i < told->n; i++)
        if (told->ids[i] == id)
            return;
    told->ids[told->n++] = id;
}

/* Two runs of a job may be in progress at once; each node says of which it is,
 * if it knows. */
static void leave_out_others(const struct target *target, struct told *told)
{
    for (size_t i = 0; i < told->n; i++) {
        struct health_answer *answer = &told->answers[i];
        if (answer->status != LS_OK || target->run.name == NULL ||
            answer->health.run[0] == '\0' ||
            strcmp(answer->health.run, target->run.name) == 0)
            continue;
        health_clear(&answer->health);
        *answer = (struct health_answer){.status = LS_ENOENT};
        told->others = true;
    }
}

static int ask(const struct target *target, struct told *out)
{
    uint32_t found[PLAN_NODES_MAX];
    size_t n = health_find(target->place, found, PLAN_NODES_MAX);
    n = n < PLAN_NODES_MAX ? n : PLAN_NODES_MAX;
    struct told told = {
        .ids = calloc(target->n_known + n + 1, sizeof *told.ids),
        .answers = calloc(target->n_known + n + 1, sizeof *told.answers)};
    if (told.ids == NULL || told.answers == NULL) {
        forget(&told);
        return ls_error(LS_ENOMEM, "asking the nodes");
    }
    for (size_t i = 0; i < target->n_known; i++)
        add_id(&told, target->known[i]);
    for (size_t i = 0; i < n; i++)
        add_id(&told, found[i]);
    health_ask_all(told.answers, target->place, told.ids, told.n, WAIT_MS);
    leave_out_others(target, &told);
    *out = told;
    return LS_OK;
}

/* Nobody is there: whether that is so for good. */
static int say_why(const struct target *target, const struct told *told)
{
    const char *folder = target->folder;
    struct run_folder_look run;
    if (told->others)
        return ls_error(LS_EUNREACHABLE,
                        "%s has ended; another run of job %s is in progress",
                        folder, target->job);
    if (target->run.name == NULL)
        return ls_error(LS_EUNREACHABLE,
                        "%s: no node of it runs on this host, or not with the "
                        "folder %s",
                        target->options->config, target->setup.plan.out);
    const int status = run_folder_look(&run, folder);
    if (status != LS_OK)
        return status;
    if (run.done)
        return ls_error(LS_EUNREACHABLE,
                        "%s has ended; lockstep trace shows its recordings, if "
                        "it has any",
                        folder);
    if (run_folder_is_busy(&run))
        return ls_error(LS_EAGAIN,
                        "%s is in progress, and no node of it answers on this "
                        "host yet: try again",
                        folder);
    return ls_error(LS_EUNREACHABLE,
                    "%s was interrupted, and nobody works on it: the command "
                    "that began it goes on with it",
                    folder);
}

/* Errors: those of say_why(), and no memory. */
static int look(const struct target *target, struct told *out)
{
    const int status = ask(target, out);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < out->n; i++)
        if (out->answers[i].status != LS_ENOENT)
            return LS_OK;
    const int none = say_why(target, out);
    forget(out);
    return none;
}

/* ---- showing ------------------------------------------------------------- */

static int make_view(struct status_view *out, const struct target *target,
                     const struct told *now, const struct told *before)
{
    const struct status_asked at = {now->ids, now->answers, now->n};
    const struct status_asked then = {before->ids, before->answers, before->n};
    const int status = status_view_make(out, &at, &then);
    out->job = target->job;
    out->folder = target->folder;
    return status;
}

/* *more: false when it cannot be written; output_end() says so. */
static int print(const struct target *target, const struct told *now,
                 const struct told *before, bool *more)
{
    struct status_view view;
    int status = make_view(&view, target, now, before);
    if (status != LS_OK)
        return status;
    if (target->options->json) {
        status = status_view_json(&view);
    } else {
        if (target->options->watch && isatty(STDOUT_FILENO))
            fputs("\033[H\033[2J", stdout);
        status_view_print(&view, stdout);
        if (target->options->watch && !isatty(STDOUT_FILENO))
            fputc('\n', stdout);
    }
    status_view_clear(&view);
    if (output_flush() != LS_OK)
        *more = false;
    return status;
}

static int draw(struct screen *screen, const struct target *target,
                const struct told *now, const struct told *before)
{
    struct status_view view;
    char *text = NULL;
    size_t size;
    int status = make_view(&view, target, now, before);
    if (status != LS_OK)
        return status;
    FILE *to = open_memstream(&text, &size);
    if (to != NULL) {
        status_view_print(&view, to);
        fprintf(to, "\n  q ends this; again every %g s\n",
                target->options->every_s);
    }
    status_view_clear(&view);
    if (to == NULL || fclose(to) != 0)
        status = ls_error(LS_ENOMEM, "showing what the nodes say");
    else
        status = screen_show(screen, text);
    free(text);
    return status;
}

static void rest(double seconds)
{
    ls_runtime *runtime = ls_runtime_threads();
    ls_rest_until(runtime,
                  ls_now(runtime) + (int64_t)(seconds * (double)LS_NS_PER_S));
}

/* They are there, and none has said a word. */
static int say_silent(const struct told *told)
{
    for (size_t i = 0; i < told->n; i++)
        if (told->answers[i].status == LS_OK)
            return LS_OK;
    return ls_error(LS_EAGAIN,
                    "none of the nodes has answered within %g s: they hang, or "
                    "are stopped",
                    WAIT_MS / 1000.0);
}

/* *asked: how often they were; what ends a watch after that is no failure. */
static int show(const struct target *target, struct screen *screen,
                size_t *asked)
{
    struct told before = {.n = 0}, now = {.n = 0};
    const bool again = target->options->watch || screen != NULL;
    bool more = true;
    int status = look(target, &before);
    if (status == LS_OK && screen != NULL)
        status = draw(screen, target, &before, &now);
    for (; status == LS_OK && more; more = more && again) {
        ++*asked;
        if (screen != NULL)
            status = screen_wait(screen, target->options->every_s, &more);
        else
            rest(target->options->every_s);
        if (status != LS_OK || !more)
            break;
        status = look(target, &now);
        if (status == LS_EAGAIN && again && *asked > 1) {
            status = LS_OK; /* it is ending, or begins again */
            continue;
        }
        if (status == LS_OK)
            status = screen != NULL ? draw(screen, target, &now, &before)
                                    : print(target, &now, &before, &more);
        if (status != LS_OK && *asked == 1 && screen == NULL)
            *asked = 0; /* nothing was shown */
        forget(&before);
        before = now;
        now = (struct told){.n = 0};
    }
    if (status == LS_OK && !again)
        status = say_silent(&before);
    forget(&before);
    return status;
}

static int fail(const struct target *target, int status)
{
    const char *report = target->has_setup ? setup_report(&target->setup) : "";
    if (status != LS_ECONFIG || report[0] == '\0')
        return command_failed(status);
    command_print_report(report);
    return ls_status_exit_code(status);
}

static int do_status(const struct options *options, struct screen *screen)
{
    struct target *target = calloc(1, sizeof *target);
    if (target == NULL)
        return command_failed(ls_error(LS_ENOMEM, "asking the nodes"));
    target->options = options;
    size_t asked = 0;
    int status = aim(target);
    if (status == LS_OK)
        status = show(target, screen, &asked);
    screen_end(screen);
    int exit_code = status == LS_OK ? 0 : fail(target, status);
    /* It was watched to its end. */
    if (status == LS_EUNREACHABLE && asked > 0)
        exit_code = 0;
    if (target->has_setup)
        setup_fini(&target->setup);
    free(target);
    return exit_code;
}

int command_status(const struct options *options)
{
    return do_status(options, NULL);
}

int command_top(const struct options *options)
{
    struct screen screen;
    const int status = screen_begin(&screen);
    return status == LS_OK ? do_status(options, &screen)
                           : command_failed(status);
}
