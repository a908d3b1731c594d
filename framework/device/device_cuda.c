/* NVIDIA GPUs. Design notes:
 *
 * - Each GPU has its primary context, which other users of CUDA in the same
 *   process share: memory and streams are then of use to them too.
 * - Every call pushes the context and pops it again, so that it may come from
 *   any thread, and leaves that thread as it was.
 * - The driver has no wait with a deadline. A wait asks the stream to call back
 *   when it gets there, and waits for a condition. cuStreamAddCallback() and
 *   not cuLaunchHostFunc(): the latter is not called when the work before it
 *   failed.
 * - A wait that gave up leaves its callback in the stream. They come in order,
 *   so a count of them tells whose turn it was. */
#include <stdio.h>
#include <stdlib.h>

#include "device_cuda_driver.h"
#include "device_ops.h"

#define CUDA_LIBRARY "libcuda.so.1"

/* Callbacks that the driver still owes when a stream is done, or failed. */
#define OWED_NS (10 * LS_NS_PER_S)

struct cuda_gpu {
    ls_device base;
    struct cuda_driver driver;
    cuda_device handle;
    cuda_context context; /* retained */
};

struct cuda_stack {
    ls_device_stack base;
    cuda_address address; /* own */
    cuda_stream stream;   /* own */
    cuda_event event;     /* own */

    ls_mutex mutex;
    ls_cond called;
    uint64_t n_asked;  /* callbacks; changed by the caller alone */
    uint64_t n_called; /* under mutex */
};

static struct cuda_gpu *gpu_of(ls_device *device)
{
    return (struct cuda_gpu *)(void *)device;
}

static struct cuda_stack *cuda_of(ls_device_stack *stack)
{
    return (struct cuda_stack *)(void *)stack;
}

static int check(const struct cuda_gpu *gpu, const char *function,
                 cuda_result result)
{
    if (result == CUDA_SUCCESS)
        return LS_OK;
    return cuda_driver_error(&gpu->driver, function, result);
}

static int enter(const struct cuda_gpu *gpu)
{
    return check(gpu, "cuCtxPushCurrent",
                 gpu->driver.context_push(gpu->context));
}

static void leave(const struct cuda_gpu *gpu)
{
    cuda_context popped;
    (void)gpu->driver.context_pop(&popped);
}

/* ---- devices ----------------------------------------------------------- */

static int cuda_bind_thread(ls_device *device)
{
    const struct cuda_gpu *const gpu = gpu_of(device);
    return check(gpu, "cuCtxSetCurrent", gpu->driver.context_set(gpu->context));
}

static void cuda_close(ls_device *device)
{
    struct cuda_gpu *const gpu = gpu_of(device);
    if (gpu->context != NULL)
        (void)gpu->driver.context_release(gpu->handle);
    free(gpu);
}

/* At least one. */
static int count_gpus(const struct cuda_gpu *gpu, int *n)
{
    *n = 0;
    const cuda_result result = gpu->driver.init(0);
    if (result == CUDA_NO_DEVICE)
        return ls_error(LS_ENOENT, "the driver sees no GPU here; use cpu");
    int status = check(gpu, "cuInit", result);
    if (status == LS_OK)
        status = check(gpu, "cuDeviceGetCount", gpu->driver.get_count(n));
    if (status < 0)
        return status;
    return *n > 0 ? LS_OK
                  : ls_error(LS_ENOENT, "the driver sees no GPU here; use cpu");
}

static int find_gpu(struct cuda_gpu *gpu, int number)
{
    int n;
    const int status = count_gpus(gpu, &n);
    if (status < 0)
        return status;
    if (number >= n)
        return ls_error(LS_ENOENT,
                        "there is no GPU %d: this machine has %d, from 0 on",
                        number, n);
    return check(gpu, "cuDeviceGet",
                 gpu->driver.get_device(&gpu->handle, number));
}

static int describe_gpu(struct cuda_gpu *gpu)
{
    char name[128] = "";
    size_t bytes = 0;
    int version = 0;
    int status =
        check(gpu, "cuDeviceGetName",
              gpu->driver.get_name(name, (int)sizeof name, gpu->handle));
    if (status == LS_OK)
        status = check(gpu, "cuDeviceTotalMem",
                       gpu->driver.total_memory(&bytes, gpu->handle));
    if (status == LS_OK)
        status =
            check(gpu, "cuDriverGetVersion", gpu->driver.get_version(&version));
    if (status < 0)
        return status;
    (void)snprintf(gpu->base.description, sizeof gpu->base.description,
                   "%s, %.1f GiB, driver for CUDA %d.%d", name,
                   (double)bytes / (1024.0 * 1024.0 * 1024.0), version / 1000,
                   version % 1000 / 10);
    return LS_OK;
}

/* ---- copies and waits -------------------------------------------------- */

