/* bench_checkpoint - saving against the disk, and against memcpy.
 *
 *   bench_checkpoint [--json] [--rounds N] [--folder DIR] [--mib N]
 *
 * 1 GiB in two blobs, each a shard with a file of its own. Side by side:
 *
 *   - two files written in pieces of 1 MiB, fsync of each, renamed over those
 *     before: what the disk takes; against a checkpoint written and committed,
 *     with the one before removed;
 *   - a memcpy into memory that was touched before, against the time for which
 *     ls_checkpoints_write_behind() keeps its caller;
 *   - those two files read, with nothing of them in the page cache, against
 *     ls_checkpoints_verify() of a checkpoint of which there is nothing either;
 *   - the memory that a save takes at most beside the blobs, in a process of
 * its own.
 *
 * Bounds: 0.8 of the disk each way, 1.2 of the memcpy, 64 MiB, or one copy of
 * the blobs behind. DIR is on the disk to be measured; by default below /tmp.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "lockstep/checkpoint.h"
#include "lockstep/file.h"
#include "process.h"

#define MIB        ((size_t)1 << 20)
#define SHARDS     2
#define PIECE      MIB
#define PATIENCE_S 600

static size_t n_mib = 1024;
static char folder[LS_PATH_MAX / 2];
static unsigned char *state, *copy;
static ls_blobs *blobs;
static ls_checkpoints *checkpoints;
static int64_t newest = -1;

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

static void need(bool well, const char *what)
{
    if (!well)
        bench_fail(what);
}

static size_t n_bytes(void)
{
    return n_mib * MIB;
}

static double mib_per_s(int64_t start)
{
    return (double)n_mib * 1e9 / (double)(bench_now() - start);
}

static double ms_since(int64_t start)
{
    return (double)(bench_now() - start) / 1e6;
}

/* ---- the disk itself ----------------------------------------------------- */

static void path_of(char *out, const char *name, size_t shard)
{
    (void)snprintf(out, LS_PATH_MAX, "%s/%s-%zu", folder, name, shard);
}

static void write_raw(size_t shard)
{
    char part[LS_PATH_MAX], path[LS_PATH_MAX];
    const size_t size = n_bytes() / SHARDS;
    path_of(part, "part", shard);
    path_of(path, "raw", shard);
    const int fd = open(part, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    need(fd >= 0, part);
    for (size_t at = 0; at < size; at += PIECE)
        need(write(fd, state + shard * size + at, PIECE) == (ssize_t)PIECE,
             part);
    need(fsync(fd) == 0 && close(fd) == 0 && rename(part, path) == 0, part);
}

static void sync_folder(void)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY);
    need(fd >= 0 && fsync(fd) == 0 && close(fd) == 0, folder);
}

static double raw_write(void)
{
    const int64_t start = bench_now();
    for (size_t i = 0; i < SHARDS; i++)
        write_raw(i);
    sync_folder();
    return mib_per_s(start);
}

static void forget(const char *path)
{
    const int fd = open(path, O_RDONLY);
    need(fd >= 0, path);
    need(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, path);
    need(close(fd) == 0, path);
}

static double raw_read(void)
{
    char path[LS_PATH_MAX];
    for (size_t i = 0; i < SHARDS; i++) {
        path_of(path, "raw", i);
        forget(path);
    }
    const int64_t start = bench_now();
    for (size_t i = 0; i < SHARDS; i++) {
        path_of(path, "raw", i);
        const int fd = open(path, O_RDONLY);
        ssize_t n = 1;
        while (n > 0)
            n = read(fd, copy, PIECE);
        need(n == 0 && close(fd) == 0, path);
    }
    return mib_per_s(start);
}

static double raw_copy(void)
{
    const int64_t start = bench_now();
    memcpy(copy, state, n_bytes());
    return ms_since(start);
}

/* ---- checkpoints --------------------------------------------------------- */

