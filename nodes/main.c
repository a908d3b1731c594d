/* lockstep - the program. */
#include <stdio.h>

#include "command.h"
#include "help.h"
#include "version.h"

int main(int argc, char **argv)
{
    struct options options;
    int status = options_parse(&options, argc, argv);
    if (status != LS_OK)
        return command_failed(status);
    switch (options.command) {
    case COMMAND_RUN:
        return command_run(&options);
    case COMMAND_NODE:
        return command_node(&options);
    case COMMAND_CHECK:
        return command_check(&options);
    case COMMAND_SIM:
        return command_sim(&options);
    case COMMAND_CALL:
        return command_call(&options);
    case COMMAND_BENCH:
        return command_bench(&options);
    case COMMAND_KEYGEN:
        return command_keygen(&options);
    case COMMAND_VERSION:
        printf("lockstep %s\n", version_text());
        return 0;
    case COMMAND_HELP:
        status = help_print(stdout, options.topic);
        return status == LS_OK ? 0 : command_failed(status);
    case COMMAND_NONE:
        break;
    }
    help_print_short(stderr);
    return ls_status_exit_code(LS_EINVAL);
}
