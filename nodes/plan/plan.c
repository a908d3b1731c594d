#include "plan.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "lockstep/device.h"
#include "lockstep/random.h"
#include "lockstep/trace.h"

#include "plain_name.h"
#include "plan_keys.h"
#include "plan_lease.h"

/* Batches that several learners have under way: each is an operation of their
 * group. */
#define RANKS_BATCHES_MAX 32

const char *const plan_role_names[PLAN_N_ROLES + 1] = {
    "learner", "collector", "evaluator", "member", "coordinator", NULL};
const char *const plan_transport_names[] = {"tcp", "ipc", "inproc", NULL};
const char *const plan_topology_names[] = {"mesh", "star", NULL};
const char *const plan_on_loss_names[] = {"fail", "go_on", "restart", NULL};

static int to_ms(double seconds)
{
    return (int)lround(seconds * 1000.0);
}

static void read_ports(struct plan_world *world, ls_config_section *section)
{
    const char *text = ls_config_string(section, "ports", "21500-21999");
    int first, last;
    if (!plan_read_ports(text, &first, &last)) {
        ls_config_problem(section, "ports",
                          "\"%s\" is not a range of ports; write it as "
                          "21500-21999",
                          text);
        first = 21500;
        last = 21999;
    }
    world->first_port = first;
    world->last_port = last;
}

static void read_world(struct plan_world *world, ls_config_section *section)
{
    world->topology =
        ls_config_choice(section, "topology", 0, plan_topology_names) == 0
            ? LS_TOPOLOGY_MESH
            : LS_TOPOLOGY_STAR;
    world->transport = (enum plan_transport)ls_config_choice(
        section, "transport", PLAN_TCP, plan_transport_names);
    read_ports(world, section);
    world->dir = ls_config_string(section, "dir", NULL);
    if (world->dir != NULL && world->dir[0] != '/')
        ls_config_problem(section, "dir",
                          "\"%s\" must be a whole path, from / on", world->dir);
    world->start_timeout_ms = to_ms(
        ls_config_double(section, "start_timeout_s", 10.0, 0.001, 86400.0));
    world->step_timeout_ms = to_ms(
        ls_config_double(section, "step_timeout_s", 60.0, 0.001, 86400.0));
    world->heartbeat_ms =
        (int)ls_config_int(section, "heartbeat_ms", 250, 10, 60000);
    world->silence_ms =
        (int)ls_config_int(section, "silence_ms", 2000, 20, 3600000);
    if (world->silence_ms < 2 * world->heartbeat_ms)
        ls_config_problem(section, "silence_ms",
                          "%d is under two heartbeats of %d ms: everyone "
                          "would be taken for lost",
                          world->silence_ms, world->heartbeat_ms);
    world->shared_mib = (int)ls_config_int(section, "shared_mib", -1, 0, 65536);
    world->insecure = ls_config_bool(section, "insecure", false);
}

static void read_roles(struct plan *plan, ls_config_section *root)
{
    ls_config_section *collector = ls_config_section_at(root, "collector");
    plan->envs = (size_t)ls_config_int(collector, "envs", 1, 1, 65536);
    plan->steps = (size_t)ls_config_int(collector, "steps", 64, 1, 1 << 20);
    plan->threads = (size_t)ls_config_int(collector, "threads", 1, 1, 256);

    ls_config_section *evaluator = ls_config_section_at(root, "evaluator");
    plan->episodes = (size_t)ls_config_int(evaluator, "episodes", 20, 1, 65536);
    plan->solved = ls_config_double(evaluator, "solved", NAN, -1e308, 1e308);
    plan->every = ls_config_int(evaluator, "every", 1, 1, INT32_MAX);

    ls_config_section *stop = ls_config_section_at(root, "stop");
    plan->stop_env_step = ls_config_int(stop, "env_step", 0, 0, INT64_MAX);
    plan->stop_minutes = ls_config_double(stop, "minutes", 0.0, 0.0, 1e6);
}

