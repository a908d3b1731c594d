/* The loop: its order, its ends, and going on where it was. */
#include "lockstep/trainer.h"

#include <math.h>

#include "line.h"

enum { RANKS = 3, MOST_SAVES = 64 };

/* What a training did, of each rank. */
struct record {
    char calls[4096]; /* a letter each */
    struct ls_trainer_result result;
    struct ls_exception exception;
    unsigned exceptions;
    uint64_t hash;     /* of the weights at the end */
    uint64_t next;     /* that the rank's generator draws at the end */
    uint64_t batch[2]; /* at the end of each epoch */
    double loss;       /* of the last evaluation */
    double max_loss;
};

/* A training, and what is to happen in it. */
struct plan {
    const struct ls_model_ops *ops;
    struct ls_trainer_options options;
    uint32_t ranks;
    bool acts;        /* rank `who` stops or fails … */
    uint64_t stop_at; /* … after so many steps */
    uint32_t who;
    int status; /* it fails with this; LS_OK: it stops */
    char in;    /* the callback to do it in: the letter; 0: after_batch */
    struct record of[RANKS];
};

/* Callbacks: they note themselves, and do what is to happen. */
static int note(void *self, ls_trainer *trainer, char letter)
{
    struct plan *plan = self;
    ls_driver *driver = ls_trainer_driver(trainer);
    struct record *record = &plan->of[ls_driver_rank(driver)];
    const size_t n = strlen(record->calls);
    if (n + 1 < sizeof record->calls)
        record->calls[n] = letter;
    if (letter == 'e' && ls_trainer_epoch(trainer) < 2)
        record->batch[ls_trainer_epoch(trainer)] = ls_trainer_batch(trainer);
    if (ls_driver_rank(driver) != plan->who || !plan->acts ||
        ls_trainer_steps(trainer) < plan->stop_at ||
        letter != (plan->in != 0 ? plan->in : 'b'))
        return LS_OK;
    if (plan->status != LS_OK)
        return ls_error(plan->status, "it had to be");
    ls_trainer_stop(trainer);
    return LS_OK;
}

#define NOTE(name, letter)                                                     \
    static int name(void *self, ls_trainer *trainer)                           \
    {                                                                          \
        return note(self, trainer, letter);                                    \
    }
NOTE(before_training, 'T')
NOTE(after_training, 't')
NOTE(before_epoch, 'E')
NOTE(after_epoch, 'e')
NOTE(before_batch, 'B')
NOTE(before_step, 's')
NOTE(after_batch, 'b')
NOTE(before_evaluation, 'V')
NOTE(on_save, 'S')
NOTE(on_load, 'L')

static int after_evaluation(void *self, ls_trainer *trainer)
{
    struct plan *plan = self;
    struct record *record =
        &plan->of[ls_driver_rank(ls_trainer_driver(trainer))];
    record->loss = ls_trainer_evaluation(trainer, "loss");
    record->max_loss = ls_trainer_evaluation(trainer, "max_loss");
    CHECK(isnan(ls_trainer_evaluation(trainer, "none")));
    return note(self, trainer, 'v');
}

static void on_exception(void *self, ls_trainer *trainer,
                         const struct ls_exception *what)
{
    struct plan *plan = self;
    struct record *record =
        &plan->of[ls_driver_rank(ls_trainer_driver(trainer))];
    record->exception = *what;
    record->exceptions++;
}

static int train(void *self, ls_driver *driver)
{
    struct plan *plan = self;
    struct record *record = &plan->of[ls_driver_rank(driver)];
    const struct ls_trainer_callbacks callbacks = {
        .name = "notes",
        .before_training = before_training,
        .after_training = after_training,
        .before_epoch = before_epoch,
        .after_epoch = after_epoch,
        .before_batch = before_batch,
        .before_step = before_step,
        .after_batch = after_batch,
        .before_evaluation = before_evaluation,
        .after_evaluation = after_evaluation,
        .on_save = on_save,
        .on_load = on_load,
        .on_exception = on_exception,
        .self = plan};
    struct ls_trainer_options options = plan->options;
    options.callbacks = &callbacks;
    options.n_callbacks = 1;
    TRY(line_setup(driver, plan->ops != NULL ? plan->ops : &line_ops));
    const int status = ls_trainer_run(driver, &options, &record->result);
    if (status != LS_OK)
        return status;
    record->hash = ls_driver_hash(driver);
    record->next = ls_rng_next(ls_driver_random(driver));
    return LS_OK;
}

