#include "lockstep/minibatch_ring.h"

#include <stdint.h>
#include <stdlib.h>

struct slot {
    void *item;           /* borrow; NULL: the slot is empty */
    unsigned passes_left; /* of the item */
};

struct ls_minibatch_ring {
    size_t size;
    size_t turn; /* the slot whose turn it is */
    size_t held;
    unsigned passes;
    unsigned next_passes; /* what the next item gets */
    struct slot slots[];
};

int ls_minibatch_ring_create(ls_minibatch_ring **out,
                             const struct ls_minibatch_ring_options *options)
{
    *out = NULL;
    if (options->size == 0)
        return ls_error(LS_EINVAL, "minibatch ring: size must be at least 1");
    if (options->passes == 0)
        return ls_error(LS_EINVAL, "minibatch ring: passes must be at least 1");
    if (options->first_passes > options->passes)
        return ls_error(LS_EINVAL,
                        "minibatch ring: first_passes must be at most passes, "
                        "and %u is over %u",
                        options->first_passes, options->passes);
    ls_minibatch_ring *ring =
        options->size > (SIZE_MAX - sizeof *ring) / sizeof(struct slot)
            ? NULL
            : calloc(1, sizeof *ring + options->size * sizeof(struct slot));
    if (ring == NULL)
        return ls_error(LS_ENOMEM, "no memory for a minibatch ring of %zu",
                        options->size);
    ring->size = options->size;
    ring->passes = options->passes;
    ring->next_passes =
        options->first_passes > 0 ? options->first_passes : options->passes;
    *out = ring;
    return LS_OK;
}

bool ls_minibatch_ring_wants_item(const ls_minibatch_ring *ring)
{
    return ring->slots[ring->turn].item == NULL;
}

size_t ls_minibatch_ring_held(const ls_minibatch_ring *ring)
{
    return ring->held;
}

static void take_item(ls_minibatch_ring *ring, struct slot *slot, void *item)
{
    *slot = (struct slot){.item = item, .passes_left = ring->next_passes};
    if (ring->next_passes < ring->passes)
        ring->next_passes++;
    ring->held++;
}

static size_t slot_after(const ls_minibatch_ring *ring, size_t slot)
{
    return slot + 1 == ring->size ? 0 : slot + 1;
}

int ls_minibatch_ring_next(ls_minibatch_ring *ring, void *item,
                           struct ls_minibatch_turn *out)
{
    const bool wants = ls_minibatch_ring_wants_item(ring);
    if (item != NULL && !wants)
        return ls_error(LS_ESTATE,
                        "minibatch ring: slot %zu has an item with %u passes "
                        "left",
                        ring->turn, ring->slots[ring->turn].passes_left);
    if (item == NULL && ring->held == 0)
        return ls_error(LS_EAGAIN, "minibatch ring: it holds nothing");
    if (item != NULL)
        take_item(ring, &ring->slots[ring->turn], item);
    while (ls_minibatch_ring_wants_item(ring)) /* some slot has one */
        ring->turn = slot_after(ring, ring->turn);

    struct slot *const slot = &ring->slots[ring->turn];
    slot->passes_left--;
    *out = (struct ls_minibatch_turn){.item = slot->item,
                                      .released = slot->passes_left == 0};
    if (out->released) {
        slot->item = NULL;
        ring->held--;
    }
    ring->turn = slot_after(ring, ring->turn);
    return LS_OK;
}

void ls_minibatch_ring_destroy(ls_minibatch_ring **ring)
{
    if (ring == NULL)
        return;
    free(*ring);
    *ring = NULL;
}
