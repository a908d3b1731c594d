/* replay.h - the replay buffer of one learner work: which samples the learner
 * gets next.
 *
 * Mode priority draws them in proportion to their priorities, without
 * replacement within a batch; an item stays until it is too old, pushed out, or
 * was drawn often enough. Mode fifo gives the oldest, each as often as it may
 * be drawn, once by default.
 *
 * It holds what is told of the data, not the data. That is needed as long as an
 * item refers to it (several may, each to a part), and as long as somebody who
 * was given such an item has not done with it: replay_release(). Afterwards
 * replay_take_dropped() hands the data_id out, once, for the store to drop.
 *
 * A rate limiter keeps inserting and sampling in proportion: with I inserts, S
 * samples given, and r samples_per_insert, the buffer keeps
 *   |r I - S - r min_size| <= error_buffer
 * by refusing samples below and inserts above it. While fewer than min_size
 * items are there, nothing is given out; and until then, or while there are too
 * few for the largest batch, inserts are free.
 *
 * Pure: neither lock nor clock, and the same seed draws the same.
 * Thread: serial.
 * Source: Schaul et al., "Prioritized Experience Replay", ICLR 2016, section
 * 3.3 (proportional); Cassirer et al., "Reverb", arXiv:2102.04736, section 3.4
 * (rate limiters). */
#ifndef LOCKSTEP_REPLAY_H
#define LOCKSTEP_REPLAY_H

#include <stddef.h>

#include "coordinator_settings.h"
#include "sample.h"

#define REPLAY_CAPACITY_MAX (1u << 24)
/* Of a buffer: that of an item, NAME_n, is a safe name as well. */
#define REPLAY_NAME_MAX (SAFE_NAME_MAX - 21)
/* Added to every priority, so that none is 0. */
#define REPLAY_PRIORITY_FLOOR 1e-5

struct replay;

struct replay_figures {
    size_t size;       /* items now */
    size_t lent;       /* given out and not released */
    uint64_t inserted; /* = size + the five evicted_ */
    uint64_t evicted_stale, evicted_overflow, evicted_used;
    uint64_t evicted_bytes; /* items, by max_bytes */
    uint64_t evicted_lost;  /* by replay_lose() */
    uint64_t sampled;
    uint64_t updates, updates_refused; /* of priorities */
    /* Of all samples given out; 0 before the first. */
    double staleness_mean;
    int64_t staleness_max;
};

/* out:    own; written on success only; give it to replay_destroy().
 * Errors: LS_EINVAL an option, which the text names; LS_ENOMEM. */
LS_MUST_USE int replay_create(struct replay **out,
                              const struct replay_options *options);
void replay_destroy(struct replay **buffer);

/* The learner's policy is at this version now: what has become too old goes. A
 * version below an earlier one changes nothing. */
void replay_set_version(struct replay *buffer, int64_t policy_version);

/* Put one in. When it is too old already, it goes at once.
 * sample: copied.
 * Errors: LS_EINVAL its data_id, priority or policy_version is none that
 *         sample_record takes; LS_EAGAIN the rate limiter:
 *         replay_may_insert() will tell when; LS_ENOMEM. */
LS_MUST_USE int replay_insert(struct replay *buffer,
                              const struct sample *sample);
bool replay_may_insert(const struct replay *buffer);
/* How many it has room for: as many as the rate limiter lets in, and, of fifo
 * with a staleness_limit, as many as are drawn in time: with the next
 * `useful` batches; below 0 it has more than that.
 * idle: nobody has a batch, so there is room until one can be drawn. */
int64_t replay_room(const struct replay *buffer, int64_t useful, bool idle);

/* A node that kept data is gone, and its items with it. */
void replay_lose(struct replay *buffer, uint32_t home);

/* Draw `n` different items, 1 to max_batch.
 * out:    n of them are written, on success only; each is lent until
 *         replay_release().
 * Errors: LS_EAGAIN too few items, or the rate limiter: the text says which,
 *         and replay_may_sample() will tell when; LS_EINVAL n. */
LS_MUST_USE int replay_sample(struct replay *buffer, size_t n,
                              struct drawn_sample *out);
bool replay_may_sample(const struct replay *buffer, size_t n);

/* Who was given these has done with them, or is lost.
 * Errors: LS_ENOENT one of them is not lent: the text names it; those before
 *         it are released. */
LS_MUST_USE int replay_release(struct replay *buffer,
                               const struct drawn_sample *drawn, size_t n);

/* A new priority for an item, when slot and unique id name one that is there,
 * and the priority is one. Returns whether it was taken; both are counted. */
bool replay_update_priority(struct replay *buffer,
                            const struct priority_update *update);

/* Take the data_id of data that nobody needs any more.
 * data_id: written when true is returned. */
bool replay_take_dropped(struct replay *buffer,
                         char data_id[SAFE_NAME_MAX + 1]);

/* ---- over the lives of who owns it ----
 *
 * Another life is told what there was, in the order in which it came to be: the
 * account, then the items, the oldest first; and then what happened. What it is
 * told of items that are gone is passed over. Before anything else happens,
 * replay_recalled(). */

/* An item, and where it is. */
struct replay_item {
    struct sample sample; /* with its priority of now */
    int64_t slot;         /* -1: it went at once */
    uint64_t number;      /* of its unique id */
    uint64_t n_sampled;
};
/* What is not in the items. */
struct replay_account {
    int64_t version;
    uint64_t next_number; /* of the next item */
    double staleness_sum;
    struct replay_figures figures;
};

void replay_account(const struct replay *buffer, struct replay_account *out);
/* Call fn with each item, the oldest first, until it fails. */
LS_MUST_USE int
replay_each(const struct replay *buffer,
            int (*fn)(void *self, const struct replay_item *item), void *self);
/* The number of the next item; and that item, once it was inserted. */
uint64_t replay_next_number(const struct replay *buffer);
void replay_newest(const struct replay *buffer, uint64_t number,
                   struct replay_item *out);

void replay_recall_account(struct replay *buffer,
                           const struct replay_account *account);
/* is_new: it was inserted then; else it was there.
 * Errors: LS_EPROTO there can be no such item; LS_ENOMEM. */
LS_MUST_USE int replay_recall_item(struct replay *buffer,
                                   const struct replay_item *item, bool is_new);
/* It was drawn. */
void replay_recall_drawn(struct replay *buffer, int64_t slot, uint64_t number);
/* It had this priority from then on. */
void replay_recall_priority(struct replay *buffer, int64_t slot,
                            uint64_t number, double priority);
/* Those items go, as lost, whose data fn does not find whole. Items that come
 * one after the other have their data in common: fn is asked once. */
void replay_check(struct replay *buffer,
                  bool (*fn)(void *self, const struct sample *sample),
                  void *self);
void replay_recalled(struct replay *buffer);
/* Whether an item refers to it, or somebody has one that does. */
bool replay_uses(const struct replay *buffer, const char *data_id);

/* The work ends: all data goes to replay_take_dropped(), also what is lent.
 * Counts nothing as evicted: the buffer is only good to be destroyed then. */
void replay_close(struct replay *buffer);

void replay_figures(const struct replay *buffer, struct replay_figures *out);

#endif
