/* run_failure.h, as a specification. */
#include "run_failure.h"

#include <unistd.h>

#include "lockstep/file.h"
#include "plan_reading.h"

struct fixture {
    char folder[64], path[128];
    struct plan plan;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder,
                   "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    read_good(&fixture->plan, "plugin: p\n"
                              "nodes:\n"
                              "  - {role: learner, id: 7}\n"
                              "  - {role: collector, id: 3}\n");
    free(fixture->plan.folder);
    fixture->plan.folder = strdup(fixture->folder);
    fixture->plan.folder_found = false;
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/failure.json",
                   fixture->folder);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    (void)unlink(fixture->path);
    assert_int_equal(rmdir(fixture->folder), 0); /* nothing else is there */
    plan_fini(&fixture->plan);
    free(fixture);
    return 0;
}

EACH_TEST(set_up, tear_down)

static const struct run_failure fell = {
    .type = "LS_EHANDLER",
    .value = "step collect: the \"cart\" fell",
    .text = "node 3 (collector, pid 5) failed: step collect: the \"cart\" fell",
    .where = "step collect: the \"cart\" fell",
    .wall_ns = INT64_C(951782399999999999), /* the last of 28 February 2000 */
    .index = 1};

static void assert_file(const struct fixture *fixture, const char *text)
{
    void *data;
    size_t size;
    assert_ok(ls_file_read(fixture->path, 4096, &data, &size));
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    free(data);
}

TEST(the_failure_of_a_node_is_one_line_of_json)
{
    struct fixture *fixture = *state;
    assert_ok(run_failure_write(&fixture->plan, &fell));
    assert_file(fixture,
                "{\"exc_type\":\"LS_EHANDLER\","
                "\"exc_value\":\"step collect: the \\\"cart\\\" fell\","
                "\"exc_time\":\"2000-02-28-23:59:59\","
                "\"exc_global_rank\":1,\"exc_local_rank\":1,\"node\":3,"
                "\"step\":\"collect\","
                "\"text\":\"node 3 (collector, pid 5) failed: step collect: "
                "the \\\"cart\\\" fell\"}\n");
}

TEST(what_is_no_nodes_has_null_for_it_and_replaces_what_was_there)
{
    struct fixture *fixture = *state;
    assert_ok(run_failure_write(&fixture->plan, &fell));
    assert_ok(run_failure_write(&fixture->plan,
                                &(struct run_failure){.type = "LS_ETIMEDOUT",
                                                      .value = "late",
                                                      .text = "late \xff",
                                                      .where = "",
                                                      .index = 2}));
    assert_file(fixture, "{\"exc_type\":\"LS_ETIMEDOUT\","
                         "\"exc_value\":\"late\","
                         "\"exc_time\":\"1970-01-01-00:00:00\","
                         "\"exc_global_rank\":null,\"exc_local_rank\":null,"
                         "\"node\":null,\"step\":null,"
                         "\"text\":\"late ?\"}\n");
}

TEST(a_run_that_goes_on_removes_that_of_its_earlier_life_alone)
{
    struct fixture *fixture = *state;
    assert_ok(run_failure_write(&fixture->plan, &fell));
    run_failure_remove(&fixture->plan);
    assert_true(ls_file_exists(fixture->path));
    fixture->plan.lives = 1;
    run_failure_remove(&fixture->plan);
    assert_false(ls_file_exists(fixture->path));
    run_failure_remove(&fixture->plan);
}

TEST(a_folder_that_is_anothers_gets_none)
{
    struct fixture *fixture = *state;
    fixture->plan.folder_found = true;
    fixture->plan.lives = 1;
    assert_ok(run_failure_write(&fixture->plan, &fell));
    assert_false(ls_file_exists(fixture->path));
}

TEST(a_folder_that_is_not_there_is_named)
{
    struct fixture *fixture = *state;
    char *const folder = fixture->plan.folder;
    char gone[128], too_long[LS_PATH_MAX];
    (void)snprintf(gone, sizeof gone, "%s/gone", fixture->folder);
    fixture->plan.folder = gone;
    assert_true(run_failure_write(&fixture->plan, &fell) < 0);
    assert_non_null(strstr(ls_error_text(), gone));
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    fixture->plan.folder = too_long;
    assert_fails(run_failure_write(&fixture->plan, &fell), LS_ELIMIT);
    fixture->plan.folder = folder;
}

TEST(the_step_is_the_one_that_a_text_begins_with)
{
    static const struct {
        const char *text, *step;
    } cases[] = {
        {"step keep step: it fell: down", "keep step"},
        {"step learn: step inner: no", "learn"},
        {"in step collect for 2.0 s", "collect"},
        {"in step collect, learn", "collect, learn"},
        {"joining its world", ""},
        {"step without an end", ""},
        {"a step collect: fell", ""},
        {"", ""},
    };
    char step[32], two[3];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_failure_step(cases[i].text, step, sizeof step);
        assert_string_equal(step, cases[i].step);
    }
    run_failure_step("step learn: no", two, sizeof two);
    assert_string_equal(two, "le");
}
