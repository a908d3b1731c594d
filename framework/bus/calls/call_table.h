/* call_table.h - the open calls of a node, as a state machine: messages, times
 * and losses go in, ends come out. No lock, socket or clock.
 *
 * A call is in the table from its start to its end, and leaves it once: what
 * comes for it afterwards finds nothing, and is counted. It is known by its
 * number, by whom it was sent to in which life, and by the life of this node
 * that sent it; a message that differs in any of these is not for it.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_CALL_TABLE_H
#define LOCKSTEP_BUS_CALL_TABLE_H

#include "call_wire.h"
#include "open_calls.h"

struct call_table {
    struct open_calls open;
    size_t most;
    uint64_t most_bytes; /* of the bodies of one member's answers, until they
                          * have come */
    uint64_t last_number;
    uint64_t stale; /* messages */
};

/* Errors: LS_ENOMEM. */
int call_table_init(struct call_table *table, size_t most, uint64_t most_bytes);
void call_table_fini(struct call_table *table);

/* Take a call in, as starting; due.at, peer, life and own are filled. It gets
 * its number. Errors: LS_EAGAIN `most` are open; LS_ENOMEM. */
LS_MUST_USE int call_table_add(struct call_table *table,
                               struct open_call *call);

/* A message other than a request or a cancel came. Returns the call that it
 * has ended, which is out of the table, or NULL. A body that is too long ends
 * it as failed. Or that of which it began the answer, which has a body: the
 * owner ends it when that has come. */
struct open_call *call_table_receive(struct call_table *table, uint32_t from,
                                     uint64_t life,
                                     const struct call_message *message);

/* End it for a reason of this side's own; it leaves the table. */
void call_table_end(struct call_table *table, struct open_call *call,
                    enum ls_call_state state);

/* A member was lost, or has left: so are its calls. */
void call_table_lose(struct call_table *table, uint32_t id, uint64_t life,
                     open_call_fn *fn, void *self);
/* This node was declared lost: so are those of its earlier lives. */
void call_table_renew(struct call_table *table, uint64_t own, open_call_fn *fn,
                      void *self);
/* End one whose deadline has passed, and return it; NULL: there is none. */
struct open_call *call_table_expire(struct call_table *table, int64_t now);

#endif
