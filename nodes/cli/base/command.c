#include "command.h"

#include <stdio.h>
#include <string.h>

#include "output.h"

int command_failed(int status)
{
    const char *text = ls_error_text();
    output_print(stderr, "lockstep: %s\n",
                 text[0] != '\0' ? text : ls_status_sentence(status));
    return ls_status_exit_code(status);
}

void command_print_report(const char *report)
{
    const size_t length = strlen(report);
    output_print(stderr, "%s%s", report,
                 report[length - 1] == '\n' ? "" : "\n");
}

int command_setup(struct setup *out, const struct options *options)
{
    const int status = setup_load(out, options);
    if (status == LS_OK)
        return LS_OK;
    const char *report = setup_report(out);
    if (status == LS_ECONFIG && report[0] != '\0')
        command_print_report(report);
    else
        (void)command_failed(status);
    setup_fini(out);
    return status;
}
