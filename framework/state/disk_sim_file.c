/* The bytes of a simulated file: as they are, and as they were when they were
 * synced, with what has changed since. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "disk_sim.h"

static int resize(struct sim_bytes *bytes, size_t size)
{
    if (size > bytes->capacity) {
        const size_t capacity =
            size > 2 * bytes->capacity ? size : 2 * bytes->capacity;
        unsigned char *grown = realloc(bytes->data, capacity);
        if (grown == NULL)
            return ENOMEM;
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    if (size > bytes->size)
        memset(bytes->data + bytes->size, 0, size - bytes->size);
    bytes->size = size;
    return 0;
}

static int apply(struct sim_bytes *bytes, const struct sim_change *change)
{
    const size_t at = (size_t)change->offset;
    if (change->is_cut)
        return resize(bytes, at);
    if (change->size == 0)
        return 0;
    if (at + change->size > bytes->size &&
        resize(bytes, at + change->size) != 0)
        return ENOMEM;
    memcpy(bytes->data + at, change->data, change->size);
    return 0;
}

/* It happens, and is remembered until the file is synced. change: moved. */
static int add(struct sim_node *node, const struct sim_machine *machine,
               struct sim_change *change)
{
    if (change == NULL)
        return ENOMEM;
    if (apply(&node->now, change) != 0) {
        free(change);
        return ENOMEM;
    }
    change->next = NULL;
    *node->last = change;
    node->last = &change->next;
    node->owner = machine;
    return 0;
}

static int write_page(struct sim_node *node, const struct sim_machine *machine,
                      const void *data, size_t size, uint64_t offset)
{
    struct sim_change *change = malloc(sizeof *change + size);
    if (change != NULL) {
        *change = (struct sim_change){.offset = offset, .size = size};
        memcpy(change->data, data, size);
    }
    return add(node, machine, change);
}

int sim_file_write(struct sim_node *node, const struct sim_machine *machine,
                   const void *data, size_t size, uint64_t offset)
{
    const char *from = data;
    int failed = 0;
    while (size > 0 && failed == 0) {
        const size_t page = SIM_PAGE_SIZE - (size_t)(offset % SIM_PAGE_SIZE);
        const size_t n = size < page ? size : page;
        failed = write_page(node, machine, from, n, offset);
        from += n;
        size -= n;
        offset += n;
    }
    return failed;
}

int sim_file_cut(struct sim_node *node, const struct sim_machine *machine,
                 uint64_t size)
{
    struct sim_change *change = malloc(sizeof *change);
    if (change != NULL)
        *change = (struct sim_change){.is_cut = true, .offset = size};
    return add(node, machine, change);
}

static void forget_changes(struct sim_node *node)
{
    while (node->first != NULL) {
        struct sim_change *change = node->first;
        node->first = change->next;
        free(change);
    }
    node->last = &node->first;
}

int sim_file_sync(struct sim_node *node)
{
    int failed = 0;
    for (const struct sim_change *c = node->first; c != NULL && failed == 0;
         c = c->next)
        failed = apply(&node->synced, c);
    if (failed == 0)
        forget_changes(node);
    return failed;
}

/* Nothing survives, or all, or each as it comes. */
static bool survives(ls_disk *disk, uint64_t mode)
{
    return mode == 1 || (mode == 2 && ls_rng_below(&disk->rng, 2) == 0);
}

void sim_file_lose(ls_disk *disk, struct sim_node *node)
{
    const uint64_t mode = ls_rng_below(&disk->rng, 3);
    const bool torn = ls_rng_below(&disk->rng, 2) == 0;
    struct sim_change *last = NULL;
    int failed = 0;
    for (struct sim_change *c = node->first; c != NULL; c = c->next) {
        if (survives(disk, mode)) {
            if (last != NULL && failed == 0)
                failed = apply(&node->synced, last);
            last = c;
        } else {
            disk->stats.lost_writes++;
        }
    }
    if (last != NULL && torn && last->size > 0) {
        last->size = (size_t)ls_rng_below(&disk->rng, last->size);
        disk->stats.lost_writes++;
    }
    if (last != NULL && failed == 0)
        failed = apply(&node->synced, last);
    forget_changes(node);
    node->now.size = 0;
    if (failed == 0)
        failed = resize(&node->now, node->synced.size);
    if (failed != 0)
        sim_disk_no_memory(disk);
    else if (node->now.size > 0)
        memcpy(node->now.data, node->synced.data, node->now.size);
}

void sim_file_fini(struct sim_node *node)
{
    forget_changes(node);
    free(node->now.data);
    free(node->synced.data);
}
