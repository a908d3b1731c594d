/* GPUs, on a driver in host memory that fails when it is told to. */
#include <stdio.h>

#include "device_promises.h"
#include "fake_cuda.h"
#include "test.h"

enum { BYTES = 4096 };

static int reset(void **state)
{
    (void)state;
    fake_cuda_reset();
    return 0;
}

static void assert_nothing_is_left(void)
{
    assert_int_equal(fake_cuda_n_alive(), 0);
}

EACH_TEST(reset, NULL)

TEST(a_gpu_is_described)
{
    struct ls_device_info info;
    ls_device *first = open_device("cuda"), *second = open_device("cuda:1");
    ls_device_info(first, &info);
    assert_int_equal(info.number, 0);
    assert_string_equal(info.name, "cuda");
    assert_string_equal(info.description,
                        "Fake GPU, 1.5 GiB, driver for CUDA 12.4");
    ls_device_info(second, &info);
    assert_int_equal(info.number, 1);
    ls_device_close(&first);
    ls_device_close(&second);
    assert_nothing_is_left();
}

TEST(a_gpu_that_is_not_there_is_refused)
{
    ls_device *device = NULL;
    assert_fails(ls_device_open(&device, ls_runtime_threads(), "cuda:2"),
                 LS_ENOENT);
    assert_said("\"cuda:2\"", "no GPU 2: this machine has 2, from 0 on", NULL);
    assert_null(device);
}

TEST(no_gpu_at_all_is_refused)
{
    enum { NO_DEVICE = 100 };
    ls_device *device = NULL;
    fake_cuda_set_gpus(0);
    assert_fails(ls_device_open(&device, ls_runtime_threads(), "cuda"),
                 LS_ENOENT);
    assert_said("\"cuda\"", "sees no GPU", "use cpu", NULL);
    fake_cuda_set_gpus(1);
    fake_cuda_fail("cuInit", NO_DEVICE);
    assert_fails(ls_device_open(&device, ls_runtime_threads(), "cuda"),
                 LS_ENOENT);
    assert_said("sees no GPU", NULL);
    assert_null(device);
}

TEST(gpus_are_counted)
{
    assert_int_equal(ls_device_gpus(ls_runtime_threads()), 2);
    fake_cuda_set_gpus(0);
    assert_int_equal(ls_device_gpus(ls_runtime_threads()), 0);
    fake_cuda_set_gpus(8);
    fake_cuda_fail("cuInit", 999);
    assert_int_equal(ls_device_gpus(ls_runtime_threads()), 0);
}

TEST(a_failure_is_named_as_the_driver_names_it)
{
    static const struct {
        const char *function;
        const char *said;
    } steps[] = {
        {"cuInit", "cuInit"},
        {"cuDeviceGetCount", "cuDeviceGetCount"},
        {"cuDeviceGet", "cuDeviceGet"},
        {"cuDeviceGetName", "cuDeviceGetName"},
        {"cuDeviceTotalMem_v2", "cuDeviceTotalMem"},
        {"cuDriverGetVersion", "cuDriverGetVersion"},
        {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain"},
    };
    ls_device *device = NULL;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        fake_cuda_fail(steps[i].function, FAKE_ILLEGAL_ADDRESS);
        assert_fails(ls_device_open(&device, ls_runtime_threads(), "cuda"),
                     LS_EIO);
        assert_said("\"cuda\"", steps[i].said,
                    "CUDA_ERROR_ILLEGAL_ADDRESS (700)", NULL);
        assert_null(device);
        assert_nothing_is_left();
    }
    fake_cuda_fail("cuInit", FAKE_UNKNOWN);
    assert_fails(ls_device_open(&device, ls_runtime_threads(), "cuda"), LS_EIO);
    assert_said("an error without a name (999)", NULL);
}

