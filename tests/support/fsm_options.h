/* fsm_options.h - what a small coordinator is made with. */
#ifndef SUPPORT_FSM_OPTIONS_H
#define SUPPORT_FSM_OPTIONS_H

#include <math.h>

#include "fsm.h"

static inline struct fsm_options small_core_options(void)
{
    return (struct fsm_options){.iterations = 10,
                                .stop_value = NAN,
                                .samples_per_work = 5,
                                .unroll_len = 4,
                                .split = 1,
                                .batch_size = 1,
                                .send_policy_freq = 1,
                                .send_info_freq = 1,
                                .replay = {.capacity = 16}};
}

#endif
