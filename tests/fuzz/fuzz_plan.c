/* Any text as the configuration of a job: read as a plan, which is then asked
 * for all that nodes want of it. */
#include "plan.h"

#include "fuzz.h"
#include "lease.h"
#include "plan_lease.h"

static void ask(const struct plan *plan)
{
    static struct plan_endpoints endpoints;
    struct ls_node_options options;
    struct lease_table leases = {NULL, 0};
    char job[PLAN_LEASE_JOB_MAX];
    plan_node_options(plan, &options);
    must(plan->n_nodes > 0 && plan->n_nodes <= PLAN_NODES_MAX);
    must(plan->first < plan->n_nodes);
    for (size_t i = 0; i < plan->n_nodes && i < 8; i++) {
        size_t index;
        must(plan_find(plan, plan->nodes[i].id, &index) == LS_OK);
        must(index == i);
        (void)plan_endpoints_here(plan, i, NULL, "/tmp/x", &endpoints);
        (void)plan_endpoints_alone(plan, i, &endpoints);
    }
    (void)plan_can_lose_nodes(plan);
    (void)plan_channel(plan);
    must(plan_security_text(plan) != NULL);
    (void)plan_security_warning(plan);
    plan_lease_job(plan, job);
    if (plan_has_leases(plan))
        must(lease_table_of_plan(plan, &leases) == LS_OK);
    lease_table_fini(&leases);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size);
    ls_config *config = NULL;
    struct plan plan;
    if (ls_config_parse(&config, "job.yaml", text) == LS_OK) {
        must(plan_read(&plan, &config, "job.yaml") == LS_OK);
        must(config == NULL);
        ls_config_accept_all(plan.env);
        ls_config_accept_all(plan.policy);
        const int status = ls_config_finish(plan.config);
        const char *const report = ls_config_report(plan.config);
        must(status == LS_OK ? report[0] == '\0' : status == LS_ECONFIG);
        if (status == LS_OK)
            ask(&plan);
        else
            must(report[0] != '\0' && ls_error_text()[0] != '\0');
        plan_fini(&plan);
    }
    free(text);
    return 0;
}
