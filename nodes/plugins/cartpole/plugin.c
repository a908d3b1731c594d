/* plugin.c - the one symbol that cartpole.so exports. */
#include "cartpole.h"

static const struct ls_plugin table = {
    .abi = LS_PLUGIN_ABI,
    .name = "cartpole",
    .version = "1.0",
    .env = &cartpole_env,
    .policy = &cartpole_policy,
};

LS_API const struct ls_plugin *ls_plugin(void)
{
    return &table;
}
