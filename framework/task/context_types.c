#include <math.h>

#include "lockstep/context.h"

#define ONLINE(member, type, keep, fallback)                                   \
    {                                                                          \
#member, LS_FIELD_##type, offsetof(struct ls_online_context, member),  \
            (keep), (fallback)                                                 \
    }
#define OFFLINE(member, type, keep, fallback)                                  \
    {                                                                          \
#member, LS_FIELD_##type, offsetof(struct ls_offline_context, member), \
            (keep), (fallback)                                                 \
    }

static const struct ls_field online_fields[] = {
    ONLINE(total_step, INT, true, 0),
    ONLINE(env_step, INT, true, 0),
    ONLINE(env_episode, INT, true, 0),
    ONLINE(train_iter, INT, true, 0),
    ONLINE(last_eval_iter, INT, true, -1),
    ONLINE(last_eval_value, DOUBLE, true, -(double)INFINITY),
    ONLINE(policy, BYTES, false, 0),
    ONLINE(collect_kwargs, BYTES, false, 0),
    ONLINE(trajectories, ITEMS, false, 0),
    ONLINE(episodes, ITEMS, false, 0),
    ONLINE(trajectory_end_idx, NUMBERS, false, 0),
    ONLINE(train_data, ITEMS, false, 0),
    ONLINE(train_output, BYTES, false, 0),
    ONLINE(eval_output, ITEMS, false, 0),
    ONLINE(eval_value, DOUBLE, false, (double)NAN),
};

const struct ls_context_type ls_online_context_type = {
    "online", sizeof(struct ls_online_context), online_fields,
    sizeof online_fields / sizeof *online_fields};

static const struct ls_field offline_fields[] = {
    OFFLINE(total_step, INT, true, 0),
    OFFLINE(trained_env_step, INT, true, 0),
    OFFLINE(train_epoch, INT, true, 0),
    OFFLINE(train_iter, INT, true, 0),
    OFFLINE(last_eval_iter, INT, true, -1),
    OFFLINE(last_eval_value, DOUBLE, true, -(double)INFINITY),
    OFFLINE(train_data, ITEMS, false, 0),
    OFFLINE(train_output, BYTES, false, 0),
    OFFLINE(eval_output, ITEMS, false, 0),
    OFFLINE(eval_value, DOUBLE, false, (double)NAN),
};

const struct ls_context_type ls_offline_context_type = {
    "offline", sizeof(struct ls_offline_context), offline_fields,
    sizeof offline_fields / sizeof *offline_fields};
