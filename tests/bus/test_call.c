/* Calls between real nodes: asking. */
#include "call_fixture.h"
#include "test.h"

/* ---- the ends ---------------------------------------------------------- */

static void echoes(const struct world_plan *plan)
{
    struct call_world *w = call_world_start(3, NULL, NULL, plan);
    for (size_t i = 0; i < 3; i++) {
        for (uint32_t to = 1; to <= 3; to++) { /* to itself as well */
            void *answer = NULL;
            size_t size = 0;
            assert_ok(ls_call_ask(
                w->at[i].calls,
                &(struct ls_call_options){
                    .to = to, .name = "echo", .data = "hello", .size = 6},
                &answer, &size));
            assert_int_equal(size, 6);
            assert_string_equal(answer, "hello");
            free(answer);
        }
        assert_int_equal(counter_get(&w->at[i].entered),
                         i == 2 ? 3 : counter_get(&w->at[i].entered));
    }
    call_world_end(w);
}

TEST(an_answer_comes_back)
{
    echoes(NULL);
    echoes(&(struct world_plan){.transport = "tcp"});
    echoes(&(struct world_plan){.topology = LS_TOPOLOGY_STAR});
}

TEST(data_of_every_size_comes_whole)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    static const size_t sizes[] = {0, 1, 4096, LS_CALL_DATA_MAX};
    static char data[LS_CALL_DATA_MAX + 1];
    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t to = 1; to <= 2; to++) {
            void *answer = NULL;
            size_t size = 1;
            assert_ok(ls_call_ask(
                w->at[0].calls,
                &(struct ls_call_options){
                    .to = to, .name = "echo", .data = data, .size = sizes[i]},
                &answer, &size));
            assert_int_equal(size, sizes[i]);
            assert_memory_equal(answer, data, size);
            free(answer);
        }
    }
    call_world_end(w);
}

TEST(a_handlers_error_is_the_calls_failure)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    ls_call *call = call_start(&w->at[0], 2, "fail", LONG_MS);
    assert_ends(call, LS_CALL_FAILED);
    assert_string_equal(ls_call_result(call)->text, "the oven is cold");
    ls_call_destroy(&call);
    assert_fails(ask(&w->at[0], 2, "fail", 0), LS_EHANDLER);
    assert_error_has("the oven is cold");
    call_world_end(w);
}

TEST(a_name_that_nobody_serves_fails)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    for (uint32_t to = 1; to <= 2; to++) {
        ls_call *call = call_start(&w->at[0], to, "nonsense", LONG_MS);
        assert_ends(call, LS_CALL_FAILED);
        assert_string_equal(ls_call_result(call)->text, "task name error");
        ls_call_destroy(&call);
    }
    call_world_end(w);
}

TEST(one_that_is_not_answered_times_out)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", 20);
    assert_ends(call, LS_CALL_TIMEOUT);
    assert_has(ls_call_result(call)->text, "\"hold\" to node 2, 20 ms");
    ls_call_destroy(&call);
    /* Its handler is told, by its own clock or by the caller. */
    assert_reaches(&w->at[1].alarmed, 1);
    assert_true(ls_request_is_cancelled(w->at[1].requests[0]));
    assert_fails(ls_request_complete(&w->at[1].requests[0], "late", 4),
                 LS_ECANCELED);
    assert_null(w->at[1].requests[0]);
    assert_int_equal(stats_of(&w->at[1]).open_requests, 0);
    call_world_end(w);
}

TEST(it_is_started_when_its_handler_has_not_answered)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    /* The answer to a later call comes after the news that it has started. */
    assert_ok(ask(&w->at[0], 2, "echo", 0));
    assert_int_equal(ls_call_state(call), LS_CALL_STARTED);
    assert_ok(ls_request_complete(&w->at[1].requests[0], "done", 4));
    assert_ends(call, LS_CALL_COMPLETED);
    assert_memory_equal(ls_call_result(call)->data, "done", 4);
    ls_call_destroy(&call);
    call_world_end(w);
}

TEST(a_member_that_leaves_loses_its_calls)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    ls_node_stop(w->at[1].node, LS_OK);
    assert_ends(call, LS_CALL_LOST);
    assert_has(ls_call_result(call)->text, "the node left");
    ls_call_destroy(&call);
    assert_fails(ask(&w->at[0], 2, "echo", 0), LS_ENOENT);
    /* Its own handlers are told, too. */
    assert_reaches(&w->at[1].alarmed, 1);
    assert_fails(ls_request_fail(&w->at[1].requests[0], "x"), LS_ECANCELED);
    call_world_end(w);
}

/* Results are where they were asked for, whoever was first; a failure is one of
 * them, and what nobody asks for now stays for later. */
