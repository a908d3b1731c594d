/* The barrier's state machine when members come, go and come back: when a wait
 * goes on in the next epoch, and when it fails. */
#include "barrier_post.h"
#include "test.h"

static const struct ls_epoch_rules go_on = {
    .least = 1, .most = 3, .go_on = true};
static const struct ls_epoch_rules patient = {
    .least = 3, .most = 3, .grace_ns = 500 * LS_NS_PER_MS};
static const struct ls_epoch_rules strict = {.least = 3, .most = 3};
static const struct ls_epoch_rules elastic = {.least = 2, .most = 3};
static const struct ls_epoch_rules any = {.least = 0};
static const struct ls_epoch_rules forming = {.least = 3, .most = 3, .room = 5};

/* Hand over all but what is for one who is gone. */
static void deliver_without(struct post *post, size_t gone)
{
    while (post->n_letters > 0) {
        const struct letter letter = next_letter(post);
        if (letter.to != gone && letter.from != gone)
            hand_over(post, &letter);
    }
}

/* Let time pass until those who are left have nothing more to say. */
static void run_without(struct post *post, size_t gone)
{
    for (int i = 0; i < 20; i++) {
        deliver_without(post, gone);
        pass(post, 10 * MS);
    }
    deliver_without(post, gone);
}

/* A new life of THIRD, known to all. */
static void bring_back(struct post *post, uint64_t incarnation)
{
    const struct ls_epoch_rules rules = post->nodes[LEADER]->rules;
    ls_epoch_destroy(&post->nodes[THIRD]);
    assert_ok(ls_epoch_create(&post->nodes[THIRD], ids[THIRD], &rules));
    ls_epoch_set_self(post->nodes[THIRD], incarnation, 0);
    for (size_t i = LEADER; i < THIRD; i++) {
        assert_ok(ls_epoch_joined(post->nodes[i], post->now, ids[THIRD],
                                  incarnation, 0));
        collect(post, i);
        assert_ok(
            ls_epoch_joined(post->nodes[THIRD], post->now, ids[i], 100 + i, 0));
    }
}

static void lose_third(struct post *post)
{
    for (size_t i = LEADER; i < THIRD; i++)
        lost(post, i, THIRD);
}

TEST(who_goes_on_waits_with_those_who_are_left)
{
    struct post post;
    create_post_by(&post, 3, &go_on);
    run_epoch(&post);
    enter(&post, LEADER, 1);
    enter(&post, SECOND, 2);
    deliver_all(&post);
    lose_third(&post);
    run_without(&post, THIRD);
    for (size_t i = LEADER; i < THIRD; i++) {
        expect_end(&post, i, LS_OK, end_of(&post, LEADER)->epoch);
        assert_int_equal(end_of(&post, i)->n_members, 2);
        assert_int_equal(end_of(&post, i)->n_lost, 1);
        assert_int_equal(end_of(&post, i)->flags, 3);
        assert_true(end_of(&post, i)->epoch > 1);
        assert_int_equal(end_of(&post, i)->since, end_of(&post, i)->epoch);
    }
    destroy_post(&post);
}

TEST(a_view_keeps_its_number_while_it_lasts)
{
    struct post post;
    create_post_by(&post, 3, &go_on);
    for (int i = 0; i < 5; i++) {
        run_epoch(&post);
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(end_of(&post, k)->since, 0);
            assert_int_equal(end_of(&post, k)->n_members, 3);
            assert_int_equal(post.nodes[k]->left.n_ids, 3);
            assert_memory_equal(post.nodes[k]->left.ids, ids, sizeof ids);
        }
    }
    destroy_post(&post);
}

TEST(who_comes_back_gives_the_view_a_new_number)
{
    struct post post;
    create_post_by(&post, 3, &go_on);
    run_epoch(&post);
    lose_third(&post);
    bring_back(&post, 777);
    for (size_t i = 0; i < 3; i++)
        enter(&post, i, 0);
    run_without(&post, 3);
    for (size_t i = 0; i < 3; i++) {
        expect_end(&post, i, LS_OK, end_of(&post, LEADER)->epoch);
        assert_int_equal(end_of(&post, i)->since, end_of(&post, i)->epoch);
        assert_int_equal(end_of(&post, i)->n_members, 3);
    }
    destroy_post(&post);
}

