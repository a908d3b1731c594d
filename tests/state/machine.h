/* machine.h - lives of machines on a simulated disk: each a host, and a
 * function that runs on a thread of it. */
#ifndef STATE_MACHINE_H
#define STATE_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/disk.h"
#include "lockstep/file.h"
#include "test.h"

struct room {
    ls_simulation *simulation;
    ls_disk *disk;
    ls_host *host; /* of the life that runs, or ran last */
    void (*fn)(struct room *room);
    void *self;
    uint64_t n; /* for whoever calls */
};

static inline void room_main(void *arg)
{
    struct room *room = arg;
    room->fn(room);
}

static inline ls_host *room_host(struct room *room, const char *name)
{
    ls_host *host;
    assert_int_equal(ls_host_create(&host, room->simulation, name), LS_OK);
    assert_int_equal(ls_disk_join(room->disk, host), LS_OK);
    return host;
}

/* Run fn to its end, in a new life of a machine, or in the one that is `on`. */
static inline void room_live_on(struct room *room, ls_host *on,
                                void (*fn)(struct room *room))
{
    struct room inner = *room; /* fn sees its own host */
    ls_thread *thread;
    inner.fn = fn;
    inner.host = on;
    assert_int_equal(ls_thread_spawn(ls_host_runtime(on), &thread, "life",
                                     room_main, &inner),
                     LS_OK);
    assert_int_equal(ls_thread_join(&thread, LS_FOREVER), LS_OK);
    room->host = on;
    room->n = inner.n;
}

static inline void room_live(struct room *room, const char *name,
                             void (*fn)(struct room *room))
{
    room_live_on(room, room_host(room, name), fn);
}

/* Run fn outside of all hosts. */
static inline uint64_t room_run(uint64_t seed, void (*fn)(struct room *room),
                                void *self)
{
    struct room room = {.fn = fn, .self = self};
    const struct ls_simulation_options options = {
        .seed = seed, .limit_ns = INT64_C(100000) * LS_NS_PER_S};
    assert_int_equal(ls_simulation_create(&room.simulation, &options), LS_OK);
    assert_int_equal(ls_disk_create(&room.disk, room.simulation, NULL), LS_OK);
    assert_int_equal(ls_simulation_run(room.simulation, room_main, &room),
                     LS_OK);
    const uint64_t hash = ls_simulation_hash(room.simulation);
    ls_disk_destroy(&room.disk);
    assert_null(room.disk);
    ls_simulation_destroy(&room.simulation);
    return hash;
}

static inline struct ls_disk_stats room_stats(const struct room *room)
{
    struct ls_disk_stats stats;
    ls_disk_stats(room->disk, &stats);
    return stats;
}

/* The text of a file; "-": there is none. Zeros are shown as "0". */
static inline const char *room_read(const char *path, char out[64])
{
    void *data;
    size_t size;
    const int status = ls_file_read(path, 63, &data, &size);
    if (status == LS_ENOENT)
        return "-";
    assert_int_equal(status, LS_OK);
    memcpy(out, data, size);
    for (size_t i = 0; i < size; i++)
        if (out[i] == '\0')
            out[i] = '0';
    out[size] = '\0';
    free(data);
    return out;
}

static inline void room_write(const char *path, const char *text, bool sync)
{
    ls_file *file;
    assert_int_equal(
        ls_file_open(&file, path,
                     LS_FILE_WRITE | LS_FILE_CREATE | LS_FILE_EMPTY),
        LS_OK);
    assert_int_equal(ls_file_write_at(file, text, strlen(text), 0), LS_OK);
    if (sync)
        assert_int_equal(ls_file_sync(file), LS_OK);
    assert_int_equal(ls_file_close(&file), LS_OK);
    if (sync)
        assert_int_equal(ls_file_sync_name(path), LS_OK);
}

#endif
