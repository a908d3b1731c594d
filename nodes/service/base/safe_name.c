#include "safe_name.h"

#include <string.h>

#include "plain_name.h"

bool safe_name_is(const char *name)
{
    return plain_name_is(name, SAFE_NAME_MAX, "._@-") && name[0] != '.' &&
           strstr(name, "..") == NULL;
}

int safe_name_check(const void *name)
{
    return safe_name_is(name)
               ? LS_OK
               : ls_error(LS_EPROTO,
                          "it is not a name of 1 to %d of [A-Za-z0-9._@-]",
                          SAFE_NAME_MAX);
}
