/* From ready to free: connect, ask, and take over or close what it holds. */
#include <string.h>

#include "lockstep/place.h"

#include "coverage.h"
#include "fsm_state.h"

void fsm_member_rests(fsm *self, struct pool_member *member, int64_t now)
{
    member->rest_until = now + self->options.retry;
}

static bool has_rank(const struct work *work, uint32_t id)
{
    for (size_t i = 0; i < work->n_ranks; i++)
        if (work->ranks[i] == id)
            return true;
    return false;
}

/* Its first one cannot go on without it. If that has told before, it is no
 * failure of that one. */
static void rank_gone(fsm *self, const struct pool_member *member, int64_t now)
{
    struct work *work = self->works.first;
    while (work != NULL && (work->member == NULL || work->member == member ||
                            !has_rank(work, member->id)))
        work = work->next;
    if (work == NULL)
        return;
    work->use->failures = 0;
    if (work->doomed || work->done)
        return;
    fsm_say(self, LS_LOG_WARN,
            "node %u is lost, a rank of %s, attempt %lld: it is closed",
            (unsigned)member->id, work->key.task_id,
            (long long)work->key.attempt);
    ls_take(LS_TAKES_WORK_RANK_LOST);
    fsm_work_close(self, work, now, WORK_REQUEUED);
}

void fsm_member_gone(fsm *self, struct pool_member *member, int64_t now,
                     enum pool_state state)
{
    member->state = state;
    fsm_data_lost(self, member->id);
    rank_gone(self, member, now);
    struct work *work = works_of(&self->works, member);
    if (work == NULL)
        return;
    fsm_say(self, LS_LOG_WARN, "node %u is lost, and %s with it",
            (unsigned)member->id, work->key.task_id);
    fsm_work_again(self, work, now);
}

static void arrive(fsm *self, int64_t now, struct pool_member *member,
                   uint64_t incarnation)
{
    if (member->incarnation != incarnation)
        fsm_member_gone(self, member, now, POOL_GONE);
    else if (member->state != POOL_GONE)
        return; /* told twice */
    member->incarnation = incarnation;
    member->state = POOL_NEW;
    member->rest_until = now;
    struct work *work = works_of(&self->works, member);
    if (work != NULL) /* of an earlier life of ours: it will tell */
        work->until = now + self->options.work_timeout;
}

/* Whether there is work for it. */
static bool is_placed(const fsm *self, const struct ls_member *node)
{
    for (size_t i = 0; i < self->scheduler.n_uses; i++)
        if (ls_place_has(self->scheduler.uses[i].kind->where, node->id,
                         node->role, node->labels))
            return true;
    return false;
}

int fsm_member(fsm *self, int64_t now, const struct ls_member *node)
{
    if (!is_placed(self, node))
        return self->status;
    struct pool_member *member = pool_add(&self->pool, node->id);
    if (member == NULL) {
        fsm_no_memory(self);
        return self->status;
    }
    memcpy(member->role, node->role, sizeof member->role);
    memcpy(member->labels, node->labels, sizeof member->labels);
    if (node->state == LS_MEMBER_READY)
        arrive(self, now, member, node->incarnation);
    else if (member->incarnation == node->incarnation)
        fsm_member_gone(self, member, now, POOL_GONE);
    fsm_settle(self, now);
    return self->status;
}

void fsm_drive_members(fsm *self, int64_t now)
{
    for (struct pool_member *m = self->pool.first; m != NULL; m = m->next) {
        if ((m->state != POOL_NEW && m->state != POOL_CONNECTED) ||
            m->rest_until > now)
            continue;
        /* At the end only those are of interest that hold something. */
        if (self->end.begun && works_of(&self->works, m) == NULL)
            continue;
        const enum call_about about =
            m->state == POOL_NEW ? ABOUT_CONNECT : ABOUT_RESOURCE;
        m->state = POOL_BUSY;
        ls_writer_clear(self->writer);
        service_nothing_write(self->writer);
        fsm_call(self, about, m, NULL);
    }
}

