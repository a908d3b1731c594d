#define _GNU_SOURCE /* unshare */
#include "threads.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lockstep/runtime.h"

#include "node_run.h"
#include "node_security.h"
#include "socket_folder.h"

struct node_thread {
    threads *all; /* borrow */
    size_t index;
    ls_security *security; /* own; its key; NULL: it has none of its own */
    node_run *run;         /* own; NULL: not started */
    ls_thread *thread;     /* own */
};

struct threads {
    const struct setup *setup; /* borrow */
    supervisor *watcher;       /* borrow */
    ls_security *security;     /* own; of all nodes; NULL: with keys */
    struct node_thread *nodes; /* own; n_nodes */
    struct socket_folder folder;
};

/* The current folder of this thread, and of those that it spawns, is their own:
 * the plugin of another node, which is initialised meanwhile, may be in another
 * one. Where that is not allowed, paths lead there until it is back. */
static void own_folder(const struct plan *plan)
{
    if (plan->here != NULL && plan->here[0] != '\0' && unshare(CLONE_FS) == 0)
        (void)!chdir(plan->here);
}

static void run_node(void *arg)
{
    struct node_thread *self = arg;
    own_folder(&self->all->setup->plan);
    const int status = node_run_go(self->run);
    supervisor_note_end(self->all->watcher, self->index,
                        ls_status_exit_code(status), 0);
}

/* Its end has come, or was noted. */
static void clear(struct node_thread *node)
{
    const int status = ls_thread_join(&node->thread, LS_FOREVER);
    assert(status == LS_OK); /* there is no deadline to pass */
    (void)status;
    node_run_destroy(&node->run);
    ls_security_destroy(&node->security);
}

static int start(void *self, size_t index, const struct launch *launch)
{
    threads *all = self;
    struct node_thread *node = &all->nodes[index];
    clear(node); /* of an earlier life */
    node->all = all;
    node->index = index;
    const struct plan *plan = &all->setup->plan;
    int status = plan_has_keys(plan)
                     ? node_security_open(&node->security, plan,
                                          plan->nodes[index].id, NULL)
                     : LS_OK;
    if (status != LS_OK)
        return status;
    status = node_run_create(
        &node->run,
        &(struct node_run_options){
            .plan = plan,
            .index = index,
            .plugin = all->setup->plugin,
            .endpoints = launch->endpoints,
            .sink = supervisor_sink(all->watcher),
            .security = node->security != NULL ? node->security : all->security,
            .generation = launch->generation,
            .gone = launch->gone,
            .n_gone = launch->n_gone});
    if (status != LS_OK)
        return status;
    status = ls_thread_spawn(ls_runtime_threads(), &node->thread,
                             plan_role_names[plan->nodes[index].role], run_node,
                             node);
    if (status != LS_OK)
        node_run_destroy(&node->run);
    return status;
}

/* A thread cannot be made to end; a run that has to, ends with the process. */
static void stop(void *self, size_t index, bool hard)
{
    threads *all = self;
    if (!hard && all->nodes[index].run != NULL)
        node_run_cancel(all->nodes[index].run, LS_ECANCELED,
                        "told to stop, since the run ends");
}

/* Of a node that has begun, so that it has a run. */
static void where(void *self, size_t index, char *text, size_t size)
{
    threads *all = self;
    node_run_where(all->nodes[index].run, text, size);
}

/* The same. */
static void ask(void *self, size_t index, int signal)
{
    threads *all = self;
    if (signal == SIGUSR1)
        node_run_dump(all->nodes[index].run, "SIGUSR1");
    else
        node_run_save(all->nodes[index].run);
}

int threads_create(threads **out, const struct setup *setup,
                   const struct run_secret *secret, supervisor *watcher)
{
    threads *all = calloc(1, sizeof *all);
    if (all == NULL)
        return ls_error(LS_ENOMEM, "starting the nodes");
    all->setup = setup;
    all->watcher = watcher;
    all->nodes = calloc(setup->plan.n_nodes, sizeof *all->nodes);
    int status =
        all->nodes != NULL ? LS_OK : ls_error(LS_ENOMEM, "starting the nodes");
    if (status == LS_OK && setup->plan.world.transport == PLAN_IPC &&
        setup->plan.world.dir == NULL)
        status = socket_folder_make(&all->folder, setup->plan.job);
    if (status == LS_OK && !plan_has_keys(&setup->plan))
        status = node_security_open(&all->security, &setup->plan, 0, secret);
    if (status != LS_OK) {
        socket_folder_remove(&all->folder);
        free(all->nodes);
        free(all);
        return status;
    }
    *out = all;
    return LS_OK;
}

void threads_destroy(threads **all)
{
    if (all == NULL || *all == NULL)
        return;
    for (size_t i = 0; i < (*all)->setup->plan.n_nodes; i++)
        clear(&(*all)->nodes[i]);
    ls_security_destroy(&(*all)->security);
    socket_folder_remove(&(*all)->folder);
    free((*all)->nodes);
    free(*all);
    *all = NULL;
}

struct launcher threads_launcher(threads *all)
{
    return (struct launcher){
        .start = start,
        .stop = stop,
        .where = where,
        .ask = ask,
        .self = all,
        .outside_reaches = all->setup->plan.world.transport != PLAN_INPROC,
        .dir = all->folder.path[0] != '\0' ? all->folder.path
                                           : all->setup->plan.world.dir};
}
