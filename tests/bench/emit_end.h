/* emit_end.h - the two ends of a measured pair: Lockstep's, and raw libzmq's.
 *
 * An end opens (binds), is told of the other's endpoint, runs, and closes. End
 * 0 sends. Whoever sees the first and the last of the events says when. */
#ifndef LOCKSTEP_BENCH_EMIT_END_H
#define LOCKSTEP_BENCH_EMIT_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMIT_ENDPOINT_MAX 256
#define EMIT_PATIENCE_MS  20000           /* nothing for so long: it failed */
#define EMIT_ZERO_COPY    (1024u * 1024u) /* from this size on, no copy */

enum emit_way {
    EMIT_BUS,         /* Lockstep */
    EMIT_FAR,         /* Lockstep, over the connection: shared_bytes 0 */
    EMIT_RAW,         /* libzmq, whoever receives handles */
    EMIT_RAW_HANDLER, /* libzmq, one thread receives, another handles */
    EMIT_QUEUE        /* local only: ls_queue */
};

struct emit_job {
    enum emit_way way;
    bool trip; /* there and back, one after the other; else one way */
    size_t size;
    long n;
    unsigned n_receivers;
};

/* ns; 0: this end does not know. */
struct emit_span {
    int64_t from, to;
};

struct emit_ops {
    /* bind: where to; endpoint: EMIT_ENDPOINT_MAX bytes for what it became.
     * peer: of end 0; NULL for end 0 itself. */
    void *(*open)(const struct emit_job *job, unsigned id, const char *bind,
                  const char *peer, char *endpoint);
    struct emit_span (*run)(void *end, const char *peer);
    void (*close)(void *end);
};
extern const struct emit_ops emit_bus, emit_raw;

/* Within a process: from one thread to another. */
struct emit_span emit_local(const struct emit_job *job);

#endif
