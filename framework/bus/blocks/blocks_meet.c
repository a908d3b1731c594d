/* How two nodes become a pair. Design notes:
 *
 * - As with rooms: each offers its memory on a unix socket and tells the other
 *   on the bus, which knows who is who, the name of the socket, a key that
 *   opens it, and a proof that lies in the memory. Whoever cannot take it, on
 *   another host, in another container, as another user, says nothing more.
 * - An offer ends as soon as all have answered that are to take it, or will
 *   not: a process that is killed leaves a socket behind, which lies in the
 *   folder until somebody makes an offer there later.
 * - What fails, as for want of descriptors or of room in memory, is given up
 *   for this pair, that is for these lives of the two. The next pair tries it
 *   anew.
 * - To take memory may wait for another process, so a thread does it that has
 *   nothing else to do. It is begun with the first pair. */
#include <string.h>

#include "blocks_inside.h"
#include "lockstep/record.h"

#define TAKE_MS  500 /* a try */
#define TRIES    4
#define OFFER_MS 10000 /* who has not taken it then cannot */

static const struct ls_field notice_fields[] = {
    {"said", LS_FIELD_UINT32, offsetof(struct block_notice, said),
     .most = BLOCKS_N_SAID - 1},
    {"to", LS_FIELD_UINT, offsetof(struct block_notice, to),
     .presence = LS_ALWAYS},
    {"session", LS_FIELD_UINT, offsetof(struct block_notice, session),
     .presence = LS_IF_SET},
    {"number", LS_FIELD_UINT, offsetof(struct block_notice, number),
     .presence = LS_IF_SET},
    {"window", LS_FIELD_UINT, offsetof(struct block_notice, window),
     .presence = LS_IF_SET},
    {"row", LS_FIELD_UINT32, offsetof(struct block_notice, row),
     .most = BLOCK_READERS - 1, .presence = LS_IF_SET},
    {"key", LS_FIELD_UINT, offsetof(struct block_notice, key[0]),
     .presence = LS_IF_SET},
    {"key_end", LS_FIELD_UINT, offsetof(struct block_notice, key[1]),
     .presence = LS_IF_SET},
    {"proof", LS_FIELD_UINT, offsetof(struct block_notice, proof[0]),
     .presence = LS_IF_SET},
    {"proof_end", LS_FIELD_UINT, offsetof(struct block_notice, proof[1]),
     .presence = LS_IF_SET},
    {"socket", LS_FIELD_CHARS, offsetof(struct block_notice, socket),
     .size = LS_OFFER_NAME_BYTES, .presence = LS_IF_SET},
};
static const struct ls_record notice_record = {
    .name = "a notice of blocks",
    .size = sizeof(struct block_notice),
    .fields = notice_fields,
    .n_fields = sizeof notice_fields / sizeof *notice_fields};

/* ---- what is said ------------------------------------------------------ */

static int write_notice(const struct block_notice *notice, ls_writer **writer,
                        const void **data, size_t *size)
{
    int status = ls_writer_create(writer);
    if (status != LS_OK)
        return status;
    ls_record_write(&notice_record, notice, *writer);
    return ls_writer_bytes(*writer, data, size);
}

/* Lock not held. */
static void say(ls_node *node, uint32_t to, const struct block_notice *notice)
{
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    int status = write_notice(notice, &writer, &data, &size);
    if (status == LS_OK)
        status = channels_send_reliable(node, BLOCKS_CHANNEL, to, data, size);
    if (status != LS_OK)
        ls_log_info("bus: node %u and this one share no memory: %s", to,
                    ls_error_text());
    ls_writer_destroy(&writer);
}

/* It goes the way of the handles, behind them. */
void blocks_say_passed(ls_node *node, const struct block_pair *pair)
{
    const struct block_notice notice = {.said = BLOCKS_PASSED,
                                        .to = pair->life,
                                        .session = pair->answer.session,
                                        .number = pair->last};
    struct wire_header header = bus_header(node, WIRE_KIND_CHANNEL);
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    header.name = BLOCKS_CHANNEL;
    header.name_size = sizeof BLOCKS_CHANNEL - 1;
    if (write_notice(&notice, &writer, &data, &size) == LS_OK)
        (void)bus_send(node, pair->id, &header, data, size);
    ls_writer_destroy(&writer);
}

