/* buffer.h - bytes that grow, and end as a file. */
#ifndef LOCKSTEP_PROFILE_BUFFER_H
#define LOCKSTEP_PROFILE_BUFFER_H

#include <stddef.h>

#include "lockstep/status.h"

/* All zero: empty. After LS_ENOMEM nothing is added any more. */
struct buffer {
    unsigned char *bytes; /* own; free() it */
    size_t n, capacity;
    int status;
};

void buffer_add(struct buffer *to, const void *data, size_t size);
void buffer_text(struct buffer *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Make it the contents of `path`, and empty it, whatever is returned. */
LS_MUST_USE int buffer_write(struct buffer *from, const char *path);

#endif
