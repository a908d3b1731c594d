/* barrier_epoch_inside.h - what the files of the state machine share: how it
 * moves (barrier_epoch.c), what it makes of what it hears (barrier_receive.c),
 * and how it speaks (barrier_outbox.c). */
#ifndef BARRIER_EPOCH_INSIDE_H
#define BARRIER_EPOCH_INSIDE_H

#include "barrier_epoch.h"

/* What errors say of such a member, after its name. */
#define LS_EPOCH_WITHDREW " has no barrier of this name any more"

/* And of one who did so for a reason that is not kept any more. */
#define LS_EPOCH_GAVE_UP_BEFORE " gave it up before"

/* --- barrier_epoch.c ---------------------------------------------------- */

/* Enter `epoch->epoch` with those who are joined. */
void ls_epoch_begin(struct ls_epoch *epoch, int64_t now);

/* A peer in the view has come this far in the epoch under way. */
void ls_epoch_note(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                   enum ls_epoch_phase phase, uint32_t flags, uint32_t last);

/* Go as far as what is known allows. */
void ls_epoch_advance(struct ls_epoch *epoch);

/* Somebody was lost: tell those who may know how to go on. */
void ls_epoch_tell_loss(struct ls_epoch *epoch);

/* This node is the first to give up: it says why. final: the wait has failed,
 * whatever the policy is. */
void ls_epoch_give_up(struct ls_epoch *epoch, int status, bool final,
                      const char *text);

/* The same, because the peer counts other members than this node, or has other
 * rules. */
void ls_epoch_differ(struct ls_epoch *epoch, const struct ls_epoch_peer *peer,
                     uint32_t rules);

/* Give up because another one did, for the reason in `heard`; go on with epoch
 * `next` if that is later than the next. The status is that of the first cause
 * if it is true of all alike, else LS_EABORTED. */
void ls_epoch_follow(struct ls_epoch *epoch, uint64_t next);

/* --- barrier_view.c ------------------------------------------------------- */

uint64_t ls_epoch_hash_member(uint32_t id, uint64_t incarnation, uint64_t host);

/* Count those who are joined in the epoch that begins, and choose how they
 * talk. */
void ls_epoch_make_view(struct ls_epoch *epoch);

/* Keep the epoch that ends well, and who took part. */
void ls_epoch_keep_left(struct ls_epoch *epoch);

/* A peer of the view tells since when it has the same members. */
void ls_epoch_note_since(struct ls_epoch *epoch, enum ls_epoch_phase phase,
                         uint64_t since);

/* The peer with that place in the view; NULL: this node. */
struct ls_epoch_peer *ls_epoch_at(const struct ls_epoch *epoch, uint32_t place);

/* --- barrier_tree.c ------------------------------------------------------- */

void ls_tree_fini(struct ls_epoch *epoch);

/* Choose how they talk in the view. A tree of which everyone stands just below
 * the root is the leader's way. Without memory for a tree this node strays from
 * it, and the others follow. */
void ls_tree_choose(struct ls_epoch *epoch);

/* A peer was put in at this place of the peers. */
void ls_tree_shift(struct ls_epoch *epoch, size_t at);

/* The peer above this node; NULL: it is the root, or goes by no tree. */
struct ls_epoch_peer *ls_tree_above(const struct ls_epoch *epoch);

bool ls_tree_is_below(const struct ls_epoch *epoch,
                      const struct ls_epoch_peer *peer);

/* Whether the peer is the one above this node, or just below it. */
bool ls_tree_is_next(const struct ls_epoch *epoch,
                     const struct ls_epoch_peer *peer);

/* A peer just below says that this holds for all below it, but for those that
 * it lists. */
void ls_tree_note(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                  enum ls_epoch_phase phase, uint32_t last,
                  const struct ls_barrier_missing *missing, size_t n_missing);

/* Tell the one above what has become true of all below. */
void ls_tree_tell_up(struct ls_epoch *epoch);

/* This node has become ready: tell those below. */
void ls_tree_tell_down(struct ls_epoch *epoch);

/* Ask the one above, and those below who lack something. */
void ls_tree_ask(struct ls_epoch *epoch);

/* Whether a missing member would be named for itself, and not because the one
 * above it has not entered. */
bool ls_tree_knows(const struct ls_epoch *epoch,
                   const struct ls_epoch_peer *peer);

/* From now on this node talks to the leader. */
void ls_tree_quit(struct ls_epoch *epoch);

/* --- barrier_policy.c ----------------------------------------------------- */

/* An epoch has failed, for the reason in `failed`. Returns whether the wait
 * goes on in the next one; `ask_at` is when it looks again. */
bool ls_epoch_retry(struct ls_epoch *epoch);

/* That time has come: begin, or wait on, or give up. */
void ls_epoch_try_again(struct ls_epoch *epoch, int64_t now);

/* Whether too few are counted, but more may come: nobody enters before. */
bool ls_epoch_is_short(const struct ls_epoch *epoch);

/* Whether so many can never be right: too many, or too few of them left. */
bool ls_epoch_is_miscounted(const struct ls_epoch *epoch);

/* Whether the others are to be asked first why they have given this epoch up,
 * if they have: who is told so late that it knows of another loss would name
 * that one. Asks them. */
bool ls_epoch_inquire(struct ls_epoch *epoch);

/* A peer has spoken of that epoch, or of an earlier one that it is in: if it
 * had heard of a reason, it says so. */
void ls_epoch_note_answer(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                          const struct ls_barrier_message *message);

/* End the epoch for that. */
void ls_epoch_refuse_count(struct ls_epoch *epoch);

/* "node 7 sees 2 members, not 3"; returns its size. */
size_t ls_epoch_say_count(const struct ls_epoch *epoch,
                          char text[static LS_BARRIER_REASON_MAX]);

/* --- barrier_members.c --------------------------------------------------- */

/* Everyone talks to everyone. */
bool ls_epoch_is_direct(const struct ls_epoch *epoch);

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

/* Nothing is under way: ask whether the epoch was given up. */
void ls_outbox_inquire(struct ls_epoch *epoch, struct ls_epoch_peer *peer);

/* Nothing is under way: say so, and who has asked to enter the next epoch. */
void ls_outbox_absent(struct ls_epoch *epoch, struct ls_epoch_peer *peer);

/* Answer for the last epoch that this node left. full: the peer may not know
 * yet that all have entered. */
void ls_outbox_left(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                    bool full);

/* Say that this node does not take part in epoch `number`. */
void ls_outbox_abort(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                     uint64_t number);

/* The epoch in which this node counts the peer, or will, at the earliest. */
uint64_t ls_outbox_since(const struct ls_epoch *epoch,
                         const struct ls_epoch_peer *peer);

#endif