static void make_state(void)
{
    state = malloc(n_bytes());
    need(state != NULL, "memory");
    for (size_t i = 0; i < n_bytes() / sizeof(uint64_t); i++) /* no zeros */
        ((uint64_t *)state)[i] = i * 0x9e3779b97f4a7c15u;
    must(ls_blobs_create(&blobs), "blobs");
    for (size_t i = 0; i < SHARDS; i++) {
        const uint64_t size = n_bytes() / SHARDS;
        must(ls_blobs_add(blobs, &(struct ls_blob){.name = i == 0 ? "a" : "b",
                                                   .form = {.type = LS_BLOB_U8,
                                                            .n_dims = 1,
                                                            .shape = {size}},
                                                   .memory = state + i * size}),
             "blob");
    }
}

static void open_checkpoints(void)
{
    char path[LS_PATH_MAX];
    path_of(path, "checkpoints", 0);
    must(ls_checkpoints_open(
             &checkpoints,
             &(struct ls_checkpoints_options){.folder = path,
                                              .node = "node",
                                              .commits = true,
                                              .retention = {.last = 1}}),
         "open");
}

static void commit(struct ls_checkpoint_entry *entry)
{
    must(ls_checkpoints_commit(
             checkpoints, &(struct ls_checkpoint_manifest){.epoch = newest,
                                                           .entries = entry,
                                                           .n_entries = 1}),
         "commit");
}

static double save(void)
{
    struct ls_checkpoint_entry entry;
    const int64_t start = bench_now();
    must(ls_checkpoints_write(checkpoints, ++newest, blobs, &entry), "write");
    commit(&entry);
    return mib_per_s(start);
}

static double save_behind(void)
{
    struct ls_checkpoint_entry entry;
    const int64_t start = bench_now();
    must(ls_checkpoints_write_behind(checkpoints, ++newest, blobs, LS_NO_WAIT),
         "write behind");
    const double ms = ms_since(start);
    must(ls_checkpoints_wait(checkpoints, PATIENCE_S * 1000, NULL, &entry),
         "wait");
    commit(&entry);
    return ms;
}

/* Of the newest checkpoint, nothing is in the page cache. */
static void forget_all(void)
{
    char command[2 * LS_PATH_MAX], path[LS_PATH_MAX];
    (void)snprintf(command, sizeof command,
                   "find '%s/checkpoints-0' -type f -size +1M", folder);
    FILE *found = popen(command, "r");
    need(found != NULL, command);
    size_t n = 0;
    for (; fgets(path, sizeof path, found) != NULL; n++) {
        path[strcspn(path, "\n")] = '\0';
        forget(path);
    }
    need(pclose(found) == 0 && n == SHARDS, command);
}

static double verify(void)
{
    forget_all();
    const int64_t start = bench_now();
    must(ls_checkpoints_verify(checkpoints, newest, NULL), "verify");
    return mib_per_s(start);
}

/* ---- memory, in a process of its own ------------------------------------- */

static double kib_of(const char *key)
{
    char line[256];
    double kib = -1.0;
    FILE *status = fopen("/proc/self/status", "r");
    need(status != NULL, "/proc/self/status");
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtod(line + strlen(key), NULL);
    need(fclose(status) == 0 && kib >= 0.0, key);
    return kib;
}

static int tell_peak(const char *how)
{
    char line[64];
    make_state();
    open_checkpoints();
    const double before = kib_of("VmRSS:");
    (void)(strcmp(how, "behind") == 0 ? save_behind : save)();
    (void)snprintf(line, sizeof line, "%.3f",
                   (kib_of("VmHWM:") - before) / 1024.0);
    parent_tell(line);
    (void)ls_checkpoints_close(&checkpoints);
    return 0;
}

static double peak(const char *how)
{
    struct process process;
    char line[PROCESS_LINE_MAX], size[24], name[LS_PATH_MAX];
    (void)snprintf(size, sizeof size, "%zu", n_mib);
    (void)snprintf(name, sizeof name, "%s/peak-%s", folder, how);
    need(mkdir(name, 0700) == 0, name);
    process_start(&process, (const char *const[]){"--peak", how, "--folder",
                                                  name, "--mib", size, NULL});
    process_hear(&process, line);
    process_end(&process);
    return strtod(line, NULL);
}

