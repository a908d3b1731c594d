#include "sweep_show.h"

#include <inttypes.h>
#include <string.h>

#include "json.h"
#include "output.h"

static void print_network(const struct ls_network_stats *network)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "%s sent; %s lost, %s doubled, %s overtaken, %s lost with "
                   "their connection",
                   output_count((int64_t)network->sent).text,
                   output_count((int64_t)network->lost).text,
                   output_count((int64_t)network->duplicated).text,
                   output_count((int64_t)network->reordered).text,
                   output_count((int64_t)network->broken).text);
    output_row("messages", text);
}

static void print_faults(const uint64_t *injected)
{
    char text[FAULT_N_KINDS * 40] = "none";
    size_t used = 0;
    for (size_t i = 0; i < FAULT_N_KINDS; i++) {
        if (injected[i] > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s",
                                     used > 0 ? ", " : "",
                                     output_count((int64_t)injected[i]).text,
                                     fault_names[i]);
    }
    output_row("faults", text);
}

static void print_strangers(const struct simulated_figures *sum)
{
    char text[160];
    (void)snprintf(text, sizeof text, "%s did %s things; %s were refused",
                   output_count((int64_t)sum->injected[FAULT_STRANGER]).text,
                   output_count((int64_t)sum->acts).text,
                   output_count((int64_t)sum->refused).text);
    output_row("strangers", text);
}

static void print_members(const struct checks_figures *sum)
{
    char text[160];
    (void)snprintf(text, sizeof text, "%s; %s failed waits",
                   output_count((int64_t)sum->epochs).text,
                   output_count((int64_t)sum->failures).text);
    output_row("epochs", text);
    output_row("events", output_count((int64_t)sum->events).text);
}

static void print_services(const struct checks_figures *sum)
{
    char text[200];
    (void)snprintf(text, sizeof text,
                   "%s given out, %s of them again; %s takeovers",
                   output_count((int64_t)sum->works).text,
                   output_count((int64_t)sum->retried).text,
                   output_count((int64_t)sum->takeovers).text);
    output_row("works", text);
    if (sum->joined > 0)
        output_row("ranks", output_count((int64_t)sum->joined).text);
    (void)snprintf(text, sizeof text, "%s, %s of them without an answer",
                   output_count((int64_t)sum->calls).text,
                   output_count((int64_t)sum->unanswered).text);
    output_row("calls", text);
    (void)snprintf(text, sizeof text,
                   "%s came, %s batches of them; %s policy versions",
                   output_count((int64_t)sum->samples).text,
                   output_count((int64_t)sum->batches).text,
                   output_count((int64_t)sum->versions).text);
    output_row("samples", text);
    if (sum->carried > 0)
        output_row("carried over", output_count((int64_t)sum->carried).text);
}

static void print_mistakes(const struct checks_figures *sum)
{
    char text[160];
    (void)snprintf(text, sizeof text,
                   "%s living nodes were declared lost, which explains %s "
                   "breaks of a promise",
                   output_count((int64_t)sum->mistakes).text,
                   output_count((int64_t)sum->excused).text);
    output_row("mistakes", text);
}

/* The machine after the one of transition i. */
static size_t after_machine(size_t i)
{
    const char *machine = ls_transition_names[i].machine;
    while (i < LS_N_TRANSITIONS &&
           strcmp(ls_transition_names[i].machine, machine) == 0)
        i++;
    return i;
}

static void print_transitions(const uint64_t *taken, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        n += taken[i] > 0 ? 1 : 0;
    printf("\n  %-13s  %zu of %zu transitions taken\n",
           ls_transition_names[from].machine, n, to - from);
    if (n == 0) /* the job has no such machine */
        return;
    for (size_t i = from; i < to; i++)
        if (taken[i] > 0)
            printf("    %15s  %s\n", output_count((int64_t)taken[i]).text,
                   ls_transition_names[i].name);
    for (size_t i = from; i < to; i++)
        if (taken[i] == 0)
            printf("    %15s  %s\n", "never", ls_transition_names[i].name);
}

static void print_coverage(const uint64_t *taken)
{
    for (size_t i = 0, next; i < LS_N_TRANSITIONS; i = next) {
        next = after_machine(i);
        print_transitions(taken, i, next);
    }
}