static int run(struct plan *plan)
{
    memset(plan->of, 0, sizeof plan->of);
    return run_threads(plan->ranks, train, plan);
}

static void assert_alike(const struct plan *plan)
{
    for (uint32_t i = 1; i < plan->ranks; i++) {
        assert_int_equal(plan->of[i].hash, plan->of[0].hash);
        assert_memory_equal(&plan->of[i].loss, &plan->of[0].loss, 8);
        assert_memory_equal(&plan->of[i].max_loss, &plan->of[0].max_loss, 8);
    }
}

static struct plan plan_of(uint32_t ranks)
{
    return (struct plan){.ranks = ranks,
                         .options = {.data = &line_data,
                                     .evaluation = &line_data,
                                     .epochs = 2,
                                     .batch_size = 5}};
}

/* The order ---------------------------------------------------------------- */

TEST(callbacks_come_in_their_order)
{
    struct plan plan = plan_of(2);
    assert_ok(run(&plan));
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(plan.of[i].calls,
                            "TEBsbBsbBsbBsbVveEBsbBsbBsbBsbVvet");
        assert_int_equal(plan.of[i].result.epochs, 2);
        assert_int_equal(plan.of[i].result.steps, 8);
        assert_false(plan.of[i].result.stopped);
        assert_int_equal(plan.of[i].exceptions, 0);
    }
    assert_alike(&plan);
}

TEST(gradients_of_several_batches_make_a_step)
{
    struct plan plan = plan_of(2);
    plan.options.epochs = 1;
    plan.options.accumulate = 3; /* and the last one of the epoch alone */
    plan.options.evaluation = NULL;
    assert_ok(run(&plan));
    assert_string_equal(plan.of[1].calls, "TEBbBbBsbBsbet");
    assert_alike(&plan);
}

TEST(evaluation_is_every_so_many_epochs)
{
    struct plan plan = plan_of(1);
    plan.options.epochs = 3;
    plan.options.batch_size = 40;
    plan.options.evaluate_every = 2;
    assert_ok(run(&plan));
    assert_string_equal(plan.of[0].calls, "TEBsbeEBsbVveEBsbet");
}

/* Where it is: "epoch.batch/batches" of each. */
static int follow(void *self, ls_trainer *trainer)
{
    char *text = self;
    const ls_learner_info *figures = ls_trainer_figures(trainer);
    const size_t n = strlen(text);
    CHECK(ls_learner_info_get(figures, "loss") >= 0.0);
    (void)snprintf(text + n, 64 - n, "%u.%u/%u ",
                   (unsigned)ls_trainer_epoch(trainer),
                   (unsigned)ls_trainer_batch(trainer),
                   (unsigned)ls_trainer_batches(trainer));
    return LS_OK;
}

static int train_and_follow(void *self, ls_driver *driver)
{
    char(*texts)[64] = self;
    const struct ls_trainer_callbacks callbacks = {
        .after_batch = follow, .self = texts[ls_driver_rank(driver)]};
    struct ls_trainer_result result;
    TRY(line_setup(driver, &line_ops));
    return ls_trainer_run(driver,
                          &(struct ls_trainer_options){.data = &line_data,
                                                       .epochs = 2,
                                                       .batch_size = 10,
                                                       .callbacks = &callbacks,
                                                       .n_callbacks = 1},
                          &result);
}

TEST(a_callback_knows_its_batch_and_what_came_of_it)
{
    char texts[RANKS][64] = {""};
    assert_ok(run_threads(2, train_and_follow, texts));
    for (int i = 0; i < 2; i++)
        assert_string_equal(texts[i], "0.0/2 0.1/2 1.0/2 1.1/2 ");
}

/* What is learned ---------------------------------------------------------- */

TEST(a_model_learns)
{
    const struct ls_model_ops ops = still_ops();
    struct plan plan = plan_of(3);
    plan.ops = &ops;
    plan.options.epochs = 60;
    assert_ok(run(&plan));
    assert_true(plan.of[0].loss < 1e-3);
    assert_alike(&plan);
}