TEST(within_the_grace_the_wait_is_for_its_next_life)
{
    struct post post;
    create_post_by(&post, 3, &patient);
    run_epoch(&post);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    lose_third(&post);
    run_without(&post, THIRD);
    assert_true(waits(&post, LEADER) && waits(&post, SECOND));
    bring_back(&post, 777);
    enter(&post, THIRD, 0);
    run_without(&post, 3);
    for (size_t i = 0; i < 3; i++)
        expect_end(&post, i, LS_OK, end_of(&post, LEADER)->epoch);
    destroy_post(&post);
}

TEST(when_the_grace_is_over_all_fail_alike)
{
    struct post post;
    create_post_by(&post, 3, &patient);
    run_epoch(&post);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    lose_third(&post);
    for (int i = 0; i < 4; i++)
        run_without(&post, THIRD);
    for (size_t i = LEADER; i < THIRD; i++) {
        assert_fails(end_of(&post, i)->status, LS_ELOST);
        assert_string_equal(end_of(&post, i)->reason.text,
                            "node 4294967295 was lost, and not all are here "
                            "after 500 ms of grace");
    }
    destroy_post(&post);
}

TEST(a_deadline_ends_a_wait_between_two_epochs)
{
    struct post post;
    create_post_by(&post, 3, &patient);
    run_epoch(&post);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    lose_third(&post);
    run_without(&post, THIRD);
    ls_epoch_abort(post.nodes[LEADER], LS_ETIMEDOUT, false, "late");
    collect(&post, LEADER);
    assert_fails(end_of(&post, LEADER)->status, LS_ETIMEDOUT);
    assert_string_equal(end_of(&post, LEADER)->reason.text,
                        "late; before that, node 4294967295 was lost, not "
                        "known to have entered");
    destroy_post(&post);
}

/* A world of two in which THIRD is not known yet. */
static void create_without_third(struct post *post,
                                 const struct ls_epoch_rules *rules)
{
    create_post_by(post, 2, rules);
    post->n = 3;
    assert_ok(ls_epoch_create(&post->nodes[THIRD], ids[THIRD], rules));
}

static void join_between(const struct ls_epoch_rules *rules)
{
    struct post post;
    create_without_third(&post, rules);
    enter(&post, LEADER, 0);
    bring_back(&post, 777);
    enter(&post, THIRD, 0);
    enter(&post, SECOND, 0); /* it counts THIRD, the leader does not */
    run_without(&post, 3);
    for (size_t i = 0; i < 3; i++) {
        expect_end(&post, i, LS_OK, end_of(&post, LEADER)->epoch);
        assert_true(end_of(&post, i)->epoch > 0);
        assert_int_equal(end_of(&post, i)->n_members, 3);
    }
    destroy_post(&post);
}

TEST(one_who_joins_is_counted_in_the_next_epoch)
{
    join_between(&elastic);
    join_between(&any);
}

