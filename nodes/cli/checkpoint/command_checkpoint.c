/* `lockstep checkpoint`: what was saved of the nodes of a run. */
#include <string.h>

#include "checkpoint_folder.h"
#include "command.h"

int command_checkpoint(const struct options *options)
{
    static const struct {
        const char *name;
        int (*fn)(const struct options *options);
    } verbs[] = {
        {"ls", checkpoint_ls},         {"show", checkpoint_show},
        {"verify", checkpoint_verify}, {"diff", checkpoint_diff},
        {"export", checkpoint_export}, {"rm", checkpoint_rm},
    };
    size_t i = 0;
    while (strcmp(options->checkpoint.verb, verbs[i].name) != 0)
        i++; /* the command line has no other */
    const int status = verbs[i].fn(options);
    return status == LS_OK ? 0 : command_failed(status);
}
