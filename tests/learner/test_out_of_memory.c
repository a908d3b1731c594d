/* A learner whose memory runs out, at each place where it takes some: it ends
 * and says so, or does without, and every batch and result is accounted for. */
#include "allocations.h"
#include "fixture.h"

/* Nobody may wait for as long as this. */
#define NEVER_MS 600000

enum { BATCHES = 3, PASSES = 2 };

EACH_TEST(set_up, tear_down)

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    (void)self;
    return ls_learner_info_add(info, place->device == 0 ? "loss" : "other",
                               pass);
}

static const struct ls_learner_ops ops = {
    .load = note_load, .compute = compute, .drop = note_drop};

static bool worked(int status)
{
    if (status != LS_OK &&
        (!allocation_failed() || (status != LS_ENOMEM && status != LS_EAGAIN)))
        fail_msg("%s: %s", ls_status_name(status), ls_error_text());
    return status == LS_OK;
}

static size_t put_all(ls_learner *learner)
{
    size_t n = 0;
    for (size_t i = 0; i < BATCHES; i++) {
        struct ls_learner_batch batch = batch_of(i);
        if (worked(ls_learner_put(learner, &batch, NEVER_MS)))
            n++;
    }
    return n;
}

static void learn(size_t loaders)
{
    const struct ls_learner_options options = {.ops = &ops,
                                               .self = &trainer,
                                               .stacks = 2,
                                               .loaders = loaders,
                                               .n_devices = 2,
                                               .passes = PASSES,
                                               .held_timeout_ms = LS_NO_WAIT};
    ls_learner *learner = NULL;
    trainer.drops = 0;
    if (!worked(ls_learner_create(&learner, runtime, &options)))
        return;
    size_t got = 0;
    const size_t put = put_all(learner);
    struct ls_learner_result result = {.info = NULL};
    while (got < put * PASSES &&
           worked(ls_learner_get(learner, &result, NEVER_MS)))
        got++;
    end(learner);
}

TEST(all_is_accounted_for)
{
    (void)state;
    for (size_t loaders = 0; loaders < 3; loaders++)
        for (long n = 0; allocations_fail_at(n); n++)
            learn(loaders);
}
