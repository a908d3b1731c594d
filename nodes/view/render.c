#include "render.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/runtime.h"

#include "output.h"
#include "render_state.h"
#include "sum.h"

static bool wants_colour(int fd)
{
    const char *never = getenv("NO_COLOR");
    return (never == NULL || never[0] == '\0') && isatty(fd);
}

int render_create(render **out, const struct plan *plan, bool json,
                  size_t alone, ls_runtime *runtime)
{
    render *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "showing the run");
    made->plan = plan;
    made->alone = alone;
    made->lead = alone < plan->n_nodes ? alone : plan->first;
    made->colour_out = wants_colour(STDOUT_FILENO);
    made->colour_err = wants_colour(STDERR_FILENO);
    made->runtime = runtime != NULL ? runtime : ls_runtime_threads();
    made->born_at = ls_now(made->runtime);
    made->nodes = calloc(plan->n_nodes, sizeof *made->nodes);
    int status =
        made->nodes != NULL ? LS_OK : ls_error(LS_ENOMEM, "showing the run");
    if (status == LS_OK && json)
        status = ls_writer_create(&made->json);
    if (status == LS_OK && !json)
        status = progress_line_create(&made->progress, ls_runtime_threads(),
                                      STDERR_FILENO, -1);
    if (status != LS_OK) {
        render_destroy(&made);
        return status;
    }
    *out = made;
    return LS_OK;
}

void render_destroy(render **self)
{
    if (self == NULL || *self == NULL)
        return;
    progress_line_destroy(&(*self)->progress);
    ls_writer_destroy(&(*self)->json);
    free((*self)->nodes);
    free(*self);
    *self = NULL;
}

struct learner_totals render_learners(const struct render *self)
{
    int64_t iterations = 0, train = 0, load = 0, wait = 0, overlap = 0;
    int64_t policy_only = 0, commits = 0;
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const struct report *report = &self->nodes[i].last;
        if (self->plan->nodes[i].role != PLAN_LEARNER)
            continue;
        iterations = sum_of(iterations, report->trained);
        train = sum_of(train, report->train_ns);
        load = sum_of(load, report->load_ns);
        wait = sum_of(wait, report->wait_ns);
        overlap = sum_of(overlap, report->overlap_ns);
        policy_only = sum_of(policy_only, report->policy_only);
        commits = sum_of(commits, report->commits);
    }
    const double each = iterations > 0 ? 1e6 * (double)iterations : 1.0;
    return (struct learner_totals){
        .iterations = iterations,
        .policy_only = policy_only,
        .commits = commits,
        .train_ms = (double)train / each,
        .load_ms = (double)load / each,
        .wait_ms = (double)wait / each,
        .overlap = load > 0 ? (double)overlap / (double)load : 0.0};
}

struct member_totals render_members(const struct render *self)
{
    struct member_totals sum = {.works = 0};
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const struct report *report = &self->nodes[i].last;
        sum.works = sum_of(sum.works, report->works);
        sum.given_back = sum_of(sum.given_back, report->given_back);
        sum.failed_calls = sum_of(sum.failed_calls, report->failed_calls);
        sum.refused_calls = sum_of(sum.refused_calls, report->refused_calls);
        sum.dropped_samples =
            sum_of(sum.dropped_samples, report->dropped_samples);
        sum.store_refused = sum_of(sum.store_refused, report->store_refused);
    }
    return sum;
}

const struct report_metrics *render_learned(const struct render *self)
{
    const struct report *best = &self->nodes[self->lead].last;
    int64_t most = 0;
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const struct report *report = &self->nodes[i].last;
        if (self->plan->nodes[i].role != PLAN_LEARNER ||
            report->metrics.size == 0 || report->trained <= most)
            continue;
        most = report->trained;
        best = report;
    }
    return &best->metrics;
}

