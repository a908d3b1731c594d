/* Payloads through shared memory: lent by their sender, read in place by their
 * receivers. Design notes:
 *
 * - A handle goes to each reader by itself, in its inbox: on the event's topic
 *   it would also reach nodes that the owner does not count on, and that would
 *   read a block which is used anew.
 * - Whether a reader is done is never heard, but looked up in its row, and
 *   believed as far as it harms only itself. The bus's verdict on a member
 *   frees nothing: one that was declared lost may be reading, and will say so
 *   in its row when it is done. One whose process is gone says nothing, and its
 *   memory has no owner any more, which the kernel tells.
 * - Nobody waits for a block.
 * - A body of a call may be read for as long as its receiver likes, also when
 *   its node is no more: a pair, and the memory in which the node says what it
 *   reads, stay for as long. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks_inside.h"
#include "fixed_form.h"
#include "transport.h"

/* ---- pairs ------------------------------------------------------------- */

static bool may_share(const ls_node *node, const struct peer *peer)
{
    return node->options.shared_bytes != 0 && !node_is_stopping(node) &&
           node->options.topology != LS_TOPOLOGY_STAR &&
           peer->member.via == NULL;
}

static struct blocks *get(ls_node *node)
{
    if (node->blocks != NULL)
        return node->blocks;
    struct blocks *made = calloc(1, sizeof *made);
    if (made == NULL || ls_cond_init(&made->work, node->runtime) != LS_OK) {
        free(made);
        return NULL;
    }
    if (ls_memory_touched(node->runtime))
        made->touched = node->runtime;
    patience_begin_for_more(&made->patience, node->runtime);
    block_pool_init(&made->pool, made->touched, blocks_begin(),
                    blocks_begin() + node->options.shared_bytes);
    made->reserved[0] = made->pool.begin;
    made->reserved[1] = made->pool.middle;
    atomic_init(&made->users, 1);
    node->blocks = made;
    return made;
}

struct block_pair *blocks_pair(ls_node *node, struct peer *peer)
{
    struct blocks *blocks;
    if (peer->blocks != NULL || !may_share(node, peer) ||
        (blocks = get(node)) == NULL)
        return peer->blocks;
    blocks_reap(node);
    unsigned place = 0;
    while (place < BLOCK_READERS && blocks->pairs[place] != NULL)
        place++;
    struct block_pair *pair =
        place == BLOCK_READERS ? NULL : calloc(1, sizeof *pair);
    if (pair == NULL)
        return NULL;
    pair->home = blocks;
    atomic_init(&pair->users, 1);
    (void)atomic_fetch_add(&blocks->users, 1);
    pair->place = place;
    pair->forks = node->forks;
    pair->id = peer->member.id;
    pair->life = peer->member.incarnation;
    pair->touched = blocks->touched;
    pair->here =
        pair->touched == NULL && transport_in_process(peer->member.endpoint);
    for (unsigned i = 0; i < BLOCK_SLOTS; i++)
        pair->holds[i].pair = pair;
    blocks->pairs[place] = pair;
    peer->blocks = pair;
    return pair;
}

void blocks_part(ls_node *node, struct peer *peer)
{
    if (peer->blocks == NULL)
        return;
    peer->blocks->over = true;
    if (peer->blocks->lends) {
        struct block_words *const own = ls_memory_own(node->blocks->memory);
        const unsigned place = peer->blocks->place;
        line_store(peer->blocks->touched, &own->lines[place].heeds, 0);
        block_store(peer->blocks->touched, &own->rings[place].session, 0);
        (void)atomic_fetch_sub(&node->n_near, 1);
    }
    if (peer->blocks->row != NULL)
        block_row_end(peer->blocks->touched, peer->blocks->row);
    peer->blocks->lends = false;
    peer->blocks = NULL;
    blocks_tell_news(node);
    blocks_reap(node);
}

void blocks_tell_news(ls_node *node)
{
    (void)atomic_fetch_add(&node->blocks->news, 1);
    ls_word_wake(node->runtime, &node->blocks->news);
}

void blocks_refuse(ls_node *node, const struct block_pair *pair)
{
    char who[32];
    (void)snprintf(who, sizeof who, "node %" PRIu32, pair->id);
    refusals_note(&node->refusals, LS_REFUSAL_FORM, who, 1,
                  ls_now(node->runtime));
}