/* ---- what is heard ----------------------------------------------------- */

/* Both have the memory of the other, and it has a row for this node. */
static void begin_to_lend(ls_node *node, struct block_pair *pair)
{
    if (pair->over || pair->lends || pair->memory == NULL ||
        pair->answer.session == 0)
        return;
    const struct block_words *const words = ls_memory_data(pair->memory);
    block_pool_add(&node->blocks->pool, pair->place,
                   &words->rows[pair->answer.row], pair->answer.session);
    pair->lends = true;
    node->loop.near_made = true;
    /* Before the other may write: what it sends over the connection after that
     * must not be read first. */
    (void)atomic_fetch_add(&node->n_near, 1);
    blocks_tell_news(node);
    struct block_words *const own = ls_memory_own(node->blocks->memory);
    ring_begin(pair->touched, &own->rings[pair->place], pair->answer.session);
    line_store(pair->touched, &own->lines[pair->place].heeds, 1);
    node_wake(node); /* it may have something to read already */
}

static void heard(ls_node *node, struct block_pair *pair,
                  const struct block_notice *notice)
{
    struct blocks *const blocks = node->blocks;
    switch (notice->said) {
    case BLOCKS_OFFER:
        if (pair->offer.socket[0] == '\0') {
            pair->offer = *notice;
            pair->wanted = true;
            blocks_meet(node);
        }
        break;
    case BLOCKS_TAKEN:
        if (pair->offered && pair->answer.session == 0 &&
            notice->window >= 2 * (uint64_t)WIRE_CHUNK_BYTES) {
            pair->answer = *notice;
            begin_to_lend(node, pair);
            ls_cond_signal(&blocks->work); /* for the end of the offer */
        }
        break;
    default:
        if (pair->row != NULL && pair->session == notice->session &&
            notice->number <= UINT64_MAX / 2)
            block_row_pass(blocks->touched, pair->row, notice->number);
        break;
    }
}

void blocks_message(ls_node *node, const struct wire_header *header,
                    const void *data, size_t size)
{
    struct block_notice notice;
    if (ls_record_decode(&notice_record, &notice, data, size, NULL) != LS_OK)
        return;
    transport_lock(node->transport);
    struct peer *const peer = world_find(node, header->origin);
    struct block_pair *const pair =
        peer == NULL || peer->member.incarnation != header->incarnation ||
                notice.to != node->me.incarnation ||
                peer->member.state != LS_MEMBER_READY
            ? NULL
            : blocks_pair(node, peer);
    if (pair != NULL)
        heard(node, pair, &notice);
    transport_unlock(node->transport);
}

/* ---- the worker -------------------------------------------------------- */

static void set_own(struct blocks *blocks, ls_runtime *runtime)
{
    struct block_notice *const own = &blocks->own;
    struct block_words *const words = ls_memory_own(blocks->memory);
    own->said = BLOCKS_OFFER;
    for (size_t i = 0; i < 2; i++) {
        own->key[i] = ls_entropy(runtime);
        own->proof[i] = ls_entropy(runtime);
    }
    ls_offer_name(runtime, own->socket);
    words->magic = BLOCKS_MAGIC;
    memcpy(words->proof, own->proof, sizeof words->proof);
}

/* The memory of this node. Lock not held; but for the worker nobody touches it
 * yet. */
static int make_memory(ls_node *node)
{
    struct blocks *const blocks = node->blocks;
    int status =
        ls_memory_create(&blocks->memory, node->runtime, "lockstep-blocks",
                         blocks_begin() + node->options.shared_bytes);
    if (status == LS_OK)
        status = ls_memory_reserve(blocks->memory, 0,
                                   offsetof(struct block_words, rows));
    if (status == LS_OK)
        status = transport_lend_bell(node->transport, blocks->memory);
    if (status != LS_OK) {
        ls_memory_destroy(&blocks->memory);
        return status;
    }
    set_own(blocks, node->runtime);
    blocks_here_offer(blocks);
    return LS_OK;
}

