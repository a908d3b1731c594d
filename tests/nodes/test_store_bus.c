/* A store whose bytes one node of the world keeps. */
#include "nodes/store_world.h"

#include "state/folder_fixture.h"
#include "store_wire.h"

static int inproc_up(void **state)
{
    *state = store_world_start(NULL, NULL);
    return 0;
}

static int tcp_up(void **state)
{
    *state = store_world_start(NULL, &(struct world_plan){.transport = "tcp"});
    return 0;
}

static int star_up(void **state)
{
    *state = store_world_start(
        NULL, &(struct world_plan){.topology = LS_TOPOLOGY_STAR});
    return 0;
}

static int down(void **state)
{
    store_world_end(*state);
    return 0;
}

static void test_the_home_can_use_it_too(void **state)
{
    struct store_world *w = *state;
    struct store_pair pair = {w->stores[0], w->stores[2]};
    void *self = &pair;
    spec_gives_what_was_put(&self);
    spec_replaces(&self);
    pair = (struct store_pair){w->stores[1], w->stores[0]};
    spec_gives_several_or_none(&self);
}

/* What it keeps ----------------------------------------------------------- */

static void test_what_has_no_room_is_refused_until_there_is(void **state)
{
    (void)state;
    struct store_world *w = store_world_start(
        &(struct store_home_options){.max_bytes = 1000}, NULL);
    int released = 0;
    assert_ok(spec_put_moved(w->pair.here, "a", 600, &released));
    assert_fails(spec_put_moved(w->pair.here, "b", 500, &released), LS_EAGAIN);
    assert_error_has("no room for b of 500 bytes");
    assert_fails(spec_put_moved(w->pair.there, "c", 1001, &released),
                 LS_ELIMIT);
    spec_lacks(w->pair.here, "b");
    spec_lacks(w->pair.here, "c");
    assert_int_equal(home_stats(w).refused, 2);
    assert_int_equal(home_stats(w).bytes, 600);
    struct store_stats stats;
    store_stats(w->pair.here, &stats);
    assert_int_equal(stats.refused, 1);
    assert_ok(store_drop(w->pair.here, "a", 0));
    assert_ok(spec_put_moved(w->pair.here, "b", 500, &released));
    assert_int_equal(home_stats(w).names, 1);
    assert_int_equal(home_stats(w).drops, 1);
    store_world_end(w);
    assert_int_equal(released, 4);
}

static void put_kept(struct store *store, const char *name, const char *text)
{
    assert_ok(store_put(store, &(struct store_put){.name = name,
                                                   .data = text,
                                                   .size = strlen(text),
                                                   .keep = true}));
}

static void test_what_is_kept_is_there_in_the_next_life(void **state)
{
    const struct place *place = *state;
    const struct store_home_options options = {.keep = place->folder};
    struct store_world *w = store_world_start(&options, NULL);
    put_kept(w->pair.here, "policy", "the first");
    put_kept(w->pair.here, "policy", "the second");
    put_kept(w->pair.there, "old", "policy");
    spec_put_text(w->pair.here, "sample", "bytes");
    assert_ok(store_drop(w->pair.here, "old", 0));
    store_world_end(w);
    w = store_world_start(&options, NULL);
    spec_has_text(w->pair.there, "policy", "the second");
    spec_lacks(w->pair.there, "old");
    spec_lacks(w->pair.there, "sample");
    store_world_end(w);
}

static void test_a_damaged_kept_value_is_named_at_the_beginning(void **state)
{
    const struct place *place = *state;
    struct ls_node_options options;
    ls_node *node;
    ls_calls *calls;
    struct store_home *home = NULL;
    FILE *file = fopen(place->path, "wb");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    ls_node_options_init(&options);
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_calls_open(&calls, node, NULL));
    struct store_home_options home_options = {
        .node = node, .calls = calls, .keep = place->folder};
    assert_fails(store_home_open(&home, &home_options), LS_EPROTO);
    assert_error_has(place->path);
    home_options.n_senders = 65;
    assert_fails(store_home_open(&home, &home_options), LS_EINVAL);
    assert_null(home);
    ls_calls_close(&calls);
    ls_node_destroy(&node);
}

/* Halves of puts ---------------------------------------------------------- */

static ls_call *claim(struct store_world *w, const char *text, int wait_ms,
                      uint64_t life)
{
    struct store_claim claim = {.name = "half",
                                .value = store_value_of(text, strlen(text)),
                                .home = life};
    ls_writer *writer;
    ls_call *call = NULL;
    struct ls_call_options options = {
        .to = 1, .name = STORE_PUT_CALL, .wait_ms = wait_ms};
    assert_ok(ls_writer_create(&writer));
    store_claim_write(&claim, writer);
    assert_ok(ls_writer_bytes(writer, &options.data, &options.size));
    assert_ok(ls_call_start(&call, w->calls[1], &options));
    ls_writer_destroy(&writer);
    return call;
}

static void send_bytes(struct store_world *w, const char *text)
{
    assert_ok(ls_emit_with(w->nodes[1],
                           &(struct ls_emission){.event = STORE_PUT_EVENT,
                                                 .data = text,
                                                 .size = strlen(text),
                                                 .policy = LS_POLICY_RELIABLE,
                                                 .to_one = true,
                                                 .to = 1}));
}

static struct store_answer answer_of(ls_call *call)
{
    struct store_answer answer;
    assert_ok(ls_call_wait(call, long_deadline()));
    const struct ls_call_result *result = ls_call_result(call);
    assert_int_equal(result->state, LS_CALL_COMPLETED);
    assert_ok(store_answer_read(&answer, result->data, result->size));
    ls_call_destroy(&call);
    return answer;
}

