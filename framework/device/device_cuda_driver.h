/* device_cuda_driver.h - what we use of the CUDA driver API.
 *
 * The functions are those of libcuda.so.1, which comes with NVIDIA's driver;
 * their names with _v2 are those that cuda.h stands for without. Types and
 * numbers are part of its binary interface and do not change. So nothing of
 * CUDA is needed to build, and none of it to run without a GPU.
 * Source: CUDA driver API reference. */
#ifndef LOCKSTEP_DEVICE_CUDA_DRIVER_H
#define LOCKSTEP_DEVICE_CUDA_DRIVER_H

#include <stddef.h>

#include "lockstep/status.h"

typedef int cuda_result;
typedef int cuda_device;
typedef unsigned long long cuda_address;
typedef struct cuda_context_state *cuda_context;
typedef struct cuda_stream_state *cuda_stream;
typedef struct cuda_event_state *cuda_event;
typedef void (*cuda_callback)(cuda_stream stream, cuda_result result,
                              void *self);

enum {
    CUDA_SUCCESS = 0,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,

    CUDA_HOST_PORTABLE = 1,       /* pinned for every context */
    CUDA_STREAM_NON_BLOCKING = 1, /* with the default stream */
    CUDA_EVENT_WITHOUT_TIMING = 2
};

/* member, symbol, its parameters; each returns a cuda_result */
#define CUDA_DRIVER_MAP(X)                                                     \
    X(init, cuInit, unsigned flags)                                            \
    X(get_version, cuDriverGetVersion, int *version)                           \
    X(get_error_name, cuGetErrorName, cuda_result result, const char **name)   \
    X(get_count, cuDeviceGetCount, int *count)                                 \
    X(get_device, cuDeviceGet, cuda_device *device, int number)                \
    X(get_name, cuDeviceGetName, char *name, int size, cuda_device device)     \
    X(total_memory, cuDeviceTotalMem_v2, size_t *bytes, cuda_device device)    \
    X(context_retain, cuDevicePrimaryCtxRetain, cuda_context *context,         \
      cuda_device device)                                                      \
    X(context_release, cuDevicePrimaryCtxRelease_v2, cuda_device device)       \
    X(context_set, cuCtxSetCurrent, cuda_context context)                      \
    X(context_push, cuCtxPushCurrent_v2, cuda_context context)                 \
    X(context_pop, cuCtxPopCurrent_v2, cuda_context *context)                  \
    X(memory_alloc, cuMemAlloc_v2, cuda_address *address, size_t bytes)        \
    X(memory_free, cuMemFree_v2, cuda_address address)                         \
    X(host_alloc, cuMemHostAlloc, void **address, size_t bytes,                \
      unsigned flags)                                                          \
    X(host_free, cuMemFreeHost, void *address)                                 \
    X(upload, cuMemcpyHtoDAsync_v2, cuda_address to, const void *from,         \
      size_t bytes, cuda_stream stream)                                        \
    X(download, cuMemcpyDtoHAsync_v2, void *to, cuda_address from,             \
      size_t bytes, cuda_stream stream)                                        \
    X(stream_create, cuStreamCreate, cuda_stream *stream, unsigned flags)      \
    X(stream_query, cuStreamQuery, cuda_stream stream)                         \
    X(stream_synchronize, cuStreamSynchronize, cuda_stream stream)             \
    X(stream_call, cuStreamAddCallback, cuda_stream stream,                    \
      cuda_callback call, void *self, unsigned flags)                          \
    X(stream_destroy, cuStreamDestroy_v2, cuda_stream stream)                  \
    X(event_create, cuEventCreate, cuda_event *event, unsigned flags)          \
    X(event_record, cuEventRecord, cuda_event event, cuda_stream stream)       \
    X(event_destroy, cuEventDestroy_v2, cuda_event event)

struct cuda_driver {
    void *library;
#define CUDA_DRIVER_MEMBER(member, symbol, ...)                                \
    cuda_result (*(member))(__VA_ARGS__);
    CUDA_DRIVER_MAP(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
};

/* Open the library and find its functions; it stays for as long as the process
 * does, since it has threads of its own.
 * name:   libcuda.so.1, but for tests.
 * Errors: LS_ENOENT: there is none, or it lacks one of them. */
LS_MUST_USE int cuda_driver_load(struct cuda_driver *out, const char *name);

/* The error of `function`, "cuMemAlloc", with the driver's name for the result:
 * LS_ENOMEM or LS_EIO. */
int cuda_driver_error(const struct cuda_driver *driver, const char *function,
                      cuda_result result);

#endif
