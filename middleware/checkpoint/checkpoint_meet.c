/* How a run begins and ends on all nodes: they tell the one that leads that
 * they are there, and wait for it; it has them load what it finds, or saves the
 * beginning, and lets them go on together. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_step_inside.h"
#include "lockstep/log.h"
#include "word_list.h"

/* ---- who ----------------------------------------------------------------- */

bool step_is_in_group(const ls_checkpoint_step *self, const char *role,
                      const char *labels)
{
    return self->options.group == NULL ||
           word_lists_have(role, labels, self->group);
}

static int add_node(ls_checkpoint_step *self, uint32_t id)
{
    if (self->n_nodes == self->room) {
        const size_t room = 2 * self->room + 8;
        uint32_t *nodes = realloc(self->nodes, room * sizeof *nodes);
        bool *guests = NULL;
        if (nodes != NULL) {
            self->nodes = nodes;
            guests = realloc(self->guests, room * sizeof *guests);
        }
        if (guests == NULL)
            return ls_error(LS_ENOMEM, "%zu nodes", room);
        self->guests = guests;
        self->room = room;
    }
    size_t at = self->n_nodes++;
    for (; at > 0 && self->nodes[at - 1] > id; at--)
        self->nodes[at] = self->nodes[at - 1];
    self->nodes[at] = id;
    return LS_OK;
}

/* All that are ready, with this one. */
static int add_ready(ls_checkpoint_step *self)
{
    const size_t room =
        self->node != NULL ? ls_node_members(self->node, NULL, 0) : 0;
    struct ls_member *members = calloc(room + 1, sizeof *members);
    if (members == NULL)
        return ls_error(LS_ENOMEM, "%zu members", room);
    size_t n =
        self->node != NULL ? ls_node_members(self->node, members, room) : 0;
    n = n < room ? n : room;
    int status = add_node(self, self->saves.id);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        if (members[i].state == LS_MEMBER_READY &&
            step_is_in_group(self, members[i].role, members[i].labels))
            status = add_node(self, members[i].id);
    free(members);
    return status;
}

/* With the mutex held; of one that has not begun nothing is known. */
static struct peer peer_of(const ls_checkpoint_step *self, uint32_t id)
{
    if (id == self->saves.id)
        return (struct peer){.id = id,
                             .keeps = self->options.blobs != NULL,
                             .folder = self->options.folder != NULL};
    for (size_t i = 0; i < self->n_peers; i++)
        if (self->peers[i].id == id)
            return self->peers[i];
    return (struct peer){.id = id, .keeps = true, .folder = true};
}

static void keep_keepers(ls_checkpoint_step *self)
{
    size_t n = 0;
    ls_mutex_lock(&self->asker.mutex);
    for (size_t i = 0; i < self->n_nodes; i++) {
        const struct peer peer = peer_of(self, self->nodes[i]);
        if (!peer.keeps)
            continue;
        self->nodes[n] = peer.id;
        self->guests[n++] = !peer.folder;
    }
    ls_mutex_unlock(&self->asker.mutex);
    self->n_nodes = n;
    self->saves.nodes = self->nodes;
    self->saves.guests = self->guests;
    self->saves.n_nodes = n;
}

int step_choose(ls_checkpoint_step *self, const uint32_t *ids, size_t n)
{
    int status = LS_OK;
    self->n_nodes = 0;
    for (size_t i = 0; i < n && ids != NULL && status == LS_OK; i++)
        status = add_node(self, ids[i]);
    if (ids == NULL)
        status = add_ready(self);
    if (status == LS_OK)
        keep_keepers(self);
    return status;
}

/* ---- waiting for the one that leads -------------------------------------- */

static void write_here(const ls_checkpoint_step *self, ls_writer *writer,
                       bool ends, int64_t epoch)
{
    ls_write_map(writer, 4);
    ls_write_string(writer, "do");
    ls_write_string(writer, ends ? "end" : "begin");
    ls_write_string(writer, "keeps");
    ls_write_int(writer, self->options.blobs != NULL);
    ls_write_string(writer, "folder");
    ls_write_int(writer, self->options.folder != NULL);
    ls_write_string(writer, "epoch");
    ls_write_int(writer, epoch);
}

