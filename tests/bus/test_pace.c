/* How much may be under way to one peer: no clock, no connection. */
#include "pace.h"
#include "test.h"

#define NOW   LS_NS_PER_S
#define QUICK (PACE_NS / 2)

static struct pace begun(void)
{
    struct pace pace;
    pace_init(&pace);
    return pace;
}

/* All that may be under way is, and it arrives within `took`. */
static void round_of(struct pace *pace, int64_t took)
{
    assert_true(pace_asks(pace, 1000, pace->bytes, NOW));
    pace_arrived(pace, 1000, NOW + took);
}

TEST(it_begins_small)
{
    const struct pace pace = begun();
    assert_int_equal(pace.bytes, PACE_FIRST_BYTES);
    assert_false(pace.slow);
    assert_true(pace_has_room(&pace, 1, PACE_FIRST_BYTES - 1));
    assert_false(pace_has_room(&pace, 1, PACE_FIRST_BYTES));
}

TEST(one_thing_may_always_be_under_way)
{
    const struct pace pace = begun();
    assert_true(pace_has_room(&pace, 0, 100 * PACE_FIRST_BYTES));
    assert_true(pace_has_room(&pace, PACE_FIRST_BYTES, 0));
    assert_false(pace_has_room(&pace, PACE_FIRST_BYTES + 1, 0));
}

TEST(it_doubles_while_what_is_asked_for_arrives_soon)
{
    struct pace pace = begun();
    for (size_t wanted = PACE_FIRST_BYTES; wanted < PACE_MOST_BYTES;
         wanted *= 2) {
        assert_int_equal(pace.bytes, wanted);
        round_of(&pace, QUICK);
    }
    assert_int_equal(pace.bytes, PACE_MOST_BYTES);
    assert_false(pace_asks(&pace, 1000, pace.bytes, NOW)); /* enough */
    assert_false(pace.slow);
}

TEST(what_takes_as_long_as_it_may_changes_nothing)
{
    struct pace pace = begun();
    round_of(&pace, QUICK + 1);
    round_of(&pace, PACE_NS);
    assert_int_equal(pace.bytes, PACE_FIRST_BYTES);
    assert_false(pace.slow);
}

TEST(what_is_late_makes_it_less_in_proportion)
{
    struct pace pace = begun();
    round_of(&pace, 2 * PACE_NS);
    assert_int_equal(pace.bytes, PACE_FIRST_BYTES / 2);
    assert_true(pace.slow);
    round_of(&pace, 0); /* and it may grow again */
    assert_int_equal(pace.bytes, PACE_FIRST_BYTES);
}

TEST(it_is_never_less_than_the_least)
{
    struct pace pace = begun();
    round_of(&pace, 3600 * LS_NS_PER_S);
    assert_int_equal(pace.bytes, PACE_LEAST_BYTES);
    assert_true(pace.slow);
    round_of(&pace, 3600 * LS_NS_PER_S);
    assert_int_equal(pace.bytes, PACE_LEAST_BYTES);
}

TEST(what_is_slow_stays_known_to_be)
{
    struct pace pace = begun();
    round_of(&pace, 2 * PACE_NS);
    round_of(&pace, 0);
    pace_again(&pace);
    assert_true(pace.slow);
}

TEST(it_asks_once_half_of_it_is_under_way)
{
    struct pace pace = begun();
    assert_false(pace_asks(&pace, 5000, PACE_FIRST_BYTES / 2 - 1, NOW));
    assert_true(pace_asks(&pace, 5000, PACE_FIRST_BYTES / 2, NOW));
    assert_false(pace_asks(&pace, 9000, PACE_FIRST_BYTES, NOW)); /* one */
    pace_arrived(&pace, 4999, NOW); /* not yet that of which it was asked */
    assert_false(pace_asks(&pace, 9000, PACE_FIRST_BYTES, NOW));
    assert_int_equal(pace.bytes, PACE_FIRST_BYTES);
    pace_arrived(&pace, 5000, NOW);
    assert_int_equal(pace.bytes, 2 * PACE_FIRST_BYTES);
    assert_true(pace_asks(&pace, 9000, PACE_FIRST_BYTES, NOW));
}

TEST(what_was_not_asked_says_nothing)
{
    struct pace pace = begun();
    pace_arrived(&pace, UINT64_MAX, NOW);
    assert_int_equal(pace.bytes, PACE_FIRST_BYTES);
    round_of(&pace, 0);
    pace_arrived(&pace, 1000, NOW); /* the same answer again */
    assert_int_equal(pace.bytes, 2 * PACE_FIRST_BYTES);
}

TEST(a_new_connection_is_asked_anew)
{
    struct pace pace = begun();
    assert_true(pace_asks(&pace, 1000, PACE_FIRST_BYTES, NOW));
    pace_again(&pace);
    pace_arrived(&pace, 1000, NOW + 3600 * LS_NS_PER_S);
    assert_int_equal(pace.bytes, PACE_FIRST_BYTES);
    assert_true(pace_asks(&pace, 2000, PACE_FIRST_BYTES, NOW));
}

TEST(a_piece_is_half_of_it_and_some)
{
    struct pace pace = begun();
    assert_int_equal(pace_piece(&pace, 1u << 20), PACE_FIRST_BYTES / 2);
    assert_int_equal(pace_piece(&pace, 100), 100);
    pace.bytes = PACE_LEAST_BYTES; /* else the lead would be most of it */
    assert_int_equal(pace_piece(&pace, 1u << 20), PACE_LEAST_BYTES);
    pace.bytes = PACE_MOST_BYTES;
    assert_int_equal(pace_piece(&pace, 1u << 20), 1u << 20);
}

/* A connection of some speed, with one more thing sent as soon as it may: a
 * heartbeat never waits for much longer than it should. */
TEST(it_finds_what_a_connection_carries)
{
    for (double speed = 1e5; speed < 1e10; speed *= 10) { /* bytes per s */
        struct pace pace = begun();
        int64_t now = NOW;
        for (int i = 0; i < 50; i++) {
            const int64_t took = (int64_t)((double)pace.bytes / speed * 1e9);
            if (pace_asks(&pace, 1000, pace.bytes, now))
                pace_arrived(&pace, 1000, now += took);
        }
        const double waits = (double)pace.bytes / speed * 1e9;
        assert_true(waits <= (double)PACE_NS);
        assert_true(waits > (double)PACE_NS / 4 ||
                    pace.bytes == PACE_MOST_BYTES);
    }
}
