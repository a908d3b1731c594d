/* Calls with a peer that may say anything: what is repeated has one effect,
 * what is not meant for a call does not end it, what is not a message is
 * counted, and all others go on. */
#include "call_fixture.h"
#include "call_post.h"
#include "call_wire.h"
#include "lockstep/channel.h"
#include "raw_peer.h"
#include "stream.h"
#include "test.h"

#define RAW 666

/* Two nodes with calls, and a raw peer that is a member at the first. */
struct siege {
    struct call_world *w;
    struct caller_node *at;
    struct counter flushed, ready;
    struct raw_peer raw;
    uint64_t n_heard; /* of the stream to it */
    uint64_t n_said;  /* parts, in the stream from it */
};

static struct siege *siege; /* while the world begins */

static void on_member(void *self, const struct ls_member *member)
{
    (void)self;
    if (member->state == LS_MEMBER_READY && member->id == RAW)
        counter_add(&siege->ready, 1);
}

static void prepare(struct caller_node *at)
{
    if (at->id != 1)
        return;
    assert_ok(ls_on(at->node, "flush", count, &siege->flushed));
    assert_ok(ls_node_on_member(at->node, on_member, siege));
}

static void tune(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->insecure = true;    /* raw peers have no secret, */
    options->silence_ms = 60000; /* and do not keep beating, */
    options->linger_ms = 100;    /* and do not close when told farewell */
    options->heartbeat_ms = 50;
    options->shared_bytes = 0; /* or raw peers are offered memory, too */
    options->world_max = 3;
}

static void begin(void)
{
    siege = calloc(1, sizeof *siege);
    assert_non_null(siege);
    counter_init(&siege->flushed);
    counter_init(&siege->ready);
    siege->w = call_world_start(
        2, &(struct ls_rpc_options){.max_requests = 4, .max_calls = 2000},
        prepare, &(struct world_plan){.transport = "tcp", .tune = tune});
    siege->at = &siege->w->at[0];
    raw_open(&siege->raw, RAW, ls_node_endpoint(siege->at->node));
    raw_be_present(&siege->raw);
    raw_await_presence(&siege->raw, siege->at->node);
    raw_heartbeat(&siege->raw, siege->at->node);
    assert_reaches(&siege->ready, 1);
}

/* Both nodes still work, a thousand times; then all ends. */
static void end(bool closed)
{
    for (int i = 0; i < 1000; i++)
        assert_ok(ask(siege->at, i % 2 == 0 ? 2 : 1, "echo", 0));
    if (!closed)
        raw_close(&siege->raw);
    call_world_end(siege->w);
    counter_fini(&siege->flushed);
    counter_fini(&siege->ready);
    free(siege);
}

/* ---- what the raw peer says and hears ---------------------------------- */

static void say_bytes(const void *bytes, size_t size)
{
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_CHANNEL);
    header.name = "ls.call";
    header.name_size = 7;
    raw_event(&siege->raw, NULL, &header, bytes, size);
}

static void say(struct call_message message)
{
    static unsigned char bytes[CALL_WIRE_MAX];
    if (message.to == 0)
        message.to = ls_node_incarnation(siege->at->node);
    say_bytes(bytes, call_wire_encode(&message, bytes));
}

static void say_request(uint64_t number, const char *name)
{
    say((struct call_message){.kind = CALL_REQUEST,
                              .number = number,
                              .left_ms = LONG_MS,
                              .name = name,
                              .name_size = strlen(name)});
}

static void say_request_with(uint64_t number, const char *name, uint32_t size)
{
    say((struct call_message){.kind = CALL_REQUEST,
                              .number = number,
                              .left_ms = LONG_MS,
                              .name = name,
                              .name_size = strlen(name),
                              .body_size = size});
}

/* A part of a body; body: as call_wire_body() says it. */
static void say_part(uint64_t body, uint32_t total, uint32_t offset,
                     size_t size)
{
    static char bytes[WIRE_CHUNK_BYTES];
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_RELIABLE);
    header.name = "ls.call";
    header.name_size = 7;
    header.sequence = body;
    header.to_incarnation = ls_node_incarnation(siege->at->node);
    header.number = ++siege->n_said;
    header.of = WIRE_KIND_CHUNK;
    header.total = total;
    header.offset = offset;
    raw_event(&siege->raw, NULL, &header, bytes, size);
}

