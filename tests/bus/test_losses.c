/* What is lost is counted, between whom and of which event; who is slow is
 * named. */
#include "raw_peer.h"

#include "bus.h"
#include "lockstep/simulation.h"
#include "test.h"

#define WINDOW 16
#define MIB    (1024u * 1024u)

/* ---- over a network that doubles and puts out of order ------------------ */

struct listener_world {
    struct world world;
    ls_node *node;
    struct counter ready, came, disorder, ended;
    uint64_t last;
    struct raw_peer raw;
};

static int check_order(void *self, const struct ls_event *event)
{
    struct listener_world *l = self;
    if (event->sequence <= l->last)
        counter_add(&l->disorder, 1);
    l->last = event->sequence;
    counter_add(&l->came, 1);
    return LS_OK;
}

static void on_member(void *self, const struct ls_member *member)
{
    struct listener_world *l = self;
    counter_add(&l->ready, member->state == LS_MEMBER_READY ? 1 : 0);
}

static void listen_one(ls_node *node, size_t index, void *self)
{
    struct listener_world *l = self;
    (void)index;
    assert_ok(ls_on(node, "x", check_order, l));
    assert_ok(ls_on(node, "end", count, &l->ended));
    assert_ok(ls_node_on_member(node, on_member, l));
}

static void patient(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->insecure = true;    /* raw peers have no secret, */
    options->silence_ms = 60000; /* and do not keep beating, */
    options->linger_ms = 100;    /* and do not close when told farewell */
    options->window_messages = WINDOW;
}

static const char *given; /* the address of the raw peer */

static void attached(struct ls_node_options *options, size_t index)
{
    patient(options, index);
    options->attach = &given;
    options->n_attach = 1;
}

static struct listener_world *
listener_start_as(void (*tune)(struct ls_node_options *options, size_t index))
{
    struct listener_world *l = calloc(1, sizeof *l);
    assert_non_null(l);
    counter_init(&l->ready);
    counter_init(&l->came);
    counter_init(&l->disorder);
    counter_init(&l->ended);
    raw_open(&l->raw, 666, NULL);
    given = l->raw.endpoint;
    world_start(&l->world, &(struct world_plan){.n = 1,
                                                .transport = "tcp",
                                                .tune = tune,
                                                .prepare = listen_one,
                                                .self = l});
    l->node = l->world.at[0].node;
    raw_connect(&l->raw, ls_node_endpoint(l->node));
    raw_be_present(&l->raw);
    raw_await_presence(&l->raw, l->node);
    raw_heartbeat(&l->raw, l->node);
    assert_reaches(&l->ready, 1);
    return l;
}

static struct listener_world *listener_start(void)
{
    return listener_start_as(patient);
}

/* Whether the raw peer has acknowledged all. */
static bool is_acknowledged(ls_node *node)
{
    transport_lock(node->transport);
    const bool idle = stream_is_idle(&streams_of(world_find(node, 666))->out);
    transport_unlock(node->transport);
    return idle;
}

static void listener_end(struct listener_world *l)
{
    raw_close(&l->raw);
    world_destroy(&l->world);
    counter_fini(&l->ready);
    counter_fini(&l->came);
    counter_fini(&l->disorder);
    counter_fini(&l->ended);
    free(l);
}

static void send_event(struct listener_world *l, uint64_t sequence)
{
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_EVENT);
    header.sequence = sequence;
    raw_event(&l->raw, "x", &header, "data", 4);
}

#define BATCH_MAX (8 * WINDOW)

/* So many short events in one frame. */
static void send_batch(struct listener_world *l, uint64_t first, uint32_t n)
{
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_BATCH);
    uint8_t frame[WIRE_HEAD_MAX + BATCH_MAX * (WIRE_BATCH_LEAD + 4)];
    size_t size = wire_topic_event(frame, "x");
    header.sequence = first;
    size += wire_header_write(frame + size, &header);
    uint8_t *payloads = frame + size;
    for (uint32_t i = 0; i < n; i++)
        size += wire_batch_write(frame + size, "data", 4);
    wire_batch_count(payloads, n);
    raw_send(&l->raw, frame, size, false);
}

static void assert_got(struct listener_world *l, uint64_t messages)
{
    transport_lock(l->node->transport);
    const struct hop *hop = world_find(l->node, 666)->hop;
    assert_int_equal(atomic_load(&hop->got_messages), messages);
    transport_unlock(l->node->transport);
}

static void send_chunk(struct listener_world *l, uint64_t sequence,
                       uint32_t offset)
{
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_CHUNK);
    header.sequence = sequence;
    header.total = 8;
    header.offset = offset;
    raw_event(&l->raw, "x", &header, "data", 4);
}

