#include "store_home.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "store_calls.h"
#include "store_files.h"
#include "store_parts.h"
#include "store_table.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)

/* A put or a drop that touches the folder. */
struct job {
    struct job *next;
    ls_request *request; /* own */
    bool drops;
    struct store_put_call put;
    struct store_bytes *bytes; /* own; of a put */
};

/* The lock is not held while a request is answered or a file is written. */
struct store_home {
    ls_node *node;
    ls_runtime *runtime;
    size_t max_bytes;
    struct store *kept; /* own; NULL: none. The keeper's */
    ls_mutex lock;
    ls_cond changed;
    struct store_table table;
    struct job *jobs;              /* the oldest first */
    uint64_t waiting;              /* bytes of theirs */
    struct store_home_stats stats; /* names and bytes are not kept up */
    bool closing;
    ls_thread *keeper; /* own; it does the jobs */
};

/* Answers ---------------------------------------------------------------- */

static void say(ls_request *request, struct store_answer *answer, int status,
                const struct ls_body *body)
{
    ls_writer *writer = NULL;
    const void *data = NULL;
    size_t size = 0;
    answer->status = status;
    if (status != LS_OK)
        (void)snprintf(answer->text, sizeof answer->text, "%s",
                       ls_error_text());
    int written = ls_writer_create(&writer);
    if (written == LS_OK) {
        store_answer_write(answer, writer);
        written = ls_writer_bytes(writer, &data, &size);
    }
    if (written == LS_OK) {
        (void)ls_request_complete_with(&request, data, size, body);
    } else {
        struct ls_body given = *body;
        ls_body_release(&given);
        (void)ls_request_fail(&request, ls_error_text());
    }
    ls_writer_destroy(&writer);
}

/* status other than LS_OK: with ls_error_text(). */
static void say_status(ls_request *request, int status)
{
    static const struct ls_body none = {NULL, 0, NULL, NULL};
    struct store_answer answer = {.n = 0};
    say(request, &answer, status, &none);
}

/* A call that breaks the format fails with the text of why. */
static int malformed(struct store_home *home, const ls_request *request,
                     int status)
{
    ls_mutex_lock(&home->lock);
    home->stats.malformed++;
    ls_mutex_unlock(&home->lock);
    ls_log_warn("store: call %s of node %u was refused: %s",
                ls_request_name(request), ls_request_from(request),
                ls_error_text());
    return status;
}

/* Puts and drops --------------------------------------------------------- */

/* The lock is held. */
static int check_room(struct store_home *home, const char *name, size_t size)
{
    const uint64_t held = home->table.held + home->waiting;
    if (held <= home->max_bytes && size <= home->max_bytes - held)
        return LS_OK;
    home->stats.refused++;
    return size > home->max_bytes
               ? ls_error(LS_ELIMIT,
                          "a store: %s has %zu bytes, and all of it is %zu",
                          name, size, home->max_bytes)
               : ls_error(LS_EAGAIN,
                          "a store: no room for %s of %zu bytes: %llu of %zu "
                          "are taken",
                          name, size, (unsigned long long)held,
                          home->max_bytes);
}

/* The lock is held. Takes the bytes. */
static int set(struct store_home *home, const struct store_put_call *put,
               struct store_bytes *bytes)
{
    const int status =
        store_table_set(&home->table, put->name, bytes, put->rank, put->keep);
    if (status == LS_OK)
        home->stats.puts++;
    else
        store_bytes_release(bytes);
    return status;
}

/* Hand it to the keeper; the lock is held. Takes the bytes on success. */
static int queue(struct store_home *home, ls_request *request, bool drops,
                 const struct store_put_call *put, struct store_bytes *bytes)
{
    struct job **end = &home->jobs, *job = calloc(1, sizeof *job);
    if (job == NULL)
        return ls_error(LS_ENOMEM, "a store: %s", put->name);
    *job = (struct job){
        .request = request, .drops = drops, .put = *put, .bytes = bytes};
    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    home->waiting += bytes != NULL ? bytes->size : 0;
    ls_cond_signal(&home->changed);
    return LS_OK;
}

static int on_put(void *self, ls_request *request)
{
    struct store_home *home = self;
    struct store_put_call put;
    struct ls_body body;
    size_t size;
    const void *data = ls_request_data(request, &size);
    int status = store_put_read(&put, data, size);
    if (status != LS_OK)
        return malformed(home, request, status);
    ls_request_take_body(request, &body);
    struct store_bytes *bytes = store_bytes_create(&body);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "a store: %s", put.name);
    ls_mutex_lock(&home->lock);
    status = check_room(home, put.name, bytes->size);
    const bool later = status == LS_OK && put.keep && home->kept != NULL;
    if (later)
        status = queue(home, request, false, &put, bytes);
    else if (status == LS_OK)
        status = set(home, &put, bytes);
    else
        store_bytes_release(bytes);
    ls_mutex_unlock(&home->lock);
    if (!later || status != LS_OK)
        say_status(request, status);
    return LS_OK;
}

