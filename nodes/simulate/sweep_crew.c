/* Process i of n runs every nth seed from the ith on, so the next seed in order
 * is always the next that its process says. One that is ahead waits in write():
 * a pipe holds what comes of some dozens of seeds. Nobody is killed, since
 * a simulation may have files to remove: one that nobody listens to any more
 * ends when it has something to say. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signal_name.h"
#include "sweep_seed.h"

struct worker {
    pid_t pid; /* 0: reaped, or never started */
    int fd;    /* -1: closed */
    int how;   /* it ended, as waitpid(2) says */
};

struct sweep_crew {
    uint64_t n_read;
    bool is_told; /* one that failed was spoken of */
    size_t n;
    struct worker workers[];
};

static int start(struct worker *worker, struct arguments *arguments)
{
    int pipe_fds[2];
    posix_spawn_file_actions_t actions;
    int status = spawn_pipe(pipe_fds);
    if (status != LS_OK)
        return status;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        spawn_close_pipe(pipe_fds);
        return ls_error_from(failed, "starting a process");
    }
    failed = posix_spawn_file_actions_adddup2(&actions, pipe_fds[1],
                                              SWEEP_REPORT_FD);
    status = failed == 0 ? spawn_self(&worker->pid, arguments, &actions)
                         : ls_error_from(failed, "starting a process");
    (void)posix_spawn_file_actions_destroy(&actions);
    if (status == LS_OK) {
        worker->fd = pipe_fds[0];
        pipe_fds[0] = -1;
    }
    spawn_close_pipe(pipe_fds);
    return status;
}

int sweep_crew_start(sweep_crew **out, const struct sweep_options *options)
{
    const uint64_t n = options->jobs < options->n ? options->jobs : options->n;
    sweep_crew *made = calloc(1, sizeof *made + n * sizeof made->workers[0]);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "the processes of a sweep");
    made->n = (size_t)n;
    for (size_t i = 0; i < n; i++)
        made->workers[i].fd = -1;
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        struct arguments arguments = {.n = 0};
        options->arguments(options->self, &arguments, options->first + i,
                           options->n - i, n);
        status = start(&made->workers[i], &arguments);
        arguments_fini(&arguments);
    }
    if (status != LS_OK) {
        made->is_told = true;
        (void)sweep_crew_end(&made);
        return status;
    }
    *out = made;
    return LS_OK;
}

static void reap(struct worker *worker)
{
    while (worker->pid > 0 && waitpid(worker->pid, &worker->how, 0) < 0 &&
           errno == EINTR)
        continue;
    worker->pid = 0;
}

/* False: it ended before. */
static bool read_all(int fd, void *to, size_t size)
{
    char *at = to;
    while (size > 0) {
        const ssize_t n = read(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static int read_seed(struct worker *worker, struct sweep_seed *out,
                     char **story)
{
    if (!read_all(worker->fd, out, sizeof *out))
        return LS_ECLOSED;
    if (out->story_size == 0)
        return LS_OK;
    *story = calloc(1, out->story_size + 1);
    if (*story == NULL)
        return ls_error(LS_ENOMEM, "the events before a violation");
    return read_all(worker->fd, *story, out->story_size) ? LS_OK : LS_ECLOSED;
}

static bool is_to_end(int code)
{
    return code == 128 + SIGINT || code == 128 + SIGTERM ||
           code == 128 + SIGHUP;
}

/* It has ended without a word about the seed that it was to run. */
static int node_end(sweep_crew *crew, const struct worker *worker,
                    struct sweep_seed *out)
{
    crew->is_told = true;
    memset(out, 0, sizeof *out);
    out->violated = true;
    if (WIFSIGNALED(worker->how)) {
        (void)snprintf(out->text, sizeof out->text,
                       "crash: it killed the program, by signal %d (%s)",
                       WTERMSIG(worker->how),
                       signal_name(WTERMSIG(worker->how)));
        return LS_OK;
    }
    out->signal = WEXITSTATUS(worker->how) - 128;
    if (is_to_end(WEXITSTATUS(worker->how)))
        return ls_error(LS_ECANCELED, "a process of the sweep was told to end");
    (void)snprintf(out->text, sizeof out->text,
                   "crash: the program ended with exit code %d",
                   WEXITSTATUS(worker->how));
    return LS_OK;
}

int sweep_crew_next(sweep_crew *crew, struct sweep_seed *out, char **story)
{
    struct worker *worker = &crew->workers[crew->n_read++ % crew->n];
    *story = NULL;
    int status = read_seed(worker, out, story);
    if (status == LS_ECLOSED) {
        free(*story);
        *story = NULL;
        reap(worker);
        status = node_end(crew, worker, out);
    }
    return status;
}

int sweep_crew_end(sweep_crew **crew)
{
    int code = 0;
    for (size_t i = 0; i < (*crew)->n; i++) {
        struct worker *worker = &(*crew)->workers[i];
        if (worker->fd >= 0)
            (void)close(worker->fd);
        worker->fd = -1;
    }
    for (size_t i = 0; i < (*crew)->n; i++) {
        struct worker *worker = &(*crew)->workers[i];
        reap(worker);
        if (WIFEXITED(worker->how) && !is_to_end(WEXITSTATUS(worker->how)) &&
            WEXITSTATUS(worker->how) > code)
            code = WEXITSTATUS(worker->how);
    }
    const bool is_told = (*crew)->is_told;
    free(*crew);
    *crew = NULL;
    return is_told ? 0 : code;
}

/* The process ------------------------------------------------------------ */

/* False: nobody reads it. */
static bool write_all(const void *from, size_t size)
{
    const char *at = from;
    while (size > 0) {
        const ssize_t n = write(SWEEP_REPORT_FD, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

int sweep_serve(const struct sweep_options *options)
{
    int status = LS_OK;
    bool goes_on = true;
    (void)signal(SIGPIPE, SIG_IGN);
    for (uint64_t i = 0; i < options->n && goes_on; i += options->every) {
        struct sweep_seed one;
        char *story = NULL;
        status = sweep_one(&one, &story, options, options->first + i);
        goes_on = status == LS_OK && write_all(&one, sizeof one) &&
                  write_all(story, one.story_size) && !one.violated &&
                  options->progress(options->self, i + 1);
        free(story);
    }
    return status;
}
