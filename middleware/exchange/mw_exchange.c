/* Both halves of an exchange, as a step. */
#include "lockstep/middleware.h"

#include <stdlib.h>
#include <string.h>

#include "exchange_receiver.h"
#include "factory.h"
#include "lockstep/log.h"
#include "word_list.h"

enum { DEFAULT_TIMEOUT_MS = 60000 };

struct exchange {
    ls_task *task; /* borrow */
    char *name;    /* own, as the next two */
    char *from;
    char *gives;
    char event[LS_EVENT_MAX + 1];
    bool sends;
    unsigned skip, every;
    int timeout_ms;
    ls_exchange_plan *plan;         /* own */
    ls_exchange_receiver *receiver; /* own; NULL: this node does not */
    uint64_t round;
    uint64_t iterations; /* of this round */
    uint64_t run;        /* from 1, as the task counts them */
};

/* Sending ---------------------------------------------------------------- */

static void release_writer(void *data, void *hint)
{
    (void)data;
    ls_writer *writer = hint;
    ls_writer_destroy(&writer);
}

/* writer: moved, whatever comes of it. */
static int emit(struct exchange *exchange, ls_writer *writer)
{
    struct ls_emission emission = {
        .event = exchange->event,
        .scope = LS_SCOPE_REMOTE,
        .delivery = LS_DELIVERY_RELIABLE,
        .timeout_ms = exchange->timeout_ms,
        .release = release_writer,
        .hint = writer,
    };
    const int status = ls_writer_bytes(writer, &emission.data, &emission.size);
    if (status != LS_OK) {
        ls_writer_destroy(&writer);
        return status;
    }
    return ls_emit_with(ls_task_node(exchange->task), &emission);
}

static int send(struct exchange *exchange)
{
    ls_context *context = ls_task_context(exchange->task);
    ls_writer *writer;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        status =
            ls_exchange_write(exchange->plan, context, exchange->round, writer);
        if (status == LS_OK)
            status = emit(exchange, writer);
        else
            ls_writer_destroy(&writer);
    }
    if (status != LS_OK)
        return ls_error_at(status, "exchange \"%s\"", exchange->name);
    ls_exchange_sent(exchange->plan, context);
    return LS_OK;
}

/* A run that failed has no end: its node will leave with the error. */
static int finish(void *self, ls_task *task, int status)
{
    (void)task;
    struct exchange *exchange = self;
    const uint64_t run = exchange->run++;
    ls_writer *writer;
    if (!exchange->sends || status != LS_OK ||
        ls_writer_create(&writer) != LS_OK)
        return LS_OK;
    ls_exchange_write_end(run, writer);
    if (emit(exchange, writer) != LS_OK)
        ls_log_debug("exchange \"%s\": the others are not told of the end: %s",
                     exchange->name, ls_error_text());
    return LS_OK;
}

static int exchange_step(ls_step *step, void *self)
{
    struct exchange *exchange = self;
    const uint64_t round = ls_task_round(exchange->task);
    if (round != exchange->round) {
        exchange->round = round;
        exchange->iterations = 0;
    }
    const uint64_t iteration = exchange->iterations++;
    int status = LS_OK;
    if (exchange->receiver != NULL && iteration == 0)
        ls_exchange_receiver_begin(exchange->receiver, round);
    if (exchange->receiver != NULL && iteration >= exchange->skip)
        status = ls_exchange_receive(exchange->receiver, exchange->run);
    if (status != LS_OK || !exchange->sends)
        return status;
    status = ls_yield(step);
    return status == LS_OK && iteration % exchange->every == 0 ? send(exchange)
                                                               : status;
}

/* Making it -------------------------------------------------------------- */

static void exchange_destroy(void *self)
{
    struct exchange *exchange = self;
    ls_exchange_receiver_destroy(&exchange->receiver);
    ls_exchange_plan_destroy(&exchange->plan);
    free(exchange->gives);
    free(exchange->from);
    free(exchange->name);
    free(exchange);
}

