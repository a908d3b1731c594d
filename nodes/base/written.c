#include "written.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuse_link(const char *path)
{
    char target[LS_PATH_MAX];
    return ls_file_read_link(path, target) == LS_OK
               ? ls_error(LS_EEXIST,
                          "%s is a link, which is not replaced: name a file",
                          path)
               : LS_OK;
}

/* The user knows `path`, and not what was to become it. */
static int name_path(int status, const char *path, const char *temporary)
{
    const char *text = ls_error_text(), *at = strstr(text, temporary);
    return at == NULL ? status
                      : ls_error(status, "%.*s%s%s", (int)(at - text), text,
                                 path, at + strlen(temporary));
}

int written_replace(const char *path, const struct ls_file_part *parts,
                    size_t n, bool durable)
{
    char unique[LS_FILE_UNIQUE_MAX], temporary[LS_PATH_MAX];
    ls_file_unique(unique);
    const int length =
        snprintf(temporary, sizeof temporary, "%s.part@%s", path, unique);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return ls_error(LS_ELIMIT, "%.80s… has too long a name", path);
    int status = refuse_link(path);
    if (status != LS_OK)
        return status;
    status = ls_file_replace(path, temporary, parts, n, durable);
    return status == LS_OK ? LS_OK : name_path(status, path, temporary);
}

static int check_folder(const char *path)
{
    char folder[LS_PATH_MAX], text[LS_PATH_MAX + 32];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof folder, "%.*s",
                   slash != NULL ? (int)(slash + 1 - path) : 1,
                   slash != NULL ? path : ".");
    (void)snprintf(text, sizeof text, "writing %.*s", LS_PATH_MAX - 1, path);
    if (!ls_file_exists(folder))
        return ls_error(LS_ENOENT, "%s: its folder does not exist", text);
    return access(folder, W_OK | X_OK) == 0 ? LS_OK
                                            : ls_error_from(errno, text);
}

int written_check_open(ls_file *file, const char *path, const char *what,
                       bool (*ours)(const void *self,
                                    const unsigned char *begin, size_t size),
                       const void *self)
{
    unsigned char begin[WRITTEN_BEGIN];
    uint64_t size = 0;
    int status = ls_file_size(file, &size);
    if (status != LS_OK || size == 0)
        return status;
    size = size < sizeof begin ? size : sizeof begin;
    status = ls_file_read_at(file, begin, (size_t)size, 0);
    if (status != LS_OK || ours(self, begin, (size_t)size))
        return status;
    return ls_error(LS_EEXIST, "%s exists, and is not %s: name another file",
                    path, what);
}

static bool is_of(const void *self, const unsigned char *begin, size_t n)
{
    const struct written_form *const form = self;
    for (size_t i = 0; i < n && form->begins[i] != '\0'; i++)
        if (form->begins[i] != '?' && form->begins[i] != (char)begin[i])
            return false;
    return true;
}

int written_check(const char *path, const struct written_form *form)
{
    ls_file *file = NULL;
    int status = ls_file_open(&file, path, 0);
    if (status == LS_ENOENT)
        return LS_OK;
    if (status == LS_OK)
        status = written_check_open(file, path, form->what, is_of, form);
    (void)ls_file_close(&file);
    return status;
}

int written_check_replaced(const char *path, const struct written_form *form)
{
    int status = refuse_link(path);
    if (status == LS_OK)
        status = check_folder(path);
    return status == LS_OK ? written_check(path, form) : status;
}