/* ---- all of it ----------------------------------------------------------- */

/* Two that are compared. A disk is slower just after it has written much, so
 * each is the first in every other round. */
struct pair {
    double (*measures[2])(void);
    double figures[2];
    size_t first;
};

static double run_both(void *self)
{
    struct pair *pair = self;
    for (size_t i = 0; i < 2; i++) {
        const size_t at = (pair->first + i) % 2;
        pair->figures[at] = pair->measures[at]();
    }
    pair->first = 1 - pair->first;
    return pair->figures[0];
}

static double other_of(void *self)
{
    return ((const struct pair *)self)->figures[1];
}

/* What is not for bench_options_read(), which gets the rest. */
static const char *read_own(int *argc, char **argv)
{
    const char *how = NULL;
    int n = 1;
    for (int i = 1; i < *argc; i++) {
        const bool pair = i + 1 < *argc;
        if (pair && strcmp(argv[i], "--folder") == 0)
            (void)snprintf(folder, sizeof folder, "%s", argv[++i]);
        else if (pair && strcmp(argv[i], "--mib") == 0)
            n_mib = strtoul(argv[++i], NULL, 10);
        else if (pair && strcmp(argv[i], "--peak") == 0)
            how = argv[++i];
        else
            argv[n++] = argv[i];
    }
    *argc = n;
    need(n_mib > 0 && n_mib % SHARDS == 0, "--mib N: an even number");
    return how;
}

static void remove_all(void)
{
    char command[2 * LS_PATH_MAX];
    (void)ls_checkpoints_close(&checkpoints);
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    need(system(command) == 0, command);
}

static void print_memory(const struct bench_options *options)
{
    bench_print_derived("checkpoint", "memory of a save", "MiB", peak("sync"),
                        options);
    bench_print_derived("checkpoint", "memory of a save behind", "MiB",
                        peak("behind"), options);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct pair writes = {.measures = {raw_write, save}},
                copies = {.measures = {raw_copy, save_behind}},
                reads = {.measures = {raw_read, verify}};
    struct bench_figure figures[] = {
        {"write and fsync", "MiB/s", .run = run_both, .self = &writes},
        {"a checkpoint saved", "MiB/s", .run = other_of, .self = &writes},
        {"memcpy", "ms", .run = run_both, .self = &copies},
        {"kept by a save behind", "ms", .run = other_of, .self = &copies},
        {"read, not cached", "MiB/s", .run = run_both, .self = &reads},
        {"a checkpoint verified", "MiB/s", .run = other_of, .self = &reads}};
    enum { N = sizeof figures / sizeof *figures };
    process_init();
    const char *how = read_own(&argc, argv);
    if (how != NULL)
        return tell_peak(how);
    bench_options_read(&options, argc, argv);
    if (folder[0] == '\0')
        (void)snprintf(folder, sizeof folder, "/tmp");
    const size_t n = strlen(folder);
    (void)snprintf(folder + n, sizeof folder - n, "/bench-XXXXXX");
    need(mkdtemp(folder) != NULL, folder);
    make_state();
    copy = malloc(n_bytes());
    need(copy != NULL, "memory");
    memset(copy, 1, n_bytes());
    open_checkpoints();
    must(ls_checkpoints_prepare(checkpoints, blobs), "prepare");
    bench_measure(figures, N, &options);
    for (size_t i = 0; i < N; i += 2)
        bench_compare("checkpoint", figures[i + 1].name, figures[i].name,
                      &figures[i], &figures[i + 1], &options);
    bench_order(figures, N, &options);
    bench_print("checkpoint", figures, N, &options);
    print_memory(&options);
    remove_all();
    ls_blobs_destroy(&blobs);
    free(state);
    free(copy);
    return 0;
}