/* The end of a call that asked for a copy. */
static int copy_asked(const struct cuda_gpu *gpu,
                      const struct cuda_stack *stack, const char *function,
                      cuda_result result)
{
    int status = check(gpu, function, result);
    if (status == LS_OK)
        status = check(gpu, "cuEventRecord",
                       gpu->driver.event_record(stack->event, stack->stream));
    leave(gpu);
    return status < 0 ? ls_error_at(status, "%s", gpu->base.name) : LS_OK;
}

static int cuda_upload(ls_device_stack *base, size_t offset, size_t size)
{
    const struct cuda_stack *const stack = cuda_of(base);
    const struct cuda_gpu *const gpu = gpu_of(base->device);
    const int status = enter(gpu);
    if (status < 0)
        return status;
    return copy_asked(gpu, stack, "cuMemcpyHtoDAsync",
                      gpu->driver.upload(stack->address + offset,
                                         (const char *)base->host + offset,
                                         size, stack->stream));
}

static int cuda_download(ls_device_stack *base, size_t offset, size_t size)
{
    const struct cuda_stack *const stack = cuda_of(base);
    const struct cuda_gpu *const gpu = gpu_of(base->device);
    const int status = enter(gpu);
    if (status < 0)
        return status;
    return copy_asked(gpu, stack, "cuMemcpyDtoHAsync",
                      gpu->driver.download((char *)base->host + offset,
                                           stack->address + offset, size,
                                           stack->stream));
}

/* On a thread of the driver. Whether all went well is asked by the wait. */
static void on_done(cuda_stream stream, cuda_result result, void *self)
{
    (void)stream;
    (void)result;
    struct cuda_stack *const stack = self;
    ls_mutex_lock(&stack->mutex);
    stack->n_called++;
    ls_cond_broadcast(&stack->called);
    ls_mutex_unlock(&stack->mutex);
}

/* Wait until the callbacks asked for so far have come. */
static int wait_for_calls(struct cuda_stack *stack, int64_t deadline)
{
    int status = LS_OK;
    ls_mutex_lock(&stack->mutex);
    while (stack->n_called < stack->n_asked && status == LS_OK)
        status = ls_cond_wait(&stack->called, &stack->mutex, deadline);
    if (stack->n_called == stack->n_asked)
        status = LS_OK;
    ls_mutex_unlock(&stack->mutex);
    return status;
}

/* Whose error a wait finds. */
static const char before_wait[] = "copies or kernels on the stream of a stack";

/* When its callback has come, a stream has only the return of that to wait
 * for; until then, it would not say that it is done. */
static int end_wait(const struct cuda_gpu *gpu, const struct cuda_stack *stack)
{
    int status = enter(gpu);
    if (status < 0)
        return status;
    status =
        check(gpu, before_wait, gpu->driver.stream_synchronize(stack->stream));
    leave(gpu);
    return status;
}

/* LS_EAGAIN, without a text: not done yet. */
static int look(const struct cuda_gpu *gpu, const struct cuda_stack *stack)
{
    const cuda_result result = gpu->driver.stream_query(stack->stream);
    if (result == CUDA_NOT_READY)
        return LS_EAGAIN;
    return check(gpu, before_wait, result);
}

/* Look and, if need be, ask for a callback. */
static int look_and_ask(const struct cuda_gpu *gpu, struct cuda_stack *stack,
                        int64_t deadline)
{
    int status = enter(gpu);
    if (status < 0)
        return status;
    status = look(gpu, stack);
    if (status == LS_EAGAIN && deadline != LS_NOW) {
        const int asked =
            check(gpu, "cuStreamAddCallback",
                  gpu->driver.stream_call(stack->stream, on_done, stack, 0));
        if (asked < 0)
            status = asked;
        else
            stack->n_asked++;
    }
    leave(gpu);
    return status;
}

static int cuda_wait(ls_device_stack *base, int64_t deadline)
{
    struct cuda_stack *const stack = cuda_of(base);
    const struct cuda_gpu *const gpu = gpu_of(base->device);
    int status = look_and_ask(gpu, stack, deadline);
    if (status == LS_EAGAIN && deadline != LS_NOW) {
        status = wait_for_calls(stack, deadline);
        if (status == LS_OK)
            status = end_wait(gpu, stack);
    }
    if (status == LS_EAGAIN || status == LS_ETIMEDOUT)
        (void)ls_error(status, "the copies of a stack are still under way");
    return status < 0 ? ls_error_at(status, "%s", gpu->base.name) : LS_OK;
}

/* ---- stacks ------------------------------------------------------------ */

/* Until then the driver may call back. */
static bool is_over(struct cuda_stack *stack)
{
    ls_runtime *const runtime = stack->mutex.runtime;
    return stack->n_asked == 0 ||
           wait_for_calls(stack, ls_now(runtime) + OWED_NS) == LS_OK;
}

