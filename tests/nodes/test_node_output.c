/* node_output.h, as a specification. */
#include "node_output.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lockstep/file.h"
#include "plan_reading.h"
#include "run_folder.h"

struct fixture {
    char above[64], folder[96], own[128], path[160];
    struct plan plan;
    node_output *output;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    (void)snprintf(fixture->above, sizeof fixture->above,
                   "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->above));
    read_good(&fixture->plan, "job: job\n"
                              "plugin: p\n"
                              "nodes:\n"
                              "  - {role: learner, id: 7}\n"
                              "  - {role: collector, id: 3}\n");
    (void)snprintf(fixture->folder, sizeof fixture->folder, "%s/logs",
                   fixture->above);
    (void)snprintf(fixture->own, sizeof fixture->own, "%s/job.3-00c0ffee",
                   fixture->folder);
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/node-7.log",
                   fixture->own);
    *state = fixture;
    return 0;
}

static const struct run_folder third = {.name = "3", .token = "00c0ffee"};

/* A file, or a folder with files. */
static int remove_in(void *self, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)self, name);
    if (ls_file_remove(path) == LS_OK)
        return LS_OK;
    const int status = ls_folder_each(path, remove_in, path);
    return status == LS_OK ? ls_folder_remove(path) : status;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    assert_ok(node_output_close(&fixture->output));
    assert_ok(ls_folder_each(fixture->above, remove_in, fixture->above));
    assert_ok(ls_folder_remove(fixture->above));
    plan_fini(&fixture->plan);
    free(fixture);
    return 0;
}

EACH_TEST(set_up, tear_down)

static int open_as(struct fixture *fixture, const char *what,
                   const struct run_folder *run)
{
    return node_output_open(&fixture->output, what, &fixture->plan, run);
}

static void assert_file(const char *path, const char *text)
{
    void *data;
    size_t size;
    assert_ok(ls_file_read(path, 65536, &data, &size));
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    free(data);
}

static void put_file(const char *path, const char *text)
{
    ls_file *file;
    assert_ok(ls_file_open(&file, path,
                           LS_FILE_WRITE | LS_FILE_CREATE | LS_FILE_EMPTY));
    assert_ok(ls_file_write_at(file, text, strlen(text), 0));
    assert_ok(ls_file_close(&file));
}

static int count_in(void *self, const char *name)
{
    (void)name;
    ++*(size_t *)self;
    return LS_OK;
}

TEST(all_lines_are_shown_unless_something_else_is_said)
{
    struct fixture *fixture = *state;
    assert_true(node_output_shows(NULL));
    node_output_line(NULL, 0, "nobody");
    assert_ok(node_output_close(NULL));
    assert_ok(open_as(fixture, NULL, &third));
    assert_true(node_output_shows(fixture->output));
    assert_ok(node_output_close(&fixture->output));
    assert_null(fixture->output);
    assert_ok(open_as(fixture, "all", &third));
    assert_true(node_output_shows(fixture->output));
}

TEST(only_error_shows_none_and_keeps_none)
{
    struct fixture *fixture = *state;
    assert_ok(open_as(fixture, "only_error", &third));
    assert_false(node_output_shows(fixture->output));
    node_output_line(fixture->output, 1, "a line");
}

TEST(a_folder_gets_a_file_for_each_node)
{
    struct fixture *fixture = *state;
    char other[160];
    assert_ok(open_as(fixture, fixture->folder, &third));
    assert_false(node_output_shows(fixture->output));
    node_output_line(fixture->output, 0, "one");
    node_output_line(fixture->output, 1, "two");
    node_output_line(fixture->output, 0, "");
    node_output_line(fixture->output, 0, "three");
    assert_file(fixture->path, "one\n\nthree\n");
    (void)snprintf(other, sizeof other, "%s/node-3.log", fixture->own);
    assert_file(other, "two\n");
}

TEST(a_run_that_goes_on_adds_to_its_own)
{
    struct fixture *fixture = *state;
    assert_ok(open_as(fixture, fixture->folder, &third));
    node_output_line(fixture->output, 0, "one");
    assert_ok(node_output_close(&fixture->output));
    assert_ok(open_as(fixture, fixture->folder, &third));
    node_output_line(fixture->output, 0, "two");
    assert_file(fixture->path, "one\ntwo\n");
}

TEST(a_line_of_which_a_part_was_written_is_no_part_of_the_next)
{
    struct fixture *fixture = *state;
    assert_ok(ls_folder_make(fixture->own));
    put_file(fixture->path, "one\ntw");
    assert_ok(open_as(fixture, fixture->folder, &third));
    node_output_line(fixture->output, 0, "three");
    assert_file(fixture->path, "one\ntw\nthree\n");
}

TEST(what_the_run_did_not_write_stays_as_it_is)
{
    struct fixture *fixture = *state;
    const struct run_folder others[] = {{.name = "3", .token = "00c0ffe1"},
                                        {.name = "4", .token = "00c0ffee"},
                                        {.name = ""},
                                        {.name = ""}};
    char mine[160];
    (void)snprintf(mine, sizeof mine, "%s/node-7.log", fixture->folder);
    assert_ok(ls_folder_make(fixture->folder));
    put_file(mine, "mine\n");
    assert_ok(open_as(fixture, fixture->folder, &third));
    node_output_line(fixture->output, 0, "one");
    assert_ok(node_output_close(&fixture->output));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_ok(open_as(fixture, fixture->folder, &others[i]));
        node_output_line(fixture->output, 0, "two");
        assert_ok(node_output_close(&fixture->output));
    }
    assert_file(fixture->path, "one\n");
    assert_file(mine, "mine\n");
    size_t n = 0;
    assert_ok(ls_folder_each(fixture->folder, count_in, &n));
    assert_int_equal(n, 1 + 1 + sizeof others / sizeof *others);
}

TEST(a_folder_that_cannot_be_is_named)
{
    struct fixture *fixture = *state;
    char long_name[LS_PATH_MAX + 1];
    assert_ok(ls_folder_make(fixture->own));
    put_file(fixture->path, "");
    assert_fails(open_as(fixture, fixture->path, &third), LS_EIO);
    assert_non_null(strstr(ls_error_text(), fixture->path));
    assert_null(fixture->output);
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_fails(open_as(fixture, long_name, &third), LS_ELIMIT);
}

TEST(lines_that_could_not_be_written_are_counted)
{
    struct fixture *fixture = *state;
    struct rlimit had;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &had), 0);
    assert_ok(open_as(fixture, fixture->folder, &third));
    const struct rlimit room = {.rlim_cur = 4, .rlim_max = had.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &room), 0);
    node_output_line(fixture->output, 0, "too long");
    node_output_line(fixture->output, 0, "so is this");
    node_output_line(fixture->output, 0, "fit");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &had), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_fails(node_output_close(&fixture->output), LS_EIO);
    assert_null(fixture->output);
    assert_non_null(strstr(ls_error_text(), "2 lines of the nodes"));
    assert_file(fixture->path, "fit\n");
}
