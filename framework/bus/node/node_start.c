/* A node on the network: opening, and joining a world. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bus.h"
#include "credentials.h"
#include "runtime_network.h"
#include "shared_memory.h"
#include "text_pieces.h"

#define MAX_SILENT 8
/* When it is looked whether waiting makes sense, first and then. */
#define LOOK_MS       1000
#define LOOK_AGAIN_MS 5000
/* How often it is said who is missing. */
#define SAY_MS  2000
#define WHY_MAX 256

/* ---- open -------------------------------------------------------------- */

static void subscribe_from_start(ls_node *node)
{
    atomic_store(&node->table.interests_changed, false);
    for (struct event_entry *entry = NULL;
         (entry = events_next(node, entry)) != NULL;) {
        entry->subscribed = entry->wanted;
        entry->begun = false;
    }
}

/* Who may speak here, if the user has not said so: whoever knows the secret of
 * this job on this host. */
static int choose_security(ls_node *node)
{
    const bool simulated = ls_runtime_network(node->runtime) != NULL;
    if (node->security != NULL || (simulated && !node->options.insecure))
        return LS_OK;
    const int status =
        node->options.insecure || transport_in_process(node->me.bind)
            ? ls_security_none(&node->own_security)
            : ls_security_job(&node->own_security, node->me.job);
    node->security = node->own_security;
    return status;
}

static int open_transport(ls_node *node)
{
    while (node->me.incarnation == 0)
        node->me.incarnation = ls_entropy(node->runtime);
    membership_begin(&node->world, node->me.incarnation);
    return transport_open(&node->transport,
                          &(struct transport_options){
                              .runtime = node->runtime,
                              .bind = node->me.bind,
                              .advertise = node->me.endpoint,
                              .id = node->options.id,
                              .incarnation = node->me.incarnation,
                              .security = node->security,
                              .max_message_bytes = WIRE_CHUNK_BYTES + 65536,
                              .max_under_way = 2 * FLOW_UNDER_WAY_MAX,
                              .linger_ms = node->options.linger_ms},
                          node->me.bound);
}

/* Where no memory can be shared, a node has none to share it with. */
static void find_host(ls_node *node)
{
    char folder[LS_OFFER_PATH_BYTES];
    const bool may = node->options.shared_bytes != 0 &&
                     node->options.topology != LS_TOPOLOGY_STAR &&
                     !transport_in_process(node->me.endpoint);
    if (may && ls_offer_folder(node->runtime, folder, sizeof folder,
                               &node->me.host) != LS_OK)
        ls_log_info("bus: node %u shares no memory: %s", node->options.id,
                    ls_error_text());
}

static int begin_open(ls_node *node)
{
    ls_mutex_lock(&node->life.lock);
    const bool stopped = node_is_stopping(node);
    const bool before = node->phase != NODE_CREATED || node->life.opening;
    node->life.opening = node->life.opening || (!stopped && !before);
    ls_mutex_unlock(&node->life.lock);
    if (stopped)
        return ls_error(LS_ECLOSED, "node %u was stopped", node->options.id);
    if (before)
        return ls_error(LS_ESTATE, "node %u was started before",
                        node->options.id);
    return LS_OK;
}

static void end_open(ls_node *node)
{
    ls_mutex_lock(&node->life.lock);
    node->life.opening = false;
    ls_cond_broadcast(&node->life.changed);
    ls_mutex_unlock(&node->life.lock);
}

static int open_node(ls_node *node)
{
    int status = choose_security(node);
    if (status == LS_OK && node->security != NULL)
        status = credentials_check_own(node->security, node->options.id,
                                       node->me.role, node->me.labels);
    if (status == LS_OK)
        status = open_transport(node);
    if (status != LS_OK)
        return ls_error_at(status, "node %u", node->options.id);
    if (node->me.endpoint[0] == '\0')
        memcpy(node->me.endpoint, node->me.bound, sizeof node->me.endpoint);
    find_host(node);
    status = links_sign(node);
    if (status != LS_OK)
        return ls_error_at(status, "node %u", node->options.id);
    ls_mutex_lock(&node->router.lock);
    subscribe_from_start(node);
    ls_mutex_unlock(&node->router.lock);
    world_allow(node);
    node->phase = NODE_OPEN;
    status = dispatch_start(node);
    if (status == LS_OK)
        status = bus_start(node);
    if (status == LS_OK)
        ls_log_info("bus: node %u of job %s is at %s", node->options.id,
                    node->me.job, node->me.endpoint);
    return status;
}

