/* The processor: its memory is the host's, so there is nothing to copy and
 * nothing to wait for. */
#include <stdio.h>
#include <stdlib.h>

#include "device_ops.h"

enum { LINE_BYTES = 64 }; /* of its cache; and as wide as its vectors get */

static int cpu_bind_thread(ls_device *device)
{
    if (device->number < 0)
        return LS_OK;
    return ls_thread_pin(device->runtime, device->number);
}

static void cpu_close(ls_device *device)
{
    free(device);
}

static int cpu_stack_create(ls_device_stack **out, ls_device *device,
                            size_t capacity)
{
    (void)device;
    ls_device_stack *stack = calloc(1, sizeof *stack);
    if (stack == NULL ||
        posix_memalign(&stack->host, LINE_BYTES, capacity) != 0) {
        free(stack);
        return ls_error(LS_ENOMEM, "not so much memory is free");
    }
    stack->memory = (uintptr_t)stack->host;
    *out = stack;
    return LS_OK;
}

static int cpu_copy(ls_device_stack *stack, size_t offset, size_t size)
{
    (void)stack;
    (void)offset;
    (void)size;
    return LS_OK;
}

static int cpu_wait(ls_device_stack *stack, int64_t deadline)
{
    (void)stack;
    (void)deadline;
    return LS_OK;
}

static void cpu_stack_destroy(ls_device_stack *stack)
{
    free(stack->host);
    free(stack);
}

static const struct ls_device_ops cpu_ops = {
    .bind_thread = cpu_bind_thread,
    .close = cpu_close,
    .stack_create = cpu_stack_create,
    .upload = cpu_copy,
    .download = cpu_copy,
    .wait = cpu_wait,
    .stack_destroy = cpu_stack_destroy,
};

int ls_device_open_cpu(ls_device **out, ls_runtime *runtime, int number)
{
    const int n_cores = ls_core_count(runtime);
    if (number >= n_cores)
        return ls_error(LS_ENOENT,
                        "there is no core %d: this machine has %d, from 0 on",
                        number, n_cores);
    ls_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return ls_error(LS_ENOMEM, "no memory for a device");
    device->ops = &cpu_ops;
    device->number = number;
    if (number < 0)
        (void)snprintf(device->description, sizeof device->description,
                       "processor, any core");
    else
        (void)snprintf(device->description, sizeof device->description,
                       "processor, core %d", number);
    *out = device;
    return LS_OK;
}