/* 10 samples for each step; 1 rank sees the same ones as 2. */
TEST(one_rank_and_two_learn_the_same)
{
    const struct ls_model_ops ops = still_ops();
    struct plan one = plan_of(1), two = plan_of(2);
    one.ops = two.ops = &ops;
    one.options.batch_size = 10;
    assert_ok(run(&one));
    assert_ok(run(&two));
    assert_true(fabs(one.of[0].loss - two.of[0].loss) < 1e-12 * one.of[0].loss);
    assert_true(fabs(one.of[0].max_loss - two.of[0].max_loss) <
                1e-12 * one.of[0].max_loss);
}

/* A model of floats, whose gradient is its rank and one. */
struct floats {
    const struct ls_parameter *parameters;
    float gradient;
};

static int floats_init(void *model, const struct ls_model_setup *setup)
{
    ((struct floats *)model)->gradient = (float)setup->rank + 1.0f;
    return LS_OK;
}

static bool floats_parameter(const void *model, size_t at,
                             struct ls_parameter *out)
{
    (void)model;
    *out = (struct ls_parameter){.name = "f", .form = {LS_BLOB_F32, 1, {3}}};
    return at == 0;
}

static int floats_begin(void *model, const struct ls_parameter *parameters,
                        struct ls_rng *random)
{
    (void)random;
    ((struct floats *)model)->parameters = parameters;
    return LS_OK;
}

static int floats_train(void *model, const struct ls_batch *batch,
                        ls_learner_info *figures)
{
    (void)model;
    return ls_learner_info_add(figures, "loss", (double)batch->n);
}

static int floats_backward(void *model, double scale)
{
    const struct floats *floats = model;
    float *gradient = floats->parameters[0].gradient;
    for (int i = 0; i < 3; i++)
        gradient[i] += (float)scale * floats->gradient;
    return LS_OK;
}

static int descend(void *config, const struct ls_parameter *parameter,
                   void *const *slots, uint64_t step)
{
    float *value = parameter->value, *sum = slots[1];
    const float *gradient = parameter->gradient;
    (void)config;
    CHECK(((const float *)slots[0])[2] == 0.0f);
    for (int i = 0; i < 3; i++) {
        sum[i] += gradient[i];
        value[i] = (float)step * sum[i];
    }
    return LS_OK;
}

static int stop_in_last(void *self, ls_trainer *trainer)
{
    const ls_driver *driver = ls_trainer_driver(trainer);
    (void)self;
    if (ls_driver_rank(driver) + 1 == ls_driver_size(driver) &&
        ls_trainer_steps(trainer) == 2)
        ls_trainer_stop(trainer);
    return LS_OK;
}

static int train_floats(void *self, ls_driver *driver)
{
    static const struct ls_model_ops ops = {.name = "floats",
                                            .state_bytes =
                                                sizeof(struct floats),
                                            .init = floats_init,
                                            .parameter = floats_parameter,
                                            .begin = floats_begin,
                                            .train = floats_train,
                                            .backward = floats_backward};
    static const struct ls_optimiser_ops adds = {
        .name = "adds", .n_slots = 2, .step = descend};
    const struct ls_optimiser optimiser = {.ops = &adds};
    const struct ls_trainer_callbacks callbacks = {.after_batch = stop_in_last};
    struct ls_trainer_result result;
    size_t n;
    (void)self;
    TRY(ls_driver_setup(driver,
                        &(struct ls_driver_setup){.model = &ops,
                                                  .optimisers = &optimiser,
                                                  .n_optimisers = 1}));
    TRY(ls_trainer_run(driver,
                       &(struct ls_trainer_options){.data = &line_data,
                                                    .epochs = 1,
                                                    .callbacks = &callbacks,
                                                    .n_callbacks = 1},
                       &result));
    CHECK(result.stopped && result.steps == 3);
    const float *f = ls_driver_parameters(driver, &n)[0].value;
    for (int i = 0; i < 3; i++) /* 3 steps of the mean of 1, 2 and 3 */
        CHECK(f[i] == 3.0f * 3.0f * 2.0f);
    return LS_OK;
}

TEST(floats_are_trained_and_stopped_too)
{
    assert_ok(run_threads(3, train_floats, NULL));
}

