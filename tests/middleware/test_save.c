/* Keeping the context in a file, and going on from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/file.h"
#include "lockstep/middleware.h"
#include "test.h"

static char folder[] = "/tmp/lockstep-save-XXXXXX";
static char path[64];

static void begin(void)
{
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/context", folder);
}

static void end(void)
{
    if (ls_file_exists(path))
        assert_ok(ls_file_remove(path));
    assert_ok(ls_folder_remove(folder)); /* and nothing else is in it */
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}

struct work {
    int64_t fail_at; /* in the iteration of this total_step */
    int64_t gone_at;
    int64_t found; /* what the file has when an iteration begins */
};

static int64_t saved(const char *field);

static int work(ls_step *step, void *self)
{
    struct work *w = self;
    struct ls_online_context *context = ls_step_context(step);
    w->found = ls_file_exists(path) ? saved("env_step") : -1;
    if (context->total_step == w->fail_at)
        return ls_error(LS_EHANDLER, "as asked");
    if (context->total_step == w->gone_at) {
        assert_ok(ls_file_remove(path));
        assert_ok(ls_folder_remove(folder));
    }
    context->env_step += 10;
    context->train_iter++;
    return ls_bytes_set(&context->policy, "weights", 7);
}

static ls_task *task_with(struct ls_save_options options, struct work *w)
{
    ls_task *task;
    options.path = path;
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.async = false}));
    assert_ok(ls_task_use(task, ls_mw_save(task, &options)));
    assert_ok(ls_task_use_fn(task, work, w));
    return task;
}

static struct ls_online_context *context_of(ls_task *task)
{
    return ls_context_data(ls_task_context(task));
}

/* -1: the file has no such field. */
static int64_t saved(const char *field)
{
    void *data;
    size_t size;
    ls_document *document;
    int64_t value = -1;
    assert_ok(ls_file_read(path, 1 << 20, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    const ls_value *at = ls_value_get(ls_document_root(document), field);
    if (at != NULL)
        assert_ok(ls_value_int(at, &value));
    ls_document_destroy(&document);
    free(data);
    return value;
}

TEST(a_run_leaves_its_context_and_the_next_goes_on_from_it)
{
    begin();
    struct work w = {.fail_at = -1, .gone_at = -1};
    for (int64_t turn = 1; turn <= 3; turn++) {
        ls_task *task = task_with((struct ls_save_options){.resume = true}, &w);
        assert_int_equal(context_of(task)->env_step, 30 * (turn - 1));
        assert_int_equal(context_of(task)->policy.size, turn == 1 ? 0 : 7);
        assert_ok(ls_task_run(task, 3));
        assert_ok(ls_task_destroy(&task));
        assert_int_equal(saved("env_step"), 30 * turn);
        assert_int_equal(saved("total_step"), 3 * turn);
        assert_int_equal(w.found, turn == 1 ? -1 : 30 * (turn - 1));
    }
    ls_task *fresh = task_with((struct ls_save_options){.every = 0}, &w);
    assert_int_equal(context_of(fresh)->env_step, 0);
    assert_ok(ls_task_destroy(&fresh));
    assert_int_equal(saved("env_step"), 90);
    end();
}

TEST(it_is_written_every_nth_iteration_and_when_a_run_fails)
{
    begin();
    struct work w = {.fail_at = 5, .gone_at = -1};
    ls_task *task = task_with((struct ls_save_options){.every = 2}, &w);
    assert_fails(ls_task_run(task, 9), LS_EHANDLER);
    assert_int_equal(w.found, 40);
    assert_int_equal(saved("env_step"), 50);
    assert_ok(ls_task_destroy(&task));
    end();
}

TEST(only_the_fields_that_are_named_are_kept)
{
    begin();
    struct work w = {.fail_at = -1, .gone_at = -1};
    ls_task *task = task_with(
        (struct ls_save_options){.fields = "env_step, train_iter"}, &w);
    assert_ok(ls_task_run(task, 2));
    assert_ok(ls_task_destroy(&task));
    assert_int_equal(saved("env_step"), 20);
    assert_int_equal(saved("train_iter"), 2);
    assert_int_equal(saved("total_step"), -1);
    end();
}

TEST(what_cannot_be_kept_or_read_is_said)
{
    begin();
    struct work w = {.fail_at = -1, .gone_at = 1};
    ls_task *task = task_with((struct ls_save_options){.every = 1}, &w);
    assert_fails(ls_task_run(task, 3), LS_EIO);
    assert_error_has(folder);
    assert_int_equal(context_of(task)->env_step, 20);
    char longer[LS_PATH_MAX + 1];
    memset(longer, 'x', LS_PATH_MAX);
    longer[LS_PATH_MAX] = '\0';
    const struct {
        struct ls_save_options options;
        int status;
    } bad[] = {{{.path = NULL}, LS_EINVAL},
               {{.path = longer}, LS_ELIMIT},
               {{.path = path, .fields = " , "}, LS_EINVAL},
               {{.path = path, .fields = "env_stop"}, LS_ENOENT}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(ls_task_use(task, ls_mw_save(task, &bad[i].options)),
                     bad[i].status);
    assert_error_has("env_step");
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_folder_make(folder));
    const struct ls_file_part part = {"no map", 6};
    char temporary[80];
    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    assert_ok(ls_file_replace(path, temporary, &part, 1, false));
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.async = false}));
    assert_fails(
        ls_task_use(
            task, ls_mw_save(task, &(struct ls_save_options){.path = path,
                                                             .resume = true})),
        LS_EPROTO);
    assert_error_has(path);
    assert_ok(ls_task_destroy(&task));
    end();
}
