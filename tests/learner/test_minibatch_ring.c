#include "lockstep/minibatch_ring.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* The items that come, in order; "" when none does. */
static const char *const letters[] = {"a", "b", "c", "d", "e", "f"};

static ls_minibatch_ring *new_ring(size_t size, unsigned passes, unsigned first)
{
    const struct ls_minibatch_ring_options options = {
        .size = size, .passes = passes, .first_passes = first};
    ls_minibatch_ring *ring;
    assert_ok(ls_minibatch_ring_create(&ring, &options));
    return ring;
}

/* Take one turn, with an item when one is wanted and *n_items is not 0: "aF",
 * or "aT" when it is released, "Empty"; and a "!" in front when an item was
 * wanted and there was none. */
static void describe_turn(ls_minibatch_ring *ring, const char *const **items,
                          size_t *n_items, char *line, size_t size)
{
    char said[16];
    const bool wants = ls_minibatch_ring_wants_item(ring);
    const bool has_item = wants && *n_items > 0;
    struct ls_minibatch_turn turn;
    const int status = ls_minibatch_ring_next(
        ring, has_item ? (void *)(uintptr_t) * *items : NULL, &turn);
    *items += has_item;
    *n_items -= has_item;
    if (status == LS_OK)
        snprintf(said, sizeof said, "%s%s%s", wants && !has_item ? "!" : "",
                 (const char *)turn.item, turn.released ? "T" : "F");
    else
        snprintf(said, sizeof said, "Empty");
    const size_t used = strlen(line);
    snprintf(line + used, size - used, "%s%s", used > 0 ? " " : "", said);
}

static void assert_turns(ls_minibatch_ring *ring, size_t n_items,
                         size_t n_turns, const char *wanted)
{
    const char *const *items = letters;
    char line[128] = "";
    for (size_t i = 0; i < n_turns; i++)
        describe_turn(ring, &items, &n_items, line, sizeof line);
    assert_string_equal(line, wanted);
    ls_minibatch_ring_destroy(&ring);
}

TEST(one_slot_gives_each_item_all_its_passes)
{
    assert_turns(new_ring(1, 3, 3), 2, 6, "aF aF aT bF bF bT");
}

TEST(two_slots_take_turns)
{
    assert_turns(new_ring(2, 2, 2), 3, 5, "aF bF aT bT cF");
}

TEST(the_first_items_get_fewer_passes)
{
    assert_turns(new_ring(2, 3, 1), 6, 11, "aT bF cF bT cF dF cT dF eF dT eF");
}

TEST(first_passes_are_all_passes_by_default)
{
    assert_turns(new_ring(1, 3, 0), 2, 6, "aF aF aT bF bF bT");
}

TEST(what_is_held_is_given_again_when_nothing_new_comes)
{
    assert_turns(new_ring(3, 2, 2), 1, 3, "aF !aT Empty");
    assert_turns(new_ring(2, 2, 2), 3, 7, "aF bF aT bT cF !cT Empty");
}

TEST(the_turn_goes_on_from_what_was_given_again)
{
    ls_minibatch_ring *ring = new_ring(3, 3, 3);
    const char *const *items = letters;
    size_t n_items = 2;
    char line[64] = "";
    for (int i = 0; i < 4; i++)
        describe_turn(ring, &items, &n_items, line, sizeof line);
    n_items = 1; /* c comes when it is b's turn: it waits for an empty slot */
    for (int i = 0; i < 4; i++)
        describe_turn(ring, &items, &n_items, line, sizeof line);
    assert_string_equal(line, "aF bF !aF bF cF aT bT cF");
    ls_minibatch_ring_destroy(&ring);
}

TEST(it_tells_how_many_items_it_holds)
{
    ls_minibatch_ring *ring = new_ring(2, 2, 1);
    struct ls_minibatch_turn turn;
    int a, b;
    assert_int_equal(ls_minibatch_ring_held(ring), 0);
    assert_ok(ls_minibatch_ring_next(ring, &a, &turn));
    assert_true(turn.item == &a && turn.released);
    assert_int_equal(ls_minibatch_ring_held(ring), 0);
    assert_ok(ls_minibatch_ring_next(ring, &b, &turn));
    assert_true(turn.item == &b && !turn.released);
    assert_int_equal(ls_minibatch_ring_held(ring), 1);
    ls_minibatch_ring_destroy(&ring);
}

TEST(an_item_that_is_not_wanted_is_refused)
{
    ls_minibatch_ring *ring = new_ring(1, 2, 2);
    struct ls_minibatch_turn turn;
    int a, b;
    assert_ok(ls_minibatch_ring_next(ring, &a, &turn));
    assert_false(ls_minibatch_ring_wants_item(ring));
    assert_fails(ls_minibatch_ring_next(ring, &b, &turn), LS_ESTATE);
    assert_ok(ls_minibatch_ring_next(ring, NULL, &turn));
    assert_true(turn.item == &a && turn.released);
    ls_minibatch_ring_destroy(&ring);
}

TEST(an_empty_ring_says_so_and_goes_on)
{
    ls_minibatch_ring *ring = new_ring(2, 1, 1);
    struct ls_minibatch_turn turn = {.item = NULL};
    assert_fails(ls_minibatch_ring_next(ring, NULL, &turn), LS_EAGAIN);
    assert_null(turn.item);
    assert_turns(ring, 3, 4, "aT bT cT Empty");
}

TEST(create_refuses_bad_options)
{
    ls_minibatch_ring *ring = NULL;
    struct ls_minibatch_ring_options options = {.size = 0, .passes = 1};
    assert_fails(ls_minibatch_ring_create(&ring, &options), LS_EINVAL);
    options = (struct ls_minibatch_ring_options){.size = 1, .passes = 0};
    assert_fails(ls_minibatch_ring_create(&ring, &options), LS_EINVAL);
    options = (struct ls_minibatch_ring_options){
        .size = 1, .passes = 2, .first_passes = 3};
    assert_fails(ls_minibatch_ring_create(&ring, &options), LS_EINVAL);
    options = (struct ls_minibatch_ring_options){.size = SIZE_MAX, .passes = 1};
    assert_fails(ls_minibatch_ring_create(&ring, &options), LS_ENOMEM);
    assert_null(ring);
    ls_minibatch_ring_destroy(&ring);
    ls_minibatch_ring_destroy(NULL);
}