static void read_trace(struct plan *plan, ls_config_section *section)
{
    const int64_t n =
        ls_config_int(section, "records", 65536, 0, LS_TRACE_RECORDS_MAX);
    if (n == 1 || (n & (n - 1)) != 0)
        ls_config_problem(
            section, "records",
            "%lld is not a power of two: 65536, say, or 0 for none",
            (long long)n);
    plan->trace_records = (size_t)n;
    plan->trace_all = ls_config_bool(section, "all", false);
}

static void read_barrier(struct plan_barrier *barrier,
                         ls_config_section *section)
{
    barrier->epochs = ls_config_int(section, "epochs", 100, 1, INT32_MAX);
    barrier->failures = ls_config_int(section, "failures", 0, 0, INT32_MAX);
    barrier->timeout_ms =
        (int)ls_config_int(section, "timeout_ms", 60000, 1, 86400000);
    barrier->pace_ms = (int)ls_config_int(section, "pace_ms", 0, 0, 60000);
    barrier->events = ls_config_int(section, "events", 0, 0, 1000000);
}

static void read_sim(struct plan_sim *sim, ls_config_section *section)
{
    sim->hosts = (uint32_t)ls_config_int(section, "hosts", 0, 1,
                                         PLAN_NODES_MAX); /* 0: not named */
    sim->epochs = ls_config_int(section, "epochs", 15, 1, INT32_MAX);
    sim->events = ls_config_int(section, "events", 1, 0, 1000000);
    sim->blocking = ls_config_int(section, "blocking", 0, 0, 1000000);
    sim->pace_ms = (int)ls_config_int(section, "pace_ms", 250, 0, 60000);
}

static void read_driver(struct plan_learner *learner,
                        ls_config_section *section)
{
    const bool several = learner->n_devices > 1;
    learner->driver = (enum plan_driver)ls_config_choice(
        section, "driver", several ? PLAN_THREADS : PLAN_SINGLE,
        plan_driver_names);
    if (learner->driver == PLAN_BUS && several)
        ls_config_problem(section, "driver",
                          "learners that share batches have one device each; "
                          "here are %zu",
                          learner->n_devices);
    learner->ranks = (size_t)ls_config_int(
        section, "ranks", 0, 2, PLAN_NODES_MAX); /* 0: all learners */
    if (learner->driver != PLAN_BUS && ls_config_has(section, "ranks"))
        ls_config_problem(section, "ranks",
                          "ranks goes with driver: bus, which has several "
                          "learners share each batch");
    if (learner->driver == PLAN_SINGLE && several)
        ls_config_problem(section, "driver",
                          "%zu devices share each batch, which is threads",
                          learner->n_devices);
    if (learner->driver == PLAN_THREADS && !several)
        ls_config_problem(section, "driver",
                          "there is one device, so nobody shares a batch: list "
                          "several under device, or say single");
}

static void read_devices(struct plan_learner *learner,
                         ls_config_section *section)
{
    const size_t n = ls_config_n_strings(section, "device");
    if (n > PLAN_DEVICES_MAX)
        ls_config_problem(section, "device", "%zu devices; at most %d", n,
                          PLAN_DEVICES_MAX);
    for (size_t i = 0; i < n && i < PLAN_DEVICES_MAX; i++) {
        const char *const name = ls_config_string_at(section, "device", i);
        if (ls_device_check_name(name) != LS_OK)
            ls_config_problem(section, "device", "%s", ls_error_text());
        learner->devices[learner->n_devices++] = name;
    }
    if (learner->n_devices == 0)
        learner->devices[learner->n_devices++] = "cpu";
}

/* All ranks learn from the batches in the order in which they came. */
static void check_service_ranks(const struct plan_learner *learner,
                                ls_config_section *section)
{
    if (learner->loaders > 1)
        ls_config_problem(section, "loaders",
                          "%zu loaders may bring batches in another order in "
                          "one rank than in another: one loader, or none",
                          learner->loaders);
    if (learner->stacks + learner->queue > RANKS_BATCHES_MAX)
        ls_config_problem(section, "stacks",
                          "learners that share batches have %d of them under "
                          "way at most; stacks and queue are %zu",
                          RANKS_BATCHES_MAX, learner->stacks + learner->queue);
}