static void assert_counts(struct listener_world *l, uint64_t missed,
                          uint64_t repeated)
{
    struct ls_node_stats stats;
    ls_node_stats(l->node, &stats);
    assert_int_equal(stats.refused, 0);
    assert_int_equal(stats.missed, missed);
    assert_int_equal(stats.repeated, repeated);
    assert_int_equal(counter_get(&l->disorder), 0);
}

TEST(what_comes_twice_is_handled_once)
{
    struct listener_world *l = listener_start();
    for (uint64_t i = 1; i <= 5; i++) {
        send_event(l, i);
        send_event(l, i);
    }
    send_event(l, 6);
    assert_reaches(&l->came, 6);
    assert_counts(l, 0, 5);
    listener_end(l);
}

TEST(what_comes_too_late_is_missed)
{
    struct listener_world *l = listener_start();
    const uint64_t order[] = {1, 2, 5, 3, 4, 6, 8, 7, 9};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        send_event(l, order[i]);
    assert_reaches(&l->came, 6); /* without 3, 4 and 7 */
    assert_counts(l, 3, 3);
    struct ls_node_loss loss;
    assert_int_equal(ls_node_losses(l->node, &loss, 1), 1);
    assert_int_equal(loss.sender, 666);
    assert_int_equal(loss.receiver, 1);
    assert_int_equal(loss.missed, 3);
    listener_end(l);
}

/* The heartbeat says how many were sent, so nobody grants more for them. */
TEST(what_comes_twice_takes_no_room)
{
    struct listener_world *l = listener_start();
    for (int i = 0; i < 4 * WINDOW; i++)
        send_event(l, 1);
    for (int i = 0; i < 4; i++)
        send_batch(l, 2, WINDOW);
    send_event(l, WINDOW + 2);
    assert_reaches(&l->came, WINDOW + 2);
    assert_counts(l, 0, 4 * WINDOW - 1 + 3 * WINDOW);
    assert_got(l, WINDOW + 2);
    listener_end(l);
}

TEST(the_events_of_a_batch_are_counted_one_by_one)
{
    struct listener_world *l = listener_start();
    struct ls_node_stats stats;
    send_batch(l, 1, 5);
    send_batch(l, 8, 6); /* without 6 and 7 */
    send_event(l, 14);
    assert_reaches(&l->came, 12);
    assert_int_equal(l->last, 14);
    assert_counts(l, 2, 0);
    assert_got(l, 12);
    ls_node_stats(l->node, &stats);
    assert_int_equal(stats.received, 12);
    assert_int_equal(stats.received_bytes, 48);
    listener_end(l);
}

/* And takes no room, or its sender would be cut off. */
TEST(each_event_of_a_batch_is_refused_for_itself)
{
    struct listener_world *l = listener_start();
    struct ls_node_stats stats;
    assert_ok(ls_node_allow(l->node, "x", "7"));
    for (uint64_t i = 0; i < 4; i++)
        send_batch(l, 1 + i * WINDOW, WINDOW);
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_EVENT);
    raw_event(&l->raw, "end", &header, "", 0);
    assert_reaches(&l->ended, 1);
    assert_int_equal(counter_get(&l->came), 0);
    ls_node_stats(l->node, &stats);
    assert_int_equal(stats.refused, 4 * WINDOW);
    assert_int_equal(stats.received, 1);
    assert_int_equal(stats.missed, 0);
    assert_got(l, 4 * WINDOW + 1);
    listener_end(l);
}

/* As a hub passes it on to all. */
TEST(nor_does_what_comes_back_twice)
{
    struct listener_world *l = listener_start();
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_EVENT);
    header.origin = ls_node_id(l->node);
    header.incarnation = ls_node_incarnation(l->node);
    header.sequence = 1;
    for (int i = 0; i < 4 * WINDOW; i++)
        raw_event(&l->raw, "x", &header, "data", 4);
    send_event(l, 1);
    assert_reaches(&l->came, 1);
    assert_got(l, 2);
    listener_end(l);
}

/* Or a leaf that has cut its hub off would never find the hub's next life. */
TEST(who_is_cut_off_at_a_given_address_is_dialled_again)
{
    struct listener_world *l = listener_start_as(attached);
    struct ls_node_stats stats;
    send_batch(l, 1, BATCH_MAX);
    raw_await_node(&l->raw, l->node, false);
    raw_await_node(&l->raw, l->node, true);
    ls_node_stats(l->node, &stats);
    assert_int_equal(stats.refused, 1);
    assert_int_equal(counter_get(&l->came), 0);
    listener_end(l);
}

TEST(parts_that_come_twice_do_no_harm)
{
    struct listener_world *l = listener_start();
    send_event(l, 1);
    send_chunk(l, 2, 0);
    send_chunk(l, 2, 0);
    send_chunk(l, 2, 4);
    send_chunk(l, 2, 4);
    send_chunk(l, 2, 0);
    send_event(l, 3);
    assert_reaches(&l->came, 3);
    assert_counts(l, 0, 2); /* after it was whole */
    listener_end(l);
}

