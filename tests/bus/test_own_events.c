/* Events that a node emits to itself in close succession: they share messages,
 * which nobody is to notice. */
#include "node_fixture.h"

#define MANY 5000

/* A node whose dispatch thread is held up, so that what is emitted meanwhile
 * lies in its queue together. */
struct held {
    ls_node *node;
    struct counter holds, lets, heard;
    int n_seen;
    uint64_t sequences[MANY];
    char letters[MANY]; /* of the names */
    int wrong;          /* payloads that are not as they were sent */
};

static int hold(void *self, const struct ls_event *event)
{
    struct held *held = self;
    (void)event;
    counter_add(&held->holds, 1);
    if (!counter_reaches(&held->lets, counter_get(&held->holds)))
        abort();
    return LS_OK;
}

static void hold_up(struct held *held)
{
    const int n = counter_get(&held->holds) + 1;
    assert_ok(ls_emit(held->node, "hold", NULL, 0));
    assert_reaches(&held->holds, n);
}

static void let_go(struct held *held)
{
    counter_add(&held->lets, 1);
}

static struct held *held_start(const struct ls_node_options *options)
{
    struct held *held = calloc(1, sizeof *held);
    assert_non_null(held);
    counter_init(&held->holds);
    counter_init(&held->lets);
    counter_init(&held->heard);
    held->node = started(options);
    assert_ok(ls_on(held->node, "hold", hold, held));
    return held;
}

static struct held *held_up(void)
{
    const struct ls_node_options options = usual(1);
    struct held *held = held_start(&options);
    hold_up(held);
    return held;
}

static void held_end(struct held *held)
{
    ls_node_destroy(&held->node);
    counter_fini(&held->holds);
    counter_fini(&held->lets);
    counter_fini(&held->heard);
    free(held);
}

static int emit_in(struct held *held, const char *event, enum ls_scope scope,
                   const void *data, size_t size)
{
    return ls_emit_with(held->node, &(struct ls_emission){.event = event,
                                                          .data = data,
                                                          .size = size,
                                                          .scope = scope});
}

static void emit_own(struct held *held, const char *event)
{
    assert_ok(emit_in(held, event, LS_SCOPE_LOCAL, NULL, 0));
}

/* ---- what is handled --------------------------------------------------- */

static uint8_t pattern(int nth, size_t at)
{
    return (uint8_t)((size_t)nth * 7 + at * 31);
}

static size_t size_of(int nth)
{
    return (size_t)nth % 23 == 0 ? 700 : (size_t)(nth * 5) % 180;
}

static int see(void *self, const struct ls_event *event)
{
    struct held *held = self;
    const uint8_t *data = event->data;
    const int nth = held->n_seen++;
    bool right = event->size == size_of(nth) && event->origin == 1 &&
                 event->incarnation == ls_node_incarnation(held->node);
    for (size_t i = 0; right && i < event->size; i++)
        right = data[i] == pattern(nth, i);
    held->wrong += right ? 0 : 1;
    held->letters[nth] = event->name[0];
    held->sequences[nth] = event->sequence;
    counter_add(&held->heard, 1);
    return LS_OK;
}

static void emit_pattern(struct held *held, int nth, const char *event,
                         enum ls_scope scope)
{
    uint8_t data[700];
    for (size_t i = 0; i < size_of(nth); i++)
        data[i] = pattern(nth, i);
    assert_ok(emit_in(held, event, scope, data, size_of(nth)));
}

TEST(what_lay_together_is_handled_in_order_and_whole)
{
    struct held *held = held_up();
    uint64_t numbered = 0;
    assert_ok(ls_on(held->node, "a", see, held));
    assert_ok(ls_on(held->node, "b", see, held));
    for (int i = 0; i < MANY; i++)
        emit_pattern(held, i, i % 300 > 270 ? "b" : "a",
                     i % 400 < 100 ? LS_SCOPE_BOTH : LS_SCOPE_LOCAL);
    let_go(held);
    assert_reaches(&held->heard, MANY);
    assert_int_equal(held->wrong, 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(held->letters[i], i % 300 > 270 ? 'b' : 'a');
        if (i % 400 >= 100)
            assert_int_equal(held->sequences[i], 0);
        else if (held->letters[i] == 'a')
            assert_int_equal(held->sequences[i], ++numbered);
    }
    held_end(held);
}

TEST(what_lies_together_is_handled_when_the_node_stops)
{
    struct held *held = held_up();
    assert_ok(ls_on(held->node, "a", see, held));
    for (int i = 0; i < 1000; i++)
        emit_pattern(held, i, "a", LS_SCOPE_LOCAL);
    let_go(held);
    ls_node_stop(held->node, LS_OK);
    assert_int_equal(held->n_seen, 1000);
    assert_int_equal(held->wrong, 0);
    held_end(held);
}

