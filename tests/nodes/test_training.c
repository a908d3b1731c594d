/* A policy that learns on the engine: what it is handed, how often, and what
 * becomes of what fails. */
#include "report.h"
#include "support/trajectory_room.h"
#include "test.h"
#include "training.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { N_STEPS = 5, N_TRAJECTORIES = 3 };

/* The policy's state: what learn() has seen. */
struct pupil {
    int calls;
    size_t n;     /* trajectories in the last one */
    double first; /* reward of each trajectory's first step, summed */
    int fails_at; /* the call that fails; 0: none */
    size_t group; /* devices, when there are several */
    int64_t weights;
    bool counts;        /* its weights are its calls */
    int64_t steps;      /* all else that it has: its calls, once counted */
    int verdict_at;     /* the call in which a verdict comes; 0: none */
    int64_t verdict_of; /* on the weights after so many updates */
};

/* A verdict that comes while this call learns. */
static void hear_verdict(struct pupil *pupil,
                         const struct ls_learn_batch *batch);

/* Every array lies in the stack that the policy is handed. */
static bool in_stack(const struct ls_learn_batch *batch)
{
    const unsigned char *begin = ls_device_stack_host(batch->stack);
    const unsigned char *end = begin + ls_device_stack_capacity(batch->stack);
    bool is_in = true;
    for (size_t i = 0; i < batch->n; i++) {
        const struct ls_trajectory *trajectory = &batch->trajectories[i];
        is_in = is_in && (unsigned char *)trajectory->observations >= begin &&
                trajectory->truncated + trajectory->n <= end;
    }
    return is_in;
}

