#include "rank.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct source {
    const char *rank, *size; /* NULL: nothing says the size */
    /* How many are on this host; or on how many hosts they are. NULL: nothing
     * says it. */
    const char *local, *hosts;
    bool is_id;      /* a node's id, and the size may miss */
    bool is_outside; /* of what may have launched the launcher */
    bool apart;      /* each on a host of its own */
} sources[] = {
    {.rank = "LOCKSTEP_NODE_ID", .size = "LOCKSTEP_WORLD_SIZE", .is_id = true},
    {.rank = "RANK", .size = "WORLD_SIZE", .local = "LOCAL_WORLD_SIZE"},
    {.rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local = "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {.rank = "PMI_RANK", .size = "PMI_SIZE", .local = "MPI_LOCALNRANKS"},
    {.rank = "SLURM_PROCID",
     .size = "SLURM_NTASKS",
     .hosts = "SLURM_NNODES",
     .is_outside = true},
    {.rank = "JOB_COMPLETION_INDEX", .is_outside = true, .apart = true},
};
#define N_SOURCES (sizeof sources / sizeof sources[0])

static const char *value_of(const char *name)
{
    const char *value = name != NULL ? getenv(name) : NULL;
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int read_number(const char *name, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
                   *out <= UINT32_MAX
               ? LS_OK
               : ls_error(LS_EINVAL, "%s=%s: expected a whole number", name,
                          text);
}

static bool differs(const char *name, uint64_t from)
{
    const char *text = value_of(name);
    return text != NULL && strtoull(text, NULL, 10) != from;
}

static int check_size(const struct source *source, const struct plan *plan)
{
    uint64_t size;
    const char *text = value_of(source->size);
    if (text == NULL && !source->is_id)
        return ls_error(LS_EINVAL,
                        "%s is set, and %s is not: set both, or say "
                        "--id N",
                        source->rank, source->size);
    const int status =
        text != NULL ? read_number(source->size, text, &size) : LS_OK;
    if (status == LS_OK && text != NULL && size != plan->n_nodes)
        return ls_error(LS_EINVAL,
                        "%s=%s: %s has %zu node%s, and each must be started, "
                        "once",
                        source->size, text, plan->path, plan->n_nodes,
                        plan->n_nodes == 1 ? "" : "s");
    return status;
}

static int read_source(const struct source *source, const struct plan *plan,
                       struct rank *out)
{
    const char *text = value_of(source->rank);
    uint64_t number;
    int status = read_number(source->rank, text, &number);
    if (status == LS_OK && source->size != NULL)
        status = check_size(source, plan);
    if (status != LS_OK)
        return status;
    out->from = source->rank;
    out->apart = source->apart || differs(source->local, plan->n_nodes) ||
                 differs(source->hosts, 1);
    out->index = (size_t)number;
    if (source->is_id) {
        status = plan_find(plan, (uint32_t)number, &out->index);
        return status == LS_OK
                   ? LS_OK
                   : ls_error_at(status, "%s=%s", source->rank, text);
    }
    if (number < plan->n_nodes)
        return LS_OK;
    return ls_error(LS_EINVAL, "%s=%s: %s has %zu nodes, so it is 0 to %zu",
                    source->rank, text, plan->path, plan->n_nodes,
                    plan->n_nodes - 1);
}

static int compare(const struct rank *first, const struct source *source,
                   const struct plan *plan)
{
    struct rank other;
    const int status = read_source(source, plan, &other);
    if (status != LS_OK)
        return status;
    if (other.index == first->index)
        return LS_OK;
    return ls_error(LS_EINVAL,
                    "%s=%s is node %" PRIu32 ", and %s=%s is node %" PRIu32
                    ": unset one of them, or say --id N",
                    first->from, value_of(first->from),
                    plan->nodes[first->index].id, other.from,
                    value_of(other.from), plan->nodes[other.index].id);
}

int rank_read(struct rank *out, const struct plan *plan)
{
    struct rank rank = {.from = NULL};
    int status = LS_OK;
    for (size_t i = 0; i < N_SOURCES && status == LS_OK; i++) {
        if (value_of(sources[i].rank) == NULL)
            continue;
        if (rank.from == NULL)
            status = read_source(&sources[i], plan, &rank);
        else if (!sources[i].is_outside)
            status = compare(&rank, &sources[i], plan);
    }
    if (status != LS_OK)
        return status;
    if (rank.from == NULL)
        return ls_error(LS_ENOENT,
                        "which node? As in: lockstep node %s --id 0; lockstep "
                        "check %s lists them. A launcher may say it by "
                        "LOCKSTEP_NODE_ID, or RANK and WORLD_SIZE: lockstep "
                        "help node",
                        plan->path, plan->path);
    *out = rank;
    return LS_OK;
}
