/* The folders of a node: its own, and, where it is led, those of others. */
#include "saves.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct saves_guest {
    uint32_t id;
    ls_checkpoints *store; /* own */
};

void saves_name(uint32_t id, char name[LS_CHECKPOINT_NODE_MAX + 1])
{
    (void)snprintf(name, LS_CHECKPOINT_NODE_MAX + 1, "node-%" PRIu32, id);
}

int saves_init(struct saves *saves, ls_runtime *runtime)
{
    return ls_mutex_init(&saves->mutex, runtime);
}

void saves_fini(struct saves *saves)
{
    ls_mutex_fini(&saves->mutex);
    free(saves->verdicts);
    saves->verdicts = NULL;
    saves->n_verdicts = 0;
}

int saves_open(struct saves *saves)
{
    char name[LS_CHECKPOINT_NODE_MAX + 1];
    const bool leads = saves->id == saves->leader;
    if (saves->folder == NULL || (!leads && saves->blobs == NULL))
        return LS_OK;
    saves_name(saves->id, name);
    saves->keeper.waits = false;
    return ls_checkpoints_open(&saves->store,
                               &(struct ls_checkpoints_options){
                                   .folder = saves->folder,
                                   .node = saves->blobs != NULL ? name : NULL,
                                   .commits = leads,
                                   .retention = saves->retention});
}

int saves_host(struct saves *saves, uint32_t id, ls_checkpoints **out)
{
    char name[LS_CHECKPOINT_NODE_MAX + 1];
    for (size_t i = 0; i < saves->n_hosted; i++)
        if (saves->hosted[i].id == id) {
            *out = saves->hosted[i].store;
            return LS_OK;
        }
    struct saves_guest *more =
        realloc(saves->hosted, (saves->n_hosted + 1) * sizeof *more);
    if (more == NULL)
        return ls_error(LS_ENOMEM, "the folder of node %" PRIu32, id);
    saves->hosted = more;
    saves_name(id, name);
    const int status =
        ls_checkpoints_open(out, &(struct ls_checkpoints_options){
                                     .folder = saves->folder, .node = name});
    if (status == LS_OK)
        saves->hosted[saves->n_hosted++] =
            (struct saves_guest){.id = id, .store = *out};
    return status;
}

int saves_rewind_hosted(struct saves *saves, int64_t epoch)
{
    int status = LS_OK;
    for (size_t i = 0; i < saves->n_hosted && status == LS_OK; i++)
        status = ls_checkpoints_rewind(saves->hosted[i].store, epoch);
    return status;
}

int saves_close(struct saves *saves)
{
    ls_mutex_lock(&saves->mutex);
    const int status = ls_checkpoints_close(&saves->store);
    for (size_t i = 0; i < saves->n_hosted; i++)
        (void)ls_checkpoints_close(&saves->hosted[i].store); /* none behind */
    free(saves->hosted);
    saves->hosted = NULL;
    saves->n_hosted = 0;
    ls_mutex_unlock(&saves->mutex);
    return status;
}
