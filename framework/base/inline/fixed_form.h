/* fixed_form.h - msgpack in forms of fixed width, written and read by hand, for
 * messages whose layout is known: a field is at a known place, so reading is a
 * compare and a load, and a byte that is not as expected ends it.
 * Values of any shape: codec.h.
 * Thread: any; nothing is kept. */
#ifndef LOCKSTEP_FIXED_FORM_H
#define LOCKSTEP_FIXED_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum fixed_form {
    FORM_ARRAY = 0x90, /* fixarray, and how many */
    FORM_NIL = 0xc0,
    FORM_BIN16 = 0xc5,
    FORM_BIN32 = 0xc6,
    FORM_UINT32 = 0xce,
    FORM_UINT64 = 0xcf,
    FORM_INT32 = 0xd2,
    FORM_STR8 = 0xd9,
    FORM_ARRAY32 = 0xdd
};

/* ---- writing: each returns where the next byte goes --------------------- */

static inline unsigned char *fixed_put_u32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
    return at + 4;
}

static inline unsigned char *fixed_put_u64(unsigned char *at, uint64_t value)
{
    at = fixed_put_u32(at, (uint32_t)(value >> 32));
    return fixed_put_u32(at, (uint32_t)value);
}

/* form: one of 32 bits. */
static inline unsigned char *
fixed_write_32(unsigned char *at, enum fixed_form form, uint32_t value)
{
    *at++ = (unsigned char)form;
    return fixed_put_u32(at, value);
}

static inline unsigned char *fixed_write_u32(unsigned char *at, uint32_t value)
{
    return fixed_write_32(at, FORM_UINT32, value);
}

static inline unsigned char *fixed_write_u64(unsigned char *at, uint64_t value)
{
    *at++ = FORM_UINT64;
    return fixed_put_u64(at, value);
}

static inline unsigned char *fixed_put_bytes(unsigned char *at,
                                             const void *data, size_t size)
{
    if (size != 0)
        memcpy(at, data, size);
    return at + size;
}

/* size: at most 255. */
static inline unsigned char *fixed_write_string(unsigned char *at,
                                                const char *text, size_t size)
{
    *at++ = FORM_STR8;
    *at++ = (unsigned char)size;
    return fixed_put_bytes(at, text, size);
}

/* size: at most 65535. */
static inline unsigned char *fixed_write_binary(unsigned char *at,
                                                const void *data, size_t size)
{
    *at++ = FORM_BIN16;
    *at++ = (unsigned char)(size >> 8);
    *at++ = (unsigned char)size;
    return fixed_put_bytes(at, data, size);
}

/* size: less than 4 GiB. */
static inline unsigned char *fixed_write_binary32(unsigned char *at,
                                                  const void *data, size_t size)
{
    *at++ = FORM_BIN32;
    at = fixed_put_u32(at, (uint32_t)size);
    return fixed_put_bytes(at, data, size);
}

/* ---- reading ------------------------------------------------------------ */

/* Where the reader stands; once `bad`, it reads zeroes and stays bad, so that
 * fields are read without a check each. */
struct fixed_reader {
    const unsigned char *at;
    const unsigned char *end;
    bool bad;
};

/* In one expression, which compilers take for a load. */
static inline uint32_t fixed_get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t fixed_get_u64(const unsigned char *at)
{
    return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 |
           (uint64_t)at[2] << 40 | (uint64_t)at[3] << 32 |
           (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
           (uint64_t)at[6] << 8 | at[7];
}

/* size: at most 9. */
static inline const unsigned char *fixed_take(struct fixed_reader *in,
                                              size_t size)
{
    static const unsigned char zeroes[9];
    if (in->bad || (size_t)(in->end - in->at) < size) {
        in->bad = true;
        return zeroes;
    }
    const unsigned char *at = in->at;
    in->at += size;
    return at;
}

static inline uint32_t fixed_take_byte(struct fixed_reader *in)
{
    return fixed_take(in, 1)[0];
}

static inline uint32_t fixed_take_u32(struct fixed_reader *in)
{
    return fixed_get_u32(fixed_take(in, 4));
}

static inline uint64_t fixed_take_u64(struct fixed_reader *in)
{
    return fixed_get_u64(fixed_take(in, 8));
}

static inline void fixed_expect(struct fixed_reader *in, uint32_t form)
{
    if (fixed_take_byte(in) != form)
        in->bad = true;
}

static inline uint32_t fixed_read_u32(struct fixed_reader *in)
{
    const unsigned char *at = fixed_take(in, 5);
    in->bad = in->bad || at[0] != FORM_UINT32;
    return in->bad ? 0 : fixed_get_u32(at + 1);
}

static inline uint64_t fixed_read_u64(struct fixed_reader *in)
{
    const unsigned char *at = fixed_take(in, 9);
    in->bad = in->bad || at[0] != FORM_UINT64;
    return in->bad ? 0 : fixed_get_u64(at + 1);
}

/* Bytes that lie within the message, at most `most`; else none, and it is bad.
 * Borrow, from the message. */
static inline const void *fixed_take_bytes(struct fixed_reader *in, size_t size,
                                           size_t most, size_t *out)
{
    const unsigned char *at = in->at;
    if (size > most || (size_t)(in->end - at) < size)
        in->bad = true;
    *out = in->bad ? 0 : size;
    in->at += *out;
    return at;
}

static inline const char *fixed_read_string(struct fixed_reader *in,
                                            size_t most, size_t *size)
{
    fixed_expect(in, FORM_STR8);
    return fixed_take_bytes(in, fixed_take_byte(in), most, size);
}

static inline const void *fixed_read_binary(struct fixed_reader *in,
                                            size_t most, size_t *size)
{
    fixed_expect(in, FORM_BIN16);
    const size_t high = fixed_take_byte(in);
    return fixed_take_bytes(in, high << 8 | fixed_take_byte(in), most, size);
}

static inline const void *fixed_read_binary32(struct fixed_reader *in,
                                              size_t most, size_t *size)
{
    fixed_expect(in, FORM_BIN32);
    return fixed_take_bytes(in, fixed_take_u32(in), most, size);
}

#endif
