#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"

#include "sweep_seed.h"

static void add_network(struct ls_network_stats *sum,
                        const struct ls_network_stats *one)
{
    sum->sent += one->sent;
    sum->delivered += one->delivered;
    sum->lost += one->lost;
    sum->broken += one->broken;
    sum->duplicated += one->duplicated;
    sum->reordered += one->reordered;
    sum->connects += one->connects;
    sum->disconnects += one->disconnects;
}

static void add_checks(struct checks_figures *sum,
                       const struct checks_figures *one)
{
    sum->epochs += one->epochs;
    sum->leaves += one->leaves;
    sum->failures += one->failures;
    sum->events += one->events;
    sum->mistakes += one->mistakes;
    sum->excused += one->excused;
    sum->works += one->works;
    sum->retried += one->retried;
    sum->calls += one->calls;
    sum->unanswered += one->unanswered;
    sum->samples += one->samples;
    sum->batches += one->batches;
    sum->versions += one->versions;
    sum->takeovers += one->takeovers;
    sum->joined += one->joined;
    sum->carried += one->carried;
}

static void add(struct simulated_figures *sum,
                const struct simulated_figures *one)
{
    add_network(&sum->network, &one->network);
    add_checks(&sum->checks, &one->checks);
    for (size_t i = 0; i < FAULT_N_KINDS; i++)
        sum->injected[i] += one->injected[i];
    sum->acts += one->acts;
    sum->refused += one->refused;
    sum->failed += one->failed;
    sum->virtual_ns += one->virtual_ns;
}

static int keep_story(const simulated *all, char **story, size_t *size)
{
    FILE *out = open_memstream(story, size);
    if (out == NULL)
        return ls_error(LS_ENOMEM, "the events before a violation");
    simulated_print(all, out);
    return fclose(out) == 0
               ? LS_OK
               : ls_error(LS_ENOMEM, "the events before a violation");
}

int sweep_one(struct sweep_seed *out, char **story,
              const struct sweep_options *options, uint64_t seed)
{
    simulated *all = NULL;
    *story = NULL;
    memset(out, 0, sizeof *out);
    int status = simulated_create(
        &all, &(struct simulated_options){.plan = options->plan,
                                          .plugin = options->plugin,
                                          .faults = options->faults,
                                          .seed = seed,
                                          .log = options->log});
    if (status != LS_OK)
        return status;
    ls_coverage_now = out->taken;
    status = simulated_check(all);
    ls_coverage_now = NULL;
    if (status != LS_OK && status != LS_ENOMEM) {
        out->violated = true;
        (void)snprintf(out->text, sizeof out->text, "%s", ls_error_text());
        status = keep_story(all, story, &out->story_size);
    }
    simulated_figures(all, &out->figures);
    simulated_destroy(&all);
    return status;
}

/* What a job in lock step learns follows from its own seed: the network may
 * delay it, and may not change it. */
static void compare_weights(struct sweep_result *sum, struct sweep_seed *one,
                            uint64_t seed)
{
    const uint64_t weights = one->figures.weights;
    if (weights == 0 || one->violated)
        return;
    if (sum->weights == 0) {
        sum->weights = weights;
        sum->weights_seed = seed;
    }
    if (weights == sum->weights) {
        sum->n_weights++;
        return;
    }
    one->violated = true;
    (void)snprintf(one->text, sizeof one->text,
                   "weights: no node was lost, and it came to others than with "
                   "seed %" PRIu64 "; to see it again, sweep from there on",
                   sum->weights_seed);
}

/* Seed after seed, here or by the crew. */
static int run_all(struct sweep_result *out,
                   const struct sweep_options *options, sweep_crew *crew)
{
    bool goes_on = true;
    while (out->runs < options->n && goes_on) {
        struct sweep_seed one;
        char *story = NULL;
        const uint64_t seed = options->first + out->runs;
        const int status = crew != NULL
                               ? sweep_crew_next(crew, &one, &story)
                               : sweep_one(&one, &story, options, seed);
        out->signal = status == LS_ECANCELED ? one.signal : 0;
        if (status != LS_OK)
            return status == LS_ECANCELED ? LS_OK : status;
        compare_weights(out, &one, seed);
        add(&out->sum, &one.figures);
        for (size_t i = 0; i < LS_N_TRANSITIONS; i++)
            out->taken[i] += one.taken[i];
        out->runs++;
        if (one.violated) {
            out->violated = true;
            out->seed = seed;
            memcpy(out->text, one.text, sizeof out->text);
            if (story != NULL && options->last_events != NULL)
                (void)fputs(story, options->last_events);
        }
        free(story);
        goes_on = options->progress(options->self, out->runs) && !out->violated;
    }
    return LS_OK;
}

int sweep_run(struct sweep_result *out, const struct sweep_options *options)
{
    struct sweep_result result = {.runs = 0};
    sweep_crew *crew = NULL;
    const int64_t began_at = ls_now(ls_runtime_threads());
    int status = LS_OK;
    if (options->jobs > 1 && options->n > 1)
        status = sweep_crew_start(&crew, options);
    if (status == LS_OK)
        status = run_all(&result, options, crew);
    result.real_ns = ls_now(ls_runtime_threads()) - began_at;
    const int code = crew != NULL ? sweep_crew_end(&crew) : 0;
    if (status == LS_OK && code != 0)
        status = ls_error(
            LS_EIO, "a process of the sweep ended with exit code %d", code);
    if (status == LS_OK)
        *out = result;
    return status;
}
