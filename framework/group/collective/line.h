/* line.h - the text of an error, put together of pieces and cut where it must.
 * Thread: serial. */
#ifndef GROUP_LINE_H
#define GROUP_LINE_H

#include <stdarg.h>
#include <stdio.h>

#include "lockstep/status.h"

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
