#include "store_home_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "store_files.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
#define DEFAULT_SENDERS   4

/* Read again what an earlier life has kept. */
static int recall(void *self, const char *name)
{
    struct store_home *home = self;
    struct store_blob blob;
    int status = store_get(home->kept, &name, 1, &blob, 0);
    if (status != LS_OK)
        return status;
    struct store_bytes *bytes = store_bytes_create(blob.data, blob.size);
    store_blob_fini(&blob);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "a store: %s", name);
    status = store_table_set(&home->table, name, bytes, 0);
    if (status != LS_OK)
        store_bytes_release(bytes);
    return status;
}

static int open_kept(struct store_home *home, const char *folder)
{
    if (folder == NULL)
        return LS_OK;
    const struct store_files_options options = {.folder = folder};
    int status = store_files_open(&home->kept, &options);
    if (status == LS_OK)
        status = store_files_each(home->kept, recall, home);
    return status;
}

static int make_locks(struct store_home *home)
{
    int status = ls_mutex_init(&home->lock, home->runtime);
    if (status == LS_OK)
        status = ls_mutex_init(&home->keeping, home->runtime);
    if (status == LS_OK)
        status = ls_mutex_init(&home->turn, home->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&home->changed, home->runtime);
    return status;
}

static int start_senders(struct store_home *home, unsigned n)
{
    int status = LS_OK;
    while (home->n_senders < n && status == LS_OK) {
        status = ls_thread_spawn(home->runtime, &home->senders[home->n_senders],
                                 "store", store_home_sender, home);
        if (status == LS_OK)
            home->n_senders++;
    }
    return status;
}

static int listen(struct store_home *home, ls_calls *calls)
{
    int status = ls_on(home->node, STORE_PUT_EVENT, store_home_on_bytes, home);
    home->hears = status == LS_OK;
    if (status == LS_OK)
        status = ls_node_on_member(home->node, store_home_on_member, home);
    home->watches = status == LS_OK;
    if (status == LS_OK)
        status = ls_calls_serve(calls, STORE_PUT_CALL, LS_CALL_ANYONE,
                                store_home_on_put, home);
    if (status == LS_OK)
        status = ls_calls_serve(calls, STORE_GET_CALL, LS_CALL_ANYONE,
                                store_home_on_get, home);
    if (status == LS_OK)
        status = ls_calls_serve(calls, STORE_DROP_CALL, LS_CALL_ANYONE,
                                store_home_on_drop, home);
    return status;
}

int store_home_open(struct store_home **out,
                    const struct store_home_options *options)
{
    if (options->n_senders > STORE_SENDERS_MAX)
        return ls_error(LS_EINVAL,
                        "the home of a store: n_senders: %u, "
                        "expected 1 to %d",
                        options->n_senders, STORE_SENDERS_MAX);
    struct store_home *home = calloc(1, sizeof *home);
    if (home == NULL)
        return ls_error(LS_ENOMEM, "the home of a store");
    home->node = options->node;
    home->runtime = ls_node_runtime(options->node);
    home->max_bytes =
        options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES;
    int status = make_locks(home);
    if (status == LS_OK)
        status = store_table_init(&home->table);
    if (status == LS_OK)
        status = open_kept(home, options->keep);
    if (status == LS_OK)
        status = start_senders(home, options->n_senders > 0 ? options->n_senders
                                                            : DEFAULT_SENDERS);
    if (status == LS_OK)
        status = listen(home, options->calls);
    if (status != LS_OK) {
        store_home_close(&home);
        return status;
    }
    *out = home;
    return LS_OK;
}

/* It cannot fail for what is there. */
static void must(int status)
{
    assert(status == LS_OK);
    (void)status;
}

static void stop_senders(struct store_home *home)
{
    if (home->n_senders == 0)
        return;
    ls_mutex_lock(&home->turn);
    home->closing = true;
    ls_cond_broadcast(&home->changed);
    ls_mutex_unlock(&home->turn);
    for (unsigned i = 0; i < home->n_senders; i++)
        must(ls_thread_join(&home->senders[i], LS_FOREVER));
}

static void end_all(struct store_job **jobs)
{
    while (*jobs != NULL) {
        struct store_job *job = *jobs;
        *jobs = job->next;
        store_home_answer(job, ls_error(LS_ECLOSED, "the store is closed"));
    }
}

void store_home_close(struct store_home **home)
{
    if (home == NULL || *home == NULL)
        return;
    struct store_home *h = *home;
    if (h->hears)
        must(ls_off(h->node, STORE_PUT_EVENT, store_home_on_bytes, h));
    if (h->watches)
        must(ls_node_on_member(h->node, NULL, h));
    stop_senders(h);
    end_all(&h->claims);
    end_all(&h->jobs);
    while (h->arrivals != NULL) {
        struct store_arrival *arrival = h->arrivals;
        h->arrivals = arrival->next;
        store_home_arrival_free(arrival);
    }
    store_table_fini(&h->table);
    store_close(&h->kept);
    ls_cond_fini(&h->changed);
    ls_mutex_fini(&h->turn);
    ls_mutex_fini(&h->keeping);
    ls_mutex_fini(&h->lock);
    free(h);
    *home = NULL;
}

void store_home_stats(struct store_home *home, struct store_home_stats *out)
{
    ls_mutex_lock(&home->lock);
    *out = home->stats;
    out->names = home->table.n;
    out->bytes = home->table.held;
    ls_mutex_unlock(&home->lock);
}
