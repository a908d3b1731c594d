/* json.h - values written with ls_writer: printed as lines of JSON, and read
 * from it. */
#ifndef LOCKSTEP_JSON_H
#define LOCKSTEP_JSON_H

#include "lockstep/codec.h"

/* Print the one value that was written on stdout, as one whole line, and flush
 * it. Whether it got there output_flush() knows.
 * Errors: those of ls_writer_print(). */
LS_MUST_USE int json_print_line(ls_writer *value);

/* Read a map in JSON; what YAML has beyond it is taken as well.
 * out:    that one value is written.
 * Errors: LS_EINVAL it is none, with the place and a caret; LS_ELIMIT;
 *         LS_ENOMEM. */
LS_MUST_USE int json_read(const char *text, ls_writer *out);

/* A key and its value, inside a map. A text may be of any origin, as of
 * ls_write_any_string(). A number that is not finite is null. */
void json_string(ls_writer *out, const char *key, const char *value);
void json_int(ls_writer *out, const char *key, int64_t value);
void json_double(ls_writer *out, const char *key, double value);
void json_bool(ls_writer *out, const char *key, bool value);

/* A key, and under it the one value that these bytes of msgpack are, of numbers
 * and texts; null when they are none. A number that is not finite is null. */
void json_msgpack(ls_writer *out, const char *key, const void *data,
                  size_t size);

#endif
