/* Bodies of calls between real nodes: they come whole, or the call says why
 * not, other messages pass them, and each is released once. */
#include "call_fixture.h"
#include "test.h"

#define MIB ((size_t)1 << 20)

static struct counter released;

static void release(void *data, void *hint)
{
    (void)hint;
    free(data);
    counter_add(&released, 1);
}

/* A body is rows, of which no two that follow each other are alike. */
enum { ROW = 4099 };

static const unsigned char *row_at(size_t row, size_t size)
{
    static unsigned char bytes[ROW + 256];
    if (bytes[1] == 0)
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(i * 31);
    return bytes + (row * 7 + size) % 256;
}

static size_t row_bytes(size_t row, size_t size)
{
    return size - row * ROW < ROW ? size - row * ROW : ROW;
}

static struct ls_body made(size_t size)
{
    unsigned char *data = malloc(size);
    assert_non_null(data);
    for (size_t row = 0; row * ROW < size; row++)
        memcpy(data + row * ROW, row_at(row, size), row_bytes(row, size));
    return (struct ls_body){.data = data, .size = size, .release = release};
}

static bool is_made(const unsigned char *bytes, size_t size)
{
    for (size_t row = 0; row * ROW < size; row++)
        if (memcmp(bytes + row * ROW, row_at(row, size),
                   row_bytes(row, size)) != 0)
            return false;
    return true;
}

/* Answers with the body that came, and takes it for that. */
static int serve_mirror(void *self, ls_request *request)
{
    struct caller_node *at = self;
    struct ls_body body;
    size_t size, n;
    const void *bytes = ls_request_body(request, &size);
    const void *data = ls_request_data(request, &n);
    counter_add(&at->entered, 1);
    if (!is_made(bytes, size))
        return ls_error(LS_EPROTO, "other bytes");
    ls_request_take_body(request, &body);
    if (ls_request_body(request, &n) != NULL || n != 0)
        return ls_error(LS_EPROTO, "a body twice");
    (void)ls_request_data(request, &n);
    return ls_request_complete_with(&request, data, n, &body);
}

static struct ls_body kept; /* by serve_keep */

static int serve_keep(void *self, ls_request *request)
{
    (void)self;
    ls_request_take_body(request, &kept);
    return ls_request_complete(&request, NULL, 0);
}

static void prepare(struct caller_node *at)
{
    assert_ok(
        ls_rpc_serve(at->calls, "mirror", LS_CALL_ANYONE, serve_mirror, at));
    assert_ok(ls_rpc_serve(at->calls, "keep", LS_CALL_ANYONE, serve_keep, at));
}

static struct call_world *two(const struct ls_rpc_options *options,
                              const char *transport)
{
    counter_init(&released);
    return call_world_start(2, options, prepare,
                            &(struct world_plan){.transport = transport});
}

static ls_call *start(struct caller_node *at, uint32_t to, const char *name,
                      size_t size)
{
    ls_call *call = NULL;
    assert_ok(ls_call_start(&call, at->calls,
                            &(struct ls_call_options){.to = to,
                                                      .name = name,
                                                      .data = "abc",
                                                      .size = 3,
                                                      .body = made(size),
                                                      .timeout_ms = LONG_MS}));
    return call;
}

static void assert_mirrored(struct caller_node *at, uint32_t to, size_t size)
{
    ls_call *call = start(at, to, "mirror", size);
    assert_ends(call, LS_CALL_COMPLETED);
    const struct ls_call_result *result = ls_call_result(call);
    assert_int_equal(result->size, 3);
    assert_memory_equal(result->data, "abc", 3);
    assert_int_equal(result->body_size, size);
    assert_true(is_made(result->body, size));
    ls_call_destroy(&call);
}

static void assert_all_released(int n)
{
    assert_reaches(&released, n);
    assert_int_equal(counter_get(&released), n);
    counter_fini(&released);
}

static void mirror_all(const char *transport)
{
    static const size_t sizes[] = {1,       4096,    4097,        MIB,
                                   MIB + 1, 3 * MIB, 20 * MIB + 3};
    struct call_world *w = two(NULL, transport);
    int n = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, n += 2) {
        assert_mirrored(&w->at[0], 2, sizes[i]);
        assert_mirrored(&w->at[0], 1, sizes[i]); /* itself */
    }
    const struct ls_rpc_stats asked = stats_of(&w->at[0]);
    assert_int_equal(asked.stale + asked.malformed + asked.dropped, 0);
    call_world_end(w);
    assert_all_released(n);
}

TEST(a_body_comes_whole_and_goes_back)
{
    mirror_all("tcp");
}

TEST(the_same_within_a_process)
{
    mirror_all("inproc");
}