void blocks_drop(struct blocks *blocks)
{
    if (atomic_fetch_sub(&blocks->users, 1) != 1)
        return;
    ls_memory_destroy(&blocks->memory);
    free(blocks);
}

/* The last one reads nothing of it any more. */
static void drop_pair(struct block_pair *pair)
{
    struct blocks *const blocks = pair->home;
    if (atomic_fetch_sub(&pair->users, 1) != 1)
        return;
    if (pair->row != NULL)
        block_store(pair->touched, &pair->row->session, 0);
    if (pair->theirs != NULL)
        blocks_drop(pair->theirs);
    else
        ls_memory_destroy(&pair->memory);
    free(pair);
    blocks_drop(blocks);
}

static void forget_pair(struct blocks *blocks, struct block_pair *pair)
{
    blocks->pairs[pair->place] = NULL;
    block_pool_remove(&blocks->pool, pair->place);
    drop_pair(pair);
}

/* What this node still reads of a pair that is over it goes on to read; and
 * what the other still reads is lent until it says that it is done, or is no
 * more. */
static void reap(struct blocks *blocks, struct block_pair *pair)
{
    if (!pair->over || pair->busy || pair->listened != 0 ||
        atomic_load(&pair->users) != 1)
        return;
    if (pair->row != NULL)
        block_store(blocks->touched, &pair->row->session, 0);
    pair->row = NULL;
    if (pair->memory == NULL || !block_pool_lends(&blocks->pool, pair->place) ||
        ls_memory_is_orphan(pair->memory))
        forget_pair(blocks, pair);
}

void blocks_reap_pairs(struct blocks *blocks)
{
    for (unsigned i = 0; i < BLOCK_READERS; i++)
        if (blocks->pairs[i] != NULL)
            reap(blocks, blocks->pairs[i]);
}

void blocks_reap(ls_node *node)
{
    block_pool_sweep(&node->blocks->pool);
    blocks_reap_pairs(node->blocks);
}

/* ---- lending ----------------------------------------------------------- */

bool blocks_is_pair(ls_node *node, struct peer *peer)
{
    struct block_pair *const pair = blocks_pair(node, peer);
    if (pair == NULL || pair->lends)
        return pair != NULL;
    if (!pair->wanted) {
        pair->wanted = true;
        blocks_meet(node);
    }
    return false;
}

bool blocks_reach(ls_node *node, struct peer *const *to, size_t n, size_t size)
{
    bool all = n != 0 && size >= BLOCK_LEAST_BYTES;
    for (size_t i = 0; i < n && size >= BLOCK_LEAST_BYTES; i++)
        all = !transport_in_process(to[i]->member.endpoint) &&
              blocks_is_pair(node, to[i]) && all;
    return all;
}

#define FULL_CHARGE (1u << 20)
/* What is shorter counts for more than it is, so that what is under way of it
 * stays in a core's cache: a sender that is faster than its reader has all of
 * the window under way. What is longer does not gain by that.
 * Half a window, at most: a payload longer than that has a window to itself, as
 * one in chunks has. */
static size_t charge_of(size_t size, uint64_t window)
{
    const size_t least = size < FULL_CHARGE / 4 ? 4 * size : FULL_CHARGE;
    const size_t charge = size > least ? size : least;
    return charge < window / 2 ? charge : (size_t)(window / 2);
}

size_t blocks_charge(const struct peer *peer, size_t size)
{
    const struct block_pair *const pair = peer->blocks;
    return charge_of(size, pair != NULL && pair->lends
                               ? pair->answer.window
                               : 2 * (uint64_t)WIRE_CHUNK_BYTES);
}

/* Whether it lies in memory that this node's program writes itself. Where it
 * does not, there is no such offset. */
static bool is_held(const struct blocks *blocks, const void *data, size_t size,
                    size_t *offset)
{
    *offset =
        (size_t)((uintptr_t)data - (uintptr_t)ls_memory_own(blocks->memory));
    return data != NULL && block_pool_holds(&blocks->pool, *offset, size);
}

