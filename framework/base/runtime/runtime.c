#include "lockstep/runtime.h"

#include <assert.h>

#include "runtime_disk.h"
#include "runtime_network.h"
#include "runtime_ops.h"

enum { DEFAULT_WAIT_MS = 60000 };

int64_t ls_now(ls_runtime *runtime)
{
    return runtime->ops->now(runtime);
}

int64_t ls_wall_now(ls_runtime *runtime)
{
    return runtime->ops->wall_now(runtime);
}

int64_t ls_deadline(ls_runtime *runtime, int wait_ms)
{
    if (wait_ms == 0)
        return LS_NOW;
    return ls_now(runtime) +
           (wait_ms > 0 ? wait_ms : DEFAULT_WAIT_MS) * LS_NS_PER_MS;
}

uint64_t ls_entropy(ls_runtime *runtime)
{
    return runtime->ops->entropy(runtime);
}

void ls_rest_until(ls_runtime *runtime, int64_t deadline)
{
    runtime->ops->rest_until(runtime, deadline);
}

int ls_thread_spawn(ls_runtime *runtime, ls_thread **out, const char *name,
                    void (*fn)(void *arg), void *arg)
{
    *out = NULL;
    return runtime->ops->thread_spawn(runtime, out, name, fn, arg);
}

int ls_thread_join(ls_thread **thread, int64_t deadline)
{
    if (thread == NULL || *thread == NULL)
        return LS_OK;
    assert(!ls_thread_is_current(*thread));
    const int status = (*thread)->runtime->ops->thread_join(*thread, deadline);
    if (status == LS_OK)
        *thread = NULL;
    return status;
}

bool ls_thread_is_current(const ls_thread *thread)
{
    return thread != NULL && thread->runtime->ops->thread_is_current(thread);
}

int ls_core_count(ls_runtime *runtime)
{
    return runtime->ops->core_count(runtime);
}

double ls_cpus(ls_runtime *runtime)
{
    return runtime->ops->cpus(runtime);
}

int ls_thread_pin(ls_runtime *runtime, int core)
{
    const int n = ls_core_count(runtime);
    if (core < 0 || core >= n)
        return ls_error(LS_ENOENT,
                        "there is no core %d: this machine has %d, "
                        "from 0 on",
                        core, n);
    return runtime->ops->thread_pin(runtime, core);
}

int ls_mutex_init(ls_mutex *mutex, ls_runtime *runtime)
{
    mutex->runtime = runtime;
    const int status = runtime->ops->mutex_init(mutex);
    if (status != LS_OK)
        mutex->runtime = NULL;
    return status;
}

void ls_mutex_fini(ls_mutex *mutex)
{
    if (mutex == NULL || mutex->runtime == NULL)
        return;
    mutex->runtime->ops->mutex_fini(mutex);
    mutex->runtime = NULL;
}

void ls_mutex_lock(ls_mutex *mutex)
{
    mutex->runtime->ops->mutex_lock(mutex);
}

void ls_mutex_unlock(ls_mutex *mutex)
{
    mutex->runtime->ops->mutex_unlock(mutex);
}

int ls_cond_init(ls_cond *cond, ls_runtime *runtime)
{
    cond->runtime = runtime;
    const int status = runtime->ops->cond_init(cond);
    if (status != LS_OK)
        cond->runtime = NULL;
    return status;
}

void ls_cond_fini(ls_cond *cond)
{
    if (cond == NULL || cond->runtime == NULL)
        return;
    cond->runtime->ops->cond_fini(cond);
    cond->runtime = NULL;
}

void ls_cond_signal(ls_cond *cond)
{
    cond->runtime->ops->cond_signal(cond);
}

void ls_cond_broadcast(ls_cond *cond)
{
    cond->runtime->ops->cond_broadcast(cond);
}

int ls_cond_wait(ls_cond *cond, ls_mutex *mutex, int64_t deadline)
{
    assert(cond->runtime == mutex->runtime);
    return cond->runtime->ops->cond_wait(cond, mutex, deadline);
}

void *ls_runtime_network(const ls_runtime *runtime)
{
    return runtime->network;
}

void ls_runtime_set_network(ls_runtime *runtime, void *network)
{
    runtime->network = network;
}

void *ls_runtime_disk(const ls_runtime *runtime)
{
    return runtime->disk;
}

void ls_runtime_set_disk(ls_runtime *runtime, void *disk)
{
    runtime->disk = disk;
}