/* Of 7 samples 3 ranks have 3, 2 and 2; of 2 one has none. */
TEST(figures_are_means_over_samples_not_over_batches_or_ranks)
{
    const struct ls_model_ops ops = still_ops();
    for (uint64_t length = 2; length <= 7; length += 5) {
        struct ls_data few = line_data;
        few.length = length;
        struct plan one = plan_of(1), three = plan_of(3);
        one.ops = three.ops = &ops;
        one.options.evaluation = three.options.evaluation = &few;
        one.options.epochs = three.options.epochs = 1;
        one.options.batch_size = 39; /* a step of them all, and of one */
        three.options.batch_size = 13;
        three.options.evaluation_batch_size = 2;
        assert_ok(run(&one));
        assert_ok(run(&three));
        assert_true(one.of[0].loss > 0.0);
        assert_alike(&three);
        assert_true(three.of[0].loss > 0.0);
        assert_true(three.of[0].max_loss >= three.of[0].loss);
    }
}

/* Ends --------------------------------------------------------------------- */

TEST(one_rank_can_stop_all_after_the_next_step)
{
    struct plan plan = plan_of(3);
    plan.options.epochs = 5;
    plan.acts = true;
    plan.stop_at = 1;
    plan.who = 2;
    assert_ok(run(&plan));
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(plan.of[i].calls, "TEBsbBsbt");
        assert_true(plan.of[i].result.stopped);
        assert_int_equal(plan.of[i].result.steps, 2);
        assert_int_equal(plan.of[i].exceptions, 0);
    }
    assert_alike(&plan);
}

TEST(a_stop_after_the_last_step_ends_with_the_epoch)
{
    struct plan plan = plan_of(2);
    plan.acts = true;
    plan.stop_at = 4;
    plan.in = 'e';
    assert_ok(run(&plan));
    assert_string_equal(plan.of[0].calls, "TEBsbBsbBsbBsbVvet");
    assert_int_equal(plan.of[1].result.epochs, 1);
    assert_true(plan.of[1].result.stopped);
}

/* In each callback, in each rank: one on_exception everywhere, and the status,
 * text and rank of the first. */
TEST(an_error_ends_all_ranks_and_is_told_once)
{
    static const char letters[] = "TEBsbVvet";
    static const char *const steps[] = {
        "before_training",  "before_epoch", "before_batch",
        "before_step",      "after_batch",  "before_evaluation",
        "after_evaluation", "after_epoch",  "after_training"};
    for (size_t at = 0; letters[at] != '\0'; at++) {
        for (uint32_t who = 0; who < 2; who++) {
            struct plan plan = plan_of(2);
            char text[96];
            plan.acts = true;
            plan.stop_at = 1;
            plan.who = who;
            plan.status = LS_EHANDLER;
            plan.in = letters[at];
            if (plan.in == 'T' || plan.in == 'E' || plan.in == 'B')
                plan.stop_at = 0;
            assert_fails(run(&plan), LS_EHANDLER);
            (void)snprintf(text, sizeof text, "rank %u: epoch ", who);
            assert_error_has(text);
            assert_error_has("callback notes: it had to be");
            for (uint32_t i = 0; i < 2; i++) {
                const struct ls_exception *what = &plan.of[i].exception;
                assert_int_equal(plan.of[i].exceptions, 1);
                assert_int_equal(what->is_first, i == who);
                assert_int_equal(what->status,
                                 i == who ? LS_EHANDLER : LS_EABORTED);
                assert_int_equal(what->global_rank, i);
            }
            assert_string_equal(plan.of[who].exception.step, steps[at]);
            if (plan.in == 'b' || plan.in == 't') { /* how far it came */
                assert_int_equal(plan.of[who].result.steps,
                                 plan.in == 'b' ? 1 : 8);
                assert_int_equal(plan.of[who].result.epochs,
                                 plan.in == 'b' ? 0 : 2);
            }
        }
    }
}

static int fail_backward(void *model, double scale)
{
    (void)model;
    (void)scale;
    return ls_error(LS_EINVAL, "not finite");
}

TEST(an_error_of_the_model_names_epoch_batch_and_model)
{
    struct ls_model_ops ops = line_ops;
    struct plan plan = plan_of(1);
    ops.backward = fail_backward;
    plan.ops = &ops;
    assert_fails(run(&plan), LS_EINVAL);
    assert_error_has("rank 0: epoch 0, batch 0: the model line: not finite");
    assert_string_equal(plan.of[0].exception.step, "backward");
    assert_string_equal(
        plan.of[0].exception.text,
        "backward: epoch 0, batch 0: the model line: not finite");
}