/* A learner of a coordinator is given batches ahead, and loads one while it
 * trains another. One in lock step does so with a queue: then the weights that
 * collectors act by are so many updates older. */
static void read_learner(struct plan *plan, ls_config_section *root)
{
    const bool is_service = plan_is_service(plan);
    struct plan_learner *learner = &plan->learner;
    ls_config_section *section = ls_config_section_at(root, "learner");
    learner->queue = (size_t)ls_config_int(section, "queue", 0, 0, 65536);
    learner->stacks =
        (size_t)ls_config_int(section, "stacks", is_service ? 2 : 1, 1, 256);
    learner->loaders =
        (size_t)ls_config_int(section, "loaders", is_service ? 1 : 0, 0, 256);
    learner->passes = (unsigned)ls_config_int(section, "passes", 1, 1, 65536);
    if (!is_service && learner->queue > 0 && learner->loaders > 1)
        ls_config_problem(section, "loaders",
                          "%zu loaders may bring batches in another order than "
                          "they came in, and a job in lock step with a queue "
                          "has to give the same weights again: one loader, or "
                          "no queue",
                          learner->loaders);
    read_devices(learner, section);
    read_driver(learner, section);
    if (learner->driver == PLAN_BUS && !is_service && learner->queue > 0)
        ls_config_problem(section, "queue",
                          "learners that share batches learn from one before "
                          "they take the next: no queue");
    if (learner->driver == PLAN_BUS && is_service)
        check_service_ranks(learner, section);
}

static void read_checkpoint(struct plan_checkpoint *checkpoint,
                            ls_config_section *section)
{
    static const char *const on_fail[] = {"fail", "go_on", NULL};
    checkpoint->every = ls_config_int(section, "every", 0, 0, INT32_MAX);
    checkpoint->seconds = ls_config_double(section, "seconds", 10.0, 0.0, 1e9);
    checkpoint->keep_last =
        ls_config_int(section, "keep_last", 2, 1, INT32_MAX);
    checkpoint->keep_every =
        ls_config_int(section, "keep_every", 0, 0, INT32_MAX);
    checkpoint->best = ls_config_int(section, "best", 0, 0, INT32_MAX);
    checkpoint->goes_on = ls_config_choice(section, "on_fail", 0, on_fail) == 1;
    checkpoint->from = PLAN_FROM_NEWEST;
}

static void read_job(struct plan *plan, ls_config_section *root)
{
    plan->job = ls_config_string(root, "job", "lockstep");
    if (!plain_name_is(plan->job, LS_JOB_MAX, "._-") ||
        plan->job[strspn(plan->job, ".")] == '\0')
        ls_config_problem(root, "job",
                          "a job's name has 1 to %d letters, digits and ._-, "
                          "and not dots alone",
                          LS_JOB_MAX);
    plan->seed = (uint64_t)ls_config_int(root, "seed", 0, 0, INT64_MAX);
    const char *plugin = ls_config_string(root, "plugin", NULL);
    if (plugin != NULL && plugin[0] == '\0')
        ls_config_problem(root, "plugin", "the plugin has no name");
    plan->plugin = plugin != NULL ? plugin : "";
}

static int read_out(struct plan *plan, ls_config_section *root)
{
    const char *out = ls_config_string(root, "out", NULL);
    if (out != NULL && out[0] == '\0')
        ls_config_problem(root, "out", "the folder has no name");
    const size_t size = strlen(out != NULL ? out : plan->job) + sizeof "out/";
    plan->out = malloc(size);
    if (plan->out == NULL)
        return ls_error(LS_ENOMEM, "reading the configuration");
    (void)snprintf(plan->out, size, out != NULL ? "%s" : "out/%s",
                   out != NULL ? out : plan->job);
    return LS_OK;
}

/* own */
static char *current_folder(void)
{
    char here[PATH_MAX];
    return strdup(getcwd(here, sizeof here) != NULL ? here : "");
}

