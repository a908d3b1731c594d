/* Frames in shared memory, and the bus thread that reads them. Design notes:
 *
 * - Whoever writes looks whether the other's bus thread rests after it has
 *   written; that says so before it looks once more: so one of the two sees the
 *   other, and a bell is rung only for who sleeps.
 * - It says which of its rests this is, and is rung for once in each: who has
 *   been rung for and has not come to run yet reads what follows as well.
 * - Frames follow each other: who has read one looks a few times more before it
 *   says that, with its core yielded, as long as that is cheap. To be woken for
 *   each costs both sides more.
 * - Who comes to write finds no room, or that it may not yet, sends over the
 *   connection: nobody waits for a reader.
 * - A frame is copied before it is read, into the message that carries it.
 * - The bus thread looks whether there is any without the lock, which a thread
 *   that emits without a pause holds most of the time. What it looks at stays,
 *   as for a thread that listens to lines, until it has heard the news. */
#include "rings.h"

#include <stdlib.h>
#include <string.h>

#include "blocks_inside.h"

/* ---- sending ----------------------------------------------------------- */

bool rings_are_read(const ls_node *node, const struct peer *peer)
{
    const struct block_pair *const pair = peer->blocks;
    if (pair == NULL || !pair->lends)
        return false;
    const struct block_words *const theirs = ls_memory_data(pair->memory);
    const struct block_words *const own = ls_memory_own(node->blocks->memory);
    return block_load(pair->touched, &theirs->rings[pair->answer.row].taken) ==
           atomic_load(&own->rings[pair->place].written);
}

/* The rest that its bus thread is to be woken from; 0: none. */
static uint64_t unheard_in(const struct block_pair *pair)
{
    const struct block_words *const theirs = ls_memory_data(pair->memory);
    const uint64_t rest = block_load(pair->touched, &theirs->rests);
    return rest != atomic_load(&pair->rung) ? rest : 0;
}

static void ring_for(struct block_pair *pair)
{
    const uint64_t rest = unheard_in(pair);
    if (rest != 0 && atomic_exchange(&pair->rung, rest) != rest)
        ls_memory_ring(pair->memory);
}

bool rings_send(ls_node *node, const struct peer *peer, const void *head,
                size_t head_size, const void *body, size_t body_size)
{
    struct block_pair *const pair = peer->blocks;
    if (pair == NULL || !pair->lends)
        return false;
    const struct block_words *const theirs = ls_memory_data(pair->memory);
    struct block_words *const own = ls_memory_own(node->blocks->memory);
    const unsigned row = pair->answer.row;
    HANDED_OVER();
    if (line_load(pair->touched, &theirs->lines[row].heeds) != 1 ||
        !ring_write(pair->touched, &own->rings[pair->place],
                    block_load(pair->touched, &theirs->rings[row].taken), head,
                    head_size, body, body_size))
        return false;
    if (!node->blocks->rings_later)
        ring_for(pair);
    else if (unheard_in(pair) != 0)
        (void)atomic_fetch_or(&node->blocks->to_ring, UINT64_C(1)
                                                          << pair->place);
    node->figures.stats.near++;
    return true;
}

void rings_later(ls_node *node, bool begins)
{
    struct blocks *const blocks = node->blocks;
    if (blocks == NULL)
        return;
    blocks->rings_later = begins;
    if (!begins && atomic_load(&blocks->to_ring) != 0)
        transport_wake(node->transport);
}

void rings_want(ls_node *node, struct peer *peer)
{
    if (peer->member.state == LS_MEMBER_READY)
        (void)blocks_is_pair(node, peer);
}

/* ---- reading ----------------------------------------------------------- */

static void release_copy(struct message *message)
{
    if (message->head != message->small)
        free((void *)(uintptr_t)message->head);
    message->n_frames = 0;
}

/* Of a message that holds its own copy. A hub has no pairs, so nothing is
 * passed on. */
static const struct transport_ops copies = {.release = release_copy};

/* NULL: no memory. What is of a stream will come again; another event is found
 * missing, and counted. */
static struct message *message_of(ls_node *node, const void *bytes, size_t size)
{
    struct message *const message = bus_take(node);
    if (message == NULL)
        return NULL;
    uint8_t *const copy =
        size <= sizeof message->small ? message->small : malloc(size);
    if (copy == NULL) {
        bus_drop(node, message);
        return NULL;
    }
    memcpy(copy, bytes, size);
    message->transport = &copies;
    message->n_frames = 1;
    message->head = copy;
    message->head_size = size;
    message->tail = NULL;
    message->tail_size = 0;
    message->trusted = true;
    return message;
}

static const struct ring *ring_of(const struct block_pair *pair)
{
    const struct block_words *const words = ls_memory_data(pair->memory);
    return &words->rings[pair->answer.row];
}

