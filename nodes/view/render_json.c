/* What `--json` shows: events, a line each. */
#include <math.h>
#include <string.h>

#include "lockstep/log.h"

#include "json.h"
#include "output.h"
#include "render_state.h"

static void begin(render *self, const char *event)
{
    ls_writer_clear(self->json);
    ls_write_map_begin(self->json);
    json_string(self->json, "event", event);
}

static void end(render *self)
{
    ls_write_map_end(self->json);
    if (json_print_line(self->json) != LS_OK) {
        ls_log_error("an event could not be written: %s", ls_error_text());
        return;
    }
    const int status = output_flush();
    if (status == LS_EIO && !self->unwritten)
        ls_log_error("%s; the run continues without it", ls_error_text());
    self->unwritten = status != LS_OK;
    self->unread = status == LS_ECLOSED;
}

static void put_node(render *self, size_t index)
{
    const struct plan_node *node = &self->plan->nodes[index];
    json_int(self->json, "node", node->id);
    json_string(self->json, "role", plan_role_names[node->role]);
}

/* What each kind of job says of itself: members of their epochs, a service job
 * of its samples. */
static void put_kind(render *self, const struct report *report)
{
    static const char *const epochs[] = {"epochs", "failures", "median_ns",
                                         "max_ns", NULL};
    static const char *const service[] = {
        "samples",       "infos",         "done_infos",
        "batches",       "requeued",      "refused_starts",
        "expired",       "refused_data",  "pushed_out",
        "evicted_stale", "evicted_full",  "evicted_lost",
        "late_samples",  "priorities",    "priorities_refused",
        "staleness",     "staleness_max", NULL};
    if (plan_is_of_members(self->plan))
        ls_record_write_pairs(&report_record, report, epochs, self->json);
    else if (plan_is_service(self->plan))
        ls_record_write_pairs(&report_record, report, service, self->json);
}

/* What a job that learns has besides: in lock step the metrics of its learner;
 * in a service job what all learners come to. */
static void put_learner(render *self, const struct report *report)
{
    if (plan_is_of_members(self->plan))
        return;
    if (!plan_is_service(self->plan)) {
        json_msgpack(self->json, "learner", report->metrics.bytes,
                     report->metrics.size);
        return;
    }
    const struct learner_totals totals = render_learners(self);
    const struct report_metrics *const told = render_learned(self);
    ls_write_string(self->json, "learner");
    ls_write_map(self->json, 9);
    ls_write_string(self->json, "info");
    ls_write_map(self->json, 1);
    json_msgpack(self->json, "learner", told->bytes, told->size);
    json_int(self->json, "iterations", totals.iterations);
    json_int(self->json, "ranks", (int64_t)plan_ranks(self->plan));
    json_int(self->json, "policy_only", totals.policy_only);
    json_int(self->json, "commits", totals.commits);
    json_double(self->json, "train_ms", totals.train_ms);
    json_double(self->json, "load_ms", totals.load_ms);
    json_double(self->json, "wait_ms", totals.wait_ms);
    json_double(self->json, "overlap", totals.overlap);
}

static void put_members(render *self)
{
    const struct member_totals totals = render_members(self);
    json_int(self->json, "works", totals.works);
    json_int(self->json, "given_back", totals.given_back);
    json_int(self->json, "failed_calls", totals.failed_calls);
    json_int(self->json, "refused_calls", totals.refused_calls);
    json_int(self->json, "dropped_samples", totals.dropped_samples);
    json_int(self->json, "store_refused", totals.store_refused);
}

static void put_counters(render *self, const struct report *report)
{
    static const char *const counters[] = {"iteration", "env_step",
                                           "train_iter", NULL};
    ls_record_write_pairs(&report_record, report, counters, self->json);
}

/* A node's record when the world has been formed, or when it has ended. */
static void put_life(render *self, size_t index, const struct report *report)
{
    ls_writer *out = self->json;
    switch ((enum report_kind)report->kind) {
    case REPORT_BOUND:
        begin(self, "bound");
        put_node(self, index);
        json_int(out, "pid", self->nodes[index].pid);
        json_string(out, "endpoint", report->endpoint);
        break;
    case REPORT_STARTED:
        begin(self, "started");
        put_node(self, index);
        json_int(out, "pid", self->nodes[index].pid);
        break;
    default:
        begin(self, "ended");
        put_node(self, index);
        json_string(out, "status", ls_status_name((int)report->status));
        json_string(out, "text", report->text);
        json_int(out, "peak_kib", report->peak_kib);
        break;
    }
    end(self);
}