int ls_node_open(ls_node *node)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    int status = begin_open(node);
    if (status != LS_OK)
        return status;
    status = open_node(node);
    end_open(node);
    return status;
}

/* ---- join -------------------------------------------------------------- */

static bool is_ready(ls_node *node, uint32_t id)
{
    const struct member *member = membership_find(&node->world, id);
    return id == node->options.id ||
           (member != NULL && membership_has_both_ways(member));
}

static bool formed(ls_node *node)
{
    if (node->join.members == NULL)
        return membership_n_both_ways(&node->world) + 1 >=
               node->options.world_size;
    for (uint32_t i = 0; i < node->options.world_size; i++)
        if (!is_ready(node, node->join.members[i]))
            return false;
    return true;
}

/* Of the world: others do not count where its members are named. Lock held. */
static size_t n_formed(ls_node *node)
{
    size_t n = 0;
    if (node->join.members == NULL)
        return membership_n_both_ways(&node->world) + 1;
    for (uint32_t i = 0; i < node->options.world_size; i++)
        n += is_ready(node, node->join.members[i]) ? 1 : 0;
    return n;
}

/* Who is missing, in words; before: what stands before the first. Lock held. */
static void name_missing(ls_node *node, const char *before, struct text *text)
{
    const char *word = "node ";
    if (node->join.members == NULL) {
        text_add(text, "%s%zu more", before,
                 node->options.world_size - 1 -
                     membership_n_both_ways(&node->world));
        return;
    }
    for (uint32_t i = 0; i < node->options.world_size; i++) {
        if (is_ready(node, node->join.members[i]))
            continue;
        text_add(text, "%s%s%" PRIu32, before, word, node->join.members[i]);
        const struct member *member =
            membership_find(&node->world, node->join.members[i]);
        if (member != NULL && member->n_present != 0)
            text_add(text, " (its presence is here, but it does not list this "
                           "node)");
        before = ", ";
        word = "";
    }
}

/* Who was here and has gone, and why: it may be why the others wait. Lock
 * held. */
static void name_ended(ls_node *node, struct text *text)
{
    size_t n = 0;
    for (size_t i = 0; i < node->world.n && n < MAX_SILENT; i++) {
        const struct member *member = node->world.at[i];
        if (!member_has_ended(member) || membership_has(member))
            continue;
        text_add(text, "; node %" PRIu32 "%s was here, and %s", member->id,
                 member->as_role,
                 member->state == LS_MEMBER_LOST ? "is lost" : "left with ");
        if (member->state == LS_MEMBER_LEFT)
            text_add(text, "%s", ls_status_name(member->reason));
        n++;
    }
}

struct silent {
    char endpoint[LS_ENDPOINT_MAX + 1];
    char refusal[192];
    bool attached, known;
    uint32_t id; /* if known */
    bool answers;
    uint32_t who; /* that does */
};

/* The addresses that nobody of this world answers at. */
static size_t silent_links(ls_node *node, struct silent *out, size_t capacity)
{
    size_t n = 0;
    for (struct link *l = node->links; l != NULL && n < capacity; l = l->next) {
        if (l->peer != NULL && l->peer->member.state == LS_MEMBER_READY)
            continue;
        memcpy(out[n].endpoint, l->endpoint, sizeof out[n].endpoint);
        memcpy(out[n].refusal, l->refusal, sizeof out[n].refusal);
        out[n].attached = l->attached;
        out[n].known = l->known;
        out[n].id = l->id;
        out[n].answers = l->peer != NULL && l->peer->member.away_at == 0 &&
                         !member_has_ended(&l->peer->member);
        out[n].who = l->peer != NULL ? l->peer->member.id : 0;
        n++;
    }
    return n;
}

static bool explain(ls_node *node, const struct silent *link, char *why)
{
    return transport_explain(node->transport, link->endpoint, link->known,
                             link->id, why, WHY_MAX);
}

