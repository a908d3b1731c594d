/* fsm_options.h - what a small coordinator is made with, and told of. */
#ifndef SUPPORT_FSM_OPTIONS_H
#define SUPPORT_FSM_OPTIONS_H

#include <math.h>
#include <stdio.h>

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

static inline struct ls_member core_member(uint32_t id, uint64_t incarnation,
                                           const char *role, bool ready)
{
    struct ls_member member = {.id = id,
                               .incarnation = incarnation,
                               .state =
                                   ready ? LS_MEMBER_READY : LS_MEMBER_LOST};
    (void)snprintf(member.role, sizeof member.role, "%s", role);
    return member;
}

#endif