static int wait_answer(ls_checkpoint_step *self, struct ask *ask)
{
    ls_mutex_lock(&self->asker.mutex);
    struct ls_due due = ls_due_at(self->node, LS_FOREVER);
    const int status = step_wait(self, &ask->ended, NULL, &due);
    ls_mutex_unlock(&self->asker.mutex);
    return status == LS_OK ? ask_end(ask) : status;
}

/* loaded: the epoch that this node goes on from; NONE: where it is. */
static int meet(ls_checkpoint_step *self, bool ends, int64_t *loaded)
{
    struct ask ask = {.ended = false};
    struct ls_failure failure;
    ls_writer *writer = NULL;
    int status = ls_writer_create(&writer);
    *loaded = LS_CHECKPOINT_NONE;
    if (status != LS_OK)
        return status;
    step_prepare(self, *step_total(self),
                 ends ? *step_total(self) : LS_CHECKPOINT_NONE);
    write_here(self, writer, ends, *step_total(self));
    ask_begin(&ask, &self->asker, self->saves.leader, writer, NULL,
              step_patience_ms(self));
    status = wait_answer(self, &ask);
    ls_failure_keep(&failure, status);
    if (status == LS_OK &&
        ls_value_int(ls_value_get(ls_document_root(ask.document), "loaded"),
                     loaded) != LS_OK)
        *loaded = LS_CHECKPOINT_NONE;
    ask_destroy(&ask);
    ls_writer_destroy(&writer);
    step_go_on(self);
    if (failure.status == LS_OK || failure.status == LS_ELOST ||
        failure.status == LS_ETIMEDOUT || failure.status == LS_ECANCELED)
        return ls_failure_return(&failure);
    return ls_error(LS_EABORTED, "the run does not begin: %s", failure.text);
}

static int go_on_from(ls_checkpoint_step *self, int64_t epoch)
{
    if (epoch == LS_CHECKPOINT_NONE)
        return LS_OK;
    *step_total(self) = epoch;
    self->saved_here = epoch;
    ls_mutex_lock(&self->asker.mutex);
    self->epoch = epoch;
    ls_mutex_unlock(&self->asker.mutex);
    return self->options.loaded != NULL
               ? self->options.loaded(self->options.self, epoch)
               : LS_OK;
}

/* ---- leading: those who wait ------------------------------------------- */

/* Answer one. loaded: NONE: nothing was. */
static void answer(ls_request *request, int64_t loaded)
{
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    if (ls_writer_create(&writer) != LS_OK) {
        (void)ls_request_fail(&request, ls_error_text());
        return;
    }
    ls_write_map_begin(writer);
    if (loaded != LS_CHECKPOINT_NONE) {
        ls_write_string(writer, "loaded");
        ls_write_int(writer, loaded);
    }
    ls_write_string(writer, "status");
    ls_write_int(writer, LS_OK);
    ls_write_map_end(writer);
    if (ls_writer_bytes(writer, &data, &size) == LS_OK)
        (void)ls_request_complete(&request, data, size);
    else
        (void)ls_request_fail(&request, ls_error_text());
    ls_writer_destroy(&writer);
}

/* Take one away that waits at the beginning or the end; false: none does. */
static bool take_one(ls_checkpoint_step *self, bool ends, struct waiter *out)
{
    bool found = false;
    ls_mutex_lock(&self->asker.mutex);
    for (size_t i = 0; i < self->n_waiters && !found; i++) {
        if (self->waiters[i].ends != ends)
            continue;
        *out = self->waiters[i];
        self->waiters[i] = self->waiters[--self->n_waiters];
        found = true;
    }
    ls_mutex_unlock(&self->asker.mutex);
    return found;
}

void step_dismiss(ls_checkpoint_step *self, bool ends, int status)
{
    struct waiter waiter;
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    while (take_one(self, ends, &waiter))
        question_refuse(waiter.request, ls_failure_return(&failure));
}

