/* Who is there, who may have an id, and who may say so: one machine, without
 * node, socket or clock. What many of them come to is in
 * test_membership_schedules.c. */
#include "membership_fixture.h"
#include "test.h"

/* ---- ready ------------------------------------------------------------- */

enum { PRESENT = 1, HEARD = 2, LISTED = 4, ANNOUNCED = 8, ALL = 15 };

static struct machine *after(unsigned steps)
{
    struct machine *a = machine();
    struct member *member = membership_note(&a->m, 2, FIRST);
    const struct wire_member me = {
        .id = ME, .incarnation = MY_LIFE, .state = WIRE_MEMBER_PRESENT};
    assert_non_null(member);
    if ((steps & PRESENT) != 0)
        assert_ok(present(a, 2, FIRST));
    if ((steps & HEARD) != 0)
        member->heard_at = a->now;
    if ((steps & LISTED) != 0)
        membership_listed(&a->m, member, &me, a->now);
    membership_list_ends(&a->m, member, (steps & LISTED) != 0, a->now);
    if ((steps & ANNOUNCED) != 0)
        membership_announced(&a->m, a->now);
    return a;
}

TEST(ready_takes_all_four_and_nothing_less)
{
    for (unsigned steps = 0; steps < ALL; steps++) {
        struct machine *a = after(steps);
        assert_int_equal(of(a, 2)->state, LS_MEMBER_SEEN);
        assert_int_equal(membership_n_ready(&a->m), 0);
        end(a);
    }
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_BECAME_READY), 1);
    assert_int_equal(membership_n_ready(&a->m), 1);
    end(a);
}

TEST(who_lists_an_earlier_life_of_this_node_is_not_ready)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    hears(a, 2, {ME, MY_LIFE + 1, WIRE_MEMBER_READY});
    membership_announced(&a->m, a->now);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_SEEN);
    hears(a, 2, {ME, MY_LIFE, WIRE_MEMBER_LOST});
    assert_int_equal(of(a, 2)->state, LS_MEMBER_SEEN);
    hears(a, 2, {ME, MY_LIFE, WIRE_MEMBER_PRESENT});
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    end(a);
}

TEST(who_does_not_list_this_node_any_more_is_not_ready)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    hears(a, 2, READY_ME(a));
    hears(a, 2, {3, FIRST, WIRE_MEMBER_READY});
    membership_announced(&a->m, a->now);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_SEEN);
    end(a);
}

TEST(what_becomes_of_a_member_is_announced_at_once)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    assert_true(a->m.announce);
    membership_announced(&a->m, a->now);
    a->m.announce = false;
    const uint64_t version = a->m.version;
    hears(a, 2, READY_ME(a));
    assert_true(a->m.announce);
    assert_true(a->m.version != version);
    a->m.announce = false;
    broke(a, 2, FIRST); /* nobody else has to know */
    assert_false(a->m.announce);
    end(a);
}

TEST(both_ways_takes_that_it_says_ready_too)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    membership_announced(&a->m, a->now);
    hears(a, 2, {ME, MY_LIFE, WIRE_MEMBER_PRESENT});
    assert_int_equal(membership_n_ready(&a->m), 1);
    assert_int_equal(membership_n_both_ways(&a->m), 0);
    hears(a, 2, READY_ME(a));
    assert_int_equal(membership_n_both_ways(&a->m), 1);
    hears(a, 2, {3, FIRST, WIRE_MEMBER_READY}); /* not this node any more */
    assert_int_equal(membership_n_ready(&a->m), 1);
    assert_int_equal(membership_n_both_ways(&a->m), 0);
    end(a);
}

TEST(a_heartbeat_that_is_overtaken_says_nothing)
{
    struct machine *a = machine();
    struct member *member = ready(a, 2, FIRST);
    assert_fails(membership_heartbeat(member, a->heartbeats), LS_ENOENT);
    assert_ok(membership_heartbeat(member, a->heartbeats + 1));
    end(a);
}

TEST(who_left_in_peace_was_a_member_all_the_same)
{
    struct machine *a = machine();
    membership_farewell(&a->m, ready(a, 2, FIRST), LS_OK, a->now);
    membership_farewell(&a->m, ready(a, 3, FIRST), LS_EIO, a->now);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_LEFT);
    assert_int_equal(of(a, 3)->state, LS_MEMBER_LEFT);
    assert_true(membership_has(of(a, 2)));
    assert_false(membership_has(of(a, 3)));
    assert_int_equal(membership_n_both_ways(&a->m), 1);
    end(a);
}

/* ---- who speaks -------------------------------------------------------- */

TEST(a_presence_of_another_identity_is_refused)
{
    struct machine *a = machine();
    const struct wire_presence p = presence_of(2, FIRST);
    assert_fails(present_as(a, 3, &p), LS_EPROTO);
    assert_error_has("node 3 speaks as node 2");
    assert_null(membership_find(&a->m, 2));
    const struct speaker open = {.spoken = true, .connection = 1};
    assert_ok(membership_present(&a->m, &open, &p, a->now));
    end(a);
}

TEST(a_presence_of_another_world_is_refused)
{
    struct machine *a = machine();
    struct wire_presence p = presence_of(2, FIRST);
    (void)snprintf(p.job, sizeof p.job, "other");
    assert_fails(present_as(a, 2, &p), LS_EMISMATCH);
    p = presence_of(2, FIRST);
    p.config_hash = 78;
    assert_fails(present_as(a, 2, &p), LS_EMISMATCH);
    assert_null(membership_find(&a->m, 2));
    p.config_hash = 0; /* of any */
    assert_ok(present_as(a, 2, &p));
    end(a);
}

static struct wire_presence relayed(uint32_t id, uint64_t life, uint32_t relay)
{
    struct wire_presence p = presence_of(id, life);
    p.relayed = true;
    p.relay = relay;
    p.link = link_of(relay);
    return p;
}

TEST(only_its_hub_relays_to_a_leaf)
{
    const struct wire_presence by_3 = relayed(2, FIRST, 3);
    struct machine *mesh = machine();
    (void)ready(mesh, 3, FIRST);
    assert_fails(present_as(mesh, 3, &by_3), LS_EPROTO);
    assert_null(membership_find(&mesh->m, 2));
    end(mesh);

    struct machine *hub = machine_with(LS_TOPOLOGY_STAR, true, ME, 64);
    (void)ready(hub, 3, FIRST);
    assert_fails(present_as(hub, 3, &by_3), LS_EPROTO);
    end(hub);

    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    struct wire_presence elsewhere = by_3;
    elsewhere.link = link_of(9);
    assert_fails(present_as(leaf, 3, &by_3), LS_EPROTO); /* unknown yet */
    (void)ready(leaf, 3, FIRST);
    assert_fails(present_as(leaf, 3, &elsewhere), LS_EPROTO);
    assert_fails(present_as(leaf, 4, &by_3), LS_EPROTO);
    assert_ok(present_as(leaf, 3, &by_3));
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_READY);
    assert_ptr_equal(of(leaf, 2)->via, of(leaf, 3));
    end(leaf);
}

TEST(what_was_shown_before_the_hub_was_known_was_not_so)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    const struct wire_presence by_8 = relayed(2, FIRST, 8);
    const struct wire_presence too_by_8 = relayed(4, FIRST, 8);
    const struct wire_presence by_3 = relayed(4, FIRST, 3);
    assert_ok(present(leaf, 8, FIRST));
    assert_ok(present_as(leaf, 8, &by_8));
    assert_ok(present_as(leaf, 8, &too_by_8));
    (void)ready(leaf, 3, FIRST);
    assert_ok(present_as(leaf, 3, &by_3));
    assert_ptr_equal(of(leaf, 4)->via, of(leaf, 8));
    membership_attached(&leaf->m, of(leaf, 3), leaf->now);
    assert_null(of(leaf, 2)->via);
    assert_int_equal(of(leaf, 2)->n_present, 0);
    assert_false(member_is_alive(of(leaf, 2)));
    assert_ptr_equal(of(leaf, 4)->via, of(leaf, 3));
    assert_int_equal(of(leaf, 4)->n_present, 1);
    assert_int_equal(of(leaf, 4)->state, LS_MEMBER_READY);
    assert_int_equal(of(leaf, 8)->n_present, 1); /* it showed itself */
    end(leaf);
}

