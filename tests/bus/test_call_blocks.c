/* Bodies of calls between nodes of one host, through shared memory: they are
 * what was given for as long as they are kept, whatever becomes of the nodes;
 * every block comes back; and what can not go so goes over the connection. */
#include <sched.h>
#include <sys/wait.h>

#include "call_blocks_fixture.h"
#include "call_wire.h"
#include "test.h"

#define KIB    ((size_t)1024)
#define MIB    (KIB * KIB)
#define STRIDE 61

/* ---- bodies ------------------------------------------------------------ */

static unsigned char byte_at(size_t at, size_t size)
{
    return (unsigned char)(at * 31 + (at >> 12) + size);
}

static struct ls_body made(size_t size)
{
    unsigned char *data = calloc(1, size);
    assert_non_null(data);
    for (size_t at = 0; at < size; at += STRIDE)
        data[at] = byte_at(at, size);
    return (struct ls_body){.data = data, .size = size};
}

static bool is_made(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    size_t at = 0;
    while (at < size && bytes[at] == byte_at(at, size))
        at += STRIDE;
    return at >= size;
}

enum { KEPT = 8 };
static struct ls_body kept[KEPT]; /* by serve_keep */
static size_t n_kept;

static void let_go(void)
{
    while (n_kept != 0)
        ls_body_release(&kept[--n_kept]);
}

static int serve_keep(void *self, ls_request *request)
{
    (void)self;
    ls_request_take_body(request, &kept[n_kept]);
    const bool right = is_made(kept[n_kept].data, kept[n_kept].size);
    n_kept++;
    return ls_request_complete(&request, right ? "y" : "n", 1);
}

static int serve_mirror(void *self, ls_request *request)
{
    struct ls_body body;
    (void)self;
    ls_request_take_body(request, &body);
    return is_made(body.data, body.size)
               ? ls_request_complete_with(&request, NULL, 0, &body)
               : ls_error(LS_EPROTO, "other bytes");
}

/* ---- worlds ------------------------------------------------------------ */

static struct {
    size_t shared[3];
    struct counter heard;
} plan;

static void tune(struct ls_node_options *options, size_t index)
{
    options->shared_bytes = plan.shared[index];
    options->silence_ms = 20000;
}

static void prepare(struct caller_node *at)
{
    assert_ok(
        ls_rpc_serve(at->calls, "mirror", LS_CALL_ANYONE, serve_mirror, at));
    assert_ok(ls_rpc_serve(at->calls, "keep", LS_CALL_ANYONE, serve_keep, at));
    assert_ok(ls_on(at->node, "x", count, &plan.heard));
}

static struct call_world *start(size_t n, const char *over, size_t shared,
                                size_t others, enum ls_topology topology)
{
    plan.shared[0] = shared;
    plan.shared[1] = plan.shared[2] = others;
    counter_init(&plan.heard);
    return call_world_start(n, NULL, prepare,
                            &(struct world_plan){.transport = over,
                                                 .topology = topology,
                                                 .tune = tune});
}

static void end(struct call_world *w)
{
    call_world_end(w);
    counter_fini(&plan.heard);
}

static ls_call *ask_with(struct caller_node *at, uint32_t to, const char *name,
                         struct ls_body body)
{
    const void *const data = body.data;
    ls_call *call = NULL;
    assert_ok(ls_call_start(
        &call, at->calls,
        &(struct ls_call_options){
            .to = to, .name = name, .body = body, .timeout_ms = LONG_MS}));
    if (body.release == NULL)
        free((void *)(uintptr_t)data);
    return call;
}

static void assert_mirrored(struct caller_node *at, uint32_t to, size_t size)
{
    ls_call *call = ask_with(at, to, "mirror", made(size));
    assert_ends(call, LS_CALL_COMPLETED);
    assert_int_equal(ls_call_result(call)->body_size, size);
    assert_true(is_made(ls_call_result(call)->body, size));
    ls_call_destroy(&call);
}

static void keep_one(struct caller_node *at, size_t size)
{
    ls_call *call = ask_with(at, 2, "keep", made(size));
    assert_ends(call, LS_CALL_COMPLETED);
    assert_memory_equal(ls_call_result(call)->data, "y", 1);
    ls_call_destroy(&call);
}

