/* What runtime.h promises, on any runtime. */
#include "runtime_promises.h"

#include <string.h>

#include "gate.h"

void now_never_goes_back(ls_runtime *runtime)
{
    int64_t before = ls_now(runtime);
    for (int i = 0; i < 1000; i++) {
        const int64_t now = ls_now(runtime);
        assert_true(now >= before);
        before = now;
    }
}

void deadline_turns_a_wait_into_a_point_in_time(ls_runtime *runtime)
{
    assert_true(ls_deadline(runtime, 0) == LS_NOW);
    const struct {
        int wait_ms, ms;
    } rows[] = {
        {INT32_MAX, INT32_MAX}, {LS_WAIT_DEFAULT, 60000}, {INT32_MIN, 60000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t before = ls_now(runtime);
        const int64_t deadline = ls_deadline(runtime, rows[i].wait_ms);
        const int64_t after = ls_now(runtime);
        assert_true(deadline >= before + rows[i].ms * LS_NS_PER_MS);
        assert_true(deadline <= after + rows[i].ms * LS_NS_PER_MS);
    }
}

void entropy_does_not_repeat(ls_runtime *runtime)
{
    uint64_t seen[64];
    for (size_t i = 0; i < 64; i++) {
        seen[i] = ls_entropy(runtime);
        for (size_t j = 0; j < i; j++)
            assert_true(seen[j] != seen[i]);
    }
}

void rest_ends_at_its_deadline(ls_runtime *runtime)
{
    const int64_t deadline = ls_deadline(runtime, 1);
    ls_rest_until(runtime, deadline);
    assert_true(ls_now(runtime) >= deadline);
    ls_rest_until(runtime, deadline);
    ls_rest_until(runtime, LS_NOW);
}

struct self_check {
    ls_thread *thread;
    bool had_thread;
    bool was_current;
    ls_runtime *runtime;
    char text[8];
};

static void check_self(void *arg)
{
    struct self_check *check = arg;
    check->had_thread = check->thread != NULL;
    check->was_current = ls_thread_is_current(check->thread);
    check->runtime = ls_runtime_current();
    strncpy(check->text, ls_error_text(), sizeof check->text - 1);
    (void)ls_error(LS_EIO, "of the thread");
}

void a_thread_knows_itself_from_its_start(ls_runtime *runtime)
{
    struct self_check check = {.thread = NULL};
    spawn(runtime, &check.thread, check_self, &check);
    join(&check.thread);
    assert_true(check.had_thread);
    assert_true(check.was_current);
    assert_ptr_equal(check.runtime, runtime);
}

void a_thread_has_an_error_text_of_its_own(ls_runtime *runtime)
{
    struct self_check check = {.thread = NULL};
    (void)ls_error(LS_EIO, "from before");
    spawn(runtime, &check.thread, check_self, &check);
    join(&check.thread);
    assert_string_equal(check.text, "");
    assert_string_equal(ls_error_text(), "from before");
}

void a_thread_is_current_nowhere_else(ls_runtime *runtime)
{
    struct gate gate;
    init_gate(&gate, runtime);
    ls_thread *thread;
    spawn(runtime, &thread, pass_gate, &gate);
    assert_false(ls_thread_is_current(thread));
    assert_false(ls_thread_is_current(NULL));
    open_gate(&gate);
    join(&thread);
    fini_gate(&gate);
}

/* Not every process may use every core. */
static void pin_self(void *arg)
{
    ls_runtime *const runtime = arg;
    const int n = ls_core_count(runtime);
    assert_true(n >= 1 && n <= LS_CORES_MAX);
    int n_allowed = 0;
    for (int core = 0; core < n; core++)
        n_allowed += ls_thread_pin(runtime, core) == LS_OK;
    assert_true(n_allowed >= 1);
    assert_int_equal(ls_thread_pin(runtime, n), LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), "there is no core"));
    assert_int_equal(ls_thread_pin(runtime, -1), LS_ENOENT);
}

void a_thread_can_be_kept_on_a_core(ls_runtime *runtime)
{
    ls_thread *thread;
    spawn(runtime, &thread, pin_self, runtime);
    join(&thread);
}

