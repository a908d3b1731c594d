/* Windows and policies: who waits for whom, what is dropped, what is counted;
 * payloads of every size. */
#include "base/sanitized.h"
#include "test.h"
#include "world_fixture.h"

#define WINDOW  16
#define MIB     (1024u * 1024u)
#define LONGEST (SANITIZED ? 9 * MIB : 40 * MIB)

/* Node 1 emits; node 2 is slow: its handler of "x" waits to be let on; node 3
 * is not. Only a handler that runs gives room back. */
struct slow {
    struct world world;
    ls_node *from;
    struct counter entered, tokens, done; /* at node 2 */
    struct counter heard;                 /* at node 3 */
    struct counter released;
    uint64_t bytes; /* of the last event at node 2 */
    bool whole;     /* its payload is as it was sent */
    int fourth_at;  /* which of those at node 2 was the first of node 4 */
};

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at * 31 + (at >> 13));
}

static int handle_slowly(void *self, const struct ls_event *event)
{
    struct slow *slow = self;
    const uint8_t *data = event->data;
    counter_add(&slow->entered, 1);
    if (event->origin == 4 && slow->fourth_at == 0)
        slow->fourth_at = counter_get(&slow->entered);
    slow->bytes = event->size;
    slow->whole = true;
    for (size_t i = 0; i < event->size; i++)
        slow->whole = slow->whole && data[i] == pattern(i);
    if (!counter_reaches(&slow->tokens, counter_get(&slow->entered)))
        abort();
    counter_add(&slow->done, 1);
    return LS_OK;
}

static void listen_slow(ls_node *node, size_t index, void *self)
{
    struct slow *slow = self;
    if (index == 1)
        assert_ok(ls_on(node, "x", handle_slowly, slow));
    if (index == 2)
        assert_ok(ls_on(node, "x", count, &slow->heard));
}

static void small_windows(struct ls_node_options *options, size_t index)
{
    options->window_messages = index == 1 ? WINDOW : 16384;
    options->window_bytes = (index == 1 ? 2 : 8) * MIB;
    options->role = index == 1 ? "slow" : "fast";
    options->silence_ms = 20000; /* however slow a sanitizer makes it */
}

static struct slow *slow_start(size_t n, enum ls_topology topology)
{
    struct slow *slow = calloc(1, sizeof *slow);
    assert_non_null(slow);
    counter_init(&slow->entered);
    counter_init(&slow->tokens);
    counter_init(&slow->done);
    counter_init(&slow->heard);
    counter_init(&slow->released);
    world_start(&slow->world, &(struct world_plan){.n = n,
                                                   .topology = topology,
                                                   .tune = small_windows,
                                                   .prepare = listen_slow,
                                                   .self = slow});
    slow->from = slow->world.at[0].node;
    return slow;
}

static void let_on(struct slow *slow, int n)
{
    counter_add(&slow->tokens, n);
}

static void slow_end(struct slow *slow)
{
    let_on(slow, 1000000);
    world_destroy(&slow->world);
    counter_fini(&slow->entered);
    counter_fini(&slow->tokens);
    counter_fini(&slow->done);
    counter_fini(&slow->heard);
    counter_fini(&slow->released);
    free(slow);
}

static struct ls_node_stats stats_of(ls_node *node)
{
    struct ls_node_stats stats;
    ls_node_stats(node, &stats);
    return stats;
}

static int emit_now(struct slow *slow, const void *data, size_t size)
{
    return ls_emit_with(slow->from, &(struct ls_emission){.event = "x",
                                                          .data = data,
                                                          .size = size,
                                                          .timeout_ms = -1});
}

/* Whether an emit failed because this process stood still: then what it sent
 * before is under way for so long that no more is sent after it. */
static bool is_under_way(int status)
{
    return status == LS_EAGAIN &&
           strstr(ls_error_text(), "has not arrived yet") != NULL;
}

