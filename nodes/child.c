/* The pid stays ours until it is reaped, and only then may the system give it
 * to another process. So the waiter first learns of the end without reaping,
 * and reaps under the mutex under which others send signals.
 *
 * A grandchild may keep the pipes open for ever; the readers are therefore
 * waited for only so long. One that is left goes with the program. */
#include "child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

extern char **environ;

#define DRAIN_MS 200

/* Write ends are kept above the numbers that the child gives them. */
#define FIRST_FD 10

enum { READ, WRITE };

struct child {
    size_t index;
    supervisor *watcher; /* borrow */
    pid_t pid;
    ls_mutex mutex;
    bool reaped;   /* under mutex */
    int report_fd; /* read ends; each closed by its reader */
    int line_fd;
    ls_thread *reports, *lines, *waiter; /* own */
};

static void close_pipe(int pipe_fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (pipe_fds[i] >= 0)
            (void)close(pipe_fds[i]);
        pipe_fds[i] = -1;
    }
}

static int open_pipe(int pipe_fds[2])
{
    int raw[2];
    if (pipe(raw) < 0)
        return ls_error_from(errno, "making a pipe for a node");
    for (int i = 0; i < 2; i++) {
        pipe_fds[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, FIRST_FD);
        const int failed = pipe_fds[i] < 0 ? errno : 0;
        (void)close(raw[i]);
        if (failed != 0) {
            if (i == READ)
                (void)close(raw[WRITE]);
            close_pipe(pipe_fds);
            return ls_error_from(failed, "making a pipe for a node");
        }
    }
    return LS_OK;
}

static void read_reports(void *arg)
{
    child *self = arg;
    const int status =
        report_drain(self->report_fd, supervisor_sink(self->watcher));
    if (status != LS_OK)
        ls_log_error("reading what a node reports: %s", ls_error_text());
    (void)close(self->report_fd);
}

static void read_lines(void *arg)
{
    child *self = arg;
    FILE *file = fdopen(self->line_fd, "r");
    if (file == NULL) {
        (void)close(self->line_fd);
        return;
    }
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    while ((n = getline(&line, &capacity, file)) >= 0) {
        if (n > 0 && line[n - 1] == '\n')
            line[n - 1] = '\0';
        supervisor_note_line(self->watcher, self->index, line);
    }
    free(line);
    (void)fclose(file);
}

static void wait_for_end(void *arg)
{
    child *self = arg;
    siginfo_t info;
    while (waitid(P_PID, (id_t)self->pid, &info, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR)
        continue;
    int how = 0;
    ls_mutex_lock(&self->mutex);
    (void)waitpid(self->pid, &how, 0);
    self->reaped = true;
    ls_mutex_unlock(&self->mutex);

    const int64_t deadline = ls_deadline(ls_runtime_threads(), DRAIN_MS);
    if (ls_thread_join(&self->reports, deadline) != LS_OK ||
        ls_thread_join(&self->lines, deadline) != LS_OK)
        ls_log_debug("a program that node %zu started is still there",
                     self->index);
    supervisor_note_end(self->watcher, self->index,
                        WIFEXITED(how) ? WEXITSTATUS(how) : 1,
                        WIFSIGNALED(how) ? WTERMSIG(how) : 0);
}

/* A node begins with signals as any program does, whatever this one does. */
static int set_signals(posix_spawnattr_t *attributes)
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
            attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return failed;
}

/* What a node is given. */
struct descriptors {
    int report, line;
    int secret; /* -1: none */
};

static int set_descriptors(posix_spawn_file_actions_t *actions,
                           const struct descriptors *given)
{
    int failed = posix_spawn_file_actions_addopen(actions, STDIN_FILENO,
                                                  "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, given->line,
                                                  STDOUT_FILENO);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, given->line,
                                                  STDERR_FILENO);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, given->report,
                                                  CHILD_REPORT_FD);
    if (failed == 0 && given->secret >= 0)
        failed = posix_spawn_file_actions_adddup2(actions, given->secret,
                                                  CHILD_SECRET_FD);
    return failed;
}

