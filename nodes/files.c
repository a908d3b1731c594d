#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int files_error(int os_errno, const char *what, const char *path)
{
    char text[FILES_PATH_MAX + 64];
    (void)snprintf(text, sizeof text, "%s %s", what, path);
    (void)ls_error_from(os_errno, text);
    return LS_EIO;
}

int files_make_folders(const char *folder)
{
    char path[FILES_PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s", folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                        folder);
    for (char *at = path + (path[0] != '\0');; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        const char end = *at;
        *at = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return files_error(errno, "making the folder", path);
        if (end == '\0')
            return LS_OK;
        *at = end;
    }
}

int files_sync_folder_of(const char *path)
{
    char folder[FILES_PATH_MAX + 16];
    (void)snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        (void)snprintf(folder, sizeof folder, ".");
    else
        slash[slash == folder] = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return files_error(errno, "opening", folder);
    const int failed = fsync(fd) < 0 ? errno : 0;
    (void)close(fd);
    return failed == 0 || failed == EINVAL /* some file systems have no such */
               ? LS_OK
               : files_error(failed, "writing", folder);
}

int files_write(int fd, const struct files_part *part, const char *path)
{
    const char *at = part->data;
    size_t left = part->size;
    while (left > 0) {
        const ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return files_error(errno, "writing", path);
        at += n;
        left -= (size_t)n;
    }
    return LS_OK;
}

static int write_temporary(const char *temporary,
                           const struct files_part *parts, size_t n,
                           bool durable)
{
    const int fd =
        open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return files_error(errno, "writing", temporary);
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = files_write(fd, &parts[i], temporary);
    if (status == LS_OK && durable && fsync(fd) < 0)
        status = files_error(errno, "writing", temporary);
    if (close(fd) < 0 && status == LS_OK)
        status = files_error(errno, "writing", temporary);
    return status;
}

int files_replace(const char *path, const char *temporary,
                  const struct files_part *parts, size_t n, bool durable)
{
    int status = write_temporary(temporary, parts, n, durable);
    if (status == LS_OK && rename(temporary, path) < 0)
        status = files_error(errno, "renaming to", path);
    if (status != LS_OK) {
        (void)unlink(temporary);
        return status;
    }
    return durable ? files_sync_folder_of(path) : LS_OK;
}

/* Its bytes, `size` of them as the file system says. */
static int read_open(int fd, const char *path, size_t size, void **data)
{
    char *bytes = malloc(size > 0 ? size : 1);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "reading %s, %zu bytes", path, size);
    size_t used = 0;
    while (used < size) {
        const ssize_t n = read(fd, bytes + used, size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            const int failed = n < 0 ? errno : 0;
            free(bytes);
            return failed != 0
                       ? files_error(failed, "reading", path)
                       : ls_error(LS_EIO, "reading %s: it was cut short", path);
        }
        used += (size_t)n;
    }
    *data = bytes;
    return LS_OK;
}

int files_read(const char *path, size_t most, void **data, size_t *size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return ls_error(LS_ENOENT, "there is no %s", path);
    if (fd < 0)
        return files_error(errno, "reading", path);
    struct stat found;
    int status;
    if (fstat(fd, &found) < 0)
        status = files_error(errno, "reading", path);
    else if (!S_ISREG(found.st_mode))
        status = ls_error(LS_EIO, "reading %s: it is no regular file", path);
    else if ((uintmax_t)found.st_size > most)
        status = ls_error(LS_ELIMIT,
                          "reading %s: %jd bytes, expected at most "
                          "%zu",
                          path, (intmax_t)found.st_size, most);
    else
        status = read_open(fd, path, (size_t)found.st_size, data);
    (void)close(fd);
    if (status == LS_OK)
        *size = (size_t)found.st_size;
    return status;
}