static int fail_third_step(void *config, const struct ls_parameter *parameter,
                           void *const *slots, uint64_t step)
{
    (void)config;
    (void)parameter;
    (void)slots;
    return step == 3 ? ls_error(LS_ELIMIT, "too far") : LS_OK;
}

static int train_three_steps(void *self, ls_driver *driver)
{
    static const struct ls_optimiser_ops ops = {.name = "short",
                                                .step = fail_third_step};
    const struct ls_optimiser optimiser = {.ops = &ops};
    struct ls_trainer_result result = {.steps = 77};
    (void)self;
    TRY(ls_driver_setup(driver,
                        &(struct ls_driver_setup){.model = &line_ops,
                                                  .optimisers = &optimiser,
                                                  .n_optimisers = 1}));
    const int status =
        ls_trainer_run(driver,
                       &(struct ls_trainer_options){
                           .data = &line_data, .epochs = 1, .batch_size = 5},
                       &result);
    CHECK(status == LS_ELIMIT && result.steps == 2);
    return status;
}

TEST(an_error_of_the_optimiser_names_epoch_batch_and_optimiser)
{
    assert_fails(run_kind(LS_DRIVER_SINGLE, 0, train_three_steps, NULL),
                 LS_ELIMIT);
    assert_error_has("epoch 0, batch 2: the optimiser short, parameter w: ");
}

static int fail_load(void *self, const uint64_t *indices, size_t n, void *items)
{
    (void)self;
    (void)n;
    (void)items;
    return ls_error(LS_EIO, "sample %d is gone", (int)indices[0]);
}

TEST(an_error_of_the_data_is_named)
{
    struct ls_data gone = line_data;
    struct plan plan = plan_of(1);
    gone.load = fail_load;
    plan.options.data = &gone;
    plan.options.in_order = true;
    assert_fails(run(&plan), LS_EIO);
    assert_error_has("loading 5 samples: sample 0 is gone");
    assert_string_equal(plan.of[0].exception.step, "load batch");
}

TEST(options_that_are_none_are_refused)
{
    struct plan plan = plan_of(1);
    plan.options.data = NULL;
    assert_fails(run(&plan), LS_EINVAL);
    plan = plan_of(1);
    plan.options.epochs = 0;
    assert_fails(run(&plan), LS_EINVAL);
    assert_error_has("`epochs`: 1 or more");
    plan = plan_of(1);
    plan.options.spread = LS_SPREAD_EXACT;
    assert_fails(run(&plan), LS_EINVAL);
    assert_error_has("unrepeatdist");
}

static int train_nothing(void *self, ls_driver *driver)
{
    struct ls_trainer_options options = {.data = &line_data, .epochs = 1};
    (void)self;
    CHECK_FAILS(ls_trainer_run(driver, &options, NULL), LS_ESTATE);
    CHECK_ERROR_HAS("ls_driver_setup()");
    return LS_OK;
}

/* With that batch size and no smaller batch, or with so many ranks, there is no
 * batch. */
TEST(a_training_without_a_batch_is_refused)
{
    struct plan plan = plan_of(2);
    plan.options.batch_size = 21;
    plan.options.drop_last = true;
    assert_fails(run(&plan), LS_EINVAL);
    assert_error_has("no batch");
    struct ls_data few = line_data;
    few.length = 1;
    plan = plan_of(2);
    plan.options.data = &few;
    plan.options.spread = LS_SPREAD_CUT;
    assert_fails(run(&plan), LS_EINVAL);
    plan.options.spread = LS_SPREAD_PAD;
    assert_ok(run(&plan));
    assert_int_equal(plan.of[1].result.steps, 2);
}

static int train_until(void *self, ls_driver *driver)
{
    struct ls_trainer_result result;
    (void)self;
    memset(&result, 0xff, sizeof result);
    TRY(line_setup(driver, &line_ops));
    CHECK_FAILS(ls_trainer_run(
                    driver, &(struct ls_trainer_options){.epochs = 1}, &result),
                LS_EINVAL);
    CHECK(result.epochs == 0 && result.steps == 0 && !result.stopped);
    return LS_OK;
}

TEST(what_is_refused_has_a_result_too)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, train_until, NULL));
}

