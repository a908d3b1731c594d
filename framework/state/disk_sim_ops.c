/* The operations of disk_ops.h on a simulated disk. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk_sim.h"

/* Before each operation: others may run meanwhile, and this host may die.
 * Errors: EIO its threads are ghosts. */
static int begin(struct sim_seat *seat)
{
    (void)ls_now(ls_host_runtime(seat->host));
    return ls_host_is_dead(seat->host) ? EIO : 0;
}

static int begin_change(struct sim_seat *seat)
{
    if (begin(seat) != 0)
        return EIO;
    struct sim_machine *machine = seat->machine;
    if (machine->until_cut == 0) {
        ls_disk_power_cut(seat->disk, seat->host);
        return EIO;
    }
    if (machine->until_cut != UINT64_MAX)
        machine->until_cut--;
    seat->disk->stats.changes++;
    return 0;
}

/* It takes its time, and does it all at the end of that. */
static int begin_sync(struct sim_seat *seat)
{
    ls_disk *disk = seat->disk;
    ls_runtime *runtime = ls_host_runtime(seat->host);
    const int failed = begin_change(seat);
    if (failed != 0)
        return failed;
    const int64_t ns =
        (int64_t)ls_rng_below(&disk->rng, (uint64_t)disk->sync_ns + 1);
    ls_rest_until(runtime, ls_now(runtime) + ns);
    disk->stats.changes--;
    disk->stats.syncs++;
    return begin(seat);
}

static int refuse(ls_disk *disk)
{
    disk->stats.refused++;
    return ENOSPC;
}

/* How many bytes more the disk takes. */
static uint64_t room(const ls_disk *disk)
{
    struct ls_disk_stats stats;
    if (disk->limit == UINT64_MAX)
        return UINT64_MAX;
    ls_disk_stats(disk, &stats);
    return stats.bytes < disk->limit ? disk->limit - stats.bytes : 0;
}

/* Paths ------------------------------------------------------------------ */

/* Where a path leads to. */
struct place {
    struct sim_node *folder; /* NULL: it is the root */
    struct sim_node *node;   /* NULL: there is none */
    char name[SIM_NAME_MAX + 1];
};

static int step(struct place *place, const struct sim_machine *machine,
                const char *name, size_t length)
{
    if (place->node == NULL)
        return ENOENT;
    if (!place->node->is_folder)
        return ENOTDIR;
    if (length > SIM_NAME_MAX)
        return ENAMETOOLONG;
    place->folder = place->node;
    memcpy(place->name, name, length);
    place->name[length] = '\0';
    const int failed = sim_node_look(place->folder, machine);
    place->node = sim_folder_find(place->folder, place->name);
    return failed;
}

static int find(const struct sim_seat *seat, const char *path,
                struct place *out)
{
    int failed = path[0] == '\0' ? ENOENT : 0;
    out->folder = NULL;
    out->node = seat->disk->root;
    while (*path != '\0' && failed == 0) {
        const size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && path[0] == '.'))
            failed = step(out, seat->machine, path, length);
        path += length;
        path += *path == '/';
    }
    return failed;
}

static int find_folder(const struct sim_seat *seat, const char *path,
                       struct place *out)
{
    const int failed = find(seat, path, out);
    if (failed != 0)
        return failed;
    if (out->node == NULL)
        return ENOENT;
    if (!out->node->is_folder)
        return ENOTDIR;
    return sim_node_look(out->node, seat->machine);
}

static struct sim_seat *seat_of(struct disk *disk)
{
    return (struct sim_seat *)(void *)disk;
}

/* One name stands for a node, or for nothing (NULL). */
static int set_name(const struct sim_seat *seat, const struct place *place,
                    struct sim_node *node)
{
    struct sim_move move = {.n = 1, .names = {{.after = node}}};
    memcpy(move.names[0].name, place->name, sizeof place->name);
    return sim_folder_change(place->folder, seat->machine, &move);
}

