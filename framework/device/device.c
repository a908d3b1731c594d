#include "device_ops.h"

#include <stdio.h>
#include <string.h>

static const struct form {
    const char *word;
    enum ls_device_kind kind;
    int (*open)(ls_device **out, ls_runtime *runtime, int number);
} forms[] = {
    {"cpu", LS_DEVICE_CPU, ls_device_open_cpu},
    {"cuda", LS_DEVICE_CUDA, ls_device_open_cuda},
};
#define N_FORMS (sizeof forms / sizeof forms[0])

enum { DIGITS_MAX = 4 }; /* of a number */

/* ":12", or nothing. Writes -1 for nothing. */
static bool read_number(const char *text, int *out)
{
    *out = -1;
    if (text[0] == '\0')
        return true;
    const size_t n = strspn(text + 1, "0123456789");
    if (text[0] != ':' || n == 0 || n > DIGITS_MAX || text[1 + n] != '\0')
        return false;
    int number = 0;
    for (const char *digit = text + 1; *digit != '\0'; digit++)
        number = 10 * number + (*digit - '0');
    *out = number;
    return true;
}

static const struct form *find_form(const char *name, int *number)
{
    for (size_t i = 0; i < N_FORMS; i++) {
        const size_t length = strlen(forms[i].word);
        if (strncmp(name, forms[i].word, length) == 0 &&
            read_number(name + length, number))
            return &forms[i];
    }
    return NULL;
}

int ls_device_check_name(const char *name)
{
    int number;
    if (find_form(name, &number) != NULL)
        return LS_OK;
    return ls_error(LS_EINVAL,
                    "device \"%s\": expected cpu, cpu:CORE, cuda or "
                    "cuda:NUMBER, as in cpu:3 or cuda:1",
                    name);
}

unsigned ls_device_gpus(ls_runtime *runtime)
{
    return runtime == ls_runtime_threads() ? ls_device_count_cuda() : 0;
}

int ls_device_open(ls_device **out, ls_runtime *runtime, const char *name)
{
    *out = NULL;
    int number;
    const struct form *const form = find_form(name, &number);
    if (form == NULL)
        return ls_device_check_name(name);
    ls_device *device = NULL;
    const int status = form->open(&device, runtime, number);
    if (status < 0)
        return ls_error_at(status, "device \"%s\"", name);
    device->runtime = runtime;
    device->kind = form->kind;
    (void)snprintf(device->name, sizeof device->name, "%s", name);
    *out = device;
    return LS_OK;
}

void ls_device_info(const ls_device *device, struct ls_device_info *out)
{
    *out = (struct ls_device_info){.kind = device->kind,
                                   .number = device->number,
                                   .name = device->name,
                                   .description = device->description};
}

int ls_device_bind_thread(ls_device *device)
{
    return device->ops->bind_thread(device);
}

void ls_device_close(ls_device **device)
{
    if (device == NULL || *device == NULL)
        return;
    (*device)->ops->close(*device);
    *device = NULL;
}

int ls_device_stack_create(ls_device_stack **out, ls_device *device,
                           size_t capacity)
{
    *out = NULL;
    if (capacity == 0)
        return ls_error(LS_EINVAL,
                        "%s: a stack of 0 bytes has no use; give "
                        "the size of the largest batch",
                        device->name);
    ls_device_stack *stack = NULL;
    const int status = device->ops->stack_create(&stack, device, capacity);
    if (status < 0)
        return ls_error_at(status, "%s: a stack of %zu bytes", device->name,
                           capacity);
    stack->device = device;
    stack->capacity = capacity;
    *out = stack;
    return LS_OK;
}

void *ls_device_stack_host(ls_device_stack *stack)
{
    return stack->host;
}

size_t ls_device_stack_capacity(const ls_device_stack *stack)
{
    return stack->capacity;
}

uintptr_t ls_device_stack_memory(ls_device_stack *stack)
{
    return stack->memory;
}

void *ls_device_stack_stream(ls_device_stack *stack)
{
    return stack->stream;
}

void *ls_device_stack_event(ls_device_stack *stack)
{
    return stack->event;
}

static int check_range(const ls_device_stack *stack, size_t offset, size_t size)
{
    if (offset <= stack->capacity && size <= stack->capacity - offset)
        return LS_OK;
    return ls_error(LS_EINVAL,
                    "%s: %zu bytes at %zu reach beyond the %zu of the stack",
                    stack->device->name, size, offset, stack->capacity);
}

int ls_device_stack_upload(ls_device_stack *stack, size_t offset, size_t size)
{
    const int status = check_range(stack, offset, size);
    if (status < 0 || size == 0)
        return status;
    return stack->device->ops->upload(stack, offset, size);
}

int ls_device_stack_download(ls_device_stack *stack, size_t offset, size_t size)
{
    const int status = check_range(stack, offset, size);
    if (status < 0 || size == 0)
        return status;
    return stack->device->ops->download(stack, offset, size);
}

int ls_device_stack_wait(ls_device_stack *stack, int64_t deadline)
{
    return stack->device->ops->wait(stack, deadline);
}

void ls_device_stack_destroy(ls_device_stack **stack)
{
    if (stack == NULL || *stack == NULL)
        return;
    (*stack)->device->ops->stack_destroy(*stack);
    *stack = NULL;
}
