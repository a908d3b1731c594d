/* The names of files: made, changed, taken away, listed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk_ops.h"

static int name_error(int failed, const char *what, const char *path)
{
    if (failed == ENOENT)
        return ls_error(LS_ENOENT, "%s %s: there is no such thing", what, path);
    if (failed == EEXIST || failed == ENOTEMPTY) {
        (void)disk_error(failed, what, path);
        return LS_EEXIST;
    }
    return disk_error(failed, what, path);
}

int ls_file_path(char *out, size_t size, const char *folder, const char *name)
{
    const int n = snprintf(out, size, "%s/%s", folder, name);
    return n >= 0 && (size_t)n < size
               ? LS_OK
               : ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                          folder);
}

bool ls_file_exists(const char *path)
{
    struct disk *disk = disk_current();
    return disk->ops->exists(disk, path);
}

int ls_file_rename(const char *from, const char *to)
{
    struct disk *disk = disk_current();
    const int failed = disk->ops->rename(disk, from, to);
    if (failed == EINVAL)
        return ls_error(LS_EIO,
                        "renaming %s to %s: there is what is no regular "
                        "file",
                        from, to);
    if (failed == ENOENT)
        return ls_error(LS_ENOENT,
                        "renaming %s to %s: there is no such file, or no such "
                        "folder",
                        from, to);
    return failed == 0 ? LS_OK : name_error(failed, "renaming", from);
}

int ls_file_remove(const char *path)
{
    struct disk *disk = disk_current();
    const int failed = disk->ops->remove(disk, path);
    return failed == 0 ? LS_OK : name_error(failed, "removing", path);
}

int ls_file_symlink(const char *target, const char *path)
{
    struct disk *disk = disk_current();
    const int failed = disk->ops->symlink(disk, target, path);
    return failed == 0 ? LS_OK : name_error(failed, "linking", path);
}

int ls_file_read_link(const char *path, char out[LS_PATH_MAX])
{
    struct disk *disk = disk_current();
    char found[LS_PATH_MAX + 1];
    const int failed = disk->ops->read_link(disk, path, found, sizeof found);
    if (failed == EINVAL)
        return ls_error(LS_EINVAL, "%s is not a link", path);
    if (failed != 0)
        return name_error(failed, "reading the link", path);
    const size_t size = strlen(found) + 1;
    if (size > LS_PATH_MAX)
        return ls_error(LS_ELIMIT, "the link %.80s… has too long a target",
                        path);
    memcpy(out, found, size);
    return LS_OK;
}

/* Folders ---------------------------------------------------------------- */

static int sync_above(const char *path)
{
    struct disk *disk = disk_current();
    char folder[LS_PATH_MAX];
    const int n = snprintf(folder, sizeof folder, "%s", path);
    if (n < 0 || (size_t)n >= sizeof folder)
        return ENAMETOOLONG;
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        (void)snprintf(folder, sizeof folder, ".");
    else
        slash[slash == folder] = '\0';
    return disk->ops->sync_folder(disk, folder);
}

int ls_file_sync_name(const char *path)
{
    const int failed = sync_above(path);
    return failed == 0 ? LS_OK
                       : disk_error(failed, "writing the folder of", path);
}

/* Who may write to a folder need not be allowed to read it, and cannot sync it
 * then. */
static int sync_made(const char *path)
{
    const int failed = sync_above(path);
    return failed == 0 || failed == EACCES
               ? LS_OK
               : name_error(failed, "making the folder", path);
}

/* The name of each is on disk before there is one in it. So of those that are
 * there, only the last may be of somebody who was killed before that.
 * there: the length of its path; 0: all are on disk. */
static int make_one(char *path, size_t length, size_t *there)
{
    struct disk *disk = disk_current();
    const int failed = disk->ops->make_folder(disk, path);
    if (failed == EEXIST)
        *there = length;
    if (failed != 0)
        return failed == EEXIST ? LS_OK
                                : name_error(failed, "making the folder", path);
    int status = LS_OK;
    if (*there > 0) {
        const char next = path[*there];
        path[*there] = '\0';
        status = sync_made(path);
        path[*there] = next;
    }
    *there = 0;
    return status == LS_OK ? sync_made(path) : status;
}

int ls_folder_make(const char *folder)
{
    char path[LS_PATH_MAX];
    size_t there = 0;
    int status = LS_OK;
    const int n = snprintf(path, sizeof path, "%s", folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                        folder);
    for (char *at = path + (path[0] != '\0'); status == LS_OK; at++) {
        const char end = *at;
        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        if (at == path || at[-1] != '/')
            status = make_one(path, (size_t)(at - path), &there);
        if (end == '\0')
            break;
        *at = end;
        if (status != LS_OK)
            return ls_error_at(status, "%s", folder);
    }
    if (status == LS_OK && there > 0) {
        path[there] = '\0';
        status = sync_made(path);
    }
    return status;
}

int ls_folder_remove(const char *folder)
{
    struct disk *disk = disk_current();
    const int failed = disk->ops->remove_folder(disk, folder);
    return failed == 0 ? LS_OK
                       : name_error(failed, "removing the folder", folder);
}

int ls_folder_each(const char *folder, int (*fn)(void *self, const char *name),
                   void *self)
{
    struct disk *disk = disk_current();
    char *names = NULL;
    size_t n = 0;
    const int failed = disk->ops->list(disk, folder, &names, &n);
    if (failed != 0)
        return name_error(failed, "reading the folder", folder);
    int status = LS_OK;
    const char *name = names;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        status = fn(self, name);
        name += strlen(name) + 1;
    }
    free(names);
    return status;
}

/* Unfinished files ------------------------------------------------------- */

void ls_file_unique(char out[LS_FILE_UNIQUE_MAX])
{
    struct disk *disk = disk_current();
    disk->ops->unique(disk, out);
}

bool ls_file_is_left_over(const char *unique)
{
    struct disk *disk = disk_current();
    return disk->ops->is_left_over(disk, unique);
}
