/* Sub-groups: who is in which, and that all of one begin it or none. */
#include <stdlib.h>

#include "carrier.h"

/* What a rank says of its part in a sub-group that it is not in. */
#define WORD_NONE 1

struct division {
    uint32_t rank, size; /* of this rank, in the group that is divided */
    uint32_t *colours;   /* own; of all ranks */
    uint32_t *ranks;     /* own; those of this rank's colour */
    uint64_t *words;     /* own; of all ranks */
    uint32_t n;          /* of ranks */
    uint32_t own;        /* which of them this one is */
};

static void division_fini(struct division *division)
{
    free(division->colours);
    free(division->ranks);
    free(division->words);
}

static int division_init(struct division *division, const ls_group *group)
{
    *division = (struct division){.rank = ls_group_rank(group),
                                  .size = ls_group_size(group)};
    const size_t n = division->size;
    division->colours = calloc(n + 1, sizeof *division->colours);
    division->ranks = calloc(n + 1, sizeof *division->ranks);
    division->words = calloc(n + 1, sizeof *division->words);
    if (division->colours != NULL && division->ranks != NULL &&
        division->words != NULL)
        return LS_OK;
    division_fini(division);
    return ls_error(LS_ENOMEM, "group: no memory to split it");
}

static void choose_ranks(struct division *division)
{
    const uint32_t colour = division->colours[division->rank];
    for (uint32_t i = 0; i < division->size; i++) {
        if (colour == LS_GROUP_NO_COLOUR || division->colours[i] != colour)
            continue;
        if (i == division->rank)
            division->own = division->n;
        division->ranks[division->n++] = i;
    }
}

/* One that could not make its part fails all of its colour. */
static int check_words(const struct division *division)
{
    for (uint32_t i = 0; i < division->n; i++) {
        if (division->words[division->ranks[i]] == 0)
            return ls_error(LS_ENOMEM,
                            "group: rank %u could not make its part of the "
                            "sub-group",
                            (unsigned)division->ranks[i]);
    }
    return LS_OK;
}

/* The others are in what this rank has no memory to begin, and wait for it. */
static int give_up(ls_group *group, int status)
{
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    ls_group_leave(group, status);
    return ls_failure_return(&failure);
}

/* Make this rank's part, then meet the others: none goes on before all have
 * theirs. */
static int make(ls_group **out, ls_group *group, struct division *division,
                int wait_ms)
{
    uint64_t word = WORD_NONE;
    ls_group *made = NULL;
    struct ls_failure fault = {.status = LS_OK};
    if (division->n > 0)
        ls_failure_keep(&fault, group->ops->split(&made, group, division->ranks,
                                                  division->n, division->own,
                                                  group->n_splits, &word));
    int status = ls_group_all_gather(group, &word, sizeof word, division->words,
                                     wait_ms);
    if (status == LS_ENOMEM)
        status = give_up(group, status);
    if (status == LS_OK && fault.status != LS_OK)
        status = ls_failure_return(&fault);
    else if (status == LS_OK)
        status = check_words(division);
    if (status != LS_OK && made != NULL)
        group->ops->abandon(made);
    else if (status == LS_OK && made == NULL && division->n > 0)
        made = group->ops->meet(division->words[division->ranks[0]],
                                division->own);
    if (status == LS_OK && made != NULL) {
        made->parent = group;
        atomic_fetch_add(&group->n_children, 1);
    }
    *out = status == LS_OK ? made : NULL;
    return status;
}

int ls_group_split(ls_group **out, ls_group *group, uint32_t colour,
                   int wait_ms)
{
    *out = NULL;
    struct division division;
    int status = division_init(&division, group);
    if (status != LS_OK)
        return status;
    status = ls_group_all_gather(group, &colour, sizeof colour,
                                 division.colours, wait_ms);
    if (status == LS_OK) {
        group->n_splits++;
        choose_ranks(&division);
        status = make(out, group, &division, wait_ms);
    }
    division_fini(&division);
    return status;
}
