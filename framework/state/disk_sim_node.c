/* Files and folders of a simulated disk, and who uses them. */
#include <stdlib.h>

#include "disk_sim.h"

struct sim_node *sim_node_create(ls_disk *disk, bool is_folder)
{
    struct sim_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    node->is_folder = is_folder;
    node->last = &node->first;
    node->next = disk->nodes;
    disk->nodes = node;
    return node;
}

void sim_node_use(struct sim_node *node)
{
    node->users++;
}

void sim_node_let_go(struct sim_node *node)
{
    node->users--;
}

static void fini(struct sim_node *node)
{
    if (node->is_folder)
        sim_folder_fini(node);
    else
        sim_file_fini(node);
}

void sim_nodes_sweep(ls_disk *disk)
{
    bool again = true; /* what is in a folder that goes may go, too */
    while (again) {
        again = false;
        struct sim_node **at = &disk->nodes;
        while (*at != NULL) {
            struct sim_node *node = *at;
            if (node->users > 0) {
                at = &node->next;
                continue;
            }
            *at = node->next;
            again = again || node->is_folder;
            fini(node);
            free(node);
        }
    }
}

void sim_nodes_free(ls_disk *disk)
{
    for (struct sim_node *node = disk->nodes; node != NULL; node = node->next)
        fini(node);
    while (disk->nodes != NULL) {
        struct sim_node *node = disk->nodes;
        disk->nodes = node->next;
        free(node);
    }
}

int sim_node_look(struct sim_node *node, const struct sim_machine *machine)
{
    return node->owner == machine || node->owner == NULL ? 0
                                                         : sim_node_sync(node);
}

int sim_node_sync(struct sim_node *node)
{
    node->owner = NULL;
    if (!node->is_folder)
        return sim_file_sync(node);
    sim_folder_sync(node);
    return 0;
}

/* Folders last: what they forget goes only when all have. */
void sim_nodes_lose(ls_disk *disk, const struct sim_machine *machine)
{
    for (int folders = 0; folders < 2; folders++) {
        for (struct sim_node *node = disk->nodes; node != NULL;
             node = node->next) {
            if (node->owner != machine || node->is_folder != (folders != 0))
                continue;
            node->owner = NULL;
            if (node->is_folder)
                sim_folder_lose(disk, node);
            else
                sim_file_lose(disk, node);
        }
    }
    sim_nodes_sweep(disk);
}
