#include "spawn_self.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Above the numbers that a program is given. */
#define FIRST_FD 10

/* Arguments -------------------------------------------------------------- */

static int grow(struct arguments *arguments)
{
    if (arguments->n + 1 < arguments->capacity)
        return LS_OK;
    const size_t capacity = 2 * arguments->capacity + 16;
    char **grown = realloc(arguments->argv, capacity * sizeof *grown);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "starting a process");
    arguments->argv = grown;
    arguments->capacity = capacity;
    return LS_OK;
}

void arguments_add(struct arguments *arguments, const char *text)
{
    if (arguments->status == LS_OK)
        arguments->status = grow(arguments);
    if (arguments->status != LS_OK)
        return;
    char *copy = strdup(text);
    if (copy == NULL) {
        arguments->status = ls_error(LS_ENOMEM, "starting a process");
        return;
    }
    arguments->argv[arguments->n++] = copy;
    arguments->argv[arguments->n] = NULL;
}

void arguments_add_pair(struct arguments *arguments, const char *name,
                        const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    arguments_add(arguments, name);
    arguments_add(arguments, value);
}

void arguments_add_number(struct arguments *arguments, const char *name,
                          unsigned long long number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", number);
    arguments_add_pair(arguments, name, text);
}

void arguments_add_set(struct arguments *arguments, const char *path,
                       const char *value)
{
    const size_t size = strlen(path) + strlen(value) + 2;
    char *text = malloc(size);
    if (text == NULL) {
        arguments->status = ls_error(LS_ENOMEM, "starting a process");
        return;
    }
    (void)snprintf(text, size, "%s=%s", path, value);
    arguments_add_pair(arguments, "--set", text);
    free(text);
}

void arguments_fini(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->n; i++)
        free(arguments->argv[i]);
    free(arguments->argv);
    memset(arguments, 0, sizeof *arguments);
}

/* Pipes ------------------------------------------------------------------ */

void spawn_close_pipe(int pipe_fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (pipe_fds[i] >= 0)
            (void)close(pipe_fds[i]);
        pipe_fds[i] = -1;
    }
}

int spawn_pipe(int pipe_fds[2])
{
    int raw[2];
    pipe_fds[0] = pipe_fds[1] = -1;
    if (pipe(raw) < 0)
        return ls_error_from(errno, "making a pipe for a process");
    for (int i = 0; i < 2; i++) {
        pipe_fds[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, FIRST_FD);
        const int failed = pipe_fds[i] < 0 ? errno : 0;
        (void)close(raw[i]);
        if (failed != 0) {
            if (i == 0)
                (void)close(raw[1]);
            spawn_close_pipe(pipe_fds);
            return ls_error_from(failed, "making a pipe for a process");
        }
    }
    return LS_OK;
}

/* The program ------------------------------------------------------------ */

static int set_signals(posix_spawnattr_t *attributes, short flags)
{
    static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
    sigset_t none, reset;
    (void)sigemptyset(&none);
    (void)sigemptyset(&reset);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        (void)sigaddset(&reset, usual[i]);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    if (failed == 0)
        failed = posix_spawnattr_setsigdefault(attributes, &reset);
    if (failed == 0)
        failed = posix_spawnattr_setflags(
            attributes,
            (short)(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    return failed;
}

/* By its path, which ps shows, unless it is gone. */
static const char *program(char *path, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n <= 0)
        return "/proc/self/exe";
    path[n] = '\0';
    return access(path, X_OK) == 0 ? path : "/proc/self/exe";
}

/* path: NULL: argv[0], looked for in PATH. */
static int spawn(pid_t *out, const char *path, short flags,
                 const struct arguments *arguments,
                 const posix_spawn_file_actions_t *actions)
{
    posix_spawnattr_t attributes;
    if (arguments->status != LS_OK)
        return arguments->status;
    int failed = posix_spawnattr_init(&attributes);
    if (failed != 0)
        return ls_error_from(failed, "starting a process");
    failed = set_signals(&attributes, flags);
    if (failed == 0 && path != NULL)
        failed = posix_spawn(out, path, actions, &attributes, arguments->argv,
                             environ);
    else if (failed == 0)
        failed = posix_spawnp(out, arguments->argv[0], actions, &attributes,
                              arguments->argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    return failed == 0 ? LS_OK : ls_error_from(failed, "starting a process");
}

int spawn_self(pid_t *out, const struct arguments *arguments,
               const posix_spawn_file_actions_t *actions)
{
    char path[4096];
    return spawn(out, program(path, sizeof path), 0, arguments, actions);
}

int spawn_tool(pid_t *out, const struct arguments *arguments,
               const posix_spawn_file_actions_t *actions)
{
    return spawn(out, NULL, POSIX_SPAWN_SETPGROUP, arguments, actions);
}
