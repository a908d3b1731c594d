/* store_home.h - what one node keeps of a store on the bus.
 *
 * It holds values in memory, max_bytes of them at most; what comes beyond is
 * refused, and counted. Bytes are kept as they came, and given as they are
 * kept; only several that are asked for in one call are copied together. What
 * is put with `keep` is also written to a folder, by a thread of its own, and
 * is there again in the next life. Data is told of to one coordinator: when
 * that is lost, nobody will ask for it any more, and it goes.
 *
 * Life: open before ls_node_start(); close after ls_rpc_close(), best after
 * ls_node_stop().
 * Thread: owner, unless a function says otherwise. */
#ifndef LOCKSTEP_STORE_HOME_H
#define LOCKSTEP_STORE_HOME_H

#include "store_bus.h"
#include "store_calls.h"
#include "store_table.h"

struct store_home;

struct store_home_options {
    ls_node *node;        /* borrow */
    ls_rpc *calls;        /* borrow; its */
    size_t max_bytes;     /* of all values; 0: default 1 GiB */
    uint32_t coordinator; /* id */
    const char *keep;     /* a folder; NULL: `keep` means nothing. Copied */
};

/* out:    own; written on success only; give it to store_home_close().
 * Errors: those of ls_rpc_serve(), ls_node_on_member(), ls_thread_spawn(),
 *         and store_files_open() for `keep`; LS_EPROTO a kept value is damaged:
 *         the text names the file; LS_ENOMEM. Some calls may be served by then,
 *         so close them at once. */
LS_MUST_USE int store_home_open(struct store_home **out,
                                const struct store_home_options *options);
void store_home_close(struct store_home **home);

/* What this node asks of itself. Any thread; with `keep`, one that may wait for
 * a disk. Errors: as store.h has them.
 * body: moved, whatever is returned. */
LS_MUST_USE int store_home_put(struct store_home *home,
                               const struct store_put_call *put,
                               struct ls_body *body);
LS_MUST_USE int store_home_get(struct store_home *home,
                               const struct store_range *part,
                               struct store_blob *out);
LS_MUST_USE int store_home_drop(struct store_home *home, const char *name);

/* Any thread. */
void store_home_stats(struct store_home *home, struct store_home_stats *out);

#endif
