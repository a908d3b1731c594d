/* Playing: one action for each of several environments at a time, and a step in
 * each of them, on as many threads as there are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/crew.h"

#include "agent.h"

/* What is played just now. */
struct play {
    struct agent *agent;
    size_t first, n;                    /* environments */
    struct ls_trajectory *trajectories; /* n of them; NULL: not kept */
    size_t at;                          /* the step of each of them */
    int (*fn)(struct play *play, size_t row);
};

/* What a thread has failed with. */
struct fault {
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

struct agent_threads {
    ls_crew *crew; /* own */
    struct play *play;
    size_t n;
    struct fault faults[]; /* a thread's each */
};

/* Threads ------------------------------------------------------------------ */

static void on_thread(void *self, size_t member)
{
    struct agent_threads *threads = self;
    struct play *play = threads->play;
    struct fault *fault = &threads->faults[member];
    const size_t end = (member + 1) * play->n / threads->n;
    fault->status = LS_OK;
    for (size_t row = member * play->n / threads->n;
         row < end && fault->status == LS_OK; row++)
        fault->status = play->fn(play, row);
    if (fault->status != LS_OK)
        (void)snprintf(fault->text, sizeof fault->text, "%s", ls_error_text());
}

int agent_use_threads(struct agent *agent, ls_runtime *runtime, size_t n)
{
    n = n < agent->n_envs ? n : agent->n_envs;
    agent_end_threads(agent);
    if (n < 2)
        return LS_OK;
    struct agent_threads *threads =
        calloc(1, sizeof *threads + n * sizeof threads->faults[0]);
    if (threads == NULL)
        return ls_error(LS_ENOMEM, "%zu threads", n);
    threads->n = n;
    const int status =
        ls_crew_create(&threads->crew, runtime, n, "env", on_thread, threads);
    if (status != LS_OK) {
        free(threads);
        return status;
    }
    agent->threads = threads;
    return LS_OK;
}

void agent_end_threads(struct agent *agent)
{
    if (agent->threads == NULL)
        return;
    ls_crew_destroy(&agent->threads->crew);
    free(agent->threads);
    agent->threads = NULL;
}

/* Call fn for every row. The first error of the first row that has one. */
static int each(struct play *play, int (*fn)(struct play *play, size_t row))
{
    struct agent_threads *threads = play->agent->threads;
    int status = LS_OK;
    play->fn = fn;
    if (threads == NULL || play->n == 1) {
        for (size_t row = 0; row < play->n && status == LS_OK; row++)
            status = fn(play, row);
        return status;
    }
    threads->play = play;
    ls_crew_run(threads->crew);
    for (size_t i = 0; i < threads->n; i++)
        if (threads->faults[i].status != LS_OK)
            return ls_error(threads->faults[i].status, "%s",
                            threads->faults[i].text);
    return LS_OK;
}

/* A step ------------------------------------------------------------------- */

static unsigned char *observation_of(const struct play *play, size_t row)
{
    return play->agent->observations +
           (play->first + row) * play->agent->observation_bytes;
}

static int begin_episode(struct play *play, size_t row)
{
    struct agent *agent = play->agent;
    struct agent_env *env = &agent->envs[play->first + row];
    if (env->begun)
        return LS_OK;
    ls_error_clear();
    const int status =
        agent->plugin->env->reset(env->state, observation_of(play, row));
    if (status != LS_OK)
        return agent_plugin_error(agent->plugin, status, "env: reset");
    env->begun = true;
    env->episode_return = 0.0;
    return LS_OK;
}

static int begin_episodes(struct play *play)
{
    for (size_t row = 0; row < play->n; row++)
        if (!play->agent->envs[play->first + row].begun)
            return each(play, begin_episode);
    return LS_OK;
}

static int act(struct play *play, bool explore)
{
    struct agent *agent = play->agent;
    for (size_t row = 0; row < play->n; row++)
        agent->noise[row] = ls_rng_next(&agent->envs[play->first + row].noise);
    const struct ls_act rows = {.n = play->n,
                                .observations = observation_of(play, 0),
                                .explore = explore,
                                .noise = agent->noise,
                                .actions = agent->actions,
                                .extras = agent->extras};
    ls_error_clear();
    const int status = agent->plugin->policy->act(agent->policy, &rows);
    return agent_plugin_error(agent->plugin, status, "policy: act");
}

/* What the step began with; where its observation goes. */
static unsigned char *keep_before(const struct play *play, size_t row)
{
    const struct agent *agent = play->agent;
    const size_t bytes = agent->observation_bytes;
    const size_t n_extras = agent->plugin->policy->n_extras;
    if (play->trajectories == NULL)
        return agent->next + row * bytes;
    const struct ls_trajectory *kept = &play->trajectories[row];
    memcpy((unsigned char *)kept->observations + play->at * bytes,
           observation_of(play, row), bytes);
    memcpy((unsigned char *)kept->actions + play->at * agent->action_bytes,
           agent->actions + row * agent->action_bytes, agent->action_bytes);
    if (n_extras > 0)
        memcpy(kept->extras + play->at * n_extras,
               agent->extras + row * n_extras, n_extras * sizeof(float));
    return (unsigned char *)kept->next_observations + play->at * bytes;
}

static int step(struct play *play, size_t row)
{
    struct agent *agent = play->agent;
    struct agent_env *env = &agent->envs[play->first + row];
    unsigned char *next = keep_before(play, row);
    float reward = 0.0f;
    bool terminated = false, truncated = false;
    ls_error_clear();
    const int status = agent->plugin->env->step(
        env->state, agent->actions + row * agent->action_bytes, next, &reward,
        &terminated, &truncated);
    if (status != LS_OK)
        return agent_plugin_error(agent->plugin, status, "env: step");
    /* Those of a trajectory are looked at where it is written. */
    if (play->trajectories == NULL && !isfinite(reward))
        return agent_plugin_error(agent->plugin,
                                  ls_error(LS_EHANDLER,
                                           "a reward that is not finite, %g",
                                           (double)reward),
                                  "env: step");
    memcpy(observation_of(play, row), next, agent->observation_bytes);
    if (play->trajectories != NULL) {
        const struct ls_trajectory *kept = &play->trajectories[row];
        kept->rewards[play->at] = reward;
        kept->terminated[play->at] = terminated;
        kept->truncated[play->at] = truncated;
    }
    env->episode_return += (double)reward;
    env->begun = !terminated && !truncated;
    env->played.steps++;
    env->played.episodes += !env->begun;
    env->played.return_sum += env->begun ? 0.0 : env->episode_return;
    return LS_OK;
}

static int step_all(struct play *play, bool explore, ls_task *task)
{
    int status = task != NULL ? ls_task_cancelled(task) : LS_OK;
    if (status == LS_OK)
        status = begin_episodes(play);
    if (status == LS_OK)
        status = act(play, explore);
    return status == LS_OK ? each(play, step) : status;
}

/* What the calls are ------------------------------------------------------- */

static void begin(const struct play *play)
{
    for (size_t row = 0; row < play->n; row++)
        play->agent->envs[play->first + row].played =
            (struct agent_played){.steps = 0};
}

static void add_played(const struct play *play, struct agent_played *out)
{
    for (size_t row = 0; row < play->n; row++) {
        const struct agent_played *played =
            &play->agent->envs[play->first + row].played;
        out->steps += played->steps;
        out->episodes += played->episodes;
        out->return_sum += played->return_sum;
    }
}

int agent_collect(struct agent *agent, size_t first, size_t n,
                  struct ls_trajectory *trajectories, size_t steps,
                  ls_task *task, struct agent_played *out)
{
    struct play play = {
        .agent = agent, .first = first, .n = n, .trajectories = trajectories};
    int status = LS_OK;
    begin(&play);
    for (; play.at < steps && status == LS_OK; play.at++)
        status = step_all(&play, true, task);
    if (status != LS_OK)
        return status;
    for (size_t row = 0; row < n; row++)
        trajectories[row].n = steps;
    add_played(&play, out);
    return LS_OK;
}

int agent_episode(struct agent *agent, size_t index, ls_task *task,
                  struct agent_played *out)
{
    struct play play = {.agent = agent, .first = index, .n = 1};
    int status = LS_OK;
    begin(&play);
    while (status == LS_OK && agent->envs[index].played.episodes == 0)
        status = step_all(&play, false, task);
    if (status == LS_OK)
        add_played(&play, out);
    return status;
}
