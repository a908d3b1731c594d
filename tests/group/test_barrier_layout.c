/* Where members stand in the tree of a barrier. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "barrier_layout.h"
#include "base/seeds.h"
#include "lockstep/random.h"
#include "test.h"

enum { MOST = 200 };

/* The places as "member<above", in their order. */
static const char *drawn(const struct ls_layout *layout)
{
    static char text[512];
    size_t size = 0;
    for (uint32_t i = 0; i < layout->n; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%u<%u",
                                 i == 0 ? "" : " ", layout->places[i].member,
                                 layout->places[i].above);
    return text;
}

static void expect(const uint64_t *hosts, uint32_t n, uint32_t fanout,
                   const char *places)
{
    struct ls_layout layout = {.n = 0};
    assert_true(ls_layout_make(&layout, hosts, n, fanout));
    assert_string_equal(drawn(&layout), places);
    ls_layout_fini(&layout);
}

TEST(on_one_host_members_stand_in_the_order_of_their_ids)
{
    const uint64_t together[] = {5, 5, 5, 5, 5, 5, 5}, apart[7] = {0};
    const char *const tree = "0<0 1<0 2<0 3<1 4<1 5<2 6<2";
    expect(together, 7, 2, tree);
    expect(apart, 7, 2, tree);
    const uint64_t named[] = {9, 1, 4, 2, 8, 3, 7};
    expect(named, 7, 2, tree);
}

TEST(below_the_root_are_the_first_of_each_host_and_the_others_of_its_own)
{
    const uint64_t hosts[] = {1, 2, 1, 2, 1, 2, 3, 0};
    expect(hosts, 8, 16, "0<0 1<0 6<0 7<0 2<0 4<0 3<1 5<1");
}

TEST(no_more_than_fanout_of_each_kind_are_just_below_one)
{
    const uint64_t hosts[] = {1, 1, 1, 1, 2, 2, 2, 3, 4};
    expect(hosts, 9, 2, "0<0 4<0 7<0 1<0 2<0 8<1 5<1 6<1 3<3");
}

TEST(in_a_chain_too)
{
    const uint64_t hosts[] = {2, 1, 2, 1, 2};
    expect(hosts, 5, 1, "0<0 1<0 2<0 3<1 4<2");
}

TEST(it_says_whether_all_stand_just_below_the_root)
{
    const uint64_t two[] = {1, 1, 1, 2}, split[] = {1, 2, 2};
    struct ls_layout layout = {.n = 0};
    assert_true(ls_layout_make(&layout, two, 4, 16));
    assert_true(ls_layout_is_flat(&layout));
    assert_int_equal(layout.n_hosts, 2);
    assert_true(ls_layout_make(&layout, two, 4, 1));
    assert_false(ls_layout_is_flat(&layout));
    assert_true(ls_layout_make(&layout, split, 3, 16));
    assert_false(ls_layout_is_flat(&layout));
    ls_layout_fini(&layout);
}

TEST(the_same_again_changes_nothing_and_another_is_made_anew)
{
    uint64_t hosts[] = {1, 2, 1, 2};
    struct ls_layout layout = {.n = 0};
    assert_true(ls_layout_make(&layout, hosts, 4, 2));
    assert_string_equal(drawn(&layout), "0<0 1<0 2<0 3<1");
    assert_true(ls_layout_make(&layout, hosts, 4, 2));
    assert_string_equal(drawn(&layout), "0<0 1<0 2<0 3<1");
    hosts[3] = 1;
    assert_true(ls_layout_make(&layout, hosts, 4, 2));
    assert_string_equal(drawn(&layout), "0<0 1<0 2<0 3<0");
    assert_true(ls_layout_make(&layout, hosts, 3, 1));
    assert_string_equal(drawn(&layout), "0<0 1<0 2<0");
    assert_true(ls_layout_make(&layout, hosts, 3, 2));
    ls_layout_fini(&layout);
}

/* --- thousands of worlds ------------------------------------------------- */

struct drawn_world {
    uint64_t hosts[MOST];
    uint32_t n, fanout, n_hosts;
};

static struct drawn_world draw(uint64_t seed)
{
    struct ls_rng rng;
    struct drawn_world world = {.n = 0};
    ls_rng_seed(&rng, seed, 0);
    world.n = 1 + (uint32_t)ls_rng_below(&rng, MOST);
    world.fanout = 1 + (uint32_t)ls_rng_below(&rng, 18);
    const uint64_t most = 1 + ls_rng_below(&rng, 20);
    for (uint32_t i = 0; i < world.n; i++) {
        const uint64_t host = ls_rng_below(&rng, most + 1);
        bool is_new = true;
        for (uint32_t k = 0; k < i && host != 0; k++)
            is_new = is_new && world.hosts[k] != host;
        world.hosts[i] = host;
        world.n_hosts += is_new ? 1 : 0;
    }
    return world;
}

static bool is_first_there(const struct drawn_world *world, uint32_t member)
{
    for (uint32_t i = 0; i < member && world->hosts[member] != 0; i++)
        if (world->hosts[i] == world->hosts[member])
            return false;
    return true;
}

static void check(const struct drawn_world *world,
                  const struct ls_layout *layout)
{
    bool seen[MOST] = {false};
    uint32_t n_below[2][MOST] = {{0}}, crossings = 0;
    assert_int_equal(layout->n_hosts, world->n_hosts);
    assert_int_equal(layout->places[0].member, 0);
    assert_int_equal(layout->places[0].below, world->n > 1 ? 1 : world->n);
    for (uint32_t place = 0; place < world->n; place++) {
        const struct ls_layout_place *at = &layout->places[place];
        assert_false(seen[at->member]);
        seen[at->member] = true;
        if (place == 0)
            continue;
        const uint32_t above = layout->places[at->above].member;
        assert_true(at->above < place);
        assert_true(layout->places[at->above].below <= place &&
                    place < layout->places[at->above + 1].below);
        const bool crosses = world->hosts[above] != world->hosts[at->member] ||
                             world->hosts[above] == 0;
        assert_true(crosses == is_first_there(world, at->member));
        assert_true(!crosses || is_first_there(world, above));
        assert_true(++n_below[crosses][at->above] <= world->fanout);
        crossings += crosses ? 1 : 0;
    }
    assert_int_equal(layout->places[world->n].below, world->n);
    assert_int_equal(crossings, world->n_hosts - 1);
}

TEST(of_thousands_of_worlds_each_has_one_way_to_each_host)
{
    struct ls_layout layout = {.n = 0};
    const struct seeds seeds = seeds_of(3000);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        const struct drawn_world world = draw(seed);
        assert_true(
            ls_layout_make(&layout, world.hosts, world.n, world.fanout));
        check(&world, &layout);
    }
    ls_layout_fini(&layout);
}
