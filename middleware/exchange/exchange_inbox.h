/* exchange_inbox.h - who sends in an exchange, and what of theirs waits to be
 * merged: the state of a receiver, without nodes, threads or time.
 *
 * A sender is a member whose role is one of `from`, or who has sent and whose
 * role is not known yet; what others send is thrown away. Its messages stay in
 * order, at most `depth` of them; a full queue loses its
 * oldest, which is counted. A member that comes back with another incarnation
 * begins anew, without what its earlier life had sent.
 * Thread: serial. */
#ifndef LOCKSTEP_EXCHANGE_INBOX_H
#define LOCKSTEP_EXCHANGE_INBOX_H

#include "lockstep/node.h"

typedef struct ls_exchange_inbox ls_exchange_inbox;

struct ls_exchange_message {
    uint32_t sender;
    uint64_t round; /* of the sender */
    void *data;     /* own: free() it */
    size_t size;
};

/* out:  own; written on success only.
 * from: a comma list; borrow, for the life of the inbox.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int ls_exchange_inbox_create(ls_exchange_inbox **out,
                                         const char *from, size_t depth);
void ls_exchange_inbox_destroy(ls_exchange_inbox **inbox);

/* What became of a member. Errors: LS_ENOMEM. */
LS_MUST_USE int ls_exchange_inbox_member(ls_exchange_inbox *inbox,
                                         const struct ls_member *member);
/* The same from a list of members: only those that are ready, and not known
 * yet, count. */
LS_MUST_USE int ls_exchange_inbox_members(ls_exchange_inbox *inbox,
                                          const struct ls_member *members,
                                          size_t n);

/* A round begins: what is of an earlier one is thrown away, now and when it
 * comes, and who has been lost so far counts as left. */
void ls_exchange_inbox_begin(ls_exchange_inbox *inbox, uint64_t round);

/* How many messages were of an earlier round. */
uint64_t ls_exchange_inbox_stale(const ls_exchange_inbox *inbox);

/* A message has come. data: copied.
 * dropped: how many of this sender's have been lost so far, when this one
 *          pushed one out; else 0.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int ls_exchange_inbox_put(ls_exchange_inbox *inbox, uint32_t sender,
                                      uint64_t incarnation, const void *data,
                                      size_t size, uint64_t *dropped);
/* The sender has sent all it will in this run. Errors: LS_ENOMEM. */
LS_MUST_USE int ls_exchange_inbox_end(ls_exchange_inbox *inbox, uint32_t sender,
                                      uint64_t incarnation, uint64_t run);

struct ls_exchange_look {
    size_t queued;  /* senders with a message */
    size_t awaited; /* senders that are there and have none, but may send */
    size_t ended;   /* senders that are there and have ended the run */
    size_t left;    /* senders that left, with LS_OK */
    size_t lost;    /* senders that were lost, or left with an error, before
                     * they ended the run, since the last take_loss() */
};
void ls_exchange_inbox_look(const ls_exchange_inbox *inbox, uint64_t run,
                            struct ls_exchange_look *out);

/* Take the oldest message of every sender that has one, in order of id. The
 * caller frees their data. Returns how many; at most `capacity`. */
size_t ls_exchange_inbox_take(ls_exchange_inbox *inbox,
                              struct ls_exchange_message *out, size_t capacity);

/* Those that are lost in this run, and have no message, count as left from now
 * on: whoever goes on, goes on without them. Returns LS_ELOST, with a text that
 * names one. */
LS_MUST_USE int ls_exchange_inbox_take_loss(ls_exchange_inbox *inbox,
                                            uint64_t run);

/* Nobody is left who could send: LS_ELOST, with a text that names one who was
 * lost or left with an error, if there is one. */
LS_MUST_USE int ls_exchange_inbox_none_left(const ls_exchange_inbox *inbox);

/* Print "node 3 (collector), node 4 (collector), which has ended its run":
 * those that are awaited, and if `ended`, those that have ended the run. */
void ls_exchange_inbox_print_awaited(const ls_exchange_inbox *inbox,
                                     uint64_t run, bool ended, char *text,
                                     size_t size);

#endif
