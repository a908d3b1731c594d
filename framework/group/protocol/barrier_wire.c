#include "barrier_wire.h"

#include "fixed_form.h"

#define WIRE_VERSION 2
#define SHORT_ARRAY  0x9c /* fixarray of 12 */
#define LONG_ARRAY   0x9d /* fixarray of 13; the last is: */
#define DETAILS      0x98 /* fixarray of 8 */

#define BIT_ASK    1u
#define BIT_AGAIN  2u
#define BIT_STUCK  4u
#define BIT_BRANCH 8u
#define BIT_ASTRAY 16u
#define BIT_FINAL  32u

#define MISSING_BYTES 12 /* id, rounds */

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
    at = fixed_write_32(at, FORM_INT32, (uint32_t)message->status);
    at = fixed_write_u32(at, message->origin);
    at = fixed_write_string(at, message->reason, message->reason_size);
    at = fixed_write_u32(at, message->n_lacking);
    const size_t bytes = message->n_missing * MISSING_BYTES;
    *at++ = FORM_BIN16;
    *at++ = (unsigned char)(bytes >> 8);
    *at++ = (unsigned char)bytes;
    for (size_t i = 0; i < message->n_missing; i++) {
        at = fixed_put_u32(at, message->missing[i].id);
        at = fixed_put_u64(at, message->missing[i].rounds);
    }
    at = fixed_write_u32(at, message->n_lost);
    at = fixed_write_u64(at, message->lost);
    return fixed_write_u32(at, message->lost_one);
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
    at = fixed_write_u64(at, message->to);
    at = fixed_write_u64(at, message->epoch);
    at = fixed_write_u64(at, message->view);
    at = fixed_write_u64(at, message->next);
    at = fixed_write_u64(at, message->since);
    at = fixed_write_u32(at, message->rules);
    at = fixed_write_u32(at, message->flags);
    at = fixed_write_u32(at, message->last);
    if (details)
        at = write_details(at, message);
    return (size_t)(at - out);
}

static int read_status(struct fixed_reader *in)
{
    fixed_expect(in, FORM_INT32);
    const uint32_t bits = fixed_take_u32(in);
    /* Not a cast: what that gives above INT32_MAX is up to the compiler. */
    return bits <= INT32_MAX ? (int)bits : -(int)(UINT32_MAX - bits) - 1;
}

static void read_missing(struct fixed_reader *in,
                         struct ls_barrier_message *message,
                         struct ls_barrier_missing *scratch)
{
    size_t size;
    message->n_lacking = fixed_read_u32(in);
    struct fixed_reader list = {
        .at = fixed_read_binary(in, LS_BARRIER_MISSING_MAX * MISSING_BYTES,
                                &size)};
    list.end = list.at + size;
    const size_t n = size / MISSING_BYTES;
    if (size % MISSING_BYTES != 0 || n > message->n_lacking) {
        in->bad = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        scratch[i].id = fixed_take_u32(&list);
        scratch[i].rounds = fixed_take_u64(&list);
        if (scratch[i].rounds > LS_BARRIER_EPOCH_MAX)
            in->bad = true;
    }
    message->missing = scratch;
    message->n_missing = n;
}

/* An abort's may be any that its sender has been given, see
 * ls_barrier_wire_decode(); of a loss there are two, and nothing else has one.
 */
static bool is_status_sound(const struct ls_barrier_message *message)
{
    if (message->kind == LS_BARRIER_ABORT)
        return true;
    if (message->n_lost > 0)
        return message->status == LS_ELOST || message->status == LS_EMISMATCH;
    return message->status == LS_OK;
}

static void read_details(struct fixed_reader *in,
                         struct ls_barrier_message *message,
                         struct ls_barrier_missing *scratch)
{
    fixed_expect(in, DETAILS);
    message->status = read_status(in);
    message->origin = fixed_read_u32(in);
    message->reason =
        fixed_read_string(in, LS_BARRIER_REASON_MAX, &message->reason_size);
    read_missing(in, message, scratch);
    message->n_lost = fixed_read_u32(in);
    message->lost = fixed_read_u64(in);
    message->lost_one = fixed_read_u32(in);
    if ((message->n_lost > 0 && message->kind != LS_BARRIER_ENTERED &&
         message->kind != LS_BARRIER_GONE) ||
        !is_status_sound(message))
        in->bad = true;
}

static void read_head(struct fixed_reader *in,
                      struct ls_barrier_message *message)
{
    const uint32_t kind = fixed_take_byte(in);
    const uint32_t bits = fixed_take_byte(in);
    const uint32_t known = fixed_take_byte(in);
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
    message->to = fixed_read_u64(in);
    message->epoch = fixed_read_u64(in);
    message->view = fixed_read_u64(in);
    message->next = fixed_read_u64(in);
    message->since = fixed_read_u64(in);
    message->rules = fixed_read_u32(in);
    message->flags = fixed_read_u32(in);
    message->last = fixed_read_u32(in);
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
    struct fixed_reader in = {.at = data};
    if (size == 0)
        return ls_error(LS_EPROTO, "barrier message: no bytes");
    in.end = in.at + size;
    const uint32_t form = fixed_take_byte(&in);
    const uint32_t version = fixed_take_byte(&in);
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
