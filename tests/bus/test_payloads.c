/* Payloads of events, and bodies of calls, that are written where they are
 * read: nothing is copied, they stay for as long as anybody has them, and what
 * cannot be shared works the same. */
#include "lockstep/payload.h"

#include <sys/wait.h>

#include "call_blocks_fixture.h"
#include "test.h"

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

/* ---- bytes ------------------------------------------------------------- */

static void draw(void *data, size_t size, unsigned char color)
{
    memset(data, color, size);
}

static bool is_drawn(const void *in, size_t size, unsigned char color)
{
    const unsigned char *const data = in;
    size_t at = 0;
    while (at < size && data[at] == color)
        at++;
    return at == size;
}

/* ---- worlds ------------------------------------------------------------ */

/* What came to the others. */
static struct {
    size_t shared[3];
    struct counter heard, bad, tokens;
    bool waits;          /* the handler, for a token each time */
    unsigned char color; /* of what comes */
    const void *data[3]; /* where it lay, by node */
    struct ls_body body; /* taken by the latest call */
} here;

static int on_event(void *self, const struct ls_event *event)
{
    const struct caller_node *const at = self;
    if (here.waits &&
        !counter_reaches(&here.tokens, counter_get(&here.heard) + 1))
        return LS_ETIMEDOUT;
    here.data[at->id - 1] = event->data;
    counter_add(&here.bad,
                is_drawn(event->data, event->size, here.color) ? 0 : 1);
    counter_add(&here.heard, 1);
    return LS_OK;
}

static int on_take(void *self, ls_request *request)
{
    (void)self;
    ls_request_take_body(request, &here.body);
    return ls_request_complete(&request, NULL, 0);
}

static void tune(struct ls_node_options *options, size_t index)
{
    options->shared_bytes = here.shared[index];
    options->silence_ms = 20000;
}

static void prepare(struct caller_node *at)
{
    assert_ok(ls_rpc_serve(at->calls, "take", LS_CALL_ANYONE, on_take, at));
    if (at->id != 1)
        assert_ok(ls_on(at->node, "x", on_event, at));
}

/* With what they share: here.shared. */
static struct call_world *begin(size_t n, const char *over,
                                enum ls_topology topology)
{
    here.waits = false;
    here.color = 1;
    counter_init(&here.heard);
    counter_init(&here.bad);
    counter_init(&here.tokens);
    return call_world_start(n, NULL, prepare,
                            &(struct world_plan){.transport = over,
                                                 .topology = topology,
                                                 .tune = tune});
}

static struct call_world *start(size_t n, const char *over, size_t shared,
                                size_t others, enum ls_topology topology)
{
    here.shared[0] = shared;
    here.shared[1] = here.shared[2] = others;
    return begin(n, over, topology);
}

static void end(struct call_world *w)
{
    assert_int_equal(counter_get(&here.bad), 0);
    call_world_end(w);
    counter_fini(&here.heard);
    counter_fini(&here.bad);
    counter_fini(&here.tokens);
}

static void *made(const struct caller_node *at, size_t size)
{
    void *data;
    assert_ok(ls_payload_alloc(&data, at->node, size));
    assert_int_equal((uintptr_t)data % 64, 0);
    draw(data, size, here.color);
    return data;
}

static struct ls_emission event_of(void *data, size_t size)
{
    return (struct ls_emission){
        .event = "x", .data = data, .size = size, .release = ls_payload_free};
}

static void emit(const struct caller_node *at, void *data, size_t size)
{
    const struct ls_emission in = event_of(data, size);
    assert_ok(ls_emit_with(at->node, &in));
}

static void ask_with(const struct caller_node *at, uint32_t to,
                     struct ls_body body)
{
    assert_ok(ls_call_ask(
        at->calls,
        &(struct ls_call_options){
            .to = to, .name = "take", .body = body, .timeout_ms = LONG_MS},
        NULL, NULL));
}

