/* Why an epoch was given up: what those say who enter it late, whoever is gone
 * by then, and whatever was lost on the way. */
#define POST_IDS 7, 1000000, 4294967294u, 4294967295u
#include "barrier_post.h"
#include "test.h"

enum { FOURTH = THIRD + 1 };

static void abort_at(struct post *post, size_t node, const char *text)
{
    ls_epoch_abort(post->nodes[node], LS_ECANCELED, false, text);
    collect(post, node);
    deliver_all(post);
}

TEST(who_lags_behind_has_the_reason_of_each_epoch)
{
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
TEST(who_is_sent_far_ahead_has_the_reason_there)
{
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
TEST(who_lags_behind_fails_as_the_others_did)
{
    struct post post;
    create_post(&post, 3);
    abort_at(&post, SECOND, "one");
    lost(&post, THIRD, LEADER);
    enter(&post, THIRD, 0);
    expect_end(&post, THIRD, LS_EABORTED, 0);
    assert_string_equal(end_of(&post, THIRD)->reason.text, "one");
    destroy_post(&post);
}

/* --- who said it is gone ------------------------------------------------ */

/* The others were told as well, so all fail alike; by itself it would name a
 * loss that had nothing to do with it. */
TEST(an_abort_holds_when_who_said_it_is_gone)
{
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
TEST(so_it_does_where_the_others_could_go_on)
{
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

/* Epochs count anew where all who were ahead are gone. */
TEST(it_is_of_no_epoch_that_the_others_begin_anew)
{
    const struct ls_epoch_rules rules = {.least = 3, .most = 4, .room = 4};
    const struct ls_barrier_message abort = {.kind = LS_BARRIER_ABORT,
                                             .epoch = 1,
                                             .to = 100 + THIRD,
                                             .next = 2,
                                             .status = LS_ECANCELED,
                                             .reason = ""};
    struct post post;
    create_post_by(&post, 3, &rules);
    struct ls_epoch *third = post.nodes[THIRD];
    assert_ok(ls_epoch_joined(third, post.now, 8, 108, 0));
    ls_epoch_receive(third, post.now, 8, 108, &abort);
    ls_epoch_lost(third, post.now, 8, 108);
    collect(&post, THIRD);
    lose_all(&post);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        run_epoch(&post);
        expect_all_left(&post, epoch);
    }
    destroy_post(&post);
}

/* Another node may have a barrier of that name, in another group, say. */
TEST(an_abort_of_one_who_is_not_counted_is_ignored)
{
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

/* --- who lies about epochs ------------------------------------------------ */

/* The leader sends a node there, in every way. */
static void send_to(struct post *post, size_t node, uint64_t epoch)
{
    const enum ls_barrier_kind kinds[] = {LS_BARRIER_EXPECT, LS_BARRIER_ENTERED,
                                          LS_BARRIER_ABORT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct ls_barrier_message lie = {
            .kind = kinds[i],
            .epoch = kinds[i] == LS_BARRIER_ENTERED ? epoch : 0,
            .to = 100 + node,
            .next = epoch,
            .status = kinds[i] == LS_BARRIER_ABORT ? LS_ECANCELED : LS_OK,
            .reason = ""};
        ls_epoch_receive(post->nodes[node], post->now, ids[LEADER],
                         100 + LEADER, &lie);
    }
    collect(post, node);
    lose_all(post);
}

TEST(nobody_is_sent_to_where_epochs_end)
{
    struct post post;
    create_post(&post, 3);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        send_to(&post, SECOND, LS_BARRIER_EPOCH_MAX - 1);
        send_to(&post, THIRD, (LS_BARRIER_EPOCH_MAX >> 1) + (1u << 21));
        run_epoch(&post);
        expect_all_left(&post, epoch);
    }
    destroy_post(&post);
}

static void expect(struct post *post, size_t node, uint64_t next)
{
    const struct ls_barrier_message message = {
        .kind = LS_BARRIER_EXPECT, .to = 100 + node, .next = next};
    ls_epoch_receive(post->nodes[node], post->now, ids[node == 0],
                     100u + (node == 0), &message);
}

TEST(who_is_sent_far_goes_on_there)
{
    const uint64_t far = LS_BARRIER_EPOCH_MAX >> 1;
    struct post post;
    create_post(&post, 3);
    for (size_t i = 0; i < 3; i++)
        expect(&post, i, far);
    for (uint64_t epoch = far; epoch < far + 3; epoch++) {
        run_epoch(&post);
        expect_all_left(&post, epoch);
        send_to(&post, THIRD, LS_BARRIER_EPOCH_MAX - 1);
    }
    destroy_post(&post);
}

/* How many letters there are from SECOND, when it enters, to THIRD, which was
 * heard to be ahead. */
static size_t letters_to_one_ahead(bool is_member)
{
    const struct ls_barrier_message ahead = {
        .kind = LS_BARRIER_ENTERED, .epoch = 5, .to = 100 + SECOND, .next = 5};
    struct post post;
    size_t n = 0;
    create_post(&post, is_member ? 3 : 2);
    run_epoch(&post);
    ls_epoch_receive(post.nodes[SECOND], post.now, ids[THIRD], 100 + THIRD,
                     &ahead);
    collect(&post, SECOND);
    lose_all(&post);
    enter(&post, SECOND, 0);
    assert_int_equal(post.nodes[SECOND]->phase, LS_EPOCH_ENTERED);
    for (size_t i = 0; i < post.n_letters; i++)
        n += post.letters[i].to == THIRD;
    destroy_post(&post);
    return n;
}

TEST(who_is_ahead_is_asked_if_it_is_a_member)
{
    assert_int_equal(letters_to_one_ahead(true), 1);
    assert_int_equal(letters_to_one_ahead(false), 0);
}

/* --- who was not told --------------------------------------------------- */

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

TEST(who_counts_too_few_asks_why_the_others_gave_up)
{
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

TEST(who_is_asked_tells_the_reason_of_that_epoch)
{
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

TEST(who_does_not_know_any_more_says_so)
{
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

TEST(if_nobody_answers_it_names_the_loss)
{
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

TEST(a_deadline_ends_its_asking)
{
    struct post post;
    create_one_who_was_not_told(&post);
    ls_epoch_abort(post.nodes[THIRD], LS_ETIMEDOUT, false, "late");
    expect_end(&post, THIRD, LS_ELOST, 0);
    destroy_post(&post);
}

TEST(a_return_ends_its_asking)
{
    struct post post;
    create_post(&post, 3);
    lost(&post, THIRD, SECOND);
    enter(&post, THIRD, 0);
    enter(&post, LEADER, 0);
    enter(&post, SECOND, 0);
    deliver_all(&post);
    assert_true(waits(&post, LEADER));
    lose_all(&post);
    assert_ok(ls_epoch_joined(post.nodes[THIRD], post.now, ids[SECOND],
                              100 + SECOND, 0));
    pass(&post, 0);
    pass(&post, 20 * MS);
    deliver_all(&post);
    expect_all_left(&post, 0);
    destroy_post(&post);
}

/* --- two ask each other ------------------------------------------------- */

/* Nobody else is reached. */
static void deliver_between(struct post *post, size_t a, size_t b)
{
    while (post->n_letters > 0) {
        const struct letter letter = next_letter(post);
        if ((letter.from == a && letter.to == b) ||
            (letter.from == b && letter.to == a))
            hand_over(post, &letter);
    }
}

/* LEADER and FOURTH each lack another one, and have not heard of it before. */
static void create_two_reasons(struct post *post)
{
    create_post(post, 4);
    lost(post, LEADER, SECOND);
    lost(post, FOURTH, THIRD);
}

static void expect_reason_of_leader(struct post *post)
{
    for (int i = 0; i < 3; i++) { /* who was not answered asks again */
        deliver_all(post);
        pass(post, 20 * MS);
    }
    deliver_all(post);
    expect_end(post, LEADER, LS_ELOST, 0);
    expect_end(post, FOURTH, LS_ELOST, 0);
    assert_string_equal(end_of(post, FOURTH)->reason.text,
                        "node 1000000 was lost; 3 members are here, not 4");
    assert_string_equal(end_of(post, LEADER)->reason.text,
                        end_of(post, FOURTH)->reason.text);
    destroy_post(post);
}

TEST(of_two_that_ask_the_one_with_the_lower_id_gives_its_reason)
{
    struct post post;
    create_two_reasons(&post);
    enter(&post, LEADER, 0);
    enter(&post, FOURTH, 0);
    expect_reason_of_leader(&post);
}

TEST(so_it_does_if_it_was_asked_first)
{
    struct post post;
    create_two_reasons(&post);
    enter(&post, FOURTH, 0);
    deliver(&post, 3); /* LEADER: it knows of none; from SECOND: the same */
    enter(&post, LEADER, 0);
    expect_reason_of_leader(&post);
}

TEST(and_if_that_answer_is_overtaken)
{
    struct post post;
    create_two_reasons(&post);
    enter(&post, FOURTH, 0);
    lose_all(&post);
    pass(&post, 20 * MS);
    deliver(&post, 1);
    const struct letter late = post.letters[post.n_letters - 1];
    assert_int_equal(late.from, LEADER);
    post.n_letters--;
    enter(&post, LEADER, 0);
    post.letters[post.n_letters++] = late;
    expect_reason_of_leader(&post);
}

/* Somebody is silent, so the first gives up after a second. */
TEST(a_reason_that_is_lost_on_the_way_is_asked_for_again)
{
    struct post post;
    create_two_reasons(&post);
    enter(&post, LEADER, 0);
    deliver_between(&post, LEADER, FOURTH); /* it does not ask again */
    pass(&post, 120 * MS);
    lose_all(&post);
    enter(&post, FOURTH, 0);
    for (int64_t passed = 120 * MS; waits(&post, LEADER); passed += 20 * MS) {
        assert_true(passed <= LS_EPOCH_INQUIRE_NS);
        deliver_between(&post, LEADER, FOURTH);
        pass(&post, 20 * MS);
    }
    lose_all(&post);
    for (int64_t passed = 0; waits(&post, FOURTH); passed += 20 * MS) {
        assert_true(passed <= LS_EPOCH_INQUIRE_NS);
        pass(&post, 20 * MS);
        deliver_between(&post, LEADER, FOURTH);
    }
    expect_end(&post, FOURTH, LS_ELOST, 0);
    assert_string_equal(end_of(&post, FOURTH)->reason.text,
                        "node 1000000 was lost; 3 members are here, not 4");
    destroy_post(&post);
}

TEST(who_waits_for_a_reason_waits_two_seconds_at_most)
{
    struct post post;
    create_two_reasons(&post);
    enter(&post, LEADER, 0);
    enter(&post, FOURTH, 0);
    deliver_between(&post, LEADER, FOURTH);
    int64_t passed = 0;
    for (; waits(&post, FOURTH); passed += 20 * MS) {
        pass(&post, 20 * MS);
        lose_all(&post);
    }
    assert_int_equal(passed, 2 * LS_EPOCH_INQUIRE_NS);
    expect_end(&post, FOURTH, LS_ELOST, 0);
    destroy_post(&post);
}