/* Lock held, but while it is heeded. Returns whether there was one. */
static bool take_one(ls_node *node, unsigned place, uint8_t *bytes)
{
    struct block_pair *const pair = node->blocks->pairs[place];
    const uint64_t before = pair->taken;
    const size_t size = ring_read(pair->touched, ring_of(pair), pair->session,
                                  &pair->taken, bytes);
    TAKEN_OVER();
    if (pair->taken != before) {
        struct block_words *const own = ls_memory_own(node->blocks->memory);
        block_store(pair->touched, &own->rings[pair->place].taken, pair->taken);
    }
    if (size == 0)
        return false;
    node->blocks->heard = true;
    struct peer *const peer = world_find(node, pair->id);
    if (size == RING_LIES) {
        (void)ls_error(LS_EPROTO, "what lies in its ring is no frame");
        blocks_refuse(node, pair);
    }
    if (size == RING_LIES || peer == NULL || peer->blocks != pair)
        return true;
    transport_unlock(node->transport);
    struct message *const message = message_of(node, bytes, size);
    if (message != NULL)
        bus_near(node, peer, message);
    transport_lock(node->transport);
    return true;
}

/* What is there now: who goes on to write does not hold up others. Lock held,
 * but while it is heeded. */
static void take_all(ls_node *node, unsigned place)
{
    uint8_t bytes[RING_FRAME_MAX];
    const struct block_pair *const pair = node->blocks->pairs[place];
    if (!blocks_is_near(pair))
        return;
    const uint64_t until = block_load(pair->touched, &ring_of(pair)->written);
    for (size_t n = 0; n < RING_BYTES / RING_UNIT; n++)
        if (node->blocks->pairs[place] != pair || pair->taken == until ||
            !take_one(node, place, bytes))
            return;
}

/* Lock held. */
static void watch_anew(struct loop *loop, struct blocks *blocks)
{
    for (unsigned i = 0; i < loop->n_watched; i++)
        blocks->watched[i]->listened--;
    loop->n_watched = 0;
    blocks->watched_since = atomic_load(&blocks->news);
    for (unsigned i = 0; i < BLOCK_READERS; i++) {
        struct block_pair *const pair = blocks->pairs[i];
        if (!blocks_is_near(pair))
            continue;
        pair->listened++;
        blocks->watched[loop->n_watched++] = pair;
    }
    blocks_reap_pairs(blocks);
}

/* Those that there are: how many. Lock not held. */
static unsigned watch(ls_node *node)
{
    struct loop *const loop = &node->loop;
    if (!lines_any(node) && loop->n_watched == 0)
        return 0;
    struct blocks *const blocks = node->blocks;
    if (atomic_load(&blocks->news) != blocks->watched_since) {
        transport_lock(node->transport);
        watch_anew(loop, blocks);
        transport_unlock(node->transport);
    }
    return loop->n_watched;
}

static bool has_frame(const struct block_pair *pair)
{
    return ring_has(pair->touched, ring_of(pair), pair->session, pair->taken);
}

/* Lock not held. */
static bool anything(ls_node *node)
{
    const unsigned n = watch(node);
    for (unsigned i = 0; i < n; i++)
        if (has_frame(node->blocks->watched[i]))
            return true;
    return false;
}

/* The same of one node. */
static bool anything_of(ls_node *node, uint32_t id)
{
    const unsigned n = watch(node);
    for (unsigned i = 0; i < n; i++)
        if (node->blocks->watched[i]->id == id)
            return has_frame(node->blocks->watched[i]);
    return false;
}

void rings_ring(ls_node *node)
{
    if (!lines_any(node) || atomic_load(&node->blocks->to_ring) == 0)
        return;
    const unsigned n = watch(node);
    const uint64_t places = atomic_exchange(&node->blocks->to_ring, 0);
    for (unsigned i = 0; i < n; i++) {
        struct block_pair *const pair = node->blocks->watched[i];
        if ((places >> pair->place & 1) != 0)
            ring_for(pair);
    }
}

void rings_read(ls_node *node)
{
    if (!anything(node))
        return;
    transport_lock(node->transport);
    for (unsigned i = 0; i < BLOCK_READERS; i++)
        take_all(node, i);
    transport_unlock(node->transport);
}

void rings_read_of(ls_node *node, const struct peer *peer)
{
    if (!anything_of(node, peer->member.id))
        return;
    transport_lock(node->transport);
    if (peer->blocks != NULL)
        take_all(node, peer->blocks->place);
    transport_unlock(node->transport);
}

static bool is_anything(void *node)
{
    return anything(node);
}

bool rings_look(ls_node *node)
{
    if (!lines_any(node) || !node->blocks->heard)
        return false;
    node->blocks->heard = false;
    return patience_look(&node->blocks->patience, node->runtime, is_anything,
                         node);
}

bool rings_rest(ls_node *node, bool begins)
{
    if (!lines_any(node))
        return true;
    struct blocks *const blocks = node->blocks;
    struct block_words *const own = ls_memory_own(blocks->memory);
    blocks->n_rests += begins ? 1 : 0;
    block_store(blocks->touched, &own->rests, begins ? blocks->n_rests : 0);
    return !begins || !anything(node);
}