/* Until payloads go through blocks; then none is lent. */
static struct call_world *sharing(size_t n, size_t bytes)
{
    struct call_world *w = start(n, "tcp", bytes, bytes, LS_TOPOLOGY_MESH);
    const int64_t deadline = long_deadline();
    while (node_stats(&w->at[0]).blocks == 0) {
        const int heard = counter_get(&here.heard);
        assert_true(ls_now(ls_runtime_threads()) < deadline);
        emit(&w->at[0], made(&w->at[0], 64 * KIB), 64 * KIB);
        assert_reaches(&here.heard, heard + (int)n - 1);
    }
    await_blocks(&w->at[0], 0);
    return w;
}

/* Where it lies in the memory of node 1; SIZE_MAX: it does not. */
static size_t place_in(const ls_memory *memory, const void *data)
{
    const size_t place =
        (size_t)((uintptr_t)data - (uintptr_t)ls_memory_data(memory));
    return place < ls_memory_size(memory) ? place : SIZE_MAX;
}

static size_t place_of(const struct call_world *w, const void *data)
{
    return place_in(w->at[0].node->blocks->memory, data);
}

static size_t place_at(const struct call_world *w, uint32_t id,
                       const void *data)
{
    ls_node *const node = w->at[id - 1].node;
    transport_lock(node->transport);
    const size_t place = place_in(world_find(node, 1)->blocks->memory, data);
    transport_unlock(node->transport);
    return place;
}

static bool is_ordinary(const struct call_world *w, const void *data)
{
    return w->at[0].node->blocks == NULL ||
           w->at[0].node->blocks->memory == NULL ||
           place_of(w, data) == SIZE_MAX;
}

/* ---- what is read where it was written --------------------------------- */

static void events_are_read_in_place(enum ls_delivery delivery)
{
    struct call_world *w = sharing(3, 8 * MIB);
    const struct caller_node *const at = &w->at[0];
    const struct ls_node_stats before = node_stats(at);
    const int heard = counter_get(&here.heard);
    here.waits = true;
    void *const data = made(at, MIB);
    const size_t place = place_of(w, data);
    assert_int_not_equal(place, SIZE_MAX);
    assert_int_equal(node_stats(at).blocks_held, 1);
    struct ls_emission in = event_of(data, MIB);
    in.delivery = delivery;
    assert_ok(ls_emit_with(at->node, &in));
    assert_int_equal(node_stats(at).blocks_held, 0);
    assert_int_equal(n_blocks(at), 1); /* for both; and no copy */
    counter_add(&here.tokens, heard + 2);
    assert_reaches(&here.heard, heard + 2);
    assert_int_equal(place_at(w, 2, here.data[1]), place);
    assert_int_equal(place_at(w, 3, here.data[2]), place);
    assert_int_equal(node_stats(at).blocks, before.blocks + 1);
    assert_int_equal(node_stats(at).blocks_full, 0);
    await_blocks(at, 0);
    end(w);
}

TEST(an_event_is_read_where_it_was_written_by_all)
{
    events_are_read_in_place(LS_DELIVERY_BLOCK);
    events_are_read_in_place(LS_DELIVERY_RELIABLE);
}

TEST(the_body_of_a_call_too_and_that_of_an_answer)
{
    struct call_world *w = sharing(2, 8 * MIB);
    struct caller_node *const at = &w->at[0];
    void *data = made(at, MIB);
    size_t place = place_of(w, data);
    ask_with(at, 2, (struct ls_body){data, MIB, ls_payload_free, NULL});
    assert_int_equal(place_at(w, 2, here.body.data), place);
    assert_true(is_drawn(here.body.data, MIB, 1));
    assert_int_equal(n_blocks(at), 1);
    ls_body_release(&here.body);
    await_blocks(at, 0);

    ls_call *call = call_start(&w->at[1], 1, "hold", LONG_MS);
    assert_reaches(&at->held, 1);
    data = made(at, MIB);
    place = place_of(w, data);
    assert_ok(ls_request_complete_with(
        &at->requests[0], NULL, 0,
        &(struct ls_body){data, MIB, ls_payload_free, NULL}));
    assert_ends(call, LS_CALL_COMPLETED);
    assert_int_equal(place_at(w, 2, ls_call_result(call)->body), place);
    assert_true(is_drawn(ls_call_result(call)->body, MIB, 1));
    ls_call_destroy(&call);
    await_blocks(at, 0);
    end(w);
}

