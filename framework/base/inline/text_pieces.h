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

/* Of a fixed size; it counts on when it is full. */
struct text {
    char *at;
    size_t size;
    size_t used; /* what all of it needs, without the NUL */
};

static inline void LS_PRINTF(2, 3)
    text_add(struct text *text, const char *format, ...)
{
    const size_t left = text->used < text->size ? text->size - text->used : 0;
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(left > 0 ? text->at + text->used : NULL, left,
                            format, arguments);
    va_end(arguments);
    text->used += n > 0 ? (size_t)n : 0;
}

/* The text of an error. */
struct line {
    char text[LS_ERROR_TEXT_MAX];
    size_t size;
};

static inline void LS_PRINTF(2, 3)
    line_add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(line->text + line->size,
                            sizeof line->text - line->size, format, arguments);
    va_end(arguments);
    line->size += n > 0 ? (size_t)n : 0;
    if (line->size >= sizeof line->text)
        line->size = sizeof line->text - 1;
}

#endif
