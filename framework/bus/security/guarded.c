#include "guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

/* What nobody else may do with it. */
static mode_t forbidden(enum guard guard)
{
    if (guard == GUARD_ALL)
        return S_IRWXG | S_IRWXO;
    return guard == GUARD_WRITING ? S_IWGRP | S_IWOTH : 0;
}

static int check_owner(const struct stat *is, const char *path,
                       enum guard guard)
{
    const uid_t us = geteuid();
    if (guard == GUARD_NONE || is->st_uid == us ||
        (guard == GUARD_WRITING && is->st_uid == 0))
        return LS_OK;
    return ls_error(LS_ECONFIG,
                    "%s belongs to user %lu, and this process runs as user "
                    "%lu: somebody else may have made it; remove it, or "
                    "change its owner when you know where it comes from",
                    path, (unsigned long)is->st_uid, (unsigned long)us);
}

static int check(const struct stat *is, const char *path, mode_t type,
                 enum guard guard)
{
    if (S_ISLNK(is->st_mode))
        return ls_error(LS_ECONFIG,
                        "%s is a symbolic link, and it must not be: somebody "
                        "else may have made it; remove it",
                        path);
    if ((is->st_mode & S_IFMT) != type)
        return ls_error(LS_ECONFIG, "%s is not a %s", path,
                        type == S_IFDIR ? "folder" : "regular file");
    const int status = check_owner(is, path, guard);
    if (status != LS_OK)
        return status;
    const mode_t open_to_others = is->st_mode & forbidden(guard);
    if (open_to_others == 0)
        return LS_OK;
    return ls_error(LS_ECONFIG, "others may %s %s (mode %04o): chmod %s %s",
                    guard == GUARD_ALL ? "read or write" : "write to", path,
                    (unsigned)(is->st_mode & 07777),
                    guard == GUARD_WRITING ? "go-w" : "go-rwx", path);
}

/* Open what may have been made by anyone. The look at the name comes first
 * because it can say more than an open that failed; the look at the descriptor
 * is the one that counts. */
static int open_checked(int at, const char *name, const char *path, mode_t type,
                        enum guard guard)
{
    const bool follow = guard != GUARD_ALL;
    struct stat is;
    if (fstatat(at, name, &is, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? ls_error(LS_ENOENT, "%s is not there", path)
                               : ls_error_from(errno, path);
    int status = check(&is, path, type, guard);
    if (status != LS_OK)
        return status;
    /* Without O_NONBLOCK a pipe would be waited for. */
    const int fd =
        openat(at, name,
               O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW) |
                   (type == S_IFDIR ? O_DIRECTORY : 0));
    if (fd < 0)
        return ls_error_from(errno, path);
    if (fstat(fd, &is) != 0)
        status = ls_error_from(errno, path);
    else
        status = check(&is, path, type, guard);
    if (status == LS_OK)
        return fd;
    (void)close(fd);
    return status;
}

static int open_folder(struct guarded_folder *folder, int at, const char *name,
                       enum guard guard, bool make)
{
    if (make && mkdirat(at, name, S_IRWXU) != 0 && errno != EEXIST)
        return errno == ENOENT
                   ? ls_error(
                         LS_ENOENT,
                         "the folder that %s is to be made in is not there",
                         folder->path)
                   : ls_error_from(errno, folder->path);
    const int fd = open_checked(at, name, folder->path, S_IFDIR, guard);
    if (fd < 0)
        return fd;
    folder->fd = fd;
    return LS_OK;
}

int guarded_open(struct guarded_folder *out, const char *path, enum guard guard,
                 bool make)
{
    out->fd = -1;
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof out->path)
        return ls_error(LS_EINVAL, "a path must have 1 to %zu bytes",
                        sizeof out->path - 1);
    memcpy(out->path, path, strlen(path) + 1);
    return open_folder(out, AT_FDCWD, path, guard, make);
}

int guarded_enter(struct guarded_folder *folder, const char *name)
{
    const size_t length = strlen(folder->path);
    const size_t room = sizeof folder->path - length;
    if ((size_t)snprintf(folder->path + length, room, "/%s", name) >= room)
        return ls_error(LS_EINVAL, "the path of %s is too long", name);
    const int parent = folder->fd;
    folder->fd = -1;
    const int status = open_folder(folder, parent, name, GUARD_ALL, true);
    (void)close(parent);
    return status;
}

