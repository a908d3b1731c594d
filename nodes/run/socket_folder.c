#include "socket_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int socket_folder_make(struct socket_folder *out)
{
    const char *root = getenv("XDG_RUNTIME_DIR");
    char path[sizeof out->path];
    /* The address of a socket file has room for 107 bytes in all. */
    if (root == NULL || root[0] != '/' || strlen(root) > 60 ||
        access(root, W_OK | X_OK) != 0)
        root = "/tmp";
    (void)snprintf(path, sizeof path, "%s/lockstep-XXXXXX", root);
    if (mkdtemp(path) == NULL) {
        const int failed = errno;
        char what[sizeof path + 32];
        (void)snprintf(what, sizeof what, "making the folder %s", path);
        return ls_error_from(failed, what);
    }
    memcpy(out->path, path, sizeof path);
    return LS_OK;
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
