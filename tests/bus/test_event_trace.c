/* What a node's events and heartbeats leave in its recording. */
#include "lockstep/trace.h"

#include "node_fixture.h"

enum { EVENTS = 5 };

static struct counter handled;

static ls_trace *new_trace(uint32_t id)
{
    const struct ls_trace_options options = {.node = id, .all = true};
    ls_trace *trace = NULL;
    assert_ok(ls_trace_create(&trace, &options));
    return trace;
}

static void take(ls_trace **trace, struct ls_trace_file *out)
{
    assert_ok(ls_trace_take(*trace, 1, "a test", out));
    ls_trace_destroy(trace);
}

/* The nth record of a kind; NULL: there is none. */
static const struct ls_trace_record *find(const struct ls_trace_file *file,
                                          enum ls_trace_kind kind, size_t nth)
{
    for (size_t i = 0; i < file->n_records; i++)
        if (file->records[i].kind == kind && nth-- == 0)
            return &file->records[i];
    return NULL;
}

static void check_event(const struct ls_trace_file *sent,
                        const struct ls_trace_file *heard, size_t nth)
{
    const struct ls_trace_record *from = find(sent, LS_TRACE_SEND, nth);
    const struct ls_trace_record *to = find(heard, LS_TRACE_RECEIVE, nth);
    assert_non_null(from);
    assert_non_null(to);
    const bool numbered = nth < EVENTS;
    assert_string_equal(sent->names[from->name], numbered ? "news" : "secret");
    assert_string_equal(heard->names[to->name], numbered ? "news" : "secret");
    assert_int_equal(from->number, numbered ? nth + 1 : 0);
    assert_int_equal(to->number, from->number);
    assert_int_equal(from->size, 4);
    assert_int_equal(to->size, 4);
    assert_int_equal(from->peer, numbered ? LS_TRACE_NOBODY : 2);
    assert_int_equal(to->peer, 1);
    assert_true(from->begin_ns <= to->begin_ns); /* one machine, one clock */
    assert_string_equal(sent->names[from->thread], "main");
    assert_string_not_equal(heard->names[to->thread], "main");
}

/* Each that was heard was sent before, by the same number. */
static void check_beats(const struct ls_trace_file *sent,
                        const struct ls_trace_file *heard, uint32_t id)
{
    const struct ls_trace_record *to;
    size_t n = 0;
    for (; (to = find(heard, LS_TRACE_HEARD, n)) != NULL; n++) {
        const struct ls_trace_record *from;
        size_t k = 0;
        while ((from = find(sent, LS_TRACE_BEAT, k)) != NULL &&
               from->number != to->number)
            k++;
        assert_non_null(from);
        assert_true(from->begin_ns <= to->begin_ns);
        assert_int_equal(to->peer, id);
        assert_int_not_equal(to->life, 0);
    }
    assert_int_not_equal(n, 0);
}

TEST(both_sides_of_events_and_heartbeats_are_recorded)
{
    counter_init(&handled);
    ls_trace *traces[] = {new_trace(1), new_trace(2)};
    struct ls_node_options options = usual(1);
    options.trace = traces[0];
    ls_node *one = create(&options);
    assert_ptr_equal(ls_node_trace(one), traces[0]);
    assert_ok(ls_node_open(one));
    options = usual(2);
    const char *attach = ls_node_endpoint(one);
    options.attach = &attach;
    options.n_attach = 1;
    options.world_size = 2;
    options.trace = traces[1];
    ls_node *two = create(&options);
    assert_ok(ls_on(two, "news", count, &handled));
    assert_ok(ls_on(two, "secret", count, &handled));
    assert_ok(ls_node_join(one));
    assert_ok(ls_node_start(two));
    for (int i = 0; i < EVENTS; i++)
        assert_ok(ls_emit(one, "news", "text", 4));
    assert_ok(ls_emit_with(one, &(struct ls_emission){.event = "secret",
                                                      .data = "text",
                                                      .size = 4,
                                                      .to_one = true,
                                                      .to = 2}));
    assert_reaches(&handled, EVENTS + 1);
    assert_ok(ls_node_destroy(&two));
    assert_ok(ls_node_destroy(&one));
    struct ls_trace_file files[2];
    take(&traces[0], &files[0]);
    take(&traces[1], &files[1]);
    for (size_t i = 0; i <= EVENTS; i++)
        check_event(&files[0], &files[1], i);
    check_beats(&files[0], &files[1], 1);
    check_beats(&files[1], &files[0], 2);
    ls_trace_clear(&files[0]);
    ls_trace_clear(&files[1]);
    counter_fini(&handled);
}