/* This very program: by its path, which ps shows, unless it is gone. */
static const char *program(char *path, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n <= 0)
        return "/proc/self/exe";
    path[n] = '\0';
    return access(path, X_OK) == 0 ? path : "/proc/self/exe";
}

static int spawn(pid_t *pid, char *const argv[],
                 const struct descriptors *given)
{
    char path[4096];
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int failed = posix_spawnattr_init(&attributes);
    if (failed != 0)
        return ls_error_from(failed, "starting a node");
    failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        (void)posix_spawnattr_destroy(&attributes);
        return ls_error_from(failed, "starting a node");
    }
    failed = set_signals(&attributes);
    if (failed == 0)
        failed = set_descriptors(&actions, given);
    if (failed == 0)
        failed = posix_spawn(pid, program(path, sizeof path), &actions,
                             &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return failed == 0 ? LS_OK : ls_error_from(failed, "starting a node");
}

/* Without a deadline a join cannot fail. */
static void join(ls_thread **thread)
{
    const int status = ls_thread_join(thread, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
}

/* Once the process is there, the waiter is what must not fail: without the
 * other two it is only deaf. */
static int listen_to(child *self)
{
    ls_runtime *runtime = ls_runtime_threads();
    int status = ls_thread_spawn(runtime, &self->reports, "node reports",
                                 read_reports, self);
    if (status != LS_OK) {
        (void)close(self->report_fd);
        (void)close(self->line_fd);
    } else {
        status = ls_thread_spawn(runtime, &self->lines, "node lines",
                                 read_lines, self);
        if (status != LS_OK)
            (void)close(self->line_fd);
    }
    if (status == LS_OK)
        status = ls_thread_spawn(runtime, &self->waiter, "node waiter",
                                 wait_for_end, self);
    if (status != LS_OK) {
        (void)kill(self->pid, SIGKILL);
        (void)waitpid(self->pid, NULL, 0);
        join(&self->reports);
        join(&self->lines);
    }
    return status;
}

static int start_with_pipes(child *self, char *const argv[], int secret_fd,
                            int reports[2], int lines[2])
{
    int status = open_pipe(reports);
    if (status == LS_OK)
        status = open_pipe(lines);
    if (status == LS_OK)
        status = spawn(&self->pid, argv,
                       &(struct descriptors){.report = reports[WRITE],
                                             .line = lines[WRITE],
                                             .secret = secret_fd});
    if (status != LS_OK) {
        close_pipe(reports);
        close_pipe(lines);
        return status;
    }
    (void)close(reports[WRITE]);
    (void)close(lines[WRITE]);
    self->report_fd = reports[READ];
    self->line_fd = lines[READ];
    supervisor_note_pid(self->watcher, self->index, (long)self->pid);
    return listen_to(self);
}

int child_start(child **out, char *const argv[], int secret_fd, size_t index,
                supervisor *watcher)
{
    child *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "starting a node");
    self->index = index;
    self->watcher = watcher;
    int status = ls_mutex_init(&self->mutex, ls_runtime_threads());
    if (status != LS_OK) {
        free(self);
        return status;
    }
    int reports[2] = {-1, -1}, lines[2] = {-1, -1};
    status = start_with_pipes(self, argv, secret_fd, reports, lines);
    if (status != LS_OK) {
        ls_mutex_fini(&self->mutex);
        free(self);
        return status;
    }
    *out = self;
    return LS_OK;
}

void child_kill(child *self, int signal)
{
    ls_mutex_lock(&self->mutex);
    if (!self->reaped)
        (void)kill(self->pid, signal);
    ls_mutex_unlock(&self->mutex);
}

bool child_destroy(child **self)
{
    if (self == NULL || *self == NULL)
        return true;
    join(&(*self)->waiter);
    const bool quiet = (*self)->reports == NULL && (*self)->lines == NULL;
    if (quiet) {
        ls_mutex_fini(&(*self)->mutex);
        free(*self);
    }
    *self = NULL;
    return quiet;
}
