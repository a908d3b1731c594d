#include "lockstep/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk_ops.h"
#include "runtime_disk.h"

struct ls_file {
    struct disk_handle handle;
    struct disk *disk; /* borrow */
    char path[];
};

struct disk *disk_current(void)
{
    void *disk = ls_runtime_disk(ls_runtime_current());
    return disk != NULL ? disk : disk_os();
}

int disk_error(int os_errno, const char *what, const char *path)
{
    char text[LS_PATH_MAX + 64];
    (void)snprintf(text, sizeof text, "%s %s", what, path);
    (void)ls_error_from(os_errno, text);
    return os_errno == ENOMEM ? LS_ENOMEM : LS_EIO;
}

/* Parts of a file -------------------------------------------------------- */

static int open_failed(int failed, const char *path, unsigned flags)
{
    if (failed == ENOENT && (flags & LS_FILE_CREATE) != 0)
        return ls_error(LS_ENOENT, "making %s: its folder does not exist",
                        path);
    if (failed == ENOENT)
        return ls_error(LS_ENOENT, "there is no %s", path);
    if (failed == EINVAL)
        return ls_error(LS_EIO, "opening %s: it is not a regular file", path);
    return disk_error(failed, "opening", path);
}

static int check_path(const char *path)
{
    return strlen(path) < LS_PATH_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT, "the file %.80s… has too long a path",
                          path);
}

static int open_file(ls_file **out, const char *path, unsigned flags,
                     bool *other)
{
    *other = false;
    const int status = check_path(path);
    if (status != LS_OK)
        return status;
    if ((flags & (LS_FILE_CREATE | LS_FILE_EMPTY)) != 0 &&
        (flags & LS_FILE_WRITE) == 0)
        return ls_error(LS_EINVAL,
                        "opening %s: it is created or emptied only with "
                        "LS_FILE_WRITE",
                        path);
    const size_t size = strlen(path) + 1;
    ls_file *file = malloc(sizeof *file + size);
    if (file == NULL)
        return ls_error(LS_ENOMEM, "opening %s", path);
    memcpy(file->path, path, size);
    file->disk = disk_current();
    file->handle.ops = file->disk->ops;
    const int failed =
        file->disk->ops->open(file->disk, &file->handle, path, flags);
    if (failed != 0) {
        free(file);
        *other = failed == EINVAL;
        return open_failed(failed, path, flags);
    }
    *out = file;
    return LS_OK;
}

int ls_file_open(ls_file **out, const char *path, unsigned flags)
{
    *out = NULL;
    bool other;
    return open_file(out, path, flags, &other);
}

int file_open_to_read(ls_file **out, const char *path, bool *other)
{
    *out = NULL;
    return open_file(out, path, 0, other);
}

int ls_file_close(ls_file **gone)
{
    ls_file *file = gone == NULL ? NULL : *gone;
    if (file == NULL)
        return LS_OK;
    *gone = NULL;
    const int failed = file->handle.ops->close(&file->handle);
    const int status =
        failed == 0 ? LS_OK : disk_error(failed, "writing", file->path);
    free(file);
    return status;
}

int ls_file_size(ls_file *file, uint64_t *out)
{
    const int failed = file->handle.ops->size(&file->handle, out);
    return failed == 0 ? LS_OK : disk_error(failed, "reading", file->path);
}

int ls_file_read_at(ls_file *file, void *data, size_t size, uint64_t offset)
{
    char *at = data;
    while (size > 0) {
        size_t n = 0;
        const int failed =
            file->handle.ops->read_at(&file->handle, at, size, offset, &n);
        if (failed != 0)
            return disk_error(failed, "reading", file->path);
        if (n == 0)
            return ls_error(LS_EIO, "reading %s: it was cut short", file->path);
        at += n;
        offset += n;
        size -= n;
    }
    return LS_OK;
}