/* Whether waiting does not help: nobody is here, and whoever listens at the
 * addresses that the user gave does not let this node in, for this reason; else
 * there is none. */
static bool is_shut_out(ls_node *node, char *why)
{
    struct silent silent[MAX_SILENT];
    bool shut_out = false;
    transport_lock(node->transport);
    const bool alone = membership_n_ready(&node->world) == 0;
    const size_t n = silent_links(node, silent, MAX_SILENT);
    transport_unlock(node->transport);
    for (size_t i = 0; i < n && alone; i++) {
        if (!silent[i].attached)
            continue;
        shut_out = explain(node, &silent[i], why);
        if (!shut_out)
            break;
    }
    if (!shut_out)
        why[0] = '\0';
    return shut_out;
}

/* Who answers is dialled; that it has not come is for want of a way back. */
static void append_silent(const ls_node *node, struct text *text,
                          const struct silent *link, const char *why)
{
    const char *here = node->me.endpoint;
    const bool only_here =
        transport_leaves_host(link->endpoint) && !transport_leaves_host(here);
    if (link->refusal[0] != '\0')
        text_add(text, "; %s: %s", link->endpoint, link->refusal);
    else if (link->answers)
        text_add(text,
                 "; %s: node %" PRIu32
                 " answers, and has not come here, to %s%s",
                 link->endpoint, link->who, here,
                 only_here ? ", which is of this host alone: see `bind` and "
                             "`advertise`"
                           : "");
    else
        text_add(text, "; %s: %s", link->endpoint,
                 why[0] != '\0' ? why : "no answer");
}

/* shut_out: why waiting does not help; "": it has been waited for long enough.
 */
static int not_formed(ls_node *node, const char *shut_out)
{
    char buffer[LS_ERROR_TEXT_MAX - 200], within[64] = "";
    struct text text = {buffer, sizeof buffer, 0};
    struct silent silent[MAX_SILENT];
    buffer[0] = '\0';
    transport_lock(node->transport);
    const size_t ready = n_formed(node);
    const bool alone = membership_n_ready(&node->world) == 0;
    name_missing(node, " missing: ", &text);
    name_ended(node, &text);
    const size_t n = silent_links(node, silent, MAX_SILENT);
    char refusal[sizeof node->refusals.last], hint[sizeof node->world.hint];
    memcpy(refusal, node->refusals.last, sizeof refusal);
    memcpy(hint, node->world.hint, sizeof hint);
    transport_unlock(node->transport);
    /* Who waits for others cannot know whom it has refused. Who has an address
     * of theirs learns there what is wrong: a stranger changes nothing. */
    bool mismatch = refusal[0] != '\0' && alone && n == 0;
    bool said = false; /* what a hint of them would say, in more words */
    for (size_t i = 0; i < n; i++) {
        char why[WHY_MAX];
        bool refused = explain(node, &silent[i], why);
        if (!refused && silent[i].attached && shut_out[0] != '\0') {
            /* It has said so before, and does not answer now. */
            snprintf(why, sizeof why, "%s", shut_out);
            refused = true;
        }
        append_silent(node, &text, &silent[i], why);
        said = said || (silent[i].answers && silent[i].refusal[0] == '\0');
        mismatch =
            mismatch || (alone && (refused || silent[i].refusal[0] != '\0'));
    }
    if (refusal[0] != '\0')
        text_add(&text, "; refused: %s", refusal);
    if (hint[0] != '\0' &&
        !(said && node->options.topology == LS_TOPOLOGY_MESH))
        text_add(&text, "; %s", hint);
    if (shut_out[0] == '\0')
        snprintf(within, sizeof within, " within %d ms (start_timeout_ms)",
                 node->options.start_timeout_ms);
    return ls_error(mismatch ? LS_EMISMATCH : LS_EUNREACHABLE,
                    "node %u: the world was not formed%s: %zu of %u nodes are "
                    "ready;%s",
                    node->options.id, within, ready, node->options.world_size,
                    buffer);
}

