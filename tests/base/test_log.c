#include "lockstep/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/runtime.h"
#include "test.h"

/* The last line that was written, and how many were. */
static char last_line[8192];
static int n_lines;

static void keep_line(void *self, const char *line)
{
    (void)self;
    strcpy(last_line, line);
    n_lines++;
    errno = EIO;
}

static int redirect(void **state)
{
    (void)state;
    n_lines = 0;
    last_line[0] = '\0';
    ls_log_set_node(-1);
    ls_log_set_step(NULL);
    ls_log_redirect(keep_line, NULL);
    return ls_log_setup("info");
}

static int restore(void **state)
{
    (void)state;
    ls_log_redirect(NULL, NULL);
    return ls_log_setup("");
}

/* What stands behind the time, which must be one: 12:03:44.512 */
static const char *behind_time(const char *line)
{
    static const char pattern[] = "00:00:00.000 ";
    for (size_t i = 0; i < sizeof pattern - 1; i++)
        if (pattern[i] == '0' ? !isdigit((unsigned char)line[i])
                              : line[i] != pattern[i])
            fail_msg("no time: %s", line);
    return line + sizeof pattern - 1;
}

static void assert_line(const char *wanted)
{
    assert_string_equal(behind_time(last_line), wanted);
}

/* What stands behind {"time":1700000000.123456, */
static void assert_json(const char *wanted)
{
    static const char start[] = "{\"time\":";
    assert_memory_equal(last_line, start, sizeof start - 1);
    const char *at = last_line + sizeof start - 1;
    assert_int_equal(strspn(at, "0123456789"), 10);
    assert_int_equal(at[10], '.');
    assert_int_equal(strspn(at + 11, "0123456789"), 6);
    assert_int_equal(at[17], ',');
    assert_string_equal(at + 18, wanted);
}

EACH_TEST(redirect, restore)

TEST(levels_up_to_the_chosen_one_are_written)
{
    static const char *const names[] = {"error", "warn", "info", "debug",
                                        "trace"};
    for (int chosen = LS_LOG_ERROR; chosen <= LS_LOG_TRACE; chosen++) {
        n_lines = 0;
        assert_ok(ls_log_setup(names[chosen]));
        for (int level = LS_LOG_ERROR; level <= LS_LOG_TRACE; level++)
            assert_int_equal(ls_log_enabled((enum ls_log_level)level),
                             level <= chosen);
        ls_log_error("x");
        ls_log_warn("x");
        ls_log_info("x");
        ls_log_debug("x");
        ls_log_trace("x");
        assert_int_equal(n_lines, chosen + 1);
    }
}

/* For who knows the level only as the program runs. */
TEST(a_level_may_be_a_value)
{
    assert_ok(ls_log_setup("info"));
    for (int level = LS_LOG_ERROR; level <= LS_LOG_TRACE; level++)
        ls_log_write((enum ls_log_level)level, "%s %d", "level", level);
    assert_int_equal(n_lines, LS_LOG_INFO + 1);
    assert_line("info  level 2");
}

TEST(what_is_not_written_is_not_evaluated)
{
    int n = 0;
    ls_log_debug("%d", ++n);
    assert_int_equal(n, 0);
    ls_log_info("%d", ++n);
    assert_int_equal(n, 1);
}

TEST(setup_takes_a_level_a_form_or_both)
{
    assert_ok(ls_log_setup("debug,json"));
    assert_true(ls_log_enabled(LS_LOG_DEBUG));
    ls_log_info("x");
    assert_json("\"level\":\"info\",\"text\":\"x\"}");
    assert_ok(ls_log_setup("json"));
    assert_false(ls_log_enabled(LS_LOG_INFO));
    ls_log_warn("x");
    assert_json("\"level\":\"warn\",\"text\":\"x\"}");
    assert_ok(ls_log_setup(""));
    assert_true(ls_log_enabled(LS_LOG_WARN));
    assert_false(ls_log_enabled(LS_LOG_INFO));
    ls_log_warn("x");
    assert_line("warn  x");
}

