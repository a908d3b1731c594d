/* core_options.h - what a small coordinator is made with. */
#ifndef SUPPORT_CORE_OPTIONS_H
#define SUPPORT_CORE_OPTIONS_H

#include <math.h>

#include "core.h"

static inline struct core_options small_core_options(void)
{
    return (struct core_options){.iterations = 10,
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
