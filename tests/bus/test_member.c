/* The life of one member, as a state machine: no node, no socket, no clock. */
#include "membership.h"
#include "test.h"

#define SILENCE 1000

static struct member seen(void)
{
    struct member peer = {.id = 7};
    member_begin(&peer, 42);
    return peer;
}

static struct member ready_at(int64_t now)
{
    struct member peer = seen();
    (void)member_appears(&peer, 1);
    peer.heard_at = now;
    peer.lists_me = peer.announced = true;
    assert_int_equal(member_settle(&peer), MEMBER_BECAME_READY);
    return peer;
}

static struct member away_at(int64_t now)
{
    struct member peer = ready_at(now);
    assert_int_equal(member_disappears(&peer, now), MEMBER_AWAY);
    return peer;
}

static enum member_change tick(struct member *peer, int64_t now)
{
    int64_t next = LS_FOREVER;
    return member_tick(peer, now, SILENCE, &next);
}

static int64_t next_of(struct member *peer, int64_t now)
{
    int64_t next = LS_FOREVER;
    assert_int_equal(member_tick(peer, now, SILENCE, &next), MEMBER_SAME);
    return next;
}

/* ---- ready ------------------------------------------------------------- */

TEST(ready_takes_both_ways)
{
    struct member peer = seen();
    assert_int_equal(member_settle(&peer), MEMBER_SAME);
    (void)member_appears(&peer, 1);
    assert_int_equal(member_settle(&peer), MEMBER_SAME);
    peer.heard_at = 5;
    assert_int_equal(member_settle(&peer), MEMBER_SAME);
    peer.lists_me = true;
    assert_int_equal(member_settle(&peer), MEMBER_SAME);
    peer.announced = true;
    assert_int_equal(member_settle(&peer), MEMBER_BECAME_READY);
    assert_int_equal(peer.state, LS_MEMBER_READY);
    assert_int_equal(member_settle(&peer), MEMBER_SAME); /* once */
}

TEST(behind_a_hub_presence_suffices)
{
    struct member hub = ready_at(5), leaf = seen();
    leaf.via = &hub;
    (void)member_appears(&leaf, 1);
    assert_int_equal(member_settle(&leaf), MEMBER_BECAME_READY);
}

TEST(one_too_many_is_never_ready_and_takes_no_id)
{
    struct member peer = seen();
    (void)member_appears(&peer, 1);
    peer.heard_at = 5;
    peer.lists_me = peer.barred = true;
    assert_int_equal(member_settle(&peer), MEMBER_SAME);
    assert_false(member_hears(&peer));
    assert_false(member_is_alive(&peer));
}

TEST(who_was_never_ready_is_forgotten_when_it_goes)
{
    struct member peer = seen();
    (void)member_appears(&peer, 1);
    peer.heard_at = 5;
    assert_true(member_is_alive(&peer));
    assert_int_equal(member_disappears(&peer, 6), MEMBER_SAME);
    assert_int_equal(peer.state, LS_MEMBER_SEEN);
    assert_false(member_is_alive(&peer));
    assert_int_equal(tick(&peer, 6 + 2 * SILENCE), MEMBER_SAME);
}

/* ---- away -------------------------------------------------------------- */

TEST(away_is_ready_and_hears_nothing)
{
    struct member peer = away_at(10);
    assert_int_equal(peer.state, LS_MEMBER_READY);
    assert_true(member_is_alive(&peer));
    assert_false(member_hears(&peer));
    assert_int_equal(member_appears(&peer, 1), MEMBER_RETURNED);
    assert_true(member_hears(&peer));
    assert_int_equal(peer.state, LS_MEMBER_READY);
    assert_int_equal(tick(&peer, 10 + SILENCE - 1), MEMBER_SAME);
    assert_int_equal(peer.probe, PROBE_NONE);
}

TEST(of_several_presences_the_last_counts)
{
    struct member peer = ready_at(10);
    assert_int_equal(member_appears(&peer, 1), MEMBER_SAME);
    assert_int_equal(member_disappears(&peer, 20), MEMBER_SAME);
    assert_int_equal(member_disappears(&peer, 30), MEMBER_AWAY);
    assert_int_equal(member_disappears(&peer, 40), MEMBER_SAME);
    assert_int_equal(peer.away_at, 30);
}

TEST(its_host_is_asked_at_once_and_again)
{
    struct member peer = away_at(10);
    assert_int_equal(tick(&peer, 10), MEMBER_SAME);
    assert_int_equal(peer.probe, PROBE_WANTED);
    peer.probe = PROBE_ASKED;
    assert_int_equal(member_probed(&peer, false, 10, 40), MEMBER_SAME);
    assert_int_equal(next_of(&peer, 40), 50);
    assert_int_equal(peer.probe, PROBE_NONE);
    (void)next_of(&peer, 50);
    assert_int_equal(peer.probe, PROBE_WANTED);
}

TEST(who_is_refused_by_its_host_is_lost)
{
    struct member peer = away_at(10);
    peer.probe = PROBE_ASKED;
    assert_int_equal(member_probed(&peer, true, 10, 40), MEMBER_ENDED);
    assert_int_equal(peer.state, LS_MEMBER_LOST);
    assert_int_equal(peer.reason, LS_ELOST);
}

TEST(an_answer_that_comes_late_means_nothing)
{
    struct member peer = away_at(10);
    peer.probe = PROBE_ASKED;
    (void)member_appears(&peer, 1);
    assert_int_equal(member_probed(&peer, true, 10, 40), MEMBER_SAME);
    assert_int_equal(member_probed(&peer, true, 10, 40), MEMBER_SAME);
    assert_int_equal(peer.state, LS_MEMBER_READY);
}

