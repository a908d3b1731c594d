/* What `lockstep check` shows of a plan. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fsm_kinds.h"
#include "json.h"
#include "lockstep/place.h"
#include "output.h"
#include "plan.h"
#include "plan_lease.h"

/* What a table shows of a node. */
struct row {
    struct plan_endpoints endpoints;
    const char *listens;
    const char *attaches; /* the first one */
};

static int make_row(const struct plan *plan, size_t index, struct row *row)
{
    const int status = plan_endpoints_alone(plan, index, &row->endpoints);
    if (status != LS_OK)
        return status;
    const struct plan_endpoints *endpoints = &row->endpoints;
    row->listens = endpoints->advertise[0] != '\0' ? endpoints->advertise
                                                   : endpoints->bind;
    row->attaches = endpoints->n_attach > 0 ? endpoints->attach[0] : "";
    return LS_OK;
}

static void print_node(const struct plan *plan, size_t index,
                       const struct row *row, int width)
{
    const struct plan_node *node = &plan->nodes[index];
    output_print(stdout, "  %4u  %-11s  %-*s  ", (unsigned)node->id,
                 plan_role_names[node->role], width, row->listens);
    if (row->attaches[0] != '\0')
        output_print(stdout, "%s", row->attaches);
    else if (index != plan->first)
        printf("node %u", (unsigned)plan->nodes[plan->first].id);
    else
        printf("-");
    if (node->leased)
        printf("  given out");
    if (node->on_loss == PLAN_GO_ON)
        printf("  continue without it");
    if (node->on_loss == PLAN_RESTART)
        printf("  restart, up to %u times", node->max_restarts);
    if (node->restart_window_s > 0.0)
        printf(" within %g s", node->restart_window_s);
    printf("\n");
}

/* Which nodes a work may go to. Returns how many. */
static size_t place_work(const struct plan *plan, const struct fsm_kind *kind,
                         uint32_t out[PLAN_NODES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const struct plan_node *node = &plan->nodes[i];
        if (ls_place_has(kind->where, node->id, plan_role_names[node->role],
                         ""))
            out[n++] = node->id;
    }
    return n;
}

/* As the tasks of any job. */
static struct ls_job_task job_task(const struct fsm_kind *kind,
                                   const struct fsm_task *task)
{
    return (struct ls_job_task){
        .name = task->name, .where = kind->where, .outputs = task->outputs};
}

static double wait_s(const struct fsm_kind *kind,
                     const struct fsm_options *options)
{
    return (double)kind->expiry(options) / (double)LS_NS_PER_S;
}

/* Of the kinds that come later the first that the same members do. */
static const struct fsm_kind *goes_before(const struct fsm_kind *const *kind)
{
    const struct fsm_kind *const *later = kind + 1;
    while (*later != NULL && strcmp((*later)->where, (*kind)->where) != 0)
        later++;
    return *later;
}

static void print_work(const struct plan *plan,
                       const struct fsm_options *options,
                       const struct fsm_kind *const *at)
{
    const struct fsm_kind *kind = *at, *later = goes_before(at);
    char text[512 + 12 * PLAN_NODES_MAX]; /* a task, and all ids */
    uint32_t nodes[PLAN_NODES_MAX];
    const size_t n = place_work(plan, kind, nodes);
    const size_t ranks = fsm_kind_ranks(kind, options);
    kind->describe(options, text, sizeof text);
    printf("%s work: %s; by ", kind->name, text);
    if (ranks > 1)
        printf("%zu ranks of %zu %ss", ranks, n, fsm_kind_doer(kind));
    else
        printf("a %s", fsm_kind_doer(kind));
    printf(" within %g s", wait_s(kind, options));
    if (later != NULL)
        printf(", before %s works", later->name);
    printf("\n");
    for (size_t i = 0; i < kind->n_tasks; i++) {
        const struct ls_job_task task = job_task(kind, &kind->tasks[i]);
        (void)ls_job_task_print(kind->tasks[i].phase, &task, nodes, n, text,
                                sizeof text);
        printf("%s", text);
    }
}

static void print_works(const struct plan *plan)
{
    struct fsm_options options;
    plan_coordinator_options(plan, &options);
    for (size_t i = 0; fsm_kinds[i] != NULL; i++)
        print_work(plan, &options, &fsm_kinds[i]);
}

static void print_service(const struct plan *plan)
{
    const struct plan_service *service = &plan->service;
    const int64_t kept = plan_samples_kept(plan);
    const struct fsm_options *fsm = &service->fsm;
    printf("\n");
    print_works(plan);
    output_print(
        stdout, "replay: %s, up to %lld samples%s; data and policies: %s\n",
        plan_replay_name(plan), (long long)kept,
        (uint64_t)kept < fsm->replay.capacity ? ", all that data.max_mib takes"
                                              : "",
        service->store == PLAN_STORE_BUS ? "over the bus" : service->path_data);
    if (fsm->keeps_samples)
        printf("what is in the replay buffer outlives the coordinator\n");
}