TEST(without_a_model_nothing_is_trained)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, train_nothing, NULL));
}

/* Rank 1 brings what are no figures to the evaluation. */
static int bring_a_list(void *self, ls_trainer *trainer)
{
    ls_driver *driver = ls_trainer_driver(trainer);
    ls_document *all[2] = {NULL};
    ls_writer *writer = NULL;
    size_t n = 0;
    (void)self;
    if (ls_driver_rank(driver) == 0)
        return LS_OK;
    TRY(ls_writer_create(&writer));
    ls_write_array(writer, 1);
    ls_write_array(writer, 2);
    ls_write_double(writer, 1.0);
    ls_write_double(writer, 1.0);
    const int status = ls_driver_all_gather_object(driver, writer, all, &n);
    for (size_t i = 0; i < n; i++)
        ls_document_destroy(&all[i]);
    ls_writer_destroy(&writer);
    return status == LS_OK ? ls_driver_barrier(driver) : status;
}

static int evaluate_a_list(void *self, ls_driver *driver)
{
    const struct ls_trainer_callbacks callbacks = {.before_evaluation =
                                                       bring_a_list};
    (void)self;
    TRY(line_setup(driver, &line_ops));
    return ls_trainer_run(driver,
                          &(struct ls_trainer_options){.data = &line_data,
                                                       .evaluation = &line_data,
                                                       .epochs = 1,
                                                       .callbacks = &callbacks,
                                                       .n_callbacks = 1},
                          NULL);
}

TEST(figures_that_are_none_are_refused)
{
    assert_fails(run_threads(2, evaluate_a_list, NULL), LS_EPROTO);
}

/* One figure; or another one in each batch. */
struct naming {
    const char *name; /* NULL: another one each */
    unsigned n;
};
static struct naming naming;

static int evaluate_a_name(void *model, const struct ls_batch *batch,
                           ls_learner_info *figures)
{
    static char names[LINE_SAMPLES][8];
    (void)model;
    (void)batch;
    if (naming.name != NULL)
        return ls_learner_info_add(figures, naming.name, 1.0);
    char *const name = names[naming.n % LINE_SAMPLES];
    (void)snprintf(name, sizeof names[0], "f%u", naming.n++);
    return ls_learner_info_add(figures, name, 1.0);
}

TEST(figures_of_an_evaluation_have_few_and_short_names)
{
    char name[65];
    struct ls_model_ops ops = line_ops;
    struct plan plan = plan_of(1);
    memset(name, 'n', 64);
    name[64] = '\0';
    ops.evaluate = evaluate_a_name;
    plan.ops = &ops;
    plan.options.epochs = 1;
    naming = (struct naming){.name = name};
    assert_fails(run(&plan), LS_ELIMIT);
    assert_error_has("names of 63 bytes");
    naming = (struct naming){.name = name + 1};
    assert_ok(run(&plan));
    naming = (struct naming){.name = NULL};
    plan.options.evaluation_batch_size = 1;
    assert_fails(run(&plan), LS_ELIMIT);
    assert_error_has("there are 32 at most");
}

/* Going on ----------------------------------------------------------------- */

/* The state after a training that nothing interrupted. */
static struct plan whole(struct plan plan, const char *folder)
{
    plan.options.folder = folder;
    plan.options.save_every = 1;
    plan.options.resume = false;
    assert_ok(run(&plan));
    return plan;
}

static struct plan resumable(uint32_t ranks)
{
    struct plan plan = plan_of(ranks);
    plan.options.batch_size = 4;
    plan.options.spread = LS_SPREAD_CUT;
    return plan;
}

/* It fails after each step in turn, in any rank, and goes on from what was
 * saved last: weights and generators are those of the whole one. */