TEST(several_are_waited_for_together)
{
    struct call_world *w = call_world_start(4, NULL, NULL, NULL);
    static const char *const names[] = {"echo", "fail", "echo"};
    ls_call *calls[4] = {NULL};
    ls_call *later = call_start(&w->at[0], 2, "hold", LONG_MS);
    for (uint32_t i = 0; i < 3; i++)
        calls[i] = call_start(&w->at[0], i + 2, names[i], LONG_MS);
    assert_ok(ls_call_wait_all(calls, 4, LONG_MS));
    assert_ends(calls[0], LS_CALL_COMPLETED);
    assert_ends(calls[1], LS_CALL_FAILED);
    assert_ends(calls[2], LS_CALL_COMPLETED);
    assert_false(ls_call_state_is_end(ls_call_state(later)));
    calls[3] = later;
    assert_fails(ls_call_wait_all(calls, 4, 1), LS_ETIMEDOUT);
    assert_error_has("call \"hold\" to node 2 is still running");
    assert_fails(ls_call_wait_all(calls, 4, 0), LS_ETIMEDOUT);
    assert_true(counter_reaches(&w->at[1].held, 1));
    assert_ok(ls_request_complete(&w->at[1].requests[0], NULL, 0));
    assert_ok(ls_call_wait_all(calls, 4, LS_WAIT_DEFAULT));
    for (size_t i = 0; i < 4; i++)
        ls_call_destroy(&calls[i]);
    call_world_end(w);
}

TEST(cancelling_ends_it_and_its_handler_is_told)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    for (uint32_t to = 1; to <= 2; to++) {
        struct caller_node *server = &w->at[to - 1];
        ls_call *call = call_start(&w->at[0], to, "hold", LONG_MS);
        assert_reaches(&server->held, 1);
        ls_call_cancel(call);
        assert_ends(call, LS_CALL_CANCELLED);
        assert_reaches(&server->alarmed, 1);
        assert_fails(ls_request_complete(&server->requests[0], NULL, 0),
                     LS_ECANCELED);
        ls_call_cancel(call); /* again: nothing */
        ls_call_destroy(&call);
        assert_int_equal(stats_of(server).open_requests, 0);
    }
    call_world_end(w);
}

TEST(destroying_an_open_one_cancels_it)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    ls_call_destroy(&call);
    assert_null(call);
    ls_call_destroy(&call);
    ls_call_destroy(NULL);
    assert_reaches(&w->at[1].alarmed, 1);
    (void)ls_request_complete(&w->at[1].requests[0], NULL, 0);
    assert_int_equal(stats_of(&w->at[0]).ended[5], 1);
    call_world_end(w);
}

/* ---- being told -------------------------------------------------------- */

struct told {
    struct counter n;
    struct caller_node *at;
    ls_call *call;
    enum ls_call_state state;
    bool destroys, again;
};

static void on_ended(void *self, ls_call *call)
{
    struct told *told = self;
    told->state = ls_call_result(call)->state;
    if (told->again) { /* it may start another */
        told->again = false;
        ls_call *next;
        if (ls_call_start(&next, told->at->calls,
                          &(struct ls_call_options){.to = 2,
                                                    .name = "echo",
                                                    .ended = on_ended,
                                                    .self = told}) != LS_OK)
            abort();
    }
    if (told->destroys)
        ls_call_destroy(&call);
    counter_add(&told->n, 1);
}

TEST(its_end_is_told_once_before_a_wait_returns)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    struct told told = {.at = &w->at[0]};
    counter_init(&told.n);
    for (uint32_t to = 1; to <= 2; to++) {
        assert_ok(ls_call_start(
            &told.call, w->at[0].calls,
            &(struct ls_call_options){
                .to = to, .name = "echo", .ended = on_ended, .self = &told}));
        assert_ends(told.call, LS_CALL_COMPLETED);
        assert_int_equal(counter_get(&told.n), (int)to);
        assert_int_equal(told.state, LS_CALL_COMPLETED);
        ls_call_destroy(&told.call);
    }
    assert_int_equal(counter_get(&told.n), 2);
    counter_fini(&told.n);
    call_world_end(w);
}

TEST(whoever_is_told_may_destroy_it_and_start_another)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    struct told told = {.at = &w->at[0], .destroys = true, .again = true};
    counter_init(&told.n);
    assert_ok(ls_call_start(
        &told.call, w->at[0].calls,
        &(struct ls_call_options){
            .to = 2, .name = "echo", .ended = on_ended, .self = &told}));
    assert_reaches(&told.n, 2);
    assert_int_equal(stats_of(&w->at[0]).open_calls, 0);
    call_world_end(w);
    counter_fini(&told.n);
}
