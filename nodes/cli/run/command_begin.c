#include "command_begin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lockstep/log.h"

#include "command.h"
#include "output.h"
#include "written.h"

void command_warn(const struct plan *plan)
{
    const char *text = plan_security_warning(plan);
    if (text != NULL)
        (void)fprintf(stderr, "lockstep: %s\n", text);
}

static int set_folder(struct plan *plan, const struct run_folder *folder)
{
    char tag[RUN_FOLDER_NAME_MAX + RUN_FOLDER_TOKEN_MAX + 2];
    (void)snprintf(tag, sizeof tag, "%s-%s", folder->name, folder->token);
    plan->lives = folder->lives;
    return plan_set_folder(plan, folder->name, tag);
}

int command_begin(struct run_folder *out, struct plan *plan, bool fresh,
                  bool aside, const char *resume)
{
    const bool learns = !plan_is_of_members(plan);
    if (!learns && resume != NULL)
        return ls_error(LS_ECONFIG,
                        "--resume: %s is a job of members, who learn nothing "
                        "and begin again each time; leave out --resume",
                        plan->path);
    int status = run_folder_begin(
        out, &(struct run_folder_options){.out = plan->out,
                                          .job = plan->job,
                                          .learning = plan_learning_hash(plan),
                                          .fresh = fresh || !learns,
                                          .aside = aside,
                                          .resume = resume});
    if (status == LS_OK)
        status = set_folder(plan, out);
    else if (!learns) {
        ls_log_info("lockstep call will not find this run: %s",
                    ls_error_text());
        status = plan_set_folder(plan, "none", "none");
    }
    return status;
}

int command_join(struct run_folder *out, struct plan *plan, const char *name,
                 bool keeps)
{
    const int status = run_folder_join(out, plan->out, name, keeps);
    return status == LS_OK ? set_folder(plan, out) : status;
}

void command_show_run(render *shown, const struct run_folder *folder,
                      const struct plan *plan)
{
    char behind[LS_PATH_MAX];
    if (folder->name[0] == '\0' || plan_is_of_members(plan))
        return;
    (void)snprintf(behind, sizeof behind, "%s/%u", plan->out, folder->behind);
    render_run(shown, &(struct render_run){
                          .folder = plan->folder,
                          .lives = folder->lives,
                          .behind = folder->behind > 0 ? behind : NULL});
}

int command_faults(struct faults *out, const char *name,
                   const struct plan *plan)
{
    const int status = faults_load(out, name, plan);
    if (status == LS_OK)
        return LS_OK;
    const char *report =
        out->config != NULL ? ls_config_report(out->config) : "";
    if (status == LS_ECONFIG && report[0] != '\0')
        command_print_report(report);
    else
        (void)command_failed(status);
    faults_fini(out);
    return status;
}

/* A pipe, a terminal and the like may be one. */
static int check_event_log(const char *path)
{
    /* A simulation begins with its first task, before any time has passed. */
    static const struct written_form form = {"an event log", "0.????????? -/"};
    struct stat found;
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return LS_OK;
    const int status = written_check(path, &form);
    return status == LS_OK ? LS_OK : ls_error_at(status, "--event-log");
}

int command_event_log(FILE **out, const char *path)
{
    *out = NULL;
    if (path == NULL)
        return LS_OK;
    int status = check_event_log(path);
    if (status == LS_OK && (*out = fopen(path, "w")) == NULL)
        status = ls_error_from(errno, path);
    if (status != LS_OK)
        (void)command_failed(status);
    return status;
}

int command_end_event_log(FILE *log, const char *path, int exit_code)
{
    if (log == NULL)
        return exit_code;
    errno = 0;
    const bool failed = ferror(log) != 0;
    if (fclose(log) == 0 && !failed)
        return exit_code;
    output_print(stderr, "lockstep: %s was not written in full: %s\n", path,
                 strerror(errno != 0 ? errno : EIO));
    return exit_code != 0 ? exit_code : ls_status_exit_code(LS_EIO);
}
