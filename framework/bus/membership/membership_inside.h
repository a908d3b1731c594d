/* membership_inside.h - what the files of the membership share. */
#ifndef LOCKSTEP_BUS_MEMBERSHIP_INSIDE_H
#define LOCKSTEP_BUS_MEMBERSHIP_INSIDE_H

#include "membership.h"

/* Begin a life of a member, with empty accounts. */
void membership_begin_life(struct membership *m, struct member *member,
                           uint64_t incarnation);
/* Ready when it may be, and the world has room for it. */
void membership_settle(struct membership *m, struct member *member,
                       int64_t now);
/* If the id is free: to whoever has waited for it. */
void membership_admit_rival(struct membership *m, struct member *member,
                            int64_t now);
/* There is room again for one who was one too many. */
void membership_admit_barred(struct membership *m, int64_t now);
/* Whether a member is tried again, as there was no memory for what it says of
 * itself; and to do so. */
bool membership_puts_off(const struct membership *m,
                         const struct member *member);
void membership_take_up(struct membership *m, int64_t now);
/* Another life of a member is there, so the one known is gone. */
void membership_replace(struct membership *m, struct member *member,
                        uint64_t incarnation, int64_t now);
/* Another node has this node's id: what to do about it, and why. */
int membership_own_id(struct membership *m, uint64_t incarnation,
                      const char *endpoint);
void membership_want_rejoin(struct membership *m, const char *text);
/* Why it is not a member, to one that is here. */
void membership_tell(struct membership *m, struct member *member);
/* Whether this node is a leaf of a star. */
bool membership_is_leaf(const struct membership *m);

#endif