/* What one shows of another is signed by that one, but so is what it has itself
 * been shown. */
TEST(who_was_dialled_first_is_the_only_hub)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    const struct wire_presence by_8 = relayed(2, FIRST, 8);
    const struct speaker eight = proved(8);
    membership_attached(&leaf->m, ready(leaf, 3, FIRST), leaf->now);
    (void)ready(leaf, 8, FIRST);
    assert_fails(present_as(leaf, 8, &by_8), LS_EPROTO);
    assert_null(membership_find(&leaf->m, 2));
    assert_fails(membership_may_listen(&leaf->m, &eight, 2), LS_EPROTO);
    membership_attached(&leaf->m, of(leaf, 8), leaf->now); /* the next hub */
    assert_ok(present_as(leaf, 8, &by_8));
    end(leaf);
}

/* A leaf has only heard the hub that goes, and then stands still: of the next
 * one it reads first who that shows, and then that it answers. */
TEST(who_the_next_hub_shows_comes_with_it)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    struct wire_presence p = relayed(2, FIRST, 3);
    struct member *hub = NULL;
    const struct answer first = {.id = 3, .incarnation = FIRST},
                        next = {.id = 3, .incarnation = SECOND};
    p.link = 9;
    assert_ok(membership_answers(&leaf->m, &first, leaf->now, &hub));
    membership_attached(&leaf->m, hub, leaf->now);
    hub->heard_at = leaf->now;
    assert_fails(present_over(leaf, 3, SECOND, 9), LS_EEXIST);
    assert_fails(present_as(leaf, 3, &p), LS_EEXIST);
    p.id = 4;
    assert_fails(present_as(leaf, 3, &p), LS_EEXIST);
    const struct speaker by = proved(3);
    assert_ok(membership_absent(&leaf->m, &by, &p, leaf->now)); /* it goes */
    struct answer again = next;
    again.member = hub;
    assert_ok(membership_answers(&leaf->m, &again, leaf->now, &hub));
    assert_int_equal(hub->n_present, 1);
    settle(leaf, 3);
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_READY);
    assert_ptr_equal(of(leaf, 2)->via, hub);
    assert_false(member_is_alive(of(leaf, 4)));
    end(leaf);
}

/* The hub was a member, and so was who it showed, in this life or another. */
TEST(who_the_next_hub_shows_waits_while_the_first_is_there)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    struct wire_presence same = relayed(2, FIRST, 3);
    struct wire_presence other = relayed(4, FIRST, 3);
    membership_attached(&leaf->m, ready(leaf, 3, FIRST), leaf->now);
    assert_ok(present_as(leaf, 3, &same));
    assert_ok(present_as(leaf, 3, &other));
    same.link = other.link = 9;
    other.incarnation = SECOND;
    assert_fails(present_as(leaf, 3, &same), LS_EPROTO); /* of nobody's link */
    assert_fails(present_over(leaf, 3, SECOND, 9), LS_EEXIST);
    assert_fails(present_as(leaf, 3, &same), LS_EEXIST);
    assert_fails(present_as(leaf, 3, &other), LS_EEXIST);
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_READY);
    assert_int_equal(of(leaf, 4)->state, LS_MEMBER_READY);
    assert_true(of(leaf, 4)->incarnation == FIRST);
    probe(leaf, 3, true);
    assert_int_equal(changed(leaf, 4, FIRST, MEMBER_ENDED), 1);
    settle(leaf, 3);
    assert_int_equal(of(leaf, 4)->state, LS_MEMBER_READY);
    assert_true(of(leaf, 4)->incarnation == SECOND);
    /* It has declared that life lost, and sees it there: it rejoins. */
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_LOST);
    assert_non_null(member_showing(of(leaf, 2), 9, FIRST));
    hears(leaf, 3, READY_ME(leaf), {2, FIRST, WIRE_MEMBER_READY});
    assert_true(leaf->m.rejoins);
    end(leaf);
}

TEST(through_a_hub_that_is_lost_nobody_is_reached)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    const struct wire_presence p = relayed(2, FIRST, 3);
    assert_ok(present(leaf, 3, FIRST));
    assert_ok(present_as(leaf, 3, &p));
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_SEEN); /* the hub is too */
    settle(leaf, 3);
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_READY);
    pass_without(leaf, SILENCE, 3);
    assert_fails(of(leaf, 3)->reason, LS_ETIMEDOUT);
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_LOST);
    assert_fails(of(leaf, 2)->reason, LS_ELOST);
    end(leaf);
}

/* A leaf whose hub leaves; that it was ready there was lost, and is not said
 * again. Returns how many it counts as there both ways. */
static size_t both_ways_after(int farewell)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    const struct wire_presence p = relayed(2, FIRST, 3);
    assert_ok(present(leaf, 3, FIRST));
    assert_ok(present_as(leaf, 3, &p));
    membership_announced(&leaf->m, leaf->now);
    hears(leaf, 3, {ME, MY_LIFE, WIRE_MEMBER_PRESENT});
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_READY);
    assert_int_equal(membership_n_both_ways(&leaf->m), 0);
    membership_farewell(&leaf->m, of(leaf, 3), farewell, leaf->now);
    const size_t n = membership_n_both_ways(&leaf->m);
    end(leaf);
    return n;
}

TEST(with_a_hub_that_left_in_peace_all_were_there)
{
    assert_int_equal(both_ways_after(LS_OK), 2);
    assert_int_equal(both_ways_after(LS_EIO), 0);
}

TEST(who_listens_says_it_for_itself)
{
    struct machine *a = machine();
    const struct speaker two = proved(2), open = {.spoken = true},
                         ended = {.proved = true, .id = 2};
    assert_ok(membership_may_listen(&a->m, &two, 2));
    assert_fails(membership_may_listen(&a->m, &two, 3), LS_EPROTO);
    assert_ok(membership_may_listen(&a->m, &open, 3));
    assert_ok(membership_may_listen(&a->m, &ended, 3));
    end(a);
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    assert_ok(membership_may_listen(&leaf->m, &two, 3)); /* it may be a hub */
    end(leaf);
}

TEST(who_sends_up_says_it_for_itself)
{
    struct machine *a = machine();
    struct speaker two = proved(2), open = {.spoken = true, .connection = 77};
    assert_ok(membership_may_send_up(&a->m, &two, 2, false));
    assert_fails(membership_may_send_up(&a->m, &two, 3, false), LS_EPROTO);
    assert_ok(membership_may_send_up(&a->m, &two, 3, true)); /* its leaf */
    assert_ok(present(a, 2, FIRST));
    assert_ok(
        membership_may_send_up(&a->m, &open, 3, false)); /* not yet here */
    open.connection = of(a, 2)->showings[0].connection;
    assert_fails(membership_may_send_up(&a->m, &open, 3, false), LS_EPROTO);
    end(a);
}

/* A stranger has shown the hub as its own leaf, and is gone when that comes. */
TEST(who_was_shown_by_one_that_is_gone_may_be_a_hub)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    const struct wire_presence by_8 = relayed(3, FIRST, 8);
    const struct speaker three = proved(3), eight = proved(8);
    assert_ok(present(leaf, 8, FIRST));
    assert_ok(present_as(leaf, 8, &by_8));
    assert_fails(membership_may_listen(&leaf->m, &three, 2), LS_EPROTO);
    assert_ok(membership_absent(&leaf->m, &eight, &by_8, leaf->now));
    assert_ok(membership_may_listen(&leaf->m, &three, 2));
    (void)ready(leaf, 3, FIRST);
    assert_null(of(leaf, 3)->via);
    end(leaf);
}

TEST(a_presence_counts_once_of_each_connection)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    assert_fails(present(a, 2, FIRST), LS_EPROTO);
    for (uint64_t link = 1; link < MEMBERSHIP_SHOWINGS; link++)
        assert_ok(present_over(a, 2, FIRST, link));
    assert_fails(present_over(a, 2, FIRST, 99), LS_EPROTO);
    assert_int_equal(of(a, 2)->n_present, MEMBERSHIP_SHOWINGS);
    end(a);
}