/* Until bodies go through blocks both ways; then none is lent. */
static void become_pairs(struct call_world *w)
{
    const int64_t deadline = long_deadline();
    for (size_t i = 1; i < w->n; i++) {
        const uint64_t asked = node_stats(&w->at[0]).blocks;
        const uint64_t answered = node_stats(&w->at[i]).blocks;
        while (node_stats(&w->at[0]).blocks == asked ||
               node_stats(&w->at[i]).blocks == answered) {
            assert_true(ls_now(ls_runtime_threads()) < deadline);
            assert_mirrored(&w->at[0], w->at[i].id, 64 * KIB);
        }
    }
    for (size_t i = 0; i < w->n; i++)
        await_blocks(&w->at[i], 0);
}

static struct call_world *sharing(size_t n, size_t bytes)
{
    struct call_world *w = start(n, "tcp", bytes, bytes, LS_TOPOLOGY_MESH);
    become_pairs(w);
    return w;
}

/* Whether it lies in what this node has of the memory of the other. */
static bool is_lent(const struct caller_node *at, const void *data)
{
    const struct block_pair *const pair =
        peer_of(at->node->world.at[0])->blocks;
    const size_t place = (size_t)((const char *)data -
                                  (const char *)ls_memory_data(pair->memory));
    return place < ls_memory_size(pair->memory);
}

/* ---- what goes so ------------------------------------------------------ */

TEST(bodies_between_nodes_of_a_host_go_through_shared_memory)
{
    static const size_t sizes[] = {64 * KIB, 64 * KIB + 1, MIB, 3 * MIB + 17,
                                   20 * MIB};
    struct call_world *w = sharing(2, 64 * MIB);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint64_t asks = node_stats(&w->at[0]).blocks;
        const uint64_t answers = node_stats(&w->at[1]).blocks;
        const uint64_t sent = node_stats(&w->at[0]).sent_bytes;
        assert_mirrored(&w->at[0], 2, sizes[i]);
        assert_int_equal(node_stats(&w->at[0]).blocks, asks + 1);
        assert_int_equal(node_stats(&w->at[1]).blocks, answers + 1);
        assert_true(node_stats(&w->at[0]).sent_bytes - sent >= sizes[i]);
    }
    const struct ls_rpc_stats stats = stats_of(&w->at[0]);
    assert_int_equal(stats.stale + stats.malformed + stats.dropped, 0);
    assert_int_equal(node_stats(&w->at[1]).refused, 0);
    end(w);
}

TEST(they_are_read_where_their_sender_has_put_them)
{
    struct call_world *w = sharing(2, 8 * MIB);
    ls_call *call = ask_with(&w->at[0], 2, "mirror", made(MIB));
    assert_ends(call, LS_CALL_COMPLETED);
    assert_true(is_lent(&w->at[0], ls_call_result(call)->body));
    assert_int_equal((uintptr_t)ls_call_result(call)->body % 8, 0);
    ls_call_destroy(&call);
    keep_one(&w->at[0], MIB);
    assert_true(is_lent(&w->at[1], kept[0].data));
    assert_int_equal(n_blocks(&w->at[0]), 1);
    let_go();
    assert_int_equal(n_blocks(&w->at[0]), 0);
    end(w);
}

static struct counter released;

static void release(void *data, void *hint)
{
    (void)hint;
    free(data);
    counter_add(&released, 1);
}

TEST(what_was_given_is_released_as_soon_as_it_is_copied)
{
    struct call_world *w = sharing(2, MIB);
    struct ls_body body = made(64 * KIB);
    counter_init(&released);
    body.release = release;
    ls_call *call = ask_with(&w->at[0], 2, "hold", body);
    assert_int_equal(counter_get(&released), 1);
    assert_reaches(&w->at[1].held, 1);
    body = made(64 * KIB);
    body.release = release;
    assert_ok(ls_request_complete_with(&w->at[1].requests[0], NULL, 0, &body));
    assert_int_equal(counter_get(&released), 2);
    assert_ends(call, LS_CALL_COMPLETED);
    ls_call_destroy(&call);
    end(w);
    counter_fini(&released);
}

/* ---- what does not ----------------------------------------------------- */

