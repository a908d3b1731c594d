/* disk.h - a simulated disk for the hosts of a simulation.
 *
 * Threads of a host that has joined a disk have their files (lockstep/file.h)
 * there, and none of the operating system's. A disk is held in memory, may be
 * shared by several hosts, and outlives their lives. Paths begin at one root,
 * with or without "/".
 *
 * A host that is killed loses nothing that was written. Its threads, which run
 * until they end, get LS_EIO from every call and change nothing; their locks
 * are released.
 *
 * A host that loses power loses what it has not synced:
 *   bytes   of each file, each write (split at multiples of 4096 bytes) and
 *           each cut since the last sync survives or not, so a later one may
 *           survive an earlier one; a lost write reads as the old bytes, or as
 *           zeros; the last one may be torn
 *   names   of the names created, renamed and removed in a folder since its
 *           last sync, a prefix survives, in order; syncing a file does not
 *           sync its name
 * Hosts of one name are lives on one machine: a later life's loss of power
 * loses what a killed one has not synced. What another machine looks at is
 * synced first, as shared file systems do.
 *
 * Links, and renames to another folder, are refused, as on some disks. The
 * losses follow from the simulation's seed, and each is a line in its log.
 * Thread: that of the simulation.
 * Source: docs/runtime.md. */
#ifndef LOCKSTEP_DISK_H
#define LOCKSTEP_DISK_H

#include "lockstep/simulation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_disk ls_disk;

struct ls_disk_options {
    int64_t sync_ns; /* a sync takes 0 … this; 0: default 2 ms */
};

/* options: NULL: all zero. Copied.
 * simulation: borrow.
 * out:    own; NULL after an error; destroy it after the threads that use it
 *         have ended, before the simulation.
 * Errors: LS_EINVAL sync_ns is negative; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_disk_create(ls_disk **out, ls_simulation *simulation,
                                      const struct ls_disk_options *options);
LS_API void ls_disk_destroy(ls_disk **disk);

/* From now on, threads of this host have their files here.
 * Errors: LS_EEXIST it has already joined one; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_disk_join(ls_disk *disk, ls_host *host);

/* The host's machine loses power: ls_host_kill(), unless it is dead already,
 * and all unsynced data is lost. host: one that has joined. */
LS_API void ls_disk_power_cut(ls_disk *disk, ls_host *host);

/* The same, automatically, just before the machine's (n + 1)st operation from
 * now that changes or syncs something, so that a test can cut after each of
 * them. UINT64_MAX: never. */
LS_API void ls_disk_power_cut_after(ls_disk *disk, ls_host *host, uint64_t n);

/* Limit the total size of all files. When the disk is full, writes are first
 * cut short, then fail, as does creating a file. Existing data stays.
 * UINT64_MAX, the default: no limit. */
LS_API void ls_disk_fill(ls_disk *disk, uint64_t limit_bytes);

struct ls_disk_stats {
    uint64_t bytes;   /* of all named files, now */
    uint64_t files;   /* those files, and all folders but the root */
    uint64_t changes; /* operations that changed something */
    uint64_t syncs;   /* of files and folders */
    uint64_t power_cuts;
    uint64_t lost_writes; /* and cuts, wholly or partly */
    uint64_t lost_names;
    uint64_t refused; /* operations: the disk was full */
};
LS_API void ls_disk_stats(const ls_disk *disk, struct ls_disk_stats *out);

#ifdef __cplusplus
}
#endif

#endif
