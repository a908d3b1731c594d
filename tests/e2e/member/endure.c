#include "endure.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#define WAIT_MS  60000
#define FLAG_END 1U /* somebody was told to end */

static atomic_bool told_to_end; /* this process */

static void on_signal(void *self, int signal)
{
    (void)self;
    (void)signal;
    atomic_store(&told_to_end, true);
}

struct watch {
    ls_mutex lock;
    ls_cond changed;
    uint64_t changes;
};

static void on_member(void *self, const struct ls_member *member)
{
    struct watch *watch = self;
    (void)member;
    ls_mutex_lock(&watch->lock);
    watch->changes++;
    ls_cond_signal(&watch->changed);
    ls_mutex_unlock(&watch->lock);
}

static bool is_whole(ls_node *node)
{
    struct ls_member members[64];
    size_t n = ls_node_members(node, members, 64);
    uint32_t ready = 1;
    for (size_t i = 0; i < n && i < 64; i++)
        ready += members[i].state == LS_MEMBER_READY ? 1 : 0;
    return ready == ls_node_world_size(node);
}

static int wait_whole(ls_node *node, struct watch *watch)
{
    const int64_t deadline = ls_deadline(ls_node_runtime(node), WAIT_MS);
    int status = LS_OK;
    ls_mutex_lock(&watch->lock);
    while (status == LS_OK) {
        const uint64_t changes = watch->changes;
        ls_mutex_unlock(&watch->lock);
        const bool whole = is_whole(node);
        ls_mutex_lock(&watch->lock);
        if (whole)
            break;
        while (watch->changes == changes && status == LS_OK)
            status = ls_cond_wait(&watch->changed, &watch->lock, deadline);
    }
    ls_mutex_unlock(&watch->lock);
    if (status == LS_OK)
        printf("whole %" PRId64 " %" PRIu64 "\n", ls_now(ls_node_runtime(node)),
               ls_node_incarnation(node));
    return status;
}

static int epochs(ls_node *node, ls_barrier *gate)
{
    struct ls_barrier_epoch_info info = {.flags = 0};
    while ((info.flags & FLAG_END) == 0) {
        const uint32_t flags = atomic_load(&told_to_end) ? FLAG_END : 0;
        const int status = ls_barrier_wait(gate, flags, WAIT_MS, &info);
        if (status != LS_OK) {
            printf("failed %" PRId64 " %s %s\n", ls_now(ls_node_runtime(node)),
                   ls_status_name(status), ls_error_text());
            return status;
        }
        printf("%" PRIu64 " %" PRId64 " %" PRId64 "\n", info.epoch,
               info.entered_at, info.left_at);
    }
    return LS_OK;
}

static int run(ls_node *node, bool again, struct watch *watch, ls_barrier *gate)
{
    int status = ls_node_start(node);
    if (status == LS_OK)
        status = wait_whole(node, watch);
    if (status == LS_OK)
        status = epochs(node, gate);
    while (status != LS_OK && again && wait_whole(node, watch) == LS_OK)
        status = epochs(node, gate);
    if (status != LS_OK)
        fprintf(stderr, "member: %s\n", ls_error_text());
    return status;
}

int endure(ls_node *node, bool again)
{
    const int end = SIGTERM;
    ls_signals *signals = NULL;
    ls_barrier *gate = NULL;
    struct watch watch = {.changes = 0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    int status = ls_signal_watch(&signals, &end, 1, on_signal, NULL);
    if (status == LS_OK)
        status = ls_mutex_init(&watch.lock, ls_node_runtime(node));
    if (status == LS_OK)
        status = ls_cond_init(&watch.changed, ls_node_runtime(node));
    if (status == LS_OK)
        status = ls_node_on_member(node, on_member, &watch);
    if (status == LS_OK)
        status = ls_barrier_create(&gate, node, NULL);
    if (status == LS_OK)
        status = run(node, again, &watch, gate);
    else
        fprintf(stderr, "member: %s\n", ls_error_text());
    ls_barrier_destroy(&gate);
    ls_node_stop(node, status);
    ls_signal_unwatch(&signals);
    return status == LS_OK ? 0 : 1;
}
