/* group_kinds.h - what bench_group measures, of Lockstep and of MPI. */
#ifndef GROUP_KINDS_H
#define GROUP_KINDS_H

#include <stddef.h>

enum group_bench_what {
    GROUP_BENCH_BARRIER,
    GROUP_BENCH_ALL_REDUCE, /* of floats, in place */
    GROUP_BENCH_ALL_GATHER,
    GROUP_BENCH_BROADCAST /* and a barrier */
};

struct group_bench_kind {
    const char *name;
    enum group_bench_what what;
    size_t bytes; /* of each rank */
    int times;    /* in a round over sockets */
};

#define GROUP_BENCH_BYTES_MAX ((size_t)4 << 20)
#define GROUP_BENCH_KINDS     6

static const struct group_bench_kind group_bench_kinds[GROUP_BENCH_KINDS] = {
    {"barrier", GROUP_BENCH_BARRIER, 0, 200},
    {"all_reduce 8 B", GROUP_BENCH_ALL_REDUCE, 8, 200},
    {"all_reduce 4 KiB", GROUP_BENCH_ALL_REDUCE, 4096, 100},
    {"all_reduce 4 MiB", GROUP_BENCH_ALL_REDUCE, 4 << 20, 5},
    {"all_gather 4 KiB", GROUP_BENCH_ALL_GATHER, 4096, 100},
    {"broadcast 4 MiB", GROUP_BENCH_BROADCAST, 4 << 20, 5},
};

#endif
