/* Looking before sleeping, on a clock that only yields let go on. */
#include "patience.h"

#include "memory_ops.h"
#include "runtime_ops.h"
#include "test.h"

/* ---- a runtime that is looked at --------------------------------------- */

static int64_t now, yield_ns;
static unsigned yields, looks, comes_at; /* at which look; 0: never */

static int64_t its_now(ls_runtime *runtime)
{
    (void)runtime;
    return now;
}

static void its_yield(ls_runtime *runtime)
{
    (void)runtime;
    yields++;
    now += yield_ns;
}

static const struct ls_memory_ops memory = {.yield = its_yield};
static const struct ls_runtime_ops ops = {.now = its_now, .memory = &memory};
static ls_runtime runtime = {.ops = &ops};

static bool has_come(void *self)
{
    (void)self;
    return ++looks == comes_at;
}

/* Wait until it comes at this look. */
static bool look(struct patience *p, unsigned at)
{
    yields = looks = 0;
    comes_at = at;
    return patience_look(p, &runtime, has_come, NULL);
}

/* Five take part, on two cores. */
static struct patience of_five(void)
{
    struct patience p;
    now = 1;
    yield_ns = LS_NS_PER_US;
    patience_begin(&p, &runtime, 5, 2);
    return p;
}

/* How many waits go by without a yield before one has it. */
static unsigned sleeps_at_once(struct patience *p)
{
    unsigned n = 0;
    yield_ns = LS_NS_PER_US;
    while (!look(p, 0) && yields == 0) {
        assert_int_equal(looks, 1);
        n++;
    }
    return n;
}

static void have_a_dear_yield(struct patience *p)
{
    yield_ns = p->dear_ns + 1;
    assert_false(look(p, 0));
    assert_int_equal(yields, 1);
}

static void go_well(struct patience *p, unsigned times)
{
    yield_ns = LS_NS_PER_US;
    while (times-- > 0)
        assert_true(look(p, 1));
}

/* ---- its promises ------------------------------------------------------ */

TEST(a_core_is_yielded_between_looks_that_come_to_nothing)
{
    struct patience p = of_five();
    assert_false(look(&p, 0));
    assert_int_equal(looks, PATIENCE_YIELDS);
    assert_int_equal(yields, PATIENCE_YIELDS);
}

TEST(no_longer_than_until_it_comes)
{
    struct patience p = of_five();
    assert_true(look(&p, 3));
    assert_int_equal(looks, 3);
    assert_int_equal(yields, 2);
}

TEST(who_can_have_a_core_looks_many_times_before_each_yield)
{
    struct patience p;
    yield_ns = LS_NS_PER_US;
    patience_begin(&p, &runtime, 2, 2);
    assert_true(look(&p, PATIENCE_SPINS));
    assert_int_equal(yields, (PATIENCE_SPINS - 1) / PATIENCE_SPINS_PER_YIELD);
    assert_false(look(&p, 0));
    assert_int_equal(looks, PATIENCE_SPINS + PATIENCE_YIELDS);
}

TEST(
    after_a_dear_yield_the_next_waits_sleep_at_once_four_times_as_many_each_time)
{
    struct patience p = of_five();
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_FIRST);
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), 4 * PATIENCE_SULK_FIRST);
}

/* n on so many cores give up after a yield that took longer than this. */
static void check_dear(unsigned n, double cores, int64_t ns)
{
    struct patience p;
    now = 1;
    patience_begin(&p, &runtime, n, cores);
    p.spins = 0;
    yield_ns = ns;
    assert_false(look(&p, 0));
    assert_int_equal(yields, PATIENCE_YIELDS);
    yield_ns = ns + 1;
    assert_false(look(&p, 0));
    assert_int_equal(yields, 1);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_FIRST);
}

TEST(a_yield_may_take_as_long_for_each_that_shares_the_core_up_to_a_limit)
{
    check_dear(1, 2, PATIENCE_YIELD_DEAR_NS);
    check_dear(2, 2, PATIENCE_YIELD_DEAR_NS);
    check_dear(3, 2, PATIENCE_YIELD_DEAR_NS * 3 / 2);
    check_dear(8, 2, PATIENCE_YIELD_DEAR_NS * 4);
    check_dear(2, 0.5, PATIENCE_YIELD_DEAR_NS * 4);
    check_dear(16, 2, PATIENCE_YIELD_DEAR_MAX_NS);
    check_dear(64, 0.01, PATIENCE_YIELD_DEAR_MAX_NS);
}

