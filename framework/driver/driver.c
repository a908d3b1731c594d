/* One rank: who it is, what it does with the others, and how it ends. */
#include "driver_inside.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/simulation.h"

#include "places.h"

/* Who and where ------------------------------------------------------------ */

enum ls_driver_kind ls_driver_kind_of(const ls_driver *driver)
{
    return driver->run->options->kind;
}

uint32_t ls_driver_rank(const ls_driver *driver)
{
    return driver->rank;
}

uint32_t ls_driver_size(const ls_driver *driver)
{
    return driver->size;
}

uint32_t ls_driver_local_rank(const ls_driver *driver)
{
    return driver->local_rank;
}

ls_group *ls_driver_group(const ls_driver *driver)
{
    return driver->group;
}

ls_runtime *ls_driver_runtime(const ls_driver *driver)
{
    return driver->run->runtime;
}

uint64_t ls_driver_seed(const ls_driver *driver)
{
    return driver->run->options->seed;
}

struct ls_rng *ls_driver_random(ls_driver *driver)
{
    return &driver->random;
}

ls_blobs *ls_driver_blobs(ls_driver *driver)
{
    return driver->blobs;
}

ls_blobs *ls_driver_rank_blobs(ls_driver *driver)
{
    return driver->rank_blobs;
}

/* Together ----------------------------------------------------------------- */

int ls_driver_barrier(ls_driver *driver)
{
    return driver->off >= LS_NO_BARRIER
               ? LS_OK
               : ls_group_barrier(driver->group, driver->run->timeout_ms);
}

int ls_driver_broadcast_object(ls_driver *driver, ls_writer *value,
                               uint32_t root, ls_document **out)
{
    *out = NULL;
    if (driver->off >= LS_NO_EXCHANGE)
        return LS_OK;
    return ls_group_broadcast_object(driver->group, value, root, out, NULL,
                                     driver->run->timeout_ms);
}

static int gather_alone(ls_writer *value, ls_document **out, size_t *n)
{
    const void *data;
    size_t size;
    *out = NULL;
    if (value == NULL)
        return ls_error(LS_EINVAL, "driver: there is no value to bring");
    int status = ls_writer_bytes(value, &data, &size);
    if (status == LS_OK)
        status = ls_document_read(out, data, size, NULL);
    if (status == LS_OK)
        *n = 1;
    return status;
}

int ls_driver_all_gather_object(ls_driver *driver, ls_writer *value,
                                ls_document **out, size_t *n)
{
    if (driver->off >= LS_NO_EXCHANGE)
        return gather_alone(value, out, n);
    const int status = ls_group_all_gather_object(
        driver->group, value, out, NULL, driver->run->timeout_ms);
    if (status == LS_OK)
        *n = driver->size;
    return status;
}

int ls_driver_any(ls_driver *driver, bool yes, bool *any)
{
    int64_t said = yes ? 1 : 0;
    int status = LS_OK;
    if (driver->off < LS_NO_EXCHANGE)
        status = ls_group_all_reduce(driver->group, &said, 1, LS_GROUP_I64,
                                     LS_GROUP_MAX, driver->run->timeout_ms);
    if (status == LS_OK)
        *any = said != 0;
    return status;
}

int ls_driver_without_sync(ls_driver *driver, enum ls_sync_off off,
                           ls_driver_fn *fn, void *self)
{
    const int before = driver->off;
    if ((int)off > before)
        driver->off = (int)off;
    const int status = fn(self, driver);
    driver->off = before;
    return status;
}

int ls_driver_rank_zero(ls_driver *driver, ls_driver_fn *fn, void *self)
{
    int status = LS_OK;
    if (driver->rank == 0)
        status = ls_driver_without_sync(driver, LS_NO_EXCHANGE, fn, self);
    return driver_agree(driver, status);
}

int driver_need_all(const ls_driver *driver)
{
    return driver->off < LS_NO_EXCHANGE
               ? LS_OK
               : ls_error(LS_ESTATE,
                          "driver: this takes all ranks, and rank "
                          "%u is in a section that runs without "
                          "the others",
                          driver->rank);
}

/* How all fared ------------------------------------------------------------ */

/* Texts are any bytes: they go as binaries. */
static void write_outcome(ls_writer *out, int status)
{
    ls_write_array(out, status == LS_OK ? 1 : 2);
    ls_write_int(out, status);
    if (status != LS_OK)
        ls_write_binary(out, ls_error_text(), strlen(ls_error_text()));
}

static int read_outcome(const ls_value *value, uint32_t rank)
{
    const void *text = NULL;
    size_t size = 0;
    int64_t status;
    int bad = ls_value_int(ls_value_at(value, 0), &status);
    if (bad != LS_OK || status == LS_OK)
        return bad;
    bad = ls_value_binary(ls_value_at(value, 1), &text, &size);
    if (bad != LS_OK)
        return bad;
    bad = ls_error(LS_EABORTED, "rank %u: %.*s", rank, (int)size,
                   size > 0 ? (const char *)text : "");
    ls_error_set_cause((int)status);
    return bad;
}

static int gather_outcomes(ls_driver *driver, int status, ls_document **all)
{
    ls_writer *writer = NULL;
    size_t n = 0;
    int made = ls_writer_create(&writer);
    if (made == LS_OK) {
        write_outcome(writer, status);
        made = ls_driver_all_gather_object(driver, writer, all, &n);
    }
    ls_writer_destroy(&writer);
    for (size_t i = 0; i < n && made == LS_OK; i++)
        made = read_outcome(ls_document_root(all[i]), (uint32_t)i);
    for (size_t i = 0; i < n; i++)
        ls_document_destroy(&all[i]);
    return made;
}

