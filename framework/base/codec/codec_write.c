/* Writing values as msgpack; the first error is kept. */
#include "lockstep/codec.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "codec_depth.h"
#include "utf8.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers go out as they lie in memory, little-endian");
_Static_assert(sizeof(double) == 8 && sizeof(float) == 4, "IEEE 754");

/* An array or map that is being written. */
struct level {
    uint64_t due; /* values still to come, a map's keys among them; of a map
                   * that was begun, what is left of UNCOUNTED */
    size_t head;  /* where the bytes of one that was begun are; else 0 */
    bool is_map, is_begun;
};

/* More values than there can be; even, as a map's are. */
#define UNCOUNTED (UINT64_MAX - 1)

struct ls_writer {
    msgpack_sbuffer buffer; /* own */
    msgpack_packer packer;
    struct level levels[LS_CODEC_DEPTH_MAX];
    size_t depth;    /* of levels in use; full ones leave at the next value */
    size_t n_values; /* begun */
    size_t n_roots;  /* begun; 1 in the end */
    int status;      /* of the first failure */
    const char *text;
    size_t failed_at; /* which value, from 1 */
};

int ls_writer_create(ls_writer **out)
{
    *out = NULL;
    ls_writer *const writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return ls_error(LS_ENOMEM, "no memory for a writer");
    msgpack_sbuffer_init(&writer->buffer);
    msgpack_packer_init(&writer->packer, &writer->buffer,
                        msgpack_sbuffer_write);
    *out = writer;
    return LS_OK;
}

void ls_writer_destroy(ls_writer **writer)
{
    if (writer == NULL || *writer == NULL)
        return;
    msgpack_sbuffer_destroy(&(*writer)->buffer);
    free(*writer);
    *writer = NULL;
}

void ls_writer_clear(ls_writer *writer)
{
    msgpack_sbuffer_clear(&writer->buffer);
    writer->depth = 0;
    writer->n_values = 0;
    writer->n_roots = 0;
    writer->status = LS_OK;
}

static bool fail(ls_writer *writer, int status, const char *text)
{
    if (writer->status == LS_OK) {
        writer->status = status;
        writer->text = text;
        writer->failed_at = writer->n_values;
    }
    return false;
}

/* msgpack-c hands on what the buffer says: it could not grow. */
static bool packed(ls_writer *writer, int result)
{
    return result >= 0 || fail(writer, LS_ENOMEM, "no memory for the bytes");
}

/* Only now, since a level is still a level for its last value. */
static void leave_full_levels(ls_writer *writer)
{
    while (writer->depth > 0 && writer->levels[writer->depth - 1].due == 0)
        writer->depth--;
}

/* Take the place of the next value; false when there is a failure. */
static bool begin(ls_writer *writer, bool is_string)
{
    if (writer->status != LS_OK)
        return false;
    writer->n_values++;
    leave_full_levels(writer);
    if (writer->depth == 0) {
        writer->n_roots++;
        return true;
    }
    struct level *const level = &writer->levels[writer->depth - 1];
    if (level->is_map && level->due % 2 == 0 && !is_string)
        return fail(writer, LS_EINVAL, "a map's key must be a string");
    level->due--;
    return true;
}

void ls_write_nil(ls_writer *writer)
{
    if (begin(writer, false))
        packed(writer, msgpack_pack_nil(&writer->packer));
}

void ls_write_bool(ls_writer *writer, bool value)
{
    if (begin(writer, false))
        packed(writer, value ? msgpack_pack_true(&writer->packer)
                             : msgpack_pack_false(&writer->packer));
}

void ls_write_int(ls_writer *writer, int64_t value)
{
    if (begin(writer, false))
        packed(writer, msgpack_pack_int64(&writer->packer, value));
}

void ls_write_uint(ls_writer *writer, uint64_t value)
{
    if (begin(writer, false))
        packed(writer, msgpack_pack_uint64(&writer->packer, value));
}

void ls_write_double(ls_writer *writer, double value)
{
    if (begin(writer, false))
        packed(writer, msgpack_pack_double(&writer->packer, value));
}

/* Whether a string was begun, whose bytes follow. */
static bool begin_string(ls_writer *writer, size_t size)
{
    if (size > UINT32_MAX)
        return fail(writer, LS_ELIMIT, "the string is over 4 GiB long");
    return packed(writer, msgpack_pack_str(&writer->packer, size));
}

void ls_write_string(ls_writer *writer, const char *text)
{
    if (text == NULL) {
        ls_write_nil(writer);
        return;
    }
    if (!begin(writer, true))
        return;
    const size_t size = strlen(text);
    if (!ls_utf8_valid(text, size))
        fail(writer, LS_EINVAL, "the string is not UTF-8");
    else if (begin_string(writer, size))
        packed(writer, msgpack_pack_str_body(&writer->packer, text, size));
}