/* Emit without waiting until there is no room; returns how many went. */
static int fill(struct slow *slow, const void *data, size_t size)
{
    const int64_t deadline = long_deadline();
    int n = 0;
    int status;
    while (((status = emit_now(slow, data, size)) == LS_OK && n < 1000000) ||
           (is_under_way(status) && ls_now(ls_runtime_threads()) < deadline)) {
        if (status == LS_OK)
            n++;
        else
            counter_await_moment(&slow->entered);
    }
    assert_int_equal(status, LS_EAGAIN);
    return n;
}

/* ---- a hub ------------------------------------------------------------- */

static void small_hub(struct ls_node_options *options, size_t index)
{
    options->window_messages = index == 0 ? WINDOW : 16384;
}

static void listen_hub(ls_node *node, size_t index, void *heard)
{
    if (index == 0)
        assert_ok(ls_on(node, "x", count, heard));
}

TEST(a_hub_holds_nothing_that_it_has_nobody_to_pass_on_to)
{
    struct world world;
    struct counter heard;
    counter_init(&heard);
    world_start(&world, &(struct world_plan){.n = 2,
                                             .topology = LS_TOPOLOGY_STAR,
                                             .tune = small_hub,
                                             .prepare = listen_hub,
                                             .self = &heard});
    for (int i = 0; i < 4 * WINDOW; i++)
        assert_ok(ls_emit(world.at[1].node, "x", NULL, 0));
    assert_reaches(&heard, 4 * WINDOW);
    world_destroy(&world);
    counter_fini(&heard);
}

/* ---- policy block ------------------------------------------------------ */

TEST(block_names_the_slow_listener)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    assert_ok(emit_now(slow, NULL, 0));
    assert_int_equal(stats_of(slow->from).blocked, 0);
    assert_int_equal(stats_of(slow->from).blocked_ns, 0);
    const int n = 1 + fill(slow, NULL, 0);
    assert_error_has("\"x\"");
    assert_error_has("node 2 (slow)");
    assert_int_equal(n, WINDOW);
    assert_fails(
        ls_emit_with(slow->from,
                     &(struct ls_emission){.event = "x", .timeout_ms = 5}),
        LS_EAGAIN); /* it waited, and nothing was sent to anyone */
    assert_reaches(&slow->heard, n);
    const struct ls_node_stats stats = stats_of(slow->from);
    assert_int_equal(stats.emitted, n);
    assert_int_equal(stats.blocked, 2);
    assert_true(stats.blocked_ns > 0);
    assert_int_equal(stats.dropped, 0);
    slow_end(slow);
}

static void emit_more(void *self)
{
    struct world_node *at = self;
    for (int i = 0; i < 3 * WINDOW && at->status == LS_OK; i++)
        at->status = ls_emit(at->node, "x", NULL, 0);
}

static void block_until_there_is_room(enum ls_topology topology, size_t from)
{
    struct slow *slow = slow_start(3, topology);
    slow->from = slow->world.at[from].node;
    world_spawn(&slow->world, from, emit_more);
    assert_reaches(&slow->entered, 1);
    for (int i = 0; i < 3 * WINDOW; i++)
        let_on(slow, 1);
    assert_ok(ls_thread_join(&slow->world.at[from].thread, LS_FOREVER));
    assert_int_equal(slow->world.at[from].status, LS_OK);
    assert_reaches(&slow->done, 3 * WINDOW);
    const struct ls_node_stats stats = stats_of(slow->world.at[1].node);
    assert_int_equal(stats.lost + stats.missed, 0);
    slow_end(slow);
}

TEST(block_waits_until_there_is_room)
{
    block_until_there_is_room(LS_TOPOLOGY_MESH, 0);
    block_until_there_is_room(LS_TOPOLOGY_STAR, 0); /* the hub emits */
    block_until_there_is_room(LS_TOPOLOGY_STAR, 2); /* through the hub */
}

TEST(a_window_holds_bytes)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    uint8_t *data = calloc(1, MIB);
    assert_int_equal(fill(slow, data, MIB / 2), 4); /* 2 MiB */
    assert_int_equal(fill(slow, NULL, 0), WINDOW - 4);
    free(data);
    slow_end(slow);
}