/* ---- one that is slow -------------------------------------------------- */

struct slow_world {
    struct world world;
    ls_node *from, *to;
    struct counter done, go_on;
};

static int wait_for_it(void *self, const struct ls_event *event)
{
    struct slow_world *slow = self;
    (void)event;
    if (!counter_reaches(&slow->go_on, 1))
        abort();
    counter_add(&slow->done, 1);
    return LS_OK;
}

static void listen_slowly(ls_node *node, size_t index, void *self)
{
    struct slow_world *slow = self;
    if (index == 1)
        assert_ok(ls_on(node, "x", wait_for_it, slow));
}

static void small_window(struct ls_node_options *options, size_t index)
{
    options->window_messages = WINDOW;
    options->window_bytes = 4 * MIB;
    options->role = index == 1 ? "slow" : "";
    options->silence_ms = 20000;
}

static struct slow_world *slow_start(void)
{
    struct slow_world *slow = calloc(1, sizeof *slow);
    assert_non_null(slow);
    counter_init(&slow->done);
    counter_init(&slow->go_on);
    world_start(&slow->world, &(struct world_plan){.n = 2,
                                                   .tune = small_window,
                                                   .prepare = listen_slowly,
                                                   .self = slow});
    slow->from = slow->world.at[0].node;
    slow->to = slow->world.at[1].node;
    return slow;
}

static void slow_end(struct slow_world *slow)
{
    counter_add(&slow->go_on, 1);
    world_destroy(&slow->world);
    counter_fini(&slow->done);
    counter_fini(&slow->go_on);
    free(slow);
}

/* Until the sender knows that there is room again, each is dropped. Returns how
 * many it has dropped so far. */
static uint64_t emit_one_that_goes(ls_node *from)
{
    const int64_t deadline = long_deadline();
    struct ls_node_stats before, after;
    do {
        raw_assert_before(deadline);
        ls_node_stats(from, &before);
        assert_ok(ls_emit(from, "x", NULL, 0));
        ls_node_stats(from, &after);
    } while (after.dropped != before.dropped);
    return after.dropped;
}

TEST(a_long_event_that_is_dropped_counts_once)
{
    struct slow_world *slow = slow_start();
    struct ls_node_stats stats;
    struct ls_node_loss loss;
    uint8_t *data = calloc(10, MIB);
    assert_non_null(data);
    assert_ok(ls_node_set_delivery(slow->from, "x", LS_DELIVERY_DROP));
    for (int i = 0; i < WINDOW - 1; i++) /* the handler waits */
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
    /* There is room for one part more, or none. */
    for (int i = 0; i < 3; i++)
        assert_ok(ls_emit(slow->from, "x", data, 10u * MIB));
    free(data);
    ls_node_stats(slow->from, &stats);
    assert_int_equal(stats.dropped, 3);
    assert_int_equal(ls_node_losses(slow->from, &loss, 1), 1);
    assert_int_equal(loss.sender, 1);
    assert_int_equal(loss.receiver, 2);
    assert_string_equal(loss.event, "x");
    assert_int_equal(loss.dropped, 3);
    counter_add(&slow->go_on, 1);
    assert_reaches(&slow->done, WINDOW - 1);
    const uint64_t n_dropped = emit_one_that_goes(slow->from);
    assert_reaches(&slow->done, WINDOW); /* it shows what was missed */
    ls_node_stats(slow->to, &stats);
    assert_int_equal(stats.missed, n_dropped);
    slow_end(slow);
}

TEST(nothing_lost_is_no_row)
{
    struct slow_world *slow = slow_start();
    struct ls_node_stats stats;
    counter_add(&slow->go_on, 1);
    for (int i = 0; i < 5; i++)
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
    assert_reaches(&slow->done, 5);
    assert_int_equal(ls_node_losses(slow->from, NULL, 0), 0);
    assert_int_equal(ls_node_losses(slow->to, NULL, 0), 0);
    ls_node_stats(slow->from, &stats);
    assert_int_equal(stats.slowest_ns, 0);
    slow_end(slow);
}

TEST(the_slowest_is_known)
{
    struct slow_world *slow = slow_start();
    struct ls_node_stats stats;
    for (int i = 0; i < WINDOW; i++)
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
    assert_fails(
        ls_emit_with(slow->from,
                     &(struct ls_emission){.event = "x", .timeout_ms = 5}),
        LS_EAGAIN);
    ls_node_stats(slow->from, &stats);
    assert_int_equal(stats.slowest, 2);
    assert_true(stats.slowest_ns > 0);
    slow_end(slow);
}

static void count_lines(void *self, const char *line)
{
    assert_has(line, "node 5 (late) is slow");
    assert_has(line, "\"x\"");
    ++*(int *)self;
}

