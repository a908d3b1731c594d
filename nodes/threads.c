#include "threads.h"

#include <assert.h>
#include <stdlib.h>

#include "lockstep/runtime.h"

#include "node_run.h"
#include "socket_folder.h"

struct node_thread {
    threads *all; /* borrow */
    size_t index;
    node_run *run;     /* own; NULL: not started */
    ls_thread *thread; /* own */
};

struct threads {
    const struct setup *setup; /* borrow */
    supervisor *watcher;       /* borrow */
    struct node_thread *nodes; /* own; n_nodes */
    struct socket_folder folder;
};

static void run_node(void *arg)
{
    struct node_thread *self = arg;
    const int status = node_run_go(self->run);
    supervisor_note_end(self->all->watcher, self->index,
                        ls_status_exit_code(status), 0);
}

static int start(void *self, size_t index,
                 const struct plan_endpoints *endpoints)
{
    threads *all = self;
    struct node_thread *node = &all->nodes[index];
    node->all = all;
    node->index = index;
    int status = node_run_create(&node->run, &all->setup->plan, index,
                                 all->setup->plugin, endpoints,
                                 supervisor_sink(all->watcher));
    if (status != LS_OK)
        return status;
    status = ls_thread_spawn(ls_runtime_threads(), &node->thread, "node",
                             run_node, node);
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

int threads_create(threads **out, const struct setup *setup,
                   supervisor *watcher)
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
        status = socket_folder_make(&all->folder);
    if (status != LS_OK) {
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
    for (size_t i = 0; i < (*all)->setup->plan.n_nodes; i++) {
        struct node_thread *node = &(*all)->nodes[i];
        const int status = ls_thread_join(&node->thread, LS_FOREVER);
        assert(status == LS_OK); /* there is no deadline to pass */
        (void)status;
        node_run_destroy(&node->run);
    }
    socket_folder_remove(&(*all)->folder);
    free((*all)->nodes);
    free(*all);
    *all = NULL;
}

struct launcher threads_launcher(threads *all)
{
    return (struct launcher){.start = start,
                             .stop = stop,
                             .self = all,
                             .dir = all->folder.path[0] != '\0'
                                        ? all->folder.path
                                        : all->setup->plan.world.dir};
}