/* Wait until the node has read all that was said. */
static void flush(void)
{
    const int before = counter_get(&siege->flushed);
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_EVENT);
    raw_event(&siege->raw, "flush", &header, "x", 1);
    assert_reaches(&siege->flushed, before + 1);
}

/* It has got all up to this number. */
static void acknowledge(uint64_t number)
{
    struct wire_header header = raw_header(&siege->raw, WIRE_KIND_ACK);
    header.to_incarnation = ls_node_incarnation(siege->at->node);
    header.number = number;
    header.limit_messages = header.limit_bytes = 1u << 30;
    raw_event(&siege->raw, NULL, &header, NULL, 0);
}

/* The next message of a call to it; borrow until the next. What comes is
 * acknowledged as any member does: now and then, when asked, and again when it
 * comes again. */
static struct call_message hear(void)
{
    static uint8_t frame[2 * WIRE_CHUNK_BYTES];
    for (;;) {
        struct wire_header header;
        struct call_message message;
        char topic_class;
        uint32_t to;
        const int size = zmq_recv(siege->raw.sub, frame, sizeof frame, 0);
        assert_true(size > 0);
        if (wire_header_read(frame, (size_t)size, &topic_class, &to, &header) !=
                LS_OK ||
            header.kind != WIRE_KIND_RELIABLE)
            continue;
        const bool repeated = header.number <= siege->n_heard;
        if (!repeated)
            siege->n_heard = header.number;
        if (repeated || header.number % 64 == 0 ||
            (header.flags & WIRE_FLAG_TELL) != 0)
            acknowledge(siege->n_heard);
        if (repeated)
            continue;
        assert_int_equal(header.of, WIRE_KIND_CHANNEL);
        assert_ok(call_wire_decode(header.data, header.size, &message));
        assert_true(message.to == siege->raw.incarnation);
        return message;
    }
}

/* ---- answers ----------------------------------------------------------- */

static void note_end(void *self, ls_call *call)
{
    if (ls_call_result(call)->state != LS_CALL_COMPLETED)
        abort();
    counter_add(self, 1);
}

TEST(an_answer_that_comes_100_times_counts_once)
{
    begin();
    struct counter ends;
    ls_call *call;
    counter_init(&ends);
    assert_ok(ls_call_start(
        &call, siege->at->calls,
        &(struct ls_call_options){
            .to = RAW, .name = "work", .ended = note_end, .self = &ends}));
    const struct call_message request = hear();
    assert_int_equal(request.kind, CALL_REQUEST);
    assert_memory_equal(request.name, "work", 4);
    for (int i = 0; i < 100; i++)
        say((struct call_message){.kind = CALL_COMPLETED,
                                  .number = request.number,
                                  .data = "x",
                                  .size = 1});
    flush();
    assert_ends(call, LS_CALL_COMPLETED);
    assert_int_equal(counter_get(&ends), 1);
    assert_int_equal(stats_of(siege->at).ended[0], 1);
    assert_int_equal(stats_of(siege->at).stale, 99);
    ls_call_destroy(&call);
    counter_fini(&ends);
    end(false);
}

TEST(an_answer_to_a_call_of_another_does_not_end_it)
{
    begin();
    ls_call *call = call_start(siege->at, 2, "hold", LONG_MS);
    const uint64_t number = ls_call_id(call);
    for (int kind = CALL_STARTED; kind <= CALL_REFUSED; kind++)
        say((struct call_message){.kind = (enum call_kind)kind,
                                  .number = number,
                                  .code = 1,
                                  .text = "",
                                  .data = ""});
    flush();
    assert_int_equal(stats_of(siege->at).stale, 4);
    assert_false(ls_call_state_is_end(ls_call_state(call)));
    assert_reaches(&siege->w->at[1].held, 1);
    assert_ok(ls_request_complete(&siege->w->at[1].requests[0], NULL, 0));
    assert_ends(call, LS_CALL_COMPLETED);
    ls_call_destroy(&call);
    end(false);
}