void sweep_print(const struct sweep_shown *shown)
{
    const struct sweep_result *result = shown->result;
    const struct simulated_figures *sum = &result->sum;
    const bool serves = plan_is_service(shown->plan);
    char text[160];
    const double real_s = (double)result->real_ns / 1e9;
    printf("%s: %s seed%s from %" PRIu64 " on, %zu nodes, faults %s: %s\n\n",
           shown->plan->job, output_count((int64_t)result->runs).text,
           result->runs == 1 ? "" : "s", shown->first, shown->plan->n_nodes,
           shown->faults, result->violated ? "1 violation" : "0 violations");
    if (serves)
        print_services(&sum->checks);
    else
        print_members(&sum->checks);
    print_network(&sum->network);
    print_faults(sum->injected);
    if (sum->injected[FAULT_STRANGER] > 0)
        print_strangers(sum);
    if (!serves)
        print_mistakes(&sum->checks);
    if (result->n_weights > 0) {
        (void)snprintf(text, sizeof text,
                       "%s runs lost no node, and came to the "
                       "same",
                       output_count((int64_t)result->n_weights).text);
        output_row("weights", text);
    }
    (void)snprintf(text, sizeof text, "%.1f s", (double)sum->virtual_ns / 1e9);
    output_row("virtual time", text);
    (void)snprintf(text, sizeof text, "%.2f s, %.0f seeds/s", real_s,
                   (double)result->runs / real_s);
    output_row("real time", text);
    if (shown->coverage)
        print_coverage(result->taken);
    output_flush();
}

static void write_checks(ls_writer *out, const struct checks_figures *sum)
{
    json_int(out, "epochs", (int64_t)sum->epochs);
    json_int(out, "failures", (int64_t)sum->failures);
    json_int(out, "events", (int64_t)sum->events);
    json_int(out, "mistakes", (int64_t)sum->mistakes);
    json_int(out, "excused", (int64_t)sum->excused);
    json_int(out, "works", (int64_t)sum->works);
    json_int(out, "retried", (int64_t)sum->retried);
    json_int(out, "calls", (int64_t)sum->calls);
    json_int(out, "unanswered", (int64_t)sum->unanswered);
    json_int(out, "samples", (int64_t)sum->samples);
    json_int(out, "batches", (int64_t)sum->batches);
    json_int(out, "versions", (int64_t)sum->versions);
    json_int(out, "takeovers", (int64_t)sum->takeovers);
    json_int(out, "joined", (int64_t)sum->joined);
    json_int(out, "carried", (int64_t)sum->carried);
}

static void write_network(ls_writer *out, const struct ls_network_stats *sum)
{
    json_int(out, "messages", (int64_t)sum->sent);
    json_int(out, "delivered", (int64_t)sum->delivered);
    json_int(out, "lost", (int64_t)sum->lost);
    json_int(out, "doubled", (int64_t)sum->duplicated);
    json_int(out, "overtaken", (int64_t)sum->reordered);
    json_int(out, "broken", (int64_t)sum->broken);
}

/* A map of how often, for each machine. */
static void write_coverage(ls_writer *out, const uint64_t *taken)
{
    ls_write_string(out, "coverage");
    ls_write_map_begin(out);
    for (size_t i = 0; i < LS_N_TRANSITIONS;) {
        const size_t next = after_machine(i);
        ls_write_string(out, ls_transition_names[i].machine);
        ls_write_map(out, (uint32_t)(next - i));
        for (; i < next; i++)
            json_int(out, ls_transition_names[i].name, (int64_t)taken[i]);
    }
    ls_write_map_end(out);
}

int sweep_print_json(const struct sweep_shown *shown)
{
    const struct sweep_result *result = shown->result;
    const struct simulated_figures *sum = &result->sum;
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map_begin(out);
    json_string(out, "event", "sweep");
    json_int(out, "first", (int64_t)shown->first);
    json_int(out, "runs", (int64_t)result->runs);
    json_int(out, "nodes", (int64_t)shown->plan->n_nodes);
    json_string(out, "faults", shown->faults);
    json_bool(out, "violated", result->violated);
    json_int(out, "seed", result->violated ? (int64_t)result->seed : -1);
    json_int(out, "signal", shown->signal);
    json_string(out, "text", result->text);
    write_checks(out, &sum->checks);
    write_network(out, &sum->network);
    json_double(out, "virtual_s", (double)sum->virtual_ns / 1e9);
    json_double(out, "real_s", (double)result->real_ns / 1e9);
    json_int(out, "acts", (int64_t)sum->acts);
    json_int(out, "refused", (int64_t)sum->refused);
    json_int(out, "failed", (int64_t)sum->failed);
    json_int(out, "alike", (int64_t)result->n_weights);
    for (size_t i = 0; i < FAULT_N_KINDS; i++)
        json_int(out, fault_names[i], (int64_t)sum->injected[i]);
    if (shown->coverage)
        write_coverage(out, result->taken);
    ls_write_map_end(out);
    status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}
