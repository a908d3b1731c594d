#include "agent.h"

#include <stdlib.h>
#include <string.h>

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

static int check_spec(const struct agent *agent)
{
    const struct ls_env_spec *spec = &agent->spec;
    const char *name = agent->plugin->name;
    if (spec->n_observation < 1 || spec->n_observation > 1 << 20)
        return ls_error(LS_EHANDLER,
                        "plugin %s: %zu floats in an observation; there must "
                        "be 1 to 1,048,576",
                        name, spec->n_observation);
    if (spec->n_action < 1 || spec->n_action > 1 << 16)
        return ls_error(LS_EHANDLER,
                        "plugin %s: %zu floats in an action; there must be 1 "
                        "to 65,536",
                        name, spec->n_action);
    if (agent->plugin->policy->n_extras > 64)
        return ls_error(LS_EHANDLER,
                        "plugin %s: %zu extras; at most 64 are allowed", name,
                        agent->plugin->policy->n_extras);
    return LS_OK;
}

/* State for a plugin: zeroed, and never of no size. */
static void *new_state(size_t bytes)
{
    return calloc(1, bytes > 0 ? bytes : 1);
}

static int init_env(struct agent *agent, const struct plan *plan, uint64_t life,
                    uint32_t node_id, size_t index)
{
    struct agent_env *env = &agent->envs[index];
    const struct ls_env_ops *ops = agent->plugin->env;
    void *state = new_state(ops->state_bytes);
    if (state == NULL)
        return ls_error(LS_ENOMEM, "plugin %s: env", agent->plugin->name);
    seed_env(&env->noise, life, node_id, index);
    const uint64_t seed = ls_rng_next(&env->noise);
    const int status = ops->init(state, plan->env, seed);
    if (status != LS_OK) {
        free(state);
        return ls_error_at(status, "plugin %s: env", agent->plugin->name);
    }
    env->state = state; /* from here on fini is owed */
    if (index == 0) {
        ops->spec(state, &agent->spec);
        const int checked = check_spec(agent);
        if (checked != LS_OK)
            return checked;
    }
    env->observation = calloc(agent->spec.n_observation, sizeof(float));
    if (env->observation == NULL)
        return ls_error(LS_ENOMEM, "plugin %s: env", agent->plugin->name);
    return LS_OK;
}

static int init_policy(const struct agent *agent, const struct plan *plan,
                       void **out)
{
    const struct ls_policy_ops *ops = agent->plugin->policy;
    void *state = new_state(ops->state_bytes);
    if (state == NULL)
        return ls_error(LS_ENOMEM, "plugin %s: policy", agent->plugin->name);
    const int status = ops->init(state, plan->policy, &agent->spec,
                                 seed_of_policy(plan->seed));
    if (status != LS_OK) {
        free(state);
        return ls_error_at(status, "plugin %s: policy", agent->plugin->name);
    }
    *out = state;
    return LS_OK;
}

static int init_scratch(struct agent *agent)
{
    const size_t n_extras = agent->plugin->policy->n_extras;
    agent->action = calloc(agent->spec.n_action, sizeof(float));
    agent->next = calloc(agent->spec.n_observation, sizeof(float));
    agent->extras = calloc(n_extras > 0 ? n_extras : 1, sizeof(float));
    if (agent->action == NULL || agent->next == NULL || agent->extras == NULL)
        return ls_error(LS_ENOMEM, "plugin %s", agent->plugin->name);
    return ls_writer_create(&agent->writer);
}

int agent_init(struct agent *out, const struct ls_plugin *plugin,
               const struct plan *plan, uint32_t node_id, unsigned generation,
               size_t n_envs)
{
    struct agent agent = {.plugin = plugin};
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
        status = init_scratch(&agent);
    if (status != LS_OK) {
        agent_fini(&agent);
        return status;
    }
    *out = agent;
    return LS_OK;
}

void agent_fini(struct agent *agent)
{
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
        free(agent->envs[i].observation);
    }
    free(agent->envs);
    free(agent->action);
    free(agent->next);
    free(agent->extras);
    memset(agent, 0, sizeof *agent);
}

struct trajectory_shape agent_shape(const struct agent *agent, size_t n_max)
{
    return (struct trajectory_shape){.n_observation = agent->spec.n_observation,
                                     .n_action = agent->spec.n_action,
                                     .n_extras =
                                         agent->plugin->policy->n_extras,
                                     .n_choices = agent->spec.n_choices,
                                     .n_max = n_max};
}

static int begin_episode(struct agent *agent, struct agent_env *env)
{
    const int status = agent->plugin->env->reset(env->state, env->observation);
    if (status != LS_OK)
        return ls_error_at(status, "plugin %s: env: reset",
                           agent->plugin->name);
    env->begun = true;
    env->episode_return = 0.0;
    return LS_OK;
}

