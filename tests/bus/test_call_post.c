/* Messages of calls that wait for room at their receivers. */
#include "call_post.h"

#include "test.h"
#include "world_fixture.h"

/* What was sent, and what becomes of the next. */
struct network {
    char sent[64]; /* receiver and byte of each */
    int left;      /* until there is no room */
    int then;      /* what sending returns from there on */
};

static int send_one(void *self, uint32_t to, const void *bytes, size_t size)
{
    struct network *network = self;
    const size_t n = strlen(network->sent);
    if (network->left-- <= 0)
        return network->then;
    assert_int_equal(size, 1);
    network->sent[n] = (char)('0' + to);
    network->sent[n + 1] = *(const char *)bytes;
    return LS_OK;
}

/* Three bytes at a time. */
static int send_part(void *self, uint32_t to, struct call_body *body)
{
    struct network *network = self;
    const size_t n = strlen(network->sent);
    const size_t left = payload_size(body->payload) - body->at;
    if (network->left-- <= 0)
        return network->then;
    network->sent[n] = (char)('0' + to);
    network->sent[n + 1] =
        ((const char *)payload_data(body->payload))[body->at];
    body->at += left < 3 ? left : 3;
    return LS_OK;
}

static void add(struct call_post *post, uint32_t to, uint64_t life,
                const char *byte, struct call_letter **owner)
{
    assert_ok(call_post_add(post, to, life, false, byte, 1, owner));
}

TEST(what_waits_goes_in_its_order_for_each_member)
{
    struct call_post post = {0};
    struct network network = {.left = 3, .then = LS_EAGAIN};
    struct call_letter *letter = NULL;
    assert_false(call_post_waits(&post, 1));
    add(&post, 1, 7, "a", &letter);
    add(&post, 1, 7, "b", NULL);
    add(&post, 1, 7, "c", NULL);
    add(&post, 1, 7, "d", NULL);
    assert_true(call_post_waits(&post, 1));
    assert_non_null(letter);
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_string_equal(network.sent, "1a1b1c");
    assert_null(letter); /* its owner sees that it was sent */
    assert_true(call_post_waits(&post, 1));
    network.left = 9;
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_string_equal(network.sent, "1a1b1c1d");
    assert_false(call_post_waits(&post, 1));
    assert_int_equal(post.dropped, 0);
}

TEST(one_that_is_full_does_not_hold_up_the_others)
{
    struct call_post post = {0};
    struct network network = {.left = 0, .then = LS_EAGAIN};
    add(&post, 1, 7, "a", NULL);
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    add(&post, 2, 7, "b", NULL);
    network.left = 1; /* which of them is first does not matter */
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_int_equal(strlen(network.sent), 2);
    call_post_clear(&post);
    assert_int_equal(post.dropped, 1);
}

TEST(without_memory_it_is_tried_again)
{
    struct call_post post = {0};
    struct network network = {.left = 1, .then = LS_ENOMEM};
    add(&post, 1, 7, "a", NULL);
    add(&post, 1, 7, "b", NULL);
    assert_true(call_post_flush(&post, send_one, send_part, &network));
    network.left = 9;
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_string_equal(network.sent, "1a1b");
}

TEST(of_one_that_is_not_there_all_is_dropped)
{
    struct call_post post = {0};
    struct network network = {.left = 1, .then = LS_ENOENT};
    struct call_letter *letter = NULL;
    add(&post, 1, 7, "a", NULL);
    add(&post, 1, 7, "b", &letter);
    add(&post, 1, 7, "c", NULL);
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_false(call_post_waits(&post, 1));
    assert_null(letter);
    assert_int_equal(post.dropped, 2);
}

TEST(any_can_be_taken_out_and_a_life_with_all_of_its)
{
    struct call_post post = {0};
    struct network network = {.left = 9};
    struct call_letter *letters[4] = {NULL};
    static const char *const bytes[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++)
        add(&post, 1, i < 3 ? 7 : 8, bytes[i], &letters[i]);
    call_post_withdraw(&post, letters[1]);
    assert_null(letters[1]);
    call_post_lose(&post, 1, 7);
    assert_true(letters[0] == NULL && letters[2] == NULL);
    assert_int_equal(post.dropped, 2);
    call_post_lose(&post, 2, 7); /* nothing waits for it */
    add(&post, 1, 8, "e", NULL);
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_string_equal(network.sent, "1d1e");
    add(&post, 1, 8, "f", &letters[0]);
    call_post_withdraw(&post, letters[0]);
    assert_false(call_post_waits(&post, 1));
}

