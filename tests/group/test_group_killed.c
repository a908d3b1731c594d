#define _XOPEN_SOURCE 700 /* setitimer */
/* Processes that go through collectives, one of which is killed at any moment:
 * the others end the same operation with the same error, which names it, and
 * go on without it: by messages, and in shared memory. KILLS=2000 at full size.
 */
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "lockstep/group.h"
#include "lockstep/random.h"
#include "loopback.h"
#include "test.h"

extern char **environ;

enum { RANKS_MAX = 5, WAIT_MS = 60000, STEPS_AFTER = 6, LINE = 512 };

/* --- in a rank's process ------------------------------------------------- */

struct rank {
    ls_node *node;
    ls_group *group;
    uint64_t mix; /* which operations, and how long */
    int64_t *in, *out;
    bool allocates; /* what it brings and gets lies in memory of the group */
};

#define NUMBERS_MAX 40000

static int64_t value_of(uint32_t rank, uint64_t step, size_t i)
{
    return (int64_t)(rank * 100 + step % 50 + i % 3);
}

static bool is_sum(const int64_t *numbers, size_t n, uint32_t ranks,
                   uint64_t step)
{
    for (size_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (uint32_t rank = 0; rank < ranks; rank++)
            sum += value_of(rank, step, i);
        if (numbers[i] != sum)
            return false;
    }
    return true;
}

static int wrong(const char *what)
{
    return ls_error(LS_EINVARIANT, "a wrong result of %s", what);
}

static int fold(struct rank *rank, uint64_t step, size_t n)
{
    const uint32_t ranks = ls_group_size(rank->group);
    const int status = ls_group_all_reduce(rank->group, rank->in, n,
                                           LS_GROUP_I64, LS_GROUP_SUM, WAIT_MS);
    return status != LS_OK || is_sum(rank->in, n, ranks, step)
               ? status
               : wrong("all_reduce");
}

static int gather(struct rank *rank, uint64_t step, size_t n)
{
    const uint32_t ranks = ls_group_size(rank->group);
    const int status =
        ls_group_all_gather(rank->group, rank->in, n / ranks * sizeof *rank->in,
                            rank->out, WAIT_MS);
    for (uint32_t i = 0; i < ranks && status == LS_OK && n >= ranks; i++)
        if (rank->out[i * (n / ranks)] != value_of(i, step, 0))
            return wrong("all_gather");
    return status;
}

static int broadcast(struct rank *rank, uint64_t step, size_t n)
{
    const uint32_t root = (uint32_t)(step % ls_group_size(rank->group));
    const int status = ls_group_broadcast(rank->group, rank->in,
                                          n * sizeof *rank->in, root, WAIT_MS);
    return status != LS_OK || rank->in[n - 1] == value_of(root, step, n - 1)
               ? status
               : wrong("broadcast");
}

static int scatter(struct rank *rank, uint64_t step, size_t n)
{
    const uint32_t ranks = ls_group_size(rank->group);
    const int status =
        ls_group_scatter(rank->group, rank->in, n / ranks * sizeof *rank->in,
                         rank->out, 0, WAIT_MS);
    return status != LS_OK || n < ranks ||
                   rank->out[0] ==
                       value_of(0, step,
                                ls_group_rank(rank->group) * (n / ranks))
               ? status
               : wrong("scatter");
}

static int share(struct rank *rank, uint64_t step, size_t n)
{
    const uint32_t ranks = ls_group_size(rank->group);
    (void)step;
    return ls_group_reduce_scatter(rank->group, rank->in, n / ranks,
                                   LS_GROUP_I64, LS_GROUP_MAX, rank->out,
                                   WAIT_MS);
}

static int any(struct rank *rank, uint64_t step, size_t n)
{
    struct ls_group_parts parts;
    const struct ls_group_operation operation = {
        .kind = LS_GROUP_ALL_GATHER,
        .count = (n / 8 + ls_group_rank(rank->group)) * sizeof *rank->in,
        .in = rank->in,
        .parts = &parts};
    const int status = ls_group_do(rank->group, &operation);
    for (size_t i = 0; i < parts.n && status == LS_OK; i++)
        if (parts.items[i].size != (n / 8 + i) * sizeof *rank->in ||
            (parts.items[i].size > 0 && *(const int64_t *)parts.items[i].data !=
                                            value_of((uint32_t)i, step, 0)))
            return wrong("all_gather of any sizes");
    ls_group_parts_free(&parts);
    return status;
}

