/* A job of one's own: a main that builds it from the library alone. Two
 * collectors and a learner, each a node on a thread of this process, go in
 * step; what they play and learn is a plugin's (plugins/grid.c, linked into
 * this program), and the learner learns on the engine of lockstep/learner.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>
#include <lockstep/plugin.h>

enum { N_NODES = 3, N_STEPS = 64, N_UPDATES = 20 };

/* A trajectory on its way; all nodes are of this very program. */
struct chunk {
    int32_t cells[N_STEPS], next[N_STEPS];
    float rewards[N_STEPS];
    uint8_t moves[N_STEPS], terminated[N_STEPS], truncated[N_STEPS];
};

/* A node. */
struct part {
    uint32_t id;
    const char *role;
    int status;
    ls_config *config; /* own */
    void *env, *policy;
    int32_t cell; /* of the environment */
    bool begun;
    struct ls_rng rng;
    ls_learner *learner;           /* own; of the learner */
    ls_writer *writer;             /* own */
    struct chunk *loaded[N_NODES]; /* borrow: of the batch */
    size_t n_loaded;
    float pays; /* what the best that it knows brings */
};

/* What the plugin does ------------------------------------------------------
 */

static int open_plugin(struct part *part)
{
    const struct ls_plugin *plugin = ls_plugin();
    struct ls_env_spec spec;
    part->env = calloc(1, plugin->env->state_bytes);
    part->policy = calloc(1, plugin->policy->state_bytes);
    ls_rng_seed(&part->rng, 7, part->id);
    if (part->env == NULL || part->policy == NULL)
        return LS_ENOMEM;
    int status = ls_config_parse(&part->config, "job", "{size: 5, cells: 25}");
    if (status == LS_OK)
        status = plugin->env->init(part->env, ls_config_root(part->config), 1);
    if (status != LS_OK)
        return status;
    plugin->env->spec(part->env, &spec);
    return plugin->policy->init(part->policy, ls_config_root(part->config),
                                &spec, 1);
}

/* One step; returns what it paid, and whether the episode ended. */
static int play(struct part *part, bool explore, struct chunk *chunk, size_t i)
{
    const struct ls_plugin *plugin = ls_plugin();
    const uint64_t noise = ls_rng_next(&part->rng);
    bool terminated, truncated;
    int status = LS_OK;
    if (!part->begun)
        status = plugin->env->reset(part->env, &part->cell);
    chunk->cells[i] = part->cell;
    if (status == LS_OK)
        status = plugin->policy->act(
            part->policy, &(struct ls_act){.n = 1,
                                           .observations = &part->cell,
                                           .explore = explore,
                                           .noise = &noise,
                                           .actions = &chunk->moves[i]});
    if (status == LS_OK)
        status = plugin->env->step(part->env, &chunk->moves[i], &chunk->next[i],
                                   &chunk->rewards[i], &terminated, &truncated);
    if (status != LS_OK)
        return status;
    chunk->terminated[i] = terminated;
    chunk->truncated[i] = truncated;
    part->cell = chunk->next[i];
    part->begun = !terminated && !truncated;
    return LS_OK;
}

