/* Rooms: barriers and collectives between processes of one host in shared
 * memory, beside Open MPI in shared memory, which yields when idle, in the same
 * run and in turn; barriers also with two busy processes beside. Without mpicc
 * and mpirun MPI is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "fold.h"
#include "group_kinds.h"
#include "group_world.h"
#include "lockstep/room.h"
#include "process.h"

#define WAIT_MS 60000
#define BUSY    2
/* Beside them, in a round: so many times as many as of MPI. */
#define BUSY_TIMES 20

enum side { ROOM, BUFFER, MPI, N_SIDES };
static const char *const sides[N_SIDES] = {"room", "buffers in the room",
                                           "mpi shm"};

/* --- in a member's process ------------------------------------------------ */

struct member {
    ls_node *node;
    ls_room *room;
    ls_room_buffer *buffer;
    char *in, *out;
};

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

static void add_f32(const void *self, void *to, const void *left,
                    const void *right, size_t count)
{
    (void)self;
    fold_two(LS_GROUP_F32, LS_GROUP_SUM, to, left, right, count);
}

static const struct ls_room_fold sum = {.width = sizeof(float), .two = add_f32};

static void do_once(void *self, int side, int number)
{
    const struct member *m = self;
    const struct group_bench_kind *kind = &group_bench_kinds[number];
    const size_t count = kind->bytes / sizeof(float);
    const void *result;
    int status = LS_OK;
    switch (kind->what) {
    case GROUP_BENCH_BARRIER:
        status = ls_room_barrier(m->room, "bench", WAIT_MS);
        break;
    case GROUP_BENCH_ALL_REDUCE:
        status = side == BUFFER
                     ? ls_room_fold_buffer(m->room, "bench", &sum, m->buffer,
                                           count, &result, WAIT_MS)
                     : ls_room_all_reduce(m->room, "bench", &sum, m->in, m->in,
                                          count, WAIT_MS);
        break;
    case GROUP_BENCH_ALL_GATHER:
        status =
            ls_room_all_gather(m->room, "bench", m->in, kind->bytes, m->out,
                               (size_t)GROUP_RANKS_MAX << 16, NULL, WAIT_MS);
        break;
    case GROUP_BENCH_BROADCAST: /* it ends with a barrier */
        status =
            ls_room_broadcast(m->room, "bench", 0, m->in, kind->bytes, WAIT_MS);
        break;
    }
    must(status, kind->name);
}

/* member INDEX N FOLDER [SEED] */
static int run_member(char **arguments)
{
    struct member m = {0};
    struct ls_room_options options;
    const unsigned index = (unsigned)atoi(arguments[0]);
    const unsigned n = (unsigned)atoi(arguments[1]);
    ls_room_options_init(&options);
    options.folder = arguments[2];
    m.in = calloc(1, GROUP_BENCH_BYTES_MAX);
    m.out = calloc(GROUP_RANKS_MAX, 1 << 16);
    if (m.in == NULL || m.out == NULL)
        bench_fail("memory");
    m.node = group_rank_node(index, n, index == 0 ? NULL : arguments[3]);
    must(ls_node_open(m.node), "open");
    if (index == 0)
        parent_tell(ls_node_endpoint(m.node));
    must(ls_node_join(m.node), "join");
    must(ls_room_create(&m.room, m.node, &options), "room");
    must(ls_room_alloc(m.room, &m.buffer, GROUP_BENCH_BYTES_MAX, WAIT_MS),
         "alloc");
    parent_tell("ready");
    group_rank_serve(&(struct group_rank_work){.once = do_once, .self = &m});
    ls_room_destroy(&m.room);
    must(ls_node_destroy(&m.node), "destroy");
    free(m.in);
    free(m.out);
    return 0;
}

/* busy: until it is killed */
_Noreturn static void run_busy(void)
{
    volatile unsigned n = 0;
    parent_tell("busy");
    for (;;)
        n++;
}

/* --- in the program's own ------------------------------------------------- */

static void start_members(struct group_world *world, unsigned n)
{
    char index[16], size[16], seed[PROCESS_LINE_MAX], line[PROCESS_LINE_MAX];
    world->n = n;
    (void)snprintf(size, sizeof size, "%u", n);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(index, sizeof index, "%u", i);
        const char *const arguments[] = {
            "member", index, size, bench_folder(), i == 0 ? NULL : seed, NULL};
        process_start(&world->ranks[i], arguments);
        if (i == 0)
            process_hear(&world->ranks[0], seed);
    }
    for (unsigned i = 0; i < n; i++)
        process_hear(&world->ranks[i], line);
}

