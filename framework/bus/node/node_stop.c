/* Leaving a world. */
#include "assembly.h"
#include "bus.h"

#define FAREWELL_AGAIN_NS (30 * LS_NS_PER_MS)

/* Whether somebody has not read the farewell yet: each takes its presence back
 * when it has, and so all that came before it. One that is away may come back
 * for it. */
static bool anyone_left(const ls_node *node)
{
    for (size_t i = 0; i < node->world.n; i++) {
        const struct member *member = node->world.at[i];
        if (member->via == NULL && member->state != LS_MEMBER_LOST &&
            (member->n_present != 0 || member->away_at != 0))
            return true;
    }
    return false;
}

static void send_farewell(ls_node *node, int64_t now)
{
    uint8_t head[WIRE_HEAD_MAX];
    struct wire_header header = bus_header(node, WIRE_KIND_FAREWELL);
    header.reason = node->farewell.reason;
    size_t n = wire_topic_control(head);
    n += wire_header_write(head + n, &header);
    batch_flush(node);
    (void)transport_publish(node->transport, head, n, NULL, 0);
    node->farewell.at = now + FAREWELL_AGAIN_NS;
}

int64_t farewell_tick(ls_node *node, int64_t now)
{
    if (!node->world.leaving)
        return LS_FOREVER;
    if (node->farewell.at <= now)
        send_farewell(node, now);
    return node->farewell.at;
}

static void say_farewell(ls_node *node, int reason)
{
    const int64_t deadline =
        ls_deadline(node->runtime, node->options.linger_ms);
    int status = LS_OK;
    transport_lock(node->transport);
    streams_drain(node, deadline);
    node->farewell.reason = reason;
    node->world.leaving = true;
    send_farewell(node, ls_now(node->runtime));
    node_wake(node); /* the bus thread repeats it */
    while (anyone_left(node) && status == LS_OK)
        status = ls_cond_wait(&node->changed, transport_mutex(node->transport),
                              deadline);
    transport_unlock(node->transport);
}

static void stop(ls_node *node, int reason)
{
    if (node->loop.thread != NULL)
        say_farewell(node, reason);
    channels_closed(node);
    bus_stop(node);
    dispatch_stop(node);
    blocks_stop(node);
    transport_lock(node->transport);
    for (struct link *link = node->links; link != NULL; link = link->next)
        link->closing = true;
    links_close_marked(node);
    assembly_drop(node, NULL);
    streams_close(node);
    transport_unlock(node->transport);
    transport_unbind(node->transport);
    ls_log_info("bus: node %u has stopped", node->options.id);
}

/* is_first: false: another thread has stopped it. Whether the caller is one of
 * the node's own threads can be told once they are there. */
static int begin_stop(ls_node *node, bool *is_first)
{
    struct node_life *life = &node->life;
    int status = LS_OK;
    *is_first = false;
    ls_mutex_lock(&life->lock);
    while (life->opening && status == LS_OK)
        status = ls_cond_wait(&life->changed, &life->lock, LS_FOREVER);
    const bool is_own = dispatch_is_current(node) || bus_is_current(node) ||
                        channels_is_closer(node);
    if (!is_own)
        *is_first = atomic_exchange(&node->phase, NODE_STOPPED) != NODE_STOPPED;
    while (!is_own && !*is_first && !life->closed && status == LS_OK)
        status = ls_cond_wait(&life->changed, &life->lock, LS_FOREVER);
    ls_mutex_unlock(&life->lock);
    return is_own
               ? ls_error(LS_ESTATE,
                          "node %u cannot be stopped by a handler of its own",
                          node->options.id)
               : LS_OK;
}

int ls_node_stop(ls_node *node, int reason)
{
    bool is_first;
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    const int status = begin_stop(node, &is_first);
    if (!is_first)
        return status;
    if (node->transport != NULL)
        stop(node, reason);
    ls_mutex_lock(&node->life.lock);
    node->life.closed = true;
    ls_cond_broadcast(&node->life.changed);
    ls_mutex_unlock(&node->life.lock);
    return LS_OK;
}
