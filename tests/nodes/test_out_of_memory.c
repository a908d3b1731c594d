/* Jobs in a simulation, whose memory runs out, at places all over the run: a
 * node that fails then begins anew, as one that was killed does, and all that
 * is promised of the job still holds. */
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "faults.h"
#include "setup.h"
#include "simulated.h"
#include "test.h"

static const char members[] = "job: memory\n"
                              "nodes: [{role: member, count: 3}]\n"
                              "barrier: {epochs: 5, failures: 1000}\n";

static const char service[] =
    "job: memory\n"
    "plugin: counter\n"
    "nodes:\n"
    "  - {role: coordinator, on_loss: restart}\n"
    "  - {role: learner, on_loss: restart}\n"
    "  - {role: collector, on_loss: restart}\n"
    "collector: {envs: 2, steps: 8}\n"
    "evaluator: {episodes: 2}\n"
    "coordinator: {iterations: 3, batch: 2, samples_per_work: 2}\n";

static const char in_step[] = "job: memory\n"
                              "plugin: counter\n"
                              "nodes:\n"
                              "  - {role: learner}\n"
                              "  - {role: collector}\n"
                              "  - {role: evaluator}\n"
                              "collector: {envs: 2, steps: 8}\n"
                              "evaluator: {episodes: 2, solved: 3}\n";

static const char ranks[] = "job: memory\n"
                            "plugin: counter\n"
                            "nodes:\n"
                            "  - {role: coordinator, on_loss: restart}\n"
                            "  - {role: learner, count: 2, on_loss: restart}\n"
                            "  - {role: collector, on_loss: restart}\n"
                            "collector: {envs: 2, steps: 8}\n"
                            "evaluator: {episodes: 2}\n"
                            "learner: {driver: bus, ranks: 2}\n"
                            "coordinator: {iterations: 3, batch: 2, "
                            "samples_per_work: 2}\n";

struct job {
    struct setup setup;
    struct faults none;
};

static void load(struct job *job, const char *text)
{
    const struct options options = {
        .config = "memory.yaml", .text = text, .epoch = PLAN_FROM_NEWEST};
    if (setup_load(&job->setup, &options) != LS_OK)
        fail_msg("%s%s", ls_error_text(), setup_report(&job->setup));
    assert_ok(faults_load(&job->none, "none", &job->setup.plan));
}

static void run(const struct job *job)
{
    simulated *all = NULL;
    int status = simulated_create(
        &all, &(struct simulated_options){.plan = &job->setup.plan,
                                          .plugin = job->setup.plugin,
                                          .faults = &job->none,
                                          .seed = 1});
    if (status == LS_OK)
        status = simulated_check(all);
    simulated_destroy(&all);
    /* The simulation and what watches the job want memory, too; and a job in
     * step may end with the node that has none. */
    const bool starved =
        allocation_failed() &&
        (strstr(ls_error_text(), "memory") != NULL ||
         strstr(ls_error_text(), "nothing was done to the others") != NULL);
    if (status != LS_OK && !starved)
        fail_msg("%s: %s", ls_status_name(status), ls_error_text());
}

/* Every `stride`-th allocation: a run takes milliseconds, and has hundreds. */
static void run_short(const char *text, long stride)
{
    struct job job = {.none = {.config = NULL}};
    load(&job, text);
    for (long n = 0; allocations_fail_at(n); n += stride)
        run(&job);
    faults_fini(&job.none);
    setup_fini(&job.setup);
}

TEST(members_that_wait_for_each_other)
{
    (void)state;
    run_short(members, 1);
}

TEST(a_service)
{
    (void)state;
    run_short(service, 29);
}

TEST(a_service_with_two_ranks)
{
    (void)state;
    run_short(ranks, 29);
}

TEST(a_job_in_step)
{
    (void)state;
    run_short(in_step, 3);
}
