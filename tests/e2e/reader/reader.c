/* One of three nodes of a job that reads 0 … 9, three an epoch, and adds them
 * to a total that begins with 100.
 *
 *   reader ID FOLDER RESUME [EPOCH US]
 *
 * RESUME: scratch, newest, or an epoch. The nodes meet at 1.ipc, 2.ipc and
 * 3.ipc. At the end it prints "EPOCH RAN TOTAL", and its blobs are in ID.blobs.
 * With EPOCH and US it is gone, as by kill -9, so many microseconds after it
 * began to save that epoch. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

enum { N_WEIGHTS = 65536 };

struct reader {
    uint32_t id;
    ls_job *job;
    int64_t epoch; /* that it saves next */
    int64_t kill_epoch, kill_us;
    ls_thread *killer;
    int64_t total;
};

static const struct ls_blob_form number = {LS_BLOB_I64, 0, {0}};
static const struct ls_blob_form state = {LS_BLOB_I64, 1, {4}};
static const struct ls_blob_form matrix = {LS_BLOB_F32, 1, {N_WEIGHTS}};

static int failed(const char *what)
{
    const char *text = ls_error_text();
    fprintf(stderr, "reader: %s: %s\n", what, text);
    return 1;
}

/* ---- a death in the middle of a save ----------------------------------- */

static void die(void *self)
{
    const struct reader *reader = self;
    ls_runtime *runtime = ls_runtime_threads();
    ls_rest_until(runtime, ls_now(runtime) + reader->kill_us * LS_NS_PER_US);
    (void)raise(SIGKILL);
}

/* A blob of no bytes, which hears that a save begins. */
static int save_begins(void *self, uint64_t *size)
{
    struct reader *reader = self;
    *size = 0;
    if (reader->epoch++ != reader->kill_epoch)
        return LS_OK;
    return ls_thread_spawn(ls_runtime_threads(), &reader->killer, "killer", die,
                           reader);
}

static int save_nothing(void *self, ls_blob_sink *sink)
{
    (void)self;
    (void)sink;
    return LS_OK;
}

static int load_nothing(void *self, ls_blob_source *source)
{
    (void)self;
    (void)source;
    return LS_OK;
}

static const struct ls_blob_ops hears = {save_begins, save_nothing,
                                         load_nothing};

/* ---- its tasks --------------------------------------------------------- */

static int begin(void *self, ls_turn *turn)
{
    const struct reader *reader = self;
    void *total, *random;
    int status = ls_turn_blob(turn, "total", &number, &total);
    if (status == LS_OK)
        status = ls_turn_blob(turn, "generator", &state, &random);
    if (status != LS_OK)
        return status;
    *(int64_t *)total = 100;
    ls_rng_seed(random, 7, reader->id);
    return LS_OK;
}

static int read_some(void *self, ls_turn *turn)
{
    void *total, *position, *done, *random, *weights;
    (void)self;
    int status = ls_turn_blob(turn, "total", &number, &total);
    if (status == LS_OK)
        status = ls_turn_blob(turn, "position", &number, &position);
    if (status == LS_OK)
        status = ls_turn_blob(turn, "done", &number, &done);
    if (status == LS_OK)
        status = ls_turn_blob(turn, "generator", &state, &random);
    if (status == LS_OK)
        status = ls_turn_blob(turn, "weights", &matrix, &weights);
    if (status != LS_OK)
        return status;
    int64_t *at = position;
    for (int i = 0; i < 3 && *at < 10; i++)
        *(int64_t *)total += (*at)++;
    *(int64_t *)done = *at == 10;
    for (size_t i = 0; i < N_WEIGHTS; i++)
        ((float *)weights)[i] += (float)ls_rng_double(random);
    return LS_OK;
}

