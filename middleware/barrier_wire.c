#include "barrier_wire.h"

#include <string.h>

/* Fixed-width forms of msgpack: a field is at a known place, so reading is a
 * compare and a load, and a byte that is not as expected ends it. */
#define WIRE_VERSION 2
#define SHORT_ARRAY  0x9c /* fixarray of 12 */
#define LONG_ARRAY   0x9d /* fixarray of 13; the last is: */
#define DETAILS      0x98 /* fixarray of 8 */
#define FORM_STR8    0xd9
#define FORM_BIN16   0xc5
#define FORM_UINT32  0xce
#define FORM_UINT64  0xcf
#define FORM_INT32   0xd2

#define BIT_ASK    1u
#define BIT_AGAIN  2u
#define BIT_STUCK  4u
#define BIT_BRANCH 8u
#define BIT_ASTRAY 16u
#define BIT_FINAL  32u

#define MISSING_BYTES 12 /* id, rounds */

static unsigned char *put_u32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
    return at + 4;
}

static unsigned char *put_u64(unsigned char *at, uint64_t value)
{
    return put_u32(put_u32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

static unsigned char *write_u32(unsigned char *at, uint32_t value)
{
    *at++ = FORM_UINT32;
    return put_u32(at, value);
}

static unsigned char *write_u64(unsigned char *at, uint64_t value)
{
    *at++ = FORM_UINT64;
    return put_u64(at, value);
}

static bool has_details(const struct ls_barrier_message *message)
{
    return message->kind == LS_BARRIER_ABORT ||
           message->kind == LS_BARRIER_UNKNOWN || message->n_lacking > 0 ||
           message->n_lost > 0;
}

static unsigned char *write_details(unsigned char *at,
                                    const struct ls_barrier_message *message)
{
    *at++ = DETAILS;
    *at++ = FORM_INT32;
    at = put_u32(at, (uint32_t)message->status);
    at = write_u32(at, message->origin);
    *at++ = FORM_STR8;
    *at++ = (unsigned char)message->reason_size;
    if (message->reason_size > 0)
        memcpy(at, message->reason, message->reason_size);
    at += message->reason_size;
    at = write_u32(at, message->n_lacking);
    const size_t bytes = message->n_missing * MISSING_BYTES;
    *at++ = FORM_BIN16;
    *at++ = (unsigned char)(bytes >> 8);
    *at++ = (unsigned char)bytes;
    for (size_t i = 0; i < message->n_missing; i++) {
        at = put_u32(at, message->missing[i].id);
        at = put_u64(at, message->missing[i].rounds);
    }
    at = write_u32(at, message->n_lost);
    at = write_u64(at, message->lost);
    return write_u32(at, message->lost_one);
}

size_t ls_barrier_wire_encode(const struct ls_barrier_message *message,
                              unsigned char out[LS_BARRIER_WIRE_MAX])
{
    const bool details = has_details(message);
    unsigned char *at = out;
    *at++ = details ? LONG_ARRAY : SHORT_ARRAY;
    *at++ = WIRE_VERSION;
    *at++ = (unsigned char)message->kind;
    *at++ = (unsigned char)((message->ask ? BIT_ASK : 0u) |
                            (message->again ? BIT_AGAIN : 0u) |
                            (message->stuck ? BIT_STUCK : 0u) |
                            (message->branch ? BIT_BRANCH : 0u) |
                            (message->astray ? BIT_ASTRAY : 0u) |
                            (message->final ? BIT_FINAL : 0u));
    *at++ = message->known;
    at = write_u64(at, message->to);
    at = write_u64(at, message->epoch);
    at = write_u64(at, message->view);
    at = write_u64(at, message->next);
    at = write_u64(at, message->since);
    at = write_u32(at, message->rules);
    at = write_u32(at, message->flags);
    at = write_u32(at, message->last);
    if (details)
        at = write_details(at, message);
    return (size_t)(at - out);
}

/* Where the reader stands; once `bad`, it reads zeroes and stays bad, so that
 * fields are read without a check each. */
struct reader {
    const unsigned char *at;
    const unsigned char *end;
    bool bad;
};

static const unsigned char *take(struct reader *in, size_t size)
{
    static const unsigned char zeroes[8];
    if (in->bad || (size_t)(in->end - in->at) < size) {
        in->bad = true;
        return zeroes;
    }
    const unsigned char *at = in->at;
    in->at += size;
    return at;
}

static uint32_t take_byte(struct reader *in)
{
    return take(in, 1)[0];
}

static uint32_t take_u32(struct reader *in)
{
    const unsigned char *at = take(in, 4);
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

static uint64_t take_u64(struct reader *in)
{
    const uint64_t high = take_u32(in);
    return high << 32 | take_u32(in);
}

static void expect(struct reader *in, uint32_t form)
{
    if (take_byte(in) != form)
        in->bad = true;
}

static uint32_t read_u32(struct reader *in)
{
    expect(in, FORM_UINT32);
    return take_u32(in);
}

static uint64_t read_u64(struct reader *in)
{
    expect(in, FORM_UINT64);
    return take_u64(in);
}

static int read_status(struct reader *in)
{
    expect(in, FORM_INT32);
    const uint32_t bits = take_u32(in);
    /* Not a cast: what that gives above INT32_MAX is up to the compiler. */
    return bits <= INT32_MAX ? (int)bits : -(int)(UINT32_MAX - bits) - 1;
}

static void read_missing(struct reader *in, struct ls_barrier_message *message,
                         struct ls_barrier_missing *scratch)
{
    message->n_lacking = read_u32(in);
    expect(in, FORM_BIN16);
    const size_t high = take_byte(in);
    const size_t bytes = high << 8 | take_byte(in);
    const size_t n = bytes / MISSING_BYTES;
    if (bytes % MISSING_BYTES != 0 || n > LS_BARRIER_MISSING_MAX ||
        n > message->n_lacking) {
        in->bad = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        scratch[i].id = take_u32(in);
        scratch[i].rounds = take_u64(in);
        if (scratch[i].rounds > LS_BARRIER_EPOCH_MAX)
            in->bad = true;
    }
    message->missing = scratch;
    message->n_missing = n;
}

static void read_details(struct reader *in, struct ls_barrier_message *message,
                         struct ls_barrier_missing *scratch)
{
    expect(in, DETAILS);
    message->status = read_status(in);
    message->origin = read_u32(in);
    expect(in, FORM_STR8);
    message->reason_size = take_byte(in);
    if (message->reason_size > LS_BARRIER_REASON_MAX)
        in->bad = true;
    message->reason = (const char *)in->at;
    if (!in->bad && (size_t)(in->end - in->at) >= message->reason_size)
        in->at += message->reason_size;
    else
        in->bad = true;
    read_missing(in, message, scratch);
    message->n_lost = read_u32(in);
    message->lost = read_u64(in);
    message->lost_one = read_u32(in);
    if (message->n_lost > 0 && message->kind != LS_BARRIER_ENTERED &&
        message->kind != LS_BARRIER_GONE)
        in->bad = true;
}

static void read_head(struct reader *in, struct ls_barrier_message *message)
{
    const uint32_t kind = take_byte(in);
    const uint32_t bits = take_byte(in);
    const uint32_t known = take_byte(in);
    if (kind < LS_BARRIER_ENTERED || kind > LS_BARRIER_UNKNOWN ||
        bits >= 2 * BIT_FINAL ||
        ((bits & BIT_BRANCH) != 0 && kind > LS_BARRIER_READY) ||
        ((bits & BIT_FINAL) != 0 && kind != LS_BARRIER_ABORT) ||
        (bits & (BIT_ASK | BIT_AGAIN)) == BIT_AGAIN || known > LS_BARRIER_READY)
        in->bad = true;
    message->kind = (enum ls_barrier_kind)kind;
    message->ask = (bits & BIT_ASK) != 0;
    message->again = (bits & BIT_AGAIN) != 0;
    message->stuck = (bits & BIT_STUCK) != 0;
    message->branch = (bits & BIT_BRANCH) != 0;
    message->astray = (bits & BIT_ASTRAY) != 0;
    message->final = (bits & BIT_FINAL) != 0;
    message->known = (uint8_t)known;
    message->to = read_u64(in);
    message->epoch = read_u64(in);
    message->view = read_u64(in);
    message->next = read_u64(in);
    message->since = read_u64(in);
    message->rules = read_u32(in);
    message->flags = read_u32(in);
    message->last = read_u32(in);
    if (message->epoch >= LS_BARRIER_EPOCH_MAX ||
        message->next >= LS_BARRIER_EPOCH_MAX ||
        message->since >= LS_BARRIER_EPOCH_MAX)
        in->bad = true;
}

int ls_barrier_wire_decode(
    const void *data, size_t size, struct ls_barrier_message *out,
    struct ls_barrier_missing scratch[static LS_BARRIER_MISSING_MAX])
{
    struct ls_barrier_message message = {.reason = "", .missing = scratch};
    struct reader in = {.at = data};
    if (size == 0)
        return ls_error(LS_EPROTO, "barrier message: no bytes");
    in.end = in.at + size;
    const uint32_t form = take_byte(&in);
    const uint32_t version = take_byte(&in);
    if (version != WIRE_VERSION)
        return ls_error(LS_EPROTO,
                        "barrier message: version %u, this node speaks %d; "
                        "run the same lockstep everywhere",
                        (unsigned)version, WIRE_VERSION);
    read_head(&in, &message);
    if (form == LONG_ARRAY)
        read_details(&in, &message, scratch);
    if (in.bad || in.at != in.end || (message.stuck && message.n_lost == 0) ||
        (message.branch && message.n_missing != message.n_lacking) ||
        form != (has_details(&message) ? LONG_ARRAY : SHORT_ARRAY))
        return ls_error(LS_EPROTO, "barrier message: %zu malformed bytes",
                        size);
    /* A peer's abort must not read as success here. */
    if (message.kind == LS_BARRIER_ABORT && message.status >= LS_OK)
        return ls_error(LS_EPROTO, "barrier message: abort with status %d",
                        message.status);
    *out = message;
    return LS_OK;
}
