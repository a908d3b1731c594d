#include "role.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/checkpoint.h"

#include "run_folder.h"
#include "weights.h"

/* ---- blobs of any size ------------------------------------------------- */

static int size_of(void *self, uint64_t *out)
{
    *out = ((const struct role_bytes *)self)->bytes.size;
    return LS_OK;
}

static int save(void *self, ls_blob_sink *sink)
{
    const struct ls_bytes *bytes = &((const struct role_bytes *)self)->bytes;
    return bytes->size > 0 ? ls_blob_sink_add(sink, bytes->data, bytes->size)
                           : LS_OK;
}

static int load(void *self, ls_blob_source *source)
{
    struct role_bytes *to = self;
    const size_t size = (size_t)ls_blob_source_size(source);
    void *data = malloc(size + 1);
    if (data == NULL)
        return ls_error(LS_ENOMEM, "%zu bytes", size);
    int status = ls_blob_source_read(source, data, size);
    if (status == LS_OK)
        status = ls_bytes_set(&to->bytes, data, size);
    free(data);
    return status;
}

static const struct ls_blob_ops bytes_ops = {size_of, save, load};

static enum plan_role kind_of(const struct role *role)
{
    return role->plan->nodes[role->index].role;
}

static struct ls_online_context *context_of(const struct role *role)
{
    return ls_context_data(ls_task_context(role->task));
}

/* ---- saving ------------------------------------------------------------ */

static int encode_learner(struct role *role, int64_t epoch)
{
    const struct ls_online_context *context = context_of(role);
    const struct weights_note note = {.seed = role->plan->seed,
                                      .iteration = epoch,
                                      .train_iter = context->train_iter,
                                      .env_step = context->env_step,
                                      .env_episode = context->env_episode};
    const int begun = role_begin_training(role);
    if (begun != LS_OK)
        return begun;
    const int status =
        training_write(role->training, &note, &role->state.weights.bytes);
    return status == LS_OK && role->plan->learner.queue > 0
               ? training_write_batches(role->training,
                                        &role->state.batches.bytes)
               : status;
}

static int encode_environments(struct role *role)
{
    ls_writer_clear(role->state.writer);
    const int status = agent_write_envs(&role->agent, role->state.writer);
    return status == LS_OK
               ? ls_bytes_set_written(&role->state.environments.bytes,
                                      role->state.writer)
               : status;
}

static int before_save(void *self, int64_t epoch)
{
    struct role *role = self;
    struct role_state *state = &role->state;
    const struct ls_online_context *context = context_of(role);
    const int64_t counters[ROLE_COUNTERS] = {
        epoch, context->train_iter, context->env_step + state->steps,
        context->env_episode + state->episodes, context->last_eval_iter};
    memcpy(state->counters, counters, sizeof counters);
    state->last_eval = context->last_eval_value;
    return kind_of(role) == PLAN_LEARNER ? encode_learner(role, epoch)
                                         : encode_environments(role);
}

/* ---- loading ----------------------------------------------------------- */

static int decode_environments(struct role *role)
{
    const struct ls_bytes *bytes = &role->state.environments.bytes;
    const struct ls_codec_limits limits = {.max_bytes = (size_t)1 << 30,
                                           .max_depth = 32,
                                           .max_objects = UINT32_MAX};
    ls_document *document = NULL;
    int status = ls_document_read(&document, bytes->data, bytes->size, &limits);
    if (status == LS_OK)
        status = agent_read_envs(&role->agent, ls_document_root(document));
    ls_document_destroy(&document);
    return status == LS_ENOENT ? LS_EPROTO : status;
}

static int decode_learner(struct role *role)
{
    const struct ls_bytes *bytes = &role->state.weights.bytes;
    const int status = weights_read(&role->agent, role->plan->seed, bytes->data,
                                    bytes->size, &role->resumed);
    role->learned = status == LS_OK && role->resumed.train_iter > 0;
    return status;
}

