/* The barrier's state machine in a tree, step by step. Seven members, two below
 * each, in the order of their ids:
 *
 *          0
 *      1       2
 *    3   4   5   6      */
#define POST_IDS 7, 12, 500, 70000, 1000000, 4294967294u, 4294967295u
#include "barrier_post.h"
#include "test.h"

enum { N = 7 };

static const struct ls_epoch_rules in_pairs = {
    .least = N, .most = N, .fanout = 2};

static void create_tree(struct post *post)
{
    create_post_by(post, N, &in_pairs);
}

static size_t n_from(const struct post *post, size_t from)
{
    size_t n = 0;
    for (size_t i = 0; i < post->n_letters; i++)
        n += post->letters[i].from == from ? 1 : 0;
    return n;
}

TEST(each_speaks_to_the_one_above_once_all_below_have)
{
    struct post post;
    create_tree(&post);
    enter(&post, 1, 0); /* 3 and 4 have not */
    assert_int_equal(post.n_letters, 0);
    enter(&post, 3, 0);
    expect_letter(&post, 3, 1, LS_BARRIER_ENTERED);
    lose_all(&post);
    enter(&post, 4, 0);
    assert_int_equal(post.n_letters, 1);
    deliver(&post, 1);
    assert_int_equal(post.n_letters, 0); /* 3's letter was lost */
    destroy_post(&post);

    create_tree(&post);
    enter(&post, 3, 0);
    enter(&post, 4, 0);
    enter(&post, 1, 0);
    deliver(&post, 2);
    expect_letter(&post, 1, 0, LS_BARRIER_ENTERED);
    assert_int_equal(post.n_letters, 0);
    destroy_post(&post);
}

TEST(four_messages_for_each_but_the_root)
{
    struct post post;
    create_tree(&post);
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        for (size_t i = 0; i < N; i++)
            enter(&post, (i + epoch) % N, 1u << i);
        deliver_all(&post);
        expect_all_left(&post, epoch);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(end_of(&post, i)->flags, 0x7f);
    }
    assert_int_equal(post.n_sent, 20 * 4 * (N - 1));
    destroy_post(&post);
}

TEST(nobody_sends_more_than_its_neighbours_need)
{
    struct post post;
    create_tree(&post);
    for (size_t i = N; i-- > 0;)
        enter(&post, i, 0);
    size_t n_sent[N] = {0};
    while (post.n_letters > 0) {
        n_sent[post.letters[0].from]++;
        deliver(&post, 1);
    }
    expect_all_left(&post, 0);
    assert_int_equal(n_sent[0], 4); /* READY and LEFT to two */
    assert_int_equal(n_sent[1], 6); /* the same, and two upwards */
    assert_int_equal(n_sent[6], 2);
    destroy_post(&post);
}

/* The root knows of those below by what the ones between say. */
TEST(the_root_names_who_is_missing_and_nobody_else)
{
    struct post post;
    struct ls_epoch_reason reason;
    create_tree(&post);
    for (size_t i = 0; i < N; i++) {
        if (i != 4)
            enter(&post, i, 0);
    }
    deliver_all(&post);
    for (int i = 0; i < 3; i++) {
        pass(&post, 100 * MS);
        deliver_all(&post);
    }
    for (size_t i = 0; i < N; i++) {
        if (i == 4)
            continue;
        ls_epoch_missing(post.nodes[i], &reason);
        assert_int_equal(reason.n_lacking, 1);
        assert_int_equal(reason.missing[0].id, ids[4]);
    }
    destroy_post(&post);
}

TEST(below_one_who_is_missing_nobody_is_accused)
{
    struct post post;
    struct ls_epoch_reason reason;
    create_tree(&post);
    for (size_t i = 0; i < N; i++) {
        if (i != 2)
            enter(&post, i, 0);
    }
    deliver_all(&post);
    pass(&post, 20 * MS);
    deliver_all(&post);
    ls_epoch_missing(post.nodes[0], &reason);
    assert_int_equal(reason.n_lacking, 1);
    assert_int_equal(reason.missing[0].id, ids[2]);
    destroy_post(&post);
}

