/* What bench_group compares with: the same operations of MPI. Each rank waits
 * for its orders at a pipe of its own, so that none of them polls while others
 * are measured: FOLDER/mpi-RANK; rank 0 answers on its standard output. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../group_kinds.h"

static void run(const struct group_bench_kind *kind, char *in, char *out)
{
    switch (kind->what) {
    case GROUP_BENCH_BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case GROUP_BENCH_ALL_REDUCE:
        MPI_Allreduce(MPI_IN_PLACE, in, (int)(kind->bytes / sizeof(float)),
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case GROUP_BENCH_ALL_GATHER:
        MPI_Allgather(in, (int)kind->bytes, MPI_BYTE, out, (int)kind->bytes,
                      MPI_BYTE, MPI_COMM_WORLD);
        break;
    case GROUP_BENCH_BROADCAST:
        MPI_Bcast(in, (int)kind->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
}

int main(int argc, char **argv)
{
    char path[512];
    int rank, size, number, times;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/mpi-%d", argv[1], rank);
    char *in = calloc(1, GROUP_BENCH_BYTES_MAX);
    char *out = calloc((size_t)size, 1 << 16);
    if (in == NULL || out == NULL)
        return 1;
    FILE *orders = fopen(path, "r");
    while (orders != NULL && fscanf(orders, "%d %d", &number, &times) == 2) {
        const struct group_bench_kind *kind = &group_bench_kinds[number];
        run(kind, in, out);
        const double start = MPI_Wtime();
        for (int i = 0; i < times; i++)
            run(kind, in, out);
        double took = (MPI_Wtime() - start) / times, most;
        MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%.0f\n", 1e9 * most);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