TEST(an_old_connection_may_end_after_a_new_one_began)
{
    struct machine *a = machine();
    const struct wire_presence p = presence_of(2, FIRST);
    const struct speaker again = {
        .spoken = true, .proved = true, .id = 2, .connection = 99};
    (void)ready(a, 2, FIRST);
    assert_ok(membership_present(&a->m, &again, &p, a->now));
    broke(a, 2, FIRST);
    assert_int_equal(of(a, 2)->n_present, 1);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_AWAY), 0);
    broke(a, 2, FIRST);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_AWAY), 1);
    end(a);
}

/* ---- withdrawals ------------------------------------------------------- */

TEST(a_withdrawal_of_another_is_refused)
{
    struct machine *a = machine();
    const struct speaker three = proved(3), two = proved(2);
    struct wire_presence p = presence_of(2, FIRST);
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    assert_fails(membership_absent(&a->m, &three, &p, a->now), LS_EPROTO);
    p.link = link_of(3); /* of a link over which it was never shown */
    assert_fails(membership_absent(&a->m, &two, &p, a->now), LS_ENOENT);
    assert_fails(absent(a, 2, SECOND), LS_ENOENT); /* in another life */
    assert_fails(absent(a, 9, FIRST), LS_ENOENT);
    assert_int_equal(of(a, 2)->n_present, 1);
    assert_ok(absent(a, 2, FIRST));
    assert_int_equal(of(a, 2)->n_present, 0);
    assert_fails(absent(a, 2, FIRST), LS_ENOENT); /* once */
    end(a);
}

TEST(the_end_of_a_connection_takes_back_what_was_refused)
{
    struct machine *a = machine();
    broke(a, 2, FIRST);
    (void)ready(a, 2, FIRST);
    broke(a, 2, SECOND);
    assert_int_equal(of(a, 2)->n_present, 1);
    end(a);
}

TEST(who_goes_on_as_another_life_takes_the_old_one_back)
{
    struct machine *a = machine();
    struct wire_presence old = presence_of(2, FIRST);
    const struct speaker by = proved(2);
    (void)ready(a, 2, FIRST);
    assert_ok(present_over(a, 2, FIRST, 9));
    assert_ok(present_over(a, 2, SECOND, link_of(2)));
    assert_ok(absent(a, 2, FIRST));
    old.link = 9;
    assert_ok(membership_absent(&a->m, &by, &old, a->now));
    old.link = 10;
    assert_fails(membership_absent(&a->m, &by, &old, a->now), LS_ENOENT);
    assert_int_equal(of(a, 2)->n_present, 1);
    assert_true(of(a, 2)->incarnation == SECOND);
    end(a);
}

/* ---- two want one id --------------------------------------------------- */

TEST(a_second_life_is_told_once_the_first_lives)
{
    struct machine *a = machine();
    struct member *first = ready(a, 2, FIRST);
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    membership_announced(&a->m, a->now);
    assert_int_equal(a->n_told, 0); /* it has not proved to be alive */
    probe(a, 2, false);
    membership_announced(&a->m, a->now);
    assert_int_equal(a->n_told, 0); /* somebody listens there: but who? */
    first->heard_at = a->now;
    membership_announced(&a->m, a->now);
    assert_non_null(told(a, 2, LS_EEXIST, SECOND));
    assert_string_equal(told(a, 2, LS_EEXIST, SECOND)->text, first->endpoint);
    assert_true(first->incarnation == FIRST);
    assert_int_equal(first->state, LS_MEMBER_READY);
    end(a);
}

TEST(a_second_life_gets_the_id_of_one_probed_gone)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    probe(a, 2, true);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_ENDED), 1);
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->n_present, 1);
    assert_true(member_ended_as(of(a, 2), FIRST));
    settle(a, 2);
    assert_int_equal(changed(a, 2, SECOND, MEMBER_BECAME_READY), 1);
    end(a);
}

TEST(a_second_life_gets_the_id_of_one_that_is_silent)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    pass_without(a, SILENCE - HEARTBEAT, 2);
    assert_true(of(a, 2)->incarnation == FIRST);
    a->now += HEARTBEAT;
    (void)membership_tick(&a->m, a->now);
    assert_true(of(a, 2)->incarnation == SECOND);
    end(a);
}

TEST(one_that_is_away_yields_to_who_has_its_address)
{
    struct machine *a = machine();
    struct wire_presence elsewhere = presence_of(2, SECOND);
    (void)ready(a, 2, FIRST);
    broke(a, 2, FIRST);
    elsewhere.link = 8;
    (void)snprintf(elsewhere.endpoint, sizeof elsewhere.endpoint, "tcp://x:1");
    assert_fails(present_as(a, 2, &elsewhere), LS_EEXIST);
    assert_ok(present_over(a, 2, THIRD, 9));
    assert_true(of(a, 2)->incarnation == THIRD);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_ENDED), 1);
    end(a);
}

TEST(over_its_own_link_another_life_goes_on_at_once)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_ok(present_over(a, 2, SECOND, link_of(2)));
    assert_int_equal(changed(a, 2, FIRST, MEMBER_ENDED), 1);
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_SEEN);
    assert_int_equal(of(a, 2)->n_present, 1);
    end(a);
}

static int origin(struct machine *a, uint32_t peer, uint32_t id, uint64_t life)
{
    struct member *out;
    bool early;
    return membership_origin(&a->m, of(a, peer), id, life, a->now, &out,
                             &early);
}

TEST(an_old_life_heard_late_does_not_replace_one_present)
{
    struct machine *a = machine();
    (void)ready(a, 2, SECOND);
    assert_fails(origin(a, 2, 2, FIRST), LS_EEXIST);
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    broke(a, 2, SECOND); /* now it may be the one that goes on */
    assert_ok(origin(a, 2, 2, THIRD));
    assert_true(of(a, 2)->incarnation == THIRD);
    assert_fails(origin(a, 2, 2, SECOND), LS_ENOENT);
    end(a);
}

TEST(the_rival_of_a_life_replaced_gets_its_place)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    assert_ok(origin(a, 2, 2, SECOND));
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->n_present, 1);
    assert_non_null(member_showing(of(a, 2), 9, SECOND));
    assert_int_equal(of(a, 2)->n_rival, 0);
    settle(a, 2);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    end(a);
}

static struct wire_presence signed_as(uint64_t life, const char *signature)
{
    struct wire_presence p = presence_of(2, life);
    strcpy(p.signature, signature);
    p.link = life;
    return p;
}

/* Both ways in which who waits gets the id. */
TEST(what_a_rival_has_signed_comes_with_it)
{
    for (int replaced = 0; replaced < 2; replaced++) {
        struct machine *a =
            machine_with(LS_TOPOLOGY_STAR, true, ME, MEMBERSHIP_MAX);
        const struct wire_presence first = signed_as(FIRST, "aa");
        const struct wire_presence second = signed_as(SECOND, "bb");
        assert_ok(present_as(a, 2, &first));
        settle(a, 2);
        assert_fails(present_as(a, 2, &second), LS_EEXIST);
        assert_string_equal(of(a, 2)->signature, "aa");
        if (replaced)
            assert_ok(origin(a, 2, 2, SECOND));
        else
            probe(a, 2, true);
        assert_true(of(a, 2)->incarnation == SECOND);
        assert_string_equal(of(a, 2)->signature, "bb");
        end(a);
    }
}

TEST(a_rivals_presence_survives_a_replacement)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_fails(present_over(a, 2, THIRD, 9), LS_EEXIST);
    assert_ok(present_over(a, 2, SECOND, link_of(2)));
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->n_rival, 1);
    probe(a, 2, true);
    assert_true(of(a, 2)->incarnation == THIRD);
    assert_int_equal(of(a, 2)->n_present, 1);
    end(a);
}

TEST(a_rival_waits_while_the_first_is_away)
{
    struct machine *a = machine();
    struct wire_presence elsewhere = presence_of(2, SECOND);
    elsewhere.link = 8;
    (void)snprintf(elsewhere.endpoint, sizeof elsewhere.endpoint, "tcp://x:1");
    (void)ready(a, 2, FIRST);
    assert_fails(present_as(a, 2, &elsewhere), LS_EEXIST);
    broke(a, 2, FIRST);
    assert_true(of(a, 2)->incarnation == FIRST);
    assert_ok(present(a, 2, FIRST));
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    end(a);
}