TEST(too_few_wait_until_the_others_are_here)
{
    struct post post;
    create_without_third(&post, &forming);
    enter(&post, LEADER, 1);
    enter(&post, SECOND, 2);
    for (int i = 0; i < 5; i++)
        run_without(&post, THIRD);
    assert_true(waits(&post, LEADER) && waits(&post, SECOND));
    assert_int_equal(ls_epoch_wake_at(post.nodes[LEADER]), LS_FOREVER);
    bring_back(&post, 777);
    enter(&post, THIRD, 4);
    run_without(&post, 3);
    expect_all_left(&post, 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(end_of(&post, i)->flags, 7);
    destroy_post(&post);
}

/* SECOND sees all, LEADER does not yet: it is here, and has not entered. */
TEST(who_sees_too_few_keeps_nobody_from_asking)
{
    struct post post;
    create_without_third(&post, &forming);
    enter(&post, LEADER, 0);
    assert_ok(
        ls_epoch_joined(post.nodes[SECOND], post.now, ids[THIRD], 777, 0));
    enter(&post, SECOND, 0);
    run_without(&post, THIRD);
    assert_true(waits(&post, LEADER) && waits(&post, SECOND));
    bring_back(&post, 777);
    enter(&post, THIRD, 0);
    run_without(&post, 3);
    expect_all_left(&post, 0);
    destroy_post(&post);
}

TEST(a_deadline_ends_the_wait_of_too_few_for_all)
{
    struct post post;
    create_without_third(&post, &forming);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    ls_epoch_abort(post.nodes[SECOND], LS_ETIMEDOUT, false, "late");
    collect(&post, SECOND);
    deliver_all(&post);
    for (size_t i = LEADER; i < THIRD; i++) {
        expect_end(&post, i, LS_ETIMEDOUT, 0);
        assert_int_equal(end_of(&post, i)->reason.origin, ids[SECOND]);
        assert_string_equal(end_of(&post, i)->reason.text,
                            "late: node 1000000 sees 2 members, not 3");
    }
    destroy_post(&post);
}

TEST(a_loss_ends_the_wait_of_too_few_for_all)
{
    struct post post;
    const struct ls_epoch_rules four = {.least = 4, .most = 4, .room = 5};
    create_post_by(&post, 3, &four);
    for (size_t i = 0; i < 3; i++)
        enter(&post, i, 0);
    deliver_all(&post);
    assert_true(waits(&post, LEADER) && waits(&post, SECOND));
    lost(&post, LEADER, THIRD);
    pass(&post, 0);
    run_without(&post, THIRD);
    for (size_t i = LEADER; i < THIRD; i++) {
        expect_end(&post, i, LS_ELOST, 0);
        assert_string_equal(
            end_of(&post, i)->reason.text,
            "node 4294967295 was lost; 2 members are here, not 4");
    }
    destroy_post(&post);
}

TEST(what_the_world_has_no_room_for_is_refused)
{
    struct post post;
    const struct ls_epoch_rules four = {.least = 4, .most = 4, .room = 3};
    create_post_by(&post, 3, &four);
    enter(&post, LEADER, 0);
    deliver_all(&post);
    expect_end(&post, LEADER, LS_EMISMATCH, 0);
    assert_string_equal(end_of(&post, LEADER)->reason.text,
                        "node 7 sees 3 members, not 4");
    destroy_post(&post);
}

TEST(a_deadline_between_two_epochs_ends_them_for_all)
{
    struct post post;
    create_post_by(&post, 3, &patient);
    run_epoch(&post);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    lose_third(&post);
    run_without(&post, THIRD);
    ls_epoch_abort(post.nodes[SECOND], LS_ETIMEDOUT, false, "late");
    collect(&post, SECOND);
    deliver_without(&post, THIRD);
    for (size_t i = LEADER; i < THIRD; i++) {
        assert_fails(end_of(&post, i)->status, LS_ETIMEDOUT);
        assert_int_equal(end_of(&post, i)->reason.origin, ids[SECOND]);
    }
    destroy_post(&post);
}

TEST(with_other_rules_nobody_goes_on)
{
    struct post post;
    create_post_by(&post, 3, &go_on);
    post.nodes[SECOND]->rules.hash = 5;
    for (size_t i = 0; i < 3; i++)
        enter(&post, i, 0);
    run_without(&post, 3);
    for (size_t i = 0; i < 3; i++)
        assert_fails(end_of(&post, i)->status, LS_EMISMATCH);
    destroy_post(&post);
}

static void withdraw(struct post *post, size_t node)
{
    ls_epoch_withdraw(post->nodes[node]);
    collect(post, node);
}

TEST(a_barrier_taken_down_fails_those_who_wait)
{
    struct post post;
    create_post(&post, 3);
    run_epoch(&post);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    withdraw(&post, THIRD);
    deliver_all(&post);
    for (size_t i = LEADER; i < THIRD; i++) {
        expect_end(&post, i, LS_EMISMATCH, 1);
        assert_string_equal(
            end_of(&post, i)->reason.text,
            "node 4294967295 has no barrier of this name any more");
    }
    /* That its node is here does not mean that its barrier is. */
    assert_ok(
        ls_epoch_joined(post.nodes[LEADER], post.now, ids[THIRD], 102, 0));
    for (uint64_t epoch = 2; epoch < 4; epoch++) {
        enter(&post, LEADER, 0);
        run_without(&post, THIRD);
        expect_end(&post, LEADER, LS_EMISMATCH, epoch);
    }
    destroy_post(&post);
}

/* It was taken down before this one met it; another is to come. */
TEST(the_end_of_an_earlier_barrier_is_no_alarm)
{
    struct post post;
    create_post(&post, 3);
    enter(&post, LEADER, 0);
    withdraw(&post, THIRD);
    deliver_all(&post);
    assert_true(waits(&post, LEADER));
    enter(&post, SECOND, 0);
    enter(&post, THIRD, 0);
    deliver_all(&post);
    expect_all_left(&post, 0);
    destroy_post(&post);
}

/* THIRD was lost and so LEADER failed, and goes; SECOND hears first of that. */
TEST(who_goes_because_of_a_loss_names_it)
{
    struct post post;
    create_post_by(&post, 3, &strict);
    run_epoch(&post);
    lost(&post, LEADER, THIRD);
    enter(&post, LEADER, 0);
    deliver_without(&post, THIRD);
    pass(&post, 0);
    expect_end(&post, LEADER, LS_ELOST, 1);
    lose_all(&post);
    withdraw(&post, LEADER);
    deliver_all(&post);
    enter(&post, SECOND, 0);
    pass(&post, LS_EPOCH_INQUIRE_NS); /* THIRD does not answer */
    expect_end(&post, SECOND, LS_ELOST, 1);
    assert_string_equal(end_of(&post, SECOND)->reason.text,
                        "node 4294967295 was lost; 2 members are here, not 3");
    destroy_post(&post);
}

/* Inside of the epoch: SECOND has heard nothing of LEADER but that it went. */
static void second_hears_that_leader_went(struct post *post)
{
    create_post(post, 3);
    run_epoch(post);
    enter(post, SECOND, 0);
    enter(post, LEADER, 0);
    lost(post, LEADER, THIRD);
    expect_end(post, LEADER, LS_ELOST, 1);
    lose_all(post);
    withdraw(post, LEADER);
    deliver_without(post, THIRD);
}

TEST(who_goes_because_of_a_loss_names_it_to_who_waits)
{
    struct post post;
    second_hears_that_leader_went(&post);
    assert_true(waits(&post, SECOND)); /* THIRD may know more */
    lost(&post, SECOND, THIRD);
    expect_end(&post, SECOND, LS_ELOST, 1);
    assert_string_equal(
        end_of(&post, SECOND)->reason.text,
        "node 4294967295 and 1 more were lost, not known to have entered");
    destroy_post(&post);
}

/* And to one that is not in it yet, by one that has only heard of it. */
TEST(a_loss_that_was_named_is_handed_on)
{
    struct post post;
    second_hears_that_leader_went(&post);
    pass(&post, LS_EPOCH_ASK_FIRST_NS);
    deliver_all(&post);
    expect_end(&post, SECOND, LS_ELOST, 1);
    enter(&post, THIRD, 0);
    expect_end(&post, THIRD, LS_ELOST, 1);
    destroy_post(&post);
}

TEST(of_two_losses_the_first_is_named)
{
    struct post post;
    create_post_by(&post, 3, &strict);
    run_epoch(&post);
    lost(&post, SECOND, THIRD);
    lost(&post, SECOND, LEADER);
    enter(&post, SECOND, 0);
    expect_end(&post, SECOND, LS_ELOST, 1);
    assert_string_equal(end_of(&post, SECOND)->reason.text,
                        "node 4294967295 was lost; 1 members are here, not 3");
    destroy_post(&post);
}