/* The worker alone has to do with it; lock not held. */
static int begin_offer(ls_node *node)
{
    struct blocks *const blocks = node->blocks;
    char path[LS_OFFER_PATH_BYTES];
    if (blocks->offer != NULL)
        return LS_OK;
    int status = ls_offer_folder(node->runtime, blocks->folder,
                                 sizeof blocks->folder, NULL);
    if (status == LS_OK)
        status = ls_offer_path(blocks->folder, blocks->own.socket, path);
    if (status == LS_OK)
        status = ls_offer_begin(&blocks->offer, blocks->memory, path,
                                (const uint8_t *)blocks->own.key);
    return status;
}

/* Lock not held. */
static int take(ls_node *node, const struct block_notice *offer,
                ls_memory **out)
{
    struct blocks *const blocks = node->blocks;
    char path[LS_OFFER_PATH_BYTES];
    int status = ls_offer_path(blocks->folder, offer->socket, path);
    if (status != LS_OK)
        return status;
    /* Who does not answer may stand still, or this node did: that takes the
     * time of one. */
    status = LS_ETIMEDOUT;
    for (int i = 0; i < TRIES && status == LS_ETIMEDOUT; i++)
        status =
            node_is_stopping(node) && i > 0
                ? ls_error(LS_ECLOSED, "the node stops")
                : ls_memory_take(out, node->runtime, path,
                                 (const uint8_t *)offer->key, blocks_begin(),
                                 ls_deadline(node->runtime, TAKE_MS));
    if (status != LS_OK)
        return status;
    const struct block_words *const words = ls_memory_data(*out);
    if (words->magic == BLOCKS_MAGIC &&
        memcmp(words->proof, offer->proof, sizeof words->proof) == 0)
        return LS_OK;
    ls_memory_destroy(out);
    return ls_error(LS_EPROTO, "what is offered is not its memory");
}

static int take_here(const struct block_notice *offer, struct blocks **out)
{
    *out = blocks_here_take(offer);
    return *out != NULL
               ? LS_OK
               : ls_error(LS_EUNREACHABLE, "its memory is not in this process");
}

/* What is offered was taken: say where it is told what is read of it. Lock
 * held; returns what is to be said. */
static struct block_notice begin_to_read(ls_node *node, struct block_pair *pair)
{
    struct blocks *const blocks = node->blocks;
    struct block_words *const words = ls_memory_own(blocks->memory);
    while (pair->session == 0)
        pair->session = ls_entropy(node->runtime);
    pair->row = &words->rows[pair->place];
    block_row_begin(blocks->touched, pair->row, pair->session);
    line_begin(blocks->touched, &words->lines[pair->place]);
    block_store(blocks->touched, &words->rings[pair->place].taken, 0);
    begin_to_lend(node, pair);
    ls_log_info("bus: node %u and this one share memory", pair->id);
    return (struct block_notice){.said = BLOCKS_TAKEN,
                                 .to = pair->life,
                                 .session = pair->session,
                                 .window = node->options.window_bytes,
                                 .row = pair->place};
}

/* With ls_error_text(); lock held. */
static void give_up(struct block_pair *pair)
{
    ls_log_warn("bus: node %u and this one share no memory: %s", pair->id,
                ls_error_text());
    pair->offered = pair->tried = true;
}

/* The lock is held, but while something may wait. */
static void offer_to(ls_node *node, struct block_pair *pair)
{
    struct blocks *const blocks = node->blocks;
    struct block_notice notice = blocks->own;
    notice.to = pair->life;
    pair->offered = true;
    blocks->offer_until = ls_deadline(node->runtime, OFFER_MS);
    transport_unlock(node->transport);
    const int status = pair->here ? LS_OK : begin_offer(node);
    if (status == LS_OK)
        say(node, pair->id, &notice);
    transport_lock(node->transport);
    if (status != LS_OK)
        give_up(pair);
}

/* Pages for what is written there, so that it cannot fail. */
static int reserve_place(const struct blocks *blocks, unsigned place)
{
    static const struct {
        size_t at, size;
    } arrays[] = {
        {offsetof(struct block_words, rows), sizeof(struct block_row)},
        {offsetof(struct block_words, lines), sizeof(struct line)},
        {offsetof(struct block_words, rings), sizeof(struct ring)},
    };
    int status = LS_OK;
    for (size_t i = 0; i < 3 && status == LS_OK; i++)
        status = ls_memory_reserve(blocks->memory,
                                   arrays[i].at + place * arrays[i].size,
                                   arrays[i].size);
    return status;
}

