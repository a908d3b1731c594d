/* world.h - what this node does about what becomes of members. Bus thread, lock
 * held. */
#ifndef LOCKSTEP_BUS_WORLD_H
#define LOCKSTEP_BUS_WORLD_H

#include "peer.h"

/* Changes that are to be told, as they were. Of world.c alone. */
struct news {
    struct ls_member *at; /* own */
    size_t n;
};

extern const struct membership_ops world_ops;
struct peer *world_find(const ls_node *node, uint32_t id);

/* Tell channels and users, later and outside the lock. */
void world_tell(ls_node *node, const struct member *member);
/* Tell what has changed: channels at once, users in order with the events that
 * came before. Lock not held. */
void world_tell_news(ls_node *node);
/* Dial a member, or (NULL) one that another speaks of, where it is said to be;
 * unless it is reached elsewhere. Returns false: that address is not dialled.
 */
bool world_dial(ls_node *node, struct member *member, uint32_t id,
                const char *endpoint);
void world_probe(ls_node *node);
void world_member(const struct member *member, struct ls_member *out);
/* Memory that may wait for those who read, as many as there are now. */
void world_allow(ls_node *node);

/* subscriptions.c: what a subscription of a peer says. */
void refuse_speaker(ls_node *node, const struct speaker *by,
                    enum ls_refusal_kind kind);
void subscription_read(ls_node *node, const uint8_t *topic, size_t size,
                       bool subscribed, const struct speaker *by);

/* What a hub has shown and this node does not believe, with the certificates
 * that it has. Of subscriptions.c alone. */
struct doubts {
    struct doubt *first; /* own */
    int64_t look_at;     /* again */
};
/* Believe what is right by now; returns when to look again. */
int64_t doubts_tick(ls_node *node, int64_t now);
void doubts_fini(ls_node *node);

/* rejoin.c: go on as a new incarnation, if that is due. Bus thread, lock
 * held. */
void rejoin(ls_node *node);

#endif
