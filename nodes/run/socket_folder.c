#include "socket_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "plan.h"

/* Where a folder of this form can be, with sockets of a job in it: their
 * addresses have room for 107 bytes in all, and nothing in them but visible
 * ASCII. */
static const char *root_folder(const char *folder, const char *job)
{
    const struct sockaddr_un *address = NULL;
    const char *root = getenv("XDG_RUNTIME_DIR");
    if (root == NULL || root[0] != '/' ||
        strlen(root) + strlen(folder) + strlen(job) +
                sizeof "/-4294967295.ipc" >
            sizeof address->sun_path)
        return "/tmp";
    return plan_is_visible(root) && access(root, W_OK | X_OK) == 0 ? root
                                                                   : "/tmp";
}

static int not_made(int failed, const char *path)
{
    char what[sizeof((struct socket_folder *)NULL)->path + 32];
    (void)snprintf(what, sizeof what, "making the folder %s", path);
    return ls_error_from(failed, what);
}

int socket_folder_make(struct socket_folder *out, const char *job)
{
    static const char folder[] = "/lockstep-XXXXXX";
    char path[sizeof out->path];
    (void)snprintf(path, sizeof path, "%s%s", root_folder(folder, job), folder);
    if (mkdtemp(path) == NULL)
        return not_made(errno, path);
    memcpy(out->path, path, sizeof path);
    return LS_OK;
}

int socket_folder_share(struct socket_folder *out, uint64_t key,
                        const char *job)
{
    char path[sizeof out->path], folder[64];
    struct stat found;
    (void)snprintf(folder, sizeof folder, "/lockstep-%lu-%016" PRIx64,
                   (unsigned long)geteuid(), key);
    (void)snprintf(path, sizeof path, "%s%s", root_folder(folder, job), folder);
    if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST)
        return not_made(errno, path);
    if (lstat(path, &found) < 0)
        return not_made(errno, path);
    if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
        (found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return ls_error(
            LS_EIO, "%s is not a folder of this user alone: remove it", path);
    memcpy(out->path, path, sizeof path);
    return LS_OK;
}

void socket_folder_leave(struct socket_folder *folder)
{
    if (folder->path[0] != '\0')
        (void)rmdir(folder->path);
    folder->path[0] = '\0';
}

void socket_folder_remove(struct socket_folder *folder)
{
    if (folder->path[0] == '\0')
        return;
    DIR *entries = opendir(folder->path);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries != NULL)
        (void)closedir(entries);
    (void)rmdir(folder->path);
    folder->path[0] = '\0';
}
