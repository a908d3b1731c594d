#include "plan.h"

#include <stdlib.h>

size_t plan_brings(const struct plan_shape *shape, uint32_t rank)
{
    return shape->sizes != NULL ? shape->sizes[rank]
                                : (size_t)shape->form.count;
}

size_t plan_lies(const struct plan_shape *shape, uint32_t rank)
{
    return shape->ats != NULL ? shape->ats[rank]
                              : rank * (size_t)shape->form.count;
}

static const struct plan_move nothing = {.after = -1};

/* Room for one more; never fails once plan_make() has made room. */
static struct plan_move *add(struct plan *plan, enum plan_what what,
                             uint32_t peer, enum plan_buffer buffer, size_t at,
                             size_t size)
{
    struct plan_move *move = &plan->moves[plan->n++];
    *move = nothing;
    move->what = what;
    move->peer = peer;
    move->buffer = buffer;
    move->at = at;
    move->size = size;
    return move;
}

static int32_t last(const struct plan *plan)
{
    return (int32_t)plan->n - 1;
}

/* Whether any byte is to move. An empty move has nothing to wait for. */
static void add_some(struct plan *plan, enum plan_what what, uint32_t peer,
                     enum plan_buffer buffer, size_t at, size_t size)
{
    if (size > 0)
        add(plan, what, peer, buffer, at, size);
}

/* The others, beginning with the next: so that not all send to one at once. */
static uint32_t other(const struct plan_shape *shape, uint32_t i)
{
    return (shape->rank + 1 + i) % shape->n;
}

/* --- gathers ------------------------------------------------------------ */

/* Its own, where it lies, unless it does already. */
static void copy_own(struct plan *plan, const struct plan_shape *shape)
{
    add_some(plan, PLAN_COPY, shape->rank, PLAN_OUT,
             plan_lies(shape, shape->rank), plan_brings(shape, shape->rank));
}

static void plan_all_gather(struct plan *plan, const struct plan_shape *shape)
{
    copy_own(plan, shape);
    for (uint32_t i = 0; i + 1 < shape->n; i++) {
        const uint32_t peer = other(shape, i);
        add_some(plan, PLAN_SEND, peer, PLAN_IN, 0,
                 plan_brings(shape, shape->rank));
        add_some(plan, PLAN_TAKE, peer, PLAN_OUT, plan_lies(shape, peer),
                 plan_brings(shape, peer));
    }
}

static void plan_gather(struct plan *plan, const struct plan_shape *shape)
{
    const uint32_t root = shape->form.root;
    if (shape->rank != root) {
        add_some(plan, PLAN_SEND, root, PLAN_IN, 0,
                 plan_brings(shape, shape->rank));
        return;
    }
    copy_own(plan, shape);
    for (uint32_t i = 0; i + 1 < shape->n; i++)
        add_some(plan, PLAN_TAKE, other(shape, i), PLAN_OUT,
                 plan_lies(shape, other(shape, i)),
                 plan_brings(shape, other(shape, i)));
}

static void plan_scatter(struct plan *plan, const struct plan_shape *shape)
{
    const uint32_t root = shape->form.root;
    const size_t size = (size_t)shape->form.count;
    if (size == 0)
        return;
    if (shape->rank != root) {
        add(plan, PLAN_TAKE, root, PLAN_OUT, 0, size);
        return;
    }
    add(plan, PLAN_COPY, root, PLAN_OUT, 0, size)->own = root * size;
    for (uint32_t i = 0; i + 1 < shape->n; i++)
        add(plan, PLAN_SEND, other(shape, i), PLAN_IN, other(shape, i) * size,
            size);
}

/* --- broadcasts --------------------------------------------------------- */

/* Where the result of a broadcast lies. */
static size_t base(const struct plan_shape *shape)
{
    return shape->ats != NULL ? shape->ats[shape->form.root] : 0;
}