static bool has_any_role(const ls_task *task, const char *roles)
{
    size_t length;
    const char *word;
    while ((word = word_list_next(&roles, &length)) != NULL) {
        char role[64];
        (void)snprintf(role, sizeof role, "%.*s", (int)length, word);
        if (ls_task_has_role(task, role))
            return true;
    }
    return false;
}

static int check(const struct ls_exchange_options *options)
{
    size_t length;
    const char *from = options->from, *to = options->to;
    if (word_list_next(&from, &length) == NULL ||
        word_list_next(&to, &length) == NULL)
        return ls_error(LS_EINVAL, "set `from` and `to`: the roles that send "
                                   "and that receive");
    if (!options->newest && (options->every > 1 || options->stale > 0))
        return ls_error(LS_EINVAL, "`every` and `stale` need `newest`: without "
                                   "it, one of each is taken each time");
    if (options->timeout_ms < 0)
        return ls_error(LS_EINVAL, "timeout_ms is %d", options->timeout_ms);
    return LS_OK;
}

static int copy_texts(struct exchange *exchange,
                      const struct ls_exchange_options *options)
{
    const char *name = options->name != NULL ? options->name : "context";
    const char *fields = options->fields != NULL ? options->fields : "";
    const char *increments =
        options->increments != NULL ? options->increments : "";
    const int n = snprintf(exchange->event, sizeof exchange->event,
                           "ls.exchange.%s", name);
    if ((size_t)n >= sizeof exchange->event)
        return ls_error(LS_EINVAL, "its name is too long for an event: %s",
                        name);
    const size_t size = strlen(fields) + strlen(increments) + 2;
    exchange->name = strdup(name);
    exchange->from = strdup(options->from);
    exchange->gives = malloc(size);
    if (exchange->name == NULL || exchange->from == NULL ||
        exchange->gives == NULL)
        return ls_error(LS_ENOMEM, "no memory for its names");
    (void)snprintf(exchange->gives, size, "%s,%s", fields, increments);
    return LS_OK;
}

static int exchange_init(struct exchange *exchange,
                         const struct ls_exchange_options *options,
                         bool receives)
{
    exchange->run = 1;
    exchange->skip = options->skip;
    exchange->every = options->every > 0 ? options->every : 1;
    exchange->timeout_ms =
        options->timeout_ms != 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    int status = copy_texts(exchange, options);
    if (status == LS_OK)
        status = ls_exchange_plan_create(&exchange->plan,
                                         ls_task_context(exchange->task),
                                         options->fields, options->increments);
    if (status != LS_OK || !receives)
        return status;
    const struct ls_exchange_how how = {
        .task = exchange->task,
        .plan = exchange->plan,
        .name = exchange->name,
        .event = exchange->event,
        .from = exchange->from,
        .sends_too = exchange->sends,
        .newest = options->newest,
        .stale = options->stale,
        .timeout_ms = exchange->timeout_ms,
    };
    return ls_exchange_receiver_create(&exchange->receiver, &how);
}

struct ls_middleware ls_mw_exchange(ls_task *task,
                                    const struct ls_exchange_options *options)
{
    static const char name[] = "exchange";
    int status = check(options);
    if (status != LS_OK)
        return middleware_failed(name, status);
    const bool sends = has_any_role(task, options->from);
    const bool receives = has_any_role(task, options->to);
    if (ls_task_node(task) == NULL || (!sends && !receives))
        return (struct ls_middleware){.name = name};
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL)
        return middleware_failed(name, ls_error(LS_ENOMEM, "no memory"));
    exchange->task = task;
    exchange->sends = sends;
    status = exchange_init(exchange, options, receives);
    if (status != LS_OK) {
        const struct ls_middleware failed = middleware_failed(name, status);
        exchange_destroy(exchange);
        return failed;
    }
    return (struct ls_middleware){
        .name = exchange->name,
        .fn = exchange_step,
        .self = exchange,
        .release = exchange_destroy,
        .finish = finish,
        .gives = receives ? exchange->gives : NULL,
    };
}
