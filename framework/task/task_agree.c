/* What the nodes that are in step agree upon at the end of an iteration. */
#include <stdlib.h>
#include <string.h>

#include "task_core.h"

struct wisher {
    ls_wish_fn *fn;
    void *self;
};

void ls_agreement_fini(ls_task *task)
{
    free(task->agreement.wishers);
    free(task->agreement.ids);
}

static size_t find(const struct agreement *agreement, const void *self)
{
    size_t i = 0;
    while (i < agreement->n_wishers && agreement->wishers[i].self != self)
        i++;
    return i;
}

int ls_task_on_wish(ls_task *task, ls_wish_fn *fn, void *self)
{
    struct agreement *agreement = &task->agreement;
    const size_t at = find(agreement, self);
    if (fn == NULL) {
        if (at < agreement->n_wishers)
            agreement->wishers[at] = agreement->wishers[--agreement->n_wishers];
        return LS_OK;
    }
    if (at == agreement->n_wishers) {
        struct wisher *more =
            realloc(agreement->wishers, (at + 1) * sizeof *more);
        if (more == NULL)
            return ls_error(LS_ENOMEM, "task: no memory for a wish");
        agreement->wishers = more;
        agreement->n_wishers++;
    }
    agreement->wishers[at] = (struct wisher){fn, self};
    return LS_OK;
}

bool ls_task_has_wishes(const ls_task *task)
{
    return task->agreement.n_wishers > 0;
}

uint32_t ls_task_wishes(const ls_task *task)
{
    const struct agreement *agreement = &task->agreement;
    uint32_t wishes = 0;
    for (size_t i = 0; i < agreement->n_wishers; i++)
        wishes |= agreement->wishers[i].fn(agreement->wishers[i].self);
    return wishes & LS_WISHES_ALL;
}

const struct ls_agreement *ls_task_agreement(const ls_task *task)
{
    return task->agreement.there ? &task->agreement.what : NULL;
}

int ls_task_agree(ls_task *task, const struct ls_agreement *what)
{
    struct agreement *agreement = &task->agreement;
    if (what->n > agreement->room) {
        uint32_t *ids = realloc(agreement->ids, what->n * sizeof *ids);
        if (ids == NULL)
            return ls_error(LS_ENOMEM, "task: no memory for %zu ids", what->n);
        agreement->ids = ids;
        agreement->room = what->n;
    }
    if (what->n > 0)
        memcpy(agreement->ids, what->ids, what->n * sizeof *agreement->ids);
    agreement->what = *what;
    agreement->what.ids = agreement->ids;
    agreement->there = true;
    return LS_OK;
}