TEST(a_lost_word_is_asked_for_again)
{
    for (int lost_one = 0; lost_one < 4 * (N - 1); lost_one++) {
        struct post post;
        create_tree(&post);
        for (size_t i = N; i-- > 0;)
            enter(&post, i, 1u << i);
        for (int i = 0; post.n_letters > 0; i++) {
            if (i == lost_one)
                (void)next_letter(&post);
            else
                deliver(&post, 1);
        }
        for (int i = 0; i < 3; i++) {
            pass(&post, 20 * MS);
            deliver_all(&post);
        }
        expect_all_left(&post, 0);
        assert_int_equal(end_of(&post, 6)->flags, 0x7f);
        destroy_post(&post);
    }
}

static void all_lose(struct post *post, size_t gone)
{
    for (size_t i = 0; i < N; i++) {
        if (i != gone)
            lost(post, i, gone);
    }
}

/* 1 is lost when it has told those below that all are ready, or has not. */
TEST(without_the_one_above_members_talk_to_the_leader)
{
    for (size_t n = 0; n < 12; n++) {
        struct post post;
        create_tree(&post);
        for (size_t i = N; i-- > 0;)
            enter(&post, i, 0);
        deliver(&post, 6); /* the root knows that all have entered */
        for (size_t i = 0; i < n && post.n_letters > 0; i++) {
            const struct letter letter = next_letter(&post);
            if (letter.from != 1 && letter.to != 1)
                hand_over(&post, &letter);
        }
        all_lose(&post, 1);
        for (int i = 0; i < 4; i++) {
            while (post.n_letters > 0) {
                const struct letter letter = next_letter(&post);
                if (letter.to != 1)
                    hand_over(&post, &letter);
            }
            pass(&post, 40 * MS);
        }
        for (size_t i = 0; i < N; i++) {
            if (i != 1)
                expect_end(&post, i, LS_OK, 0);
        }
        destroy_post(&post);
    }
}

TEST(one_lost_before_its_branch_entered_ends_the_epoch)
{
    struct post post;
    create_tree(&post);
    for (size_t i = 0; i < N; i++) {
        if (i != 5)
            enter(&post, i, 0);
    }
    deliver_all(&post);
    all_lose(&post, 5);
    deliver_all(&post);
    for (size_t i = 0; i < N; i++) {
        if (i == 5)
            continue;
        expect_end(&post, i, LS_ELOST, 0);
        assert_string_equal(
            end_of(&post, i)->reason.text,
            "node 4294967294 was lost, not known to have entered");
    }
    destroy_post(&post);
}

TEST(one_who_strays_from_the_tree_is_followed)
{
    struct post post;
    create_tree(&post);
    for (size_t i = 0; i < N; i++)
        enter(&post, i, 0);
    assert_int_equal(post.nodes[0]->tree.way, LS_EPOCH_BY_TREE);
    lose_all(&post);
    lost(&post, 3, 1); /* a false alarm */
    assert_true(n_from(&post, 3) > 0);
    deliver(&post, 1);
    assert_int_equal(post.nodes[0]->tree.way, LS_EPOCH_BY_LEADER);
    for (int i = 0; i < 6; i++) {
        pass(&post, 40 * MS);
        deliver_all(&post);
    }
    expect_all_left(&post, 0);
    destroy_post(&post);
}

/* --- on several hosts ----------------------------------------------------- */

static const struct ls_epoch_rules chosen = {.least = N, .most = N};

/* Node i is on the host that node `at` takes it to be on. */
static void create_on(struct post *post, const uint64_t hosts[N])
{
    create_post_by(post, N, &chosen);
    for (size_t at = 0; at < N; at++) {
        ls_epoch_set_self(post->nodes[at], 100 + at, hosts[at]);
        for (size_t i = 0; i < N; i++)
            if (i != at)
                assert_ok(ls_epoch_joined(post->nodes[at], post->now, ids[i],
                                          100 + i, hosts[i]));
    }
}

/* How many letters leave their host until all have left. */
static size_t n_between(struct post *post, const uint64_t hosts[N])
{
    size_t n = 0;
    for (size_t i = N; i-- > 0;)
        enter(post, i, 1u << i);
    while (post->n_letters > 0) {
        const struct letter letter = next_letter(post);
        n += hosts[letter.from] != hosts[letter.to] ? 1 : 0;
        hand_over(post, &letter);
    }
    return n;
}