static int create(const struct sim_seat *seat, struct place *place,
                  bool is_folder)
{
    if (room(seat->disk) == 0)
        return refuse(seat->disk);
    place->node = sim_node_create(seat->disk, is_folder);
    return place->node == NULL ? ENOMEM : set_name(seat, place, place->node);
}

/* Files ------------------------------------------------------------------ */

static int open_there(const struct sim_seat *seat, const char *path,
                      unsigned flags, struct sim_node **out)
{
    struct place place;
    const bool writes = (flags & LS_FILE_WRITE) != 0;
    int failed = find(seat, path, &place);
    if (failed == 0 && place.node == NULL)
        failed = (flags & LS_FILE_CREATE) != 0 ? create(seat, &place, false)
                                               : ENOENT;
    if (failed == 0 && place.node->is_folder)
        failed = writes ? EISDIR : EINVAL;
    if (failed == 0)
        failed = sim_node_look(place.node, seat->machine);
    if (failed == 0 && (flags & LS_FILE_EMPTY) != 0 && place.node->now.size > 0)
        failed = sim_file_cut(place.node, seat->machine, 0);
    *out = place.node;
    return failed;
}

static int sim_open(struct disk *disk, struct disk_handle *out,
                    const char *path, unsigned flags)
{
    struct sim_seat *seat = seat_of(disk);
    struct sim_node *node;
    const bool changes = (flags & (LS_FILE_CREATE | LS_FILE_EMPTY)) != 0;
    int failed = changes ? begin_change(seat) : begin(seat);
    if (failed == 0)
        failed = open_there(seat, path, flags, &node);
    if (failed != 0)
        return failed;
    struct sim_handle *handle = malloc(sizeof *handle);
    if (handle == NULL)
        return ENOMEM;
    *handle = (struct sim_handle){
        .seat = seat, .node = node, .writes = (flags & LS_FILE_WRITE) != 0};
    sim_node_use(node);
    out->sim = handle;
    return 0;
}

static void unlock(struct sim_handle *handle)
{
    struct sim_handle **at = &handle->node->lockers;
    while (*at != NULL && *at != handle)
        at = &(*at)->next_locker;
    if (*at != NULL)
        *at = handle->next_locker;
}

static int sim_close(struct disk_handle *file)
{
    struct sim_handle *handle = file->sim;
    ls_disk *disk = handle->seat->disk;
    const bool dead = ls_host_is_dead(handle->seat->host);
    unlock(handle);
    sim_node_let_go(handle->node);
    sim_nodes_sweep(disk);
    free(handle);
    return dead ? EIO : 0;
}

/* Errors: EIO; EBADF it is to be changed, and was not opened for that. */
static int begin_on(struct sim_handle *handle, bool changes)
{
    const int failed =
        changes ? begin_change(handle->seat) : begin(handle->seat);
    if (failed != 0)
        return failed;
    return changes && !handle->writes
               ? EBADF
               : sim_node_look(handle->node, handle->seat->machine);
}

static int sim_read_at(struct disk_handle *file, void *data, size_t size,
                       uint64_t offset, size_t *done)
{
    const struct sim_bytes *now = &file->sim->node->now;
    const int failed = begin_on(file->sim, false);
    if (failed != 0)
        return failed;
    const size_t left = offset < now->size ? now->size - (size_t)offset : 0;
    *done = size < left ? size : left;
    if (*done > 0)
        memcpy(data, now->data + offset, *done);
    return 0;
}

static int sim_write_at(struct disk_handle *file, const void *data, size_t size,
                        uint64_t offset, size_t *done)
{
    struct sim_handle *handle = file->sim;
    const struct sim_node *node = handle->node;
    int failed = begin_on(handle, true);
    if (failed != 0)
        return failed;
    const uint64_t more = room(handle->seat->disk);
    const uint64_t old = offset < node->now.size ? node->now.size - offset : 0;
    const uint64_t gap = offset > node->now.size ? offset - node->now.size : 0;
    if (more != UINT64_MAX && size > old && size - old + gap > more) {
        if (gap > more || old + more - gap == 0)
            return refuse(handle->seat->disk);
        size = (size_t)(old + more - gap);
    }
    failed =
        sim_file_write(handle->node, handle->seat->machine, data, size, offset);
    *done = size;
    return failed;
}

