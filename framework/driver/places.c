#include "places.h"

#include <stdlib.h>

#include "lockstep/crew.h"

static int needs_nothing(const struct ls_driver_options *options)
{
    (void)options;
    return LS_OK;
}

static void run_one(void *self, size_t at)
{
    driver_run_rank(self, at);
}

/* Threads; and a single one, which is no other thread. -------------------- */

static int run_threads(struct driver_run *run, uint32_t n)
{
    ls_crew *crew = NULL;
    run->groups = calloc(n, sizeof(ls_group *));
    if (run->groups == NULL)
        return ls_error(LS_ENOMEM, "driver: no memory for %u ranks", n);
    int status = ls_group_threads(run->groups, run->runtime, n);
    if (status == LS_OK)
        status = ls_crew_create(&crew, run->runtime, n, "rank", run_one, run);
    if (status == LS_OK)
        ls_crew_run(crew);
    ls_crew_destroy(&crew);
    for (uint32_t i = 0; i < n; i++)
        (void)ls_group_destroy(&run->groups[i]);
    free(run->groups);
    return status;
}

static int run_single(struct driver_run *run)
{
    return run_threads(run, 1);
}

static int check_threads(const struct ls_driver_options *options)
{
    return options->n_threads > 0 && options->n_threads <= LS_GROUP_RANKS_MAX
               ? LS_OK
               : ls_error(LS_EINVAL,
                          "driver: n_threads is %u, and is 1 to %d: say how "
                          "many ranks",
                          options->n_threads, LS_GROUP_RANKS_MAX);
}

static int run_n_threads(struct driver_run *run)
{
    return run_threads(run, run->options->n_threads);
}

/* A group that exists ------------------------------------------------------ */

static int check_group(const struct ls_driver_options *options)
{
    if (options->group == NULL)
        return ls_error(LS_EINVAL, "driver: there is no group to join");
    return ls_group_size(options->group) > 0
               ? LS_OK
               : ls_error(LS_EINVAL, "driver: the group is not formed");
}

static int run_group(struct driver_run *run)
{
    ls_group *group = run->options->group;
    run->groups = &group;
    driver_run_rank(run, 0);
    return LS_OK;
}

/* The bus ------------------------------------------------------------------ */

static int check_bus(const struct ls_driver_options *options)
{
    return options->node != NULL
               ? LS_OK
               : ls_error(LS_EINVAL, "driver: there is no node for the bus");
}

/* The group listens before the node starts, so that nobody waits for it. */
static int run_bus(struct driver_run *run)
{
    ls_node *const node = run->options->node;
    ls_group *group = NULL;
    int status = ls_group_create(&group, node,
                                 &(struct ls_group_options){.name = "driver"});
    if (status == LS_OK)
        status = ls_node_start(node);
    if (status == LS_OK)
        status = ls_group_form(group, run->timeout_ms);
    if (status == LS_OK) {
        run->groups = &group;
        driver_run_rank(run, 0);
    }
    /* The farewell says how it ended; a group that is gone says only that. */
    (void)ls_node_stop(node, status != LS_OK ? status : run->first.status);
    (void)ls_group_destroy(&group);
    return status;
}

/* The table ---------------------------------------------------------------- */

static const struct place_ops places[] = {
    [LS_DRIVER_SINGLE] = {"single", needs_nothing, run_single},
    [LS_DRIVER_THREADS] = {"threads", check_threads, run_n_threads},
    [LS_DRIVER_BUS] = {"bus", check_bus, run_bus},
    [LS_DRIVER_GROUP] = {"group", check_group, run_group},
};

const struct place_ops *place_of(enum ls_driver_kind kind)
{
    return (size_t)kind < sizeof places / sizeof places[0] ? &places[kind]
                                                           : NULL;
}

const char *ls_driver_kind_name(enum ls_driver_kind kind)
{
    const struct place_ops *const place = place_of(kind);
    return place != NULL ? place->name : NULL;
}
