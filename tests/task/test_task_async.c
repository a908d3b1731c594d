/* Async mode, and locks between steps that run at the same time. */
#include <sys/resource.h>

#include "base/sanitized.h"
#include "task_help.h"
#include "test.h"

/* What a step knows of the thread it runs on. */
struct place {
    struct trace *trace;
    struct latch *together; /* all forward halves meet here; or NULL */
    const char *back;
    int *forward_on;
    int *back_on;
    int given;
};

static _Thread_local int here;

static int runs_somewhere(ls_step *step, void *self)
{
    struct place *place = self;
    place->forward_on = &here;
    if (place->together != NULL) {
        latch_hit(place->together);
        latch_wait(place->together);
    }
    place->given = ls_yield(step);
    place->back_on = &here;
    note(place->trace, place->back);
    return place->given;
}

TEST(async_pipeline_runs_every_step)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_async(1);
    struct words first = {&trace, "0", NULL, 0, 0, 0};
    struct words second = {&trace, "1", NULL, 0, 0, 0};
    assert_ok(ls_task_use(task, saying("first", &first)));
    assert_ok(ls_task_use(task, saying("second", &second)));
    assert_ok(ls_task_run(task, 2));
    assert_string_equal(trace.text, "0 1 0 1");
    assert_int_equal(online(task)->total_step, 2);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(async_forwards_run_together_and_backs_in_reverse)
{
    struct trace trace;
    struct latch together;
    trace_init(&trace);
    latch_init(&together, 3);
    struct place places[3];
    const char *const names[] = {"A", "B", "C"};
    ls_task *task = task_async(3);
    for (int i = 0; i < 3; i++) {
        places[i] = (struct place){
            .trace = &trace, .together = &together, .back = names[i]};
        assert_ok(ls_task_use_fn(task, runs_somewhere, &places[i]));
    }
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "C B A");
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(places[i].forward_on, places[i].back_on);
        assert_ptr_not_equal(places[i].forward_on, &here);
        assert_ptr_not_equal(places[i].forward_on,
                             places[(i + 1) % 3].forward_on);
    }
    ls_task_destroy(&task);
    latch_fini(&together);
    trace_fini(&trace);
}