static int sim_size(struct disk_handle *file, uint64_t *out)
{
    const int failed = begin_on(file->sim, false);
    if (failed == 0)
        *out = file->sim->node->now.size;
    return failed;
}

static int sim_cut(struct disk_handle *file, uint64_t size)
{
    const int failed = begin_on(file->sim, true);
    return failed == 0
               ? sim_file_cut(file->sim->node, file->sim->seat->machine, size)
               : failed;
}

static int sim_sync(struct disk_handle *file)
{
    const int failed = begin_sync(file->sim->seat);
    return failed == 0 ? sim_node_sync(file->sim->node) : failed;
}

/* Locks of the dead do not count. */
static int sim_lock(struct disk_handle *file, bool shared)
{
    struct sim_handle *handle = file->sim;
    const int failed = begin(handle->seat);
    if (failed != 0)
        return failed;
    unlock(handle);
    for (const struct sim_handle *other = handle->node->lockers; other != NULL;
         other = other->next_locker)
        if (!(shared && other->shares) && !ls_host_is_dead(other->seat->host))
            return EWOULDBLOCK;
    handle->shares = shared;
    handle->next_locker = handle->node->lockers;
    handle->node->lockers = handle;
    return 0;
}

static bool sim_is_named(struct disk_handle *file, struct disk *disk,
                         const char *path)
{
    struct place place;
    return begin(seat_of(disk)) == 0 &&
           find(seat_of(disk), path, &place) == 0 &&
           place.node == file->sim->node;
}

/* Names ------------------------------------------------------------------ */

static bool sim_exists(struct disk *disk, const char *path)
{
    struct place place;
    return begin(seat_of(disk)) == 0 &&
           find(seat_of(disk), path, &place) == 0 && place.node != NULL;
}

static int rename_there(const struct sim_seat *seat, const struct place *from,
                        const struct place *to)
{
    if (from->node == NULL)
        return ENOENT;
    if (from->folder == NULL || to->folder == NULL)
        return EBUSY;
    if (from->folder != to->folder)
        return EXDEV;
    if (from->node == to->node)
        return 0;
    if (to->node != NULL && to->node->is_folder)
        return EISDIR;
    if (to->node != NULL && from->node->is_folder)
        return ENOTDIR;
    struct sim_move move = {.n = 2, .names = {{.after = from->node}}};
    memcpy(move.names[0].name, to->name, sizeof to->name);
    memcpy(move.names[1].name, from->name, sizeof from->name);
    return sim_folder_change(from->folder, seat->machine, &move);
}

static int sim_rename(struct disk *disk, const char *from, const char *to)
{
    const struct sim_seat *seat = seat_of(disk);
    struct place source, target;
    int failed = begin_change(seat_of(disk));
    if (failed == 0)
        failed = find(seat, from, &source);
    if (failed == 0)
        failed = find(seat, to, &target);
    return failed == 0 ? rename_there(seat, &source, &target) : failed;
}

static int sim_remove(struct disk *disk, const char *path)
{
    struct place place;
    int failed = begin_change(seat_of(disk));
    if (failed == 0)
        failed = find(seat_of(disk), path, &place);
    if (failed == 0 && place.node == NULL)
        failed = ENOENT;
    if (failed == 0 && place.node->is_folder)
        failed = EISDIR;
    return failed == 0 ? set_name(seat_of(disk), &place, NULL) : failed;
}

static int sim_symlink(struct disk *disk, const char *target, const char *path)
{
    (void)target;
    (void)path;
    return begin(seat_of(disk)) == 0 ? EPERM : EIO;
}

