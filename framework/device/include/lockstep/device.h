/* device.h - what trains the batches: the processor, or a GPU.
 *
 * A device is opened by name. What a batch needs of it is a stack: a buffer in
 * host memory that a loader fills, equally much memory of the device, and the
 * order in which the two are copied and computed on. A stack is created once
 * and used for one batch after another; no batch allocates anything.
 *
 *   "cpu"      the processor; both memories are the same, and copies do nothing
 *   "cpu:3"    the same, for threads that stay on core 3
 *   "cuda"     the first NVIDIA GPU
 *   "cuda:1"   the second one
 *
 * A GPU is reached through the driver's own library, libcuda.so.1, opened on
 * first use: machines without a GPU build and run everything else.
 * Thread: any, for a device; serial, for a stack.
 * Source: docs/learner.md; the CUDA driver API. */
#ifndef LOCKSTEP_DEVICE_H
#define LOCKSTEP_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_device ls_device;

enum ls_device_kind { LS_DEVICE_CPU, LS_DEVICE_CUDA };

struct ls_device_info {
    enum ls_device_kind kind;
    int number;              /* the core or the GPU; -1: any core */
    const char *name;        /* as it was opened. Borrow: until close */
    const char *description; /* for people: "NVIDIA H200, 140.4 GiB, driver
                              * for CUDA 13.0". Borrow: until close */
};

/* Check that a name has one of these forms, without looking for the device.
 * Errors: LS_EINVAL. */
LS_MUST_USE LS_API int ls_device_check_name(const char *name);

/* The number of GPUs that the driver shows this process; 0 without a driver, if
 * it fails, and in a simulation. The first call starts the driver, if there is
 * one, which takes some tenths of a second. */
LS_API unsigned ls_device_gpus(ls_runtime *runtime);

/* out:    own; NULL after an error; give it to ls_device_close().
 * runtime: borrow, for as long as the device is open.
 * name:   copied; one of the forms above.
 * Errors: LS_EINVAL: no such form, or a GPU in a simulation; LS_ENOENT: no
 *         such core or GPU, no GPU at all, or no driver that can be used;
 *         LS_EIO: the driver failed, with its name for it; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_device_open(ls_device **out, ls_runtime *runtime,
                                      const char *name);

LS_API void ls_device_info(const ls_device *device, struct ls_device_info *out);

/* Make the calling thread work on this device: "cpu:3" keeps it (and threads it
 * spawns) on core 3, "cuda:1" makes the GPU's primary context current, for
 * kernels that plugins launch themselves. The calls below do not need it.
 * Errors: LS_ENOENT: this process may not use that core; LS_EIO. */
LS_MUST_USE LS_API int ls_device_bind_thread(ls_device *device);

/* Release the device and set *device to NULL; destroy its stacks first. NULL
 * and a pointer to NULL are fine. */
LS_API void ls_device_close(ls_device **device);

/* What one batch at a time needs of a device. */
typedef struct ls_device_stack ls_device_stack;

/* Allocate a stack for batches of up to `capacity` bytes, once for all batches:
 * the host buffer (pinned, where a GPU copies from it), the device's memory,
 * and their stream. The contents are undefined. out:    own; NULL after an
 * error; give it to ls_device_stack_destroy(). device: borrow, until then.
 * Errors: LS_EINVAL capacity 0; LS_ENOMEM: not enough of one of the two; the
 *         text says which; LS_EIO. */
LS_MUST_USE LS_API int ls_device_stack_create(ls_device_stack **out,
                                              ls_device *device,
                                              size_t capacity);

/* The host buffer: fill it, then upload. On a 64-byte boundary. Borrow: until
 * destroy; do not write to it between an upload and the end of the upload. */
LS_API void *ls_device_stack_host(ls_device_stack *stack);

/* In bytes, as it was created. */
LS_API size_t ls_device_stack_capacity(const ls_device_stack *stack);

/* The device's memory, for kernels: on cuda a CUdeviceptr, on cpu the host
 * buffer. Borrow: until destroy. */
LS_API uintptr_t ls_device_stack_memory(ls_device_stack *stack);

/* On cuda the stack's CUstream, for kernels: they run after the copies that
 * were requested before their launch, and before those requested after. NULL on
 * cpu. Borrow: until destroy. */
LS_API void *ls_device_stack_stream(ls_device_stack *stack);

/* On cuda a CUevent after the last copy requested, for other streams to wait
 * for. NULL on cpu. Borrow: until destroy. */
LS_API void *ls_device_stack_event(ls_device_stack *stack);

/* Request a copy of `size` bytes at `offset`: upload from the host buffer to
 * the device's memory, download back. It is in progress when the call returns;
 * the wait reports a later failure.
 * Errors: LS_EINVAL: outside the capacity; LS_EIO. */
LS_MUST_USE LS_API int ls_device_stack_upload(ls_device_stack *stack,
                                              size_t offset, size_t size);
LS_MUST_USE LS_API int ls_device_stack_download(ls_device_stack *stack,
                                                size_t offset, size_t size);

/* Wait until everything put on the stack's stream so far is done, including the
 * kernels of plugins.
 * Errors: LS_EAGAIN: not yet (with LS_NOW); LS_ETIMEDOUT: not by the deadline,
 *         and it continues; LS_EIO: some of it failed, with the driver's name
 *         for it: the device can no longer be used. */
LS_MUST_USE LS_API int ls_device_stack_wait(ls_device_stack *stack,
                                            int64_t deadline);

/* Wait for work in progress, free the stack and set *stack to NULL. NULL and a
 * pointer to NULL are fine. */
LS_API void ls_device_stack_destroy(ls_device_stack **stack);

#ifdef __cplusplus
}
#endif

#endif