TEST(what_a_handler_takes_outlives_its_node)
{
    static const size_t sizes[] = {100, MIB / 2, 3 * MIB};
    for (size_t i = 0; i < 6; i++) {
        struct call_world *w = two(NULL, i < 3 ? "inproc" : "tcp");
        ls_call *call = start(&w->at[0], 2, "keep", sizes[i % 3]);
        assert_ends(call, LS_CALL_COMPLETED);
        assert_null(ls_call_result(call)->body);
        ls_call_destroy(&call);
        call_world_end(w);
        assert_int_equal(kept.size, sizes[i % 3]);
        assert_true(is_made(kept.data, kept.size));
        ls_body_release(&kept);
        assert_null(kept.data);
        ls_body_release(&kept); /* nothing any more */
        assert_all_released(1);
    }
}

TEST(what_the_caller_takes_outlives_the_call)
{
    struct call_world *w = two(NULL, "tcp");
    const struct ls_call_options options = {.to = 2,
                                            .name = "mirror",
                                            .body = made(3 * MIB),
                                            .timeout_ms = LONG_MS};
    struct ls_body body;
    void *answer;
    size_t size;
    assert_ok(
        ls_call_ask_body(w->at[0].calls, &options, &answer, &size, &body));
    assert_int_equal(size, 0);
    free(answer);
    ls_call *call = start(&w->at[0], 2, "mirror", MIB);
    struct ls_body taken;
    assert_ends(call, LS_CALL_COMPLETED);
    ls_call_take_body(call, &taken);
    assert_null(ls_call_result(call)->body);
    ls_call_destroy(&call);
    call_world_end(w);
    assert_int_equal(body.size, 3 * MIB);
    assert_true(is_made(body.data, body.size));
    assert_int_equal(taken.size, MIB);
    assert_true(is_made(taken.data, taken.size));
    ls_body_release(&body);
    ls_body_release(&taken);
    assert_all_released(2);
}

/* In the order in which they end; the dispatch thread alone writes. */
static char ends[4];
static struct counter n_ends;

static void note_end(void *self, ls_call *call)
{
    ends[strlen(ends)] = ls_call_result(call)->state == LS_CALL_COMPLETED
                             ? *(const char *)self
                             : '?';
    counter_add(&n_ends, 1);
}

static ls_call *start_noted(struct caller_node *at, const char *name,
                            struct ls_body body, const char *mark)
{
    ls_call *call = NULL;
    assert_ok(ls_call_start(
        &call, at->calls,
        &(struct ls_call_options){.to = 2,
                                  .name = name,
                                  .body = body,
                                  .timeout_ms = LONG_MS,
                                  .ended = note_end,
                                  .self = (void *)(uintptr_t)mark}));
    return call;
}

TEST(other_messages_pass_a_long_body)
{
    struct call_world *w = two(NULL, "tcp");
    counter_init(&n_ends);
    ls_call *calls[] = {
        start_noted(&w->at[0], "mirror", made(64 * MIB), "l"),
        start_noted(&w->at[0], "mirror", made(100), "s"),
        start_noted(&w->at[0], "echo", (struct ls_body){.data = NULL}, "m")};
    assert_reaches(&n_ends, 3);
    assert_int_equal(ends[2], 'l'); /* the one that was first */
    assert_null(strchr(ends, '?'));
    for (size_t i = 0; i < 3; i++)
        ls_call_destroy(&calls[i]);
    call_world_end(w);
    assert_all_released(2);
    counter_fini(&n_ends);
}

TEST(a_body_beyond_the_bound_is_refused)
{
    struct call_world *w =
        two(&(struct ls_rpc_options){.max_body_bytes = MIB}, "inproc");
    struct caller_node *at = &w->at[0];
    ls_call *call = start(at, 2, "mirror", MIB + 1);
    assert_ends(call, LS_CALL_START_FAILED);
    assert_int_equal(ls_call_result(call)->code, LS_CALL_TOO_LONG);
    ls_call_destroy(&call);
    assert_mirrored(at, 2, MIB);
    ls_call *held = start(at, 2, "hold", MIB);
    assert_reaches(&w->at[1].held, 1);
    call = start(at, 2, "mirror", 1); /* together they are too long */
    assert_ends(call, LS_CALL_START_FAILED);
    assert_int_equal(ls_call_result(call)->code, LS_CALL_BUSY);
    ls_call_destroy(&call);
    assert_ok(ask(at, 2, "echo", 0)); /* without one it is as before */
    assert_ok(ls_request_complete(&w->at[1].requests[0], NULL, 0));
    assert_ends(held, LS_CALL_COMPLETED);
    ls_call_destroy(&held);
    assert_mirrored(at, 2, MIB);
    /* An answer. */
    held = call_start(at, 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 2);
    const struct ls_body body = made(MIB + 1);
    assert_ok(ls_request_complete_with(&w->at[1].requests[1], "x", 1, &body));
    assert_ends(held, LS_CALL_FAILED);
    assert_has(ls_call_result(held)->text, "max_body_bytes");
    assert_null(ls_call_result(held)->data);
    ls_call_destroy(&held);
    assert_mirrored(at, 2, MIB);
    call_world_end(w);
    assert_all_released(7);
}

