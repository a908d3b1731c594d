/* `lockstep check`. */
#include "command.h"
#include "run_folder.h"

int command_check(const struct options *options)
{
    struct setup setup;
    int status = command_setup(&setup, options);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    if (!plan_is_of_members(&setup.plan))
        status = run_folder_check(setup.plan.out);
    if (status == LS_OK)
        status = plan_print(&setup.plan, options->json);
    setup_fini(&setup);
    return status == LS_OK ? 0 : command_failed(status);
}
