/* How messages travel between two hosts, and whether: rules, of which the
 * latest that fits holds. */
#include <stdlib.h>

#include "network_parts.h"

#define MAX_NS (3600 * LS_NS_PER_S)

static bool fits(const struct rule *rule, const ls_host *from,
                 const ls_host *to)
{
    return (rule->from == NULL || rule->from == from) &&
           (rule->to == NULL || rule->to == to);
}

/* Whether there may be two hosts that both speak of. */
static bool overlaps(const struct rule *rule, const ls_host *from,
                     const ls_host *to)
{
    return (rule->from == NULL || from == NULL || rule->from == from) &&
           (rule->to == NULL || to == NULL || rule->to == to);
}

/* Forget the rules that are covered by one to come; returns whether another
 * overlaps with it. */
static bool forget_covered(struct rule **rules, const ls_host *from,
                           const ls_host *to)
{
    bool others = false;
    while (*rules != NULL) {
        struct rule *rule = *rules;
        if ((from == NULL || from == rule->from) &&
            (to == NULL || to == rule->to)) {
            *rules = rule->next;
            free(rule);
            continue;
        }
        others = others || overlaps(rule, from, to);
        rules = &rule->next;
    }
    return others;
}

static struct rule *add(struct rule **rules, const ls_host *from,
                        const ls_host *to)
{
    struct rule *rule = calloc(1, sizeof *rule);
    if (rule == NULL)
        return NULL;
    rule->from = from;
    rule->to = to;
    rule->next = *rules;
    *rules = rule;
    return rule;
}

void network_rules_free(struct rule **rules)
{
    (void)forget_covered(rules, NULL, NULL);
}

/* ---- paths ------------------------------------------------------------- */

static int check_share(const char *name, double value)
{
    if (value >= 0 && value <= 1)
        return LS_OK;
    return ls_error(LS_EINVAL, "a network's %s is a probability: 0 to 1", name);
}

int network_check_path(const struct ls_network_path *path)
{
    if (path->delay_ns < 0 || path->jitter_ns < 0 || path->delay_ns > MAX_NS ||
        path->jitter_ns > MAX_NS)
        return ls_error(LS_EINVAL,
                        "a network's delay and jitter are 0 ns to one hour");
    int status = check_share("loss", path->loss);
    if (status == LS_OK)
        status = check_share("duplicate", path->duplicate);
    return status == LS_OK ? check_share("reorder", path->reorder) : status;
}

const struct ls_network_path *network_path(ls_network *network,
                                           const struct network_host *from,
                                           const struct network_host *to)
{
    if (from == to || from == NULL || to == NULL)
        return &network->local;
    const struct rule *rule = network->paths;
    while (!fits(rule, from->host, to->host))
        rule = rule->next; /* the oldest fits all */
    return &rule->path;
}

int64_t network_delay(ls_network *network, const struct ls_network_path *path)
{
    const uint64_t bound = (uint64_t)path->jitter_ns + 1;
    return path->delay_ns +
           (bound == 1 ? 0 : (int64_t)ls_rng_below(&network->rng, bound));
}

int ls_network_shape(ls_network *network, const ls_host *from,
                     const ls_host *to, const struct ls_network_path *path)
{
    const int status = network_check_path(path);
    if (status != LS_OK)
        return status;
    struct rule *rule = add(&network->paths, from, to);
    if (rule == NULL)
        return ls_error(LS_ENOMEM, "no memory to shape a network");
    rule->path = *path;
    if (path->loss > network->stats.worst_loss)
        network->stats.worst_loss = path->loss;
    (void)forget_covered(&rule->next, from, to);
    network->version++;
    return LS_OK;
}

/* ---- cuts -------------------------------------------------------------- */

bool network_is_cut(const ls_network *network, const struct network_host *from,
                    const struct network_host *to)
{
    if (from == to || from == NULL || to == NULL)
        return false;
    const struct rule *rule = network->cuts;
    while (rule != NULL && !fits(rule, from->host, to->host))
        rule = rule->next;
    return rule != NULL && rule->cut;
}

static void close_long_cut(void *arg)
{
    ls_network *network = arg;
    for (struct connection *c = network->connections; c != NULL; c = c->next)
        if (c->cut_since >= 0 &&
            network_now(network) - c->cut_since >= NETWORK_CUT_NS)
            connection_break(c, "cut for 3 s");
    network_wake(network);
}

static void release_held(void *arg)
{
    ls_network *network = arg;
    for (struct connection *c = network->connections; c != NULL; c = c->next)
        packets_release_held(c);
    network_wake(network);
}

static void apply_cuts(ls_network *network)
{
    const int64_t now = network_now(network);
    for (struct connection *c = network->connections; c != NULL; c = c->next) {
        c->down.cut = network_is_cut(network, c->server, c->client);
        c->up.cut = network_is_cut(network, c->client, c->server);
        if (!c->down.cut && !c->up.cut)
            c->cut_since = -1;
        else if (c->cut_since < 0)
            c->cut_since = now;
    }
}

static const char *name_of(const ls_host *host)
{
    return host != NULL ? ls_host_name(host) : "*";
}

int ls_network_cut(ls_network *network, const ls_host *from, const ls_host *to)
{
    struct rule *rule = add(&network->cuts, from, to);
    if (rule == NULL)
        return ls_error(LS_ENOMEM, "no memory to cut a network");
    rule->cut = true;
    (void)forget_covered(&rule->next, from, to);
    ls_simulation_note(network->simulation, "net: cut %s -> %s", name_of(from),
                       name_of(to));
    apply_cuts(network);
    network_at(network, network_now(network) + NETWORK_CUT_NS, close_long_cut,
               network);
    return LS_OK;
}

void ls_network_heal(ls_network *network, const ls_host *from,
                     const ls_host *to)
{
    /* Only what is left of wider cuts needs a rule of its own. */
    if (forget_covered(&network->cuts, from, to) &&
        add(&network->cuts, from, to) == NULL)
        network_no_memory(network);
    ls_simulation_note(network->simulation, "net: heal %s -> %s", name_of(from),
                       name_of(to));
    apply_cuts(network);
    network_at(network, network_now(network), release_held, network);
}

/* ---- resets ------------------------------------------------------------ */

static bool between(const struct connection *c, const ls_host *a,
                    const ls_host *b)
{
    const struct rule rule = {.from = a, .to = b};
    return c->server != NULL && c->client != NULL &&
           (fits(&rule, c->server->host, c->client->host) ||
            fits(&rule, c->client->host, c->server->host));
}

void ls_network_reset(ls_network *network, const ls_host *a, const ls_host *b)
{
    ls_simulation_note(network->simulation, "net: reset %s - %s", name_of(a),
                       name_of(b));
    for (struct connection *c = network->connections; c != NULL; c = c->next)
        if (between(c, a, b))
            connection_break(c, "reset");
    network_wake(network);
}