TEST(a_stack_that_fails_half_way_leaves_nothing)
{
    static const char *const steps[] = {
        "cuCtxPushCurrent", "cuMemHostAlloc", "cuMemAlloc",
        "cuStreamCreate",   "cuEventCreate",
    };
    ls_device *device = open_device("cuda");
    ls_device_stack *stack = NULL;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char symbol[32];
        const bool has_v2 = strcmp(steps[i], "cuCtxPushCurrent") == 0 ||
                            strcmp(steps[i], "cuMemAlloc") == 0;
        (void)snprintf(symbol, sizeof symbol, "%s%s", steps[i],
                       has_v2 ? "_v2" : "");
        fake_cuda_fail(symbol, FAKE_ILLEGAL_ADDRESS);
        assert_fails(ls_device_stack_create(&stack, device, BYTES), LS_EIO);
        assert_said("cuda: a stack of 4096 bytes", steps[i],
                    "CUDA_ERROR_ILLEGAL_ADDRESS", NULL);
        assert_null(stack);
        assert_int_equal(fake_cuda_n_alive(), 1); /* the context */
    }
    ls_device_close(&device);
    assert_nothing_is_left();
}

TEST(it_is_said_which_memory_is_short)
{
    enum { OUT_OF_MEMORY = 2 };
    ls_device *device = open_device("cuda");
    ls_device_stack *stack = NULL;
    fake_cuda_fail("cuMemHostAlloc", OUT_OF_MEMORY);
    assert_fails(ls_device_stack_create(&stack, device, BYTES), LS_ENOMEM);
    assert_said("host memory", "CUDA_ERROR_OUT_OF_MEMORY", NULL);
    fake_cuda_fail("cuMemAlloc_v2", OUT_OF_MEMORY);
    assert_fails(ls_device_stack_create(&stack, device, BYTES), LS_ENOMEM);
    assert_said("memory of the GPU", "CUDA_ERROR_OUT_OF_MEMORY", NULL);
    ls_device_close(&device);
}

TEST(a_copy_is_under_way_when_the_call_returns)
{
    ls_device *device = open_device("cuda");
    ls_device_stack *stack = new_stack(device, BYTES);
    fake_cuda_hold();
    upload(stack, 0, BYTES);
    assert_fails(ls_device_stack_wait(stack, LS_NOW), LS_EAGAIN);
    assert_said("cuda: ", "under way", NULL);
    const int64_t soon = ls_deadline(ls_runtime_threads(), 1);
    assert_fails(ls_device_stack_wait(stack, soon), LS_ETIMEDOUT);
    fake_cuda_let_go();
    wait_for(stack);
    assert_ok(ls_device_stack_wait(stack, LS_NOW));
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
    assert_nothing_is_left();
}

TEST(the_event_is_behind_the_last_copy)
{
    ls_device *device = open_device("cuda");
    ls_device_stack *stack = new_stack(device, BYTES);
    const void *const event = ls_device_stack_event(stack);
    for (int i = 0; i < 2; i++) {
        fake_cuda_hold();
        if (i == 0)
            upload(stack, 0, BYTES);
        else
            download(stack, 0, BYTES);
        assert_false(fake_cuda_event_is_reached(event));
        fake_cuda_let_go();
        wait_for(stack);
        assert_true(fake_cuda_event_is_reached(event));
    }
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
}

static void wait_elsewhere(void *arg)
{
    wait_for(arg);
}

TEST(a_wait_ends_with_the_copy)
{
    ls_device *device = open_device("cuda");
    ls_device_stack *stack = new_stack(device, BYTES);
    fake_cuda_hold();
    upload(stack, 0, BYTES);
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "waits",
                              wait_elsewhere, stack));
    fake_cuda_await_callback();
    assert_fails(ls_thread_join(&thread, LS_NOW), LS_ETIMEDOUT);
    fake_cuda_let_go();
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
}

static void let_go_elsewhere(void *arg)
{
    (void)arg;
    fake_cuda_let_go();
}

TEST(destroy_waits_for_what_is_under_way)
{
    ls_device *device = open_device("cuda");
    ls_device_stack *stack = new_stack(device, BYTES);
    fake_cuda_hold();
    upload(stack, 0, BYTES);
    const int64_t soon = ls_deadline(ls_runtime_threads(), 1);
    assert_fails(ls_device_stack_wait(stack, soon), LS_ETIMEDOUT);
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "lets go",
                              let_go_elsewhere, NULL));
    ls_device_stack_destroy(&stack);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_device_close(&device);
    assert_nothing_is_left();
}

