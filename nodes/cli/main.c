/* lockstep - the program. */
#include <stdio.h>

#include "command.h"
#include "help.h"
#include "output.h"
#include "version.h"

static int do_command(const struct options *options)
{
    int status;
    switch (options->command) {
    case COMMAND_RUN:
        return command_run(options);
    case COMMAND_NODE:
        return command_node(options);
    case COMMAND_CHECK:
        return command_check(options);
    case COMMAND_SIM:
        return command_sim(options);
    case COMMAND_CALL:
        return command_call(options);
    case COMMAND_BENCH:
        return command_bench(options);
    case COMMAND_KEYGEN:
        return command_keygen(options);
    case COMMAND_VERSION:
        printf("lockstep %s\n", version_text());
        return 0;
    case COMMAND_HELP:
        status = help_print(stdout, options->topic);
        return status == LS_OK ? 0 : command_failed(status);
    case COMMAND_NONE:
        break;
    }
    help_print_short(stderr);
    return ls_status_exit_code(LS_EINVAL);
}

int main(int argc, char **argv)
{
    struct options options;
    output_init();
    const int status = options_parse(&options, argc, argv);
    return output_end(status == LS_OK ? do_command(&options)
                                      : command_failed(status));
}