static int loaded(void *self, int64_t epoch)
{
    struct role *role = self;
    struct role_state *state = &role->state;
    struct ls_online_context *context = context_of(role);
    context->train_iter = state->counters[1];
    if (kind_of(role) == PLAN_COLLECTOR) {
        state->steps = state->counters[2] - context->env_step;
        state->episodes = state->counters[3] - context->env_episode;
    } else {
        context->env_step = state->counters[2];
        context->env_episode = state->counters[3];
    }
    context->last_eval_iter = state->counters[4];
    context->last_eval_value = state->last_eval;
    const int status = kind_of(role) == PLAN_LEARNER
                           ? decode_learner(role)
                           : decode_environments(role);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status,
                             "resuming from epoch %lld (--fresh starts "
                             "over)",
                             (long long)epoch);
}

int role_begin_training(struct role *role)
{
    if (role->has_begun)
        return LS_OK;
    role->has_begun = true;
    int status = training_begin(role->training, &role->resumed);
    if (status == LS_OK && role->state.batches.bytes.size > 0)
        status =
            training_take_batches(role->training, &role->state.batches.bytes);
    return status;
}

/* ---- the step ---------------------------------------------------------- */

static void granted(void *self)
{
    const struct role *role = self;
    if (role->state.granted != NULL)
        role->state.granted(role->state.granted_self);
}

static int add_bytes(struct role *role, const char *name,
                     struct role_bytes *bytes)
{
    return ls_blobs_add(
        role->state.blobs,
        &(struct ls_blob){.name = name, .ops = &bytes_ops, .self = bytes});
}

static int make_blobs(struct role *role)
{
    struct role_state *state = &role->state;
    const struct ls_blob counters = {.name = "counters",
                                     .form = {LS_BLOB_I64, 1, {ROLE_COUNTERS}},
                                     .memory = state->counters};
    const struct ls_blob last_eval = {.name = "last_eval",
                                      .form = {.type = LS_BLOB_F64},
                                      .memory = &state->last_eval};
    int status = ls_blobs_create(&state->blobs);
    if (status == LS_OK)
        status = ls_writer_create(&state->writer);
    if (status == LS_OK)
        status = ls_blobs_add(state->blobs, &counters);
    if (status == LS_OK)
        status = ls_blobs_add(state->blobs, &last_eval);
    if (status != LS_OK)
        return status;
    if (kind_of(role) != PLAN_LEARNER)
        return add_bytes(role, "environments", &state->environments);
    status = add_bytes(role, WEIGHTS_BLOB, &state->weights);
    return status == LS_OK && role->plan->learner.queue > 0
               ? add_bytes(role, "batches", &state->batches)
               : status;
}

/* What is recorded must not depend on the clock: a replay has another one. */
static double seconds_of(const struct plan *plan)
{
    return plan->record != NULL || plan->tape != NULL
               ? 0.0
               : plan->checkpoint.seconds;
}

static struct ls_middleware make_step(struct role *role, ls_task *task,
                                      ls_rpc *calls, const char *folder)
{
    const struct plan *plan = role->plan;
    const struct plan_checkpoint *asked = &plan->checkpoint;
    const bool leads = role->index == plan->first;
    /* A node that is started again in a run goes on from the newest. */
    const bool named = asked->from != PLAN_FROM_NEWEST &&
                       role->generation % PLAN_LIFE_RESTARTS == 0;
    return ls_mw_checkpoint(
        task, &(struct ls_checkpoint_step_options){
                  .calls = calls,
                  .group = PLAN_LABEL,
                  .leader = plan->nodes[plan->first].id,
                  .run = plan->job,
                  .folder = leads ? folder : NULL,
                  .blobs = role->state.blobs,
                  .resume = named ? LS_JOB_AT : LS_JOB_NEWEST,
                  .epoch = asked->from == PLAN_FROM_BEST ? LS_CHECKPOINT_BEST
                                                         : asked->from,
                  .redo_end = true,
                  .every = (uint64_t)asked->every,
                  .seconds = seconds_of(plan),
                  .retention = {.last = (size_t)asked->keep_last,
                                .every = asked->keep_every,
                                .best = (size_t)asked->best,
                                .metric = PLAN_METRIC},
                  .behind = true,
                  .goes_on = asked->goes_on,
                  .timeout_ms = plan->world.step_timeout_ms,
                  .before_save = before_save,
                  .loaded = loaded,
                  .granted = granted,
                  .self = role,
                  .out = &role->state.step});
}

