/* `lockstep checkpoint verify`: every byte of one, some or all checkpoints is
 * read, and each file that is damaged is named. */
#include <inttypes.h>
#include <stdio.h>

#include "checkpoint_folder.h"
#include "json.h"
#include "output.h"

static void name_damage(const char *text)
{
    output_print(stderr, "lockstep: %s\n", text);
}

static int print_json(int64_t epoch, const struct checkpoint_health *health,
                      const char *state)
{
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map_begin(writer);
    json_string(writer, "event", "verify");
    json_int(writer, "epoch", epoch);
    json_string(writer, "state", state);
    json_int(writer, "damaged", (int64_t)health->n_damaged);
    if (health->n_damaged > 0)
        json_string(writer, "why", health->why);
    ls_write_map_end(writer);
    status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

static size_t count_entries(const struct checkpoint_folder *folder,
                            int64_t epoch)
{
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    size_t n = 0;
    if (ls_checkpoints_manifest(folder->checkpoints, epoch, &manifest) == LS_OK)
        n = manifest.n_entries;
    ls_checkpoint_manifest_clear(&manifest);
    return n;
}

static int verify_one(const struct checkpoint_folder *folder, int64_t epoch,
                      size_t *n_damaged)
{
    struct checkpoint_health health;
    char text[64];
    int status = checkpoint_folder_verify(folder, epoch, name_damage, &health);
    if (status != LS_OK)
        return status;
    const char *state =
        checkpoint_health_text(&health, count_entries(folder, epoch), text);
    *n_damaged += health.n_damaged > 0;
    if (folder->options->json)
        return print_json(epoch, &health, state);
    printf("epoch %" PRId64 "  %s\n", epoch, state);
    return LS_OK;
}

int checkpoint_verify(const struct options *options)
{
    struct checkpoint_folder folder;
    const size_t n_asked = options->checkpoint.n_epochs;
    size_t n_damaged = 0, n = 0;
    int status = checkpoint_folder_open(&folder, options, NULL);
    for (; n_asked == 0 && n < folder.n && status == LS_OK; n++)
        status = verify_one(&folder, folder.epochs[n], &n_damaged);
    for (; n < n_asked && status == LS_OK; n++) {
        int64_t epoch = LS_CHECKPOINT_NONE;
        status = checkpoint_folder_epoch(&folder, n, &epoch);
        if (status == LS_OK)
            status = verify_one(&folder, epoch, &n_damaged);
    }
    if (status == LS_OK && n == 0)
        status = ls_error(LS_ENOENT, "%s has no checkpoint", folder.path);
    if (status == LS_OK && n_damaged > 0)
        status = ls_error(LS_EPROTO,
                          "%s: %zu of %zu checkpoints are damaged, or "
                          "cannot be read",
                          folder.path, n_damaged, n);
    checkpoint_folder_close(&folder);
    return status;
}