TEST(room_in_the_own_queue_is_waited_for_too)
{
    struct slow *slow = slow_start(2, LS_TOPOLOGY_MESH);
    slow->from = slow->world.at[1].node; /* it hears itself, slowly */
    assert_int_equal(fill(slow, NULL, 0), WINDOW);
    assert_error_has("node 2");
    assert_fails(
        ls_emit_with(slow->from,
                     &(struct ls_emission){.event = "x", .timeout_ms = 5}),
        LS_EAGAIN);
    slow_end(slow);
}

struct interrupted {
    ls_node *node;
    int status;
};

static void emit_for_ever(void *self)
{
    struct interrupted *call = self;
    while ((call->status = ls_emit(call->node, "x", NULL, 0)) == LS_OK)
        ;
}

static void assert_ended_by_stop(struct slow *slow)
{
    ls_thread *thread;
    struct interrupted call = {.node = slow->from};
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "emit",
                              emit_for_ever, &call));
    assert_reaches(&slow->entered, 1);
    let_on(slow, 1000000);
    ls_node_stop(slow->from, LS_OK);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(call.status, LS_ECLOSED);
    slow_end(slow);
}

TEST(stop_ends_an_emit_that_waits)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    assert_ended_by_stop(slow);
    slow = slow_start(2, LS_TOPOLOGY_MESH);
    slow->from = slow->world.at[1].node;
    assert_ended_by_stop(slow);
}

static void assert_interrupted(struct slow *slow, int with)
{
    struct interrupted call = {.node = slow->from};
    ls_thread *thread;
    int status;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "emit",
                              emit_for_ever, &call));
    do /* until it waited */
        ls_node_interrupt(slow->from, with);
    while ((status = ls_thread_join(&thread, ls_deadline(ls_runtime_threads(),
                                                         2))) == LS_ETIMEDOUT);
    assert_ok(status);
    assert_int_equal(call.status, with);
    ls_node_interrupt(slow->from, LS_OK);
}

TEST(interrupt_ends_an_emit_that_waits)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    assert_interrupted(slow, LS_EABORTED);
    assert_interrupted(slow, LS_ETIMEDOUT);
    slow->from = slow->world.at[1].node; /* it hears itself, slowly */
    assert_interrupted(slow, LS_EABORTED);
    slow_end(slow);
}

TEST(a_listener_that_leaves_is_not_waited_for)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    ls_thread *thread;
    struct interrupted call = {.node = slow->from};
    (void)fill(slow, NULL, 0);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "emit",
                              emit_for_ever, &call));
    let_on(slow, 1000000);
    ls_node_destroy(&slow->world.at[1].node);
    assert_reaches(&slow->heard, 2 * WINDOW); /* it goes on */
    ls_node_stop(slow->from, LS_OK);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(call.status, LS_ECLOSED);
    slow_end(slow);
}

/* ---- policy drop ------------------------------------------------------- */

TEST(drop_counts_what_each_misses)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    struct ls_node_loss loss;
    const int n_more = 10;
    assert_ok(ls_node_set_delivery(slow->from, "x", LS_DELIVERY_DROP));
    for (int i = 0; i < WINDOW + n_more; i++) {
        assert_ok(ls_emit(slow->from, "x", "data", 4));
        assert_reaches(&slow->heard, i + 1); /* this one never misses any */
    }
    assert_int_equal(stats_of(slow->from).dropped, n_more);
    assert_int_equal(stats_of(slow->from).emitted, WINDOW + n_more);
    let_on(slow, WINDOW);
    assert_reaches(&slow->done, WINDOW);
    let_on(slow, 1000);
    const struct ls_emission block = {.event = "x",
                                      .delivery = LS_DELIVERY_BLOCK};
    assert_ok(ls_emit_with(slow->from, &block));    /* waits for room */
    assert_ok(ls_emit(slow->from, "x", "data", 4)); /* shows the gap */
    assert_reaches(&slow->done, WINDOW + 2);
    assert_int_equal(stats_of(slow->world.at[1].node).missed, n_more);
    assert_int_equal(stats_of(slow->world.at[1].node).lost, 0);
    assert_int_equal(stats_of(slow->world.at[2].node).missed, 0);
    assert_int_equal(ls_node_losses(slow->world.at[1].node, &loss, 1), 1);
    assert_int_equal(loss.sender, 1);
    assert_int_equal(loss.receiver, 2);
    assert_string_equal(loss.event, "x");
    assert_int_equal(loss.missed, n_more);
    slow_end(slow);
}

