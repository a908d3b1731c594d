/* Messages in shared memory, and threads that wait for them. Design notes:
 *
 * - A message is the name of its channel, and what is sent on it. Who it comes
 *   from is who the memory belongs to.
 * - Whoever writes looks whether somebody there is asleep after it has written;
 *   whoever goes to sleep says so before the kernel looks once more.
 * - A thread that listens keeps the memories that it looks at mapped. */
#include "lines.h"

#include "blocks_inside.h"

/* ---- sending ----------------------------------------------------------- */

bool lines_send(ls_node *node, struct peer *peer, const char *name,
                size_t name_size, const void *data, size_t size)
{
    unsigned char bytes[LINE_BYTES];
    if (1 + name_size + size > sizeof bytes || !blocks_is_pair(node, peer))
        return false;
    const struct block_pair *const pair = peer->blocks;
    const struct block_words *const theirs = ls_memory_data(pair->memory);
    struct block_words *const own = ls_memory_own(node->blocks->memory);
    struct line *const line = &own->lines[pair->place];
    if (line_load(pair->touched, &theirs->lines[pair->answer.row].heeds) != 1)
        return false;
    bytes[0] = (unsigned char)name_size;
    memcpy(bytes + 1, name, name_size);
    if (size != 0)
        memcpy(bytes + 1 + name_size, data, size);
    line_write(pair->touched, line, bytes, 1 + name_size + size);
    if (line_load(pair->touched, &theirs->asleep) != 0)
        ls_word_wake(node->runtime, &line->written);
    node->figures.stats.near++;
    return true;
}

/* ---- listening --------------------------------------------------------- */

/* What a listener waits for: its bell, pairs that come and go, and the lines of
 * those that there are. */
struct line_watch {
    struct line_listener *listener;
    ls_runtime *touched; /* NULL: it is no simulation */
    struct block_pair *pairs[BLOCK_READERS];
    unsigned n_pairs;
    struct ls_awaited words[2 + BLOCK_READERS];
    size_t n;
};

static const struct line *line_of(const struct block_pair *pair)
{
    const struct block_words *const words = ls_memory_data(pair->memory);
    return &words->lines[pair->answer.row];
}

bool lines_any(const ls_node *node)
{
    return atomic_load(&node->n_near) != 0;
}

/* Whoever owns a memory writes into it what it likes: if that is no message, it
 * is counted as it would be over a connection. Lock held. */
static bool is_message(ls_node *node, const struct block_pair *pair,
                       const unsigned char *bytes, size_t size)
{
    if (size > bytes[0])
        return true;
    (void)ls_error(LS_EPROTO,
                   "malformed message of a line: a name of %u bytes, and %zu "
                   "bytes are left",
                   bytes[0], size - 1);
    blocks_refuse(node, pair);
    return false;
}

/* Lock held, but for the op. Returns whether there was one. */
static bool take_one(ls_node *node)
{
    struct blocks *const blocks = node->blocks;
    unsigned char bytes[8 * LINE_WORDS];
    for (unsigned i = 0; i < BLOCK_READERS; i++) {
        blocks->ear = (blocks->ear + 1) % BLOCK_READERS;
        struct block_pair *const pair = blocks->pairs[blocks->ear];
        if (!blocks_is_near(pair))
            continue;
        const size_t size =
            line_read(pair->touched, line_of(pair), &pair->heard,
                      &node->figures.stats.near_lost, bytes);
        if (size == 0 || !is_message(node, pair, bytes, size))
            continue;
        const struct channel_note note = {.name = (const char *)bytes + 1,
                                          .name_size = bytes[0],
                                          .from = pair->id,
                                          .incarnation = pair->life,
                                          .data = bytes + 1 + bytes[0],
                                          .size = size - 1 - bytes[0]};
        transport_unlock(node->transport);
        channels_near(node, &note);
        transport_lock(node->transport);
        return true;
    }
    return false;
}

/* Lock held. */
static void look_around(ls_node *node, struct line_watch *watch)
{
    struct blocks *const blocks = node->blocks;
    struct line_listener *const listener = watch->listener;
    watch->touched = blocks->touched;
    watch->words[0] = (struct ls_awaited){&listener->bell, listener->heard};
    watch->words[1] =
        (struct ls_awaited){&blocks->news, atomic_load(&blocks->news)};
    watch->n = 2;
    watch->n_pairs = 0;
    for (unsigned i = 0; i < BLOCK_READERS; i++) {
        struct block_pair *const pair = blocks->pairs[i];
        if (!blocks_is_near(pair))
            continue;
        pair->listened++;
        watch->pairs[watch->n_pairs++] = pair;
        watch->words[watch->n++] =
            (struct ls_awaited){&line_of(pair)->written, pair->heard};
    }
    if (listener->n != node->world.n) {
        listener->n = (unsigned)node->world.n;
        patience_begin(&listener->patience, node->runtime, listener->n + 1,
                       ls_cpus(node->runtime));
    }
}

static bool has_come(void *self)
{
    const struct line_watch *const watch = self;
    for (size_t i = 0; i < watch->n; i++)
        if (line_load(watch->touched, watch->words[i].word) !=
            watch->words[i].value)
            return true;
    return false;
}

static void sleep_until(ls_node *node, struct line_watch *watch,
                        int64_t deadline)
{
    struct block_words *const own = ls_memory_own(node->blocks->memory);
    /* If it was killed, nobody sees that it sleeps. */
    const uint32_t one =
        watch->touched == NULL || ls_memory_touch(watch->touched) ? 1 : 0;
    (void)atomic_fetch_add(&own->asleep, one);
    atomic_store(&watch->listener->asleep, true);
    /* Not if any of them has changed since. Whoever listens looks at the clock
     * in any case. */
    (void)!ls_words_wait(node->runtime, watch->words, watch->n, deadline);
    atomic_store(&watch->listener->asleep, false);
    (void)atomic_fetch_sub(&own->asleep, one);
}

/* Lock held, but while it waits. */
static void wait_once(ls_node *node, struct line_listener *listener,
                      int64_t deadline)
{
    struct line_watch watch = {.listener = listener};
    look_around(node, &watch);
    transport_unlock(node->transport);
    if (!patience_look(&listener->patience, node->runtime, has_come, &watch))
        sleep_until(node, &watch, deadline);
    transport_lock(node->transport);
    for (unsigned i = 0; i < watch.n_pairs; i++)
        watch.pairs[i]->listened--;
}

/* Since the last time. */
static bool was_rung(struct line_listener *listener)
{
    const uint32_t before = listener->heard;
    listener->heard = atomic_load(&listener->bell);
    return listener->heard != before;
}

int lines_listen(ls_node *node, struct line_listener *listener,
                 int64_t deadline)
{
    int status = LS_OK;
    transport_lock(node->transport);
    while (status == LS_OK && lines_any(node) && !was_rung(listener)) {
        if (!take_one(node))
            wait_once(node, listener, deadline);
        /* Whoever goes on to talk, or to write what is no message. */
        if (ls_now(node->runtime) >= deadline)
            status = LS_ETIMEDOUT;
    }
    transport_unlock(node->transport);
    return status;
}

void lines_ring(ls_node *node, struct line_listener *listener)
{
    (void)atomic_fetch_add(&listener->bell, 1);
    if (atomic_load(&listener->asleep))
        ls_word_wake(node->runtime, &listener->bell);
}
