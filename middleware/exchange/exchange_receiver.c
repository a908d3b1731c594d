/* The receiving half of an exchange. Design notes:
 *
 * - Events are handled on the dispatch thread, which only puts bytes into the
 *   inbox; they are read and merged by the step, so a slow merge holds up
 *   nobody else's events.
 * - The outcome must not depend on when things arrive. So a receiver takes one
 *   message of each sender, in order of id; a run that finishes does not break
 *   off a wait, but makes it go on until each sender has sent or has said that
 *   it has ended ("end", after its last message, on the same event and hence
 *   in order). A wait that outlives its time while the run finishes ends well:
 *   there is nothing left to protect.
 * - The waiter must not hold the lock when it asks the task: the task calls
 *   on_cancel() under a lock of its own. It compares `changes` instead: what it
 *   learned without the lock is good if nothing changed until it has it.
 * - ls_node_members() is asked once per wait, since ls_node_start() may return
 *   before on_member() was called for the members that are ready. */
#include "exchange_receiver.h"

#include <inttypes.h>
#include <stdlib.h>

#include "exchange_inbox.h"
#include "fields.h"
#include "lockstep/channel.h"
#include "lockstep/log.h"
#include "told.h"

enum { QUEUE_DEPTH = 16 };

static const char FINISH[] = "ls.finish"; /* task.h */

struct ls_exchange_receiver {
    struct ls_exchange_how how;

    /* The step's. */
    uint64_t run;
    int64_t newest;            /* the iteration of what the context has */
    struct ls_member *members; /* own; a buffer */
    size_t n_members;

    /* What is to be taken back. */
    bool hears_events, hears_members, hears_cancel, hears_finish;

    ls_mutex mutex; /* guards what follows */
    ls_cond changed;
    uint64_t changes;
    ls_exchange_inbox *inbox;
    struct ls_failure failed; /* the first that could not be put there */
};

/* What comes in ---------------------------------------------------------- */

static void note_change(ls_exchange_receiver *receiver)
{
    receiver->changes++;
    ls_cond_broadcast(&receiver->changed);
}

/* The step is to say so: it would wait for it in vain. */
static void note_failure(ls_exchange_receiver *receiver, int status)
{
    if (status != LS_OK && receiver->failed.status == LS_OK)
        ls_failure_keep(&receiver->failed, status);
}

static int on_message(void *self, const struct ls_event *event)
{
    ls_exchange_receiver *receiver = self;
    uint64_t run, dropped = 0;
    const bool end = ls_exchange_is_end(event->data, event->size, &run);
    ls_mutex_lock(&receiver->mutex);
    const int status =
        end ? ls_exchange_inbox_end(receiver->inbox, event->origin,
                                    event->incarnation, run)
            : ls_exchange_inbox_put(receiver->inbox, event->origin,
                                    event->incarnation, event->data,
                                    event->size, &dropped);
    note_failure(receiver, status);
    note_change(receiver);
    ls_mutex_unlock(&receiver->mutex);
    if (!receiver->how.newest && is_told(dropped) && dropped > 0)
        ls_log_warn("exchange \"%s\": node %u is %d messages ahead of this "
                    "node; %" PRIu64 " of its oldest lost so far",
                    receiver->how.name, (unsigned)event->origin, QUEUE_DEPTH,
                    dropped);
    return status;
}

static void on_member(void *self, const struct ls_member *member)
{
    ls_exchange_receiver *receiver = self;
    ls_mutex_lock(&receiver->mutex);
    note_failure(receiver, ls_exchange_inbox_member(receiver->inbox, member));
    note_change(receiver);
    ls_mutex_unlock(&receiver->mutex);
}

static void look_again(void *self)
{
    ls_exchange_receiver *receiver = self;
    ls_mutex_lock(&receiver->mutex);
    note_change(receiver);
    ls_mutex_unlock(&receiver->mutex);
}

static void on_cancel(void *self, int status)
{
    (void)status;
    look_again(self);
}

/* The task listens since before us, so it knows by now. */
static int on_finish(void *self, const struct ls_event *event)
{
    (void)event;
    look_again(self);
    return LS_OK;
}

/* Waiting ---------------------------------------------------------------- */