void join_gives_up_at_its_deadline_and_may_be_tried_again(ls_runtime *runtime)
{
    struct gate gate;
    init_gate(&gate, runtime);
    ls_thread *thread;
    spawn(runtime, &thread, pass_gate, &gate);
    ls_thread *const same = thread;
    assert_int_equal(ls_thread_join(&thread, LS_NOW), LS_ETIMEDOUT);
    assert_non_null(strstr(ls_error_text(), "'test'"));
    const int64_t deadline = ls_deadline(runtime, 1);
    assert_int_equal(ls_thread_join(&thread, deadline), LS_ETIMEDOUT);
    assert_true(ls_now(runtime) >= deadline);
    assert_ptr_equal(thread, same);
    open_gate(&gate);
    assert_int_equal(ls_thread_join(&thread, ls_deadline(runtime, 60000)),
                     LS_OK);
    assert_null(thread);
    fini_gate(&gate);
}

struct counter {
    ls_runtime *runtime;
    ls_mutex mutex;
    int count;
};

static void count_up(void *arg)
{
    struct counter *counter = arg;
    for (int i = 0; i < 10000; i++) {
        ls_mutex_lock(&counter->mutex);
        const int count = counter->count;
        (void)ls_now(counter->runtime);
        counter->count = count + 1;
        ls_mutex_unlock(&counter->mutex);
    }
}

void a_mutex_lets_one_in_at_a_time(ls_runtime *runtime)
{
    struct counter counter = {.runtime = runtime};
    memset(&counter.mutex, 0xa5, sizeof counter.mutex); /* of no importance */
    assert_int_equal(ls_mutex_init(&counter.mutex, runtime), LS_OK);
    ls_thread *threads[4];
    for (int i = 0; i < 4; i++)
        spawn(runtime, &threads[i], count_up, &counter);
    for (int i = 0; i < 4; i++)
        join(&threads[i]);
    assert_int_equal(counter.count, 40000);
    ls_mutex_fini(&counter.mutex);
}

void fini_may_come_again_or_before_init(ls_runtime *runtime)
{
    ls_mutex mutex = {.runtime = NULL};
    ls_cond cond = {.runtime = NULL};
    ls_mutex_fini(&mutex);
    ls_cond_fini(&cond);
    assert_int_equal(ls_mutex_init(&mutex, runtime), LS_OK);
    assert_int_equal(ls_cond_init(&cond, runtime), LS_OK);
    ls_mutex_fini(&mutex);
    ls_mutex_fini(&mutex);
    ls_cond_fini(&cond);
    ls_cond_fini(&cond);
    ls_mutex_fini(NULL);
    ls_cond_fini(NULL);
}

void broadcast_wakes_all_who_wait(ls_runtime *runtime)
{
    struct gate gate;
    init_gate(&gate, runtime);
    ls_thread *threads[3];
    for (int i = 0; i < 3; i++)
        spawn(runtime, &threads[i], pass_gate, &gate);
    await_waiting(&gate, 3);
    open_gate(&gate);
    for (int i = 0; i < 3; i++)
        join(&threads[i]);
    assert_int_equal(gate.waiting, 0);
    fini_gate(&gate);
}

void signal_wakes_one_who_waits(ls_runtime *runtime)
{
    struct gate gate;
    init_gate(&gate, runtime);
    ls_thread *thread;
    spawn(runtime, &thread, pass_gate, &gate);
    await_waiting(&gate, 1);
    ls_mutex_lock(&gate.mutex);
    gate.open = true;
    ls_cond_signal(&gate.changed);
    ls_mutex_unlock(&gate.mutex);
    join(&thread);
    fini_gate(&gate);
}

void a_wait_ends_at_its_deadline_with_the_mutex_held(ls_runtime *runtime)
{
    struct gate gate;
    init_gate(&gate, runtime);
    (void)ls_error(LS_EIO, "from before");
    ls_mutex_lock(&gate.mutex);
    assert_int_equal(ls_cond_wait(&gate.changed, &gate.mutex, LS_NOW),
                     LS_ETIMEDOUT);
    assert_int_equal(
        ls_cond_wait(&gate.changed, &gate.mutex, ls_now(runtime) - 1),
        LS_ETIMEDOUT);
    const int64_t deadline = ls_deadline(runtime, 1);
    int status = LS_OK;
    while (status == LS_OK)
        status = ls_cond_wait(&gate.changed, &gate.mutex, deadline);
    assert_int_equal(status, LS_ETIMEDOUT);
    assert_true(ls_now(runtime) >= deadline);
    assert_string_equal(ls_error_text(), "from before");

    ls_thread *thread;
    spawn(runtime, &thread, pass_gate, &gate);
    assert_int_equal(gate.waiting, 0); /* it cannot get in */
    gate.open = true;
    ls_mutex_unlock(&gate.mutex);
    join(&thread);
    fini_gate(&gate);
}
