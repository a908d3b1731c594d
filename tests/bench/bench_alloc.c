/* Collectives in shared memory, between processes of one host: of memory that
 * ls_group_alloc() gave, which the others read where it lies, and of any other,
 * which is copied first. In one run and in turn. RANKS=4 and KIND=3 measure
 * only that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "group_world.h"
#include "lockstep/group.h"
#include "process.h"

#define WAIT_MS   60000
#define BYTES_MAX ((size_t)16 << 20)

enum side { PLAIN, ALLOCATED, N_SIDES };
static const char *const sides[N_SIDES] = {"plain", "allocated"};

enum what { ALL_REDUCE, BROADCAST, ALL_GATHER, N_WHATS };
static const char *const whats[N_WHATS] = {"all_reduce", "broadcast",
                                           "all_gather"};

static const struct size {
    const char *name;
    size_t bytes; /* of each rank */
    int times;    /* in a round */
} sizes[] = {{"64 KiB", (size_t)64 << 10, 200},
             {"1 MiB", (size_t)1 << 20, 20},
             {"16 MiB", BYTES_MAX, 3}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* --- in a rank's process -------------------------------------------------- */

struct rank {
    ls_node *node;
    ls_group *group;
    void *in[N_SIDES], *out;
};

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

static void meet(void *self)
{
    const struct rank *rank = self;
    must(ls_group_barrier(rank->group, WAIT_MS), "barrier");
}

static void do_once(void *self, int side, int kind)
{
    const struct rank *rank = self;
    const int what = kind / N_SIZES;
    const size_t bytes = sizes[kind % N_SIZES].bytes;
    void *const in = rank->in[side];
    int status = LS_OK;
    if (what == ALL_REDUCE)
        status = ls_group_all_reduce(rank->group, in, bytes / sizeof(float),
                                     LS_GROUP_F32, LS_GROUP_MEAN, WAIT_MS);
    else if (what == BROADCAST)
        status = ls_group_broadcast(rank->group, in, bytes, 0, WAIT_MS);
    else
        status =
            ls_group_all_gather(rank->group, in, bytes, rank->out, WAIT_MS);
    must(status, whats[what]);
}

static void create_node(struct rank *rank, unsigned index, unsigned n,
                        const char *seed)
{
    static const struct ls_group_options with = {.room = LS_GROUP_ROOM_ALWAYS};
    rank->node = group_rank_node(index, n, seed);
    must(ls_group_create(&rank->group, rank->node, &with), "group");
    must(ls_node_open(rank->node), "open");
}

/* rank INDEX N [SEED] */
static int run_rank(char **arguments)
{
    struct rank rank = {0};
    const unsigned index = (unsigned)atoi(arguments[0]);
    const unsigned n = (unsigned)atoi(arguments[1]);
    create_node(&rank, index, n, index == 0 ? NULL : arguments[2]);
    if (index == 0)
        parent_tell(ls_node_endpoint(rank.node));
    must(ls_node_join(rank.node), "join");
    must(ls_group_form(rank.group, WAIT_MS), "form");
    rank.in[PLAIN] = calloc(1, BYTES_MAX);
    rank.out = calloc(n, BYTES_MAX);
    if (rank.in[PLAIN] == NULL || rank.out == NULL)
        bench_fail("memory");
    must(ls_group_alloc(rank.group, &rank.in[ALLOCATED], BYTES_MAX), "alloc");
    parent_tell("ready");
    group_rank_serve(&(struct group_rank_work){
        .once = do_once, .begin = meet, .self = &rank});
    must(ls_group_free(rank.group, rank.in[ALLOCATED]), "free");
    must(ls_group_destroy(&rank.group), "destroy");
    must(ls_node_destroy(&rank.node), "destroy");
    free(rank.in[PLAIN]);
    free(rank.out);
    return 0;
}

/* --- in the program's own ------------------------------------------------- */

static void compare(struct group_world *world, int kind,
                    const struct bench_options *options)
{
    struct group_measured measured[N_SIDES];
    struct bench_figure figures[N_SIDES];
    char name[96];
    for (int i = 0; i < N_SIDES; i++) {
        measured[i] =
            (struct group_measured){.world = world,
                                    .side = i,
                                    .kind = kind,
                                    .times = sizes[kind % N_SIZES].times};
        (void)snprintf(measured[i].name, sizeof measured[i].name,
                       "%s %s, %u ranks, %s", whats[kind / N_SIZES],
                       sizes[kind % N_SIZES].name, world->n, sides[i]);
        figures[i] = (struct bench_figure){.name = measured[i].name,
                                           .unit = "us",
                                           .run = group_measure,
                                           .self = &measured[i]};
    }
    bench_run(figures, N_SIDES, options);
    bench_print("alloc", figures, N_SIDES, options);
    (void)snprintf(name, sizeof name, "%s %s, %u ranks, allocated to plain",
                   whats[kind / N_SIZES], sizes[kind % N_SIZES].name, world->n);
    bench_print_derived("alloc", name, "x",
                        figures[ALLOCATED].median / figures[PLAIN].median,
                        options);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    process_init();
    if (argc > 3 && strcmp(argv[1], "rank") == 0)
        return run_rank(argv + 2);
    bench_options_read(&options, argc, argv);
    for (unsigned n = 2; n <= 4; n += 2) {
        struct group_world world = {0};
        if (!bench_is_asked_for("RANKS", (int)n))
            continue;
        group_world_start(&world, n);
        for (int kind = 0; kind < N_WHATS * N_SIZES; kind++)
            if (bench_is_asked_for("KIND", kind))
                compare(&world, kind, &options);
        group_world_end(&world);
    }
    return 0;
}
