/* A plugin of an ABI that never was. */
#include "lockstep/plugin.h"

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_plugin table = {
        .abi = LS_PLUGIN_ABI + 1000, .name = "old", .version = "1"};
    return &table;
}
