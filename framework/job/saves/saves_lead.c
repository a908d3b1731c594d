/* A save, as the node that leads sees it: the state machine of commit.h, on
 * calls. It runs on the thread of its owner, or behind it on one of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "saves.h"

/* What is known of one node. */
struct save_node {
    struct ask write, tell;           /* own */
    struct ls_checkpoint_entry entry; /* once it is on disk */
    struct ls_body body; /* own; its blobs, to be written here: it has no
                          * folder */
};

/* What nodes have said of an epoch: their mean is its metric. */
struct said {
    int64_t epoch;
    double sum;
    size_t n;
};

struct save {
    struct saves *saves;
    const struct saves_point *point; /* borrow */
    bool behind;
    bool over;                 /* it was given up */
    struct ls_failure refused; /* it was not begun */
    struct commit commit;
    struct commit_node *states; /* own; n, as the next two */
    struct save_node *nodes;    /* own */
    uint32_t *ids;              /* own: they may change meanwhile */
    size_t n;
    int64_t *kept; /* own; what the retention keeps */
    size_t n_kept;
    struct ls_failure told; /* ops->saved() */
    ls_writer *writer;
    struct said *said; /* own */
    size_t n_said;
};

/* ---- phase 1 ----------------------------------------------------------- */

static void ask_write(void *self, size_t at)
{
    struct save *save = self;
    const struct saves *saves = save->saves;
    if (save->nodes[at].body.data != NULL)
        return; /* its blobs are here: write_body() */
    ls_write_map(save->writer, 5);
    ls_write_string(save->writer, "do");
    ls_write_string(save->writer, "write");
    ls_write_string(save->writer, "why");
    ls_write_string(save->writer, save->point->why);
    ls_write_string(save->writer, "epoch");
    ls_write_int(save->writer, save->point->epoch);
    ls_write_string(save->writer, "round");
    ls_write_int(save->writer, saves->round);
    ls_write_string(save->writer, "behind");
    ls_write_int(save->writer, save->behind);
    ask_begin(&save->nodes[at].write, saves->asker, save->ids[at], save->writer,
              NULL, saves->timeout_ms);
}

/* The entry of a node that has no folder. */
static int write_hosted(struct save *save, size_t at)
{
    struct save_node *node = &save->nodes[at];
    ls_checkpoints *store = NULL;
    ls_blobs *blobs = NULL;
    int status = ls_blobs_view(&blobs, node->body.data, node->body.size);
    ls_mutex_lock(&save->saves->mutex);
    if (status == LS_OK)
        status = saves_host(save->saves, save->ids[at], &store);
    if (status == LS_OK)
        status = ls_checkpoints_write(store, save->point->epoch, blobs,
                                      &node->entry);
    ls_mutex_unlock(&save->saves->mutex);
    ls_blobs_destroy(&blobs);
    return status;
}

/* false: there was none to write. */
static bool write_body(struct save *save)
{
    for (size_t i = 0; i < save->n; i++) {
        if (save->nodes[i].body.data == NULL ||
            save->commit.phase != COMMIT_WRITING)
            continue;
        const int status = write_hosted(save, i);
        if (status != LS_OK)
            (void)ls_error_at(status, "node %" PRIu32, save->ids[i]);
        ls_body_release(&save->nodes[i].body);
        commit_written(&save->commit, i, status);
        return true;
    }
    return false;
}

static int note_metric(struct save *save, int64_t epoch, double value)
{
    size_t at = 0;
    while (at < save->n_said && save->said[at].epoch != epoch)
        at++;
    if (at == save->n_said) {
        struct said *more = realloc(save->said, (at + 1) * sizeof *more);
        if (more == NULL)
            return ls_error(LS_ENOMEM, "%zu metrics", at + 1);
        save->said = more;
        save->said[save->n_said++] = (struct said){.epoch = epoch};
    }
    save->said[at].sum += value;
    save->said[at].n++;
    return LS_OK;
}

