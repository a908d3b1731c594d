/* A node as an object: its options, its makings, what it tells of itself. */
#include "lockstep/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"

void ls_node_options_init(struct ls_node_options *options)
{
    *options = (struct ls_node_options){
        .job = "lockstep",
        .role = "",
        .labels = "",
        .topology = LS_TOPOLOGY_MESH,
        .world_size = 1,
        .start_timeout_ms = 10000,
        .heartbeat_ms = 250,
        .silence_ms = 2000,
        .linger_ms = 200,
        .window_messages = 16384,
        .window_bytes = 8u << 20,
        .max_payload_bytes = 64u << 20,
        .emit_timeout_ms = 10000,
    };
}

/* ---- checking ---------------------------------------------------------- */

static int out_of_range(const char *option, const char *range)
{
    return ls_error(LS_EINVAL, "node option %s: it must be %s", option, range);
}

static int check_texts(const struct ls_node_options *o)
{
    if (o->job == NULL || o->job[0] == '\0' ||
        !wire_word_valid(o->job, LS_JOB_MAX, "._-"))
        return out_of_range("job", "1 to 64 of A-Z a-z 0-9 . _ -");
    if (o->role != NULL && !wire_word_valid(o->role, WIRE_ROLE_MAX, "._-,"))
        return out_of_range("role", "at most 31 of A-Z a-z 0-9 . _ - ,");
    if (o->labels != NULL &&
        !wire_word_valid(o->labels, WIRE_LABELS_MAX, "._-,"))
        return out_of_range("labels", "at most 63 of A-Z a-z 0-9 . _ - ,");
    if (o->bind != NULL && strlen(o->bind) > LS_ENDPOINT_MAX - 16)
        return out_of_range("bind", "shorter than 240 bytes");
    if (o->advertise != NULL && strlen(o->advertise) > LS_ENDPOINT_MAX)
        return out_of_range("advertise", "at most 255 bytes");
    for (size_t i = 0; i < o->n_attach; i++)
        if (o->attach == NULL || o->attach[i] == NULL ||
            strlen(o->attach[i]) > LS_ENDPOINT_MAX)
            return out_of_range("attach", "addresses of at most 255 bytes");
    return LS_OK;
}

static int check_members(const struct ls_node_options *o)
{
    if (o->world_size < 1 || o->world_size > MAX_PEERS)
        return out_of_range("world_size", "1 to 4096");
    if (o->world_max != 0 &&
        (o->world_max < o->world_size || o->world_max > MAX_PEERS))
        return out_of_range("world_max", "0, or world_size to 4096");
    if (o->members == NULL)
        return LS_OK;
    bool self = false;
    for (uint32_t i = 0; i < o->world_size; i++) {
        self = self || o->members[i] == o->id;
        for (uint32_t j = 0; j < i; j++)
            if (o->members[i] == o->members[j])
                return ls_error(LS_EINVAL,
                                "node option members: id %u is there twice",
                                o->members[i]);
    }
    return self ? LS_OK
                : ls_error(LS_EINVAL,
                           "node option members: this node's own "
                           "id, %u, is not among them",
                           o->id);
}

static int check_numbers(const struct ls_node_options *o)
{
    if ((int)o->topology < LS_TOPOLOGY_MESH || o->topology > LS_TOPOLOGY_ALONE)
        return out_of_range("topology", "mesh, star or alone");
    if (o->start_timeout_ms < -1 || o->emit_timeout_ms < 0 || o->linger_ms < 0)
        return out_of_range("a timeout", "0 or more milliseconds");
    if (o->heartbeat_ms < 10 || o->heartbeat_ms > 60000)
        return out_of_range("heartbeat_ms", "10 to 60000");
    if (o->silence_ms < 2 * o->heartbeat_ms)
        return out_of_range("silence_ms", "at least twice heartbeat_ms");
    if (o->window_messages < 16 || o->window_messages > 1u << 20)
        return out_of_range("window_messages", "16 to 1048576");
    if (o->window_bytes < 2 * (size_t)WIRE_CHUNK_BYTES)
        return out_of_range("window_bytes", "at least 2 MiB");
    if (o->max_payload_bytes > 1u << 30)
        return out_of_range("max_payload_bytes", "at most 1 GiB");
    return LS_OK;
}

