/* store_home.h - the node that keeps the bytes of a store on the bus.
 *
 * It holds all values in memory, max_bytes of them at most; what comes beyond
 * is refused, and counted. Bytes are kept as they came, and given as they are
 * kept: several at once are copied together. What is put with `keep` is also
 * written to a folder, by a thread of its own, and is there again in the next
 * life.
 *
 * Life: open before ls_node_start(); close after ls_rpc_close(), best after
 * ls_node_stop().
 * Thread: owner. */
#ifndef LOCKSTEP_STORE_HOME_H
#define LOCKSTEP_STORE_HOME_H

#include "lockstep/call.h"

struct store_home;

struct store_home_options {
    ls_node *node;    /* borrow */
    ls_rpc *calls;    /* borrow; its */
    size_t max_bytes; /* of all values; 0: default 1 GiB */
    const char *keep; /* a folder; NULL: `keep` means nothing. Copied */
};

struct store_home_stats {
    size_t names;
    uint64_t bytes;       /* of all values */
    uint64_t puts, drops; /* done */
    uint64_t got, misses; /* names: given to who asked; not there */
    uint64_t refused;     /* puts: no room */
    uint64_t malformed;   /* calls that break the format */
    uint64_t failed;      /* gets and writes that failed */
};

/* out:    own; written on success only; give it to store_home_close().
 * Errors: those of ls_rpc_serve(), ls_thread_spawn(), and store_files_open()
 *         for `keep`; LS_EPROTO a kept value is damaged: the text names the
 *         file; LS_ENOMEM. */
LS_MUST_USE int store_home_open(struct store_home **out,
                                const struct store_home_options *options);
void store_home_close(struct store_home **home);

/* Any thread. */
void store_home_stats(struct store_home *home, struct store_home_stats *out);

#endif