static int learn(void *policy, const struct ls_learn_batch *batch,
                 struct ls_learn_info *info)
{
    struct pupil *const pupil = policy;
    pupil->n = batch->n;
    pupil->first = 0.0;
    pupil->group = batch->group != NULL ? ls_group_size(batch->group) : 0;
    for (size_t i = 0; i < batch->n; i++)
        pupil->first += (double)batch->trajectories[i].rewards[0];
    assert_true(in_stack(batch));
    if (++pupil->calls == pupil->fails_at)
        return ls_error(LS_EHANDLER, "the loss is not finite");
    if (pupil->counts)
        pupil->weights = pupil->steps = pupil->calls;
    if (pupil->calls == pupil->verdict_at)
        hear_verdict(pupil, batch);
    if (batch->is_given_up(batch->self))
        return ls_error(LS_EIO, "whatever it says");
    info->n = 1;
    info->items[0].name = "call";
    info->items[0].value = (double)pupil->calls;
    float call = (float)pupil->calls;
    return pupil->group > 0
               ? ls_group_all_reduce(batch->group, &call, 1, LS_GROUP_F32,
                                     LS_GROUP_MEAN, LS_WAIT_DEFAULT)
               : LS_OK;
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

static int refuse(void *policy, const ls_value *in)
{
    (void)policy;
    (void)in;
    return ls_error(LS_EPROTO, "not these");
}

static int save_steps(const void *policy, ls_writer *out)
{
    const struct pupil *const pupil = policy;
    ls_write_int(out, pupil->steps);
    return LS_OK;
}

static int load_steps(void *policy, const ls_value *in)
{
    struct pupil *const pupil = policy;
    return ls_value_int(in, &pupil->steps);
}

/* What the hooks of both states have been called for. */
static char told[256];

static int hook(void *policy, const char *what, int64_t iter,
                struct ls_learn_info *info)
{
    const struct pupil *const pupil = policy;
    const size_t used = strlen(told);
    (void)snprintf(told + used, sizeof told - used, "%s%lld after %d; ", what,
                   (long long)iter, pupil->calls);
    info->items[info->n].name = what;
    info->items[info->n++].value = (double)iter;
    return iter == 9 ? ls_error(LS_EHANDLER, "it is nine") : LS_OK;
}

static int begins(void *policy, int64_t iter, struct ls_learn_info *info)
{
    return hook(policy, "begin ", iter, info);
}

static int before(void *policy, int64_t iter, struct ls_learn_info *info)
{
    return hook(policy, "before ", iter, info);
}

static int after(void *policy, int64_t iter, struct ls_learn_info *info)
{
    return hook(policy, "after ", iter, info);
}

static int ends(void *policy, int64_t iter, struct ls_learn_info *info)
{
    return hook(policy, "end ", iter, info);
}

static const struct ls_policy_hook hooks[] = {
    {"after", LS_AFTER_ITER, 2, after},
    {"before", LS_BEFORE_ITER, 0, before},
    {"end", LS_AFTER_RUN, 0, ends},
    {"begin", LS_BEFORE_RUN, 0, begins}};
static const struct ls_policy_ops hooked_ops = {
    .learn = learn, .save = save, .hooks = hooks, .n_hooks = 4};
static const struct ls_plugin hooked = {.name = "hooked",
                                        .policy = &hooked_ops};

static const struct ls_state_part parts[] = {{"steps", save_steps, load_steps}};
static const struct ls_policy_ops policy_ops = {.learn = learn,
                                                .save = save,
                                                .load = load_weights,
                                                .parts = parts,
                                                .n_parts = 1,
                                                .learns_in_group = true};
static const struct ls_plugin plugin = {
    .name = "fake", .version = "1", .policy = &policy_ops};

struct course {
    struct pupil pupil, second;
    void *replica;
    struct agent agent;
    struct plan plan;
    struct training *training;
    struct ls_items items;
    ls_learner_info *info;
    int64_t n_put;
    bool is_over;
};

static struct course course;

static void hear_verdict(struct pupil *pupil,
                         const struct ls_learn_batch *batch)
{
    assert_false(batch->is_given_up(batch->self));
    training_give_up(course.training, pupil->verdict_of);
}

static int set_up(void **state)
{
    (void)state;
    memset(&course, 0, sizeof course);
    course.agent = (struct agent){
        .plugin = &plugin,
        .spec = {.observation = {LS_F32, 1, {2}}, .n_choices = 2},
        .policy = &course.pupil};
    course.plan.steps = N_STEPS;
    course.plan.learner = (struct plan_learner){
        .stacks = 1, .passes = 1, .devices = {"cpu"}, .n_devices = 1};
    const int status = ls_writer_create(&course.agent.writer);
    return status == LS_OK ? ls_learner_info_create(&course.info) : status;
}

static int tear_down(void **state)
{
    (void)state;
    training_stop(&course.training);
    ls_writer_destroy(&course.agent.writer);
    ls_items_clear(&course.items);
    ls_learner_info_destroy(&course.info);
    return 0;
}

EACH_TEST(set_up, tear_down)

/* Learn from what is there, which stays. */
static int learn_items(void)
{
    struct ls_items copy = {.n = 0};
    const struct weights_note note = {.train_iter = ++course.n_put};
    for (size_t i = 0; i < course.items.n; i++)
        assert_ok(ls_items_append(&copy, course.items.items[i].data,
                                  course.items.items[i].size));
    const int status = training_learn(course.training, &copy, &note,
                                      course.info, &course.is_over);
    ls_items_clear(&copy);
    return status;
}

static void start(void)
{
    assert_ok(training_start(&course.training, ls_runtime_threads(),
                             &course.plan, &course.agent, 7, N_TRAJECTORIES,
                             NULL));
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

TEST(a_batch_is_learned_from_once)
{
    start();
    add_item(N_STEPS, 1.0f);
    add_item(2, 0.5f);
    for (int i = 1; i <= 3; i++) {
        ls_learner_info_clear(course.info);
        assert_ok(learn_items());
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
        assert_ok(learn_items());
    assert_int_equal(course.pupil.calls, 12);
    assert_true(ls_learner_info_get(course.info, "call") == 6.5);
}

/* The policy after so many updates, as others would act by it. */
static void assert_newest(unsigned char weights)
{
    const struct ls_bytes *policy = training_policy(course.training);
    assert_int_equal(policy->size, 1);
    assert_int_equal(*(unsigned char *)policy->data, weights);
}

TEST(a_queue_lets_batches_be_under_way)
{
    struct weights_note note = {.seed = 0};
    course.plan.learner.queue = 2;
    course.plan.learner.stacks = 2;
    course.plan.learner.loaders = 1;
    course.pupil.counts = true;
    start();
    assert_ok(training_begin(course.training, &note));
    assert_newest(0);
    add_item(1, 0.0f);
    for (int i = 1; i <= 9; i++) {
        ls_learner_info_clear(course.info);
        assert_ok(learn_items());
        assert_int_equal(course.is_over, i > 2);
        assert_int_equal(training_under_way(course.training), i < 2 ? i : 2);
        if (!course.is_over)
            continue;
        assert_true(ls_learner_info_get(course.info, "call") == i - 2.0);
        assert_newest((unsigned char)(i - 2));
    }
    /* Whatever is learned meanwhile, what is written is what was over. */
    assert_true(training_is_whole(course.training));
    struct ls_bytes written = {.size = 0}, batches = {.size = 0};
    assert_ok(training_write(course.training, &note, &written));
    assert_ok(training_write_batches(course.training, &batches));
    assert_ok(training_end(course.training));
    course.pupil.weights = 77;
    assert_ok(
        weights_read(&course.agent, 0, written.data, written.size, &note));
    assert_int_equal(course.pupil.weights, 7);
    assert_int_equal(note.train_iter, 7);
    /* Another one goes on from both: those under way are learned first. */
    training_stop(&course.training);
    course.pupil.calls = 7;
    start();
    assert_ok(training_begin(course.training, &note));
    assert_ok(training_take_batches(course.training, &batches));
    assert_int_equal(training_under_way(course.training), 2);
    assert_ok(learn_items());
    assert_true(course.is_over);
    assert_newest(8);
    assert_fails(training_take_batches(course.training, &written), LS_EPROTO);
    ls_bytes_clear(&written);
    ls_bytes_clear(&batches);
}

TEST(what_is_no_batch_leaves_the_weights_whole)
{
    start();
    assert_ok(ls_items_append(&course.items, "?", 1));
    assert_fails(learn_items(), LS_EPROTO);
    assert_error_has("learner: load: item 0 of 1: ");
    assert_true(training_is_whole(course.training));
    assert_int_equal(course.pupil.calls, 0);
}

TEST(more_trajectories_than_there_are_environments_are_refused)
{
    start();
    for (int i = 0; i <= N_TRAJECTORIES; i++)
        add_item(1, 0.0f);
    assert_fails(learn_items(), LS_EPROTO);
    assert_error_has("4 trajectories came, and a batch has 3 at most");
}

TEST(a_learn_that_fails_leaves_the_weights_in_doubt)
{
    course.plan.learner.passes = 3;
    course.pupil.fails_at = 2;
    start();
    add_item(1, 0.0f);
    assert_fails(learn_items(), LS_EHANDLER);
    assert_string_equal(ls_error_text(),
                        "learner: compute on device 0: plugin fake: policy: "
                        "learn: the loss is not finite");
    assert_false(training_is_whole(course.training));
}

TEST(hooks_run_at_their_times)
{
    course.agent.plugin = &hooked;
    course.plan.learner.passes = 2;
    told[0] = '\0';
    start();
    assert_ok(training_begin(course.training,
                             &(struct weights_note){.train_iter = 2}));
    add_item(1, 0.0f);
    for (int i = 0; i < 3; i++) {
        ls_learner_info_clear(course.info);
        assert_ok(learn_items());
        assert_true(ls_learner_info_get(course.info, "before ") == 2.0 + i);
    }
    assert_true(ls_learner_info_get(course.info, "after ") == 4.0);
    assert_ok(training_end(course.training));
    assert_ok(training_end(course.training)); /* nothing */
    assert_string_equal(told, "begin 2 after 0; before 2 after 0; after 2 "
                              "after 2; before 3 after 2; before 4 after 4; "
                              "after 4 after 6; end 5 after 6; ");
}

TEST(a_hook_that_fails_ends_it)
{
    course.agent.plugin = &hooked;
    start();
    assert_fails(training_begin(course.training,
                                &(struct weights_note){.train_iter = 9}),
                 LS_EHANDLER);
    assert_string_equal(ls_error_text(),
                        "plugin hooked: hook begin: it is nine");
    add_item(1, 0.0f);
    assert_fails(learn_items(), LS_EHANDLER);
    assert_string_equal(ls_error_text(),
                        "learner: compute on device 0: plugin hooked: hook "
                        "before: it is nine");
    assert_int_equal(course.pupil.calls, 0);
}

static size_t n_figures;

static int learn_wordily(void *policy, const struct ls_learn_batch *batch,
                         struct ls_learn_info *info)
{
    (void)policy;
    (void)batch;
    info->n = n_figures; /* none of which has a name */
    return LS_OK;
}

TEST(figures_that_are_none_end_it)
{
    static const struct {
        size_t n;
        const char *because;
    } cases[] = {{1, "policy: learn: figure 0 has no name"},
                 {LS_LEARN_INFO_MAX + 1, "it reports 17 figures, over 16"},
                 {SIZE_MAX, "figures, over 16"}};
    struct ls_policy_ops ops = policy_ops;
    const struct ls_plugin wordy = {.name = "wordy", .policy = &ops};
    ops.learn = learn_wordily;
    course.agent.plugin = &wordy;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        n_figures = cases[i].n;
        start();
        if (i == 0)
            add_item(1, 0.0f);
        assert_fails(learn_items(), LS_EHANDLER);
        assert_error_has(cases[i].because);
        training_stop(&course.training);
    }
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
        assert_ok(learn_items());
        assert_ok(training_publish(course.training, node));
        await_call(&heard, (double)i);
    }
    ls_node_stop(node, LS_OK);
    assert_ok(ls_node_take_error(node));
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
}

static int start_with(size_t n)
{
    return training_start(&course.training, ls_runtime_threads(), &course.plan,
                          &course.agent, 7, n, NULL);
}

TEST(two_devices_learn_from_half_of_it_each)
{
    course.pupil.weights = 77;
    add_device();
    assert_ok(start_with(4));
    assert_true(course.second.weights == 77); /* they begin alike */
    for (int i = 0; i < 4; i++)
        add_item(N_STEPS, (float)(1 << i));
    assert_ok(learn_items());
    assert_int_equal(course.pupil.group, 2);
    assert_true(course.pupil.n == 2 && course.pupil.first == 1.0 + 2.0);
    assert_true(course.second.n == 2 && course.second.first == 4.0 + 8.0);
    assert_true(training_is_whole(course.training));
}

TEST(one_device_that_fails_ends_the_others)
{
    course.second.fails_at = 1;
    add_device();
    assert_ok(start_with(2));
    add_item(1, 0.0f);
    add_item(1, 0.0f);
    assert_fails(learn_items(), LS_EHANDLER);
    assert_error_has("compute on device 1: ");
    assert_error_has("the loss is not finite");
    assert_false(training_is_whole(course.training));
}

TEST(what_cannot_be_shared_is_refused)
{
    static const struct ls_policy_ops alone = {.learn = learn, .save = save};
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
    ls_group *group;
    assert_ok(ls_group_threads(&group, ls_runtime_threads(), 1));
    course.plan.learner.n_devices = 1;
    assert_fails(training_start(&course.training, ls_runtime_threads(),
                                &course.plan, &course.agent, 7, 4, group),
                 LS_ECONFIG);
    assert_error_has("learns alone, and learner.driver is bus");
    assert_ok(ls_group_destroy(&group));
    assert_null(course.training);
}

TEST(a_batch_that_lacks_some_cannot_be_shared)
{
    add_device();
    assert_ok(start_with(4));
    for (int i = 0; i < 3; i++)
        add_item(1, 0.0f);
    assert_fails(learn_items(), LS_EPROTO);
    assert_error_has("3 trajectories came, and 2 "
                     "devices cannot share them");
}

TEST(a_device_that_is_not_there_is_told)
{
    course.plan.learner.devices[0] = "cpu:9999";
    assert_int_not_equal(training_start(&course.training, ls_runtime_threads(),
                                        &course.plan, &course.agent, 7,
                                        N_TRAJECTORIES, NULL),
                         LS_OK);
    assert_null(course.training);
    assert_error_has("cpu:9999");
}

/* A plan with an evaluator that may end the run, and a policy that counts. */
static void judge(int64_t every)
{
    static struct plan_node evaluator = {.role = PLAN_EVALUATOR};
    course.plan.nodes = &evaluator;
    course.plan.n_nodes = 1;
    course.plan.solved = 475.0;
    course.plan.every = every;
    course.pupil.counts = true;
}

static void begin(void)
{
    assert_ok(training_begin(course.training,
                             &(struct weights_note){.train_iter = 0}));
    add_item(1, 0.0f);
    add_item(1, 0.0f);
}

/* Weights and all else are those after so many updates. */
static void assert_state(unsigned char updates)
{
    assert_newest(updates);
    assert_int_equal(course.pupil.weights, updates);
    assert_int_equal(course.pupil.steps, updates);
    assert_true(training_is_whole(course.training));
}

TEST(a_batch_is_given_up_when_the_weights_before_it_will_do)
{
    judge(1);
    course.pupil.verdict_at = 3;
    course.pupil.verdict_of = 2;
    start();
    begin();
    for (int i = 1; i <= 2; i++)
        assert_ok(learn_items());
    assert_ok(learn_items());
    assert_int_equal(course.pupil.calls, 3);
    assert_false(course.is_over);
    assert_int_equal(training_under_way(course.training), 0);
    assert_state(2);
    /* If the run goes on after all, the next one counts. */
    assert_ok(learn_items());
    assert_true(course.is_over);
    assert_state(4);
}

TEST(a_verdict_that_comes_before_the_batch_does_the_same)
{
    judge(1);
    start();
    begin();
    assert_ok(learn_items());
    training_give_up(course.training, 1);
    assert_ok(learn_items());
    assert_false(course.is_over);
    assert_state(1);
}

TEST(a_verdict_on_other_weights_gives_nothing_up)
{
    judge(2);
    start();
    begin();
    training_give_up(course.training, 0); /* nobody evaluates these */
    assert_ok(learn_items());
    training_give_up(course.training, 1); /* nor these */
    assert_ok(learn_items());
    assert_true(course.is_over);
    training_give_up(course.training, 4); /* those are still to come */
    assert_ok(learn_items());
    assert_true(course.is_over);
    assert_state(3);
}

TEST(who_learns_with_a_queue_is_not_stopped)
{
    judge(1);
    course.plan.learner.queue = 1;
    start();
    begin();
    for (int i = 1; i <= 3; i++) {
        training_give_up(course.training, i - 1);
        assert_ok(learn_items());
        assert_int_equal(course.is_over, i > 1);
    }
    assert_newest(2);
    assert_ok(training_revert(course.training));
    assert_newest(1);
}

TEST(all_devices_give_up_and_begin_alike_again)
{
    course.pupil.verdict_at = 2;
    course.pupil.verdict_of = 1;
    course.second.counts = true;
    add_device();
    judge(1);
    assert_ok(start_with(2));
    begin();
    assert_ok(learn_items());
    assert_ok(learn_items());
    assert_false(course.is_over);
    assert_state(1);
    assert_int_equal(course.second.weights, 1);
    assert_int_equal(course.second.steps, 1);
    assert_ok(learn_items());
    assert_true(course.is_over);
}

TEST(the_last_batch_is_taken_back)
{
    struct ls_learner_counts counts;
    ls_node *node;
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.bind = "inproc://training-back";
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_start(node));
    judge(1);
    start();
    begin();
    for (int i = 1; i <= 3; i++) {
        counts = *training_counts(course.training);
        assert_ok(learn_items());
        assert_ok(training_publish(course.training, node));
    }
    assert_true(training_counts(course.training)->grad_ns > counts.grad_ns);
    assert_ok(training_revert(course.training));
    assert_state(2);
    /* What is said of it, too: as if it had never been. */
    assert_int_equal(training_counts(course.training)->trained, 2);
    assert_int_equal(training_counts(course.training)->grad_ns, counts.grad_ns);
    ls_node_stop(node, LS_OK);
    ls_node_destroy(&node);
}

