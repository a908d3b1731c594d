/* setup.h - from the command line to a plan that is known to be right.
 *
 * `check`, `run` and `node` all begin here, so they refuse the same files with
 * the same words. */
#ifndef LOCKSTEP_SETUP_H
#define LOCKSTEP_SETUP_H

#include "options.h"
#include "plan.h"
#include "plugin_load.h"

struct setup {
    struct plan plan;
    struct plugin *plugin; /* own */
};

/* Read the file with what the options put in its place, load the plugin and
 * let it read its sections.
 * out:    own; give it to setup_fini(), also after an error.
 * Errors: LS_EINVAL a --set that leads nowhere; LS_ENOENT no such file;
 *         LS_ECONFIG: every problem is in setup_report(); LS_ENOMEM. */
LS_MUST_USE int setup_load(struct setup *out, const struct options *options);
void setup_fini(struct setup *setup);

/* Every problem of the file, or "". Borrow: until fini. */
const char *setup_report(const struct setup *setup);

#endif