int driver_agree(ls_driver *driver, int status)
{
    struct ls_failure failure;
    if (driver->off >= LS_NO_EXCHANGE)
        return status;
    ls_failure_keep(&failure, status);
    ls_document **all = calloc(driver->size, sizeof all[0]);
    if (all == NULL)
        return ls_error(LS_ENOMEM, "driver: no memory for %u outcomes",
                        driver->size);
    const int others = gather_outcomes(driver, status, all);
    free(all);
    driver->was_told = status == LS_OK && others != LS_OK;
    return status != LS_OK ? ls_failure_return(&failure) : others;
}

/* From beginning to end ---------------------------------------------------- */

static void host_name(ls_runtime *runtime, char out[256])
{
    ls_host *const host = ls_host_of(runtime);
    out[0] = out[255] = '\0';
    if (host != NULL)
        strncpy(out, ls_host_name(host), 255);
    else
        (void)gethostname(out, 255);
}

/* Which of the ranks on its host a rank is. Threads need not ask. */
static int find_local_rank(ls_driver *driver)
{
    const size_t size = 256;
    if (ls_driver_kind_of(driver) == LS_DRIVER_SINGLE ||
        ls_driver_kind_of(driver) == LS_DRIVER_THREADS) {
        driver->local_rank = driver->rank;
        return LS_OK;
    }
    char *const names = calloc(driver->size, size);
    char own[256];
    if (names == NULL)
        return ls_error(LS_ENOMEM, "driver: no memory for %u names",
                        driver->size);
    memset(own, 0, sizeof own);
    host_name(driver->run->runtime, own);
    const int status = ls_group_all_gather(driver->group, own, size, names,
                                           driver->run->timeout_ms);
    for (uint32_t i = 0; i < driver->rank && status == LS_OK; i++)
        driver->local_rank += memcmp(names + i * size, own, size) == 0;
    free(names);
    return status;
}

static int save_random(void *self, ls_blob_sink *sink)
{
    const struct ls_rng *random = self;
    return ls_blob_sink_add(sink, random->state, sizeof random->state);
}

static int load_random(void *self, ls_blob_source *source)
{
    struct ls_rng read, *random = self;
    const int status =
        ls_blob_source_read(source, read.state, sizeof read.state);
    if (status != LS_OK)
        return status;
    if (!ls_rng_is_valid(&read))
        return ls_error(LS_EPROTO, "a generator of nothing but zeros");
    *random = read;
    return LS_OK;
}

static int add_random(ls_driver *driver)
{
    static const struct ls_blob_ops ops = {.save = save_random,
                                           .load = load_random};

    ls_rng_seed(&driver->random, ls_driver_seed(driver),
                STREAM_OF_RANK(driver->rank));
    return ls_blobs_add(driver->rank_blobs,
                        &(struct ls_blob){.name = "random",
                                          .form = {LS_BLOB_I64, 1, {4}},
                                          .ops = &ops,
                                          .self = &driver->random});
}

static int driver_init(ls_driver *driver, struct driver_run *run, size_t at)
{
    ls_group *const group = run->groups[at];
    *driver = (ls_driver){.run = run,
                          .group = group,
                          .rank = ls_group_rank(group),
                          .size = ls_group_size(group)};
    int status = ls_blobs_create(&driver->blobs);
    if (status == LS_OK)
        status = ls_blobs_create(&driver->rank_blobs);
    if (status == LS_OK)
        status = add_random(driver);
    return status == LS_OK ? find_local_rank(driver) : status;
}

static void driver_fini(ls_driver *driver)
{
    driver_close_checkpoints(driver);
    trained_fini(&driver->trained);
    driver_close_devices(driver);
    ls_blobs_destroy(&driver->rank_blobs);
    ls_blobs_destroy(&driver->blobs);
}

void driver_run_rank(struct driver_run *run, size_t at)
{
    ls_driver driver;
    int status = driver_init(&driver, run, at);
    if (status == LS_OK)
        status = run->fn(run->self, &driver);
    /* Nobody has succeeded while another may yet fail. */
    if (status == LS_OK)
        status = ls_group_barrier(driver.group, run->timeout_ms);
    if (status != LS_OK)
        ls_driver_on_exception(&driver, status, NULL, NULL);
    driver_fini(&driver);
}

int ls_driver_run(const struct ls_driver_options *options, ls_driver_fn *fn,
                  void *self)
{
    const struct place_ops *const place = place_of(options->kind);
    struct driver_run run = {
        .options = options,
        .runtime = options->runtime != NULL ? options->runtime
                   : options->node != NULL  ? ls_node_runtime(options->node)
                                            : ls_runtime_threads(),
        .fn = fn,
        .self = self,
        .timeout_ms =
            options->timeout_ms != 0 ? options->timeout_ms : LS_WAIT_DEFAULT};
    if (place == NULL)
        return ls_error(LS_EINVAL, "driver: %d is not a kind of driver",
                        (int)options->kind);
    if (options->timeout_ms < 0)
        return ls_error(LS_EINVAL,
                        "driver: timeout_ms is %d, and must not be "
                        "negative",
                        options->timeout_ms);
    int status = place->check(options);
    if (status == LS_OK)
        status = ls_mutex_init(&run.mutex, run.runtime);
    if (status != LS_OK)
        return status;
    status = place->run(&run);
    ls_mutex_fini(&run.mutex);
    return status == LS_OK ? ls_failure_return(&run.first) : status;
}