static void assert_not_shared(struct call_world *w, size_t size)
{
    const uint64_t before = node_stats(&w->at[0]).blocks;
    for (int i = 0; i < 20; i++)
        assert_mirrored(&w->at[0], 2, size);
    assert_int_equal(node_stats(&w->at[0]).blocks, before);
    assert_int_equal(node_stats(&w->at[0]).blocks_full, 0);
}

TEST(short_ones_go_over_the_connection_and_those_to_the_node_itself_nowhere)
{
    struct call_world *w = sharing(2, MIB);
    assert_not_shared(w, 64 * KIB - 1);
    const uint64_t before = node_stats(&w->at[0]).blocks;
    assert_mirrored(&w->at[0], 1, 64 * KIB);
    assert_int_equal(node_stats(&w->at[0]).blocks, before);
    end(w);
}

TEST(all_do_where_nothing_is_shared)
{
    struct call_world *w = start(2, "tcp", 0, MIB, LS_TOPOLOGY_MESH);
    assert_not_shared(w, 64 * KIB);
    end(w);
    w = start(2, "tcp", MIB, 0, LS_TOPOLOGY_MESH);
    assert_not_shared(w, 64 * KIB);
    end(w);
    w = start(2, "inproc", MIB, MIB, LS_TOPOLOGY_MESH);
    assert_not_shared(w, 64 * KIB);
    end(w);
    w = start(3, "tcp", MIB, MIB, LS_TOPOLOGY_STAR);
    assert_not_shared(w, 64 * KIB);
    end(w);
}

TEST(what_finds_no_block_does_and_events_find_one_whatever_is_kept)
{
    struct call_world *w = sharing(2, 512 * KIB);
    struct caller_node *at = &w->at[0];
    const uint64_t before = node_stats(at).blocks;
    for (int i = 0; i < 4; i++) /* half of the memory */
        keep_one(at, 64 * KIB);
    assert_int_equal(node_stats(at).blocks, before + 4);
    for (int i = 0; i < 3; i++)
        keep_one(at, 64 * KIB);
    assert_int_equal(node_stats(at).blocks, before + 4);
    assert_int_equal(node_stats(at).blocks_full, 3);
    struct ls_body body = made(256 * KIB);
    assert_ok(ls_emit(at->node, "x", body.data, body.size));
    assert_reaches(&plan.heard, 2);
    free(body.data);
    assert_int_equal(node_stats(at).blocks, before + 5);
    for (size_t i = 0; i < 7; i++)
        assert_true(is_made(kept[i].data, kept[i].size));
    let_go();
    assert_mirrored(at, 2, 256 * KIB);
    assert_int_equal(node_stats(at).blocks, before + 6);
    assert_mirrored(at, 2, 256 * KIB + 1);
    assert_int_equal(node_stats(at).blocks_full, 4);
    end(w);
}

/* Its books say that there is more than there is. */
TEST(what_the_system_has_no_memory_for_does_and_is_counted)
{
    struct call_world *w = sharing(2, 512 * KIB);
    struct caller_node *at = &w->at[0];
    const uint64_t before = node_stats(at).blocks;
    transport_lock(at->node->transport);
    at->node->blocks->pool.end += MIB;
    transport_unlock(at->node->transport);
    assert_mirrored(at, 2, 256 * KIB + 1);
    assert_int_equal(node_stats(at).blocks, before);
    assert_int_equal(node_stats(at).blocks_full, 1);
    assert_int_equal(n_blocks(at), 0);
    struct ls_body body = made(512 * KIB + 1);
    assert_ok(ls_emit(at->node, "x", body.data, body.size));
    assert_reaches(&plan.heard, 2);
    free(body.data);
    assert_int_equal(node_stats(at).blocks, before);
    assert_int_equal(node_stats(at).blocks_full, 2);
    await_blocks(at, 0);
    assert_mirrored(at, 2, 256 * KIB); /* for which there is some */
    assert_int_equal(node_stats(at).blocks, before + 1);
    end(w);
}

/* ---- windows ----------------------------------------------------------- */

static size_t body_bytes(const struct caller_node *at)
{
    ls_node *const node = at->node;
    transport_lock(node->transport);
    const struct peer_streams *const streams =
        streams_of(peer_of(node->world.at[0]));
    const size_t bytes = streams->body_bytes + streams->out.data_bytes;
    transport_unlock(node->transport);
    return bytes;
}

