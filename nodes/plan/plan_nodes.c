/* The list `nodes` of a configuration.
 *
 * An item stands for `count` nodes, or for as many `replicas`, which are given
 * their ids when they ask. Ids that the file names are taken first, the others
 * get the lowest free ones in the file's order, so adding an id to one item
 * never gives another the same. "{id}" in an item's texts becomes the id, which
 * is what tells its nodes apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

struct item {
    ls_config_section *section;
    size_t first, n; /* its nodes in the plan */
    bool leased;     /* they are replicas */
    int64_t id;      /* of the first one; -1: any free ones */
};

/* A copy of text with every {id} replaced; NULL when there is no memory. */
static char *with_id(const char *text, uint32_t id)
{
    static const char mark[] = "{id}";
    const size_t mark_length = sizeof mark - 1;
    const size_t size = 4 * strlen(text) + 16; /* "{id}" to 10 digits */
    char *out = malloc(size);
    if (out == NULL)
        return NULL;
    size_t used = 0;
    while (*text != '\0') {
        if (strncmp(text, mark, mark_length) == 0) {
            used +=
                (size_t)snprintf(out + used, size - used, "%u", (unsigned)id);
            text += mark_length;
        } else {
            out[used++] = *text++;
        }
    }
    out[used] = '\0';
    return out;
}

static const struct plan_node *holder_of(const struct plan *plan,
                                         const bool *given, uint32_t id)
{
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (given[i] && plan->nodes[i].id == id)
            return &plan->nodes[i];
    }
    return NULL;
}

/* The one above it is nobody: in faults and recordings it stands for all, and
 * as the leader of checkpoints for whoever is first. */
#define ID_MAX (UINT32_MAX - 1)

static void give_named_ids(struct plan *plan, const struct item *item,
                           bool *given)
{
    for (size_t k = 0; k < item->n; k++) {
        const int64_t id = item->id + (int64_t)k;
        if (id > ID_MAX) {
            ls_config_problem(item->section, "id",
                              "%zu ids from %lld on go past the largest, %u",
                              item->n, (long long)item->id, (unsigned)ID_MAX);
            return;
        }
        const struct plan_node *holder = holder_of(plan, given, (uint32_t)id);
        if (holder != NULL) {
            ls_config_problem(item->section, "id",
                              "id %lld is given twice; a %s has it already",
                              (long long)id, plan_role_names[holder->role]);
            return;
        }
        plan->nodes[item->first + k].id = (uint32_t)id;
        given[item->first + k] = true;
    }
}

static int give_ids(struct plan *plan, const struct item *items, size_t n_items)
{
    bool *given = calloc(plan->n_nodes + 1, sizeof *given);
    if (given == NULL)
        return ls_error(LS_ENOMEM, "reading nodes");
    for (size_t i = 0; i < n_items; i++) {
        if (items[i].id >= 0)
            give_named_ids(plan, &items[i], given);
    }
    uint32_t next = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (given[i])
            continue;
        while (holder_of(plan, given, next) != NULL)
            next++;
        plan->nodes[i].id = next;
        given[i] = true;
    }
    free(given);
    return LS_OK;
}

/* A secret goes over no network: who could read it there would have it. */
static bool may_go_far(const struct plan *plan)
{
    return plan->security.mode != LS_SECURITY_PLAIN;
}

#define KEYS_OR_NOT                                                            \
    "that takes a key for each node, security: {mode: curve, keys: DIR}, or "  \
    "world: {insecure: true} if the network is yours alone"

/* Read one endpoint of an item, for one of its nodes, and say what is wrong
 * with it. */
static void check_endpoint(const struct plan *plan, const struct item *item,
                           const char *key, const char *text)
{
    const bool attach = strcmp(key, "attach") == 0;
    const char *endpoint = attach ? plan_address_endpoint(text) : text;
    const char *fault =
        attach ? plan_address_fault(text)
               : plan_endpoint_fault(text, strcmp(key, "bind") == 0);
    if (fault == NULL)
        fault = plan_password_fault(plan, endpoint);
    if (fault != NULL)
        ls_config_problem(item->section, key, "\"%s\": %s", text, fault);
    else if (!may_go_far(plan) && !plan_endpoint_is_local(endpoint))
        ls_config_problem(item->section, key,
                          "%s is beyond this machine: " KEYS_OR_NOT, endpoint);
}

static int read_endpoints(struct plan *plan, const struct item *item,
                          struct plan_node *node)
{
    const char *bind = ls_config_string(item->section, "bind", "");
    const char *advertise = ls_config_string(item->section, "advertise", "");
    node->bind = with_id(bind, node->id);
    node->advertise = with_id(advertise, node->id);
    if (node->bind == NULL || node->advertise == NULL)
        return ls_error(LS_ENOMEM, "reading nodes");
    if (bind[0] != '\0')
        check_endpoint(plan, item, "bind", node->bind);
    if (advertise[0] != '\0')
        check_endpoint(plan, item, "advertise", node->advertise);
    if (item->n > 1 && bind[0] != '\0' && strstr(bind, "{id}") == NULL &&
        (strncmp(bind, "tcp:", 4) != 0 || strrchr(bind, '-') == NULL))
        ls_config_problem(item->section, "bind",
                          "%zu nodes cannot all listen at %s; put {id} into "
                          "it, or give a range of ports",
                          item->n, bind);

