/* What the section of a coordinator comes to, and what is said of one that
 * cannot work. */
#include "plan_reading.h"
#include "test.h"

#define SERVICE                                                                \
    "plugin: p\n"                                                              \
    "nodes:\n"                                                                 \
    "  - {role: coordinator, on_loss: restart}\n"                              \
    "  - {role: learner, count: 2, on_loss: go_on}\n"                          \
    "  - {role: collector, count: 3}\n"

TEST(a_coordinator_makes_a_service_job)
{
    struct plan plan;
    read_good(&plan, "job: j\ncollector: {envs: 4, steps: 32}\n" SERVICE);
    const struct plan_service *service = &plan.service;
    assert_true(plan_is_service(&plan));
    assert_int_equal(plan.first, 0);
    assert_int_equal(plan_count(&plan, PLAN_LEARNER), 2);
    assert_int_equal(plan_channel(&plan), 1);
    assert_int_equal(service->fsm.iterations, 0);
    assert_true(service->fsm.eval_interval == 60 * LS_NS_PER_S);
    assert_int_equal(service->fsm.batch_size, 12);
    assert_int_equal(service->fsm.samples_per_work, 16);
    assert_int_equal(service->fsm.unroll_len, 32);
    assert_int_equal(service->fsm.split, 1);
    assert_true(service->journal);
    assert_true(service->fsm.learner_expiry == 600 * LS_NS_PER_S);
    assert_true(service->fsm.collector_expiry == 30 * LS_NS_PER_S);
    assert_true(service->fsm.retry == 3 * LS_NS_PER_S);
    assert_int_equal(service->store, PLAN_STORE_BUS);
    assert_int_equal(service->fsm.replay.mode, REPLAY_FIFO);
    plan_fini(&plan);
}

TEST(what_a_coordinator_is_told_is_taken_over)
{
    struct plan plan;
    read_good(&plan,
              SERVICE "coordinator:\n"
                      "  iterations: 100\n"
                      "  eval_interval_s: 0\n"
                      "  batch: 32\n"
                      "  unroll: 128\n"
                      "  split: 4\n"
                      "  channel: 7\n"
                      "  journal: false\n"
                      "  data: {store: files, path_data: /d}\n"
                      "  replay: {mode: priority, capacity: 64, min_size: 40,\n"
                      "           samples_per_insert: 4, error_buffer: 18}\n");
    const struct plan_service *service = &plan.service;
    assert_int_equal(service->fsm.iterations, 100);
    assert_int_equal(service->fsm.batch_size, 32);
    assert_int_equal(service->fsm.split, 4);
    assert_int_equal(plan_channel(&plan), 7);
    assert_false(service->journal);
    assert_int_equal(service->store, PLAN_STORE_FILES);
    /* Of the run that was begun last, until it is told its own. */
    assert_string_equal(service->path_data, "/d/lockstep.latest");
    assert_string_equal(service->path_policy, "out/lockstep/latest/policy");
    assert_true(plan.folder_found);
    assert_ok(plan_set_folder(&plan, "3", "3-c0ffee"));
    assert_string_equal(plan.folder, "out/lockstep/3");
    assert_string_equal(service->path_data, "/d/lockstep.3-c0ffee");
    assert_string_equal(service->path_policy, "out/lockstep/3/policy");
    assert_false(plan.folder_found);
    assert_int_equal(service->fsm.replay.mode, REPLAY_PRIORITY);
    assert_int_equal(service->fsm.replay.min_size_to_sample, 40);
    plan_fini(&plan);
}

TEST(a_service_job_that_cannot_work_is_refused)
{
    assert_problem("plugin: p\nnodes:\n  - {role: coordinator, count: 2}\n"
                   "  - role: learner\n  - role: collector\n",
                   "job.yaml:2:1", "one coordinator gives out the work");
    assert_problem("plugin: p\nnodes:\n  - role: coordinator\n"
                   "  - role: learner\n",
                   "job.yaml:2:1", "needs a learner and a collector");
    assert_problem(SERVICE "  - role: evaluator\n", "job.yaml:2:1",
                   "leave the evaluator out");
    assert_problem("plugin: p\nnodes:\n"
                   "  - {role: coordinator, on_loss: go_on}\n"
                   "  - role: learner\n  - role: collector\n",
                   "job.yaml:3:34", "without the coordinator");
    assert_problem("plugin: p\nnodes:\n  - role: coordinator\n"
                   "  - {role: learner, on_loss: go_on}\n"
                   "  - role: collector\n",
                   "job.yaml:4:30", "without the learner");
    assert_problem(FIVE "coordinator: {batch: 3}\n", "job.yaml:6:1",
                   "no node of the role coordinator");
}

TEST(what_a_coordinator_cannot_do_is_refused)
{
    assert_problem(SERVICE "coordinator: {batch: 257}\n", "job.yaml:6:22",
                   "from 1 to 256");
    assert_problem(SERVICE "coordinator: {unroll: 10, split: 3}\n",
                   "job.yaml:6:34", "cannot be cut into 3 parts");
    assert_problem(SERVICE "coordinator: {batch: 8, replay: {capacity: 7}}\n",
                   "job.yaml:6:44", "less than one batch of 8");
    assert_problem(SERVICE "coordinator: {batch: 8, replay:\n"
                           "  {capacity: 8, min_size: 9}}\n",
                   "job.yaml:7:27", "the capacity is 8");
    assert_problem(SERVICE "coordinator: {batch: 8, replay:\n"
                           "  {capacity: 8, valid_ratio: 2}}\n",
                   "job.yaml:7:30", "2 times a batch of 8");
    assert_problem(SERVICE "coordinator: {batch: 8, replay:\n"
                           "  {samples_per_insert: 2, error_buffer: 4}}\n",
                   "job.yaml:7:41", "wait for ever");
    assert_problem(SERVICE "coordinator: {data: {path_data: /d}}\n",
                   "job.yaml:6:33", "path_data goes with store: files");
    assert_problem(SERVICE "evaluator: {every: 2}\n", "job.yaml:6:20",
                   "coordinator.eval_interval_s");
    assert_problem(SERVICE "coordinator: {iteration: 1}\n", "job.yaml:6:15",
                   "did you mean \"iterations\"");
}
