#include "load.h"

#include <stdlib.h>
#include <string.h>

#include "fold.h"

int load_set(struct load *load, uint64_t epoch, const struct group_form *form,
             const void *bytes, size_t size)
{
    if (size > load->capacity) {
        unsigned char *more = realloc(load->bytes, size);
        if (more == NULL)
            return ls_error(LS_ENOMEM, "group: no memory for %zu bytes", size);
        load->bytes = more;
        load->capacity = size;
    }
    if (size > 0)
        memcpy(load->bytes, bytes, size);
    load->size = size;
    load->rounds = epoch + 1;
    load->form = *form;
    return LS_OK;
}

void load_fini(struct load *load)
{
    free(load->bytes);
    *load = (struct load){.rounds = 0};
}

size_t load_brings(const struct plan_shape *shape, uint32_t rank)
{
    const struct group_form *form = &shape->form;
    switch (form->kind) {
    case LS_GROUP_BROADCAST:
        return rank == form->root ? plan_brings(shape, rank) : 0;
    case LS_GROUP_SCATTER:
        return rank == form->root ? (size_t)form->count * shape->n : 0;
    case LS_GROUP_ALL_GATHER:
    case LS_GROUP_GATHER:
        return plan_brings(shape, rank);
    case LS_GROUP_ALL_REDUCE:
        return (size_t)form->count * group_type_bytes(form->type);
    case LS_GROUP_REDUCE_SCATTER:
        return (size_t)form->count * group_type_bytes(form->type) * shape->n;
    case LS_GROUP_BARRIER:
    case LS_GROUP_SEND:
    case LS_GROUP_RECEIVE:
        break;
    }
    return 0;
}

static bool is_gathered(const struct group_form *form)
{
    return form->kind == LS_GROUP_ALL_GATHER || form->kind == LS_GROUP_GATHER;
}

size_t load_result(const struct plan_shape *shape)
{
    const bool rooted = shape->form.kind == LS_GROUP_BROADCAST ||
                        shape->form.kind == LS_GROUP_SCATTER;
    size_t size = load_brings(shape, rooted ? shape->form.root : 0);
    for (uint32_t rank = 1; rank < shape->n && is_gathered(&shape->form);
         rank++)
        size += load_brings(shape, rank);
    return size;
}

bool load_rides(const struct plan_shape *shape)
{
    if (shape->n > LOAD_RANKS_MAX)
        return false;
    for (uint32_t rank = 0; rank < shape->n; rank++) {
        if (load_brings(shape, rank) > LOAD_BRINGS_MAX)
            return false;
    }
    return load_result(shape) <= LOAD_RESULT_MAX;
}

void load_make(const struct plan_shape *shape, const struct load *const *loads,
               unsigned char *result)
{
    const struct group_form *form = &shape->form;
    if (!group_form_folds(form)) {
        for (uint32_t rank = 0; rank < shape->n; rank++) {
            if (loads[rank]->size > 0)
                memcpy(result, loads[rank]->bytes, loads[rank]->size);
            result += loads[rank]->size;
        }
        return;
    }
    const size_t size = loads[0]->size;
    const size_t count = size / group_type_bytes(form->type);
    if (size == 0)
        return;
    memcpy(result, loads[0]->bytes, size);
    for (uint32_t rank = 1; rank < shape->n; rank++)
        fold_two(form->type, form->fold, result, result, loads[rank]->bytes,
                 count);
    fold_end(form->type, form->fold, result, count, shape->n);
}

static void copy(unsigned char *to, const unsigned char *from, size_t size)
{
    if (size > 0)
        memcpy(to, from, size);
}

void load_deliver(const struct plan_shape *shape, const unsigned char *result,
                  unsigned char *out)
{
    const struct group_form *form = &shape->form;
    const size_t count = (size_t)form->count;
    const size_t unit = group_type_bytes(form->type);
    switch (form->kind) {
    case LS_GROUP_GATHER:
    case LS_GROUP_ALL_GATHER:
        if (form->kind == LS_GROUP_GATHER && shape->rank != form->root)
            break;
        for (uint32_t rank = 0; rank < shape->n; rank++) {
            copy(out + plan_lies(shape, rank), result,
                 plan_brings(shape, rank));
            result += plan_brings(shape, rank);
        }
        break;
    case LS_GROUP_BROADCAST:
        if (shape->rank != form->root || shape->sizes != NULL)
            copy(out + (shape->ats != NULL ? shape->ats[form->root] : 0),
                 result, plan_brings(shape, form->root));
        break;
    case LS_GROUP_SCATTER:
        copy(out, result + shape->rank * count, count);
        break;
    case LS_GROUP_ALL_REDUCE:
        copy(out, result, count * unit);
        break;
    case LS_GROUP_REDUCE_SCATTER:
        copy(out, result + shape->rank * count * unit, count * unit);
        break;
    case LS_GROUP_BARRIER:
    case LS_GROUP_SEND:
    case LS_GROUP_RECEIVE:
        break;
    }
}
