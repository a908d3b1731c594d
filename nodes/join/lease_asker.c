#include "lease_asker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "node_security.h"
#include "plan_lease.h"

/* A node for this one question. */
struct asker {
    const struct lease_asking *asking; /* borrow */
    uint32_t giver;                    /* its id */
    size_t index; /* of the first node in the plan that it may become */
    struct plan_lease_place place;
    char job[PLAN_LEASE_JOB_MAX];
    char attach[PLAN_ADDRESS_MAX];
    struct plan_endpoints endpoints; /* its own: bind, advertise */
    struct socket_folder folder;     /* own */
    ls_security *security;           /* own */
    ls_node *node;                   /* own */
    ls_rpc *calls;                   /* own */
};

static void asker_fini(struct asker *asker)
{
    ls_rpc_close(&asker->calls);
    ls_node_destroy(&asker->node);
    ls_security_destroy(&asker->security);
    socket_folder_remove(&asker->folder);
}

static int choose_bind(struct asker *asker)
{
    const struct lease_asking *asking = asker->asking;
    const struct plan_world *world = &asking->plan->world;
    struct plan_endpoints *out = &asker->endpoints;
    if (asking->bind == NULL &&
        plan_host_is_own(&asking->plan->nodes[asker->index]))
        return plan_endpoints_alone(asking->plan, asker->index, out);
    if (asking->advertise != NULL)
        (void)snprintf(out->advertise, sizeof out->advertise, "%s",
                       asking->advertise);
    if (asking->bind != NULL) {
        (void)snprintf(out->bind, sizeof out->bind, "%s", asking->bind);
        return LS_OK;
    }
    if (!plan_endpoint_is_local(asker->place.advertise))
        return ls_error(LS_ECONFIG,
                        "%s is on another host: say where this node is reached "
                        "from there, host: \"{hostname}\" in the "
                        "configuration, or --bind tcp://0.0.0.0:%d --advertise "
                        "tcp://THIS-HOST:%d",
                        asker->place.advertise, world->first_port,
                        world->first_port);
    return client_bind(asking->plan, asker->place.advertise, &asker->folder,
                       out->bind);
}

static int find_giver(struct asker *asker)
{
    const struct plan *plan = asker->asking->plan;
    const size_t index = plan_lease_giver(plan);
    const enum plan_role role = asker->asking->role;
    while (asker->index < plan->n_nodes &&
           (!plan->nodes[asker->index].leased ||
            plan->nodes[asker->index].role != role))
        asker->index++;
    if (asker->index == plan->n_nodes)
        return ls_error(LS_ECONFIG,
                        "%s: no item of nodes says replicas for the role %s, "
                        "so no id is given out to it: use --id N",
                        plan->path, plan_role_names[role]);
    const int status = plan_lease_place(plan, &asker->place);
    asker->giver = plan->nodes[index].id;
    if (status == LS_OK)
        plan_put_address(plan, index, asker->place.advertise, asker->attach);
    plan_lease_job(plan, asker->job);
    return status;
}

static int create_node(struct asker *asker)
{
    const struct plan *plan = asker->asking->plan;
    const char *attach = asker->attach;
    uint32_t members[2] = {asker->giver, asker->giver};
    struct ls_node_options options;
    while (members[0] == asker->giver)
        members[0] = (uint32_t)ls_entropy(ls_runtime_threads());
    plan_node_options(plan, &options);
    options.job = asker->job;
    options.id = members[0];
    options.role = "replica";
    options.bind = asker->endpoints.bind;
    options.advertise = asker->endpoints.advertise[0] != '\0'
                            ? asker->endpoints.advertise
                            : NULL;
    options.attach = &attach;
    options.n_attach = 1;
    options.topology = LS_TOPOLOGY_ALONE;
    options.members = members;
    options.world_size = 2;
    options.security = asker->security;
    options.waiting = asker->asking->waiting;
    options.waiting_self = asker->asking->waiting_self;
    const int status = ls_node_create(&asker->node, &options);
    return status == LS_EINVAL ? LS_ECONFIG : status;
}

static int join(struct asker *asker)
{
    const struct lease_asking *asking = asker->asking;
    int status = choose_bind(asker);
    if (status == LS_OK)
        status = plan_has_keys(asking->plan)
                     ? node_security_open_asking(&asker->security, asking->plan)
                     : node_security_open(&asker->security, asking->plan, 0,
                                          asking->secret);
    if (status == LS_OK)
        status = create_node(asker);
    if (status == LS_OK)
        status = ls_rpc_open(&asker->calls, asker->node, NULL);
    if (status == LS_OK)
        status = ls_node_start(asker->node);
    return status;
}

static int end_of(const struct ls_call_result *result, struct lease_answer *out)
{
    switch (result->state) {
    case LS_CALL_COMPLETED:
        return ls_record_decode(&lease_answer_record, out, result->data,
                                result->size, NULL);
    case LS_CALL_START_FAILED:
    case LS_CALL_FAILED: /* what is refused on a thread of its own */
        break;
    case LS_CALL_LOST:
        return ls_error(LS_ELOST, "%s", result->text);
    default:
        return ls_error(LS_ETIMEDOUT, "%s", result->text);
    }
    return ls_error(lease_refused(result->code), "%s", result->text);
}

static int ask(struct asker *asker, struct lease_answer *out)
{
    const struct lease_asking *asking = asker->asking;
    struct lease_question question = {.lasting = asking->identity->lasting};
    ls_writer *writer = NULL;
    ls_call *call = NULL;
    struct ls_call_options options = {.to = asker->giver,
                                      .name = LEASE_CALL,
                                      .timeout_ms =
                                          asking->plan->world.start_timeout_ms +
                                          asking->plan->world.silence_ms};
    (void)snprintf(question.role, sizeof question.role, "%s",
                   plan_role_names[asking->role]);
    memcpy(question.key, asking->identity->key, sizeof question.key);
    while (question.life == 0)
        question.life = ls_entropy(ls_runtime_threads());
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_record_write(&lease_question_record, &question, writer);
    status = ls_writer_bytes(writer, &options.data, &options.size);
    if (status == LS_OK)
        status = ls_call_start(&call, asker->calls, &options);
    if (status == LS_OK)
        status = ls_call_wait(call, LS_WAIT_DEFAULT);
    if (status == LS_OK)
        status = end_of(ls_call_result(call), out);
    ls_call_destroy(&call);
    ls_writer_destroy(&writer);
    return status;
}

int lease_ask(struct lease_answer *out, const struct lease_asking *asking)
{
    struct asker asker = {.asking = asking};
    int status = find_giver(&asker);
    if (status != LS_OK)
        return status;
    status = join(&asker);
    if (status == LS_OK)
        status = ask(&asker, out);
    if (status != LS_OK)
        status = ls_error_at(
            status, "asking node %" PRIu32 " for an id of a %s, at %s",
            asker.giver, plan_role_names[asking->role], asker.place.advertise);
    char text[LS_ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    asker_fini(&asker);
    return status == LS_OK ? LS_OK
                           : plan_start_ended(ls_error(status, "%s", text));
}
