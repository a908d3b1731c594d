#define _GNU_SOURCE /* setns */
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int failed(const char *namespace, const char *what)
{
    fprintf(stderr, "tapswitch: namespace %s: %s: %s\n", namespace, what,
            strerror(errno));
    return -1;
}

/* A device belongs to the namespace that it was made in. */
static int open_tap(const char *namespace)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    memcpy(request.ifr_name, "eth0", sizeof "eth0");
    const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0)
        return failed(namespace, "/dev/net/tun");
    if (ioctl(tap, TUNSETIFF, &request) == 0)
        return tap;
    (void)failed(namespace, "eth0");
    close(tap);
    return -1;
}

static int enter(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const int status = file < 0 ? -1 : setns(file, CLONE_NEWNET);
    const int why = errno;
    if (file >= 0)
        close(file);
    errno = why;
    return status;
}

int port_open(const char *namespace)
{
    char path[256];
    const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        return failed(namespace, "/proc/self/ns/net");
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int tap = enter(path) == 0 ? open_tap(namespace) : failed(namespace, path);
    if (setns(home, CLONE_NEWNET) != 0)
        tap = failed(namespace, "the way back");
    close(home);
    return tap;
}
