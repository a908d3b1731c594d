/* plugin_load.h - find, open and check a plugin.
 *
 * A name is looked for as NAME.so in the folders of LOCKSTEP_PLUGIN_PATH
 * (joined by colons), then beside the program. What has a slash in it is a
 * path, taken from the configuration's folder.
 * Thread: serial. */
#ifndef LOCKSTEP_PLUGIN_LOAD_H
#define LOCKSTEP_PLUGIN_LOAD_H

#include "lockstep/plugin.h"

struct plugin;

/* folder: of the configuration; "" is the current one.
 * out:    own; written on success only; give it to plugin_unload().
 * Errors: LS_ENOENT not found: the text lists where was looked; LS_EMISMATCH
 *         found, but no plugin, or of another ABI: the text says which is
 *         needed and what to do; or its table lacks something: the text says
 *         what; LS_ENOMEM. */
LS_MUST_USE int plugin_load(struct plugin **out, const char *name,
                            const char *folder);
/* Nothing of the plugin may be in use. NULL and pointer to NULL are fine. */
void plugin_unload(struct plugin **plugin);

/* Borrow: until it is unloaded. */
const struct ls_plugin *plugin_table(const struct plugin *plugin);
const char *plugin_path(const struct plugin *plugin);

#endif