static void take_from(ls_node *node, struct block_pair *pair)
{
    const struct block_notice offer = pair->offer;
    struct blocks *theirs = NULL;
    ls_memory *memory = NULL;
    pair->tried = true;
    transport_unlock(node->transport);
    int status = reserve_place(node->blocks, pair->place);
    if (status == LS_OK)
        status = pair->here ? take_here(&offer, &theirs)
                            : take(node, &offer, &memory);
    if (status != LS_OK)
        ls_log_info("bus: node %u and this one share no memory: %s", pair->id,
                    ls_error_text());
    transport_lock(node->transport);
    pair->theirs = theirs;
    pair->memory = theirs != NULL ? theirs->memory : memory;
    if (pair->memory == NULL || pair->over)
        return;
    const struct block_notice answer = begin_to_read(node, pair);
    transport_unlock(node->transport);
    say(node, pair->id, &answer);
    transport_lock(node->transport);
}

static struct block_pair *next_pair(const struct blocks *blocks)
{
    for (unsigned i = 0; i < BLOCK_READERS; i++) {
        struct block_pair *const pair = blocks->pairs[i];
        if (pair != NULL && !pair->over &&
            ((pair->wanted && !pair->offered) ||
             (pair->offer.socket[0] != '\0' && !pair->tried)))
            return pair;
    }
    return NULL;
}

static void do_next(ls_node *node, struct block_pair *pair)
{
    int status = LS_OK;
    pair->busy = true;
    if (node->blocks->memory == NULL) {
        transport_unlock(node->transport);
        status = make_memory(node);
        transport_lock(node->transport);
    }
    if (status != LS_OK)
        give_up(pair);
    else if (!pair->offered)
        offer_to(node, pair);
    else
        take_from(node, pair);
    pair->busy = false;
}

/* Whether somebody may still take this node's memory. */
static bool is_awaited(const struct blocks *blocks, int64_t now)
{
    for (unsigned i = 0; i < BLOCK_READERS && now < blocks->offer_until; i++) {
        const struct block_pair *const pair = blocks->pairs[i];
        if (pair != NULL && !pair->over && pair->offered &&
            pair->answer.session == 0)
            return true;
    }
    return false;
}

static void end_offer(ls_node *node)
{
    transport_unlock(node->transport);
    ls_offer_end(&node->blocks->offer);
    transport_lock(node->transport);
}

static void work(void *self)
{
    ls_node *const node = self;
    struct blocks *const blocks = node->blocks;
    ls_mutex *const mutex = transport_mutex(node->transport);
    ls_log_set_node(node->options.id);
    transport_lock(node->transport);
    while (!blocks->stopping) {
        struct block_pair *const pair = next_pair(blocks);
        const bool offers = blocks->offer != NULL;
        if (pair != NULL)
            do_next(node, pair);
        else if (offers && !is_awaited(blocks, ls_now(node->runtime)))
            end_offer(node);
        else
            (void)!ls_cond_wait(&blocks->work, mutex,
                                offers ? blocks->offer_until : LS_FOREVER);
    }
    transport_unlock(node->transport);
    ls_offer_end(&blocks->offer);
}

void blocks_meet(ls_node *node)
{
    struct blocks *const blocks = node->blocks;
    if (blocks->worker == NULL && !node_is_stopping(node) &&
        ls_thread_spawn(node->runtime, &blocks->worker, "ls-blocks", work,
                        node) != LS_OK)
        ls_log_warn("bus: no memory is shared for now: %s", ls_error_text());
    ls_cond_signal(&blocks->work);
    bus_look_after(node); /* for the time of the next tick */
}

void blocks_stop(ls_node *node)
{
    transport_lock(node->transport);
    struct blocks *const blocks = node->blocks;
    if (blocks != NULL) {
        blocks->stopping = true;
        ls_cond_signal(&blocks->work);
    }
    transport_unlock(node->transport);
    if (blocks == NULL)
        return;
    if (ls_thread_join(&blocks->worker, LS_FOREVER) != LS_OK)
        ls_log_error("bus: the blocks thread of node %u did not end",
                     node->options.id);
}
