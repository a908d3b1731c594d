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

#endif
