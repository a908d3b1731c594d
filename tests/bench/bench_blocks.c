/* Payloads of 64 KiB and more between processes of one host, to one reader and
 * to eight, every byte of which is read: through the blocks of a node's shared
 * memory, beside libzmq over ipc and tcp, PUSH to a PULL in each reader, in the
 * same run and in turn. Both copy each payload once from the caller's buffer,
 * which can then be used again. So does the bare ring, which is what the
 * machine can do: memory that all map, a number of what is written, numbers of
 * what is read, and nobody sleeps. Two more make each payload anew, by a copy:
 * in a buffer of their own, which is then copied as above, or in place.
 *
 *   bench_blocks [--json] [--rounds N] [--quick] [WORD...]
 * --quick: a tenth of the payloads. WORD: only what has all these words in its
 * name, as in `bench_blocks 1MiB to-8`. */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zmq.h>

#include "bench.h"
#include "lockstep/event.h"
#include "lockstep/payload.h"
#include "process.h"

enum { READERS_MAX = 8, PATIENCE_MS = 60000, ZMQ_UNDER_WAY = 8 };

enum way { BUS, BUS_OFF, MADE, IN_PLACE, IPC, TCP, RING, N_WAYS };
static const char *const ways[N_WAYS] = {"Lockstep",
                                         "Lockstep, shared_bytes 0",
                                         "Lockstep, each made anew",
                                         "Lockstep, each made in place",
                                         "libzmq ipc",
                                         "libzmq tcp",
                                         "a bare ring"};

static bool is_bus(enum way way)
{
    return way <= IN_PLACE;
}

struct job {
    enum way way;
    size_t size;
    long n; /* measured; before that an eighth, to be warm */
    unsigned n_readers;
};

static void must(bool good, const char *what)
{
    if (!good)
        bench_fail(what);
}

static long n_warm(const struct job *job)
{
    return job->n / 8 + 1;
}

static uint64_t sum_of(const void *data, size_t size)
{
    uint64_t sums[4] = {0}, words[4];
    for (size_t at = 0; at + sizeof words <= size; at += sizeof words) {
        memcpy(words, (const char *)data + at, sizeof words);
        for (int i = 0; i < 4; i++)
            sums[i] += words[i];
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

static char *new_payload(const struct job *job)
{
    char *const payload = malloc(job->size);
    must(payload != NULL, "memory");
    for (size_t i = 0; i < job->size; i++)
        payload[i] = (char)(i * 7);
    return payload;
}

static void tell_now(void)
{
    char line[PROCESS_LINE_MAX];
    (void)snprintf(line, sizeof line, "%" PRId64, bench_now());
    parent_tell(line);
}

static void await_parent(void)
{
    char line[PROCESS_LINE_MAX];
    while (parent_hear(line))
        ;
}

/* ---- a reader ---------------------------------------------------------- */

struct reader {
    const struct job *job;
    long n;
    uint64_t expected, sum;
};

/* After the warm ones, and after the last. */
static void read_one(struct reader *reader, const void *data, size_t size)
{
    const uint64_t sum = sum_of(data, size);
    must(size == reader->job->size, "a payload of another size");
    must(reader->n == 0 || sum == reader->sum, "other bytes");
    reader->sum = sum;
    if (++reader->n == n_warm(reader->job) ||
        reader->n == n_warm(reader->job) + reader->job->n)
        tell_now();
}

static int on_payload(void *self, const struct ls_event *event)
{
    read_one(self, event->data, event->size);
    return LS_OK;
}

static ls_node *new_node(const struct job *job, uint32_t id, const char *peer)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_node_options_init(&options);
    options.job = bench_job();
    options.id = id;
    options.world_size = job->n_readers + 1;
    options.start_timeout_ms = PATIENCE_MS;
    options.silence_ms = PATIENCE_MS;
    options.attach = &peer;
    options.n_attach = peer == NULL ? 0 : 1;
    if (job->way == BUS_OFF)
        options.shared_bytes = 0;
    else if (job->way == IN_PLACE) /* they have half of it */
        options.shared_bytes *= 2;
    must(ls_node_create(&node, &options) == LS_OK, "create");
    return node;
}

static int on_small(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return LS_OK;
}

static void read_bus(struct reader *reader, uint32_t id, const char *peer)
{
    ls_node *node = new_node(reader->job, id, peer);
    must(ls_on(node, "payload", on_payload, reader) == LS_OK, "on");
    must(ls_on(node, "warm", on_small, NULL) == LS_OK, "on");
    must(ls_node_start(node) == LS_OK, "start");
    await_parent();
    must(ls_node_destroy(&node) == LS_OK, "destroy");
}

static void *new_socket(void *context, int type)
{
    void *const socket = zmq_socket(context, type);
    const int most = ZMQ_UNDER_WAY, patience = PATIENCE_MS, none = 0;
    must(socket != NULL &&
             zmq_setsockopt(socket, ZMQ_SNDHWM, &most, sizeof most) == 0 &&
             zmq_setsockopt(socket, ZMQ_RCVHWM, &most, sizeof most) == 0 &&
             zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof patience) ==
                 0 &&
             zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none) == 0,
         "socket");
    return socket;
}

