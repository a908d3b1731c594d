/* Where the nodes of a run listen, told in a file. */
#include "run_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lockstep/file.h"

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
    assert_int_equal(ls_folder_make(out), LS_OK);
    fixture->file = (struct run_file){
        .pid = (int64_t)getpid(),
        .hash = UINT64_MAX - 1,
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

static void test_what_is_written_is_read_back(void **state)
{
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    assert_int_equal(run_file_write(&fixture->plan, &fixture->file), LS_OK);
    assert_int_equal(run_file_write(&fixture->plan, &fixture->file), LS_OK);
    assert_int_equal(run_file_read(back, &fixture->plan), LS_OK);
    assert_int_equal(back->pid, getpid());
    assert_true(back->hash == UINT64_MAX - 1);
    assert_int_equal(back->n_nodes, 2);
    assert_true(back->nodes[0].id == UINT32_MAX);
    assert_string_equal(back->nodes[0].endpoint, "tcp://127.0.0.1:21500");
    assert_string_equal(back->nodes[1].endpoint, "");
    run_file_remove(&fixture->plan, &fixture->file);
    assert_int_equal(run_file_read(back, &fixture->plan), LS_ENOENT);
    free(back);
}

static void test_a_run_that_is_gone_is_no_run(void **state)
{
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    fixture->file.pid = INT32_MAX; /* above what a kernel gives */
    assert_int_equal(run_file_write(&fixture->plan, &fixture->file), LS_OK);
    assert_int_equal(run_file_read(back, &fixture->plan), LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), "is gone"));
    run_file_remove(&fixture->plan, &fixture->file);
    free(back);
}

static void test_what_is_no_such_file_is_refused(void **state)
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
    assert_int_equal(run_file_write(&fixture->plan, &fixture->file), LS_OK);
    (void)snprintf(path, sizeof path, "%s/" RUN_FILE_NAME,
                   fixture->plan.folder);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        (void)fputs(wrong[i], file);
        assert_int_equal(fclose(file), 0);
        if (run_file_read(back, &fixture->plan) != LS_ECONFIG)
            fail_msg("this is taken for a run: %s", wrong[i]);
    }
    assert_int_equal(unlink(path), 0);
    free(back);
}

static void test_any_endpoint_is_read_back(void **state)
{
    static const char endpoint[] = "ipc:///tmp/a\"b\\c\td";
    struct fixture *fixture = *state;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    (void)snprintf(fixture->file.nodes[0].endpoint,
                   sizeof fixture->file.nodes[0].endpoint, "%s", endpoint);
    assert_int_equal(run_file_write(&fixture->plan, &fixture->file), LS_OK);
    assert_int_equal(run_file_read(back, &fixture->plan), LS_OK);
    assert_string_equal(back->nodes[0].endpoint, endpoint);
    run_file_remove(&fixture->plan, &fixture->file);
    free(back);
}

static void test_the_file_of_another_run_stays(void **state)
{
    struct fixture *fixture = *state;
    struct run_file other = fixture->file;
    struct run_file *back = calloc(1, sizeof *back);
    assert_non_null(back);
    (void)snprintf(other.nodes[1].endpoint, sizeof other.nodes[1].endpoint,
                   "tcp://127.0.0.1:21501");
    assert_int_equal(run_file_write(&fixture->plan, &other), LS_OK);
    run_file_remove(&fixture->plan, &fixture->file);
    assert_int_equal(run_file_read(back, &fixture->plan), LS_OK);
    run_file_remove(&fixture->plan, &other);
    assert_int_equal(run_file_read(back, &fixture->plan), LS_ENOENT);
    free(back);
}

static void test_a_folder_that_cannot_be_made_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct plan plan = {.folder = strdup("/dev/null/out")};
    assert_int_equal(run_file_write(&plan, &fixture->file), LS_EIO);
    assert_non_null(strstr(ls_error_text(), "/dev/null"));
    free(plan.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_written_is_read_back,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_that_is_gone_is_no_run,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_such_file_is_refused,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_file_of_another_run_stays,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_endpoint_is_read_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_folder_that_cannot_be_made_is_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
