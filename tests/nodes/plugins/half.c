/* A plugin without a policy. */
#include "lockstep/plugin.h"

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_env_ops env = {.state_bytes = 1};
    static const struct ls_plugin table = {
        .abi = LS_PLUGIN_ABI, .name = "half", .version = "1", .env = &env};
    return &table;
}