int plan_read(struct plan *out, ls_config **config, const char *path)
{
    struct plan plan = {.path = strdup(path), .here = current_folder()};
    if (plan.path == NULL || plan.here == NULL) {
        plan_fini(&plan);
        return ls_error(LS_ENOMEM, "reading %s", path);
    }
    ls_config_section *root = ls_config_root(*config);
    read_job(&plan, root);
    read_world(&plan.world, ls_config_section_at(root, "world"));
    int status = plan_read_security(&plan, root);
    read_roles(&plan, root);
    read_trace(&plan, ls_config_section_at(root, "trace"));
    read_barrier(&plan.barrier, ls_config_section_at(root, "barrier"));
    read_sim(&plan.sim, ls_config_section_at(root, "sim"));
    plan.env = ls_config_section_at(root, "env");
    plan.policy = ls_config_section_at(root, "policy");
    plan.hash = ls_config_hash(*config);

    if (status == LS_OK)
        status = read_out(&plan, root);
    if (status == LS_OK)
        status = plan_read_nodes(&plan, root);
    if (status == LS_OK && plan.n_nodes > 0)
        plan_read_leases(&plan, root);
    if (!plan_is_of_members(&plan))
        (void)ls_config_require(root, "plugin");
    if (status == LS_OK && plan.n_nodes > 0)
        plan_refuse_keys(&plan, root);
    if (status == LS_OK)
        plan_check_dir(&plan, ls_config_section_at(root, "world"));
    if (status == LS_OK) {
        read_learner(&plan, root);
        plan_check_learners(&plan, root);
        read_checkpoint(&plan.checkpoint,
                        ls_config_section_at(root, "checkpoint"));
        plan_read_service(&plan, root);
        status = plan_set_folder(&plan, PLAN_LATEST, PLAN_LATEST);
    }
    if (status != LS_OK) {
        plan_fini(&plan);
        return status;
    }
    plan.config = *config;
    *config = NULL;
    *out = plan;
    return LS_OK;
}

void plan_fini(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_nodes; i++) {
        struct plan_node *node = &plan->nodes[i];
        free(node->host);
        free(node->bind);
        free(node->advertise);
        for (size_t k = 0; k < node->n_attach; k++)
            free(node->attach[k]);
    }
    free(plan->nodes);
    plan_fini_security(&plan->security);
    plan_fini_service(&plan->service);
    free(plan->folder);
    free(plan->out);
    free(plan->here);
    free(plan->path);
    ls_config_destroy(&plan->config);
    memset(plan, 0, sizeof *plan);
}

int plan_set_folder(struct plan *plan, const char *name, const char *tag)
{
    const size_t size = strlen(plan->out) + strlen(name) + 2;
    char *folder = malloc(size);
    if (folder == NULL)
        return ls_error(LS_ENOMEM, "the folder of a run");
    (void)snprintf(folder, size, "%s/%s", plan->out, name);
    free(plan->folder);
    plan->folder = folder;
    plan->folder_found = strcmp(name, PLAN_LATEST) == 0;
    return plan_is_service(plan) ? plan_set_service_folders(plan, tag) : LS_OK;
}

bool plan_is_of_members(const struct plan *plan)
{
    return plan->n_nodes > 0 && plan->nodes[0].role == PLAN_MEMBER;
}

size_t plan_count(const struct plan *plan, enum plan_role role)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        n += plan->nodes[i].role == role;
    return n;
}

bool plan_is_service(const struct plan *plan)
{
    return plan_count(plan, PLAN_COORDINATOR) > 0;
}

uint32_t plan_world_max(const struct plan *plan)
{
    return (uint32_t)plan->n_nodes + PLAN_CLIENTS_MAX;
}

bool plan_role_named(const char *name, enum plan_role *out)
{
    for (size_t role = 0; role < PLAN_N_ROLES; role++)
        if (strcmp(plan_role_names[role], name) == 0) {
            *out = (enum plan_role)role;
            return true;
        }
    return false;
}

static void at_least(int *wait_ms, int least)
{
    if (*wait_ms < least)
        *wait_ms = least;
}

