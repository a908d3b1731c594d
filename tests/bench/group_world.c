#include "group_world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool group_has_mpi(const char *program)
{
    if (access(GROUP_MPI, X_OK) == 0)
        return true;
    (void)fprintf(stderr, "%s: MPI is left out: no mpicc when this was built\n",
                  program);
    return false;
}

int group_run_mpi(char **arguments)
{
    char transports[32];
    (void)snprintf(transports, sizeof transports, "%s,self", arguments[2]);
    char *const command[] = {"mpirun",
                             "-n",
                             arguments[0],
                             "--allow-run-as-root",
                             "--oversubscribe",
                             "--bind-to",
                             "none",
                             "--mca",
                             "btl",
                             transports,
                             "--mca",
                             "btl_tcp_if_include",
                             "lo",
                             "--mca",
                             "mpi_yield_when_idle",
                             "1",
                             GROUP_MPI,
                             arguments[1],
                             NULL};
    execvp(command[0], command);
    return 1;
}

ls_node *group_rank_node(unsigned index, unsigned n, const char *seed)
{
    struct ls_node_options options;
    ls_node *node;
    ls_node_options_init(&options);
    options.job = bench_job();
    options.id = index;
    options.world_size = n;
    options.start_timeout_ms = 60000;
    options.attach = &seed;
    options.n_attach = seed == NULL ? 0 : 1;
    if (ls_node_create(&node, &options) != LS_OK)
        bench_fail("create");
    return node;
}

void group_rank_serve(const struct group_rank_work *work)
{
    char line[PROCESS_LINE_MAX];
    int side, kind, times;
    while (parent_hear(line)) {
        if (sscanf(line, "%d %d %d", &side, &kind, &times) != 3)
            bench_fail("an order");
        work->once(work->self, side, kind);
        if (work->begin != NULL)
            work->begin(work->self);
        const int64_t start = bench_now();
        for (int i = 0; i < times; i++)
            work->once(work->self, side, kind);
        (void)snprintf(line, sizeof line, "%" PRId64,
                       (bench_now() - start) / times);
        parent_tell(line);
    }
}

void group_world_start(struct group_world *world, unsigned n)
{
    char index[16], size[16], seed[PROCESS_LINE_MAX], line[PROCESS_LINE_MAX];
    world->n = n;
    (void)snprintf(size, sizeof size, "%u", n);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(index, sizeof index, "%u", i);
        const char *const arguments[] = {"rank", index, size,
                                         i == 0 ? NULL : seed, NULL};
        process_start(&world->ranks[i], arguments);
        if (i == 0)
            process_hear(&world->ranks[0], seed);
    }
    for (unsigned i = 0; i < n; i++)
        process_hear(&world->ranks[i], line);
}

void group_world_add_mpi(struct group_world *world, const char *transport)
{
    char path[256], size[16], folder[200];
    (void)snprintf(folder, sizeof folder, "%s", bench_folder());
    (void)snprintf(size, sizeof size, "%u", world->n);
    for (unsigned i = 0; i < world->n; i++) {
        (void)snprintf(path, sizeof path, "%s/mpi-%u", folder, i);
        (void)unlink(path);
        if (mkfifo(path, 0600) != 0)
            bench_fail("a pipe for MPI");
    }
    const char *const arguments[] = {"mpi", size, folder, transport, NULL};
    process_start(&world->mpi, arguments);
    world->has_mpi = true;
    for (unsigned i = 0; i < world->n; i++) {
        (void)snprintf(path, sizeof path, "%s/mpi-%u", folder, i);
        world->orders[i] = fopen(path, "we");
        if (world->orders[i] == NULL)
            bench_fail("a pipe to MPI");
    }
}

static double measure_mpi(struct group_world *world, int kind, int times)
{
    char line[PROCESS_LINE_MAX];
    for (unsigned i = 0; i < world->n; i++) {
        (void)fprintf(world->orders[i], "%d %d\n", kind, times);
        (void)fflush(world->orders[i]);
    }
    process_hear(&world->mpi, line);
    return strtod(line, NULL) / 1000;
}

double group_measure(void *measured)
{
    const struct group_measured *m = measured;
    struct group_world *world = m->world;
    char line[PROCESS_LINE_MAX];
    double most = 0;
    if (m->is_mpi)
        return measure_mpi(world, m->kind, m->times);
    (void)snprintf(line, sizeof line, "%d %d %d", m->side, m->kind, m->times);
    for (unsigned i = 0; i < world->n; i++)
        process_tell(&world->ranks[i], line);
    for (unsigned i = 0; i < world->n; i++) {
        process_hear(&world->ranks[i], line);
        const double us = strtod(line, NULL) / 1000;
        most = us > most ? us : most;
    }
    return most;
}

void group_world_end(struct group_world *world)
{
    for (unsigned i = 0; i < world->n; i++) {
        process_end(&world->ranks[i]);
        if (world->has_mpi)
            (void)fclose(world->orders[i]);
    }
    if (world->has_mpi)
        process_end(&world->mpi);
}
