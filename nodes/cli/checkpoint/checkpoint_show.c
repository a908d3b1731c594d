/* `lockstep checkpoint show`: what one checkpoint holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_folder.h"
#include "json.h"

/* The blobs of one node. */
struct contents {
    struct ls_checkpoint_blob *blobs; /* own */
    size_t n;
    const char *state; /* "whole", "damaged", "unreadable", "elsewhere" */
    char why[LS_ERROR_TEXT_MAX];
};

/* What is damaged may yet say what it was. */
static int look(const struct checkpoint_folder *folder, int64_t epoch,
                const struct ls_checkpoint_entry *entry, struct contents *out)
{
    *out = (struct contents){.state = "whole"};
    int status = ls_checkpoints_has(folder->checkpoints, epoch, entry);
    if (status == LS_ENOENT)
        out->state = "elsewhere";
    if (status == LS_EPROTO || status == LS_EIO) {
        out->state = status == LS_EIO ? "unreadable" : "damaged";
        (void)snprintf(out->why, sizeof out->why, "%s", ls_error_text());
    }
    if (status == LS_OK || status == LS_EPROTO)
        status = ls_checkpoints_blob_names(folder->checkpoints, epoch, entry,
                                           &out->blobs, &out->n);
    return status == LS_ENOENT || status == LS_EPROTO || status == LS_EIO
               ? LS_OK
               : status;
}

static uint64_t bytes_of(const struct ls_checkpoint_blob *blob)
{
    uint64_t size = 0;
    return ls_blob_form_bytes(&blob->form, &size) == LS_OK ? size : 0;
}

/* ---- for people ---------------------------------------------------------- */

static void print_head(const struct ls_checkpoint_manifest *manifest)
{
    char time[CHECKPOINT_CELL], size[CHECKPOINT_CELL];
    char name[CHECKPOINT_SAID], text[CHECKPOINT_SAID];
    printf("epoch %" PRId64 " of %s, saved %s UTC%s\n", manifest->epoch,
           manifest->run[0] != '\0' ? checkpoint_said(manifest->run, name)
                                    : "a run without a name",
           checkpoint_time_text(manifest->time_ns, time),
           manifest->stopped ? "; the job ended with it" : "");
    printf("%zu node%s, %s\n", manifest->n_entries,
           manifest->n_entries == 1 ? "" : "s",
           checkpoint_bytes_text(checkpoint_bytes(manifest), size));
    for (size_t i = 0; i < manifest->n_metrics; i++)
        printf("%s %g\n", checkpoint_said(manifest->metrics[i].name, name),
               manifest->metrics[i].value);
    for (size_t i = 0; i < manifest->n_notes; i++)
        printf("%s: %s\n", checkpoint_said(manifest->notes[i].name, name),
               checkpoint_said(manifest->notes[i].text, text));
}

static void print_node(const struct ls_checkpoint_entry *entry,
                       const struct contents *contents)
{
    char form[LS_BLOB_FORM_TEXT_MAX], size[CHECKPOINT_CELL];
    int widest = 0;
    for (size_t i = 0; i < contents->n; i++) {
        const int length = (int)strlen(contents->blobs[i].name);
        widest = length > widest ? length : widest;
    }
    printf("\n%s  %s, %s\n", entry->node,
           checkpoint_bytes_text(entry->size, size), contents->state);
    if (contents->why[0] != '\0')
        printf("  %s\n", contents->why);
    for (size_t i = 0; i < contents->n; i++) {
        const struct ls_checkpoint_blob *blob = &contents->blobs[i];
        printf("  %-*s  %-12s  %10s\n", widest, blob->name,
               ls_blob_form_print(&blob->form, form),
               checkpoint_bytes_text(bytes_of(blob), size));
    }
}

/* ---- for programs -------------------------------------------------------- */

static void write_node(ls_writer *out, const struct ls_checkpoint_entry *entry,
                       const struct contents *contents)
{
    ls_write_map_begin(out);
    json_string(out, "node", entry->node);
    json_int(out, "bytes", (int64_t)entry->size);
    json_string(out, "state", contents->state);
    if (contents->why[0] != '\0')
        json_string(out, "why", contents->why);
    ls_write_string(out, "blobs");
    ls_write_array(out, (uint32_t)contents->n);
    for (size_t i = 0; i < contents->n; i++) {
        const struct ls_checkpoint_blob *blob = &contents->blobs[i];
        ls_write_map(out, 3);
        json_string(out, "name", blob->name);
        json_string(out, "type", ls_blob_type_name(blob->form.type));
        ls_write_string(out, "shape");
        ls_write_array(out, (uint32_t)blob->form.n_dims);
        for (size_t at = 0; at < blob->form.n_dims; at++)
            ls_write_uint(out, blob->form.shape[at]);
    }
    ls_write_map_end(out);
}

static void write_head(ls_writer *out,
                       const struct ls_checkpoint_manifest *manifest)
{
    json_string(out, "event", "show");
    json_int(out, "epoch", manifest->epoch);
    json_int(out, "time_ns", manifest->time_ns);
    json_string(out, "run", manifest->run);
    json_bool(out, "stopped", manifest->stopped);
    ls_write_string(out, "metrics");
    ls_write_map(out, (uint32_t)manifest->n_metrics);
    for (size_t i = 0; i < manifest->n_metrics; i++)
        json_double(out, manifest->metrics[i].name, manifest->metrics[i].value);
    ls_write_string(out, "notes");
    ls_write_map(out, (uint32_t)manifest->n_notes);
    for (size_t i = 0; i < manifest->n_notes; i++)
        json_string(out, manifest->notes[i].name, manifest->notes[i].text);
}

/* ---- both ---------------------------------------------------------------- */

/* writer: NULL: for people. */
static int show_all(const struct checkpoint_folder *folder,
                    const struct ls_checkpoint_manifest *manifest,
                    ls_writer *writer)
{
    int status = LS_OK;
    if (writer == NULL)
        print_head(manifest);
    for (size_t i = 0; i < manifest->n_entries && status == LS_OK; i++) {
        const struct ls_checkpoint_entry *entry = &manifest->entries[i];
        struct contents contents;
        status = look(folder, manifest->epoch, entry, &contents);
        if (status == LS_OK && writer == NULL)
            print_node(entry, &contents);
        else if (status == LS_OK)
            write_node(writer, entry, &contents);
        free(contents.blobs);
    }
    return status;
}

static int show_json(const struct checkpoint_folder *folder,
                     const struct ls_checkpoint_manifest *manifest)
{
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map_begin(writer);
    write_head(writer, manifest);
    ls_write_string(writer, "nodes");
    ls_write_array(writer, (uint32_t)manifest->n_entries);
    status = show_all(folder, manifest, writer);
    ls_write_map_end(writer);
    if (status == LS_OK)
        status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

int checkpoint_show(const struct options *options)
{
    struct checkpoint_folder folder;
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    int status = checkpoint_folder_open(&folder, options, NULL);
    if (status == LS_OK)
        status = checkpoint_folder_manifest(&folder, 0, &manifest);
    if (status == LS_OK)
        status = options->json ? show_json(&folder, &manifest)
                               : show_all(&folder, &manifest, NULL);
    ls_checkpoint_manifest_clear(&manifest);
    checkpoint_folder_close(&folder);
    return status;
}
