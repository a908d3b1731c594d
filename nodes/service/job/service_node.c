#include "service_node.h"

#include <stdio.h>
#include <string.h>

#include "lockstep/device.h"
#include "lockstep/file.h"
#include "lockstep/journal.h"
#include "lockstep/log.h"

#include "run_folder.h"
#include "store_bus.h"
#include "store_files.h"
#include "work_service.h"

void service_node_init(struct service_node *out,
                       const struct work_options *options)
{
    *out = (struct service_node){.plan = options->plan,
                                 .index = options->index,
                                 .sink = options->sink,
                                 .watch = options->watch.service};
}

/* Beside a folder that the file names for data or policies, where others find
 * that of the run: JOB.latest. false: it is not there, but in the run's own. */
static bool link_path(const struct plan *plan, const char *at, char *out,
                      size_t size)
{
    (void)snprintf(out, size, "%s/%s." PLAN_LATEST, at, plan->job);
    return at[0] != '\0';
}

static void link_latest(const struct plan *plan, const char *at,
                        const char *path)
{
    char link[LS_PATH_MAX];
    if (link_path(plan, at, link, sizeof link) &&
        run_folder_point(link, strrchr(path, '/') + 1) != LS_OK)
        ls_log_warn("nodes that are started one by one will not find %s: %s",
                    path, ls_error_text());
}

static void unlink_latest(const struct plan *plan, const char *at,
                          const char *path)
{
    char link[LS_PATH_MAX];
    if (link_path(plan, at, link, sizeof link) &&
        run_folder_points(link, strrchr(path, '/') + 1))
        (void)ls_file_remove(link);
}

static int open_files(const struct plan *plan, struct store **out)
{
    const struct plan_service *service = &plan->service;
    return store_files_open(
        out, &(struct store_files_options){.folder = service->path_data,
                                           .policies = service->path_policy,
                                           .found = plan->folder_found});
}

struct leftovers {
    struct store *store;
    bool (*is_ours)(const char *name);
};

static bool is_data(const char *name)
{
    uint32_t home;
    return store_data_home(name, &home);
}

static int drop_leftover(void *self, const char *name)
{
    const struct leftovers *all = self;
    return all->is_ours(name) ? store_drop(all->store, name, 0) : LS_OK;
}

static int clear_folder(const char *folder, bool (*is_ours)(const char *name))
{
    struct leftovers all = {.is_ours = is_ours};
    if (!ls_file_exists(folder))
        return LS_OK;
    int status = store_files_open(
        &all.store, &(struct store_files_options){.folder = folder});
    if (status == LS_OK)
        status = store_files_each(all.store, drop_leftover, &all);
    store_close(&all.store);
    return status;
}

int service_node_journal(const struct plan *plan, char *out, size_t size)
{
    return ls_file_path(out, size, plan->folder, "journal");
}

int service_node_clear_data(const struct plan *plan)
{
    return clear_folder(plan->service.path_data, is_data);
}

int service_node_clear(const struct plan *plan)
{
    const struct plan_service *service = &plan->service;
    int status = clear_folder(service->path_policy, store_is_policy);
    if (status == LS_OK)
        status = service_node_clear_data(plan);
    if (status != LS_OK)
        return status;
    /* Unless something is left in them. */
    (void)ls_folder_remove(service->path_data);
    (void)ls_folder_remove(service->path_policy);
    return LS_OK;
}

int service_node_end(const struct plan *plan)
{
    char journal[REPORT_PATH_MAX];
    int status = service_node_journal(plan, journal, sizeof journal);
    if (status == LS_OK)
        status = service_node_clear(plan);
    if (status != LS_OK)
        return status;
    ls_journal_remove(journal);
    unlink_latest(plan, plan->service.data_at, plan->service.path_data);
    unlink_latest(plan, plan->service.policy_at, plan->service.path_policy);
    return LS_OK;
}

