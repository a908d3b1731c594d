/* `lockstep checkpoint ls`: one line for each checkpoint of a folder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint_folder.h"
#include "json.h"

/* What a line says. */
struct row {
    int64_t epoch;
    struct ls_checkpoint_manifest manifest; /* of none, if it is damaged */
    struct checkpoint_health health;
};

static int look(const struct checkpoint_folder *folder, size_t at,
                struct row *out)
{
    *out = (struct row){.epoch = folder->epochs[at]};
    int status =
        checkpoint_folder_verify(folder, out->epoch, NULL, &out->health);
    if (status == LS_OK)
        status = ls_checkpoints_manifest(folder->checkpoints, out->epoch,
                                         &out->manifest);
    return status == LS_EPROTO || status == LS_EIO ? LS_OK : status;
}

static void print_metrics(const struct ls_checkpoint_manifest *manifest)
{
    char name[CHECKPOINT_SAID];
    for (size_t i = 0; i < manifest->n_metrics; i++)
        printf("%s%s %.6g", i > 0 ? ", " : "  ",
               checkpoint_said(manifest->metrics[i].name, name),
               manifest->metrics[i].value);
}

static void print(const struct row *row)
{
    char time[CHECKPOINT_CELL] = "", size[CHECKPOINT_CELL] = "", health[64];
    if (row->manifest.n_entries > 0) {
        (void)checkpoint_time_text(row->manifest.time_ns, time);
        (void)checkpoint_bytes_text(checkpoint_bytes(&row->manifest), size);
    }
    printf(
        "%7" PRId64 "  %-19s  %5zu  %10s  %s", row->epoch, time,
        row->manifest.n_entries, size,
        checkpoint_health_text(&row->health, row->manifest.n_entries, health));
    print_metrics(&row->manifest);
    printf("\n");
}

static int print_json(const struct row *row)
{
    char health[64];
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map_begin(writer);
    json_string(writer, "event", "checkpoint");
    json_int(writer, "epoch", row->epoch);
    json_int(writer, "time_ns", row->manifest.time_ns);
    json_int(writer, "nodes", (int64_t)row->manifest.n_entries);
    json_int(writer, "bytes", (int64_t)checkpoint_bytes(&row->manifest));
    json_string(
        writer, "state",
        checkpoint_health_text(&row->health, row->manifest.n_entries, health));
    if (row->health.n_damaged > 0)
        json_string(writer, "why", row->health.why);
    ls_write_string(writer, "metrics");
    ls_write_map(writer, (uint32_t)row->manifest.n_metrics);
    for (size_t i = 0; i < row->manifest.n_metrics; i++)
        json_double(writer, row->manifest.metrics[i].name,
                    row->manifest.metrics[i].value);
    ls_write_map_end(writer);
    status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

static int show_row(const struct checkpoint_folder *folder, size_t at)
{
    struct row row;
    int status = look(folder, at, &row);
    if (status == LS_OK && folder->options->json)
        status = print_json(&row);
    else if (status == LS_OK)
        print(&row);
    ls_checkpoint_manifest_clear(&row.manifest);
    return status == LS_ENOENT ? LS_OK : status; /* it was removed just now */
}

int checkpoint_ls(const struct options *options)
{
    struct checkpoint_folder folder;
    int status = checkpoint_folder_open(&folder, options, NULL);
    if (status == LS_OK && !options->json && folder.n > 0)
        printf("  epoch  saved (UTC)          nodes        size  state\n");
    for (size_t i = 0; i < folder.n && status == LS_OK; i++)
        status = show_row(&folder, i);
    if (status == LS_OK && folder.n == 0 && !options->json)
        printf("no checkpoint in %s\n", folder.path);
    checkpoint_folder_close(&folder);
    return status;
}