static int note_metrics(struct save *save, const struct ask *ask)
{
    const ls_value *all =
        ls_value_get(ls_document_root(ask->document), "metrics");
    int status = LS_OK;
    for (size_t i = 0; i < ls_value_size(all) && status == LS_OK; i++) {
        int64_t epoch = LS_CHECKPOINT_NONE;
        double value = 0;
        status = ls_value_int(ls_value_at(ls_value_at(all, i), 0), &epoch);
        if (status == LS_OK)
            status =
                ls_value_double(ls_value_at(ls_value_at(all, i), 1), &value);
        if (status == LS_OK)
            status = note_metric(save, epoch, value);
    }
    return status;
}

/* What earlier ones have turned out to be worth. One that is not there, or not
 * whole, needs none; and one that another program has filled with other metrics
 * must not be in the way of a save. With the mutex held. */
static int judge_earlier(struct save *save)
{
    const struct saves *saves = save->saves;
    struct ls_checkpoint_metric metric = {.name = ""};
    int status = LS_OK;
    if (saves->metric == NULL)
        return LS_OK;
    (void)snprintf(metric.name, sizeof metric.name, "%s", saves->metric);
    for (size_t i = 0; i < save->n_said && status == LS_OK; i++) {
        const struct said *said = &save->said[i];
        metric.value = said->sum / (double)said->n;
        if (said->epoch < save->point->epoch)
            status =
                ls_checkpoints_set_metric(saves->store, said->epoch, &metric);
        if (status == LS_ENOENT || status == LS_EPROTO || status == LS_ELIMIT)
            status = LS_OK;
    }
    return status;
}

static int note_entry(struct save *save, size_t at)
{
    struct save_node *node = &save->nodes[at];
    char name[LS_CHECKPOINT_NODE_MAX + 1];
    saves_name(save->ids[at], name);
    const int status = ls_checkpoint_entry_read(
        &node->entry,
        ls_value_get(ls_document_root(node->write.document), "entry"), name);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "node %" PRIu32, save->ids[at]);
}

static void note_written(struct save *save, size_t at)
{
    struct save_node *node = &save->nodes[at];
    int status = ask_end(&node->write);
    if (status == LS_OK)
        status = note_metrics(save, &node->write);
    if (status == LS_OK && node->write.body.data != NULL) {
        node->body = node->write.body;
        node->write.body = (struct ls_body){.data = NULL};
        return;
    }
    if (status == LS_OK)
        status = note_entry(save, at);
    if (status == LS_ELOST)
        commit_lost(&save->commit, at);
    else if (status == LS_ETIMEDOUT) {
        if (save->commit.phase == COMMIT_WRITING)
            commit_late(&save->commit);
    } else
        commit_written(&save->commit, at, status);
}

/* ---- phase 2 ----------------------------------------------------------- */

/* false: nobody knows how good it is. */
static bool metric_of(const struct save *save, struct ls_checkpoint_metric *out)
{
    size_t at = 0;
    while (at < save->n_said && save->said[at].epoch != save->point->epoch)
        at++;
    if (at == save->n_said || save->saves->metric == NULL)
        return false;
    *out = (struct ls_checkpoint_metric){.value = save->said[at].sum /
                                                  (double)save->said[at].n};
    (void)snprintf(out->name, sizeof out->name, "%s", save->saves->metric);
    return true;
}

static int write_manifest(struct save *save, bool *gone)
{
    struct saves *saves = save->saves;
    const struct saves_point *point = save->point;
    struct ls_checkpoint_note why = {.name = "why", .text = (char *)point->why};
    struct ls_checkpoint_metric metric;
    struct ls_checkpoint_manifest manifest = {.epoch = point->epoch,
                                              .stopped = point->stopped,
                                              .n_entries = save->n,
                                              .metrics = &metric,
                                              .n_metrics =
                                                  metric_of(save, &metric),
                                              .notes = &why,
                                              .n_notes = point->why != NULL};
    (void)snprintf(manifest.run, sizeof manifest.run, "%s", saves->run);
    manifest.entries = calloc(save->n, sizeof *manifest.entries);
    if (manifest.entries == NULL)
        return ls_error(LS_ENOMEM, "a manifest");
    for (size_t i = 0; i < save->n; i++)
        manifest.entries[i] = save->nodes[i].entry;
    int status = judge_earlier(save); /* before the retention looks at it */
    if (status == LS_OK)
        status = ls_checkpoints_commit(saves->store, &manifest);
    if (status != LS_OK) {
        struct ls_failure failure;
        ls_failure_keep(&failure, status);
        const int removed = ls_checkpoints_drop(saves->store, point->epoch);
        *gone = removed == LS_OK || removed == LS_ENOENT;
        status = ls_failure_return(&failure);
    } else if (saves->ops->saved != NULL)
        ls_failure_keep(&save->told, saves->ops->saved(saves->self, &manifest));
    free(manifest.entries);
    return status;
}

