#include "call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"

#define DEFAULT_TIMEOUT_MS 60000

static const char *const kinds[] = {
    [LS_GROUP_BARRIER] = "barrier",
    [LS_GROUP_BROADCAST] = "broadcast",
    [LS_GROUP_ALL_GATHER] = "all_gather",
    [LS_GROUP_ALL_REDUCE] = "all_reduce",
    [LS_GROUP_REDUCE_SCATTER] = "reduce_scatter",
    [LS_GROUP_GATHER] = "gather",
    [LS_GROUP_SCATTER] = "scatter",
    [LS_GROUP_SEND] = "send",
    [LS_GROUP_RECEIVE] = "receive",
};
static const char *const types[] = {
    [LS_GROUP_F32] = "f32",
    [LS_GROUP_F64] = "f64",
    [LS_GROUP_I32] = "i32",
    [LS_GROUP_I64] = "i64",
};
static const char *const folds[] = {
    [LS_GROUP_SUM] = "sum",
    [LS_GROUP_MEAN] = "mean",
    [LS_GROUP_MIN] = "min",
    [LS_GROUP_MAX] = "max",
};
enum {
    N_KINDS = sizeof kinds / sizeof kinds[0],
    N_TYPES = sizeof types / sizeof types[0],
    N_FOLDS = sizeof folds / sizeof folds[0]
};

size_t group_type_bytes(enum ls_group_type type)
{
    return type == LS_GROUP_F32 || type == LS_GROUP_I32 ? 4 : 8;
}

static bool has_root(enum ls_group_kind kind)
{
    return kind == LS_GROUP_BROADCAST || kind == LS_GROUP_GATHER ||
           kind == LS_GROUP_SCATTER;
}

/* Names of operations appear in texts: one line of them. */
static bool is_name(const char *name)
{
    size_t n = 0;
    for (; name[n] != '\0'; n++) {
        if (n == LS_GROUP_NAME_MAX || name[n] < ' ' || name[n] > '~')
            return false;
    }
    return true;
}

/* What an operation needs besides memory. NULL: it is right. */
static const char *find_fault(const struct ls_group_operation *operation,
                              const struct group_form *form, uint32_t rank,
                              uint32_t size)
{
    const bool pair = group_form_is_pair(form);
    const size_t unit =
        group_form_folds(form) ? group_type_bytes(form->type) : 1;
    if (operation->name != NULL && !is_name(operation->name))
        return "its name is not at most 31 printable characters";
    if ((has_root(form->kind) || pair) && operation->root >= size)
        return "there is no such rank as its root";
    if (pair && operation->root == rank)
        return "a rank cannot send to itself";
    if (form->any && form->kind != LS_GROUP_BROADCAST &&
        form->kind != LS_GROUP_ALL_GATHER)
        return "only broadcast and all_gather give parts";
    if (operation->count > SIZE_MAX / 16 / size / unit)
        return "its count is too large";
    if (operation->timeout_ms < 0)
        return "its timeout_ms is negative";
    return NULL;
}

static const char *find_missing(const struct group_call *call, uint32_t rank,
                                uint32_t size)
{
    if (call->in == NULL && group_call_in_bytes(call, rank, size) > 0)
        return "it has nothing to read: `in` is NULL";
    if (call->out == NULL && !call->form.any &&
        group_call_out_bytes(call, rank, size) > 0)
        return "it has nowhere to write: `out` is NULL";
    return NULL;
}

static bool is_aligned(const struct group_call *call)
{
    const size_t unit = group_type_bytes(call->form.type);
    return !group_form_folds(&call->form) || ((uintptr_t)call->in % unit == 0 &&
                                              (uintptr_t)call->out % unit == 0);
}

int group_call_init(struct group_call *out,
                    const struct ls_group_operation *operation, uint32_t rank,
                    uint32_t size, int64_t now)
{
    const int timeout_ms =
        operation->timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : operation->timeout_ms;
    if ((unsigned)operation->kind >= N_KINDS ||
        (unsigned)operation->type >= N_TYPES ||
        (unsigned)operation->fold >= N_FOLDS)
        return ls_error(LS_EINVAL, "group: no such operation, type or fold");
    struct group_call call = {
        .form = {.kind = operation->kind,
                 .any = operation->parts != NULL,
                 .count = operation->count},
        .in = operation->in,
        .out = operation->out,
        .parts = operation->parts,
        .deadline = now + timeout_ms * LS_NS_PER_MS,
    };
    if (has_root(call.form.kind) || group_form_is_pair(&call.form))
        call.form.root = operation->root;
    if (group_form_folds(&call.form)) {
        call.form.type = operation->type;
        call.form.fold = operation->fold;
    }
    const char *fault = find_fault(operation, &call.form, rank, size);
    if (fault == NULL)
        fault = find_missing(&call, rank, size);
    if (fault == NULL && !is_aligned(&call))
        fault = "`in` or `out` is not aligned as its numbers are";
    if (fault == NULL && operation->name != NULL)
        memcpy(call.form.name, operation->name, strlen(operation->name));
    if (fault != NULL)
        return ls_error(LS_EINVAL, "group: %s: %s", kinds[call.form.kind],
                        fault);
    *out = call;
    return LS_OK;
}