static int check_reach(const struct ls_node_options *o)
{
    if (o->insecure)
        return LS_OK;
    if (o->bind != NULL && transport_leaves_host(o->bind))
        return ls_error(LS_EINVAL,
                        "%s is reached from beyond this host: traffic there "
                        "is neither secret nor authenticated; set insecure to "
                        "allow it",
                        o->bind);
    for (size_t i = 0; i < o->n_attach; i++)
        if (transport_leaves_host(o->attach[i]))
            return ls_error(LS_EINVAL,
                            "%s is beyond this host: traffic there is neither "
                            "secret nor authenticated; set insecure to allow "
                            "it",
                            o->attach[i]);
    return LS_OK;
}

static int check(const struct ls_node_options *o)
{
    int status = check_texts(o);
    if (status == LS_OK)
        status = check_members(o);
    if (status == LS_OK)
        status = check_numbers(o);
    return status == LS_OK ? check_reach(o) : status;
}

/* ---- making ------------------------------------------------------------ */

static char *copy_text(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    if (copy != NULL)
        memcpy(copy, text, strlen(text) + 1);
    return copy;
}

static bool copy_options(ls_node *node, const struct ls_node_options *o)
{
    node->options = *o;
    node->runtime = o->runtime != NULL ? o->runtime : ls_runtime_threads();
    snprintf(node->job, sizeof node->job, "%s", o->job);
    snprintf(node->role, sizeof node->role, "%s",
             o->role != NULL ? o->role : "");
    snprintf(node->labels, sizeof node->labels, "%s",
             o->labels != NULL ? o->labels : "");
    snprintf(node->bind, sizeof node->bind, "%s",
             o->bind != NULL ? o->bind : "tcp://127.0.0.1:21500-21999");
    snprintf(node->endpoint, sizeof node->endpoint, "%s",
             o->advertise != NULL ? o->advertise : "");
    node->job_hash = wire_job_hash(node->job);
    node->hub = o->topology == LS_TOPOLOGY_STAR && o->n_attach == 0;
    node->attach = calloc(o->n_attach + 1, sizeof *node->attach);
    bool ok = node->attach != NULL;
    for (size_t i = 0; i < o->n_attach && ok; i++)
        ok = (node->attach[i] = copy_text(o->attach[i])) != NULL;
    if (o->members != NULL && ok) {
        node->members = calloc(o->world_size, sizeof *node->members);
        ok = node->members != NULL;
        if (ok)
            memcpy(node->members, o->members,
                   o->world_size * sizeof *node->members);
    }
    if (o->world_max == 0) {
        const bool any = o->world_size == 1 || o->topology == LS_TOPOLOGY_ALONE;
        node->options.world_max = any ? MAX_PEERS : o->world_size;
    }
    node->options.attach = NULL;
    node->options.members = NULL;
    return ok;
}

int ls_node_create(ls_node **out, const struct ls_node_options *options)
{
    int status = check(options);
    if (status != LS_OK)
        return status;
    ls_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return ls_error(LS_ENOMEM, "no memory for a node");
    message_list_init(&node->spare);
    message_list_init(&node->arrived);
    status = copy_options(node, options)
                 ? LS_OK
                 : ls_error(LS_ENOMEM, "no memory for a node");
    if (status == LS_OK)
        status = ls_mutex_init(&node->router, node->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&node->idle, node->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&node->changed, node->runtime);
    if (status == LS_OK)
        status = dispatch_init(node);
    if (status == LS_OK)
        status = message_pool_create(&node->pool, node->runtime);
    if (status != LS_OK) {
        ls_node_destroy(&node);
        return status;
    }
    *out = node;
    return LS_OK;
}

static void free_watches(ls_node *node)
{
    while (node->watches != NULL) {
        struct member_watch *watch = node->watches;
        node->watches = watch->next;
        free(watch);
    }
}

static void free_peers(ls_node *node)
{
    for (size_t i = 0; i < node->n_peers; i++) {
        message_give_back(node->pool, &node->peers[i]->relay);
        streams_reset(node, node->peers[i]);
        free(node->peers[i]);
    }
}

