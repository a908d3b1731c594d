/* The names in a simulated folder, and how they were when it was synced: the
 * changes since then, each of which can be undone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "disk_sim.h"

static struct sim_entry **find(struct sim_node *folder, const char *name)
{
    struct sim_entry **at = &folder->entries;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

struct sim_node *sim_folder_find(const struct sim_node *folder,
                                 const char *name)
{
    const struct sim_entry *entry = folder->entries;
    while (entry != NULL && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry != NULL ? entry->node : NULL;
}

static void let_go(struct sim_node *node)
{
    node->n_names--;
    sim_node_let_go(node);
}

/* node: NULL: the name goes. */
static int set_name(struct sim_node *folder, const char *name,
                    struct sim_node *node)
{
    struct sim_entry **at = find(folder, name);
    struct sim_entry *entry = *at;
    if (node != NULL) {
        if (entry == NULL && (*at = calloc(1, sizeof **at)) == NULL)
            return ENOMEM;
        sim_node_use(node);
        node->n_names++;
        if (entry != NULL)
            let_go(entry->node);
        else
            memcpy((*at)->name, name, strlen(name) + 1);
        (*at)->node = node;
    } else if (entry != NULL) {
        *at = entry->next;
        let_go(entry->node);
        free(entry);
    }
    return 0;
}

static void use_if(struct sim_node *node)
{
    if (node != NULL)
        sim_node_use(node);
}

static void let_go_if(struct sim_node *node)
{
    if (node != NULL)
        sim_node_let_go(node);
}

static void forget_latest(struct sim_node *folder)
{
    struct sim_move *move = folder->latest;
    folder->latest = move->earlier;
    for (size_t i = 0; i < move->n; i++) {
        let_go_if(move->names[i].before);
        let_go_if(move->names[i].after);
    }
    free(move);
}

/* The other way round: the last of its names first. */
static int undo_latest(struct sim_node *folder)
{
    const struct sim_move *move = folder->latest;
    int failed = 0;
    for (size_t i = move->n; i > 0 && failed == 0; i--)
        failed = set_name(folder, move->names[i - 1].name,
                          move->names[i - 1].before);
    forget_latest(folder);
    return failed;
}

int sim_folder_change(struct sim_node *folder,
                      const struct sim_machine *machine,
                      struct sim_move *change)
{
    struct sim_move *move = malloc(sizeof *move);
    int failed = move == NULL ? ENOMEM : 0;
    for (size_t i = 0; i < change->n && failed == 0; i++) {
        struct sim_renaming *name = &change->names[i];
        name->before = sim_folder_find(folder, name->name);
        use_if(name->before);
        use_if(name->after);
        failed = set_name(folder, name->name, name->after);
    }
    if (failed != 0) { /* the run is void then */
        free(move);
        return failed;
    }
    *move = *change;
    move->earlier = folder->latest;
    folder->latest = move;
    folder->owner = machine;
    return 0;
}

void sim_folder_sync(struct sim_node *folder)
{
    while (folder->latest != NULL)
        forget_latest(folder);
}

void sim_folder_lose(ls_disk *disk, struct sim_node *folder)
{
    uint64_t n = 0;
    for (const struct sim_move *m = folder->latest; m != NULL; m = m->earlier)
        n++;
    const uint64_t lost = ls_rng_below(&disk->rng, n + 1);
    for (uint64_t i = 0; i < lost && folder->latest != NULL; i++)
        if (undo_latest(folder) != 0)
            sim_disk_no_memory(disk);
    disk->stats.lost_names += lost;
    sim_folder_sync(folder);
}

void sim_folder_fini(struct sim_node *folder)
{
    sim_folder_sync(folder);
    while (folder->entries != NULL) {
        struct sim_entry *entry = folder->entries;
        folder->entries = entry->next;
        let_go(entry->node);
        free(entry);
    }
}