static void print_sizes(const struct plan *plan)
{
    if (plan->sizes.sample == 0)
        return;
    printf("%sa trajectory has %" PRIu64 " bytes, the policy %" PRIu64 "\n",
           plan_is_service(plan) ? "" : "\n", plan->sizes.sample,
           plan->sizes.policy);
}

static void print_hosts(const char *what, const struct plan_hosts *hosts)
{
    for (size_t i = 0; i < hosts->n; i++)
        printf("%s%s", i == 0 ? what : ", ",
               hosts->items[i][0] != '\0' ? hosts->items[i] : "ipc");
}

static void print_security(const struct plan *plan)
{
    const struct plan_security *security = &plan->security;
    printf("%s", plan_security_text(plan));
    if (security->keys != NULL)
        output_print(stdout, " (%s)", security->keys);
    print_hosts("; only from ", &security->allow);
    print_hosts("; not from ", &security->deny);
    printf("\n\n");
}

static int print_leases(const struct plan *plan)
{
    struct plan_lease_place place;
    const int status = plan_lease_place(plan, &place);
    if (status == LS_OK)
        output_print(stdout, "\nids are given out by node %u at %s\n",
                     (unsigned)plan->nodes[plan_lease_giver(plan)].id,
                     place.advertise);
    return status;
}

/* Whether others are to be elsewhere, and it listens to its own host only. */
static bool is_shut_in(const struct row *row)
{
    return plan_endpoint_is_local(row->endpoints.bind) &&
           plan_endpoint_is_local(row->listens) && row->attaches[0] != '\0' &&
           !plan_endpoint_is_local(plan_address_endpoint(row->attaches));
}

/* It may be right: on the host that it attaches to. */
static int print_shut_in(const struct plan *plan)
{
    struct row row;
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const int status = make_row(plan, i, &row);
        if (status != LS_OK)
            return status;
        if (is_shut_in(&row))
            printf("%s%u", n++ == 0 ? "\nbeware: node " : ", ",
                   (unsigned)plan->nodes[i].id);
    }
    if (n != 0)
        printf(" listen%s to %s own host only, and attach%s to an address of "
               "the network.\nOn another host nobody could dial %s: write "
               "`host: ADDRESS` instead, or start\n%s with --bind "
               "tcp://ADDRESS:PORT\n",
               n == 1 ? "s" : "", n == 1 ? "its" : "their", n == 1 ? "es" : "",
               n == 1 ? "it" : "them", n == 1 ? "it" : "each");
    return LS_OK;
}

static int print_table(const struct plan *plan)
{
    struct row row;
    int width = (int)sizeof "listens at" - 1;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const int status = make_row(plan, i, &row);
        if (status != LS_OK)
            return status;
        const int length = (int)strlen(row.listens);
        width = length > width ? length : width;
    }
    output_print(stdout, "%s is right: job %s, seed %llu, plugin %s\n",
                 plan->path, plan->job, (unsigned long long)plan->seed,
                 plan->plugin);
    printf("%zu node%s, %s over %s; ", plan->n_nodes,
           plan->n_nodes == 1 ? "" : "s",
           plan_topology_names[plan->world.topology == LS_TOPOLOGY_STAR],
           plan_transport_names[plan->world.transport]);
    print_security(plan);
    printf("  %4s  %-11s  %-*s  %s\n", "id", "role", width, "listens at",
           "attaches to");
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const int status = make_row(plan, i, &row);
        if (status != LS_OK)
            return status;
        print_node(plan, i, &row, width);
    }
    const int status = print_shut_in(plan);
    if (status != LS_OK)
        return status;
    if (plan_is_service(plan))
        print_service(plan);
    print_sizes(plan);
    return plan_has_leases(plan) ? print_leases(plan) : LS_OK;
}

static int write_node(const struct plan *plan, size_t index, ls_writer *out)
{
    const struct plan_node *node = &plan->nodes[index];
    struct row row;
    const int status = make_row(plan, index, &row);
    if (status != LS_OK)
        return status;
    const bool restarts = node->on_loss == PLAN_RESTART;
    ls_write_map_begin(out);
    json_int(out, "id", node->id);
    json_string(out, "role", plan_role_names[node->role]);
    json_bool(out, "leased", node->leased);
    json_string(out, "on_loss", plan_on_loss_names[node->on_loss]);
    if (restarts) {
        json_int(out, "max_restarts", node->max_restarts);
        json_double(out, "restart_window_s", node->restart_window_s);
        json_int(out, "backoff_ms", node->backoff_ms);
    }
    json_string(out, "bind", row.endpoints.bind);
    json_string(out, "advertise", row.listens);
    ls_write_string(out, "attach");
    ls_write_array(out, (uint32_t)row.endpoints.n_attach);
    for (size_t i = 0; i < row.endpoints.n_attach; i++)
        ls_write_string(out, row.endpoints.attach[i]);
    ls_write_map_end(out);
    return LS_OK;
}

