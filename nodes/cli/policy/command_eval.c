/* `lockstep eval`: the weights of a run, played once more. */
#include <math.h>
#include <stdio.h>

#include "command.h"
#include "json.h"
#include "output.h"
#include "player.h"
#include "saved_policy.h"

/* What the episodes have come to. */
struct outcome {
    struct agent_played all;
    double least, most; /* returns */
};

/* ---- playing ----------------------------------------------------------- */

static int play(struct agent *agent, size_t episodes, struct outcome *out)
{
    int status = LS_OK;
    for (size_t i = 0; i < episodes && status == LS_OK; i++) {
        struct agent_played one = {.steps = 0};
        status = player_evaluate(agent, 0, 1, NULL, &one);
        out->all.steps += one.steps;
        out->all.episodes += one.episodes;
        out->all.return_sum += one.return_sum; /* as an evaluator adds up */
        out->least = i == 0 ? one.return_sum : fmin(out->least, one.return_sum);
        out->most = i == 0 ? one.return_sum : fmax(out->most, one.return_sum);
    }
    return status;
}

/* As the first evaluator of the run does. */
static int evaluate(const struct setup *setup, const struct saved_policy *saved,
                    size_t episodes, struct outcome *out)
{
    struct agent agent;
    int status = saved_policy_agent(&agent, setup, saved);
    if (status != LS_OK)
        return status;
    status = play(&agent, episodes, out);
    agent_fini(&agent);
    return status;
}

/* ---- showing ----------------------------------------------------------- */

static int show_json(const struct saved_policy *saved, uint64_t seed,
                     const struct outcome *outcome)
{
    const struct weights_file *file = &saved->file;
    const struct agent_played *all = &outcome->all;
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, 11);
    json_string(writer, "event", "eval");
    json_string(writer, "weights", saved->path);
    json_string(writer, "plugin", file->plugin);
    json_int(writer, "train_iter", file->note.train_iter);
    json_int(writer, "env_step", file->note.env_step);
    json_int(writer, "seed", (int64_t)seed);
    json_int(writer, "episodes", all->episodes);
    json_int(writer, "steps", all->steps);
    json_double(writer, "return", all->return_sum / (double)all->episodes);
    json_double(writer, "return_min", outcome->least);
    json_double(writer, "return_max", outcome->most);
    status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

static void show(const struct saved_policy *saved, uint64_t seed,
                 const struct outcome *outcome)
{
    const struct weights_file *file = &saved->file;
    const struct agent_played *all = &outcome->all;
    char text[256];
    printf("mean return %.1f of %s episodes, %g to %g\n\n",
           all->return_sum / (double)all->episodes,
           output_count(all->episodes).text, outcome->least, outcome->most);
    output_row("weights", saved->path);
    (void)snprintf(text, sizeof text, "by %.64s %.64s, in %s updates",
                   file->plugin, file->plugin_version,
                   output_count(file->note.train_iter).text);
    output_row("learned", text);
    (void)snprintf(text, sizeof text, "%s env steps, with seed %llu",
                   output_count(all->steps).text, (unsigned long long)seed);
    output_row("played", text);
}

static int eval(const struct options *options, const struct saved_policy *saved,
                const struct setup *setup)
{
    struct outcome outcome = {.least = 0.0};
    const uint64_t seed = setup->plan.seed;
    const size_t episodes =
        options->n_episodes > 0 ? options->n_episodes : setup->plan.episodes;
    int status = evaluate(setup, saved, episodes, &outcome);
    if (status == LS_OK && options->json)
        status = show_json(saved, seed, &outcome);
    else if (status == LS_OK)
        show(saved, seed, &outcome);
    return status == LS_OK ? 0 : command_failed(status);
}

int command_eval(const struct options *options)
{
    return saved_policy_do(options, eval);
}
