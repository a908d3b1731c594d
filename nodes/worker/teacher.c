#include "teacher.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lockstep/log.h"

/* Each trajectory begins on a line of the cache. */
enum { ALIGNMENT = 64 };

/* How long a device waits for the others to begin a pass. */
enum { DEVICES_WAIT_MS = 600000 };

/* What a stack's memory holds of one device's share. */
struct loaded {
    struct ls_trajectory *trajectories; /* own; room for n_max */
    size_t n;
    size_t first;     /* which of the batch the first one is */
    float *td_errors; /* own; room for all steps */
};

struct teacher {
    struct agent *agent; /* borrow */
    uint32_t node_id;
    struct trajectory_shape shape;
    size_t n_max;  /* trajectories in a batch */
    size_t stride; /* bytes from one to the next in a stack */
    size_t n_loaded;
    struct loaded *loaded; /* own; stack after stack, device after device */
    size_t n_devices;
    ls_device **devices; /* own; n_devices */
    bool *is_doubtful;   /* own; of each device's policy, and thread */
    ls_group **ranks;    /* own; of each device; NULL: there is one */
    ls_group *group;     /* borrow; of several learners; NULL: there is one */
    bool (*is_given_up)(const void *self);
    const void *self; /* borrow */
};

static struct loaded *loaded_of(const struct teacher *teacher,
                                const struct ls_learner_place *place)
{
    return &teacher->loaded[place->stack * teacher->n_devices + place->device];
}

static void *policy_of(const struct teacher *teacher, size_t device)
{
    return device == 0 ? teacher->agent->policy
                       : teacher->agent->replicas[device - 1];
}

/* Loading ------------------------------------------------------------------ */

static int check_share(const struct teacher *teacher, size_t n)
{
    if (n > teacher->n_max)
        return ls_error(LS_EPROTO,
                        "%zu trajectories came, and a batch has %zu at most", n,
                        teacher->n_max);
    if (n % teacher->n_devices != 0)
        return ls_error(LS_EPROTO,
                        "%zu trajectories came, and %zu devices cannot share "
                        "them evenly",
                        n, teacher->n_devices);
    return LS_OK;
}

static int check_steps(const struct teacher_piece *piece,
                       const struct ls_trajectory *trajectory)
{
    if (piece->n != 0 && piece->n != trajectory->n)
        return ls_error(LS_EPROTO, "a trajectory of %zu steps, not of %zu",
                        trajectory->n, piece->n);
    return LS_OK;
}

static int read_piece(const struct teacher *teacher,
                      const struct teacher_piece *piece, unsigned char *memory,
                      struct ls_trajectory *out)
{
    *out = trajectory_in(memory, &teacher->shape);
    const int status =
        trajectory_read(out, &teacher->shape, piece->data, piece->size);
    return status == LS_OK ? check_steps(piece, out) : status;
}

int teacher_load(struct teacher *teacher, const struct ls_learner_place *place,
                 const struct teacher_piece *pieces, size_t n)
{
    struct loaded *loaded = loaded_of(teacher, place);
    unsigned char *const memory = ls_device_stack_host(place->memory);
    int status = check_share(teacher, n);
    if (status != LS_OK)
        return status;
    loaded->n = n / teacher->n_devices;
    loaded->first = place->device * loaded->n;
    for (size_t i = 0; i < loaded->n; i++) {
        const struct teacher_piece *piece = &pieces[loaded->first + i];
        status = read_piece(teacher, piece, memory + i * teacher->stride,
                            &loaded->trajectories[i]);
        if (status != LS_OK && piece->name != NULL)
            return ls_error_at(status, "data %s", piece->name);
        if (status != LS_OK)
            return ls_error_at(status, "item %zu of %zu", loaded->first + i, n);
    }
    return ls_device_stack_upload(place->memory, 0,
                                  loaded->n * teacher->stride);
}

/* Learning ----------------------------------------------------------------- */

