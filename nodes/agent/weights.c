#include "weights.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"
#include "lockstep/vault.h"

#include "report.h"

#define FORMAT "lockstep.policy.1"
/* So large, and there is room to count on. */
#define COUNT_MAX (INT64_C(1) << 53)

static int too_long(const char *folder)
{
    return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name", folder);
}

static int make_path(char path[REPORT_PATH_MAX], const char *folder,
                     const char *name)
{
    const int n = snprintf(path, REPORT_PATH_MAX, "%s/%s", folder, name);
    return n >= 0 && n < REPORT_PATH_MAX ? LS_OK : too_long(folder);
}

static const struct count {
    const char *name;
    size_t offset;
} counts[] = {
    {"iteration", offsetof(struct weights_note, iteration)},
    {"train_iter", offsetof(struct weights_note, train_iter)},
    {"env_step", offsetof(struct weights_note, env_step)},
    {"env_episode", offsetof(struct weights_note, env_episode)},
};
#define N_COUNTS (sizeof counts / sizeof counts[0])

static int64_t *count_at(struct weights_note *note, size_t i)
{
    return (int64_t *)((char *)note + counts[i].offset);
}

int weights_write(const struct agent *agent, const struct weights_note *note,
                  bool learned, ls_writer *out)
{
    struct weights_note copy = *note;
    ls_write_map(out, learned ? 10 : 9);
    ls_write_string(out, "format");
    ls_write_string(out, FORMAT);
    ls_write_string(out, "plugin");
    ls_write_string(out, agent->plugin->name);
    ls_write_string(out, "plugin_version");
    ls_write_string(out, agent->plugin->version);
    ls_write_string(out, "seed");
    ls_write_uint(out, note->seed);
    for (size_t i = 0; i < N_COUNTS; i++) {
        ls_write_string(out, counts[i].name);
        ls_write_int(out, *count_at(&copy, i));
    }
    ls_write_string(out, "weights");
    const int status = agent->plugin->policy->save(agent->policy, out);
    if (status != LS_OK || !learned)
        return status;
    ls_write_string(out, "training");
    return agent_write_training(agent, out);
}

int weights_put(const void *data, size_t bytes, const char *folder,
                const char *name, char *path, size_t size)
{
    char file[REPORT_PATH_MAX];
    ls_vault *vault = NULL;
    int status = make_path(file, folder, name);
    if (status != LS_OK)
        return status;
    const size_t length = strlen(file) + 1;
    if (length > size)
        return too_long(folder);
    status =
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = folder});
    if (status == LS_OK)
        status = ls_vault_put(vault, name, data, bytes, true);
    if (status == LS_OK)
        memcpy(path, file, length);
    ls_vault_close(&vault);
    return status;
}

int weights_save(struct agent *agent, const struct weights_note *note,
                 bool learned, const char *folder, const char *name, char *path,
                 size_t size)
{
    const void *data;
    size_t bytes;
    ls_writer_clear(agent->writer);
    int status = weights_write(agent, note, learned, agent->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(agent->writer, &data, &bytes);
    return status == LS_OK ? weights_put(data, bytes, folder, name, path, size)
                           : status;
}

/* Reading ---------------------------------------------------------------- */

static bool has_text(const ls_value *map, const char *key, const char *text)
{
    const char *found;
    return ls_value_string(ls_value_get(map, key), &found) == LS_OK &&
           strcmp(found, text) == 0;
}

/* Whether it is what this run's learner has written. */
static int check_origin(const struct agent *agent, const ls_value *map,
                        uint64_t seed)
{
    uint64_t found = 0;
    if (!has_text(map, "format", FORMAT))
        return ls_error(LS_EPROTO, "it is not a file of format %s", FORMAT);
    if (!has_text(map, "plugin", agent->plugin->name) ||
        !has_text(map, "plugin_version", agent->plugin->version))
        return ls_error(LS_EMISMATCH, "it is from a plugin other than %s %s",
                        agent->plugin->name, agent->plugin->version);
    if (ls_value_uint(ls_value_get(map, "seed"), &found) != LS_OK ||
        found != seed)
        return ls_error(LS_EMISMATCH, "it is from a run with another seed");
    return LS_OK;
}

static int take(struct agent *agent, const ls_value *map,
                struct weights_note *out)
{
    struct weights_note note = {.seed = out->seed};
    int status = check_origin(agent, map, note.seed);
    for (size_t i = 0; i < N_COUNTS && status == LS_OK; i++) {
        status =
            ls_value_int(ls_value_get(map, counts[i].name), count_at(&note, i));
        if (status == LS_OK &&
            (*count_at(&note, i) < 0 || *count_at(&note, i) > COUNT_MAX))
            status = ls_error(LS_EPROTO, "it is not a count");
        if (status != LS_OK)
            (void)ls_error_at(status, "%s", counts[i].name);
    }
    const ls_value *weights = ls_value_get(map, "weights");
    const ls_value *training = ls_value_get(map, "training");
    if (status == LS_OK && weights == NULL)
        status = ls_error(LS_EPROTO, "it holds no weights");
    if (status == LS_OK && training != NULL)
        status = agent_read_training(agent, training);
    if (status == LS_OK)
        status = agent->plugin->policy->load(agent->policy, weights);
    if (status == LS_OK)
        *out = note;
    /* A field that is not there is no file that is not there, after which a
     * learner would begin with nothing learned. */
    return status == LS_ENOENT ? LS_EPROTO : status;
}

int weights_load(struct agent *agent, uint64_t seed, const char *folder,
                 const char *name, struct weights_note *out)
{
    const struct ls_codec_limits limits = {
        .max_bytes = (size_t)1 << 30, .max_depth = 16, .max_objects = 65536};
    char path[REPORT_PATH_MAX];
    ls_vault *vault;
    void *data = NULL;
    size_t size = 0;
    int status = make_path(path, folder, name);
    if (status == LS_OK)
        status = ls_vault_open(&vault, &(struct ls_vault_options){
                                           .folder = folder, .found = true});
    if (status != LS_OK)
        return status;
    status = ls_vault_get(vault, name, limits.max_bytes, &data, &size);
    ls_vault_close(&vault);
    if (status != LS_OK)
        return status;
    ls_document *document = NULL;
    struct weights_note note = {.seed = seed};
    status = ls_document_read(&document, data, size, &limits);
    free(data);
    if (status == LS_OK)
        status = take(agent, ls_document_root(document), &note);
    ls_document_destroy(&document);
    if (status != LS_OK)
        return ls_error_at(status, "%s", path);
    *out = note;
    return LS_OK;
}

void weights_find(const char *folder, const char *name, char *path, size_t size)
{
    char file[REPORT_PATH_MAX];
    path[0] = '\0';
    if (make_path(file, folder, name) == LS_OK && ls_file_exists(file))
        (void)snprintf(path, size, "%s", file);
}

void weights_tidy(const char *folder)
{
    ls_vault *vault;
    if (ls_file_exists(folder) &&
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = folder}) ==
            LS_OK)
        ls_vault_close(&vault);
}

void weights_remove(const char *folder, const char *name)
{
    const struct ls_vault_options options = {.folder = folder, .found = true};
    ls_vault *vault;
    if (ls_vault_open(&vault, &options) != LS_OK)
        return;
    (void)ls_vault_drop(vault, name);
    ls_vault_close(&vault);
}