struct totals render_totals(const struct render *self)
{
    const int64_t now =
        self->ended_at != 0 ? self->ended_at : ls_now(self->runtime);
    const double second = (double)LS_NS_PER_S;
    struct totals totals = {.wall_s = (double)(now - self->born_at) / second,
                            .refusal = ""};
    int64_t most = 0;
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        const struct report *report = &self->nodes[i].last;
        totals.sent = sum_of(totals.sent, report->sent);
        totals.sent_bytes = sum_of(totals.sent_bytes, report->sent_bytes);
        totals.lost =
            sum_of(totals.lost, sum_of(report->lost, report->dropped));
        totals.refused = sum_of(totals.refused, report->refused);
        if (report->refused > most) {
            most = report->refused;
            totals.refusal = report->refusal;
        }
        if (report->peak_kib > totals.peak_kib)
            totals.peak_kib = report->peak_kib;
    }
    const int64_t from = self->resumes ? self->base_at : self->formed_at;
    if (self->counted_at > from && self->env_step >= self->base_env_step)
        totals.env_steps_per_s =
            (double)sum_of(difference_of(self->env_step, self->base_env_step),
                           self->discarded) /
            ((double)(self->counted_at - from) / second);
    totals.solved = self->evaluation.episodes > 0 &&
                    self->evaluation.eval_value >= self->plan->solved;
    return totals;
}

/* Those that are in the world, or were to its end. */
static size_t n_in_world(const render *self)
{
    size_t n = 0;
    for (size_t i = 0; i < self->plan->n_nodes; i++)
        n += self->nodes[i].state == NODE_IN ||
             self->nodes[i].state == NODE_DONE;
    return n;
}

/* "return 211.4 (goal 475)", or nothing before the first evaluation. */
static void print_return(const render *self, char *text, size_t size)
{
    const double value = self->alone < self->plan->n_nodes
                             ? self->nodes[self->lead].last.eval_value
                             : self->evaluation.eval_value;
    text[0] = '\0';
    if (self->evaluation.episodes == 0 && self->alone == self->plan->n_nodes)
        return;
    if (!isfinite(value))
        return;
    if (isfinite(self->plan->solved))
        (void)snprintf(text, size, "  return %.1f (goal %g)", value,
                       self->plan->solved);
    else
        (void)snprintf(text, size, "  return %.1f", value);
}

static void print_who(const render *self, char *text, size_t size)
{
    const struct plan *plan = self->plan;
    const size_t n = n_in_world(self);
    if (self->alone < plan->n_nodes)
        (void)snprintf(text, size, "node %u (%s)",
                       (unsigned)plan->nodes[self->alone].id,
                       plan_role_names[plan->nodes[self->alone].role]);
    else if (n < plan->n_nodes)
        (void)snprintf(text, size, "%s  %zu of %zu nodes", plan->job, n,
                       plan->n_nodes);
    else
        (void)snprintf(text, size, "%s  %zu nodes", plan->job, n);
}

/* What matters least stands last: that is where a narrow terminal cuts. */
static void show_line(render *self)
{
    char line[256], mean_return[64], who[LS_JOB_MAX + 32];
    if (self->progress == NULL || self->failed)
        return;
    print_who(self, who, sizeof who);
    const struct totals totals = render_totals(self);
    if (self->iteration == 0) {
        (void)snprintf(line, sizeof line, "%s  %.1f s  %s", who, totals.wall_s,
                       self->formed_at == 0 ? "attaching" : "attached");
        progress_line_show(self->progress, line);
        return;
    }
    if (plan_is_of_members(self->plan)) {
        (void)snprintf(line, sizeof line, "%s  %.1f s  %s epochs", who,
                       totals.wall_s,
                       output_count(self->nodes[self->lead].last.epochs).text);
        progress_line_show(self->progress, line);
        return;
    }
    print_return(self, mean_return, sizeof mean_return);
    (void)snprintf(line, sizeof line,
                   "%s  %.1f s  iteration %s%s  %s env steps  %s/s", who,
                   totals.wall_s, output_count(self->iteration).text,
                   mean_return, output_count(self->env_step).text,
                   output_count(whole_of(totals.env_steps_per_s)).text);
    progress_line_show(self->progress, line);
}

