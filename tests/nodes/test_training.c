/* A policy that learns on the engine: what it is handed, how often, and what
 * becomes of what fails. */
#include "test.h"
#include "training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_STEPS = 5, N_TRAJECTORIES = 3 };

/* The policy's state: what learn() has seen. */
struct pupil {
    int calls;
    size_t n;     /* trajectories in the last one */
    double first; /* reward of each trajectory's first step, summed */
    int fails_at; /* the call that fails; 0: none */
    size_t group; /* devices, when there are several */
    int64_t weights;
};

static int learn(void *policy, const struct ls_trajectory *trajectories,
                 size_t n, struct ls_learn_info *info)
{
    struct pupil *const pupil = policy;
    pupil->n = n;
    pupil->first = 0.0;
    for (size_t i = 0; i < n; i++)
        pupil->first += (double)trajectories[i].rewards[0];
    if (++pupil->calls == pupil->fails_at)
        return ls_error(LS_EHANDLER, "the loss is not finite");
    info->n = 1;
    info->items[0].name = "call";
    info->items[0].value = (double)pupil->calls;
    return LS_OK;
}

static int learn_in_group(void *policy,
                          const struct ls_trajectory *trajectories, size_t n,
                          const struct ls_learn_group *group,
                          struct ls_learn_info *info)
{
    struct pupil *const pupil = policy;
    const int status = learn(policy, trajectories, n, info);
    float call = (float)pupil->calls;
    pupil->group = group->n;
    return status == LS_OK ? group->mean(group->self, &call, 1) : status;
}

static int save(const void *policy, ls_writer *out)
{
    const struct pupil *const pupil = policy;
    ls_write_int(out, pupil->weights);
    return LS_OK;
}

static int load_weights(void *policy, const ls_value *in)
{
    struct pupil *const pupil = policy;
    return ls_value_int(in, &pupil->weights);
}

static const struct ls_policy_ops policy_ops = {.learn = learn,
                                                .save = save,
                                                .load = load_weights,
                                                .learn_in_group =
                                                    learn_in_group};
static const struct ls_plugin plugin = {.name = "fake", .policy = &policy_ops};

struct course {
    struct pupil pupil, second;
    void *replica;
    struct agent agent;
    struct plan plan;
    struct training *training;
    struct ls_items items;
    ls_learner_info *info;
};

static struct course course;

static int set_up(void **state)
{
    (void)state;
    memset(&course, 0, sizeof course);
    course.agent = (struct agent){
        .plugin = &plugin,
        .spec = {.n_observation = 2, .n_action = 1, .n_choices = 2},
        .policy = &course.pupil};
    course.plan.steps = N_STEPS;
    course.plan.learner = (struct plan_learner){.queue = 16,
                                                .stacks = 1,
                                                .passes = 1,
                                                .devices = {"cpu"},
                                                .n_devices = 1};
    return ls_learner_info_create(&course.info);
}

static int tear_down(void **state)
{
    (void)state;
    training_stop(&course.training);
    training_stop(&course.training);
    ls_items_clear(&course.items);
    ls_learner_info_destroy(&course.info);
    return 0;
}

static void start(void)
{
    assert_ok(training_start(&course.training, ls_runtime_threads(),
                             &course.plan, &course.agent, 7, N_TRAJECTORIES));
}

/* One more item: a trajectory of `n` steps whose first reward is given. */
static void add_item(size_t n, float reward)
{
    const struct trajectory_shape shape = agent_shape(&course.agent, N_STEPS);
    struct trajectory trajectory;
    ls_writer *writer;
    const void *data;
    size_t size;
    assert_ok(trajectory_init(&trajectory, &shape));
    size_t bytes = 0;
    assert_ok(trajectory_bytes(&shape, &bytes));
    memset(trajectory.memory, 0, bytes);
    trajectory.view.n = n;
    trajectory.view.rewards[0] = reward;
    assert_ok(ls_writer_create(&writer));
    assert_ok(trajectory_write(&trajectory.view, &shape, writer));
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_items_append(&course.items, data, size));
    ls_writer_destroy(&writer);
    trajectory_fini(&trajectory);
}

EACH_TEST(set_up, tear_down)

