/* `lockstep checkpoint export`: blobs as safetensors, for other programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_folder.h"
#include "json.h"
#include "safetensors.h"
#include "version.h"

/* What goes into the file. */
struct exported {
    const struct checkpoint_folder *folder; /* borrow */
    const struct ls_checkpoint_manifest *manifest;
    struct safetensors_tensor *tensors; /* own, with their names and data */
    size_t n;
    bool many; /* nodes: their names go before those of blobs */
};

static int add(struct exported *out, const struct ls_checkpoint_entry *entry,
               const struct ls_checkpoint_blob *blob)
{
    const size_t room = sizeof entry->node + sizeof blob->name;
    struct safetensors_tensor *grown =
        realloc(out->tensors, (out->n + 1) * sizeof *grown);
    char *name = malloc(room);
    void *data = NULL;
    if (grown != NULL)
        out->tensors = grown;
    int status = grown == NULL || name == NULL
                     ? ls_error(LS_ENOMEM, "%zu blobs", out->n + 1)
                     : checkpoint_folder_load(out->folder, out->manifest->epoch,
                                              entry, blob, &data);
    if (status != LS_OK) {
        free(name);
        return status;
    }
    (void)snprintf(name, room, "%s%s%s", out->many ? entry->node : "",
                   out->many ? "/" : "", blob->name);
    out->tensors[out->n++] = (struct safetensors_tensor){
        .name = name, .form = blob->form, .data = data};
    return LS_OK;
}

static int add_node(struct exported *out,
                    const struct ls_checkpoint_entry *entry)
{
    const char *wanted = out->folder->options->checkpoint.blob;
    struct ls_checkpoint_blob *blobs = NULL;
    size_t n = 0;
    int status = ls_checkpoints_blob_names(
        out->folder->checkpoints, out->manifest->epoch, entry, &blobs, &n);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        if (wanted == NULL || strcmp(blobs[i].name, wanted) == 0)
            status = add(out, entry, &blobs[i]);
    free(blobs);
    return status == LS_ENOENT
               ? ls_error(LS_ENOENT,
                          "the entry of %s does not lie in %s: export it on "
                          "its machine, or choose others with --node",
                          entry->node, out->folder->path)
               : status;
}

static int add_all(struct exported *out)
{
    const struct options *options = out->folder->options;
    const char *node = options->checkpoint.node;
    bool found = false;
    int status = LS_OK;
    out->many = node == NULL && out->manifest->n_entries > 1;
    for (size_t i = 0; i < out->manifest->n_entries && status == LS_OK; i++) {
        const struct ls_checkpoint_entry *entry = &out->manifest->entries[i];
        if (node != NULL && strcmp(entry->node, node) != 0)
            continue;
        found = true;
        status = add_node(out, entry);
    }
    if (status == LS_OK && !found)
        return ls_error(LS_ENOENT,
                        "--node %s: epoch %" PRId64
                        " has no such node; lockstep checkpoint show lists "
                        "them",
                        node, out->manifest->epoch);
    if (status == LS_OK && out->n == 0)
        return ls_error(
            LS_ENOENT, "epoch %" PRId64 " has no blob%s%s to export",
            out->manifest->epoch, options->checkpoint.blob != NULL ? " " : "",
            options->checkpoint.blob != NULL ? options->checkpoint.blob : "");
    return status;
}

static int write_file(const struct exported *exported)
{
    char epoch[24];
    (void)snprintf(epoch, sizeof epoch, "%" PRId64, exported->manifest->epoch);
    const struct safetensors_note notes[] = {
        {"lockstep", version_text()},
        {"run", exported->manifest->run},
        {"epoch", epoch},
    };
    return safetensors_write(exported->folder->options->out, exported->tensors,
                             exported->n, notes,
                             sizeof notes / sizeof notes[0]);
}

static int print_json(const struct exported *exported)
{
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, 4);
    json_string(writer, "event", "export");
    json_int(writer, "epoch", exported->manifest->epoch);
    json_string(writer, "file", exported->folder->options->out);
    json_int(writer, "tensors", (int64_t)exported->n);
    status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

static void print(const struct exported *exported)
{
    char form[LS_BLOB_FORM_TEXT_MAX];
    int widest = 0;
    for (size_t i = 0; i < exported->n; i++) {
        const int length = (int)strlen(exported->tensors[i].name);
        widest = length > widest ? length : widest;
    }
    printf("%s, of epoch %" PRId64 " in %s\n\n", exported->folder->options->out,
           exported->manifest->epoch, exported->folder->path);
    for (size_t i = 0; i < exported->n; i++)
        printf("  %-*s  %s\n", widest, exported->tensors[i].name,
               ls_blob_form_print(&exported->tensors[i].form, form));
}

static int export_epoch(const struct checkpoint_folder *folder,
                        const struct ls_checkpoint_manifest *manifest)
{
    struct exported exported = {.folder = folder, .manifest = manifest};
    int status = add_all(&exported);
    if (status == LS_OK)
        status = write_file(&exported);
    if (status == LS_OK && folder->options->json)
        status = print_json(&exported);
    else if (status == LS_OK)
        print(&exported);
    for (size_t i = 0; i < exported.n; i++) {
        free((char *)exported.tensors[i].name);
        free((void *)exported.tensors[i].data);
    }
    free(exported.tensors);
    return status;
}

int checkpoint_export(const struct options *options)
{
    struct checkpoint_folder folder;
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    if (!options->force && ls_file_exists(options->out))
        return ls_error(
            LS_EEXIST,
            "%s exists: name another file, or replace it with --force",
            options->out);
    int status = checkpoint_folder_open(&folder, options, NULL);
    if (status == LS_OK)
        status = checkpoint_folder_manifest(&folder, 0, &manifest);
    if (status == LS_OK)
        status = export_epoch(&folder, &manifest);
    ls_checkpoint_manifest_clear(&manifest);
    checkpoint_folder_close(&folder);
    return status;
}