static int members_refresh(ls_exchange_receiver *receiver)
{
    size_t n;
    while ((n = ls_node_members(ls_task_node(receiver->how.task),
                                receiver->members, receiver->n_members)) >
           receiver->n_members) {
        struct ls_member *members =
            realloc(receiver->members, n * sizeof *members);
        if (members == NULL)
            return ls_error(LS_ENOMEM, "exchange: no memory for %zu members",
                            n);
        receiver->members = members;
        receiver->n_members = n;
    }
    ls_mutex_lock(&receiver->mutex);
    const int status =
        ls_exchange_inbox_members(receiver->inbox, receiver->members, n);
    ls_mutex_unlock(&receiver->mutex);
    return status;
}

/* Whether the step can go on: LS_OK, LS_EAGAIN: not yet, or LS_ELOST. */
static int judge(ls_exchange_receiver *receiver, bool finishing)
{
    struct ls_exchange_look look;
    ls_exchange_inbox_look(receiver->inbox, receiver->run, &look);
    const size_t awaited = look.awaited + (finishing ? 0 : look.ended);
    if (receiver->how.newest ? look.queued > 0
                             : look.queued > 0 && awaited + look.lost == 0)
        return LS_OK;
    /* One sender is as good as another where only the newest counts. */
    if (look.lost > 0 && !(receiver->how.newest && awaited > 0))
        return ls_exchange_inbox_take_loss(receiver->inbox, receiver->run);
    if (awaited > 0)
        return LS_EAGAIN;
    if (finishing || receiver->how.sends_too)
        return LS_OK;
    return look.left > 0 ? ls_exchange_inbox_none_left(receiver->inbox)
                         : LS_EAGAIN;
}

static int timed_out(ls_exchange_receiver *receiver, bool finishing)
{
    char names[512];
    ls_exchange_inbox_print_awaited(receiver->inbox, receiver->run, !finishing,
                                    names, sizeof names);
    if (names[0] == '\0')
        return ls_error(LS_ETIMEDOUT,
                        "no node of role %s has sent in %d ms, and none is "
                        "there that would; is it in the world?",
                        receiver->how.from, receiver->how.timeout_ms);
    return ls_error(LS_ETIMEDOUT, "nothing came in %d ms from %s",
                    receiver->how.timeout_ms, names);
}

/* Wait for a change after `seen`, or judge at once what there is. */
static int wait_once(ls_exchange_receiver *receiver, uint64_t seen,
                     bool finishing, struct ls_due *due)
{
    ls_mutex_lock(&receiver->mutex);
    int status = receiver->failed.status != LS_OK
                     ? ls_failure_return(&receiver->failed)
                     : LS_EAGAIN;
    if (status == LS_EAGAIN && receiver->changes == seen)
        status = judge(receiver, finishing);
    int waited = LS_OK;
    while (status == LS_EAGAIN && waited == LS_OK && receiver->changes == seen)
        waited = ls_cond_wait(&receiver->changed, &receiver->mutex, due->at);
    if (waited != LS_OK && receiver->changes == seen &&
        ls_due_has_passed(ls_task_node(receiver->how.task), due)) {
        status = timed_out(receiver, finishing);
        if (finishing) {
            ls_log_warn("exchange \"%s\": the run ends without more: %s",
                        receiver->how.name, ls_error_text());
            status = LS_OK;
        }
    }
    ls_mutex_unlock(&receiver->mutex);
    return status;
}

static uint64_t changes_so_far(ls_exchange_receiver *receiver)
{
    ls_mutex_lock(&receiver->mutex);
    const uint64_t changes = receiver->changes;
    ls_mutex_unlock(&receiver->mutex);
    return changes;
}

static int ended_from_outside(const ls_exchange_receiver *receiver)
{
    const int status = ls_task_cancelled(receiver->how.task);
    return status != LS_OK
               ? status
               : ls_node_interrupted(ls_task_node(receiver->how.task));
}

static int wait_for_senders(ls_exchange_receiver *receiver, struct ls_due *due)
{
    int status = members_refresh(receiver);
    if (status != LS_OK)
        return status;
    do {
        const uint64_t seen = changes_so_far(receiver);
        status = ended_from_outside(receiver);
        if (status != LS_OK)
            return status; /* which may be LS_EAGAIN, too */
        status = wait_once(receiver, seen,
                           ls_task_finishing(receiver->how.task), due);
    } while (status == LS_EAGAIN);
    return status;
}