TEST(a_rival_gets_the_id_of_one_that_went_and_was_none)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    broke(a, 2, FIRST);
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(a->n_changes, 0); /* nobody was a member */
    end(a);
}

TEST(only_whose_address_is_refused_is_gone)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    broke(a, 2, FIRST);
    broke(a, 3, FIRST);
    (void)membership_tick(&a->m, a->now);
    of(a, 3)->probe = PROBE_ASKED;
    probe(a, 2, true);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_LOST);
    assert_int_equal(of(a, 3)->state, LS_MEMBER_READY);
    end(a);
}

TEST(a_rival_that_goes_gets_nothing)
{
    struct machine *a = machine();
    struct wire_presence p = presence_of(2, SECOND);
    const struct speaker by = proved(2);
    p.link = 9;
    (void)ready(a, 2, FIRST);
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    assert_ok(membership_absent(&a->m, &by, &p, a->now));
    assert_int_equal(of(a, 2)->n_rival, 0);
    pass_without(a, SILENCE, 2);
    assert_true(of(a, 2)->incarnation == FIRST);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_LOST);
    end(a);
}

TEST(a_rival_waits_while_one_of_its_links_is_there)
{
    struct machine *a = machine();
    struct wire_presence p = presence_of(2, SECOND);
    const struct speaker by = proved(2);
    p.link = 9;
    (void)ready(a, 2, FIRST);
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    assert_fails(present_over(a, 2, SECOND, 9), LS_EEXIST);
    assert_ok(membership_absent(&a->m, &by, &p, a->now));
    pass_without(a, SILENCE, 2);
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->n_present, 1);
    end(a);
}

/* ---- lives that have ended --------------------------------------------- */

TEST(a_life_that_has_ended_is_never_believed_again)
{
    struct machine *a = machine();
    struct member *out;
    bool early;
    (void)ready(a, 2, FIRST);
    membership_farewell(&a->m, of(a, 2), LS_OK, a->now);
    assert_ok(absent(a, 2, FIRST));
    (void)ready(a, 2, SECOND);
    membership_farewell(&a->m, of(a, 2), LS_OK, a->now);
    assert_ok(absent(a, 2, SECOND));
    const struct answer answer = {
        .id = 2, .incarnation = FIRST, .endpoint = "tcp://192.0.2.2:1"};
    assert_fails(present(a, 2, FIRST), LS_ENOENT);
    assert_fails(membership_answers(&a->m, &answer, a->now, &out), LS_ENOENT);
    assert_fails(
        membership_origin(&a->m, of(a, 2), 2, FIRST, a->now, &out, &early),
        LS_ENOENT);
    assert_null(membership_note(&a->m, 2, FIRST));
    assert_true(of(a, 2)->incarnation == SECOND);
    (void)ready(a, 2, THIRD);
    end(a);
}

/* It has begun anew before it was a member: what is late of that life would
 * otherwise end the next one, and for ever. */
TEST(one_that_was_only_seen_ends_when_it_goes_on_as_another)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    broke(a, 2, FIRST);
    assert_ok(origin(a, 2, 2, SECOND));
    of(a, 2)->heard_at = a->now;
    assert_fails(origin(a, 2, 2, FIRST), LS_ENOENT);
    assert_ok(present(a, 2, SECOND));
    settle(a, 2);
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    end(a);
}

TEST(over_its_own_link_an_ended_life_does_not_go_on)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_ok(present_over(a, 2, SECOND, link_of(2)));
    settle(a, 2);
    assert_fails(present_over(a, 2, FIRST, link_of(2)), LS_EEXIST);
    assert_true(of(a, 2)->incarnation == SECOND);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    end(a);
}

TEST(who_has_ended_is_told_but_not_with_each_word)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    membership_farewell(&a->m, of(a, 2), LS_OK, a->now);
    (void)ready(a, 2, SECOND);
    membership_farewell(&a->m, of(a, 2), LS_OK, a->now);
    a->now += HEARTBEAT;
    for (int i = 0; i < 5; i++)
        assert_fails(present(a, 2, FIRST), LS_ENOENT);
    assert_int_equal(a->n_told, 1);
    assert_non_null(told(a, 2, LS_ELOST, FIRST));
    a->now += HEARTBEAT;
    assert_fails(present(a, 2, FIRST), LS_ENOENT);
    assert_int_equal(a->n_told, 2);
    end(a);
}

/* What was under way from another life of it came in between. */
TEST(a_life_that_was_lost_and_is_there_again_is_told_with_each_heartbeat)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    pass_without(a, SILENCE, 2);
    broke(a, 2, FIRST);
    (void)ready(a, 2, SECOND);
    membership_farewell(&a->m, of(a, 2), LS_OK, a->now);
    assert_ok(absent(a, 2, SECOND));
    assert_ok(present(a, 2, FIRST));
    assert_int_equal(of(a, 2)->state, LS_MEMBER_LOST);
    for (int i = 0; i < 3; i++) {
        forget_told(a);
        membership_announced(&a->m, a->now);
        assert_non_null(told(a, 2, LS_ELOST, FIRST));
    }
    end(a);
}

/* Not what the life in between has said of itself. */
TEST(a_life_that_was_lost_and_is_there_again_is_where_it_says)
{
    struct machine *a = machine();
    struct wire_presence elsewhere = presence_of(2, SECOND);
    (void)snprintf(elsewhere.endpoint, sizeof elsewhere.endpoint, "tcp://x:1");
    (void)ready(a, 2, FIRST);
    pass_without(a, SILENCE, 2);
    broke(a, 2, FIRST);
    assert_ok(present_as(a, 2, &elsewhere));
    assert_string_equal(of(a, 2)->endpoint, "tcp://x:1");
    membership_farewell(&a->m, of(a, 2), LS_OK, a->now);
    assert_ok(absent(a, 2, SECOND));
    assert_ok(present(a, 2, FIRST));
    assert_string_equal(of(a, 2)->endpoint, "tcp://10.0.0.2:1");
    end(a);
}

TEST(who_is_lost_and_there_is_told_with_each_heartbeat)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    pass_without(a, SILENCE, 2);
    assert_non_null(told(a, 2, LS_ELOST, FIRST));
    assert_int_equal(told(a, 2, LS_ELOST, FIRST)->silence_ms, 1000);
    forget_told(a);
    membership_announced(&a->m, a->now);
    assert_non_null(told(a, 2, LS_ELOST, FIRST));
    a->m.announce = false;
    membership_remind(&a->m, of(a, 2), a->now);
    assert_true(a->m.announce);
    a->m.announce = false;
    membership_remind(&a->m, of(a, 2), a->now);
    assert_false(a->m.announce);
    end(a);
}

TEST(an_ended_life_does_not_follow_who_came_after_it)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    pass_without(a, SILENCE, 2);
    broke(a, 2, FIRST);
    assert_ok(present_over(a, 2, SECOND, 9));
    settle(a, 2);
    assert_fails(present(a, 2, FIRST), LS_EEXIST); /* it is connected again */
    pass_without(a, SILENCE, 2);
    settle(a, 2);
    assert_false(of(a, 2)->incarnation == FIRST &&
                 of(a, 2)->state == LS_MEMBER_READY);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_BECAME_READY), 1);
    end(a);
}

/* ---- a world that is full ---------------------------------------------- */

static struct machine *full_world(void)
{
    struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 3);
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    return a;
}

TEST(one_too_many_is_barred_and_told)
{
    struct machine *a = full_world();
    assert_fails(present(a, 4, FIRST), LS_ELIMIT);
    assert_false(membership_lists(&a->m, of(a, 4), a->now));
    assert_false(dialled(a, 4));
    settle(a, 4);
    assert_int_equal(of(a, 4)->state, LS_MEMBER_SEEN);
    assert_non_null(told(a, 4, LS_ELIMIT, FIRST));
    assert_int_equal(told(a, 4, LS_ELIMIT, FIRST)->members, 3);
    end(a);
}

