/* What tests say to it; GPUs, contexts and memory. */
#include "fake_parts.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4, GPU_BYTES = 32 << 20 };

struct fake fake;

static _Thread_local struct {
    cuda_context stack[DEPTH_MAX];
    size_t depth;
} current;

void fake_lock(void)
{
    ls_mutex_lock(&fake.mutex);
}

void fake_unlock(void)
{
    ls_cond_broadcast(&fake.changed);
    ls_mutex_unlock(&fake.mutex);
}

void fake_await_change(void)
{
    if (ls_cond_wait(&fake.changed, &fake.mutex, LS_FOREVER) != LS_OK)
        abort();
}

/* ---- what tests say ---------------------------------------------------- */

void fake_cuda_reset(void)
{
    if (!fake.ready &&
        (ls_mutex_init(&fake.mutex, ls_runtime_threads()) != LS_OK ||
         ls_cond_init(&fake.changed, ls_runtime_threads()) != LS_OK))
        abort();
    fake.ready = true;
    fake_lock();
    fake.n_gpus = FAKE_GPUS;
    fake.held = fake.initialised = false;
    fake.failing = NULL;
    fake.copy_fails = fake.broken = CUDA_SUCCESS;
    fake.n_calls = 0;
    fake_unlock();
}

/* For programs that have it loaded and know nothing of it. */
__attribute__((constructor)) static void begin_as_new(void)
{
    fake_cuda_reset();
}

void fake_cuda_set_gpus(int n)
{
    fake_lock();
    fake.n_gpus = n;
    fake_unlock();
}

void fake_cuda_fail(const char *function, int result)
{
    fake_lock();
    fake.failing = function;
    fake.failing_with = result;
    fake_unlock();
}

void fake_cuda_fail_copy(int result)
{
    fake_lock();
    fake.copy_fails = result;
    fake_unlock();
}

void fake_cuda_hold(void)
{
    fake_lock();
    fake.held = true;
    fake_unlock();
}

void fake_cuda_let_go(void)
{
    fake_lock();
    fake.held = false;
    fake_unlock();
}

void fake_cuda_await_callback(void)
{
    fake_lock();
    while (fake.n_calls == 0)
        fake_await_change();
    fake_unlock();
}

size_t fake_cuda_n_alive(void)
{
    fake_lock();
    const size_t n = fake.n_alive;
    fake_unlock();
    return n;
}

int fake_cuda_is_bound(int number)
{
    return current.depth == 1 && current.stack[0] == &fake.contexts[number];
}

/* ---- contexts ---------------------------------------------------------- */

cuda_result fake_begin(const char *function)
{
    fake_lock();
    const bool fails =
        fake.failing != NULL && strcmp(fake.failing, function) == 0;
    const cuda_result result = fails ? fake.failing_with : CUDA_SUCCESS;
    fake_unlock();
    return result;
}

cuda_result fake_begin_in_context(const char *function)
{
    const cuda_result result = fake_begin(function);
    if (result != CUDA_SUCCESS)
        return result;
    const bool has = current.depth > 0 && current.stack[current.depth - 1];
    return has ? CUDA_SUCCESS : FAKE_INVALID_CONTEXT;
}

void fake_alive(int change)
{
    fake_lock();
    fake.n_alive += (size_t)change;
    fake_unlock();
}

cuda_result cuInit(unsigned flags)
{
    (void)flags;
    const cuda_result result = fake_begin("cuInit");
    fake.initialised = result == CUDA_SUCCESS;
    return result;
}

cuda_result cuDriverGetVersion(int *version)
{
    *version = 12040;
    return fake_begin("cuDriverGetVersion");
}

cuda_result cuGetErrorName(cuda_result result, const char **name)
{
    switch (result) {
    case CUDA_OUT_OF_MEMORY:
        *name = "CUDA_ERROR_OUT_OF_MEMORY";
        return CUDA_SUCCESS;
    case FAKE_INVALID_CONTEXT:
        *name = "CUDA_ERROR_INVALID_CONTEXT";
        return CUDA_SUCCESS;
    case FAKE_ILLEGAL_ADDRESS:
        *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
        return CUDA_SUCCESS;
    default:
        *name = NULL;
        return FAKE_UNKNOWN;
    }
}

cuda_result cuDeviceGetCount(int *count)
{
    *count = fake.n_gpus;
    return fake.initialised ? fake_begin("cuDeviceGetCount") : FAKE_UNKNOWN;
}

cuda_result cuDeviceGet(cuda_device *device, int number)
{
    *device = number;
    return fake_begin("cuDeviceGet");
}

cuda_result cuDeviceGetName(char *name, int size, cuda_device device)
{
    (void)device;
    strncpy(name, "Fake GPU", (size_t)size);
    return fake_begin("cuDeviceGetName");
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device device)
{
    (void)device;
    *bytes = (size_t)3 << 29;
    return fake_begin("cuDeviceTotalMem_v2");
}

cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device)
{
    const cuda_result result = fake_begin("cuDevicePrimaryCtxRetain");
    if (result != CUDA_SUCCESS)
        return result;
    *context = &fake.contexts[device];
    fake_alive(+1);
    return CUDA_SUCCESS;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device)
{
    (void)device;
    fake_alive(-1);
    return CUDA_SUCCESS;
}

cuda_result cuCtxSetCurrent(cuda_context context)
{
    const cuda_result result = fake_begin("cuCtxSetCurrent");
    if (result != CUDA_SUCCESS)
        return result;
    current.depth = 1;
    current.stack[0] = context;
    return CUDA_SUCCESS;
}

cuda_result cuCtxPushCurrent_v2(cuda_context context)
{
    const cuda_result result = fake_begin("cuCtxPushCurrent_v2");
    if (result != CUDA_SUCCESS)
        return result;
    if (current.depth == DEPTH_MAX)
        abort();
    current.stack[current.depth++] = context;
    return CUDA_SUCCESS;
}

cuda_result cuCtxPopCurrent_v2(cuda_context *context)
{
    if (current.depth == 0)
        return FAKE_INVALID_CONTEXT;
    *context = current.stack[--current.depth];
    return CUDA_SUCCESS;
}

/* ---- memory ------------------------------------------------------------ */

/* On a 256-byte boundary, as the driver's. */
static cuda_result allocate(const char *function, void **address, size_t bytes)
{
    const cuda_result result = fake_begin_in_context(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > GPU_BYTES || posix_memalign(address, 256, bytes) != 0)
        return CUDA_OUT_OF_MEMORY;
    fake_alive(+1);
    return CUDA_SUCCESS;
}

cuda_result cuMemAlloc_v2(cuda_address *address, size_t bytes)
{
    void *memory = NULL;
    const cuda_result result = allocate("cuMemAlloc_v2", &memory, bytes);
    if (result == CUDA_SUCCESS)
        *address = (cuda_address)(uintptr_t)memory;
    return result;
}

cuda_result cuMemFree_v2(cuda_address address)
{
    free((void *)(uintptr_t)address);
    fake_alive(-1);
    return CUDA_SUCCESS;
}

cuda_result cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate("cuMemHostAlloc", address, bytes);
}

cuda_result cuMemFreeHost(void *address)
{
    free(address);
    fake_alive(-1);
    return CUDA_SUCCESS;
}
