#include "store_home.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "lockstep/payload.h"
#include "store_files.h"
#include "store_parts.h"
#include "told.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
/* A name takes memory, too, whatever it stands for: so many bytes of room have
 * one at most. */
#define BYTES_PER_NAME 64

/* A put, or without bytes a drop. */
struct job {
    struct job *next;
    ls_request *request; /* own */
    struct store_put_call put;
    struct store_bytes *bytes; /* own */
};

/* The lock is not held while a request is answered or a file is written. */
struct store_home {
    ls_node *node;
    ls_runtime *runtime;
    uint32_t coordinator;
    bool listens;
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
        ls_record_write(&store_answer_record, answer, writer);
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
    const struct ls_body none = {NULL, 0, NULL, NULL};
    struct store_answer answer = {.n = 0};
    say(request, &answer, status, &none);
}

/* A call that breaks the format fails with the text of why. */
static int malformed(struct store_home *home, const ls_request *request,
                     int status)
{
    ls_mutex_lock(&home->lock);
    const uint64_t n = ++home->stats.malformed;
    ls_mutex_unlock(&home->lock);
    if (is_told(n))
        ls_log_warn("store: call %s of node %u was refused: %s",
                    ls_request_name(request), ls_request_from(request),
                    ls_error_text());
    return status;
}

/* Puts and drops --------------------------------------------------------- */

/* The lock is held. What the name stands for goes. */
static int check_room(struct store_home *home, const char *name, size_t size)
{
    const struct store_bytes *before = store_table_get(&home->table, name);
    if (before == NULL && home->table.n > home->max_bytes / BYTES_PER_NAME) {
        home->stats.refused++;
        return ls_error(LS_EAGAIN, "a store: no room for %s: it has %zu names",
                        name, home->table.n);
    }
    const uint64_t held =
        home->table.held + home->waiting - (before != NULL ? before->size : 0);
    if (held <= home->max_bytes && size <= home->max_bytes - held)
        return LS_OK;
    home->stats.refused++;
    return size > home->max_bytes
               ? ls_error(LS_ELIMIT,
                          "a store: %s has %zu bytes, but the store has %zu",
                          name, size, home->max_bytes)
               : ls_error(LS_EAGAIN,
                          "a store: no room for %s of %zu bytes: %llu of %zu "
                          "are taken",
                          name, size, (unsigned long long)held,
                          home->max_bytes);
}

/* Whether it touches the folder; the lock is held. */
static bool is_kept(const struct store_home *home, const struct job *job)
{
    return home->kept != NULL &&
           (job->bytes != NULL
                ? job->put.keep
                : store_table_keeps(&home->table, job->put.name));
}

/* The lock is held. Takes the bytes. */
static int set(struct store_home *home, const struct job *job)
{
    if (job->bytes == NULL) {
        store_table_drop(&home->table, job->put.name);
        return LS_OK;
    }
    const int status = store_table_set(&home->table, job->put.name, job->bytes,
                                       job->put.rank, job->put.keep);
    if (status != LS_OK)
        store_bytes_release(job->bytes);
    return status;
}

static int write_kept(const struct store_home *home, const struct job *job)
{
    if (job->bytes == NULL)
        return store_drop(home->kept, job->put.name, 0);
    return store_put(home->kept, &(struct store_put){.name = job->put.name,
                                                     .data = job->bytes->data,
                                                     .size = job->bytes->size,
                                                     .keep = true,
                                                     .rank = job->put.rank});
}

/* On disk first: what a put has promised is there for the next life. */
static int keep(struct store_home *home, const struct job *job)
{
    int status = write_kept(home, job);
    ls_mutex_lock(&home->lock);
    home->waiting -= job->bytes != NULL ? job->bytes->size : 0;
    if (status == LS_OK)
        status = set(home, job);
    else
        store_bytes_release(job->bytes);
    ls_mutex_unlock(&home->lock);
    return status;
}

/* Do it, unless it is for a disk: then `later` is set, and room is kept for it.
 * Takes the bytes. */
