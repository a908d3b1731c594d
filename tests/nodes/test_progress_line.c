/* The line that shows where a run is: on a terminal, and as whole lines. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "progress_line.h"
#include "still_clock.h"
#include "test.h"

/* What was written to a pipe. */
struct paper {
    int read_fd, write_fd;
    progress_line *progress;
    char text[4096];
};

static void paper_open(struct paper *paper, int terminal)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    *paper = (struct paper){.read_fd = ends[0], .write_fd = ends[1]};
    assert_ok(
        progress_line_create(&paper->progress, &runtime, ends[1], terminal));
}

static const char *paper_read(struct paper *paper)
{
    const ssize_t n = read(paper->read_fd, paper->text, sizeof paper->text - 1);
    paper->text[n > 0 ? n : 0] = '\0';
    return paper->text;
}

static void paper_close(struct paper *paper)
{
    progress_line_destroy(&paper->progress);
    assert_null(paper->progress);
    close(paper->read_fd);
    close(paper->write_fd);
}

static int setup(void **state)
{
    (void)state;
    stop_clock();
    clock_ns = 1000 * LS_NS_PER_S;
    return unsetenv("NO_COLOR");
}

/* On a terminal ---------------------------------------------------------- */

TEST(a_terminal_line_is_rewritten_in_place)
{
    struct paper paper;
    paper_open(&paper, 1);
    progress_line_show(paper.progress, "step 1");
    assert_string_equal(paper_read(&paper), "\rstep 1\x1b[K");
    progress_line_show(paper.progress, "step 2");
    assert_string_equal(paper_read(&paper), "\rstep 2\x1b[K");
    progress_line_end(paper.progress);
    assert_string_equal(paper_read(&paper), "\n");
    paper_close(&paper);
}

TEST(the_same_text_writes_nothing)
{
    for (int terminal = 0; terminal <= 1; terminal++) {
        struct paper paper;
        paper_open(&paper, terminal);
        progress_line_show(paper.progress, "step 1");
        paper_read(&paper);
        clock_ns += 10 * LS_NS_PER_S;
        progress_line_show(paper.progress, "step 1");
        assert_string_equal(paper_read(&paper), "");
        paper_close(&paper);
    }
}

TEST(clear_takes_the_line_away_and_show_brings_it_back)
{
    struct paper paper;
    paper_open(&paper, 1);
    progress_line_clear(paper.progress);
    assert_string_equal(paper_read(&paper), "");
    progress_line_show(paper.progress, "step 1");
    paper_read(&paper);
    progress_line_clear(paper.progress);
    assert_string_equal(paper_read(&paper), "\r\x1b[K");
    progress_line_show(paper.progress, "step 1");
    assert_string_equal(paper_read(&paper), "\rstep 1\x1b[K");
    progress_line_clear(paper.progress);
    paper_read(&paper);
    progress_line_end(paper.progress);
    assert_string_equal(paper_read(&paper), "\rstep 1\x1b[K\n");
    progress_line_end(paper.progress);
    assert_string_equal(paper_read(&paper), "");
    paper_close(&paper);
}

TEST(a_terminal_that_does_not_say_has_80_columns)
{
    struct paper paper;
    char text[201];
    memset(text, 'x', 200);
    text[200] = '\0';
    paper_open(&paper, 1);
    progress_line_show(paper.progress, text);
    assert_int_equal(strlen(paper_read(&paper)), 1 + 79 + 3);
    paper_close(&paper);
}

