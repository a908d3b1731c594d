/* The barrier's state machine when members are lost, or give up. */
#include "barrier_post.h"

/* --- losses ------------------------------------------------------------- */

static void test_one_lost_before_it_entered_ends_the_epoch(void **state)
{
    (void)state;
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
    assert_int_equal(end_of(&post, SECOND)->reason.status, LS_ELOST);
    destroy_post(&post);
}

static void test_one_lost_between_request_and_ack_is_excepted(void **state)
{
    (void)state;
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

static void test_a_busy_leader_answers_for_a_loss_at_once(void **state)
{
    (void)state;
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

static void test_a_leader_lost_before_ready_ends_the_epoch_for_all(void **state)
{
    (void)state;
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

static void test_a_leader_lost_after_one_ready_ends_well_for_all(void **state)
{
    (void)state;
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

static void test_a_leader_lost_after_leaving_ends_well_for_all(void **state)
{
    (void)state;
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

static void test_who_is_stuck_alone_gives_up_after_a_second(void **state)
{
    (void)state;
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
static void test_a_deadline_of_one_is_a_timeout_for_all(void **state)
{
    (void)state;
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

static void test_a_status_that_nobody_knows_is_an_abort(void **state)
{
    (void)state;
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

static void test_an_abort_reaches_all_and_the_next_epoch_works(void **state)
{
    (void)state;
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

static void test_an_abort_before_a_wait_ends_that_wait_once(void **state)
{
    (void)state;
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

static void test_an_abort_of_another_epoch_is_ignored(void **state)
{
    (void)state;
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

static void test_who_gave_up_answers_only_with_the_abort(void **state)
{
    (void)state;
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

static void test_once_all_are_ready_only_the_leader_decides(void **state)
{
    (void)state;
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

static void test_an_abort_that_came_too_late_ends_the_next_epoch(void **state)
{
    (void)state;
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
static void
test_a_loss_in_the_next_epoch_leaves_the_end_of_this_one(void **state)
{
    (void)state;
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

static void
test_an_abort_of_the_next_epoch_leaves_the_end_of_this_one(void **state)
{
    (void)state;
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

static void abort_at(struct post *post, size_t node, const char *text)
{
    ls_epoch_abort(post->nodes[node], LS_ECANCELED, false, text);
    collect(post, node);
    deliver_all(post);
}

static void test_who_lags_behind_has_the_reason_of_each_epoch(void **state)
{
    (void)state;
    struct post post;
    create_post(&post, 3);
    abort_at(&post, SECOND, "one");
    enter(&post, LEADER, 0);
    deliver_all(&post);
    abort_at(&post, LEADER, "two");
    enter(&post, THIRD, 0);
    expect_end(&post, THIRD, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "one");
    assert_int_equal(end_of(&post, THIRD)->reason.origin, ids[SECOND]);
    enter(&post, THIRD, 0);
    expect_end(&post, THIRD, LS_EABORTED, 1);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "two");
    destroy_post(&post);
}

/* It has heard of nearer epochs, too, and is not to enter those. */
static void test_who_is_sent_far_ahead_has_the_reason_there(void **state)
{
    (void)state;
    enum { FAR = LS_EPOCH_HEARD + 1 };
    struct post post;
    create_post(&post, 3);
    for (uint64_t epoch = 0; epoch <= FAR; epoch++) {
        abort_at(&post, SECOND, epoch < FAR ? "near" : "far");
        enter(&post, SECOND, 0);
        expect_end(&post, SECOND, LS_ECANCELED, epoch);
    }
    const struct ls_barrier_message expect = {
        .kind = LS_BARRIER_EXPECT, .to = 100 + THIRD, .next = FAR};
    ls_epoch_receive(post.nodes[THIRD], post.now, ids[LEADER], 100 + LEADER,
                     &expect);
    enter(&post, THIRD, 0);
    expect_end(&post, THIRD, LS_EABORTED, FAR);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "far");
    destroy_post(&post);
}

/* It would have had one of its own: a member has gone meanwhile. */
static void test_who_lags_behind_fails_as_the_others_did(void **state)
{
    (void)state;
    struct post post;
    create_post(&post, 3);
    abort_at(&post, SECOND, "one");
    lost(&post, THIRD, LEADER);
    enter(&post, THIRD, 0);
    expect_end(&post, THIRD, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "one");
    destroy_post(&post);
}

/* The others were told as well, so all fail alike; by itself it would name a
 * loss that had nothing to do with it. */
static void test_an_abort_holds_when_who_said_it_is_gone(void **state)
{
    (void)state;
    struct post post;
    create_post(&post, 3);
    abort_at(&post, SECOND, "one");
    enter(&post, LEADER, 0);
    expect_end(&post, LEADER, LS_EABORTED, 0);
    lose_all(&post);
    lost(&post, THIRD, SECOND);
    enter(&post, THIRD, 0);
    expect_end(&post, THIRD, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "one");
    assert_int_equal(end_of(&post, THIRD)->reason.origin, ids[SECOND]);
    destroy_post(&post);
}

/* Here nobody counts too few: it would wait with those who are left, who have
 * failed, and find that they had counted others. */
static void test_so_it_does_where_the_others_could_go_on(void **state)
{
    (void)state;
    const struct ls_epoch_rules rules = {
        .least = 1, .most = 3, .room = 3, .go_on = true};
    struct post post;
    create_post_by(&post, 3, &rules);
    enter(&post, THIRD, 0);
    abort_at(&post, SECOND, "one");
    expect_end(&post, THIRD, LS_EABORTED, 0);
    lost(&post, LEADER, SECOND);
    enter(&post, LEADER, 0);
    expect_end(&post, LEADER, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, LEADER)->reason.text, "one");
    destroy_post(&post);
}

/* Another node may have a barrier of that name, in another group, say. */
static void test_an_abort_of_one_who_is_not_counted_is_ignored(void **state)
{
    (void)state;
    const struct ls_barrier_message abort = {.kind = LS_BARRIER_ABORT,
                                             .to = 100 + THIRD,
                                             .next = 1,
                                             .status = LS_ECANCELED,
                                             .reason = ""};
    struct post post;
    create_post(&post, 3);
    ls_epoch_receive(post.nodes[THIRD], post.now, 8, 108, &abort);
    run_epoch(&post);
    expect_all_left(&post, 0);
    destroy_post(&post);
}

/* What SECOND said did not reach THIRD, which knows of a loss. */
static void create_one_who_was_not_told(struct post *post)
{
    create_post(post, 3);
    ls_epoch_abort(post->nodes[SECOND], LS_ECANCELED, false, "one");
    collect(post, SECOND);
    deliver(post, 1);
    lose_all(post);
    lost(post, THIRD, SECOND);
    enter(post, THIRD, 0);
    assert_true(waits(post, THIRD));
}

static void test_who_counts_too_few_asks_why_the_others_gave_up(void **state)
{
    (void)state;
    struct post post;
    create_one_who_was_not_told(&post);
    deliver_all(&post);
    expect_end(&post, THIRD, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "one");
    assert_int_equal(end_of(&post, THIRD)->reason.origin, ids[SECOND]);
    destroy_post(&post);
}

static void fail_as(struct post *post, size_t node, const char *text)
{
    enter(post, node, 0);
    ls_epoch_abort(post->nodes[node], LS_ETIMEDOUT, false, text);
    collect(post, node);
    lose_all(post);
}

static void test_who_is_asked_tells_the_reason_of_that_epoch(void **state)
{
    (void)state;
    struct post post;
    create_one_who_was_not_told(&post);
    lose_all(&post);
    enter(&post, LEADER, 0);
    expect_end(&post, LEADER, LS_EABORTED, 0);
    lose_all(&post);
    for (uint64_t epoch = 1; epoch < LS_EPOCH_HEARD; epoch++)
        fail_as(&post, LEADER, "later");
    pass(&post, 20 * MS); /* THIRD asks again */
    deliver_all(&post);
    expect_end(&post, THIRD, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "one");
    destroy_post(&post);
}

static void test_who_does_not_know_any_more_says_so(void **state)
{
    (void)state;
    struct post post;
    create_one_who_was_not_told(&post);
    lose_all(&post);
    enter(&post, LEADER, 0);
    for (uint64_t epoch = 1; epoch <= LS_EPOCH_HEARD; epoch++)
        fail_as(&post, LEADER, "later");
    pass(&post, 20 * MS);
    deliver_all(&post);
    expect_end(&post, THIRD, LS_ETIMEDOUT, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text,
                        "node 7 gave it up before");
    destroy_post(&post);
}

static void test_if_nobody_answers_it_names_the_loss(void **state)
{
    (void)state;
    struct post post;
    create_one_who_was_not_told(&post);
    lose_all(&post);
    for (int64_t passed = 0; passed < LS_EPOCH_INQUIRE_NS; passed += 20 * MS) {
        assert_true(waits(&post, THIRD));
        pass(&post, 20 * MS);
        lose_all(&post);
    }
    expect_end(&post, THIRD, LS_ELOST, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text,
                        "node 1000000 was lost; 2 members are here, not 3");
    destroy_post(&post);
}

static void test_a_deadline_ends_its_asking(void **state)
{
    (void)state;
    struct post post;
    create_one_who_was_not_told(&post);
    ls_epoch_abort(post.nodes[THIRD], LS_ETIMEDOUT, false, "late");
    expect_end(&post, THIRD, LS_ELOST, 0);
    destroy_post(&post);
}

static void test_a_return_ends_its_asking(void **state)
{
    (void)state;
    struct post post;
    create_post(&post, 3);
    lost(&post, THIRD, SECOND);
    enter(&post, THIRD, 0);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    assert_true(waits(&post, LEADER));
    lose_all(&post);
    assert_int_equal(ls_epoch_joined(post.nodes[THIRD], post.now, ids[SECOND],
                                     100 + SECOND),
                     LS_OK);
    pass(&post, 0);
    pass(&post, 20 * MS);
    deliver_all(&post);
    expect_all_left(&post, 0);
    destroy_post(&post);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_lost_before_it_entered_ends_the_epoch),
        cmocka_unit_test(test_one_lost_between_request_and_ack_is_excepted),
        cmocka_unit_test(test_a_busy_leader_answers_for_a_loss_at_once),
        cmocka_unit_test(
            test_a_leader_lost_before_ready_ends_the_epoch_for_all),
        cmocka_unit_test(test_a_leader_lost_after_one_ready_ends_well_for_all),
        cmocka_unit_test(test_a_leader_lost_after_leaving_ends_well_for_all),
        cmocka_unit_test(test_who_is_stuck_alone_gives_up_after_a_second),
        cmocka_unit_test(test_a_deadline_of_one_is_a_timeout_for_all),
        cmocka_unit_test(test_a_status_that_nobody_knows_is_an_abort),
        cmocka_unit_test(test_an_abort_reaches_all_and_the_next_epoch_works),
        cmocka_unit_test(test_an_abort_before_a_wait_ends_that_wait_once),
        cmocka_unit_test(test_an_abort_of_another_epoch_is_ignored),
        cmocka_unit_test(test_who_gave_up_answers_only_with_the_abort),
        cmocka_unit_test(test_once_all_are_ready_only_the_leader_decides),
        cmocka_unit_test(test_an_abort_that_came_too_late_ends_the_next_epoch),
        cmocka_unit_test(
            test_a_loss_in_the_next_epoch_leaves_the_end_of_this_one),
        cmocka_unit_test(
            test_an_abort_of_the_next_epoch_leaves_the_end_of_this_one),
        cmocka_unit_test(test_who_lags_behind_has_the_reason_of_each_epoch),
        cmocka_unit_test(test_who_is_sent_far_ahead_has_the_reason_there),
        cmocka_unit_test(test_who_lags_behind_fails_as_the_others_did),
        cmocka_unit_test(test_an_abort_holds_when_who_said_it_is_gone),
        cmocka_unit_test(test_so_it_does_where_the_others_could_go_on),
        cmocka_unit_test(test_an_abort_of_one_who_is_not_counted_is_ignored),
        cmocka_unit_test(
            test_who_counts_too_few_asks_why_the_others_gave_up),
        cmocka_unit_test(test_who_is_asked_tells_the_reason_of_that_epoch),
        cmocka_unit_test(test_who_does_not_know_any_more_says_so),
        cmocka_unit_test(test_if_nobody_answers_it_names_the_loss),
        cmocka_unit_test(test_a_deadline_ends_its_asking),
        cmocka_unit_test(test_a_return_ends_its_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
