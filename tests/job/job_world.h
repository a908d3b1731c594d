/* job_world.h - three nodes of a simulation that run a job: each reads 0 … 9,
 * three an epoch, adds them to a total that begins with 100, and draws a random
 * number an epoch. Lives of these nodes can be killed, and begin again. */
#ifndef JOB_WORLD_H
#define JOB_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"
#include "lockstep/job.h"
#include "lockstep/random.h"
#include "simulation_fixture.h"

#define SITES 3
#define READS 10

struct job_world;

/* One life of a node. */
struct site {
    struct job_world *world;
    uint32_t id;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    ls_rpc *calls;
    ls_job *job;
    struct ls_job_options options;
    struct ls_job_result result;
    int status;
    char text[LS_ERROR_TEXT_MAX];
    char print[2048], json[4096];
    int64_t total, draw, position; /* at the end */
    int64_t totals[SITES];         /* of all nodes, as outputs */
    int n_reports;
};

struct job_world {
    struct simulation sim;
    struct site *sites; /* SITES of the life that runs */
    bool own_folders;   /* a folder for each node */
    bool together; /* who has started waits until all have, and who is done */
    int n_started, n_done;
    /* What the job is like; may change it, or do something else entirely. */
    void (*tune)(struct site *site);
    int (*describe)(struct site *site);
    int (*act)(struct site *site); /* instead of ls_job_run() */
    void (*body)(struct job_world *world);
    void *self;
};

static const struct ls_blob_form number = {LS_BLOB_I64, 0, {0}};
static const struct ls_blob_form flag = {LS_BLOB_U8, 0, {0}};
static const struct ls_blob_form generator = {LS_BLOB_I64, 1, {4}};

static inline int64_t *number_of(ls_turn *turn, const char *name)
{
    void *memory;
    assert_ok(ls_turn_blob(turn, name, &number, &memory));
    return memory;
}

static inline struct ls_rng *rng_of(ls_turn *turn)
{
    void *memory;
    assert_ok(ls_turn_blob(turn, "generator", &generator, &memory));
    return memory;
}

/* ---- its tasks --------------------------------------------------------- */

static inline int begin_total(void *self, ls_turn *turn)
{
    const struct site *site = self;
    *number_of(turn, "total") = 100;
    *number_of(turn, "position") = 0;
    *number_of(turn, "draw") = 0;
    ls_rng_seed(rng_of(turn), 5, site->id);
    return LS_OK;
}

static inline int read_three(void *self, ls_turn *turn)
{
    void *done;
    int64_t *position = number_of(turn, "position");
    (void)self;
    assert_ok(ls_turn_blob(turn, "done", &flag, &done));
    for (int i = 0; i < 3 && *position < READS; i++)
        *number_of(turn, "total") += (*position)++;
    *(unsigned char *)done = *position == READS;
    *number_of(turn, "draw") ^= (int64_t)ls_rng_next(rng_of(turn));
    return LS_OK;
}

static inline int look(void *self, ls_turn *turn)
{
    struct site *site = self;
    site->total = *number_of(turn, "total");
    site->draw = *number_of(turn, "draw");
    site->position = *number_of(turn, "position");
    return LS_OK;
}

/* A job that reads by `read` until it has all. */
static inline int describe_reads(struct site *site, ls_job_fn *read,
                                 const char *const *outputs)
{
    int status =
        ls_job_add(site->job, LS_JOB_INIT,
                   &(struct ls_job_task){
                       .name = "begin", .fn = begin_total, .self = site});
    if (status == LS_OK)
        status = ls_job_add(
            site->job, LS_JOB_EPOCH,
            &(struct ls_job_task){
                .name = "read", .fn = read, .outputs = outputs, .self = site});
    if (status == LS_OK)
        status = ls_job_add(
            site->job, LS_JOB_EXIT,
            &(struct ls_job_task){.name = "look", .fn = look, .self = site});
    return status == LS_OK ? ls_job_stop_on(site->job, "done") : status;
}

static inline int describe_reader(struct site *site)
{
    static const char *const outputs[] = {"total", NULL};
    return describe_reads(site, read_three, outputs);
}

/* ---- a life ------------------------------------------------------------ */

