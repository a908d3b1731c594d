/* A work's policy only goes on, and its infos tell of each iteration once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "checks_services.h"

static struct commit *find_commit(const checks *self, const char *policy_id)
{
    const struct service_checks *books = self->state;
    struct commit *commit = books->commits;
    while (commit != NULL && strcmp(commit->policy_id, policy_id) != 0)
        commit = commit->previous;
    return commit;
}

int64_t checks_newest_version(const checks *self, const char *policy_id)
{
    const struct commit *commit = find_commit(self, policy_id);
    return commit != NULL ? commit->version : -1;
}

static uint64_t hash_of(const struct ls_bytes *training)
{
    return training->size > 0 ? XXH3_64bits(training->data, training->size) : 0;
}

/* The one that readers must see from now on. */
static void keep_newest(checks *self, const char *policy_id,
                        const struct policy_value *value, uint64_t training)
{
    struct service_checks *books = self->state;
    struct commit *commit = find_commit(self, policy_id);
    if (commit == NULL) {
        commit = checks_allocate(self, sizeof *commit);
        if (commit == NULL)
            return;
        (void)snprintf(commit->policy_id, sizeof commit->policy_id, "%s",
                       policy_id);
        commit->previous = books->commits;
        books->commits = commit;
    } else if (value->attempt < commit->attempt) {
        return;
    }
    commit->attempt = value->attempt;
    commit->version = value->version;
    commit->training = training;
    commit->at = checks_now(self);
}

/* Who dies while it commits may have done so, and not have been told. */
static void note_unseen(checks *all, const char *policy_id,
                        const struct policy_value *value, uint64_t training)
{
    const struct commit *commit = find_commit(all, policy_id);
    if (commit == NULL || value->version <= commit->version)
        return;
    all->figures.versions += (uint64_t)(value->version - commit->version);
    keep_newest(all, policy_id, value, training);
}

void checks_on_committed(void *self, const struct work_key *key,
                         const char *policy_id,
                         const struct policy_value *value,
                         const struct ls_bytes *training)
{
    struct service_life *service = self;
    checks *all = service->life->all;
    const int64_t version = value->version;
    if (service->life->dead)
        return;
    ls_simulation_note(all->simulation,
                       "commits version %" PRId64 " of %s, iteration %" PRId64,
                       version, policy_id, value->iter);
    struct given *given = checks_find_given(all, key);
    if (given == NULL)
        return;
    if (given->taker != service)
        checks_break(all, "once",
                     "node %" PRIu32 " commits for work %s/%" PRId64
                     ", which it has not begun",
                     checks_id(service->life), key->task_id, key->attempt);
    const int64_t after =
        given->committed > service->base ? given->committed : service->base;
    if (version != after + 1)
        checks_break(all, "once",
                     "node %" PRIu32 " commits version %" PRId64
                     " of %s after version %" PRId64,
                     checks_id(service->life), version, policy_id, after);
    given->committed = version;
    all->figures.versions++;
    keep_newest(all, policy_id, value, hash_of(training));
}

static const struct step *find_step(const struct service_checks *books,
                                    const struct work_key *key, int64_t iter)
{
    const struct step *step = books->steps;
    while (step != NULL &&
           (step->iter != iter || step->key.attempt != key->attempt ||
            strcmp(step->key.task_id, key->task_id) != 0))
        step = step->previous;
    return step;
}

void checks_on_stepped(void *self, const struct work_key *key, int64_t iter,
                       uint64_t weights)
{
    struct service_life *service = self;
    checks *all = service->life->all;
    struct service_checks *books = all->state;
    const uint32_t id = checks_id(service->life);
    if (service->life->dead)
        return;
    const struct step *first = find_step(books, key, iter);
    if (first == NULL) {
        struct step *made = checks_allocate(all, sizeof *made);
        if (made == NULL)
            return;
        *made = (struct step){.key = *key,
                              .iter = iter,
                              .weights = weights,
                              .by = id,
                              .previous = books->steps};
        books->steps = made;
    } else if (first->weights != weights) {
        checks_break(all, "equal",
                     "node %" PRIu32 " has other weights than node %" PRIu32
                     " after iteration %" PRId64 " of work %s/%" PRId64,
                     id, first->by, iter, key->task_id, key->attempt);
    }
}

