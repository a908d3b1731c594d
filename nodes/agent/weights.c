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
    ls_write_map(out, learned ? 12 : 11);
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
    ls_write_string(out, "env");
    ls_config_section_write(agent->env_section, out);
    ls_write_string(out, "policy");
    ls_config_section_write(agent->policy_section, out);
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
    int status = ls_file_path(file, size < sizeof file ? size : sizeof file,
                              folder, name);
    if (status == LS_OK)
        status =
            ls_vault_open(&vault, &(struct ls_vault_options){.folder = folder});
    if (status == LS_OK)
        status = ls_vault_put(vault, name, data, bytes, true);
    if (status == LS_OK)
        memcpy(path, file, strlen(file) + 1);
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

/* A field that is not there is no file that is not there, after which a learner
 * would begin with nothing learned. */
static int field(int status, const char *name)
{
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status == LS_ENOENT ? LS_EPROTO : status, "%s",
                             name);
}

static int read_counts(struct weights_note *note, const ls_value *map)
{
    int status = LS_OK;
    for (size_t i = 0; i < N_COUNTS && status == LS_OK; i++) {
        int64_t *count = count_at(note, i);
        status = ls_value_int(ls_value_get(map, counts[i].name), count);
        if (status == LS_OK && (*count < 0 || *count > COUNT_MAX))
            status = ls_error(LS_EPROTO, "it is not a count");
        status = field(status, counts[i].name);
    }
    return status;
}

static int read_fields(struct weights_file *file)
{
    const ls_value *map = ls_document_root(file->document);
    const char *format;
    if (ls_value_string(ls_value_get(map, "format"), &format) != LS_OK ||
        strcmp(format, FORMAT) != 0)
        return ls_error(LS_EPROTO, "it is not a file of format %s", FORMAT);
    int status = field(
        ls_value_string(ls_value_get(map, "plugin"), &file->plugin), "plugin");
    if (status == LS_OK)
        status = field(ls_value_string(ls_value_get(map, "plugin_version"),
                                       &file->plugin_version),
                       "plugin_version");
    if (status == LS_OK)
        status = field(
            ls_value_uint(ls_value_get(map, "seed"), &file->note.seed), "seed");
    if (status == LS_OK)
        status = read_counts(&file->note, map);
    file->env = ls_value_get(map, "env");
    file->policy = ls_value_get(map, "policy");
    file->weights = ls_value_get(map, "weights");
    file->training = ls_value_get(map, "training");
    if (status == LS_OK && file->weights == NULL)
        status = ls_error(LS_EPROTO, "it holds no weights");
    return status;
}

int weights_decode(struct weights_file *out, const void *data, size_t bytes)
{
    struct weights_file file = {.document = NULL};
    int status = ls_document_read(&file.document, data, bytes, &agent_limits);
    if (status == LS_OK)
        status = read_fields(&file);
    if (status == LS_OK)
        *out = file;
    else
        weights_close(&file);
    return status;
}

int weights_open(struct weights_file *out, const char *folder, const char *name)
{
    char path[REPORT_PATH_MAX];
    ls_vault *vault;
    void *data = NULL;
    size_t size = 0;
    int status = ls_file_path(path, sizeof path, folder, name);
    if (status == LS_OK)
        status = ls_vault_open(&vault, &(struct ls_vault_options){
                                           .folder = folder, .found = true});
    if (status != LS_OK)
        return status;
    status = ls_vault_get(vault, name, agent_limits.max_bytes, &data, &size);
    ls_vault_close(&vault);
    if (status != LS_OK)
        return status;
    status = weights_decode(out, data, size);
    free(data);
    return status == LS_OK ? LS_OK : ls_error_at(status, "%s", path);
}

void weights_close(struct weights_file *file)
{
    ls_document_destroy(&file->document);
}

bool weights_names_plugin(const struct weights_file *file)
{
    return strchr(file->plugin, '/') == NULL;
}

int weights_use(struct agent *agent, const struct weights_file *file)
{
    const struct ls_plugin *plugin = agent->plugin;
    if (strcmp(file->plugin, plugin->name) != 0 ||
        strcmp(file->plugin_version, plugin->version) != 0)
        return ls_error(
            LS_EMISMATCH, "it is from plugin %.64s %.64s, and this is %s %s",
            file->plugin, file->plugin_version, plugin->name, plugin->version);
    ls_error_clear();
    const int status = plugin->policy->load(agent->policy, file->weights);
    return agent_plugin_error(plugin, status == LS_ENOENT ? LS_EPROTO : status,
                              "policy: load");
}

/* Whether it is what this run's learner has written. */
static int take(struct agent *agent, const struct weights_file *file,
                uint64_t seed)
{
    int status =
        file->note.seed == seed
            ? LS_OK
            : ls_error(LS_EMISMATCH, "it is from a run with another seed");
    if (status == LS_OK)
        status = weights_use(agent, file);
    if (status == LS_OK && file->training != NULL)
        status = agent_read_training(agent, file->training);
    return status == LS_ENOENT ? LS_EPROTO : status;
}

int weights_read(struct agent *agent, uint64_t seed, const void *data,
                 size_t bytes, struct weights_note *out)
{
    struct weights_file file;
    int status = weights_decode(&file, data, bytes);
    if (status != LS_OK)
        return status;
    status = take(agent, &file, seed);
    if (status == LS_OK)
        *out = file.note;
    weights_close(&file);
    return status;
}

void weights_find(const char *folder, const char *name, char *path, size_t size)
{
    if (ls_file_path(path, size, folder, name) != LS_OK ||
        !ls_file_exists(path))
        path[0] = '\0';
}

void weights_tidy(const char *folder)
{
    ls_vault *vault;
    if (ls_file_exists(folder) &&
        ls_vault_open(&vault, &(struct ls_vault_options){.folder = folder}) ==
            LS_OK)
        ls_vault_close(&vault);
}
