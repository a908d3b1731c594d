/* Who answers at an address that this node dialled.
 *
 * A link subscribes to a challenge of its own, before all else; whoever listens
 * answers with a proof: who he is, and a hash that only one who has the secret
 * can make, for this challenge, at this address. Until then nothing that comes
 * over the link counts, and again after its connection was made anew: another
 * process may answer there by then. So a link is always that of the node that
 * has proved to answer there, in the life in which it did, and what it says of
 * itself later goes on from there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bus.h"
#include "credentials.h"
#include "text_cut.h"

/* A proof for each address of this node: the dialler knows which it dialled. */
static size_t prove(const ls_node *node, const char *challenge, uint8_t *out)
{
    const char *const addresses[] = {node->me.bound, node->me.endpoint};
    char last[LS_ENDPOINT_MAX + 1] = "";
    size_t size = 0;
    for (size_t i = 0; i < 2 && node->security != NULL; i++) {
        struct credentials_claim claim = {.id = node->options.id,
                                          .incarnation = node->me.incarnation};
        transport_canonical(addresses[i], claim.address);
        if (strcmp(claim.address, last) == 0)
            continue;
        memcpy(last, claim.address, sizeof last);
        size +=
            credentials_prove(node->security, challenge, &claim, out + size);
    }
    return size;
}

void answer_challenge(ls_node *node, const uint8_t *topic, size_t size)
{
    uint8_t head[WIRE_HEAD_MAX], proof[2 * CREDENTIALS_PROOF_BYTES];
    char challenge[WIRE_CHALLENGE_SIZE + 1];
    if (size != WIRE_CHALLENGE_SIZE + 2 || topic[size - 1] != '\0' ||
        strlen((const char *)topic) != size - 1)
        return; /* nobody who is honest waits for an answer to that */
    memcpy(challenge, topic + 1, sizeof challenge);
    struct wire_header header = bus_header(node, WIRE_KIND_PROOF);
    header.name = node->me.job;
    header.name_size = strlen(node->me.job);
    header.size = prove(node, challenge, proof);
    header.data = proof;
    size_t n = wire_topic_challenge(head, challenge);
    n += wire_header_write(head + n, &header);
    (void)transport_publish(node->transport, head, n, proof, header.size);
}

/* ---- the dialler ------------------------------------------------------- */

static bool is_proved(const ls_node *node, const struct link *link,
                      const struct wire_header *header)
{
    struct credentials_claim claim = {.id = header->origin,
                                      .incarnation = header->incarnation};
    const size_t one = CREDENTIALS_PROOF_BYTES;
    if (node->security == NULL || transport_in_process(link->endpoint) ||
        ls_security_mode(node->security) != LS_SECURITY_PLAIN)
        return true;
    transport_canonical(link->endpoint, claim.address);
    for (size_t at = 0; header->data != NULL && at + one <= header->size;
         at += one)
        if (credentials_proved(node->security, link->challenge, &claim,
                               header->data + at, one))
            return true;
    return false;
}

static void refuse(ls_node *node, struct link *link, enum ls_refusal_kind kind)
{
    text_cut(link->refusal, sizeof link->refusal, ls_error_text());
    refusals_note(&node->refusals, kind, link->endpoint, 1, node->loop.now);
}

/* Waiting longer does not help, if nobody at any of the given addresses is of
 * this world. */
void answer_mismatch(ls_node *node, struct link *link)
{
    char text[LS_ERROR_TEXT_MAX];
    refuse(node, link, LS_REFUSAL_WORLD);
    if (!link->attached || membership_n_ready(&node->world) != 0)
        return;
    for (const struct link *l = node->links; l != NULL; l = l->next)
        if (l->attached && l->refusal[0] == '\0')
            return;
    snprintf(text, sizeof text, "node %u: %s answers, but %s", node->options.id,
             link->endpoint, link->refusal);
    membership_fail(&node->world, LS_EMISMATCH, text);
    ls_cond_broadcast(&node->changed);
}

/* Two addresses of one node: the older link stays, if it serves. Where another
 * life of it was, that or somebody else may come back. */
static bool is_better(ls_node *node, struct link *link, struct peer *peer)
{
    struct link *old = peer->link;
    if (old == NULL || old == link || old->closing)
        return true;
    if (old->life != peer->member.incarnation) {
        old->closing = !old->attached;
        return true;
    }
    const bool stays = link_serves(node, old);
    struct link *better = stays ? old : link;
    struct link *other = stays ? link : old;
    better->attached = better->attached || other->attached;
    other->closing = true;
    return !stays;
}

