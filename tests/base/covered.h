/* covered.h - that schedules have taken every transition of a machine: of what
 * they never did they say nothing. */
#ifndef COVERED_H
#define COVERED_H

#include <stdbool.h>
#include <string.h>

#include "coverage.h"
#include "seeds.h"
#include "test.h"

static uint64_t covered_taken[LS_N_TRANSITIONS];

/* Before the schedules. */
static inline void covered_begin(void)
{
    ls_coverage_now = covered_taken;
}

/* After them. Skipped where there were fewer seeds than are needed for it.
 * elsewhere: those that these schedules do not have. */
static inline void covered_check(const char *machine,
                                 const enum ls_transition *elsewhere, size_t n)
{
    bool left_out[LS_N_TRANSITIONS] = {false};
    size_t n_missing = 0;
    if (seeds_are_others())
        skip();
    for (size_t i = 0; i < n; i++)
        left_out[elsewhere[i]] = true;
    for (size_t i = 0; i < LS_N_TRANSITIONS; i++)
        if (strcmp(ls_transition_names[i].machine, machine) == 0 &&
            !left_out[i] && covered_taken[i] == 0) {
            print_error("never taken: %s\n", ls_transition_names[i].name);
            n_missing++;
        }
    assert_int_equal(n_missing, 0);
}

#endif