/* Ranks are numbered from the root; below number v are 2v+1 and 2v+2. */
static void plan_tree(struct plan *plan, const struct plan_shape *shape,
                      size_t size)
{
    const uint32_t n = shape->n, root = shape->form.root;
    const uint32_t number = (shape->rank + n - root) % n;
    int32_t after = -1;
    if (size == 0)
        return;
    if (number > 0) {
        add(plan, PLAN_TAKE, ((number - 1) / 2 + root) % n, PLAN_OUT,
            base(shape), size);
        after = last(plan);
    }
    for (uint32_t below = 2 * number + 1; below <= 2 * number + 2 && below < n;
         below++)
        add(plan, PLAN_SEND, (below + root) % n,
            number > 0 ? PLAN_OUT : PLAN_IN, number > 0 ? base(shape) : 0, size)
            ->after = after;
}

/* Slice i of a number of units: [*first, *end). */
static void slice(size_t units, uint32_t n, uint32_t i, size_t *first,
                  size_t *end)
{
    const size_t each = units / n, more = units % n;
    *first = i * each + (i < more ? i : more);
    *end = *first + each + (i < more ? 1 : 0);
}

/* The root sends each rank a slice, and each its own to all others. */
static void plan_broadcast_direct(struct plan *plan,
                                  const struct plan_shape *shape, size_t size)
{
    const uint32_t root = shape->form.root;
    size_t first, end, own, own_end;
    slice(size, shape->n, shape->rank, &own, &own_end);
    if (shape->rank == root) {
        for (uint32_t i = 0; i + 1 < shape->n; i++) {
            const uint32_t peer = other(shape, i);
            slice(size, shape->n, peer, &first, &end);
            add_some(plan, PLAN_SEND, peer, PLAN_IN, first, end - first);
            add(plan, PLAN_SEND, peer, PLAN_IN, own, own_end - own)->lane = 1;
        }
        return;
    }
    const size_t at = base(shape);
    add(plan, PLAN_TAKE, root, PLAN_OUT, at + own, own_end - own);
    const int32_t mine = last(plan);
    for (uint32_t i = 0; i + 1 < shape->n; i++) {
        const uint32_t peer = other(shape, i);
        slice(size, shape->n, peer, &first, &end);
        add(plan, PLAN_TAKE, peer, PLAN_OUT, at + first, end - first)->lane = 1;
        if (peer == root)
            continue;
        struct plan_move *move =
            add(plan, PLAN_SEND, peer, PLAN_OUT, at + own, own_end - own);
        move->lane = 1;
        move->after = mine;
    }
}

static void plan_broadcast(struct plan *plan, const struct plan_shape *shape)
{
    const size_t size = plan_brings(shape, shape->form.root);
    if (shape->n > 2 && shape->n <= PLAN_DIRECT_MAX &&
        size / shape->n >= PLAN_SLICE_MIN)
        plan_broadcast_direct(plan, shape, size);
    else
        plan_tree(plan, shape, size);
}

/* --- folds -------------------------------------------------------------- */

/* Take a slice of this rank's own from all others, in their order, and fold it
 * into `at` of the result. */
static void fold_slice(struct plan *plan, const struct plan_shape *shape,
                       size_t own, size_t size, size_t at)
{
    size_t scratch = 0;
    const int32_t first = last(plan) + 1;
    for (uint32_t peer = 0; peer < shape->n; peer++) {
        if (peer == shape->rank)
            continue;
        add(plan, PLAN_TAKE, peer, PLAN_SCRATCH, scratch, size);
        scratch += size;
    }
    plan->scratch_bytes = scratch;
    struct plan_move *move =
        add(plan, PLAN_FOLD, shape->rank, PLAN_OUT, at, size);
    move->own = own;
    move->after = first;
    move->ends = true;
}

static void plan_reduce_scatter(struct plan *plan,
                                const struct plan_shape *shape)
{
    const size_t size =
        (size_t)shape->form.count * group_type_bytes(shape->form.type);
    if (size == 0)
        return;
    for (uint32_t i = 0; i + 1 < shape->n; i++)
        add(plan, PLAN_SEND, other(shape, i), PLAN_IN, other(shape, i) * size,
            size);
    fold_slice(plan, shape, shape->rank * size, size, 0);
}