static int add_all(const struct ls_learn_info *from, ls_learner_info *info)
{
    int status = LS_OK;
    if (from->n > LS_LEARN_INFO_MAX)
        return ls_error(LS_EHANDLER, "it reports %zu figures, over %d", from->n,
                        LS_LEARN_INFO_MAX);
    for (size_t i = 0; i < from->n && status == LS_OK; i++) {
        const char *const name = from->items[i].name;
        status = name != NULL
                     ? ls_learner_info_add(info, name, from->items[i].value)
                     : ls_error(LS_EHANDLER, "figure %zu has no name", i);
    }
    return status;
}

static int run_hooks(struct teacher *teacher, size_t device,
                     enum ls_hook_position position, int64_t iter,
                     ls_learner_info *info)
{
    const struct ls_policy_ops *ops = teacher->agent->plugin->policy;
    const bool often = position == LS_BEFORE_ITER || position == LS_AFTER_ITER;
    int status = LS_OK;
    for (size_t i = 0; i < ops->n_hooks && status == LS_OK; i++) {
        const struct ls_policy_hook *hook = &ops->hooks[i];
        struct ls_learn_info said = {.n = 0};
        if (hook->position != position ||
            (often && hook->every > 0 && iter % hook->every != 0))
            continue;
        ls_error_clear();
        status = hook->fn(policy_of(teacher, device), iter, &said);
        if (status == LS_OK && info != NULL)
            status = add_all(&said, info);
        if (status != LS_OK) {
            char where[128];
            (void)snprintf(where, sizeof where, "hook %s", hook->name);
            (void)agent_plugin_error(teacher->agent->plugin, status, where);
        }
    }
    return status;
}

int teacher_hooks(struct teacher *teacher, enum ls_hook_position position,
                  int64_t iter, ls_learner_info *info)
{
    int status = LS_OK;
    for (size_t i = 0; i < teacher->n_devices && status == LS_OK; i++)
        status = run_hooks(teacher, i, position, iter, i == 0 ? info : NULL);
    return status;
}

static size_t clear_td_errors(const struct loaded *loaded)
{
    size_t steps = 0;
    for (size_t i = 0; i < loaded->n; i++)
        steps += loaded->trajectories[i].n;
    for (size_t i = 0; i < steps; i++)
        loaded->td_errors[i] = NAN;
    return steps;
}

/* The mean of |td_error| over n steps; NaN: nothing was said of them. */
static double mean_of(const float *td_errors, size_t n)
{
    double sum = 0.0;
    size_t said = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(td_errors[i])) {
            sum += fabs((double)td_errors[i]);
            said++;
        }
    return said > 0 ? sum / (double)said : (double)NAN;
}

static int take_td_errors(const struct loaded *loaded, size_t n_steps,
                          ls_learner_info *info, double *priorities)
{
    const float *at = loaded->td_errors;
    for (size_t i = 0; i < loaded->n; i++) {
        const double mean = mean_of(at, loaded->trajectories[i].n);
        at += loaded->trajectories[i].n;
        if (isinf(mean))
            return ls_error(LS_EHANDLER,
                            "plugin: policy: learn: a td_error of trajectory "
                            "%zu is infinite",
                            loaded->first + i);
        if (priorities != NULL && !isnan(mean))
            priorities[loaded->first + i] = mean;
    }
    const double mean = mean_of(loaded->td_errors, n_steps);
    return isnan(mean) ? LS_OK : ls_learner_info_add(info, "td_error", mean);
}

/* NULL: it learns alone. */
static ls_group *rank_of(const struct teacher *teacher, size_t device)
{
    return teacher->ranks == NULL ? teacher->group : teacher->ranks[device];
}

