/* Events: who hears what, in which order, and how often. */
#include "pair_fixture.h"
#include "test.h"

/* ---- what a handler is given ------------------------------------------- */

struct seen {
    struct counter n;
    struct ls_event event;
    char data[64];
};

static int see(void *self, const struct ls_event *event)
{
    struct seen *seen = self;
    seen->event = *event;
    memcpy(seen->data, event->data, event->size);
    counter_add(&seen->n, 1);
    return LS_OK;
}

TEST(handler_is_given_who_emitted_what)
{
    struct pair *pair = pair_start();
    struct seen seen;
    counter_init(&seen.n);
    assert_ok(ls_on(pair->b, "hi", see, &seen));
    assert_ok(ls_emit(pair->a, "hi", "some data", 10));
    assert_reaches(&seen.n, 1);
    assert_string_equal(seen.event.name, "hi");
    assert_int_equal(seen.event.origin, 1);
    assert_true(seen.event.incarnation == ls_node_incarnation(pair->a));
    assert_int_equal(seen.event.sequence, 1);
    assert_int_equal(seen.event.size, 10);
    assert_string_equal(seen.data, "some data");
    pair_end(pair);
    counter_fini(&seen.n);
}

static _Thread_local bool is_emitter;

static int see_stack(void *self, const struct ls_event *event)
{
    (void)event;
    if (is_emitter)
        counter_add(self, 1000);
    counter_add(self, 1);
    return LS_OK;
}

TEST(emit_never_delivers_on_the_callers_stack)
{
    struct pair *pair = pair_start();
    struct counter ran;
    counter_init(&ran);
    is_emitter = true;
    assert_ok(ls_on(pair->a, "own", see_stack, &ran));
    assert_ok(ls_emit(pair->a, "own", NULL, 0));
    assert_reaches(&ran, 1);
    assert_int_equal(counter_get(&ran), 1);
    pair_end(pair);
    counter_fini(&ran);
}

TEST(emit_before_start_is_local)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.bind = "inproc://emit-before-start";
    ls_node *node;
    struct counter heard;
    counter_init(&heard);
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_on(node, "hi", count, &heard));
    assert_ok(ls_emit(node, "hi", NULL, 0));
    assert_fails(ls_emit_with(node, &(struct ls_emission){.event = "hi",
                                                          .to_one = true,
                                                          .to = 9}),
                 LS_ENOENT);
    assert_ok(ls_node_start(node));
    assert_reaches(&heard, 1);
    ls_node_destroy(&node);
    counter_fini(&heard);
}

/* ---- scopes and to_one ------------------------------------------------- */

static int emit_scope(ls_node *node, enum ls_scope scope)
{
    return ls_emit_with(node,
                        &(struct ls_emission){.event = "hi", .scope = scope});
}

TEST(scopes_choose_who_hears)
{
    struct pair *pair = pair_start();
    assert_ok(emit_scope(pair->a, LS_SCOPE_REMOTE));
    assert_reaches(&pair->heard[1], 1);
    flush_local(pair->a);
    assert_int_equal(counter_get(&pair->heard[0]), 0);
    assert_ok(emit_scope(pair->a, LS_SCOPE_LOCAL));
    assert_reaches(&pair->heard[0], 1);
    assert_ok(emit_scope(pair->a, LS_SCOPE_BOTH));
    assert_reaches(&pair->heard[0], 2);
    assert_reaches(&pair->heard[1], 2);
    flush_local(pair->b);
    assert_int_equal(counter_get(&pair->heard[1]), 2); /* not the local one */
    pair_end(pair);
}

static int emit_to(ls_node *node, const char *event, uint32_t to)
{
    return ls_emit_with(
        node, &(struct ls_emission){.event = event, .to_one = true, .to = to});
}

TEST(to_one_reaches_that_one_alone)
{
    struct pair *pair = pair_start();
    assert_ok(emit_to(pair->a, "hi", 2));
    assert_reaches(&pair->heard[1], 1);
    flush_local(pair->a);
    assert_int_equal(counter_get(&pair->heard[0]), 0);
    assert_ok(emit_to(pair->a, "hi", 1)); /* itself */
    assert_reaches(&pair->heard[0], 1);
    assert_ok(emit_scope(pair->a, LS_SCOPE_BOTH));
    assert_reaches(&pair->heard[1], 2);
    assert_int_equal(counter_get(&pair->heard[1]), 2);
    pair_end(pair);
}

TEST(to_one_names_why_it_cannot)
{
    struct pair *pair = pair_start();
    assert_fails(emit_to(pair->a, "hi", 77), LS_ENOENT);
    assert_error_has("node 77 is not present");
    assert_fails(emit_to(pair->a, "unheard", 2), LS_ENOENT);
    assert_error_has("node 2 does not listen");
    assert_fails(emit_to(pair->a, "unheard", 1), LS_ENOENT);
    assert_error_has("node 1 (this one) does not listen");
    pair_end(pair);
}

/* ---- order ------------------------------------------------------------- */

struct order {
    struct counter n;
    char letters[16];
};

struct letter {
    struct order *order;
    char letter;
};

static int write_letter(void *self, const struct ls_event *event)
{
    struct letter *letter = self;
    (void)event;
    letter->order->letters[counter_get(&letter->order->n)] = letter->letter;
    counter_add(&letter->order->n, 1);
    return LS_OK;
}