/* found: what was loaded; NULL: nothing. */
static void let_go(ls_checkpoint_step *self, bool ends,
                   const struct saves_found *found)
{
    struct waiter waiter;
    while (take_one(self, ends, &waiter)) {
        const bool is_in =
            found != NULL && saves_entry(found, waiter.from) != NULL;
        answer(waiter.request,
               is_in ? found->manifest.epoch : LS_CHECKPOINT_NONE);
    }
}

/* Nobody hears of it any more whose life has ended. With the mutex held. */
static bool is_there(const struct waiter *waiter, bool ends)
{
    return waiter->ends == ends && !ls_request_is_cancelled(waiter->request);
}

/* With the mutex held. NULL: it does not wait. */
static const struct waiter *waiter_of(const ls_checkpoint_step *self,
                                      uint32_t id, bool ends)
{
    for (size_t i = 0; i < self->n_waiters; i++)
        if (self->waiters[i].from == id && is_there(&self->waiters[i], ends))
            return &self->waiters[i];
    return NULL;
}

/* With the mutex held. */
static bool waits(const ls_checkpoint_step *self, uint32_t id, bool ends)
{
    return id == self->saves.id || waiter_of(self, id, ends) != NULL;
}

/* Until all of these nodes are there. */
static int await_all(ls_checkpoint_step *self, bool ends)
{
    struct ls_due due = ls_due_at(
        self->node, ls_deadline(self->asker.runtime, self->options.timeout_ms));
    bool all = false;
    int status = LS_OK;
    uint32_t missing = 0;
    ls_mutex_lock(&self->asker.mutex);
    const uint64_t losses = self->losses;
    while (!all && status == LS_OK && self->losses == losses) {
        all = true;
        for (size_t i = 0; i < self->n_nodes && all; i++) {
            missing = self->nodes[i];
            all = waits(self, missing, ends);
        }
        if (!all)
            status = step_wait(self, NULL, NULL, &due);
    }
    if (!all && status == LS_OK)
        status = ls_error(LS_ELOST, "%s: node %" PRIu32 " is gone", self->what,
                          self->last_lost);
    ls_mutex_unlock(&self->asker.mutex);
    return status == LS_ETIMEDOUT
               ? ls_error(LS_ETIMEDOUT,
                          "%s: node %" PRIu32 " has not come to the %s of the "
                          "run",
                          self->what, missing, ends ? "end" : "beginning")
               : status;
}

/* ---- leading: the beginning -------------------------------------------- */

static int find(ls_checkpoint_step *self, struct saves_found *found)
{
    switch (self->options.resume) {
    case LS_JOB_AT:
        return self->options.epoch == LS_CHECKPOINT_BEST
                   ? saves_best(&self->saves, found)
                   : saves_look_at(&self->saves, self->options.epoch, found);
    case LS_JOB_NEWEST: {
        const int status = saves_newest(&self->saves, LS_CHECKPOINT_NONE,
                                        !self->options.redo_end, found);
        return status == LS_ENOENT ? LS_OK : status;
    }
    case LS_JOB_SCRATCH:
    default:
        return saves_check_none(&self->saves);
    }
}

static void name_others(const ls_checkpoint_step *self,
                        const struct saves_found *found)
{
    for (size_t i = 0; i < self->n_nodes; i++)
        if (saves_entry(found, self->nodes[i]) == NULL)
            ls_log_warn("%s: epoch %" PRId64 " has nothing of node %" PRIu32
                        ", which begins as it is",
                        self->what, found->manifest.epoch, self->nodes[i]);
    if (found->manifest.n_entries > self->n_nodes)
        ls_log_warn("%s: epoch %" PRId64 " is also of nodes that are not here",
                    self->what, found->manifest.epoch);
}

static int load(ls_checkpoint_step *self, const struct saves_found *found)
{
    if (found->others)
        name_others(self, found);
    const int status = saves_load(&self->saves, found, NULL);
    if (status != LS_OK)
        return status;
    ls_log_info("%s: all nodes go on from epoch %" PRId64, self->what,
                found->manifest.epoch);
    self->rewinds = true;
    self->began_at = ls_now(self->asker.runtime);
    return go_on_from(self, found->manifest.epoch);
}

