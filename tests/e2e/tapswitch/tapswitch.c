/* A switch in user space, for hosts that are network namespaces.
 *
 *   tapswitch SEED NAMESPACE...
 *
 * Makes eth0 in each of them, says "ready", and passes frames between them
 * until its standard input ends; command.h is what may be said there meanwhile.
 */
#define _GNU_SOURCE /* epoll, timerfd */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <lockstep/runtime.h>

#include "command.h"
#include "port.h"

#define INPUT PORTS_MAX /* what epoll calls standard input */
#define TIMER (PORTS_MAX + 1)

static struct fabric fabric;
static int epoll = -1, timer = -1;

static int64_t now_ns(void)
{
    return ls_now(ls_runtime_threads());
}

static int failed(const char *what)
{
    fprintf(stderr, "tapswitch: %s: %s\n", what, strerror(errno));
    return 1;
}

static bool watch(int file, unsigned what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event) == 0;
}

static bool open_ports(int n, char **namespaces)
{
    for (int i = 0; i < n; i++) {
        struct port *port = &fabric.ports[fabric.n_ports];
        port->tap = port_open(namespaces[i]);
        if (port->tap < 0 || !watch(port->tap, fabric.n_ports))
            return false;
        fabric.n_ports++;
    }
    return true;
}

/* Carry out the whole lines of standard input. False: it has ended. */
static bool read_commands(void)
{
    static char text[1024];
    static size_t size;
    const ssize_t got = read(STDIN_FILENO, text + size, sizeof text - 1 - size);
    if (got <= 0)
        return false;
    size += (size_t)got;
    text[size] = '\0';
    char *line = text, *end;
    while ((end = strchr(line, '\n')) != NULL) {
        *end = '\0';
        command(&fabric, line, now_ns());
        line = end + 1;
    }
    size -= (size_t)(line - text);
    memmove(text, line, size);
    return size < sizeof text - 1;
}

/* Wake up when the next frame is due, or the cuts end. */
static bool set_timer(void)
{
    const int64_t due = frames_next_due(&fabric.frames);
    const int64_t at = due < fabric.heal_at ? due : fabric.heal_at;
    struct itimerspec when = {.it_value.tv_sec = 0}; /* never */
    if (at != LS_FOREVER) {
        when.it_value.tv_sec = at / LS_NS_PER_S;
        when.it_value.tv_nsec = at % LS_NS_PER_S;
    }
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) == 0;
}

static void do_what_is_due(void)
{
    const int64_t now = now_ns();
    if (fabric.heal_at <= now) {
        fabric_heal(&fabric);
        printf("healed %" PRId64 "\n", now);
    }
    fabric_deliver(&fabric, now);
}

static int run(void)
{
    struct epoll_event events[PORTS_MAX + 2];
    uint64_t expirations;
    while (set_timer()) {
        const int n = epoll_wait(epoll, events, PORTS_MAX + 2, -1);
        if (n < 0 && errno != EINTR)
            return failed("epoll_wait");
        for (int i = 0; i < n; i++) {
            const unsigned what = events[i].data.u32;
            if (what == INPUT && !read_commands())
                return 0;
            if (what == TIMER)
                (void)!read(timer, &expirations, sizeof expirations);
            else if (what < INPUT)
                fabric_read(&fabric, what, now_ns());
        }
        do_what_is_due();
        fflush(stdout);
    }
    return failed("timerfd_settime");
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc - 2 > PORTS_MAX) {
        fputs("usage: tapswitch SEED NAMESPACE...\n", stderr);
        return 2;
    }
    fabric_init(&fabric, strtoull(argv[1], NULL, 10));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (epoll < 0 || timer < 0 || !watch(STDIN_FILENO, INPUT) ||
        !watch(timer, TIMER))
        return failed("cannot begin");
    if (!open_ports(argc - 2, argv + 2))
        return 1;
    puts("ready");
    fflush(stdout);
    return run();
}
