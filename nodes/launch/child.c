/* A process is waited for and signalled by a pidfd, which never means another
 * process, as its number may from the moment that it is reaped. Until then the
 * number is its own, so the pidfd opened for it here is of this process.
 *
 * A grandchild may keep the pipes open for ever; the readers are therefore
 * waited for only so long. One that is left goes with the program. */
#define _GNU_SOURCE /* P_PIDFD */
#include "child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

#include "join_within.h"
#include "outlet.h"

#define DRAIN_MS   500
#define LINE_BYTES (64 << 10) /* bytes; of a longer line, each piece */

enum { READ, WRITE };

struct child {
    size_t index;
    supervisor *watcher; /* borrow */
    int pid_fd;          /* own */
    int report_fd;       /* read ends; each closed by its reader */
    int line_fd;
    bool tool;                           /* see struct descriptors */
    ls_thread *reports, *lines, *waiter; /* own */
    char line[LINE_BYTES + 1];           /* of the reader of lines */
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

/* The next line, or of one that does not end so much as there is room for:
 * who writes no newline must not fill the memory. False: there is none. */
static bool read_line(FILE *file, char line[LINE_BYTES + 1])
{
    size_t n = 0;
    int c;
    while ((c = getc_unlocked(file)) != EOF && c != '\n' && n < LINE_BYTES)
        line[n++] = (char)c;
    if (c != EOF && c != '\n')
        (void)ungetc(c, file);
    line[n] = '\0';
    return n > 0 || c != EOF;
}

static void read_lines(void *arg)
{
    child *self = arg;
    FILE *file = fdopen(self->line_fd, "r");
    if (file == NULL) {
        (void)close(self->line_fd);
        return;
    }
    while (read_line(file, self->line)) {
        supervisor_note_line(self->watcher, self->index, self->line);
        outlet_await_room();
    }
    (void)fclose(file);
}

/* A container that was killed ends with 128+n, as a node does by itself when it
 * is told to end. */
static int signal_of(const child *self, const siginfo_t *how)
{
    if (how->si_code != CLD_EXITED)
        return how->si_status;
    const int n = how->si_status - 128;
    return self->tool && n > 0 && n != SIGINT && n != SIGTERM && n != SIGHUP &&
                   n != SIGPIPE
               ? n
               : 0;
}

static void wait_for_end(void *arg)
{
    child *self = arg;
    siginfo_t how = {.si_code = 0};
    while (waitid(P_PIDFD, (id_t)self->pid_fd, &how, WEXITED) < 0 &&
           errno == EINTR)
        continue;

    /* All that the process wrote is in the pipes, and may not be read yet. */
    if (!join_within(&self->reports, DRAIN_MS) ||
        !join_within(&self->lines, DRAIN_MS))
        ls_log_debug("a program that node %zu started is still there",
                     self->index);
    supervisor_note_end(self->watcher, self->index,
                        how.si_code == CLD_EXITED ? how.si_status : 1,
                        signal_of(self, &how));
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
        child_kill(self, SIGKILL);
        (void)waitid(P_PIDFD, (id_t)self->pid_fd, &(siginfo_t){0}, WEXITED);
        join(&self->reports);
        join(&self->lines);
    }
    return status;
}

/* Without one it must not stay: nobody would stop it. */
static int open_pid(child *self, pid_t pid)
{
    self->pid_fd = pidfd_open(pid, 0);
    if (self->pid_fd >= 0)
        return LS_OK;
    const int failed = errno;
    (void)kill(pid, SIGKILL); /* not reaped, so it is no other */
    (void)waitpid(pid, NULL, 0);
    return ls_error_from(failed, "watching a process (pidfd_open)");
}

static int start_with_pipes(child *self, const struct arguments *arguments,
                            int secret_fd, bool tool, int reports[2],
                            int lines[2])
{
    pid_t pid = -1;
    int status = spawn_pipe(reports);
    if (status == LS_OK)
        status = spawn_pipe(lines);
    if (status == LS_OK)
        status = spawn(&pid, arguments,
                       &(struct descriptors){.report = reports[WRITE],
                                             .line = lines[WRITE],
                                             .secret = secret_fd,
                                             .tool = tool});
    if (status == LS_OK)
        status = open_pid(self, pid);
    if (status != LS_OK) {
        spawn_close_pipe(reports);
        spawn_close_pipe(lines);
        return status;
    }
    (void)close(reports[WRITE]);
    (void)close(lines[WRITE]);
    self->report_fd = reports[READ];
    self->line_fd = lines[READ];
    if (!tool) /* it is not a node */
        supervisor_note_pid(self->watcher, self->index, (long)pid);
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
    self->pid_fd = -1;
    int reports[2] = {-1, -1}, lines[2] = {-1, -1};
    const int status =
        start_with_pipes(self, arguments, secret_fd, tool, reports, lines);
    if (status != LS_OK) {
        if (self->pid_fd >= 0)
            (void)close(self->pid_fd);
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
    (void)pidfd_send_signal(self->pid_fd, signal, NULL, 0);
}

bool child_destroy(child **self)
{
    if (self == NULL || *self == NULL)
        return true;
    join(&(*self)->waiter);
    (void)close((*self)->pid_fd);
    const bool quiet = (*self)->reports == NULL && (*self)->lines == NULL;
    if (quiet)
        free(*self);
    *self = NULL;
    return quiet;
}
