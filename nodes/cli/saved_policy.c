#include "saved_policy.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plan.h"
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
