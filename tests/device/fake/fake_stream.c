/* Streams, the copies on them, and events. */
#include "fake_parts.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_MAX = 64 };

enum work_kind { WORK_COPY, WORK_EVENT, WORK_CALL };

struct work {
    enum work_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    cuda_callback call;
    void *self;
    cuda_event event;
};

struct cuda_stream_state {
    ls_thread *thread;
    struct work queue[QUEUE_MAX];
    size_t n_asked, n_done;
    bool ending;
};

int fake_cuda_event_is_reached(const void *event)
{
    fake_lock();
    const bool reached = ((const struct cuda_event_state *)event)->reached;
    fake_unlock();
    return reached;
}

static void do_work(cuda_stream stream, const struct work *work)
{
    fake_lock();
    if (work->kind == WORK_COPY && fake.copy_fails != CUDA_SUCCESS) {
        fake.broken = fake.copy_fails;
        fake.copy_fails = CUDA_SUCCESS;
    }
    const cuda_result broken = fake.broken;
    fake_unlock();
    if (work->kind == WORK_COPY && broken == CUDA_SUCCESS)
        memcpy(work->to, work->from, work->bytes);
    if (work->kind == WORK_CALL)
        work->call(stream, broken, work->self);
    if (work->kind == WORK_EVENT) {
        fake_lock();
        work->event->reached = true;
        fake_unlock();
    }
}

static void stream_main(void *self)
{
    struct cuda_stream_state *const stream = self;
    fake_lock();
    for (;;) {
        while ((stream->n_done == stream->n_asked || fake.held) &&
               !stream->ending)
            fake_await_change();
        if (stream->n_done == stream->n_asked)
            break;
        const struct work work = stream->queue[stream->n_done % QUEUE_MAX];
        fake_unlock();
        do_work(stream, &work);
        fake_lock();
        stream->n_done++;
        ls_cond_broadcast(&fake.changed);
    }
    fake_unlock();
}

static cuda_result ask(const char *function, cuda_stream stream,
                       const struct work *work)
{
    const cuda_result result = fake_begin_in_context(function);
    if (result != CUDA_SUCCESS)
        return result;
    fake_lock();
    const cuda_result broken = fake.broken;
    if (stream->n_asked - stream->n_done == QUEUE_MAX)
        abort();
    if (broken == CUDA_SUCCESS) {
        stream->queue[stream->n_asked++ % QUEUE_MAX] = *work;
        fake.n_calls += work->kind == WORK_CALL;
    }
    fake_unlock();
    return broken;
}

cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    (void)flags;
    const cuda_result result = fake_begin_in_context("cuStreamCreate");
    if (result != CUDA_SUCCESS)
        return result;
    struct cuda_stream_state *made = calloc(1, sizeof *made);
    if (made == NULL || ls_thread_spawn(ls_runtime_threads(), &made->thread,
                                        "stream", stream_main, made) != LS_OK)
        abort();
    *stream = made;
    fake_alive(+1);
    return CUDA_SUCCESS;
}

cuda_result cuStreamQuery(cuda_stream stream)
{
    const cuda_result result = fake_begin_in_context("cuStreamQuery");
    if (result != CUDA_SUCCESS)
        return result;
    fake_lock();
    const cuda_result is = fake.broken != CUDA_SUCCESS        ? fake.broken
                           : stream->n_done < stream->n_asked ? CUDA_NOT_READY
                                                              : CUDA_SUCCESS;
    fake_unlock();
    return is;
}

cuda_result cuStreamSynchronize(cuda_stream stream)
{
    fake_lock();
    while (stream->n_done < stream->n_asked)
        fake_await_change();
    const cuda_result broken = fake.broken;
    fake_unlock();
    return broken;
}

cuda_result cuStreamAddCallback(cuda_stream stream, cuda_callback call,
                                void *self, unsigned flags)
{
    (void)flags;
    const struct work work = {.kind = WORK_CALL, .call = call, .self = self};
    return ask("cuStreamAddCallback", stream, &work);
}

cuda_result cuStreamDestroy_v2(cuda_stream stream)
{
    fake_lock();
    stream->ending = true;
    fake_unlock();
    if (ls_thread_join(&stream->thread, LS_FOREVER) != LS_OK)
        abort();
    free(stream);
    fake_alive(-1);
    return CUDA_SUCCESS;
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_address to, const void *from,
                                 size_t bytes, cuda_stream stream)
{
    const struct work work = {.kind = WORK_COPY,
                              .to = (void *)(uintptr_t)to,
                              .from = from,
                              .bytes = bytes};
    return ask("cuMemcpyHtoDAsync_v2", stream, &work);
}

cuda_result cuMemcpyDtoHAsync_v2(void *to, cuda_address from, size_t bytes,
                                 cuda_stream stream)
{
    const struct work work = {.kind = WORK_COPY,
                              .to = to,
                              .from = (const void *)(uintptr_t)from,
                              .bytes = bytes};
    return ask("cuMemcpyDtoHAsync_v2", stream, &work);
}

cuda_result cuEventCreate(cuda_event *event, unsigned flags)
{
    (void)flags;
    const cuda_result result = fake_begin_in_context("cuEventCreate");
    if (result != CUDA_SUCCESS)
        return result;
    *event = calloc(1, sizeof **event);
    fake_alive(+1);
    return CUDA_SUCCESS;
}

cuda_result cuEventRecord(cuda_event event, cuda_stream stream)
{
    const struct work work = {.kind = WORK_EVENT, .event = event};
    fake_lock();
    event->reached = false;
    fake_unlock();
    return ask("cuEventRecord", stream, &work);
}

cuda_result cuEventDestroy_v2(cuda_event event)
{
    free(event);
    fake_alive(-1);
    return CUDA_SUCCESS;
}
