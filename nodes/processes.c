#include "processes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "socket_folder.h"

struct processes {
    const struct options *options;   /* borrow */
    const struct plan *plan;         /* borrow */
    const struct run_secret *secret; /* borrow */
    supervisor *watcher;             /* borrow */
    child **children;                /* own; n_nodes, NULL: not started */
    bool quiet; /* no life that is over can still note anything */
    struct socket_folder folder;
};

/* The arguments of one node; texts that are put together live in `text`. */
struct arguments {
    char *argv[2 * OPTIONS_REPEATS_MAX + 2 * PLAN_ATTACH_MAX + 30];
    size_t n;
    char *text; /* own */
    size_t used, size;
};

static void add(struct arguments *arguments, const char *text)
{
    /* argv is char *const[] for C's own history; nobody writes to it. */
    memcpy(&arguments->argv[arguments->n++], &text, sizeof text);
}

static void add_pair(struct arguments *arguments, const char *name,
                     const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    add(arguments, name);
    add(arguments, value);
}

static void add_number(struct arguments *arguments, const char *name,
                       long number)
{
    char *text = arguments->text + arguments->used;
    arguments->used +=
        1 + (size_t)snprintf(text, arguments->size - arguments->used, "%ld",
                             number);
    add_pair(arguments, name, text);
}

static void add_set(struct arguments *arguments, const char *path,
                    const char *value)
{
    char *text = arguments->text + arguments->used;
    arguments->used +=
        1 + (size_t)snprintf(text, arguments->size - arguments->used, "%s=%s",
                             path, value);
    add_pair(arguments, "--set", text);
}

/* "3,7" */
static void add_gone(struct arguments *arguments, const struct launch *launch)
{
    char *text = arguments->text + arguments->used;
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < launch->n_gone; i++)
        n += (size_t)snprintf(text + n, arguments->size - arguments->used - n,
                              "%s%u", i > 0 ? "," : "",
                              (unsigned)launch->gone[i]);
    arguments->used += n + 1;
    add_pair(arguments, "--gone", text);
}

static size_t text_size(const struct options *options,
                        const struct launch *launch)
{
    size_t size = 128 + 11 * launch->n_gone; /* the numbers */
    for (size_t i = 0; i < options->n_sets; i++)
        size +=
            strlen(options->sets[i].path) + strlen(options->sets[i].value) + 2;
    return size;
}

static int make_arguments(struct arguments *out,
                          const struct processes *launched, size_t index,
                          const struct launch *launch)
{
    const struct plan_endpoints *endpoints = launch->endpoints;
    const struct options *options = launched->options;
    memset(out, 0, sizeof *out);
    out->size = text_size(options, launch);
    out->text = malloc(out->size);
    if (out->text == NULL)
        return ls_error(LS_ENOMEM, "starting a node");
    add(out, "lockstep");
    add(out, "node");
    add_number(out, "--id", (long)launched->plan->nodes[index].id);
    add_pair(out, "--bind", endpoints->bind);
    add_pair(out, "--advertise", endpoints->advertise);
    for (size_t i = 0; i < endpoints->n_attach; i++)
        add_pair(out, "--attach", endpoints->attach[i]);
    for (size_t i = 0; i < options->n_sets; i++)
        add_set(out, options->sets[i].path, options->sets[i].value);
    add_pair(out, "--seed", options->seed);
    add_pair(out, "--out", options->out);
    add_number(out, "--report-fd", CHILD_REPORT_FD);
    if (launched->secret->there)
        add_number(out, "--secret-fd", CHILD_SECRET_FD);
    add_number(out, "--parent", (long)getpid());
    if (launch->generation > 0)
        add_number(out, "--life", (long)launch->generation);
    if (!launched->plan->folder_found)
        add_pair(out, "--run", strrchr(launched->plan->folder, '/') + 1);
    add_gone(out, launch);
    add(out, "--");
    add(out, options->config);
    return LS_OK;
}

static int start(void *self, size_t index, const struct launch *launch)
{
    processes *launched = self;
    struct arguments arguments;
    int status = make_arguments(&arguments, launched, index, launch);
    if (status != LS_OK)
        return status;
    launched->quiet =
        child_destroy(&launched->children[index]) && launched->quiet;
    int secret_fd = -1;
    status = run_secret_open(launched->secret, &secret_fd);
    if (status == LS_OK)
        status = child_start(&launched->children[index], arguments.argv,
                             secret_fd, index, launched->watcher);
    if (secret_fd >= 0)
        (void)close(secret_fd);
    free(arguments.text);
    return status;
}

static void stop(void *self, size_t index, bool hard)
{
    processes *launched = self;
    if (launched->children[index] != NULL)
        child_kill(launched->children[index], hard ? SIGKILL : SIGTERM);
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
                     ? LS_OK
                     : ls_error(LS_ENOMEM, "starting the nodes");
    if (status == LS_OK && plan->world.transport == PLAN_IPC &&
        plan->world.dir == NULL)
        status = socket_folder_make(&made->folder);
    if (status != LS_OK) {
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
        quiet = child_destroy(&(*launched)->children[i]) && quiet;
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
                             .self = launched,
                             .outside_reaches = true,
                             .dir = launched->folder.path[0] != '\0'
                                        ? launched->folder.path
                                        : launched->plan->world.dir};
}