void fsm_connect_ended(fsm *self, int64_t now, const struct open_call *call,
                       const struct ls_call_result *result)
{
    struct pool_member *member = call->member;
    if (result->state == LS_CALL_COMPLETED) {
        member->state = POOL_CONNECTED;
        return;
    }
    member->state = POOL_NEW;
    fsm_member_rests(self, member, now);
    fsm_say(self, LS_LOG_DEBUG, "node %u is not connected: %s",
            (unsigned)member->id, result->text);
}

/* By the name of a work of it, "learn_7"; NULL: none that this member may have
 * holds such a work. */
static const struct fsm_kind *
kind_at(const fsm *self, const struct pool_member *member, const char *task_id)
{
    const char *end = strrchr(task_id, '_');
    for (size_t i = 0; i < self->scheduler.n_uses && end != NULL; i++) {
        const struct fsm_kind *kind = self->scheduler.uses[i].kind;
        const size_t size = (size_t)(end - task_id);
        if (strlen(kind->verb) == size &&
            memcmp(task_id, kind->verb, size) == 0 && pool_suits(member, kind))
            return kind;
    }
    return NULL;
}

static void purge(fsm *self, int64_t now, const struct open_call *call,
                  const struct service_resource *resource)
{
    struct pool_member *member = call->member;
    struct work_key key = {.attempt = resource->attempt};
    const struct fsm_kind *kind = kind_at(self, member, resource->task_id);
    if (kind == NULL) {
        (void)ls_error(LS_EPROTO, "task_id: %s is no work of such a member",
                       resource->task_id);
        fsm_member_rests(self, member, now);
        fsm_malformed(self, call);
        return;
    }
    memcpy(key.task_id, resource->task_id, sizeof key.task_id);
    fsm_say(self, LS_LOG_INFO,
            "node %u holds attempt %lld of %s, which is "
            "over: it is closed",
            (unsigned)member->id, (long long)key.attempt, key.task_id);
    ls_writer_clear(self->writer);
    work_key_write(&key, self->writer);
    member->state = POOL_BUSY;
    fsm_call(self, ABOUT_PURGE, member, fsm_kind_task(kind, LS_JOB_EXIT));
}

static void judge(fsm *self, int64_t now, const struct open_call *call,
                  const struct service_resource *resource)
{
    struct pool_member *member = call->member;
    struct work *work = works_of(&self->works, member);
    if (resource->task_id[0] == '\0') {
        if (work != NULL && work->state == WORK_CLOSING)
            fsm_work_closed(self, work, now, NULL);
        else if (work != NULL)
            fsm_work_again(self, work, now);
        member->state = POOL_FREE;
    } else if (work != NULL && resource->attempt == work->key.attempt &&
               strcmp(resource->task_id, work->key.task_id) == 0) {
        member->state = POOL_TAKEN;
        if (resource->progress > work->progress)
            work->progress = resource->progress;
        if (work->state == WORK_AWAITED)
            fsm_work_held(self, work, now);
    } else {
        purge(self, now, call, resource);
    }
}

void fsm_resource_ended(fsm *self, int64_t now, const struct open_call *call,
                        const struct ls_call_result *result)
{
    struct pool_member *member = call->member;
    member->state = POOL_CONNECTED;
    struct service_resource resource;
    if (result->state != LS_CALL_COMPLETED) {
        fsm_member_rests(self, member, now);
        fsm_say(self, LS_LOG_DEBUG, "node %u does not report its resources: %s",
                (unsigned)member->id, result->text);
    } else if (service_resource_read(&resource, result->data, result->size) !=
               LS_OK) {
        fsm_member_rests(self, member, now);
        fsm_malformed(self, call);
    } else {
        member->gpu = resource.gpu;
        member->cpu = resource.cpu;
        judge(self, now, call, &resource);
    }
}

void fsm_purge_ended(fsm *self, int64_t now, const struct open_call *call,
                     const struct ls_call_result *result)
{
    struct pool_member *member = call->member;
    member->state = POOL_CONNECTED;
    if (result->state != LS_CALL_COMPLETED)
        fsm_member_rests(self, member, now);
}
