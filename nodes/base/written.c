#include "written.h"

#include <stdio.h>

int written_replace(const char *path, const struct ls_file_part *parts,
                    size_t n, bool durable)
{
    char unique[LS_FILE_UNIQUE_MAX], temporary[LS_PATH_MAX];
    char target[LS_PATH_MAX];
    ls_file_unique(unique);
    const int length =
        snprintf(temporary, sizeof temporary, "%s.part@%s", path, unique);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return ls_error(LS_ELIMIT, "%.80s… has too long a name", path);
    if (ls_file_read_link(path, target) == LS_OK)
        return ls_error(LS_EEXIST,
                        "%s is a link, which is not replaced: name a file",
                        path);
    return ls_file_replace(path, temporary, parts, n, durable);
}
