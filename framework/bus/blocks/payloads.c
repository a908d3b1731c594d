/* Payloads that are written where they are read. Design notes:
 *
 * - What its owner holds is in a slot that nobody is told. Each time that it is
 *   sent, its bytes are lent in a slot of their own. So a reader has nothing
 *   twice, and whoever frees it need not know whether it is read.
 * - It is freed by any thread, also by one of the network that has locks, and
 *   when the node is gone. So that only sets a flag, which the owner finds when
 *   it looks for room.
 * - What lies before the bytes is read by their owner alone. */
#include "lockstep/payload.h"

#include <stdlib.h>

#include "blocks_inside.h"
#include "transport.h"

struct head {
    _Alignas(64) struct blocks *blocks; /* NULL: it is ordinary memory */
    unsigned slot;
    unsigned forks; /* of its node */
    atomic_uint users;
};

/* Between nodes of one process a pointer changes hands. Lock held. */
static bool has_other_process(const ls_node *node)
{
    for (unsigned i = 0; node->blocks != NULL && i < BLOCK_READERS; i++) {
        const struct block_pair *const pair = node->blocks->pairs[i];
        if (pair != NULL && pair->lends && !pair->here)
            return true;
    }
    return false;
}

/* NULL: it is to be ordinary memory. */
static struct head *find_block(ls_node *node, size_t size)
{
    struct block_draft draft;
    if (node->transport == NULL || node_is_stopping(node))
        return NULL;
    transport_lock(node->transport);
    const bool there = has_other_process(node) &&
                       blocks_draft(node, BLOCK_FOR_OWNER, NULL, size, &draft);
    if (there)
        (void)atomic_fetch_add(&node->blocks->users, 1);
    transport_unlock(node->transport);
    if (!there)
        return NULL;
    struct blocks *const blocks = node->blocks;
    if (!blocks_reserve(node, &draft)) {
        block_pool_let_go(&blocks->pool, draft.slot);
        blocks_drop(blocks);
        return NULL;
    }
    struct head *const head = draft.data;
    *head = (struct head){.blocks = blocks, .slot = draft.slot};
    return head;
}

static struct head *allocate(size_t size)
{
    const size_t line = sizeof(struct head);
    struct head *const head =
        aligned_alloc(line, (size + line - 1) / line * line);
    if (head != NULL)
        *head = (struct head){.blocks = NULL};
    return head;
}

int ls_payload_alloc(void **out, ls_node *node, size_t size)
{
    struct head *head = NULL;
    *out = NULL;
    const int status = node_check(node);
    if (status != LS_OK)
        return status;
    if (size >= BLOCK_LEAST_BYTES && size <= node->options.shared_bytes)
        head = find_block(node, sizeof *head + size);
    if (head == NULL && size <= PTRDIFF_MAX / 2)
        head = allocate(sizeof *head + size);
    if (head == NULL)
        return ls_error(LS_ENOMEM, "no memory for a payload of %zu bytes",
                        size);
    head->forks = node->forks;
    atomic_init(&head->users, 1);
    *out = head + 1;
    return LS_OK;
}

void *ls_payload_share(void *payload)
{
    if (payload == NULL)
        return NULL;
    struct head *const head = (struct head *)payload - 1;
    if (!ls_forked_since(head->forks))
        (void)atomic_fetch_add(&head->users, 1);
    return payload;
}

void ls_payload_free(void *payload, void *hint)
{
    if (payload == NULL)
        return;
    struct head *const head =
        (struct head *)(hint != NULL ? hint : payload) - 1;
    if (ls_forked_since(head->forks) || atomic_fetch_sub(&head->users, 1) != 1)
        return;
    struct blocks *const blocks = head->blocks;
    if (blocks == NULL) {
        free(head);
        return;
    }
    block_pool_let_go(&blocks->pool, head->slot);
    blocks_drop(blocks);
}
