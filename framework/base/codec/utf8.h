/* utf8.h - whether bytes are text.
 *
 * Source: The Unicode Standard 15.0, table 3-7: without surrogates, and
 * without longer forms than needed. */
#ifndef LOCKSTEP_UTF8_H
#define LOCKSTEP_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* How many of the `size` bytes make up the first character, 1 to 4; 0 when
 * they do not begin with a valid one. */
size_t ls_utf8_character(const void *bytes, size_t size);

/* Whether all of the bytes are valid characters. */
bool ls_utf8_valid(const void *bytes, size_t size);

#endif
