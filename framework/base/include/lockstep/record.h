/* record.h - a table that says how a struct is written, read and printed.
 *
 * A message, a report, an entry of a journal or the context of a task is a
 * struct in memory and a msgpack map on the wire. Its table has a line for each
 * field: the key, the type, its offset in the struct, its range, and when it
 * may be omitted. The table drives writing (in the order of the table, counting
 * the pairs), strict reading, and printing; JSON is ls_value_print() of the
 * written value.
 *
 *     struct ask { char name[64]; int64_t version; };
 *     static const struct ls_field fields[] = {
 *         {"name", LS_FIELD_CHARS, offsetof(struct ask, name), .size = 64},
 *         {"version", LS_FIELD_INT, offsetof(struct ask, version),
 *          .least = -1, .most = 1000},
 *     };
 *     static const struct ls_record ask = {"an ask", sizeof(struct ask),
 *                                          fields, 2};
 *
 * Reading trusts nothing: a value of another type, a number out of its range,
 * text too long for its array, a missing field and a duplicate key are
 * LS_EPROTO, and the text says which field of which record, what was expected
 * and what was found: "an ask: version: it is 2000, and must be -1 to 1000".
 * Thread: any; serial for one struct. */
#ifndef LOCKSTEP_RECORD_H
#define LOCKSTEP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/codec.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ls_bytes { /* LS_FIELD_BYTES; own */
    void *data;
    size_t size;
};

struct ls_numbers { /* LS_FIELD_NUMBERS; own */
    int64_t *values;
    size_t n;
};

struct ls_items { /* LS_FIELD_ITEMS: a list of byte strings; own */
    struct ls_bytes *items;
    size_t n;
};

/* The C type of a field, and its value on the wire. */
enum ls_field_type {
    LS_FIELD_BOOL,    /* bool */
    LS_FIELD_INT,     /* int64_t; .least, .most */
    LS_FIELD_DOUBLE,  /* double, or an integer when read; .low, .high, .nan */
    LS_FIELD_TEXT,    /* char *, own; NULL is nil */
    LS_FIELD_BYTES,   /* struct ls_bytes, a binary; .most bytes */
    LS_FIELD_NUMBERS, /* struct ls_numbers, an array of integers */
    LS_FIELD_ITEMS,   /* struct ls_items, an array of binaries */
    LS_FIELD_UINT,    /* uint64_t; .least, .most */
    LS_FIELD_UINT32,  /* uint32_t; .least, .most */
    LS_FIELD_CHARS,   /* char[size], a string; .size */
    LS_FIELD_STRING,  /* const char *, borrow from the document; NULL is nil */
    LS_FIELD_BLOCK,   /* unsigned char[size], a binary; .size, .count */
    LS_FIELD_RECORD,  /* a nested struct, a map; .record */
    LS_FIELD_LIST,    /* an array in the struct, or own; .item, .count, .least,
                       * .most, .own */
    LS_FIELD_HAS,     /* bool, not on the wire: whether the map has this key,
                       * which another line describes */
    LS_FIELD_OTHER    /* whatever .other writes and reads */
};

/* When a field is on the wire. A field that may be missing, and is, gets its
 * value after ls_field_reset(). */
enum ls_presence {
    LS_ALWAYS,    /* always; it is an error if it is missing */
    LS_MAY_MISS,  /* always written; an earlier version may lack it */
    LS_IF_SET,    /* omitted if it is empty, 0 or false */
    LS_IF_FLAG,   /* exactly if the byte at .flag is not 0: that of a bool, or
                   * the first of a text; its line comes first in the table */
    LS_IF_NO_FLAG /* exactly if that byte is 0 */
};

struct ls_record;

/* A value that only its owner can read. */
struct ls_field_other {
    size_t size; /* in the struct; the value owns nothing */
    void (*write)(const void *at, ls_writer *out);
    /* Errors: LS_EPROTO, with a text; LS_ENOMEM. */
    int (*read)(void *at, const ls_value *value);
};

/* A line of a table. Everything not given is 0. */
struct ls_field {
    const char *name; /* the key */
    enum ls_field_type type;
    size_t offset;   /* offsetof() in the struct */
    bool keep;       /* of a context: survives renewal */
    double fallback; /* value of a missing bool, int or double */
    enum ls_presence presence;
    size_t flag;         /* offsetof() */
    int64_t least, most; /* of integers, and counts; both 0: any */
    double low, high;    /* of a double; both 0: any, NaN too */
    bool nan;            /* NaN is nil on the wire; else it is a double */
    size_t size;         /* of the array in the struct, in bytes */
    size_t count;        /* offsetof() the size_t that says how much is used */
    bool own;            /* the list is a pointer to allocated memory */
    const struct ls_record *record;
    const struct ls_field *item; /* its name and offset are ignored */
    const struct ls_field_other *other;
    /* An additional check, or NULL. Called with the field's address; returns
     * LS_OK, or ls_error(LS_EPROTO, …). */
    int (*check)(const void *at);
};

