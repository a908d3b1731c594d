/* A node as an object: its options, its makings, what it tells of itself. */
#include "lockstep/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "credentials.h"
#include "word_list.h"

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
        .shared_bytes = 64u << 20,
        .emit_timeout_ms = 10000,
    };
}

/* ---- checking ---------------------------------------------------------- */

static int out_of_range(const char *option, const char *range)
{
    return ls_error(LS_EINVAL, "node option %s: it must be %s", option, range);
}

/* "tcp://127.0.0.1:21500", or "0@tcp://127.0.0.1:21500". */
static bool read_attach(const char *text, struct attach *out)
{
    const size_t digits = strspn(text, "0123456789");
    *out = (struct attach){.known = digits != 0 && text[digits] == '@'};
    if (out->known) {
        const unsigned long long id = strtoull(text, NULL, 10);
        if (digits > 10 || id > UINT32_MAX)
            return false;
        out->id = (uint32_t)id;
        text += digits + 1;
    }
    return snprintf(out->endpoint, sizeof out->endpoint, "%s", text) <=
           LS_ENDPOINT_MAX;
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
    struct attach to;
    for (size_t i = 0; i < o->n_attach; i++)
        if (o->attach == NULL || o->attach[i] == NULL ||
            !read_attach(o->attach[i], &to))
            return out_of_range("attach",
                                "addresses of at most 255 bytes, behind an id "
                                "and @ where it is known who answers");
    return LS_OK;
}

static int check_members(const struct ls_node_options *o)
{
    if (o->world_size < 1 || o->world_size > MEMBERSHIP_MAX)
        return out_of_range("world_size", "1 to 4096");
    if (o->world_max != 0 &&
        (o->world_max < o->world_size || o->world_max > MEMBERSHIP_MAX))
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
    if (o->start_timeout_ms < 0 || o->emit_timeout_ms < 0 || o->linger_ms < 0)
        return out_of_range("a timeout", "0 or more milliseconds");
    if (o->heartbeat_ms < 10 || o->heartbeat_ms > 60000)
        return out_of_range("heartbeat_ms", "10 to 60000");
    if (o->silence_ms < 2 * o->heartbeat_ms)
        return out_of_range("silence_ms", "at least twice heartbeat_ms");
    if (o->window_messages < 16 || o->window_messages > 1u << 20)
        return out_of_range("window_messages", "16 to 1048576");
    if (o->window_bytes < 2 * (size_t)WIRE_CHUNK_BYTES ||
        o->window_bytes > (size_t)64 << 30)
        return out_of_range("window_bytes", "2 MiB to 64 GiB");
    if (o->max_payload_bytes > 1u << 30)
        return out_of_range("max_payload_bytes", "at most 1 GiB");
    if (o->shared_bytes > (size_t)64 << 30)
        return out_of_range("shared_bytes", "at most 64 GiB");
    return LS_OK;
}

static int too_far(const char *endpoint)
{
    return ls_error(LS_EINVAL,
                    "%s is beyond this host: that takes keys (`security`, see "
                    "lockstep/security.h), or `insecure`",
                    endpoint);
}

