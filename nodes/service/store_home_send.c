/* What the home of a store does on threads of its own: sending values, writing
 * those that are kept, and answering requests that nobody waits for. */
#include "store_home_parts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"

void store_home_answer(struct store_job *job, int status)
{
    struct store_answer answer = {.status = status};
    if (status != LS_OK)
        (void)snprintf(answer.text, sizeof answer.text, "%s", ls_error_text());
    answer.n = job->is_put || status != LS_OK ? 0 : job->n;
    for (size_t i = 0; i < answer.n; i++)
        answer.values[i] = job->bytes[i]->value;
    ls_writer *writer = NULL;
    const void *data = NULL;
    size_t size = 0;
    int written = ls_writer_create(&writer);
    if (written == LS_OK) {
        store_answer_write(&answer, writer);
        written = ls_writer_bytes(writer, &data, &size);
    }
    if (written == LS_OK)
        (void)ls_request_complete(&job->request, data, size);
    else
        (void)ls_request_fail(&job->request, ls_error_text());
    ls_writer_destroy(&writer);
    for (size_t i = 0; i < job->n; i++)
        store_bytes_release(job->bytes[i]);
    free(job);
}

void store_home_queue(struct store_home *home, struct store_job *job)
{
    struct store_job **end = &home->jobs;
    job->next = NULL;
    ls_mutex_lock(&home->turn);
    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    ls_cond_signal(&home->changed);
    ls_mutex_unlock(&home->turn);
}

void store_home_alarm(void *self)
{
    struct store_home *home = self;
    ls_mutex_lock(&home->turn);
    home->alarmed = true;
    ls_cond_signal(&home->changed);
    ls_mutex_unlock(&home->turn);
}

static void released(void *data, void *hint)
{
    (void)data;
    store_bytes_release(hint);
}

/* Wait no longer than the one who asked.
 * Errors: LS_ECANCELED it does not any more. */
static int time_left(const struct store_home *home, const ls_request *request,
                     int *wait_ms)
{
    const int64_t left = ls_request_deadline(request) - ls_now(home->runtime);
    if (left <= 0 || ls_request_is_cancelled(request))
        return ls_error(LS_ECANCELED, "nobody waits for it");
    const int64_t ms = left / LS_NS_PER_MS + 1;
    *wait_ms = ms < INT32_MAX ? (int)ms : INT32_MAX;
    return LS_OK;
}

static int send_one(const struct store_home *home, const struct store_job *job,
                    struct store_bytes *bytes)
{
    char event[LS_EVENT_MAX + 1];
    struct ls_emission emission = {.event = event,
                                   .data = bytes->data,
                                   .size = bytes->value.size,
                                   .policy = LS_POLICY_RELIABLE,
                                   .to_one = true,
                                   .to = job->from,
                                   .release = released,
                                   .hint = bytes};
    const int status = time_left(home, job->request, &emission.wait_ms);
    if (status != LS_OK)
        return status;
    (void)snprintf(event, sizeof event, STORE_DATA_EVENT, job->from);
    (void)store_bytes_share(bytes);
    return ls_emit_with(home->node, &emission);
}

/* What an emit says means something else of a store. */
static int as_answer(int status)
{
    return status == LS_EAGAIN   ? LS_ETIMEDOUT
           : status == LS_ENOENT ? LS_ELOST
                                 : status;
}

static int send_all(struct store_home *home, const struct store_job *job)
{
    int status = LS_OK;
    size_t n = 0;
    for (; n < job->n && status == LS_OK; n++)
        status = send_one(home, job, job->bytes[n]);
    ls_mutex_lock(&home->lock);
    home->stats.sent += status == LS_OK ? n : n - 1;
    home->stats.failed += status == LS_OK ? 0 : 1;
    ls_mutex_unlock(&home->lock);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(as_answer(status), "a store: sending to node %u",
                             job->from);
}

/* On disk first: what a put has promised is there for the next life. */
static int keep(struct store_home *home, struct store_job *job)
{
    const struct store_put put = {.name = job->claim.name,
                                  .data = job->bytes[0]->data,
                                  .size = job->bytes[0]->value.size,
                                  .keep = true,
                                  .rank = job->claim.rank};
    ls_mutex_lock(&home->keeping);
    int status = store_put(home->kept, &put);
    ls_mutex_lock(&home->lock);
    if (status == LS_OK)
        status =
            store_table_set(&home->table, put.name, job->bytes[0], put.rank);
    if (status == LS_OK) {
        home->stats.puts++;
        job->n = 0; /* the table has it now */
    } else {
        home->stats.failed++;
    }
    ls_mutex_unlock(&home->lock);
    ls_mutex_unlock(&home->keeping);
    return status;
}

/* End the claims that nobody waits for. */
static void sweep(struct store_home *home)
{
    struct store_job *ended = NULL;
    ls_mutex_lock(&home->lock);
    for (struct store_job **at = &home->claims; *at != NULL;) {
        struct store_job *job = *at;
        if (!ls_request_is_cancelled(job->request)) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        job->next = ended;
        ended = job;
    }
    ls_mutex_unlock(&home->lock);
    while (ended != NULL) {
        struct store_job *job = ended;
        ended = job->next;
        store_home_answer(job, ls_error(LS_ECANCELED, "nobody waits for it"));
    }
}

/* The next thing to do; false: to end. *job NULL: to sweep. */
static bool next_turn(struct store_home *home, struct store_job **job)
{
    int status = LS_OK;
    *job = NULL;
    ls_mutex_lock(&home->turn);
    while (!home->closing && !home->alarmed && home->jobs == NULL &&
           status == LS_OK)
        status = ls_cond_wait(&home->changed, &home->turn, LS_FOREVER);
    assert(status == LS_OK); /* for ever has no end */
    const bool goes_on = !home->closing;
    if (goes_on && home->alarmed) {
        home->alarmed = false;
    } else if (goes_on) {
        *job = home->jobs;
        home->jobs = (*job)->next;
    }
    ls_mutex_unlock(&home->turn);
    return goes_on;
}

void store_home_sender(void *self)
{
    struct store_home *home = self;
    struct store_job *job;
    ls_log_set_node(ls_node_id(home->node));
    while (next_turn(home, &job)) {
        if (job == NULL)
            sweep(home);
        else
            store_home_answer(job, job->is_put ? keep(home, job)
                                               : send_all(home, job));
    }
}