static int sim_read_link(struct disk *disk, const char *path, char *out,
                         size_t size)
{
    struct place place;
    int failed = begin(seat_of(disk));
    (void)out;
    (void)size;
    if (failed == 0)
        failed = find(seat_of(disk), path, &place);
    if (failed == 0)
        failed = place.node == NULL ? ENOENT : EINVAL; /* there are no links */
    return failed;
}

static int sim_make_folder(struct disk *disk, const char *path)
{
    struct place place;
    int failed = begin_change(seat_of(disk));
    if (failed == 0)
        failed = find(seat_of(disk), path, &place);
    if (failed == 0 && place.node != NULL)
        failed = place.node->is_folder ? EEXIST : ENOTDIR;
    return failed == 0 ? create(seat_of(disk), &place, true) : failed;
}

static int sim_remove_folder(struct disk *disk, const char *path)
{
    struct place place;
    int failed = begin_change(seat_of(disk));
    if (failed == 0)
        failed = find_folder(seat_of(disk), path, &place);
    if (failed == 0 && place.folder == NULL)
        failed = EBUSY;
    if (failed == 0 && place.node->entries != NULL)
        failed = ENOTEMPTY;
    return failed == 0 ? set_name(seat_of(disk), &place, NULL) : failed;
}

static int sim_sync_folder(struct disk *disk, const char *path)
{
    struct place place;
    int failed = begin_sync(seat_of(disk));
    if (failed == 0)
        failed = find_folder(seat_of(disk), path, &place);
    if (failed == 0)
        failed = sim_node_sync(place.node);
    if (failed == 0)
        sim_nodes_sweep(seat_of(disk)->disk);
    return failed;
}

static int sim_list(struct disk *disk, const char *path, char **names,
                    size_t *n)
{
    struct place place;
    size_t size = 1, used = 0;
    int failed = begin(seat_of(disk));
    if (failed == 0)
        failed = find_folder(seat_of(disk), path, &place);
    if (failed != 0)
        return failed;
    const struct sim_entry *entry = place.node->entries;
    for (const struct sim_entry *e = entry; e != NULL; e = e->next)
        size += strlen(e->name) + 1;
    char *text = malloc(size);
    if (text == NULL)
        return ENOMEM;
    for (*n = 0; entry != NULL; entry = entry->next, (*n)++) {
        const size_t length = strlen(entry->name) + 1;
        memcpy(text + used, entry->name, length);
        used += length;
    }
    *names = text;
    return 0;
}

/* Unfinished files ------------------------------------------------------- */

static void sim_unique(struct disk *disk, char out[LS_FILE_UNIQUE_MAX])
{
    struct sim_seat *seat = seat_of(disk);
    (void)snprintf(out, LS_FILE_UNIQUE_MAX, "%" PRIu64 "@0@%" PRIu64 "@%.40s",
                   seat->number, seat->n_unique++, seat->machine->name);
}

static bool sim_is_left_over(struct disk *disk, const char *unique)
{
    const struct sim_seat *seat = seat_of(disk)->disk->seats;
    uint64_t number;
    int end = 0;
    if (sscanf(unique, "%" SCNu64 "@0@%*u@%n", &number, &end) != 1 || end == 0)
        return false;
    while (seat != NULL && seat->number != number)
        seat = seat->next;
    return seat != NULL && ls_host_is_dead(seat->host);
}

const struct disk_ops sim_disk_ops = {.open = sim_open,
                                      .close = sim_close,
                                      .read_at = sim_read_at,
                                      .write_at = sim_write_at,
                                      .size = sim_size,
                                      .cut = sim_cut,
                                      .sync = sim_sync,
                                      .lock = sim_lock,
                                      .is_named = sim_is_named,
                                      .exists = sim_exists,
                                      .rename = sim_rename,
                                      .remove = sim_remove,
                                      .symlink = sim_symlink,
                                      .read_link = sim_read_link,
                                      .make_folder = sim_make_folder,
                                      .remove_folder = sim_remove_folder,
                                      .sync_folder = sim_sync_folder,
                                      .list = sim_list,
                                      .unique = sim_unique,
                                      .is_left_over = sim_is_left_over};
