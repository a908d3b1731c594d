#include "safe_name.h"

#include <string.h>

bool safe_name_is(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789._@-";
    if (name == NULL || name[0] == '\0' || name[0] == '.')
        return false;
    const size_t length = strlen(name);
    return length <= SAFE_NAME_MAX && strspn(name, allowed) == length &&
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
