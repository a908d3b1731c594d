/* node_watch.h - whom a node tells what it does; for those who check it. */
#ifndef LOCKSTEP_NODE_WATCH_H
#define LOCKSTEP_NODE_WATCH_H

struct member_watch;  /* role_member.h */
struct service_watch; /* service/service_watch.h */

/* Borrow: longer than the node. NULL: nobody. */
struct node_watch {
    const struct member_watch *member;   /* of a member */
    const struct service_watch *service; /* of a node of a service cluster */
};

#endif