TEST(the_line_is_cut_to_the_terminals_width)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0);
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    const struct winsize narrow = {.ws_row = 24, .ws_col = 8};
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &narrow), 0);

    setenv("TERM", "xterm", 1);
    progress_line *progress;
    assert_ok(progress_line_create(&progress, &runtime, slave, -1));
    /* A character of two bytes is one column. */
    progress_line_show(progress, "\xc3\xa4\xc3\xb6\xc3\xbc 456789");
    char text[64] = "";
    ssize_t n = read(master, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, "\r\xc3\xa4\xc3\xb6\xc3\xbc 456\x1b[K");
    progress_line_destroy(&progress);

    setenv("TERM", "dumb", 1);
    assert_ok(progress_line_create(&progress, &runtime, slave, -1));
    progress_line_show(progress, "whole lines here");
    n = read(master, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, "whole lines here\r\n");
    progress_line_destroy(&progress);
    close(slave);
    close(master);
}

struct fit_row {
    const char *name;
    const char *text;
    const char *terminal, *no_colour, *plain;
};

static const struct fit_row fit_rows[] = {
    {"colours are closed, or left out", "\x1b[1;32mok\x1b[m done",
     "\r\x1b[1;32mok\x1b[m done\x1b[0m\x1b[K", "\rok done\x1b[K", "ok done\n"},
    {"control characters become blanks", "a\tb\nc\x1b]d", "\ra b c ]d\x1b[K",
     "\ra b c ]d\x1b[K", "a b c ]d\n"},
    {"a sequence that is cut is no colour", "x\x1b[3", "\rx [3\x1b[K",
     "\rx [3\x1b[K", "x [3\n"},
    {"nothing is nothing", "", "", "", ""},
};

TEST(text_is_made_fit_for_where_it_goes)
{
    for (size_t i = 0; i < sizeof fit_rows / sizeof *fit_rows; i++) {
        const struct fit_row *row = &fit_rows[i];
        print_message("    %s\n", row->name);
        const char *expected[] = {row->plain, row->terminal, row->no_colour};
        for (int how = 0; how < 3; how++) {
            struct paper paper;
            if (how == 2)
                setenv("NO_COLOR", "1", 1);
            paper_open(&paper, how > 0);
            progress_line_show(paper.progress, row->text);
            assert_string_equal(paper_read(&paper), expected[how]);
            paper_close(&paper);
        }
        unsetenv("NO_COLOR");
    }
}

/* As whole lines --------------------------------------------------------- */

TEST(lines_come_once_a_second_at_most)
{
    struct paper paper;
    paper_open(&paper, -1);
    progress_line_show(paper.progress, "step 1");
    assert_string_equal(paper_read(&paper), "step 1\n");
    clock_ns += LS_NS_PER_S - 1;
    progress_line_show(paper.progress, "step 2");
    assert_string_equal(paper_read(&paper), "");
    clock_ns += 1;
    progress_line_show(paper.progress, "step 3");
    assert_string_equal(paper_read(&paper), "step 3\n");
    progress_line_clear(paper.progress);
    assert_string_equal(paper_read(&paper), "");
    paper_close(&paper);
}

TEST(the_last_line_is_always_shown_once)
{
    struct paper paper;
    paper_open(&paper, 0);
    progress_line_show(paper.progress, "step 1");
    progress_line_show(paper.progress, "step 2");
    progress_line_show(paper.progress, "step 3");
    progress_line_end(paper.progress);
    assert_string_equal(paper_read(&paper), "step 1\nstep 3\n");
    progress_line_end(paper.progress);
    assert_string_equal(paper_read(&paper), "");
    progress_line_show(paper.progress, "another run");
    assert_string_equal(paper_read(&paper), "another run\n");
    progress_line_end(paper.progress);
    assert_string_equal(paper_read(&paper), "");
    paper_close(&paper);
}

TEST(a_text_of_any_length_is_taken)
{
    struct paper paper;
    char text[5000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    paper_open(&paper, 0);
    progress_line_show(paper.progress, text);
    assert_int_equal(strlen(paper_read(&paper)), 1001);
    paper_close(&paper);
}

TEST(destroy_takes_nothing)
{
    progress_line *none = NULL;
    progress_line_destroy(NULL);
    progress_line_destroy(&none);
}

int main(void)
{
    return tests_run_with(setup, NULL);
}
