/* The barrier's state machine when members are lost, or give up. */
#include "barrier_post.h"
#include "test.h"

/* --- losses ------------------------------------------------------------- */

TEST(one_lost_before_it_entered_ends_the_epoch)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    lost(&post, LEADER, THIRD);
    expect_end(&post, LEADER, LS_ELOST, 0);
    assert_string_equal(end_of(&post, LEADER)->reason.text,
                        "node 4294967295 was lost, not known to have entered");
    deliver(&post, 1);
    expect_end(&post, SECOND, LS_ELOST, 0);
    assert_int_equal(end_of(&post, SECOND)->reason.origin, ids[LEADER]);
    assert_fails(end_of(&post, SECOND)->reason.status, LS_ELOST);
    destroy_post(&post);
}

TEST(one_lost_between_request_and_ack_is_excepted)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    expect_letter(&post, LEADER, SECOND, LS_BARRIER_READY);
    deliver(&post, 2);
    assert_true(waits(&post, LEADER));
    lost(&post, LEADER, SECOND);
    expect_end(&post, LEADER, LS_OK, 0);
    deliver_all(&post);
    expect_end(&post, THIRD, LS_OK, 0);
    destroy_post(&post);
}

TEST(a_busy_leader_answers_for_a_loss_at_once)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    lost(&post, SECOND, THIRD);
    assert_true(waits(&post, SECOND));
    deliver_all(&post); /* the leader has not entered, and stays out */
    expect_end(&post, SECOND, LS_ELOST, 0);
    enter(&post, LEADER, 0);
    expect_end(&post, LEADER, LS_ELOST, 0);
    assert_string_equal(end_of(&post, LEADER)->reason.text,
                        "node 4294967295 was lost, as node 1000000 says");
    destroy_post(&post);
}

TEST(a_leader_lost_before_ready_ends_the_epoch_for_all)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, SECOND, 0);
    enter(&post, THIRD, 0);
    lose_all(&post);
    lost(&post, SECOND, LEADER);
    deliver_all(&post);
    assert_true(waits(&post, SECOND)); /* THIRD may know more */
    lost(&post, THIRD, LEADER);
    deliver_all(&post);
    /* Whoever notices first that both are stuck tells the other. */
    for (size_t i = SECOND; i <= THIRD; i++) {
        assert_true(end_of(&post, i)->status == LS_ELOST ||
                    end_of(&post, i)->status == LS_EABORTED);
        assert_string_equal(end_of(&post, i)->reason.text,
                            "node 7 was lost, not known to have entered");
    }
    destroy_post(&post);
}

TEST(a_leader_lost_after_one_ready_ends_well_for_all)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    deliver(&post, 1); /* READY to SECOND; the one to THIRD is lost */
    lose_all(&post);
    lost(&post, THIRD, LEADER);
    lost(&post, SECOND, LEADER);
    deliver_all(&post);
    expect_end(&post, SECOND, LS_OK, 0);
    expect_end(&post, THIRD, LS_OK, 0);
    assert_int_equal(end_of(&post, THIRD)->flags, 7);
    destroy_post(&post);
}

TEST(a_leader_lost_after_leaving_ends_well_for_all)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    deliver(&post, 4);
    expect_end(&post, LEADER, LS_OK, 0);
    lose_all(&post);
    lost(&post, SECOND, LEADER);
    lost(&post, THIRD, LEADER);
    deliver_all(&post);
    expect_end(&post, SECOND, LS_OK, 0);
    expect_end(&post, THIRD, LS_OK, 0);
    destroy_post(&post);
}

TEST(who_is_stuck_alone_gives_up_after_a_second)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, SECOND, 0);
    enter(&post, THIRD, 0);
    lost(&post, SECOND, LEADER);
    lose_all(&post);
    for (int i = 0; i < 200 && waits(&post, SECOND); i++) {
        pass(&post, 10 * MS);
        lose_all(&post);
    }
    expect_end(&post, SECOND, LS_ELOST, 0);
    assert_true(post.now < 1000 * MS + 1600 * MS);
    destroy_post(&post);
}

/* --- one cause for all -------------------------------------------------- */

static void give_up_late(struct post *post, size_t node)
{
    ls_epoch_abort(post->nodes[node], LS_ETIMEDOUT, false, "late");
    collect(post, node);
}

/* Whoever hears of it, and whoever comes after. */
TEST(a_deadline_of_one_is_a_timeout_for_all)
{
    for (size_t late = LEADER; late <= THIRD; late++) {
        const size_t later = (late + 1) % 3;
        struct post post;
        create_post(&post, 3);
        for (size_t i = LEADER; i <= THIRD; i++) {
            if (i != later)
                enter(&post, i, 0);
        }
        deliver_all(&post);
        give_up_late(&post, late);
        deliver_all(&post);
        enter(&post, later, 0);
        for (size_t i = LEADER; i <= THIRD; i++) {
            expect_end(&post, i, LS_ETIMEDOUT, 0);
            assert_int_equal(end_of(&post, i)->reason.origin, ids[late]);
            assert_string_equal(end_of(&post, i)->reason.text, "late");
        }
        deliver_all(&post);
        run_epoch(&post);
        expect_all_left(&post, 1);
        destroy_post(&post);
    }
}

TEST(a_status_that_nobody_knows_is_an_abort)
{
    struct post post;
    create_post(&post, 2);
    enter(&post, LEADER, 0);
    ls_epoch_abort(post.nodes[SECOND], INT32_MIN, true, "mine");
    collect(&post, SECOND);
    deliver_all(&post);
    expect_end(&post, LEADER, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, LEADER)->reason.text, "mine");
    destroy_post(&post);
}