TEST(a_batch_is_learned_from_once)
{
    start();
    add_item(N_STEPS, 1.0f);
    add_item(2, 0.5f);
    for (int i = 1; i <= 3; i++) {
        ls_learner_info_clear(course.info);
        assert_ok(training_learn(course.training, &course.items, course.info));
        assert_int_equal(course.pupil.calls, i);
        assert_true(ls_learner_info_get(course.info, "call") == (double)i);
    }
    assert_int_equal(course.pupil.n, 2);
    assert_true(course.pupil.first == 1.5);
    assert_true(training_is_whole(course.training));
}

TEST(passes_learn_from_it_again_at_once)
{
    course.plan.learner.passes = 4;
    course.plan.learner.stacks = 2;
    course.plan.learner.loaders = 2;
    start();
    add_item(N_STEPS, 1.0f);
    for (int i = 1; i <= 3; i++)
        assert_ok(training_learn(course.training, &course.items, course.info));
    assert_int_equal(course.pupil.calls, 12);
    assert_true(ls_learner_info_get(course.info, "call") == 6.5);
}

TEST(what_is_no_batch_leaves_the_weights_whole)
{
    start();
    assert_ok(ls_items_append(&course.items, "?", 1));
    assert_fails(training_learn(course.training, &course.items, course.info),
                 LS_EPROTO);
    assert_error_has("learner: load: item 0 of 1: ");
    assert_true(training_is_whole(course.training));
    assert_int_equal(course.pupil.calls, 0);
}

TEST(more_trajectories_than_there_are_environments_are_refused)
{
    start();
    for (int i = 0; i <= N_TRAJECTORIES; i++)
        add_item(1, 0.0f);
    assert_fails(training_learn(course.training, &course.items, course.info),
                 LS_EPROTO);
    assert_non_null(strstr(ls_error_text(),
                           "4 trajectories came, and all collectors together "
                           "have 3 environments"));
}

TEST(a_learn_that_fails_leaves_the_weights_in_doubt)
{
    course.plan.learner.passes = 3;
    course.pupil.fails_at = 2;
    start();
    add_item(1, 0.0f);
    assert_fails(training_learn(course.training, &course.items, course.info),
                 LS_EHANDLER);
    assert_string_equal(ls_error_text(),
                        "learner: compute on device 0: plugin fake: policy: "
                        "learn: the loss is not finite");
    assert_false(training_is_whole(course.training));
}

/* What was said of the last update, as an event has it. */
struct heard {
    ls_mutex mutex;
    ls_cond changed;
    double call;
};

static int note_call(void *self, const struct ls_event *event)
{
    struct heard *const heard = self;
    double call = 0.0;
    ls_document *document;
    int status = ls_document_read(&document, event->data, event->size, NULL);
    if (status != LS_OK)
        return status;
    const ls_value *const info =
        ls_value_get(ls_document_root(document), "info");
    const ls_value *const learner = ls_value_get(info, "learner");
    status = ls_value_double(ls_value_get(learner, "call"), &call);
    ls_document_destroy(&document);
    ls_mutex_lock(&heard->mutex);
    heard->call = call;
    ls_cond_signal(&heard->changed);
    ls_mutex_unlock(&heard->mutex);
    return status;
}

static void await_call(struct heard *heard, double call)
{
    const int64_t deadline = ls_deadline(ls_runtime_threads(), 10000);
    ls_mutex_lock(&heard->mutex);
    while (heard->call != call)
        assert_ok(ls_cond_wait(&heard->changed, &heard->mutex, deadline));
    ls_mutex_unlock(&heard->mutex);
}