TEST(sync_steps_run_on_the_callers_thread)
{
    struct trace trace;
    trace_init(&trace);
    struct place place = {.trace = &trace, .back = "A"};
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, runs_somewhere, &place));
    assert_ok(ls_task_run(task, 1));
    assert_ptr_equal(place.forward_on, &here);
    assert_ptr_equal(place.back_on, &here);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(serial_keeps_its_order_in_async_mode)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_async(3);
    struct words words[3] = {{&trace, "a", "A", 0, 0, 0},
                             {&trace, "b", NULL, 0, 0, 0},
                             {&trace, "c", "C", 0, 0, 0}};
    struct ls_middleware parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = saying(words[i].forward, &words[i]);
    assert_ok(ls_task_use(task, ls_serial(task, parts, 3)));
    assert_ok(ls_task_run(task, 2));
    assert_string_equal(trace.text, "a b c C A a b c C A");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(many_async_steps_and_iterations)
{
    struct trace trace;
    trace_init(&trace);
    struct place places[20];
    ls_task *task = task_async(4);
    for (int i = 0; i < 20; i++) {
        places[i] = (struct place){.trace = &trace, .back = ""};
        assert_ok(ls_task_use_fn(task, runs_somewhere, &places[i]));
    }
    assert_ok(ls_task_run(task, 50));
    assert_int_equal(ls_task_iterations(task), 50);
    for (int i = 0; i < 20; i++)
        assert_ptr_equal(places[i].forward_on, places[i].back_on);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(the_first_async_error_unwinds_every_step)
{
    struct trace trace;
    struct latch together;
    trace_init(&trace);
    latch_init(&together, 2);
    ls_task *task = task_async(2);
    struct place places[2];
    const char *const names[] = {"A", "B"};
    for (int i = 0; i < 2; i++) {
        places[i] = (struct place){
            .trace = &trace, .together = &together, .back = names[i]};
        assert_ok(ls_task_use_fn(task, runs_somewhere, &places[i]));
    }
    struct words fails = {&trace, "f", NULL, LS_EPROTO, 0, 0};
    assert_ok(ls_task_use(task, saying("fails", &fails)));
    assert_fails(ls_task_run(task, 3), LS_EPROTO);
    assert_string_equal(ls_error_text(), "step fails: f went wrong");
    assert_string_equal(trace.text, "f B A");
    assert_int_equal(places[0].given, LS_EPROTO);
    assert_int_equal(places[1].given, LS_EPROTO);
    assert_int_equal(online(task)->total_step, 0);

    /* The task can be run again. */
    fails.fail_forward = LS_OK;
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(online(task)->total_step, 1);
    ls_task_destroy(&task);
    latch_fini(&together);
    trace_fini(&trace);
}

TEST(a_failing_async_backward_half_unwinds_the_rest)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_async(2);
    struct words words[3] = {{&trace, "f", "A", 0, 0, 0},
                             {&trace, "f", "B", 0, LS_EIO, 0},
                             {&trace, "f", "C", 0, 0, 0}};
    for (int i = 0; i < 3; i++)
        assert_ok(ls_task_use(task, saying(words[i].back, &words[i])));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_string_equal(trace.text, "f f f C B A");
    assert_string_equal(ls_error_text(), "step B: B went wrong");
    assert_int_equal(words[2].given, LS_OK);
    assert_int_equal(words[0].given, LS_EIO);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static void wakes(void *self, int status)
{
    (void)status;
    latch_hit(self);
}

/* Waits for nothing that will ever come. */
static int waits_for_ever(ls_step *step, void *self)
{
    ls_task *task = ls_step_task(step);
    struct latch *never = self;
    if (ls_task_on_cancel(task, wakes, never) < 0)
        return LS_ENOMEM;
    latch_wait(never);
    if (ls_task_on_cancel(task, NULL, never) < 0)
        return LS_ENOMEM;
    return ls_task_cancelled(task);
}

TEST(async_exception_ends_a_wait)
{
    struct trace trace;
    struct latch never;
    trace_init(&trace);
    latch_init(&never, 1);
    ls_task *task = task_async(2);
    struct words fails = {&trace, "f", NULL, LS_EHANDLER, 0, 0};
    assert_ok(ls_task_use_fn(task, waits_for_ever, &never));
    assert_ok(ls_task_use(task, saying("fails", &fails)));
    assert_fails(ls_task_run(task, 2), LS_EHANDLER);
    assert_error_has("f went wrong");
    assert_int_equal(online(task)->total_step, 0);
    ls_task_destroy(&task);
    latch_fini(&never);
    trace_fini(&trace);
}

struct canceller {
    ls_task *task;
    struct latch *begun;
};

static void cancels(void *arg)
{
    struct canceller *canceller = arg;
    latch_wait(canceller->begun);
    ls_task_cancel(canceller->task, LS_ECANCELED, "ctrl-c");
}

static int begins(ls_step *step, void *self)
{
    latch_hit(self);
    return ls_yield(step);
}

TEST(cancel_from_another_thread_ends_waits)
{
    struct latch never, begun;
    for (int async = 0; async < 2; async++) {
        latch_init(&never, 1);
        latch_init(&begun, 1);
        ls_task *task =
            task_with((struct ls_task_options){.async = async == 1});
        struct canceller canceller = {task, &begun};
        ls_thread *thread;
        assert_ok(ls_task_use_fn(task, begins, &begun));
        assert_ok(ls_task_use_fn(task, waits_for_ever, &never));
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "cancels",
                                  cancels, &canceller));
        assert_fails(ls_task_run(task, UINT64_MAX), LS_ECANCELED);
        assert_string_equal(ls_error_text(), "ctrl-c");
        assert_ok(ls_thread_join(&thread, LS_FOREVER));
        ls_task_destroy(&task);
        latch_fini(&never);
        latch_fini(&begun);
    }
}

/* How many are inside at the same time, and the most there were. */
struct crowd {
    ls_mutex mutex;
    int now;
    int most;
    struct latch *meet; /* everyone waits for everyone; or NULL */
};

static void crowd_move(struct crowd *crowd, int by)
{
    ls_mutex_lock(&crowd->mutex);
    crowd->now += by;
    if (crowd->now > crowd->most)
        crowd->most = crowd->now;
    ls_mutex_unlock(&crowd->mutex);
}

static int crowds(ls_step *step, void *self)
{
    struct crowd *crowd = self;
    crowd_move(crowd, 1);
    if (crowd->meet != NULL) {
        latch_hit(crowd->meet);
        latch_wait(crowd->meet);
    }
    crowd_move(crowd, -1);
    const int status = ls_yield(step);
    crowd_move(crowd, 1);
    crowd_move(crowd, -1);
    return status;
}

static void crowd_init(struct crowd *crowd, struct latch *meet)
{
    *crowd = (struct crowd){.meet = meet};
    assert_ok(ls_mutex_init(&crowd->mutex, ls_runtime_threads()));
}

TEST(a_shared_lock_serialises)
{
    struct crowd crowd;
    crowd_init(&crowd, NULL);
    ls_task *task = task_async(4);
    const struct ls_middleware locked = {
        .name = "locked", .fn = crowds, .self = &crowd, .lock = LS_TASK_LOCK};
    for (int i = 0; i < 4; i++)
        assert_ok(ls_task_use(task, locked));
    assert_ok(ls_task_run(task, 50));
    assert_int_equal(crowd.most, 1);
    ls_task_destroy(&task);
    ls_mutex_fini(&crowd.mutex);
}

