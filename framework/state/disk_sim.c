/* The simulated disk as an object: making it, joining it, cutting its power. */
#include "disk_sim.h"

#include <stdlib.h>
#include <string.h>

#include "runtime_disk.h"

#define SYNC_NS (2 * LS_NS_PER_MS)

void sim_disk_no_memory(ls_disk *disk)
{
    ls_simulation_violation(disk->simulation,
                            "the disk of the simulation is out of memory");
}

int ls_disk_create(ls_disk **out, ls_simulation *simulation,
                   const struct ls_disk_options *options)
{
    *out = NULL;
    const int64_t sync_ns = options != NULL ? options->sync_ns : 0;
    if (sync_ns < 0)
        return ls_error(LS_EINVAL, "a disk: sync_ns is negative");
    ls_disk *disk = calloc(1, sizeof *disk);
    if (disk == NULL)
        return ls_error(LS_ENOMEM, "no memory for a disk");
    disk->simulation = simulation;
    disk->sync_ns = sync_ns > 0 ? sync_ns : SYNC_NS;
    disk->limit = UINT64_MAX;
    ls_rng_seed(&disk->rng, ls_rng_next(ls_simulation_random(simulation)), 0);
    disk->root = sim_node_create(disk, true);
    if (disk->root == NULL) {
        free(disk);
        return ls_error(LS_ENOMEM, "no memory for a disk");
    }
    sim_node_use(disk->root);
    *out = disk;
    return LS_OK;
}

void ls_disk_destroy(ls_disk **gone)
{
    ls_disk *disk = gone == NULL ? NULL : *gone;
    if (disk == NULL)
        return;
    *gone = NULL;
    while (disk->seats != NULL) {
        struct sim_seat *seat = disk->seats;
        disk->seats = seat->next;
        ls_runtime_set_disk(ls_host_runtime(seat->host), NULL);
        free(seat);
    }
    while (disk->machines != NULL) {
        struct sim_machine *machine = disk->machines;
        disk->machines = machine->next;
        free(machine);
    }
    sim_nodes_free(disk);
    free(disk);
}

/* NULL: no memory. */
static struct sim_machine *machine_of(ls_disk *disk, const char *name)
{
    struct sim_machine *machine = disk->machines;
    while (machine != NULL && strcmp(machine->name, name) != 0)
        machine = machine->next;
    if (machine != NULL)
        return machine;
    const size_t size = strlen(name) + 1;
    machine = malloc(sizeof *machine + size);
    if (machine == NULL)
        return NULL;
    machine->until_cut = UINT64_MAX;
    memcpy(machine->name, name, size);
    machine->next = disk->machines;
    disk->machines = machine;
    return machine;
}

int ls_disk_join(ls_disk *disk, ls_host *host)
{
    ls_runtime *runtime = ls_host_runtime(host);
    if (ls_runtime_disk(runtime) != NULL)
        return ls_error(LS_EEXIST, "host \"%s\" has joined a disk before",
                        ls_host_name(host));
    struct sim_seat *seat = calloc(1, sizeof *seat);
    if (seat != NULL)
        seat->machine = machine_of(disk, ls_host_name(host));
    if (seat == NULL || seat->machine == NULL) {
        free(seat);
        return ls_error(LS_ENOMEM, "no memory for a host");
    }
    seat->base.ops = &sim_disk_ops;
    seat->disk = disk;
    seat->host = host;
    seat->number = ++disk->n_seats;
    seat->next = disk->seats;
    disk->seats = seat;
    ls_runtime_set_disk(runtime, seat);
    return LS_OK;
}

static struct sim_seat *seat_of(ls_host *host)
{
    return ls_runtime_disk(ls_host_runtime(host));
}

/* Every life on the machine that is still there ends with it. */
void ls_disk_power_cut(ls_disk *disk, ls_host *host)
{
    const struct ls_disk_stats before = disk->stats;
    struct sim_machine *machine = seat_of(host)->machine;
    machine->until_cut = UINT64_MAX;
    for (struct sim_seat *seat = disk->seats; seat != NULL; seat = seat->next)
        if (seat->machine == machine)
            ls_host_kill(seat->host);
    sim_nodes_lose(disk, machine);
    disk->stats.power_cuts++;
    ls_simulation_note(
        disk->simulation,
        "disk: power cut of %s: loses %llu writes, %llu names", machine->name,
        (unsigned long long)(disk->stats.lost_writes - before.lost_writes),
        (unsigned long long)(disk->stats.lost_names - before.lost_names));
}

void ls_disk_power_cut_after(ls_disk *disk, ls_host *host, uint64_t n)
{
    (void)disk;
    seat_of(host)->machine->until_cut = n;
}

void ls_disk_fill(ls_disk *disk, uint64_t limit_bytes)
{
    disk->limit = limit_bytes;
    if (limit_bytes == UINT64_MAX)
        ls_simulation_note(disk->simulation, "disk: has room");
    else
        ls_simulation_note(disk->simulation, "disk: holds %llu bytes at most",
                           (unsigned long long)limit_bytes);
}

void ls_disk_stats(const ls_disk *disk, struct ls_disk_stats *out)
{
    *out = disk->stats;
    for (const struct sim_node *n = disk->nodes; n != NULL; n = n->next) {
        out->files += n->n_names > 0;
        out->bytes += n->n_names > 0 ? n->now.size : 0;
    }
}