static bool is_measured(int side, int kind, int n_sides)
{
    const struct group_bench_kind *k = &group_bench_kinds[kind];
    return side < n_sides &&
           (side != BUFFER || (k->what == GROUP_BENCH_ALL_REDUCE &&
                               k->bytes == GROUP_BENCH_BYTES_MAX));
}

/* Rounds take 150 ms and more: on which cores the members happen to wake, five
 * on one and three on the other, is evened out within some tens of them. */
static int times_of(int kind, unsigned n)
{
    const struct group_bench_kind *k = &group_bench_kinds[kind];
    const unsigned fewer = GROUP_RANKS_MAX / n;
    return k->bytes == GROUP_BENCH_BYTES_MAX
               ? 15 * k->times
               : 75 * k->times * (int)(fewer * fewer);
}

/* mpi_times: of a round of MPI, which may take much longer. */
static void compare(struct group_world *world, int kind, int times,
                    int mpi_times, int n_sides, const char *beside,
                    const struct bench_options *options)
{
    struct group_measured measured[N_SIDES];
    struct bench_figure figures[N_SIDES];
    char name[112];
    size_t n = 0;
    for (int side = 0; side < N_SIDES; side++) {
        if (!is_measured(side, kind, n_sides))
            continue;
        struct group_measured *m = &measured[n];
        *m = (struct group_measured){.world = world,
                                     .side = side,
                                     .kind = kind,
                                     .times = side == MPI ? mpi_times : times,
                                     .is_mpi = side == MPI};
        (void)snprintf(m->name, sizeof m->name, "%s, %u processes%s, %s",
                       group_bench_kinds[kind].name, world->n, beside,
                       sides[side]);
        figures[n++] = (struct bench_figure){
            .name = m->name, .unit = "us", .run = group_measure, .self = m};
    }
    bench_run(figures, n, options);
    bench_print("shared", figures, n, options);
    for (size_t i = 0; i + 1 < n && n_sides > MPI; i++) {
        (void)snprintf(name, sizeof name, "mpi to it: %s", measured[i].name);
        bench_print_derived("shared", name, "x",
                            figures[n - 1].median / figures[i].median, options);
    }
}

static void compare_beside_busy(struct group_world *world, int n_sides,
                                const struct bench_options *options)
{
    static const char *const arguments[] = {"busy", NULL};
    struct process busy[BUSY];
    char line[PROCESS_LINE_MAX];
    for (int i = 0; i < BUSY; i++) {
        process_start(&busy[i], arguments);
        process_hear(&busy[i], line);
    }
    const int times = group_bench_kinds[0].times;
    compare(world, 0, BUSY_TIMES * times, times, n_sides,
            " beside two busy ones", options);
    for (int i = 0; i < BUSY; i++)
        process_kill(&busy[i]);
}

int main(int argc, char **argv)
{
    static const unsigned sizes[] = {2, 4, 8, 16};
    struct bench_options options;
    process_init();
    if (argc > 4 && strcmp(argv[1], "member") == 0)
        return run_member(argv + 2);
    if (argc > 4 && strcmp(argv[1], "mpi") == 0)
        return group_run_mpi(argv + 2);
    if (argc > 1 && strcmp(argv[1], "busy") == 0)
        run_busy();
    bench_options_read(&options, argc, argv);
    const int n_sides = group_has_mpi("bench_shared") ? N_SIDES : MPI;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct group_world world = {0};
        if (!bench_is_asked_for("RANKS", (int)sizes[i]))
            continue;
        start_members(&world, sizes[i]);
        if (n_sides > MPI)
            group_world_add_mpi(&world, "vader");
        for (int kind = 0; kind < GROUP_BENCH_KINDS; kind++)
            if (bench_is_asked_for("KIND", kind))
                compare(&world, kind, times_of(kind, world.n),
                        times_of(kind, world.n), n_sides, "", &options);
        if ((world.n == 4 || world.n == 8) &&
            bench_is_asked_for("KIND", GROUP_BENCH_KINDS))
            compare_beside_busy(&world, n_sides, &options);
        group_world_end(&world);
    }
    return 0;
}
