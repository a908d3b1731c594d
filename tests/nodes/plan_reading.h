/* plan_reading.h - a configuration read as a plan, and what is said of one that
 * is wrong. */
#ifndef LOCKSTEP_TESTS_PLAN_READING_H
#define LOCKSTEP_TESTS_PLAN_READING_H

#include "plan.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIVE                                                                   \
    "plugin: p\n"                                                              \
    "nodes:\n"                                                                 \
    "  - role: learner\n"                                                      \
    "  - {role: collector, count: 3}\n"                                        \
    "  - role: evaluator\n"

static inline void read_plan(struct plan *plan, const char *text)
{
    ls_config *config = NULL;
    assert_int_equal(ls_config_parse(&config, "job.yaml", text), LS_OK);
    assert_int_equal(plan_read(plan, &config, "job.yaml"), LS_OK);
    assert_null(config);
}

static inline void read_good(struct plan *plan, const char *text)
{
    read_plan(plan, text);
    if (ls_config_finish(plan->config) != LS_OK)
        fail_msg("%s", ls_config_report(plan->config));
}

/* The report must hold the place and the words. */
static inline void assert_problem(const char *text, const char *place,
                                  const char *words)
{
    struct plan plan;
    read_plan(&plan, text);
    assert_int_equal(ls_config_finish(plan.config), LS_ECONFIG);
    const char *report = ls_config_report(plan.config);
    if (strstr(report, place) == NULL || strstr(report, words) == NULL)
        fail_msg("expected %s … %s in:\n%s", place, words, report);
    plan_fini(&plan);
}

#endif
