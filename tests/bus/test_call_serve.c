/* Calls between real nodes: serving and refusing. */
#include "call_fixture.h"
#include "test.h"

static struct call_world *serving(const struct ls_rpc_options *options)
{
    return call_world_start(3, options, NULL, NULL);
}

static void refused(struct caller_node *at, uint32_t to, const char *name,
                    uint32_t channel, int code)
{
    ls_call *call = NULL;
    assert_ok(ls_call_start(
        &call, at->calls,
        &(struct ls_call_options){.to = to, .name = name, .channel = channel}));
    assert_ends(call, LS_CALL_START_FAILED);
    assert_int_equal(ls_call_result(call)->code, code);
    assert_has(ls_call_result(call)->text, ls_call_code_sentence(code));
    ls_call_destroy(&call);
}

/* ---- refusals ---------------------------------------------------------- */

TEST(a_call_must_name_the_channel_that_is_served)
{
    struct call_world *w = serving(&(struct ls_rpc_options){.channel = 7});
    for (uint32_t to = 1; to <= 2; to++) {
        refused(&w->at[0], to, "echo", 0, LS_CALL_NO_CHANNEL);
        refused(&w->at[0], to, "echo", 8, LS_CALL_WRONG_CHANNEL);
        assert_ok(ask(&w->at[0], to, "echo", 7));
    }
    assert_fails(ls_rpc_connect(w->at[0].calls, 2, 0, LONG_MS), LS_EABORTED);
    assert_error_has("201");
    assert_fails(ls_rpc_connect(w->at[0].calls, 2, 8, LONG_MS), LS_EABORTED);
    assert_error_has("202");
    assert_int_equal(stats_of(&w->at[1]).refused, 4);
    call_world_end(w);
}

TEST(a_member_has_one_master)
{
    struct call_world *w = serving(NULL);
    uint32_t master = 0;
    assert_false(ls_rpc_master(w->at[1].calls, &master));
    refused(&w->at[0], 2, "mine", 0, LS_CALL_NOT_CONNECTED);
    assert_ok(ls_rpc_connect(w->at[0].calls, 2, 0, LONG_MS));
    assert_ok(ls_rpc_connect(w->at[0].calls, 2, 0, LONG_MS)); /* again */
    assert_true(ls_rpc_master(w->at[1].calls, &master));
    assert_int_equal(master, 1);
    assert_ok(ask(&w->at[0], 2, "mine", 0));
    assert_ok(ask(&w->at[2], 2, "echo", 0)); /* for anyone */
    refused(&w->at[2], 2, "mine", 0, LS_CALL_NOT_CONNECTED);
    refused(&w->at[2], 2, "ls.connect", 0, LS_CALL_HAS_MASTER);
    assert_fails(ls_rpc_connect(w->at[2].calls, 2, 0, LONG_MS), LS_EABORTED);
    assert_error_has("501");
    assert_fails(ls_rpc_disconnect(w->at[2].calls, 2, LONG_MS), LS_EABORTED);
    assert_error_has("502");
    assert_ok(ls_rpc_disconnect(w->at[0].calls, 2, LONG_MS));
    assert_false(ls_rpc_master(w->at[1].calls, &master));
    assert_ok(ls_rpc_connect(w->at[2].calls, 2, 0, LONG_MS));
    assert_ok(ls_rpc_connect(w->at[0].calls, 1, 0, LONG_MS)); /* its own */
    call_world_end(w);
}

TEST(a_member_is_free_when_its_master_leaves)
{
    struct call_world *w = serving(NULL);
    assert_ok(ls_rpc_connect(w->at[0].calls, 2, 0, LONG_MS));
    /* The loss of a call of its own shows that its leaving was seen. */
    ls_call *call = call_start(&w->at[1], 1, "hold", LONG_MS);
    assert_reaches(&w->at[0].held, 1);
    ls_node_stop(w->at[0].node, LS_OK);
    assert_ends(call, LS_CALL_LOST);
    ls_call_destroy(&call);
    assert_ok(ls_rpc_connect(w->at[2].calls, 2, 0, LONG_MS));
    (void)ls_request_fail(&w->at[0].requests[0], "");
    call_world_end(w);
}

