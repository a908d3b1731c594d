/* `lockstep health`. */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "health.h"
#include "json.h"

/* A node that runs answers at once. */
#define WAIT_MS 2000

/* What an answer, or that there is none, comes to. */
static const char *verdict(const struct health *health, int64_t within_ms,
                           bool *healthy)
{
    *healthy = false;
    if (health->state == HEALTH_STARTING)
        return "starting";
    if (health->state == HEALTH_ENDING)
        return "ending";
    if (!health->idle && health->unmoved_ms > within_ms)
        return "stuck";
    *healthy = true;
    return health->idle ? "idle" : "moving";
}

static int print_json(const struct plan_node *node, const struct health *health,
                      const char *word, bool healthy)
{
    ls_writer *out = NULL;
    int status = ls_writer_create(&out);
    if (status != LS_OK)
        return status;
    ls_write_map(out, 7);
    json_int(out, "node", node->id);
    json_string(out, "role", plan_role_names[node->role]);
    json_bool(out, "healthy", healthy);
    json_string(out, "state", word);
    json_int(out, "iteration", health->iterations);
    json_int(out, "unmoved_ms", health->unmoved_ms);
    json_string(out, "at", health->at);
    status = json_print_line(out);
    ls_writer_destroy(&out);
    return status;
}

static int print(const struct plan_node *node, const struct health *health,
                 const char *word, bool healthy, bool json)
{
    if (json)
        return print_json(node, health, word, healthy);
    printf("node %" PRIu32 " (%s): %s, iteration %" PRId64, node->id,
           plan_role_names[node->role], word, health->iterations);
    if (health->unmoved_ms >= 1000)
        printf(" for %.0f s", (double)health->unmoved_ms / 1000.0);
    printf("%s%s\n", health->at[0] != '\0' ? ", " : "", health->at);
    return LS_OK;
}

/* One that does not run is no finding: *n does not count it. */
static int check(const struct plan *plan, size_t index,
                 const struct options *options, size_t *n, size_t *n_healthy)
{
    const struct plan_node *node = &plan->nodes[index];
    const double within_s = options->within_s > 0
                                ? options->within_s
                                : (double)plan_iteration_ms(plan) / 1000.0;
    struct health health = {.at = "it does not answer"};
    bool healthy = false;
    const int status = health_ask(&health, plan_place(plan), node->id, WAIT_MS);
    if (status == LS_ENOENT)
        return LS_OK;
    if (status != LS_OK && status != LS_ETIMEDOUT)
        return status;
    const char *word = "silent";
    if (status == LS_OK)
        word = verdict(&health, (int64_t)(within_s * 1000.0), &healthy);
    *n += 1;
    *n_healthy += healthy;
    const int printed = print(node, &health, word, healthy, options->json);
    if (status == LS_OK)
        health_clear(&health);
    return printed;
}

static int not_here(const struct plan *plan, const struct options *options)
{
    if (options->has_id)
        return ls_error(LS_EUNREACHABLE,
                        "%s: node %" PRIu32 " does not run on this host, or "
                        "not with the folder %s",
                        plan->path, options->id, plan->out);
    return ls_error(LS_EUNREACHABLE,
                    "%s: no node of it runs on this host, or not with the "
                    "folder %s",
                    plan->path, plan->out);
}

int command_health(const struct options *options)
{
    struct setup setup;
    int status = command_setup(&setup, options);
    if (status != LS_OK)
        return ls_status_exit_code(status);
    const struct plan *plan = &setup.plan;
    size_t index = 0, n = 0, n_healthy = 0;
    if (options->has_id)
        status = plan_find(plan, options->id, &index);
    const size_t end = options->has_id ? index + 1 : plan->n_nodes;
    for (; index < end && status == LS_OK; index++)
        status = check(plan, index, options, &n, &n_healthy);
    if (status == LS_OK && n == 0)
        status = not_here(plan, options);
    const int exit_code = status != LS_OK  ? command_failed(status)
                          : n == n_healthy ? 0
                                           : 1;
    setup_fini(&setup);
    return exit_code;
}
