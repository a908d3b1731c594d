/* step_world.h - three nodes of a simulation that go in step and save: each
 * adds up numbers that it draws, until one of them ends the run. Lives of these
 * nodes can be killed, and begin again. */
#ifndef STEP_WORLD_H
#define STEP_WORLD_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/checkpoint_step.h"
#include "lockstep/file.h"
#include "lockstep/middleware.h"
#include "lockstep/random.h"
#include "simulation_fixture.h"

#define SITES 3
#define LAST  7 /* iterations of a run */

struct step_world;

/* One life of a node. */
struct site {
    struct step_world *world;
    uint32_t id;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    ls_rpc *calls;
    ls_task *task;
    ls_blobs *blobs;
    ls_checkpoint_step *step;
    struct ls_checkpoint_step_options options;
    uint64_t iterations; /* to run; UINT64_MAX: until one ends it */
    int64_t ends_after;  /* iterations: it ends the run of all; 0: never */
    int64_t fails_at, asks_at, rests_ns;
    int64_t fills_at; /* the disk is full in the save of this epoch */
    int64_t late_at, late_until; /* it is not ready for that save until then */
    int64_t runs_at; /* it is in the world, and begins its run then */
    bool no_barrier;
    bool judges; /* what an iteration begins with, as it works */
    /* What it has. */
    int64_t total;
    struct ls_rng random;
    double value; /* of its metric */
    /* What it did. */
    int status;
    char text[LS_ERROR_TEXT_MAX];
    int64_t ended_at;
    int64_t begun_at;  /* total_step of the first iteration; -1: none */
    int64_t loaded;    /* epoch; NONE: nothing was */
    int64_t saved[64]; /* epochs, where it leads */
    char why[64][16];
    double metric[64];
    size_t n_saved, n_prepared;
    uint64_t failures;
    int64_t epoch;
    char kept[128];   /* epochs in its folder: "3 4 7" */
    char judged[256]; /* metrics there: "3 -, 4 7.5" */
};

struct step_world {
    bool has_guest; /* somebody else comes and goes */
    struct simulation sim;
    struct site *sites; /* SITES of the life that runs */
    void (*tune)(struct site *site);
    void (*body)(struct step_world *world);
    void *self;
};

/* How good it is, which is found out late. */
static inline double worth_of(int64_t total)
{
    return total % 7 == 0 ? (double)NAN : (double)(total % 7);
}

/* ---- its steps ----------------------------------------------------------- */

static inline int work(ls_step *step, void *self)
{
    struct site *site = self;
    const struct ls_online_context *context = ls_step_context(step);
    if (site->begun_at < 0)
        site->begun_at = context->total_step;
    if (site->judges)
        assert_ok(ls_checkpoint_judge(site->step, context->total_step,
                                      worth_of(site->total)));
    if (site->rests_ns > 0)
        assert_ok(ls_step_sleep(step, (int)(site->rests_ns / LS_NS_PER_MS)));
    site->total += (int64_t)(ls_rng_next(&site->random) % 1000);
    site->value = (double)(context->total_step % 4);
    if (site->fills_at > 0)
        ls_disk_fill(site->world->sim.disk,
                     context->total_step + 1 == site->fills_at ? 0
                                                               : UINT64_MAX);
    if (context->total_step + 1 == site->asks_at)
        ls_checkpoint_request(site->step, site->id == 3);
    if (context->total_step + 1 == site->fails_at)
        return ls_error(LS_EHANDLER, "it was to fail");
    if (context->total_step + 1 == site->ends_after)
        ls_task_finish_here(ls_step_task(step));
    return LS_OK;
}

static inline double value_of(void *self)
{
    const struct site *site = self;
    return site->id == 3 ? site->value : (double)NAN;
}

static inline int on_loaded(void *self, int64_t epoch)
{
    ((struct site *)self)->loaded = epoch;
    return LS_OK;
}

static inline int on_save(void *self, int64_t epoch)
{
    struct site *site = self;
    site->n_prepared++;
    if (epoch == site->late_at)
        ls_rest_until(ls_host_runtime(site->host), site->late_until);
    return LS_OK;
}

static inline int on_saved(void *self,
                           const struct ls_checkpoint_manifest *manifest)
{
    struct site *site = self;
    assert_true(site->n_saved < 64);
    site->metric[site->n_saved] =
        manifest->n_metrics > 0 ? manifest->metrics[0].value : (double)NAN;
    (void)snprintf(site->why[site->n_saved], sizeof site->why[0], "%s",
                   manifest->notes[0].text);
    site->saved[site->n_saved++] = manifest->epoch;
    return LS_OK;
}

/* ---- a life -------------------------------------------------------------- */

static inline int site_add_blobs(struct site *site)
{
    const struct ls_blob blobs[] = {
        {.name = "total",
         .form = {.type = LS_BLOB_I64},
         .memory = &site->total},
        {.name = "random",
         .form = {LS_BLOB_I64, 1, {4}},
         .memory = site->random.state},
    };
    int status = ls_blobs_create(&site->blobs);
    for (size_t i = 0; i < 2 && status == LS_OK; i++)
        status = ls_blobs_add(site->blobs, &blobs[i]);
    return status;
}