void render_launched(render *self, size_t index, long pid)
{
    struct rendered_node *node = &self->nodes[index];
    if (node->state < NODE_LAUNCHED)
        node->state = NODE_LAUNCHED;
    node->pid = pid;
    show_line(self);
}

static void keep(struct rendered_node *node, const struct report *report)
{
    const double eval_value = node->last.eval_value;
    const int64_t env_episode = node->last.env_episode;
    node->last = *report;
    if (isnan(report->eval_value) && node->state == NODE_IN)
        node->last.eval_value = eval_value;
    if (report->kind == REPORT_PROGRESS)
        node->last.env_episode = env_episode;
}

/* The counters of the run, from whoever knows the latest: the lead, or the
 * evaluator, who has the learner's. */
static void count(render *self, size_t index, const struct report *report)
{
    const bool knows = index == self->lead || report->kind == REPORT_EVALUATION;
    if (!knows ||
        (report->iteration <= self->iteration && report->discarded == 0))
        return;
    self->iteration = report->iteration;
    self->env_step = report->env_step;
    self->discarded = report->discarded;
    self->counted_at = ls_now(self->runtime);
    if (self->resumes && self->base_at == 0) {
        self->base_env_step = self->env_step;
        self->base_at = self->counted_at;
    }
}

/* Of several that evaluate the same weights, the best decides. */
static void note_evaluation(render *self, const struct report *report)
{
    const struct report *had = &self->evaluation;
    if (had->episodes == 0 || had->train_iter != report->train_iter ||
        report->eval_value > had->eval_value)
        self->evaluation = *report;
}

void render_report(render *self, size_t index, const struct report *report)
{
    struct rendered_node *node = &self->nodes[index];
    keep(node, report);
    count(self, index, report);
    switch ((enum report_kind)report->kind) {
    case REPORT_BOUND:
        node->state = NODE_BOUND;
        break;
    case REPORT_STARTED:
        node->state = NODE_IN;
        if (self->formed_at == 0)
            self->formed_at = ls_now(self->runtime);
        break;
    case REPORT_EVALUATION:
        note_evaluation(self, report);
        break;
    case REPORT_DONE:
        node->state = NODE_DONE;
        break;
    case REPORT_FAILED:
        node->state = NODE_FAILED;
        if (self->plan->nodes[index].on_loss == PLAN_FAIL)
            self->failed = true;
        break;
    case REPORT_PROGRESS:
    case REPORT_STUCK:
    case REPORT_N_KINDS:
        break;
    }
    if (self->json != NULL)
        render_json_report(self, index, report);
    show_line(self);
}

void render_line(render *self, size_t index, const char *line)
{
    char name[32];
    (void)snprintf(name, sizeof name, "node %u ",
                   (unsigned)self->plan->nodes[index].id);
    if (self->progress != NULL)
        progress_line_clear(self->progress);
    /* A line of the log says itself whose it is. */
    if (strstr(line, name) != NULL)
        (void)fprintf(stderr, "%s\n", line);
    else
        (void)fprintf(stderr, "%.*s: %s\n", (int)strlen(name) - 1, name, line);
}

void render_run(render *self, const struct render_run *run)
{
    self->resumes = run->lives > 0;
    if (run->lives > 0)
        output_print(stderr,
                     "lockstep: resuming the interrupted run in %s; "
                     "--fresh begins another\n",
                     run->folder);
    if (run->behind != NULL)
        output_print(stderr,
                     "lockstep: a new run, in %s; the one in %s stays as it "
                     "is\n",
                     run->folder, run->behind);
    (void)fflush(stderr);
    if (self->json != NULL)
        render_json_run(self, run);
}

void render_policy(render *self, const struct render_policy *policy)
{
    struct rendered_node *node = &self->nodes[policy->index];
    node->state = NODE_AWAITED;
    node->restarts = policy->restart > 0 ? policy->restart : node->restarts;
    node->let_go = policy->restart == 0;
    /* A learner that comes back may count from an earlier iteration on. */
    if (policy->index == self->lead)
        self->iteration = 0;
    if (self->progress != NULL)
        progress_line_clear(self->progress);
    output_print(stderr, "lockstep: %s\n", policy->text);
    (void)fflush(stderr);
    if (self->json != NULL)
        render_json_policy(self, policy);
    show_line(self);
}

