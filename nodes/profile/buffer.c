#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "written.h"

static bool grow(struct buffer *to, size_t more)
{
    if (to->status != LS_OK || more <= to->capacity - to->n)
        return to->status == LS_OK;
    const size_t capacity = 2 * to->capacity + more + 4096;
    unsigned char *const bytes = realloc(to->bytes, capacity);
    if (bytes == NULL) {
        to->status = ls_error(LS_ENOMEM, "no memory for a file");
        return false;
    }
    to->bytes = bytes;
    to->capacity = capacity;
    return true;
}

void buffer_add(struct buffer *to, const void *data, size_t size)
{
    if (size == 0 || !grow(to, size))
        return;
    memcpy(to->bytes + to->n, data, size);
    to->n += size;
}

void buffer_text(struct buffer *to, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        buffer_add(to, text,
                   (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

int buffer_write(struct buffer *from, const char *path)
{
    const struct ls_file_part part = {from->bytes, from->n};
    int status = from->status;
    if (status == LS_OK)
        status = written_replace(path, &part, 1, false);
    free(from->bytes);
    *from = (struct buffer){.n = 0};
    return status;
}