TEST(one_too_many_is_admitted_when_there_is_room)
{
    struct machine *a = full_world();
    assert_fails(present(a, 4, FIRST), LS_ELIMIT);
    broke(a, 3, FIRST); /* away is no room */
    pass(a, HEARTBEAT);
    assert_true(of(a, 4)->barred);
    membership_farewell(&a->m, of(a, 3), LS_OK, a->now);
    assert_false(of(a, 4)->barred);
    assert_true(dialled(a, 4));
    settle(a, 4);
    assert_int_equal(of(a, 4)->state, LS_MEMBER_READY);
    end(a);
}

/* It is gone, and has not been declared so yet: a word of a full world would
 * end the other. */
TEST(who_is_where_one_that_is_away_was_waits_for_its_place)
{
    struct machine *a = full_world();
    broke(a, 3, FIRST);
    struct wire_presence there = presence_of(4, FIRST);
    memcpy(there.endpoint, presence_of(3, FIRST).endpoint,
           sizeof there.endpoint);
    assert_fails(present_as(a, 4, &there), LS_ELIMIT);
    assert_fails(present(a, 6, FIRST), LS_ELIMIT);
    membership_announced(&a->m, a->now);
    assert_null(told(a, 4, LS_ELIMIT, FIRST));
    assert_non_null(told(a, 6, LS_ELIMIT, FIRST));
    assert_ok(present(a, 3, FIRST)); /* it is here, after all */
    membership_announced(&a->m, a->now);
    assert_non_null(told(a, 4, LS_ELIMIT, FIRST));
    end(a);
}

TEST(of_those_that_come_at_once_the_first_are_let_in)
{
    struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 3);
    assert_ok(present(a, 9, FIRST));
    assert_ok(present(a, 8, FIRST));
    assert_fails(present(a, 2, FIRST), LS_ELIMIT); /* at the same moment */
    assert_fails(present(a, 10, FIRST), LS_ELIMIT);
    end(a);
}

TEST(one_place_is_given_to_one)
{
    struct machine *a = full_world();
    assert_fails(present(a, 7, FIRST), LS_ELIMIT);
    a->now++;
    assert_fails(present(a, 6, FIRST), LS_ELIMIT);
    a->now++;
    membership_farewell(&a->m, of(a, 3), LS_OK, a->now);
    assert_true(of(a, 6)->barred != of(a, 7)->barred);
    settle(a, 6);
    settle(a, 7);
    assert_int_equal(membership_n_ready(&a->m), 3); /* one of them left */
    end(a);
}

TEST(present_and_never_ready_gives_its_place_up)
{
    struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 2);
    assert_ok(present(a, 2, FIRST));
    assert_fails(present(a, 3, FIRST), LS_ELIMIT);
    pass(a, MEMBERSHIP_PATIENCE * SILENCE - HEARTBEAT);
    assert_false(of(a, 2)->late);
    pass(a, HEARTBEAT);
    assert_true(of(a, 2)->late);
    assert_false(of(a, 3)->barred);
    membership_announced(&a->m, a->now);
    assert_non_null(told(a, 2, LS_EUNREACHABLE, FIRST));
    settle(a, 3);
    assert_int_equal(of(a, 3)->state, LS_MEMBER_READY);
    end(a);
}

TEST(who_gave_its_place_up_does_not_take_one_too_many)
{
    struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 2);
    assert_ok(present(a, 2, FIRST));
    assert_fails(present(a, 3, FIRST), LS_ELIMIT);
    pass(a, MEMBERSHIP_PATIENCE * SILENCE);
    settle(a, 3);
    settle(a, 2);
    assert_int_equal(membership_n_ready(&a->m), 1);
    membership_farewell(&a->m, of(a, 3), LS_OK, a->now);
    settle(a, 2);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    end(a);
}

TEST(late_is_no_end)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    pass(a, MEMBERSHIP_PATIENCE * SILENCE);
    assert_true(of(a, 2)->late);
    settle(a, 2);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    assert_false(of(a, 2)->late);
    end(a);
}

TEST(one_that_is_not_dialled_is_late_at_once)
{
    struct machine *a = machine();
    a->dials_nobody = true;
    assert_ok(present(a, 2, FIRST));
    assert_true(of(a, 2)->late);
    end(a);
}

TEST(who_only_knocks_does_not_fill_the_table)
{
    struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 2);
    (void)ready(a, 2, FIRST);
    for (uint32_t id = 100; id < 100 + 2 * MEMBERSHIP_MAX; id++)
        assert_non_null(membership_note(&a->m, id, FIRST));
    assert_true(a->m.n < 100);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    for (size_t i = 1; i < a->m.n; i++)
        assert_true(a->m.at[i - 1]->id < a->m.at[i]->id);
    end(a);
}

static bool has(const struct member *member, const struct member *of)
{
    const size_t word = of->slot / 64;
    return word < member->n_has &&
           (member->has[word] >> of->slot % 64 & 1) != 0;
}

TEST(who_gets_the_place_of_another_is_not_said_to_be_a_member)
{
    enum { MOST = 2 * 2 + 64, OTHERS = MOST - 1 };
    struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 2);
    struct said list[1 + OTHERS] = {READY_ME(a)};
    a->dials_nobody = true;
    (void)ready(a, 2, FIRST);
    for (uint32_t i = 1; i <= OTHERS; i++) {
        assert_non_null(membership_note(&a->m, 100 + i, FIRST));
        list[i] = (struct said){100 + i, FIRST, WIRE_MEMBER_READY};
    }
    hears_list(a, 2, list, 1 + OTHERS);
    for (uint32_t i = 1; i <= OTHERS; i++)
        assert_true(has(of(a, 2), of(a, 100 + i)));
    for (uint32_t i = 1; i <= OTHERS; i++) {
        assert_non_null(membership_note(&a->m, 1000 + i, FIRST));
        assert_int_equal(a->m.n, MOST);
        assert_false(has(of(a, 2), of(a, 1000 + i)));
    }
    end(a);
}

TEST(who_is_there_is_bounded)
{
    struct machine *a = machine_with(LS_TOPOLOGY_MESH, false, ME, 2);
    a->dials_nobody = true;
    for (uint32_t id = 100; id < 100 + MEMBERSHIP_MAX; id++)
        (void)present(a, id, FIRST);
    assert_int_equal(a->m.n, MEMBERSHIP_MAX);
    assert_fails(present(a, 99, FIRST), LS_ELIMIT);
    end(a);
}

/* ---- who answers ------------------------------------------------------- */

/* As one at this address, which was dialled as node 2. */
static int answers_at(struct machine *a, const char *endpoint, uint32_t id,
                      uint64_t life)
{
    struct member *out = NULL;
    const struct answer answer = {.id = id,
                                  .incarnation = life,
                                  .expected = true,
                                  .as = 2,
                                  .endpoint = endpoint};
    return membership_answers(&a->m, &answer, a->now, &out);
}

static int answers(struct machine *a, uint32_t id, uint64_t life,
                   struct member *before)
{
    struct member *out = NULL;
    const struct answer answer = {.id = id,
                                  .incarnation = life,
                                  .expected = true,
                                  .as = 2,
                                  .endpoint = "tcp://192.0.2.2:1",
                                  .member = before};
    const int status = membership_answers(&a->m, &answer, a->now, &out);
    assert_int_equal(out != NULL, status == LS_OK);
    return status;
}

TEST(one_that_is_away_is_gone_when_another_answers_at_its_address)
{
    struct machine *a = machine();
    char here[LS_ENDPOINT_MAX + 1];
    (void)ready(a, 2, FIRST);
    (void)snprintf(here, sizeof here, "%s", of(a, 2)->endpoint);
    assert_fails(answers_at(a, here, 3, FIRST), LS_EPROTO);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY); /* it is here */
    broke(a, 2, FIRST);
    assert_fails(answers(a, 3, FIRST, NULL), LS_EPROTO); /* elsewhere */
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    assert_fails(answers_at(a, here, 3, FIRST), LS_EPROTO);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_LOST);
    assert_int_equal(of(a, 2)->reason, LS_ELOST);
    end(a);
}