static int do_step(struct rank *rank, uint64_t step)
{
    static const size_t lengths[] = {1, 300, 12000, NUMBERS_MAX};
    const size_t n = lengths[(rank->mix / 7 + step) % 4];
    for (size_t i = 0; i < n; i++)
        rank->in[i] = value_of(ls_group_rank(rank->group), step, i);
    switch ((rank->mix + step / 4) % 7) {
    case 0:
        return ls_group_barrier(rank->group, WAIT_MS);
    case 1:
        return fold(rank, step, n);
    case 2:
        return gather(rank, step, n);
    case 3:
        return broadcast(rank, step, n);
    case 4:
        return scatter(rank, step, n);
    case 5:
        return share(rank, step, n);
    default:
        return any(rank, step, n);
    }
}

static void tell(const char *format, ...) LS_PRINTF(1, 2);
static void tell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* Until one is lost, tell how that was; then some more without it. */
static int work(struct rank *rank)
{
    uint64_t step = 0;
    int status;
    while ((status = do_step(rank, step)) == LS_OK)
        step++;
    tell("%" PRIu64 " %d %" PRIu64 " %s", ls_group_generation(rank->group),
         status, step, ls_error_text());
    if (status != LS_ELOST)
        return status;
    status = ls_group_form(rank->group, WAIT_MS);
    for (int i = 0; i < STEPS_AFTER && status == LS_OK; i++)
        status = do_step(rank, (uint64_t)i);
    if (status == LS_OK)
        status = ls_group_barrier(rank->group, WAIT_MS);
    tell("%" PRIu32 " %d %s", ls_group_size(rank->group), status,
         status == LS_OK ? "" : ls_error_text());
    return status;
}

static int begin(struct rank *rank, unsigned index, unsigned n,
                 const char *seed)
{
    struct ls_node_options options;
    const struct ls_group_options group_options = {
        .on_loss = LS_ON_LOSS_GO_ON,
        .room =
            rank->mix % 2 == 0 ? LS_GROUP_ROOM_ALWAYS : LS_GROUP_ROOM_NEVER};
    char bind[64];
    ls_node_options_init(&options);
    /* Of another program of this test, which has the same job and ids, nobody
     * comes to answer where one was killed. */
    (void)snprintf(bind, sizeof bind, "tcp://%s:*", loopback());
    options.bind = bind;
    options.id = 10 + 3 * index;
    options.world_size = n;
    options.start_timeout_ms = WAIT_MS;
    options.attach = &seed;
    options.n_attach = seed == NULL ? 0 : 1;
    int status = ls_node_create(&rank->node, &options);
    if (status == LS_OK)
        status = ls_group_create(&rank->group, rank->node, &group_options);
    if (status == LS_OK)
        status = ls_node_open(rank->node);
    if (status == LS_OK)
        tell("%s", ls_node_endpoint(rank->node));
    if (status == LS_OK)
        status = ls_node_join(rank->node);
    return status == LS_OK ? ls_group_form(rank->group, WAIT_MS) : status;
}

static int64_t *get(const struct rank *rank)
{
    void *memory = NULL;
    if (!rank->allocates)
        return calloc(NUMBERS_MAX, sizeof(int64_t));
    return ls_group_alloc(rank->group, &memory,
                          NUMBERS_MAX * sizeof(int64_t)) == LS_OK
               ? memory
               : NULL;
}

static void drop(const struct rank *rank, int64_t *numbers)
{
    if (!rank->allocates)
        free(numbers);
    else
        (void)ls_group_free(rank->group, numbers);
}

/* As kill -9, so many microseconds from now. */
static void die_after(long us)
{
    const struct itimerval at = {.it_value.tv_usec = us};
    if (us > 0)
        (void)setitimer(ITIMER_REAL, &at, NULL);
}

/* INDEX N MIX US [SEED] */
static int be_rank(int argc, char **argv)
{
    const unsigned index = (unsigned)atoi(argv[1]);
    struct rank rank = {.mix = strtoull(argv[3], NULL, 10)};
    /* All ranks, some, or none. */
    rank.allocates =
        rank.mix / 2 % 4 < 2 || (rank.mix / 2 % 4 == 2 && index % 2 == 0);
    int status =
        begin(&rank, index, (unsigned)atoi(argv[2]), argc > 5 ? argv[5] : NULL);
    rank.in = status == LS_OK ? get(&rank) : NULL;
    rank.out = status == LS_OK ? get(&rank) : NULL;
    if (rank.in != NULL && rank.out != NULL) {
        tell("formed");
        die_after(atol(argv[4]));
        status = work(&rank);
        drop(&rank, rank.in);
        drop(&rank, rank.out);
    } else {
        tell("0 %d 0 %s", status, ls_error_text());
    }
    ls_group_destroy(&rank.group);
    ls_node_destroy(&rank.node);
    return status == LS_OK ? 0 : 1;
}

