#include "agent.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Streams of the run's seed: the weights have one, and each node one for every
 * environment. */
static uint64_t seed_of_policy(uint64_t seed)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, seed, UINT64_MAX);
    return ls_rng_next(&rng);
}

/* What the streams of one life of a node stem from. */
static uint64_t seed_of_life(uint64_t seed, unsigned generation)
{
    struct ls_rng rng;
    if (generation == 0)
        return seed;
    ls_rng_seed(&rng, seed, UINT64_MAX - generation);
    return ls_rng_next(&rng);
}

static void seed_env(struct ls_rng *rng, uint64_t seed, uint32_t node_id,
                     size_t index)
{
    ls_rng_seed(rng, seed, (uint64_t)node_id << 32 | (uint64_t)index);
}

static bool is_space(const struct ls_space *space, size_t most)
{
    bool is_right =
        (unsigned)space->type <= LS_U8 && space->n_dims <= LS_SHAPE_MAX;
    size_t n = 1;
    for (size_t i = 0; i < space->n_dims && is_right; i++) {
        is_right = space->shape[i] >= 1 && space->shape[i] <= most / n;
        n *= is_right ? space->shape[i] : 1;
    }
    return is_right;
}

static int check_spec(const struct agent *agent)
{
    const struct ls_env_spec *spec = &agent->spec;
    const char *name = agent->plugin->name;
    if (!is_space(&spec->observation, 1 << 20))
        return ls_error(LS_EHANDLER,
                        "plugin %s: an observation must be 1 to 1,048,576 "
                        "numbers in up to %d dimensions, of a type that "
                        "lockstep/plugin.h names",
                        name, LS_SHAPE_MAX);
    if (!is_space(&spec->action, 1 << 16))
        return ls_error(LS_EHANDLER,
                        "plugin %s: an action must be 1 to 65,536 numbers in "
                        "up to %d dimensions, of a type that lockstep/plugin.h "
                        "names",
                        name, LS_SHAPE_MAX);
    if (agent->plugin->policy->n_extras > 64)
        return ls_error(LS_EHANDLER,
                        "plugin %s: %zu extras; at most 64 are allowed", name,
                        agent->plugin->policy->n_extras);
    return LS_OK;
}

int agent_plugin_error(const struct ls_plugin *plugin, int status,
                       const char *where)
{
    if (status == LS_OK)
        return LS_OK;
    if (ls_error_text()[0] == '\0')
        (void)ls_error(status, "it returned %d, %s, and left no error text",
                       status, ls_status_name(status));
    return ls_error_at(status, "plugin %s: %s", plugin->name, where);
}

/* State for a plugin: zeroed, and never of no size. */
static void *new_state(size_t bytes)
{
    return calloc(1, bytes > 0 ? bytes : 1);
}

/* What a run reads and writes is found from the folder in which it began,
 * whatever a plugin changes. If that is gone, what is not found there is named
 * by whoever looks for it. */
static void come_back(const struct plan *plan)
{
    if (plan->here != NULL && plan->here[0] != '\0')
        (void)!chdir(plan->here);
}

static int init_env(struct agent *agent, const struct plan *plan, uint64_t life,
                    uint32_t node_id, size_t index)
{
    struct agent_env *env = &agent->envs[index];
    const struct ls_env_ops *ops = agent->plugin->env;
    void *state = new_state(ops->state_bytes);
    if (state == NULL)
        return ls_error(LS_ENOMEM, "plugin %s: env: no memory for %zu bytes",
                        agent->plugin->name, ops->state_bytes);
    seed_env(&env->noise, life, node_id, index);
    const uint64_t seed = ls_rng_next(&env->noise);
    ls_error_clear();
    const int status = ops->init(state, plan->env, seed);
    come_back(plan);
    if (status != LS_OK) {
        free(state);
        return agent_plugin_error(agent->plugin, status, "env");
    }
    env->state = state; /* from here on fini is owed */
    if (index == 0) {
        ops->spec(state, &agent->spec);
        return check_spec(agent);
    }
    return LS_OK;
}