TEST(setup_refuses_other_words_and_changes_nothing)
{
    assert_fails(ls_log_setup("loud"), LS_EINVAL);
    assert_error_has("'loud'");
    assert_fails(ls_log_setup("trace,xml"), LS_EINVAL);
    assert_fails(ls_log_setup("tracer"), LS_EINVAL);
    assert_fails(ls_log_setup("trac"), LS_EINVAL);
    assert_fails(ls_log_setup(",trace"), LS_EINVAL);
    assert_fails(ls_log_setup(NULL), LS_EINVAL);
    assert_true(ls_log_enabled(LS_LOG_INFO));
    assert_false(ls_log_enabled(LS_LOG_DEBUG));
}

TEST(a_line_names_node_and_step)
{
    ls_log_info("bus: %d", 5);
    assert_line("info  bus: 5");
    ls_log_set_node(3);
    ls_log_error("bus");
    assert_line("error node 3 bus");
    ls_log_set_step("collect");
    ls_log_warn("bus");
    assert_line("warn  node 3 [collect] bus");
    assert_int_equal(ls_log_node(), 3);
    assert_string_equal(ls_log_step(), "collect");
    assert_ok(ls_log_setup("json"));
    ls_log_warn("bus");
    assert_json("\"level\":\"warn\",\"node\":3,\"step\":\"collect\","
                "\"text\":\"bus\"}");
}

static void log_elsewhere(void *arg)
{
    (void)arg;
    ls_log_info("there");
}

TEST(node_and_step_are_the_threads_own)
{
    ls_log_set_node(3);
    ls_log_set_step("collect");
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "other",
                              log_elsewhere, NULL));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_line("info  there");
}

/* What the system calls the calling thread. */
static void read_name(char name[32])
{
    FILE *file = fopen("/proc/thread-self/comm", "re");
    assert_non_null(file);
    assert_non_null(fgets(name, 32, file));
    (void)fclose(file);
    name[strcspn(name, "\n")] = '\0';
}

static void be_of_nodes(void *arg)
{
    char(*names)[32] = arg;
    read_name(names[0]);
    ls_log_set_node(2);
    read_name(names[1]);
    ls_log_set_node(-1); /* it has worked for that one */
    read_name(names[2]);
    ls_log_set_node(UINT32_MAX);
    read_name(names[3]);
}

TEST(a_spawned_thread_is_named_after_its_node)
{
    char names[5][32], before[32];
    ls_thread *thread;
    read_name(before);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "ls-dispatch",
                              be_of_nodes, names));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_string_equal(names[0], "ls-dispatch");
    assert_string_equal(names[1], "2 ls-dispatch");
    assert_string_equal(names[2], "2 ls-dispatch");
    assert_string_equal(names[3], "4294967295 ls-d");
    ls_log_set_node(2); /* the program's own thread has its name */
    read_name(names[4]);
    assert_string_equal(names[4], before);
}

TEST(text_makes_disturbing_bytes_visible)
{
    ls_log_info("a\nb\tc\rd\x1b[31m\x7f|\xC2\x9B|\"\\");
    assert_line("info  a\\nb\\tc\\rd\\x1b[31m\\x7f|\\x9b|\"\\");
    ls_log_info("é…😀|\xFF|\xE2\x80|\xC0\x8A|\xED\xA0\x80");
    assert_line("info  é…😀|\\xff|\\xe2\\x80|\\xc0\\x8a|\\xed\\xa0\\x80");
    ls_log_set_step("a\nb");
    ls_log_info("x");
    assert_line("info  [a\\nb] x");
}

TEST(json_escapes_any_bytes)
{
    assert_ok(ls_log_setup("json"));
    ls_log_warn("a\nb\tc\rd\x1b[31m\x7f|\xC2\x9B|\"\\");
    assert_json("\"level\":\"warn\",\"text\":\"a\\nb\\tc\\rd\\u001b[31m"
                "\\u007f|\\u009b|\\\"\\\\\"}");
    ls_log_warn("é…😀|\xFF|\xE2\x80|");
    assert_json("\"level\":\"warn\",\"text\":\"é…😀|\\ufffd|"
                "\\ufffd\\ufffd|\"}");
    ls_log_set_step("\"");
    ls_log_warn("x");
    assert_json("\"level\":\"warn\",\"step\":\"\\\"\",\"text\":\"x\"}");
}