bool blocks_draft(ls_node *node, enum block_use use, const void *given,
                  size_t size, struct block_draft *out)
{
    struct blocks *const blocks = node->blocks;
    struct block_pool *const pool = &blocks->pool;
    size_t offset;
    bool there = false;
    out->filled = is_held(blocks, given, size, &offset);
    for (int i = 0; i < 2 && !there; i++) {
        if (i != 0)
            blocks_reap(node); /* of those who have died it need not wait */
        there = out->filled
                    ? block_pool_take_part(pool, use, offset, size, &out->slot)
                    : block_pool_take(pool, use, size, &out->slot);
    }
    if (!there) {
        node->figures.stats.blocks_full++;
        return false;
    }
    out->use = use;
    out->offset = blocks->pool.blocks[out->slot].offset;
    out->data = (char *)ls_memory_own(blocks->memory) + out->offset;
    return true;
}

bool blocks_reserve(ls_node *node, const struct block_draft *draft)
{
    struct blocks *const blocks = node->blocks;
    size_t *const reserved =
        &blocks->reserved[draft->use == BLOCK_FOR_EVENT ? 0 : 1];
    transport_lock(node->transport);
    const size_t size = blocks->pool.blocks[draft->slot].size;
    const size_t end = draft->offset + size;
    const bool has_pages = end <= *reserved;
    transport_unlock(node->transport);
    if (has_pages)
        return true;
    const int status = ls_memory_reserve(blocks->memory, draft->offset, size);
    transport_lock(node->transport);
    if (status != LS_OK) /* the next one may find some */
        node->figures.stats.blocks_full++;
    else if (draft->offset <= *reserved && end > *reserved)
        *reserved = end;
    transport_unlock(node->transport);
    return status == LS_OK;
}

bool blocks_fill(ls_node *node, const struct block_draft *draft,
                 const void *data, size_t size)
{
    struct blocks *const blocks = node->blocks;
    if (draft->filled)
        return true;
    if (!blocks_reserve(node, draft))
        return false;
    if (blocks->touched == NULL || ls_memory_touch(blocks->touched))
        memcpy(draft->data, data, size);
    return true;
}

uint64_t blocks_lend(ls_node *node, const struct block_draft *draft,
                     struct peer *const *to, size_t n, bool sure)
{
    uint64_t readers = 0;
    for (size_t i = 0; i < n; i++)
        readers |= UINT64_C(1) << to[i]->blocks->place;
    const uint64_t number =
        block_pool_lend(&node->blocks->pool, draft->slot, readers, sure);
    for (size_t i = 0; i < n && !sure; i++)
        to[i]->blocks->last = number;
    node->figures.stats.blocks++;
    return number;
}

void blocks_give_up(ls_node *node, const struct block_draft *draft)
{
    block_pool_give_back(&node->blocks->pool, draft->slot);
}

void blocks_handle(const struct peer *to, const struct block_draft *draft,
                   uint64_t number, size_t size, uint8_t *out)
{
    uint8_t *at = out;
    *at++ = FORM_ARRAY | 5;
    at = fixed_write_u64(at, to->blocks->answer.session);
    at = fixed_write_u64(at, number);
    at = fixed_write_u64(at, draft->slot);
    at = fixed_write_u64(at, draft->offset);
    (void)fixed_write_u64(at, size);
}

/* ---- bodies ------------------------------------------------------------ */

/* One that lies in a block, until it is lent or given up. */
struct deposit {
    ls_node *node;
    struct block_draft draft;
    bool lent;
};

static void give_up_deposit(void *data, void *hint)
{
    struct deposit *const deposit = hint;
    ls_node *const node = deposit->node;
    (void)data;
    transport_lock(node->transport);
    if (!deposit->lent)
        blocks_give_up(node, &deposit->draft);
    transport_unlock(node->transport);
    free(deposit);
}

static bool draft_body(ls_node *node, uint32_t to, const void *given,
                       size_t size, struct block_draft *out)
{
    transport_lock(node->transport);
    struct peer *peer = world_find(node, to);
    const bool there = peer != NULL && peer->member.state == LS_MEMBER_READY &&
                       blocks_reach(node, &peer, 1, size) &&
                       blocks_draft(node, BLOCK_FOR_BODY, given, size, out);
    transport_unlock(node->transport);
    return there;
}

