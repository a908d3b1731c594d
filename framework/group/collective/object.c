/* Values of any shape between the ranks of a group: as bytes of any size. */

#include "lockstep/group.h"

static void destroy_all(ls_document **out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ls_document_destroy(&out[i]);
}

/* What fails in one rank fails in all: all read the same bytes. */
static int read_parts(const struct ls_group_parts *parts, uint32_t first,
                      ls_document **out, const struct ls_codec_limits *limits)
{
    int status = LS_OK;
    for (size_t i = 0; i < parts->n && status == LS_OK; i++) {
        const struct ls_group_part *part = &parts->items[i];
        const unsigned rank = first + (unsigned)i;
        if (part->size == 0)
            status = ls_error(LS_EPROTO, "group: rank %u has brought no value",
                              rank);
        else if ((status = ls_document_read(&out[i], part->data, part->size,
                                            limits)) != LS_OK)
            status = ls_error_at(status, "group: the value of rank %u", rank);
    }
    if (status != LS_OK)
        destroy_all(out, parts->n);
    return status;
}

/* A rank whose value is none takes part without: all hear of it. */
static int bring(ls_writer *value, const void **data, size_t *size)
{
    *data = NULL;
    *size = 0;
    if (value == NULL)
        return ls_error(LS_EINVAL, "group: there is no value to bring");
    return ls_writer_bytes(value, data, size);
}

static int exchange(ls_group *group, struct ls_group_operation *operation,
                    ls_writer *value, ls_document **out,
                    const struct ls_codec_limits *limits, int wait_ms)
{
    const bool brings = operation->kind == LS_GROUP_ALL_GATHER ||
                        operation->root == ls_group_rank(group);
    struct ls_group_parts parts = {.n = 0};
    struct ls_failure fault = {.status = LS_OK};
    if (brings)
        ls_failure_keep(&fault,
                        bring(value, &operation->in, &operation->count));
    operation->parts = &parts;
    operation->timeout_ms = wait_ms == 0 ? 1 : wait_ms < 0 ? 0 : wait_ms;
    int status = ls_group_do(group, operation);
    if (status == LS_OK && fault.status != LS_OK)
        status = ls_failure_return(&fault);
    else if (status == LS_OK)
        status = read_parts(
            &parts, operation->kind == LS_GROUP_BROADCAST ? operation->root : 0,
            out, limits);
    ls_group_parts_free(&parts);
    operation->parts = NULL;
    return status;
}

int ls_group_broadcast_object(ls_group *group, ls_writer *value, uint32_t root,
                              ls_document **out,
                              const struct ls_codec_limits *limits, int wait_ms)
{
    struct ls_group_operation operation = {
        .kind = LS_GROUP_BROADCAST, .name = "object", .root = root};
    *out = NULL;
    return exchange(group, &operation, value, out, limits, wait_ms);
}

int ls_group_all_gather_object(ls_group *group, ls_writer *value,
                               ls_document **out,
                               const struct ls_codec_limits *limits,
                               int wait_ms)
{
    struct ls_group_operation operation = {.kind = LS_GROUP_ALL_GATHER,
                                           .name = "object"};
    const uint32_t size = ls_group_size(group);
    for (uint32_t i = 0; i < size; i++)
        out[i] = NULL;
    return exchange(group, &operation, value, out, limits, wait_ms);
}