TEST(answers_that_nobody_fetches_are_bounded)
{
    struct call_post post = {0};
    for (int i = 0; i < CALL_POST_ANSWERS; i++)
        assert_ok(call_post_add(&post, 1, 7, true, "a", 1, NULL));
    assert_int_equal(call_post_answers(&post, 1), CALL_POST_ANSWERS);
    assert_int_equal(call_post_answers(&post, 2), 0);
    assert_fails(call_post_add(&post, 1, 7, true, "a", 1, NULL), LS_ELIMIT);
    add(&post, 1, 7, "b", NULL);
    assert_ok(call_post_add(&post, 2, 7, true, "a", 1, NULL));
    assert_int_equal(post.dropped, 1);
    call_post_clear(&post);
    assert_int_equal(call_post_answers(&post, 1), 0);
}

static void drop_nothing(void *data, void *hint)
{
    (void)data;
    ++*(int *)hint;
}

static void add_body(struct call_post *post, uint32_t to, uint64_t life,
                     uint64_t id, const char *bytes, int *dropped)
{
    struct payload *payload;
    assert_ok(
        payload_create(&payload, bytes, strlen(bytes), drop_nothing, dropped));
    assert_ok(call_post_add_body(post, to, life, id, (id & 1) != 0, payload));
    payload_drop(payload);
}

TEST(bodies_take_turns_behind_the_messages)
{
    struct call_post post = {0};
    struct network network = {.left = 1, .then = LS_EAGAIN};
    int dropped = 0;
    add_body(&post, 1, 7, 2, "long body", &dropped);
    add_body(&post, 1, 7, 4, "body", &dropped);
    assert_false(call_post_waits(&post, 1)); /* messages pass them */
    add(&post, 1, 7, "a", NULL);
    add(&post, 1, 7, "b", NULL);
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_string_equal(network.sent, "1a");
    network.left = 3;
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_string_equal(network.sent, "1a1b1l1b");
    network.left = 9;
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_string_equal(network.sent, "1a1b1l1b1g1y1o");
    assert_int_equal(dropped, 2);
    assert_null(post.boxes);
    assert_int_equal(post.dropped, 0);
}

static void note_body(void *self, uint32_t to, const struct call_body *body)
{
    assert_int_equal(to, 2);
    *(uint64_t *)self += body->id;
}

TEST(a_body_goes_with_its_call_its_life_and_its_side)
{
    struct call_post post = {0};
    struct network network = {.left = 0, .then = LS_ENOENT};
    int dropped = 0;
    uint64_t told = 0;
    for (uint64_t id = 2; id < 6; id++)
        add_body(&post, 1, id < 4 ? 7 : 8, id, "body", &dropped);
    assert_int_equal(call_post_answers(&post, 1), 2);
    assert_true(call_post_drop_body(&post, 1, 7, 2));
    assert_false(call_post_drop_body(&post, 1, 7, 2));
    assert_false(call_post_drop_body(&post, 1, 7, 4)); /* of another life */
    assert_false(call_post_drop_body(&post, 2, 7, 4));
    assert_int_equal(post.dropped, 0); /* nobody wants it: that is no loss */
    call_post_lose(&post, 1, 7);
    assert_int_equal(dropped, 2);
    assert_int_equal(post.dropped, 1);
    add_body(&post, 2, 7, 7, "body", &dropped);
    call_post_lose(&post, 1, 8);
    add_body(&post, 2, 7, 8, "body", &dropped);
    call_post_drop_answers(&post, note_body, &told);
    assert_true(told == 7);
    assert_int_equal(call_post_answers(&post, 2), 0);
    assert_false(call_post_flush(&post, send_one, send_part, &network));
    assert_int_equal(dropped, 6);
    assert_int_equal(post.dropped, 5);
    add_body(&post, 2, 7, 8, "body", &dropped);
    call_post_clear(&post);
    assert_int_equal(dropped, 7);
}