void render_json_run(render *self, const struct render_run *run)
{
    begin(self, "run");
    json_string(self->json, "folder", run->folder);
    json_int(self->json, "lives", (int64_t)run->lives);
    end(self);
}

void render_json_report(render *self, size_t index, const struct report *report)
{
    ls_writer *out = self->json;
    switch ((enum report_kind)report->kind) {
    case REPORT_PROGRESS:
        if (index != self->lead)
            return; /* the others' are parts of what this one counts */
        begin(self, "progress");
        put_node(self, index);
        put_kind(self, report);
        put_counters(self, report);
        json_double(out, "env_steps_per_s", report->env_steps_per_s);
        end(self);
        return;
    case REPORT_EVALUATION:
        begin(self, "evaluation");
        put_node(self, index);
        put_counters(self, report);
        json_int(out, "episodes", report->episodes);
        json_double(out, "return", report->eval_value);
        json_bool(out, "solved", report->eval_value >= self->plan->solved);
        end(self);
        return;
    case REPORT_BOUND:
    case REPORT_STARTED:
    case REPORT_DONE:
    case REPORT_FAILED:
    case REPORT_STUCK:
    case REPORT_N_KINDS:
        break;
    }
    put_life(self, index, report);
}

void render_json_policy(render *self, const struct render_policy *policy)
{
    ls_writer *out = self->json;
    const bool restarts = policy->restart > 0;
    begin(self, restarts ? "restarting" : "let_go");
    put_node(self, policy->index);
    if (restarts) {
        json_int(out, "restart", policy->restart);
        json_int(out, "max_restarts",
                 self->plan->nodes[policy->index].max_restarts);
        json_double(out, "restart_window_s",
                    self->plan->nodes[policy->index].restart_window_s);
        json_int(out, "wait_ms", policy->wait_ms);
    }
    json_string(out, "text", policy->text);
    end(self);
}

void render_json_stuck(render *self, size_t index, const char *text)
{
    begin(self, "stuck");
    put_node(self, index);
    json_string(self->json, "text", text);
    end(self);
}

void render_json_failed(render *self, const struct render_failure *failure)
{
    ls_writer *out = self->json;
    const bool node = failure->index < self->plan->n_nodes;
    begin(self, "failed");
    if (node)
        put_node(self, failure->index);
    json_int(out, "exit_code", failure->exit_code);
    json_string(out, "status",
                failure->status != LS_OK ? ls_status_name(failure->status)
                                         : NULL);
    json_int(out, "signal", failure->signal);
    json_string(out, "text", failure->text);
    ls_write_string(out, "lines");
    ls_write_array(out, (uint32_t)failure->n_lines);
    for (size_t i = 0; i < failure->n_lines; i++)
        ls_write_any_string(out, failure->lines[i]);
    end(self);
}

void render_json_summary(render *self)
{
    ls_writer *out = self->json;
    const struct totals totals = render_totals(self);
    const struct report *lead = &self->nodes[self->lead].last;
    begin(self, "summary");
    put_kind(self, lead);
    put_learner(self, lead);
    if (plan_is_service(self->plan))
        put_members(self);
    json_int(out, "exit_code", self->exit_code);
    json_bool(out, "solved", totals.solved);
    json_double(out, "return",
                self->evaluation.episodes > 0 ? self->evaluation.eval_value
                                              : (double)NAN);
    json_double(out, "wall_s", totals.wall_s);
    json_int(out, "seed", (int64_t)self->plan->seed);
    put_counters(self, lead);
    json_int(out, "env_episode", lead->env_episode);
    json_int(out, "discarded_env_step", lead->discarded);
    json_int(out, "failed_saves", lead->failed_saves);
    json_double(out, "env_steps_per_s", totals.env_steps_per_s);
    json_int(out, "messages", totals.sent);
    json_int(out, "message_bytes", totals.sent_bytes);
    json_int(out, "losses", totals.lost);
    json_int(out, "refused", totals.refused);
    if (totals.refused > 0)
        json_string(out, "refusal", totals.refusal);
    json_string(out, "weights",
                lead->weights[0] != '\0' ? lead->weights : NULL);
    ls_write_string(out, "nodes");
    ls_write_array(out, (uint32_t)self->plan->n_nodes);
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        ls_write_map_begin(out);
        put_node(self, i);
        json_int(out, "pid", self->nodes[i].pid);
        json_int(out, "peak_kib", self->nodes[i].last.peak_kib);
        json_int(out, "restarts", self->nodes[i].restarts);
        json_bool(out, "let_go", self->nodes[i].let_go);
        ls_write_map_end(out);
    }
    end(self);
}