static void let_go_when_waited_for(void *arg)
{
    (void)arg;
    fake_cuda_await_callback();
    fake_cuda_let_go();
}

TEST(a_copy_that_fails_later_is_said_by_the_wait)
{
    ls_device *device = open_device("cuda:1");
    ls_device_stack *stack = new_stack(device, BYTES);
    fake_cuda_hold();
    fake_cuda_fail_copy(FAKE_ILLEGAL_ADDRESS);
    upload(stack, 0, BYTES);
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "lets go",
                              let_go_when_waited_for, NULL));
    for (int i = 0; i < 2; i++) { /* and by those after it */
        assert_fails(ls_device_stack_wait(stack, LS_FOREVER), LS_EIO);
        assert_said("cuda:1: ", "stream of a stack",
                    "CUDA_ERROR_ILLEGAL_ADDRESS", NULL);
    }
    assert_fails(ls_device_stack_upload(stack, 0, BYTES), LS_EIO);
    assert_said("cuda:1: ", "cuMemcpyHtoDAsync", NULL);
    assert_fails(ls_device_stack_download(stack, 0, BYTES), LS_EIO);
    assert_said("cuda:1: ", "cuMemcpyDtoHAsync", NULL);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
    assert_nothing_is_left();
}

TEST(calls_that_fail_are_named)
{
    ls_device *device = open_device("cuda");
    ls_device_stack *stack = new_stack(device, BYTES);
    fake_cuda_fail("cuEventRecord", FAKE_ILLEGAL_ADDRESS);
    assert_fails(ls_device_stack_upload(stack, 0, BYTES), LS_EIO);
    assert_said("cuda: cuEventRecord: CUDA_ERROR_ILLEGAL_ADDRESS (700)", NULL);
    fake_cuda_fail("cuCtxPushCurrent_v2", FAKE_INVALID_CONTEXT);
    assert_fails(ls_device_stack_upload(stack, 0, BYTES), LS_EIO);
    assert_fails(ls_device_stack_download(stack, 0, BYTES), LS_EIO);
    assert_fails(ls_device_stack_wait(stack, LS_NOW), LS_EIO);
    assert_said("CUDA_ERROR_INVALID_CONTEXT", NULL);
    fake_cuda_fail("cuCtxSetCurrent", FAKE_INVALID_CONTEXT);
    assert_fails(ls_device_bind_thread(device), LS_EIO);
    assert_said("cuCtxSetCurrent", NULL);
    fake_cuda_fail("cuStreamAddCallback", FAKE_ILLEGAL_ADDRESS);
    fake_cuda_hold();
    upload(stack, 0, BYTES);
    assert_fails(ls_device_stack_wait(stack, LS_FOREVER), LS_EIO);
    assert_said("cuStreamAddCallback", NULL);
    fake_cuda_let_go();
    ls_device_stack_destroy(&stack);
    ls_device_close(&device);
    assert_nothing_is_left();
}

static void look_at_contexts(void *arg)
{
    ls_device *const second = arg;
    assert_false(fake_cuda_is_bound(1));
    assert_ok(ls_device_bind_thread(second));
    assert_true(fake_cuda_is_bound(1));
    ls_device *first = open_device("cuda:0");
    ls_device_stack *stack = new_stack(first, BYTES);
    upload(stack, 0, BYTES);
    wait_for(stack);
    ls_device_stack_destroy(&stack);
    ls_device_close(&first);
    assert_true(fake_cuda_is_bound(1));
}

TEST(a_bound_thread_keeps_its_context)
{
    ls_device *device = open_device("cuda:1");
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "bound",
                              look_at_contexts, device));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_device_close(&device);
}

#define ON_FAKE(name)                                                          \
    TEST(name##_on_a_gpu)                                                      \
    {                                                                          \
        ls_device *device = open_device("cuda");                               \
        name(device);                                                          \
        ls_device_close(&device);                                              \
        assert_nothing_is_left();                                              \
    }
DEVICE_PROMISES(ON_FAKE)
#undef ON_FAKE