/* Each keeps the data that it makes, or that is put there; the coordinator the
 * policies, also in a folder, for its next life. */
static int open_bus(struct service_node *node)
{
    const struct plan *plan = node->plan;
    const struct plan_service *service = &plan->service;
    const bool coordinates = node->index == plan->first;
    return store_bus_open(
        &node->store,
        &(struct store_bus_options){.node = ls_task_node(node->task),
                                    .calls = node->calls,
                                    .coordinator = plan->nodes[plan->first].id,
                                    .channel = plan_channel(plan),
                                    .max_bytes = (size_t)service->max_mib << 20,
                                    .keep = coordinates && service->journal
                                                ? service->path_policy
                                                : NULL});
}

/* Whose folders these are has said where they are. */
static int open_shared(struct service_node *node)
{
    const struct plan *plan = node->plan;
    const int status = open_files(plan, &node->store);
    if (status == LS_OK && node->index == plan->first && !plan->folder_found) {
        link_latest(plan, plan->service.data_at, plan->service.path_data);
        link_latest(plan, plan->service.policy_at, plan->service.path_policy);
    }
    return status;
}

int service_node_open(struct service_node *node, ls_task *task, ls_rpc *calls)
{
    node->task = task;
    node->calls = calls;
    return node->plan->service.store == PLAN_STORE_FILES ? open_shared(node)
                                                         : open_bus(node);
}

/* How long a member keeps its work without a coordinator: not at all, unless
 * that comes back. */
static int patience_ms(const struct plan *plan)
{
    return plan->nodes[plan->first].on_loss == PLAN_RESTART
               ? (int)(plan->service.patience_s * 1000.0)
               : 0;
}

/* A member that was taken for dead is a new one, and holds nothing: it begins
 * again. The coordinator cannot, since it is who gave the works. */
int service_node_run(void *base)
{
    const struct service_node *node = base;
    ls_node *member = ls_task_node(node->task);
    const bool again =
        node->index != node->plan->first && patience_ms(node->plan) > 0;
    uint64_t life = ls_node_incarnation(member);
    int status = ls_task_run(node->task, UINT64_MAX);
    while (again && status == LS_ELOST && ls_node_incarnation(member) != life) {
        ls_log_warn("it begins again: %s", ls_error_text());
        life = ls_node_incarnation(member);
        status = ls_task_run(node->task, UINT64_MAX);
    }
    return status;
}

void service_node_count(const struct service_node *node,
                        const struct service_figures *figures,
                        struct report *out)
{
    struct store_home_stats store = {.names = 0};
    if (node->plan->service.store == PLAN_STORE_BUS)
        store_bus_stats(node->store, &store);
    out->works = figures->works;
    out->given_back = figures->given_back;
    out->failed_calls = figures->failed;
    out->refused_calls = figures->refused + (int64_t)store.malformed;
    out->store_refused = (int64_t)store.refused;
}

void service_node_values(struct report *report, const struct learner_info *info)
{
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    if (info->n_values == 0 || ls_writer_create(&writer) != LS_OK)
        return;
    learner_values_write(info, writer);
    if (ls_writer_bytes(writer, &data, &size) == LS_OK)
        report_set_metrics(report, data, size);
    ls_writer_destroy(&writer);
}

void service_node_close(struct service_node *node)
{
    store_close(&node->store);
}

struct service_options service_node_options(const struct service_node *node)
{
    return (struct service_options){
        .node = ls_task_node(node->task),
        .calls = node->calls,
        .store = node->store,
        .coordinator = node->plan->nodes[node->plan->first].id,
        .channel = plan_channel(node->plan),
        .gpu = (double)ls_device_gpus(ls_task_runtime(node->task)),
        .cpu = ls_cpus(ls_task_runtime(node->task)),
        .patience_ms = patience_ms(node->plan),
        .store_wait_ms = node->plan->patience_ms,
        .watch = node->watch,
        .sabotage = node->plan->service.fsm.sabotage};
}