TEST(an_answer_to_an_earlier_life_of_the_caller_is_stale)
{
    begin();
    ls_call *call = call_start(siege->at, RAW, "work", LONG_MS);
    const uint64_t number = hear().number;
    say((struct call_message){
        .kind = CALL_FAILED, .number = number, .to = 5, .text = ""});
    flush();
    assert_int_equal(ls_call_state(call), LS_CALL_STARTING);
    assert_int_equal(stats_of(siege->at).stale, 1);
    ls_call_destroy(&call);
    assert_int_equal(hear().kind, CALL_CANCEL);
    end(false);
}

TEST(what_finds_no_room_waits_and_goes_when_there_is)
{
    enum { ALL = 2000 }; /* more than a stream holds */
    static ls_call *calls[ALL];
    begin();
    for (int i = 0; i < ALL; i++)
        calls[i] = call_start(siege->at, RAW, "work", LONG_MS);
    ls_call_destroy(&calls[ALL - 1]); /* one that waits is not sent at all */
    ls_call_destroy(&calls[7]);       /* of one that was sent it is told */
    for (uint64_t i = 0; i < ALL - 1; i++)
        assert_int_equal(hear().number, i + 1);
    const struct call_message cancel = hear();
    assert_int_equal(cancel.kind, CALL_CANCEL);
    assert_int_equal(cancel.number, 8);
    for (int i = 0; i < ALL; i++)
        if (calls[i] != NULL)
            say((struct call_message){.kind = CALL_COMPLETED,
                                      .number = ls_call_id(calls[i])});
    for (int i = 0; i < ALL; i++) {
        if (calls[i] != NULL)
            assert_ends(calls[i], LS_CALL_COMPLETED);
        ls_call_destroy(&calls[i]);
    }
    end(false);
}

TEST(an_answer_to_what_was_not_sent_yet_keeps_it_from_being_sent)
{
    enum { ALL = STREAM_CONTROL_MAX + 2 };
    static ls_call *calls[ALL];
    begin();
    for (int i = 0; i < ALL; i++)
        calls[i] = call_start(siege->at, RAW, "work", LONG_MS);
    say((struct call_message){.kind = CALL_COMPLETED,
                              .number = ls_call_id(calls[ALL - 1])});
    assert_ends(calls[ALL - 1], LS_CALL_COMPLETED);
    for (int i = 0; i < ALL; i++)
        ls_call_destroy(&calls[i]);
    for (uint64_t i = 0; i < STREAM_CONTROL_MAX; i++)
        assert_int_equal(hear().number, i + 1);
    const struct call_message cancel = hear();
    assert_int_equal(cancel.kind, CALL_CANCEL);
    assert_int_equal(cancel.number, 1);
    end(false);
}

TEST(the_body_of_an_answer_must_be_what_was_said)
{
    ls_call *call;
    begin();
    for (int i = 0; i < 4; i++) {
        call = call_start(siege->at, RAW, "work", LONG_MS);
        const uint64_t number = hear().number;
        say((struct call_message){
            .kind = CALL_COMPLETED, .number = number, .body_size = 5000});
        flush();
        assert_int_equal(ls_call_state(call), LS_CALL_STARTED);
        say_part(call_wire_body(number, false), 5000, 0, 1); /* no answer */
        if (i == 0)
            say_part(call_wire_body(number, true), 5000, 1, 4999);
        if (i == 1)
            say_part(call_wire_body(number, true), 5001, 0, 5001);
        if (i > 1)
            say_part(call_wire_body(number, true), 5000, 0, 4000);
        if (i == 2)
            say_part(call_wire_body(number, true), 5000, 3999, 1001);
        if (i == 3)
            say_part(call_wire_body(number, true), 5000, 4000, 1000);
        assert_ends(call, i == 3 ? LS_CALL_COMPLETED : LS_CALL_FAILED);
        if (i < 3) {
            assert_has(ls_call_result(call)->text, "breaks the format");
            assert_int_equal(hear().kind, CALL_CANCEL);
        }
        ls_call_destroy(&call);
    }
    flush();
    assert_int_equal(stats_of(siege->at).malformed, 3);
    assert_int_equal(stats_of(siege->at).stale, 4);
    end(false);
}

