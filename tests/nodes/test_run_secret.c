/* The secret of a run: made, handed on, read by clients, and gone. */
#include "run_secret.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/file.h"

#include "node_security.h"
#include "test.h"

struct fixture {
    char folder[64];
    char path[128]; /* of the file */
    struct plan plan;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char out[96];
    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder,
                   "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", fixture->folder, 1), 0);
    (void)snprintf(out, sizeof out, "%s/out", fixture->folder);
    fixture->plan.folder = strdup(out);
    assert_ok(ls_folder_make(out));
    fixture->plan.path = strdup("job.yaml");
    fixture->plan.job = "job";
    fixture->plan.security.mode = LS_SECURITY_PLAIN;
    assert_ok(
        run_secret_path(&fixture->plan, fixture->path, sizeof fixture->path));
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    static const char *const made[] = {"lockstep/job/secret", "lockstep/job",
                                       "lockstep", "out"};
    char path[128];
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", fixture->folder, made[i]);
        (void)remove(path);
    }
    assert_int_equal(rmdir(fixture->folder), 0);
    free(fixture->plan.path);
    free(fixture->plan.folder);
    free(fixture);
    return 0;
}

EACH_TEST(set_up, tear_down)

TEST(it_is_in_a_file_that_only_this_user_can_read)
{
    struct fixture *fixture = *state;
    struct run_secret secret;
    struct stat is;
    uint8_t bytes[LS_SECRET_BYTES + 1];
    run_secret_make(&secret, &fixture->plan);
    assert_true(secret.there);
    assert_int_equal(stat(fixture->path, &is), 0);
    assert_int_equal(is.st_mode & 0777, 0600);
    const int fd = open(fixture->path, O_RDONLY);
    assert_int_equal(read(fd, bytes, sizeof bytes), LS_SECRET_BYTES);
    (void)close(fd);
    assert_memory_equal(bytes, secret.bytes, LS_SECRET_BYTES);
    run_secret_end(&secret, &fixture->plan);
    static const uint8_t none[LS_SECRET_BYTES];
    assert_memory_equal(secret.bytes, none, sizeof none);
}

TEST(each_run_has_another)
{
    struct fixture *fixture = *state;
    struct run_secret killed, next;
    run_secret_make(&killed, &fixture->plan); /* its file stays */
    run_secret_make(&next, &fixture->plan);
    assert_memory_not_equal(killed.bytes, next.bytes, LS_SECRET_BYTES);
    run_secret_wipe(&killed);
    run_secret_end(&next, &fixture->plan);
    assert_int_equal(access(fixture->path, F_OK), -1);
}

TEST(a_folder_that_cannot_be_written_keeps_only_clients_out)
{
    struct plan plan = {.folder = strdup("/dev/null/out"),
                        .security = {.mode = LS_SECURITY_PLAIN}};
    static const uint8_t none[LS_SECRET_BYTES];
    struct run_secret secret;
    run_secret_make(&secret, &plan);
    assert_true(secret.there);
    assert_memory_not_equal(secret.bytes, none, sizeof none);
    run_secret_end(&secret, &plan);
    free(plan.folder);
}

TEST(a_plan_that_needs_none_has_none)
{
    struct fixture *fixture = *state;
    struct run_secret secret, back;
    int fd = 0;
    fixture->plan.security.mode = LS_SECURITY_NONE;
    run_secret_make(&secret, &fixture->plan);
    assert_false(secret.there);
    assert_int_equal(access(fixture->path, F_OK), -1);
    assert_ok(run_secret_open(&secret, &fd));
    assert_int_equal(fd, -1);
    assert_ok(run_secret_read(&back, fd));
    assert_false(back.there);
    run_secret_end(&secret, &fixture->plan);
}

TEST(it_is_handed_on_by_a_descriptor)
{
    struct fixture *fixture = *state;
    struct run_secret secret, back;
    int fd;
    run_secret_make(&secret, &fixture->plan);
    assert_ok(run_secret_open(&secret, &fd));
    assert_ok(run_secret_read(&back, fd));
    assert_true(back.there);
    assert_memory_equal(back.bytes, secret.bytes, LS_SECRET_BYTES);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed: a plugin has it not */
    run_secret_end(&secret, &fixture->plan);
}

TEST(a_descriptor_of_something_else_is_refused)
{
    struct run_secret back = {.there = false};
    const int fd = open("/dev/null", O_RDONLY);
    assert_fails(run_secret_read(&back, fd), LS_EINVAL);
    assert_error_has("0 bytes");
    assert_false(back.there);
}

/* What a client has, by the mode of the file that it reads. */
TEST(a_client_reads_the_file_of_a_run_that_goes_on)
{
    struct fixture *fixture = *state;
    struct run_secret secret;
    ls_security *security = NULL;
    run_secret_make(&secret, &fixture->plan);
    assert_ok(node_security_open_client(&security, &fixture->plan, 9, true));
    assert_int_equal(ls_security_mode(security), LS_SECURITY_PLAIN);
    ls_security_destroy(&security);
    assert_int_equal(chmod(fixture->path, 0644), 0);
    assert_fails(node_security_open_client(&security, &fixture->plan, 9, true),
                 LS_ECONFIG);
    assert_non_null(strstr(ls_error_text(), fixture->path));
    assert_ok(/* that of the job */
              node_security_open_client(&security, &fixture->plan, 9, false));
    ls_security_destroy(&security);
    run_secret_end(&secret, &fixture->plan);
    assert_ok(node_security_open_client(&security, &fixture->plan, 9, true));
    ls_security_destroy(&security);
}

TEST(each_mode_is_made)
{
    struct fixture *fixture = *state;
    struct plan *plan = &fixture->plan;
    ls_security *security = NULL;
    plan->security.mode = LS_SECURITY_NONE;
    plan->security.allow = (struct plan_hosts){.items = {"10.0.0.7"}, .n = 1};
    assert_ok(node_security_open(&security, plan, 3, NULL));
    assert_int_equal(ls_security_mode(security), LS_SECURITY_NONE);
    ls_security_destroy(&security);
    plan->world.transport = PLAN_INPROC;
    assert_ok(node_security_open(&security, plan, 3, NULL));
    assert_null(security);
    plan->world.transport = PLAN_TCP;
    plan->security.mode = LS_SECURITY_CURVE;
    plan->security.keys = fixture->path; /* there is no such folder */
    assert_fails(node_security_open(&security, plan, 3, NULL), LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), fixture->path));
    assert_null(security);
}