static int note(void *self, const struct ls_event *event)
{
    struct held *held = self;
    const char letter = *(const char *)event->data;
    held->letters[held->n_seen++] = letter;
    if (letter == 'a')
        assert_ok(emit_in(held, "x", LS_SCOPE_LOCAL, "c", 1));
    counter_add(&held->heard, 1);
    return LS_OK;
}

TEST(what_a_handler_emits_comes_after_what_lay_there)
{
    struct held *held = held_up();
    assert_ok(ls_on(held->node, "x", note, held));
    assert_ok(emit_in(held, "x", LS_SCOPE_LOCAL, "a", 1));
    assert_ok(emit_in(held, "x", LS_SCOPE_LOCAL, "b", 1));
    let_go(held);
    assert_reaches(&held->heard, 3);
    assert_memory_equal(held->letters, "abc", 3);
    held_end(held);
}

/* ---- listeners come and go --------------------------------------------- */

struct change {
    struct held *held;
    struct counter calls, others;
    int at; /* it takes place in this call */
    bool leaves;
};

static int change(void *self, const struct ls_event *event)
{
    struct change *c = self;
    (void)event;
    counter_add(&c->calls, 1);
    if (counter_get(&c->calls) == c->at) {
        assert_ok(ls_on(c->held->node, "x", count, &c->others));
        if (c->leaves)
            assert_ok(ls_off(c->held->node, "x", change, c));
    }
    return LS_OK;
}

/* Of ten that lie together, a handler has others hear the rest. */
static void change_in_between(bool leaves, int wanted)
{
    struct held *held = held_up();
    struct change c = {.held = held, .at = 4, .leaves = leaves};
    counter_init(&c.calls);
    counter_init(&c.others);
    assert_ok(ls_on(held->node, "x", change, &c));
    for (int i = 0; i < 10; i++)
        emit_own(held, "x");
    emit_own(held, "hold");
    let_go(held);
    assert_reaches(&held->holds, 2);
    assert_int_equal(counter_get(&c.calls), wanted);
    assert_int_equal(counter_get(&c.others), 6);
    let_go(held);
    held_end(held);
    counter_fini(&c.calls);
    counter_fini(&c.others);
}

TEST(a_listener_that_comes_in_between_hears_the_rest)
{
    change_in_between(false, 10);
}

TEST(a_listener_that_goes_in_between_does_not_hear_the_rest)
{
    change_in_between(true, 4);
}

TEST(once_and_a_glob_hear_their_part_of_what_lies_together)
{
    struct held *held = held_up();
    struct counter once, one, all;
    counter_init(&once);
    counter_init(&one);
    counter_init(&all);
    assert_ok(ls_once(held->node, "once", count, &once));
    assert_ok(ls_on(held->node, "one", count, &one));
    for (int i = 0; i < 10; i++)
        emit_own(held, "once");
    emit_own(held, "hold");
    let_go(held);
    assert_reaches(&held->holds, 2);
    assert_int_equal(counter_get(&once), 1);
    assert_ok(ls_on(held->node, "on*", count, &all));
    for (int i = 0; i < 10; i++)
        emit_own(held, "one");
    emit_own(held, "hold");
    let_go(held);
    assert_reaches(&held->holds, 3);
    assert_int_equal(counter_get(&one), 10);
    assert_int_equal(counter_get(&all), 10);
    let_go(held);
    held_end(held);
    counter_fini(&once);
    counter_fini(&one);
    counter_fini(&all);
}

/* Another thread takes the listener away while the rest is handled. */
TEST(off_ends_what_lies_together)
{
    struct held *held = held_up();
    struct counter calls, end;
    counter_init(&calls);
    counter_init(&end);
    assert_ok(ls_on(held->node, "end", count, &end));
    for (int round = 1; round <= 20; round++) {
        assert_ok(ls_on(held->node, "x", count, &calls));
        for (int i = 0; i < 500; i++)
            emit_own(held, "x");
        const int before = counter_get(&calls);
        let_go(held);
        assert_reaches(&calls, before + 1);
        assert_ok(ls_off(held->node, "x", count, &calls));
        const int then = counter_get(&calls);
        emit_own(held, "end");
        assert_reaches(&end, round);
        assert_int_equal(counter_get(&calls), then);
        hold_up(held);
    }
    let_go(held);
    held_end(held);
    counter_fini(&calls);
    counter_fini(&end);
}

/* ---- room -------------------------------------------------------------- */

static int fill(struct held *held, const void *data, size_t size)
{
    int n = 0, status;
    while ((status = ls_emit_with(
                held->node, &(struct ls_emission){.event = "x",
                                                  .data = data,
                                                  .size = size,
                                                  .scope = LS_SCOPE_LOCAL,
                                                  .timeout_ms = LS_NO_WAIT})) ==
           LS_OK)
        n++;
    assert_int_equal(status, LS_EAGAIN);
    return n;
}