void ls_node_destroy(ls_node **node_p)
{
    if (node_p == NULL || *node_p == NULL)
        return;
    ls_node *node = *node_p;
    ls_node_stop(node, LS_OK);
    if (ls_thread_join(&node->bus_thread, LS_FOREVER) != LS_OK)
        ls_log_error("bus: the bus thread of node %u did not end",
                     node->options.id);
    if (node->pool != NULL) {
        free_peers(node);
        message_give_back(node->pool, &node->spare);
        message_give_back(node->pool, &node->arrived);
        dispatch_fini(node);
    }
    transport_close(&node->transport);
    message_pool_destroy(&node->pool);
    events_free(node);
    free_watches(node);
    free(node->news);
    free(node->heartbeat);
    ls_cond_fini(&node->changed);
    ls_cond_fini(&node->idle);
    ls_mutex_fini(&node->router);
    for (size_t i = 0; node->attach != NULL && node->attach[i] != NULL; i++)
        free(node->attach[i]);
    free(node->attach);
    free(node->members);
    free(node);
    *node_p = NULL;
}

/* ---- telling ----------------------------------------------------------- */

uint32_t ls_node_id(const ls_node *node)
{
    return node->options.id;
}

const char *ls_node_job(const ls_node *node)
{
    return node->job;
}

const char *ls_node_role(const ls_node *node)
{
    return node->role;
}

const char *ls_node_labels(const ls_node *node)
{
    return node->labels;
}

enum ls_topology ls_node_topology(const ls_node *node)
{
    return node->options.topology;
}

uint32_t ls_node_world_max(const ls_node *node)
{
    return node->options.world_max;
}

uint32_t ls_node_world_size(const ls_node *node)
{
    return node->options.world_size;
}

uint64_t ls_node_incarnation(const ls_node *node)
{
    return node->incarnation;
}

const char *ls_node_endpoint(const ls_node *node)
{
    return node->phase == NODE_CREATED ? "" : node->endpoint;
}

ls_runtime *ls_node_runtime(const ls_node *node)
{
    return node->runtime;
}

size_t ls_node_members(ls_node *node, struct ls_member *out, size_t capacity)
{
    if (node->transport == NULL)
        return 0;
    transport_lock(node->transport);
    const size_t n = node->n_peers;
    for (size_t i = 0; i < n && i < capacity; i++)
        world_member(node->peers[i], &out[i]);
    transport_unlock(node->transport);
    return n;
}

/* ---- watching members -------------------------------------------------- */

static void unwatch(ls_node *node, const void *self)
{
    int status = LS_OK;
    struct member_watch **at = &node->watches;
    while (*at != NULL && ((*at)->self != self || (*at)->removed))
        at = &(*at)->next;
    struct member_watch *watch = *at;
    if (watch == NULL)
        return;
    watch->removed = true;
    watch->waiters++; /* so that it stays to be looked at */
    while (watch->running && !dispatch_is_current(node) && status == LS_OK)
        status = ls_cond_wait(&node->idle, &node->router, LS_FOREVER);
    watch->waiters--;
    /* The dispatch thread frees it, after its next round at the latest. */
}

/* Tell a new watch alone of those that are ready, in order with events. */
static void tell_ready(ls_node *node, uint64_t watch)
{
    struct ls_member members[16];
    size_t at = 0, n;
    do {
        n = 0;
        transport_lock(node->transport);
        for (; at < node->n_peers && n < 16; at++)
            if (node->peers[at]->state == LS_MEMBER_READY)
                world_member(node->peers[at], &members[n++]);
        transport_unlock(node->transport);
        for (size_t i = 0; i < n; i++) {
            struct message *message = message_take_one(node->pool);
            struct ls_member *copy = malloc(sizeof *copy);
            if (message == NULL || copy == NULL) {
                free(message);
                free(copy);
                continue;
            }
            *copy = members[i];
            message->kind = MESSAGE_MEMBER;
            message->member = copy;
            message->watch = watch;
            dispatch_fill(node, message);
        }
    } while (n == 16);
}

int ls_node_on_member(ls_node *node,
                      void (*fn)(void *self, const struct ls_member *member),
                      void *self)
{
    struct member_watch *watch = fn == NULL ? NULL : calloc(1, sizeof *watch);
    if (fn != NULL && watch == NULL)
        return ls_error(LS_ENOMEM, "no memory to watch members");
    uint64_t number = 0;
    ls_mutex_lock(&node->router);
    unwatch(node, self);
    if (watch != NULL) {
        *watch = (struct member_watch){.next = node->watches,
                                       .fn = fn,
                                       .self = self,
                                       .number = ++node->n_watches};
        number = watch->number;
        node->watches = watch;
    }
    ls_mutex_unlock(&node->router);
    if (number != 0 && node->transport != NULL)
        tell_ready(node, number);
    return LS_OK;
}