TEST(what_cannot_be_put_back_leaves_the_weights_in_doubt)
{
    struct ls_policy_ops broken = policy_ops;
    const struct ls_plugin other = {.name = "broken", .policy = &broken};
    broken.load = refuse;
    judge(1);
    course.agent.plugin = &other;
    start();
    begin();
    assert_ok(learn_items());
    assert_fails(training_revert(course.training), LS_EPROTO);
    assert_false(training_is_whole(course.training));
    training_stop(&course.training); /* while its plugin is there */
}

TEST(where_learners_share_a_batch_that_fails_leaves_nothing)
{
    ls_group *group;
    course.pupil.counts = true;
    course.pupil.fails_at = 2;
    assert_ok(ls_group_threads(&group, ls_runtime_threads(), 1));
    assert_ok(training_start(&course.training, ls_runtime_threads(),
                             &course.plan, &course.agent, 7, N_TRAJECTORIES,
                             group));
    begin();
    assert_ok(learn_items());
    assert_int_equal(course.pupil.group, 1);
    assert_state(1);
    assert_fails(learn_items(), LS_EHANDLER);
    assert_error_has("the loss is not finite");
    assert_false(course.is_over);
    assert_state(1); /* and the group of this generation is over */
    assert_ok(ls_group_form(group, LS_WAIT_DEFAULT));
    assert_ok(learn_items());
    assert_true(course.is_over);
    assert_state(3);
    training_stop(&course.training);
    assert_ok(ls_group_destroy(&group));
}

TEST(weights_of_another_learner_are_adopted)
{
    ls_group *group;
    assert_ok(ls_group_threads(&group, ls_runtime_threads(), 1));
    assert_ok(training_start(&course.training, ls_runtime_threads(),
                             &course.plan, &course.agent, 7, N_TRAJECTORIES,
                             group));
    begin();
    assert_newest(0);
    course.pupil.weights = 9;
    assert_ok(training_adopt(course.training,
                             &(struct weights_note){.train_iter = 9}));
    assert_newest(9);
    training_stop(&course.training);
    assert_ok(ls_group_destroy(&group));
}
