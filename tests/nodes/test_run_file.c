/* Where the nodes of a run listen, told in a file. */
#include "run_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_bytes.h"
#include "lockstep/file.h"
#include "test.h"

struct fixture {
    char folder[64];
    struct plan plan;
    struct run_file file;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder,
                   "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    char out[128];
    (void)snprintf(out, sizeof out, "%s/a/b", fixture->folder);
    fixture->plan.folder = strdup(out);
    assert_ok(ls_folder_make(out));
    fixture->file = (struct run_file){
        .pid = (int64_t)getpid(),
        .hash = UINT64_MAX - 1,
        .place = UINT64_MAX - 2,
        .n_nodes = 2,
        .nodes = {{.id = UINT32_MAX, .endpoint = "tcp://127.0.0.1:21500"},
                  {.id = 3}}};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char path[128];
    (void)rmdir(fixture->plan.folder);
    (void)snprintf(path, sizeof path, "%s/a", fixture->folder);
    (void)rmdir(path);
    assert_int_equal(rmdir(fixture->folder), 0);
    free(fixture->plan.folder);
    free(fixture);
    return 0;
}

EACH_TEST(set_up, tear_down)

TEST(what_is_written_is_read_back)
{
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    assert_ok(run_file_write(&fixture->plan, &fixture->file));
    assert_ok(run_file_write(&fixture->plan, &fixture->file));
    assert_ok(run_file_read(back, &fixture->plan));
    assert_int_equal(back->pid, getpid());
    assert_true(back->hash == UINT64_MAX - 1);
    assert_true(back->place == UINT64_MAX - 2);
    assert_int_equal(back->n_nodes, 2);
    assert_true(back->nodes[0].id == UINT32_MAX);
    assert_string_equal(back->nodes[0].endpoint, "tcp://127.0.0.1:21500");
    assert_string_equal(back->nodes[1].endpoint, "");
    run_file_remove(&fixture->plan, &fixture->file);
    assert_fails(run_file_read(back, &fixture->plan), LS_ENOENT);
    free(back);
}

TEST(a_run_that_is_gone_is_no_run)
{
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    fixture->file.pid = INT32_MAX; /* above what a kernel gives */
    assert_ok(run_file_write(&fixture->plan, &fixture->file));
    assert_fails(run_file_read(back, &fixture->plan), LS_ENOENT);
    assert_error_has("is gone");
    run_file_remove(&fixture->plan, &fixture->file);
    free(back);
}

TEST(what_is_no_such_file_is_refused)
{
    static const char *const wrong[] = {
        "",
        "pid: -3\n",
        "hash: \"1\"\nnodes: []\n",
        "pid: 1\nnodes: []\n",
        "pid: 1\nhash: \"1\"\n",
        "pid: 1\nhash: \"what\"\nnodes: []\n",
        "pid: 1\nhash: \"12345678901234567\"\nnodes: []\n",
        "pid: 1\nhash: \"1\"\nnodes: [{id: 1}]\n",
        "pid: 1\nhash: \"1\"\nnodes: [{endpoint: \"\"}]\n",
        "pid: 1\nhash: \"1\"\nnodes: [{id: 1, endpoint: somewhere}]\n"};
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    char path[256];
    assert_non_null(back);
    assert_ok(run_file_write(&fixture->plan, &fixture->file));
    (void)snprintf(path, sizeof path, "%s/" RUN_FILE_NAME,
                   fixture->plan.folder);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_bytes(path, wrong[i], strlen(wrong[i]));
        if (run_file_read(back, &fixture->plan) != LS_ECONFIG)
            fail_msg("this is taken for a run: %s", wrong[i]);
    }
    assert_int_equal(unlink(path), 0);
    free(back);
}

TEST(a_pipe_in_its_place_is_not_waited_for)
{
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    char path[128];
    assert_non_null(back);
    (void)snprintf(path, sizeof path, "%s/run.yaml", fixture->plan.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_fails(run_file_read(back, &fixture->plan), LS_EIO);
    assert_error_has("run.yaml: it is not a regular file");
    assert_ok(ls_file_remove(path));
    free(back);
}

TEST(any_endpoint_is_read_back)
{
    static const char endpoint[] = "ipc:///tmp/a\"b\\c\td";
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    (void)snprintf(fixture->file.nodes[0].endpoint,
                   sizeof fixture->file.nodes[0].endpoint, "%s", endpoint);
    assert_ok(run_file_write(&fixture->plan, &fixture->file));
    assert_ok(run_file_read(back, &fixture->plan));
    assert_string_equal(back->nodes[0].endpoint, endpoint);
    run_file_remove(&fixture->plan, &fixture->file);
    free(back);
}

TEST(the_file_of_another_run_stays)
{
    struct fixture *fixture = *state;
    struct run_file other = fixture->file;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    (void)snprintf(other.nodes[1].endpoint, sizeof other.nodes[1].endpoint,
                   "tcp://127.0.0.1:21501");
    assert_ok(run_file_write(&fixture->plan, &other));
    run_file_remove(&fixture->plan, &fixture->file);
    assert_ok(run_file_read(back, &fixture->plan));
    run_file_remove(&fixture->plan, &other);
    assert_fails(run_file_read(back, &fixture->plan), LS_ENOENT);
    free(back);
}

TEST(a_folder_that_cannot_be_made_is_told)
{
    struct fixture *fixture = *state;
    struct plan plan = {.folder = strdup("/dev/null/out")};
    assert_fails(run_file_write(&plan, &fixture->file), LS_EIO);
    assert_error_has("/dev/null");
    free(plan.folder);
}
