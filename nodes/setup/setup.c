#include "setup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "agent.h"
#include "plan_sizes.h"

/* --out as a YAML text: in single quotes, with those inside it doubled. */
static int set_out(ls_config *config, const char *out)
{
    char *quoted = malloc(2 * strlen(out) + 3);
    if (quoted == NULL)
        return ls_error(LS_ENOMEM, "--out");
    size_t n = 0;
    quoted[n++] = '\'';
    for (const char *at = out; *at != '\0'; at++) {
        if (*at == '\'')
            quoted[n++] = '\'';
        quoted[n++] = *at;
    }
    quoted[n++] = '\'';
    quoted[n] = '\0';
    const int status = ls_config_set(config, "out", quoted);
    free(quoted);
    return status;
}

static int apply_options(ls_config *config, const struct options *options)
{
    int status = LS_OK;
    for (size_t i = 0; i < options->n_sets && status == LS_OK; i++) {
        status = ls_config_set(config, options->sets[i].path,
                               options->sets[i].value);
        if (status != LS_OK)
            (void)ls_error_at(status, "--set %s=%s", options->sets[i].path,
                              options->sets[i].value);
    }
    if (status == LS_OK && options->seed != NULL)
        status = ls_config_set(config, "seed", options->seed);
    if (status == LS_OK && options->out != NULL)
        status = set_out(config, options->out);
    return status;
}

static int load_plugin(struct setup *setup)
{
    const struct plan *plan = &setup->plan;
    char folder[PATH_MAX];
    const char *slash = strrchr(plan->path, '/');
    const int length = slash != NULL ? (int)(slash - plan->path) : 0;
    (void)snprintf(folder, sizeof folder, "%.*s", length, plan->path);
    if (slash == plan->path)
        (void)snprintf(folder, sizeof folder, "/.");
    return plugin_load(&setup->plugin, plan->plugin, folder);
}

/* Nodes with two versions of a plugin would learn from each other as if they
 * had one. */
static void hash_version(struct plan *plan, const struct ls_plugin *plugin)
{
    plan->hash = XXH3_64bits_withSeed(plugin->version, strlen(plugin->version),
                                      plan->hash);
}

/* Have the plugin read its sections, as every node will. What is asked every
 * other second goes without. */
static int try_plugin(struct setup *setup, bool needed)
{
    struct plan *plan = &setup->plan;
    int status = LS_OK;
    if (needed && plan->plugin[0] != '\0') {
        status = load_plugin(setup);
        if (status == LS_ENOMEM)
            return status;
        if (status != LS_OK)
            ls_config_problem(ls_config_root(plan->config), "plugin", "%s",
                              ls_error_text());
    }
    if (setup->plugin == NULL) {
        /* Nobody is here to say what may stand in them. */
        ls_config_accept_all(plan->env);
        ls_config_accept_all(plan->policy);
        return LS_OK;
    }
    hash_version(plan, plugin_table(setup->plugin));
    struct agent agent = {.plugin = NULL};
    status = agent_init(&agent, plugin_table(setup->plugin), plan, 0, 0, 1);
    if (status != LS_OK)
        return status;
    status = plan_read_sizes(plan, &agent);
    agent_fini(&agent);
    return status;
}

/* A day is enough for anybody. */
static int patience_ms(double s)
{
    return s < 86400.0 ? (int)(s * 1000.0) : 86400000;
}

int setup_load(struct setup *out, const struct options *options)
{
    memset(out, 0, sizeof *out);
    ls_config *config = NULL;
    int status = options->text == NULL
                     ? ls_config_load(&config, options->config)
                     : ls_config_parse(&config, options->config, options->text);
    if (status != LS_OK)
        return status;
    status = apply_options(config, options);
    if (status == LS_OK)
        status = plan_read(&out->plan, &config, options->config);
    if (status != LS_OK) {
        ls_config_destroy(&config);
        return status;
    }
    if (options->patience_s > 0)
        plan_be_patient(&out->plan, patience_ms(options->patience_s));
    out->plan.checkpoint.from = options->epoch;
    out->plan.record = options->record;
    out->plan.tape = options->tape;
    const int tried = try_plugin(out, options->command != COMMAND_HEALTH &&
                                          options->command != COMMAND_STATUS &&
                                          options->command != COMMAND_TOP);
    char text[LS_ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    status = ls_config_finish(out->plan.config);
    if (status == LS_OK && tried != LS_OK)
        return ls_error(tried, "%s: %s", out->plan.path, text);
    return status;
}

void setup_fini(struct setup *setup)
{
    plan_fini(&setup->plan);
    plugin_unload(&setup->plugin);
}

const char *setup_report(const struct setup *setup)
{
    return setup->plan.config != NULL ? ls_config_report(setup->plan.config)
                                      : "";
}