static void read_zmq(struct reader *reader, const char *bind)
{
    char endpoint[256];
    size_t size = sizeof endpoint;
    void *const context = zmq_ctx_new();
    void *const socket = new_socket(context, ZMQ_PULL);
    must(zmq_bind(socket, bind) == 0 &&
             zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0,
         "bind");
    parent_tell(endpoint);
    for (long n = n_warm(reader->job) + reader->job->n; n > 0; n--) {
        zmq_msg_t message;
        must(zmq_msg_init(&message) == 0 &&
                 zmq_msg_recv(&message, socket, 0) >= 0,
             "receive");
        read_one(reader, zmq_msg_data(&message), zmq_msg_size(&message));
        (void)zmq_msg_close(&message);
    }
    await_parent();
    (void)zmq_close(socket);
    (void)zmq_ctx_term(context);
}

/* ---- the bare ring ----------------------------------------------------- */

enum { RING_SLOTS = 8 };

struct ring {
    _Alignas(64) _Atomic long written;
    struct {
        _Alignas(64) _Atomic long n;
    } read[READERS_MAX];
    _Alignas(4096) char slots[];
};

static struct ring *map_ring(const struct job *job, int fd)
{
    const size_t size = sizeof(struct ring) + RING_SLOTS * job->size;
    must(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "memory for a ring");
    void *const at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(at != MAP_FAILED, "map a ring");
    return at;
}

static void read_ring(struct reader *reader, unsigned own, const char *place)
{
    struct ring *const ring =
        map_ring(reader->job, open(place, O_RDWR | O_CLOEXEC));
    for (long i = 0; i < n_warm(reader->job) + reader->job->n; i++) {
        while (atomic_load(&ring->written) <= i)
            (void)sched_yield();
        read_one(reader,
                 ring->slots + (size_t)(i % RING_SLOTS) * reader->job->size,
                 reader->job->size);
        atomic_store(&ring->read[own].n, i + 1);
    }
    await_parent();
}

static void fill_ring(const struct job *job, struct ring *ring, long n,
                      const char *payload)
{
    for (long i = atomic_load(&ring->written); n > 0; i++, n--) {
        for (unsigned r = 0; r < job->n_readers; r++)
            while (i - atomic_load(&ring->read[r].n) >= RING_SLOTS)
                (void)sched_yield();
        memcpy(ring->slots + (size_t)(i % RING_SLOTS) * job->size, payload,
               job->size);
        atomic_store(&ring->written, i + 1);
    }
}

static void send_ring(const struct job *job, const char *payload)
{
    char line[PROCESS_LINE_MAX];
    const int fd = memfd_create("ring", MFD_CLOEXEC);
    struct ring *const ring = map_ring(job, fd);
    (void)snprintf(line, sizeof line, "/proc/%d/fd/%d", (int)getpid(), fd);
    parent_tell(line);
    fill_ring(job, ring, n_warm(job), payload);
    must(parent_hear(line), "no go");
    tell_now();
    fill_ring(job, ring, job->n, payload);
    await_parent();
}

/* ---- the sender -------------------------------------------------------- */

static void emit(ls_node *node, const char *event, const void *payload,
                 size_t size, void (*release)(void *data, void *hint))
{
    must(ls_emit_with(node, &(struct ls_emission){.event = event,
                                                  .data = payload,
                                                  .size = size,
                                                  .release = release,
                                                  .timeout_ms = PATIENCE_MS}) ==
             LS_OK,
         "emit");
}