static int has_checkpoints(const char *folder, bool *out)
{
    ls_checkpoints *saved = NULL;
    int64_t *epochs = NULL;
    size_t n = 0;
    int status = ls_checkpoints_open(
        &saved, &(struct ls_checkpoints_options){.folder = folder});
    if (status == LS_OK)
        status = ls_checkpoints_list(saved, &epochs, &n);
    (void)ls_checkpoints_close(&saved);
    free(epochs);
    *out = n > 0;
    return status == LS_ENOENT ? LS_OK : status;
}

/* Without a checkpoint the run would begin anew, and replace the weights that
 * it has come to. */
static int check_left(const struct role *role, const char *folder)
{
    struct weights_file file;
    bool there;
    int status = has_checkpoints(folder, &there);
    if (status != LS_OK || there)
        return status;
    status = weights_open(&file, role->plan->folder, WEIGHTS_FINAL);
    if (status != LS_OK)
        return status == LS_ENOENT ? LS_OK : status;
    const int64_t updates = file.note.train_iter;
    weights_close(&file);
    return updates == 0
               ? LS_OK
               : ls_error(LS_ENOENT,
                          "%s has no checkpoint, and " WEIGHTS_FINAL
                          " beside it is of %lld updates: put the checkpoints "
                          "back, or begin anew with --fresh",
                          folder, (long long)updates);
}

void role_use_state(struct role *role, ls_task *task, ls_rpc *calls)
{
    char folder[LS_PATH_MAX];
    struct ls_middleware step = {.name = "checkpoint"};
    step.status = ls_file_path(folder, sizeof folder, role->plan->folder,
                               RUN_FOLDER_STATE);
    if (step.status == LS_OK && role->index == role->plan->first)
        step.status = check_left(role, folder);
    if (step.status == LS_OK)
        step.status = make_blobs(role);
    if (step.status == LS_OK)
        step = make_step(role, task, calls, folder);
    else
        (void)snprintf(step.error, sizeof step.error, "%s", ls_error_text());
    if (ls_task_use(task, step) != LS_OK)
        role->state.step = NULL; /* it is gone */
}

void role_ask_save(struct role *role, int64_t updates)
{
    const struct plan *plan = role->plan;
    if (plan->checkpoint.best > 0 && updates % plan->every == 0)
        ls_checkpoint_request(role->state.step, false);
}

int role_judge(struct role *role)
{
    const struct ls_online_context *context = context_of(role);
    return ls_checkpoint_judge(role->state.step, context->total_step,
                               context->last_eval_value);
}

/* Where the best are kept, the epoch of these weights is there, and counts. */
int role_judge_end(struct role *role)
{
    const struct ls_online_context *context = context_of(role);
    const bool is_known = context->train_iter > 0 &&
                          context->last_eval_iter == context->train_iter;
    return is_known && role->plan->checkpoint.best == 0 ? role_judge(role)
                                                        : LS_OK;
}

void role_state_fini(struct role *role)
{
    struct role_state *state = &role->state;
    ls_blobs_destroy(&state->blobs);
    ls_writer_destroy(&state->writer);
    ls_bytes_clear(&state->environments.bytes);
    ls_bytes_clear(&state->weights.bytes);
    ls_bytes_clear(&state->batches.bytes);
}
