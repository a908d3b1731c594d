#include "processes.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lockstep/runtime.h"

#include "child.h"
#include "node_arguments.h"
#include "socket_folder.h"

struct processes {
    const struct options *options;   /* borrow */
    const struct plan *plan;         /* borrow */
    const struct run_secret *secret; /* borrow */
    supervisor *watcher;             /* borrow */
    ls_mutex mutex;                  /* where they are; not what they do */
    child **children;                /* own; n_nodes, NULL: not started */
    bool quiet; /* no life that is over can still note anything */
    struct socket_folder folder;
};

static void make_arguments(struct arguments *out,
                           const struct processes *launched, size_t index,
                           const struct launch *launch)
{
    const struct options *options = launched->options;
    arguments_add(out, "lockstep");
    node_arguments(out, launched->plan, index, options, launch, options->out);
    arguments_add_number(out, "--report-fd", CHILD_REPORT_FD);
    if (launched->secret->there)
        arguments_add_number(out, "--secret-fd", CHILD_SECRET_FD);
    arguments_add_number(out, "--parent", (unsigned long long)getpid());
    arguments_add(out, "--");
    arguments_add(out, options->config);
}

/* One that a signal kills meanwhile must not be freed. */
static child *replace_child(processes *launched, size_t index, child *by)
{
    ls_mutex_lock(&launched->mutex);
    child *const before = launched->children[index];
    launched->children[index] = by;
    ls_mutex_unlock(&launched->mutex);
    return before;
}

static bool end_child(processes *launched, size_t index)
{
    child *gone = replace_child(launched, index, NULL);
    return child_destroy(&gone);
}

static int start(void *self, size_t index, const struct launch *launch)
{
    processes *launched = self;
    struct arguments arguments = {.n = 0};
    child *made = NULL;
    launched->quiet = end_child(launched, index) && launched->quiet;
    int secret_fd = -1;
    make_arguments(&arguments, launched, index, launch);
    int status = run_secret_open(launched->secret, &secret_fd);
    if (status == LS_OK)
        status =
            child_start(&made, &arguments, secret_fd, index, launched->watcher);
    if (status == LS_OK)
        (void)replace_child(launched, index, made);
    if (secret_fd >= 0)
        (void)close(secret_fd);
    arguments_fini(&arguments);
    return status;
}

static void stop(void *self, size_t index, bool hard)
{
    processes *launched = self;
    if (launched->children[index] != NULL)
        child_kill(launched->children[index], hard ? SIGKILL : SIGTERM);
}

static void ask(void *self, size_t index, int signal)
{
    processes *launched = self;
    child_kill(launched->children[index], signal);
}

void processes_kill(processes *launched)
{
    ls_mutex_lock(&launched->mutex);
    for (size_t i = 0; i < launched->plan->n_nodes; i++)
        stop(launched, i, true);
    ls_mutex_unlock(&launched->mutex);
}

int processes_create(processes **out, const struct options *options,
                     const struct plan *plan, const struct run_secret *secret,
                     supervisor *watcher)
{
    processes *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "starting the nodes");
    made->options = options;
    made->plan = plan;
    made->secret = secret;
    made->watcher = watcher;
    made->quiet = true;
    made->children = calloc(plan->n_nodes, sizeof *made->children);
    int status = made->children != NULL
                     ? ls_mutex_init(&made->mutex, ls_runtime_threads())
                     : ls_error(LS_ENOMEM, "starting the nodes");
    const bool has_mutex = status == LS_OK;
    if (status == LS_OK && plan->world.transport == PLAN_IPC &&
        plan->world.dir == NULL)
        status = socket_folder_make(&made->folder, plan->job);
    if (status != LS_OK) {
        if (has_mutex)
            ls_mutex_fini(&made->mutex);
        free(made->children);
        free(made);
        return status;
    }
    *out = made;
    return LS_OK;
}

bool processes_destroy(processes **launched)
{
    if (launched == NULL || *launched == NULL)
        return true;
    bool quiet = (*launched)->quiet;
    for (size_t i = 0; i < (*launched)->plan->n_nodes; i++)
        quiet = end_child(*launched, i) && quiet;
    ls_mutex_fini(&(*launched)->mutex);
    socket_folder_remove(&(*launched)->folder);
    free((*launched)->children);
    free(*launched);
    *launched = NULL;
    return quiet;
}

struct launcher processes_launcher(processes *launched)
{
    return (struct launcher){.start = start,
                             .stop = stop,
                             .ask = ask,
                             .self = launched,
                             .outside_reaches = true,
                             .dir = launched->folder.path[0] != '\0'
                                        ? launched->folder.path
                                        : launched->plan->world.dir};
}