    const size_t n = ls_config_n_strings(item->section, "attach");
    if (n > PLAN_ATTACH_MAX)
        ls_config_problem(item->section, "attach", "at most %d of them",
                          PLAN_ATTACH_MAX);
    for (size_t i = 0; i < n && i < PLAN_ATTACH_MAX; i++) {
        const char *text = ls_config_string_at(item->section, "attach", i);
        node->attach[i] = with_id(text != NULL ? text : "", node->id);
        if (node->attach[i] == NULL)
            return ls_error(LS_ENOMEM, "reading nodes");
        node->n_attach++;
        if (text != NULL)
            check_endpoint(plan, item, "attach", node->attach[i]);
    }
    return LS_OK;
}

static int read_host(struct plan *plan, const struct item *item,
                     struct plan_node *node)
{
    const char *host = ls_config_string(item->section, "host", "");
    node->host = with_id(host, node->id);
    if (node->host == NULL)
        return ls_error(LS_ENOMEM, "reading nodes");
    if (host[0] == '\0')
        return LS_OK;
    if (strpbrk(host, "/ *") != NULL || strlen(host) > 200)
        ls_config_problem(item->section, "host",
                          "\"%s\" is not a host: write a name or an address, "
                          "without tcp:// and port",
                          host);
    else if (strchr(host, ':') != NULL && host[0] != '[')
        ls_config_problem(item->section, "host",
                          "\"%s\": an IPv6 address is in brackets, as in "
                          "\"[fd00::7]\", and has no port",
                          host);
    if (node->bind[0] != '\0' || node->advertise[0] != '\0')
        ls_config_problem(item->section, "host",
                          "host stands for bind and advertise; give either");
    if (strstr(host, "{hostname}") != NULL && !plan_host_is_own(node))
        ls_config_problem(item->section, "host",
                          "\"%s\": {hostname} is all of a host or none of it",
                          host);
    if (!may_go_far(plan) && strcmp(host, "localhost") != 0 &&
        strncmp(host, "127.", 4) != 0)
        ls_config_problem(item->section, "host",
                          "%s is beyond this machine: " KEYS_OR_NOT, host);
    node->port = plan->world.first_port;
    for (const struct plan_node *other = plan->nodes; other < node; other++)
        node->port +=
            !plan_host_is_own(node) && strcmp(other->host, node->host) == 0;
    if (node->port > plan->world.last_port)
        ls_config_problem(item->section, "host",
                          "world.ports has no port left for node %u on %s",
                          (unsigned)node->id, node->host);
    return LS_OK;
}

/* Whether the run can go on without one of this role. Collectors are counted
 * when it happens. */
static bool has_another(const struct plan *plan, enum plan_role role)
{
    switch (role) {
    case PLAN_LEARNER:
        return plan_count(plan, PLAN_LEARNER) > 1;
    case PLAN_COORDINATOR:
        return false;
    default:
        return true;
    }
}

static void read_on_loss(struct plan *plan, const struct item *item)
{
    ls_config_section *section = item->section;
    const enum plan_on_loss on_loss = (enum plan_on_loss)ls_config_choice(
        section, "on_loss", PLAN_FAIL, plan_on_loss_names);
    static const char *const keys[] = {"max_restarts", "restart_window_s",
                                       "backoff_ms"};
    for (size_t i = 0; i < 3 && on_loss != PLAN_RESTART; i++) {
        if (ls_config_has(section, keys[i]))
            ls_config_problem(section, keys[i],
                              "%s goes with on_loss: restart only; here it is "
                              "%s",
                              keys[i], plan_on_loss_names[on_loss]);
    }
    const unsigned max_restarts =
        (unsigned)ls_config_int(section, "max_restarts", 3, 0, 1000000);
    const double window_s =
        ls_config_double(section, "restart_window_s", 0.0, 0.0, 1e7);
    if (window_s > 0.0 && max_restarts > PLAN_WINDOW_RESTARTS_MAX)
        ls_config_problem(section, "max_restarts",
                          "%u restarts within restart_window_s: at most %d",
                          max_restarts, PLAN_WINDOW_RESTARTS_MAX);
    const int backoff_ms =
        (int)ls_config_int(section, "backoff_ms", 100, 1, PLAN_BACKOFF_MAX_MS);
    for (size_t k = 0; k < item->n; k++) {
        struct plan_node *node = &plan->nodes[item->first + k];
        node->on_loss = on_loss;
        node->max_restarts = max_restarts;
        node->restart_window_s = window_s;
        node->backoff_ms = backoff_ms;
        if (on_loss == PLAN_GO_ON && !has_another(plan, node->role))
            ls_config_problem(section, "on_loss",
                              "nothing is learned without the %s: say "
                              "fail or restart",
                              plan_role_names[node->role]);
    }
}

