/* safe_name.h - names that peers give and that may become names of files.
 *
 * Thread: any. */
#ifndef LOCKSTEP_SAFE_NAME_H
#define LOCKSTEP_SAFE_NAME_H

#include <stdbool.h>

#include "lockstep/status.h"

#define SAFE_NAME_MAX 63

/* Whether it is 1 to SAFE_NAME_MAX bytes of [A-Za-z0-9._@-] that do not begin
 * with '.' and nowhere have "..". NULL is not a name. */
bool safe_name_is(const char *name);
/* The same, as the check of a field (lockstep/record.h). Errors: LS_EPROTO. */
LS_MUST_USE int safe_name_check(const void *name);

#endif