TEST(a_long_line_is_cut_and_still_whole)
{
    static char text[20000];
    static const char *const fillers[] = {"x", "é", "\x01", "\n", "\xFF"};
    static const char *const settings[] = {"info", "info,json"};
    ls_log_set_step("collect");
    for (size_t i = 0; i < 10; i++) {
        const char *filler = fillers[i / 2];
        text[0] = '\0';
        for (size_t n = 0; n < 9000; n += strlen(filler))
            strcpy(text + n, filler);
        assert_ok(ls_log_setup(settings[i % 2]));
        ls_log_info("%s", text);
        const char *end = i % 2 == 0 ? "…" : "…\"}";
        const size_t length = strlen(last_line);
        assert_in_range(length, 4080, 4095);
        assert_string_equal(last_line + length - strlen(end), end);
    }
}

TEST(a_long_step_leaves_room_for_the_text)
{
    static char step[5000];
    memset(step, '\x01', sizeof step - 1);
    ls_log_set_step(step);
    assert_ok(ls_log_setup("json"));
    ls_log_warn("the text");
    assert_non_null(strstr(last_line, "\",\"text\":\"the text\"}"));
}

TEST(logging_keeps_errno_and_the_last_error)
{
    (void)ls_error(LS_EIO, "before");
    errno = ENOTTY;
    ls_log_info("%s", ls_error_text());
    assert_int_equal(errno, ENOTTY);
    assert_string_equal(ls_error_text(), "before");
    assert_line("info  before");
}

/* A socket of packets tells one write from two. */
TEST(a_line_on_stderr_is_one_write_without_colours)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const int before = dup(STDERR_FILENO);
    assert_true(dup2(ends[0], STDERR_FILENO) >= 0);
    ls_log_redirect(NULL, NULL);
    ls_log_warn("to stderr");
    ls_log_redirect(keep_line, NULL);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    const ssize_t n = recv(ends[1], last_line, sizeof last_line, MSG_DONTWAIT);
    assert_true(n > 0);
    last_line[n] = '\0';
    assert_line("warn  to stderr\n");
    assert_int_equal(recv(ends[1], last_line, 1, MSG_DONTWAIT), -1);
    close(before);
    close(ends[0]);
    close(ends[1]);
}

/* Fill it, so that a write would wait. */
static void fill(int fd)
{
    static const char bytes[4096];
    const int flags = fcntl(fd, F_GETFL);
    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (write(fd, bytes, sizeof bytes) > 0)
        continue;
    assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
}

/* What a pipe has, without what it was filled with. */
static void read_lines(int fd, char *out, size_t size)
{
    static char bytes[1 << 20];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    size_t length = 0;
    for (ssize_t i = 0; i < n && length < size - 1; i++)
        if (bytes[i] != '\0')
            out[length++] = bytes[i];
    out[length] = '\0';
}

/* A thread that others wait for logs. */
TEST(a_stderr_that_nobody_reads_holds_up_nobody_and_lines_are_counted)
{
    int ends[2];
    char lines[1024];
    assert_int_equal(pipe(ends), 0);
    fill(ends[1]);
    const int before = dup(STDERR_FILENO);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    ls_log_redirect(NULL, NULL);
    ls_log_warn("first");
    ls_log_warn("second");
    read_lines(ends[0], lines, sizeof lines);
    ls_log_warn("third");
    ls_log_warn("fourth");
    ls_log_redirect(keep_line, NULL);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    assert_string_equal(lines, "");
    read_lines(ends[0], lines, sizeof lines);
    assert_non_null(strstr(lines, "warn  log: lines left out before this, "
                                  "which stderr did not take: 2\n"));
    assert_non_null(strstr(lines, "warn  third\n"));
    assert_non_null(strstr(lines, "warn  fourth\n"));
    close(before);
    close(ends[0]);
    close(ends[1]);
}

