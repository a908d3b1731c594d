/* blocks.h - large payloads to the nodes of this host, through shared memory.
 *
 * Each node that has any to send to a node of its host, or gets any from one,
 * has a memory: rows, in which it says what it has read (block_row.h), blocks,
 * in which payloads lie while others read them (block_pool.h), and lines, of
 * messages (lines.h). Two nodes that have each other's memory are a pair. They
 * become one when the first large payload asks for it, or the first message for
 * a line; until then, and where they cannot, both go as they always did.
 * Thread: any, the lock is held, unless a function says otherwise. */
#ifndef LOCKSTEP_BUS_BLOCKS_H
#define LOCKSTEP_BUS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/node.h"

#include "block_pool.h"
#include "wire.h"

struct block_pair;
struct blocks;
struct message;
struct payload;
struct peer;

/* Shorter payloads are copied through the network sooner than two nodes have
 * told each other of a block. */
#define BLOCK_LEAST_BYTES (64u * 1024u)
/* What travels in place of a payload: an array of five uint 64. */
#define BLOCK_HANDLE_BYTES 46

/* A block that is being filled. */
struct block_draft {
    enum block_use use;
    bool filled; /* what goes there lies there already */
    unsigned slot;
    size_t offset;
    void *data;
};

/* A payload that came as a handle. */
struct block_loan {
    const uint8_t *data; /* borrow, until blocks_give_back(hold) */
    size_t size;
    size_t charge; /* in windows */
    void *hold;
};

/* ---- lending ----------------------------------------------------------- */

/* Whether a payload to all of these can go through a block. Those that have no
 * pair with this node yet are asked for one. */
bool blocks_reach(ls_node *node, struct peer *const *to, size_t n, size_t size);
/* For how much such a payload counts in the window of this peer. */
size_t blocks_charge(const struct peer *peer, size_t size);
/* Room for a payload. Returns false, and counts it: there is none.
 * given: where it lies, if nobody will write there any more, or NULL: in memory
 *        of ls_payload_alloc() it may stay where it is. */
bool blocks_draft(ls_node *node, enum block_use use, const void *given,
                  size_t size, struct block_draft *out);
/* Copy a payload there, unless it is there. Lock not held. Returns false: there
 * is no memory for it; the draft is still to be given back. */
bool blocks_fill(ls_node *node, const struct block_draft *draft,
                 const void *data, size_t size);
/* It goes to these. sure: through their streams. Returns its number. */
uint64_t blocks_lend(ls_node *node, const struct block_draft *draft,
                     struct peer *const *to, size_t n, bool sure);
/* It goes to nobody. */
void blocks_give_up(ls_node *node, const struct block_draft *draft);
/* What one of those gets: into out[BLOCK_HANDLE_BYTES]. */
void blocks_handle(const struct peer *to, const struct block_draft *draft,
                   uint64_t number, size_t size, uint8_t *out);

/* ---- bodies ------------------------------------------------------------ */

/* The body of a call in a block, as a payload that goes to this peer or to
 * nobody: a copy, or if it was given, and lies there, itself. NULL: it is no
 * pair, or there is no room, which is counted: the body is to go as others do.
 * Lock not held, as when the payload is dropped. */
struct payload *blocks_payload(ls_node *node, uint32_t to, const void *data,
                               size_t size, bool given);
/* Whether it is such a payload. No lock. */
bool blocks_hold(const struct payload *payload);
/* It goes to this peer, through its stream, which gets handle[
 * BLOCK_HANDLE_BYTES]. Returns false: that is no pair any more. */
bool blocks_lend_payload(ls_node *node, const struct payload *payload,
                         struct peer *to, uint8_t *handle);
/* It was not sent. */
void blocks_recall_payload(ls_node *node, const struct payload *payload);

/* ---- reading ----------------------------------------------------------- */

/* For how much a handle that has not been looked at counts in windows. No lock.
 */
size_t blocks_weight(const ls_node *node, const uint8_t *handle, size_t size);
/* Take what a handle from a peer names. sure: it came through its stream. most:
 * the longest, in bytes. Bus thread, lock not held.
 * Errors: LS_EPROTO it is no handle, or names what is no block; LS_ENOENT these
 *         two are no pair any more, or it comes too late: it is lost;
 *         LS_ELIMIT it is longer. */
int blocks_take(ls_node *node, const struct peer *from, const uint8_t *handle,
                size_t size, bool sure, size_t most, struct block_loan *out);
/* This node does not read it any more: a release function; hint: its hold. Any
 * thread, also when the node is no more. No lock needed. */
void blocks_give_back(void *data, void *hint);
/* Have the message own it, so that it is given back with it. What the framework
 * reads itself, and so must not change under it, is copied: loan->data is where
 * it lies then. Lock not needed. Returns false: no memory; it is given back. */
bool blocks_attach(struct message *message, const struct wire_header *header,
                   struct block_loan *loan);

/* ---- pairs ------------------------------------------------------------- */

/* A control message of theirs. Bus thread, lock not held. */
void blocks_message(ls_node *node, const struct wire_header *header,
                    const void *data, size_t size);
#define BLOCKS_CHANNEL "ls.blocks"
/* This life of the peer, or of this node, is over. */
void blocks_part(ls_node *node, struct peer *peer);
/* How many payloads of ls_payload_alloc() lie in blocks. */
unsigned blocks_held(ls_node *node);
/* Have what was lost on the way come back, and let go of those that are gone.
 * Bus thread; returns when to look again. */
int64_t blocks_tick(ls_node *node, int64_t now);
/* No pair is made any more. Lock not held; the bus thread has ended. */
void blocks_stop(ls_node *node);
/* Nobody reads or emits any more. Lock not held. */
void blocks_fini(ls_node *node);

#endif
