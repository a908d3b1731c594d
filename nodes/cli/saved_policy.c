#include "saved_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "run_folder.h"

static int put_path(char out[LS_PATH_MAX], const char *folder, const char *name)
{
    const int n = snprintf(out, LS_PATH_MAX, "%s/%s", folder, name);
    return n >= 0 && n < LS_PATH_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT, "%.80s… has too long a name", folder);
}

static int open_file(struct saved_policy *out, const char *path)
{
    char folder[LS_PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= sizeof folder)
        return ls_error(LS_ELIMIT, "%.80s… has too long a name", path);
    if (slash != NULL)
        (void)snprintf(folder, sizeof folder, "%.*s",
                       (int)(slash > path ? slash - path : 1), path);
    memcpy(out->path, path, strlen(path) + 1);
    return weights_open(&out->file, folder, slash != NULL ? slash + 1 : path);
}

/* The one of a name in a run's folder, in place of `best` if it is further. */
static int look_at(struct saved_policy *best, bool *found, const char *folder,
                   const char *name)
{
    struct saved_policy one;
    int status = put_path(one.path, folder, name);
    if (status == LS_OK)
        status = weights_open(&one.file, folder, name);
    if (status != LS_OK)
        return status == LS_ENOENT ? LS_OK : status;
    if (*found && one.file.note.train_iter <= best->file.note.train_iter) {
        weights_close(&one.file);
        return LS_OK;
    }
    if (*found)
        weights_close(&best->file);
    *best = one;
    *found = true;
    return LS_OK;
}

static int open_run(struct saved_policy *out, const char *path)
{
    char folder[LS_PATH_MAX];
    struct run_folder_look run;
    struct saved_policy best;
    bool found = false;
    int status = run_folder_look(&run, path);
    if (status == LS_OK)
        status = put_path(folder, path, PLAN_LATEST);
    if (status == LS_OK && !ls_file_exists(folder))
        (void)snprintf(folder, sizeof folder, "%s", path);
    if (status == LS_OK)
        status = look_at(&best, &found, folder, WEIGHTS_FINAL);
    if (status == LS_OK)
        status = look_at(&best, &found, folder, WEIGHTS_CHECKPOINT);
    if (status == LS_OK && !found)
        status = ls_error(LS_ENOENT,
                          "%s: the run has kept no weights yet: it does when "
                          "it ends, and a job in lock step also every "
                          "learner.checkpoint_every updates",
                          folder);
    if (status == LS_OK)
        *out = best;
    else if (found)
        weights_close(&best.file);
    return status;
}

int saved_policy_open(struct saved_policy *out, const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return ls_error(LS_ENOENT,
                        "%s: there is no such file or folder; name a run's "
                        "folder, such as out/cartpole/latest, or a file of "
                        "weights in it",
                        path);
    if (S_ISDIR(about.st_mode))
        return open_run(out, path);
    struct saved_policy saved;
    const int status = open_file(&saved, path);
    if (status == LS_OK)
        *out = saved;
    return status;
}

/* ---- the configuration ----------------------------------------------------
 */

static void print_value(FILE *to, const char *key, const ls_value *value)
{
    const size_t size = ls_value_print(value, (char[1]){""}, 1) + 1;
    char *text = malloc(size);
    if (text != NULL && value != NULL) {
        (void)ls_value_print(value, text, size);
        (void)fprintf(to, "%s: %s\n", key, text);
    }
    free(text);
}

/* What is known of the job from the file alone.
 * text: own: free() it. */
static int make_config(const struct weights_file *file, char **text)
{
    size_t size;
    *text = NULL;
    if (!weights_names_plugin(file))
        return ls_error(
            LS_EPROTO,
            "the file of weights says that its plugin is \"%.64s\", "
            "which is not a name",
            file->plugin);
    FILE *to = open_memstream(text, &size);
    if (to == NULL)
        return ls_error(LS_ENOMEM, "a configuration");
    const ls_value *map = ls_document_root(file->document);
    print_value(to, "plugin", ls_value_get(map, "plugin"));
    print_value(to, "env", file->env);
    print_value(to, "policy", file->policy);
    (void)fputs("nodes: [{role: learner}, {role: collector}]\n", to);
    return fclose(to) == 0 ? LS_OK : ls_error(LS_ENOMEM, "a configuration");
}

/* On failure everything has been said. */
static int set_up(struct setup *out, const struct options *given,
                  const struct saved_policy *saved)
{
    struct options options = *given;
    char *text = NULL;
    int status = LS_OK;
    options.out = NULL; /* a file of this command */
    if (given->config == NULL) {
        options.config = saved->path;
        status = make_config(&saved->file, &text);
        options.text = text;
    }
    if (status == LS_OK)
        status = command_setup(out, &options);
    else
        (void)command_failed(status);
    free(text);
    if (status != LS_OK) {
        if (given->config == NULL)
            (void)fprintf(stderr,
                          "lockstep: or name the configuration of its run, as "
                          "in: lockstep %s %s job.yaml\n",
                          given->command == COMMAND_EVAL ? "eval" : "export",
                          given->policy);
        return status;
    }
    if (given->seed == NULL)
        out->plan.seed = saved->file.note.seed;
    if (out->plugin == NULL) {
        status = ls_error(LS_ECONFIG,
                          "%s: its nodes are members, which have no policy",
                          options.config);
        (void)command_failed(status);
        setup_fini(out);
    }
    return status;
}

/* ---- what a command does with it ------------------------------------------
 */

int saved_policy_agent(struct agent *out, const struct setup *setup,
                       const struct saved_policy *saved)
{
    struct agent agent;
    int status = agent_init(&agent, plugin_table(setup->plugin), &setup->plan,
                            AGENT_EVALUATOR, 0, 1);
    if (status != LS_OK)
        return status;
    status = weights_use(&agent, &saved->file);
    if (status == LS_OK) {
        *out = agent;
        return LS_OK;
    }
    agent_fini(&agent);
    return ls_error_at(status, "%s", saved->path);
}

int saved_policy_do(const struct options *options,
                    int (*fn)(const struct options *options,
                              const struct saved_policy *saved,
                              const struct setup *setup))
{
    struct saved_policy saved;
    struct setup setup;
    int status = saved_policy_open(&saved, options->policy);
    if (status != LS_OK)
        return command_failed(status);
    int exit_code;
    status = set_up(&setup, options, &saved);
    if (status == LS_OK) {
        exit_code = fn(options, &saved, &setup);
        setup_fini(&setup);
    } else {
        exit_code = ls_status_exit_code(status);
    }
    weights_close(&saved.file);
    return exit_code;
}