/* Of the names that ls_job_print() has. */
static void write_task(const struct ls_job_task *task, enum ls_job_phase phase,
                       ls_writer *out)
{
    size_t n = 0;
    while (task->outputs != NULL && task->outputs[n] != NULL)
        n++;
    ls_write_map(out, 4);
    json_string(out, "group", ls_job_phase_name(phase));
    json_string(out, "task", task->name);
    json_string(out, "where", task->where);
    ls_write_string(out, "outputs");
    ls_write_array(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        ls_write_string(out, task->outputs[i]);
}

static void write_work(const struct plan *plan,
                       const struct fsm_options *options,
                       const struct fsm_kind *kind, ls_writer *out)
{
    uint32_t nodes[PLAN_NODES_MAX];
    const size_t n = place_work(plan, kind, nodes);
    ls_write_map(out, 6);
    json_string(out, "work", kind->name);
    json_string(out, "role", fsm_kind_doer(kind));
    json_int(out, "ranks", (int64_t)fsm_kind_ranks(kind, options));
    json_double(out, "wait_s", wait_s(kind, options));
    ls_write_string(out, "nodes");
    ls_write_array(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        ls_write_uint(out, nodes[i]);
    ls_write_string(out, "tasks");
    ls_write_array(out, (uint32_t)kind->n_tasks);
    for (size_t i = 0; i < kind->n_tasks; i++) {
        const struct ls_job_task task = job_task(kind, &kind->tasks[i]);
        write_task(&task, kind->tasks[i].phase, out);
    }
}

static void write_works(const struct plan *plan, ls_writer *out)
{
    struct fsm_options options;
    size_t n = 0;
    while (fsm_kinds[n] != NULL)
        n++;
    plan_coordinator_options(plan, &options);
    ls_write_string(out, "works");
    ls_write_array(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        write_work(plan, &options, fsm_kinds[i], out);
}

static void write_service(const struct plan *plan, ls_writer *out)
{
    const struct plan_service *service = &plan->service;
    const struct fsm_options *fsm = &service->fsm;
    ls_write_string(out, "coordinator");
    ls_write_map_begin(out);
    json_int(out, "iterations", fsm->iterations);
    json_double(out, "eval_interval_s",
                (double)fsm->eval_interval / (double)LS_NS_PER_S);
    json_int(out, "batch", fsm->batch_size);
    json_int(out, "samples_per_work", fsm->samples_per_work);
    json_int(out, "unroll", fsm->unroll_len);
    json_int(out, "split", fsm->split);
    json_int(out, "channel", service->channel);
    write_works(plan, out);
    json_string(out, "replay", plan_replay_name(plan));
    json_int(out, "samples_kept", plan_samples_kept(plan));
    json_string(out, "store", plan_store_names[service->store]);
    ls_write_map_end(out);
}

static void write_hosts(const char *key, const struct plan_hosts *hosts,
                        ls_writer *out)
{
    ls_write_string(out, key);
    ls_write_array(out, (uint32_t)hosts->n);
    for (size_t i = 0; i < hosts->n; i++)
        ls_write_string(out, hosts->items[i]);
}

static void write_security(const struct plan *plan, ls_writer *out)
{
    static const char *const modes[] = {[LS_SECURITY_NONE] = "none",
                                        [LS_SECURITY_PLAIN] = "plain",
                                        [LS_SECURITY_CURVE] = "curve"};
    ls_write_string(out, "security");
    ls_write_map_begin(out);
    json_string(out, "mode", modes[plan->security.mode]);
    json_string(out, "keys", plan->security.keys);
    write_hosts("allow", &plan->security.allow, out);
    write_hosts("deny", &plan->security.deny, out);
    ls_write_map_end(out);
}

static int print_json(const struct plan *plan)
{
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map_begin(out);
    json_string(out, "job", plan->job);
    json_int(out, "seed", (int64_t)plan->seed);
    json_string(out, "plugin", plan->plugin);
    json_string(out, "out", plan->out);
    json_string(out, "topology",
                plan_topology_names[plan->world.topology == LS_TOPOLOGY_STAR]);
    json_string(out, "transport", plan_transport_names[plan->world.transport]);
    write_security(plan, out);
    json_int(out, "trajectory_bytes", (int64_t)plan->sizes.sample);
    json_int(out, "policy_bytes", (int64_t)plan->sizes.policy);
    ls_write_string(out, "nodes");
    ls_write_array(out, (uint32_t)plan->n_nodes);
    for (size_t i = 0; i < plan->n_nodes && status == LS_OK; i++)
        status = write_node(plan, i, out);
    if (plan_is_service(plan))
        write_service(plan, out);
    ls_write_map_end(out);
    if (status == LS_OK)
        status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}

int plan_print(const struct plan *plan, bool json)
{
    return json ? print_json(plan) : print_table(plan);
}