TEST(they_count_in_the_window_and_leave_half_of_it)
{
    enum { N = 12 };
    struct call_world *w = sharing(2, 64 * MIB);
    struct caller_node *at = &w->at[0];
    ls_call *calls[N];
    const uint64_t before = node_stats(at).blocks;
    while (body_bytes(at) != 0)
        (void)sched_yield();
    transport_lock(w->at[1].node->transport); /* it reads nothing */
    for (int i = 0; i < N; i++)
        calls[i] = ask_with(at, 2, "mirror", made(MIB));
    /* Half of 8 MiB are on their way; the others lie in blocks, and wait. */
    assert_int_equal(node_stats(at).blocks, before + 4);
    assert_int_equal(n_blocks(at), N);
    struct ls_body body = made(MIB);
    assert_ok(ls_emit_with(
        at->node, &(struct ls_emission){.event = "x",
                                        .data = body.data,
                                        .size = body.size,
                                        .delivery = LS_DELIVERY_RELIABLE,
                                        .timeout_ms = LS_NO_WAIT}));
    free(body.data);
    transport_unlock(w->at[1].node->transport);
    for (int i = 0; i < N; i++) {
        assert_ends(calls[i], LS_CALL_COMPLETED);
        assert_true(is_made(ls_call_result(calls[i])->body, MIB));
        ls_call_destroy(&calls[i]);
    }
    assert_int_equal(node_stats(at).blocks, before + N + 1);
    while (body_bytes(at) != 0)
        (void)sched_yield();
    await_blocks(at, 0);
    end(w);
}

TEST(those_that_nobody_wants_any_more_leave_no_block)
{
    enum { N = 40 };
    struct call_world *w = sharing(2, 64 * MIB);
    struct caller_node *at = &w->at[0];
    ls_call *calls[N];
    for (int i = 0; i < N; i++)
        calls[i] = ask_with(at, 2, "mirror", made(400 * KIB));
    for (int i = 0; i < N; i++)
        ls_call_destroy(&calls[i]);
    await_blocks(at, 0);
    await_blocks(&w->at[1], 0);
    const struct ls_body body = made(64 * KIB);
    assert_fails(ls_call_start(&calls[0], at->calls,
                               &(struct ls_call_options){
                                   .to = 9, .name = "mirror", .body = body}),
                 LS_ENOENT);
    free(body.data);
    assert_mirrored(at, 2, 64 * KIB);
    await_blocks(at, 0);
    end(w);
}

/* ---- what is kept ------------------------------------------------------ */

static void destroy_node(struct call_world *w, size_t index)
{
    ls_rpc_close(&w->at[index].calls);
    assert_ok(ls_node_destroy(&w->world.at[index].node));
}

TEST(a_kept_body_stays_though_its_node_is_no_more_and_its_sender_goes_on)
{
    struct call_world *w = sharing(3, 2 * MIB);
    struct caller_node *at = &w->at[0];
    keep_one(at, 300 * KIB);
    destroy_node(w, 1);
    for (int i = 0; i < 30; i++) {
        assert_mirrored(at, 3, 200 * KIB);
        assert_true(is_made(kept[0].data, kept[0].size));
    }
    await_blocks(at, 1);
    let_go();
    await_blocks(at, 0);
    end(w);
}

TEST(a_kept_body_stays_though_its_sender_is_no_more)
{
    struct call_world *w = sharing(2, 2 * MIB);
    keep_one(&w->at[0], 300 * KIB);
    destroy_node(w, 0);
    assert_true(is_made(kept[0].data, kept[0].size));
    end(w);
    assert_true(is_made(kept[0].data, kept[0].size)); /* nor any node */
    let_go();
}

TEST(a_kept_body_holds_up_no_other_when_a_life_is_over)
{
    struct call_world *w = sharing(2, MIB);
    struct caller_node *at = &w->at[0];
    ls_node *const node = w->at[1].node;
    keep_one(at, 64 * KIB);
    transport_lock(node->transport);
    blocks_part(node,
                peer_of(node->world.at[0])); /* of which 1 knows nothing */
    transport_unlock(node->transport);
    ls_call *call = ask_with(at, 2, "mirror", made(64 * KIB));
    assert_ends(call, LS_CALL_START_FAILED); /* its block is not taken */
    ls_call_destroy(&call);
    await_blocks(at, 1);
    assert_true(is_made(kept[0].data, kept[0].size));
    let_go();
    await_blocks(at, 0);
    end(w);
}