static int init_policy(const struct agent *agent, const struct plan *plan,
                       void **out)
{
    const struct ls_policy_ops *ops = agent->plugin->policy;
    void *state = new_state(ops->state_bytes);
    if (state == NULL)
        return ls_error(LS_ENOMEM, "plugin %s: policy: no memory for %zu bytes",
                        agent->plugin->name, ops->state_bytes);
    ls_error_clear();
    const int status = ops->init(state, plan->policy, &agent->spec,
                                 seed_of_policy(plan->seed));
    come_back(plan);
    if (status != LS_OK) {
        free(state);
        return agent_plugin_error(agent->plugin, status, "policy");
    }
    *out = state;
    return LS_OK;
}

static int init_rows(struct agent *agent)
{
    const size_t n = agent->n_envs;
    const size_t n_extras = agent->plugin->policy->n_extras;
    agent->observation_bytes = ls_space_bytes(&agent->spec.observation);
    agent->action_bytes = ls_space_bytes(&agent->spec.action);
    agent->observations = calloc(n, agent->observation_bytes);
    agent->next = calloc(n, agent->observation_bytes);
    agent->actions = calloc(n, agent->action_bytes);
    agent->extras = calloc(n, (n_extras > 0 ? n_extras : 1) * sizeof(float));
    agent->noise = calloc(n, sizeof *agent->noise);
    if (agent->observations == NULL || agent->next == NULL ||
        agent->actions == NULL || agent->extras == NULL || agent->noise == NULL)
        return ls_error(LS_ENOMEM, "plugin %s", agent->plugin->name);
    return ls_writer_create(&agent->writer);
}

int agent_init(struct agent *out, const struct ls_plugin *plugin,
               const struct plan *plan, uint32_t node_id, unsigned generation,
               size_t n_envs)
{
    struct agent agent = {.plugin = plugin,
                          .env_section = plan->env,
                          .policy_section = plan->policy};
    agent.envs = calloc(n_envs, sizeof *agent.envs);
    if (agent.envs == NULL)
        return ls_error(LS_ENOMEM, "%zu environments", n_envs);
    const uint64_t life = seed_of_life(plan->seed, generation);
    int status = LS_OK;
    while (agent.n_envs < n_envs && status == LS_OK) {
        status = init_env(&agent, plan, life, node_id, agent.n_envs);
        agent.n_envs++; /* fini passes over what is not there */
    }
    if (status == LS_OK)
        status = init_policy(&agent, plan, &agent.policy);
    if (status == LS_OK)
        status = init_rows(&agent);
    if (status != LS_OK) {
        agent_fini(&agent);
        return status;
    }
    *out = agent;
    return LS_OK;
}

void agent_fini(struct agent *agent)
{
    agent_end_threads(agent);
    ls_writer_destroy(&agent->writer);
    for (size_t i = 0; i < agent->n_replicas; i++) {
        agent->plugin->policy->fini(agent->replicas[i]);
        free(agent->replicas[i]);
    }
    free(agent->replicas);
    if (agent->policy != NULL)
        agent->plugin->policy->fini(agent->policy);
    free(agent->policy);
    for (size_t i = 0; i < agent->n_envs; i++) {
        if (agent->envs[i].state != NULL)
            agent->plugin->env->fini(agent->envs[i].state);
        free(agent->envs[i].state);
    }
    free(agent->envs);
    free(agent->observations);
    free(agent->next);
    free(agent->actions);
    free(agent->extras);
    free(agent->noise);
    memset(agent, 0, sizeof *agent);
}

struct trajectory_shape agent_shape(const struct agent *agent, size_t n_max)
{
    return (struct trajectory_shape){.observation = agent->spec.observation,
                                     .action = agent->spec.action,
                                     .n_extras =
                                         agent->plugin->policy->n_extras,
                                     .n_choices = agent->spec.n_choices,
                                     .n_max = n_max};
}

int agent_renew_policy(struct agent *agent, const struct plan *plan)
{
    void *renewed;
    const int status = init_policy(agent, plan, &renewed);
    if (status != LS_OK)
        return status;
    agent->plugin->policy->fini(agent->policy);
    free(agent->policy);
    agent->policy = renewed;
    return LS_OK;
}

int agent_add_replicas(struct agent *agent, const struct plan *plan, size_t n)
{
    agent->replicas = calloc(n > 0 ? n : 1, sizeof *agent->replicas);
    if (agent->replicas == NULL)
        return ls_error(LS_ENOMEM, "%zu policies", n);
    int status = LS_OK;
    while (agent->n_replicas < n && status == LS_OK) {
        status = init_policy(agent, plan, &agent->replicas[agent->n_replicas]);
        agent->n_replicas += status == LS_OK;
    }
    return status;
}