/* made: NULL, or where each is made. */
static void emit_all(ls_node *node, const struct job *job, long n,
                     const char *payload, void *made)
{
    for (; n > 0; n--) {
        if (job->way == IN_PLACE)
            must(ls_payload_alloc(&made, node, job->size) == LS_OK, "payload");
        if (made != NULL)
            memcpy(made, payload, job->size);
        emit(node, "payload", made != NULL ? made : payload, job->size,
             job->way == IN_PLACE ? ls_payload_free : NULL);
    }
}

static void send_bus(const struct job *job, char *payload)
{
    struct ls_node_stats stats = {0};
    char line[PROCESS_LINE_MAX];
    void *const made = job->way == MADE ? malloc(job->size) : NULL;
    ls_node *node = new_node(job, 0, NULL);
    must(ls_node_open(node) == LS_OK, "open");
    parent_tell(ls_node_endpoint(node));
    must(ls_node_join(node) == LS_OK, "join");
    while (job->way != BUS_OFF && stats.blocks == 0) {
        emit(node, "warm", payload, 64 * 1024, NULL);
        ls_node_stats(node, &stats);
    }
    emit_all(node, job, n_warm(job), payload, made);
    must(parent_hear(line), "no go");
    tell_now();
    emit_all(node, job, job->n, payload, made);
    ls_node_stats(node, &stats);
    if (job->way != BUS_OFF && stats.blocks_full > (uint64_t)job->n / 10)
        bench_fail("too few payloads found a block");
    await_parent();
    must(ls_node_destroy(&node) == LS_OK, "destroy");
    free(made);
}

static void send_all_zmq(const struct job *job, void **sockets, long n,
                         const char *payload)
{
    for (; n > 0; n--) {
        zmq_msg_t message, copy;
        must(zmq_msg_init_size(&message, job->size) == 0, "message");
        memcpy(zmq_msg_data(&message), payload, job->size);
        for (unsigned i = 0; i < job->n_readers; i++)
            must(zmq_msg_init(&copy) == 0 &&
                     zmq_msg_copy(&copy, &message) == 0 &&
                     zmq_msg_send(&copy, sockets[i], 0) >= 0,
                 "send");
        (void)zmq_msg_close(&message);
    }
}

static void send_zmq(const struct job *job, const char *payload)
{
    void *const context = zmq_ctx_new();
    void *sockets[READERS_MAX];
    char line[PROCESS_LINE_MAX];
    for (unsigned i = 0; i < job->n_readers; i++) {
        sockets[i] = new_socket(context, ZMQ_PUSH);
        must(parent_hear(line) && zmq_connect(sockets[i], line) == 0,
             "connect");
    }
    send_all_zmq(job, sockets, n_warm(job), payload);
    must(parent_hear(line), "no go");
    tell_now();
    send_all_zmq(job, sockets, job->n, payload);
    await_parent();
    for (unsigned i = 0; i < job->n_readers; i++)
        (void)zmq_close(sockets[i]);
    (void)zmq_ctx_term(context);
}

/* --end WAY SIZE N READERS ID PLACE: 0 sends. */
static int run_end(char **argv)
{
    const struct job job = {.way = (enum way)strtol(argv[0], NULL, 10),
                            .size = strtoul(argv[1], NULL, 10),
                            .n = strtol(argv[2], NULL, 10),
                            .n_readers = (unsigned)strtoul(argv[3], NULL, 10)};
    const uint32_t id = (uint32_t)strtoul(argv[4], NULL, 10);
    const bool bus = is_bus(job.way);
    struct reader reader = {.job = &job};
    if (id != 0 && bus) {
        read_bus(&reader, id, argv[5]);
    } else if (id != 0 && job.way == RING) {
        read_ring(&reader, id - 1, argv[5]);
    } else if (id != 0) {
        read_zmq(&reader, argv[5]);
    } else {
        char *const payload = new_payload(&job);
        if (bus)
            send_bus(&job, payload);
        else if (job.way == RING)
            send_ring(&job, payload);
        else
            send_zmq(&job, payload);
        free(payload);
    }
    return 0;
}

/* ---- one measurement --------------------------------------------------- */

static void start_end(struct process *process, const struct job *job,
                      unsigned id, const char *place)
{
    char numbers[5][32];
    (void)snprintf(numbers[0], sizeof numbers[0], "%d", (int)job->way);
    (void)snprintf(numbers[1], sizeof numbers[1], "%zu", job->size);
    (void)snprintf(numbers[2], sizeof numbers[2], "%ld", job->n);
    (void)snprintf(numbers[3], sizeof numbers[3], "%u", job->n_readers);
    (void)snprintf(numbers[4], sizeof numbers[4], "%u", id);
    process_start(process, (const char *const[]){
                               "--end", numbers[0], numbers[1], numbers[2],
                               numbers[3], numbers[4], place, NULL});
}

