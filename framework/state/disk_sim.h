/* disk_sim.h - the inside of a simulated disk: what its files share.
 *
 * Each file and folder is as processes see it, and remembers what it would be
 * had its changes since the last sync not happened. Those are of one machine at
 * a time, since what another one looks at is synced first. */
#ifndef LOCKSTEP_STATE_DISK_SIM_H
#define LOCKSTEP_STATE_DISK_SIM_H

#include "lockstep/disk.h"

#include "disk_ops.h"

#define SIM_NAME_MAX  255
#define SIM_PAGE_SIZE 4096

/* All lives of hosts of one name. */
struct sim_machine {
    struct sim_machine *next;
    uint64_t until_cut; /* changes that are left; UINT64_MAX: no end */
    char name[];
};

/* A host that has joined; what its runtime has for a disk. */
struct sim_seat {
    struct disk base; /* first */
    struct sim_seat *next;
    ls_disk *disk;
    ls_host *host;               /* borrow */
    struct sim_machine *machine; /* borrow */
    uint64_t number;             /* from 1 */
    uint64_t n_unique;
};

struct sim_bytes {
    unsigned char *data; /* own */
    size_t size, capacity;
};

/* A write, or a cut, that was not synced. */
struct sim_change {
    struct sim_change *next;
    bool is_cut;
    uint64_t offset; /* of a cut: the size */
    size_t size;
    unsigned char data[];
};

struct sim_entry {
    struct sim_entry *next;
    struct sim_node *node; /* uses it */
    char name[SIM_NAME_MAX + 1];
};

/* What a name stood for, and stands for; NULL: for nothing. Both are used. */
struct sim_renaming {
    struct sim_node *before, *after;
    char name[SIM_NAME_MAX + 1];
};

/* A change of names that was not synced. */
struct sim_move {
    struct sim_move *earlier;
    size_t n; /* of names: 1, or 2 of a rename */
    struct sim_renaming names[2];
};

struct sim_node {
    struct sim_node *next; /* of the disk */
    unsigned users;        /* entries, moves, handles */
    unsigned n_names;      /* entries */
    bool is_folder;
    const struct sim_machine *owner;  /* of what was not synced */
    struct sim_handle *lockers;       /* borrow */
    struct sim_bytes now, synced;     /* of a file */
    struct sim_change *first, **last; /* own */
    struct sim_entry *entries;        /* own; of a folder, oldest first */
    struct sim_move *latest;          /* own */
};

struct sim_handle {
    struct sim_seat *seat; /* borrow */
    struct sim_node *node; /* uses it */
    bool writes;
    bool shares;                    /* as one of the node's lockers */
    struct sim_handle *next_locker; /* borrow */
};

struct ls_disk {
    ls_simulation *simulation; /* borrow */
    struct ls_rng rng;
    int64_t sync_ns;
    uint64_t limit;
    struct sim_seat *seats;       /* own */
    struct sim_machine *machines; /* own */
    struct sim_node *nodes;       /* own */
    struct sim_node *root;        /* borrow */
    uint64_t n_seats;
    struct ls_disk_stats stats;
};

/* disk_sim_ops.c */
extern const struct disk_ops sim_disk_ops;

/* disk_sim_node.c. Here and below, an int is 0 or an errno value. */
/* NULL: no memory. */
struct sim_node *sim_node_create(ls_disk *disk, bool is_folder);
void sim_node_use(struct sim_node *node);
void sim_node_let_go(struct sim_node *node);
/* Free those that nobody uses. */
void sim_nodes_sweep(ls_disk *disk);
void sim_nodes_free(ls_disk *disk);
/* Before this machine looks at it: what is of another one is synced. */
int sim_node_look(struct sim_node *node, const struct sim_machine *machine);
int sim_node_sync(struct sim_node *node);
/* What a machine has not synced is lost, or not. */
void sim_nodes_lose(ls_disk *disk, const struct sim_machine *machine);
/* The run is void, and ends as that. */
void sim_disk_no_memory(ls_disk *disk);

/* disk_sim_file.c */
int sim_file_write(struct sim_node *node, const struct sim_machine *machine,
                   const void *data, size_t size, uint64_t offset);
int sim_file_cut(struct sim_node *node, const struct sim_machine *machine,
                 uint64_t size);
int sim_file_sync(struct sim_node *node);
void sim_file_lose(ls_disk *disk, struct sim_node *node);
void sim_file_fini(struct sim_node *node);

/* disk_sim_folder.c */
/* NULL: there is none. */
struct sim_node *sim_folder_find(const struct sim_node *folder,
                                 const char *name);
/* Give names to nodes (`after`), or take them away (NULL), all of them as one;
 * `before` is filled in. */
int sim_folder_change(struct sim_node *folder,
                      const struct sim_machine *machine,
                      struct sim_move *change);
void sim_folder_sync(struct sim_node *folder);
void sim_folder_lose(ls_disk *disk, struct sim_node *folder);
void sim_folder_fini(struct sim_node *folder);

#endif
