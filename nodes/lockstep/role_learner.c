/* The role learner: learns from what the collectors bring. */
#include <stdio.h>

#include "lockstep/log.h"

#include "role.h"
#include "weights.h"

static void log_info(const ls_learner_info *info, int64_t train_iter)
{
    if (!ls_log_enabled(LS_LOG_INFO))
        return;
    char line[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < ls_learner_info_count(info); i++) {
        const int n = snprintf(line + used, sizeof line - used, "  %s %.5g",
                               ls_learner_info_name(info, i),
                               ls_learner_info_value(info, i));
        if (n < 0 || (size_t)n >= sizeof line - used)
            break;
        used += (size_t)n;
    }
    ls_log_info("update %lld%s", (long long)train_iter, line);
}

/* Of learners that share each batch the first keeps what all have. */
static bool keeps_weights(const struct role *role)
{
    return plan_part(role->plan, role->index) == 0;
}

/* iterations, updates: that are over, or will be when these weights are the
 * result. */
static struct weights_note note_of(const struct role *role, int64_t iterations,
                                   int64_t updates)
{
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    return (struct weights_note){.seed = role->plan->seed,
                                 .iteration = iterations,
                                 .train_iter = updates,
                                 .env_step = context->env_step,
                                 .env_episode = context->env_episode};
}

static int save(struct role *role, const char *name, int64_t iterations,
                char *path, size_t size)
{
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    const struct weights_note note =
        note_of(role, iterations, context->train_iter);
    return training_save(role->training, &note, role->plan->folder, name, path,
                         size);
}

/* One of the files that an earlier life has left, when it is further than
 * what was found before. */
static int resume_from(struct role *role, const char *name)
{
    struct weights_note found;
    const struct plan *plan = role->plan;
    const int64_t before = role->learned ? role->resumed.train_iter : -1;
    int status =
        weights_load(&role->agent, plan->seed, plan->folder, name, &found);
    if (status == LS_ENOENT)
        return LS_OK;
    if (status != LS_OK)
        return ls_error_at(status, "resuming from what was learned (--fresh "
                                   "starts over)");
    if (found.train_iter < before)
        return weights_load(&role->agent, plan->seed, plan->folder,
                            WEIGHTS_CHECKPOINT, &found);
    role->resumed = found;
    role->learned = true;
    return LS_OK;
}

int role_resume(struct role *role, unsigned generation)
{
    weights_tidy(role->plan->folder);
    int status = resume_from(role, WEIGHTS_CHECKPOINT);
    if (status == LS_OK)
        status = resume_from(role, WEIGHTS_FINAL);
    if (status != LS_OK)
        return status;
    if (role->learned)
        ls_log_info("it resumes after update %lld",
                    (long long)role->resumed.train_iter);
    else if (generation > 0)
        ls_log_warn(
            "it begins with nothing learned: there is no " WEIGHTS_CHECKPOINT
            " in %s%s",
            role->plan->folder,
            role->plan->learner.checkpoint_every > 0
                ? ""
                : ", since learner.checkpoint_every is 0");
    return LS_OK;
}

static int checkpoint(struct role *role,
                      const struct ls_online_context *context)
{
    char path[REPORT_PATH_MAX];
    const int64_t every = role->plan->learner.checkpoint_every;
    return every > 0 && keeps_weights(role) && context->train_iter % every == 0
               ? save(role, WEIGHTS_CHECKPOINT, context->total_step + 1, path,
                      sizeof path)
               : LS_OK;
}

/* An update is over, of this iteration or an earlier one. */
static int take_update(struct role *role, struct ls_online_context *context,
                       const ls_learner_info *info)
{
    log_info(info, context->train_iter + 1);
    int status = training_publish(role->training, ls_task_node(role->task));
    if (status != LS_OK)
        return status;
    context->train_iter++;
    status = checkpoint(role, context);
    const struct ls_bytes *policy = training_policy(role->training);
    return status == LS_OK
               ? ls_bytes_set(&context->policy, policy->data, policy->size)
               : status;
}

int role_learn(ls_step *step, void *self)
{
    struct role *role = self;
    struct ls_online_context *context = ls_step_context(step);
    size_t n = context->trajectories.n;
    int status = role_group_meet(role, &n);
    if (role->is_last)
        ls_task_finish_here(role->task);
    if (role->is_last || n == 0 || status != LS_OK)
        return status;
    const struct weights_note note = note_of(
        role, context->total_step + 1,
        context->train_iter + 1 + (int64_t)training_under_way(role->training));
    ls_learner_info *info = NULL;
    bool is_over = false;
    status = ls_learner_info_create(&info);
    if (status != LS_OK)
        return status;
    status = training_learn(role->training, &context->trajectories, &note, info,
                            &is_over);
    role->learned =
        training_is_whole(role->training) && (is_over || role->learned);
    if (is_over)
        status = take_update(role, context, info);
    else
        ls_bytes_clear(&context->policy); /* there is nothing newer */
    ls_learner_info_destroy(&info);
    return status;
}

static int on_verdict(void *self, const struct ls_event *event)
{
    struct role *role = self;
    ls_document *document = NULL;
    int64_t updates = 0;
    int status = ls_document_read(&document, event->data, event->size, NULL);
    if (status == LS_OK)
        status = ls_value_int(ls_document_root(document), &updates);
    ls_document_destroy(&document);
    if (status == LS_OK)
        training_give_up(role->training, updates);
    return status;
}

int role_hear_verdicts(struct role *role)
{
    ls_node *node = ls_task_node(role->task);
    if (role->plan->record != NULL || role->plan->tape != NULL ||
        role->group != NULL) /* who gives up alone leaves the others waiting */
        return LS_OK;
    int status = ls_node_allow(node, ROLE_VERDICT, "role:evaluator");
    if (status == LS_OK)
        status = ls_on(node, ROLE_VERDICT, on_verdict, role);
    role->hears_verdicts = status == LS_OK;
    return status;
}

void role_hear_no_verdicts(struct role *role)
{
    if (role->hears_verdicts &&
        ls_off(ls_task_node(role->task), ROLE_VERDICT, on_verdict, role) < 0)
        ls_log_debug("verdicts: %s", ls_error_text());
    role->hears_verdicts = false;
}

/* The iteration in which the run has ended. */
static int discard(struct role *role, struct ls_online_context *context,
                   int status)
{
    if (!role_discard(role, status) ||
        context->train_iter == role->before.train_iter)
        return LS_OK;
    context->train_iter = role->before.train_iter;
    const int reverted = training_revert(role->training);
    role->learned = role->learned && training_is_whole(role->training);
    return reverted;
}

int role_save_weights(void *self, ls_task *task, int status)
{
    struct role *role = self;
    struct ls_online_context *context = ls_context_data(ls_task_context(task));
    const int discarded = discard(role, context, status);
    if (discarded != LS_OK || !role->learned)
        return discarded;
    if (!keeps_weights(role))
        return status == LS_OK ? training_end(role->training) : LS_OK;
    /* Whatever ended the run, what was learned is worth having. */
    const int saved = save(role, WEIGHTS_FINAL, context->total_step,
                           role->weights, sizeof role->weights);
    if (saved == LS_OK && status == LS_OK &&
        role->plan->learner.checkpoint_every > 0)
        weights_remove(role->plan->folder, WEIGHTS_CHECKPOINT);
    return saved == LS_OK && status == LS_OK ? training_end(role->training)
                                             : saved;
}
