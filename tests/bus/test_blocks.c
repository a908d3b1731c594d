/* Payloads of 64 KiB and more between nodes of one host go through shared
 * memory: whole, in order, and counted; what cannot goes as it always did. */
#include <sched.h>
#include <sys/stat.h>

#include "blocks_inside.h"
#include "delivery.h"
#include "lockstep/random.h"
#include "security_fixture.h"
#include "test.h"
#include "world_fixture.h"

#define KIB    1024u
#define MIB    (1024u * 1024u)
#define STRIDE 61

struct pair_of {
    struct world world;
    struct counter heard, bad, tokens;
    size_t shared; /* that both have, in bytes */
    size_t others; /* that those have that listen; 0: none */
    bool waits;    /* the handler, for a token each time */
    enum ls_delivery delivery;
};

static uint8_t pattern(size_t at, uint8_t seed)
{
    return (uint8_t)(at * 31 + (at >> 13) + seed);
}

/* The bytes that are looked at. */
static void fill(uint8_t *data, size_t size, uint8_t seed)
{
    for (size_t at = 0; at < size; at += STRIDE)
        data[at] = pattern(at, seed);
    data[size - 1] = pattern(size - 1, seed);
}

/* Its first byte says which it is. */
static int check_event(void *self, const struct ls_event *event)
{
    struct pair_of *p = self;
    const uint8_t *data = event->data;
    bool whole = data[event->size - 1] == pattern(event->size - 1, data[0]);
    if (p->waits && !counter_reaches(&p->tokens, counter_get(&p->heard) + 1))
        return LS_ETIMEDOUT;
    for (size_t at = 0; at < event->size; at += STRIDE)
        whole = whole && data[at] == pattern(at, data[0]);
    if (!whole)
        counter_add(&p->bad, 1);
    counter_add(&p->heard, 1);
    return LS_OK;
}

static void listen_all(ls_node *node, size_t index, void *self)
{
    if (index != 0)
        assert_ok(ls_on(node, "x", check_event, self));
}

static struct pair_of *tuned;

static void tune(struct ls_node_options *options, size_t index)
{
    options->shared_bytes = index == 0 ? tuned->shared : tuned->others;
    options->silence_ms = 20000;
}

static struct pair_of *start(size_t n, const char *over, size_t shared,
                             size_t others, enum ls_topology topology)
{
    struct pair_of *p = calloc(1, sizeof *p);
    assert_non_null(p);
    counter_init(&p->heard);
    counter_init(&p->bad);
    counter_init(&p->tokens);
    p->shared = shared;
    p->others = others;
    tuned = p;
    world_start(&p->world, &(struct world_plan){.n = n,
                                                .transport = over,
                                                .topology = topology,
                                                .tune = tune,
                                                .prepare = listen_all,
                                                .self = p});
    return p;
}

static struct pair_of *pair_start(size_t n, const char *over, size_t shared)
{
    return start(n, over, shared, shared, LS_TOPOLOGY_MESH);
}

static void pair_end(struct pair_of *p)
{
    assert_int_equal(counter_get(&p->bad), 0);
    world_destroy(&p->world);
    counter_fini(&p->heard);
    counter_fini(&p->bad);
    counter_fini(&p->tokens);
    free(p);
}

static struct ls_node_stats stats_of(const struct pair_of *p, size_t index)
{
    struct ls_node_stats stats;
    ls_node_stats(p->world.at[index].node, &stats);
    return stats;
}

static void emit(struct pair_of *p, size_t size, uint8_t seed)
{
    uint8_t *const data = malloc(size);
    assert_non_null(data);
    fill(data, size, seed);
    assert_ok(ls_emit_with(p->world.at[0].node,
                           &(struct ls_emission){.event = "x",
                                                 .data = data,
                                                 .size = size,
                                                 .delivery = p->delivery}));
    free(data);
}

/* Handlers have returned a moment ago. */
static void await_blocks(const struct pair_of *p)
{
    ls_node *const node = p->world.at[0].node;
    const int64_t deadline = long_deadline();
    unsigned left = 1;
    while (left != 0) {
        assert_true(ls_now(ls_runtime_threads()) < deadline);
        transport_lock(node->transport);
        block_pool_sweep(&node->blocks->pool);
        left = node->blocks->pool.n;
        transport_unlock(node->transport);
        (void)sched_yield();
    }
}

