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

struct weights_note role_note(const struct role *role)
{
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    return note_of(role, role_iterations(role), context->train_iter);
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
    if (role->index == role->plan->first)
        role_ask_save(role, context->train_iter);
    const struct ls_bytes *policy = training_policy(role->training);
    return ls_bytes_set(&context->policy, policy->data, policy->size);
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

/* The update of the iteration in which the run has ended. */
static int discard_update(struct role *role, struct ls_online_context *context)
{
    if (!role->has_ended || context->train_iter == role->before.train_iter)
        return LS_OK;
    context->train_iter = role->before.train_iter;
    const int reverted = training_revert(role->training);
    role->learned = role->learned && training_is_whole(role->training);
    return reverted;
}

int role_save_weights(void *self, ls_task *task, int status)
{
    struct role *role = self;
    (void)role_end(role, task, status);
    const int discarded =
        discard_update(role, ls_context_data(ls_task_context(task)));
    if (discarded != LS_OK || !role->learned)
        return discarded;
    if (!keeps_weights(role))
        return LS_OK;
    /* Whatever ended the run, what was learned is worth having. */
    const struct weights_note note = role_note(role);
    const int saved =
        training_save(role->training, &note, role->plan->folder, WEIGHTS_FINAL,
                      role->weights, sizeof role->weights);
    /* The run ends with what ended it, and somebody looks for the weights. */
    if (saved != LS_OK)
        (void)snprintf(role->unsaved, sizeof role->unsaved, "%s",
                       ls_error_text());
    return saved;
}

int role_end_training(struct role *role)
{
    return role->training == NULL ? LS_OK : training_end(role->training);
}