TEST(drop_never_waits_to_one)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    const struct ls_emission emission = {
        .event = "x", .delivery = LS_DELIVERY_DROP, .to_one = true, .to = 2};
    for (int i = 0; i < WINDOW + 5; i++)
        assert_ok(ls_emit_with(slow->from, &emission));
    assert_int_equal(stats_of(slow->from).dropped, 5);
    slow_end(slow);
}

/* Long ones, and short ones to all and to this node alone. */
TEST(
    a_slow_listener_of_the_own_node_misses_what_is_dropped_and_the_others_do_not)
{
    static const size_t sizes[] = {4, 70000};
    enum { EMITS = WINDOW + 10 };
    uint8_t *data = calloc(1, sizes[1]);
    assert_non_null(data);
    for (size_t i = 0; i < sizes[1]; i++)
        data[i] = pattern(i);
    for (size_t i = 0; i < 2; i++) {
        struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
        ls_node *from = slow->world.at[1].node;
        const struct ls_emission here = {.event = "x",
                                         .data = data,
                                         .size = sizes[i],
                                         .scope = LS_SCOPE_LOCAL};
        struct ls_node_loss loss;
        assert_ok(ls_node_set_delivery(from, "x", LS_DELIVERY_DROP));
        for (int n = 0; n < EMITS; n++) {
            assert_ok(ls_emit(from, "x", data, sizes[i]));
            assert_reaches(&slow->heard, n + 1);
        }
        assert_ok(ls_emit_with(from, &here));
        const uint64_t dropped = stats_of(from).dropped;
        assert_true(dropped >= 10);
        assert_int_equal(stats_of(from).emitted, EMITS + 1);
        assert_int_equal(ls_node_losses(from, &loss, 1), 1);
        assert_int_equal(loss.sender, 2);
        assert_int_equal(loss.receiver, 2);
        assert_int_equal(loss.dropped, dropped);
        let_on(slow, 1000);
        assert_reaches(&slow->done, EMITS + 1 - (int)dropped);
        assert_true(slow->whole);
        slow_end(slow);
    }
    free(data);
}

/* ---- zero copy --------------------------------------------------------- */

static void count_release(void *data, void *hint)
{
    free(data);
    counter_add(hint, 1);
}

static int emit_owned(struct slow *slow, const char *event, size_t size,
                      enum ls_scope scope)
{
    uint8_t *data = malloc(size == 0 ? 1 : size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = pattern(i);
    return ls_emit_with(slow->from,
                        &(struct ls_emission){.event = event,
                                              .data = data,
                                              .size = size,
                                              .scope = scope,
                                              .timeout_ms = -1,
                                              .release = count_release,
                                              .hint = &slow->released});
}

TEST(a_payload_is_released_once_when_sent)
{
    static const size_t sizes[] = {0, 1, 100, 70000, MIB};
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    let_on(slow, 1000000);
    int n = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_ok(emit_owned(slow, "x", sizes[i], LS_SCOPE_BOTH));
        assert_reaches(&slow->released, ++n);
        assert_reaches(&slow->done, n);
        assert_int_equal(slow->bytes, sizes[i]);
        assert_true(slow->whole);
    }
    /* Nothing, at no address. */
    assert_ok(ls_emit_with(
        slow->from, &(struct ls_emission){.event = "x",
                                          .delivery = LS_DELIVERY_RELIABLE,
                                          .release = count_release,
                                          .hint = &slow->released}));
    assert_reaches(&slow->released, ++n);
    assert_reaches(&slow->done, n);
    assert_ok(emit_owned(slow, "unheard", 100, LS_SCOPE_BOTH));
    assert_ok(emit_owned(slow, "x", 100, LS_SCOPE_LOCAL));
    assert_reaches(&slow->released, n + 2);
    slow_end(slow);
}

