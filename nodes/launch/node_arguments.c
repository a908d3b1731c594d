#include "node_arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "3,7" */
static void add_gone(struct arguments *to, const struct launch *launch)
{
    char *text = NULL;
    size_t size;
    FILE *list = open_memstream(&text, &size);
    if (list == NULL) {
        to->status = ls_error(LS_ENOMEM, "starting a node");
        return;
    }
    for (size_t i = 0; i < launch->n_gone; i++)
        (void)fprintf(list, "%s%u", i > 0 ? "," : "",
                      (unsigned)launch->gone[i]);
    if (fclose(list) == 0)
        arguments_add_pair(to, "--gone", text);
    else
        to->status = ls_error(LS_ENOMEM, "starting a node");
    free(text);
}

void node_arguments(struct arguments *to, const struct plan *plan, size_t index,
                    const struct options *options, const struct launch *launch,
                    const char *out)
{
    const struct plan_endpoints *endpoints = launch->endpoints;
    arguments_add(to, "node");
    arguments_add_number(to, "--id", plan->nodes[index].id);
    arguments_add_pair(to, "--bind", endpoints->bind);
    arguments_add_pair(to, "--advertise", endpoints->advertise);
    for (size_t i = 0; i < endpoints->n_attach; i++)
        arguments_add_pair(to, "--attach", endpoints->attach[i]);
    for (size_t i = 0; i < options->n_sets; i++)
        arguments_add_set(to, options->sets[i].path, options->sets[i].value);
    arguments_add_pair(to, "--seed", options->seed);
    arguments_add_pair(to, "--out", out);
    arguments_add_pair(to, "--patience", options->patience);
    arguments_add_pair(to, "--record", options->record);
    if (options->epoch == PLAN_FROM_BEST)
        arguments_add_pair(to, "--epoch", "best");
    else if (options->epoch != PLAN_FROM_NEWEST)
        arguments_add_number(to, "--epoch", (unsigned long)options->epoch);
    if (launch->generation > 0)
        arguments_add_number(to, "--life", launch->generation);
    if (!plan->folder_found)
        arguments_add_pair(to, "--run", strrchr(plan->folder, '/') + 1);
    add_gone(to, launch);
}