/* For the nodes: what is removed there, too. */
static void list_kept(struct save *save)
{
    const struct ls_checkpoint_retention *retention = &save->saves->retention;
    if (retention->last == 0 && retention->every == 0 && retention->best == 0)
        return;
    if (ls_checkpoints_list(save->saves->store, &save->kept, &save->n_kept) !=
        LS_OK)
        save->n_kept = 0; /* they are removed after the next save */
}

static void name_all(void *self)
{
    struct save *save = self;
    bool gone = false;
    ls_mutex_lock(&save->saves->mutex);
    const int status = write_manifest(save, &gone);
    if (status == LS_OK)
        list_kept(save);
    ls_mutex_unlock(&save->saves->mutex);
    commit_named(&save->commit, status, gone);
}

static void ask_tell(void *self, size_t at, enum commit_verdict verdict)
{
    struct save *save = self;
    const struct saves *saves = save->saves;
    ls_write_map(save->writer, 5);
    ls_write_string(save->writer, "do");
    ls_write_string(save->writer, "verdict");
    ls_write_string(save->writer, "epoch");
    ls_write_int(save->writer, save->point->epoch);
    ls_write_string(save->writer, "round");
    ls_write_int(save->writer, saves->round);
    ls_write_string(save->writer, "verdict");
    ls_write_int(save->writer, verdict);
    ls_write_string(save->writer, "keep");
    ls_write_array(save->writer, (uint32_t)save->n_kept);
    for (size_t i = 0; i < save->n_kept; i++)
        ls_write_int(save->writer, save->kept[i]);
    ask_begin(&save->nodes[at].tell, saves->asker, save->ids[at], save->writer,
              NULL, saves->timeout_ms);
}

static const struct commit_ops commit_ops = {ask_write, name_all, ask_tell};

static void note_told(struct save *save, size_t at)
{
    const int status = ask_end(&save->nodes[at].tell);
    if (status == LS_ETIMEDOUT)
        commit_late(&save->commit);
    else if (status == LS_ELOST)
        commit_lost(&save->commit, at);
    else /* an entry that could not be removed is removed later */
        commit_told(&save->commit, at);
}

/* ---- both -------------------------------------------------------------- */

/* Take in what has ended; returns whether there was something. */
static bool take_ends(struct save *save)
{
    struct asker *asker = save->saves->asker;
    bool some = false;
    for (size_t i = 0; i < save->n; i++) {
        struct ask *const asks[] = {&save->nodes[i].write,
                                    &save->nodes[i].tell};
        for (size_t j = 0; j < 2; j++) {
            ls_mutex_lock(&asker->mutex);
            const bool ended = asks[j]->ended && !asks[j]->seen;
            ls_mutex_unlock(&asker->mutex);
            if (!ended)
                continue;
            some = true;
            if (j == 0)
                note_written(save, i);
            else
                note_told(save, i);
        }
    }
    return some;
}

/* Who leads has to give up: nobody need write any more. */
static void cancel_writes(struct save *save)
{
    for (size_t i = 0; i < save->n; i++)
        if (save->nodes[i].write.call != NULL)
            ls_call_cancel(save->nodes[i].write.call);
}

/* Each call has its own timeout, so this ends. */
static void wait_for_end(struct save *save)
{
    struct asker *asker = save->saves->asker;
    bool some = false;
    ls_mutex_lock(&asker->mutex);
    while (!some) {
        if (!save->behind && !save->over && asker_is_over(asker)) {
            save->over = true;
            ls_mutex_unlock(&asker->mutex);
            cancel_writes(save);
            ls_mutex_lock(&asker->mutex);
        }
        for (size_t i = 0; i < save->n && !some; i++) {
            const struct save_node *node = &save->nodes[i];
            some = (node->write.ended && !node->write.seen) ||
                   (node->tell.ended && !node->tell.seen);
        }
        if (!some)
            asker_wait(asker);
    }
    ls_mutex_unlock(&asker->mutex);
}