int ls_file_write_at(ls_file *file, const void *data, size_t size,
                     uint64_t offset)
{
    const char *at = data;
    while (size > 0) {
        size_t n = 0;
        const int failed =
            file->handle.ops->write_at(&file->handle, at, size, offset, &n);
        if (failed != 0)
            return disk_error(failed, "writing", file->path);
        at += n;
        offset += n;
        size -= n;
    }
    return LS_OK;
}

int ls_file_cut(ls_file *file, uint64_t size)
{
    const int failed = file->handle.ops->cut(&file->handle, size);
    return failed == 0 ? LS_OK : disk_error(failed, "cutting", file->path);
}

int ls_file_sync(ls_file *file)
{
    const int failed = file->handle.ops->sync(&file->handle);
    return failed == 0 ? LS_OK : disk_error(failed, "writing", file->path);
}

int ls_file_lock(ls_file *file, bool shared)
{
    const int failed = file->handle.ops->lock(&file->handle, shared);
    if (failed == EWOULDBLOCK)
        return ls_error(LS_EAGAIN, "%s: somebody else has locked it",
                        file->path);
    return failed == 0 ? LS_OK : disk_error(failed, "locking", file->path);
}

bool ls_file_is_named(ls_file *file)
{
    return file->handle.ops->is_named(&file->handle, file->disk, file->path);
}

/* Whole files ------------------------------------------------------------ */

/* path: what it will be, for those who read an error. */
static int write_temporary(const char *path, const char *temporary,
                           const struct ls_file_part *parts, size_t n,
                           bool durable)
{
    ls_file *file;
    uint64_t at = 0;
    int status = ls_file_open(&file, temporary,
                              LS_FILE_WRITE | LS_FILE_CREATE | LS_FILE_EMPTY);
    if (status == LS_ENOENT)
        return ls_error(LS_EIO, "writing %s: the folder of %s does not exist",
                        path, temporary);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        status = ls_file_write_at(file, parts[i].data, parts[i].size, at);
        at += parts[i].size;
    }
    if (status == LS_OK && durable)
        status = ls_file_sync(file);
    const int closed = ls_file_close(&file);
    return status == LS_OK ? closed : status;
}

static int rename_error(int failed, const char *path)
{
    if (failed == EINVAL)
        return ls_error(LS_EIO, "replacing %s: it is not a regular file", path);
    return failed == 0 ? LS_OK : disk_error(failed, "renaming to", path);
}

int ls_file_replace(const char *path, const char *temporary,
                    const struct ls_file_part *parts, size_t n, bool durable)
{
    struct disk *disk = disk_current();
    int status = check_path(path);
    if (status == LS_OK)
        status = check_path(temporary);
    if (status != LS_OK)
        return status;
    status = write_temporary(path, temporary, parts, n, durable);
    if (status == LS_OK)
        status = rename_error(disk->ops->rename(disk, temporary, path), path);
    if (status != LS_OK) {
        (void)disk->ops->remove(disk, temporary);
        return status;
    }
    return durable ? ls_file_sync_name(path) : LS_OK;
}

static int read_open(ls_file *file, size_t most, void **data, size_t *size)
{
    uint64_t found = 0;
    int status = ls_file_size(file, &found);
    if (status != LS_OK)
        return status;
    if (found > most)
        return ls_error(LS_ELIMIT,
                        "reading %s: %llu bytes, expected at most %zu",
                        file->path, (unsigned long long)found, most);
    char *bytes = malloc(found > 0 ? (size_t)found : 1);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "reading %s, %llu bytes", file->path,
                        (unsigned long long)found);
    status = ls_file_read_at(file, bytes, (size_t)found, 0);
    if (status != LS_OK) {
        free(bytes);
        return status;
    }
    *data = bytes;
    *size = (size_t)found;
    return LS_OK;
}

int ls_file_read(const char *path, size_t most, void **data, size_t *size)
{
    ls_file *file;
    int status = ls_file_open(&file, path, 0);
    if (status != LS_OK)
        return status;
    status = read_open(file, most, data, size);
    (void)ls_file_close(&file); /* nothing was written */
    return status;
}