static void bind(ls_node *node, struct link *link, struct peer *peer)
{
    if (link->peer != peer)
        link_unbind(node, link);
    if (peer->link != NULL && peer->link != link)
        peer->link->peer = NULL;
    link->peer = peer;
    link->life = peer->member.incarnation;
    peer->link = link;
    peer->member.linked = true;
    if (link->attached)
        membership_attached(&node->world, &peer->member, node->loop.now);
    link->refusal[0] = '\0';
    link->same_id = false;
    link->redial_ns = LINK_REDIAL_NS;
    if (!member_has_ended(&peer->member))
        link_present(node, link);
}

/* Whether it answers what the connection that the link has now asks. */
static bool is_asked(const struct link *link, const struct message *message)
{
    return link->transport != NULL &&
           memcmp(message->head + 1, link->challenge, WIRE_CHALLENGE_SIZE) == 0;
}

static void on_answer(ls_node *node, struct link *link,
                      const struct message *message,
                      const struct wire_header *header)
{
    struct member *member = NULL;
    const struct answer answer = {
        .id = header->origin,
        .incarnation = header->incarnation,
        .expected = link->known,
        .as = link->id,
        .endpoint = link->endpoint,
        .member = link->peer == NULL ? NULL : &link->peer->member};
    const int status =
        membership_answers(&node->world, &answer, node->loop.now, &member);
    if (status == LS_ESTATE) { /* another name of our own address */
        link->closing = true;
        return;
    }
    if (!is_asked(link, message)) /* by that it was dialled as another */
        return;
    link->same_id = header->origin == node->options.id;
    if (link->same_id) /* what it says of this is heard, and nothing else */
        transport_link_trust(link->transport, message);
    if (status != LS_OK) {
        if (status == LS_EEXIST) /* it may be the next, soon */
            link->ask_at = node->loop.now + LINK_ASK_NS;
        refuse(node, link,
               status == LS_EPROTO ? LS_REFUSAL_IDENTITY : LS_REFUSAL_WORLD);
        return;
    }
    struct peer *peer = peer_of(member);
    if (flow_open(peer) != LS_OK) {
        refuse(node, link, LS_REFUSAL_WORLD);
        return;
    }
    if (!is_better(node, link, peer))
        return;
    transport_link_trust(link->transport, message);
    link->heard_at = node->loop.now;
    bind(node, link, peer);
}

void answer_read(ls_node *node, struct link *link,
                 const struct message *message,
                 const struct wire_header *header)
{
    bus_look_after(node);
    if (link->closing)
        return;
    if (header->kind != WIRE_KIND_PROOF) {
        /* What was published before the proof was: it is nobody's yet. */
        if (header->kind != WIRE_KIND_HEARTBEAT)
            atomic_fetch_add_explicit(&node->figures.early, 1,
                                      memory_order_relaxed);
        return;
    }
    if (header->job != node->me.job_hash) {
        (void)ls_error(LS_EMISMATCH,
                       "it belongs to job \"%.*s\", this is job \"%s\"",
                       (int)header->name_size, header->name, node->me.job);
        answer_mismatch(node, link);
        return;
    }
    if (!is_asked(link, message) || !is_proved(node, link, header)) {
        (void)ls_error(LS_EPROTO,
                       "what listens there cannot prove to be node "
                       "%" PRIu32,
                       header->origin);
        refuse(node, link, LS_REFUSAL_STRANGER);
        return;
    }
    on_answer(node, link, message, header);
}

struct peer *answer_origin(ls_node *node, struct link *link,
                           const struct wire_header *header, bool *early)
{
    struct member *member = NULL;
    if (link->peer == NULL)
        return NULL;
    const int status =
        membership_origin(&node->world, &link->peer->member, header->origin,
                          header->incarnation, node->loop.now, &member, early);
    if (member != NULL && peer_of(member) == link->peer)
        link->life = header->incarnation;
    if (status == LS_EPROTO)
        refuse(node, link, LS_REFUSAL_IDENTITY);
    else if (status != LS_OK && header->origin != node->options.id)
        refusals_note(&node->refusals, LS_REFUSAL_STALE, link->endpoint, 1,
                      node->loop.now);
    return member == NULL ? NULL : peer_of(member);
}