/* Static, and borrowed by every call. */
struct ls_record {
    const char *name; /* what errors begin with: "an ask" */
    size_t size;      /* sizeof the struct */
    const struct ls_field *fields;
    size_t n_fields;
    /* true: unknown keys are ignored, so that another version may have more.
     * false: they are errors, for records whose two ends always have the same
     * version. */
    bool open;
    /* A check across fields, as a field's check; or NULL. */
    int (*check)(const void *data);
};

/* A line of a context: LS_FIELD(struct mine, env_step, LS_FIELD_INT, true) */
#define LS_FIELD(struct_type, member, field_type, field_keep)                  \
    {                                                                          \
        "" #member, (field_type), offsetof(struct_type, member), (field_keep), \
            0.0, LS_ALWAYS, 0, 0, 0, 0.0, 0.0, false, 0, 0, false, NULL, NULL, \
            NULL, NULL                                                         \
    }

/* Write it as one map; the writer keeps any error. */
LS_API void ls_record_write(const struct ls_record *record, const void *data,
                            ls_writer *out);
/* Write only the pairs, into a map that was begun (ls_write_map_begin()).
 * names: those to write, ended by NULL; or NULL: all. */
LS_API void ls_record_write_pairs(const struct ls_record *record,
                                  const void *data, const char *const *names,
                                  ls_writer *out);

/* Read a map.
 * out:    written on success only, and as a whole: clear what it owned before.
 *         Give it to ls_record_clear() if it owns anything.
 * map:    a string that the struct borrows is valid as long as its document.
 * Errors: LS_EPROTO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_record_read(const struct ls_record *record, void *out,
                                      const ls_value *map);
/* The same, into a struct that has more than the fields: replaces each field;
 * after an error some are replaced, and the rest is unchanged. */
LS_MUST_USE LS_API int ls_record_read_into(const struct ls_record *record,
                                           void *data, const ls_value *map);
/* ls_record_read() of bytes. Not for records with borrowed strings.
 * limits: NULL: LS_CODEC_LIMITS.
 * Errors: LS_EPROTO, also if it is not msgpack, or over a limit; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_record_decode(const struct ls_record *record,
                                        void *out, const void *bytes,
                                        size_t size,
                                        const struct ls_codec_limits *limits);
/* Free what it owns; set every field to its value when missing. */
LS_API void ls_record_clear(const struct ls_record *record, void *data);

/* Print "name=value" pairs into text[size], cut but NUL-terminated. Returns the
 * length it needs. */
LS_API size_t ls_record_print(const struct ls_record *record, const void *data,
                              char *text, size_t size);

/* For one field of the struct at `data`. Its size there, in bytes; 0: there is
 * no such type. */
LS_API size_t ls_field_size(const struct ls_field *field);
/* Its value, without its key. */
LS_API void ls_field_write(const struct ls_field *field, const void *data,
                           ls_writer *out);
/* Replace it. After an error it is unchanged, unless it is a record or a list,
 * or its check has refused it.
 * Errors: LS_EPROTO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_field_read(const struct ls_field *field, void *data,
                                     const ls_value *value);
/* Free what it owns; set it to its fallback, else to 0, empty or NULL. */
LS_API void ls_field_reset(const struct ls_field *field, void *data);

/* Set fields that own memory; the old value is freed, the new one is copied.
 * Errors: LS_ENOMEM; the field is unchanged. */
LS_MUST_USE LS_API int ls_text_set(char **field, const char *text);
LS_MUST_USE LS_API int ls_bytes_set(struct ls_bytes *field, const void *data,
                                    size_t size);
LS_MUST_USE LS_API int ls_numbers_append(struct ls_numbers *field,
                                         int64_t value);
LS_MUST_USE LS_API int ls_items_append(struct ls_items *field, const void *data,
                                       size_t size);
LS_API void ls_bytes_clear(struct ls_bytes *field);
/* To a copy of what was written. Errors: also those of ls_writer_bytes(). */
LS_MUST_USE LS_API int ls_bytes_set_written(struct ls_bytes *field,
                                            ls_writer *writer);
LS_API void ls_numbers_clear(struct ls_numbers *field);
LS_API void ls_items_clear(struct ls_items *field);

#ifdef __cplusplus
}
#endif

#endif
