#include "client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_security.h"
#include "run_file.h"

/* What a client is created with, and the texts of that. */
struct invitation {
    struct ls_node_options options;
    char bind[LS_ENDPOINT_MAX + 1];
    char attach[PLAN_ATTACH_MAX][PLAN_ADDRESS_MAX];
    const char *attach_list[PLAN_ATTACH_MAX];
    uint32_t members[2]; /* itself, and the host */
    bool running;        /* a run of the plan goes on here */
};

static bool is_taken(const struct plan *plan, uint32_t id)
{
    size_t index;
    return plan_find(plan, id, &index) == LS_OK;
}

/* An id that no node of the plan has. Two clients that have the same are told
 * so; of so many ids that does not happen. With keys a client is who its key
 * says. */
static int choose_id(const struct client_options *options, uint32_t *out)
{
    const struct plan *plan = options->plan;
    if (options->has_id && is_taken(plan, options->id))
        return ls_error(LS_EINVAL,
                        "--id %" PRIu32
                        ": that is a node of %s; a client needs "
                        "its own id",
                        options->id, plan->path);
    if (!options->has_id && plan_has_keys(plan))
        return ls_error(LS_EINVAL,
                        "%s asks for keys: say --id N, as which "
                        "\"lockstep keygen %s --id N\" has made one",
                        plan->path, plan->security.keys);
    *out = options->id;
    while (!options->has_id &&
           is_taken(plan, *out = (uint32_t)ls_entropy(ls_runtime_threads())))
        continue;
    return LS_OK;
}

/* Where the next address goes; it counts once it is written. */
static char *next_address(struct invitation *to)
{
    const size_t n = to->options.n_attach;
    to->attach_list[n] = to->attach[n];
    return to->attach[n];
}

static void add_address(struct invitation *to, const struct plan *plan,
                        size_t index, const char *endpoint)
{
    if (endpoint[0] == '\0' || to->options.n_attach == PLAN_ATTACH_MAX)
        return;
    plan_put_address(plan, index, endpoint, next_address(to));
    to->options.n_attach++;
}

/* One that the user gave. */
static int add_given(struct invitation *to, const struct plan *plan,
                     const char *address)
{
    const char *fault = plan_address_fault(address);
    if (fault != NULL)
        return ls_error(LS_EINVAL, "--attach %s: %s", address, fault);
    if (to->options.n_attach == PLAN_ATTACH_MAX)
        return ls_error(LS_EINVAL, "--attach: at most %d of them",
                        PLAN_ATTACH_MAX);
    const int status = plan_copy_address(plan, address, next_address(to));
    to->options.n_attach += status == LS_OK;
    return status;
}

/* The one to begin with: the hub of a star relays, in a mesh anyone will do. */
static size_t greeter(const struct client_options *options)
{
    return options->plan->world.topology == LS_TOPOLOGY_STAR
               ? options->plan->first
               : options->host;
}

static int find_by_file(const struct client_options *options,
                        struct invitation *out)
{
    const struct plan *plan = options->plan;
    const bool star = plan->world.topology == LS_TOPOLOGY_STAR;
    const uint32_t first = plan->nodes[greeter(options)].id;
    struct run_file *file = malloc(sizeof *file);
    if (file == NULL)
        return ls_error(LS_ENOMEM, "looking for the nodes");
    const int status = run_file_read(file, plan);
    for (size_t pass = 0; pass < (star ? 1 : 2) && status == LS_OK; pass++) {
        for (size_t i = 0; i < file->n_nodes; i++) {
            size_t index;
            if ((file->nodes[i].id == first) == (pass == 0) &&
                plan_find(plan, file->nodes[i].id, &index) == LS_OK)
                add_address(out, plan, index, file->nodes[i].endpoint);
        }
    }
    if (status == LS_OK)
        out->options.config_hash = file->hash;
    out->running = status == LS_OK;
    free(file);
    return status;
}

/* Nodes that were started one by one: where the plan says. */
static int find_by_plan(const struct client_options *options,
                        struct invitation *out)
{
    const struct plan *plan = options->plan;
    const size_t wanted[] = {greeter(options), plan->first};
    for (size_t i = 0; i < 2; i++) {
        struct plan_endpoints endpoints;
        const int status = plan_endpoints_alone(plan, wanted[i], &endpoints);
        if (status != LS_OK)
            return status;
        const char *address = endpoints.advertise[0] != '\0'
                                  ? endpoints.advertise
                                  : endpoints.bind;
        if (plan_endpoint_fault(address, false) == NULL &&
            (i == 0 || wanted[1] != wanted[0]))
            add_address(out, plan, wanted[i], address);
    }
    return LS_OK;
}

