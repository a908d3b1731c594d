/* What comes to the home of a store: bytes, what they are, who wants some.
 *
 * A put has two halves, bytes and claim, that may come in either order, and of
 * which one may never come: its sender is lost, or gives up. A claim ends with
 * its request; bytes go with their sender, or when too many of one sender's
 * wait. */
#include "store_home_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"

/* Of one sender: more than its threads that put at once. */
#define MAX_ARRIVALS 64

void store_home_arrival_free(struct store_arrival *arrival)
{
    store_bytes_release(arrival->bytes);
    free(arrival);
}

static struct store_job *make_job(ls_request *request, size_t room)
{
    struct store_job *job =
        calloc(1, sizeof *job + room * sizeof(struct store_bytes *));
    if (job == NULL)
        return NULL;
    job->request = request;
    job->from = ls_request_from(request);
    return job;
}

static int no_memory(void)
{
    return ls_error(LS_ENOMEM, "a store");
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

/* Puts ------------------------------------------------------------------- */

static int no_room(struct store_home *home, const struct store_claim *claim)
{
    home->stats.refused++;
    return claim->value.size > home->max_bytes
               ? ls_error(LS_ELIMIT,
                          "a store: %s has %llu bytes, and all of it is %zu",
                          claim->name, (unsigned long long)claim->value.size,
                          home->max_bytes)
               : ls_error(LS_EAGAIN,
                          "a store: no room for %s of %llu bytes: %llu of %zu "
                          "are taken",
                          claim->name, (unsigned long long)claim->value.size,
                          (unsigned long long)home->table.held,
                          home->max_bytes);
}

/* Both halves of a put are there. Takes the job; bytes: own; NULL: there was no
 * room. */
static void finish_put(struct store_home *home, struct store_job *job,
                       struct store_bytes *bytes)
{
    if (bytes != NULL && job->claim.keep && home->kept != NULL) {
        job->n = 1;
        job->bytes[0] = bytes;
        store_home_queue(home, job);
        return;
    }
    ls_mutex_lock(&home->lock);
    int status = LS_OK;
    if (bytes == NULL) {
        status = no_room(home, &job->claim);
    } else {
        status = store_table_set(&home->table, job->claim.name, bytes,
                                 job->claim.rank);
        if (status == LS_OK)
            home->stats.puts++;
        else
            store_bytes_release(bytes);
    }
    ls_mutex_unlock(&home->lock);
    store_home_answer(job, status);
}

/* Take the arrival that a claim is about; NULL: it has not come. */
static struct store_arrival *take_arrival(struct store_home *home,
                                          const struct store_job *job)
{
    struct store_arrival **at = &home->arrivals;
    while (*at != NULL && ((*at)->from != job->from ||
                           !store_value_equal((*at)->value, job->claim.value)))
        at = &(*at)->next;
    struct store_arrival *arrival = *at;
    if (arrival != NULL) {
        *at = arrival->next;
        home->arrived -= arrival->bytes != NULL ? arrival->value.size : 0;
    }
    return arrival;
}

/* Take the claim that an arrival is about; NULL: none has come. */
static struct store_job *take_claim(struct store_home *home,
                                    const struct store_arrival *arrival)
{
    struct store_job **at = &home->claims;
    while (*at != NULL &&
           ((*at)->from != arrival->from ||
            !store_value_equal((*at)->claim.value, arrival->value)))
        at = &(*at)->next;
    struct store_job *job = *at;
    if (job != NULL)
        *at = job->next;
    return job;
}

static void settle(struct store_home *home, struct store_job *job,
                   struct store_arrival *arrival)
{
    finish_put(home, job, arrival->bytes);
    arrival->bytes = NULL;
    store_home_arrival_free(arrival);
}

static int check_claim(const struct store_home *home,
                       const struct store_claim *claim)
{
    const uint64_t life = ls_node_incarnation(home->node);
    return claim->home == life
               ? LS_OK
               : ls_error(LS_ELOST,
                          "a store: the bytes of %s were sent to an "
                          "earlier life of its home",
                          claim->name);
}

int store_home_on_put(void *self, ls_request *request)
{
    struct store_home *home = self;
    size_t size;
    const void *data = ls_request_data(request, &size);
    struct store_claim claim;
    int status = store_claim_read(&claim, data, size);
    if (status != LS_OK)
        return malformed(home, request, status);
    struct store_job *job = make_job(request, 1);
    if (job == NULL)
        return no_memory();
    job->is_put = true;
    job->claim = claim;
    status = check_claim(home, &claim);
    if (status != LS_OK) {
        store_home_answer(job, status);
        return LS_OK;
    }
    /* Set first: an alarm that goes off before the claim is in the list is
     * seen below, and one after that finds it there. */
    ls_request_on_cancel(request, store_home_alarm, home);
    ls_mutex_lock(&home->lock);
    struct store_arrival *arrival = take_arrival(home, job);
    const bool is_late = arrival == NULL && ls_request_is_cancelled(request);
    if (arrival == NULL && !is_late) {
        job->next = home->claims;
        home->claims = job;
    }
    ls_mutex_unlock(&home->lock);
    if (is_late)
        store_home_answer(job, ls_error(LS_ECANCELED, "nobody waits for it"));
    if (arrival != NULL)
        settle(home, job, arrival);
    return LS_OK;
}

/* Add it behind the others of its sender, and take the oldest away if they are
 * too many; NULL: they are not. */
static struct store_arrival *add_arrival(struct store_home *home,
                                         struct store_arrival *arrival)
{
    struct store_arrival **at = &home->arrivals, **oldest = NULL;
    size_t n = 0;
    for (; *at != NULL; at = &(*at)->next) {
        if ((*at)->from != arrival->from)
            continue;
        if (n++ == 0)
            oldest = at;
    }
    *at = arrival;
    home->arrived += arrival->bytes != NULL ? arrival->value.size : 0;
    if (n < MAX_ARRIVALS)
        return NULL;
    struct store_arrival *extra = *oldest;
    *oldest = extra->next;
    home->arrived -= extra->bytes != NULL ? extra->value.size : 0;
    home->stats.unclaimed++;
    return extra;
}

static bool has_room(struct store_home *home, size_t size)
{
    ls_mutex_lock(&home->lock);
    const uint64_t held = home->table.held + home->arrived;
    ls_mutex_unlock(&home->lock);
    return held <= home->max_bytes && size <= home->max_bytes - held;
}

int store_home_on_bytes(void *self, const struct ls_event *event)
{
    struct store_home *home = self;
    struct store_arrival *arrival = calloc(1, sizeof *arrival);
    if (arrival == NULL)
        return LS_OK; /* as if they had not come */
    arrival->from = event->origin;
    if (has_room(home, event->size))
        arrival->bytes = store_bytes_create(event->data, event->size);
    arrival->value = arrival->bytes != NULL
                         ? arrival->bytes->value
                         : store_value_of(event->data, event->size);
    ls_mutex_lock(&home->lock);
    struct store_job *job = take_claim(home, arrival);
    struct store_arrival *extra =
        job == NULL ? add_arrival(home, arrival) : NULL;
    ls_mutex_unlock(&home->lock);
    if (job != NULL)
        settle(home, job, arrival);
    if (extra != NULL)
        store_home_arrival_free(extra);
    return LS_OK;
}

void store_home_on_member(void *self, const struct ls_member *member)
{
    struct store_home *home = self;
    struct store_arrival *gone = NULL;
    if (member->state != LS_MEMBER_LEFT && member->state != LS_MEMBER_LOST)
        return;
    ls_mutex_lock(&home->lock);
    for (struct store_arrival **at = &home->arrivals; *at != NULL;) {
        struct store_arrival *arrival = *at;
        if (arrival->from != member->id) {
            at = &arrival->next;
            continue;
        }
        *at = arrival->next;
        home->arrived -= arrival->bytes != NULL ? arrival->value.size : 0;
        home->stats.unclaimed++;
        arrival->next = gone;
        gone = arrival;
    }
    ls_mutex_unlock(&home->lock);
    while (gone != NULL) {
        struct store_arrival *arrival = gone;
        gone = arrival->next;
        store_home_arrival_free(arrival);
    }
}

/* Gets and drops --------------------------------------------------------- */

/* Take what the names stand for.
 * Errors: LS_ENOENT. */
static int look_up(struct store_home *home, const struct store_names *names,
                   struct store_job *job)
{
    int status = LS_OK;
    ls_mutex_lock(&home->lock);
    for (size_t i = 0; i < names->n && status == LS_OK; i++) {
        struct store_bytes *bytes = store_table_get(&home->table, names->at[i]);
        if (bytes == NULL) {
            home->stats.misses++;
            status =
                ls_error(LS_ENOENT, "a store: there is no %s", names->at[i]);
        } else {
            job->bytes[job->n++] = store_bytes_share(bytes);
        }
    }
    ls_mutex_unlock(&home->lock);
    return status;
}

int store_home_on_get(void *self, ls_request *request)
{
    struct store_home *home = self;
    size_t size;
    const void *data = ls_request_data(request, &size);
    struct store_names *names = malloc(sizeof *names);
    if (names == NULL)
        return no_memory();
    int status = store_names_read(names, data, size);
    if (status != LS_OK) {
        free(names);
        return malformed(home, request, status);
    }
    struct store_job *job = make_job(request, names->n);
    if (job == NULL) {
        free(names);
        return no_memory();
    }
    status = look_up(home, names, job);
    free(names);
    if (status == LS_OK)
        store_home_queue(home, job);
    else
        store_home_answer(job, status);
    return LS_OK;
}

int store_home_on_drop(void *self, ls_request *request)
{
    struct store_home *home = self;
    size_t size;
    const void *data = ls_request_data(request, &size);
    char name[SAFE_NAME_MAX + 1];
    int status = store_drop_read(name, data, size);
    if (status != LS_OK)
        return malformed(home, request, status);
    struct store_job *job = make_job(request, 0);
    if (job == NULL)
        return no_memory();
    ls_mutex_lock(&home->keeping);
    if (home->kept != NULL)
        status = store_drop(home->kept, name, 0);
    ls_mutex_lock(&home->lock);
    if (status == LS_OK) {
        store_table_drop(&home->table, name);
        home->stats.drops++;
    }
    ls_mutex_unlock(&home->lock);
    ls_mutex_unlock(&home->keeping);
    store_home_answer(job, status);
    return LS_OK;
}