/* Emit until one has gone through shared memory; returns how many. */
static int emit_until_shared(struct pair_of *p, int readers)
{
    int n = 0;
    while (stats_of(p, 0).blocks == 0) {
        assert_in_range(n, 0, 20000);
        emit(p, 64 * KIB, (uint8_t)++n);
        assert_reaches(&p->heard, n * readers);
    }
    return n;
}

static void payloads_are_shared(const char *over, size_t readers,
                                enum ls_delivery delivery)
{
    struct pair_of *p = pair_start(1 + readers, over, 64 * MIB);
    p->delivery = delivery;
    int n = emit_until_shared(p, (int)readers);
    static const size_t sizes[] = {64 * KIB,     64 * KIB + 1, 200 * KIB,
                                   MIB,          MIB + 1,      3 * MIB + 17,
                                   5 * MIB + 99, 20 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        emit(p, sizes[i], (uint8_t)++n);
    assert_reaches(&p->heard, n * (int)readers);
    const struct ls_node_stats stats = stats_of(p, 0);
    assert_int_equal(stats.blocks + stats.blocks_full,
                     1 + sizeof sizes / sizeof *sizes);
    for (size_t i = 1; i <= readers; i++) {
        assert_int_equal(stats_of(p, i).refused, 0);
        assert_int_equal(stats_of(p, i).lost + stats_of(p, i).missed, 0);
    }
    pair_end(p);
}

TEST(large_payloads_between_nodes_of_a_host_go_through_shared_memory)
{
    payloads_are_shared("tcp", 1, LS_DELIVERY_BLOCK);
}

TEST(reliable_ones_too)
{
    payloads_are_shared("tcp", 2, LS_DELIVERY_RELIABLE);
}

TEST(over_ipc_too_and_to_several_at_once)
{
    payloads_are_shared("ipc", 3, LS_DELIVERY_BLOCK);
}

/* ---- what fails once ---------------------------------------------------- */

enum met { NOT_YET, SHARES, GIVEN_UP };

static enum met meets(const struct pair_of *p, uint32_t id)
{
    ls_node *const node = p->world.at[0].node;
    transport_lock(node->transport);
    struct peer *const peer = world_find(node, id);
    assert_non_null(peer);
    (void)blocks_is_pair(node, peer);
    const struct block_pair *const pair = peer->blocks;
    enum met met = NOT_YET;
    if (pair != NULL && pair->lends)
        met = SHARES;
    else if (pair != NULL && pair->tried && !pair->busy && pair->memory == NULL)
        met = GIVEN_UP;
    transport_unlock(node->transport);
    return met;
}

static enum met await_met(const struct pair_of *p, uint32_t id)
{
    const int64_t deadline = long_deadline();
    enum met met;
    while ((met = meets(p, id)) != SHARES && met != GIVEN_UP) {
        assert_true(ls_now(ls_runtime_threads()) < deadline);
        (void)sched_yield();
    }
    return met;
}

/* Where others may write, nothing is offered. */
TEST(what_fails_with_one_peer_is_tried_anew_with_the_next)
{
    char above[] = "/tmp/lockstep-test-XXXXXX", there[64];
    assert_non_null(mkdtemp(above));
    (void)snprintf(there, sizeof there, "%s/lockstep", above);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", above, 1), 0);
    struct pair_of *p = pair_start(3, "tcp", 64 * MIB);
    assert_int_equal(chmod(there, 0777), 0);
    assert_int_equal(await_met(p, 2), GIVEN_UP);
    assert_int_equal(chmod(there, 0700), 0);
    assert_int_equal(await_met(p, 3), SHARES);
    assert_int_equal(meets(p, 2), GIVEN_UP); /* in these lives */
    pair_end(p);
    remove_folder(above);
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
}

/* ---- what goes as it always did ---------------------------------------- */

static void payloads_are_not_shared(struct pair_of *p)
{
    for (int i = 1; i <= 50; i++) {
        emit(p, 64 * KIB, (uint8_t)i);
        assert_reaches(&p->heard, i * ((int)p->world.n - 1));
    }
    assert_int_equal(stats_of(p, 0).blocks, 0);
    assert_int_equal(stats_of(p, 0).blocks_full, 0);
    pair_end(p);
}

TEST(who_has_switched_it_off_shares_nothing)
{
    payloads_are_not_shared(start(2, "tcp", 0, 64 * MIB, LS_TOPOLOGY_MESH));
}

TEST(nor_is_anything_shared_with_it)
{
    payloads_are_not_shared(start(2, "tcp", 64 * MIB, 0, LS_TOPOLOGY_MESH));
}

TEST(within_a_process_a_pointer_does_and_a_star_has_its_hub)
{
    payloads_are_not_shared(pair_start(2, "inproc", MIB));
    payloads_are_not_shared(start(3, "tcp", MIB, MIB, LS_TOPOLOGY_STAR));
}

static void find_no_block(enum ls_delivery delivery)
{
    struct pair_of *p = pair_start(2, "tcp", 128 * KIB);
    p->delivery = delivery;
    const int n = emit_until_shared(p, 1);
    await_blocks(p);
    p->waits = true;
    for (int i = 1; i <= 4; i++) /* two blocks are all there is */
        emit(p, 64 * KIB, (uint8_t)(n + i));
    assert_int_equal(stats_of(p, 0).blocks, 3);
    assert_int_equal(stats_of(p, 0).blocks_full, 2);
    emit(p, 200 * KIB, (uint8_t)(n + 5));
    assert_int_equal(stats_of(p, 0).blocks_full, 3);
    counter_add(&p->tokens, n + 5);
    assert_reaches(&p->heard, n + 5);
    assert_int_equal(stats_of(p, 1).missed, 0);
    pair_end(p);
}

TEST(a_payload_that_finds_no_block_is_counted_and_goes_over_the_connection)
{
    find_no_block(LS_DELIVERY_BLOCK);
    find_no_block(LS_DELIVERY_RELIABLE);
}

/* ---- windows ----------------------------------------------------------- */

static void fill_the_window(enum ls_delivery delivery)
{
    struct pair_of *p = pair_start(2, "tcp", 64 * MIB);
    p->delivery = delivery;
    const int n = emit_until_shared(p, 1);
    p->waits = true;
    int under_way = 0;
    uint8_t *const data = calloc(1, MIB);
    assert_non_null(data);
    fill(data, MIB, 1);
    for (; under_way < 100; under_way++) {
        const struct ls_emission in = {
            .event = "x", .data = data, .size = MIB, .timeout_ms = LS_NO_WAIT};
        if (ls_emit_with(p->world.at[0].node, &in) != LS_OK)
            break;
    }
    assert_in_range(under_way, 6, 8); /* of a window of 8 MiB */
    counter_add(&p->tokens, n + under_way);
    assert_reaches(&p->heard, n + under_way);
    free(data);
    pair_end(p);
}

TEST(what_lies_in_blocks_counts_in_the_window)
{
    fill_the_window(LS_DELIVERY_BLOCK);
    fill_the_window(LS_DELIVERY_RELIABLE);
}

/* ---- lies -------------------------------------------------------------- */

enum lie {
    SESSION,
    NUMBER,
    HUGE_NUMBER,
    SLOT,
    ROWS,
    BEYOND,
    WRAPS,
    EMPTY,
    LONG,
    SHORT,
    TOPIC,
    CHUNK,
    N_LIES
};

static void push_lie(ls_node *node, struct peer *to, const uint8_t *handle,
                     size_t size)
{
    struct payload *payload;
    assert_ok(payload_create(&payload, handle, size, NULL, NULL));
    const struct parcel parcel = {.payload = payload,
                                  .size = size,
                                  .weight = 64 * KIB,
                                  .of = WIRE_KIND_EVENT,
                                  .how = &deliveries[LS_DELIVERY_RELIABLE],
                                  .flags = WIRE_FLAG_BLOCK,
                                  .sequence = 0,
                                  .entry = events_find(node, "x", 1)};
    assert_ok(streams_push(node, to, &parcel));
    payload_drop(payload);
}

/* Node 1 names a block that is none, in one of many ways. */
static void lie(const struct pair_of *p, enum lie how)
{
    uint8_t frame[WIRE_HEAD_MAX + BLOCK_HANDLE_BYTES];
    uint8_t handle[BLOCK_HANDLE_BYTES];
    ls_node *const node = p->world.at[0].node;
    transport_lock(node->transport);
    struct peer *const to = peer_of(node->world.at[0]);
    struct block_pair *const pair = to->blocks;
    struct block_draft draft = {.slot = 5, .offset = blocks_begin()};
    uint64_t number = pair->last + 1, session = pair->answer.session;
    size_t size = 64 * KIB;
    pair->answer.session += how == SESSION ? 1 : 0;
    number = how == NUMBER ? pair->last : number;
    number = how == HUGE_NUMBER ? UINT64_MAX / 2 + 1 : number;
    draft.slot = how == SLOT ? BLOCK_SLOTS : draft.slot;
    draft.offset -= how == ROWS ? 8 : 0;
    draft.offset = how == BEYOND ? blocks_begin() + p->shared : draft.offset;
    draft.offset = how == WRAPS ? SIZE_MAX - 100 : draft.offset;
    size = how == EMPTY ? 0 : how == LONG ? p->shared + 1 : size;
    blocks_handle(to, &draft, number, size, handle);
    pair->answer.session = session;
    if (p->delivery == LS_DELIVERY_RELIABLE) {
        push_lie(node, to, handle, sizeof handle - (how == SHORT ? 1 : 0));
        transport_unlock(node->transport);
        return;
    }
    struct wire_header header =
        bus_header(node, how == CHUNK ? WIRE_KIND_CHUNK : WIRE_KIND_EVENT);
    header.flags = WIRE_FLAG_BLOCK;
    header.total = BLOCK_HANDLE_BYTES + 1;
    header.name = "x";
    header.name_size = 1;
    header.data = frame;
    header.size = sizeof handle - (how == SHORT ? 1 : 0);
    size_t n = how == TOPIC ? wire_topic_event(frame, "x")
                            : wire_topic_inbox(frame, 2);
    n += wire_header_write(frame + n, &header);
    flow_carry(to, false); /* what is emitted next goes behind it */
    assert_ok(
        transport_publish(node->transport, frame, n, handle, header.size));
    transport_unlock(node->transport);
}

TEST(what_names_no_block_is_refused_and_counted)
{
    struct pair_of *p = pair_start(2, "tcp", MIB);
    int n = emit_until_shared(p, 1);
    for (int how = 0; how < N_LIES; how++) {
        lie(p, (enum lie)how);
        emit(p, 64 * KIB, (uint8_t)++n); /* behind it */
        assert_reaches(&p->heard, n);
        if (stats_of(p, 1).refused != (uint64_t)how + 1)
            fail_msg("lie %d: %llu refused", how,
                     (unsigned long long)stats_of(p, 1).refused);
    }
    assert_int_equal(stats_of(p, 0).blocks, N_LIES + 1);
    assert_int_equal(counter_get(&p->heard), n);
    pair_end(p);
}

TEST(nor_in_a_stream)
{
    struct pair_of *p = pair_start(2, "tcp", MIB);
    uint64_t n_lies = 0;
    p->delivery = LS_DELIVERY_RELIABLE;
    int n = emit_until_shared(p, 1);
    for (int how = 0; how < TOPIC; how++) {
        if (how == NUMBER) /* comes by itself only once */
            continue;
        lie(p, (enum lie)how);
        emit(p, 64 * KIB, (uint8_t)++n);
        assert_reaches(&p->heard, n);
        assert_int_equal(stats_of(p, 1).refused, ++n_lies);
        assert_int_equal(stats_of(p, 1).missed, n_lies);
    }
    pair_end(p);
}

static int touch(void *self, const struct ls_event *event)
{
    const uint8_t *const data = event->data;
    volatile uint8_t last = data[event->size - 1];
    (void)last;
    counter_add(self, data[0] == 0 ? 1 : 2);
    return LS_OK;
}

/* A handle in which a few bytes are others. */
static void send_mutant(ls_node *node, struct ls_rng *rng)
{
    uint8_t frame[WIRE_HEAD_MAX], handle[BLOCK_HANDLE_BYTES];
    transport_lock(node->transport);
    struct peer *const to = peer_of(node->world.at[0]);
    const struct block_draft draft = {.slot = 100, .offset = blocks_begin()};
    blocks_handle(to, &draft, to->blocks->last + 1, 64 * KIB, handle);
    for (uint64_t n = 1 + ls_rng_below(rng, 3); n > 0; n--)
        handle[ls_rng_below(rng, sizeof handle)] = (uint8_t)ls_rng_next(rng);
    struct wire_header header = bus_header(node, WIRE_KIND_EVENT);
    header.flags = WIRE_FLAG_BLOCK;
    header.name = "mutant";
    header.name_size = strlen(header.name);
    header.data = frame;
    header.size = sizeof handle;
    size_t n = wire_topic_inbox(frame, 2);
    n += wire_header_write(frame + n, &header);
    flow_carry(to, false);
    assert_ok(
        transport_publish(node->transport, frame, n, handle, sizeof handle));
    transport_unlock(node->transport);
}

TEST(whatever_a_handle_says_nothing_is_read_beyond_what_is_shared)
{
    struct pair_of *p = pair_start(2, "tcp", MIB);
    struct counter known, after, mutants;
    struct ls_rng rng;
    ls_rng_seed(&rng, 1, 3);
    counter_init(&known);
    counter_init(&after);
    counter_init(&mutants);
    assert_ok(ls_on(p->world.at[1].node, "mutant", touch, &mutants));
    assert_ok(ls_on(p->world.at[1].node, "known", count, &known));
    assert_ok(ls_on(p->world.at[1].node, "after", count, &after));
    (void)emit_until_shared(p, 1);
    emit_until_heard(p->world.at[0].node, "known", &known);
    for (int i = 0; i < 1000; i++)
        send_mutant(p->world.at[0].node, &rng);
    /* By another name: of the first more may be under way. */
    emit_until_heard(p->world.at[0].node, "after", &after);
    assert_in_range(stats_of(p, 1).refused, 900, 1000);
    assert_ok(ls_off(p->world.at[1].node, "after", count, &after));
    assert_ok(ls_off(p->world.at[1].node, "known", count, &known));
    assert_ok(ls_off(p->world.at[1].node, "mutant", touch, &mutants));
    counter_fini(&after);
    counter_fini(&known);
    counter_fini(&mutants);
    pair_end(p);
}

/* What the framework parses itself. */
static int check_copy(void *self, const struct ls_event *event)
{
    struct pair_of *const p = self;
    const ls_node *const node = p->world.at[1].node;
    const struct block_pair *const pair = peer_of(node->world.at[0])->blocks;
    const size_t at = (size_t)((const char *)event->data -
                               (const char *)ls_memory_data(pair->memory));
    if (at < ls_memory_size(pair->memory))
        counter_add(&p->bad, 1);
    return check_event(self, event);
}

TEST(what_the_framework_reads_is_copied_first)
{
    struct pair_of *p = pair_start(2, "tcp", MIB);
    int n = emit_until_shared(p, 1);
    struct counter known;
    counter_init(&known);
    assert_ok(ls_on(p->world.at[1].node, "ls.test", check_copy, p));
    assert_ok(ls_on(p->world.at[1].node, "known", count, &known));
    emit_until_heard(p->world.at[0].node, "known", &known);
    const uint64_t before = stats_of(p, 0).blocks;
    uint8_t *const data = malloc(64 * KIB);
    assert_non_null(data);
    fill(data, 64 * KIB, 3);
    assert_ok(ls_emit(p->world.at[0].node, "ls.test", data, 64 * KIB));
    assert_reaches(&p->heard, ++n);
    assert_int_equal(stats_of(p, 0).blocks, before + 1);
    free(data);
    assert_ok(ls_off(p->world.at[1].node, "known", count, &known));
    counter_fini(&known);
    pair_end(p);
}
