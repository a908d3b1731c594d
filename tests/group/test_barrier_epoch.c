/* The barrier's state machine, step by step: what each input makes it say, and
 * how each epoch ends. */
#include "barrier_post.h"
#include "test.h"

/* --- the usual way ------------------------------------------------------ */

TEST(a_node_alone_leaves_at_once)
{
    struct post post;
    create_post(&post, 1);
    enter(&post, LEADER, 5);
    expect_end(&post, LEADER, LS_OK, 0);
    assert_int_equal(end_of(&post, LEADER)->flags, 5);
    assert_int_equal(post.n_sent, 0);
    destroy_post(&post);
}

TEST(two_nodes_need_one_round_trip)
{
    struct post post;
    create_post(&post, 2);
    enter(&post, LEADER, 1);
    deliver_all(&post);
    enter(&post, SECOND, 2);
    expect_letter(&post, SECOND, LEADER, LS_BARRIER_READY);
    assert_true(waits(&post, LEADER) && waits(&post, SECOND));
    destroy_post(&post);
}

TEST(three_nodes_need_four_messages_a_member)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, SECOND, 2);
    enter(&post, THIRD, 4);
    assert_int_equal(post.n_letters, 2);
    deliver_all(&post);
    assert_true(waits(&post, SECOND));
    enter(&post, LEADER, 1); /* the last: it says READY by itself */
    expect_letter(&post, LEADER, SECOND, LS_BARRIER_READY);
    expect_letter(&post, LEADER, THIRD, LS_BARRIER_READY);
    destroy_post(&post);

    create_post(&post, 3);
    run_epoch(&post);
    expect_all_left(&post, 0);
    assert_int_equal(post.n_sent, 8);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(end_of(&post, i)->flags, 7);
        assert_int_equal(end_of(&post, i)->last, ids[THIRD]);
    }
    destroy_post(&post);
}

TEST(epochs_follow_each_other)
{
    struct post post;
    create_post(&post, 3);
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        run_epoch(&post);
        expect_all_left(&post, epoch);
    }
    assert_int_equal(post.n_sent, 50 * 8);
    destroy_post(&post);
}

/* --- what the network does ---------------------------------------------- */

/* How many epochs one that is missing has entered, as a node knows it. */
static uint64_t rounds_of(const struct post *post, size_t at, size_t missing)
{
    struct ls_epoch_reason reason;
    ls_epoch_missing(post->nodes[at], &reason);
    for (size_t i = 0; i < reason.n_missing; i++)
        if (reason.missing[i].id == ids[missing])
            return reason.missing[i].rounds;
    fail_msg("node %u is not missing", ids[missing]);
    return 0;
}

TEST(the_missing_are_named_with_the_last_epoch_they_entered)
{
    struct post post;
    create_post(&post, 3);
    run_epoch(&post); /* epoch 0 */

    enter(&post, THIRD, 0); /* epoch 1, first without the leader */
    deliver_all(&post);
    pass(&post, 20 * MS);
    deliver_all(&post);
    assert_int_equal(rounds_of(&post, THIRD, LEADER), 1); /* it says so */
    enter(&post, LEADER, 0);
    deliver_all(&post);
    assert_int_equal(rounds_of(&post, LEADER, SECOND), 1);
    assert_int_equal(rounds_of(&post, THIRD, SECOND), 1);
    ls_epoch_abort(post.nodes[LEADER], LS_ECANCELED, false, "enough");
    collect(&post, LEADER);
    deliver_all(&post);

    enter(&post, LEADER, 0); /* epoch 2 */
    assert_int_equal(rounds_of(&post, LEADER, THIRD), 2);
    destroy_post(&post);

    /* One that has only heard of the others by a leader that is gone. */
    const struct ls_epoch_rules elastic = {.least = 2, .most = 3};
    create_post_by(&post, 3, &elastic);
    run_epoch(&post);
    lost(&post, SECOND, LEADER);
    lost(&post, THIRD, LEADER);
    enter(&post, SECOND, 0);
    assert_int_equal(rounds_of(&post, SECOND, THIRD), 1);
    destroy_post(&post);
}

TEST(who_entered_twice_counts_once)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, LEADER, 1);
    enter(&post, SECOND, 2);
    const struct letter letter = next_letter(&post);
    for (int i = 0; i < 3; i++)
        hand_over(&post, &letter);
    assert_int_equal(post.n_letters, 0);
    assert_true(waits(&post, LEADER));
    destroy_post(&post);
}

TEST(an_ack_of_an_old_epoch_does_not_count)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    deliver(&post, 2);
    const struct letter ack = post.letters[0];
    assert_int_equal(kind_of(&ack), LS_BARRIER_READY);
    deliver_all(&post);
    expect_all_left(&post, 0);
    get_ready(&post);
    lose_all(&post);
    hand_over(&post, &ack);
    assert_true(waits(&post, LEADER));
    assert_int_equal(post.nodes[LEADER]->facts.lack_ready, 2);
    destroy_post(&post);
}