TEST(it_is_sent_as_often_as_one_likes_also_in_part_and_freed_at_any_time)
{
    struct call_world *w = sharing(2, 8 * MIB);
    const struct caller_node *const at = &w->at[0];
    const int heard = counter_get(&here.heard);
    char *const data = made(at, MIB);
    const size_t place = place_of(w, data);
    here.waits = true;
    emit(at, ls_payload_share(data), MIB);
    struct ls_emission part = event_of(data + 77, 100 * KIB);
    part.hint = ls_payload_share(data);
    assert_ok(ls_emit_with(at->node, &part));
    ask_with(at, 1, (struct ls_body){data, MIB, ls_payload_free, NULL});
    assert_ptr_equal(here.body.data, data); /* at the node itself */
    assert_int_equal(node_stats(at).blocks_held, 1);
    assert_int_equal(n_blocks(at), 3);
    ls_body_release(&here.body);
    assert_int_equal(node_stats(at).blocks_held, 0);
    assert_int_equal(n_blocks(at), 2);
    counter_add(&here.tokens, heard + 1);
    assert_reaches(&here.heard, heard + 1);
    assert_int_equal(place_at(w, 2, here.data[1]), place);
    counter_add(&here.tokens, 1);
    assert_reaches(&here.heard, heard + 2);
    assert_int_equal(place_at(w, 2, here.data[1]), place + 77);
    await_blocks(at, 0);
    end(w);
}

static void free_later(void *data, void *hint)
{
    struct counter *const freed = hint;
    (void)data;
    counter_add(freed, 1);
}

TEST(who_sends_it_may_release_it_by_a_function_of_its_own)
{
    struct call_world *w = sharing(2, 8 * MIB);
    const struct caller_node *const at = &w->at[0];
    struct counter freed;
    void *const data = made(at, MIB);
    const size_t place = place_of(w, data);
    counter_init(&freed);
    for (int i = 1; i <= 2; i++) {
        ask_with(at, 2, (struct ls_body){data, MIB, free_later, &freed});
        assert_int_equal(counter_get(&freed), i);
        assert_int_equal(place_at(w, 2, here.body.data), place);
        ls_body_release(&here.body);
    }
    ls_payload_free(data, NULL);
    await_blocks(at, 0);
    counter_fini(&freed);
    end(w);
}

TEST(what_is_not_given_away_is_copied_and_may_be_written_again)
{
    struct call_world *w = sharing(2, 8 * MIB);
    const struct caller_node *const at = &w->at[0];
    const int heard = counter_get(&here.heard);
    void *const data = made(at, MIB);
    here.waits = true;
    ask_with(at, 2, (struct ls_body){.data = data, .size = MIB});
    assert_ok(ls_emit(at->node, "x", data, MIB));
    draw(data, MIB, 2);
    assert_int_equal(n_blocks(at), 3);
    counter_add(&here.tokens, heard + 1);
    assert_reaches(&here.heard, heard + 1);
    assert_int_not_equal(place_at(w, 2, here.data[1]), place_of(w, data));
    assert_true(is_drawn(here.body.data, MIB, 1));
    ls_body_release(&here.body);
    ls_payload_free(data, NULL);
    await_blocks(at, 0);
    end(w);
}

TEST(what_is_freed_unsent_makes_room)
{
    struct call_world *w = sharing(2, 2 * MIB);
    const struct caller_node *const at = &w->at[0];
    for (int i = 0; i < 20; i++) {
        void *const data = made(at, 900 * KIB); /* there is room for one */
        assert_false(is_ordinary(w, data));
        ls_payload_free(data, NULL);
    }
    assert_null(ls_payload_share(NULL));
    ls_payload_free(NULL, NULL);
    assert_int_equal(node_stats(at).blocks_full, 0);
    assert_int_equal(node_stats(at).blocks_held, 0);
    end(w);
}

/* ---- what is ordinary memory ------------------------------------------- */

static void assert_sent_well(const struct call_world *w, void *data,
                             size_t size)
{
    const int heard = counter_get(&here.heard);
    emit(&w->at[0], ls_payload_share(data), size);
    ask_with(&w->at[0], 2, (struct ls_body){data, size, ls_payload_free, NULL});
    assert_reaches(&here.heard, heard + (int)w->n - 1);
    assert_true(is_drawn(here.body.data, size, here.color));
    ls_body_release(&here.body);
}

