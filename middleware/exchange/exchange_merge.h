/* exchange_merge.h - what an exchange sends and how a receiver merges it: the
 * part without nodes, threads or time.
 *
 * A message is a map {"round": uint, "iteration": int, "values": {field:
 * value …}, "increments": {field: number …}}, with the round first, or {"end":
 * run} after a sender's last of a run; runs are numbered from 1.
 * Thread: serial. */
#ifndef LOCKSTEP_EXCHANGE_MERGE_H
#define LOCKSTEP_EXCHANGE_MERGE_H

#include "lockstep/context.h"

/* Which fields of which context, and how each is merged. */
typedef struct ls_exchange_plan ls_exchange_plan;

/* fields, increments: comma lists as in struct ls_exchange_options; or NULL.
 * out:    own; written on success only.
 * Errors: LS_EINVAL no field at all, one twice, or an increment that is no
 *         number; LS_ENOENT the context has no such field; LS_ENOMEM. */
LS_MUST_USE int ls_exchange_plan_create(ls_exchange_plan **out,
                                        ls_context *context, const char *fields,
                                        const char *increments);
void ls_exchange_plan_destroy(ls_exchange_plan **plan);

/* Write the message of one iteration; round: ls_task_round(). Increments are
 * what was added since the last ls_exchange_sent(), or since the plan was made.
 */
LS_MUST_USE int ls_exchange_write(const ls_exchange_plan *plan,
                                  ls_context *context, uint64_t round,
                                  ls_writer *out);
void ls_exchange_sent(ls_exchange_plan *plan, ls_context *context);
void ls_exchange_write_end(uint64_t run, ls_writer *out);

/* One message, read. */
struct ls_exchange_part {
    uint32_t sender;
    int64_t iteration;
    ls_document *document; /* own */
};

/* out:    written on success only; give it to ls_exchange_part_fini().
 * data:   not needed afterwards.
 * Errors: LS_EPROTO, LS_ELIMIT naming the sender; LS_ENOMEM. */
LS_MUST_USE int ls_exchange_part_read(struct ls_exchange_part *out,
                                      uint32_t sender, const void *data,
                                      size_t size);
void ls_exchange_part_fini(struct ls_exchange_part *part);

/* Whether the bytes of a message are an end, and of which run. Cheap: an end
 * is short. */
bool ls_exchange_is_end(const void *data, size_t size, uint64_t *run);

/* The round that a message is of; 0 when it does not say. Cheap. */
uint64_t ls_exchange_round_of(const void *data, size_t size);

/* Merge the parts in the order given. Keys that are not in the plan are
 * ignored, fields that a part does not have stay.
 * Errors: LS_EPROTO, naming sender and field: a value of another type, an
 *         index that is outside the part's items, a sum that does not fit;
 *         earlier parts are merged then, this one not at all. LS_ENOMEM. */
LS_MUST_USE int ls_exchange_merge(ls_exchange_plan *plan, ls_context *context,
                                  const struct ls_exchange_part *parts,
                                  size_t n);

#endif