static int read_item(struct plan *plan, const struct item *item)
{
    read_on_loss(plan, item);
    if (ls_config_has(item->section, "labels"))
        ls_config_problem(item->section, "labels",
                          "labels does nothing: no job chooses nodes by them; "
                          "leave it out. What a node does its role says");
    for (size_t k = 0; k < item->n; k++) {
        struct plan_node *node = &plan->nodes[item->first + k];
        int status = read_endpoints(plan, item, node);
        if (status == LS_OK)
            status = read_host(plan, item, node);
        if (status != LS_OK)
            return status;
    }
    return LS_OK;
}

/* Whom the others find first. */
static size_t find_first(const struct plan *plan)
{
    const enum plan_role role =
        plan_is_service(plan) ? PLAN_COORDINATOR : PLAN_LEARNER;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].role == role)
            return i;
    }
    return 0;
}

static void check_service(const size_t *counts, ls_config_section *root)
{
    if (counts[PLAN_COORDINATOR] > 1)
        ls_config_problem(root, "nodes",
                          "one coordinator gives out the work; here are %zu",
                          counts[PLAN_COORDINATOR]);
    if (counts[PLAN_LEARNER] == 0 || counts[PLAN_COLLECTOR] == 0)
        ls_config_problem(root, "nodes",
                          "a coordinator needs a learner and a collector to "
                          "give work to");
    if (counts[PLAN_EVALUATOR] > 0)
        ls_config_problem(root, "nodes",
                          "a coordinator has collectors evaluate: leave the "
                          "evaluator out");
}

static void check_roles(struct plan *plan, ls_config_section *root)
{
    size_t counts[PLAN_N_ROLES];
    for (size_t role = 0; role < PLAN_N_ROLES; role++)
        counts[role] = plan_count(plan, (enum plan_role)role);
    plan->first = find_first(plan);
    if (counts[PLAN_MEMBER] > 0) {
        if (counts[PLAN_MEMBER] < plan->n_nodes)
            ls_config_problem(root, "nodes",
                              "members keep step among themselves; a job has "
                              "either members or learner and collectors");
        return;
    }
    if (counts[PLAN_COORDINATOR] > 0) {
        check_service(counts, root);
        return;
    }
    if (counts[PLAN_COLLECTOR] == 0)
        ls_config_problem(root, "nodes",
                          "there is no collector, so the learner would have "
                          "nothing to learn from");
}

static void read_number(struct item *item)
{
    const char *keys[] = {"count", "replicas"};
    item->leased = ls_config_has(item->section, keys[1]);
    if (item->leased && ls_config_has(item->section, keys[0]))
        ls_config_problem(item->section, keys[1],
                          "count nodes bring their ids, replicas are given "
                          "theirs; say one of them");
    item->n = (size_t)ls_config_int(item->section, keys[item->leased], 1, 1,
                                    PLAN_NODES_MAX);
}

/* Find out how many nodes each item stands for. */
static size_t read_shape(struct item *items, enum plan_role *roles, size_t n,
                         ls_config_section *root)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        struct item *item = &items[i];
        item->section = ls_config_item(root, "nodes", i);
        (void)ls_config_require(item->section, "role");
        roles[i] = (enum plan_role)ls_config_choice(
            item->section, "role", PLAN_COLLECTOR, plan_role_names);
        read_number(item);
        item->id = ls_config_int(item->section, "id", -1, 0, ID_MAX);
        item->first = total;
        if (total + item->n > PLAN_NODES_MAX) {
            ls_config_problem(item->section, "count",
                              "that makes %zu nodes; at most %d",
                              total + item->n, PLAN_NODES_MAX);
            item->n = PLAN_NODES_MAX - total;
        }
        total += item->n;
    }
    return total;
}

static int read_items(struct plan *plan, struct item *items, size_t n,
                      const enum plan_role *roles, ls_config_section *root)
{
    plan->nodes = calloc(plan->n_nodes + 1, sizeof *plan->nodes);
    if (plan->nodes == NULL) {
        plan->n_nodes = 0;
        return ls_error(LS_ENOMEM, "reading nodes");
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < items[i].n; k++) {
            plan->nodes[items[i].first + k].role = roles[i];
            plan->nodes[items[i].first + k].leased = items[i].leased;
        }
    }
    int status = give_ids(plan, items, n);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = read_item(plan, &items[i]);
    if (status == LS_OK)
        check_roles(plan, root);
    return status;
}

int plan_read_nodes(struct plan *plan, ls_config_section *root)
{
    if (!ls_config_require(root, "nodes"))
        return LS_OK;
    const size_t n = ls_config_n_sections(root, "nodes");
    struct item *items = calloc(n + 1, sizeof *items);
    enum plan_role *roles = calloc(n + 1, sizeof *roles);
    int status = LS_OK;
    if (items == NULL || roles == NULL) {
        status = ls_error(LS_ENOMEM, "reading nodes");
    } else {
        plan->n_nodes = read_shape(items, roles, n, root);
        status = read_items(plan, items, n, roles, root);
    }
    free(items);
    free(roles);
    return status;
}
