#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

int command_failed(int status)
{
    const char *text = ls_error_text();
    (void)fprintf(stderr, "lockstep: %s\n",
                  text[0] != '\0' ? text : ls_status_sentence(status));
    return ls_status_exit_code(status);
}

void command_warn(const struct plan *plan)
{
    const char *text = plan_security_warning(plan);
    if (text != NULL)
        (void)fprintf(stderr, "lockstep: %s\n", text);
}

/* Every problem of a file. */
static void print_report(const char *report)
{
    const size_t length = strlen(report);
    (void)fprintf(stderr, "%s%s", report,
                  report[length - 1] == '\n' ? "" : "\n");
}

int command_setup(struct setup *out, const struct options *options)
{
    const int status = setup_load(out, options);
    if (status == LS_OK)
        return LS_OK;
    const char *report = setup_report(out);
    if (status == LS_ECONFIG && report[0] != '\0')
        print_report(report);
    else
        (void)command_failed(status);
    setup_fini(out);
    return status;
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
        print_report(report);
    else
        (void)command_failed(status);
    faults_fini(out);
    return status;
}

int command_event_log(FILE **out, const char *path)
{
    *out = NULL;
    if (path == NULL)
        return LS_OK;
    *out = fopen(path, "w");
    if (*out != NULL)
        return LS_OK;
    const int status = ls_error_from(errno, path);
    (void)command_failed(status);
    return status;
}

int command_check(const struct options *options)
{
    struct setup setup;
    int status = command_setup(&setup, options);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    status = plan_print(&setup.plan, options->json);
    setup_fini(&setup);
    return status == LS_OK ? 0 : command_failed(status);
}