static int load_policy(struct part *part, const struct ls_bytes *bytes)
{
    ls_document *document = NULL;
    int status = ls_document_read(&document, bytes->data, bytes->size, NULL);
    if (status == LS_OK)
        status =
            ls_plugin()->policy->load(part->policy, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

static int save_policy(struct part *part, struct ls_bytes *out)
{
    const void *data;
    size_t size;
    ls_writer_clear(part->writer);
    int status = ls_plugin()->policy->save(part->policy, part->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(part->writer, &data, &size);
    return status == LS_OK ? ls_bytes_set(out, data, size) : status;
}

/* The steps -----------------------------------------------------------------
 */

static int collect(ls_step *step, void *self)
{
    struct part *part = self;
    struct ls_online_context *context = ls_step_context(step);
    struct chunk chunk;
    int status = LS_OK;
    if (context->policy.size > 0)
        status = load_policy(part, &context->policy);
    for (size_t i = 0; i < N_STEPS && status == LS_OK; i++)
        status = play(part, true, &chunk, i);
    context->env_step += N_STEPS;
    return status == LS_OK
               ? ls_items_append(&context->trajectories, &chunk, sizeof chunk)
               : status;
}

/* The engine's load, on a loader: only look at it. */
static int load(void *self, const struct ls_learner_place *place)
{
    struct part *part = self;
    const struct ls_items *items = place->batch->data;
    part->n_loaded = 0;
    for (size_t i = 0; i < items->n && i < N_NODES; i++) {
        if (items->items[i].size != sizeof(struct chunk))
            return ls_error(LS_EPROTO, "it is not a trajectory of this job");
        part->loaded[part->n_loaded++] = items->items[i].data;
    }
    return LS_OK;
}

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    struct part *part = self;
    struct ls_trajectory trajectories[N_NODES];
    struct ls_learn_info said = {.n = 0};
    (void)place;
    for (size_t i = 0; i < part->n_loaded; i++) {
        struct chunk *chunk = part->loaded[i];
        trajectories[i] =
            (struct ls_trajectory){.n = N_STEPS,
                                   .observations = chunk->cells,
                                   .next_observations = chunk->next,
                                   .actions = chunk->moves,
                                   .rewards = chunk->rewards,
                                   .terminated = chunk->terminated,
                                   .truncated = chunk->truncated};
    }
    const int status = ls_plugin()->policy->learn(
        part->policy,
        &(struct ls_learn_batch){
            .trajectories = trajectories, .n = part->n_loaded, .pass = pass},
        &said);
    return status == LS_OK ? ls_learner_info_add(info, said.items[0].name,
                                                 said.items[0].value)
                           : status;
}

static int open_learner(struct part *part)
{
    static const struct ls_learner_ops ops = {.load = load, .compute = compute};
    return ls_learner_create(
        &part->learner, ls_runtime_threads(),
        &(struct ls_learner_options){.ops = &ops, .self = part, .loaders = 1});
}

static int learn(ls_step *step, void *self)
{
    struct part *part = self;
    struct ls_online_context *context = ls_step_context(step);
    struct ls_learner_batch batch = {.data = &context->trajectories};
    struct ls_learner_result result = {.info = NULL};
    int status = ls_learner_put(part->learner, &batch, 10000);
    if (status == LS_OK)
        status = ls_learner_get(part->learner, &result, 10000);
    if (status != LS_OK)
        return status;
    context->train_iter++;
    return save_policy(part, &context->policy);
}

/* How good it is after all: one episode, as well as it can. */
static int evaluate(struct part *part)
{
    struct chunk chunk;
    int status;
    part->begun = false;
    do {
        status = play(part, false, &chunk, 0);
        if (status != LS_OK)
            return status;
        part->pays += chunk.rewards[0];
    } while (part->begun);
    return LS_OK;
}

/* A node of the job ---------------------------------------------------------
 */

static void build(struct part *part, ls_task *task)
{
    ls_task_use(task, ls_mw_stop(task, &(struct ls_stop_options){
                                           .train_iter = N_UPDATES}));
    ls_task_use(task, ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "policy",
                                               .from = "learner",
                                               .to = "collector",
                                               .fields = "policy,train_iter",
                                               .skip = 1}));
    ls_task_use(task, ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "trajectories",
                                               .from = "collector",
                                               .to = "learner",
                                               .fields = "trajectories",
                                               .increments = "env_step"}));
    ls_task_use(task, (struct ls_middleware){.name = "collect",
                                             .fn = collect,
                                             .self = part,
                                             .roles = "collector"});
    ls_task_use(task, (struct ls_middleware){.name = "learn",
                                             .fn = learn,
                                             .self = part,
                                             .roles = "learner"});
}

static int run_node(struct part *part)
{
    static const char *const addresses[N_NODES] = {
        "inproc://learner", "inproc://one", "inproc://other"};
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_task *task = NULL;
    ls_node_options_init(&options);
    options.id = part->id;
    options.role = part->role;
    options.bind = addresses[part->id];
    options.attach = addresses;
    options.n_attach = N_NODES;
    options.world_size = N_NODES;
    int status = ls_node_create(&node, &options);
    if (status == LS_OK)
        status = ls_task_create(&task, &(struct ls_task_options){
                                           .node = node, .roles = part->role});
    if (status == LS_OK) {
        build(part, task); /* before the start: no message is missed */
        status = ls_node_start(node);
    }
    if (status == LS_OK)
        status = ls_task_run(task, UINT64_MAX);
    if (node != NULL)
        ls_node_stop(node, status);
    ls_task_destroy(&task);
    ls_node_destroy(&node);
    return status;
}

static void on_thread(void *arg)
{
    struct part *part = arg;
    const bool learns = strcmp(part->role, "learner") == 0;
    part->status = open_plugin(part);
    if (part->status == LS_OK)
        part->status = ls_writer_create(&part->writer);
    if (part->status == LS_OK && learns)
        part->status = open_learner(part);
    if (part->status == LS_OK)
        part->status = run_node(part);
    if (part->status == LS_OK && learns)
        part->status = evaluate(part);
    if (part->status != LS_OK)
        fprintf(stderr, "%s: %s\n", part->role, ls_error_text());
}

static void close_part(struct part *part)
{
    ls_learner_destroy(&part->learner);
    ls_writer_destroy(&part->writer);
    if (part->policy != NULL)
        ls_plugin()->policy->fini(part->policy);
    if (part->env != NULL)
        ls_plugin()->env->fini(part->env);
    free(part->policy);
    free(part->env);
    ls_config_destroy(&part->config);
}

int main(void)
{
    struct part parts[N_NODES] = {{.id = 0, .role = "learner"},
                                  {.id = 1, .role = "collector"},
                                  {.id = 2, .role = "collector"}};
    ls_thread *threads[N_NODES] = {NULL};
    bool is_well = true;
    for (size_t i = 0; i < N_NODES; i++)
        is_well = is_well &&
                  ls_thread_spawn(ls_runtime_threads(), &threads[i],
                                  parts[i].role, on_thread, &parts[i]) == LS_OK;
    for (size_t i = 0; i < N_NODES; i++) {
        is_well = ls_thread_join(&threads[i], LS_FOREVER) == LS_OK && is_well;
        is_well = is_well && parts[i].status == LS_OK;
    }
    printf("%d updates; the way across pays %.2f\n", N_UPDATES,
           (double)parts[0].pays);
    is_well = is_well && parts[0].pays > 0.9f; /* the shortest: 8 steps */
    for (size_t i = 0; i < N_NODES; i++)
        close_part(&parts[i]);
    return is_well ? 0 : 1;
}