/* The lines of this program when it runs anew with LS_LOG set, as that says. */
static void run_as(const char *what, const char *setting, char *out,
                   size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    char variable[64];
    snprintf(variable, sizeof variable, "LS_LOG=%s", setting);
    char self[] = "/proc/self/exe", argument[16];
    snprintf(argument, sizeof argument, "%s", what);
    char *const arguments[] = {self, argument, NULL};
    char *const environment[] = {variable, NULL};
    pid_t pid;
    assert_int_equal(
        posix_spawn(&pid, self, &actions, NULL, arguments, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t length = 0;
    ssize_t n;
    while ((n = read(ends[0], out + length, size - 1 - length)) > 0)
        length += (size_t)n;
    out[length] = '\0';
    close(ends[0]);
    int result;
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_int_equal(result, 0);
}

static void run_with(const char *setting, char *out, size_t size)
{
    run_as("speak", setting, out, size);
}

/* What run_with() runs: the first lines of a process. */
static int speak(void)
{
    (void)ls_error(LS_EIO, "a reason");
    ls_log_debug("debug: %s", ls_error_text());
    ls_log_warn("warn: %s", ls_error_text());
    return 0;
}

TEST(the_environment_is_read_before_the_first_line)
{
    char out[1024];
    run_with("", out, sizeof out);
    assert_string_equal(behind_time(out), "warn  warn: a reason\n");
    run_with("debug", out, sizeof out);
    assert_non_null(strstr(out, " debug debug: a reason\n"));
    run_with("error", out, sizeof out);
    assert_string_equal(out, "");
    run_with("debug,json", out, sizeof out);
    assert_non_null(strstr(out, "\"level\":\"debug\",\"text\":\"debug: a"));
}

TEST(a_bad_environment_is_told_and_ignored)
{
    char out[1024];
    run_with("loud", out, sizeof out);
    assert_non_null(strstr(out, "LS_LOG='loud' is ignored"));
    assert_non_null(strstr(out, " warn  warn: a reason\n"));
    assert_null(strstr(out, "debug: a reason"));
}

/* A process whose last lines its stderr does not take: into a full disk, and
 * without a reader. */
static int end_unread(void)
{
    int ends[2];
    const int before = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY);
    if (before < 0 || full < 0 || pipe(ends) != 0)
        return 1;
    fill(ends[1]);
    (void)dup2(full, STDERR_FILENO);
    ls_log_warn("into a full disk");
    (void)dup2(ends[1], STDERR_FILENO);
    ls_log_warn("into a full pipe");
    ls_log_warn("into a full pipe");
    (void)dup2(before, STDERR_FILENO);
    return 0;
}

TEST(the_end_of_a_process_says_how_many_lines_were_left_out)
{
    char out[1024];
    run_as("end_unread", "", out, sizeof out);
    assert_string_equal(behind_time(out),
                        "warn  log: lines left out before this, which stderr "
                        "did not take: 3\n");
}

static int begun[2], may_end[2]; /* pipes */

static void keep_slowly(void *self, const char *line)
{
    char byte = 0;
    (void)self;
    (void)line;
    assert_int_equal(write(begun[1], &byte, 1), 1);
    assert_int_equal(read(may_end[0], &byte, 1), 1);
}

static void say_one(void *self)
{
    (void)self;
    ls_log_warn("from another thread");
}

static int child_logs(void)
{
    alarm(10);
    ls_log_redirect(keep_line, NULL);
    ls_log_warn("from the child");
    return strstr(last_line, "from the child") != NULL ? 0 : 1;
}

TEST(the_child_of_a_fork_logs_whoever_did_at_that_moment)
{
    ls_thread *thread = NULL;
    char byte = 0;
    int result = -1;
    assert_int_equal(pipe(begun), 0);
    assert_int_equal(pipe(may_end), 0);
    ls_log_redirect(keep_slowly, NULL);
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &thread, "logs", say_one, NULL));
    assert_int_equal(read(begun[0], &byte, 1), 1);
    const pid_t child = fork();
    if (child == 0)
        _exit(child_logs());
    assert_int_equal(write(may_end[1], &byte, 1), 1);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    for (int i = 0; i < 2; i++) {
        close(begun[i]);
        close(may_end[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "speak") == 0)
        return speak();
    if (argc > 1 && strcmp(argv[1], "end_unread") == 0)
        return end_unread();
    return tests_run();
}