TEST(a_payload_is_released_once_when_it_fails)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    (void)fill(slow, NULL, 0);
    assert_fails(emit_owned(slow, "x", 100, LS_SCOPE_BOTH), LS_EAGAIN);
    assert_int_equal(counter_get(&slow->released), 1);
    assert_fails(emit_owned(slow, "x", 3 * MIB, LS_SCOPE_BOTH), LS_EAGAIN);
    assert_int_equal(counter_get(&slow->released), 2);
    assert_fails(emit_owned(slow, "no name", 100, LS_SCOPE_BOTH), LS_EINVAL);
    assert_int_equal(counter_get(&slow->released), 3);
    assert_fails(emit_owned(slow, "x", 65 * MIB, LS_SCOPE_BOTH), LS_ELIMIT);
    assert_int_equal(counter_get(&slow->released), 4);
    let_on(slow, 1000000);
    ls_node_stop(slow->from, LS_OK);
    assert_fails(emit_owned(slow, "x", 100, LS_SCOPE_BOTH), LS_ECLOSED);
    assert_int_equal(counter_get(&slow->released), 5);
    slow_end(slow);
}

/* ---- long payloads ----------------------------------------------------- */

static void count_hint(void *data, void *hint)
{
    (void)data;
    counter_add(hint, 1);
}

static void sizes_come_whole(enum ls_topology topology, size_t from, bool owned)
{
    static const size_t sizes[] = {0,   1,       192,     193,     MIB - 1,
                                   MIB, MIB + 1, 2 * MIB, 3 * MIB, LONGEST};
    struct slow *slow = slow_start(3, topology);
    slow->from = slow->world.at[from].node;
    uint8_t *data = malloc(LONGEST);
    assert_non_null(data);
    for (size_t i = 0; i < LONGEST; i++)
        data[i] = pattern(i);
    let_on(slow, 1000000);
    int n = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ls_emission emission = {
            .event = "x", .data = data, .size = sizes[i]};
        if (owned) {
            emission.release = count_hint;
            emission.hint = &slow->released;
        }
        assert_ok(ls_emit_with(slow->from, &emission));
        assert_reaches(&slow->done, ++n);
        assert_int_equal(slow->bytes, sizes[i]);
        assert_true(slow->whole);
    }
    if (owned)
        assert_reaches(&slow->released, n);
    assert_int_equal(stats_of(slow->world.at[1].node).missed, 0);
    assert_int_equal(stats_of(slow->world.at[1].node).lost, 0);
    slow_end(slow);
    free(data);
}

TEST(payloads_of_every_size_come_whole)
{
    sizes_come_whole(LS_TOPOLOGY_MESH, 0, false);
    sizes_come_whole(LS_TOPOLOGY_MESH, 0, true);
    sizes_come_whole(LS_TOPOLOGY_MESH, 1, false); /* to itself as well */
    sizes_come_whole(LS_TOPOLOGY_STAR, 2, false); /* through the hub */
}

TEST(a_long_event_is_withdrawn_when_its_time_is_up)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_MESH);
    uint8_t *data = calloc(1, 40 * MIB);
    assert_non_null(data);
    /* What is handled holds 1 of 2 MiB, and the first chunks hold the other. */
    assert_ok(emit_now(slow, data, MIB));
    assert_fails(
        ls_emit_with(slow->from, &(struct ls_emission){.event = "x",
                                                       .data = data,
                                                       .size = 40 * MIB,
                                                       .timeout_ms = 500}),
        LS_EAGAIN);
    assert_error_has("node 2"); /* the other has had the time */
    let_on(slow, 1000000);
    assert_ok(ls_emit(slow->from, "x", NULL, 0));
    assert_reaches(&slow->done, 2); /* the first, and the one after it */
    assert_reaches(&slow->heard, 2);
    assert_int_equal(slow->bytes, 0);
    assert_int_equal(stats_of(slow->world.at[1].node).missed, 0);
    assert_int_equal(stats_of(slow->from).emitted, 2);
    free(data);
    slow_end(slow);
}