static int write_out(void *self, ls_turn *turn)
{
    struct reader *reader = self;
    const ls_blobs *blobs = ls_job_blobs(reader->job);
    char name[64];
    (void)turn;
    (void)snprintf(name, sizeof name, "%" PRIu32 ".blobs", reader->id);
    FILE *out = fopen(name, "wb");
    if (out == NULL)
        return ls_error(LS_EIO, "%s", name);
    for (size_t i = 0; i < ls_blobs_n(blobs); i++) {
        const struct ls_blob *blob = ls_blobs_at(blobs, i);
        uint64_t size;
        if (blob->memory == NULL ||
            ls_blob_form_bytes(&blob->form, &size) != LS_OK)
            continue;
        if (strcmp(blob->name, "total") == 0)
            memcpy(&reader->total, blob->memory, sizeof reader->total);
        fprintf(out, "%s ", blob->name);
        (void)fwrite(blob->memory, 1, (size_t)size, out);
    }
    return fclose(out) == 0 ? LS_OK : ls_error(LS_EIO, "%s", name);
}

static int describe(struct reader *reader)
{
    ls_job *job = reader->job;
    const struct ls_blob blob = {.name = "listener",
                                 .form = {LS_BLOB_BYTES, 1, {0}},
                                 .ops = &hears,
                                 .self = reader};
    struct ls_job_task task = {.self = reader};
    int status = ls_blobs_add(ls_job_blobs(job), &blob);
    task.name = "begin";
    task.fn = begin;
    if (status == LS_OK)
        status = ls_job_add(job, LS_JOB_INIT, &task);
    task.name = "read";
    task.fn = read_some;
    if (status == LS_OK)
        status = ls_job_add(job, LS_JOB_EPOCH, &task);
    task.name = "write";
    task.fn = write_out;
    if (status == LS_OK)
        status = ls_job_add(job, LS_JOB_EXIT, &task);
    return status == LS_OK ? ls_job_stop_on(job, "done") : status;
}

/* ---- the node ---------------------------------------------------------- */

static int create(ls_node **out, uint32_t id)
{
    static const char *const all[] = {"ipc://1.ipc", "ipc://2.ipc",
                                      "ipc://3.ipc"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.job = "reader";
    options.id = id;
    options.bind = all[id - 1];
    options.attach = all;
    options.n_attach = 3;
    options.world_size = 3;
    options.start_timeout_ms = 60000;
    return ls_node_create(out, &options);
}

int main(int argc, char **argv)
{
    struct reader reader = {.kill_epoch = LS_CHECKPOINT_NONE};
    struct ls_job_options options = {.name = "reader"};
    struct ls_job_result result;
    ls_node *node;
    ls_rpc *calls;
    if (argc != 4 && argc != 6)
        return failed("ID FOLDER RESUME [EPOCH US]");
    reader.id = (uint32_t)strtoul(argv[1], NULL, 10);
    if (reader.id < 1 || reader.id > 3)
        return failed("ID is 1, 2 or 3");
    options.folder = argv[2];
    options.resume = strcmp(argv[3], "scratch") == 0  ? LS_JOB_SCRATCH
                     : strcmp(argv[3], "newest") == 0 ? LS_JOB_NEWEST
                                                      : LS_JOB_AT;
    options.epoch = strtoll(argv[3], NULL, 10);
    if (argc == 6) {
        reader.kill_epoch = strtoll(argv[4], NULL, 10);
        reader.kill_us = strtoll(argv[5], NULL, 10);
    }
    if (create(&node, reader.id) != LS_OK ||
        ls_rpc_open(&calls, node, NULL) != LS_OK ||
        ls_job_create(&reader.job, node, calls, &options) != LS_OK ||
        describe(&reader) != LS_OK || ls_node_start(node) != LS_OK)
        return failed("start");
    const int status = ls_job_run(reader.job, &result);
    const int code = status == LS_OK ? 0 : failed("run");
    if (status == LS_OK)
        printf("%" PRId64 " %" PRIu64 " %" PRId64 "\n", result.epoch,
               result.n_epochs, reader.total);
    ls_rpc_close(&calls);
    const int freed = ls_job_destroy(&reader.job);
    ls_node_destroy(&node);
    return freed == LS_OK ? code : failed("destroy");
}