/* --- aborts ------------------------------------------------------------- */

TEST(an_abort_reaches_all_and_the_next_epoch_works)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, SECOND, 0);
    enter(&post, THIRD, 0);
    deliver_all(&post);
    ls_epoch_abort(post.nodes[THIRD], LS_ECANCELED, true, "no more");
    collect(&post, THIRD);
    expect_end(&post, THIRD, LS_ECANCELED, 0);
    deliver_all(&post);
    expect_end(&post, SECOND, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, SECOND)->reason.text, "no more");
    enter(&post, LEADER, 0);
    expect_end(&post, LEADER, LS_EABORTED, 0);
    deliver_all(&post);
    run_epoch(&post);
    expect_all_left(&post, 1);
    destroy_post(&post);
}

TEST(an_abort_before_a_wait_ends_that_wait_once)
{
    struct post post;
    create_post(&post, 3);
    ls_epoch_abort(post.nodes[THIRD], LS_ECANCELED, true, "first");
    ls_epoch_abort(post.nodes[THIRD], LS_EHANDLER, true, "second");
    collect(&post, THIRD);
    deliver_all(&post);
    run_epoch(&post);
    expect_end(&post, THIRD, LS_ECANCELED, 0);
    expect_end(&post, LEADER, LS_EABORTED, 0);
    expect_end(&post, SECOND, LS_EABORTED, 0);
    run_epoch(&post);
    expect_all_left(&post, 1);
    destroy_post(&post);
}

TEST(an_abort_of_another_epoch_is_ignored)
{
    struct post post;
    create_post(&post, 3);
    ls_epoch_abort(post.nodes[THIRD], LS_ECANCELED, true, "no");
    collect(&post, THIRD);
    const struct letter old = post.letters[0];
    assert_int_equal(old.to, LEADER);
    deliver_all(&post);
    run_epoch(&post);
    deliver_all(&post);
    enter(&post, LEADER, 0);
    assert_int_equal(post.nodes[LEADER]->epoch, 1);
    hand_over(&post, &old);
    assert_true(waits(&post, LEADER));
    destroy_post(&post);
}

TEST(who_gave_up_answers_only_with_the_abort)
{
    struct post post;
    create_post(&post, 3);
    ls_epoch_abort(post.nodes[LEADER], LS_ETIMEDOUT, false, "late");
    collect(&post, LEADER);
    lose_all(&post);
    enter(&post, SECOND, 0);
    deliver(&post, 1);
    expect_letter(&post, LEADER, SECOND, LS_BARRIER_ABORT);
    destroy_post(&post);
}

TEST(once_all_are_ready_only_the_leader_decides)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    deliver(&post, 4); /* the leader has left, its LEFT is under way */
    expect_end(&post, LEADER, LS_OK, 0);
    ls_epoch_abort(post.nodes[THIRD], LS_ETIMEDOUT, false, "late");
    collect(&post, THIRD);
    const struct letter leave = post.letters[0];
    assert_int_equal(kind_of(&leave), LS_BARRIER_LEFT);
    assert_int_equal(leave.to, SECOND);
    for (size_t i = 0; i < post.n_letters; i++) {
        if (post.letters[i].to == SECOND && post.letters[i].from == THIRD)
            hand_over(&post, &post.letters[i]);
    }
    assert_true(waits(&post, SECOND));
    hand_over(&post, &leave);
    expect_end(&post, SECOND, LS_OK, 0);
    destroy_post(&post);
}

TEST(an_abort_that_came_too_late_ends_the_next_epoch)
{
    struct post post;
    create_post(&post, 3);
    get_ready(&post);
    deliver(&post, 4);
    ls_epoch_abort(post.nodes[THIRD], LS_ECANCELED, true, "done");
    collect(&post, THIRD);
    deliver_all(&post);
    expect_end(&post, THIRD, LS_ECANCELED, 0);
    expect_end(&post, LEADER, LS_OK, 0);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    pass(&post, 20 * MS); /* the leader asks for it */
    deliver_all(&post);
    expect_end(&post, LEADER, LS_EABORTED, 1);
    expect_end(&post, SECOND, LS_EABORTED, 1);
    destroy_post(&post);
}

/* Between the end of an epoch and the moment at which the waiting thread looks
 * at it, the next one may be lost already. */
TEST(a_loss_in_the_next_epoch_leaves_the_end_of_this_one)
{
    struct post post;
    create_post(&post, 3);
    run_epoch(&post);
    expect_end(&post, SECOND, LS_OK, 0);
    enter(&post, THIRD, 0);
    lost(&post, THIRD, LEADER);
    deliver_all(&post);
    expect_end(&post, SECOND, LS_OK, 0);
    enter(&post, SECOND, 0);
    expect_end(&post, SECOND, LS_ELOST, 1);
    destroy_post(&post);
}

TEST(an_abort_of_the_next_epoch_leaves_the_end_of_this_one)
{
    struct post post;
    create_post(&post, 3);
    run_epoch(&post);
    ls_epoch_abort(post.nodes[SECOND], LS_ECANCELED, false, "done");
    collect(&post, SECOND);
    expect_end(&post, SECOND, LS_OK, 0);
    assert_int_equal(end_of(&post, SECOND)->flags, 7);
    enter(&post, SECOND, 0);
    expect_end(&post, SECOND, LS_ECANCELED, 1);
    destroy_post(&post);
}