static inline int site_begin(struct site *site)
{
    static const char *const all[SITES] = {"tcp://127.0.0.1:21500",
                                           "tcp://127.0.0.1:21501",
                                           "tcp://127.0.0.1:21502"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = site->id;
    options.bind = all[site->id - 1];
    options.attach = all;
    options.n_attach = SITES;
    options.world_size = SITES;
    options.role = "site";
    if (site->world->has_guest)
        options.world_max = SITES + 1;
    options.runtime = ls_host_runtime(site->host);
    ls_rng_seed(&site->random, 9, site->id);
    int status = ls_node_create(&site->node, &options);
    if (status == LS_OK)
        status = ls_rpc_open(&site->calls, site->node, NULL);
    if (status == LS_OK)
        status = ls_task_create(&site->task,
                                &(struct ls_task_options){.node = site->node});
    if (status == LS_OK)
        status = site_add_blobs(site);
    site->options.calls = site->calls;
    if (site->options.blobs == NULL)
        site->options.blobs = site->blobs;
    if (status == LS_OK)
        status = ls_task_use(site->task,
                             ls_mw_checkpoint(site->task, &site->options));
    if (status == LS_OK && !site->no_barrier)
        status = ls_task_use(
            site->task,
            ls_mw_barrier(site->task, &(struct ls_barrier_options){
                                          .group = site->options.group,
                                          .timeout_ms = 20000}));
    if (status == LS_OK)
        status = ls_task_use_fn(site->task, work, site);
    return status == LS_OK ? ls_node_start(site->node) : status;
}

static inline void site_look_at(struct site *site, ls_checkpoints *checkpoints,
                                int64_t epoch)
{
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    const size_t kept = strlen(site->kept), judged = strlen(site->judged);
    char value[16] = "-";
    if (ls_checkpoints_manifest(checkpoints, epoch, &manifest) == LS_OK &&
        manifest.n_metrics > 0)
        (void)snprintf(value, sizeof value, "%g", manifest.metrics[0].value);
    ls_checkpoint_manifest_clear(&manifest);
    (void)snprintf(site->kept + kept, sizeof site->kept - kept, "%s%d",
                   kept > 0 ? " " : "", (int)epoch);
    (void)snprintf(site->judged + judged, sizeof site->judged - judged,
                   "%s%d %s", judged > 0 ? ", " : "", (int)epoch, value);
}

static inline void site_look(struct site *site)
{
    ls_checkpoints *checkpoints;
    int64_t *epochs = NULL;
    size_t n = 0;
    if (site->options.folder == NULL ||
        ls_checkpoints_open(&checkpoints,
                            &(struct ls_checkpoints_options){
                                .folder = site->options.folder}) != LS_OK)
        return;
    assert_ok(ls_checkpoints_list(checkpoints, &epochs, &n));
    for (size_t i = 0; i < n; i++)
        site_look_at(site, checkpoints, epochs[i]);
    free(epochs);
    assert_ok(ls_checkpoints_close(&checkpoints));
}

static inline void site_main(void *arg)
{
    struct site *site = arg;
    site->status = site_begin(site);
    if (site->runs_at > 0)
        ls_rest_until(ls_host_runtime(site->host), site->runs_at);
    if (site->status == LS_OK)
        site->status = ls_task_run(site->task, site->iterations);
    if (site->status != LS_OK)
        strcpy(site->text, ls_error_text());
    site->ended_at = ls_simulation_now(site->world->sim.simulation);
    if (site->step != NULL) {
        site->failures = ls_checkpoint_failures(site->step);
        site->epoch = ls_checkpoint_epoch(site->step);
    }
    ls_node_stop(site->node, site->status);
    ls_task_destroy(&site->task);
    ls_rpc_close(&site->calls);
    ls_blobs_destroy(&site->blobs);
    site_look(site);
    assert_ok(ls_node_destroy(&site->node));
}

static inline void site_spawn(struct step_world *world, uint32_t id)
{
    static const char *const names[SITES] = {"one", "two", "three"};
    struct site *site = &world->sites[id - 1];
    *site = (struct site){.world = world,
                          .id = id,
                          .iterations = UINT64_MAX,
                          .ends_after = id == 2 ? LAST : 0,
                          .begun_at = -1,
                          .loaded = LS_CHECKPOINT_NONE,
                          .value = (double)NAN,
                          .options = {.leader = LS_CHECKPOINT_FIRST,
                                      .run = "test",
                                      .group = world->has_guest ? "site" : NULL,
                                      .folder = "saved",
                                      .resume = LS_JOB_NEWEST,
                                      .redo_end = true,
                                      .every = 1,
                                      .timeout_ms = 20000,
                                      .metric = value_of,
                                      .before_save = on_save,
                                      .loaded = on_loaded,
                                      .saved = on_saved,
                                      .self = site,
                                      .out = &site->step}};
    if (world->tune != NULL)
        world->tune(site);
    site->host = simulation_host(&world->sim, names[id - 1]);
    assert_ok(ls_thread_spawn(ls_host_runtime(site->host), &site->thread,
                              "site", site_main, site));
}

static inline void life_begin(struct step_world *world)
{
    for (uint32_t id = 1; id <= SITES; id++)
        site_spawn(world, id);
}

static inline void life_end(struct step_world *world)
{
    for (size_t i = 0; i < SITES; i++)
        assert_ok(ls_thread_join(&world->sites[i].thread, LS_FOREVER));
}

/* Returns the first status that is not LS_OK. */
static inline int life(struct step_world *world)
{
    life_begin(world);
    life_end(world);
    for (size_t i = 0; i < SITES; i++)
        if (world->sites[i].status != LS_OK)
            return world->sites[i].status;
    return LS_OK;
}

static inline void world_body(void *arg)
{
    struct step_world *world = arg;
    world->body(world);
}

/* Run body in a simulation of its own. */
static inline void world_play(struct step_world *world, uint64_t seed,
                              void (*body)(struct step_world *world))
{
    const struct ls_network_path path = {.delay_ns = LS_NS_PER_MS / 2,
                                         .jitter_ns = LS_NS_PER_MS / 2};
    struct site sites[SITES];
    memset(sites, 0, sizeof sites);
    world->sites = sites;
    world->body = body;
    simulation_play(&world->sim, seed, &path, world_body, world);
}

#endif
