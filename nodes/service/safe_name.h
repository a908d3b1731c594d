/* safe_name.h - names that peers give and that may become names of files.
 *
 * Thread: any. */
#ifndef LOCKSTEP_SAFE_NAME_H
#define LOCKSTEP_SAFE_NAME_H

#include <stdbool.h>

#define SAFE_NAME_MAX 63

/* Whether it is 1 to SAFE_NAME_MAX bytes of [A-Za-z0-9._@-] that do not begin
 * with '.' and nowhere have "..". NULL is no name. */
bool safe_name_is(const char *name);

#endif