TEST(one_too_many_is_refused_as_busy)
{
    struct call_world *w = serving(&(struct ls_rpc_options){.max_requests = 2});
    ls_call *calls[2];
    for (int i = 0; i < 2; i++)
        calls[i] = call_start(&w->at[i == 0 ? 0 : 2], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 2);
    refused(&w->at[0], 2, "echo", 0, LS_CALL_BUSY);
    assert_ok(ls_rpc_connect(w->at[0].calls, 2, 0, LONG_MS)); /* no handler */
    for (int i = 0; i < 2; i++)
        assert_ok(ls_request_complete(&w->at[1].requests[i], NULL, 0));
    for (int i = 0; i < 2; i++) {
        assert_ends(calls[i], LS_CALL_COMPLETED);
        ls_call_destroy(&calls[i]);
    }
    assert_ok(ask(&w->at[0], 2, "echo", 0));
    call_world_end(w);
}

static int serve_refusal(void *self, ls_request *request)
{
    (void)self;
    size_t size;
    const int *code = ls_request_data(request, &size);
    return ls_request_refuse(&request, size == sizeof *code ? *code : 0,
                             "no bread today");
}

static void serve_refusals(struct caller_node *at)
{
    assert_ok(ls_rpc_serve(at->calls, "no", LS_CALL_ANYONE, serve_refusal, at));
}

TEST(a_member_that_serves_no_calls_refuses_at_once)
{
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    ls_rpc_close(&w->at[1].calls);
    ls_call *call = call_start(&w->at[0], 2, "echo", LONG_MS);
    assert_ends(call, LS_CALL_START_FAILED);
    assert_int_equal(ls_call_result(call)->code, LS_CALL_NOT_SERVING);
    ls_call_destroy(&call);
    assert_fails(ask(&w->at[0], 2, "echo", 0), LS_EABORTED);
    assert_error_has("the member serves no calls");
    assert_ok(ls_rpc_open(&w->at[1].calls, w->at[1].node, NULL));
    assert_fails(ask(&w->at[0], 2, "echo", 0), LS_EHANDLER);
    assert_error_has("task name error");
    call_world_end(w);
}

TEST(a_handler_may_refuse_with_a_code_of_its_own)
{
    struct call_world *w = call_world_start(2, NULL, serve_refusals, NULL);
    static const int codes[][2] = {{LS_CALL_REFUSED, LS_CALL_REFUSED},
                                   {1234, 1234},
                                   {LS_CALL_BUSY, LS_CALL_BUSY},
                                   {LS_CALL_HAS_MASTER, LS_CALL_REFUSED}};
    for (size_t i = 0; i < 4; i++) {
        ls_call *call;
        assert_ok(ls_call_start(
            &call, w->at[0].calls,
            &(struct ls_call_options){
                .to = 2, .name = "no", .data = &codes[i][0], .size = 4}));
        assert_ends(call, LS_CALL_START_FAILED);
        assert_int_equal(ls_call_result(call)->code, codes[i][1]);
        assert_has(ls_call_result(call)->text, "no bread today");
        ls_call_destroy(&call);
    }
    call_world_end(w);
}