/* A learner goes on with the training that was committed with the policy. That
 * may be gone where two learners did so at once; another may not be there. */
static void check_training(checks *all, const struct service_life *service,
                           const struct policy_value *value,
                           const struct commit *commit, uint64_t training)
{
    if (commit != NULL && training != 0 && commit->version == value->version &&
        commit->attempt == value->attempt && commit->training != training)
        checks_break(all, "lost",
                     "node %" PRIu32 " loads version %" PRId64
                     " of %s with another training state than it was "
                     "committed with",
                     checks_id(service->life), value->version,
                     commit->policy_id);
}

void checks_on_loading(void *self)
{
    struct service_life *service = self;
    service->loading_at = checks_now(service->life->all);
}

void checks_on_loaded(void *self, const struct work_key *key,
                      const char *policy_id, const struct policy_value *value,
                      const struct ls_bytes *training)
{
    struct service_life *service = self;
    checks *all = service->life->all;
    const int64_t version = value->version;
    if (service->life->dead)
        return;
    ls_simulation_note(
        all->simulation,
        "loads version %" PRId64 " of %s, iteration %" PRId64 "%s", version,
        policy_id, value->iter, training->size > 0 ? ", and its training" : "");
    const struct commit *commit = find_commit(all, policy_id);
    if (commit != NULL && commit->at < service->loading_at &&
        version < commit->version)
        checks_break(all, "lost",
                     "node %" PRIu32 " loads version %" PRId64
                     " of %s, when version %" PRId64 " was committed",
                     checks_id(service->life), version, policy_id,
                     commit->version);
    const struct given *given = checks_find_given(all, key);
    if (given == NULL || !given->learns)
        return;
    check_training(all, service, value, commit, hash_of(training));
    note_unseen(all, policy_id, value, hash_of(training));
    if (service->base < 0)
        service->base = version;
}

void checks_note_info(struct service_life *by, const struct learner_info *info)
{
    const checks *all = by->life->all;
    struct service_checks *books = all->state;
    const struct given *work = books->given;
    while (work != NULL && !work->learns)
        work = work->previous;
    if (books->is_learned && books->learned_by == by)
        checks_break(all, "infos", "an info comes after the last one");
    if (info->learner_step < books->learner_step &&
        (work == NULL || !work->repeats))
        checks_break(all, "infos",
                     "the info of iteration %" PRId64
                     " comes after that of iteration %" PRId64,
                     info->learner_step, books->learner_step);
    books->learner_step = info->learner_step;
    books->n_infos++;
    books->is_learned = info->learner_done;
    books->learned_by = by;
}

/* One of each `informs` iterations, from the first on, and the last, which says
 * done. */
void checks_finish_infos(struct service_life *by)
{
    const checks *all = by->life->all;
    const struct service_checks *books = all->state;
    int64_t wanted = 0, informs = 1;
    for (const struct given *at = books->given; at != NULL; at = at->previous) {
        if (!at->learns)
            continue;
        wanted = at->iterations;
        informs = at->informs;
    }
    if (!books->is_learned)
        return; /* it was solved before */
    if (wanted > 0 && books->learner_step != wanted)
        checks_break(all, "infos",
                     "the last info is of iteration %" PRId64
                     ", and there were to be %" PRId64,
                     books->learner_step, wanted);
    if (books->is_whole &&
        books->n_infos != (books->learner_step + informs - 1) / informs + 1)
        checks_break(all, "infos",
                     "%" PRId64 " infos of %" PRId64 " iterations",
                     books->n_infos, books->learner_step);
}