struct payload *blocks_payload(ls_node *node, uint32_t to, const void *data,
                               size_t size, bool given)
{
    struct payload *payload = NULL;
    struct block_draft draft;
    if (size < BLOCK_LEAST_BYTES || node->transport == NULL ||
        node_is_stopping(node) ||
        !draft_body(node, to, given ? data : NULL, size, &draft))
        return NULL;
    struct deposit *const deposit = malloc(sizeof *deposit);
    if (deposit == NULL || !blocks_fill(node, &draft, data, size)) {
        free(deposit);
        transport_lock(node->transport);
        blocks_give_up(node, &draft);
        transport_unlock(node->transport);
        return NULL;
    }
    *deposit = (struct deposit){.node = node, .draft = draft};
    return payload_create(&payload, draft.data, size, give_up_deposit,
                          deposit) == LS_OK
               ? payload
               : NULL;
}

bool blocks_hold(const struct payload *payload)
{
    return payload_hint(payload, give_up_deposit) != NULL;
}

bool blocks_lend_payload(ls_node *node, const struct payload *payload,
                         struct peer *to, uint8_t *handle)
{
    struct deposit *const deposit = payload_hint(payload, give_up_deposit);
    if (to->blocks == NULL || !to->blocks->lends)
        return false;
    const uint64_t number = blocks_lend(node, &deposit->draft, &to, 1, true);
    blocks_handle(to, &deposit->draft, number, payload_size(payload), handle);
    deposit->lent = true;
    return true;
}

void blocks_recall_payload(ls_node *node, const struct payload *payload)
{
    struct deposit *const deposit = payload_hint(payload, give_up_deposit);
    block_pool_recall(&node->blocks->pool, deposit->draft.slot);
    node->figures.stats.blocks--;
    deposit->lent = false;
}

/* ---- reading ----------------------------------------------------------- */

struct handle {
    uint64_t session, number, slot, offset, size;
};

static int no_handle(const struct peer *from)
{
    return ls_error(LS_EPROTO, "node %u names a block that is none",
                    from->member.id);
}

static bool read_handle(const uint8_t *data, size_t size, struct handle *out)
{
    if (data == NULL || size != BLOCK_HANDLE_BYTES)
        return false;
    struct fixed_reader in = {.at = data, .end = data + size};
    fixed_expect(&in, FORM_ARRAY | 5);
    out->session = fixed_read_u64(&in);
    out->number = fixed_read_u64(&in);
    out->slot = fixed_read_u64(&in);
    out->offset = fixed_read_u64(&in);
    out->size = fixed_read_u64(&in);
    return !in.bad;
}

size_t blocks_weight(const ls_node *node, const uint8_t *data, size_t size)
{
    struct handle handle;
    return read_handle(data, size, &handle)
               ? charge_of((size_t)handle.size, node->options.window_bytes)
               : size;
}

/* Nothing is read outside of what was mapped, and no row is written beyond its
 * end. The lock is held. */
static int check(const struct block_pair *pair, const struct peer *from,
                 const struct handle *handle, bool sure, size_t most)
{
    if (pair == NULL || pair->row == NULL || pair->session != handle->session ||
        (!sure && !block_is_new(pair->row, handle->number)))
        return ls_error(LS_ENOENT,
                        "a block of node %u comes after what it is known by",
                        from->member.id);
    const size_t all = ls_memory_size(pair->memory);
    if (handle->slot >= BLOCK_SLOTS || handle->number > UINT64_MAX / 2 ||
        handle->number == 0 || handle->size == 0 ||
        handle->offset < blocks_begin() || handle->offset > all ||
        handle->size > all - handle->offset ||
        atomic_load(&pair->holds[handle->slot].number) != 0)
        return no_handle(from);
    if (handle->size > most)
        return ls_error(LS_ELIMIT, "a payload of %llu bytes, more than %zu",
                        (unsigned long long)handle->size, most);
    return LS_OK;
}

static void hold(ls_runtime *touched, struct block_pair *pair,
                 const struct handle *handle, bool sure)
{
    const unsigned slot = (unsigned)handle->slot;
    if (sure)
        block_row_claim(touched, pair->row, slot, handle->number);
    else
        block_row_take(touched, pair->row, slot, handle->number);
    atomic_store(&pair->holds[slot].number, handle->number);
    atomic_fetch_add(&pair->users, 1);
}

