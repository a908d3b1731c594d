/* The plugin counter: an episode returns the number that it is acted by, and
 * the policy acts by how often it has learned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

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
    assert_int_equal(ls_config_parse(&self->config, "job.yaml", "{steps: 3}"),
                     LS_OK);
    ls_config_section *section = ls_config_root(self->config);
    self->env_state = calloc(1, self->env->state_bytes);
    self->policy_state = calloc(1, self->policy->state_bytes);
    assert_int_equal(self->env->init(self->env_state, section, 0), LS_OK);
    self->env->spec(self->env_state, &spec);
    assert_int_equal(self->policy->init(self->policy_state, section, &spec, 0),
                     LS_OK);
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

static double play(struct fixture *self, int *steps)
{
    float observation[1], action[1], reward, sum = 0.0f;
    bool terminated = false, truncated = false;
    assert_int_equal(self->env->reset(self->env_state, observation), LS_OK);
    for (*steps = 0; !terminated; (*steps)++) {
        const uint64_t noise = 0;
        const struct ls_act rows = {.n = 1,
                                    .observations = observation,
                                    .explore = true,
                                    .noise = &noise,
                                    .actions = action};
        assert_int_equal(self->policy->act(self->policy_state, &rows), LS_OK);
        assert_int_equal(self->env->step(self->env_state, action, observation,
                                         &reward, &terminated, &truncated),
                         LS_OK);
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
        assert_int_equal(self->policy->learn(self->policy_state, &batch, &info),
                         LS_OK);
    assert_true(info.n > 0 && info.items[0].value >= (double)times);
}

static void test_an_episode_returns_how_often_was_learned(void **state)
{
    int steps;
    assert_true(play(*state, &steps) == 0.0);
    assert_int_equal(steps, 3);
    learn(*state, 7);
    assert_true(play(*state, &steps) == 7.0);
}

static void test_weights_are_the_count(void **state)
{
    struct fixture *self = *state;
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    const void *data;
    size_t size;
    int steps;
    assert_int_equal(ls_writer_create(&writer), LS_OK);
    learn(self, 5);
    assert_int_equal(self->policy->save(self->policy_state, writer), LS_OK);
    learn(self, 2);
    assert_true(play(self, &steps) == 7.0);
    assert_int_equal(ls_writer_bytes(writer, &data, &size), LS_OK);
    assert_int_equal(ls_document_read(&document, data, size, NULL), LS_OK);
    assert_int_equal(
        self->policy->load(self->policy_state, ls_document_root(document)),
        LS_OK);
    assert_true(play(self, &steps) == 5.0);
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
}

static void test_what_is_no_count_is_refused(void **state)
{
    struct fixture *self = *state;
    ls_document *document = NULL;
    const unsigned char minus_one = 0xff, text[] = {0xa1, 'x'};
    assert_int_equal(ls_document_read(&document, &minus_one, 1, NULL), LS_OK);
    assert_int_equal(
        self->policy->load(self->policy_state, ls_document_root(document)),
        LS_EPROTO);
    ls_document_destroy(&document);
    assert_int_equal(ls_document_read(&document, text, 2, NULL), LS_OK);
    assert_int_not_equal(
        self->policy->load(self->policy_state, ls_document_root(document)),
        LS_OK);
    ls_document_destroy(&document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_an_episode_returns_how_often_was_learned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_weights_are_the_count, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_count_is_refused, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