void render_failed(render *self, const struct render_failure *failure)
{
    if (self->progress != NULL)
        progress_line_end(self->progress);
    self->failed = true;
    (void)fprintf(stderr, "%slockstep:%s ",
                  self->colour_err ? "\033[1;31m" : "",
                  self->colour_err ? "\033[0m" : "");
    output_print(stderr, "%s\n", failure->text);
    if (failure->n_lines > 0)
        (void)fprintf(stderr, "  its last lines:\n");
    for (size_t i = 0; i < failure->n_lines; i++)
        (void)fprintf(stderr, "    %s\n", failure->lines[i]);
    (void)fflush(stderr);
    if (self->json != NULL)
        render_json_failed(self, failure);
}

void render_stuck(render *self, size_t index, const char *text)
{
    if (self->progress != NULL)
        progress_line_clear(self->progress);
    output_print(stderr, "  %s\n", text);
    if (self->json != NULL)
        render_json_stuck(self, index, text);
}

void render_remark(render *self, const char *text)
{
    (void)self;
    output_print(stderr, "  %s\n", text);
}

/* After a failure: what is left of the run. */
static void show_remains(const render *self)
{
    const struct report *lead = &self->nodes[self->lead].last;
    if (lead->weights[0] != '\0')
        output_print(stderr,
                     "  the weights after %s update%s, %s env steps, are in "
                     "%s\n",
                     output_count(lead->train_iter).text,
                     lead->train_iter == 1 ? "" : "s",
                     output_count(lead->env_step).text, lead->weights);
    if (lead->unsaved[0] != '\0')
        output_print(stderr,
                     "  the weights after %s update%s are not saved: %s\n",
                     output_count(lead->train_iter).text,
                     lead->train_iter == 1 ? "" : "s", lead->unsaved);
}

bool render_is_unread(const render *self)
{
    return self->unread;
}

/* The end that came before the run was solved, with its value. */
static void print_end(const render *self, char *text, size_t size)
{
    const struct plan *plan = self->plan;
    const struct report *lead = &self->nodes[self->lead].last;
    const int64_t iterations =
        plan_is_service(plan) ? plan->service.fsm.iterations : 0;
    if (plan->stop_env_step > 0 && lead->env_step >= plan->stop_env_step)
        (void)snprintf(text, size, "stop.env_step (%lld)",
                       (long long)plan->stop_env_step);
    else if (iterations > 0 && lead->iteration >= iterations)
        (void)snprintf(text, size, "coordinator.iterations (%lld)",
                       (long long)iterations);
    else
        (void)snprintf(text, size, "stop.minutes (%g)", plan->stop_minutes);
}

static void show_not_solved(const render *self)
{
    char mean[96] = "nothing was evaluated", end[64];
    if (self->evaluation.episodes > 0)
        (void)snprintf(mean, sizeof mean, "mean return %.1f of %lld episodes",
                       self->evaluation.eval_value,
                       (long long)self->evaluation.episodes);
    print_end(self, end, sizeof end);
    (void)fprintf(stderr,
                  "lockstep: not solved: %s when %s ended the run: raise that, "
                  "or lower evaluator.solved (%g)\n",
                  mean, end, self->plan->solved);
}

int render_end(render *self, int exit_code)
{
    const struct plan *plan = self->plan;
    self->ended_at = ls_now(self->runtime);
    const bool not_solved = exit_code == 0 && self->alone == plan->n_nodes &&
                            !plan_is_of_members(plan) &&
                            isfinite(plan->solved) &&
                            !render_totals(self).solved;
    self->exit_code = not_solved ? 1 : exit_code;
    if (self->failed)
        show_remains(self);
    else if (self->progress != NULL)
        progress_line_end(self->progress);
    if (self->json != NULL)
        render_json_summary(self);
    else if (!self->failed)
        render_text_summary(self);
    if (not_solved)
        show_not_solved(self);
    return self->exit_code;
}
