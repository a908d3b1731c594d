/* `lockstep profile` and `lockstep trace`. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "command_run.h"
#include "profile_show.h"

/* A node that records everything for minutes; 64 bytes each. */
#define RECORDS "1048576"

static int show(const struct options *options, const struct profile *profile,
                bool table_too)
{
    struct profile_graph graph = {.lines = NULL};
    struct profile_table table = {.n_rows = 0};
    int status = profile_graph_make(&graph, profile);
    if (status == LS_OK)
        status = profile_table_make(&table, &graph);
    if (status == LS_OK && table_too)
        status = profile_print(&table, &graph, options->json);
    if (status == LS_OK && options->pftrace != NULL)
        status = profile_write_perfetto(&graph, options->pftrace);
    if (status == LS_OK && options->html != NULL)
        status = profile_write_html(&table, &graph, options->html);
    if (status == LS_OK && options->metrics != NULL)
        status = profile_write_metrics(&table, options->metrics);
    profile_table_clear(&table);
    profile_graph_clear(&graph);
    return status;
}

/* The recordings of a run; of a job's folder, those of its latest run. */
static int show_run(const struct options *options, const char *run,
                    bool table_too)
{
    static const char *const places[] = {PROFILE_FOLDER,
                                         PLAN_LATEST "/" PROFILE_FOLDER};
    struct profile profile;
    char folder[LS_PATH_MAX];
    int status = LS_OK;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        status = ls_file_path(folder, sizeof folder, run, places[i]);
        if (status != LS_OK)
            return status;
        if (ls_file_exists(folder))
            break;
        if (i > 0)
            (void)snprintf(folder, sizeof folder, "%s/" PROFILE_FOLDER, run);
    }
    status = profile_read(&profile, folder);
    if (status != LS_OK)
        return status;
    status = show(options, &profile, table_too);
    profile_clear(&profile);
    return status;
}

/* What is to be written, before the work for it. */
static int check_files(const struct options *options)
{
    const struct {
        const char *option, *path;
        const struct written_form *form;
    } files[] = {{options->command == COMMAND_TRACE ? "--out" : "--trace",
                  options->pftrace, &profile_perfetto_form},
                 {"--html", options->html, &profile_html_form},
                 {"--metrics", options->metrics, &profile_metrics_form}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const int status =
            files[i].path != NULL
                ? written_check_replaced(files[i].path, files[i].form)
                : LS_OK;
        if (status != LS_OK)
            return ls_error_at(status, "%s", files[i].option);
    }
    return LS_OK;
}

int command_trace(const struct options *options)
{
    const bool files = options->pftrace != NULL || options->html != NULL ||
                       options->metrics != NULL;
    int status = check_files(options);
    if (status == LS_OK)
        status = show_run(options, options->config, !files || options->json);
    return status == LS_OK ? 0 : command_failed(status);
}

/* ---- profile ------------------------------------------------------------- */

static int add_set(struct options *options, const char *path, const char *value)
{
    if (options->n_sets == OPTIONS_REPEATS_MAX)
        return ls_error(LS_EINVAL,
                        "--set: at most %d of them, as profile has "
                        "some of its own",
                        OPTIONS_REPEATS_MAX - 3);
    options->sets[options->n_sets].path = path;
    options->sets[options->n_sets++].value = value;
    return LS_OK;
}

/* How a job is told to end after so many iterations. */
static int add_steps(struct options *options, char value[32])
{
    struct setup setup;
    int status = command_setup(&setup, options);
    if (status != LS_OK)
        return status;
    const struct plan *const plan = &setup.plan;
    const uint64_t n = options->n_steps;
    const bool service = plan_count(plan, PLAN_COORDINATOR) > 0;
    if (plan_is_of_members(plan))
        status = ls_error(LS_EINVAL,
                          "--steps: members do as many epochs as the "
                          "configuration says: --set barrier.epochs=%llu",
                          (unsigned long long)n);
    (void)snprintf(
        value, 32, "%llu",
        (unsigned long long)(service ? n
                                     : n * plan_count(plan, PLAN_COLLECTOR) *
                                           plan->envs * (uint64_t)plan->steps));
    setup_fini(&setup);
    if (status != LS_OK)
        return command_failed(status), status;
    return add_set(options,
                   service ? "coordinator.iterations" : "stop.env_step", value);
}

int command_profile(const struct options *given)
{
    struct options options = *given;
    struct run_end end;
    char steps[32];
    options.fresh = true;
    options.aside = true;
    int status = check_files(&options);
    if (status == LS_OK)
        status = add_set(&options, "trace.all", "true");
    if (status == LS_OK)
        status = add_set(&options, "trace.records", RECORDS);
    if (status != LS_OK)
        return command_failed(status);
    if (options.n_steps > 0 && (status = add_steps(&options, steps)) != LS_OK)
        return ls_status_exit_code(status);
    const int exit_code = command_run_once(&options, &end);
    if (end.folder[0] == '\0' || (exit_code != 0 && !end.done))
        return exit_code;
    if (!options.json)
        printf("\n");
    status = show_run(&options, end.folder, true);
    return status == LS_OK ? 0 : command_failed(status);
}
