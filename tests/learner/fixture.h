/* fixture.h - a trainer and gates for each test of a learner on threads. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "trainer.h"

static ls_runtime *runtime;
static struct trainer trainer;
static struct gate gates[2];

static inline int set_up(void **state)
{
    (void)state;
    runtime = ls_runtime_threads();
    init_trainer(&trainer, runtime);
    for (size_t i = 0; i < 2; i++)
        init_gate(&gates[i], runtime);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        fini_gate(&gates[i]);
    fini_trainer(&trainer);
    return 0;
}

static inline ls_learner *start(struct ls_learner_options options)
{
    return start_learner(runtime, &trainer, options);
}

static inline void end(ls_learner *learner)
{
    end_learner(learner, &trainer);
}

static inline void assert_error_is(const char *wanted)
{
    assert_string_equal(ls_error_text(), wanted);
}

#endif
