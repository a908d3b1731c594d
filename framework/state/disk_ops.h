/* disk_ops.h - what an implementation of disks fills in.
 *
 * file.c hands each call to the table of the disk that the calling thread's
 * runtime is on. Each returns 0 or an errno value, waits no longer than a disk
 * takes, and is never EINTR. Contracts are those of lockstep/file.h, except for
 * what is said here. Thread: any; one handle: serial. */
#ifndef LOCKSTEP_STATE_DISK_OPS_H
#define LOCKSTEP_STATE_DISK_OPS_H

#include "lockstep/file.h"

/* An open file. */
struct disk_handle {
    const struct disk_ops *ops;
    union {
        int fd;
        struct sim_handle *sim;
    };
};

/* All an implementation needs to begin with. */
struct disk {
    const struct disk_ops *ops;
};

struct disk_ops {
    /* EINVAL: no regular file. The handle's ops are set already. */
    int (*open)(struct disk *disk, struct disk_handle *out, const char *path,
                unsigned flags);
    /* It is gone, whatever is returned. */
    int (*close)(struct disk_handle *file);
    /* *done: at least one byte, but for 0 at the end of the file. */
    int (*read_at)(struct disk_handle *file, void *data, size_t size,
                   uint64_t offset, size_t *done);
    /* *done: at least one byte. size: not 0. */
    int (*write_at)(struct disk_handle *file, const void *data, size_t size,
                    uint64_t offset, size_t *done);
    int (*size)(struct disk_handle *file, uint64_t *out);
    int (*cut)(struct disk_handle *file, uint64_t size);
    int (*sync)(struct disk_handle *file);
    /* EWOULDBLOCK: somebody else has */
    int (*lock)(struct disk_handle *file, bool shared);
    bool (*is_named)(struct disk_handle *file, struct disk *disk,
                     const char *path);

    bool (*exists)(struct disk *disk, const char *path);
    int (*rename)(struct disk *disk, const char *from, const char *to);
    int (*remove)(struct disk *disk, const char *path);
    int (*symlink)(struct disk *disk, const char *target, const char *path);
    /* EINVAL: it is not a link. Cut to `size`, its NUL included. */
    int (*read_link)(struct disk *disk, const char *path, char *out,
                     size_t size);
    /* EEXIST: there is one. */
    int (*make_folder)(struct disk *disk, const char *path);
    int (*remove_folder)(struct disk *disk, const char *path); /* ENOTEMPTY */
    int (*sync_folder)(struct disk *disk, const char *path);
    /* names: own: free() it; *n texts, one behind the NUL of the other. */
    int (*list)(struct disk *disk, const char *path, char **names, size_t *n);

    void (*unique)(struct disk *disk, char out[LS_FILE_UNIQUE_MAX]);
    bool (*is_left_over)(struct disk *disk, const char *unique);
};

/* disk_os.c */
struct disk *disk_os(void);

/* file.c: that of the calling thread. */
struct disk *disk_current(void);
/* As ls_file_open(). other: it fails since there is no regular file, but a
 * folder, a pipe, a socket. */
int file_open_to_read(ls_file **out, const char *path, bool *other);
/* LS_EIO, but for ENOMEM, with the text "what path: " and the reason. */
int disk_error(int os_errno, const char *what, const char *path);

#endif
