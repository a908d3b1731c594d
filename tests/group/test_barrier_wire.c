/* The barrier's messages as bytes: what is written is read back, and nothing
 * else is read at all. */
#include <string.h>

#include "barrier_wire.h"
#include "lockstep/random.h"
#include "lockstep/status.h"
#include "test.h"

static struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];

static struct ls_barrier_message plain(enum ls_barrier_kind kind)
{
    return (struct ls_barrier_message){
        .kind = kind,
        .ask = true,
        .known = 2,
        .to = UINT64_MAX,
        .epoch = LS_BARRIER_EPOCH_MAX - 1,
        .view = UINT64_C(0x0123456789abcdef),
        .next = 77,
        .flags = UINT32_MAX,
        .last = 4294967295u,
    };
}

static void check_same(const struct ls_barrier_message *a,
                       const struct ls_barrier_message *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->ask, b->ask);
    assert_int_equal(a->again, b->again);
    assert_int_equal(a->stuck, b->stuck);
    assert_int_equal(a->n_lost, b->n_lost);
    assert_true(a->lost == b->lost);
    assert_int_equal(a->lost_one, b->lost_one);
    assert_int_equal(a->known, b->known);
    assert_true(a->to == b->to && a->epoch == b->epoch);
    assert_true(a->view == b->view && a->next == b->next);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->last, b->last);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->origin, b->origin);
    assert_int_equal(a->n_lacking, b->n_lacking);
    assert_int_equal(a->n_missing, b->n_missing);
    assert_int_equal(a->reason_size, b->reason_size);
    if (a->reason_size > 0)
        assert_memory_equal(a->reason, b->reason, a->reason_size);
    for (size_t i = 0; i < a->n_missing; i++) {
        assert_int_equal(a->missing[i].id, b->missing[i].id);
        assert_true(a->missing[i].rounds == b->missing[i].rounds);
    }
}

static void check_round_trip(const struct ls_barrier_message *message)
{
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    struct ls_barrier_message read;
    const size_t size = ls_barrier_wire_encode(message, bytes);
    assert_ok(ls_barrier_wire_decode(bytes, size, &read, scratch));
    check_same(message, &read);
}

TEST(every_kind_is_read_as_written)
{
    for (int kind = LS_BARRIER_ENTERED; kind <= LS_BARRIER_UNKNOWN; kind++) {
        struct ls_barrier_message message = plain((enum ls_barrier_kind)kind);
        if (kind == LS_BARRIER_ABORT)
            message.status = LS_ELOST;
        check_round_trip(&message);
        message.again = true;
        check_round_trip(&message);
    }
}

static void fill(struct ls_barrier_missing *missing, size_t n)
{
    for (size_t i = 0; i < n; i++)
        missing[i] = (struct ls_barrier_missing){.id = UINT32_MAX - (uint32_t)i,
                                                 .rounds = i};
}

TEST(the_longest_message_fits)
{
    struct ls_barrier_missing missing[LS_BARRIER_MISSING_MAX];
    char reason[LS_BARRIER_REASON_MAX];
    fill(missing, LS_BARRIER_MISSING_MAX);
    memset(reason, 'x', sizeof reason);
    struct ls_barrier_message message = plain(LS_BARRIER_ABORT);
    message.status = INT32_MIN;
    message.origin = 7;
    message.reason = reason;
    message.reason_size = sizeof reason;
    message.n_lacking = 1000;
    message.missing = missing;
    message.n_missing = LS_BARRIER_MISSING_MAX;
    check_round_trip(&message);
}

TEST(a_list_of_the_missing_travels_with_any_kind)
{
    struct ls_barrier_missing missing[3];
    fill(missing, 3);
    struct ls_barrier_message message = plain(LS_BARRIER_ABSENT);
    message.n_lacking = 3;
    message.missing = missing;
    message.n_missing = 3;
    check_round_trip(&message);
}

TEST(a_node_says_whom_it_is_stuck_without)
{
    struct ls_barrier_message message = plain(LS_BARRIER_ENTERED);
    message.stuck = true;
    message.n_lost = 2;
    message.lost = UINT64_MAX;
    message.lost_one = UINT32_MAX;
    message.status = LS_EMISMATCH;
    check_round_trip(&message);
    message.stuck = false;
    check_round_trip(&message);
}

TEST(who_goes_may_say_after_whom)
{
    struct ls_barrier_message message = plain(LS_BARRIER_GONE);
    check_round_trip(&message);
    message.n_lost = 1;
    message.lost_one = 7;
    message.status = LS_ELOST;
    check_round_trip(&message);
}

static size_t encode_abort(unsigned char *bytes)
{
    static struct ls_barrier_missing missing[2] = {{7, 3}, {1000000, 0}};
    struct ls_barrier_message message = plain(LS_BARRIER_ABORT);
    message.status = LS_ETIMEDOUT;
    message.reason = "why";
    message.reason_size = 3;
    message.n_lacking = 2;
    message.missing = missing;
    message.n_missing = 2;
    return ls_barrier_wire_encode(&message, bytes);
}

