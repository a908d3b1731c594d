/* How a run is ended on all nodes: the event "ls.finish". Its data is the
 * number of the run that it ends, as one msgpack integer; no data means the
 * one that the receiver is in. */
#include "lockstep/codec.h"
#include "lockstep/log.h"
#include "task_core.h"

static void raise_to(atomic_uint_fast64_t *at, uint64_t value)
{
    uint_fast64_t seen = atomic_load(at);
    while (seen < value && !atomic_compare_exchange_weak(at, &seen, value))
        ;
}

static int read_run(const struct ls_event *event, uint64_t *run)
{
    ls_document *document;
    int status = ls_document_read(&document, event->data, event->size, NULL);
    if (status < 0)
        return status;
    status = ls_value_uint(ls_document_root(document), run);
    ls_document_destroy(&document);
    return status;
}

static int on_finish(void *self, const struct ls_event *event)
{
    ls_task *task = self;
    uint64_t run = atomic_load(&task->run);
    if (event->size > 0) {
        const int status = read_run(event, &run);
        if (status < 0)
            return status;
    }
    ls_log_debug("task: node %u finishes run %llu", event->origin,
                 (unsigned long long)run);
    raise_to(&task->finished, run);
    return LS_OK;
}

int ls_finish_listen(ls_task *task)
{
    return task->node == NULL
               ? LS_OK
               : ls_on(task->node, LS_FINISH_EVENT, on_finish, task);
}

void ls_finish_unlisten(ls_task *task)
{
    if (task->node != NULL &&
        ls_off(task->node, LS_FINISH_EVENT, on_finish, task) < 0)
        ls_log_debug("task: somebody has taken its listener away: %s",
                     ls_error_text());
}

static int tell(ls_task *task, uint64_t run)
{
    ls_writer *writer;
    int status = ls_writer_create(&writer);
    if (status < 0)
        return status;
    struct ls_emission emission = {.event = LS_FINISH_EVENT,
                                   .scope = LS_SCOPE_REMOTE,
                                   .delivery = LS_DELIVERY_RELIABLE};
    ls_write_uint(writer, run);
    status = ls_writer_bytes(writer, &emission.data, &emission.size);
    if (status == LS_OK)
        status = ls_emit_with(task->node, &emission);
    ls_writer_destroy(&writer);
    return status;
}

/* Tell the others once. A node that is stopped has said farewell already. */
static int tell_once(ls_task *task, uint64_t run)
{
    if (task->node == NULL || atomic_load(&task->told) >= run)
        return LS_OK;
    const int status = tell(task, run);
    if (status == LS_OK)
        raise_to(&task->told, run);
    return status == LS_ECLOSED ? LS_OK : status;
}

int ls_finish_tell_at_end(ls_task *task)
{
    const int status = tell_once(task, atomic_load(&task->run));
    return status < 0 ? ls_error_at(status, "task: the other nodes were not "
                                            "told that the run is finished")
                      : LS_OK;
}

void ls_task_finish(ls_task *task)
{
    const uint64_t run = atomic_load(&task->run);
    if (ls_forked_since(task->forks))
        return;
    raise_to(&task->finished, run);
    /* The end of the run tries again, and reports it. */
    if (tell_once(task, run) < 0)
        ls_log_warn("task: the other nodes were not told to finish: %s",
                    ls_error_text());
}

void ls_task_finish_here(ls_task *task)
{
    const uint64_t run = atomic_load(&task->run);
    if (ls_forked_since(task->forks))
        return;
    raise_to(&task->told, run);
    raise_to(&task->finished, run);
}

bool ls_task_finishing(const ls_task *task)
{
    return atomic_load(&task->finished) >= atomic_load(&task->run);
}
