/* Strangers: hosts that are not nodes, and mean no good. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "role_member.h"
#include "simulated_run.h"
#include "stranger.h"

/* Above all ids that a job is given. */
#define FIRST_ID          1000
#define STRANGERS_TO_SEED UINT64_C(0x9e3779b97f4a7c15)

struct intruder {
    struct intruder *previous;
    ls_stranger *stranger; /* own */
};

static const char *place_of(const struct life *life)
{
    return life->bound[0] != '\0' ? life->bound : life->endpoints.bind;
}

/* Where the nodes are, this one first. Returns how many. */
static size_t places(const simulated *all, size_t first, const char **out)
{
    const size_t n = all->options.plan->n_nodes;
    size_t found = 0;
    for (size_t i = 0; i < n && found < STRANGER_NODES_MAX; i++) {
        const struct life *life = all->current[(first + i) % n];
        if (life != NULL)
            out[found++] = place_of(life);
    }
    return found;
}

static int come(simulated *all, const struct fault *fault,
                struct ls_stranger_options *options, struct intruder *made)
{
    char name[32];
    const unsigned number = all->n_intruders++;
    (void)snprintf(name, sizeof name, "stranger %u", FIRST_ID + number);
    int status = ls_host_create(&options->host, all->simulation, name);
    if (status == LS_OK)
        status = ls_network_join(all->network, options->host);
    if (status != LS_OK)
        return status;
    options->seed = all->options.seed + number * STRANGERS_TO_SEED;
    options->id = FIRST_ID + number;
    options->proved = !all->options.plan->world.insecure;
    options->job = all->options.plan->job;
    options->event = MEMBER_EVENT;
    options->channel = "ls.barrier.step";
    options->length_ns = fault->length_ns;
    return ls_stranger_create(&made->stranger, options);
}

static void failed(const simulated *all)
{
    ls_simulation_violation(all->simulation, "stranger: %s", ls_error_text());
}

void simulated_stranger(simulated *all, const struct fault *fault, size_t first)
{
    const char *nodes[STRANGER_NODES_MAX];
    struct ls_stranger_options options = {.nodes = nodes};
    struct intruder *made = calloc(1, sizeof *made);
    if (made == NULL) {
        (void)ls_error(LS_ENOMEM, "no memory for it");
        failed(all);
        return;
    }
    options.n_nodes = places(all, first, nodes);
    if (come(all, fault, &options, made) != LS_OK) {
        failed(all);
        free(made);
        return;
    }
    made->previous = all->intruders;
    all->intruders = made;
}

void simulated_strangers_end(simulated *all)
{
    while (all->intruders != NULL) {
        struct intruder *intruder = all->intruders;
        all->intruders = intruder->previous;
        all->acts += ls_stranger_acts(intruder->stranger);
        ls_stranger_destroy(&intruder->stranger);
        free(intruder);
    }
}