/* --- in the test's ------------------------------------------------------ */

struct process {
    pid_t pid;
    FILE *out;
};

/* us: it dies so long after it has formed; 0: it does not. */
static void start(struct process *process, unsigned index, unsigned n,
                  uint64_t mix, long us, const char *seed)
{
    int ends[2];
    char program[] = "/proc/self/exe", number[12], size[12], which[24],
         dies[24];
    char address[LINE];
    assert_int_equal(pipe(ends), 0);
    snprintf(number, sizeof number, "%u", index);
    snprintf(size, sizeof size, "%u", n);
    snprintf(which, sizeof which, "%" PRIu64, mix);
    snprintf(dies, sizeof dies, "%ld", us);
    snprintf(address, sizeof address, "%s", seed == NULL ? "" : seed);
    char *arguments[] = {program, number, size,
                         which,   dies,   seed == NULL ? NULL : address,
                         NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    assert_int_equal(
        posix_spawn(&process->pid, program, &actions, NULL, arguments, environ),
        0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    process->out = fdopen(ends[0], "r");
    assert_non_null(process->out);
}

static void hear(struct process *process, char line[LINE])
{
    if (fgets(line, LINE, process->out) == NULL)
        fail_msg("a rank has ended without a word");
    line[strcspn(line, "\n")] = '\0';
}

static void end(struct process *process, bool well)
{
    int how = 0;
    assert_int_equal(waitpid(process->pid, &how, 0), process->pid);
    fclose(process->out);
    if (well && (!WIFEXITED(how) || WEXITSTATUS(how) != 0))
        fail_msg("a rank has ended with %d", how);
}

/* What the others say of the death of one. */
static void check_loss(const char *line, const char *first, uint32_t dead,
                       uint64_t mix)
{
    char name[32];
    unsigned long long generation, step, other_step;
    int status, other;
    snprintf(name, sizeof name, "node %" PRIu32 " ", dead);
    if (sscanf(line, "%llu %d %llu", &generation, &status, &step) != 3 ||
        sscanf(first, "%llu %d %llu", &generation, &other, &other_step) != 3 ||
        status != LS_ELOST || other != status || step != other_step ||
        strstr(line, name) == NULL)
        fail_msg("mix %" PRIu64 ": \"%s\", and another \"%s\"; node %" PRIu32
                 " was killed",
                 mix, line, first, dead);
}

/* Returns nothing: a rank that hangs is found by the test's own time limit. */
static void kill_one(unsigned n, uint64_t mix, struct ls_rng *rng)
{
    struct process ranks[RANKS_MAX];
    char seed[LINE], line[LINE], first[LINE] = "";
    const unsigned victim = (unsigned)ls_rng_below(rng, n);
    const long moment = 1 + (long)ls_rng_below(rng, 12000);
    for (unsigned i = 0; i < n; i++) {
        start(&ranks[i], i, n, mix, i == victim ? moment : 0,
              i == 0 ? NULL : seed);
        hear(&ranks[i], i == 0 ? seed : line);
    }
    for (unsigned i = 0; i < n; i++)
        hear(&ranks[i], line);
    for (unsigned i = 0; i < n; i++) {
        if (i == victim)
            continue;
        hear(&ranks[i], line);
        if (first[0] == '\0')
            memcpy(first, line, sizeof first);
        check_loss(line, first, 10 + 3 * victim, mix);
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned size = 0;
        int status = 1;
        if (i != victim) {
            hear(&ranks[i], line);
            (void)sscanf(line, "%u %d", &size, &status);
            if (size != n - 1 || status != LS_OK)
                fail_msg("mix %" PRIu64 ": after that: \"%s\"", mix, line);
        }
        end(&ranks[i], i != victim);
    }
}

TEST(whoever_is_killed_the_others_end_alike_and_go_on)
{
    const char *kills = getenv("KILLS"), *first = getenv("SEED");
    const uint64_t n =
        kills != NULL ? strtoull(kills, NULL, 10) : (SANITIZED ? 3 : 8);
    const uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    for (uint64_t seed = from; seed < from + n; seed++) {
        struct ls_rng rng;
        ls_rng_seed(&rng, seed, 3);
        kill_one(2 + (unsigned)(seed % 4), seed, &rng);
    }
}

int main(int argc, char **argv)
{
    return argc > 4 ? be_rank(argc, argv) : tests_run();
}
