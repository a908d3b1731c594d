/* The summary at the end of a run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lockstep/simulation.h"

#include "output.h"
#include "render_state.h"
#include "sum.h"

/* Memory is told node by node up to here, beyond it only the largest. */
#define NODES_IN_A_LINE 16

static void print_heading(const render *self, bool solved)
{
    const struct report *lead = &self->nodes[self->lead].last;
    const struct report *evaluation = &self->evaluation;
    const char *bold = self->colour_out ? "\033[1;32m" : "";
    const char *plain = self->colour_out ? "\033[0m" : "";
    if (plan_is_of_members(self->plan)) {
        printf("done: %s epochs of %zu members\n\n",
               output_count(lead->epochs).text, self->plan->n_nodes);
        return;
    }
    if (evaluation->episodes == 0) {
        printf("done after %s iterations\n\n",
               output_count(lead->iteration).text);
        return;
    }
    if (!isfinite(self->plan->solved)) {
        printf("done: mean return %.1f of %lld episodes\n\n",
               evaluation->eval_value, (long long)evaluation->episodes);
        return;
    }
    printf("%s%s%s: mean return %.1f of %lld episodes, %g needed\n\n",
           solved ? bold : "", solved ? "solved" : "not solved",
           solved ? plain : "", evaluation->eval_value,
           (long long)evaluation->episodes, self->plan->solved);
}

static void print_bytes(char *text, size_t size, int64_t bytes)
{
    if (bytes < 1000000)
        (void)snprintf(text, size, "%.1f kB", (double)bytes / 1e3);
    else
        (void)snprintf(text, size, "%.1f MB", (double)bytes / 1e6);
}

/* A line has room for the longest ids and figures. */
static void print_memory(const render *self, int64_t peak_kib)
{
    char text[NODES_IN_A_LINE * 40];
    size_t used = 0;
    const size_t n = self->plan->n_nodes;
    const bool threads = self->nodes[self->lead].pid == 0;
    if (self->alone < n || threads || n > NODES_IN_A_LINE) {
        (void)snprintf(text, sizeof text, "%.1f MiB%s",
                       (double)peak_kib / 1024.0,
                       n > NODES_IN_A_LINE && !threads ? " at most" : "");
    } else {
        for (size_t i = 0; i < n; i++)
            used += (size_t)snprintf(
                text + used, sizeof text - used, "%s%.1f", i > 0 ? ", " : "",
                (double)self->nodes[i].last.peak_kib / 1024.0);
        (void)snprintf(text + used, sizeof text - used, " MiB (nodes");
        used += strlen(text + used);
        for (size_t i = 0; i < n; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, " %u",
                                     (unsigned)self->plan->nodes[i].id);
        (void)snprintf(text + used, sizeof text - used, ")");
    }
    output_row("peak memory", text);
}

static void print_epochs(const render *self)
{
    const struct report *lead = &self->nodes[self->lead].last;
    char text[96];
    int64_t max_ns = 0, failures = 0, sent = 0, repeated = 0;
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const struct report *report = &self->nodes[i].last;
        max_ns = report->max_ns > max_ns ? report->max_ns : max_ns;
        failures = sum_of(failures, report->failures);
        sent = sum_of(sent, report->barrier_sent);
        repeated = sum_of(repeated, report->barrier_repeated);
    }
    (void)snprintf(text, sizeof text, "median %.3f ms, at most %.3f ms",
                   (double)lead->median_ns / 1e6, (double)max_ns / 1e6);
    output_row("waited", text);
    (void)snprintf(text, sizeof text, "%s, %s of them repeated",
                   output_count(sent).text, output_count(repeated).text);
    output_row("barrier", text);
    if (failures > 0)
        output_row("failed waits", output_count(failures).text);
}

static void print_learners(const render *self)
{
    const struct learner_totals totals = render_learners(self);
    char text[160];
    if (totals.iterations == 0)
        return;
    (void)snprintf(text, sizeof text,
                   "trains %.3f ms, loads %.3f ms, %.0f %% of it while it "
                   "trains; waits %.3f ms for batches",
                   totals.train_ms, totals.load_ms, 100.0 * totals.overlap,
                   totals.wait_ms);
    output_row("learner", text);
    if (plan_is_service(self->plan) && plan_ranks(self->plan) > 1) {
        (void)snprintf(text, sizeof text,
                       "%zu, each with a share of each batch",
                       plan_ranks(self->plan));
        output_row("ranks", text);
    }
    if (totals.policy_only > 0)
        output_row("policy alone", output_count(totals.policy_only).text);
}

static void print_training(const render *self, const struct totals *totals)
{
    const struct report *lead = &self->nodes[self->lead].last;
    char text[96];
    output_row("iterations", output_count(lead->iteration).text);
    if (plan_is_service(self->plan))
        (void)snprintf(text, sizeof text, "%s in %s samples",
                       output_count(lead->env_step).text,
                       output_count(lead->samples).text);
    else
        (void)snprintf(text, sizeof text, "%s in %s episodes",
                       output_count(lead->env_step).text,
                       output_count(lead->env_episode).text);
    output_row("env steps", text);
    if (lead->discarded > 0) {
        (void)snprintf(text, sizeof text,
                       "%s env steps, of the iteration in which it ended",
                       output_count(lead->discarded).text);
        output_row("discarded", text);
    }
    if (lead->failed_saves > 0)
        output_row("failed saves", output_count(lead->failed_saves).text);
    output_row("env steps/s",
               output_count(whole_of(totals->env_steps_per_s)).text);
    print_learners(self);
}