static int learn(struct teacher *teacher, const struct ls_learner_place *place,
                 unsigned pass, struct ls_learn_info *said)
{
    const struct loaded *loaded = loaded_of(teacher, place);
    const struct ls_learn_batch batch = {.trajectories = loaded->trajectories,
                                         .n = loaded->n,
                                         .pass = pass,
                                         .stack = place->memory,
                                         .group =
                                             rank_of(teacher, place->device),
                                         .is_given_up = teacher->is_given_up,
                                         .self = teacher->self};
    const struct ls_plugin *const plugin = teacher->agent->plugin;
    ls_error_clear();
    const int status =
        plugin->policy->learn(policy_of(teacher, place->device), &batch, said);
    return agent_plugin_error(plugin, status, "policy: learn");
}

static int learn_pass(struct teacher *teacher,
                      const struct ls_learner_place *place, unsigned pass,
                      int64_t iter, struct ls_learn_info *said,
                      ls_learner_info *info)
{
    ls_group *const rank = rank_of(teacher, place->device);
    const bool forms = rank != NULL && rank != teacher->group;
    int status = forms ? ls_group_form(rank, DEVICES_WAIT_MS) : LS_OK;
    if (status == LS_OK && pass == 0)
        status = run_hooks(teacher, place->device, LS_BEFORE_ITER, iter, info);
    if (status == LS_OK)
        status = learn(teacher, place, pass, said);
    /* Whoever still waits for this one waits in vain. */
    if (forms || (rank != NULL && status != LS_OK))
        ls_group_leave(rank, status);
    return status;
}

int teacher_learn(struct teacher *teacher, const struct ls_learner_place *place,
                  unsigned pass, int64_t iter, ls_learner_info *info,
                  double *priorities)
{
    const struct loaded *loaded = loaded_of(teacher, place);
    const size_t n_steps = clear_td_errors(loaded);
    struct ls_learn_info said = {.n = 0, .td_errors = loaded->td_errors};
    ls_log_set_node(teacher->node_id);
    /* Until it has gone well, there is no telling. */
    teacher->is_doubtful[place->device] = true;
    int status = learn_pass(teacher, place, pass, iter, &said, info);
    if (teacher->is_given_up != NULL && teacher->is_given_up(teacher->self))
        return LS_OK; /* and it stays in doubt */
    if (status == LS_OK)
        status = agent_plugin_error(teacher->agent->plugin,
                                    add_all(&said, info), "policy: learn");
    if (status == LS_OK)
        status = take_td_errors(loaded, n_steps, info, priorities);
    teacher->is_doubtful[place->device] = status != LS_OK;
    return status;
}

bool teacher_is_whole(const struct teacher *teacher)
{
    bool is_whole = true;
    for (size_t i = 0; i < teacher->n_devices; i++)
        is_whole = is_whole && !teacher->is_doubtful[i];
    return is_whole;
}

int teacher_restore(struct teacher *teacher, const struct ls_bytes *policy,
                    const struct ls_bytes *training)
{
    int status = agent_load(teacher->agent, policy);
    if (status == LS_OK)
        status = agent_load_training(teacher->agent, training);
    if (status == LS_OK)
        status = agent_align_replicas(teacher->agent);
    for (size_t i = 0; i < teacher->n_devices; i++)
        teacher->is_doubtful[i] = status != LS_OK;
    return status;
}

/* Made and taken apart ----------------------------------------------------- */

static int init_loaded(struct teacher *teacher, size_t stacks)
{
    const size_t share = teacher->n_max / teacher->n_devices;
    size_t bytes = 0;
    const int status = trajectory_bytes(&teacher->shape, &bytes);
    if (status != LS_OK)
        return status;
    if (bytes > SIZE_MAX / teacher->n_max - ALIGNMENT)
        return ls_error(LS_ENOMEM, "%zu trajectories", teacher->n_max);
    teacher->stride = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    teacher->loaded =
        calloc(stacks * teacher->n_devices, sizeof *teacher->loaded);
    if (teacher->loaded == NULL)
        return ls_error(LS_ENOMEM, "%zu stacks", stacks);
    teacher->n_loaded = stacks * teacher->n_devices;
    for (size_t i = 0; i < teacher->n_loaded; i++) {
        struct loaded *loaded = &teacher->loaded[i];
        loaded->trajectories = calloc(share, sizeof *loaded->trajectories);
        loaded->td_errors = calloc(share * teacher->shape.n_max, sizeof(float));
        if (loaded->trajectories == NULL || loaded->td_errors == NULL)
            return ls_error(LS_ENOMEM, "%zu trajectories", share);
    }
    return LS_OK;
}

