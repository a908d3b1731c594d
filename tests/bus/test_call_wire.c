/* The messages of calls as bytes. */
#include "call_wire.h"

#include "lockstep/codec.h"
#include "lockstep/random.h"
#include "test.h"
#include "world_fixture.h"

static const char long_data[LS_CALL_DATA_MAX];

static const struct call_message samples[] = {
    {.kind = CALL_REQUEST,
     .to = 1,
     .number = 2,
     .left_ms = 3,
     .channel = 4,
     .name = "work",
     .name_size = 4,
     .data = "abc",
     .size = 3},
    {.kind = CALL_REQUEST,
     .to = UINT64_MAX,
     .number = CALL_NUMBER_MAX,
     .left_ms = UINT32_MAX,
     .name = "a",
     .name_size = 1,
     .data = long_data,
     .size = LS_CALL_DATA_MAX},
    {.kind = CALL_STARTED, .to = 1, .number = 2},
    {.kind = CALL_COMPLETED, .to = 1, .number = 2, .data = "xyz", .size = 3},
    {.kind = CALL_FAILED, .to = 1, .number = 2, .text = "why", .text_size = 3},
    {.kind = CALL_REFUSED,
     .to = 1,
     .number = 2,
     .code = 601,
     .text = "",
     .text_size = 0},
    {.kind = CALL_CANCEL, .to = 1, .number = 2},
    {.kind = CALL_REQUEST,
     .to = 1,
     .number = 2,
     .left_ms = 3,
     .name = "work",
     .name_size = 4,
     .body_size = UINT32_MAX},
    {.kind = CALL_COMPLETED,
     .to = 1,
     .number = 2,
     .body_size = 1,
     .data = "xyz",
     .size = 3},
};
#define N_SAMPLES (sizeof samples / sizeof *samples)

static unsigned char bytes[CALL_WIRE_MAX + 1];

static void assert_same(const struct call_message *a,
                        const struct call_message *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_true(a->to == b->to && a->number == b->number);
    assert_int_equal(a->left_ms, b->left_ms);
    assert_int_equal(a->channel, b->channel);
    assert_int_equal(a->code, b->code);
    assert_int_equal(a->name_size, b->name_size);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->body_size, b->body_size);
    assert_int_equal(a->text_size, b->text_size);
    if (a->name_size != 0)
        assert_memory_equal(a->name, b->name, a->name_size);
    if (a->size != 0)
        assert_memory_equal(a->data, b->data, a->size);
    if (a->text_size != 0)
        assert_memory_equal(a->text, b->text, a->text_size);
}

TEST(what_is_written_is_read)
{
    for (size_t i = 0; i < N_SAMPLES; i++) {
        struct call_message read;
        const size_t size = call_wire_encode(&samples[i], bytes);
        assert_true(size <= CALL_WIRE_MAX);
        assert_ok(ls_codec_check(bytes, size, NULL)); /* it is msgpack */
        assert_ok(call_wire_decode(bytes, size, &read));
        assert_false(read.broken);
        assert_same(&samples[i], &read);
    }
}

/* Of a request, whose caller waits for an answer, the head is enough. */
static bool is_refused(size_t size)
{
    struct call_message read;
    return call_wire_decode(bytes, size, &read) == LS_EPROTO || read.broken;
}

TEST(what_is_cut_short_or_too_long_is_refused)
{
    for (size_t i = 0; i < N_SAMPLES; i++) {
        const size_t size = call_wire_encode(&samples[i], bytes);
        for (size_t n = 0; n < size; n += n < 100 ? 1 : 997)
            assert_true(is_refused(n));
        bytes[size] = 0;
        assert_true(is_refused(size + 1));
    }
}

TEST(the_head_of_a_broken_request_is_read)
{
    struct call_message read;
    const size_t size = call_wire_encode(&samples[0], bytes);
    assert_ok(call_wire_decode(bytes, size - 1, &read));
    assert_true(read.broken && read.number == 2 && read.to == 1);
    assert_int_equal(read.kind, CALL_REQUEST);
    assert_null(read.data);
}

static void refused_with(struct call_message message)
{
    assert_true(is_refused(call_wire_encode(&message, bytes)));
}

TEST(what_no_one_may_say_is_refused)
{
    struct call_message read;
    refused_with((struct call_message){.kind = CALL_STARTED, .number = 0});
    refused_with((struct call_message){.kind = CALL_STARTED,
                                       .number = CALL_NUMBER_MAX + 1});
    refused_with((struct call_message){.kind = CALL_REFUSED, .number = 1});
    refused_with((struct call_message){
        .kind = CALL_REFUSED, .number = 1, .code = 1u << 31});
    refused_with((struct call_message){.kind = CALL_REQUEST, .number = 1});
    refused_with((struct call_message){
        .kind = CALL_REQUEST, .number = 1, .name = "a b", .name_size = 3});
    refused_with((struct call_message){
        .kind = CALL_REQUEST, .number = 1, .name = "a\0b", .name_size = 3});
    const size_t last = call_wire_encode(&samples[8], bytes);
    bytes[last - 8 - 1] = 0; /* a body of 0 bytes: kinds 1 and 3 say so */
    assert_true(is_refused(last));
    const size_t size = call_wire_encode(&samples[2], bytes);
    bytes[1] = 9; /* another version */
    assert_fails(call_wire_decode(bytes, size, &read), LS_EPROTO);
    assert_error_has("version 9");
    bytes[1] = 1;
    for (unsigned kind = 0; kind < 256; kind++) {
        bytes[2] = (unsigned char)kind;
        assert_true(is_refused(size) || kind == CALL_STARTED ||
                    kind == CALL_CANCEL);
    }
}

TEST(any_byte_changed_is_read_within_bounds)
{
    struct ls_rng random;
    ls_rng_seed(&random, 1, 1);
    for (int i = 0; i < 100000; i++) {
        struct call_message read;
        const size_t which = (size_t)ls_rng_below(&random, N_SAMPLES);
        if (which == 1)
            continue;
        const size_t size = call_wire_encode(&samples[which], bytes);
        for (int changes = 0; changes < 3; changes++)
            bytes[ls_rng_below(&random, size)] =
                (unsigned char)ls_rng_below(&random, 256);
        if (call_wire_decode(bytes, size, &read) != LS_OK || read.broken)
            continue;
        unsigned char again[CALL_WIRE_MAX];
        assert_int_equal(call_wire_encode(&read, again), size);
        assert_memory_equal(again, bytes, size);
    }
}