/* Taking ----------------------------------------------------------------- */

struct batch {
    struct ls_exchange_part *parts; /* own */
    size_t n;
};

static void batch_clear(struct batch *batch)
{
    while (batch->n > 0)
        ls_exchange_part_fini(&batch->parts[--batch->n]);
    free(batch->parts);
    batch->parts = NULL;
}

/* Read the oldest message of every sender that has one. */
static int batch_take(ls_exchange_receiver *receiver, struct batch *out)
{
    ls_mutex_lock(&receiver->mutex);
    struct ls_exchange_look look;
    ls_exchange_inbox_look(receiver->inbox, receiver->run, &look);
    const size_t capacity = look.queued > 0 ? look.queued : 1;
    struct ls_exchange_message *messages = calloc(capacity, sizeof *messages);
    struct batch batch = {calloc(capacity, sizeof *batch.parts), 0};
    const size_t n =
        messages == NULL || batch.parts == NULL
            ? 0
            : ls_exchange_inbox_take(receiver->inbox, messages, capacity);
    ls_mutex_unlock(&receiver->mutex);

    int status =
        messages == NULL || batch.parts == NULL
            ? ls_error(LS_ENOMEM, "no memory for %zu messages", capacity)
            : LS_OK;
    for (size_t i = 0; i < n; i++) {
        if (status == LS_OK)
            status =
                ls_exchange_part_read(&batch.parts[batch.n], messages[i].sender,
                                      messages[i].data, messages[i].size);
        if (status == LS_OK)
            batch.n++;
        free(messages[i].data);
    }
    free(messages);
    if (status != LS_OK)
        batch_clear(&batch);
    else
        *out = batch;
    return status;
}

static int merge(ls_exchange_receiver *receiver, const struct batch *batch)
{
    return ls_exchange_merge(receiver->how.plan,
                             ls_task_context(receiver->how.task), batch->parts,
                             batch->n);
}

static int receive_each(ls_exchange_receiver *receiver, struct ls_due *due)
{
    struct batch batch;
    int status = wait_for_senders(receiver, due);
    if (status == LS_OK)
        status = batch_take(receiver, &batch);
    if (status != LS_OK)
        return status;
    status = merge(receiver, &batch);
    batch_clear(&batch);
    return status;
}

/* Keep the part of the highest iteration; the lowest id between equals. */
static void keep_newest(struct batch *batch, struct batch *kept)
{
    for (size_t i = 0; i < batch->n; i++) {
        if (kept->n > 0 &&
            batch->parts[i].iteration <= kept->parts[0].iteration)
            continue;
        const struct ls_exchange_part worse = kept->parts[0];
        kept->parts[0] = batch->parts[i];
        batch->parts[i] = worse;
        kept->n = 1;
    }
    batch_clear(batch);
}

static int receive_newest(ls_exchange_receiver *receiver, struct ls_due *due)
{
    const int64_t step =
        ls_field_int(ls_task_context(receiver->how.task), "total_step", 0);
    const int64_t oldest = receiver->how.stale == 0
                               ? INT64_MIN
                               : step - (int64_t)receiver->how.stale;
    struct ls_exchange_part room = {.document = NULL};
    struct batch batch, kept = {&room, 0};
    int status;
    for (bool waited = false;; waited = true) {
        status = batch_take(receiver, &batch);
        if (status != LS_OK)
            break;
        /* A wait that ended well, and nothing: the run finishes. */
        const bool no_more = waited && batch.n == 0;
        keep_newest(&batch, &kept);
        if (kept.n > 0 && room.iteration > receiver->newest)
            receiver->newest = room.iteration;
        if (receiver->newest >= oldest || no_more)
            break;
        status = wait_for_senders(receiver, due);
        if (status != LS_OK)
            break;
    }
    if (status == LS_OK)
        status = merge(receiver, &kept);
    ls_exchange_part_fini(&room);
    return status;
}

