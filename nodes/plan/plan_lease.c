#include "plan_lease.h"

#include <stdio.h>
#include <string.h>

static void check_topology(const struct plan *plan, ls_config_section *root)
{
    if (plan->world.topology == LS_TOPOLOGY_STAR && plan_has_keys(plan))
        ls_config_problem(root, "nodes",
                          "in a star a leaf signs what it says, and nobody "
                          "could check the signature of a replica: with keys, "
                          "use world: {topology: mesh}");
    if (plan->nodes[plan_lease_giver(plan)].leased)
        ls_config_problem(root, "nodes",
                          "some node must give the replicas their ids: use "
                          "count for the %s, or for another node",
                          plan_is_service(plan) ? "coordinator" : "learner");
}

static void check_place(struct plan *plan, ls_config_section *world)
{
    const char *text = plan->world.leases;
    const char *fault = plan_endpoint_fault(text, false);
    if (fault == NULL && strncmp(text, "inproc:", 7) == 0)
        fault = "replicas are separate processes";
    if (fault != NULL)
        ls_config_problem(world, "leases", "\"%s\": %s", text, fault);
    else if (plan->security.mode == LS_SECURITY_PLAIN &&
             !plan_endpoint_is_local(text))
        ls_config_problem(world, "leases",
                          "%s is beyond this machine: that takes keys, "
                          "security: {mode: curve, keys: DIR}, or world: "
                          "{insecure: true} if the network is yours alone",
                          text);
}

void plan_read_leases(struct plan *plan, ls_config_section *root)
{
    ls_config_section *world = ls_config_section_at(root, "world");
    plan->world.leases = ls_config_string(world, "leases", NULL);
    if (!plan_has_leases(plan)) {
        if (plan->world.leases != NULL)
            ls_config_problem(world, "leases",
                              "no item of nodes says replicas, so nobody "
                              "asks for an id");
        return;
    }
    check_topology(plan, root);
    if (plan->world.leases != NULL)
        check_place(plan, world);
}

bool plan_has_leases(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].leased)
            return true;
    return false;
}

size_t plan_n_leases(const struct plan *plan, enum plan_role role)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        n += plan->nodes[i].leased && plan->nodes[i].role == role ? 1 : 0;
    return n;
}

size_t plan_lease_giver(const struct plan *plan)
{
    size_t lowest = plan->first;
    for (size_t i = 0; i < plan->n_nodes && !plan_is_service(plan); i++) {
        const struct plan_node *node = &plan->nodes[i];
        if (!node->leased &&
            (plan->nodes[lowest].leased || node->id < plan->nodes[lowest].id))
            lowest = i;
    }
    return lowest;
}

/* One beyond this machine stands for all of its interfaces. */
static int put_bind(struct plan_lease_place *out)
{
    const char *colon = strrchr(out->advertise, ':');
    if (plan_endpoint_is_local(out->advertise))
        return plan_put_endpoint(out->bind, "%s", out->advertise);
    return plan_put_endpoint(out->bind, "%s%s",
                             plan_endpoint_everywhere(out->advertise), colon);
}

int plan_lease_place(const struct plan *plan, struct plan_lease_place *out)
{
    const struct plan_node *giver = &plan->nodes[plan_lease_giver(plan)];
    const struct plan_world *world = &plan->world;
    int status;
    if (world->leases != NULL)
        status = plan_put_endpoint(out->advertise, "%s", world->leases);
    else if (world->transport == PLAN_IPC)
        status = plan_put_endpoint(out->advertise, "ipc://%s/%s-leases.ipc",
                                   world->dir != NULL ? world->dir : "/tmp",
                                   plan->job);
    else
        status = plan_put_endpoint(out->advertise, "tcp://%s:%d",
                                   giver->host[0] != '\0' ? giver->host
                                                          : "127.0.0.1",
                                   world->last_port);
    if (status == LS_OK)
        status = put_bind(out);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "where ids are given out; give a shorter "
                                     "one by world.leases");
}

void plan_lease_job(const struct plan *plan, char out[PLAN_LEASE_JOB_MAX])
{
    static const char suffix[] = ".leases";
    (void)snprintf(out, PLAN_LEASE_JOB_MAX, "%.*s%s",
                   (int)(LS_JOB_MAX - strlen(suffix)), plan->job, suffix);
}