/* What several devices ask of the policy and of the batch. */
static int init_devices(struct teacher *teacher, ls_runtime *runtime,
                        const struct teacher_options *options)
{
    const size_t n = options->n_devices;
    const bool shares = teacher->agent->plugin->policy->learns_in_group;
    if (n > 1 && !shares)
        return ls_error(LS_ECONFIG,
                        "the policy of plugin %s learns on one device, and "
                        "learner.device lists %zu",
                        teacher->agent->plugin->name, n);
    if ((options->group != NULL || options->is_shared) && !shares)
        return ls_error(LS_ECONFIG,
                        "the policy of plugin %s learns alone, and "
                        "learner.driver is bus",
                        teacher->agent->plugin->name);
    if (teacher->n_max % n != 0)
        return ls_error(LS_ECONFIG,
                        "%zu trajectories in a batch cannot be shared evenly "
                        "by the %zu devices of learner.device",
                        teacher->n_max, n);
    teacher->devices = calloc(n, sizeof(ls_device *));
    teacher->is_doubtful = calloc(n, sizeof *teacher->is_doubtful);
    if (n > 1)
        teacher->ranks = calloc(n, sizeof(ls_group *));
    if (teacher->devices == NULL || teacher->is_doubtful == NULL ||
        (n > 1 && teacher->ranks == NULL))
        return ls_error(LS_ENOMEM, "%zu devices", n);
    teacher->n_devices = n;
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status =
            ls_device_open(&teacher->devices[i], runtime, options->devices[i]);
    if (status == LS_OK && n > 1)
        status = ls_group_threads(teacher->ranks, runtime, (uint32_t)n);
    return status;
}

int teacher_create(struct teacher **out, ls_runtime *runtime,
                   const struct teacher_options *options)
{
    struct teacher *teacher = calloc(1, sizeof *teacher);
    *out = NULL;
    if (teacher == NULL)
        return ls_error(LS_ENOMEM, "a teacher");
    teacher->agent = options->agent;
    teacher->group = options->group;
    teacher->node_id = options->node_id;
    teacher->is_given_up = options->is_given_up;
    teacher->self = options->self;
    teacher->shape = agent_shape(options->agent, options->steps);
    teacher->n_max = options->n;
    int status = init_devices(teacher, runtime, options);
    if (status == LS_OK)
        status = init_loaded(teacher, options->stacks);
    if (status == LS_OK)
        status = agent_align_replicas(options->agent);
    if (status != LS_OK) {
        teacher_destroy(&teacher);
        return status;
    }
    *out = teacher;
    return LS_OK;
}

void teacher_set_group(struct teacher *teacher, ls_group *group)
{
    teacher->group = group;
}

void teacher_set_options(struct teacher *teacher,
                         struct ls_learner_options *options)
{
    options->devices = teacher->devices;
    options->n_devices = teacher->n_devices;
    options->part_bytes = teacher->n_max / teacher->n_devices * teacher->stride;
    options->batch_size = teacher->n_max;
}

void teacher_destroy(struct teacher **teacher)
{
    if (teacher == NULL || *teacher == NULL)
        return;
    struct teacher *const old = *teacher;
    *teacher = NULL;
    for (size_t i = 0; i < old->n_devices; i++) {
        ls_device_close(&old->devices[i]);
        if (old->ranks != NULL)
            (void)ls_group_destroy(&old->ranks[i]);
    }
    free(old->ranks);
    free(old->devices);
    free(old->is_doubtful);
    for (size_t i = 0; i < old->n_loaded; i++) {
        free(old->loaded[i].trajectories);
        free(old->loaded[i].td_errors);
    }
    free(old->loaded);
    free(old);
}