static void cuda_stack_destroy(ls_device_stack *base)
{
    struct cuda_stack *const stack = cuda_of(base);
    const struct cuda_gpu *const gpu = gpu_of(base->device);
    const bool entered = enter(gpu) == LS_OK;
    if (stack->stream != NULL)
        (void)gpu->driver.stream_synchronize(stack->stream);
    const bool over = is_over(stack);
    if (stack->event != NULL)
        (void)gpu->driver.event_destroy(stack->event);
    if (stack->stream != NULL)
        (void)gpu->driver.stream_destroy(stack->stream);
    if (stack->address != 0)
        (void)gpu->driver.memory_free(stack->address);
    if (base->host != NULL)
        (void)gpu->driver.host_free(base->host);
    if (entered)
        leave(gpu);
    if (!over)
        return; /* rather lost than written to when it is another's */
    ls_cond_fini(&stack->called);
    ls_mutex_fini(&stack->mutex);
    free(stack);
}

static int allocate(const struct cuda_gpu *gpu, struct cuda_stack *stack,
                    size_t capacity)
{
    int status = check(gpu, "host memory, cuMemHostAlloc",
                       gpu->driver.host_alloc(&stack->base.host, capacity,
                                              CUDA_HOST_PORTABLE));
    if (status == LS_OK)
        status = check(gpu, "memory of the GPU, cuMemAlloc",
                       gpu->driver.memory_alloc(&stack->address, capacity));
    if (status == LS_OK)
        status = check(gpu, "cuStreamCreate",
                       gpu->driver.stream_create(&stack->stream,
                                                 CUDA_STREAM_NON_BLOCKING));
    if (status == LS_OK)
        status = check(
            gpu, "cuEventCreate",
            gpu->driver.event_create(&stack->event, CUDA_EVENT_WITHOUT_TIMING));
    return status;
}

static int init_stack(const struct cuda_gpu *gpu, struct cuda_stack *stack,
                      size_t capacity)
{
    int status = ls_mutex_init(&stack->mutex, gpu->base.runtime);
    if (status == LS_OK)
        status = ls_cond_init(&stack->called, gpu->base.runtime);
    if (status == LS_OK)
        status = enter(gpu);
    if (status < 0)
        return status;
    status = allocate(gpu, stack, capacity);
    leave(gpu);
    return status;
}

static int cuda_stack_create(ls_device_stack **out, ls_device *device,
                             size_t capacity)
{
    struct cuda_stack *stack = calloc(1, sizeof *stack);
    if (stack == NULL)
        return ls_error(LS_ENOMEM, "no memory for it");
    stack->base.device = device;
    const int status = init_stack(gpu_of(device), stack, capacity);
    if (status < 0) {
        cuda_stack_destroy(&stack->base);
        return status;
    }
    stack->base.memory = (uintptr_t)stack->address;
    stack->base.stream = stack->stream;
    stack->base.event = stack->event;
    *out = &stack->base;
    return LS_OK;
}

static const struct ls_device_ops cuda_ops = {
    .bind_thread = cuda_bind_thread,
    .close = cuda_close,
    .stack_create = cuda_stack_create,
    .upload = cuda_upload,
    .download = cuda_download,
    .wait = cuda_wait,
    .stack_destroy = cuda_stack_destroy,
};

static int open_gpu(struct cuda_gpu *gpu, int number)
{
    int status = cuda_driver_load(&gpu->driver, CUDA_LIBRARY);
    if (status == LS_OK)
        status = find_gpu(gpu, number);
    if (status == LS_OK)
        status = describe_gpu(gpu);
    if (status == LS_OK)
        status = check(gpu, "cuDevicePrimaryCtxRetain",
                       gpu->driver.context_retain(&gpu->context, gpu->handle));
    return status;
}

unsigned ls_device_count_cuda(void)
{
    struct cuda_gpu gpu = {.context = NULL};
    int n = 0;
    return cuda_driver_load(&gpu.driver, CUDA_LIBRARY) == LS_OK &&
                   count_gpus(&gpu, &n) == LS_OK
               ? (unsigned)n
               : 0;
}

int ls_device_open_cuda(ls_device **out, ls_runtime *runtime, int number)
{
    /* The driver calls back on threads of its own. */
    if (runtime != ls_runtime_threads())
        return ls_error(LS_EINVAL, "a GPU cannot be simulated; use cpu");
    struct cuda_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL)
        return ls_error(LS_ENOMEM, "no memory for a device");
    gpu->base.ops = &cuda_ops;
    gpu->base.number = number < 0 ? 0 : number;
    const int status = open_gpu(gpu, gpu->base.number);
    if (status < 0) {
        cuda_close(&gpu->base);
        return status;
    }
    *out = &gpu->base;
    return LS_OK;
}
