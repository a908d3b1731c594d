/* A job of two nodes whose memory runs out, at many places where they take
 * some: it fails in both and says so, nobody waits for who has failed, and an
 * epoch that was told to be saved is. */
#define FOLDER_IN "/dev/shm" /* it syncs often */

#include "allocations.h"
#include "base/sanitized.h"
#include "lockstep/crew.h"
#include "lockstep/job.h"
#include "state/folder_fixture.h"

#define SITES    2
#define EPOCHS   2
#define SHORT_MS 100
#define STEP     (SANITIZED ? 7 : 2) /* there are hundreds of them */
/* Nobody may wait for as long as this. */
#define NEVER_MS 600000

EACH_TEST(folder_set_up, folder_tear_down)

struct site {
    uint32_t id;
    const char *folder;
    bool behind;
    int start_timeout_ms;
    bool began;
    int status;
    char text[LS_ERROR_TEXT_MAX];
    struct ls_job_result result;
};

static const struct ls_blob_form number = {LS_BLOB_I64, 0, {0}};
static const struct ls_blob_form flag = {LS_BLOB_U8, 0, {0}};

static int begin(void *self, ls_turn *turn)
{
    void *count, *done;
    (void)self;
    int status = ls_turn_blob(turn, "count", &number, &count);
    if (status == LS_OK)
        status = ls_turn_blob(turn, "done", &flag, &done);
    if (status != LS_OK)
        return status;
    *(int64_t *)count = 0;
    *(unsigned char *)done = 0;
    return LS_OK;
}

static int count_on(void *self, ls_turn *turn)
{
    void *count, *done;
    (void)self;
    int status = ls_turn_blob(turn, "count", &number, &count);
    if (status == LS_OK)
        status = ls_turn_blob(turn, "done", &flag, &done);
    if (status == LS_OK)
        *(unsigned char *)done = ++*(int64_t *)count >= EPOCHS;
    return status;
}

static int describe(ls_job *job)
{
    static const struct ls_job_task first = {.name = "begin", .fn = begin};
    static const struct ls_job_task each = {.name = "count", .fn = count_on};
    int status = ls_job_add(job, LS_JOB_INIT, &first);
    if (status == LS_OK)
        status = ls_job_add(job, LS_JOB_EPOCH, &each);
    return status == LS_OK ? ls_job_stop_on(job, "done") : status;
}

static int make(const struct site *site, ls_node **node, ls_rpc **calls,
                ls_job **job)
{
    static const char *const addresses[SITES] = {
        "inproc://job-out-of-memory-0", "inproc://job-out-of-memory-1"};
    struct ls_node_options options;
    const struct ls_job_options job_options = {.name = "counts",
                                               .folder = site->folder,
                                               .saves_behind = site->behind,
                                               .start_timeout_ms = NEVER_MS,
                                               .group_timeout_ms = NEVER_MS,
                                               .save_timeout_ms = NEVER_MS};
    ls_node_options_init(&options);
    options.id = site->id;
    options.bind = addresses[site->id];
    options.attach = addresses;
    options.n_attach = SITES;
    options.world_size = SITES;
    options.start_timeout_ms = site->start_timeout_ms;
    options.heartbeat_ms = 20;
    options.shared_bytes = 0; /* bus.out_of_memory has that */
    int status = ls_node_create(node, &options);
    if (status == LS_OK)
        status = ls_rpc_open(calls, *node, NULL);
    if (status == LS_OK)
        status = ls_job_create(job, *node, *calls, &job_options);
    return status == LS_OK ? describe(*job) : status;
}

static void live(void *all, size_t at)
{
    struct site *site = &((struct site *)all)[at];
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_job *job = NULL;
    int status = make(site, &node, &calls, &job);
    if (status == LS_OK)
        status = ls_node_start(node);
    site->began = status == LS_OK;
    if (status == LS_OK)
        status = ls_job_run(job, &site->result);
    site->status = status;
    (void)snprintf(site->text, sizeof site->text, "%s", ls_error_text());
    if (node != NULL)
        (void)ls_node_stop(node, status);
    (void)ls_rpc_close(&calls);
    (void)ls_job_destroy(&job);
    (void)ls_node_destroy(&node);
}

static bool went_well(const struct site *site)
{
    if (site->began && site->status != LS_OK &&
        (!allocation_failed() || site->status == LS_ETIMEDOUT))
        fail_msg("node %u: %s", (unsigned)site->id, site->text);
    return site->status == LS_OK;
}

static struct site sites[SITES];
static ls_crew *crew; /* of threads that are there before memory runs out */

static bool live_both(const struct place *place, bool behind, int start_ms)
{
    for (uint32_t i = 0; i < SITES; i++)
        sites[i] = (struct site){.id = i,
                                 .folder = place->folder,
                                 .behind = behind,
                                 .start_timeout_ms = start_ms};
    ls_crew_run(crew);
    const bool well = went_well(&sites[0]);
    return went_well(&sites[1]) && well;
}

/* Each job is a new one. */
static void forget_all(const struct place *place)
{
    char path[400];
    DIR *folder = opendir(place->folder);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        (void)snprintf(path, sizeof path, "%s/%s", place->folder,
                       entry->d_name);
        (void)unlink(path);
    }
    assert_int_equal(closedir(folder), 0);
}

TEST(nobody_waits_for_who_has_no_memory)
{
    const struct place *place = *state;
    assert_ok(ls_crew_create(&crew, ls_runtime_threads(), SITES, "site", live,
                             sites));
    for (long n = 0; allocations_fail_at(n); n += STEP) {
        (void)live_both(place, n / STEP % 2 == 1, SHORT_MS);
        forget_all(place);
    }
    assert_true(live_both(place, true, NEVER_MS));
    ls_crew_destroy(&crew);
}