TEST(who_answers_is_who_was_dialled)
{
    struct machine *a = machine();
    assert_fails(answers(a, ME, MY_LIFE, NULL), LS_ESTATE);
    assert_fails(answers(a, 3, FIRST, NULL), LS_EPROTO);
    assert_ok(answers(a, 2, FIRST, NULL));
    assert_true(of(a, 2)->incarnation == FIRST);
    end(a);
}

TEST(another_life_answers_only_where_the_first_did)
{
    struct machine *a = machine();
    struct member *first = ready(a, 2, FIRST);
    assert_fails(answers(a, 2, SECOND, NULL), LS_EEXIST);
    assert_fails(answers(a, 2, SECOND, first), LS_EEXIST); /* present */
    broke(a, 2, FIRST);
    assert_fails(answers(a, 2, SECOND, NULL), LS_EEXIST);
    assert_ok(answers(a, 2, SECOND, first));
    assert_true(first->incarnation == SECOND);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_ENDED), 1);
    end(a);
}

TEST(nobody_sends_in_the_name_of_another)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    assert_fails(origin(a, 2, 3, FIRST), LS_EPROTO);
    assert_fails(origin(a, 2, ME, MY_LIFE), LS_ENOENT);
    assert_ok(origin(a, 2, 2, FIRST));
    end(a);
}

TEST(what_a_hub_passes_on_may_come_before_the_presence)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    struct member *out;
    bool early;
    struct member *hub = ready(leaf, 3, FIRST);
    const struct wire_presence p = relayed(2, FIRST, 3);
    assert_ok(
        membership_origin(&leaf->m, hub, 2, FIRST, leaf->now, &out, &early));
    assert_true(early && out == NULL);
    assert_ok(present_as(leaf, 3, &p));
    assert_ok(
        membership_origin(&leaf->m, hub, 2, FIRST, leaf->now, &out, &early));
    assert_true(!early && out == of(leaf, 2));
    hears(leaf, 3, READY_ME(leaf), {2, FIRST, WIRE_MEMBER_LEFT});
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_LEFT);
    assert_fails(
        membership_origin(&leaf->m, hub, 2, SECOND, leaf->now, &out, &early),
        LS_OK);
    assert_true(early); /* its next life */
    end(leaf);
}

/* ---- this node's own id ------------------------------------------------ */

TEST(of_two_with_one_id_who_is_in_no_world_yields)
{
    struct machine *a = machine();
    assert_ok(present(a, ME, MY_LIFE)); /* itself, by another way */
    assert_fails(present(a, ME, MY_LIFE + 1), LS_EEXIST);
    assert_int_equal(a->m.fatal, LS_OK);
    assert_non_null(told(a, ME, LS_EEXIST, MY_LIFE + 1));
    a->m.formed = true;
    assert_fails(present(a, ME, MY_LIFE - 1), LS_EEXIST);
    assert_int_equal(a->m.fatal, LS_OK);
    assert_non_null(told(a, ME, LS_EEXIST, MY_LIFE - 1));
    a->m.formed = false; /* the larger number yields */
    assert_fails(answers(a, ME, MY_LIFE - 1, NULL), LS_EPROTO);
    assert_fails(present(a, ME, MY_LIFE - 1), LS_EEXIST);
    assert_int_equal(a->m.fatal, LS_EEXIST);
    assert_int_equal(a->m.n, 0);
    end(a);
}

TEST(one_that_answers_with_this_id_is_told)
{
    struct machine *a = machine();
    struct member *out = NULL;
    const struct answer answer = {
        .id = ME, .incarnation = MY_LIFE + 1, .endpoint = "tcp://other:1"};
    assert_fails(membership_answers(&a->m, &answer, a->now, &out), LS_EEXIST);
    assert_non_null(told(a, ME, LS_EEXIST, MY_LIFE + 1));
    assert_int_equal(a->m.n, 0);
    end(a);
}

TEST(the_first_reason_to_fail_is_kept)
{
    struct machine *a = machine();
    membership_fail(&a->m, LS_EEXIST, "one");
    membership_fail(&a->m, LS_ELIMIT, "two");
    assert_int_equal(a->m.fatal, LS_EEXIST);
    assert_string_equal(a->m.fatal_text, "one");
    end(a);
}

/* ---- verdicts ---------------------------------------------------------- */

TEST(a_verdict_of_a_stranger_is_refused)
{
    struct machine *a = machine();
    (void)ready(a, 3, FIRST);
    assert_fails(told_by(a, 0, LS_ELOST, true), LS_EPROTO);
    assert_fails(told_by(a, 3, LS_ESTATE, true), LS_EPROTO); /* it is here */
    assert_non_null(membership_note(&a->m, 6, FIRST));
    assert_fails(told_by(a, 6, LS_ELOST, true), LS_EPROTO); /* not present */
    assert_true(of(a, 6)->disputed_at == 0);
    assert_ok(present(a, 6, FIRST));
    assert_fails(told_by(a, 6, LS_ELOST, true), LS_EPROTO); /* no member */
    broke(a, 3, FIRST);
    assert_fails(told_by(a, 3, LS_ELOST, true), LS_EPROTO); /* away */
    assert_false(a->m.rejoins);
    end(a);
}

/* Else whoever is present at it, over a link of his own, ends its life. */
TEST(a_leaf_yields_to_nobody_but_its_hub)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    (void)ready(leaf, 3, FIRST); /* the hub */
    assert_ok(present(leaf, 9, FIRST));
    assert_fails(told_by(leaf, 9, LS_ELOST, false), LS_EPROTO);
    (void)ready(leaf, 8, FIRST);
    assert_ok(told_by(leaf, 8, LS_ELOST, false));
    assert_false(leaf->m.rejoins);
    assert_ok(told_by(leaf, 3, LS_ELOST, true));
    assert_true(leaf->m.rejoins);
    end(leaf);
}

TEST(a_verdict_on_another_life_is_not_for_this_one)
{
    struct machine *a = machine();
    const struct verdict verdict = {
        .reason = LS_ELOST, .subject = MY_LIFE + 1, .text = ""};
    (void)ready(a, 2, FIRST);
    assert_ok(membership_verdict(&a->m, of(a, 2), &verdict, true, a->now));
    assert_ok(membership_verdict(&a->m, NULL, &verdict, true, a->now));
    assert_false(a->m.rejoins);
    end(a);
}

TEST(of_equals_the_larger_id_rejoins)
{
    struct machine *small = machine(), *large = machine();
    (void)ready(large, 2, FIRST);
    assert_ok(told_by(large, 2, LS_ELOST, false));
    assert_true(large->m.rejoins);
    assert_non_null(strstr(large->m.rejoin_text, "lost by node 2"));
    (void)ready(small, 9, FIRST);
    assert_ok(told_by(small, 9, LS_ELOST, false));
    assert_false(small->m.rejoins);
    assert_non_null(told(small, 9, LS_ESTATE, FIRST));
    end(small);
    end(large);
}

TEST(one_that_was_outvoted_rejoins)
{
    struct machine *a = machine();
    (void)ready(a, 6, FIRST);
    (void)ready(a, 7, FIRST);
    (void)ready(a, 8, FIRST);
    assert_ok(told_by(a, 6, LS_ELOST, false)); /* 1 against 3 */
    assert_false(a->m.rejoins);
    assert_ok(told_by(a, 7, LS_ELOST, false)); /* 2 against 2, 5 the least */
    assert_false(a->m.rejoins);
    assert_ok(told_by(a, 8, LS_ELOST, false));
    assert_true(a->m.rejoins);
    end(a);
}

TEST(an_accusation_holds_for_the_time_of_silence)
{
    struct machine *a = machine();
    (void)ready(a, 6, FIRST);
    (void)ready(a, 7, FIRST);
    assert_ok(told_by(a, 6, LS_ELOST, false));
    pass(a, SILENCE);
    hears(a, 6, READY_ME(a));
    assert_ok(told_by(a, 7, LS_ELOST, false));
    assert_false(a->m.rejoins);
    assert_ok(told_by(a, 6, LS_ELOST, false));
    assert_true(a->m.rejoins);
    end(a);
}