/* What is held of it is given back to the hub, whose window it is in. */
TEST(long_events_through_a_hub_are_withdrawn)
{
    struct slow *slow = slow_start(3, LS_TOPOLOGY_STAR);
    uint8_t *data = calloc(1, 40 * MIB);
    assert_non_null(data);
    slow->from = slow->world.at[2].node;
    for (int i = 0; i < 3; i++) { /* two would be all that the window holds */
        assert_ok(emit_now(slow, data, MIB)); /* half of it; chunks the rest */
        assert_reaches(&slow->entered, 2 * i + 1);
        assert_fails(
            ls_emit_with(slow->from, &(struct ls_emission){.event = "x",
                                                           .data = data,
                                                           .size = 40 * MIB,
                                                           .timeout_ms = 5}),
            LS_EAGAIN);
        let_on(slow, 2);
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
        assert_reaches(&slow->done, 2 * i + 2);
        assert_int_equal(slow->bytes, 0);
    }
    free(data);
    slow_end(slow);
}

/* ---- what waits in a hub ------------------------------------------------ */

#define MANY (10 * WINDOW)

/* Node 3, a leaf, has emitted so many that node 2 has no room for. */
static struct slow *crowd_start(struct counter *last)
{
    struct slow *slow = slow_start(4, LS_TOPOLOGY_STAR);
    ls_node *hub = slow->from;
    counter_init(last);
    assert_ok(ls_on(hub, "last", count, last));
    slow->from = slow->world.at[2].node;
    for (int i = 0; i < MANY; i++)
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
    emit_until_heard(slow->from, "last", last);
    slow->from = hub;
    return slow;
}

static void crowd_end(struct slow *slow, struct counter *last)
{
    assert_ok(ls_off(slow->from, "last", count, last));
    slow_end(slow);
    counter_fini(last);
}

TEST(what_waits_of_one_that_has_left_is_not_passed_on)
{
    struct counter last;
    struct slow *slow = crowd_start(&last);
    assert_int_equal(stats_of(slow->from).relayed, WINDOW);
    ls_node_destroy(&slow->world.at[2].node);
    assert_int_equal(stats_of(slow->from).early, MANY - WINDOW);
    let_on(slow, 1000000);
    assert_ok(ls_emit(slow->from, "x", NULL, 0));
    assert_reaches(&slow->done, WINDOW + 1);
    assert_int_equal(stats_of(slow->from).relayed, WINDOW);
    crowd_end(slow, &last);
}

TEST(a_hub_passes_on_what_each_sent_in_turn)
{
    struct counter last;
    struct slow *slow = crowd_start(&last);
    ls_node *fourth = slow->world.at[3].node;
    const int heard = counter_get(&last);
    assert_ok(ls_emit(fourth, "x", NULL, 0));
    emit_until_heard(fourth, "last", &last);
    assert_true(counter_get(&last) > heard);
    let_on(slow, 1000000);
    assert_reaches(&slow->done, MANY + 1);
    assert_in_range(slow->fourth_at, WINDOW + 1, 3 * WINDOW);
    crowd_end(slow, &last);
}

static void emit_one(void *self)
{
    struct interrupted *call = self;
    call->status = ls_emit(call->node, "x", NULL, 0);
}

TEST(what_a_hub_passes_on_leaves_room_for_what_it_emits)
{
    struct counter last;
    struct slow *slow = crowd_start(&last);
    struct interrupted call = {.node = slow->from};
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "emit", emit_one,
                              &call));
    while (stats_of(slow->from).blocked == 0)
        assert_int_equal(
            ls_thread_join(&thread, ls_deadline(ls_runtime_threads(), 2)),
            LS_ETIMEDOUT);
    let_on(slow, 3 * WINDOW); /* of 10 */
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_ok(call.status);
    crowd_end(slow, &last);
}