static inline int site_begin(struct site *site)
{
    static const char *const all[SITES] = {"tcp://127.0.0.1:21500",
                                           "tcp://127.0.0.1:21501",
                                           "tcp://127.0.0.1:21502"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = site->id;
    options.role = site->id == 1 ? "first" : "other";
    options.labels = site->id == 3 ? "fast,last" : "";
    options.bind = all[site->id - 1];
    options.attach = all;
    options.n_attach = SITES;
    options.world_size = SITES;
    options.runtime = ls_host_runtime(site->host);
    int status = ls_node_create(&site->node, &options);
    if (status == LS_OK)
        status = ls_rpc_open(&site->calls, site->node, NULL);
    if (status == LS_OK)
        status =
            ls_job_create(&site->job, site->node, site->calls, &site->options);
    if (status == LS_OK)
        status = site->world->describe(site);
    return status == LS_OK ? ls_node_start(site->node) : status;
}

/* Who fails or is done at once leaves, and may do so before another has seen
 * that it is ready, or has looked for it. */
static inline void site_meet(const struct site *site, int *n)
{
    ls_runtime *const runtime = ls_host_runtime(site->host);
    ++*n;
    while (site->world->together && *n < SITES)
        ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_MS);
}

static inline void site_keep(struct site *site)
{
    const void *data;
    size_t size;
    for (uint32_t i = 0; i < SITES; i++)
        if (ls_job_output(site->job, i + 1, "total", &data, &size) == LS_OK &&
            size == sizeof(int64_t))
            memcpy(&site->totals[i], data, size);
    (void)ls_job_print(site->job, false, site->print, sizeof site->print);
    (void)ls_job_print(site->job, true, site->json, sizeof site->json);
}

static inline void site_main(void *arg)
{
    struct site *site = arg;
    site->status = site_begin(site);
    if (site->status == LS_OK)
        site_meet(site, &site->world->n_started);
    if (site->status == LS_OK && site->world->act != NULL)
        site->status = site->world->act(site);
    else if (site->status == LS_OK)
        site->status = ls_job_run(site->job, &site->result);
    if (site->status != LS_OK)
        strcpy(site->text, ls_error_text());
    if (site->job != NULL)
        site_keep(site);
    site_meet(site, &site->world->n_done);
    ls_node_stop(site->node, site->status);
    ls_rpc_close(&site->calls);
    assert_ok(ls_job_destroy(&site->job));
    assert_ok(ls_node_destroy(&site->node));
}

static inline void site_spawn(struct job_world *world, uint32_t id)
{
    static const char *const names[SITES] = {"one", "two", "three"};
    static const char *const folders[SITES] = {"one", "two", "three"};
    struct site *site = &world->sites[id - 1];
    *site = (struct site){
        .world = world,
        .id = id,
        .options = {.name = "reader",
                    .folder = world->own_folders ? folders[id - 1] : "saved",
                    .resume = LS_JOB_NEWEST,
                    .start_timeout_ms = 20000,
                    .group_timeout_ms = 20000,
                    .save_timeout_ms = 20000}};
    if (world->tune != NULL)
        world->tune(site);
    site->host = simulation_host(&world->sim, names[id - 1]);
    assert_ok(ls_thread_spawn(ls_host_runtime(site->host), &site->thread,
                              "site", site_main, site));
}

static inline void life_begin(struct job_world *world)
{
    world->n_started = world->n_done = 0;
    for (uint32_t id = 1; id <= SITES; id++)
        site_spawn(world, id);
}

static inline void life_end(struct job_world *world)
{
    for (size_t i = 0; i < SITES; i++)
        assert_ok(ls_thread_join(&world->sites[i].thread, LS_FOREVER));
}

/* Returns the first status that is not LS_OK. */
static inline int life(struct job_world *world)
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
    struct job_world *world = arg;
    world->body(world);
}

/* Run body in a simulation of its own. */
static inline void world_play(struct job_world *world, uint64_t seed,
                              void (*body)(struct job_world *world))
{
    const struct ls_network_path path = {.delay_ns = LS_NS_PER_MS / 2,
                                         .jitter_ns = LS_NS_PER_MS / 2};
    struct site sites[SITES];
    memset(sites, 0, sizeof sites);
    world->sites = sites;
    world->body = body;
    if (world->describe == NULL)
        world->describe = describe_reader;
    simulation_play(&world->sim, seed, &path, world_body, world);
}

#endif