int agent_step(struct agent *agent, struct agent_env *env, bool explore,
               float *before, struct agent_step *out)
{
    int status = env->begun ? LS_OK : begin_episode(agent, env);
    if (status != LS_OK)
        return status;
    const size_t bytes = agent->spec.n_observation * sizeof(float);
    if (before != NULL)
        memcpy(before, env->observation, bytes);
    status = agent->plugin->policy->act(agent->policy, env->observation,
                                        explore, ls_rng_next(&env->noise),
                                        agent->action, agent->extras);
    if (status != LS_OK)
        return ls_error_at(status, "plugin %s: policy: act",
                           agent->plugin->name);
    struct agent_step step = {.reward = 0.0f};
    status = agent->plugin->env->step(env->state, agent->action, agent->next,
                                      &step.reward, &step.terminated,
                                      &step.truncated);
    if (status != LS_OK)
        return ls_error_at(status, "plugin %s: env: step", agent->plugin->name);
    memcpy(env->observation, agent->next, bytes);
    env->episode_return += (double)step.reward;
    step.episode_return = env->episode_return;
    env->begun = !step.terminated && !step.truncated;
    *out = step;
    return LS_OK;
}

/* Row `i` of the trajectory takes what the last step left. */
static void note_step(struct ls_trajectory *trajectory, size_t i,
                      const struct agent *agent, const struct agent_step *step)
{
    const size_t n_observation = agent->spec.n_observation;
    const size_t n_action = agent->spec.n_action;
    const size_t n_extras = agent->plugin->policy->n_extras;
    memcpy(trajectory->next_observations + i * n_observation, agent->next,
           n_observation * sizeof(float));
    memcpy(trajectory->actions + i * n_action, agent->action,
           n_action * sizeof(float));
    if (n_extras > 0)
        memcpy(trajectory->extras + i * n_extras, agent->extras,
               n_extras * sizeof(float));
    trajectory->rewards[i] = step->reward;
    trajectory->terminated[i] = step->terminated;
    trajectory->truncated[i] = step->truncated;
}

int agent_collect(struct agent *agent, struct agent_env *env,
                  struct ls_trajectory *trajectory, size_t n, int64_t *episodes,
                  double *return_sum)
{
    trajectory->n = n;
    for (size_t i = 0; i < n; i++) {
        struct agent_step step;
        const int status = agent_step(
            agent, env, true,
            trajectory->observations + i * agent->spec.n_observation, &step);
        if (status != LS_OK)
            return status;
        note_step(trajectory, i, agent, &step);
        if (step.terminated || step.truncated) {
            ++*episodes;
            *return_sum += step.episode_return;
        }
    }
    return LS_OK;
}

int agent_episode(struct agent *agent, struct agent_env *env, ls_task *task,
                  double *episode_return, int64_t *steps)
{
    struct agent_step step;
    int64_t n = 0;
    do {
        int status = task != NULL ? ls_task_cancelled(task) : LS_OK;
        if (status == LS_OK)
            status = agent_step(agent, env, false, NULL, &step);
        if (status != LS_OK)
            return status;
        n++;
    } while (!step.terminated && !step.truncated);
    *episode_return = step.episode_return;
    *steps = n;
    return LS_OK;
}

int agent_learn(struct agent *agent, const struct ls_trajectory *trajectories,
                size_t n, struct ls_learn_info *info)
{
    const int status =
        agent->plugin->policy->learn(agent->policy, trajectories, n, info);
    return status == LS_OK ? LS_OK
                           : ls_error_at(status, "plugin %s: policy: learn",
                                         agent->plugin->name);
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

int agent_save(struct agent *agent, struct ls_bytes *out)
{
    ls_writer_clear(agent->writer);
    int status = agent->plugin->policy->save(agent->policy, agent->writer);
    const void *data;
    size_t size;
    if (status == LS_OK)
        status = ls_writer_bytes(agent->writer, &data, &size);
    if (status != LS_OK)
        return ls_error_at(status, "plugin %s: policy: save",
                           agent->plugin->name);
    return ls_bytes_set(out, data, size);
}

static int load_policy(struct agent *agent, void *policy,
                       const struct ls_bytes *in)
{
    const struct ls_codec_limits limits = {
        .max_bytes = (size_t)1 << 30, .max_depth = 16, .max_objects = 65536};
    ls_document *document = NULL;
    int status = ls_document_read(&document, in->data, in->size, &limits);
    if (status == LS_OK)
        status =
            agent->plugin->policy->load(policy, ls_document_root(document));
    ls_document_destroy(&document);
    if (status != LS_OK)
        return ls_error_at(status, "plugin %s: policy: load",
                           agent->plugin->name);
    return LS_OK;
}

int agent_load(struct agent *agent, const struct ls_bytes *in)
{
    return load_policy(agent, agent->policy, in);
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

int agent_align_replicas(struct agent *agent)
{
    struct ls_bytes weights = {.size = 0};
    int status = agent->n_replicas > 0 ? agent_save(agent, &weights) : LS_OK;
    for (size_t i = 0; i < agent->n_replicas && status == LS_OK; i++)
        status = load_policy(agent, agent->replicas[i], &weights);
    ls_bytes_clear(&weights);
    return status;
}
