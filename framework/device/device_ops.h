/* device_ops.h - what a kind of device fills in.
 *
 * device.c checks the arguments and forwards to the table; a new kind is one
 * more .c file with a table, and a line in the list of forms there. Contracts
 * are those of device.h, except for what is said here. */
#ifndef LOCKSTEP_DEVICE_OPS_H
#define LOCKSTEP_DEVICE_OPS_H

#include "lockstep/device.h"

struct ls_device_ops {
    int (*bind_thread)(ls_device *device);
    /* Frees the device. */
    void (*close)(ls_device *device);

    /* Sets memory, stream and event, and host to the buffer. */
    int (*stack_create)(ls_device_stack **out, ls_device *device,
                        size_t capacity);
    /* size > 0, and all of it within the capacity */
    int (*upload)(ls_device_stack *stack, size_t offset, size_t size);
    int (*download)(ls_device_stack *stack, size_t offset, size_t size);
    int (*wait)(ls_device_stack *stack, int64_t deadline);
    /* Frees the stack. */
    void (*stack_destroy)(ls_device_stack *stack);
};

struct ls_device {
    const struct ls_device_ops *ops;
    ls_runtime *runtime; /* borrow */
    enum ls_device_kind kind;
    int number;
    char name[16];
    char description[192];
};

struct ls_device_stack {
    ls_device *device; /* borrow */
    size_t capacity;
    void *host; /* own */
    uintptr_t memory;
    void *stream, *event; /* NULL on cpu */
};

/* Open a device of each kind; number -1: none was named. device.c fills in
 * runtime, kind and name. */
int ls_device_open_cpu(ls_device **out, ls_runtime *runtime, int number);
int ls_device_open_cuda(ls_device **out, ls_runtime *runtime, int number);

/* How many "cuda:N" could name. */
unsigned ls_device_count_cuda(void);

#endif