void plan_node_options(const struct plan *plan, struct ls_node_options *out)
{
    ls_node_options_init(out);
    out->job = plan->job;
    out->config_hash = plan->hash;
    out->start_timeout_ms = plan->world.start_timeout_ms;
    out->heartbeat_ms = plan->world.heartbeat_ms;
    out->silence_ms = plan->world.silence_ms;
    at_least(&out->emit_timeout_ms, plan->patience_ms);
    out->insecure = plan->world.insecure;
    if (plan->world.shared_mib >= 0)
        out->shared_bytes = (size_t)plan->world.shared_mib << 20;
}

int plan_start_ended(int status)
{
    char text[LS_ERROR_TEXT_MAX - 80];
    if (status != LS_EUNREACHABLE && status != LS_ETIMEDOUT)
        return status;
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    return ls_error(status,
                    "%s; if all is right and only slow, raise "
                    "world.start_timeout_s",
                    text);
}

uint32_t plan_channel(const struct plan *plan)
{
    return plan_is_service(plan) ? (uint32_t)plan->service.channel : 0;
}

void plan_set_run(struct plan *plan, long pid)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, plan->hash, (uint64_t)pid);
    do
        plan->hash = ls_rng_next(&rng);
    while (plan->hash == 0); /* 0 would be content with any */
}

uint64_t plan_place_of(const char *job, const char *out)
{
    char path[2 * PATH_MAX] = "", tidy[2 * PATH_MAX];
    size_t n = 0;
    if (out[0] != '/' && getcwd(path, PATH_MAX) == NULL)
        path[0] = '\0';
    const size_t here = strlen(path);
    (void)snprintf(path + here, sizeof path - here, "/%s", out);
    /* "/a//b/./c/../" is "/a/b" */
    for (const char *at = path + strspn(path, "/"); *at != '\0';
         at += strspn(at, "/")) {
        const size_t of = strcspn(at, "/");
        if (of == 2 && strncmp(at, "..", 2) == 0) {
            while (n > 0 && tidy[--n] != '/')
                continue;
        } else if (of != 1 || *at != '.') {
            tidy[n] = '/';
            memcpy(tidy + n + 1, at, of);
            n += of + 1;
        }
        at += of;
    }
    return XXH3_64bits_withSeed(tidy, n, XXH3_64bits(job, strlen(job)));
}

uint64_t plan_place(const struct plan *plan)
{
    return plan_place_of(plan->job, plan->out);
}

void plan_be_patient(struct plan *plan, int patience_ms)
{
    plan->patience_ms = patience_ms;
    at_least(&plan->world.start_timeout_ms, patience_ms);
    at_least(&plan->world.step_timeout_ms, patience_ms);
    at_least(&plan->world.silence_ms, patience_ms);
    at_least(&plan->barrier.timeout_ms, patience_ms);
}

int64_t plan_stop_ms(const struct plan *plan)
{
    const struct plan_world *world = &plan->world;
    return (int64_t)(plan->stop_minutes * 60000.0) +
           3 * (int64_t)world->step_timeout_ms + world->start_timeout_ms +
           PLAN_BACKOFF_MAX_MS;
}

int64_t plan_iteration_ms(const struct plan *plan)
{
    return plan_is_of_members(plan)
               ? (int64_t)plan->barrier.timeout_ms + plan->barrier.pace_ms
               : 3 * (int64_t)plan->world.step_timeout_ms;
}

bool plan_can_lose_nodes(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].on_loss != PLAN_FAIL)
            return true;
    }
    return false;
}

int plan_find(const struct plan *plan, uint32_t id, size_t *index)
{
    char ids[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].id == id) {
            *index = i;
            return LS_OK;
        }
        if (used < sizeof ids)
            used += (size_t)snprintf(ids + used, sizeof ids - used, "%s%u",
                                     i == 0 ? "" : ", ",
                                     (unsigned)plan->nodes[i].id);
    }
    return ls_error(LS_EINVAL, "%s has no node %u; it has %s", plan->path,
                    (unsigned)id, ids);
}
