#include "secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "guarded.h"
#include "wire.h"

#define SECRET_NAME "secret"

/* ---- a file ------------------------------------------------------------- */

static int read_in(const struct guarded_folder *folder, const char *name,
                   uint8_t out[LS_SECRET_BYTES])
{
    uint8_t bytes[LS_SECRET_BYTES + 1];
    size_t size = 0;
    int status =
        guarded_read(folder, name, GUARD_ALL, bytes, LS_SECRET_BYTES, &size);
    if (status == LS_OK && size != LS_SECRET_BYTES)
        status = ls_error(LS_ECONFIG,
                          "%s/%s has %zu bytes, and a secret has "
                          "%d",
                          folder->path, name, size, LS_SECRET_BYTES);
    if (status == LS_OK)
        memcpy(out, bytes, LS_SECRET_BYTES);
    sodium_memzero(bytes, sizeof bytes);
    return status;
}

int secret_read(const char *path, uint8_t out[LS_SECRET_BYTES])
{
    struct guarded_folder folder;
    const char *name;
    int status = guarded_open_parent(&folder, path, &name);
    if (status == LS_OK)
        status = read_in(&folder, name, out);
    guarded_close(&folder);
    return status;
}

/* out: NULL: nobody wants it. */
static int create_in(const struct guarded_folder *folder, const char *name,
                     uint8_t *out)
{
    uint8_t secret[LS_SECRET_BYTES];
    randombytes_buf(secret, sizeof secret);
    const int status =
        guarded_create(folder, name, S_IRUSR | S_IWUSR, secret, sizeof secret);
    if (status == LS_OK && out != NULL)
        memcpy(out, secret, sizeof secret);
    sodium_memzero(secret, sizeof secret);
    return status;
}

int ls_secret_create(const char *path, uint8_t secret[LS_SECRET_BYTES])
{
    if (sodium_init() < 0)
        return ls_error(LS_EIO, "libsodium finds no source of random numbers");
    struct guarded_folder folder;
    const char *name;
    int status = guarded_open_parent(&folder, path, &name);
    if (status == LS_OK)
        status = create_in(&folder, name, secret);
    guarded_close(&folder);
    return status;
}

/* ---- the secret of a job ------------------------------------------------ */

static int check_job(const char *job)
{
    if (job != NULL && job[0] != '\0' && strcmp(job, ".") != 0 &&
        strcmp(job, "..") != 0 && wire_word_valid(job, LS_JOB_MAX, "._-"))
        return LS_OK;
    return ls_error(
        LS_EINVAL,
        "\"%s\" is not a name of a job: it must be 1 to %d of A-Z a-z "
        "0-9 . _ -, and not . or ..",
        job != NULL ? job : "", LS_JOB_MAX);
}

/* Where a folder of this user's own is made for all jobs. */
struct base {
    const char *path; /* borrow: of the environment */
    char name[32];    /* of the folder in it */
};

/* XDG_RUNTIME_DIR may be that of the user whom this process was before sudo or
 * su, so it is only taken when it is ours. */
static struct base find_base(void)
{
    struct base base = {.path = getenv("XDG_RUNTIME_DIR"), .name = "lockstep"};
    struct stat is;
    if (base.path != NULL && base.path[0] == '/' &&
        lstat(base.path, &is) == 0 && S_ISDIR(is.st_mode) &&
        is.st_uid == geteuid() && (is.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return base;
    base.path = "/tmp";
    (void)snprintf(base.name, sizeof base.name, "lockstep-%lu",
                   (unsigned long)geteuid());
    return base;
}

int ls_secret_job_path(const char *job, char *out, size_t size)
{
    const int status = check_job(job);
    if (status != LS_OK)
        return status;
    const struct base base = find_base();
    char path[GUARDED_PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s/%s/" SECRET_NAME,
                           base.path, base.name, job);
    if ((size_t)n >= sizeof path || (size_t)n >= size)
        return ls_error(LS_ELIMIT,
                        "the path of a secret has %d bytes, and "
                        "there is room for %zu",
                        n + 1, size < sizeof path ? size : sizeof path);
    memcpy(out, path, (size_t)n + 1);
    return LS_OK;
}

/* Open the folder of a job; made where it is not there. Both levels are looked
 * at: in /tmp anyone may have made the first before us. */
static int open_job(struct guarded_folder *out, const char *job)
{
    const struct base base = find_base();
    int status = guarded_open(out, base.path, GUARD_NONE, false);
    if (status == LS_OK)
        status = guarded_enter(out, base.name);
    if (status == LS_OK)
        status = guarded_enter(out, job);
    return status;
}

int secret_of_job(const char *job, uint8_t out[LS_SECRET_BYTES])
{
    int status = check_job(job);
    if (status != LS_OK)
        return status;
    struct guarded_folder folder;
    status = open_job(&folder, job);
    if (status == LS_OK)
        status = read_in(&folder, SECRET_NAME, out);
    if (status == LS_ENOENT && folder.fd >= 0) {
        status = create_in(&folder, SECRET_NAME, out);
        if (status == LS_EEXIST) /* another process was faster */
            status = read_in(&folder, SECRET_NAME, out);
    }
    guarded_close(&folder);
    return status;
}