TEST(who_is_not_answered_asks_again_after_20_ms)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, SECOND, 0);
    lose_all(&post);
    assert_int_equal(ls_epoch_wake_at(post.nodes[SECOND]), post.now + 20 * MS);
    pass(&post, 19 * MS);
    assert_int_equal(post.n_letters, 0);
    int64_t pause = 20 * MS;
    post.now += MS - pause;
    for (int i = 0; i < 10; i++) {
        pass(&post, pause);
        expect_letter(&post, SECOND, LEADER, LS_BARRIER_ENTERED);
        assert_int_equal(post.n_letters, 0);
        pause = 2 * pause < 500 * MS ? 2 * pause : 500 * MS;
    }
    assert_int_equal(pause, 500 * MS);
    assert_int_equal(post.nodes[SECOND]->outbox.n_repeated, 10);
    destroy_post(&post);
}

TEST(the_leader_asks_only_those_it_lacks)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    expect_letter(&post, LEADER, SECOND, LS_BARRIER_READY);
    deliver(&post, 2); /* THIRD's ack */
    pass(&post, 20 * MS);
    expect_letter(&post, LEADER, SECOND, LS_BARRIER_READY);
    /* The others ask as well: for the leader's word. */
    expect_letter(&post, SECOND, LEADER, LS_BARRIER_ENTERED);
    expect_letter(&post, THIRD, LEADER, LS_BARRIER_READY);
    assert_int_equal(post.n_letters, 0);
    destroy_post(&post);
}

TEST(a_lost_leave_is_asked_for)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    deliver(&post, 4);
    expect_end(&post, LEADER, LS_OK, 0);
    lose_all(&post);
    enter(&post, LEADER, 8); /* it is in the next one already */
    pass(&post, 20 * MS);
    deliver_all(&post);
    expect_end(&post, SECOND, LS_OK, 0);
    expect_end(&post, THIRD, LS_OK, 0);
    assert_int_equal(end_of(&post, THIRD)->flags, 7);
    destroy_post(&post);
}

/* --- incarnations and views --------------------------------------------- */

TEST(a_message_to_an_earlier_life_is_not_heard)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    ls_epoch_set_self(post.nodes[LEADER], 500, 0);
    deliver_all(&post);
    assert_int_equal(post.nodes[LEADER]->facts.lack_entered, 2);
    destroy_post(&post);
}

TEST(a_new_life_inherits_nothing)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, SECOND, 0);
    const struct letter old = next_letter(&post);
    hand_over(&post, &old);
    assert_ok(
        ls_epoch_joined(post.nodes[LEADER], post.now, ids[SECOND], 900, 0));
    hand_over(&post, &old);
    enter(&post, LEADER, 0);
    assert_int_equal(post.nodes[LEADER]->facts.lack_entered, 2);
    assert_int_equal(ls_epoch_n_joined(post.nodes[LEADER]), 2);
    destroy_post(&post);
}

/* A fresh THIRD comes while the others are in epoch 3 with one who is gone. */
TEST(a_late_node_enters_with_the_others)
{
    struct post post;
    create_post(&post, 3);
    for (int i = 0; i < 3; i++)
        run_epoch(&post);
    enter(&post, LEADER, 0);
    const struct ls_epoch_rules three = {.least = 3, .most = 3};
    ls_epoch_destroy(&post.nodes[THIRD]);
    assert_ok(ls_epoch_create(&post.nodes[THIRD], ids[THIRD], &three));
    ls_epoch_set_self(post.nodes[THIRD], 777, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ls_epoch_joined(post.nodes[i], post.now, ids[THIRD], 777, 0));
        assert_ok(
            ls_epoch_joined(post.nodes[THIRD], post.now, ids[i], 100 + i, 0));
    }
    collect(&post, LEADER);
    expect_end(&post, LEADER, LS_ELOST, 3);
    deliver_all(&post);
    enter(&post, SECOND, 0); /* told of the abort: its epoch 3 */
    expect_end(&post, SECOND, LS_ELOST, 3);
    deliver_all(&post);
    run_epoch(&post);
    expect_all_left(&post, 4);
    destroy_post(&post);
}

TEST(a_world_of_another_size_is_refused)
{
    struct post post;
    create_post(&post, 3);
    lost(&post, LEADER, THIRD);
    enter(&post, LEADER, 0);
    deliver_all(&post); /* SECOND knows no other reason */
    pass(&post, 0);
    expect_end(&post, LEADER, LS_ELOST, 0);
    expect_letter(&post, LEADER, SECOND, LS_BARRIER_ABORT);
    destroy_post(&post);
}

TEST(members_that_see_different_worlds_give_up)
{
    struct post post;
    create_post(&post, 3);
    assert_ok(
        ls_epoch_joined(post.nodes[SECOND], post.now, ids[THIRD], 900, 0));
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    expect_end(&post, LEADER, LS_EMISMATCH, 0);
    expect_end(&post, SECOND, LS_EMISMATCH, 0);
    destroy_post(&post);
}
