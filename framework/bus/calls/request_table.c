#include "request_table.h"

#include <stdlib.h>
#include <string.h>

#include "coverage.h"

int request_table_init(struct request_table *table, uint32_t channel,
                       size_t most, uint64_t most_bytes)
{
    *table = (struct request_table){
        .channel = channel, .most = most, .most_bytes = most_bytes};
    return open_calls_init(&table->open, most);
}

void request_table_fini(struct request_table *table)
{
    free(table->callers);
    open_calls_fini(&table->open);
    table->callers = NULL;
}

/* ---- who asks ---------------------------------------------------------- */

/* Where a caller of this id stands, or would. */
static size_t place(const struct request_table *table, uint32_t id)
{
    size_t low = 0, high = table->n_callers;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (table->callers[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct caller *find_caller(const struct request_table *table,
                                  uint32_t id)
{
    const size_t at = place(table, id);
    return at < table->n_callers && table->callers[at].id == id
               ? &table->callers[at]
               : NULL;
}

static struct caller *add_caller(struct request_table *table, uint32_t id,
                                 uint64_t life)
{
    const size_t at = place(table, id);
    struct caller *grown = realloc(table->callers, (table->n_callers + 1) *
                                                       sizeof *table->callers);
    if (grown == NULL)
        return NULL;
    table->callers = grown;
    memmove(&grown[at + 1], &grown[at],
            (table->n_callers - at) * sizeof *grown);
    table->n_callers++;
    grown[at] = (struct caller){.id = id, .life = life};
    return &grown[at];
}

static void forget_caller(struct request_table *table, struct caller *caller)
{
    const size_t after =
        table->n_callers - 1 - (size_t)(caller - table->callers);
    memmove(caller, caller + 1, after * sizeof *caller);
    table->n_callers--;
}

/* ---- what ends it from the other side ---------------------------------- */

static void cancel(struct request_table *table, struct open_call *call)
{
    call->state = LS_CALL_CANCELLED;
    deadlines_remove(&table->open.due, &call->due);
}

struct open_call *request_table_cancel(struct request_table *table,
                                       uint32_t from, uint64_t life,
                                       uint64_t own, uint64_t number)
{
    struct open_call *call =
        open_calls_find(&table->open, from, life, own, number);
    if (call == NULL || call->state == LS_CALL_CANCELLED) {
        ls_take(LS_TAKES_REQUEST_CANCEL_STALE);
        table->stale++;
        return NULL;
    }
    ls_take(LS_TAKES_REQUEST_CANCELLED);
    cancel(table, call);
    return call;
}

void request_table_lose(struct request_table *table, uint32_t id, uint64_t life,
                        open_call_fn *fn, void *self)
{
    struct caller *caller = find_caller(table, id);
    if (caller != NULL && caller->life == life)
        forget_caller(table, caller);
    if (table->has_master && table->master == id && table->master_life == life)
        table->has_master = false;
    for (struct open_call *call = table->open.oldest, *after; call != NULL;
         call = after) {
        after = call->after;
        if (call->peer != id || call->life != life ||
            call->state == LS_CALL_CANCELLED)
            continue;
        ls_take(LS_TAKES_REQUEST_CALLER_LOST);
        cancel(table, call);
        fn(self, call);
    }
}

void request_table_lose_all(struct request_table *table, bool own_too,
                            open_call_fn *fn, void *self)
{
    if (table->has_master && (own_too || table->master_life != CALL_OWN_LIFE))
        table->has_master = false;
    for (size_t i = table->n_callers; i-- > 0;)
        if (table->callers[i].life != CALL_OWN_LIFE)
            forget_caller(table, &table->callers[i]);
    for (struct open_call *call = table->open.oldest, *after; call != NULL;
         call = after) {
        after = call->after;
        if (call->state == LS_CALL_CANCELLED ||
            (call->life == CALL_OWN_LIFE && !own_too))
            continue;
        cancel(table, call);
        fn(self, call);
    }
}

struct open_call *request_table_expire(struct request_table *table, int64_t now)
{
    struct open_call *call = open_calls_due(&table->open, now);
    if (call != NULL) {
        ls_take(LS_TAKES_REQUEST_EXPIRED);
        cancel(table, call);
    }
    return call;
}

/* ---- what comes -------------------------------------------------------- */

struct served *request_table_served(const struct request_table *table,
                                    const char *name, size_t size)
{
    struct served *served = table->served;
    while (served != NULL && (strlen(served->name) != size ||
                              memcmp(served->name, name, size) != 0))
        served = served->next;
    return served;
}

static bool is_called(const struct call_message *message, const char *name)
{
    return message->name_size == strlen(name) &&
           memcmp(message->name, name, message->name_size) == 0;
}

static bool is_master(const struct request_table *table, uint32_t from,
                      uint64_t life)
{
    return table->has_master && table->master == from &&
           table->master_life == life;
}

static enum ls_call_code connect(struct request_table *table, uint32_t from,
                                 uint64_t life)
{
    if (table->has_master && !is_master(table, from, life))
        return LS_CALL_HAS_MASTER;
    table->has_master = true;
    table->master = from;
    table->master_life = life;
    return LS_CALL_OK;
}

static enum ls_call_code disconnect(struct request_table *table, uint32_t from,
                                    uint64_t life)
{
    if (!is_master(table, from, life))
        return LS_CALL_NOT_CONNECTED;
    table->has_master = false;
    return LS_CALL_OK;
}

/* Whether there is room for its body. */
static enum ls_call_code judge_body(const struct request_table *table,
                                    const struct caller *caller, uint64_t size)
{
    uint64_t held = 0;
    if (size > table->most_bytes)
        return LS_CALL_TOO_LONG;
    for (const struct open_call *at = table->open.oldest;
         at != NULL && size != 0; at = at->after)
        if (at->peer == caller->id && at->life == caller->life)
            held += at->body_bytes;
    return held + size <= table->most_bytes ? LS_CALL_OK : LS_CALL_BUSY;
}

/* A new call of one that is known in this life. */
static enum request_verdict judge_new(struct request_table *table,
                                      const struct caller *caller,
                                      const struct call_message *message,
                                      size_t waiting, enum ls_call_code *code)
{
    const uint32_t from = caller->id;
    const uint64_t life = caller->life;
    const bool leaves = !message->broken && is_called(message, CALL_DISCONNECT);
    if (table->closing)
        *code = LS_CALL_SHUTTING_DOWN;
    else if (message->broken)
        *code = LS_CALL_MALFORMED;
    else if (leaves)
        *code = disconnect(table, from, life);
    else if (table->channel != 0 && message->channel == 0)
        *code = LS_CALL_NO_CHANNEL;
    else if (table->channel != 0 && message->channel != table->channel)
        *code = LS_CALL_WRONG_CHANNEL;
    else if (is_called(message, CALL_CONNECT))
        *code = connect(table, from, life);
    if (*code != LS_CALL_OK)
        return REQUEST_REFUSE;
    if (leaves || is_called(message, CALL_CONNECT))
        return REQUEST_DONE;
    const struct served *served =
        request_table_served(table, message->name, message->name_size);
    if (served == NULL)
        return REQUEST_UNKNOWN;
    if (served->who == LS_CALL_MASTER_ONLY && !is_master(table, from, life))
        *code = LS_CALL_NOT_CONNECTED;
    else if (table->open.n + waiting >= table->most)
        *code = LS_CALL_BUSY;
    else
        *code = judge_body(table, caller, message->body_size);
    return *code == LS_CALL_OK ? REQUEST_ACCEPT : REQUEST_REFUSE;
}

static enum request_verdict judge(struct request_table *table, uint32_t from,
                                  uint64_t life, uint64_t own,
                                  const struct call_message *message,
                                  size_t waiting, enum ls_call_code *code,
                                  open_call_fn *fn, void *self)
{
    struct caller *caller = find_caller(table, from);
    *code = LS_CALL_OK;
    /* An earlier life is gone, even if that was not told yet. */
    if (caller != NULL && caller->life != life) {
        ls_take(LS_TAKES_REQUEST_CALLER_NEW);
        request_table_lose(table, from, caller->life, fn, self);
        caller = NULL;
    }
    if (message->to != own)
        ls_take(LS_TAKES_REQUEST_OTHER_LIFE);
    if (message->to != own ||
        (caller != NULL && message->number <= caller->last)) {
        table->stale++;
        return REQUEST_STALE;
    }
    if (caller == NULL && (caller = add_caller(table, from, life)) == NULL)
        return REQUEST_NO_MEMORY;
    caller->last = message->number;
    return judge_new(table, caller, message, waiting, code);
}

enum request_verdict
request_table_judge(struct request_table *table, uint32_t from, uint64_t life,
                    uint64_t own, const struct call_message *message,
                    size_t waiting, enum ls_call_code *code, open_call_fn *fn,
                    void *self)
{
    static const enum ls_transition takes[] = {
        [REQUEST_STALE] = LS_TAKES_REQUEST_STALE,
        [REQUEST_REFUSE] = LS_TAKES_REQUEST_REFUSED,
        [REQUEST_UNKNOWN] = LS_TAKES_REQUEST_UNKNOWN,
        [REQUEST_DONE] = LS_TAKES_REQUEST_DONE,
        [REQUEST_ACCEPT] = LS_TAKES_REQUEST_ACCEPTED,
        [REQUEST_NO_MEMORY] = LS_TAKES_REQUEST_REFUSED};
    const enum request_verdict verdict =
        judge(table, from, life, own, message, waiting, code, fn, self);
    ls_take(takes[verdict]);
    return verdict;
}