static int on_drop(void *self, ls_request *request)
{
    struct store_home *home = self;
    struct store_names *names = malloc(sizeof *names);
    struct store_put_call what = {.rank = 0};
    size_t size;
    const void *data = ls_request_data(request, &size);
    if (names == NULL)
        return ls_error(LS_ENOMEM, "a store");
    int status = store_names_read(names, data, size);
    if (status == LS_OK && names->n != 1)
        status = ls_error(LS_EPROTO, "a drop: %zu names", names->n);
    if (status == LS_OK)
        memcpy(what.name, names->at[0], sizeof what.name);
    free(names);
    if (status != LS_OK)
        return malformed(home, request, status);
    ls_mutex_lock(&home->lock);
    const bool later =
        home->kept != NULL && store_table_keeps(&home->table, what.name);
    if (later) {
        status = queue(home, request, true, &what, NULL);
    } else {
        store_table_drop(&home->table, what.name);
        home->stats.drops++;
    }
    ls_mutex_unlock(&home->lock);
    if (!later || status != LS_OK)
        say_status(request, status);
    return LS_OK;
}

/* The keeper ------------------------------------------------------------- */

/* On disk first: what a put has promised is there for the next life. */
static int keep(struct store_home *home, const struct job *job)
{
    const char *name = job->put.name;
    int status = LS_OK;
    if (job->drops)
        status = store_drop(home->kept, name, 0);
    else
        status =
            store_put(home->kept, &(struct store_put){.name = name,
                                                      .data = job->bytes->data,
                                                      .size = job->bytes->size,
                                                      .keep = true,
                                                      .rank = job->put.rank});
    ls_mutex_lock(&home->lock);
    home->waiting -= job->bytes != NULL ? job->bytes->size : 0;
    if (status != LS_OK) {
        home->stats.failed++;
        store_bytes_release(job->bytes);
    } else if (job->drops) {
        store_table_drop(&home->table, name);
        home->stats.drops++;
    } else {
        status = set(home, &job->put, job->bytes);
    }
    ls_mutex_unlock(&home->lock);
    return status;
}

static struct job *next_job(struct store_home *home)
{
    int status = LS_OK;
    ls_mutex_lock(&home->lock);
    while (!home->closing && home->jobs == NULL && status == LS_OK)
        status = ls_cond_wait(&home->changed, &home->lock, LS_FOREVER);
    struct job *job = home->closing ? NULL : home->jobs;
    if (job != NULL)
        home->jobs = job->next;
    ls_mutex_unlock(&home->lock);
    return job;
}

static void keeper_main(void *self)
{
    struct store_home *home = self;
    struct job *job;
    ls_log_set_node(ls_node_id(home->node));
    while ((job = next_job(home)) != NULL) {
        say_status(job->request, keep(home, job));
        free(job);
    }
}

/* Gets ------------------------------------------------------------------- */

/* What a get has found. */
struct found {
    struct store_names names;
    struct store_bytes *at[STORE_GET_MAX]; /* own */
    struct store_answer answer;
    size_t size;
    struct ls_body body; /* own */
};

static void free_data(void *data, void *hint)
{
    (void)hint;
    free(data);
}

static void release_bytes(void *data, void *hint)
{
    (void)data;
    store_bytes_release(hint);
}

/* Take what the names stand for, as much as goes at once; the lock is held.
 * Errors: LS_ENOENT. */
static int look_up(struct store_home *home, struct found *found)
{
    struct store_answer *answer = &found->answer;
    for (; answer->n < found->names.n; answer->n++) {
        const char *name = found->names.at[answer->n];
        struct store_bytes *bytes = store_table_get(&home->table, name);
        if (bytes == NULL) {
            home->stats.misses++;
            return ls_error(LS_ENOENT, "a store: there is no %s", name);
        }
        if (answer->n != 0 && found->size + bytes->size > STORE_GET_BYTES)
            break;
        found->at[answer->n] = store_bytes_share(bytes);
        found->size += answer->sizes[answer->n] = bytes->size;
    }
    home->stats.got += answer->n;
    return LS_OK;
}

