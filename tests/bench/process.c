#define _DEFAULT_SOURCE /* mkdtemp */
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16

static pid_t living[PROCESS_MAX];
static char folder[] = "/tmp/lockstep-bench-XXXXXX";
static int has_folder;
static sigset_t interrupts, mask_before;

int64_t bench_now(void)
{
    return ls_now(ls_runtime_threads());
}

static void remove_folder(void)
{
    DIR *dir = has_folder ? opendir(folder) : NULL;
    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    (void)closedir(dir);
    (void)rmdir(folder);
}

void bench_fail(const char *what)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, ls_error_text());
    for (size_t i = 0; i < PROCESS_MAX; i++)
        if (living[i] != 0)
            (void)kill(living[i], SIGKILL);
    remove_folder();
    (void)fflush(stdout);
    _exit(1);
}

static void fail_errno(const char *what)
{
    (void)ls_error_from(errno, what);
    bench_fail("a process");
}

ls_thread *bench_thread(void (*fn)(void *self), void *self)
{
    ls_thread *thread;
    if (ls_thread_spawn(ls_runtime_threads(), &thread, "bench", fn, self) !=
        LS_OK)
        bench_fail("thread");
    return thread;
}

void bench_thread_join(ls_thread *thread)
{
    if (ls_thread_join(&thread, LS_FOREVER) != LS_OK)
        bench_fail("thread");
}

void bench_latch_init(struct bench_latch *latch)
{
    latch->done = false;
    if (ls_mutex_init(&latch->lock, ls_runtime_threads()) != LS_OK ||
        ls_cond_init(&latch->changed, ls_runtime_threads()) != LS_OK)
        bench_fail("latch");
}

void bench_latch_fini(struct bench_latch *latch)
{
    ls_cond_fini(&latch->changed);
    ls_mutex_fini(&latch->lock);
}

void bench_latch_open(struct bench_latch *latch)
{
    ls_mutex_lock(&latch->lock);
    latch->done = true;
    ls_cond_signal(&latch->changed);
    ls_mutex_unlock(&latch->lock);
}

void bench_latch_wait(struct bench_latch *latch, int wait_ms)
{
    const int64_t deadline = ls_deadline(ls_runtime_threads(), wait_ms);
    ls_mutex_lock(&latch->lock);
    while (!latch->done)
        if (ls_cond_wait(&latch->changed, &latch->lock, deadline) != LS_OK)
            bench_fail("it was not done in time");
    latch->done = false;
    ls_mutex_unlock(&latch->lock);
}

#define JOB "LOCKSTEP_BENCH_JOB"

void process_init(void)
{
    char job[32];
    (void)snprintf(job, sizeof job, "bench-%d", (int)getpid());
    (void)setenv(JOB, job, 0); /* those that it starts have it already */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&interrupts);
    (void)sigaddset(&interrupts, SIGINT);
    (void)sigaddset(&interrupts, SIGTERM);
    (void)sigaddset(&interrupts, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &interrupts, &mask_before);
    (void)atexit(remove_folder);
}

const char *bench_job(void)
{
    return getenv(JOB);
}

static void look_for_interrupts(void)
{
    sigset_t pending;
    if (sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) == 1 ||
                                      sigismember(&pending, SIGTERM) == 1 ||
                                      sigismember(&pending, SIGHUP) == 1))
        bench_fail("interrupted");
}

static pid_t *place_of(pid_t pid)
{
    for (size_t i = 0; i < PROCESS_MAX; i++)
        if (living[i] == pid)
            return &living[i];
    bench_fail("too many processes");
}

static void open_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        fail_errno("pipe");
    for (int i = 0; i < 2; i++)
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
}

static pid_t spawn(char *const *argv, int input, int output)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigmask(&attributes, &mask_before);
    errno = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv,
                        environ);
    if (errno != 0)
        fail_errno("posix_spawn");
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return pid;
}

void process_start(struct process *process, const char *const *arguments)
{
    char *argv[ARGUMENTS_MAX + 2] = {"bench"};
    int input[2], output[2];
    pid_t *const place = place_of(0);
    look_for_interrupts();
    for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i] != NULL; i++)
        argv[i + 1] = (char *)(uintptr_t)arguments[i];
    open_pipe(input);
    open_pipe(output);
    process->pid = *place = spawn(argv, input[0], output[1]);
    (void)close(input[0]);
    (void)close(output[1]);
    process->input = fdopen(input[1], "w");
    process->output = fdopen(output[0], "r");
    if (process->input == NULL || process->output == NULL)
        fail_errno("fdopen");
}

static int get_line(FILE *from, char *line)
{
    if (fgets(line, PROCESS_LINE_MAX, from) == NULL)
        return 0;
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

void process_tell(struct process *process, const char *line)
{
    if (fprintf(process->input, "%s\n", line) < 0 ||
        fflush(process->input) != 0)
        bench_fail("a process hears nothing any more");
}

void process_hear(struct process *process, char *line)
{
    if (!get_line(process->output, line))
        bench_fail("a process ended early");
}

static int reap(struct process *process)
{
    int status = 0;
    (void)fclose(process->input);
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)fclose(process->output);
    *place_of(process->pid) = 0;
    return status;
}

void process_end(struct process *process)
{
    if (reap(process) != 0)
        bench_fail("a process failed");
}

void process_kill(struct process *process)
{
    (void)kill(process->pid, SIGKILL);
    (void)reap(process);
}

void parent_tell(const char *line)
{
    if (printf("%s\n", line) < 0 || fflush(stdout) != 0)
        bench_fail("nobody listens");
}

int parent_hear(char *line)
{
    return get_line(stdin, line);
}

const char *bench_folder(void)
{
    if (!has_folder && mkdtemp(folder) == NULL)
        fail_errno("mkdtemp");
    has_folder = 1;
    return folder;
}
