/* dispatch.h - the dispatch thread: handlers run there, one at a time. */
#ifndef LOCKSTEP_BUS_DISPATCH_H
#define LOCKSTEP_BUS_DISPATCH_H

#include <stdatomic.h>

#include "lockstep/node.h"

#include "flow.h"
#include "message.h"

struct peer;
struct event_entry;

/* A local event that may share a message with others has at most so much. */
#define DISPATCH_SHORT (MESSAGE_SMALL - WIRE_BATCH_LEAD)
/* Kept for the payloads of such, when many come; more are freed. */
#define DISPATCH_PAGES 16

struct member_watch {
    struct member_watch *next;
    void (*fn)(void *self, const struct ls_member *member);
    void *self;
    uint64_t number; /* from 1 */
    bool removed;
    bool running;
    unsigned waiters; /* who wait until it does not run */
};

/* Who is told of members; under router. Of watch.c alone. */
struct watches {
    struct member_watch *first;
    uint64_t n; /* that ever were */
};

/* The last message of the queue, while more events may join it: short ones of
 * this node, of the same name. */
struct local_batch {
    struct message *message; /* NULL: there is none */
    uint8_t *at, *end;       /* where their payloads go */
};

/* Of dispatch.c alone. */
struct dispatch {
    ls_mutex lock;
    struct message_list queue;
    struct account local; /* local emits in the queue */
    struct local_batch batch;
    struct message_list spare; /* empty messages, for local emits */
    size_t peak;
    bool waiting;
    bool closed;
    size_t n_pages;
    uint8_t *pages[DISPATCH_PAGES]; /* own */
    ls_cond filled;                 /* for the dispatch thread */
    ls_cond room;                   /* for emitters to this node itself */
    struct message_list held;       /* by the gate; of the dispatch thread */
    uint64_t marks;                 /* that were queued: dispatch_mark() */
    uint64_t passed;                /* the last of them that was come to; of the
                                     * dispatch thread */
    bool open;         /* the gate is asked no more; of the dispatch thread */
    ls_thread *thread; /* until destroy: others ask whether they run on it */
    bool ended;
    ls_trace_mark *mark;       /* own; NULL: nothing is recorded */
    atomic_int interrupted;    /* what waits return, until cleared; LS_OK */
    struct ls_failure failure; /* the first not taken; under router */
};

int dispatch_init(ls_node *node);
int dispatch_start(ls_node *node);
/* Let what is queued be handled, then end the thread. */
void dispatch_stop(ls_node *node);
void dispatch_fini(ls_node *node);
void dispatch_add(ls_node *node, struct message_list *list);
/* Mark what is queued now: returns the number of a mark behind it. 0: without
 * memory, or stopped: there is none. */
uint64_t dispatch_mark(ls_node *node);
/* Queue a local event of at most DISPATCH_SHORT bytes. It waits for room until
 * that is due, and without it not at all. Errors: LS_EAGAIN, LS_ECLOSED,
 * LS_ENOMEM; what interrupted it.
 */
int dispatch_emit(ls_node *node, struct event_entry *entry, const void *data,
                  size_t size, struct ls_due *due);
/* The same in two steps, of any size: room, and a message that says whose it
 * is. That is then queued, or given up. */
int dispatch_reserve(ls_node *node, struct event_entry *entry, size_t bytes,
                     struct ls_due *due, struct message **out);
/* data: of one that is short; others have their payload already. */
void dispatch_fill(ls_node *node, struct message *message, const void *data);
/* What needs no room. */
void dispatch_append(ls_node *node, struct message *message);
/* For what needs no room. Errors: LS_ECLOSED, and the message is given back. */
int dispatch_offer(ls_node *node, struct message *message);
void dispatch_give_up(ls_node *node, struct message *message);
/* What waits returns this, until it is LS_OK again. */
void dispatch_interrupt(ls_node *node, int status);
bool dispatch_is_current(const ls_node *node);

/* Note an error for ls_node_take_error() and whoever waits. */
void dispatch_keep_error(ls_node *node, int status);
/* What is kept, for one caller; and back, as the first of all. Router held. */
int dispatch_take_error(ls_node *node);
void dispatch_put_back(ls_node *node, const struct ls_failure *failure);
/* The same of n reliable events that a lost peer may not have got. */
void dispatch_lost(ls_node *node, const struct peer *peer, const char *event,
                   uint64_t n);

/* watch.c. A MESSAGE_MEMBER. Dispatch thread. */
void watch_members(ls_node *node, const struct message *message);
void watch_free(struct watches *watches);

#endif
