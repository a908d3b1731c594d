/* A node on the network: opening, and joining a world. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bus.h"

/* ---- open -------------------------------------------------------------- */

static void subscribe_from_start(ls_node *node)
{
    atomic_store(&node->interests_changed, false);
    for (size_t i = 0; i < EVENT_BUCKETS; i++) {
        struct event_entry *entry = atomic_load(&node->events[i]);
        for (; entry != NULL; entry = entry->next)
            entry->subscribed = entry->wanted;
    }
}

int ls_node_open(ls_node *node)
{
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u was stopped", node->options.id);
    if (node->phase != NODE_CREATED)
        return ls_error(LS_ESTATE, "node %u was started before",
                        node->options.id);
    char bound[LS_ENDPOINT_MAX + 1];
    node->incarnation = (uint64_t)ls_wall_now(node->runtime);
    int status = transport_open(&node->transport, node->runtime, node->bind,
                                WIRE_CHUNK_BYTES + 65536,
                                node->options.linger_ms, bound);
    if (status != LS_OK)
        return ls_error_at(status, "node %u", node->options.id);
    if (node->endpoint[0] == '\0')
        memcpy(node->endpoint, bound, sizeof bound);
    ls_mutex_lock(&node->router);
    subscribe_from_start(node);
    ls_mutex_unlock(&node->router);
    node->world_version = 1;
    node->phase = NODE_OPEN;
    status = dispatch_start(node);
    if (status == LS_OK)
        status = ls_thread_spawn(node->runtime, &node->bus_thread, "ls-bus",
                                 bus_thread_main, node);
    if (status == LS_OK)
        ls_log_info("bus: node %u of job %s is at %s", node->options.id,
                    node->job, node->endpoint);
    return status;
}

/* ---- join -------------------------------------------------------------- */

static bool is_ready(ls_node *node, uint32_t id)
{
    const struct peer *peer = world_find(node, id);
    return id == node->options.id || (peer != NULL && world_has(peer));
}

static bool formed(ls_node *node)
{
    if (node->members == NULL)
        return world_n_ready(node) + 1 >= node->options.world_size;
    for (uint32_t i = 0; i < node->options.world_size; i++)
        if (!is_ready(node, node->members[i]))
            return false;
    return true;
}

/* Of the world: others do not count where its members are named. Lock held. */
static size_t n_formed(ls_node *node)
{
    size_t n = 0;
    if (node->members == NULL)
        return world_n_ready(node) + 1;
    for (uint32_t i = 0; i < node->options.world_size; i++)
        n += is_ready(node, node->members[i]) ? 1 : 0;
    return n;
}

struct text {
    char *at;
    size_t left;
};

static void append(struct text *text, const char *format, ...) LS_PRINTF(2, 3);
static void append(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    const size_t used = n < 0                    ? 0
                        : (size_t)n < text->left ? (size_t)n
                                                 : text->left - 1;
    text->at += used;
    text->left -= used;
}

/* Who is missing, in words. Lock held. */
static void name_missing(ls_node *node, struct text *text)
{
    const char *before = " missing: node ";
    if (node->members == NULL) {
        append(text, " missing: %zu more",
               node->options.world_size - 1 - world_n_ready(node));
        return;
    }
    for (uint32_t i = 0; i < node->options.world_size; i++) {
        if (is_ready(node, node->members[i]))
            continue;
        append(text, "%s%" PRIu32, before, node->members[i]);
        const struct peer *peer = world_find(node, node->members[i]);
        if (peer != NULL && peer->n_present != 0)
            append(text, " (its presence is here, but it does not list this "
                         "node)");
        before = ", ";
    }
}

struct silent {
    char endpoint[LS_ENDPOINT_MAX + 1];
    char refusal[192];
};

/* The addresses that nobody of this world answers at. */
static size_t silent_links(ls_node *node, struct silent *out, size_t capacity)
{
    size_t n = 0;
    for (struct link *l = node->links; l != NULL && n < capacity; l = l->next) {
        if (l->peer != NULL && l->peer->state == LS_MEMBER_READY)
            continue;
        memcpy(out[n].endpoint, l->endpoint, sizeof out[n].endpoint);
        memcpy(out[n].refusal, l->refusal, sizeof out[n].refusal);
        n++;
    }
    return n;
}

static int not_formed(ls_node *node)
{
    char buffer[LS_ERROR_TEXT_MAX - 100];
    struct text text = {buffer, sizeof buffer};
    struct silent silent[8];
    buffer[0] = '\0';
    transport_lock(node->transport);
    const size_t ready = n_formed(node);
    const bool alone = world_n_ready(node) == 0;
    name_missing(node, &text);
    const size_t n = silent_links(node, silent, 8);
    char refusal[sizeof node->refusal];
    memcpy(refusal, node->refusal, sizeof refusal);
    transport_unlock(node->transport);
    bool mismatch = refusal[0] != '\0' && alone;
    for (size_t i = 0; i < n; i++) {
        char why[256];
        transport_explain(node->transport, silent[i].endpoint, why, sizeof why);
        if (silent[i].refusal[0] != '\0')
            append(&text, "; %s: %s", silent[i].endpoint, silent[i].refusal);
        else
            append(&text, "; %s: %s", silent[i].endpoint,
                   why[0] != '\0' ? why : "no answer");
        mismatch = mismatch || (silent[i].refusal[0] != '\0' && alone);
    }
    if (refusal[0] != '\0')
        append(&text, "; refused: %s", refusal);
    return ls_error(mismatch ? LS_EMISMATCH : LS_EUNREACHABLE,
                    "node %u: the world was not formed within %d ms: %zu of "
                    "%u nodes are ready;%s",
                    node->options.id, node->options.start_timeout_ms, ready,
                    node->options.world_size, buffer);
}

static int wait_formed(ls_node *node, int64_t deadline)
{
    int status = LS_OK;
    transport_lock(node->transport);
    while (!formed(node) && node->fatal == LS_OK && !node_is_stopping(node) &&
           status == LS_OK)
        status = ls_cond_wait(&node->changed, transport_mutex(node->transport),
                              deadline);
    if (formed(node))
        status = LS_OK;
    char fatal[LS_ERROR_TEXT_MAX];
    memcpy(fatal, node->fatal_text, sizeof fatal);
    const int why = node->fatal;
    transport_unlock(node->transport);
    if (why != LS_OK)
        return ls_error(why, "%s", fatal);
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED,
                        "node %u was stopped before its world was "
                        "formed",
                        node->options.id);
    return status == LS_OK ? LS_OK : not_formed(node);
}

int ls_node_join(ls_node *node)
{
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u was stopped", node->options.id);
    if (node->phase != NODE_OPEN)
        return ls_error(LS_ESTATE, "node %u is not open, or joined before",
                        node->options.id);
    const int64_t deadline =
        ls_deadline(node->runtime, node->options.start_timeout_ms);
    node->phase = NODE_JOINED;
    atomic_store(&node->dial_wanted, true);
    node_wake(node);
    return wait_formed(node, deadline);
}

int ls_node_start(ls_node *node)
{
    const int status = ls_node_open(node);
    return status == LS_OK ? ls_node_join(node) : status;
}