TEST(who_accuses_and_goes_does_not_count)
{
    struct machine *a = machine();
    (void)ready(a, 6, FIRST);
    (void)ready(a, 7, FIRST);
    assert_ok(told_by(a, 6, LS_ELOST, false));
    broke(a, 6, FIRST);
    assert_ok(told_by(a, 7, LS_ELOST, false));
    assert_false(a->m.rejoins); /* 1 against 1 */
    end(a);
}

TEST(only_who_says_so_is_on_this_nodes_side)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    hears(a, 2, {ME, MY_LIFE, WIRE_MEMBER_PRESENT});
    assert_ok(told_by(a, 3, LS_ELOST, false));
    assert_true(a->m.rejoins); /* 1 against 1 */
    end(a);
}

/* This node has declared 9 lost, which is there; 6 and 7 say whom they have. */
static struct machine *accuser(bool they_have_it)
{
    struct machine *a = machine();
    (void)ready(a, 6, FIRST);
    (void)ready(a, 7, FIRST);
    (void)ready(a, 9, FIRST);
    pass_without(a, SILENCE, 9);
    assert_int_equal(of(a, 9)->state, LS_MEMBER_LOST);
    for (uint32_t id = 6; id <= 7; id++) {
        if (they_have_it)
            hears(a, id, READY_ME(a), {9, FIRST, WIRE_MEMBER_READY});
        else
            hears(a, id, READY_ME(a));
    }
    return a;
}

TEST(a_false_accuser_yields)
{
    struct machine *liar = accuser(true), *right = accuser(false);
    assert_ok(told_by(liar, 9, LS_ESTATE, false));
    assert_true(liar->m.rejoins);
    assert_non_null(strstr(liar->m.rejoin_text, "had declared node 9 lost"));
    assert_ok(told_by(right, 9, LS_ESTATE, false));
    assert_false(right->m.rejoins);
    end(liar);
    end(right);
}

TEST(who_has_another_life_of_it_is_not_on_its_side)
{
    struct machine *a = accuser(true);
    for (uint32_t id = 6; id <= 7; id++)
        hears(a, id, READY_ME(a), {9, SECOND, WIRE_MEMBER_READY});
    assert_ok(told_by(a, 9, LS_ESTATE, false));
    assert_false(a->m.rejoins);
    for (uint32_t id = 6; id <= 7; id++) /* each list is anew */
        hears(a, id, READY_ME(a), {9, FIRST, WIRE_MEMBER_PRESENT});
    assert_ok(told_by(a, 9, LS_ESTATE, false));
    assert_false(a->m.rejoins);
    end(a);
}

TEST(a_hub_never_yields)
{
    struct machine *hub = machine_with(LS_TOPOLOGY_STAR, true, ME, 64);
    (void)ready(hub, 2, FIRST);
    (void)ready(hub, 3, FIRST);
    assert_ok(told_by(hub, 2, LS_ELOST, false));
    assert_ok(told_by(hub, 3, LS_ELOST, false));
    assert_ok(told_by(hub, 3, LS_ESTATE, false));
    assert_false(hub->m.rejoins);
    assert_int_equal(of(hub, 2)->state, LS_MEMBER_LOST);
    assert_fails(of(hub, 2)->reason, LS_ESTATE);
    assert_non_null(told(hub, 2, LS_ELOST, FIRST)); /* accused in return */
    end(hub);
}

TEST(a_leaf_yields_to_its_hub)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, 1, 64);
    const struct wire_presence p = relayed(2, FIRST, 3);
    (void)ready(leaf, 3, FIRST);
    assert_ok(present_as(leaf, 3, &p)); /* on its side: and yet */
    assert_ok(told_by(leaf, 3, LS_ELOST, true));
    assert_true(leaf->m.rejoins);
    end(leaf);
}

TEST(a_leaf_that_lost_whom_its_hub_has_rejoins)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    const struct wire_presence p = relayed(2, FIRST, 3);
    (void)ready(leaf, 3, FIRST);
    assert_ok(present_as(leaf, 3, &p));
    membership_apply(&leaf->m, of(leaf, 2),
                     member_is_lost(of(leaf, 2), LS_ETIMEDOUT), leaf->now);
    hears(leaf, 3, READY_ME(leaf), {2, SECOND, WIRE_MEMBER_READY});
    assert_false(leaf->m.rejoins);
    hears(leaf, 3, READY_ME(leaf), {2, FIRST, WIRE_MEMBER_READY});
    assert_true(leaf->m.rejoins);
    end(leaf);
}

TEST(a_hub_says_who_has_ended_for_a_while)
{
    struct machine *hub = machine_with(LS_TOPOLOGY_STAR, true, ME, 64);
    membership_farewell(&hub->m, ready(hub, 2, FIRST), LS_OK, hub->now);
    assert_true(membership_lists(&hub->m, of(hub, 2), hub->now));
    assert_int_equal(membership_lists_as(of(hub, 2)), WIRE_MEMBER_LEFT);
    assert_false(membership_lists(&hub->m, of(hub, 2), hub->now + 2 * SILENCE));
    end(hub);
    struct machine *a = machine();
    membership_farewell(&a->m, ready(a, 2, FIRST), LS_OK, a->now);
    assert_false(membership_lists(&a->m, of(a, 2), a->now));
    end(a);
}

TEST(while_it_joins_it_is_told_why_it_cannot)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_ok(present(a, 3, FIRST));
    assert_fails(told_by(a, 3, LS_ELIMIT, false), LS_EPROTO);
    assert_int_equal(a->m.fatal, LS_OK);
    assert_ok(told_by(a, 2, LS_EUNREACHABLE, false));
    assert_non_null(strstr(a->m.hint, "advertise"));
    assert_int_equal(a->m.fatal, LS_OK);
    assert_ok(told_by(a, 0, LS_ELIMIT, true)); /* of nobody */
    assert_int_equal(a->m.fatal, LS_OK);
    assert_ok(told_by(a, 3, LS_ELIMIT, true)); /* the user gave its address */
    assert_int_equal(a->m.fatal, LS_ELIMIT);
    end(a);

    struct machine *other = machine();
    assert_ok(present(other, 3, FIRST));
    assert_fails(told_by(other, 3, LS_EMISMATCH, false), LS_EPROTO);
    assert_int_equal(other->m.fatal, LS_OK);
    assert_ok(told_by(other, 3, LS_EMISMATCH, true));
    assert_int_equal(other->m.fatal, LS_EMISMATCH);
    assert_has(other->m.fatal_text, "role \"learner\" and labels \"gpu\"");
    end(other);

    const uint32_t awaited[] = {ME, 3};
    struct machine *named = machine();
    named->m.options.members = awaited;
    named->m.options.n_members = 2;
    assert_ok(present(named, 2, FIRST));
    assert_ok(present(named, 3, FIRST));
    assert_fails(told_by(named, 2, LS_EMISMATCH, false), LS_EPROTO);
    assert_int_equal(named->m.fatal, LS_OK);
    assert_ok(told_by(named, 3, LS_EMISMATCH, false));
    assert_int_equal(named->m.fatal, LS_EMISMATCH);
    end(named);

    struct machine *taken = machine();
    assert_ok(told_by(taken, 0, LS_EEXIST, true));
    assert_int_equal(taken->m.fatal, LS_EEXIST);
    assert_non_null(strstr(taken->m.fatal_text, "tcp://other:1"));
    end(taken);
}

TEST(once_it_has_joined_it_is_not_told_so_any_more)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    a->m.formed = true;
    assert_ok(told_by(a, 2, LS_EEXIST, true));
    assert_ok(told_by(a, 2, LS_ELIMIT, true));
    assert_ok(told_by(a, 2, LS_EMISMATCH, true));
    assert_ok(told_by(a, 2, LS_EUNREACHABLE, true));
    assert_int_equal(a->m.fatal, LS_OK);
    assert_string_equal(a->m.hint, "");
    end(a);
}

/* ---- hearsay ----------------------------------------------------------- */

TEST(a_member_is_believed_about_where_others_are)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    hears(a, 2, READY_ME(a), {6, FIRST, WIRE_MEMBER_PRESENT},
          {7, FIRST, WIRE_MEMBER_READY}, {8, FIRST, WIRE_MEMBER_LOST},
          {9, FIRST, WIRE_MEMBER_ABSENT});
    assert_true(dialled(a, 6) && dialled(a, 7));
    assert_false(dialled(a, 8) || dialled(a, 9));
    assert_null(membership_find(&a->m, 6)); /* it is only dialled */
    end(a);
}

