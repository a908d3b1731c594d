/* What others ask of this node. Requests come in on the dispatch thread; those
 * of the node that leads are worked on by a thread of their own. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_step_inside.h"

/* ---- of the one that leads ----------------------------------------------- */

static void wake(void *arg)
{
    ls_checkpoint_step *self = arg;
    ls_mutex_lock(&self->asker.mutex);
    ls_cond_broadcast(&self->asker.cond);
    ls_mutex_unlock(&self->asker.mutex);
}

/* With the mutex held. */
static bool is_ready(const ls_checkpoint_step *self, int64_t epoch)
{
    return self->stands &&
           (self->stands_at == LS_CHECKPOINT_NONE || self->stands_at >= epoch);
}

/* Whether this node, whose run begins, or has begun since it was asked, is
 * asked for what it has at the end of an iteration: another life of it came
 * there. begun: as it was when it was asked. With the mutex held. */
static bool is_too_early(const ls_checkpoint_step *self,
                         const struct question *question, int64_t epoch,
                         uint64_t begun)
{
    return (self->stands_at == LS_CHECKPOINT_NONE || self->begun != begun) &&
           epoch != LS_CHECKPOINT_NONE &&
           strcmp(question_text(question, "why"), STEP_WHY_BEGIN) != 0;
}

/* Until this node has come to the end of that iteration. */
static int wait_still(ls_checkpoint_step *self, struct question *question,
                      int64_t epoch)
{
    const int64_t deadline =
        question->request != NULL
            ? ls_request_deadline(question->request)
            : ls_deadline(self->asker.runtime, self->options.timeout_ms);
    int status = LS_OK;
    ls_mutex_lock(&self->asker.mutex);
    const uint64_t begun = self->begun;
    while (!is_ready(self, epoch) && self->begun == begun &&
           self->lane.running && status == LS_OK &&
           !question_is_cancelled(question))
        status = ls_cond_wait(&self->asker.cond, &self->asker.mutex, deadline);
    if (!is_ready(self, epoch) || is_too_early(self, question, epoch, begun))
        status =
            ls_error(LS_ESTATE,
                     "it has not come to the end of iteration %" PRId64, epoch);
    else if (self->stands_at > epoch)
        status =
            ls_error(LS_ESTATE, "it is at epoch %" PRId64, self->stands_at);
    else if (epoch != LS_CHECKPOINT_NONE)
        status = ls_failure_return(&self->unready);
    self->moving = status == LS_OK;
    ls_mutex_unlock(&self->asker.mutex);
    return status;
}

static int still(void *arg, struct question *question)
{
    ls_checkpoint_step *self = arg;
    const int64_t epoch =
        strcmp(question_text(question, "do"), "load") == 0
            ? LS_CHECKPOINT_NONE
            : question_int(question, "epoch", LS_CHECKPOINT_NONE);
    if (question->request != NULL)
        ls_request_on_cancel(question->request, wake, self);
    const int status = wait_still(self, question, epoch);
    if (question->request != NULL)
        ls_request_on_cancel(question->request, NULL, NULL);
    return status;
}

static double metric(void *arg)
{
    const ls_checkpoint_step *self = arg;
    return self->options.metric != NULL
               ? self->options.metric(self->options.self)
               : NAN;
}

static int saved(void *arg, const struct ls_checkpoint_manifest *manifest)
{
    ls_checkpoint_step *self = arg;
    ls_mutex_lock(&self->asker.mutex);
    self->epoch = manifest->epoch;
    ls_mutex_unlock(&self->asker.mutex);
    return self->options.saved != NULL
               ? self->options.saved(self->options.self, manifest)
               : LS_OK;
}

const struct saves_ops step_saves_ops = {
    .still = still, .metric = metric, .saved = saved};

/* Once its blobs are copied, or it is known what came of the save, this node
 * may go on. */
static void release(ls_checkpoint_step *self, const char *what, int64_t epoch,
                    int status)
{
    const bool copied = strcmp(what, "copy") == 0 && status == LS_OK;
    ls_mutex_lock(&self->asker.mutex);
    self->moving = false;
    const bool over = strcmp(what, "verdict") == 0;
    if (over && epoch > self->over_at)
        self->over_at = epoch;
    if ((copied || over) && epoch == self->stands_at)
        self->released = true;
    ls_cond_broadcast(&self->asker.cond);
    ls_mutex_unlock(&self->asker.mutex);
}

