#include "simulated_home.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES 65536
/* Where writing does not wait for a disk. */
#define MEMORY "/dev/shm"

static int failed(const char *what, const char *path)
{
    const int os_errno = errno;
    char text[SIMULATED_PATH_MAX + 32];
    (void)snprintf(text, sizeof text, "%s %s", what, path);
    return ls_error_from(os_errno, text);
}

/* Call fn with each entry of a folder, until one fails. */
static int each_entry(const char *folder, const char *other,
                      int (*fn)(const char *path, const char *other))
{
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return failed("reading", folder);
    int status = LS_OK;
    const struct dirent *entry;
    while (status == LS_OK && (entry = readdir(entries)) != NULL) {
        char path[SIMULATED_PATH_MAX], beside[SIMULATED_PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const int a =
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        const int b =
            snprintf(beside, sizeof beside, "%s/%s", other, entry->d_name);
        if (a >= (int)sizeof path || b >= (int)sizeof beside)
            status = ls_error(LS_EIO, "the path %s is too long", path);
        else
            status = fn(path, beside);
    }
    (void)closedir(entries);
    return status;
}

static int copy_file(const char *from, const char *to)
{
    char *bytes = malloc(COPY_BYTES);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    int status = bytes == NULL               ? ls_error(LS_ENOMEM, "a copy")
                 : in == NULL || out == NULL ? failed("copying", from)
                                             : LS_OK;
    size_t n = 0;
    while (status == LS_OK && (n = fread(bytes, 1, COPY_BYTES, in)) > 0) {
        if (fwrite(bytes, 1, n, out) != n)
            status = failed("writing", to);
    }
    if (in != NULL)
        (void)fclose(in);
    if (out != NULL && fclose(out) != 0 && status == LS_OK)
        status = failed("writing", to);
    free(bytes);
    return status;
}

static int copy(const char *from, const char *to)
{
    struct stat what;
    if (stat(from, &what) < 0)
        return failed("reading", from);
    if (!S_ISDIR(what.st_mode))
        return copy_file(from, to);
    if (mkdir(to, 0700) < 0)
        return failed("making", to);
    return each_entry(from, to, copy);
}

static int remove_all(const char *path, const char *other)
{
    struct stat what;
    if (stat(path, &what) == 0 && S_ISDIR(what.st_mode)) {
        const int status = each_entry(path, other, remove_all);
        if (status != LS_OK)
            return status;
    }
    return remove(path) == 0 ? LS_OK : failed("removing", path);
}

int simulated_homes_make(struct simulated_homes *out)
{
    const char *folder = getenv("TMPDIR");
    struct simulated_homes homes = {.n = 0};
    if (folder == NULL || folder[0] != '/' ||
        strlen(folder) > SIMULATED_PATH_MAX / 2)
        folder = access(MEMORY, W_OK | X_OK) == 0 ? MEMORY : "/tmp";
    (void)snprintf(homes.root, sizeof homes.root, "%s/lockstep-XXXXXX", folder);
    if (mkdtemp(homes.root) == NULL)
        return failed("making", homes.root);
    *out = homes;
    return LS_OK;
}

void simulated_homes_remove(struct simulated_homes *homes)
{
    if (homes->root[0] != '\0')
        (void)remove_all(homes->root, homes->root);
    homes->root[0] = '\0';
}

int simulated_homes_add(struct simulated_homes *homes, const char *from,
                        char out[SIMULATED_PATH_MAX])
{
    char path[SIMULATED_PATH_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/%u", homes->root, homes->n);
    if (strlen(path) >= SIMULATED_PATH_MAX)
        return ls_error(LS_EIO, "the path %s is too long", path);
    int status = LS_OK;
    if (from != NULL)
        status = copy(from, path);
    else if (mkdir(path, 0700) < 0)
        status = failed("making", path);
    if (status != LS_OK)
        return status;
    homes->n++;
    memcpy(out, path, strlen(path) + 1);
    return LS_OK;
}
