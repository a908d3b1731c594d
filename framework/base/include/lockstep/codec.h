/* codec.h - values as msgpack bytes, written and read within limits.
 *
 * Writing: the writer keeps the first error and ignores what follows, so a
 * message is written without a check per value and checked once, by
 * ls_writer_bytes(). Reading: one pass checks size, depth and counts before any
 * memory is reserved (a hundred hostile bytes can make a naive reader reserve
 * gigabytes); then the bytes are read into a tree, accessed through ls_value.
 * Map keys are strings and unique, strings are UTF-8, ext types are refused.
 * Thread: serial.
 * Source: msgpack spec.md (2017-08); docs/wire-format.md#values. */
#ifndef LOCKSTEP_CODEC_H
#define LOCKSTEP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/random.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_writer ls_writer;

/* out:    own; NULL after an error; give it to ls_writer_destroy().
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_writer_create(ls_writer **out);
LS_API void ls_writer_destroy(ls_writer **writer);
/* Discard what was written, and its error; the memory is kept. */
LS_API void ls_writer_clear(ls_writer *writer);

LS_API void ls_write_nil(ls_writer *writer);
LS_API void ls_write_bool(ls_writer *writer, bool value);
LS_API void ls_write_int(ls_writer *writer, int64_t value);
LS_API void ls_write_uint(ls_writer *writer, uint64_t value);
LS_API void ls_write_double(ls_writer *writer, double value);
/* text: copied; NULL writes nil. Invalid UTF-8 makes the writer fail. */
LS_API void ls_write_string(ls_writer *writer, const char *text);
/* The same of a text of any origin, such as a path: each byte that is not UTF-8
 * becomes '?'. */
LS_API void ls_write_any_string(ls_writer *writer, const char *text);
/* data: copied; may be NULL when size is 0. */
LS_API void ls_write_binary(ls_writer *writer, const void *data, size_t size);
/* `n` values (array), or `n` pairs of a string and a value (map), follow. The
 * caller must ensure that the keys of a map differ; a reader refuses others. */
LS_API void ls_write_array(ls_writer *writer, uint32_t n);
LS_API void ls_write_map(ls_writer *writer, uint32_t n);
/* A map whose pairs are counted automatically, until its end. The bytes are
 * those of ls_write_map(). */
LS_API void ls_write_map_begin(ls_writer *writer);
LS_API void ls_write_map_end(ls_writer *writer);
/* Many numbers at once: a binary of `n` doubles or floats, little-endian. */
LS_API void ls_write_doubles(ls_writer *writer, const double *values, size_t n);
LS_API void ls_write_floats(ls_writer *writer, const float *values, size_t n);
/* A generator: its state, as an array of four numbers. */
LS_API void ls_write_rng(ls_writer *writer, const struct ls_rng *rng);

/* What has been written: exactly one whole value.
 * data:   borrow: until the writer is used again.
 * Errors: LS_ESTATE an array or map is incomplete, or there is not exactly one
 *         value, or ls_write_map_end() had no map to end; the error of the
 *         first failed write: LS_ENOMEM, LS_EINVAL (not UTF-8, a map key that
 *         is not a string), LS_ELIMIT (over 32 levels deep, a string or binary
 *         over 4 GiB). */
LS_MUST_USE LS_API int ls_writer_bytes(ls_writer *writer, const void **data,
                                       size_t *size);
/* The same as a line of JSON, without its end: ls_value_print().
 * out: own: free() it. Errors: the same; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_writer_print(ls_writer *writer, char **out);

struct ls_codec_limits {
    size_t max_bytes;
    uint32_t max_depth;   /* arrays and maps, empty ones too; <= 32 */
    uint32_t max_objects; /* every value counts, and every map key */
};

/* 1 MiB, 16 levels, 65,536 objects. */
#ifdef __cplusplus
#define LS_CODEC_LIMITS (ls_codec_limits{1u << 20, 16, 65536})
#else
#define LS_CODEC_LIMITS ((struct ls_codec_limits){1u << 20, 16, 65536})
#endif