TEST(who_is_dialled_already_is_not_dialled_again)
{
    struct machine *a = machine();
    const struct wire_member nowhere = {.id = 8, .state = WIRE_MEMBER_READY};
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    (void)ready(a, 4, FIRST);
    of(a, 3)->linked = true;
    forget_told(a);
    hears(a, 2, READY_ME(a), {3, FIRST, WIRE_MEMBER_READY},
          {4, FIRST, WIRE_MEMBER_READY});
    membership_listed(&a->m, of(a, 2), &nowhere, a->now);
    assert_int_equal(a->n_dialled, 1);
    assert_true(dialled(a, 4));
    end(a);
}

TEST(a_stranger_is_not)
{
    struct machine *a = machine();
    assert_ok(present(a, 2, FIRST));
    hears(a, 2, {7, FIRST, WIRE_MEMBER_READY});
    assert_false(dialled(a, 7));
    end(a);
}

TEST(a_lost_member_that_is_there_is)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    pass_without(a, SILENCE, 2);
    hears(a, 2, {7, FIRST, WIRE_MEMBER_READY});
    assert_true(dialled(a, 7));
    end(a);
}

TEST(who_left_is_not_and_is_not_dialled)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    membership_farewell(&a->m, ready(a, 3, FIRST), LS_OK, a->now);
    hears(a, 3, {7, FIRST, WIRE_MEMBER_READY});
    assert_false(dialled(a, 7));
    forget_told(a);
    hears(a, 2, READY_ME(a), {3, FIRST, WIRE_MEMBER_READY});
    assert_false(dialled(a, 3));
    hears(a, 2, READY_ME(a), {3, SECOND, WIRE_MEMBER_READY});
    assert_true(dialled(a, 3)); /* it has begun anew */
    end(a);
}

TEST(who_was_lost_is_dialled_after_a_while)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    broke(a, 3, FIRST);
    probe(a, 3, true);
    forget_told(a);
    hears(a, 2, READY_ME(a), {3, FIRST, WIRE_MEMBER_READY});
    assert_false(dialled(a, 3)); /* it is not known there yet */
    pass(a, SILENCE);
    hears(a, 2, READY_ME(a), {3, FIRST, WIRE_MEMBER_READY});
    assert_true(dialled(a, 3));
    end(a);
}

TEST(who_leaves_dials_nobody)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    a->m.leaving = true;
    hears(a, 2, READY_ME(a), {7, FIRST, WIRE_MEMBER_READY});
    assert_false(dialled(a, 7));
    assert_ok(present(a, 8, FIRST));
    assert_false(dialled(a, 8));
    membership_apply(&a->m, of(a, 2), member_is_lost(of(a, 2), LS_ELOST),
                     a->now);
    membership_announced(&a->m, a->now);
    assert_int_equal(a->n_told, 0); /* and judges nobody */
    pass_without(a, 3 * SILENCE, 8);
    assert_int_equal(of(a, 8)->state, LS_MEMBER_SEEN);
    end(a);
}

TEST(who_has_read_the_farewell_is_not_away)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    a->m.leaving = true;
    assert_ok(absent(a, 2, FIRST)); /* it says so itself */
    broke(a, 3, FIRST);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_AWAY), 0);
    assert_true(of(a, 2)->away_at == 0);
    assert_int_equal(changed(a, 3, FIRST, MEMBER_AWAY), 1);
    end(a);
}

/* ---- time -------------------------------------------------------------- */

TEST(a_stop_of_this_node_is_not_the_others_silence)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    pass(a, HEARTBEAT);
    a->now += 20 * SILENCE;
    (void)membership_tick(&a->m, a->now);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    pass_without(a, SILENCE, 2);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_LOST);
    end(a);
}

TEST(it_looks_again_when_somebody_may_be_silent)
{
    struct machine *a = machine();
    assert_true(membership_tick(&a->m, a->now) == LS_FOREVER);
    const int64_t heard_at = ready(a, 2, FIRST)->heard_at;
    assert_true(membership_tick(&a->m, a->now + HEARTBEAT) ==
                heard_at + SILENCE);
    end(a);
}

TEST(who_is_away_comes_back_or_is_lost)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    broke(a, 2, FIRST);
    assert_int_equal(membership_lists_as(of(a, 2)), WIRE_MEMBER_PRESENT);
    assert_false(membership_lists(&a->m, of(a, 2), a->now));
    assert_ok(present(a, 2, FIRST));
    assert_int_equal(changed(a, 2, FIRST, MEMBER_RETURNED), 1);
    assert_int_equal(membership_lists_as(of(a, 2)), WIRE_MEMBER_READY);
    broke(a, 2, FIRST);
    pass(a, SILENCE);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_LOST);
    end(a);
}

/* ---- another life of this node ----------------------------------------- */

TEST(renewing_meets_all_again)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    (void)ready(a, 3, FIRST);
    membership_farewell(&a->m, ready(a, 4, FIRST), LS_OK, a->now);
    pass_without(a, SILENCE, 3); /* lost, and there */
    a->m.rejoins = true;
    const size_t n_told = a->n_told;
    membership_renew(&a->m, MY_LIFE + 1, a->now);
    assert_false(a->m.rejoins);
    assert_true(a->m.announce);
    assert_int_equal(changed(a, 2, FIRST, MEMBER_ENDED), 1);
    assert_int_equal(a->n_told, n_told); /* it is gone in no truth */
    for (uint32_t id = 2; id <= 3; id++) {
        assert_int_equal(of(a, id)->state, LS_MEMBER_SEEN);
        assert_true(of(a, id)->incarnation == FIRST);
        assert_int_equal(of(a, id)->n_present, 1);
        assert_false(member_ended_as(of(a, id), FIRST));
        settle(a, id);
        assert_int_equal(of(a, id)->state, LS_MEMBER_READY);
    }
    assert_int_equal(of(a, 4)->state, LS_MEMBER_LEFT);
    end(a);
}

TEST(the_lives_before_stay_ended)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    assert_ok(present_over(a, 2, SECOND, link_of(2)));
    settle(a, 2);
    membership_renew(&a->m, MY_LIFE + 1, a->now);
    assert_false(member_ended_as(of(a, 2), SECOND));
    assert_true(member_ended_as(of(a, 2), FIRST));
    assert_fails(origin(a, 2, 2, FIRST), LS_ENOENT);
    settle(a, 2);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_READY);
    assert_true(of(a, 2)->incarnation == SECOND);
    end(a);
}

TEST(renewing_changes_nothing_for_who_is_one_too_many)
{
    struct machine *a = full_world();
    assert_fails(present(a, 4, FIRST), LS_ELIMIT);
    membership_renew(&a->m, MY_LIFE + 1, a->now);
    assert_true(of(a, 4)->barred);
    settle(a, 2);
    settle(a, 3);
    settle(a, 4);
    assert_int_equal(membership_n_ready(&a->m), 2);
    end(a);
}

TEST(renewing_leaves_those_behind_the_hub_there)
{
    struct machine *leaf = machine_with(LS_TOPOLOGY_STAR, false, ME, 64);
    const struct wire_presence p = relayed(2, FIRST, 3);
    (void)ready(leaf, 3, FIRST);
    assert_ok(present_as(leaf, 3, &p));
    membership_renew(&leaf->m, MY_LIFE + 1, leaf->now);
    assert_ptr_equal(of(leaf, 2)->via, of(leaf, 3));
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_SEEN);
    settle(leaf, 3);
    assert_int_equal(of(leaf, 2)->state, LS_MEMBER_READY);
    end(leaf);
}

TEST(what_was_said_to_the_life_before_is_void)
{
    struct machine *a = machine();
    (void)ready(a, 2, FIRST);
    membership_renew(&a->m, MY_LIFE + 1, a->now);
    hears(a, 2, {ME, MY_LIFE, WIRE_MEMBER_READY});
    membership_announced(&a->m, a->now);
    assert_int_equal(of(a, 2)->state, LS_MEMBER_SEEN);
    end(a);
}
