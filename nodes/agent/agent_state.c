/* The state of an agent as values: what others act by, what learning goes on
 * from, and all of it. */
#include <stdio.h>
#include <string.h>

#include "agent.h"

/* Parts -------------------------------------------------------------------- */

static int write_part(const struct ls_plugin *plugin, const char *name,
                      int (*save)(const void *state, ls_writer *out),
                      const void *state, ls_writer *out)
{
    char where[128];
    ls_write_string(out, name);
    (void)snprintf(where, sizeof where, "%s: save", name);
    ls_error_clear();
    return agent_plugin_error(plugin, save(state, out), where);
}

static int write_parts(const struct ls_plugin *plugin,
                       const struct ls_state_part *parts, size_t n,
                       const void *state, ls_writer *out)
{
    int status = LS_OK;
    ls_write_map(out, (uint32_t)n);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = write_part(plugin, parts[i].name, parts[i].save, state, out);
    return status;
}

static int read_part(const struct ls_plugin *plugin, const char *name,
                     int (*load)(void *state, const ls_value *in), void *state,
                     const ls_value *in)
{
    char where[128];
    (void)snprintf(where, sizeof where, "%s: load", name);
    ls_error_clear();
    /* A part that is not there is no file that is not there. */
    const int status =
        in == NULL ? ls_error(LS_EPROTO, "it is missing") : load(state, in);
    return agent_plugin_error(plugin, status, where);
}

static int read_parts(const struct ls_plugin *plugin,
                      const struct ls_state_part *parts, size_t n, void *state,
                      const ls_value *in)
{
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = read_part(plugin, parts[i].name, parts[i].load, state,
                           ls_value_get(in, parts[i].name));
    return status;
}

/* What others act by ------------------------------------------------------- */

int agent_save(struct agent *agent, struct ls_bytes *out)
{
    ls_writer_clear(agent->writer);
    ls_error_clear();
    int status = agent->plugin->policy->save(agent->policy, agent->writer);
    if (status == LS_OK)
        status = ls_bytes_set_written(out, agent->writer);
    return agent_plugin_error(agent->plugin, status, "policy: save");
}

const struct ls_codec_limits agent_limits = {
    .max_bytes = (size_t)1 << 30, .max_depth = 32, .max_objects = 1u << 24};

static int read_value(ls_document **out, const struct ls_bytes *in)
{
    return ls_document_read(out, in->data, in->size, &agent_limits);
}

int agent_load(struct agent *agent, const struct ls_bytes *in)
{
    ls_document *document = NULL;
    int status = read_value(&document, in);
    if (status == LS_OK) {
        ls_error_clear();
        status = agent->plugin->policy->load(agent->policy,
                                             ls_document_root(document));
    }
    ls_document_destroy(&document);
    return agent_plugin_error(agent->plugin, status, "policy: load");
}

/* What learning goes on from ----------------------------------------------- */

int agent_write_training(const struct agent *agent, ls_writer *out)
{
    const struct ls_policy_ops *ops = agent->plugin->policy;
    return write_parts(agent->plugin, ops->parts, ops->n_parts, agent->policy,
                       out);
}

static int read_training(const struct agent *agent, void *policy,
                         const ls_value *in)
{
    const struct ls_policy_ops *ops = agent->plugin->policy;
    return read_parts(agent->plugin, ops->parts, ops->n_parts, policy, in);
}

int agent_read_training(struct agent *agent, const ls_value *in)
{
    return read_training(agent, agent->policy, in);
}

int agent_save_training(struct agent *agent, struct ls_bytes *out)
{
    ls_writer_clear(agent->writer);
    const int status = agent_write_training(agent, agent->writer);
    return status == LS_OK ? ls_bytes_set_written(out, agent->writer) : status;
}