/* A node whose folder has no manifests does not know that an epoch is there,
 * and would replace its entry. */
static int check_later(struct saves *saves, int64_t epoch)
{
    ls_mutex_lock(&saves->mutex);
    const int status = ls_checkpoints_check_later(saves->store, epoch);
    ls_mutex_unlock(&saves->mutex);
    return status;
}

/* One that cannot be is made as well: its nodes are to hear of that. */
static int make(struct save *save)
{
    struct saves *saves = save->saves;
    if (saves->n_nodes == 0)
        return ls_error(LS_EINVAL, "no node has blobs to save");
    int status = ls_writer_create(&save->writer);
    save->n = saves->n_nodes;
    save->states = calloc(save->n, sizeof *save->states);
    save->nodes = calloc(save->n, sizeof *save->nodes);
    save->ids = calloc(save->n, sizeof *save->ids);
    if (save->states == NULL || save->nodes == NULL || save->ids == NULL)
        status = ls_error(LS_ENOMEM, "a save");
    if (status == LS_OK)
        memcpy(save->ids, saves->nodes, save->n * sizeof *save->ids);
    if (status == LS_OK)
        ls_failure_keep(&save->refused, check_later(saves, save->point->epoch));
    return status;
}

/* What was written here for others, of a save that is on no node. */
static void drop_hosted(struct save *save)
{
    struct saves *saves = save->saves;
    ls_mutex_lock(&saves->mutex);
    const int status = saves_rewind_hosted(saves, save->point->epoch - 1);
    ls_mutex_unlock(&saves->mutex);
    if (status != LS_OK) /* the next one replaces it */
        ls_log_debug("%s: %s", saves->what, ls_error_text());
}

static void clear(struct save *save)
{
    for (size_t i = 0; save->nodes != NULL && i < save->n; i++) {
        ask_destroy(&save->nodes[i].write);
        ask_destroy(&save->nodes[i].tell);
        ls_body_release(&save->nodes[i].body);
    }
    ls_writer_destroy(&save->writer);
    free(save->states);
    free(save->nodes);
    free(save->ids);
    free(save->kept);
    free(save->said);
}

static int commit(struct save *save)
{
    save->saves->round =
        (int64_t)(ls_entropy(save->saves->asker->runtime) >> 1);
    const bool refused = save->refused.status != LS_OK;
    if (refused)
        commit_refuse(&save->commit, &commit_ops, save, save->states, save->n,
                      ls_failure_return(&save->refused));
    else
        commit_begin(&save->commit, &commit_ops, save, save->states, save->n);
    while (save->commit.phase != COMMIT_ENDED)
        if (!take_ends(save) && !write_body(save))
            wait_for_end(save);
    if (save->commit.saved)
        return ls_failure_return(&save->told);
    if (!refused && save->commit.verdict == COMMIT_DROP)
        drop_hosted(save);
    return ls_failure_return(&save->commit.failure);
}

static int not_saved(const struct saves *saves, int64_t epoch, int status)
{
    return ls_error_at(status, "%s: epoch %" PRId64 " was not saved",
                       saves->what, epoch);
}

/* status: whether it was made. Ends it. */
static int run(struct save *save, int status)
{
    struct ls_failure failure;
    if (status == LS_OK)
        status = commit(save);
    if (status != LS_OK && !save->commit.saved)
        (void)not_saved(save->saves, save->point->epoch, status);
    ls_failure_keep(&failure, status);
    clear(save);
    return ls_failure_return(&failure);
}

int saves_save(struct saves *saves, const struct saves_point *point)
{
    struct save save = {.saves = saves, .point = point};
    return run(&save, make(&save));
}

/* ---- behind ------------------------------------------------------------ */

/* A save that goes on behind. */
struct saves_behind {
    struct saves_point point;
    struct save save;
    ls_thread *thread; /* own */
    bool ended;        /* under the asker's mutex */
    struct ls_failure failure;
};

