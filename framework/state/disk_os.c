/* The disk of the operating system. */
#define _GNU_SOURCE /* flock, sync_file_range */
#include "disk_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/runtime.h"

#define HOST_MAX 64 /* bytes, without the NUL: as Linux has it */
/* The name of a host, or of a container that has it: ".4026532198" more. */
#define PLACE_MAX (HOST_MAX + 24)
/* So much of a large file is on its way to the disk while the next is written:
 * a sync then waits for the last of them only. */
#define WINDOW ((off_t)8 << 20)

/* Parts of a file -------------------------------------------------------- */

static int os_open(struct disk *disk, struct disk_handle *out, const char *path,
                   unsigned flags)
{
    struct stat found;
    int how = O_CLOEXEC | O_NONBLOCK; /* a pipe without its other end waits */
    (void)disk;
    how |= (flags & LS_FILE_WRITE) != 0 ? O_RDWR : O_RDONLY;
    how |= (flags & LS_FILE_CREATE) != 0 ? O_CREAT : 0;
    how |= (flags & LS_FILE_EMPTY) != 0 ? O_TRUNC : 0;
    int fd;
    do
        fd = open(path, how, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno == ENXIO ? EINVAL : errno; /* a socket */
    int failed = fstat(fd, &found) < 0 ? errno : 0;
    if (failed == 0 && !S_ISREG(found.st_mode))
        failed = EINVAL;
    if (failed != 0)
        (void)close(fd);
    else
        out->fd = fd;
    return failed;
}

static int os_close(struct disk_handle *file)
{
    /* After EINTR it is closed all the same. */
    return close(file->fd) < 0 && errno != EINTR ? errno : 0;
}

static int os_read_at(struct disk_handle *file, void *data, size_t size,
                      uint64_t offset, size_t *done)
{
    ssize_t n;
    do
        n = pread(file->fd, data, size, (off_t)offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    *done = (size_t)n;
    return 0;
}

static void begin_writing(int fd, off_t from, off_t to)
{
    if (from / WINDOW != to / WINDOW) /* what it cannot begin, a sync will */
        (void)sync_file_range(fd, from / WINDOW * WINDOW, WINDOW,
                              SYNC_FILE_RANGE_WRITE);
}

static int os_write_at(struct disk_handle *file, const void *data, size_t size,
                       uint64_t offset, size_t *done)
{
    ssize_t n;
    do
        n = pwrite(file->fd, data, size, (off_t)offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    *done = (size_t)n;
    begin_writing(file->fd, (off_t)offset, (off_t)offset + n);
    return n > 0 ? 0 : EIO;
}

static int os_size(struct disk_handle *file, uint64_t *out)
{
    struct stat found;
    if (fstat(file->fd, &found) < 0)
        return errno;
    *out = (uint64_t)found.st_size;
    return 0;
}

static int os_cut(struct disk_handle *file, uint64_t size)
{
    int failed;
    do
        failed = ftruncate(file->fd, (off_t)size) < 0 ? errno : 0;
    while (failed == EINTR);
    return failed;
}

static int os_sync(struct disk_handle *file)
{
    int failed;
    do
        failed = fdatasync(file->fd) < 0 ? errno : 0;
    while (failed == EINTR);
    return failed;
}

static int os_lock(struct disk_handle *file, bool shared)
{
    const int how = (shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
    int failed;
    do
        failed = flock(file->fd, how) < 0 ? errno : 0;
    while (failed == EINTR);
    return failed;
}

static bool os_is_named(struct disk_handle *file, struct disk *disk,
                        const char *path)
{
    struct stat open_one, named;
    (void)disk;
    return fstat(file->fd, &open_one) == 0 && stat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Names ------------------------------------------------------------------ */

static bool os_exists(struct disk *disk, const char *path)
{
    (void)disk;
    return access(path, F_OK) == 0;
}

/* A device, a pipe or a socket that had this name would be gone, and with it
 * whatever else uses it. */
static int os_rename(struct disk *disk, const char *from, const char *to)
{
    struct stat there;
    (void)disk;
    if (stat(to, &there) == 0 && !S_ISREG(there.st_mode) &&
        !S_ISDIR(there.st_mode))
        return EINVAL;
    return rename(from, to) < 0 ? errno : 0;
}

static int os_remove(struct disk *disk, const char *path)
{
    (void)disk;
    return unlink(path) < 0 ? errno : 0;
}

static int os_symlink(struct disk *disk, const char *target, const char *path)
{
    (void)disk;
    return symlink(target, path) < 0 ? errno : 0;
}

static int os_read_link(struct disk *disk, const char *path, char *out,
                        size_t size)
{
    (void)disk;
    const ssize_t n = readlink(path, out, size - 1);
    if (n < 0)
        return errno;
    out[n] = '\0';
    return 0;
}

static int os_make_folder(struct disk *disk, const char *path)
{
    struct stat there;
    (void)disk;
    const int failed = mkdir(path, 0777) < 0 ? errno : 0;
    if (failed != EEXIST)
        return failed;
    if (stat(path, &there) < 0)
        return errno;
    return S_ISDIR(there.st_mode) ? EEXIST : ENOTDIR;
}

static int os_remove_folder(struct disk *disk, const char *path)
{
    (void)disk;
    if (rmdir(path) == 0)
        return 0;
    return errno == EEXIST ? ENOTEMPTY : errno;
}

static int os_sync_folder(struct disk *disk, const char *path)
{
    (void)disk;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const int failed = fsync(fd) < 0 ? errno : 0;
    (void)close(fd);
    return failed == EINVAL ? 0 : failed; /* some file systems have no such */
}

struct names {
    char *text; /* own */
    size_t used, capacity, n;
};

static int add_name(struct names *names, const char *name)
{
    const size_t size = strlen(name) + 1;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (names->capacity - names->used < size) {
        const size_t capacity = 2 * names->capacity + size;
        char *grown = realloc(names->text, capacity);
        if (grown == NULL)
            return ENOMEM;
        names->text = grown;
        names->capacity = capacity;
    }
    memcpy(names->text + names->used, name, size);
    names->used += size;
    names->n++;
    return 0;
}

static int os_list(struct disk *disk, const char *path, char **out, size_t *n)
{
    (void)disk;
    DIR *entries = opendir(path);
    if (entries == NULL)
        return errno;
    struct names names = {.text = NULL};
    const struct dirent *entry;
    int failed = 0;
    do {
        errno = 0;
        entry = readdir(entries);
        failed = entry == NULL ? errno : add_name(&names, entry->d_name);
    } while (entry != NULL && failed == 0);
    (void)closedir(entries);
    if (failed != 0) {
        free(names.text);
        return failed;
    }
    *out = names.text;
    *n = names.n;
    return 0;
}

/* Unfinished files ------------------------------------------------------- */

/* A process id is not enough, since in a container every life has the same. */
static uint64_t own_token(void)
{
    static _Atomic uint64_t token;
    uint64_t none = 0;
    if (atomic_load(&token) == 0)
        (void)atomic_compare_exchange_strong(
            &token, &none, ls_entropy(ls_runtime_threads()) | 1);
    return atomic_load(&token);
}

/* Where process ids mean what they do here. Containers may all have the name of
 * their host (network_mode: host), and each has processes 1, 2, 3 … of its own:
 * what others there write must not pass for what a dead process has left. */
static void own_place(char place[PLACE_MAX + 1])
{
    static const unsigned long first = 0xEFFFFFFCu; /* outside of containers */
    char link[64];
    unsigned long pids = first;
    memset(place, 0, PLACE_MAX + 1);
    if (gethostname(place, HOST_MAX + 1) < 0)
        place[0] = '\0';
    const ssize_t n = readlink("/proc/self/ns/pid", link, sizeof link - 1);
    if (n <= 0)
        return;
    link[n] = '\0';
    if (sscanf(link, "pid:[%lu]", &pids) == 1 && pids != first)
        (void)snprintf(place + strlen(place), PLACE_MAX + 1 - strlen(place),
                       ".%lu", pids);
}

static void os_unique(struct disk *disk, char out[LS_FILE_UNIQUE_MAX])
{
    static _Atomic uint64_t next;
    char place[PLACE_MAX + 1];
    (void)disk;
    own_place(place);
    (void)snprintf(out, LS_FILE_UNIQUE_MAX, "%ld@%016" PRIx64 "@%" PRIu64 "@%s",
                   (long)getpid(), own_token(), atomic_fetch_add(&next, 1),
                   place);
}

static bool os_is_left_over(struct disk *disk, const char *unique)
{
    char place[PLACE_MAX + 1];
    long pid = 0;
    uint64_t token = 0;
    int end = 0;
    (void)disk;
    own_place(place);
    if (sscanf(unique, "%ld@%" SCNx64 "@%*u@%n", &pid, &token, &end) != 2 ||
        end == 0 || strcmp(unique + end, place) != 0 || pid <= 0)
        return false;
    if (pid == (long)getpid())
        return token != own_token();
    return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static const struct disk_ops operations = {.open = os_open,
                                           .close = os_close,
                                           .read_at = os_read_at,
                                           .write_at = os_write_at,
                                           .size = os_size,
                                           .cut = os_cut,
                                           .sync = os_sync,
                                           .lock = os_lock,
                                           .is_named = os_is_named,
                                           .exists = os_exists,
                                           .rename = os_rename,
                                           .remove = os_remove,
                                           .symlink = os_symlink,
                                           .read_link = os_read_link,
                                           .make_folder = os_make_folder,
                                           .remove_folder = os_remove_folder,
                                           .sync_folder = os_sync_folder,
                                           .list = os_list,
                                           .unique = os_unique,
                                           .is_left_over = os_is_left_over};

struct disk *disk_os(void)
{
    static struct disk disk = {&operations};
    return &disk;
}
