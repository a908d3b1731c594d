/* fuzz_context.h - a context with a field of each type that an exchange sends.
 */
#ifndef LOCKSTEP_TESTS_FUZZ_CONTEXT_H
#define LOCKSTEP_TESTS_FUZZ_CONTEXT_H

#include <stddef.h>

#include "lockstep/context.h"

struct fuzz_context {
    int64_t total_step, env_step, train_iter;
    double last_eval_value, eval_value;
    char *user_text;
    struct ls_bytes policy, train_output;
    struct ls_items trajectories;
    struct ls_numbers trajectory_end_idx;
};

static const struct ls_field fuzz_context_fields[] = {
    LS_FIELD(struct fuzz_context, total_step, LS_FIELD_INT, true),
    LS_FIELD(struct fuzz_context, env_step, LS_FIELD_INT, true),
    LS_FIELD(struct fuzz_context, train_iter, LS_FIELD_INT, true),
    LS_FIELD(struct fuzz_context, last_eval_value, LS_FIELD_DOUBLE, true),
    LS_FIELD(struct fuzz_context, eval_value, LS_FIELD_DOUBLE, false),
    LS_FIELD(struct fuzz_context, user_text, LS_FIELD_TEXT, true),
    LS_FIELD(struct fuzz_context, policy, LS_FIELD_BYTES, false),
    LS_FIELD(struct fuzz_context, train_output, LS_FIELD_BYTES, false),
    LS_FIELD(struct fuzz_context, trajectories, LS_FIELD_ITEMS, false),
    LS_FIELD(struct fuzz_context, trajectory_end_idx, LS_FIELD_NUMBERS, false),
};

static const struct ls_context_type fuzz_context_type = {
    "fuzz", sizeof(struct fuzz_context), fuzz_context_fields,
    sizeof fuzz_context_fields / sizeof *fuzz_context_fields};

#endif
