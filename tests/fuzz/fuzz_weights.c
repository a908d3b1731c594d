/* Any bytes as learned weights: what is in the file that a learner writes, or,
 * by the first byte, a policy as it lies in a store. What is refused leaves the
 * policy as it was; what is accepted acts, and is written as itself. */
#include "weights.h"

#include "cartpole.h"
#include "fuzz.h"
#include "policy_value.h"

#define SEED 5

static const struct ls_plugin plugin = {
    .name = "cartpole", .version = "1", .policy = &cartpole_policy};

static void *make_policy(void)
{
    static const struct ls_env_spec spec = {.observation = {LS_F32, 1, {2}},
                                            .n_choices = 2};
    ls_config *config = NULL;
    void *policy = calloc(1, cartpole_policy.state_bytes);
    must(policy != NULL);
    must(ls_config_parse(&config, "policy", "{hidden: 2, hidden_layers: 1}") ==
         LS_OK);
    must(cartpole_policy.init(policy, ls_config_root(config), &spec, SEED) ==
         LS_OK);
    ls_config_destroy(&config);
    return policy;
}

static struct fuzz_bytes save(struct agent *agent, ls_writer *writer)
{
    ls_writer_clear(writer);
    must(cartpole_policy.save(agent->policy, writer) == LS_OK);
    return fuzz_written(writer);
}

static bool load_weights(struct agent *agent, const void *data, size_t size,
                         ls_writer *writer)
{
    struct weights_note note, again;
    const int status = weights_read(agent, SEED, data, size, &note);
    must(status != LS_ENOENT);
    if (status != LS_OK)
        return false;
    ls_writer_clear(writer);
    must(weights_write(agent, &note, true, writer) == LS_OK);
    const struct fuzz_bytes written = fuzz_written(writer);
    must(weights_read(agent, SEED, written.data, written.size, &again) ==
         LS_OK);
    must(memcmp(&note, &again, sizeof note) == 0);
    return true;
}

/* As agent_load(). */
static int load(void *self, const struct ls_bytes *in)
{
    struct agent *const agent = self;
    ls_document *document = NULL;
    int status = ls_document_read(&document, in->data, in->size, NULL);
    if (status == LS_OK)
        status =
            cartpole_policy.load(agent->policy, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

static bool load_value(struct agent *agent, const uint8_t *data, size_t size)
{
    struct policy_value value;
    const int status = policy_value_load(&value, data, size, load, agent);
    if (status != LS_OK)
        return false;
    must(value.iter >= 0 && value.version >= 0);
    must(policy_value_iterations(&value) >= 0);
    return true;
}

static void value_fini(struct policy_value *value)
{
    ls_bytes_clear(&value->weights);
}

FUZZ_MESSAGE(value_again, struct policy_value, policy_value_read,
             policy_value_write, value_fini)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent agent = {.plugin = &plugin, .policy = make_policy()};
    ls_writer *before = NULL, *after = NULL;
    must(ls_writer_create(&agent.writer) == LS_OK);
    must(ls_writer_create(&before) == LS_OK);
    must(ls_writer_create(&after) == LS_OK);
    const struct fuzz_bytes was = save(&agent, before);
    bool loaded = false;
    if (size > 0 && data[0] % 2 == 0) {
        loaded = load_weights(&agent, data + 1, size - 1, after);
    } else if (size > 0) {
        loaded = load_value(&agent, data + 1, size - 1);
        value_again(data + 1, size - 1);
    }
    const struct fuzz_bytes is = save(&agent, after);
    must(loaded || memcmp(was.data, is.data, was.size) == 0);
    const float observation[2] = {0.5f, -0.5f};
    float action = -1.0f, extra = 0.0f;
    const uint64_t noise = 7;
    const struct ls_act rows = {.n = 1,
                                .observations = observation,
                                .explore = true,
                                .noise = &noise,
                                .actions = &action,
                                .extras = &extra};
    must(cartpole_policy.act(agent.policy, &rows) == LS_OK);
    must(action == 0.0f || action == 1.0f);
    cartpole_policy.fini(agent.policy);
    free(agent.policy);
    ls_writer_destroy(&agent.writer);
    ls_writer_destroy(&before);
    ls_writer_destroy(&after);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 1);
}
