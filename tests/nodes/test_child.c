/* child.h, with programs that stand for nodes. */
#define _GNU_SOURCE /* unshare, clone3 */
#include "child.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/file.h"
#include "node_output.h"
#include "plan_reading.h"
#include "run_folder.h"

#define ONE "nodes: [{role: member}]\n"

struct stage {
    struct plan plan;
    render *render;
    supervisor *supervisor;
    child *child;       /* own */
    const char *script; /* of sh; $0 is its argument */
    const char *argument;
    node_output *output; /* borrow; NULL: none */
    int stop; /* the signal that it is to get as soon as it reports; 0: none */
};

static int start(void *self, size_t index, const struct launch *launch)
{
    struct stage *stage = self;
    struct arguments arguments = {.n = 0};
    (void)launch;
    arguments_add(&arguments, "sh");
    arguments_add(&arguments, "-c");
    arguments_add(&arguments, stage->script);
    arguments_add(&arguments, stage->argument);
    const int status =
        child_start_tool(&stage->child, &arguments, index, stage->supervisor);
    arguments_fini(&arguments);
    if (status == LS_OK && stage->stop != 0)
        child_kill(stage->child, stage->stop);
    return status;
}

static void stop(void *self, size_t index, bool hard)
{
    struct stage *stage = self;
    (void)index;
    child_kill(stage->child, hard ? SIGKILL : SIGTERM);
}

/* Run to its end a job of one node, which is such a program. */
static int run(struct stage *stage)
{
    bool left = true;
    read_good(&stage->plan, ONE);
    assert_ok(render_create(&stage->render, &stage->plan, true, 1, NULL));
    assert_ok(supervisor_create(&stage->supervisor, &stage->plan, stage->render,
                                NULL));
    supervisor_set_output(stage->supervisor, stage->output);
    const struct launcher launcher = {
        .start = start, .stop = stop, .self = stage};
    const int code = supervise(stage->supervisor, &launcher, 60, &left);
    assert_false(left);
    return code;
}

static void end(struct stage *stage)
{
    assert_true(child_destroy(&stage->child));
    assert_null(stage->child);
    supervisor_destroy(&stage->supervisor);
    render_destroy(&stage->render);
    plan_fini(&stage->plan);
}

TEST(who_is_gone_gets_no_signal)
{
    struct stage stage = {.script = "exit 7", .argument = "."};
    assert_int_equal(run(&stage), 1);
    child_kill(stage.child, SIGKILL);
    child_kill(stage.child, SIGTERM);
    end(&stage);
}

TEST(a_signal_ends_it)
{
    struct stage stage = {.script = "read wait <\"$0\"",
                          .argument = "/dev/zero",
                          .stop = SIGKILL};
    assert_int_equal(run(&stage), 1);
    end(&stage);
}

/* ---- lines --------------------------------------------------------------- */

#define PIECE 65536u

/* What a node writes, as a folder of lines has it; own. */
static char *written_by(const char *script, size_t *size)
{
    struct stage stage = {.script = script, .argument = "."};
    node_output *output;
    char folder[] = "/tmp/lockstep-child-XXXXXX", path[128];
    void *text;
    assert_non_null(mkdtemp(folder));
    read_good(&stage.plan, ONE);
    assert_ok(node_output_open(
        &output, folder, &stage.plan,
        &(struct run_folder){.name = "1", .token = "00c0ffee"}));
    (void)snprintf(path, sizeof path, "%s/%.31s.1-00c0ffee/node-0.log", folder,
                   stage.plan.job);
    plan_fini(&stage.plan);
    stage.output = output;
    assert_int_equal(run(&stage), 1);
    end(&stage);
    assert_ok(node_output_close(&output));
    assert_ok(ls_file_read(path, 16 * PIECE, &text, size));
    assert_ok(ls_file_remove(path));
    *strrchr(path, '/') = '\0';
    assert_ok(ls_folder_remove(path));
    assert_ok(ls_folder_remove(folder));
    return text;
}

/* Lines of these lengths, and nothing else. */
static void check_lines(const char *script, const size_t *lengths, size_t n)
{
    size_t size, at = 0;
    char *text = written_by(script, &size);
    for (size_t i = 0; i < n; i++) {
        const char *end = memchr(text + at, '\n', size - at);
        assert_non_null(end);
        assert_int_equal(end - (text + at), lengths[i]);
        at += lengths[i] + 1;
    }
    assert_int_equal(at, size);
    free(text);
}

TEST(a_line_without_end_comes_in_pieces)
{
    check_lines("head -c 200000 /dev/zero | tr '\\0' x >&2",
                (const size_t[]){PIECE, PIECE, PIECE, 200000 - 3 * PIECE}, 4);
}

TEST(a_line_of_just_a_piece_is_one_line)
{
    check_lines("head -c 65536 /dev/zero | tr '\\0' x >&2; echo >&2; "
                "echo >&2; echo a >&2",
                (const size_t[]){PIECE, 0, 1}, 3);
}

TEST(nothing_is_destroyed_twice)
{
    child *none = NULL;
    assert_true(child_destroy(&none));
    assert_true(child_destroy(NULL));
}

/* ---- a number that is given out again ---- */

enum { NOT_HERE = 3, UNTOUCHED = 7 };

/* A process with this number; it waits for a byte. */
static pid_t bystander(pid_t number, const int wait[2])
{
    struct clone_args how = {.exit_signal = SIGCHLD,
                             .set_tid = (uint64_t)(uintptr_t)&number,
                             .set_tid_size = 1};
    const pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    if (pid == 0) {
        char byte;
        _exit(read(wait[0], &byte, 1) == 1 ? UNTOUCHED : 1);
    }
    return pid;
}

static pid_t number_in(const char *path)
{
    int number = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &number), 1);
    (void)fclose(file);
    return number;
}

/* Process 1 of a namespace, which may choose the numbers in it. Returns its
 * exit code. */
static int in_namespace(const char *path)
{
    struct stage stage = {.script = "echo $$ >\"$0\"", .argument = path};
    int wait[2], how = 0;
    assert_int_equal(pipe(wait), 0);
    assert_int_equal(run(&stage), 1);
    const pid_t number = number_in(path), pid = bystander(number, wait);
    if (pid < 0)
        return NOT_HERE;
    assert_int_equal(pid, number);
    child_kill(stage.child, SIGKILL);
    assert_int_equal(write(wait[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    end(&stage);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static int code_of(pid_t pid)
{
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

TEST(a_bystander_with_the_number_of_one_that_is_gone_is_untouched)
{
    char path[] = "/tmp/lockstep-child-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && close(file) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
            _exit(NOT_HERE);
        const pid_t first = fork();
        if (first == 0)
            _exit(in_namespace(path));
        _exit(first > 0 ? code_of(first) : NOT_HERE);
    }
    const int code = code_of(pid);
    assert_int_equal(unlink(path), 0);
    if (code == NOT_HERE)
        skip(); /* the system lets only root make namespaces */
    assert_int_equal(code, UNTOUCHED);
}
