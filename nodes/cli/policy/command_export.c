/* `lockstep export`: the weights of a run, for other programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json.h"
#include "safetensors.h"
#include "saved_policy.h"
#include "version.h"

/* A plugin that names more has lost count. */
#define TENSORS_MAX 4096

/* What the file holds. */
struct exported {
    struct ls_tensor *tensors; /* own; n, which borrow from the agent */
    size_t n;
    struct ls_bytes saved; /* own; of a policy that names none */
};

static int add(struct exported *out, const struct ls_tensor *tensor)
{
    struct ls_tensor *tensors =
        realloc(out->tensors, (out->n + 1) * sizeof *tensors);
    if (tensors == NULL)
        return ls_error(LS_ENOMEM, "%zu tensors", out->n + 1);
    out->tensors = tensors;
    tensors[out->n++] = *tensor;
    return LS_OK;
}

/* The value that save() writes, as bytes. */
static int take_saved(struct exported *out, struct agent *agent)
{
    const int status = agent_save(agent, &out->saved);
    struct ls_tensor tensor = {
        .name = "policy",
        .space = {.type = LS_U8, .n_dims = 1, .shape = {out->saved.size}},
        .data = out->saved.data};
    return status == LS_OK ? add(out, &tensor) : status;
}

static int take(struct exported *out, struct agent *agent)
{
    const struct ls_policy_ops *ops = agent->plugin->policy;
    struct ls_tensor tensor = {.name = ""};
    int status = LS_OK;
    if (ops->tensor == NULL)
        return take_saved(out, agent);
    while (status == LS_OK && out->n < TENSORS_MAX &&
           ops->tensor(agent->policy, out->n, &tensor))
        status = add(out, &tensor);
    return status == LS_OK && out->n == TENSORS_MAX
               ? ls_error(LS_EHANDLER, "plugin %s names %d tensors or more",
                          agent->plugin->name, TENSORS_MAX)
               : status;
}

static int write_file(const struct exported *exported, const char *path,
                      const struct weights_file *file)
{
    char seed[24], train_iter[24], env_step[24];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, file->note.seed);
    (void)snprintf(train_iter, sizeof train_iter, "%" PRId64,
                   file->note.train_iter);
    (void)snprintf(env_step, sizeof env_step, "%" PRId64, file->note.env_step);
    const struct safetensors_note notes[] = {
        {"lockstep", version_text()},
        {"plugin", file->plugin},
        {"plugin_version", file->plugin_version},
        {"seed", seed},
        {"train_iter", train_iter},
        {"env_step", env_step},
    };
    struct safetensors_tensor *tensors =
        calloc(exported->n + 1, sizeof *tensors);
    int status = tensors != NULL
                     ? LS_OK
                     : ls_error(LS_ENOMEM, "%zu tensors", exported->n);
    for (size_t i = 0; i < exported->n && status == LS_OK; i++)
        status = safetensors_of(&exported->tensors[i], &tensors[i]);
    if (status == LS_OK)
        status = safetensors_write(path, tensors, exported->n, notes,
                                   sizeof notes / sizeof notes[0]);
    free(tensors);
    return status;
}

static int show_json(const struct exported *exported, const char *path,
                     const char *from)
{
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, 4);
    json_string(writer, "event", "export");
    json_string(writer, "weights", from);
    json_string(writer, "file", path);
    json_int(writer, "tensors", (int64_t)exported->n);
    status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

static int widest_name(const struct exported *exported)
{
    size_t widest = 0;
    for (size_t i = 0; i < exported->n; i++) {
        const size_t length = strlen(exported->tensors[i].name);
        widest = length > widest ? length : widest;
    }
    return (int)widest;
}

static void show(const struct exported *exported, const char *path,
                 const char *from)
{
    printf("%s, of %s\n\n", path, from);
    for (size_t i = 0; i < exported->n; i++) {
        static const char *const types[] = {"F32", "F64", "I32", "U8"};
        const struct ls_tensor *tensor = &exported->tensors[i];
        printf("  %-*s  %s", widest_name(exported), tensor->name,
               types[tensor->space.type]);
        for (size_t at = 0; at < tensor->space.n_dims; at++)
            printf("%s%zu", at > 0 ? " x " : " ", tensor->space.shape[at]);
        printf("\n");
    }
}

static int export_to(const struct options *options,
                     const struct saved_policy *saved,
                     const struct setup *setup)
{
    struct exported exported = {.n = 0};
    struct agent agent;
    int status = saved_policy_agent(&agent, setup, saved);
    if (status != LS_OK)
        return command_failed(status);
    status = take(&exported, &agent);
    if (status == LS_OK)
        status = write_file(&exported, options->out, &saved->file);
    if (status == LS_OK && options->json)
        status = show_json(&exported, options->out, saved->path);
    else if (status == LS_OK)
        show(&exported, options->out, saved->path);
    free(exported.tensors);
    ls_bytes_clear(&exported.saved);
    agent_fini(&agent);
    return status == LS_OK ? 0 : command_failed(status);
}

int command_export(const struct options *options)
{
    if (!options->force && ls_file_exists(options->out))
        return command_failed(
            ls_error(LS_EEXIST,
                     "%s exists: name another file, or replace it with --force",
                     options->out));
    return saved_policy_do(options, export_to);
}