TEST(a_message_cut_short_is_refused)
{
    unsigned char bytes[LS_BARRIER_WIRE_MAX + 1] = {0};
    struct ls_barrier_message out = {.epoch = 42};
    const size_t size = encode_abort(bytes);
    for (size_t cut = 0; cut < size; cut++)
        assert_fails(ls_barrier_wire_decode(bytes, cut, &out, scratch),
                     LS_EPROTO);
    assert_fails(ls_barrier_wire_decode(bytes, size + 1, &out, scratch),
                 LS_EPROTO);
    assert_int_equal(out.epoch, 42);
}

/* Change one byte of a plain message and expect it to be refused. */
static void check_refused(size_t at, unsigned char value)
{
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    struct ls_barrier_message out;
    struct ls_barrier_message message = plain(LS_BARRIER_ENTERED);
    const size_t size = ls_barrier_wire_encode(&message, bytes);
    bytes[at] = value;
    assert_fails(ls_barrier_wire_decode(bytes, size, &out, scratch), LS_EPROTO);
}

TEST(fields_out_of_range_are_refused)
{
    check_refused(0, 0x9f); /* long form without its end */
    check_refused(0, 0x93); /* another array */
    check_refused(1, 1);    /* version */
    check_refused(2, 0);    /* kind */
    check_refused(2, 9);
    check_refused(3, 2);  /* again without ask */
    check_refused(3, 5);  /* stuck without anyone lost */
    check_refused(3, 33); /* final, yet no abort */
    check_refused(3, 64);
    check_refused(4, 3);     /* known */
    check_refused(5, 0xce);  /* width of `to` */
    check_refused(15, 0xff); /* epoch */
    check_refused(33, 0x40); /* next */
    check_refused(42, 0x40); /* since */
}

TEST(an_abort_that_claims_success_is_refused)
{
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    struct ls_barrier_message out;
    struct ls_barrier_message message = plain(LS_BARRIER_ABORT);
    message.status = LS_OK;
    size_t size = ls_barrier_wire_encode(&message, bytes);
    assert_fails(ls_barrier_wire_decode(bytes, size, &out, scratch), LS_EPROTO);
    message.status = 5;
    size = ls_barrier_wire_encode(&message, bytes);
    assert_fails(ls_barrier_wire_decode(bytes, size, &out, scratch), LS_EPROTO);
}

static void check_status_refused(const struct ls_barrier_message *message)
{
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    struct ls_barrier_message out;
    const size_t size = ls_barrier_wire_encode(message, bytes);
    assert_fails(ls_barrier_wire_decode(bytes, size, &out, scratch), LS_EPROTO);
}

TEST(a_status_that_no_loss_has_is_refused)
{
    const int others[] = {LS_OK, LS_ETIMEDOUT, INT32_MIN, 5};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct ls_barrier_message message = plain(LS_BARRIER_ENTERED);
        message.n_lost = 1;
        message.status = others[i];
        check_status_refused(&message);
        message.kind = LS_BARRIER_GONE;
        check_status_refused(&message);
    }
    struct ls_barrier_message message = plain(LS_BARRIER_UNKNOWN);
    message.status = LS_ELOST;
    check_status_refused(&message);
}

TEST(more_names_than_lacking_or_allowed_are_refused)
{
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    struct ls_barrier_message out;
    const size_t size = encode_abort(bytes);
    const size_t lacking = size - 19 - 2 * 12 - 3 - 4;
    bytes[lacking + 3] = 1;
    assert_fails(ls_barrier_wire_decode(bytes, size, &out, scratch), LS_EPROTO);
    bytes[lacking + 3] = 200;
    bytes[lacking + 6] = 25;
    assert_fails(ls_barrier_wire_decode(bytes, size, &out, scratch), LS_EPROTO);
}

/* What is accepted is exactly what encode would have written: so a decoder
 * that lets something else through is found. */
TEST(random_bytes_are_refused_or_are_the_only_form)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 1, 0);
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    unsigned char again[LS_BARRIER_WIRE_MAX];
    size_t accepted = 0;
    for (int i = 0; i < 300000; i++) {
        size_t size = encode_abort(bytes);
        for (uint64_t n = ls_rng_below(&rng, 3); n > 0; n--)
            bytes[ls_rng_below(&rng, size)] = (unsigned char)ls_rng_next(&rng);
        if (ls_rng_below(&rng, 8) == 0)
            size = (size_t)ls_rng_below(&rng, sizeof bytes);
        struct ls_barrier_message out;
        if (ls_barrier_wire_decode(bytes, size, &out, scratch) != LS_OK)
            continue;
        accepted++;
        assert_int_equal(ls_barrier_wire_encode(&out, again), size);
        assert_memory_equal(bytes, again, size);
    }
    assert_true(accepted > 0);
}