TEST(it_is_asked_less_and_less)
{
    struct member peer = away_at(10);
    int64_t now = 0, last = 0;
    for (int i = 0; i < 10; i++) {
        peer.probe = PROBE_ASKED;
        (void)member_probed(&peer, false, now, 250 * LS_NS_PER_MS);
        assert_true(peer.probe_at - now >= last);
        assert_true(i != 0 || peer.probe_at - now <= 2 * LS_NS_PER_MS);
        last = peer.probe_at - now;
        now = peer.probe_at;
    }
    assert_true(last == 250 * LS_NS_PER_MS);
}

/* ---- silence ----------------------------------------------------------- */

TEST(silence_ends_it)
{
    struct member peer = ready_at(10);
    assert_int_equal(next_of(&peer, 20), 10 + SILENCE);
    peer.heard_at = 500;
    assert_int_equal(tick(&peer, 10 + SILENCE), MEMBER_SAME);
    assert_int_equal(tick(&peer, 500 + SILENCE), MEMBER_ENDED);
    assert_int_equal(peer.reason, LS_ETIMEDOUT);
}

TEST(who_is_away_has_as_long_though_it_is_heard)
{
    struct member peer = away_at(10);
    peer.heard_at = 10 + SILENCE;
    assert_int_equal(tick(&peer, 10 + SILENCE), MEMBER_ENDED);
    assert_int_equal(peer.reason, LS_ETIMEDOUT);
}

TEST(who_is_behind_a_hub_that_is_away_is_not_judged)
{
    struct member hub = ready_at(10), leaf = seen();
    leaf.via = &hub;
    (void)member_appears(&leaf, 1);
    (void)member_settle(&leaf);
    assert_int_equal(tick(&leaf, 10 + 9 * SILENCE), MEMBER_SAME);
    (void)member_disappears(&hub, 20);
    (void)member_disappears(&leaf, 20);
    assert_int_equal(tick(&leaf, 20 + SILENCE), MEMBER_SAME);
    (void)member_appears(&hub, 30);
    assert_int_equal(tick(&leaf, 20 + SILENCE), MEMBER_ENDED);
}

TEST(a_stop_of_ones_own_is_excused)
{
    struct member peer = ready_at(10), away = away_at(10), unheard = seen();
    struct member spoke = ready_at(5 * SILENCE);
    const int64_t now = 10 + 5 * SILENCE;
    member_excuse(&peer, 5 * SILENCE, now);
    member_excuse(&away, 5 * SILENCE, now);
    member_excuse(&unheard, 5 * SILENCE, now);
    member_excuse(&spoke, 5 * SILENCE, now);
    assert_int_equal(tick(&peer, 10 + 5 * SILENCE), MEMBER_SAME);
    assert_int_equal(tick(&away, 10 + 5 * SILENCE), MEMBER_SAME);
    assert_int_equal(tick(&peer, 10 + 6 * SILENCE), MEMBER_ENDED);
    assert_int_equal(tick(&away, 10 + 6 * SILENCE), MEMBER_ENDED);
    assert_int_equal(tick(&spoke, 10 + 6 * SILENCE), MEMBER_ENDED);
    assert_false(member_is_alive(&unheard));
}

/* ---- the end ----------------------------------------------------------- */

TEST(an_end_is_final)
{
    struct member lost = ready_at(10), left = ready_at(10);
    assert_int_equal(member_is_lost(&lost, LS_ETIMEDOUT), MEMBER_ENDED);
    assert_int_equal(member_leaves(&lost, LS_OK), MEMBER_SAME);
    assert_int_equal(member_leaves(&left, LS_EIO), MEMBER_ENDED);
    assert_int_equal(member_is_lost(&left, LS_ELOST), MEMBER_SAME);
    assert_int_equal(left.state, LS_MEMBER_LEFT);
    assert_int_equal(left.reason, LS_EIO);
    (void)member_disappears(&lost, 20);
    assert_int_equal(member_appears(&lost, 21), MEMBER_SAME);
    lost.lists_me = true;
    assert_int_equal(member_settle(&lost), MEMBER_SAME);
    assert_int_equal(lost.state, LS_MEMBER_LOST);
    assert_false(member_hears(&lost));
    assert_int_equal(lost.n_present, 1); /* it can be told so */
    member_begin(&lost, 43);
    assert_int_equal(lost.state, LS_MEMBER_SEEN);
}

TEST(who_leaves_before_it_was_ready_is_not_told_of)
{
    struct member peer = seen();
    (void)member_appears(&peer, 1);
    assert_int_equal(member_leaves(&peer, LS_OK), MEMBER_FORGOTTEN);
    assert_int_equal(peer.state, LS_MEMBER_LEFT);
}

/* ---- rivals ------------------------------------------------------------ */

TEST(who_has_a_rival_is_asked_for_and_judged)
{
    struct member peer = ready_at(10);
    peer.n_rival = 1;
    (void)next_of(&peer, 20);
    assert_int_equal(peer.probe, PROBE_WANTED);
    peer.probe = PROBE_ASKED;
    assert_int_equal(member_probed(&peer, false, 10, 40), MEMBER_SAME);
    (void)next_of(&peer, 50);
    peer.probe = PROBE_ASKED;
    assert_int_equal(member_probed(&peer, true, 10, 40), MEMBER_ENDED);
}
