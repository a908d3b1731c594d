/* A task whose memory runs out, at each place where it takes some: it is not
 * made, or its run fails; and all that has yielded is resumed. */
#include <stdatomic.h>

#include "allocations.h"
#include "task_help.h"

static bool worked(int status)
{
    if (status != LS_OK && (!allocation_failed() || status != LS_ENOMEM))
        fail_msg("%s: %s", ls_status_name(status), ls_error_text());
    return status == LS_OK;
}

static atomic_int suspended;

static int yields(ls_step *step, void *self)
{
    (void)self;
    atomic_fetch_add(&suspended, 1);
    const int status = ls_yield(step);
    atomic_fetch_sub(&suspended, 1);
    return status;
}

static int wraps(ls_step *step, void *self)
{
    const struct ls_middleware child = {.name = "child", .fn = yields};
    ls_wrapped *wrapped = NULL;
    (void)self;
    int status = ls_wrap(step, &child, &wrapped);
    if (status != LS_OK)
        return status;
    status = ls_yield(step);
    const int back = ls_wrap_back(wrapped);
    return status == LS_OK ? back : status;
}

static int use_all(ls_task *task)
{
    const struct ls_middleware two[] = {{.name = "one", .fn = yields},
                                        {.name = "two", .fn = wraps}};
    int status = ls_task_use(task, ls_parallel(task, two, 2));
    if (status == LS_OK)
        status = ls_task_use(task, ls_serial(task, two, 2));
    return status == LS_OK ? ls_task_use_fn(task, wraps, NULL) : status;
}

static void live(bool async)
{
    ls_task *task = NULL;
    const struct ls_task_options options = {.async = async, .n_workers = 2};
    if (worked(ls_task_create(&task, &options)) && worked(use_all(task)))
        (void)worked(ls_task_run(task, 3));
    assert_int_equal(atomic_load(&suspended), 0);
    assert_ok(ls_task_destroy(&task));
}

TEST(all_that_has_yielded_is_resumed)
{
    (void)state;
    for (long n = 0; allocations_fail_at(n); n++)
        live(false);
}

TEST(also_where_steps_run_at_the_same_time)
{
    (void)state;
    for (long n = 0; allocations_fail_at(n); n++)
        live(true);
}