static int begin(struct store_home *home, const struct job *job, bool *later)
{
    int status = LS_OK;
    ls_mutex_lock(&home->lock);
    if (job->bytes != NULL)
        status = check_room(home, job->put.name, job->bytes->size);
    *later = status == LS_OK && is_kept(home, job);
    if (*later)
        home->waiting += job->bytes != NULL ? job->bytes->size : 0;
    else if (status == LS_OK)
        status = set(home, job);
    else
        store_bytes_release(job->bytes);
    ls_mutex_unlock(&home->lock);
    return status;
}

static int do_now(struct store_home *home, const struct job *job)
{
    bool later;
    const int status = begin(home, job, &later);
    return later ? keep(home, job) : status;
}

/* What was asked for by a call: what is for a disk is the keeper's. */
static int serve_job(struct store_home *home, struct job what,
                     ls_request *request)
{
    struct job **end = &home->jobs, *job = malloc(sizeof *job);
    bool later;
    if (job == NULL) {
        store_bytes_release(what.bytes);
        return ls_error(LS_ENOMEM, "a store: %s", what.put.name);
    }
    what.request = request;
    *job = what;
    const int status = begin(home, job, &later);
    if (!later) {
        free(job);
        say_status(request, status);
        return LS_OK;
    }
    ls_mutex_lock(&home->lock);
    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    ls_cond_signal(&home->changed);
    ls_mutex_unlock(&home->lock);
    return LS_OK;
}

static int on_put(void *self, ls_request *request)
{
    struct store_home *home = self;
    struct job job = {.next = NULL};
    struct ls_body body;
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = store_call_read(&store_put_record, &job.put, data, size);
    if (status != LS_OK)
        return malformed(home, request, status);
    ls_request_take_body(request, &body);
    /* It is kept for long, and not in memory of the one that put it. */
    if (ls_body_keep(&body) != LS_OK) {
        ls_body_release(&body);
        return ls_error_at(LS_ENOMEM, "a store: %s", job.put.name);
    }
    job.bytes = store_bytes_create(&body);
    return job.bytes != NULL ? serve_job(home, job, request)
                             : ls_error(LS_ENOMEM, "a store: %s", job.put.name);
}

/* Only what one drops alone may be a policy, which is on a disk. */
static int on_drop(void *self, ls_request *request)
{
    struct store_home *home = self;
    struct store_drop_call call;
    size_t size;
    const void *data = ls_request_data(request, &size);
    int status = store_call_read(&store_drop_record, &call, data, size);
    if (status != LS_OK)
        return malformed(home, request, status);
    struct job job = {.next = NULL};
    for (size_t i = 0; i < call.n && status == LS_OK; i++) {
        memcpy(job.put.name, call.names[i], sizeof job.put.name);
        if (i + 1 < call.n)
            status = do_now(home, &job);
    }
    free(call.names);
    return status == LS_OK ? serve_job(home, job, request) : status;
}

int store_home_put(struct store_home *home, const struct store_put_call *put,
                   struct ls_body *body)
{
    const struct job job = {.put = *put, .bytes = store_bytes_create(body)};
    return job.bytes != NULL ? do_now(home, &job)
                             : ls_error(LS_ENOMEM, "a store: %s", put->name);
}

int store_home_drop(struct store_home *home, const char *name)
{
    struct job job = {.next = NULL};
    (void)snprintf(job.put.name, sizeof job.put.name, "%s", name);
    return do_now(home, &job);
}

/* The keeper ------------------------------------------------------------- */

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

/* The lock is held. */
static int find(struct store_home *home, const struct store_range *part,
                struct store_blob *out)
{
    struct store_bytes *bytes = store_table_get(&home->table, part->name);
    uint64_t size = part->size;
    if (bytes == NULL)
        return ls_error(LS_ENOENT, "a store: there is no %s", part->name);
    const int status =
        store_check_part(part->name, part->at, &size, bytes->size);
    if (status == LS_OK)
        *out = store_bytes_blob(bytes, part->at, (size_t)size);
    return status;
}