TEST(a_kept_body_is_not_given_back_by_a_forked_child)
{
    struct call_world *w = sharing(2, 2 * MIB);
    int status = -1;
    keep_one(&w->at[0], 300 * KIB);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        let_go();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(n_blocks(&w->at[0]), 1);
    assert_true(is_made(kept[0].data, kept[0].size));
    let_go();
    await_blocks(&w->at[0], 0);
    end(w);
}

TEST(a_kept_body_can_be_passed_on)
{
    struct call_world *w = sharing(3, 2 * MIB);
    keep_one(&w->at[0], 300 * KIB);
    ls_call *call = ask_with(&w->at[1], 3, "mirror", kept[0]);
    n_kept = 0;
    assert_ends(call, LS_CALL_COMPLETED);
    assert_true(is_made(ls_call_result(call)->body, 300 * KIB));
    ls_call_destroy(&call);
    await_blocks(&w->at[0], 0);
    end(w);
}

TEST(what_is_to_be_kept_for_long_makes_room)
{
    struct call_world *w = sharing(2, MIB);
    keep_one(&w->at[0], 300 * KIB);
    assert_ok(ls_body_keep(&kept[0]));
    await_blocks(&w->at[0], 0);
    assert_false(is_lent(&w->at[1], kept[0].data));
    assert_true(is_made(kept[0].data, kept[0].size));
    const void *const data = kept[0].data;
    assert_ok(ls_body_keep(&kept[0])); /* nothing any more */
    assert_ptr_equal(kept[0].data, data);
    let_go();
    struct ls_body none = {.data = NULL};
    assert_ok(ls_body_keep(&none));
    assert_null(none.data);
    end(w);
}

/* ---- lies -------------------------------------------------------------- */

enum lie {
    SESSION,
    HUGE_NUMBER,
    SLOT,
    ROWS,
    BEYOND,
    WRAPS,
    EMPTY,
    LONG,
    SHORT,
    OTHER_SIZE, /* it is a block, but not of the size that was said */
    N_LIES
};

#define LIE_BYTES (64 * KIB)

/* That a body comes, or all of an answer but that. */
static void say(const struct caller_node *at, const struct caller_node *to,
                uint64_t number, bool answers)
{
    static unsigned char bytes[CALL_WIRE_MAX];
    const struct call_message message = {.kind = answers ? CALL_COMPLETED
                                                         : CALL_REQUEST,
                                         .to = ls_node_incarnation(to->node),
                                         .number = number,
                                         .left_ms = LONG_MS,
                                         .name = "mirror",
                                         .name_size = 6,
                                         .body_size = LIE_BYTES};
    assert_ok(channels_send_reliable(at->node, CALL_CHANNEL, to->id, bytes,
                                     call_wire_encode(&message, bytes)));
}

static void push_lie(ls_node *node, struct peer *to, const char *name,
                     uint64_t body, const uint8_t *handle, size_t size)
{
    struct payload *payload;
    assert_ok(payload_create(&payload, handle, size, NULL, NULL));
    struct parcel parcel = {.payload = payload,
                            .size = size,
                            .weight = LIE_BYTES,
                            .of = WIRE_KIND_CHUNK,
                            .flags = WIRE_FLAG_BLOCK,
                            .sequence = body,
                            .name = malloc(strlen(name) + 1)};
    assert_non_null(parcel.name);
    memcpy(parcel.name, name, strlen(name) + 1);
    assert_ok(streams_push(node, to, &parcel));
    payload_drop(payload);
}