TEST_WITH(it_goes_on_to_the_bit_wherever_it_was, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    char folder[128];
    (void)snprintf(folder, sizeof folder, "%s/whole", scratch->folder);
    const struct plan wanted = whole(resumable(2), folder);
    const uint64_t steps = wanted.of[0].result.steps;
    assert_int_equal(steps, 10);
    for (uint64_t at = 1; at <= steps; at++) {
        struct plan plan = resumable(2);
        (void)snprintf(folder, sizeof folder, "%s/%d", scratch->folder,
                       (int)at);
        plan.options.folder = folder;
        plan.options.save_every = at % 3 + 1;
        plan.options.accumulate = 1;
        plan.acts = true;
        plan.stop_at = at;
        plan.who = at % 2;
        plan.status = LS_EIO;
        assert_fails(run(&plan), LS_EIO);
        plan.options.resume = true;
        plan.acts = false;
        assert_ok(run(&plan));
        assert_alike(&plan);
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(plan.of[i].hash, wanted.of[i].hash);
            assert_int_equal(plan.of[i].next, wanted.of[i].next);
            assert_memory_equal(&plan.of[i].loss, &wanted.of[i].loss, 8);
            assert_int_equal(plan.of[i].result.steps, steps);
        }
    }
}

/* Saved behind the last batch of an epoch, it still evaluates it. */
TEST_WITH(an_epoch_that_was_trained_is_ended_not_repeated, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    struct plan plan = resumable(1);
    plan.options.folder = scratch->folder;
    plan.options.save_every = 1;
    plan.acts = true;
    plan.stop_at = 10;
    plan.in = 'V';
    plan.status = LS_EIO;
    assert_fails(run(&plan), LS_EIO);
    plan.options.resume = true;
    plan.acts = false;
    assert_ok(run(&plan));
    assert_true(strncmp(plan.of[0].calls, "LTEVveSE", 8) == 0);
    assert_int_equal(plan.of[0].batch[0], 10);
    assert_int_equal(plan.of[0].batch[1], 10);
    assert_int_equal(plan.of[0].result.epochs, 2);
    assert_int_equal(plan.of[0].result.steps, 20);
}

TEST_WITH(other_numbers_of_ranks_go_on_with_the_same_samples, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    const struct ls_model_ops ops = still_ops();
    static const uint32_t ranks[] = {3, 2, 1};
    double loss = 0.0;
    for (size_t i = 0; i < 3; i++) {
        struct plan plan = plan_of(3);
        char folder[128];
        (void)snprintf(folder, sizeof folder, "%s/%zu", scratch->folder, i);
        plan.ops = &ops;
        plan.options.folder = folder;
        plan.options.batch_size = 2; /* six samples a step, of 36 */
        struct ls_data data = line_data;
        data.length = 36;
        plan.options.data = &data;
        plan.options.save_every = 1;
        plan.acts = true;
        plan.stop_at = 4;
        plan.status = LS_EIO;
        assert_fails(run(&plan), LS_EIO);
        plan.options.resume = true;
        plan.acts = false;
        plan.ranks = ranks[i];
        plan.options.batch_size = 6 / ranks[i];
        assert_ok(run(&plan));
        assert_int_equal(plan.of[0].result.steps, 12);
        assert_alike(&plan);
        if (i == 0)
            loss = plan.of[0].loss;
        assert_true(fabs(plan.of[0].loss - loss) < 1e-12 * loss);
    }
}

TEST_WITH(a_training_that_was_stopped_stays_so, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    struct plan plan = resumable(2);
    plan.options.folder = scratch->folder;
    plan.options.epochs = 3;
    plan.acts = true;
    plan.stop_at = 2;
    assert_ok(run(&plan));
    assert_string_equal(plan.of[0].calls, "TEBsbBsbBsbtS");
    plan.options.resume = true;
    plan.acts = false;
    assert_ok(run(&plan));
    assert_string_equal(plan.of[1].calls, "LTt");
    assert_true(plan.of[1].result.stopped);
    assert_int_equal(plan.of[1].result.steps, 3);
}

TEST_WITH(a_training_that_has_ended_goes_on_with_more_epochs, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    struct plan plan = resumable(1);
    plan.options.folder = scratch->folder;
    assert_ok(run(&plan));
    plan.options.resume = true;
    assert_ok(run(&plan));
    assert_string_equal(plan.of[0].calls, "LTt");
    plan.options.epochs = 3;
    plan.options.batch_size = 40;
    assert_ok(run(&plan));
    assert_string_equal(plan.of[0].calls, "LTEBsbVveSt");
    assert_int_equal(plan.of[0].result.epochs, 3);
}

TEST_WITH(checkpoints_are_not_overwritten_by_mistake, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    struct plan plan = resumable(2);
    plan.options.folder = scratch->folder;
    assert_ok(run(&plan));
    assert_fails(run(&plan), LS_EEXIST);
    assert_error_has("resume, or choose another folder");
}