struct counted {
    const char *what;
    int64_t n;
};

/* "stale 12, too late for their work 3", or nothing. */
static void print_counted(const char *row, const struct counted *counted,
                          size_t n)
{
    char text[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (counted[i].n > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s",
                                     used > 0 ? ", " : "", counted[i].what,
                                     output_count(counted[i].n).text);
    if (used > 0)
        output_row(row, text);
}

/* What became of the works of a coordinator. */
static void print_works(const render *self)
{
    const struct report *lead = &self->nodes[self->lead].last;
    char text[96];
    if (isfinite(lead->staleness)) {
        (void)snprintf(text, sizeof text,
                       "mean %.2f versions of the policy, at most %s",
                       lead->staleness, output_count(lead->staleness_max).text);
        output_row("staleness", text);
    }
    if (lead->refused_data > 0)
        output_row("wrong answers", output_count(lead->refused_data).text);
    const struct member_totals members = render_members(self);
    const struct counted not_learned[] = {
        {"stale", lead->evicted_stale},
        {"pushed out by newer", lead->evicted_full},
        {"pushed out for want of coordinator.data.max_mib", lead->pushed_out},
        {"lost with their node", lead->evicted_lost},
        {"too late for their work", lead->late_samples},
        {"taken by nobody", members.dropped_samples}};
    const struct counted works[] = {{"given out again", lead->requeued},
                                    {"given up", lead->expired},
                                    {"given back", members.given_back},
                                    {"not taken", lead->refused_starts}};
    const struct counted calls[] = {
        {"for want of data or policy", members.failed_calls},
        {"for want of coordinator.data.max_mib", members.store_refused},
        {"refused", members.refused_calls}};
    print_counted("not learned", not_learned,
                  sizeof not_learned / sizeof not_learned[0]);
    print_counted("works", works, sizeof works / sizeof works[0]);
    print_counted("failed calls", calls, sizeof calls / sizeof calls[0]);
}

/* "node 0: 1, node 3: 2, without node 4", or nothing. */
static void print_restarts(const render *self)
{
    char text[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < self->plan->n_nodes && used < sizeof text; i++) {
        const struct rendered_node *node = &self->nodes[i];
        const unsigned id = (unsigned)self->plan->nodes[i].id;
        const char *comma = used > 0 ? ", " : "";
        if (node->restarts > 0)
            used +=
                (size_t)snprintf(text + used, sizeof text - used,
                                 "%snode %u: %u", comma, id, node->restarts);
        if (node->let_go && used < sizeof text)
            used +=
                (size_t)snprintf(text + used, sizeof text - used,
                                 "%swithout node %u", used > 0 ? ", " : "", id);
    }
    if (used > 0)
        output_row("restarts", text);
}

static void print_losses(const render *self)
{
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const char *at = self->nodes[i].last.losses;
        while (at[0] != '\0') {
            const size_t size = strcspn(at, "\n");
            output_print(stdout, "  %-13s  %.*s\n", "", (int)size, at);
            at += size + (at[size] != '\0' ? 1 : 0);
        }
    }
}

/* Whom the others waited for longest, when that was long. */
static void print_slowest(const render *self)
{
    const struct report *worst = NULL;
    char text[96];
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const struct report *report = &self->nodes[i].last;
        if (report->slowest_ns >= LS_NS_PER_S &&
            (worst == NULL || report->slowest_ns > worst->slowest_ns))
            worst = report;
    }
    if (worst == NULL)
        return;
    (void)snprintf(text, sizeof text,
                   "node %lld, without room for node %lld for %.1f s in all",
                   (long long)worst->slowest, (long long)worst->node,
                   (double)worst->slowest_ns / (double)LS_NS_PER_S);
    output_row("slowest", text);
}

/* "3, node 7: it may not …", or nothing. */
static void print_refused(const struct totals *totals)
{
    char text[REPORT_REFUSAL_MAX + 40];
    if (totals->refused == 0)
        return;
    (void)snprintf(text, sizeof text, "%s%s%s",
                   output_count(totals->refused).text,
                   totals->refusal[0] != '\0' ? ", " : "", totals->refusal);
    output_row("refused", text);
}

void render_text_summary(render *self)
{
    const struct totals totals = render_totals(self);
    const struct report *lead = &self->nodes[self->lead].last;
    char text[REPORT_PATH_MAX], bytes[32];
    print_heading(self, totals.solved);

    (void)snprintf(text, sizeof text, "%.2f s", totals.wall_s);
    output_row(ls_simulation_of(self->runtime) != NULL ? "virtual time"
                                                       : "wall time",
               text);
    if (plan_is_of_members(self->plan))
        print_epochs(self);
    else
        print_training(self, &totals);
    if (plan_is_service(self->plan))
        print_works(self);
    print_bytes(bytes, sizeof bytes, totals.sent_bytes);
    (void)snprintf(text, sizeof text, "%s sent, %s",
                   output_count(totals.sent).text, bytes);
    output_row("messages", text);
    output_row("losses", output_count(totals.lost).text);
    print_losses(self);
    print_slowest(self);
    print_refused(&totals);
    print_restarts(self);
    if (totals.peak_kib > 0)
        print_memory(self, totals.peak_kib);
    if (lead->weights[0] != '\0')
        output_row("weights", lead->weights);
    output_flush();
}