static void all_is_ordinary(struct call_world *w)
{
    for (int i = 0; i < 20; i++) {
        void *const data = made(&w->at[0], 64 * KIB);
        assert_true(is_ordinary(w, data));
        assert_sent_well(w, data, 64 * KIB);
    }
    assert_int_equal(node_stats(&w->at[0]).blocks, 0);
    assert_int_equal(node_stats(&w->at[0]).blocks_held, 0);
    assert_int_equal(node_stats(&w->at[0]).blocks_full, 0);
    end(w);
}

TEST(where_nothing_is_shared_it_is_ordinary_memory)
{
    all_is_ordinary(start(2, "tcp", 0, MIB, LS_TOPOLOGY_MESH));
    all_is_ordinary(start(2, "tcp", MIB, 0, LS_TOPOLOGY_MESH));
    all_is_ordinary(start(2, "inproc", MIB, MIB, LS_TOPOLOGY_MESH));
    all_is_ordinary(start(3, "tcp", MIB, MIB, LS_TOPOLOGY_STAR));
}

TEST(so_it_is_when_it_is_short_or_there_is_no_room)
{
    struct call_world *w = sharing(2, 512 * KIB);
    const struct caller_node *const at = &w->at[0];
    void *data = made(at, 64 * KIB - 1);
    assert_true(is_ordinary(w, data));
    assert_sent_well(w, data, 64 * KIB - 1);
    data = made(at, 0);
    ls_payload_free(data, NULL);
    assert_int_equal(node_stats(at).blocks_full, 0);
    void *const first = made(at, 200 * KIB); /* 256 KiB are all there is */
    assert_false(is_ordinary(w, first));
    data = made(at, 64 * KIB);
    assert_true(is_ordinary(w, data));
    assert_int_equal(node_stats(at).blocks_full, 1);
    const uint64_t before = node_stats(at).blocks;
    assert_sent_well(w, data, 64 * KIB); /* the event found a block */
    assert_int_equal(node_stats(at).blocks, before + 1);
    assert_int_equal(node_stats(at).blocks_full, 2);
    assert_sent_well(w, first, 200 * KIB);
    await_blocks(at, 0);
    end(w);
}

TEST(there_are_so_many_at_a_time_and_no_more)
{
    struct call_world *w = sharing(2, 16 * MIB);
    const struct caller_node *const at = &w->at[0];
    void *all[BLOCK_HELD];
    for (size_t i = 0; i < BLOCK_HELD; i++) {
        all[i] = made(at, 64 * KIB);
        assert_false(is_ordinary(w, all[i]));
    }
    assert_int_equal(node_stats(at).blocks_held, BLOCK_HELD);
    void *const more = made(at, 64 * KIB);
    assert_true(is_ordinary(w, more));
    assert_int_equal(node_stats(at).blocks_full, 1);
    ls_payload_free(more, NULL);
    for (size_t i = 0; i < BLOCK_HELD; i++)
        ls_payload_free(all[i], NULL);
    assert_int_equal(node_stats(at).blocks_held, 0);
    end(w);
}

/* Its books say that there is more than there is. */
TEST(what_the_system_has_no_memory_for_is_ordinary)
{
    struct call_world *w = sharing(2, 512 * KIB);
    const struct caller_node *const at = &w->at[0];
    transport_lock(at->node->transport);
    at->node->blocks->pool.end += MIB;
    transport_unlock(at->node->transport);
    void *const data = made(at, 500 * KIB);
    assert_true(is_ordinary(w, data));
    assert_int_equal(node_stats(at).blocks_full, 1);
    assert_int_equal(node_stats(at).blocks_held, 0);
    ls_payload_free(data, NULL);
    end(w);
}

TEST(what_no_system_has_is_refused)
{
    struct call_world *w = sharing(2, MIB);
    void *data = w;
    assert_fails(ls_payload_alloc(&data, w->at[0].node, SIZE_MAX), LS_ENOMEM);
    assert_null(data);
    end(w);
}

/* ---- what goes over connections ---------------------------------------- */

