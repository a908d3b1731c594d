/* Collectives on memory of devices, in pieces, through the host: all on one
 * stream, in the order of the pieces: down 0; down 1; up 0, down 2; up 1, down
 * 3; … A piece is folded while its neighbours are copied. */
#include "lockstep/device_group.h"

/* Copies reach their full rate, and two of them take little of the time. */
#define PIECE_BYTES ((size_t)4 << 20)

struct reduction {
    ls_group *group;        /* borrow */
    ls_device_stack *stack; /* borrow */
    struct ls_group_operation
        operation;              /* of a piece: all but in, out, count */
    size_t offset, size, width; /* bytes; of a number */
    int wait_ms;                /* for each copy */
};

static size_t piece_size(const struct reduction *self, size_t at)
{
    const size_t left = self->size - at;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static int start(const struct reduction *self, size_t at, ls_collective **out)
{
    struct ls_group_operation operation = self->operation;
    unsigned char *host = ls_device_stack_host(self->stack);
    operation.in = operation.out = host + self->offset + at;
    operation.count = piece_size(self, at) / self->width;
    return ls_group_start(out, self->group, &operation);
}

static int download(const struct reduction *self, size_t at)
{
    return at < self->size
               ? ls_device_stack_download(self->stack, self->offset + at,
                                          piece_size(self, at))
               : LS_OK;
}

static int wait_for_copies(const struct reduction *self)
{
    return ls_device_stack_wait(
        self->stack, ls_deadline(ls_runtime_current(), self->wait_ms));
}

/* The piece is in host memory, and the one before has been folded. What the
 * group fails with is so in all ranks, and may be tried afresh; for a copy that
 * fails here nobody is to wait. */
static int turn(const struct reduction *self, size_t at)
{
    struct ls_failure folded = {.status = LS_OK};
    ls_collective *folding = NULL;
    int status = start(self, at, &folding);
    if (status == LS_EINVAL) /* what the caller gave: nothing was begun */
        return status;
    if (status == LS_OK && at > 0)
        status = ls_device_stack_upload(
            self->stack, self->offset + at - PIECE_BYTES, PIECE_BYTES);
    if (status == LS_OK)
        status = download(self, at + PIECE_BYTES);
    if (status == LS_OK) {
        ls_failure_keep(&folded, ls_collective_wait(folding, LS_WAIT_DEFAULT));
        status = wait_for_copies(self);
    }
    if (status != LS_OK)
        ls_group_leave(self->group, status);
    ls_collective_destroy(&folding);
    return status == LS_OK ? ls_failure_return(&folded) : status;
}

static int run(const struct reduction *self)
{
    if (self->size == 0)
        return ls_group_do(self->group, &self->operation);
    int status = download(self, 0);
    if (status == LS_OK)
        status = wait_for_copies(self);
    if (status != LS_OK)
        ls_group_leave(self->group, status);
    size_t at = 0;
    for (; at < self->size && status == LS_OK; at += PIECE_BYTES)
        status = turn(self, at);
    if (status != LS_OK)
        return status;
    at -= PIECE_BYTES; /* the last one */
    status = ls_device_stack_upload(self->stack, self->offset + at,
                                    piece_size(self, at));
    return status == LS_OK ? wait_for_copies(self) : status;
}

static const size_t widths[] = {[LS_GROUP_F32] = 4,
                                [LS_GROUP_F64] = 8,
                                [LS_GROUP_I32] = 4,
                                [LS_GROUP_I64] = 8};

int ls_group_all_reduce_stack(ls_group *group, const char *name,
                              ls_device_stack *stack, size_t offset,
                              size_t count, enum ls_group_type type,
                              enum ls_group_fold fold, int wait_ms)
{
    const size_t capacity = ls_device_stack_capacity(stack);
    if ((size_t)type >= sizeof widths / sizeof *widths)
        return ls_error(LS_EINVAL, "all_reduce: there is no type %d",
                        (int)type);
    const size_t width = widths[type];
    if (offset % width != 0 || offset > capacity ||
        count > (capacity - offset) / width)
        return ls_error(LS_EINVAL,
                        "all_reduce: %zu numbers of %zu bytes at %zu, in a "
                        "stack of %zu",
                        count, width, offset, capacity);
    const struct reduction self = {.group = group,
                                   .stack = stack,
                                   .operation = {.kind = LS_GROUP_ALL_REDUCE,
                                                 .name = name,
                                                 .type = type,
                                                 .fold = fold,
                                                 .timeout_ms = wait_ms == 0 ? 1
                                                               : wait_ms < 0
                                                                   ? 0
                                                                   : wait_ms},
                                   .offset = offset,
                                   .size = count * width,
                                   .width = width,
                                   .wait_ms = wait_ms};
    return run(&self);
}
