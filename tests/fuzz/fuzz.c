#define _XOPEN_SOURCE 700 /* nftw */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 512

static char folder[PATH_BYTES / 2];

/* The disk is not waited for: what a power cut does is not looked at here. The
 * program's own come before those of the system. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

void fuzz_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *const text = malloc(size + 1);
    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static int remove_one(const char *path, const struct stat *found, int type,
                      struct FTW *where)
{
    (void)found;
    (void)type;
    (void)where;
    return remove(path);
}

static void remove_folder(void)
{
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    if (folder[0] != '\0')
        return folder;
    const char *parent = getenv("TMPDIR");
    if (parent == NULL) /* no disk, if there is such a place */
        parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    const int n =
        snprintf(folder, sizeof folder, "%s/lockstep-fuzz-XXXXXX", parent);
    must(n > 0 && (size_t)n < sizeof folder);
    must(mkdtemp(folder) != NULL);
    must(atexit(remove_folder) == 0);
    return folder;
}

const char *fuzz_file(const char *name, const void *data, size_t size)
{
    static char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    must(n > 0 && (size_t)n < sizeof path);
    const int fd =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    must(fd >= 0);
    must(size == 0 || write(fd, data, size) == (ssize_t)size);
    must(close(fd) == 0);
    return path;
}

struct fuzz_bytes fuzz_written(ls_writer *writer)
{
    struct fuzz_bytes bytes = {NULL, 0};
    must(ls_writer_bytes(writer, &bytes.data, &bytes.size) == LS_OK);
    return bytes;
}
