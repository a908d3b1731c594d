#include "saved_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint_folder.h"
#include "command.h"
#include "run_folder.h"

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

/* ---- of a checkpoint --------------------------------------------------- */

/* The learner's, of one entry. Errors: LS_ENOENT it has none. */
static int read_entry(struct saved_policy *out,
                      const struct checkpoint_folder *folder, int64_t epoch,
                      const struct ls_checkpoint_entry *entry)
{
    struct ls_checkpoint_blob *blobs = NULL;
    size_t n = 0, at = 0;
    void *data = NULL;
    int status = ls_checkpoints_blob_names(folder->checkpoints, epoch, entry,
                                           &blobs, &n);
    while (at < n && strcmp(blobs[at].name, WEIGHTS_BLOB) != 0)
        at++;
    if (status == LS_OK && at == n)
        status = LS_ENOENT;
    if (status == LS_OK)
        status =
            checkpoint_folder_load(folder, epoch, entry, &blobs[at], &data);
    if (status == LS_OK)
        status =
            weights_decode(&out->file, data, (size_t)blobs[at].form.shape[0]);
    if (status == LS_OK)
        (void)snprintf(out->path, sizeof out->path, "%.*s/%s.%06lld",
                       LS_PATH_MAX - 128, folder->path, entry->node,
                       (long long)epoch);
    free(data);
    free(blobs);
    return status;
}

static int read_epoch(struct saved_policy *out,
                      const struct checkpoint_folder *folder, int64_t epoch)
{
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    int status = ls_checkpoints_manifest(folder->checkpoints, epoch, &manifest);
    bool found = false;
    for (size_t i = 0; i < manifest.n_entries && status == LS_OK && !found;
         i++) {
        status = read_entry(out, folder, epoch, &manifest.entries[i]);
        found = status == LS_OK;
        if (status == LS_ENOENT)
            status = LS_OK;
    }
    ls_checkpoint_manifest_clear(&manifest);
    return status == LS_OK && !found
               ? ls_error(LS_ENOENT,
                          "%s: epoch %lld has no weights of a learner",
                          folder->path, (long long)epoch)
               : status;
}

/* Errors: LS_ENOENT there is none. */
static int look_at_checkpoint(struct saved_policy *out, const char *run,
                              int64_t epoch)
{
    struct checkpoint_folder folder;
    int status = checkpoint_folder_of_run(&folder, run);
    if (status == LS_OK && epoch == PLAN_FROM_NEWEST)
        status = ls_checkpoints_newest(folder.checkpoints, LS_CHECKPOINT_NONE,
                                       true, NULL, NULL, &epoch);
    else if (status == LS_OK)
        status = checkpoint_folder_find(&folder, epoch, NULL, false, &epoch);
    if (status == LS_OK)
        status = read_epoch(out, &folder, epoch);
    checkpoint_folder_close(&folder);
    return status;
}

/* ---- of a run ---------------------------------------------------------- */

/* What it has come to, or the newest checkpoint, whichever is further. */
static int look_at_run(struct saved_policy *out, const char *folder)
{
    struct saved_policy last, saved;
    int status =
        ls_file_path(last.path, sizeof last.path, folder, WEIGHTS_FINAL);
    if (status == LS_OK)
        status = weights_open(&last.file, folder, WEIGHTS_FINAL);
    const bool has_last = status == LS_OK;
    if (!has_last && status != LS_ENOENT)
        return status;
    status = look_at_checkpoint(&saved, folder, PLAN_FROM_NEWEST);
    const bool has_saved = status == LS_OK;
    if (!has_saved && status != LS_ENOENT && !has_last)
        return status;
    const bool take_saved =
        has_saved &&
        (!has_last || saved.file.note.train_iter > last.file.note.train_iter);
    if (has_last && take_saved)
        weights_close(&last.file);
    if (has_saved && !take_saved)
        weights_close(&saved.file);
    if (!has_last && !has_saved)
        return ls_error(LS_ENOENT,
                        "%s: the run has kept no weights yet: it does when it "
                        "ends, and a job in lock step also in its checkpoints",
                        folder);
    *out = take_saved ? saved : last;
    return LS_OK;
}

static int open_run(struct saved_policy *out, const char *path, int64_t epoch)
{
    char folder[LS_PATH_MAX];
    struct run_folder_look run;
    int status = run_folder_look(&run, path);
    if (status == LS_OK)
        status = ls_file_path(folder, sizeof folder, path, PLAN_LATEST);
    if (status == LS_OK && !ls_file_exists(folder))
        (void)snprintf(folder, sizeof folder, "%s", path);
    if (status == LS_OK)
        status = epoch != PLAN_FROM_NEWEST
                     ? look_at_checkpoint(out, folder, epoch)
                     : look_at_run(out, folder);
    return status;
}

/* path:   of a file; of a run's folder, or of all runs of a job: then of the
 *         latest. Of policy.msgpack and the newest checkpoint there it is the
 *         one that is further.
 * epoch:  that of a checkpoint there instead, or PLAN_FROM_BEST;
 *         PLAN_FROM_NEWEST: none.
 * out:    written on success only; give its file to weights_close().
 * Errors: LS_ENOENT there is no such file or epoch, or the run has kept none
 *         yet; LS_EINVAL an epoch of a file; those of weights_open(),
 *         run_folder_look() and ls_checkpoints_load(). */
static int open_policy(struct saved_policy *out, const char *path,
                       int64_t epoch)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return ls_error(LS_ENOENT,
                        "%s: there is no such file or folder; name a run's "
                        "folder, such as out/cartpole/latest, or a file of "
                        "weights in it",
                        path);
    struct saved_policy saved;
    const bool is_folder = S_ISDIR(about.st_mode);
    if (!is_folder && epoch != PLAN_FROM_NEWEST)
        return ls_error(LS_EINVAL,
                        "--epoch is for the folder of a run, and %s is a file",
                        path);
    const int status =
        is_folder ? open_run(&saved, path, epoch) : open_file(&saved, path);
    if (status == LS_OK)
        *out = saved;
    return status;
}

/* ---- the configuration ------------------------------------------------- */

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

/* ---- what a command does with it --------------------------------------- */

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
    int status = open_policy(&saved, options->policy, options->epoch);
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
