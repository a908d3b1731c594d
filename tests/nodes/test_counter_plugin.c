/* The plugin counter: an episode returns the number that it is acted by, and
 * the policy acts by how often it has learned. */
#include "test.h"

#include <stdlib.h>

#include "lockstep/plugin.h"

struct fixture {
    const struct ls_env_ops *env;
    const struct ls_policy_ops *policy;
    ls_config *config;
    void *env_state, *policy_state;
};

static int setup(void **state)
{
    struct fixture *self = calloc(1, sizeof *self);
    struct ls_env_spec spec;
    assert_non_null(self);
    self->env = ls_plugin()->env;
    self->policy = ls_plugin()->policy;
    assert_ok(ls_config_parse(&self->config, "job.yaml", "{steps: 3}"));
    ls_config_section *section = ls_config_root(self->config);
    self->env_state = calloc(1, self->env->state_bytes);
    self->policy_state = calloc(1, self->policy->state_bytes);
    assert_ok(self->env->init(self->env_state, section, 0));
    self->env->spec(self->env_state, &spec);
    assert_ok(self->policy->init(self->policy_state, section, &spec, 0));
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *self = *state;
    self->env->fini(self->env_state);
    self->policy->fini(self->policy_state);
    ls_config_destroy(&self->config);
    free(self->env_state);
    free(self->policy_state);
    free(self);
    return 0;
}

EACH_TEST(setup, teardown)

static double play(struct fixture *self, int *steps)
{
    float observation[1], action[1], reward, sum = 0.0f;
    bool terminated = false, truncated = false;
    assert_ok(self->env->reset(self->env_state, observation));
    for (*steps = 0; !terminated; (*steps)++) {
        const uint64_t noise = 0;
        const struct ls_act rows = {.n = 1,
                                    .observations = observation,
                                    .explore = true,
                                    .noise = &noise,
                                    .actions = action};
        assert_ok(self->policy->act(self->policy_state, &rows));
        assert_ok(self->env->step(self->env_state, action, observation, &reward,
                                  &terminated, &truncated));
        assert_false(truncated);
        sum += reward;
    }
    return (double)sum;
}

static void learn(struct fixture *self, int times)
{
    const struct ls_learn_batch batch = {.n = 0};
    struct ls_learn_info info = {.n = 0};
    for (int i = 0; i < times; i++)
        assert_ok(self->policy->learn(self->policy_state, &batch, &info));
    assert_true(info.n > 0 && info.items[0].value >= (double)times);
}

TEST(an_episode_returns_how_often_was_learned)
{
    int steps;
    assert_true(play(*state, &steps) == 0.0);
    assert_int_equal(steps, 3);
    learn(*state, 7);
    assert_true(play(*state, &steps) == 7.0);
}

TEST(weights_are_the_count)
{
    struct fixture *self = *state;
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    const void *data;
    size_t size;
    int steps;
    assert_ok(ls_writer_create(&writer));
    learn(self, 5);
    assert_ok(self->policy->save(self->policy_state, writer));
    learn(self, 2);
    assert_true(play(self, &steps) == 7.0);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    assert_ok(
        self->policy->load(self->policy_state, ls_document_root(document)));
    assert_true(play(self, &steps) == 5.0);
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
}

TEST(what_is_no_count_is_refused)
{
    struct fixture *self = *state;
    ls_document *document = NULL;
    const unsigned char minus_one = 0xff, text[] = {0xa1, 'x'};
    assert_ok(ls_document_read(&document, &minus_one, 1, NULL));
    assert_fails(
        self->policy->load(self->policy_state, ls_document_root(document)),
        LS_EPROTO);
    ls_document_destroy(&document);
    assert_ok(ls_document_read(&document, text, 2, NULL));
    assert_int_not_equal(
        self->policy->load(self->policy_state, ls_document_root(document)),
        LS_OK);
    ls_document_destroy(&document);
}