TEST(once_begun_a_refusal_is_a_failure)
{
    struct call_world *w = serving(NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    assert_ok(ask(&w->at[0], 2, "echo", 0)); /* so that it has begun */
    assert_ok(ls_request_refuse(&w->at[1].requests[0], 0, "too late"));
    assert_ends(call, LS_CALL_FAILED);
    assert_string_equal(ls_call_result(call)->text, "too late");
    ls_call_destroy(&call);
    call_world_end(w);
}

/* ---- requests ---------------------------------------------------------- */

static int serve_look(void *self, ls_request *request)
{
    struct caller_node *at = self;
    size_t size;
    const int64_t left =
        ls_request_deadline(request) - ls_now(ls_node_runtime(at->node));
    if (strcmp(ls_request_name(request), "look") != 0 ||
        ls_request_from(request) != 1 || ls_request_is_cancelled(request) ||
        memcmp(ls_request_data(request, &size), "abc", 3) != 0 || size != 3 ||
        left <= 0 || left > 20000 * LS_NS_PER_MS)
        return LS_EINVAL; /* without a text */
    return ls_request_complete(&request, NULL, 0);
}

static void serve_looks(struct caller_node *at)
{
    assert_ok(ls_rpc_serve(at->calls, "look", LS_CALL_ANYONE, serve_look, at));
}

TEST(a_request_tells_who_what_and_until_when)
{
    struct call_world *w = call_world_start(3, NULL, serve_looks, NULL);
    ls_call *call = call_start(&w->at[0], 2, "look", 20000);
    assert_ends(call, LS_CALL_COMPLETED);
    ls_call_destroy(&call);
    call = call_start(&w->at[2], 2, "look", 20000);
    assert_ends(call, LS_CALL_FAILED);
    assert_string_equal(ls_call_result(call)->text,
                        ls_status_sentence(LS_EINVAL));
    ls_call_destroy(&call);
    call_world_end(w);
}

static int serve_too_much(void *self, ls_request *request)
{
    static const char data[LS_CALL_DATA_MAX + 1];
    (void)self;
    if (ls_request_complete(&request, data, sizeof data) != LS_ELIMIT ||
        request != NULL)
        abort();
    return LS_OK;
}

static int serve_no_data(void *self, ls_request *request)
{
    (void)self;
    if (ls_request_complete(&request, NULL, 3) != LS_EINVAL || request != NULL)
        abort();
    return LS_OK;
}

static int serve_long_failure(void *self, ls_request *request)
{
    char text[2 * LS_CALL_TEXT_MAX];
    (void)self;
    memset(text, 'x', sizeof text);
    text[1] = '\n'; /* what would break a line is not shown */
    text[sizeof text - 1] = '\0';
    return ls_request_fail(&request, text);
}

static void serve_limits(struct caller_node *at)
{
    assert_ok(
        ls_rpc_serve(at->calls, "much", LS_CALL_ANYONE, serve_too_much, at));
    assert_ok(
        ls_rpc_serve(at->calls, "none", LS_CALL_ANYONE, serve_no_data, at));
    assert_ok(ls_rpc_serve(at->calls, "long", LS_CALL_ANYONE,
                           serve_long_failure, at));
}

TEST(an_answer_that_cannot_be_is_a_failure_that_says_so)
{
    struct call_world *w = call_world_start(2, NULL, serve_limits, NULL);
    assert_fails(ask(&w->at[0], 2, "much", 0), LS_EHANDLER);
    assert_error_has("245761 bytes");
    assert_fails(ask(&w->at[0], 2, "none", 0), LS_EHANDLER);
    assert_error_has("3 bytes without data");
    ls_call *call = call_start(&w->at[0], 2, "long", LONG_MS);
    assert_ends(call, LS_CALL_FAILED);
    assert_int_equal(strlen(ls_call_result(call)->text), LS_CALL_TEXT_MAX);
    assert_memory_equal(ls_call_result(call)->text, "x?x", 3);
    ls_call_destroy(&call);
    call_world_end(w);
}

TEST(on_cancel_of_one_that_is_cancelled_runs_at_once)
{
    struct call_world *w = serving(NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    ls_call_destroy(&call);
    assert_reaches(&w->at[1].alarmed, 1);
    ls_request *request = w->at[1].requests[0];
    ls_request_on_cancel(request, NULL, NULL); /* it does not run now */
    ls_request_on_cancel(request, note_alarm, &w->at[1]);
    assert_int_equal(counter_get(&w->at[1].alarmed), 2);
    assert_fails(ls_request_fail(&request, NULL), LS_ECANCELED);
    call_world_end(w);
}

/* ---- words ------------------------------------------------------------- */

TEST(states_and_codes_have_names)
{
    assert_string_equal(ls_call_state_name(LS_CALL_LOST), "lost");
    assert_string_equal(ls_call_state_name((enum ls_call_state)99), "?");
    assert_string_equal(ls_call_code_sentence(601),
                        "the member has too much to do already");
    assert_string_equal(ls_call_code_sentence(99), "?");
    assert_false(ls_call_state_is_end(LS_CALL_STARTED));
    assert_true(ls_call_state_is_end(LS_CALL_START_FAILED));
}
