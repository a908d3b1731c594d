#include "call_table.h"

#include "coverage.h"

int call_table_init(struct call_table *table, size_t most, uint64_t most_bytes)
{
    *table = (struct call_table){.most = most, .most_bytes = most_bytes};
    return open_calls_init(&table->open, most);
}

void call_table_fini(struct call_table *table)
{
    open_calls_fini(&table->open);
}

int call_table_add(struct call_table *table, struct open_call *call)
{
    if (table->open.n == table->most)
        return ls_error(LS_EAGAIN, "%zu calls are open already: see max_calls",
                        table->open.n);
    call->number = table->last_number + 1;
    const int status = open_calls_add(&table->open, call);
    if (status == LS_OK)
        table->last_number = call->number;
    return status;
}

static void count_end(const struct open_call *call, enum ls_call_state state)
{
    const bool started = call->state == LS_CALL_STARTED;
    if (state == LS_CALL_COMPLETED)
        ls_take(started ? LS_TAKES_CALL_STARTED_COMPLETED
                        : LS_TAKES_CALL_STARTING_COMPLETED);
    else if (state == LS_CALL_FAILED)
        ls_take(started ? LS_TAKES_CALL_STARTED_FAILED
                        : LS_TAKES_CALL_STARTING_FAILED);
    else if (state == LS_CALL_LOST)
        ls_take(started ? LS_TAKES_CALL_STARTED_LOST
                        : LS_TAKES_CALL_STARTING_LOST);
    else if (state == LS_CALL_TIMEOUT)
        ls_take(started ? LS_TAKES_CALL_STARTED_TIMEOUT
                        : LS_TAKES_CALL_STARTING_TIMEOUT);
    else if (state == LS_CALL_CANCELLED)
        ls_take(started ? LS_TAKES_CALL_STARTED_CANCELLED
                        : LS_TAKES_CALL_STARTING_CANCELLED);
    else
        ls_take(LS_TAKES_CALL_START_FAILED);
}

void call_table_end(struct call_table *table, struct open_call *call,
                    enum ls_call_state state)
{
    count_end(call, state);
    open_calls_remove(&table->open, call);
    call->state = state;
}

/* Whether a body may come with an answer of that member. */
static bool admits(const struct call_table *table, const struct open_call *call,
                   uint64_t size)
{
    uint64_t coming = 0;
    for (const struct open_call *at = table->open.oldest; at != NULL;
         at = at->after)
        if (at->peer == call->peer && at->life == call->life)
            coming += at->body_bytes;
    return size <= table->most_bytes && coming <= table->most_bytes - size;
}

static struct open_call *begin_body(struct call_table *table,
                                    struct open_call *call, uint32_t size)
{
    if (!admits(table, call, size)) {
        call_table_end(table, call, LS_CALL_FAILED);
        return call;
    }
    call->state = LS_CALL_STARTED;
    call->body_bytes = size;
    return call;
}

struct open_call *call_table_receive(struct call_table *table, uint32_t from,
                                     uint64_t life,
                                     const struct call_message *message)
{
    static const enum ls_call_state ends[] = {
        [CALL_COMPLETED] = LS_CALL_COMPLETED,
        [CALL_FAILED] = LS_CALL_FAILED,
        [CALL_REFUSED] = LS_CALL_START_FAILED};
    struct open_call *call =
        open_calls_find(&table->open, from, life, message->to, message->number);
    if (call == NULL ||
        (call->body_bytes != 0 && message->kind == CALL_COMPLETED) ||
        (message->kind != CALL_COMPLETED && message->kind != CALL_FAILED &&
         call->state == LS_CALL_STARTED)) {
        ls_take(LS_TAKES_CALL_STALE);
        table->stale++; /* it has ended; or begun, and told so already */
        return NULL;
    }
    if (message->kind == CALL_STARTED) {
        ls_take(LS_TAKES_CALL_STARTED);
        call->state = LS_CALL_STARTED;
        return NULL;
    }
    if (message->kind == CALL_COMPLETED && message->body_size != 0)
        return begin_body(table, call, message->body_size);
    call_table_end(table, call, ends[message->kind]);
    return call;
}

void call_table_lose(struct call_table *table, uint32_t id, uint64_t life,
                     open_call_fn *fn, void *self)
{
    for (struct open_call *call = table->open.oldest, *after; call != NULL;
         call = after) {
        after = call->after;
        if (call->peer != id || call->life != life)
            continue;
        call_table_end(table, call, LS_CALL_LOST);
        fn(self, call);
    }
}

void call_table_renew(struct call_table *table, uint64_t own, open_call_fn *fn,
                      void *self)
{
    for (struct open_call *call = table->open.oldest, *after; call != NULL;
         call = after) {
        after = call->after;
        if (call->own == own || call->own == CALL_OWN_LIFE)
            continue;
        ls_take(LS_TAKES_CALL_RENEWED);
        call_table_end(table, call, LS_CALL_LOST);
        fn(self, call);
    }
}

struct open_call *call_table_expire(struct call_table *table, int64_t now)
{
    struct open_call *call = open_calls_due(&table->open, now);
    if (call != NULL)
        call_table_end(table, call, LS_CALL_TIMEOUT);
    return call;
}
