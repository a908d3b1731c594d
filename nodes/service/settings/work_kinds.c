#include "work_kinds.h"

const char *const pool_role_names[] = {"learner", "collector"};

const struct work_row work_rows[WORK_KINDS] = {
    [WORK_LEARNER] = {"learner", "learn", POOL_LEARNER, .learns = true,
                      .shared = true, .by_offer = true},
    [WORK_COLLECTOR] = {"collector", "collect", POOL_COLLECTOR, .feeds = true},
    [WORK_EVALUATION] = {"evaluation", "evaluate", POOL_COLLECTOR,
                         .judges = true, .first = true},
};

int64_t work_expiry(const struct fsm_options *options, enum work_kind kind)
{
    return work_rows[kind].role == POOL_LEARNER ? options->learner_expiry
                                                : options->collector_expiry;
}
