#include "learn_group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct member {
    struct learn_group *group;   /* borrow */
    struct ls_learn_group shown; /* to the policy */
    float *values;               /* borrow; of the mean that it waits for */
    size_t n_values;
};

struct learn_group {
    ls_mutex mutex;
    ls_cond changed;
    /* The rest under mutex. */
    size_t n_waiting; /* for the mean */
    size_t n_left;    /* of this round */
    uint64_t n_means; /* taken so far */
    bool aborted;     /* this round */
    size_t n;
    struct member members[];
};

/* Whether all share as many values. */
static bool agree(const struct learn_group *group)
{
    for (size_t i = 1; i < group->n; i++)
        if (group->members[i].n_values != group->members[0].n_values)
            return false;
    return true;
}

static void take_mean(struct learn_group *group)
{
    const size_t n_values = group->members[0].n_values;
    float *const sum = group->members[0].values;
    const float share = 1.0f / (float)group->n;
    for (size_t i = 1; i < group->n; i++)
        for (size_t k = 0; k < n_values; k++)
            sum[k] += group->members[i].values[k];
    for (size_t k = 0; k < n_values; k++)
        sum[k] *= share;
    for (size_t i = 1; i < group->n; i++)
        memcpy(group->members[i].values, sum, n_values * sizeof *sum);
}

/* The last one has come; under the mutex. */
static void end_wait(struct learn_group *group)
{
    if (agree(group))
        take_mean(group);
    else
        group->aborted = true;
    group->n_waiting = 0;
    group->n_means++;
    ls_cond_broadcast(&group->changed);
}

static int mean(void *self, float *values, size_t n)
{
    struct member *const member = self;
    struct learn_group *const group = member->group;
    ls_mutex_lock(&group->mutex);
    const uint64_t n_means = group->n_means;
    member->values = values;
    member->n_values = n;
    group->aborted = group->aborted || group->n_left > 0;
    if (!group->aborted && ++group->n_waiting == group->n)
        end_wait(group);
    while (!group->aborted && group->n_means == n_means) {
        const int status =
            ls_cond_wait(&group->changed, &group->mutex, LS_FOREVER);
        assert(status == LS_OK);
        (void)status;
    }
    const bool aborted = group->aborted;
    ls_mutex_unlock(&group->mutex);
    return aborted ? ls_error(LS_EABORTED, "the other devices share something "
                                           "else, or nothing any more")
                   : LS_OK;
}

int learn_group_create(struct learn_group **out, ls_runtime *runtime, size_t n)
{
    struct learn_group *group =
        calloc(1, sizeof *group + n * sizeof(struct member));
    if (group == NULL)
        return ls_error(LS_ENOMEM, "a group of %zu", n);
    group->n = n;
    for (size_t i = 0; i < n; i++) {
        group->members[i].group = group;
        group->members[i].shown = (struct ls_learn_group){
            .n = n, .mean = mean, .self = &group->members[i]};
    }
    int status = ls_mutex_init(&group->mutex, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&group->changed, runtime);
    if (status != LS_OK) {
        learn_group_destroy(&group);
        return status;
    }
    *out = group;
    return LS_OK;
}

const struct ls_learn_group *learn_group_member(struct learn_group *group,
                                                size_t member)
{
    assert(member < group->n);
    return &group->members[member].shown;
}

void learn_group_leave(struct learn_group *group)
{
    ls_mutex_lock(&group->mutex);
    if (group->n_waiting > 0)
        group->aborted = true;
    if (++group->n_left == group->n) {
        group->n_left = 0;
        group->n_waiting = 0;
        group->aborted = false;
    }
    ls_cond_broadcast(&group->changed);
    ls_mutex_unlock(&group->mutex);
}

void learn_group_destroy(struct learn_group **group)
{
    if (group == NULL || *group == NULL)
        return;
    ls_cond_fini(&(*group)->changed);
    ls_mutex_fini(&(*group)->mutex);
    free(*group);
    *group = NULL;
}
