/* lockstep - the program. */
#include <signal.h>
#include <stdio.h>

#include "command.h"
#include "help.h"
#include "output.h"
#include "version.h"

int command_version(const struct options *options)
{
    (void)options;
    printf("lockstep %s\n", version_text());
    return 0;
}

int command_help(const struct options *options)
{
    const int status = help_print(stdout, options->topic);
    return status == LS_OK ? 0 : command_failed(status);
}

static int do_command(const struct options *options)
{
#define COMMAND_DOES(NAME, name, takes_job) [COMMAND_##NAME] = command_##name,
    static int (*const does[])(const struct options *) = {
        COMMAND_MAP(COMMAND_DOES)};
    if (options->command != COMMAND_NONE)
        return does[options->command](options);
    help_print_short(stderr);
    return ls_status_exit_code(LS_EINVAL);
}

int main(int argc, char **argv)
{
    struct options options;
    output_init();
    /* Whoever started this may ignore it: then no child's end is known. */
    (void)signal(SIGCHLD, SIG_DFL);
    const int status = options_parse(&options, argc, argv);
    return output_end(status == LS_OK ? do_command(&options)
                                      : command_failed(status));
}