TEST(a_line_says_who_is_slow_now_and_then)
{
    const struct event_entry entry = {.name = "x"};
    struct peer *peer = calloc(1, sizeof *peer);
    int lines = 0;
    assert_non_null(peer);
    peer->member.id = 5;
    peer->member.as_role = " (late)";
    ls_log_redirect(count_lines, &lines);
    const int64_t s = LS_NS_PER_S;
    assert_int_equal(losses_waiting(&entry, peer, s, s), 2 * s);
    assert_int_equal(losses_waiting(&entry, peer, s, s + s / 2), 2 * s);
    assert_int_equal(lines, 0);
    assert_int_equal(losses_waiting(&entry, peer, s, 2 * s), 12 * s);
    assert_int_equal(lines, 1);
    assert_int_equal(losses_waiting(&entry, peer, s, 3 * s), 12 * s);
    assert_int_equal(losses_waiting(&entry, peer, 3 * s, 5 * s), 12 * s);
    assert_int_equal(lines, 1);
    assert_int_equal(losses_waiting(&entry, peer, s, 12 * s), 22 * s);
    assert_int_equal(lines, 2);
    ls_log_redirect(NULL, NULL);
    free(peer);
}

/* It has got the first message of the stream to it; an event tells when that
 * was read. */
static void acknowledge(struct listener_world *l, uint64_t life, uint64_t event)
{
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_ACK);
    header.to_incarnation = life;
    header.number = 1;
    header.limit_messages = header.limit_bytes = 1u << 30;
    raw_event(&l->raw, NULL, &header, NULL, 0);
    header = raw_header(&l->raw, WIRE_KIND_EVENT);
    header.sequence = event;
    raw_event(&l->raw, "x", &header, "data", 4);
    assert_reaches(&l->came, (int)event);
}

static void forget(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

/* A message of a channel into the stream to the raw peer. */
static void push(ls_node *node)
{
    struct parcel parcel = {.size = 4, .of = WIRE_KIND_CHANNEL};
    parcel.name = strdup("channel");
    assert_non_null(parcel.name);
    assert_ok(payload_create(&parcel.payload, "data", 4, forget, NULL));
    transport_lock(node->transport);
    assert_ok(streams_push(node, world_find(node, 666), &parcel));
    transport_unlock(node->transport);
    payload_drop(parcel.payload);
}

TEST(an_acknowledgement_of_an_earlier_life_is_none)
{
    struct listener_world *l = listener_start();
    const uint64_t life = ls_node_incarnation(l->node);
    push(l->node);
    acknowledge(l, life - 1, 1);
    assert_false(is_acknowledged(l->node));
    acknowledge(l, life, 2);
    assert_true(is_acknowledged(l->node));
    listener_end(l);
}

struct dropping {
    ls_simulation *simulation;
    int lines;
};

static void note_missed(void *self, const char *line)
{
    assert_has(line, "missed 3 events in the last 1.0 s");
    ++*(int *)self;
}

static void drop_now_and_then(void *arg)
{
    struct dropping *dropping = arg;
    ls_runtime *runtime = ls_simulation_runtime(dropping->simulation);
    const int64_t s = LS_NS_PER_S, soon = s / 1000;
    struct event_entry entry = {.name = "x"};
    ls_node *node = calloc(1, sizeof *node);
    struct peer *peer = calloc(1, sizeof *peer);
    assert_true(node != NULL && peer != NULL);
    node->runtime = runtime;
    peer->member.as_role = " (late)";
    losses_dropped(node, &entry, peer);
    ls_rest_until(runtime, ls_now(runtime) + s / 2);
    losses_dropped(node, &entry, peer);
    assert_in_range(peer->slow.waited_ns, s / 2, s / 2 + soon);
    ls_rest_until(runtime, ls_now(runtime) + 3 * s); /* it kept up */
    for (int i = 0; i < 4; i++) {
        losses_dropped(node, &entry, peer);
        assert_int_equal(dropping->lines, i < 2 ? 0 : 1);
        ls_rest_until(runtime, ls_now(runtime) + s / 2 + soon / 10);
    }
    assert_in_range(peer->slow.waited_ns, 2 * s, 2 * s + soon);
    assert_int_equal(node->figures.stats.dropped, 6);
    assert_int_equal(entry.records->dropped, 6);
    free(entry.records);
    free(peer);
    free(node);
}

TEST(drops_in_short_succession_are_one_slowness)
{
    struct dropping dropping = {.lines = 0};
    assert_ok(ls_simulation_create(&dropping.simulation, NULL));
    ls_log_redirect(note_missed, &dropping.lines);
    assert_ok(
        ls_simulation_run(dropping.simulation, drop_now_and_then, &dropping));
    ls_log_redirect(NULL, NULL);
    ls_simulation_destroy(&dropping.simulation);
}
