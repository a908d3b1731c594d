/* written.h - a file that the user has named for a result.
 *
 * Thread: any. */
#ifndef LOCKSTEP_WRITTEN_H
#define LOCKSTEP_WRITTEN_H

#include <stdbool.h>

#include "lockstep/file.h"

/* Make `path` contain these parts, as ls_file_replace() does. What is there and
 * no file of its own is not replaced: a link, such as /dev/stdout, would be
 * gone for all others. Errors: LS_EEXIST it is a link; LS_ELIMIT its name is
 * too long; those of ls_file_replace(). */
LS_MUST_USE int written_replace(const char *path,
                                const struct ls_file_part *parts, size_t n,
                                bool durable);

/* What is written, for people, and how it begins: '?' is any byte. */
struct written_form {
    const char *what, *begins;
};

/* Whether what is at `path` may make room for a result: it is empty, or begins
 * as `form` does. Else this program has not written it. No file is fine.
 * Errors: LS_EEXIST that; LS_EIO it cannot be read, or is no regular file. */
LS_MUST_USE int written_check(const char *path,
                              const struct written_form *form);
/* The same of an open file, and of what the caller knows. what: for people.
 * ours: whether its first bytes, 1 to WRITTEN_BEGIN of them, are of this
 * program. */
enum { WRITTEN_BEGIN = 128 };
LS_MUST_USE int written_check_open(
    ls_file *file, const char *path, const char *what,
    bool (*ours)(const void *self, const unsigned char *begin, size_t size),
    const void *self);
/* The same before the work for what written_replace() is to write. Errors also:
 * LS_EEXIST it is a link; LS_ENOENT there is no such folder; LS_EIO nothing can
 * be written there. */
LS_MUST_USE int written_check_replaced(const char *path,
                                       const struct written_form *form);

#endif