/* Tell whoever wants to know, without the lock, and say when next. */
static int64_t say_missing(ls_node *node)
{
    char buffer[LS_ERROR_TEXT_MAX] = "";
    struct text text = {buffer, sizeof buffer, 0};
    transport_lock(node->transport);
    name_missing(node, "", &text);
    transport_unlock(node->transport);
    if (buffer[0] != '\0')
        node->options.waiting(node->options.waiting_self, buffer);
    return ls_deadline(node->runtime, SAY_MS);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Lock held. shut_out: WHY_MAX bytes, for why waiting does not help. */
static void wait_for_members(ls_node *node, int64_t deadline, char *shut_out)
{
    int64_t look_at = ls_deadline(node->runtime, LOOK_MS);
    int64_t say_at = node->options.waiting != NULL
                         ? ls_deadline(node->runtime, SAY_MS)
                         : LS_FOREVER;
    struct ls_due due = due_at(node, deadline);
    int status = LS_OK;
    while (!formed(node) && node->world.fatal == LS_OK &&
           !node_is_stopping(node) && status == LS_OK &&
           ls_node_interrupted(node) == LS_OK) {
        const int64_t until = earlier(due.at, earlier(look_at, say_at));
        status = ls_cond_wait(&node->changed, transport_mutex(node->transport),
                              until);
        if (status == LS_OK || due_has_passed(node, &due))
            continue;
        transport_unlock(node->transport);
        status = LS_OK;
        if (until == say_at)
            say_at = say_missing(node);
        if (until == look_at) {
            status = is_shut_out(node, shut_out) ? LS_EMISMATCH : LS_OK;
            look_at = ls_deadline(node->runtime, LOOK_AGAIN_MS);
        }
        transport_lock(node->transport);
    }
}

static int wait_formed(ls_node *node, int64_t deadline)
{
    char shut_out[WHY_MAX] = "";
    transport_lock(node->transport);
    wait_for_members(node, deadline, shut_out);
    const bool is_formed = formed(node);
    node->world.formed = is_formed;
    char fatal[LS_ERROR_TEXT_MAX];
    memcpy(fatal, node->world.fatal_text, sizeof fatal);
    const int why = node->world.fatal;
    transport_unlock(node->transport);
    if (why != LS_OK)
        return ls_error(why, "%s", fatal);
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED,
                        "node %u was stopped before its world was "
                        "formed",
                        node->options.id);
    if (is_formed)
        return LS_OK;
    const int interrupted = ls_node_interrupted(node);
    return interrupted != LS_OK
               ? ls_error(interrupted,
                          "node %u was interrupted before its world was formed",
                          node->options.id)
               : not_formed(node, shut_out);
}

/* Of a node that is in its world, what cannot be dialled now is dialled later:
 * nobody else may know of it. */
void join_dial(ls_node *node)
{
    if (!atomic_exchange(&node->join.dial_wanted, false))
        return;
    for (size_t i = 0; i < node->join.n_attach; i++) {
        const struct attach *to = &node->join.attach[i];
        const int status =
            link_dial(node, to->endpoint, true, to->known, to->id);
        if (status != LS_OK && node->world.formed)
            atomic_store(&node->join.dial_wanted, true);
        else if (status != LS_OK)
            membership_fail(&node->world, status, ls_error_text());
    }
    ls_cond_broadcast(&node->changed);
}

static int begin_join(ls_node *node)
{
    ls_mutex_lock(&node->life.lock);
    const enum node_phase was = node->phase;
    const bool may = was == NODE_OPEN && !node->life.opening;
    if (may)
        node->phase = NODE_JOINED;
    ls_mutex_unlock(&node->life.lock);
    if (was == NODE_STOPPED)
        return ls_error(LS_ECLOSED, "node %u was stopped", node->options.id);
    if (!may)
        return ls_error(LS_ESTATE, "node %u is not open, or joined before",
                        node->options.id);
    return LS_OK;
}

int ls_node_join(ls_node *node)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    const int64_t deadline =
        ls_deadline(node->runtime, node->options.start_timeout_ms);
    const int status = begin_join(node);
    if (status != LS_OK)
        return status;
    atomic_store(&node->join.dial_wanted, true);
    node_wake(node);
    return wait_formed(node, deadline);
}

int ls_node_start(ls_node *node)
{
    const int status = ls_node_open(node);
    return status == LS_OK ? ls_node_join(node) : status;
}