void ls_write_any_string(ls_writer *writer, const char *text)
{
    size_t left = text != NULL ? strlen(text) : 0;
    if (text == NULL || ls_utf8_valid(text, left)) {
        ls_write_string(writer, text);
        return;
    }
    if (!begin(writer, true) || !begin_string(writer, left))
        return;
    while (left > 0) {
        const size_t size = ls_utf8_character(text, left);
        const size_t taken = size == 0 ? 1 : size;
        if (!packed(writer,
                    msgpack_pack_str_body(&writer->packer,
                                          size == 0 ? "?" : text, taken)))
            return;
        text += taken;
        left -= taken;
    }
}

void ls_write_binary(ls_writer *writer, const void *data, size_t size)
{
    if (!begin(writer, false))
        return;
    if (size > UINT32_MAX)
        fail(writer, LS_ELIMIT, "the binary is over 4 GiB long");
    else if (packed(writer, msgpack_pack_bin(&writer->packer, size)) &&
             size > 0)
        packed(writer, msgpack_pack_bin_body(&writer->packer, data, size));
}

static void open_level(ls_writer *writer, uint64_t due, bool is_map)
{
    if (due > 0)
        writer->levels[writer->depth++] =
            (struct level){.due = due, .is_map = is_map};
}

/* An empty one counts too, as it does for the reader. */
static bool begin_level(ls_writer *writer)
{
    return begin(writer, false) &&
           (writer->depth < LS_CODEC_DEPTH_MAX ||
            fail(writer, LS_ELIMIT, "nested over 32 levels deep"));
}

void ls_write_array(ls_writer *writer, uint32_t n)
{
    if (!begin_level(writer))
        return;
    if (packed(writer, msgpack_pack_array(&writer->packer, n)))
        open_level(writer, n, false);
}

void ls_write_map(ls_writer *writer, uint32_t n)
{
    if (!begin_level(writer))
        return;
    if (packed(writer, msgpack_pack_map(&writer->packer, n)))
        open_level(writer, UINT64_C(2) * n, true);
}

void ls_write_map_begin(ls_writer *writer)
{
    if (!begin_level(writer))
        return;
    const size_t head = writer->buffer.size;
    if (packed(writer, msgpack_pack_map(&writer->packer, 0)))
        writer->levels[writer->depth++] = (struct level){
            .due = UNCOUNTED, .head = head, .is_map = true, .is_begun = true};
}

/* Say that it has n pairs: 0 stands there, in one byte. */
static void set_pairs(ls_writer *writer, size_t head, uint64_t n)
{
    const size_t wider = n < 16 ? 0 : n <= UINT16_MAX ? 2 : 4;
    const char zeros[4] = {0};
    if (!packed(writer, msgpack_sbuffer_write(&writer->buffer, zeros, wider)))
        return;
    unsigned char *const at = (unsigned char *)writer->buffer.data + head;
    memmove(at + 1 + wider, at + 1, writer->buffer.size - head - 1 - wider);
    if (wider == 0)
        at[0] = (unsigned char)(0x80 | n);
    else
        at[0] = wider == 2 ? 0xde : 0xdf;
    for (size_t i = wider; i > 0; i--, n >>= 8)
        at[i] = (unsigned char)n;
}

void ls_write_map_end(ls_writer *writer)
{
    if (writer->status != LS_OK)
        return;
    leave_full_levels(writer);
    const struct level *const level =
        writer->depth > 0 ? &writer->levels[writer->depth - 1] : NULL;
    if (level == NULL || !level->is_begun || level->due % 2 != 0) {
        fail(writer, LS_ESTATE, "no map that was begun can end here");
        return;
    }
    writer->depth--;
    set_pairs(writer, level->head, (UNCOUNTED - level->due) / 2);
}

static void write_numbers(ls_writer *writer, const void *values, size_t n,
                          size_t size)
{
    ls_write_binary(writer, values, n > SIZE_MAX / size ? SIZE_MAX : n * size);
}

void ls_write_doubles(ls_writer *writer, const double *values, size_t n)
{
    write_numbers(writer, values, n, sizeof *values);
}

void ls_write_floats(ls_writer *writer, const float *values, size_t n)
{
    write_numbers(writer, values, n, sizeof *values);
}

void ls_write_rng(ls_writer *writer, const struct ls_rng *rng)
{
    const size_t n = sizeof rng->state / sizeof *rng->state;
    ls_write_array(writer, n);
    for (size_t i = 0; i < n; i++)
        ls_write_uint(writer, rng->state[i]);
}

int ls_writer_bytes(ls_writer *writer, const void **data, size_t *size)
{
    if (writer->status != LS_OK)
        return ls_error(writer->status, "value %zu: %s", writer->failed_at,
                        writer->text);
    leave_full_levels(writer);
    if (writer->depth > 0) {
        const struct level *const level = &writer->levels[writer->depth - 1];
        if (level->is_begun)
            return ls_error(LS_ESTATE, "a map was begun and not ended");
        return ls_error(LS_ESTATE, "%s is incomplete: %llu values are missing",
                        level->is_map ? "a map" : "an array",
                        (unsigned long long)level->due);
    }
    if (writer->n_roots != 1)
        return ls_error(LS_ESTATE, "%zu values written; there must be one",
                        writer->n_roots);
    *data = writer->buffer.data;
    *size = writer->buffer.size;
    return LS_OK;
}