static int check_reach(const struct ls_node_options *o)
{
    struct attach to;
    const bool keys = o->security != NULL &&
                      ls_security_mode(o->security) == LS_SECURITY_CURVE;
    if (o->insecure || keys)
        return LS_OK;
    if (o->bind != NULL && transport_leaves_host(o->bind))
        return too_far(o->bind);
    for (size_t i = 0; i < o->n_attach; i++)
        if (read_attach(o->attach[i], &to) &&
            transport_leaves_host(to.endpoint))
            return too_far(to.endpoint);
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

static void init_world(ls_node *node)
{
    const struct ls_node_options *o = &node->options;
    membership_init(&node->world,
                    &(struct membership_options){
                        .id = o->id,
                        .job = node->me.job,
                        .endpoint = node->me.endpoint,
                        .role = node->me.role,
                        .labels = node->me.labels,
                        .config_hash = o->config_hash,
                        .topology = o->topology,
                        .hub = node->me.hub,
                        .world_max = o->world_max,
                        .members = node->join.members,
                        .n_members = o->world_size,
                        .heartbeat_ns = o->heartbeat_ms * LS_NS_PER_MS,
                        .silence_ns = o->silence_ms * LS_NS_PER_MS,
                        .member_size = sizeof(struct peer)},
                    &world_ops, node);
}

/* A list that all nodes are given alike may have the hub's own address. */
static bool attaches_to_others(const ls_node *node)
{
    for (size_t i = 0; i < node->join.n_attach; i++) {
        const char *endpoint = node->join.attach[i].endpoint;
        if (strcmp(endpoint, node->me.bind) != 0 &&
            strcmp(endpoint, node->me.endpoint) != 0)
            return true;
    }
    return false;
}

static bool copy_options(ls_node *node, const struct ls_node_options *o)
{
    node->options = *o;
    node->runtime = o->runtime != NULL ? o->runtime : ls_runtime_threads();
    snprintf(node->me.job, sizeof node->me.job, "%s", o->job);
    snprintf(node->me.role, sizeof node->me.role, "%s",
             o->role != NULL ? o->role : "");
    snprintf(node->me.labels, sizeof node->me.labels, "%s",
             o->labels != NULL ? o->labels : "");
    snprintf(node->me.bind, sizeof node->me.bind, "%s",
             o->bind != NULL ? o->bind : "tcp://127.0.0.1:21500-21999");
    snprintf(node->me.endpoint, sizeof node->me.endpoint, "%s",
             o->advertise != NULL ? o->advertise : "");
    node->me.job_hash = wire_job_hash(node->me.job);
    node->security = o->security;
    if (node->security != NULL)
        credentials_hold(node->security, true);
    node->join.n_attach = o->n_attach;
    node->join.attach = calloc(o->n_attach + 1, sizeof *node->join.attach);
    bool ok = node->join.attach != NULL;
    for (size_t i = 0; i < o->n_attach && ok; i++)
        (void)read_attach(o->attach[i], &node->join.attach[i]);
    node->me.hub =
        o->topology == LS_TOPOLOGY_STAR && ok && !attaches_to_others(node);
    if (o->members != NULL && ok) {
        node->join.members = calloc(o->world_size, sizeof *node->join.members);
        ok = node->join.members != NULL;
        if (ok)
            memcpy(node->join.members, o->members,
                   o->world_size * sizeof *node->join.members);
    }
    if (o->world_max == 0) {
        const bool any = o->world_size == 1 || o->topology == LS_TOPOLOGY_ALONE;
        node->options.world_max = any ? MEMBERSHIP_MAX : o->world_size;
    }
    node->options.attach = NULL;
    node->options.members = NULL;
    init_world(node);
    return ok;
}

void ls_node_hold(ls_node *node)
{
    atomic_fetch_add(&node->held, 1);
}

void ls_node_let_go(ls_node *node)
{
    atomic_fetch_sub(&node->held, 1);
}

static void free_peer(void *self, struct member *member)
{
    ls_node *node = self;
    struct peer *peer = peer_of(member);
    if (peer->hop != NULL) {
        message_give_back(node->pool, &peer->hop->relay);
        message_give_back(node->pool, &peer->hop->early);
        free(peer->hop);
    }
    streams_free(node, peer);
}

/* All that it has; as much as was made of it. */
static void free_node(ls_node *node)
{
    bus_join(node);
    if (node->pool != NULL) {
        membership_fini(&node->world, free_peer);
        bus_fini(&node->loop, node->pool);
        dispatch_fini(node);
        blocks_fini(node);
    }
    transport_close(&node->transport);
    message_pool_destroy(&node->pool);
    events_free(node);
    watch_free(&node->watches);
    free(node->news.at);
    free(node->heart.bytes);
    free(node->batch.bytes);
    turns_fini(&node->turns);
    ls_cond_fini(&node->changed);
    ls_cond_fini(&node->router.idle);
    ls_mutex_fini(&node->router.lock);
    ls_mutex_fini(&node->interrupts.lock);
    ls_cond_fini(&node->life.changed);
    ls_mutex_fini(&node->life.lock);
    free(node->interrupts.at);
    free(node->join.attach);
    free(node->join.members);
    refusals_fini(&node->refusals);
    doubts_fini(node);
    if (node->options.security != NULL)
        credentials_hold(node->options.security, false);
    (void)ls_security_destroy(&node->own_security);
    free(node);
}

int ls_node_create(ls_node **out, const struct ls_node_options *options)
{
    *out = NULL;
    int status = check(options);
    if (status != LS_OK)
        return status;
    ls_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return ls_error(LS_ENOMEM, "no memory for a node");
    node->forks = ls_forks_now();
    bus_init(&node->loop);
    status = copy_options(node, options)
                 ? LS_OK
                 : ls_error(LS_ENOMEM, "no memory for a node");
    if (status == LS_OK)
        status = ls_mutex_init(&node->life.lock, node->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&node->life.changed, node->runtime);
    if (status == LS_OK)
        status = ls_mutex_init(&node->router.lock, node->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&node->router.idle, node->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&node->changed, node->runtime);
    if (status == LS_OK)
        status = turns_init(&node->turns, node->runtime);
    if (status == LS_OK)
        status = ls_mutex_init(&node->interrupts.lock, node->runtime);
    if (status == LS_OK)
        status = message_pool_create(&node->pool, node->runtime);
    if (status == LS_OK)
        status = dispatch_init(node);
    if (status != LS_OK) {
        struct ls_failure why;
        ls_failure_keep(&why, status);
        free_node(node);
        return ls_failure_return(&why);
    }
    *out = node;
    return LS_OK;
}

/* Whether all that was made for it has gone. */
static int check_free(ls_node *node)
{
    const char *channel = channels_open(node);
    if (channel != NULL)
        return ls_error(LS_ESTATE,
                        "node %u cannot be destroyed before what has its "
                        "channel \"%s\"",
                        node->options.id, channel);
    if (atomic_load(&node->held) != 0)
        return ls_error(LS_ESTATE,
                        "node %u cannot be destroyed before its tasks and "
                        "waiters",
                        node->options.id);
    return LS_OK;
}

int ls_node_destroy(ls_node **node_p)
{
    if (node_p == NULL || *node_p == NULL)
        return LS_OK;
    ls_node *node = *node_p;
    int status = node_check(node);
    if (status == LS_OK)
        status = check_free(node);
    if (status == LS_OK)
        status = ls_node_stop(node, LS_OK);
    if (status != LS_OK)
        return status;
    free_node(node);
    *node_p = NULL;
    return LS_OK;
}

/* ---- telling ----------------------------------------------------------- */

ls_trace *ls_node_trace(const ls_node *node)
{
    return node->options.trace;
}

uint32_t ls_node_id(const ls_node *node)
{
    return node->options.id;
}

const char *ls_node_job(const ls_node *node)
{
    return node->me.job;
}

const char *ls_node_role(const ls_node *node)
{
    return node->me.role;
}

const char *ls_node_labels(const ls_node *node)
{
    return node->me.labels;
}

bool ls_node_is_in(const ls_node *node, const char *group)
{
    return word_lists_have(node->me.role, node->me.labels, group);
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

uint64_t ls_node_host(const ls_node *node)
{
    return node->me.host;
}

uint64_t ls_node_incarnation(const ls_node *node)
{
    return node->me.incarnation;
}

const char *ls_node_endpoint(const ls_node *node)
{
    return node->phase == NODE_CREATED ? "" : node->me.endpoint;
}

ls_runtime *ls_node_runtime(const ls_node *node)
{
    return node->runtime;
}

size_t ls_node_members(ls_node *node, struct ls_member *out, size_t capacity)
{
    if (node->transport == NULL || node_check(node) != LS_OK)
        return 0;
    transport_lock(node->transport);
    const size_t n = node->world.n;
    for (size_t i = 0; i < n && i < capacity; i++)
        world_member(node->world.at[i], &out[i]);
    transport_unlock(node->transport);
    return n;
}

const char *ls_member_state_name(enum ls_member_state state)
{
    static const char *const names[] = {[LS_MEMBER_SEEN] = "seen",
                                        [LS_MEMBER_READY] = "ready",
                                        [LS_MEMBER_LEFT] = "left",
                                        [LS_MEMBER_LOST] = "lost"};
    return (size_t)state < sizeof names / sizeof *names ? names[state] : "?";
}

int ls_node_member(ls_node *node, uint32_t id, struct ls_member *out)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    const struct peer *peer = NULL;
    if (node->transport != NULL) {
        transport_lock(node->transport);
        peer = world_find(node, id);
        if (peer != NULL)
            world_member(&peer->member, out);
        transport_unlock(node->transport);
    }
    return peer != NULL
               ? LS_OK
               : ls_error(LS_ENOENT, "node %u has not heard of a node %u",
                          node->options.id, id);
}

size_t ls_node_refusals(ls_node *node, struct ls_refusal *out, size_t capacity)
{
    if (node->transport == NULL || node_check(node) != LS_OK)
        return 0;
    transport_lock(node->transport);
    const size_t n = node->refusals.n;
    for (size_t i = 0; i < n && i < capacity; i++)
        out[i] = node->refusals.rows[i].told;
    transport_unlock(node->transport);
    return n;
}