TEST(a_delivery_and_a_scope_that_there_are_not_are_refused)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.bind = "inproc://emit-wrongly";
    ls_node *node;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_start(node));
    static const struct ls_emission wrong[] = {
        {.event = "hi", .delivery = (enum ls_delivery)99},
        {.event = "hi", .delivery = (enum ls_delivery) - 1},
        {.event = "hi", .scope = (enum ls_scope)3},
        {.event = "hi", .scope = (enum ls_scope) - 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(ls_emit_with(node, &wrong[i]), LS_EINVAL);
    assert_fails(ls_emit(node, "hi", NULL, 7), LS_EINVAL);
    assert_error_has("event \"hi\": 7 bytes, and data is NULL");
    ls_node_destroy(&node);
}

TEST(listeners_run_in_order_of_registration)
{
    struct pair *pair = pair_start();
    struct order order = {0};
    counter_init(&order.n);
    struct letter letters[] = {{&order, 'a'}, {&order, 'b'}, {&order, 'c'}};
    for (size_t i = 0; i < 3; i++)
        assert_ok(ls_on(pair->a, "own", write_letter, &letters[i]));
    assert_ok(ls_emit(pair->a, "own", NULL, 0));
    assert_ok(ls_emit(pair->a, "own", NULL, 0));
    assert_reaches(&order.n, 6);
    assert_string_equal(order.letters, "abcabc");
    pair_end(pair);
    counter_fini(&order.n);
}

#define N_SENDERS 3
#define N_EACH    300

struct fifo {
    struct counter heard;
    uint64_t last[N_SENDERS + 3];
    int inversions;
};

static int check_fifo(void *self, const struct ls_event *event)
{
    struct fifo *fifo = self;
    uint64_t number;
    memcpy(&number, event->data, sizeof number);
    if (event->sequence != fifo->last[event->origin] + 1 ||
        number != event->sequence)
        fifo->inversions++;
    fifo->last[event->origin] = event->sequence;
    counter_add(&fifo->heard, 1);
    return LS_OK;
}

static void listen_fifo(ls_node *node, size_t index, void *self)
{
    struct fifo *fifos = self;
    counter_init(&fifos[index].heard);
    if (index >= N_SENDERS)
        assert_ok(ls_on(node, "many", check_fifo, &fifos[index]));
}

static void emit_many(void *self)
{
    struct world_node *at = self;
    for (uint64_t i = 1; i <= N_EACH && at->status == LS_OK; i++)
        at->status = ls_emit(at->node, "many", &i, sizeof i);
}

TEST(events_of_a_sender_come_in_order_and_whole)
{
    struct world *world = calloc(1, sizeof *world);
    struct fifo fifos[N_SENDERS + 2] = {0};
    world_start(world, &(struct world_plan){.n = N_SENDERS + 2,
                                            .prepare = listen_fifo,
                                            .self = fifos});
    for (size_t i = 0; i < N_SENDERS; i++)
        world_spawn(world, i, emit_many);
    world_joined(world);
    for (size_t i = 0; i < N_SENDERS + 2; i++) {
        struct ls_node_stats stats;
        if (i >= N_SENDERS)
            assert_reaches(&fifos[i].heard, N_SENDERS * N_EACH);
        assert_int_equal(fifos[i].inversions, 0);
        ls_node_stats(world->at[i].node, &stats);
        assert_int_equal(stats.missed + stats.lost + stats.dropped, 0);
    }
    world_destroy(world);
    for (size_t i = 0; i < N_SENDERS + 2; i++)
        counter_fini(&fifos[i].heard);
    free(world);
}

TEST(sequence_counts_emits_to_all_only)
{
    struct pair *pair = pair_start();
    struct seen seen;
    counter_init(&seen.n);
    assert_ok(ls_on(pair->b, "hi", see, &seen));
    assert_ok(emit_to(pair->a, "hi", 2));
    assert_reaches(&seen.n, 1);
    assert_int_equal(seen.event.sequence, 0);
    assert_ok(emit_scope(pair->b, LS_SCOPE_LOCAL));
    assert_reaches(&seen.n, 2);
    assert_int_equal(seen.event.sequence, 0);
    assert_ok(ls_emit(pair->a, "hi", NULL, 0));
    assert_reaches(&seen.n, 3);
    assert_int_equal(seen.event.sequence, 1);
    pair_end(pair);
    counter_fini(&seen.n);
}

TEST(what_nobody_listened_to_is_not_missed)
{
    struct pair *pair = pair_start();
    struct counter once;
    struct ls_node_stats stats;
    counter_init(&once);
    assert_ok(ls_once(pair->b, "rare", count, &once));
    emit_until_heard(pair->a, "rare", &once);
    for (int i = 0; i < 5; i++)
        assert_ok(ls_emit(pair->a, "rare", NULL, 0));
    assert_ok(ls_emit(pair->a, "hi", NULL, 0)); /* behind them */
    assert_reaches(&pair->heard[1], 1);
    assert_ok(ls_once(pair->b, "rare", count, &once));
    emit_until_heard(pair->a, "rare", &once);
    ls_node_stats(pair->b, &stats);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(ls_node_losses(pair->b, NULL, 0), 0);
    assert_int_equal(counter_get(&once), 2);
    pair_end(pair);
    counter_fini(&once);
}

/* ---- once -------------------------------------------------------------- */

static void emit_hundred(void *self)
{
    struct world_node *at = self;
    for (int i = 0; i < 100 && at->status == LS_OK; i++)
        at->status = ls_emit(at->node, "hi", NULL, 0);
}

TEST(once_is_once_under_concurrent_emits)
{
    struct pair *pair = pair_start();
    struct counter once;
    counter_init(&once);
    for (int i = 0; i < 20; i++)
        assert_ok(ls_once(pair->b, "hi", count, &once));
    world_spawn(&pair->world, 0, emit_hundred);
    world_spawn(&pair->world, 1, emit_hundred);
    world_joined(&pair->world);
    assert_reaches(&pair->heard[1], 200);
    flush_local(pair->b);
    assert_int_equal(counter_get(&once), 20);
    pair_end(pair);
    counter_fini(&once);
}
