/* text_pieces.h - texts that are put together of pieces, and cut where they
 * must.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_BASE_TEXT_PIECES_H
#define LOCKSTEP_BASE_TEXT_PIECES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "lockstep/status.h"

/* One more behind `used` bytes of them. Returns what all of them need, without
 * the NUL. */
static inline size_t LS_PRINTF(4, 0)
    text_piece(char *at, size_t size, size_t used, const char *format,
               va_list arguments)
{
    const size_t left = used < size ? size - used : 0;
    const int n =
        vsnprintf(left > 0 ? at + used : NULL, left, format, arguments);
    return used + (n > 0 ? (size_t)n : 0);
}

/* Of a fixed size; it counts on when it is full. */
struct text {
    char *at;
    size_t size;
    size_t used; /* what all of it needs, without the NUL */
};

static inline void LS_PRINTF(2, 3)
    text_add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->used =
        text_piece(text->at, text->size, text->used, format, arguments);
    va_end(arguments);
}

/* The text of an error. */
struct line {
    char text[LS_ERROR_TEXT_MAX];
    size_t size; /* what all of it needs */
};

static inline void LS_PRINTF(2, 3)
    line_add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    line->size = text_piece(line->text, sizeof line->text, line->size, format,
                            arguments);
    va_end(arguments);
}

#endif
