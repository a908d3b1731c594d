/* The router: names, limits, ends, figures. */
#include "pair_fixture.h"
#include "test.h"

/* ---- names ------------------------------------------------------------- */

TEST(names_that_cannot_be_matched_are_refused)
{
    struct pair *pair = pair_start();
    static const char *const bad[] = {"",   "a]b",      "a b", "a\\b",
                                      "\n", "\xc3\xa9", NULL};
    static const char *const globs[] = {"a[b", "a?", "*"};
    for (size_t i = 0; i < sizeof globs / sizeof globs[0]; i++) {
        assert_ok(ls_on(pair->a, globs[i], count, NULL));
        assert_fails(ls_emit(pair->a, globs[i], NULL, 0), LS_EINVAL);
        assert_ok(ls_off(pair->a, globs[i], count, NULL));
        assert_fails(ls_node_set_delivery(pair->a, globs[i], LS_DELIVERY_DROP),
                     LS_EINVAL);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_fails(ls_on(pair->a, bad[i], count, NULL), LS_EINVAL);
        assert_fails(ls_once(pair->a, bad[i], count, NULL), LS_EINVAL);
        assert_fails(ls_emit(pair->a, bad[i], NULL, 0), LS_EINVAL);
        assert_fails(ls_wait_for(pair->a, bad[i], 0, NULL, NULL), LS_EINVAL);
        assert_fails(ls_node_set_delivery(pair->a, bad[i], LS_DELIVERY_DROP),
                     LS_EINVAL);
    }
    assert_fails(ls_on_named(pair->a, "x", NULL, NULL, NULL), LS_EINVAL);
    assert_error_has("event \"x\": there is no handler");
    assert_fails(ls_once_named(pair->a, "x", NULL, NULL, NULL), LS_EINVAL);
    assert_fails(ls_emit(pair->a, "x", NULL, 3), LS_EINVAL);
    assert_fails(ls_node_set_delivery(pair->a, "x", (enum ls_delivery)9),
                 LS_EINVAL);
    pair_end(pair);
}

TEST(names_with_colons_are_delivered)
{
    struct pair *pair = pair_start();
    struct counter heard;
    counter_init(&heard);
    assert_ok(ls_on(pair->b, "loss::batch", count, &heard));
    emit_until_heard(pair->a, "loss::batch", &heard);
    pair_end(pair);
    counter_fini(&heard);
}

TEST(a_name_is_no_prefix_of_another)
{
    struct pair *pair = pair_start();
    struct counter heard;
    counter_init(&heard);
    assert_ok(ls_on(pair->b, "learn", count, &heard));
    emit_until_heard(pair->a, "learn", &heard);
    const int before = counter_get(&heard);
    assert_ok(ls_emit(pair->a, "learner", NULL, 0));
    assert_ok(ls_emit(pair->a, "hi", NULL, 0));
    assert_reaches(&pair->heard[1], 1);
    assert_true(counter_get(&heard) >= before);
    struct ls_node_stats stats;
    ls_node_stats(pair->b, &stats);
    assert_int_equal(stats.received, (uint64_t)counter_get(&heard) + 1);
    pair_end(pair);
    counter_fini(&heard);
}

/* ---- limits, ends, figures --------------------------------------------- */

TEST(emit_refuses_what_is_over_the_limit)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.bind = "inproc://over-the-limit";
    options.max_payload_bytes = 100;
    ls_node *node;
    static const char data[101];
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_start(node));
    assert_ok(ls_emit(node, "x", data, 100));
    assert_fails(ls_emit(node, "x", data, 101), LS_ELIMIT);
    assert_error_has("101 bytes");
    ls_node_destroy(&node);
}

TEST(a_stopped_node_refuses)
{
    struct pair *pair = pair_start();
    ls_node_stop(pair->a, LS_OK);
    ls_node_stop(pair->a, LS_OK); /* again: nothing */
    assert_fails(ls_on(pair->a, "x", count, NULL), LS_ECLOSED);
    assert_fails(ls_emit(pair->a, "x", NULL, 0), LS_ECLOSED);
    assert_fails(ls_wait_for(pair->a, "x", -1, NULL, NULL), LS_ECLOSED);
    pair_end(pair);
}

TEST(listeners_are_counted_and_named)
{
    struct pair *pair = pair_start();
    uint32_t ids[3] = {99, 99, 99};
    assert_int_equal(ls_node_listeners(pair->b, "hi", ids, 3), 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    assert_int_equal(ids[2], 99);
    assert_int_equal(ls_node_listeners(pair->b, "hi", ids, 1), 2);
    assert_int_equal(ls_node_listeners(pair->b, "hi", NULL, 0), 2);
    assert_int_equal(ls_node_listeners(pair->b, "unheard", ids, 3), 0);
    assert_ok(ls_off(pair->b, "hi", count, &pair->heard[1]));
    assert_int_equal(ls_node_listeners(pair->b, "hi", ids, 3), 1);
    assert_int_equal(ids[0], 1);
    pair_end(pair);
}

TEST(stats_count_what_was_done)
{
    struct pair *pair = pair_start_with(share_no_memory);
    struct ls_node_stats a, b;
    for (int i = 0; i < 10; i++)
        assert_ok(ls_emit(pair->a, "hi", "xyz", 3));
    assert_reaches(&pair->heard[1], 10);
    assert_reaches(&pair->heard[0], 10);
    flush_local(pair->a);
    flush_local(pair->b);
    ls_node_stats(pair->a, &a);
    ls_node_stats(pair->b, &b);
    assert_int_equal(a.emitted, 11);
    assert_int_equal(a.sent, 10);
    assert_int_equal(a.sent_bytes, 30);
    assert_int_equal(a.received, 0);
    assert_true(a.handled >= 10);
    assert_int_equal(b.received, 10);
    assert_int_equal(b.received_bytes, 30);
    assert_int_equal(b.dropped + b.lost + b.missed + b.refused + b.blocked, 0);
    assert_int_equal(b.queued, 0);
    assert_true(b.queued_peak >= 1);
    pair_end(pair);
}
