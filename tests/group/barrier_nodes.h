/* barrier_nodes.h - a world of nodes in this process, each with a barrier, for
 * the tests of the barrier. What the nodes do at the same time, they do on a
 * thread each; assertions are made afterwards, on the test's own. */
#ifndef BARRIER_NODES_H
#define BARRIER_NODES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/middleware.h"
#include "lockstep/node.h"
#include "lockstep/runtime.h"
#include "test.h"

enum { CLUSTER_MAX = 8, LONG_MS = 30000, EPOCHS = 200 };

struct member {
    uint32_t id;
    size_t index;
    char endpoint[64];
    ls_node *node;       /* own */
    ls_barrier *barrier; /* own */
    int status;          /* of what it did last */
    char text[LS_ERROR_TEXT_MAX];
    int cause;
    struct ls_barrier_epoch_info infos[EPOCHS];

    ls_thread *thread;
    void (*act)(struct member *member);
    struct cluster *cluster;
};

struct cluster {
    size_t n;
    uint32_t formed; /* so many suffice to start, others may come; 0: all */
    enum ls_topology topology;
    bool far; /* no memory is shared */
    struct member members[CLUSTER_MAX];
};

/* Ids that are not indices; the hub of a star is not the lowest. */
static const uint32_t cluster_ids[CLUSTER_MAX] = {
    1000000, 7, 4294967295u, 12, 4294967294u, 8, 65536, 9999};

static inline int note(struct member *member, int status)
{
    member->status = status;
    snprintf(member->text, sizeof member->text, "%s",
             status == LS_OK ? "" : ls_error_text());
    member->cause = ls_error_cause();
    return status;
}

static inline void create_node_only(struct cluster *cluster, size_t index,
                                    const char *role, const char *labels)
{
    static int n_endpoints;
    struct member *member = &cluster->members[index];
    member->cluster = cluster;
    member->index = index;
    member->id = cluster_ids[index];
    snprintf(member->endpoint, sizeof member->endpoint, "inproc://barrier-%d",
             n_endpoints++);
    const char *seed = cluster->members[0].endpoint;
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = member->id;
    options.bind = member->endpoint;
    options.topology = cluster->topology;
    if (cluster->far)
        options.shared_bytes = 0;
    options.attach = &seed;
    options.n_attach = index == 0 ? 0 : 1;
    options.world_size =
        cluster->formed != 0 ? cluster->formed : (uint32_t)cluster->n;
    options.world_max = (uint32_t)cluster->n;
    options.start_timeout_ms = LONG_MS;
    options.role = role;
    options.labels = labels;
    assert_ok(ls_node_create(&member->node, &options));
}

static inline void create_member(struct cluster *cluster, size_t index)
{
    create_node_only(cluster, index, "", "");
    struct member *member = &cluster->members[index];
    assert_ok(ls_barrier_create(&member->barrier, member->node, NULL));
}

static inline void run_member(void *self)
{
    struct member *member = self;
    member->act(member);
}

/* Have members[i] do acts[i], all at once, and wait for all; NULL: nothing. */
static inline void do_each(struct cluster *cluster,
                           void (*const *acts)(struct member *))
{
    for (size_t i = 0; i < cluster->n; i++) {
        struct member *member = &cluster->members[i];
        member->act = acts[i];
        if (acts[i] != NULL)
            assert_ok(ls_thread_spawn(ls_runtime_threads(), &member->thread,
                                      "member", run_member, member));
    }
    for (size_t i = 0; i < cluster->n; i++) {
        if (acts[i] != NULL)
            assert_ok(ls_thread_join(&cluster->members[i].thread, LS_FOREVER));
    }
}

static inline void do_all(struct cluster *cluster, void (*act)(struct member *))
{
    void (*acts[CLUSTER_MAX])(struct member *);
    for (size_t i = 0; i < CLUSTER_MAX; i++)
        acts[i] = act;
    do_each(cluster, acts);
}

static inline void start_node(struct member *member)
{
    note(member, ls_node_start(member->node));
}

static inline void check_ok(const struct member *member)
{
    if (member->status != LS_OK)
        fail_msg("node %u: %s: %s", member->id, ls_status_name(member->status),
                 member->text);
}

static inline void check_all_ok(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->n; i++)
        check_ok(&cluster->members[i]);
}

static inline void start_cluster(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->n; i++)
        create_member(cluster, i);
    do_all(cluster, start_node);
    check_all_ok(cluster);
}

static inline void create_cluster(struct cluster *cluster, size_t n,
                                  enum ls_topology topology)
{
    memset(cluster, 0, sizeof *cluster);
    cluster->n = n;
    cluster->topology = topology;
    start_cluster(cluster);
}

static inline void destroy_member(struct member *member)
{
    /* A node that stops calls the barrier no more. */
    if (member->node != NULL)
        ls_node_stop(member->node, LS_OK);
    ls_barrier_destroy(&member->barrier);
    ls_node_destroy(&member->node);
}

static inline void destroy_cluster(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->n; i++)
        destroy_member(&cluster->members[i]);
}

static inline struct member *member_of(struct cluster *cluster, uint32_t id)
{
    for (size_t i = 0; i < cluster->n; i++) {
        if (cluster->members[i].id == id)
            return &cluster->members[i];
    }
    return NULL;
}

/* One wait, long or short. */
static inline void wait_long(struct member *member)
{
    note(member, ls_barrier_wait(member->barrier, 1u << member->index, LONG_MS,
                                 &member->infos[0]));
}

static inline void wait_short(struct member *member)
{
    note(member, ls_barrier_wait(member->barrier, 0, 200, &member->infos[0]));
}

#endif