enum ls_value_type {
    LS_VALUE_NIL,
    LS_VALUE_BOOL,
    LS_VALUE_INT, /* any integer */
    LS_VALUE_DOUBLE,
    LS_VALUE_STRING,
    LS_VALUE_BINARY,
    LS_VALUE_ARRAY,
    LS_VALUE_MAP
};

/* A value inside a document. Borrow: until the document is destroyed. */
typedef struct ls_value ls_value;
typedef struct ls_document ls_document;

/* Check the bytes without reading them: one pass, no allocation.
 * limits: NULL: LS_CODEC_LIMITS.
 * Errors: LS_EPROTO malformed, cut short, bytes left over, an ext type;
 *         LS_ELIMIT; LS_EINVAL max_depth over 32. */
LS_MUST_USE LS_API int ls_codec_check(const void *data, size_t size,
                                      const struct ls_codec_limits *limits);

/* Read exactly one value from `size` bytes.
 * out:    own; NULL after an error; give it to ls_document_destroy().
 * data:   copied.
 * limits: NULL: LS_CODEC_LIMITS.
 * Errors: as ls_codec_check(); LS_EPROTO also: a string that is not UTF-8, a
 *         map key that is not a string, contains a NUL or occurs twice;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_document_read(ls_document **out, const void *data,
                                        size_t size,
                                        const struct ls_codec_limits *limits);
LS_API void ls_document_destroy(ls_document **document);
LS_API const ls_value *ls_document_root(const ls_document *document);

/* All of these accept NULL, for a missing value, and return LS_ENOENT (or NIL,
 * 0, NULL) for it, so that look-ups chain without a check each. */
LS_API enum ls_value_type ls_value_type(const ls_value *value);
/* Errors: LS_ENOENT value is NULL; LS_EPROTO another type, or a number that
 *         does not fit; the text names what was found. */
LS_MUST_USE LS_API int ls_value_bool(const ls_value *value, bool *out);
LS_MUST_USE LS_API int ls_value_int(const ls_value *value, int64_t *out);
LS_MUST_USE LS_API int ls_value_uint(const ls_value *value, uint64_t *out);
/* Accepts integers too, rounded beyond 2^53. */
LS_MUST_USE LS_API int ls_value_double(const ls_value *value, double *out);
/* text: borrow; NUL-terminated (a string with a NUL inside is LS_EPROTO). */
LS_MUST_USE LS_API int ls_value_string(const ls_value *value,
                                       const char **text);
/* data: borrow; may be NULL when size is 0. */
LS_MUST_USE LS_API int ls_value_binary(const ls_value *value, const void **data,
                                       size_t *size);
/* Copies a binary of doubles or floats into values[n]; exactly n of them, or
 * LS_EPROTO. ls_value_size() of the binary is its size in bytes. */
LS_MUST_USE LS_API int ls_value_doubles(const ls_value *value, double *values,
                                        size_t n);
LS_MUST_USE LS_API int ls_value_floats(const ls_value *value, float *values,
                                       size_t n);
/* A generator that was written so; out is written on success only.
 * Errors: those of ls_value_uint(); LS_EPROTO it has another form, or is none:
 *         see ls_rng_is_valid(). */
LS_MUST_USE LS_API int ls_value_rng(const ls_value *value, struct ls_rng *out);
/* Items of an array, pairs of a map, bytes of a string or binary; else 0. */
LS_API size_t ls_value_size(const ls_value *value);
/* Item `index` of an array, or the value of pair `index` of a map; NULL if
 * there is none. */
LS_API const ls_value *ls_value_at(const ls_value *value, size_t index);
/* The key of pair `index` of a map; NULL if there is none. */
LS_API const char *ls_value_key(const ls_value *value, size_t index);
/* The value under `key` of a map; NULL if there is none. */
LS_API const ls_value *ls_value_get(const ls_value *value, const char *key);

/* Print a value as JSON into text[size], cut (after a whole character) but
 * always NUL-terminated. A binary prints as {"binary":bytes}, numbers that JSON
 * lacks as "NaN", "Infinity" or "-Infinity". Returns the length it needs. */
LS_API size_t ls_value_print(const ls_value *value, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