static void start_all(const struct job *job, struct process *all)
{
    char line[PROCESS_LINE_MAX];
    start_end(&all[0], job, 0, "");
    if (is_bus(job->way) || job->way == RING) {
        process_hear(&all[0], line);
        for (unsigned i = 1; i <= job->n_readers; i++)
            start_end(&all[i], job, i, line);
        return;
    }
    for (unsigned i = 1; i <= job->n_readers; i++) {
        (void)snprintf(line, sizeof line, "tcp://127.0.0.1:*");
        if (job->way == IPC)
            (void)snprintf(line, sizeof line, "ipc://%s/%u", bench_folder(), i);
        start_end(&all[i], job, i, line);
        process_hear(&all[i], line);
        process_tell(&all[0], line);
    }
}

static int64_t hear_time(struct process *process)
{
    char line[PROCESS_LINE_MAX];
    process_hear(process, line);
    return strtoll(line, NULL, 10);
}

/* GB/s that were delivered, in all. */
static double run_job(void *self)
{
    const struct job *const job = self;
    struct process all[1 + READERS_MAX];
    int64_t end = 0;
    start_all(job, all);
    for (unsigned i = 1; i <= job->n_readers; i++)
        (void)hear_time(&all[i]);
    process_tell(&all[0], "go");
    const int64_t begin = hear_time(&all[0]);
    for (unsigned i = 1; i <= job->n_readers; i++) {
        const int64_t at = hear_time(&all[i]);
        end = at > end ? at : end;
    }
    for (unsigned i = 0; i <= job->n_readers; i++)
        process_end(&all[i]);
    return (double)job->size * (double)job->n * job->n_readers /
           (double)(end - begin);
}

/* ---- comparisons ------------------------------------------------------- */

struct comparison {
    const char *name;
    size_t size;
    unsigned n_readers;
    long n;
    double target; /* at least so many times libzmq's better one */
};

static const struct comparison comparisons[] = {
    {"64KiB to-1", 64 << 10, 1, 40000, 4}, {"64KiB to-8", 64 << 10, 8, 6000, 6},
    {"1MiB to-1", 1 << 20, 1, 2400, 4},    {"1MiB to-8", 1 << 20, 8, 500, 6},
    {"16MiB to-1", 16 << 20, 1, 120, 3},   {"16MiB to-8", 16 << 20, 8, 40, 6},
};

static void compare(const struct comparison *c, bool quick,
                    const struct bench_options *options)
{
    struct job jobs[N_WAYS];
    static struct bench_figure figures[N_WAYS];
    char bench[64];
    for (int i = 0; i < N_WAYS; i++) {
        jobs[i] = (struct job){.way = (enum way)i,
                               .size = c->size,
                               .n = quick ? c->n / 10 : c->n,
                               .n_readers = c->n_readers};
        figures[i] = (struct bench_figure){
            .name = ways[i], .unit = "GB/s", .run = run_job, .self = &jobs[i]};
    }
    (void)snprintf(bench, sizeof bench, "blocks %s", c->name);
    bench_run(figures, N_WAYS, options);
    bench_print(bench, figures, N_WAYS, options);
    const double ipc = figures[IPC].median, tcp = figures[TCP].median;
    char name[96];
    (void)snprintf(name, sizeof name,
                   "ratio to libzmq's better one (target >= %g)", c->target);
    bench_print_derived(bench, name, "x",
                        figures[BUS].median / (ipc > tcp ? ipc : tcp), options);
    bench_print_derived(bench, "ratio of those made in place to made anew", "x",
                        figures[IN_PLACE].median / figures[MADE].median,
                        options);
    bench_print_derived(bench, "ratio of the bare ring to it", "x",
                        figures[RING].median / (ipc > tcp ? ipc : tcp),
                        options);
}

int main(int argc, char **argv)
{
    process_init();
    if (argc == 8 && strcmp(argv[1], "--end") == 0)
        return run_end(argv + 2);
    struct bench_options options;
    struct bench_choice choice;
    bench_choice_read(&choice, &argc, argv);
    bench_options_read(&options, argc, argv);
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        if (bench_is_chosen(&choice, comparisons[i].name))
            compare(&comparisons[i], choice.quick, &options);
    return bench_choice_end(&choice);
}