TEST(a_private_lock_is_independent)
{
    struct crowd crowd;
    struct latch meet;
    latch_init(&meet, 2);
    crowd_init(&crowd, &meet);
    ls_task *task = task_async(2);
    ls_step_lock *lock;
    assert_ok(ls_step_lock_create(&lock, task));
    struct ls_middleware what = {
        .name = "locked", .fn = crowds, .self = &crowd, .lock = LS_TASK_LOCK};
    assert_ok(ls_task_use(task, what));
    what.lock = lock;
    assert_ok(ls_task_use(task, what));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(crowd.most, 2);
    ls_task_destroy(&task);
    ls_step_lock_destroy(&lock);
    assert_null(lock);
    ls_mutex_fini(&crowd.mutex);
    latch_fini(&meet);
}

static int wraps_with_its_lock(ls_step *step, void *self)
{
    ls_wrapped *wrapped;
    int status = ls_wrap(step, self, &wrapped);
    return status < 0 ? status : ls_yield(step);
}

TEST(a_lock_is_taken_once_by_what_runs_inside)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words words = {&trace, "a", "A", 0, 0, 0};
    struct ls_middleware child = saying("child", &words);
    child.lock = LS_TASK_LOCK;
    const struct ls_middleware outer = {
        .fn = wraps_with_its_lock, .self = &child, .lock = LS_TASK_LOCK};
    assert_ok(ls_task_use(task, outer));
    assert_ok(ls_task_run(task, 2));
    assert_string_equal(trace.text, "a A a A");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static int surrounds(ls_step *step, void *self)
{
    int status = ls_around_forward(step);
    note(self, ls_around_name(step));
    if (status < 0)
        return status;
    status = ls_yield(step);
    note(self, "back");
    return status;
}

TEST(wrappers_work_in_async_mode)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_async(1);
    struct words words[2] = {{&trace, "a", "A", 0, 0, 0},
                             {&trace, "b", "B", 0, 0, 0}};
    assert_ok(ls_task_use(task, (struct ls_middleware){.fn = surrounds,
                                                       .self = &trace,
                                                       .wraps = true}));
    assert_ok(ls_task_use(task, saying("1st", &words[0])));
    assert_ok(ls_task_use(task, saying("2nd", &words[1])));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "a 1st b 2nd back B back A");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

struct meeting {
    struct latch *come, *go;
    char said[32];
};

static int meets(ls_step *step, void *self)
{
    struct meeting *meeting = self;
    latch_hit(meeting->come);
    latch_wait(meeting->come);
    (void)ls_task_steps_now(ls_step_task(step), meeting->said,
                            sizeof meeting->said);
    latch_hit(meeting->go);
    latch_wait(meeting->go);
    return LS_OK;
}

TEST(all_steps_that_run_now_are_said)
{
    struct latch come, go;
    latch_init(&come, 2);
    latch_init(&go, 2);
    struct meeting meetings[2] = {{&come, &go, ""}, {&come, &go, ""}};
    ls_task *task = task_async(2);
    for (int i = 0; i < 2; i++)
        assert_ok(ls_task_use(
            task, (struct ls_middleware){.name = i == 0 ? "one" : "two",
                                         .fn = meets,
                                         .self = &meetings[i]}));
    assert_ok(ls_task_run(task, 1));
    for (int i = 0; i < 2; i++)
        assert_true(strcmp(meetings[i].said, "one, two") == 0 ||
                    strcmp(meetings[i].said, "two, one") == 0);
    ls_task_destroy(&task);
    latch_fini(&come);
    latch_fini(&go);
}

TEST(cause_and_cookie_of_a_step_come_out_of_the_run)
{
    ls_task *task = task_async(2);
    assert_raises(task);
    ls_task_destroy(&task);
}

static int does_nothing(ls_step *step, void *self)
{
    (void)step, (void)self;
    return LS_OK;
}

/* No step has run, its hooks know, and with room it runs. */
TEST(a_run_without_room_for_its_workers_fails)
{
    if (SANITIZED)
        skip(); /* they need the address space themselves */
    struct trace trace;
    struct rlimit before;
    int known = LS_OK;
    trace_init(&trace);
    struct words words = {&trace, "a", NULL, 0, 0, 0};
    ls_task *task = task_async(100);
    assert_ok(ls_task_use(task, saying("a", &words)));
    assert_ok(ls_task_use(task, (struct ls_middleware){.fn = does_nothing,
                                                       .finish = keeps_status,
                                                       .self = &known}));
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    const int status = ls_task_run(task, 1);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(status, LS_EAGAIN);
    assert_error_has("task: worker ");
    assert_int_equal(known, LS_EAGAIN);
    assert_string_equal(trace.text, "");
    assert_int_equal(ls_task_iterations(task), 0);
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "a");
    ls_task_destroy(&task);
    trace_fini(&trace);
}