static int write_copy(void *self, ls_writer *writer, struct ls_body *body,
                      size_t i)
{
    const struct saves_point *point = self;
    (void)body;
    (void)i;
    ls_write_map(writer, 3);
    ls_write_string(writer, "do");
    ls_write_string(writer, "copy");
    ls_write_string(writer, "why");
    ls_write_string(writer, point->why);
    ls_write_string(writer, "epoch");
    ls_write_int(writer, point->epoch);
    return LS_OK;
}

/* What a node without a folder sends is kept for phase 1. */
static int copy_all(struct save *save)
{
    struct saves *saves = save->saves;
    struct ask *asks = calloc(save->n + 1, sizeof *asks);
    if (asks == NULL)
        return ls_error(LS_ENOMEM, "a save");
    int status = ask_all(saves->asker, save->ids, save->n, write_copy,
                         (void *)save->point, saves->timeout_ms, asks);
    for (size_t i = 0; i < save->n && status == LS_OK; i++)
        status = note_metrics(save, &asks[i]);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    for (size_t i = 0; i < save->n; i++) {
        save->nodes[i].body = asks[i].body;
        asks[i].body = (struct ls_body){.data = NULL};
        ask_destroy(&asks[i]);
    }
    free(asks);
    return ls_failure_return(&failure);
}

static void save_copies(struct saves_behind *behind)
{
    struct asker *asker = behind->save.saves->asker;
    ls_failure_keep(&behind->failure, run(&behind->save, LS_OK));
    ls_mutex_lock(&asker->mutex);
    behind->ended = true;
    ls_mutex_unlock(&asker->mutex);
}

static void go_on(void *self)
{
    struct saves_behind *behind = self;
    ls_log_set_node(behind->save.saves->id);
    save_copies(behind);
}

int saves_finish(struct saves *saves, int64_t *epoch)
{
    struct saves_behind *behind = saves->behind;
    *epoch = LS_CHECKPOINT_NONE;
    if (behind == NULL)
        return LS_OK;
    asker_join(&behind->thread);
    const struct ls_failure failure = behind->failure;
    *epoch = behind->point.epoch;
    saves->behind = NULL;
    free(behind);
    return ls_failure_return(&failure);
}

bool saves_is_busy(struct saves *saves)
{
    if (saves->behind == NULL)
        return false;
    ls_mutex_lock(&saves->asker->mutex);
    const bool ended = saves->behind->ended;
    ls_mutex_unlock(&saves->asker->mutex);
    return !ended;
}

/* made: the save; else no node was asked anything. A node whose copy failed has
 * nothing to write, so the commit fails; but the reason is the copy's. It tells
 * all that there is nothing to wait for. */
static int give_up(struct saves_behind *behind, bool made, int status)
{
    struct saves *saves = behind->save.saves;
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    if (made)
        (void)commit(&behind->save);
    clear(&behind->save);
    (void)ls_failure_return(&failure);
    (void)not_saved(saves, behind->point.epoch, failure.status);
    free(behind);
    return failure.status;
}

int saves_save_behind(struct saves *saves, const struct saves_point *point,
                      int64_t *epoch)
{
    int status = saves_finish(saves, epoch);
    if (status != LS_OK)
        return status;
    *epoch = point->epoch;
    struct saves_behind *behind = calloc(1, sizeof *behind);
    if (behind == NULL)
        return ls_error(LS_ENOMEM, "a save");
    behind->point = *point;
    behind->save =
        (struct save){.saves = saves, .point = &behind->point, .behind = true};
    status = make(&behind->save);
    const bool made = status == LS_OK;
    if (made)
        status = ls_failure_return(&behind->save.refused);
    if (status == LS_OK)
        status = copy_all(&behind->save);
    if (status != LS_OK)
        return give_up(behind, made, status);
    saves->behind = behind;
    if (ls_thread_spawn(saves->asker->runtime, &behind->thread, "job-save",
                        go_on, behind) != LS_OK) {
        ls_log_info("%s: epoch %" PRId64 " is not saved behind: %s",
                    saves->what, point->epoch, ls_error_text());
        save_copies(behind);
    }
    return LS_OK;
}
