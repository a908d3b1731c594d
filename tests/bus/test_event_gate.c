/* What stands between a node's events and their handlers, and between its
 * emits and the others. */
#include <string.h>

#include "node_fixture.h"

static struct counter handled;
static char order[8];
static size_t n_order;

static int note(void *self, const struct ls_event *event)
{
    if (n_order < sizeof order - 1)
        order[n_order++] = event->size == 1 ? *(const char *)event->data : '?';
    return count(self, event);
}

/* Lets them in as "abcd" says, whatever order they come in; what is not in it
 * never. */
static bool in_order(void *self, const struct ls_event *event)
{
    const char **next = self;
    if (event->name[0] != **next)
        return false;
    ++*next;
    return true;
}

static int emit_as_it_is(void *self, const struct ls_emission *emission,
                         const void **data, size_t *size)
{
    (void)self, (void)emission, (void)data, (void)size;
    return LS_OK;
}

static bool always(void *self, const struct ls_event *event)
{
    (void)self, (void)event;
    return true;
}

/* "c" says x instead, and "e" fails. */
static int emit_otherwise(void *self, const struct ls_emission *emission,
                          const void **data, size_t *size)
{
    (void)self;
    if (emission->event[0] == 'e')
        return ls_error(LS_EMISMATCH, "not this one");
    if (emission->event[0] == 'c')
        *data = "x", *size = 1;
    return LS_OK;
}

static struct counter released;

static void release(void *data, void *hint)
{
    (void)data;
    (void)count(hint, NULL);
}

static ls_node *create_gated(uint32_t id, const struct ls_event_gate *gate,
                             const char *attach)
{
    struct ls_node_options options = usual(id);
    options.gate = gate;
    options.attach = &attach;
    options.n_attach = attach != NULL ? 1 : 0;
    options.world_size = attach != NULL ? 2 : options.world_size;
    return create(&options);
}

/* Events that follow each other closely come in one frame, but for long ones:
 * the last "a" stays behind those that were held before it. */
TEST(a_gate_lets_in_one_by_one_what_came_together)
{
    const char *next = "bababaa";
    const struct ls_event_gate in = {&next, emit_as_it_is, in_order};
    static const char what[] = "123xyz";
    static const char large[4000];
    n_order = 0;
    counter_init(&handled);
    ls_node *one = create_gated(1, NULL, NULL);
    assert_ok(ls_node_open(one));
    ls_node *two = create_gated(2, &in, ls_node_endpoint(one));
    assert_ok(ls_on(two, "?", note, &handled));
    assert_ok(ls_node_join(one));
    assert_ok(ls_node_start(two));
    for (size_t i = 0; i < 6; i++) {
        if (i == 3)
            assert_ok(ls_emit(one, "a", large, sizeof large));
        assert_ok(ls_emit(one, i < 3 ? "a" : "b", &what[i], 1));
    }
    assert_reaches(&handled, 7);
    assert_memory_equal(order, "x1y2z3?", 7);
    assert_ok(ls_node_destroy(&two));
    assert_ok(ls_node_destroy(&one));
}

TEST(a_gate_orders_what_is_handled_and_changes_what_is_emitted)
{
    const char *next = "abcd";
    n_order = 0;
    const struct ls_event_gate out = {NULL, emit_otherwise, always};
    const struct ls_event_gate in = {&next, emit_as_it_is, in_order};
    static const char *const names[] = {"b", "d", "a", "z", "c"};
    counter_init(&handled);
    counter_init(&released);
    ls_node *one = create_gated(1, &out, NULL);
    assert_ok(ls_node_open(one));
    ls_node *two = create_gated(2, &in, ls_node_endpoint(one));
    assert_ok(ls_on(two, "?", note, &handled));
    assert_ok(ls_node_join(one));
    assert_ok(ls_node_start(two));
    for (size_t i = 0; i < 4; i++)
        assert_ok(ls_emit(one, names[i], names[i], 1));
    struct ls_emission emission = {.event = "c",
                                   .data = "c",
                                   .size = 1,
                                   .release = release,
                                   .hint = &released};
    assert_ok(ls_emit_with(one, &emission));
    assert_reaches(&released, 1); /* it was not sent, so not needed */
    assert_reaches(&handled, 4);
    assert_memory_equal(order, "abxd", 4);
    emission.event = "e";
    assert_fails(ls_emit_with(one, &emission), LS_EMISMATCH);
    assert_error_has("not this one");
    assert_reaches(&released, 2);
    /* What was never let in is handled when the node stops. */
    assert_ok(ls_node_destroy(&two));
    assert_reaches(&handled, 5);
    assert_int_equal(order[4], 'z');
    assert_ok(ls_node_destroy(&one));
}

/* Counts what it is shown. */
static int count_emits(void *self, const struct ls_emission *emission,
                       const void **data, size_t *size)
{
    (void)emission, (void)data, (void)size;
    return count(self, NULL);
}

TEST(a_gate_is_shown_only_what_can_be_emitted)
{
    struct counter shown;
    counter_init(&shown);
    counter_init(&released);
    const struct ls_event_gate out = {&shown, count_emits, always};
    ls_node *node = create_gated(1, &out, NULL);
    const struct ls_emission nothing = {
        .event = "a", .size = 5, .release = release, .hint = &released};
    assert_fails(ls_emit_with(node, &nothing), LS_EINVAL);
    assert_int_equal(counter_get(&released), 1);
    assert_fails(ls_emit(node, "", "x", 1), LS_EINVAL);
    assert_fails(ls_emit(node, NULL, "x", 1), LS_EINVAL);
    assert_fails(ls_emit(node, "a", "x", SIZE_MAX), LS_ELIMIT);
    assert_int_equal(counter_get(&shown), 0);
    assert_ok(ls_emit(node, "a", "x", 1));
    assert_int_equal(counter_get(&shown), 1);
    assert_ok(ls_node_destroy(&node));
    counter_fini(&released);
    counter_fini(&shown);
}

/* Whether the emit says so, or the event. */
TEST(a_gate_is_not_shown_the_latest)
{
    struct counter shown;
    counter_init(&shown);
    const struct ls_event_gate out = {&shown, count_emits, always};
    ls_node *node = create_gated(1, &out, NULL);
    assert_ok(ls_node_start(node));
    assert_ok(ls_emit_with(
        node,
        &(struct ls_emission){.event = "a", .delivery = LS_DELIVERY_LATEST}));
    assert_ok(ls_node_set_delivery(node, "b", LS_DELIVERY_LATEST));
    assert_ok(ls_emit(node, "b", "x", 1));
    assert_int_equal(counter_get(&shown), 0);
    assert_ok(ls_node_destroy(&node));
    counter_fini(&shown);
}
