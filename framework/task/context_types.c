/* The two ready-made types of contexts. */
#include <math.h>

#include "lockstep/context.h"

#define FIELD(context, member, kind, is_kept, first)                           \
    {                                                                          \
        .name = #member, .type = LS_FIELD_##kind,                              \
        .offset = offsetof(struct ls_##context##_context, member),             \
        .keep = (is_kept), .fallback = (first)                                 \
    }

static const struct ls_field online_fields[] = {
    FIELD(online, total_step, INT, true, 0),
    FIELD(online, env_step, INT, true, 0),
    FIELD(online, env_episode, INT, true, 0),
    FIELD(online, train_iter, INT, true, 0),
    FIELD(online, last_eval_iter, INT, true, -1),
    FIELD(online, last_eval_value, DOUBLE, true, -(double)INFINITY),
    FIELD(online, policy, BYTES, false, 0),
    FIELD(online, collect_kwargs, BYTES, false, 0),
    FIELD(online, trajectories, ITEMS, false, 0),
    FIELD(online, episodes, ITEMS, false, 0),
    FIELD(online, trajectory_end_idx, NUMBERS, false, 0),
    FIELD(online, train_data, ITEMS, false, 0),
    FIELD(online, train_output, BYTES, false, 0),
    FIELD(online, eval_output, ITEMS, false, 0),
    FIELD(online, eval_value, DOUBLE, false, (double)NAN),
};

const struct ls_context_type ls_online_context_type = {
    "online", sizeof(struct ls_online_context), online_fields,
    sizeof online_fields / sizeof *online_fields};

static const struct ls_field offline_fields[] = {
    FIELD(offline, total_step, INT, true, 0),
    FIELD(offline, trained_env_step, INT, true, 0),
    FIELD(offline, train_epoch, INT, true, 0),
    FIELD(offline, train_iter, INT, true, 0),
    FIELD(offline, last_eval_iter, INT, true, -1),
    FIELD(offline, last_eval_value, DOUBLE, true, -(double)INFINITY),
    FIELD(offline, train_data, ITEMS, false, 0),
    FIELD(offline, train_output, BYTES, false, 0),
    FIELD(offline, eval_output, ITEMS, false, 0),
    FIELD(offline, eval_value, DOUBLE, false, (double)NAN),
};

const struct ls_context_type ls_offline_context_type = {
    "offline", sizeof(struct ls_offline_context), offline_fields,
    sizeof offline_fields / sizeof *offline_fields};
