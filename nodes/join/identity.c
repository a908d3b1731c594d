#define _DEFAULT_SOURCE /* flock */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/log.h"

#define KEYS_MAX 1024

static int default_folder(const char *job, char *out, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (state != NULL && state[0] == '/')
        n = snprintf(out, size, "%s/lockstep/%s", state, job);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, size, "%s/.local/state/lockstep/%s", home, job);
    else
        return ls_error(LS_EIO, "neither XDG_STATE_HOME nor HOME is set");
    return n >= 0 && (size_t)n < size
               ? LS_OK
               : ls_error(LS_ELIMIT, "the folder for keys has too long a name");
}

static int failed_at(int os_errno, const char *what, const char *path)
{
    char text[LS_PATH_MAX + 64];
    (void)snprintf(text, sizeof text, "%s %s", what, path);
    (void)ls_error_from(os_errno, text);
    return LS_EIO;
}

/* The system frees the lock with the process, however that ends. */
static int lock_file(const char *path, int *out)
{
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return failed_at(errno, "opening", path);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *out = fd;
        return LS_OK;
    }
    const int failed = errno;
    (void)close(fd);
    return failed == EWOULDBLOCK ? LS_EAGAIN
                                 : failed_at(failed, "locking", path);
}

/* Errors: LS_EAGAIN another node has it. */
static int take(struct identity *out)
{
    int status = LS_OK;
    if (access(out->path, F_OK) < 0)
        status = ls_key_create(out->path, out->key);
    if (status == LS_OK || status == LS_EEXIST) /* another was faster */
        status = lock_file(out->path, &out->lock);
    if (status == LS_OK) {
        status = ls_key_read(out->path, out->key);
        if (status != LS_OK)
            (void)close(out->lock);
    }
    return status;
}

static int open_in(struct identity *out, const char *folder)
{
    struct identity identity = {.lasting = true};
    int status = LS_EAGAIN;
    for (unsigned i = 0; i < KEYS_MAX && status == LS_EAGAIN; i++) {
        const int n = snprintf(identity.path, sizeof identity.path,
                               "%s/replica-%u.key", folder, i);
        if (n < 0 || (size_t)n >= sizeof identity.path)
            return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                            folder);
        status = take(&identity);
    }
    if (status == LS_EAGAIN)
        return ls_error(LS_ELIMIT, "%s: all its %d keys are taken", folder,
                        KEYS_MAX);
    if (status == LS_OK)
        *out = identity;
    return status;
}

static int make_and_open(struct identity *out, const char *folder)
{
    const int status = ls_folder_make(folder);
    if (status != LS_OK)
        return status;
    if (access(folder, W_OK | X_OK) < 0)
        return failed_at(errno, "writing to the folder", folder);
    return open_in(out, folder);
}

/* In a container without a volume, or one whose files are read-only. */
static int open_passing(struct identity *out)
{
    struct socket_folder folder = {.path = ""};
    ls_log_warn("this node's key is not kept, so after a restart it is another "
                "node: %s; say --identity DIR",
                ls_error_text());
    int status = socket_folder_make(&folder, "");
    if (status == LS_OK)
        status = open_in(out, folder.path);
    if (status != LS_OK) {
        socket_folder_remove(&folder);
        return ls_error_at(status, "making a key for this node");
    }
    out->lasting = false;
    out->passing = folder;
    return LS_OK;
}

int identity_open(struct identity *out, const char *folder, const char *job)
{
    char usual[LS_PATH_MAX];
    if (folder != NULL)
        return make_and_open(out, folder);
    int status = default_folder(job, usual, sizeof usual);
    if (status == LS_OK)
        status = make_and_open(out, usual);
    return status == LS_EIO ? open_passing(out) : status;
}

void identity_close(struct identity *identity)
{
    if (identity->path[0] == '\0')
        return;
    (void)close(identity->lock);
    socket_folder_remove(&identity->passing);
    identity->path[0] = '\0';
}
