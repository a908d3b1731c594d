/* disk.h - a simulated disk for the hosts of a simulation.
 *
 * Threads of a host that joined a disk have their files (lockstep/file.h)
 * there, and nothing of the operating system's. It holds all in memory, may be
 * shared by several hosts, and outlives their lives. Paths begin at one root,
 * with "/" or without.
 *
 * A host that is killed loses nothing that was written. Its threads, which run
 * on to their ends, get LS_EIO from every call and change nothing; what they
 * had locked is free.
 *
 * A host that loses power loses what it has not synced:
 *   bytes   of each file, each write (of at most 4096 bytes, at their borders)
 *           and each cut since the last sync survives or not, so a later one
 * may survive an earlier one; what is missing reads as before, or as zeros; the
 * last one may be torn names   what was created, renamed and removed in a
 * folder since its last sync survives up to some point, in order; syncing a
 * file says nothing of its name Hosts of one name are lives on one machine:
 * what a killed one has not synced is lost by a later one's loss of power. What
 * another machine looks at is synced first, as shared file systems do.
 *
 * A rename to another folder and links are refused, as some disks do. What is
 * lost follows from the simulation's seed, and each loss is a line of its log.
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

/* options: NULL: all zero. Copied. simulation: borrow.
 * out:     own; NULL after an error; destroy it after the threads that use it
 * have ended, before the simulation. Errors: LS_EINVAL sync_ns is negative;
 * LS_ENOMEM. */
LS_MUST_USE LS_API int ls_disk_create(ls_disk **out, ls_simulation *simulation,
                                      const struct ls_disk_options *options);
LS_API void ls_disk_destroy(ls_disk **disk);

/* Threads of this host have their files here from now on.
 * Errors: LS_EEXIST it has joined one before; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_disk_join(ls_disk *disk, ls_host *host);

/* The host's machine loses power: ls_host_kill(), unless it is dead already,
 * and what was not synced is lost. host: one that joined. */
LS_API void ls_disk_power_cut(ls_disk *disk, ls_host *host);

/* The same, by itself, when the machine is about to do its (n + 1)st operation
 * from now on that changes or syncs something: so that a test can cut after
 * each of them. UINT64_MAX: never. */
LS_API void ls_disk_power_cut_after(ls_disk *disk, ls_host *host, uint64_t n);

/* The disk holds no more than this in all its files: writes come short first,
 * and fail then, as does making a file. What is there stays. UINT64_MAX, as at
 * first: no limit. */
LS_API void ls_disk_fill(ls_disk *disk, uint64_t limit_bytes);

struct ls_disk_stats {
    uint64_t bytes;   /* of all files that have a name, now */
    uint64_t files;   /* those, and folders but the root */
    uint64_t changes; /* operations that changed something */
    uint64_t syncs;   /* of files and folders */
    uint64_t power_cuts;
    uint64_t lost_writes; /* and cuts, in whole or in part */
    uint64_t lost_names;
    uint64_t refused; /* operations: the disk was full */
};
LS_API void ls_disk_stats(const ls_disk *disk, struct ls_disk_stats *out);

#ifdef __cplusplus
}
#endif

#endif