int store_home_get(struct store_home *home, const struct store_range *part,
                   struct store_blob *out)
{
    ls_mutex_lock(&home->lock);
    const int status = find(home, part, out);
    ls_mutex_unlock(&home->lock);
    return status;
}

/* What a get has found. */
struct found {
    struct store_answer answer;
    struct store_blob blobs[STORE_GET_MAX]; /* own; answer.n */
    size_t size;
    struct ls_body body; /* own */
};

/* As much as goes at once; the lock is held. */
static int look_up(struct store_home *home, const struct store_get_call *call,
                   struct found *found)
{
    struct store_answer *answer = &found->answer;
    int status = LS_OK;
    for (; answer->n < call->n && status == LS_OK; answer->n++) {
        struct store_blob *blob = &found->blobs[answer->n];
        status = find(home, &call->parts[answer->n], blob);
        if (status != LS_OK)
            break;
        if (answer->n != 0 && found->size + blob->size > STORE_GET_BYTES) {
            store_blob_fini(blob);
            break;
        }
        found->size += answer->sizes[answer->n] = blob->size;
    }
    return status;
}

/* All of it as one body, made where it is read; a single one as it is kept. */
static int gather(const struct store_home *home, struct found *found)
{
    const size_t n = found->answer.n;
    struct store_blob *first = &found->blobs[0];
    if (n == 1) {
        found->body = (struct ls_body){first->data, first->size, first->release,
                                       first->hint};
        found->answer.n = 1;
        first->release = NULL;
        first->data = NULL;
        return LS_OK;
    }
    void *all;
    if (ls_payload_alloc(&all, home->node, found->size) != LS_OK)
        return ls_error_at(LS_ENOMEM, "a store: %zu parts", n);
    found->body = (struct ls_body){all, found->size, ls_payload_free, NULL};
    char *at = all;
    for (size_t i = 0; i < n; at += found->blobs[i++].size)
        memcpy(at, found->blobs[i].data, found->blobs[i].size);
    return LS_OK;
}

static int on_get(void *self, ls_request *request)
{
    struct store_home *home = self;
    struct found *found = calloc(1, sizeof *found);
    struct store_get_call call;
    size_t size;
    const void *data = ls_request_data(request, &size);
    if (found == NULL)
        return ls_error(LS_ENOMEM, "a store");
    int status = store_call_read(&store_get_record, &call, data, size);
    if (status != LS_OK) {
        free(found);
        return malformed(home, request, status);
    }
    ls_mutex_lock(&home->lock);
    status = look_up(home, &call, found);
    ls_mutex_unlock(&home->lock);
    if (status == LS_OK)
        status = gather(home, found);
    say(request, &found->answer, status, &found->body);
    for (size_t i = 0; i < found->answer.n; i++)
        store_blob_fini(&found->blobs[i]);
    free(call.parts);
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
    struct ls_body body = {blob.data, blob.size, blob.release, blob.hint};
    struct store_bytes *bytes = store_bytes_create(&body);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "a store: %s", name);
    status = store_table_set(&home->table, name, bytes, 0, true);
    if (status != LS_OK)
        store_bytes_release(bytes);
    return status;
}

/* Nobody knows of the data any more. */
static void on_member(void *self, const struct ls_member *member)
{
    struct store_home *home = self;
    if (member->id != home->coordinator ||
        (member->state != LS_MEMBER_LEFT && member->state != LS_MEMBER_LOST))
        return;
    ls_mutex_lock(&home->lock);
    store_table_drop_data(&home->table);
    ls_mutex_unlock(&home->lock);
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
    home->coordinator = options->coordinator;
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
        status = ls_node_on_member(home->node, on_member, home);
    home->listens = status == LS_OK;
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
    if (h->listens && ls_node_on_member(h->node, NULL, h) != LS_OK)
        ls_log_debug("store: a listener was gone: %s", ls_error_text());
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