int ls_exchange_receive(ls_exchange_receiver *receiver, uint64_t run)
{
    struct ls_due due =
        ls_due_at(ls_task_node(receiver->how.task),
                  ls_deadline(ls_task_runtime(receiver->how.task),
                              receiver->how.timeout_ms));
    receiver->run = run;
    const int status = receiver->how.newest ? receive_newest(receiver, &due)
                                            : receive_each(receiver, &due);
    /* Why a run was cancelled is not this exchange's to say. */
    return status == LS_OK || status == ls_task_cancelled(receiver->how.task)
               ? status
               : ls_error_at(status, "exchange \"%s\"", receiver->how.name);
}

void ls_exchange_receiver_begin(ls_exchange_receiver *receiver, uint64_t round)
{
    receiver->newest =
        ls_field_int(ls_task_context(receiver->how.task), "total_step", 0) - 1;
    ls_mutex_lock(&receiver->mutex);
    const uint64_t before = ls_exchange_inbox_stale(receiver->inbox);
    ls_exchange_inbox_begin(receiver->inbox, round);
    const uint64_t stale = ls_exchange_inbox_stale(receiver->inbox);
    ls_mutex_unlock(&receiver->mutex);
    if (stale > before)
        ls_log_info("exchange \"%s\": a new round; %" PRIu64
                    " messages of the one before are thrown away",
                    receiver->how.name, stale - before);
}

/* Life ------------------------------------------------------------------- */

static int listen_to_all(ls_exchange_receiver *receiver)
{
    ls_task *task = receiver->how.task;
    ls_node *node = ls_task_node(task);
    int status = ls_on(node, receiver->how.event, on_message, receiver);
    receiver->hears_events = status == LS_OK;
    if (status == LS_OK) {
        status = ls_node_on_member(node, on_member, receiver);
        receiver->hears_members = status == LS_OK;
    }
    if (status == LS_OK) {
        status = ls_task_on_cancel(task, on_cancel, receiver);
        receiver->hears_cancel = status == LS_OK;
    }
    if (status == LS_OK)
        status = ls_node_on_interrupt(node, look_again, receiver);
    if (status == LS_OK) {
        status = ls_on(node, FINISH, on_finish, receiver);
        receiver->hears_finish = status == LS_OK;
    }
    return status;
}

/* ls_off_all() may have done it before. */
static void taken_away(int status)
{
    if (status != LS_OK)
        ls_log_debug("exchange: somebody has taken its listener away: %s",
                     ls_error_text());
}

int ls_exchange_receiver_create(ls_exchange_receiver **out,
                                const struct ls_exchange_how *how)
{
    ls_runtime *runtime = ls_task_runtime(how->task);
    ls_exchange_receiver *receiver = calloc(1, sizeof *receiver);
    if (receiver == NULL)
        return ls_error(LS_ENOMEM, "no memory for a receiver");
    receiver->how = *how;
    int status = ls_exchange_inbox_create(&receiver->inbox, how->from,
                                          how->newest ? 1 : QUEUE_DEPTH);
    if (status == LS_OK)
        status = ls_mutex_init(&receiver->mutex, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&receiver->changed, runtime);
    if (status == LS_OK)
        status = listen_to_all(receiver);
    if (status != LS_OK)
        ls_exchange_receiver_destroy(&receiver);
    else
        *out = receiver;
    return status;
}

void ls_exchange_receiver_destroy(ls_exchange_receiver **receiver)
{
    if (receiver == NULL || *receiver == NULL)
        return;
    ls_exchange_receiver *old = *receiver;
    ls_task *task = old->how.task;
    ls_node *node = ls_task_node(task);
    *receiver = NULL;
    if (old->hears_finish)
        taken_away(ls_off(node, FINISH, on_finish, old));
    taken_away(ls_node_on_interrupt(node, NULL, old));
    if (old->hears_cancel)
        taken_away(ls_task_on_cancel(task, NULL, old));
    if (old->hears_members)
        taken_away(ls_node_on_member(node, NULL, old));
    if (old->hears_events)
        taken_away(ls_off(node, old->how.event, on_message, old));
    ls_exchange_inbox_destroy(&old->inbox);
    ls_cond_fini(&old->changed);
    ls_mutex_fini(&old->mutex);
    free(old->members);
    free(old);
}