static void plan_all_reduce_direct(struct plan *plan,
                                   const struct plan_shape *shape)
{
    const size_t unit = group_type_bytes(shape->form.type);
    const size_t count = (size_t)shape->form.count;
    size_t first, end, own, own_end;
    slice(count, shape->n, shape->rank, &own, &own_end);
    for (uint32_t i = 0; i + 1 < shape->n; i++) {
        slice(count, shape->n, other(shape, i), &first, &end);
        add_some(plan, PLAN_SEND, other(shape, i), PLAN_IN, first * unit,
                 (end - first) * unit);
    }
    int32_t folded = -1;
    if (own_end > own) {
        fold_slice(plan, shape, own * unit, (own_end - own) * unit, own * unit);
        folded = last(plan);
    }
    for (uint32_t i = 0; i + 1 < shape->n; i++) {
        const uint32_t peer = other(shape, i);
        if (own_end > own) {
            struct plan_move *move = add(plan, PLAN_SEND, peer, PLAN_OUT,
                                         own * unit, (own_end - own) * unit);
            move->lane = 1;
            move->after = folded;
        }
        slice(count, shape->n, peer, &first, &end);
        if (end > first)
            add(plan, PLAN_TAKE, peer, PLAN_OUT, first * unit,
                (end - first) * unit)
                ->lane = 1;
    }
}

/* Lane 0 carries partial folds from rank 0 up, lane 1 the result from the last
 * rank on around. */
static void plan_ring(struct plan *plan, const struct plan_shape *shape)
{
    const uint32_t n = shape->n, rank = shape->rank;
    const uint32_t next = (rank + 1) % n, before = (rank + n - 1) % n;
    const size_t size =
        (size_t)shape->form.count * group_type_bytes(shape->form.type);
    int32_t result = -1;
    if (rank > 0) {
        struct plan_move *move =
            add(plan, PLAN_FOLD_IN, before, PLAN_OUT, 0, size);
        move->ends = rank == n - 1;
        result = last(plan);
    }
    if (rank < n - 1) {
        struct plan_move *move =
            add(plan, PLAN_SEND, next, rank == 0 ? PLAN_IN : PLAN_OUT, 0, size);
        move->after = result;
        add(plan, PLAN_TAKE, before, PLAN_OUT, 0, size)->lane = 1;
        result = last(plan);
    }
    if (next != n - 1) {
        struct plan_move *move = add(plan, PLAN_SEND, next, PLAN_OUT, 0, size);
        move->lane = 1;
        move->after = result;
    }
}

static void plan_all_reduce(struct plan *plan, const struct plan_shape *shape)
{
    if (shape->form.count == 0)
        return;
    if (shape->n == 1)
        fold_slice(
            plan, shape, 0,
            (size_t)shape->form.count * group_type_bytes(shape->form.type), 0);
    else if (shape->n <= PLAN_DIRECT_MAX)
        plan_all_reduce_direct(plan, shape);
    else
        plan_ring(plan, shape);
}

/* --- all ---------------------------------------------------------------- */

static void plan_pair(struct plan *plan, const struct plan_shape *shape)
{
    const bool sends = shape->form.kind == LS_GROUP_SEND;
    add(plan, sends ? PLAN_SEND : PLAN_TAKE, shape->form.root,
        sends ? PLAN_IN : PLAN_OUT, 0, (size_t)shape->form.count);
}

int plan_make(struct plan *out, const struct plan_shape *shape)
{
    /* Three moves for each other rank at most, or so, and a few. */
    *out = (struct plan){.capacity = 4 * (size_t)shape->n + 4};
    out->moves = calloc(out->capacity, sizeof *out->moves);
    if (out->moves == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for a plan of %u ranks",
                        (unsigned)shape->n);
    switch (shape->form.kind) {
    case LS_GROUP_BROADCAST:
        plan_broadcast(out, shape);
        break;
    case LS_GROUP_ALL_GATHER:
        plan_all_gather(out, shape);
        break;
    case LS_GROUP_ALL_REDUCE:
        plan_all_reduce(out, shape);
        break;
    case LS_GROUP_REDUCE_SCATTER:
        plan_reduce_scatter(out, shape);
        break;
    case LS_GROUP_GATHER:
        plan_gather(out, shape);
        break;
    case LS_GROUP_SCATTER:
        plan_scatter(out, shape);
        break;
    case LS_GROUP_SEND:
    case LS_GROUP_RECEIVE:
        plan_pair(out, shape);
        break;
    case LS_GROUP_BARRIER:
        break;
    }
    return LS_OK;
}

void plan_fini(struct plan *plan)
{
    free(plan->moves);
    *plan = (struct plan){.n = 0};
}