TEST(what_lies_together_takes_its_room_and_gives_it_back)
{
    static const char data[180];
    struct ls_node_options options = usual(1);
    options.window_messages = 12000;
    options.window_bytes = 2u << 20;
    struct held *held = held_start(&options);
    assert_ok(ls_on(held->node, "x", count, &held->heard));
    int all = 0;
    for (int round = 0; round < 3; round++) {
        hold_up(held); /* takes room for one, too */
        const bool bytes = round > 0;
        const int n = fill(held, data, bytes ? sizeof data : 0);
        assert_int_equal(n, bytes ? (2 << 20) / sizeof data : 11999);
        all += n;
        let_go(held);
        assert_reaches(&held->heard, all);
    }
    struct ls_node_stats stats;
    ls_node_stats(held->node, &stats);
    assert_true(stats.emitted == (uint64_t)all + 3);
    held_end(held);
}

static int hold_at_1000(void *self, const struct ls_event *event)
{
    struct held *held = self;
    return ++held->n_seen == 1000 ? hold(held, event) : LS_OK;
}

TEST(room_comes_back_before_all_is_handled)
{
    struct held *held = held_up();
    assert_ok(ls_on(held->node, "x", hold_at_1000, held));
    (void)fill(held, NULL, 0);
    let_go(held);
    assert_reaches(&held->holds, 2);
    assert_true(fill(held, NULL, 0) > 800);
    let_go(held);
    held_end(held);
}

/* ---- many emitters ----------------------------------------------------- */

#define EMITTERS 4

struct emitter {
    ls_node *node;
    ls_thread *thread;
    uint32_t number;
    int status;
    uint32_t last; /* of its events, handled */
    struct counter *handled;
    int inversions;
};

struct word {
    uint32_t emitter, n;
};

static int in_turn(void *self, const struct ls_event *event)
{
    struct emitter *all = self;
    struct word word;
    memcpy(&word, event->data, sizeof word);
    struct emitter *emitter = &all[word.emitter];
    emitter->inversions += word.n == emitter->last + 1 ? 0 : 1;
    emitter->last = word.n;
    counter_add(emitter->handled, 1);
    return LS_OK;
}

static void emit_words(void *self)
{
    struct emitter *me = self;
    for (uint32_t n = 1; n <= MANY && me->status == LS_OK; n++) {
        const struct word word = {me->number, n};
        me->status = ls_emit_with(
            me->node,
            &(struct ls_emission){.event = "x",
                                  .data = &word,
                                  .size = sizeof word,
                                  .scope = n / 50 % 2 == 0 ? LS_SCOPE_LOCAL
                                                           : LS_SCOPE_BOTH});
    }
}

TEST(each_of_many_emitters_is_heard_in_order)
{
    struct ls_node_options options = usual(1);
    options.window_messages = 100;
    ls_node *node = create(&options);
    struct counter handled;
    struct emitter all[EMITTERS] = {0};
    counter_init(&handled);
    assert_ok(ls_on(node, "x", in_turn, all));
    assert_ok(ls_node_start(node));
    for (uint32_t i = 0; i < EMITTERS; i++) {
        all[i] =
            (struct emitter){.node = node, .number = i, .handled = &handled};
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &all[i].thread, "emit",
                                  emit_words, &all[i]));
    }
    assert_reaches(&handled, EMITTERS * MANY);
    for (size_t i = 0; i < EMITTERS; i++) {
        assert_ok(ls_thread_join(&all[i].thread, LS_FOREVER));
        assert_ok(all[i].status);
        assert_int_equal(all[i].inversions, 0);
    }
    ls_node_destroy(&node);
    counter_fini(&handled);
}

/* ---- a gate ------------------------------------------------------------ */

static int emit_as_it_is(void *self, const struct ls_emission *emission,
                         const void **data, size_t *size)
{
    (void)self, (void)emission, (void)data, (void)size;
    return LS_OK;
}

/* Lets events of one name in as "21" says, by their payloads. */
static bool by_payload(void *self, const struct ls_event *event)
{
    const char **next = self;
    if (event->size == 1 && *(const char *)event->data != **next)
        return false;
    *next += event->size == 1 ? 1 : 0;
    return true;
}

TEST(a_gate_may_let_in_the_second_of_two_first)
{
    const char *next = "21";
    const struct ls_event_gate gate = {&next, emit_as_it_is, by_payload};
    struct ls_node_options options = usual(1);
    options.gate = &gate;
    struct held *held = held_start(&options);
    assert_ok(ls_on(held->node, "x", note, held));
    hold_up(held);
    assert_ok(emit_in(held, "x", LS_SCOPE_LOCAL, "1", 1));
    assert_ok(emit_in(held, "x", LS_SCOPE_LOCAL, "2", 1));
    let_go(held);
    assert_reaches(&held->heard, 2);
    assert_memory_equal(held->letters, "21", 2);
    held_end(held);
}
