#include "node_calls.h"

#include <stddef.h>

#include "lockstep/event.h"
#include "lockstep/record.h"

/* Answer with what the writer holds. */
static int answer(ls_request *request, ls_writer *writer)
{
    const void *data;
    size_t size;
    const int status = ls_writer_bytes(writer, &data, &size);
    /* Who does not wait any more has no use for it. */
    if (status == LS_OK)
        (void)ls_request_complete(&request, data, size);
    ls_writer_destroy(&writer);
    return status;
}

static int serve_ping(void *self, ls_request *request)
{
    const struct node_calls *calls = self;
    ls_writer *writer = NULL;
    const int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, 1);
    ls_write_string(writer, "pong");
    ls_write_uint(writer, ls_node_id(calls->node));
    return answer(request, writer);
}

#define ROUTER(name)                                                           \
    {                                                                          \
#name, LS_FIELD_UINT, .offset = offsetof(struct ls_node_stats, name)   \
    }
static const struct ls_field router_fields[] = {
    ROUTER(emitted),  ROUTER(sent),       ROUTER(sent_bytes),
    ROUTER(resent),   ROUTER(received),   ROUTER(received_bytes),
    ROUTER(handled),  ROUTER(relayed),    ROUTER(dropped),
    ROUTER(lost),     ROUTER(missed),     ROUTER(unacknowledged),
    ROUTER(repeated), ROUTER(reconnects), ROUTER(rejoined),
    ROUTER(refused),  ROUTER(blocks),     ROUTER(blocks_full),
    ROUTER(near),     ROUTER(near_lost),  ROUTER(blocks_held),
    ROUTER(blocked),
};
static const struct ls_record router_record = {
    .fields = router_fields,
    .n_fields = sizeof router_fields / sizeof router_fields[0]};

static void write_figure(ls_writer *writer, const char *name, uint64_t value)
{
    ls_write_string(writer, name);
    ls_write_uint(writer, value);
}

static int serve_stats(void *self, ls_request *request)
{
    const struct node_calls *calls = self;
    struct ls_node_stats router;
    struct ls_rpc_stats asked;
    ls_writer *writer = NULL;
    const int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_node_stats(calls->node, &router);
    ls_rpc_stats(calls->calls, &asked);
    ls_write_map_begin(writer);
    ls_record_write_pairs(&router_record, &router, NULL, writer);
    write_figure(writer, "queued", router.queued);
    write_figure(writer, "queued_peak", router.queued_peak);
    write_figure(writer, "calls_started", asked.started);
    write_figure(writer, "calls_served", asked.served);
    write_figure(writer, "calls_refused", asked.refused);
    write_figure(writer, "calls_stale", asked.stale);
    write_figure(writer, "calls_malformed", asked.malformed);
    write_figure(writer, "open_requests", asked.open_requests);
    ls_write_map_end(writer);
    return answer(request, writer);
}

int node_calls_open(struct node_calls *out, ls_node *node, uint32_t channel)
{
    out->node = node;
    int status = ls_rpc_open(&out->calls, node,
                             &(struct ls_rpc_options){.channel = channel});
    if (status == LS_OK)
        status =
            ls_rpc_serve(out->calls, "ping", LS_CALL_ANYONE, serve_ping, out);
    if (status == LS_OK)
        status =
            ls_rpc_serve(out->calls, "stats", LS_CALL_ANYONE, serve_stats, out);
    if (status != LS_OK)
        node_calls_close(out);
    return status;
}

void node_calls_close(struct node_calls *calls)
{
    ls_rpc_close(&calls->calls);
}