void guarded_close(struct guarded_folder *folder)
{
    if (folder->fd >= 0)
        (void)close(folder->fd);
    folder->fd = -1;
}

int guarded_open_parent(struct guarded_folder *out, const char *path,
                        const char **name)
{
    char parent[GUARDED_PATH_MAX] = ".";
    out->fd = -1;
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof parent)
        return ls_error(LS_EINVAL, "a path must have 1 to %zu bytes",
                        sizeof parent - 1);
    const char *slash = strrchr(path, '/');
    *name = slash != NULL ? slash + 1 : path;
    if ((*name)[0] == '\0')
        return ls_error(LS_EINVAL, "%s names no file", path);
    if (slash == path)
        return guarded_open(out, "/", GUARD_NONE, false);
    if (slash != NULL)
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path),
                       path);
    return guarded_open(out, parent, GUARD_NONE, false);
}

/* The path of a file, for messages. */
struct shown {
    char path[GUARDED_PATH_MAX];
};

static struct shown show(const struct guarded_folder *folder, const char *name)
{
    struct shown shown;
    const size_t length = strnlen(folder->path, sizeof shown.path - 1);
    memcpy(shown.path, folder->path, length);
    shown.path[length] = '\0';
    const bool here = strcmp(folder->path, ".") == 0;
    (void)snprintf(shown.path + (here ? 0 : length),
                   sizeof shown.path - (here ? 0 : length), "%s%s",
                   here ? "" : "/", name);
    return shown;
}

/* Read until there is no more, but no further than `max` bytes. Returns how
 * many, or -1 with errno. */
static ssize_t read_up_to(int fd, char *out, size_t max)
{
    size_t n = 0;
    while (n < max) {
        const ssize_t got = read(fd, out + n, max - n);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        n += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)n;
}

int guarded_read(const struct guarded_folder *folder, const char *name,
                 enum guard guard, void *out, size_t max, size_t *size)
{
    const struct shown shown = show(folder, name);
    const int fd = open_checked(folder->fd, name, shown.path, S_IFREG, guard);
    if (fd < 0)
        return fd;
    const ssize_t n = read_up_to(fd, out, max + 1);
    int status = LS_OK;
    if (n < 0)
        status = ls_error_from(errno, shown.path);
    else if ((size_t)n > max)
        status =
            ls_error(LS_ECONFIG, "%s has more than %zu bytes", shown.path, max);
    else
        *size = (size_t)n;
    (void)close(fd);
    return status;
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno != EINTR)
            return -1;
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

/* Write under a name that nobody else has. */
static int write_temporary(const struct guarded_folder *folder,
                           const char *temporary, mode_t mode,
                           const void *bytes, size_t size)
{
    const int fd =
        openat(folder->fd, temporary,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return ls_error_from(errno, folder->path);
    int status = LS_OK;
    if (write_all(fd, bytes, size) != 0)
        status = ls_error_from(errno, folder->path);
    if (close(fd) != 0 && status == LS_OK)
        status = ls_error_from(errno, folder->path);
    if (status != LS_OK)
        guarded_remove(folder, temporary);
    return status;
}

int guarded_create(const struct guarded_folder *folder, const char *name,
                   mode_t mode, const void *bytes, size_t size)
{
    uint64_t random;
    randombytes_buf(&random, sizeof random);
    char temporary[40];
    (void)snprintf(temporary, sizeof temporary, ".lockstep-%016" PRIx64,
                   random);
    int status = write_temporary(folder, temporary, mode, bytes, size);
    if (status != LS_OK)
        return status;
    /* A link, unlike a rename, replaces nothing. */
    if (linkat(folder->fd, temporary, folder->fd, name, 0) != 0)
        status = errno == EEXIST
                     ? ls_error(LS_EEXIST,
                                "%s is there already, and is not overwritten",
                                show(folder, name).path)
                     : ls_error_from(errno, folder->path);
    guarded_remove(folder, temporary);
    (void)fsync(folder->fd); /* the file is whole either way */
    return status;
}

void guarded_remove(const struct guarded_folder *folder, const char *name)
{
    (void)unlinkat(folder->fd, name, 0);
}