static int find_nodes(const struct client_options *options,
                      struct invitation *out)
{
    const struct plan *plan = options->plan;
    int status = LS_OK;
    for (size_t i = 0; i < options->n_attach && status == LS_OK; i++)
        status = add_given(out, plan, options->attach[i]);
    if (status != LS_OK)
        return status;
    status = find_by_file(options, out);
    if (status == LS_ENOENT && out->options.n_attach == 0)
        status = find_by_plan(options, out);
    else if (status == LS_ENOENT)
        status = LS_OK;
    if (status == LS_OK && out->options.n_attach == 0)
        status = ls_error(
            LS_ECONFIG,
            "%s: no run of this job is in progress here (there "
            "is no %s/" RUN_FILE_NAME "), and the file does not "
            "say where node %" PRIu32 " listens: use --attach ENDPOINT",
            plan->path, plan->folder, plan->nodes[options->host].id);
    return status;
}

int client_bind(const struct plan *plan, const char *address,
                struct socket_folder *folder, char out[LS_ENDPOINT_MAX + 1])
{
    const struct plan_world *world = &plan->world;
    const int half = (world->last_port - world->first_port) / 2;
    if (strncmp(plan_address_endpoint(address), "ipc:", 4) != 0) {
        (void)snprintf(out, LS_ENDPOINT_MAX + 1, "tcp://127.0.0.1:%d-%d",
                       world->last_port - half, world->last_port);
        return LS_OK;
    }
    const int status = socket_folder_make(folder, plan->job);
    if (status == LS_OK)
        (void)snprintf(out, LS_ENDPOINT_MAX + 1, "ipc://%.200s/client.ipc",
                       folder->path);
    return status;
}

static int choose_bind(const struct client_options *options,
                       struct client *client, struct invitation *out)
{
    const char *fault =
        options->bind != NULL ? plan_endpoint_fault(options->bind, true) : NULL;
    if (fault != NULL)
        return ls_error(LS_EINVAL, "--bind %s: %s", options->bind, fault);
    if (options->bind == NULL)
        return client_bind(options->plan, out->attach[0], &client->folder,
                           out->bind);
    (void)snprintf(out->bind, sizeof out->bind, "%s", options->bind);
    return LS_OK;
}

static int invite(const struct client_options *options, struct client *client,
                  struct invitation *out)
{
    const struct plan *plan = options->plan;
    ls_runtime *runtime = ls_runtime_threads();
    memset(out, 0, sizeof *out);
    plan_node_options(plan, &out->options);
    out->options.attach = out->attach_list;
    int status = choose_id(options, &out->members[0]);
    if (status == LS_OK)
        status = find_nodes(options, out);
    if (status == LS_OK)
        status = choose_bind(options, client, out);
    if (status == LS_OK)
        status = node_security_open_client(&client->security, plan,
                                           out->members[0], out->running);
    if (status != LS_OK)
        return status;
    const int64_t left = options->deadline - ls_now(runtime);
    out->members[1] = plan->nodes[options->host].id;
    out->options.id = out->members[0];
    out->options.role = "client";
    out->options.bind = out->bind;
    out->options.advertise = options->advertise;
    out->options.topology = plan->world.topology;
    out->options.members = out->members;
    out->options.world_size = 2;
    out->options.world_max = plan_world_max(plan);
    out->options.start_timeout_ms =
        left > 0 ? (int)(left / LS_NS_PER_MS) + 1 : 1;
    out->options.security = client->security;
    return LS_OK;
}

static int not_reached(const struct client_options *options, int status)
{
    const struct plan_node *host = &options->plan->nodes[options->host];
    return ls_error_at(status, "node %" PRIu32 " (%s) was not reached",
                       host->id, plan_role_names[host->role]);
}

int client_join(struct client *out, const struct client_options *options)
{
    struct client client = {.node = NULL};
    struct invitation *made = malloc(sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "joining the job");
    int status = invite(options, &client, made);
    if (status == LS_OK)
        status = ls_node_create(&client.node, &made->options);
    if (status == LS_OK)
        status = ls_rpc_open(&client.calls, client.node, NULL);
    if (status == LS_OK && (status = ls_node_start(client.node)) != LS_OK)
        status = not_reached(options, status);
    free(made);
    if (status != LS_OK) {
        client_leave(&client);
        return status;
    }
    *out = client;
    return LS_OK;
}

void client_leave(struct client *client)
{
    ls_rpc_close(&client->calls);
    ls_node_destroy(&client->node);
    ls_security_destroy(&client->security);
    socket_folder_remove(&client->folder);
}