int agent_load_training(struct agent *agent, const struct ls_bytes *in)
{
    ls_document *document = NULL;
    int status = read_value(&document, in);
    if (status == LS_OK)
        status = agent_read_training(agent, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

/* {"policy": …, "training": {…}}, of which the map has begun. */
static int write_policy(const struct agent *agent, ls_writer *out)
{
    int status = write_part(agent->plugin, "policy",
                            agent->plugin->policy->save, agent->policy, out);
    ls_write_string(out, "training");
    return status == LS_OK ? agent_write_training(agent, out) : status;
}

static int read_policy(const struct agent *agent, void *policy,
                       const ls_value *in)
{
    const int status =
        read_part(agent->plugin, "policy", agent->plugin->policy->load, policy,
                  ls_value_get(in, "policy"));
    return status == LS_OK
               ? read_training(agent, policy, ls_value_get(in, "training"))
               : status;
}

int agent_align_replicas(struct agent *agent)
{
    struct ls_bytes state = {.size = 0};
    ls_document *document = NULL;
    if (agent->n_replicas == 0)
        return LS_OK;
    ls_writer_clear(agent->writer);
    ls_write_map(agent->writer, 2);
    int status = write_policy(agent, agent->writer);
    if (status == LS_OK)
        status = ls_bytes_set_written(&state, agent->writer);
    if (status == LS_OK)
        status = read_value(&document, &state);
    for (size_t i = 0; i < agent->n_replicas && status == LS_OK; i++)
        status =
            read_policy(agent, agent->replicas[i], ls_document_root(document));
    ls_document_destroy(&document);
    ls_bytes_clear(&state);
    return status;
}

/* Environments ------------------------------------------------------------- */

static int write_env(const struct agent *agent, size_t index, ls_writer *out)
{
    const struct agent_env *env = &agent->envs[index];
    const struct ls_env_ops *ops = agent->plugin->env;
    ls_write_map(out, 5);
    ls_write_string(out, "noise");
    ls_write_rng(out, &env->noise);
    ls_write_string(out, "begun");
    ls_write_bool(out, env->begun && ops->n_parts > 0);
    ls_write_string(out, "episode_return");
    ls_write_double(out, env->episode_return);
    ls_write_string(out, "observation");
    ls_write_binary(out, agent->observations + index * agent->observation_bytes,
                    agent->observation_bytes);
    ls_write_string(out, "state");
    return write_parts(agent->plugin, ops->parts, ops->n_parts, env->state,
                       out);
}

static int read_env(struct agent *agent, size_t index, const ls_value *in)
{
    struct agent_env *env = &agent->envs[index];
    const struct ls_env_ops *ops = agent->plugin->env;
    const void *observation;
    size_t size;
    int status = ls_value_rng(ls_value_get(in, "noise"), &env->noise);
    if (status != LS_OK)
        status = ls_error_at(LS_EPROTO, "noise");
    if (status == LS_OK)
        status = ls_value_bool(ls_value_get(in, "begun"), &env->begun);
    if (status == LS_OK)
        status = ls_value_double(ls_value_get(in, "episode_return"),
                                 &env->episode_return);
    if (status == LS_OK)
        status = ls_value_binary(ls_value_get(in, "observation"), &observation,
                                 &size);
    if (status == LS_OK && size != agent->observation_bytes)
        status = ls_error(
            LS_EMISMATCH,
            "an observation of %zu bytes, where the environment has %zu", size,
            agent->observation_bytes);
    if (status == LS_OK)
        memcpy(agent->observations + index * size, observation, size);
    if (status == LS_OK)
        status = read_parts(agent->plugin, ops->parts, ops->n_parts, env->state,
                            ls_value_get(in, "state"));
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status == LS_ENOENT ? LS_EPROTO : status,
                             "environment %zu", index);
}

int agent_keep_env(struct agent *agent, size_t index, struct ls_bytes *out)
{
    ls_writer_clear(agent->writer);
    const int status = write_env(agent, index, agent->writer);
    return status == LS_OK ? ls_bytes_set_written(out, agent->writer) : status;
}

int agent_restore_env(struct agent *agent, size_t index,
                      const struct ls_bytes *kept)
{
    ls_document *document = NULL;
    if (agent->plugin->env->n_parts == 0)
        return LS_OK;
    int status = read_value(&document, kept);
    if (status == LS_OK)
        status = read_env(agent, index, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

int agent_write_envs(const struct agent *agent, ls_writer *out)
{
    int status = LS_OK;
    ls_write_array(out, (uint32_t)agent->n_envs);
    for (size_t i = 0; i < agent->n_envs && status == LS_OK; i++)
        status = write_env(agent, i, out);
    return status;
}

int agent_read_envs(struct agent *agent, const ls_value *in)
{
    if (ls_value_size(in) != agent->n_envs)
        return ls_error(LS_EMISMATCH, "it is of %zu environments, not %zu",
                        ls_value_size(in), agent->n_envs);
    int status = LS_OK;
    for (size_t i = 0; i < agent->n_envs && status == LS_OK; i++)
        status = read_env(agent, i, ls_value_at(in, i));
    return status;
}
