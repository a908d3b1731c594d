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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

#define DRAIN_MS 200

enum { READ, WRITE };

struct child {
    size_t index;
    supervisor *watcher; /* borrow */
    pid_t pid;
    ls_mutex mutex;
    bool reaped;   /* under mutex */
    int report_fd; /* read ends; each closed by its reader */
    int line_fd;
    bool tool;                           /* see struct descriptors */
    ls_thread *reports, *lines, *waiter; /* own */
};

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

/* A container that was killed ends with 128+n, as a node does by itself when it
 * is told to end. */
static int signal_of(const child *self, int how)
{
    const int n = WIFEXITED(how) ? WEXITSTATUS(how) - 128 : 0;
    if (self->tool && n > 0 && n != SIGINT && n != SIGTERM && n != SIGHUP &&
        n != SIGPIPE)
        return n;
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
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
                        signal_of(self, how));
}

/* What a node is given. */
struct descriptors {
    int report, line;
    int secret; /* -1: none */
    bool tool;  /* it is another program, which reports on its stdout */
};

static int set_descriptors(posix_spawn_file_actions_t *actions,
                           const struct descriptors *given)
{
    int failed = posix_spawn_file_actions_addopen(actions, STDIN_FILENO,
                                                  "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(
            actions, given->tool ? given->report : given->line, STDOUT_FILENO);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, given->line,
                                                  STDERR_FILENO);
    if (failed == 0 && !given->tool)
        failed = posix_spawn_file_actions_adddup2(actions, given->report,
                                                  CHILD_REPORT_FD);
    if (failed == 0 && given->secret >= 0)
        failed = posix_spawn_file_actions_adddup2(actions, given->secret,
                                                  CHILD_SECRET_FD);
    return failed;
}

static int spawn(pid_t *pid, const struct arguments *arguments,
                 const struct descriptors *given)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0)
        return ls_error_from(failed, "starting a node");
    failed = set_descriptors(&actions, given);
    int status;
    if (failed != 0)
        status = ls_error_from(failed, "starting a node");
    else if (given->tool)
        status = spawn_tool(pid, arguments, &actions);
    else
        status = spawn_self(pid, arguments, &actions);
    (void)posix_spawn_file_actions_destroy(&actions);
    return status;
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

static int start_with_pipes(child *self, const struct arguments *arguments,
                            int secret_fd, bool tool, int reports[2],
                            int lines[2])
{
    int status = spawn_pipe(reports);
    if (status == LS_OK)
        status = spawn_pipe(lines);
    if (status == LS_OK)
        status = spawn(&self->pid, arguments,
                       &(struct descriptors){.report = reports[WRITE],
                                             .line = lines[WRITE],
                                             .secret = secret_fd,
                                             .tool = tool});
    if (status != LS_OK) {
        spawn_close_pipe(reports);
        spawn_close_pipe(lines);
        return status;
    }
    (void)close(reports[WRITE]);
    (void)close(lines[WRITE]);
    self->report_fd = reports[READ];
    self->line_fd = lines[READ];
    if (!tool) /* it is no node */
        supervisor_note_pid(self->watcher, self->index, (long)self->pid);
    return listen_to(self);
}

static int start(child **out, const struct arguments *arguments, int secret_fd,
                 bool tool, size_t index, supervisor *watcher)
{
    child *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "starting a node");
    self->index = index;
    self->watcher = watcher;
    self->tool = tool;
    int status = ls_mutex_init(&self->mutex, ls_runtime_threads());
    if (status != LS_OK) {
        free(self);
        return status;
    }
    int reports[2] = {-1, -1}, lines[2] = {-1, -1};
    status = start_with_pipes(self, arguments, secret_fd, tool, reports, lines);
    if (status != LS_OK) {
        ls_mutex_fini(&self->mutex);
        free(self);
        return status;
    }
    *out = self;
    return LS_OK;
}

int child_start(child **out, const struct arguments *arguments, int secret_fd,
                size_t index, supervisor *watcher)
{
    return start(out, arguments, secret_fd, false, index, watcher);
}

int child_start_tool(child **out, const struct arguments *arguments,
                     size_t index, supervisor *watcher)
{
    return start(out, arguments, -1, true, index, watcher);
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