static int ask_here(void *self, const struct ls_event *event)
{
    struct caller_node *at = self;
    (void)event;
    return ls_call_ask_body(
        at->calls,
        &(struct ls_call_options){.to = 2, .name = "mirror", .body = made(9)},
        NULL, NULL, NULL);
}

/* Which may not wait for its answer. */
TEST(what_a_handler_of_events_gives_with_a_question_is_released)
{
    struct call_world *w = two(NULL, "inproc");
    assert_ok(ls_on(w->at[0].node, "ask", ask_here, &w->at[0]));
    assert_ok(ls_emit(w->at[0].node, "ask", NULL, 0));
    assert_fails(ls_wait_for(w->at[0].node, "never", LONG_MS, NULL, NULL),
                 LS_ESTATE);
    assert_error_has("do not wait for a call");
    call_world_end(w);
    assert_all_released(1);
}

TEST(what_is_given_is_released_when_nothing_comes_of_it)
{
    struct call_world *w = two(NULL, "inproc");
    struct caller_node *at = &w->at[0];
    ls_call *call;
    struct ls_call_options options = {
        .to = 9, .name = "mirror", .body = made(9)};
    assert_fails(ls_call_start(&call, at->calls, &options), LS_ENOENT);
    options =
        (struct ls_call_options){.to = 2, .name = "no name", .body = made(9)};
    assert_fails(ls_call_start(&call, at->calls, &options), LS_EINVAL);
    options.body = (struct ls_body){.size = 9, .release = release};
    assert_fails(ls_call_start(&call, at->calls, &options), LS_EINVAL);
    options.body = (struct ls_body){"", (size_t)1 << 32, NULL, NULL};
    assert_fails(ls_call_start(&call, at->calls, &options), LS_ELIMIT);
    call = call_start(at, 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    const struct ls_body body = {"", (size_t)1 << 32, NULL, NULL};
    assert_fails(
        ls_request_complete_with(&w->at[1].requests[0], NULL, 0, &body),
        LS_ELIMIT);
    assert_ends(call, LS_CALL_FAILED);
    ls_call_destroy(&call);
    call = call_start(at, 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 2);
    const struct ls_body nothing = {.size = 9, .release = release};
    assert_fails(
        ls_request_complete_with(&w->at[1].requests[1], NULL, 0, &nothing),
        LS_EINVAL);
    assert_ends(call, LS_CALL_FAILED);
    ls_call_destroy(&call);
    call = start(at, 2, "unknown", 3 * MIB);
    assert_ends(call, LS_CALL_FAILED);
    ls_call_destroy(&call);
    call_world_end(w);
    assert_all_released(5);
}

static uint64_t sent_by(const struct caller_node *at)
{
    struct ls_node_stats stats;
    ls_node_stats(at->node, &stats);
    return stats.sent_bytes;
}

/* What is sent while a body of 64 MiB goes: all of that, what was under way, up
 * to three windows of 8 MiB, and on a slow machine some of it again; not all of
 * the one that nobody wants, which would make it 192 MiB. */
static void assert_goes_alone(struct call_world *w, size_t sender)
{
    assert_ok(ask(&w->at[0], 2, "echo", 0)); /* the other knows by now */
    const uint64_t before = sent_by(&w->at[sender]);
    assert_mirrored(&w->at[0], 2, 64 * MIB);
    assert_true(sent_by(&w->at[sender]) - before < 192 * MIB);
}

TEST(a_body_that_nobody_wants_goes_no_further)
{
    struct call_world *w = two(NULL, "tcp");
    ls_call *call = start(&w->at[0], 2, "mirror", 128 * MIB);
    ls_call_destroy(&call);
    assert_goes_alone(w, 0);
    call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    const struct ls_body body = made(128 * MIB);
    assert_ok(ls_request_complete_with(&w->at[1].requests[0], "x", 1, &body));
    ls_call_destroy(&call);
    assert_goes_alone(w, 1);
    call_world_end(w);
    assert_all_released(4);
}

/* Half way, in any direction. */
TEST(cancel_and_close_release_what_is_under_way)
{
    struct call_world *w = two(NULL, "tcp");
    struct caller_node *at = &w->at[0];
    ls_call *call = start(at, 2, "mirror", 64 * MIB);
    ls_call_cancel(call);
    assert_ends(call, LS_CALL_CANCELLED);
    assert_null(ls_call_result(call)->body);
    ls_call_destroy(&call);
    assert_mirrored(at, 2, MIB + 5); /* all goes on */
    assert_int_equal(counter_get(&w->at[1].entered), 1);
    call = call_start(at, 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    const struct ls_body body = made(64 * MIB);
    assert_ok(ls_request_complete_with(&w->at[1].requests[0], "x", 1, &body));
    ls_rpc_close(&w->at[1].calls);
    assert_ends(call, LS_CALL_FAILED);
    assert_has(ls_call_result(call)->text, "shutting down");
    ls_call_destroy(&call);
    call_world_end(w);
    assert_all_released(3);
}
