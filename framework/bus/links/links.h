/* links.h - dialled addresses, what is subscribed on them, and who answers
 * there. links.c owns the list and each of its fields but for who answers,
 * which is of answers.c. */
#ifndef LOCKSTEP_BUS_LINKS_H
#define LOCKSTEP_BUS_LINKS_H

#include "events.h"
#include "peer.h"
#include "transport.h"
#include "wire.h"

/* libzmq connects again by itself, unless who answered once made no sense to
 * it, or refused this node's key; then only a new socket helps, after so long
 * and then twice as long. */
#define LINK_REDIAL_NS (2 * LS_NS_PER_S)
/* At first, where there are keys: the other may be told of this node's in a
 * moment. */
#define LINK_REDIAL_KEYS_NS (25 * LS_NS_PER_MS)
/* A proof is published once, to whoever asks; one that is lost is asked for
 * again over a silent link, after so long, and then twice as long, up to a
 * maximum. */
#define LINK_ASK_NS     (50 * LS_NS_PER_MS)
#define LINK_ASK_MAX_NS (LS_NS_PER_S / 2)

/* A dialled address. Bus thread; the lock for the list. */
struct link {
    struct link *next;
    char endpoint[LS_ENDPOINT_MAX + 1];
    transport_link *transport; /* own; NULL: there was no socket for it, and it
                                * is dialled again */
    uint64_t number;           /* only this node and who answers know it */
    char challenge[WIRE_CHALLENGE_SIZE + 1]; /* to be answered with a proof */
    bool known;                              /* it was dialled as: */
    uint32_t id;                             /* this node */
    struct peer *peer; /* who has proved to answer there; NULL: nobody has */
    uint64_t life;     /* in which that one has last spoken over it */
    bool attached;     /* the user gave it; else found */
    bool hearsay;      /* another spoke of it, and that is all that is known */
    bool withdrawn;    /* this node's presence is not in force there */
    bool closing;
    bool same_id;      /* another node with this node's id answers there */
    int64_t heard_at;  /* over it, or when it was dialled */
    int64_t named_at;  /* by others, last */
    int64_t ask_at;    /* for the proof, again, */
    int64_t ask_ns;    /* after so long */
    int64_t redial_ns; /* after so long without a word it is dialled anew */
    char refusal[192]; /* why who answers is not accepted; "" */
};

/* answers.c: who answers at a dialled address. Bus thread, lock held. */
/* A challenge was subscribed to. */
void answer_challenge(ls_node *node, const uint8_t *topic, size_t size);
/* A message over a link whose connection is not proved; it may be the proof. */
void answer_read(ls_node *node, struct link *link,
                 const struct message *message,
                 const struct wire_header *header);
/* The peer that a message over a proved link came from, or NULL: refused. */
struct peer *answer_origin(ls_node *node, struct link *link,
                           const struct wire_header *header, bool *early);
/* Whoever answers at the given addresses is of no use: joining may end. */
void answer_mismatch(ls_node *node, struct link *link);

/* links.c: dialled addresses, and what is subscribed on them. */
struct link *link_find(ls_node *node, const char *endpoint);
/* known: the node of that id is to answer there. */
int link_dial(ls_node *node, const char *endpoint, bool attached, bool known,
              uint32_t id);
/* Whether who has proved to answer there still speaks over it, in the life that
 * is known. */
bool link_serves(const ls_node *node, const struct link *link);
/* Who answered there does so no more: it is dialled where it says to be. */
void link_unbind(ls_node *node, struct link *link);
/* Who answers there is gone: it closes, or waits for another to be shown. */
void link_retire(ls_node *node, struct link *link, bool left);
void link_present(ls_node *node, struct link *link);
/* This node stood still for so long: it could hear nobody. Before the tick. */
void links_excuse(ls_node *node, int64_t late, int64_t now);
/* Dial anew where nobody has been heard for long; returns when to look again.*/
int64_t links_tick(ls_node *node, int64_t now);
void links_close_marked(ls_node *node);
/* Announce another incarnation of this node, and take the present one back. */
void links_renew(ls_node *node, uint64_t incarnation);
/* Subscribe to a topic there, or take that back. Lock held. */
int link_subscribe(struct link *link, const uint8_t *topic, size_t size,
                   bool on);
/* Say over a link that this node, or a leaf of it, listens; or does no more.
 * Lock held. */
int link_listen(struct link *link, uint32_t id, const struct event_entry *entry,
                enum listening how);
/* Bring subscriptions in line with what is listened to. */
void links_sync_interests(ls_node *node);
/* Sign the presence of this life, where leaves are relayed. Errors: those of
 * credentials_sign(). */
int links_sign(ls_node *node);

#endif