int blocks_take(ls_node *node, const struct peer *from, const uint8_t *data,
                size_t size, bool sure, size_t most, struct block_loan *out)
{
    struct handle handle;
    if (!read_handle(data, size, &handle))
        return no_handle(from);
    transport_lock(node->transport);
    struct block_pair *const pair = from->blocks;
    const int status = check(pair, from, &handle, sure, most);
    if (status == LS_OK) {
        hold(node->blocks->touched, pair, &handle, sure);
        *out = (struct block_loan){
            .data =
                (const uint8_t *)ls_memory_data(pair->memory) + handle.offset,
            .size = (size_t)handle.size,
            .charge =
                charge_of((size_t)handle.size, node->options.window_bytes),
            .hold = &pair->holds[handle.slot]};
    }
    transport_unlock(node->transport);
    return status;
}

/* Nobody here reads it any more. Its owner may use the slot again as soon as it
 * is said, so it is not held any more before that. What a copy of this process
 * has it says nothing of: the row is that of the process that reads there. */
void blocks_give_back(void *data, void *hint)
{
    struct block_hold *const hold = hint;
    struct block_pair *const pair = hold->pair;
    (void)data;
    if (ls_forked_since(pair->forks))
        return;
    const uint64_t number = atomic_exchange(&hold->number, 0);
    block_row_done(pair->touched, pair->row, (unsigned)(hold - pair->holds),
                   number);
    drop_pair(pair);
}

bool blocks_attach(struct message *message, const struct wire_header *header,
                   struct block_loan *loan)
{
    const bool is_ours =
        header->name_size >= 3 && memcmp(header->name, "ls.", 3) == 0;
    if (!is_ours) {
        message->owned = message->hint = loan->hold;
        message->release = blocks_give_back;
        return true;
    }
    uint8_t *const copy = malloc(loan->size);
    if (copy != NULL)
        memcpy(copy, loan->data, loan->size);
    blocks_give_back(NULL, loan->hold);
    loan->data = message->owned = copy;
    return copy != NULL;
}

/* ---- time, and the end ------------------------------------------------- */

/* What was sent and has not come since the last look is lost, or late: it is
 * told how far it need not wait. */
static void look_for_lost(ls_node *node, struct block_pair *pair)
{
    if (!pair->lends)
        return;
    const struct block_row *const row =
        node->blocks->pool.readers[pair->place].row;
    const uint64_t seen = block_load(node->blocks->touched, &row->seen);
    if (seen < pair->last && seen == pair->seen_then &&
        block_pool_lends(&node->blocks->pool, pair->place))
        blocks_say_passed(node, pair);
    pair->seen_then = seen;
}

unsigned blocks_held(ls_node *node)
{
    return node->blocks == NULL ? 0 : block_pool_held(&node->blocks->pool);
}

int64_t blocks_tick(ls_node *node, int64_t now)
{
    struct blocks *const blocks = node->blocks;
    if (blocks == NULL)
        return LS_FOREVER;
    if (blocks->tick_at > now)
        return blocks->tick_at;
    blocks_reap(node);
    for (unsigned i = 0; i < BLOCK_READERS; i++)
        if (blocks->pairs[i] != NULL)
            look_for_lost(node, blocks->pairs[i]);
    blocks->tick_at = now + node->options.heartbeat_ms * LS_NS_PER_MS;
    return blocks->tick_at;
}

void blocks_fini(ls_node *node)
{
    struct blocks *const blocks = node->blocks;
    if (blocks == NULL)
        return;
    for (unsigned i = 0; i < BLOCK_READERS; i++) {
        struct block_pair *const pair = blocks->pairs[i];
        if (pair != NULL && pair->row != NULL)
            block_row_end(blocks->touched, pair->row);
        if (pair != NULL)
            drop_pair(pair);
    }
    if (blocks->memory != NULL)
        (void)!ls_memory_set_bell(blocks->memory, -1, NULL, NULL);
    blocks_here_end(blocks);
    ls_cond_fini(&blocks->work);
    node->blocks = NULL;
    blocks_drop(blocks);
}