TEST(its_figures_are_told_to_who_listens)
{
    struct ls_node_options options;
    ls_node *node;
    struct heard heard = {.call = 0.0};
    assert_ok(ls_mutex_init(&heard.mutex, ls_runtime_threads()));
    assert_ok(ls_cond_init(&heard.changed, ls_runtime_threads()));
    ls_node_options_init(&options);
    options.bind = "inproc://training";
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_on(node, "learner.metrics", note_call, &heard));
    assert_ok(ls_node_start(node));
    start();
    add_item(1, 0.0f);
    for (int i = 1; i <= 2; i++) {
        assert_ok(training_learn(course.training, &course.items, course.info));
        assert_ok(training_publish(course.training, node));
        await_call(&heard, (double)i);
    }
    ls_node_stop(node, LS_OK);
    assert_ok(ls_node_take_error(node));
    const struct ls_learner_metrics *const metrics =
        training_metrics(course.training);
    assert_true(ls_learner_info_get(metrics->learner, "call") == 2.0);
    assert_true(metrics->learner_grad_time_ms >= 0.0);
    assert_true(metrics->learner_load_wait_time_ms == 0.0);
    const void *published;
    size_t size;
    training_published(course.training, &published, &size);
    const struct ls_event again = {.data = published, .size = size};
    heard.call = 0.0;
    assert_ok(note_call(&heard, &again));
    assert_true(heard.call == 2.0);
    ls_node_destroy(&node);
    ls_cond_fini(&heard.changed);
    ls_mutex_fini(&heard.mutex);
}

/* The second device's policy. */
static void add_device(void)
{
    course.replica = &course.second;
    course.agent.replicas = &course.replica;
    course.agent.n_replicas = 1;
    course.plan.learner.devices[1] = "cpu";
    course.plan.learner.n_devices = 2;
    assert_ok(ls_writer_create(&course.agent.writer));
}

static int start_with(size_t n)
{
    return training_start(&course.training, ls_runtime_threads(), &course.plan,
                          &course.agent, 7, n);
}

TEST(two_devices_learn_from_half_of_it_each)
{
    course.pupil.weights = 77;
    add_device();
    assert_ok(start_with(4));
    assert_true(course.second.weights == 77); /* they begin alike */
    for (int i = 0; i < 4; i++)
        add_item(N_STEPS, (float)(1 << i));
    assert_ok(training_learn(course.training, &course.items, course.info));
    assert_int_equal(course.pupil.group, 2);
    assert_true(course.pupil.n == 2 && course.pupil.first == 1.0 + 2.0);
    assert_true(course.second.n == 2 && course.second.first == 4.0 + 8.0);
    assert_true(training_is_whole(course.training));
    ls_writer_destroy(&course.agent.writer);
}

TEST(one_device_that_fails_ends_the_others)
{
    course.second.fails_at = 1;
    add_device();
    assert_ok(start_with(2));
    add_item(1, 0.0f);
    add_item(1, 0.0f);
    assert_fails(training_learn(course.training, &course.items, course.info),
                 LS_EHANDLER);
    assert_error_has("compute on device 1: ");
    assert_error_has("the loss is not finite");
    assert_false(training_is_whole(course.training));
    ls_writer_destroy(&course.agent.writer);
}

TEST(what_cannot_be_shared_is_refused)
{
    static const struct ls_policy_ops alone = {.learn = learn};
    static const struct ls_plugin lonely = {.name = "lonely", .policy = &alone};
    add_device();
    assert_fails(start_with(3), LS_ECONFIG);
    assert_error_has("3 trajectories");
    assert_error_has("by the 2 devices");
    course.agent.plugin = &lonely;
    assert_fails(start_with(4), LS_ECONFIG);
    assert_string_equal(ls_error_text(),
                        "the policy of plugin lonely learns on one device, "
                        "and learner.device lists 2");
    assert_null(course.training);
    ls_writer_destroy(&course.agent.writer);
}

TEST(a_batch_that_lacks_some_cannot_be_shared)
{
    add_device();
    assert_ok(start_with(4));
    for (int i = 0; i < 3; i++)
        add_item(1, 0.0f);
    assert_fails(training_learn(course.training, &course.items, course.info),
                 LS_EPROTO);
    assert_non_null(strstr(ls_error_text(), "3 trajectories came, and 2 "
                                            "devices cannot share them"));
    ls_writer_destroy(&course.agent.writer);
}

TEST(a_device_that_is_not_there_is_told)
{
    course.plan.learner.devices[0] = "cpu:9999";
    assert_int_not_equal(training_start(&course.training, ls_runtime_threads(),
                                        &course.plan, &course.agent, 7,
                                        N_TRAJECTORIES),
                         LS_OK);
    assert_null(course.training);
    assert_error_has("cpu:9999");
}
