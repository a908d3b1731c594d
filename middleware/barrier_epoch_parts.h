/* barrier_epoch_parts.h - what the files of the state machine share: how it
 * moves (barrier_epoch.c), what it makes of what it hears (barrier_receive.c),
 * and how it speaks (barrier_outbox.c). */
#ifndef BARRIER_EPOCH_PARTS_H
#define BARRIER_EPOCH_PARTS_H

#include "barrier_epoch.h"

/* The tests break the protocol on purpose, to see that they would notice. */
#ifndef LS_EPOCH_BROKEN
#define LS_EPOCH_BROKEN(what) false
#endif

/* --- barrier_epoch.c ---------------------------------------------------- */

/* Enter `epoch->epoch` with those who are joined. */
void ls_epoch_begin(struct ls_epoch *epoch, int64_t now);

/* A peer in the view has come this far in the epoch under way. */
void ls_epoch_note(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                   enum ls_epoch_phase phase, uint32_t flags, uint32_t last);

/* Go as far as what is known allows. */
void ls_epoch_advance(struct ls_epoch *epoch);

/* Say how far this node is to everyone who is not known to be at `until`. */
void ls_epoch_ask_all(struct ls_epoch *epoch, enum ls_epoch_phase until,
                      bool again);

/* Somebody was lost: tell those who may know how to go on. */
void ls_epoch_tell_loss(struct ls_epoch *epoch);

/* Whether it is this node that counts who is ready, and not the leader. */
bool ls_epoch_counts(const struct ls_epoch *epoch);

uint64_t ls_epoch_hash_member(uint32_t id, uint64_t incarnation);

/* This node is the first to give up: it says why. */
void ls_epoch_give_up(struct ls_epoch *epoch, int status, const char *text);

/* The same, because the peer counts other members than this node. */
void ls_epoch_differ(struct ls_epoch *epoch, const struct ls_epoch_peer *peer);

/* Give up because another one did, for the reason in `heard`; go on with epoch
 * `next` if that is later than the next. */
void ls_epoch_follow(struct ls_epoch *epoch, uint64_t next);

/* text: copied, cut. */
void ls_epoch_set_text(struct ls_epoch_reason *reason, const char *text,
                       size_t size);

/* --- barrier_members.c --------------------------------------------------- */

/* Whether an epoch is under way. */
bool ls_epoch_is_under_way(const struct ls_epoch *epoch);

/* A peer that is not there yet. NULL: no memory. */
struct ls_epoch_peer *ls_epoch_add_peer(struct ls_epoch *epoch, uint32_t id,
                                        uint64_t incarnation);

/* Whether this node has entered, and can go on only by another's word: one who
 * is lost is not known to have entered. */
bool ls_epoch_is_stuck(const struct ls_epoch *epoch);

/* Give up, if everyone who is left is stuck too. */
void ls_epoch_check_stuck(struct ls_epoch *epoch);

/* Give up, naming one who was lost. */
void ls_epoch_give_up_lost(struct ls_epoch *epoch);

/* --- barrier_outbox.c --------------------------------------------------- */

/* Make room for all that one input can cause among `n` peers. When there is
 * none, messages are lost, as they may be on their way; they are repeated.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int ls_outbox_reserve(struct ls_epoch *epoch, size_t n);

/* Queue a message of this kind on the epoch under way. */
struct ls_barrier_message *ls_outbox_post(struct ls_epoch *epoch,
                                          struct ls_epoch_peer *peer,
                                          enum ls_barrier_kind kind);

/* Say how far this node is in the epoch under way. */
void ls_outbox_say(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                   bool again);

/* The same as an answer, with the list of who is missing. */
void ls_outbox_answer(struct ls_epoch *epoch, struct ls_epoch_peer *peer);

/* Nothing is under way: say so, and who has asked to enter the next epoch. */
void ls_outbox_absent(struct ls_epoch *epoch, struct ls_epoch_peer *peer);

/* Answer for the last epoch that this node left. */
void ls_outbox_left(struct ls_epoch *epoch, struct ls_epoch_peer *peer);

/* Say that this node does not take part in epoch `number`. */
void ls_outbox_abort(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                     uint64_t number);

/* The epoch in which this node counts the peer, or will, at the earliest. */
uint64_t ls_outbox_since(const struct ls_epoch *epoch,
                         const struct ls_epoch_peer *peer);

#endif