TEST(between_two_hosts_go_four_messages)
{
    static const uint64_t apart[N] = {1, 2, 1, 2, 1, 2, 1};
    static const uint64_t together[N] = {3, 3, 3, 3, 3, 3, 3};
    struct post post;
    create_on(&post, apart);
    assert_int_equal(n_between(&post, apart), 4);
    assert_int_equal(post.nodes[0]->tree.way, LS_EPOCH_BY_TREE);
    expect_all_left(&post, 0);
    assert_int_equal(end_of(&post, 6)->flags, 0x7f);
    assert_int_equal(post.n_sent, 4 * (N - 1));
    destroy_post(&post);

    create_on(&post, together);
    assert_int_equal(n_between(&post, apart), 12);
    assert_int_equal(post.nodes[0]->tree.way, LS_EPOCH_BY_LEADER);
    destroy_post(&post);
}

TEST(between_three_hosts_go_four_to_each_but_the_first)
{
    static const uint64_t hosts[N] = {1, 1, 2, 2, 3, 3, 3};
    struct post post;
    create_on(&post, hosts);
    assert_int_equal(n_between(&post, hosts), 8);
    expect_all_left(&post, 0);
    destroy_post(&post);
}

TEST(where_one_names_no_host_all_talk_to_the_leader)
{
    static const uint64_t hosts[N] = {0, 1, 1, 1, 2, 2, 2};
    struct post post;
    create_on(&post, hosts);
    assert_int_equal(n_between(&post, hosts), 24);
    assert_int_equal(post.nodes[0]->tree.way, LS_EPOCH_BY_LEADER);
    expect_all_left(&post, 0);
    destroy_post(&post);
}

/* 1 speaks for 3 and 5, on its host. */
TEST(without_the_first_of_a_host_its_members_talk_to_the_leader)
{
    static const uint64_t hosts[N] = {1, 2, 1, 2, 1, 2, 1};
    for (size_t n = 0; n < 24; n++) {
        struct post post;
        create_on(&post, hosts);
        for (size_t i = N; i-- > 0;)
            enter(&post, i, 0);
        for (size_t i = 0; i < n && post.n_letters > 0; i++)
            deliver(&post, 1);
        const bool has_left = !waits(&post, 1);
        all_lose(&post, 1);
        for (int i = 0; i < 6; i++) {
            while (post.n_letters > 0) {
                const struct letter letter = next_letter(&post);
                if (letter.to != 1 && letter.from != 1)
                    hand_over(&post, &letter);
            }
            pass(&post, 40 * MS);
        }
        const int status = end_of(&post, 0)->status;
        assert_true(status == LS_OK || (status == LS_ELOST && !has_left));
        for (size_t i = 2; i < N; i++)
            expect_end(&post, i, status, 0);
        destroy_post(&post);
    }
}

TEST(members_that_differ_about_a_host_give_the_epoch_up)
{
    static const uint64_t hosts[N] = {1, 2, 1, 2, 1, 2, 1};
    struct post post;
    create_on(&post, hosts);
    assert_ok(ls_epoch_joined(post.nodes[4], post.now, ids[3], 103, 1));
    (void)n_between(&post, hosts);
    for (int i = 0; i < 3; i++) {
        pass(&post, 40 * MS);
        deliver_all(&post);
    }
    for (size_t i = 0; i < N; i++)
        expect_end(&post, i, LS_EMISMATCH, 0);
    /* Told again, and rightly, they agree. */
    assert_ok(ls_epoch_joined(post.nodes[4], post.now, ids[3], 103, 2));
    assert_int_equal(n_between(&post, hosts), 4);
    expect_all_left(&post, 1);
    destroy_post(&post);
}

TEST(a_tree_is_not_made_for_few)
{
    struct post post;
    const struct ls_epoch_rules wide = {.least = N, .most = N, .fanout = 6};
    create_post_by(&post, N, &chosen);
    enter(&post, 0, 0);
    assert_int_equal(post.nodes[0]->tree.way, LS_EPOCH_BY_LEADER);
    destroy_post(&post);
    create_post_by(&post, N, &wide);
    enter(&post, 0, 0);
    assert_int_equal(post.nodes[0]->tree.way, LS_EPOCH_BY_LEADER);
    destroy_post(&post);
}