TEST(an_answer_whose_body_never_comes_is_too_late)
{
    begin();
    ls_call *call = call_start(siege->at, RAW, "work", 200);
    const uint64_t number = hear().number;
    say((struct call_message){
        .kind = CALL_COMPLETED, .number = number, .body_size = 1u << 30});
    say_part(call_wire_body(number, true), 1u << 30, 0, 1000);
    assert_ends(call, LS_CALL_TIMEOUT);
    assert_null(ls_call_result(call)->body);
    assert_int_equal(hear().kind, CALL_CANCEL);
    ls_call_destroy(&call);
    end(false);
}

/* ---- requests ---------------------------------------------------------- */

TEST(a_request_that_comes_100_times_is_done_once)
{
    begin();
    for (int i = 0; i < 100; i++)
        say_request(7, "echo");
    flush();
    assert_int_equal(hear().kind, CALL_COMPLETED);
    assert_int_equal(counter_get(&siege->at->entered), 1);
    assert_int_equal(stats_of(siege->at).stale, 99);
    say_request(6, "echo"); /* numbers do not go back */
    say_request(8, "nonsense");
    const struct call_message answer = hear();
    assert_int_equal(answer.kind, CALL_FAILED);
    assert_int_equal(answer.number, 8);
    assert_int_equal(stats_of(siege->at).stale, 100);
    end(false);
}

TEST(what_is_asked_of_an_earlier_life_is_not_done)
{
    begin();
    say((struct call_message){.kind = CALL_REQUEST,
                              .number = 1,
                              .to = 5,
                              .name = "echo",
                              .name_size = 4});
    say((struct call_message){.kind = CALL_CANCEL, .number = 1, .to = 5});
    flush();
    assert_int_equal(counter_get(&siege->at->entered), 0);
    assert_int_equal(stats_of(siege->at).stale, 2);
    end(false);
}

TEST(what_breaks_the_format_is_refused_and_counted)
{
    begin();
    static const char junk[LS_CHANNEL_MESSAGE_MAX];
    unsigned char bytes[CALL_WIRE_MAX];
    say_bytes("", 0);
    say_bytes("nonsense", 8);
    say_bytes(junk, sizeof junk);
    const struct call_message request = {
        .kind = CALL_REQUEST,
        .to = ls_node_incarnation(siege->at->node),
        .number = 3,
        .name = "echo",
        .name_size = 4};
    const size_t size = call_wire_encode(&request, bytes);
    say_bytes(bytes, size - 1); /* who asks is known: it is told */
    const struct call_message answer = hear();
    assert_int_equal(answer.kind, CALL_REFUSED);
    assert_int_equal(answer.code, LS_CALL_MALFORMED);
    assert_int_equal(answer.number, 3);
    say_request(4, "echo");
    assert_int_equal(hear().kind, CALL_COMPLETED);
    flush();
    assert_int_equal(stats_of(siege->at).malformed, 4);
    end(false);
}

TEST(more_than_is_taken_is_refused_as_busy)
{
    begin();
    for (uint64_t i = 1; i <= 2000; i++)
        say_request(i, "hold");
    flush();
    assert_reaches(&siege->at->held, 4);
    assert_int_equal(stats_of(siege->at).refused, 1996);
    say_request(2001, "ls.connect");
    flush();
    uint32_t master = 0;
    assert_true(ls_rpc_master(siege->at->calls, &master));
    assert_int_equal(master, RAW);
    /* It is gone: all of it is given up, and the node is free again. */
    raw_close(&siege->raw);
    assert_reaches(&siege->at->alarmed, 4);
    for (int i = 0; i < 4; i++)
        assert_fails(ls_request_complete(&siege->at->requests[i], NULL, 0),
                     LS_ECANCELED);
    assert_false(ls_rpc_master(siege->at->calls, &master));
    assert_int_equal(stats_of(siege->at).open_requests, 0);
    end(true);
}

static void count_unanswered(void *self, const char *line)
{
    if (strstr(line, "is not answered") != NULL)
        counter_add(self, 1);
}