static void test_the_halves_of_a_put_may_come_in_either_order(void **state)
{
    struct store_world *w = *state;
    const uint64_t life = ls_node_incarnation(w->nodes[0]);
    ls_call *first = claim(w, "early", LONG_MS, life);
    /* An answer says that what was asked before has come. */
    spec_lacks(w->pair.here, "half");
    assert_int_equal(ls_call_state(first), LS_CALL_STARTED);
    send_bytes(w, "early");
    assert_int_equal(answer_of(first).status, LS_OK);
    spec_has_text(w->pair.there, "half", "early");
    send_bytes(w, "late");
    assert_int_equal(answer_of(claim(w, "late", LONG_MS, life)).status, LS_OK);
    spec_has_text(w->pair.there, "half", "late");
}

static void test_a_claim_for_an_earlier_life_is_lost(void **state)
{
    struct store_world *w = *state;
    const struct store_answer answer =
        answer_of(claim(w, "x", LONG_MS, ls_node_incarnation(w->nodes[0]) - 1));
    assert_int_equal(answer.status, LS_ELOST);
    assert_text(answer.text, "half", __LINE__);
}

static size_t open_requests(struct store_world *w)
{
    struct ls_calls_stats stats;
    ls_calls_stats(w->calls[0], &stats);
    return stats.open_requests;
}

static void test_a_claim_whose_bytes_never_come_ends_with_its_call(void **state)
{
    struct store_world *w = *state;
    const uint64_t life = ls_node_incarnation(w->nodes[0]);
    ls_call *call = claim(w, "never", LONG_MS, life);
    spec_lacks(w->pair.here, "half");
    ls_call_destroy(&call);
    /* Answered by the home, though nobody hears it. */
    const int64_t deadline = long_deadline();
    while (open_requests(w) > 0 && ls_now(ls_runtime_threads()) < deadline)
        spec_lacks(w->pair.here, "half");
    assert_int_equal(open_requests(w), 0);
}

static void test_bytes_that_nobody_claims_go(void **state)
{
    struct store_world *w = *state;
    for (int i = 0; i < 70; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "orphan %d", i);
        send_bytes(w, text);
    }
    /* They come before what this node emits later. */
    spec_put_text(w->pair.here, "a", "one");
    assert_int_equal(home_stats(w).unclaimed, 7);
    assert_int_equal(home_stats(w).bytes, 3);
    store_close(&w->stores[1]);
    ls_calls_close(&w->calls[1]);
    ls_node_stop(w->nodes[1], LS_OK);
    const int64_t deadline = long_deadline();
    while (home_stats(w).unclaimed < 70 &&
           ls_now(ls_runtime_threads()) < deadline)
        spec_has_text(w->pair.there, "a", "one");
    assert_int_equal(home_stats(w).unclaimed, 70);
}

static void test_a_call_that_breaks_the_format_is_refused(void **state)
{
    struct store_world *w = *state;
    static const char *const calls[] = {STORE_PUT_CALL, STORE_GET_CALL,
                                        STORE_DROP_CALL};
    for (size_t i = 0; i < 3; i++) {
        const struct ls_call_options options = {
            .to = 1, .name = calls[i], .data = "\x81\xa1x", .size = 3};
        assert_fails(ls_calls_ask(w->calls[1], &options, NULL, NULL),
                     LS_EHANDLER);
    }
    assert_int_equal(home_stats(w).malformed, 3);
    spec_put_text(w->pair.here, "a", "one");
    spec_has_text(w->pair.there, "a", "one");
}

/* The home goes ------------------------------------------------------------ */

static void test_without_its_home_it_says_lost_at_once(void **state)
{
    struct store_world *w = *state;
    const char *const name = "a";
    struct store_blob blob;
    int released = 0;
    spec_put_text(w->pair.here, "a", "one");
    ls_node_stop(w->nodes[0], LS_OK);
    int status = LS_OK;
    const int64_t deadline = long_deadline();
    while (status == LS_OK && ls_now(ls_runtime_threads()) < deadline)
        status = store_get(w->pair.here, &name, 1, &blob, LONG_MS);
    assert_int_equal(status, LS_ELOST);
    assert_fails(spec_put_moved(w->pair.here, "a", 10, &released), LS_ELOST);
    assert_int_equal(released, 1);
    assert_fails(store_drop(w->pair.here, "a", LONG_MS), LS_ELOST);
    /* Nothing of that is an error of the node. */
    assert_ok(ls_node_take_error(w->nodes[1]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, inproc_up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_SPEC(inproc_up, down),
        cmocka_unit_test_setup_teardown(spec_gives_what_was_put, tcp_up, down),
        cmocka_unit_test_setup_teardown(spec_gives_no_mixture, tcp_up, down),
        cmocka_unit_test_setup_teardown(spec_gives_what_was_put, star_up, down),
        cmocka_unit_test_setup_teardown(spec_gives_no_mixture, star_up, down),
        TEST(test_the_home_can_use_it_too),
        cmocka_unit_test(test_what_has_no_room_is_refused_until_there_is),
        cmocka_unit_test_setup_teardown(
            test_what_is_kept_is_there_in_the_next_life, folder_set_up,
            folder_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_damaged_kept_value_is_named_at_the_beginning, folder_set_up,
            folder_tear_down),
        TEST(test_the_halves_of_a_put_may_come_in_either_order),
        TEST(test_a_claim_for_an_earlier_life_is_lost),
        TEST(test_a_claim_whose_bytes_never_come_ends_with_its_call),
        TEST(test_bytes_that_nobody_claims_go),
        TEST(test_a_call_that_breaks_the_format_is_refused),
        TEST(test_without_its_home_it_says_lost_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