/* Once in the life of this node: where all begin. */
static int find_state(ls_checkpoint_step *self, struct saves_found *found)
{
    int status = step_choose(self, NULL, 0);
    if (status == LS_OK)
        status = await_all(self, false);
    if (status == LS_OK) /* what is known of them has changed */
        status = step_choose(self, NULL, 0);
    if (status == LS_OK && !self->opened)
        status = saves_open(&self->saves);
    self->opened = self->opened || status == LS_OK;
    step_stand(self, LS_CHECKPOINT_NONE);
    if (status == LS_OK)
        status = find(self, found);
    if (status == LS_OK && found->manifest.n_entries > 0)
        status = load(self, found);
    step_go_on(self);
    return status == LS_OK && found->manifest.n_entries == 0
               ? step_save(self, *step_total(self), STEP_BEGIN)
               : status;
}

static int lead_begin(ls_checkpoint_step *self)
{
    struct saves_found found = {.others = false};
    int status = self->resumed ? LS_OK : find_state(self, &found);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    self->resumed = status == LS_OK;
    ls_mutex_lock(&self->asker.mutex);
    self->has_begun = status == LS_OK;
    ls_mutex_unlock(&self->asker.mutex);
    if (status == LS_OK)
        let_go(self, false, found.manifest.n_entries > 0 ? &found : NULL);
    else
        step_dismiss(self, false, status);
    saves_found_clear(&found);
    return ls_failure_return(&failure);
}

/* The node with the lowest id of those that are there. */
static int find_leader(ls_checkpoint_step *self)
{
    if (self->saves.leader != LS_CHECKPOINT_FIRST)
        return LS_OK;
    self->n_nodes = 0;
    const int status = add_ready(self);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&self->asker.mutex);
    self->saves.leader = self->nodes[0];
    ls_mutex_unlock(&self->asker.mutex);
    return step_leads(self) && self->options.folder == NULL
               ? ls_error(LS_EINVAL,
                          "%s: node %" PRIu32 " leads, and needs a folder",
                          self->what, self->saves.id)
               : LS_OK;
}

int step_begin(ls_checkpoint_step *self)
{
    int64_t loaded;
    const int found = find_leader(self);
    if (found != LS_OK)
        return found;
    if (step_leads(self))
        return lead_begin(self);
    int status = LS_OK;
    ls_mutex_lock(&self->asker.mutex);
    self->leader_lost = false;
    ls_mutex_unlock(&self->asker.mutex);
    if (!self->opened)
        status = saves_open(&self->saves);
    self->opened = self->opened || status == LS_OK;
    if (status == LS_OK)
        status = meet(self, false, &loaded);
    return status == LS_OK ? go_on_from(self, loaded) : status;
}

/* ---- leading: the end -------------------------------------------------- */

/* Whether all that are saved have come as far as this node. */
static bool is_same_end(ls_checkpoint_step *self)
{
    bool same = true;
    ls_mutex_lock(&self->asker.mutex);
    for (size_t i = 0; i < self->n_nodes; i++) {
        const struct waiter *waiter = waiter_of(self, self->nodes[i], true);
        same = same && (waiter == NULL || waiter->epoch == *step_total(self));
    }
    ls_mutex_unlock(&self->asker.mutex);
    return same;
}

static int lead_end(ls_checkpoint_step *self)
{
    int status = step_choose(self, NULL, 0);
    if (status == LS_OK)
        status = await_all(self, true);
    if (status == LS_OK && !is_same_end(self))
        ls_log_info("%s: the nodes have ended after different iterations, so "
                    "the last checkpoint is the one before",
                    self->what);
    else if (status == LS_OK)
        status = step_save(self, *step_total(self), STEP_LAST);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    if (status == LS_OK)
        let_go(self, true, NULL);
    else
        step_dismiss(self, true, status);
    return ls_failure_return(&failure);
}

int step_end(ls_checkpoint_step *self, bool saves)
{
    int64_t loaded;
    if (saves)
        return step_leads(self) ? lead_end(self) : meet(self, true, &loaded);
    let_go(self, true, NULL); /* who has nothing to save */
    return LS_OK;
}
