#include "sweep.h"

#include <string.h>

#include "lockstep/runtime.h"

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

static int run_one(struct sweep_result *out,
                   const struct sweep_options *options, uint64_t seed)
{
    simulated *all = NULL;
    struct simulated_figures figures;
    int status = simulated_create(
        &all, &(struct simulated_options){.plan = options->plan,
                                          .plugin = options->plugin,
                                          .faults = options->faults,
                                          .seed = seed,
                                          .log = options->log});
    if (status != LS_OK)
        return status;
    status = simulated_check(all);
    if (status != LS_OK && status != LS_ENOMEM) {
        out->violated = true;
        out->seed = seed;
        (void)snprintf(out->text, sizeof out->text, "%s", ls_error_text());
        if (options->last_events != NULL)
            simulated_print(all, options->last_events);
        status = LS_OK;
    }
    simulated_figures(all, &figures);
    add(&out->sum, &figures);
    out->runs++;
    simulated_destroy(&all);
    return status;
}

int sweep_run(struct sweep_result *out, const struct sweep_options *options)
{
    struct sweep_result result = {.runs = 0};
    const int64_t began_at = ls_now(ls_runtime_threads());
    int status = LS_OK;
    bool more = true;
    while (more && result.runs < options->n && !result.violated &&
           status == LS_OK) {
        status = run_one(&result, options, options->first + result.runs);
        more = options->progress == NULL ||
               options->progress(options->self, result.runs);
    }
    result.real_ns = ls_now(ls_runtime_threads()) - began_at;
    if (status == LS_OK)
        *out = result;
    return status;
}