TEST(what_is_there_already_is_seen_by_who_sleeps_at_once_too)
{
    struct patience p = of_five();
    have_a_dear_yield(&p);
    assert_true(look(&p, 1));
}

TEST(the_penalty_grows_to_a_limit)
{
    struct patience p = of_five();
    for (int i = 0; i < 10; i++) {
        have_a_dear_yield(&p);
        (void)sleeps_at_once(&p);
    }
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_MAX);
}

TEST(who_waits_for_long_copies_has_longer_yields_and_gives_up_for_fewer_waits)
{
    struct patience p;
    now = 1;
    patience_begin_long(&p, &runtime, 2, 2);
    p.spins = 0;
    yield_ns = PATIENCE_YIELD_DEAR_MAX_NS;
    assert_false(look(&p, 0));
    assert_int_equal(yields, PATIENCE_YIELDS);
    for (int i = 0; i < 10; i++) {
        have_a_dear_yield(&p);
        (void)sleeps_at_once(&p);
    }
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_MAX_LONG);
}

/* Nine wait for long copies of each other, on two cores. */
static struct patience of_nine_for_long(void)
{
    struct patience p;
    now = 1;
    patience_begin_long(&p, &runtime, 9, 2);
    return p;
}

/* A wait with a dear yield that finds at last what it waits for. */
static void bear_a_dear_yield(struct patience *p)
{
    yield_ns = p->dear_ns + 1;
    assert_true(look(p, 3));
    assert_int_equal(yields, 2);
}

TEST(
    many_that_share_a_core_give_up_when_yields_are_dear_in_one_wait_after_the_other)
{
    struct patience p = of_nine_for_long();
    for (int i = 0; i < 3; i++) {
        bear_a_dear_yield(&p);
        bear_a_dear_yield(&p);
        go_well(&p, 1);
    }
    bear_a_dear_yield(&p);
    bear_a_dear_yield(&p);
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_FIRST);
}

TEST(and_if_the_first_wait_after_that_has_one_too_at_once)
{
    struct patience p = of_nine_for_long();
    bear_a_dear_yield(&p);
    bear_a_dear_yield(&p);
    have_a_dear_yield(&p);
    yield_ns = LS_NS_PER_US;
    for (unsigned i = 0; i < PATIENCE_SULK_FIRST; i++)
        assert_false(look(&p, 0));
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), 4 * PATIENCE_SULK_FIRST);
}

/* n take part, on two cores. */
static void check_good_waits(unsigned n)
{
    struct patience p;
    unsigned penalty = PATIENCE_SULK_FIRST;
    now = 1;
    patience_begin(&p, &runtime, n, 2);
    for (int i = 0; i < 3; i++) {
        have_a_dear_yield(&p);
        assert_int_equal(sleeps_at_once(&p), penalty);
        go_well(&p, PATIENCE_GOOD_WAITS); /* one more is missing */
        penalty *= 4;
    }
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), penalty);
    go_well(&p, PATIENCE_GOOD_WAITS + 1);
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_FIRST);
}

TEST(when_waits_have_gone_well_for_long_it_is_the_first_again)
{
    check_good_waits(5);
}

TEST(and_so_it_is_where_each_has_a_core)
{
    check_good_waits(2);
}

TEST(who_looks_for_more_does_so_briefly_and_gives_up_for_longer)
{
    struct patience p;
    yield_ns = LS_NS_PER_US;
    patience_begin_for_more(&p, &runtime);
    assert_false(look(&p, 0));
    assert_int_equal(yields, PATIENCE_YIELDS_FOR_MORE);
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_FIRST_FOR_MORE);
    go_well(&p, PATIENCE_GOOD_WAITS + 1);
    have_a_dear_yield(&p);
    assert_int_equal(sleeps_at_once(&p), PATIENCE_SULK_FIRST_FOR_MORE);
}
