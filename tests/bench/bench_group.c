/* Collectives between processes of one host, over tcp: in two rounds, which end
 * alike for all, and in one; in shared memory; and beside them Open MPI over
 * tcp, which yields when idle, in the same run and in turn. Without mpicc and
 * mpirun MPI is left out. RANKS=8 and KIND=3 measure only that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "group_kinds.h"
#include "group_world.h"
#include "lockstep/group.h"
#include "process.h"

#define WAIT_MS 60000

enum side { LOCKSTEP, ONE_ROUND, SHARED, MPI, N_SIDES };
static const char *const sides[N_SIDES] = {"lockstep", "one round", "shared",
                                           "mpi tcp"};

/* --- in a rank's process -------------------------------------------------- */

struct rank {
    ls_node *node;
    ls_group *groups[MPI];
    char *in, *out;
};

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

static void create_node(struct rank *rank, unsigned index, unsigned n,
                        const char *seed)
{
    static const struct ls_group_options groups[MPI] = {
        [LOCKSTEP] = {.name = "two-rounds", .room = LS_GROUP_ROOM_NEVER},
        [ONE_ROUND] = {.name = "one-round",
                       .exit_ready = true,
                       .room = LS_GROUP_ROOM_NEVER},
        [SHARED] = {.name = "shared", .room = LS_GROUP_ROOM_ALWAYS}};
    rank->node = group_rank_node(index, n, seed);
    for (int i = 0; i < MPI; i++)
        must(ls_group_create(&rank->groups[i], rank->node, &groups[i]),
             "group");
    must(ls_node_open(rank->node), "open");
}

static void do_once(void *self, int side, int number)
{
    const struct rank *rank = self;
    const struct group_bench_kind *kind = &group_bench_kinds[number];
    ls_group *group = rank->groups[side];
    int status = LS_OK;
    switch (kind->what) {
    case GROUP_BENCH_BARRIER:
        status = ls_group_barrier(group, WAIT_MS);
        break;
    case GROUP_BENCH_ALL_REDUCE:
        status =
            ls_group_all_reduce(group, rank->in, kind->bytes / sizeof(float),
                                LS_GROUP_F32, LS_GROUP_SUM, WAIT_MS);
        break;
    case GROUP_BENCH_ALL_GATHER:
        status = ls_group_all_gather(group, rank->in, kind->bytes, rank->out,
                                     WAIT_MS);
        break;
    case GROUP_BENCH_BROADCAST:
        status = ls_group_broadcast(group, rank->in, kind->bytes, 0, WAIT_MS);
        if (status == LS_OK)
            status = ls_group_barrier(group, WAIT_MS);
        break;
    }
    must(status, kind->name);
}

/* rank INDEX N [SEED] */
static int run_rank(char **arguments)
{
    struct rank rank = {0};
    const unsigned index = (unsigned)atoi(arguments[0]);
    const unsigned n = (unsigned)atoi(arguments[1]);
    rank.in = calloc(1, GROUP_BENCH_BYTES_MAX);
    rank.out = calloc(n, 1 << 16);
    if (rank.in == NULL || rank.out == NULL)
        bench_fail("memory");
    create_node(&rank, index, n, index == 0 ? NULL : arguments[2]);
    if (index == 0)
        parent_tell(ls_node_endpoint(rank.node));
    must(ls_node_join(rank.node), "join");
    for (int i = 0; i < MPI; i++)
        must(ls_group_form(rank.groups[i], WAIT_MS), "form");
    parent_tell("ready");
    group_rank_serve(&(struct group_rank_work){.once = do_once, .self = &rank});
    for (int i = 0; i < MPI; i++)
        must(ls_group_destroy(&rank.groups[i]), "destroy");
    must(ls_node_destroy(&rank.node), "destroy");
    free(rank.in);
    free(rank.out);
    return 0;
}

/* --- in the program's own ------------------------------------------------- */

static void compare(struct group_world *world, int kind, int n_sides,
                    const struct bench_options *options)
{
    struct group_measured measured[N_SIDES];
    struct bench_figure figures[N_SIDES];
    char name[96];
    for (int i = 0; i < n_sides; i++) {
        measured[i] =
            (struct group_measured){.world = world,
                                    .side = i,
                                    .kind = kind,
                                    .times = group_bench_kinds[kind].times,
                                    .is_mpi = i == MPI};
        (void)snprintf(measured[i].name, sizeof measured[i].name,
                       "%s, %u ranks, %s", group_bench_kinds[kind].name,
                       world->n, sides[i]);
        figures[i] = (struct bench_figure){.name = measured[i].name,
                                           .unit = "us",
                                           .run = group_measure,
                                           .self = &measured[i]};
    }
    bench_run(figures, (size_t)n_sides, options);
    bench_print("group", figures, (size_t)n_sides, options);
    for (int i = 0; i < MPI && n_sides > MPI; i++) {
        (void)snprintf(name, sizeof name, "%s, %u ranks, %s to mpi",
                       group_bench_kinds[kind].name, world->n, sides[i]);
        bench_print_derived("group", name, "x",
                            figures[i].median / figures[MPI].median, options);
    }
}

int main(int argc, char **argv)
{
    static const unsigned sizes[] = {2, 4, 8, 16};
    struct bench_options options;
    process_init();
    if (argc > 3 && strcmp(argv[1], "rank") == 0)
        return run_rank(argv + 2);
    if (argc > 4 && strcmp(argv[1], "mpi") == 0)
        return group_run_mpi(argv + 2);
    bench_options_read(&options, argc, argv);
    const int n_sides = group_has_mpi("bench_group") ? N_SIDES : MPI;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct group_world world = {0};
        if (!bench_is_asked_for("RANKS", (int)sizes[i]))
            continue;
        group_world_start(&world, sizes[i]);
        if (n_sides > MPI)
            group_world_add_mpi(&world, "tcp");
        for (int kind = 0; kind < GROUP_BENCH_KINDS; kind++)
            if (bench_is_asked_for("KIND", kind))
                compare(&world, kind, n_sides, &options);
        group_world_end(&world);
    }
    return 0;
}
