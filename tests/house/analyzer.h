/* analyzer.h - what clang-tidy must know and cannot see: that these return the
 * status they were given, or an error. Included before each file by lint.sh. */
#ifndef LOCKSTEP_ANALYZER_H
#define LOCKSTEP_ANALYZER_H

#include "lockstep/status.h"

#define ls_error(status, ...)    (ls_error((status), __VA_ARGS__), (status))
#define ls_error_at(status, ...) (ls_error_at((status), __VA_ARGS__), (status))
#define ls_error_from(os_errno, what)                                          \
    (ls_error_from((os_errno), (what)), LS_EIO)

#endif