/* Nor is the node busy for others. */
TEST(who_asks_on_and_takes_no_answer_does_not_fill_the_log)
{
    struct counter lines;
    begin();
    counter_init(&lines);
    ls_log_redirect(count_unanswered, &lines);
    for (uint64_t i = 1; i <= STREAM_CONTROL_MAX + CALL_POST_ANSWERS + 1000;
         i++)
        say_request(i, "nobody");
    flush();
    ls_log_redirect(NULL, NULL);
    assert_int_equal(counter_get(&lines), 10);
    counter_fini(&lines);
    assert_ok(ask(&siege->w->at[1], siege->at->id, "echo", 0));
    end(false);
}

TEST(one_that_dies_loses_its_calls_at_once)
{
    begin();
    ls_call *calls[2];
    for (int i = 0; i < 2; i++)
        calls[i] = call_start(siege->at, RAW, "work", LONG_MS);
    say((struct call_message){.kind = CALL_STARTED, .number = hear().number});
    flush();
    assert_int_equal(ls_call_state(calls[0]), LS_CALL_STARTED);
    raw_close(&siege->raw);
    for (int i = 0; i < 2; i++) {
        assert_ends(calls[i], LS_CALL_LOST);
        assert_has(ls_call_result(calls[i])->text, "to node 666");
        ls_call_destroy(&calls[i]);
    }
    end(true);
}

TEST(the_body_of_a_request_must_be_what_was_said)
{
    begin();
    say_part(call_wire_body(1, false), 10, 0, 10); /* of no request */
    for (uint64_t i = 1; i <= 4; i++) {
        say_request_with(i, "echo", 5000);
        flush();
        say_part(call_wire_body(i + 1, false), 5000, 0, 5000); /* not yet */
        if (i == 1)
            say_part(call_wire_body(i, false), 5000, 1, 4999);
        if (i == 2)
            say_part(call_wire_body(i, false), 4999, 0, 4999);
        if (i > 2)
            say_part(call_wire_body(i, false), 5000, 0, 4000);
        if (i == 3)
            say_part(call_wire_body(i, false), 5000, 4001, 999);
        if (i == 4)
            say_part(call_wire_body(i, false), 5000, 4000, 1000);
        const struct call_message answer = hear();
        assert_int_equal(answer.kind, i == 4 ? CALL_COMPLETED : CALL_REFUSED);
        assert_int_equal(answer.number, i);
        if (i != 4)
            assert_int_equal(answer.code, LS_CALL_MALFORMED);
        say_part(call_wire_body(i, false), 5000, 4999, 1); /* any more */
    }
    say_part(UINT64_MAX, 1, 0, 1);
    say_request(9, "echo");
    assert_int_equal(hear().kind, CALL_COMPLETED);
    flush();
    assert_int_equal(counter_get(&siege->at->entered), 2);
    assert_int_equal(stats_of(siege->at).malformed, 3);
    assert_int_equal(stats_of(siege->at).stale, 10);
    end(false);
}

TEST(many_bodies_take_no_more_memory_than_is_allowed)
{
    const uint32_t size = 1u << 29; /* half of what is allowed */
    begin();
    for (uint64_t i = 1; i <= 100; i++)
        say_request_with(i, "hold", i == 1 ? UINT32_MAX : size);
    for (int i = 0; i < 98; i++) {
        const struct call_message answer = hear();
        assert_int_equal(answer.kind, CALL_REFUSED);
        assert_int_equal(answer.code, i == 0 ? LS_CALL_TOO_LONG : LS_CALL_BUSY);
    }
    flush();
    assert_int_equal(stats_of(siege->at).open_requests, 2);
    assert_int_equal(stats_of(siege->at).refused, 98);
    /* It gives one up, and is gone with the other half way. */
    say_part(call_wire_body(2, false), size, 0, 10);
    say((struct call_message){.kind = CALL_CANCEL, .number = 2});
    say_part(call_wire_body(3, false), size, 0, 10);
    flush();
    assert_int_equal(stats_of(siege->at).open_requests, 1);
    raw_close(&siege->raw);
    while (stats_of(siege->at).open_requests != 0)
        assert_ok(ask(siege->at, 2, "echo", 0));
    assert_int_equal(counter_get(&siege->at->held), 0);
    end(true);
}
