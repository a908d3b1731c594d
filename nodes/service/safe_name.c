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