int step_answer(void *arg, struct question *question)
{
    ls_checkpoint_step *self = arg;
    const char *what = question_text(question, "do");
    struct ls_failure failure;
    const int status = saves_answer(&self->saves, question);
    ls_failure_keep(&failure, status);
    release(self, what, question_int(question, "epoch", LS_CHECKPOINT_NONE),
            status);
    return ls_failure_return(&failure);
}

/* ---- of those that are led ----------------------------------------------- */

/* With the mutex held. */
static int note_peer(ls_checkpoint_step *self, const struct peer *peer)
{
    size_t i = 0;
    while (i < self->n_peers && self->peers[i].id != peer->id)
        i++;
    if (i == self->n_peers) {
        struct peer *more = realloc(self->peers, (i + 1) * sizeof *more);
        if (more == NULL)
            return ls_error(LS_ENOMEM, "%zu nodes", i + 1);
        self->peers = more;
        self->n_peers++;
    }
    self->peers[i] = *peer;
    return LS_OK;
}

/* With the mutex held. */
static int keep_waiter(ls_checkpoint_step *self, const struct waiter *waiter)
{
    struct waiter *more =
        realloc(self->waiters, (self->n_waiters + 1) * sizeof *more);
    if (more == NULL)
        return ls_error(LS_ENOMEM, "%zu nodes that wait", self->n_waiters + 1);
    self->waiters = more;
    self->waiters[self->n_waiters++] = *waiter;
    ls_cond_broadcast(&self->asker.cond);
    return LS_OK;
}

/* A node has come to the beginning of its run, or to its end. With the mutex
 * held. kept: it is answered later. */
static int take_waiter(ls_checkpoint_step *self, ls_request *request,
                       const struct question *question, bool *kept)
{
    const struct waiter waiter = {
        .request = request,
        .from = ls_request_from(request),
        .ends = strcmp(question_text(question, "do"), "end") == 0,
        .epoch = question_int(question, "epoch", LS_CHECKPOINT_NONE)};
    const struct peer peer = {.id = waiter.from,
                              .keeps = question_int(question, "keeps", 1) == 1,
                              .folder =
                                  question_int(question, "folder", 1) == 1};
    int status = LS_OK;
    if (!waiter.ends)
        status = note_peer(self, &peer);
    if (status != LS_OK || (!waiter.ends && self->has_begun))
        return status; /* the others are under way: it joins them */
    status = keep_waiter(self, &waiter);
    *kept = status == LS_OK;
    return status;
}

/* With the mutex held. Only the one that leads has something done: questions of
 * others must not take the places of its own. kept: it is answered later. */
static int take_question(ls_checkpoint_step *self, ls_request *request,
                         const char *what, bool *kept)
{
    if (ls_request_from(request) != self->saves.leader)
        return ls_error(LS_EPROTO, "node %" PRIu32 " does not lead %s",
                        ls_request_from(request), self->what);
    *kept = saves_knows(what) && lane_put(&self->lane, request);
    return *kept ? LS_OK
                 : ls_error(LS_EPROTO, "no such question to %s, or too many",
                            self->what);
}

int step_on_request(void *arg, ls_request *request)
{
    ls_checkpoint_step *self = arg;
    struct question question = {.request = request};
    ls_document *document;
    size_t size;
    bool kept = false;
    const void *data = ls_request_data(request, &size);
    int status = ls_document_read(&document, data, size, NULL);
    if (status != LS_OK)
        return status;
    question.said = ls_document_root(document);
    const char *what = question_text(&question, "do");
    ls_mutex_lock(&self->asker.mutex);
    status = strcmp(what, "begin") == 0 || strcmp(what, "end") == 0
                 ? take_waiter(self, request, &question, &kept)
                 : take_question(self, request, what, &kept);
    ls_mutex_unlock(&self->asker.mutex);
    if (!kept)
        question_refuse(request, status);
    ls_document_destroy(&document);
    return LS_OK;
}