TEST(a_folder_that_cannot_be_is_told)
{
    struct plan plan = resumable(1);
    plan.options.folder = "/dev/null/saved";
    for (int resume = 0; resume < 2; resume++) {
        plan.options.resume = resume == 1;
        assert_fails(run(&plan), LS_EIO);
        assert_error_has("rank 0: epoch 0, batch 0: ");
        assert_error_has("/dev/null");
        assert_string_equal(plan.of[0].exception.step, "load");
    }
}

TEST_WITH(the_data_must_be_as_long_as_before, scratch_set_up, scratch_tear_down)
{
    const struct scratch *scratch = *state;
    struct ls_data longer = line_data;
    struct plan plan = resumable(2);
    plan.options.folder = scratch->folder;
    assert_ok(run(&plan));
    longer.length++;
    plan.options.data = &longer;
    plan.options.resume = true;
    assert_fails(run(&plan), LS_EMISMATCH);
    assert_error_has("40 samples");
}

/* A checkpoint that has all that a trainer asks for, as from another program.
 */
struct foreign {
    const char *folder;
    int64_t progress[4];
};

static int save_foreign(void *self, ls_driver *driver)
{
    struct foreign *foreign = self;
    ls_sampler *sampler = NULL;
    TRY(line_setup(driver, &line_ops));
    TRY(ls_sampler_create(
        &sampler, &(struct ls_sampler_options){.length = LINE_SAMPLES}));
    TRY(ls_blobs_add(ls_driver_blobs(driver),
                     &(struct ls_blob){.name = "trainer",
                                       .form = {LS_BLOB_I64, 1, {4}},
                                       .memory = foreign->progress}));
    TRY(ls_sampler_add_blob(sampler, ls_driver_blobs(driver), "sampler"));
    TRY(ls_driver_open_checkpoints(driver, foreign->folder, NULL));
    TRY(ls_driver_save(driver, 7, false));
    TRY(ls_blobs_remove(ls_driver_blobs(driver), "sampler"));
    ls_sampler_destroy(&sampler);
    return LS_OK;
}

/* Epoch, steps, whether the epoch was trained, checkpoints. */
TEST_WITH(a_place_that_no_training_comes_to_is_refused, scratch_set_up,
          scratch_tear_down)
{
    static const int64_t odd[][4] = {{-1, 0, 0, 7}, {0, INT64_MIN, 0, 7}};
    const struct scratch *scratch = *state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char folder[128];
        struct plan plan = plan_of(2);
        struct foreign foreign = {.folder = folder};
        (void)snprintf(folder, sizeof folder, "%s/%zu", scratch->folder, i);
        memcpy(foreign.progress, odd[i], sizeof odd[i]);
        assert_ok(run_threads(2, save_foreign, &foreign));
        plan.options.folder = folder;
        plan.options.resume = true;
        assert_fails(run(&plan), LS_EPROTO);
        assert_error_has("no trainer is in epoch");
        assert_int_equal(plan.of[1].result.epochs, 0);
        assert_int_equal(plan.of[1].result.steps, 0);
    }
}

static int train_and_save(void *self, ls_driver *driver)
{
    const char *const folder = self;
    TRY(line_setup(driver, &line_ops));
    TRY(ls_driver_open_checkpoints(driver, folder, NULL));
    TRY(ls_trainer_run(driver,
                       &(struct ls_trainer_options){
                           .data = &line_data, .epochs = 1, .batch_size = 20},
                       NULL));
    return ls_driver_save(driver, 1, false);
}

/* They are the caller's. */
TEST_WITH(a_trainer_leaves_open_what_it_has_not_opened, scratch_set_up,
          scratch_tear_down)
{
    struct scratch *scratch = *state;
    assert_ok(run_threads(2, train_and_save, scratch->folder));
}

/* A callback may have saved one, too. */
TEST_WITH(checkpoints_go_on_behind_the_one_that_was_loaded, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    struct plan plan = plan_of(2);
    struct foreign foreign = {.folder = scratch->folder,
                              .progress = {1, 4, 0, 6}};
    assert_ok(run_threads(2, save_foreign, &foreign));
    plan.options.folder = scratch->folder;
    plan.options.resume = true;
    assert_ok(run(&plan));
    assert_int_equal(plan.of[1].result.steps, 8);
}