/* All of it as one body. */
static int gather(struct found *found)
{
    const size_t n = found->answer.n;
    if (n == 1) {
        found->body =
            (struct ls_body){(void *)(uintptr_t)found->at[0]->data, found->size,
                             release_bytes, store_bytes_share(found->at[0])};
        return LS_OK;
    }
    char *at = malloc(found->size + 1);
    if (at == NULL)
        return ls_error(LS_ENOMEM, "a store: %zu bytes in %zu names",
                        found->size, n);
    found->body = (struct ls_body){at, found->size, free_data, NULL};
    for (size_t i = 0; i < n; at += found->at[i++]->size)
        memcpy(at, found->at[i]->data, found->at[i]->size);
    return LS_OK;
}

static int on_get(void *self, ls_request *request)
{
    struct store_home *home = self;
    struct found *found = calloc(1, sizeof *found);
    size_t size;
    const void *data = ls_request_data(request, &size);
    if (found == NULL)
        return ls_error(LS_ENOMEM, "a store");
    int status = store_names_read(&found->names, data, size);
    if (status != LS_OK) {
        free(found);
        return malformed(home, request, status);
    }
    ls_mutex_lock(&home->lock);
    status = look_up(home, found);
    ls_mutex_unlock(&home->lock);
    if (status == LS_OK)
        status = gather(found);
    say(request, &found->answer, status, &found->body);
    for (size_t i = 0; i < found->answer.n; i++)
        store_bytes_release(found->at[i]);
    free(found);
    return LS_OK;
}

/* Life ------------------------------------------------------------------- */

/* Read again what an earlier life has kept. */
static int recall(void *self, const char *name)
{
    struct store_home *home = self;
    struct store_blob blob;
    int status = store_get(home->kept, &name, 1, &blob, 0);
    if (status != LS_OK)
        return status;
    struct ls_body body = {blob.data, blob.size,
                           blob.release != NULL ? blob.release : free_data,
                           blob.hint};
    struct store_bytes *bytes = store_bytes_create(&body);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "a store: %s", name);
    status = store_table_set(&home->table, name, bytes, 0, true);
    if (status != LS_OK)
        store_bytes_release(bytes);
    return status;
}

static int open_kept(struct store_home *home, const char *folder)
{
    const struct store_files_options options = {.folder = folder};
    if (folder == NULL)
        return LS_OK;
    int status = store_files_open(&home->kept, &options);
    if (status == LS_OK)
        status = store_files_each(home->kept, recall, home);
    if (status == LS_OK)
        status = ls_thread_spawn(home->runtime, &home->keeper, "store",
                                 keeper_main, home);
    return status;
}

static int serve(struct store_home *home, ls_rpc *calls)
{
    int status =
        ls_rpc_serve(calls, STORE_PUT_CALL, LS_CALL_ANYONE, on_put, home);
    if (status == LS_OK)
        status =
            ls_rpc_serve(calls, STORE_GET_CALL, LS_CALL_ANYONE, on_get, home);
    if (status == LS_OK)
        status =
            ls_rpc_serve(calls, STORE_DROP_CALL, LS_CALL_ANYONE, on_drop, home);
    return status;
}

int store_home_open(struct store_home **out,
                    const struct store_home_options *options)
{
    struct store_home *home = calloc(1, sizeof *home);
    if (home == NULL)
        return ls_error(LS_ENOMEM, "the home of a store");
    home->node = options->node;
    home->runtime = ls_node_runtime(options->node);
    home->max_bytes =
        options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES;
    int status = ls_mutex_init(&home->lock, home->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&home->changed, home->runtime);
    if (status == LS_OK)
        status = store_table_init(&home->table);
    if (status == LS_OK)
        status = open_kept(home, options->keep);
    if (status == LS_OK)
        status = serve(home, options->calls);
    if (status != LS_OK) {
        store_home_close(&home);
        return status;
    }
    *out = home;
    return LS_OK;
}

static void stop_keeper(struct store_home *home)
{
    if (home->keeper == NULL)
        return;
    ls_mutex_lock(&home->lock);
    home->closing = true;
    ls_cond_broadcast(&home->changed);
    ls_mutex_unlock(&home->lock);
    const int status = ls_thread_join(&home->keeper, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
}

void store_home_close(struct store_home **home)
{
    if (home == NULL || *home == NULL)
        return;
    struct store_home *h = *home;
    stop_keeper(h);
    while (h->jobs != NULL) {
        struct job *job = h->jobs;
        h->jobs = job->next;
        say_status(job->request, ls_error(LS_ECLOSED, "the store is closed"));
        store_bytes_release(job->bytes);
        free(job);
    }
    store_table_fini(&h->table);
    store_close(&h->kept);
    ls_cond_fini(&h->changed);
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