bool group_form_is_same(const struct group_form *one,
                        const struct group_form *other)
{
    return one->kind == other->kind && one->type == other->type &&
           one->fold == other->fold && one->any == other->any &&
           one->root == other->root &&
           (one->any || one->count == other->count) &&
           strcmp(one->name, other->name) == 0;
}

void group_form_say(const struct group_form *form, char text[GROUP_SAY_MAX])
{
    char name[LS_GROUP_NAME_MAX + 4] = "";
    char more[64] = "";
    if (form->name[0] != '\0')
        snprintf(name, sizeof name, " \"%s\"", form->name);
    if (group_form_folds(form))
        snprintf(more, sizeof more, " (%s of %" PRIu64 " %s)",
                 folds[form->fold], form->count, types[form->type]);
    else if (form->any && form->kind == LS_GROUP_BROADCAST)
        snprintf(more, sizeof more, " (any size, root %" PRIu32 ")",
                 form->root);
    else if (form->any)
        snprintf(more, sizeof more, " (any sizes)");
    else if (has_root(form->kind))
        snprintf(more, sizeof more, " (%" PRIu64 " bytes, root %" PRIu32 ")",
                 form->count, form->root);
    else if (form->kind != LS_GROUP_BARRIER)
        snprintf(more, sizeof more, " (%" PRIu64 " bytes)", form->count);
    snprintf(text, GROUP_SAY_MAX, "%s%s%s", kinds[form->kind], name, more);
}

size_t group_call_in_bytes(const struct group_call *call, uint32_t rank,
                           uint32_t size)
{
    const struct group_form *form = &call->form;
    const size_t count = (size_t)form->count;
    switch (form->kind) {
    case LS_GROUP_BROADCAST:
        return rank == form->root ? count : 0;
    case LS_GROUP_ALL_GATHER:
    case LS_GROUP_GATHER:
    case LS_GROUP_SEND:
        return count;
    case LS_GROUP_ALL_REDUCE:
        return count * group_type_bytes(form->type);
    case LS_GROUP_REDUCE_SCATTER:
        return count * group_type_bytes(form->type) * size;
    case LS_GROUP_SCATTER:
        return rank == form->root ? count * size : 0;
    case LS_GROUP_BARRIER:
    case LS_GROUP_RECEIVE:
        break;
    }
    return 0;
}

size_t group_call_out_bytes(const struct group_call *call, uint32_t rank,
                            uint32_t size)
{
    const struct group_form *form = &call->form;
    const size_t count = (size_t)form->count;
    switch (form->kind) {
    case LS_GROUP_BROADCAST: /* the root has it */
        return rank == form->root ? 0 : count;
    case LS_GROUP_ALL_GATHER:
        return count * size;
    case LS_GROUP_GATHER:
        return rank == form->root ? count * size : 0;
    case LS_GROUP_ALL_REDUCE:
    case LS_GROUP_REDUCE_SCATTER:
        return count * group_type_bytes(form->type);
    case LS_GROUP_SCATTER:
    case LS_GROUP_RECEIVE:
        return count;
    case LS_GROUP_BARRIER:
    case LS_GROUP_SEND:
        break;
    }
    return 0;
}

int group_parts_make(struct ls_group_parts *out, const size_t *sizes, size_t n)
{
    size_t bytes = n * sizeof *out->items;
    for (size_t i = 0; i < n; i++) {
        if (sizes[i] > SIZE_MAX - bytes - 8)
            return ls_error(LS_ENOMEM, "group: no memory for its parts");
        bytes += (sizes[i] + 7) / 8 * 8;
    }
    unsigned char *memory = malloc(bytes == 0 ? 1 : bytes);
    if (memory == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for parts of %zu bytes",
                        bytes);
    out->n = n;
    out->items = (struct ls_group_part *)(void *)memory;
    memory += n * sizeof *out->items;
    for (size_t i = 0; i < n; i++) {
        out->items[i].data = sizes[i] == 0 ? NULL : memory;
        out->items[i].size = sizes[i];
        memory += (sizes[i] + 7) / 8 * 8;
    }
    return LS_OK;
}

int group_parts_told(struct ls_group_parts *out, const uint64_t *told, size_t n,
                     size_t *sizes)
{
    size_t whole = 0;
    for (size_t i = 0; i < n; i++) {
        if (told[i] > SIZE_MAX / 4 - whole)
            return ls_error(LS_EPROTO, "group: a size that cannot be");
        sizes[i] = (size_t)told[i];
        whole += sizes[i];
    }
    return group_parts_make(out, sizes, n);
}
