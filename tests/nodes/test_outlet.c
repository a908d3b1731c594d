/* outlet.h, as a specification. Each case is a process of its own, since the
 * streams are one for the process. */
#include "outlet.h"

#include "exit_code.h"
#include "test.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"
#include "output.h"

enum { LINES = 20000 }; /* more than a pipe holds */

#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition))                                                      \
            _exit(__LINE__ % 250 + 1);                                         \
    } while (0)

/* What fd writes goes into a pipe; its other end is returned. */
static int into_pipe(int fd)
{
    int ends[2];
    MUST(pipe(ends) == 0);
    MUST(dup2(ends[1], fd) == fd);
    MUST(close(ends[1]) == 0);
    return ends[0];
}

struct reader {
    int fd;
    char *text; /* own; '\0' at its end */
};

static void read_all(void *arg)
{
    struct reader *reader = arg;
    size_t n = 0;
    ssize_t got;
    reader->text = malloc((size_t)1 << 26);
    MUST(reader->text != NULL);
    while ((got = read(reader->fd, reader->text + n, 4096)) > 0)
        n += (size_t)got;
    reader->text[n] = '\0';
}

static ls_thread *read_late(struct reader *reader)
{
    ls_thread *thread = NULL;
    MUST(ls_thread_spawn(ls_runtime_threads(), &thread, "reader", read_all,
                         reader) == LS_OK);
    return thread;
}

static void is_numbered(const char *text, int n)
{
    for (int i = 0; i < n; i++) {
        char *end;
        MUST(strtol(text, &end, 10) == i && *end == '\n');
        text = end + 1;
    }
    MUST(*text == '\0');
}

static void prints_to_late_reader(void)
{
    output_init();
    struct reader reader = {.fd = into_pipe(STDOUT_FILENO)};
    MUST(outlet_open() == LS_OK);
    for (int i = 0; i < LINES; i++) {
        printf("%d\n", i);
        MUST(output_flush() == LS_OK);
    }
    ls_thread *thread = read_late(&reader);
    outlet_close();
    MUST(close(STDOUT_FILENO) == 0);
    MUST(ls_thread_join(&thread, LS_FOREVER) == LS_OK);
    is_numbered(reader.text, LINES);
}

TEST(whoever_writes_goes_on_while_nobody_reads_and_a_late_reader_has_all)
{
    assert_int_equal(exit_code_of(prints_to_late_reader), 0);
}

static void writes_all_ways(void)
{
    output_init();
    struct reader reader = {.fd = into_pipe(STDERR_FILENO)};
    outlet_write(STDERR_FILENO, "0\n", 2); /* not open: straight */
    MUST(outlet_open() == LS_OK);
    for (int i = 1; i < LINES; i++) {
        char line[16];
        const int n = snprintf(line, sizeof line, "%d\n", i);
        if (i % 2 == 0)
            outlet_write(STDERR_FILENO, line, (size_t)n);
        else
            (void)fputs(line, stderr);
    }
    ls_log_error("from the log");
    ls_thread *thread = read_late(&reader);
    outlet_close();
    (void)fputs("after it\n", stderr);
    MUST(close(STDERR_FILENO) == 0);
    MUST(ls_thread_join(&thread, LS_FOREVER) == LS_OK);
    char *last = strstr(reader.text, "from the log\nafter it\n");
    MUST(last != NULL && strchr(last, '\0') - last == 22);
    while (last[-1] != '\n')
        last--;
    *last = '\0';
    is_numbered(reader.text, LINES);
}

TEST(stderr_its_descriptor_and_the_log_keep_their_order)
{
    assert_int_equal(exit_code_of(writes_all_ways), 0);
}

static void writes_to_nobody(void)
{
    output_init();
    const int fd = into_pipe(STDOUT_FILENO);
    MUST(outlet_open() == LS_OK);
    printf("heard\n");
    outlet_drain();
    MUST(output_flush() == LS_OK && outlet_failed() == 0);
    MUST(close(fd) == 0);
    printf("not heard\n");
    outlet_drain();
    MUST(outlet_failed() == EPIPE);
    MUST(output_flush() == LS_ECLOSED);
    outlet_close();
    MUST(outlet_failed() == EPIPE);
    MUST(output_end(0) == 128 + SIGPIPE);
}

TEST(that_nobody_reads_any_more_is_known_once_it_is_written)
{
    assert_int_equal(exit_code_of(writes_to_nobody), 0);
}

static void awaits_room(void)
{
    static char much[(size_t)17 << 20];
    memset(much, 'x', sizeof much - 1);
    output_init();
    outlet_await_room(); /* not open: at once */
    struct reader reader = {.fd = into_pipe(STDERR_FILENO)};
    MUST(outlet_open() == LS_OK);
    outlet_await_room();
    (void)fputs("y", stderr);  /* may be under way */
    (void)fputs(much, stderr); /* so is this, but for a part */
    (void)fputs(much, stderr);
    ls_thread *thread = read_late(&reader);
    outlet_await_room();
    outlet_close();
    MUST(close(STDERR_FILENO) == 0);
    MUST(ls_thread_join(&thread, LS_FOREVER) == LS_OK);
    MUST(strlen(reader.text) == 2 * (sizeof much - 1) + 1);
}

TEST(who_passes_on_much_waits_until_it_is_read)
{
    assert_int_equal(exit_code_of(awaits_room), 0);
}

static int child_of_a_fork(void)
{
    const pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        (void)fputs("from the child\n", stderr);
        _exit(0);
    }
    int how;
    MUST(waitpid(pid, &how, 0) == pid);
    return how;
}

static void forks(void)
{
    output_init();
    struct reader reader = {.fd = into_pipe(STDERR_FILENO)};
    MUST(outlet_open() == LS_OK);
    MUST(child_of_a_fork() == 0);
    ls_thread *thread = read_late(&reader);
    outlet_close();
    MUST(close(STDERR_FILENO) == 0);
    MUST(ls_thread_join(&thread, LS_FOREVER) == LS_OK);
    MUST(strcmp(reader.text, "from the child\n") == 0);
}

TEST(what_a_forked_child_says_is_written_by_itself)
{
    assert_int_equal(exit_code_of(forks), 0);
}