TEST(if_not_all_listeners_share_it_goes_to_all_over_their_connections)
{
    here.shared[0] = here.shared[1] = 8 * MIB;
    here.shared[2] = 0;
    struct call_world *w = begin(3, "tcp", LS_TOPOLOGY_MESH);
    const struct caller_node *const at = &w->at[0];
    const int64_t deadline = long_deadline();
    while (node_stats(at).blocks == 0) {
        assert_true(ls_now(ls_runtime_threads()) < deadline);
        ask_with(at, 2,
                 (struct ls_body){made(at, MIB), MIB, ls_payload_free, NULL});
        ls_body_release(&here.body);
    }
    await_blocks(at, 0);
    const uint64_t before = node_stats(at).blocks;
    void *const data = made(at, 3 * MIB);
    assert_false(is_ordinary(w, data));
    emit(at, ls_payload_share(data), 3 * MIB);
    assert_reaches(&here.heard, 2);
    assert_int_equal(node_stats(at).blocks, before);
    ask_with(at, 3,
             (struct ls_body){ls_payload_share(data), 3 * MIB, ls_payload_free,
                              NULL});
    assert_true(is_drawn(here.body.data, 3 * MIB, 1));
    ls_body_release(&here.body);
    assert_int_equal(node_stats(at).blocks, before);
    ls_payload_free(data, NULL);
    await_blocks(at, 0);
    end(w);
}

/* ---- ends -------------------------------------------------------------- */

static void destroy_node(struct call_world *w, size_t index)
{
    ls_rpc_close(&w->at[index].calls);
    assert_ok(ls_node_destroy(&w->world.at[index].node));
}

TEST(what_is_held_outlives_its_node)
{
    struct call_world *w = sharing(2, 8 * MIB);
    const struct caller_node *const at = &w->at[0];
    void *const sent = made(at, MIB), *const unsent = made(at, MIB);
    ask_with(
        at, 2,
        (struct ls_body){ls_payload_share(sent), MIB, ls_payload_free, NULL});
    assert_ok(ls_node_stop(at->node, LS_OK));
    const struct ls_emission in = event_of(ls_payload_share(sent), MIB);
    assert_fails(ls_emit_with(at->node, &in), LS_ECLOSED);
    void *const late = made(at, MIB);
    ls_payload_free(late, NULL);
    destroy_node(w, 0);
    draw(unsent, MIB, 2);
    assert_true(is_drawn(sent, MIB, 1));
    assert_true(is_drawn(here.body.data, MIB, 1));
    ls_payload_free(unsent, NULL);
    ls_payload_free(sent, NULL);
    assert_true(is_drawn(here.body.data, MIB, 1));
    ls_body_release(&here.body);
    end(w);
}

TEST(a_send_that_fails_frees_it)
{
    struct call_world *w = sharing(2, 8 * MIB);
    const struct caller_node *const at = &w->at[0];
    struct ls_emission in = event_of(made(at, MIB), MIB);
    ls_call *call = NULL;
    in.event = "not a name";
    assert_fails(ls_emit_with(at->node, &in), LS_EINVAL);
    const struct ls_body body = {made(at, MIB), MIB, ls_payload_free, NULL};
    assert_fails(ls_call_start(&call, at->calls,
                               &(struct ls_call_options){
                                   .to = 9, .name = "take", .body = body}),
                 LS_ENOENT);
    await_blocks(at, 0);
    end(w);
}

TEST(a_reader_that_goes_away_gives_it_back)
{
    struct call_world *w = sharing(3, 8 * MIB);
    const struct caller_node *const at = &w->at[0];
    const int heard = counter_get(&here.heard);
    here.waits = true;
    emit(at, made(at, MIB), MIB);
    assert_int_equal(n_blocks(at), 1);
    counter_add(&here.tokens, heard + 2);
    destroy_node(w, 1);
    await_blocks(at, 0);
    end(w);
}

TEST(in_a_forked_child_it_is_not_freed)
{
    struct call_world *w = sharing(2, 8 * MIB);
    void *const data = made(&w->at[0], MIB);
    int status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ls_payload_free(ls_payload_share(data), NULL);
        ls_payload_free(data, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(node_stats(&w->at[0]).blocks_held, 1);
    emit(&w->at[0], ls_payload_share(data), MIB);
    ls_payload_free(data, NULL);
    await_blocks(&w->at[0], 0);
    end(w);
}
