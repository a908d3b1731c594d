/* Sockets of offers whose owners were killed: who makes an offer in their
 * folder removes them. Design notes:
 *
 * - Only what is surely such a socket, and surely dead, is removed: it has the
 *   name that ls_offer_name() gives, is a socket, is this user's, and refuses.
 *   It has its name only since it listens, so whoever listened is gone; and a
 *   name is drawn once, so nobody else comes to have it meanwhile.
 * - Through a folder on the network a socket of another host is seen, and
 *   refuses although its owner lives. So the name says of which host it is, and
 *   since when that runs: what another host left, or this one before it was
 *   started, lies there until its own kind, or whoever administers it, removes
 *   it. All containers of a host have the same kernel, and are one host here.
 * - A minute is not what makes it safe. It spares those that begin at the same
 *   time, and are there, from being knocked at by each other. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime_threads_offer.h"

enum { OLD_S = 60 };

/* The first two groups of a UUID, which is random there. */
uint64_t ls_threads_host(void)
{
    uint64_t first = 0, second = 0;
    FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%8" SCNx64 "-%4" SCNx64, &first, &second) != 2)
        first = second = 0;
    (void)fclose(file);
    return first << 16 | second;
}

/* Of an offer of this host, listening or about to. */
static bool is_name(const char *name, uint64_t host)
{
    char start[LS_OFFER_NAME_BYTES];
    const int n = snprintf(start, sizeof start, "offer-%012" PRIx64 "-", host);
    name += name[0] == '.' ? 1 : 0;
    return strncmp(name, start, (size_t)n) == 0 &&
           strlen(name) == LS_OFFER_NAME_BYTES - 1 &&
           strspn(name + n, "0123456789abcdef") == strlen(name + n);
}

static bool is_old_socket(int folder, const char *name)
{
    struct stat about;
    return fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISSOCK(about.st_mode) && about.st_uid == geteuid() &&
           time(NULL) - about.st_mtime >= OLD_S;
}

static bool refuses(const struct sockaddr_un *address)
{
    const int one =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (one < 0)
        return false;
    const bool refused =
        connect(one, (const struct sockaddr *)(const void *)address,
                sizeof *address) != 0 &&
        errno == ECONNREFUSED;
    (void)close(one);
    return refused;
}

void ls_threads_offers_sweep(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *const slash = strrchr(path, '/');
    const size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    const uint64_t host = ls_threads_host();
    char folder[LS_OFFER_PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    DIR *const entries = host != 0 ? opendir(length != 0 ? folder : ".") : NULL;
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const int n = snprintf(address.sun_path, sizeof address.sun_path,
                               "%s%s", folder, entry->d_name);
        if (n > 0 && (size_t)n < sizeof address.sun_path &&
            is_name(entry->d_name, host) &&
            is_old_socket(dirfd(entries), entry->d_name) && refuses(&address))
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries != NULL)
        (void)closedir(entries);
}
