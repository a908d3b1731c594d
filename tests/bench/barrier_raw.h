/* barrier_raw.h - a barrier in two rounds through a leader, on libzmq's sockets
 * and nothing else: no losses, no failures, no second epoch at once. What the
 * barrier is measured against.
 * Thread: owner. */
#ifndef LOCKSTEP_BENCH_BARRIER_RAW_H
#define LOCKSTEP_BENCH_BARRIER_RAW_H

enum raw_kind {
    RAW_ROUTER, /* ROUTER and DEALER: the leader sends to each */
    RAW_PUB,    /* PUSH to the leader, PUB from it: sends once */
    RAW_UP /* XSUB to the leader and PUB from it, which are one connection */
};

struct raw;

/* Open the leader's end, or connect a member's to the leader's endpoints, which
 * are written to, or read from, `endpoints`: three of them.
 * bind: "tcp://127.0.0.1:*", or the first part of ipc addresses. */
struct raw *raw_lead(unsigned n, const char *bind, char (*endpoints)[128]);
struct raw *raw_join(unsigned n, char (*endpoints)[128]);

/* All are there, so that nothing is dropped. Before the first barrier. */
void raw_meet(struct raw *raw);

/* Through the barrier, once. */
void raw_wait(struct raw *raw, enum raw_kind kind);

void raw_close(struct raw *raw);

#endif