/* In place of a body. */
static void lie(const struct caller_node *at, size_t to, const char *name,
                enum lie how, uint64_t body)
{
    uint8_t handle[BLOCK_HANDLE_BYTES];
    ls_node *const node = at->node;
    const size_t all = blocks_begin() + node->options.shared_bytes;
    transport_lock(node->transport);
    struct peer *const peer = world_find(node, (uint32_t)to);
    const uint64_t session = peer->blocks->answer.session;
    struct block_draft draft = {.slot = how == SLOT ? BLOCK_SLOTS : 5,
                                .offset = how == ROWS     ? blocks_begin() - 8
                                          : how == BEYOND ? all
                                          : how == WRAPS  ? SIZE_MAX - 100
                                                          : blocks_begin()};
    const size_t size = how == EMPTY        ? 0
                        : how == LONG       ? node->options.shared_bytes + 1
                        : how == OTHER_SIZE ? LIE_BYTES + 1
                                            : LIE_BYTES;
    peer->blocks->answer.session += how == SESSION ? 1 : 0;
    blocks_handle(peer, &draft,
                  how == HUGE_NUMBER ? UINT64_MAX / 2 + 1 : 1000 + body, size,
                  handle);
    peer->blocks->answer.session = session;
    push_lie(node, peer, name, body, handle,
             sizeof handle - (how == SHORT ? 1 : 0));
    transport_unlock(node->transport);
}

TEST(a_request_whose_body_is_no_block_is_refused_and_counted)
{
    struct call_world *w = sharing(2, MIB);
    const uint64_t served = stats_of(&w->at[1]).served;
    for (int how = 0; how < N_LIES; how++) {
        const uint64_t number = 100000 + (uint64_t)how;
        say(&w->at[0], &w->at[1], number, false);
        lie(&w->at[0], 2, CALL_CHANNEL, (enum lie)how,
            call_wire_body(number, false));
    }
    /* Numbers of calls grow: one that is less is not done. So ask back. */
    assert_mirrored(&w->at[1], 1, 64 * KIB);
    assert_int_equal(stats_of(&w->at[1]).malformed, N_LIES);
    assert_int_equal(stats_of(&w->at[1]).refused, N_LIES);
    assert_int_equal(stats_of(&w->at[1]).served, served);
    assert_int_equal(stats_of(&w->at[1]).open_requests, 0);
    assert_int_equal(node_stats(&w->at[1]).refused, N_LIES - 1);
    assert_mirrored(&w->at[1], 1, 64 * KIB); /* behind the refusals */
    assert_int_equal(stats_of(&w->at[0]).stale, N_LIES);
    end(w);
}

TEST(an_answer_whose_body_is_no_block_fails_the_call)
{
    struct call_world *w = sharing(2, MIB);
    struct caller_node *at = &w->at[0];
    for (int how = 0; how < N_LIES; how++) {
        ls_call *call = call_start(at, 2, "hold", LONG_MS);
        assert_reaches(&w->at[1].held, how + 1);
        const uint64_t number = ls_call_id(call);
        say(&w->at[1], at, number, true);
        lie(&w->at[1], 1, CALL_CHANNEL, (enum lie)how,
            call_wire_body(number, true));
        assert_ends(call, LS_CALL_FAILED);
        assert_has(ls_call_result(call)->text,
                   "the body of its answer breaks the format");
        assert_null(ls_call_result(call)->body);
        ls_call_destroy(&call);
        assert_reaches(&w->at[1].alarmed, how + 1); /* it is told */
        (void)ls_request_complete(&w->at[1].requests[how], NULL, 0);
    }
    assert_int_equal(stats_of(at).malformed, N_LIES);
    assert_int_equal(node_stats(at).refused, N_LIES - 1);
    assert_mirrored(at, 2, 64 * KIB); /* all goes on */
    end(w);
}

TEST(a_block_for_no_call_and_for_no_channel_is_given_back_and_counted)
{
    struct call_world *w = sharing(2, MIB);
    lie(&w->at[0], 2, CALL_CHANNEL, N_LIES, call_wire_body(100000, false));
    lie(&w->at[0], 2, "x", N_LIES, 1);
    lie(&w->at[0], 2, "ls.nobody", N_LIES, 1);
    assert_mirrored(&w->at[0], 2, 64 * KIB); /* behind them */
    assert_int_equal(stats_of(&w->at[1]).stale, 1);
    assert_int_equal(node_stats(&w->at[1]).refused, 1);
    const struct block_pair *const pair =
        peer_of(w->at[1].node->world.at[0])->blocks;
    assert_int_equal(atomic_load(&pair->holds[5].number), 0);
    end(w);
}
