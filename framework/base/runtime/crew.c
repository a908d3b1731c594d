#include "lockstep/crew.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct member {
    ls_crew *crew; /* borrow */
    size_t number;
    ls_thread *thread; /* own; NULL for member 0 */
    bool busy;         /* under the crew's mutex: has a call to make, or is
                        * in it */
};

struct ls_crew {
    ls_crew_fn *fn;
    void *self; /* borrow */
    ls_mutex mutex;
    ls_cond called;
    ls_cond returned;
    bool dismissed; /* under mutex */
    size_t n_busy;  /* under mutex */
    size_t n;
    struct member members[];
};

/* Until something has changed; under the mutex. */
static void await(ls_crew *crew, ls_cond *cond)
{
    const int status = ls_cond_wait(cond, &crew->mutex, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
}

static void member_main(void *arg)
{
    struct member *const member = arg;
    ls_crew *const crew = member->crew;
    ls_mutex_lock(&crew->mutex);
    for (;;) {
        while (!member->busy && !crew->dismissed)
            await(crew, &crew->called);
        if (!member->busy)
            break;
        ls_mutex_unlock(&crew->mutex);
        crew->fn(crew->self, member->number);
        ls_mutex_lock(&crew->mutex);
        member->busy = false;
        if (--crew->n_busy == 0)
            ls_cond_signal(&crew->returned);
    }
    ls_mutex_unlock(&crew->mutex);
}

static int spawn_members(ls_crew *crew, ls_runtime *runtime, const char *as)
{
    int status = LS_OK;
    for (size_t i = 1; i < crew->n && status == LS_OK; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s-%zu", as, i);
        struct member *const member = &crew->members[i];
        *member = (struct member){.crew = crew, .number = i};
        status = ls_thread_spawn(runtime, &member->thread, name, member_main,
                                 member);
    }
    return status;
}

int ls_crew_create(ls_crew **out, ls_runtime *runtime, size_t n,
                   const char *name, ls_crew_fn *fn, void *self)
{
    *out = NULL;
    if (n == 0)
        return ls_error(LS_EINVAL, "crew: n must be at least 1");
    ls_crew *crew = calloc(1, sizeof *crew + n * sizeof(struct member));
    if (crew == NULL)
        return ls_error(LS_ENOMEM, "no memory for %zu threads", n);
    crew->fn = fn;
    crew->self = self;
    crew->n = n;
    int status = ls_mutex_init(&crew->mutex, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&crew->called, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&crew->returned, runtime);
    if (status == LS_OK)
        status = spawn_members(crew, runtime, name);
    if (status != LS_OK) {
        ls_crew_destroy(&crew);
        return status;
    }
    *out = crew;
    return LS_OK;
}

void ls_crew_run(ls_crew *crew)
{
    if (crew->n == 1) {
        crew->fn(crew->self, 0);
        return;
    }
    ls_mutex_lock(&crew->mutex);
    assert(!crew->dismissed && crew->n_busy == 0);
    for (size_t i = 1; i < crew->n; i++)
        crew->members[i].busy = true;
    crew->n_busy = crew->n - 1;
    ls_cond_broadcast(&crew->called);
    ls_mutex_unlock(&crew->mutex);

    crew->fn(crew->self, 0);

    ls_mutex_lock(&crew->mutex);
    while (crew->n_busy > 0)
        await(crew, &crew->returned);
    ls_mutex_unlock(&crew->mutex);
}

size_t ls_crew_busy(ls_crew *crew)
{
    size_t busy = 0;
    ls_mutex_lock(&crew->mutex);
    for (size_t i = 1; i < crew->n && busy == 0; i++)
        busy = crew->members[i].busy ? i : 0;
    ls_mutex_unlock(&crew->mutex);
    return busy;
}

void ls_crew_dismiss(ls_crew *crew)
{
    ls_mutex_lock(&crew->mutex);
    crew->dismissed = true;
    ls_cond_broadcast(&crew->called);
    ls_mutex_unlock(&crew->mutex);
}

int ls_crew_join(ls_crew *crew, int64_t deadline)
{
    int status = LS_OK;
    for (size_t i = 1; i < crew->n && status == LS_OK; i++)
        status = ls_thread_join(&crew->members[i].thread, deadline);
    return status;
}

/* A join that gave up may have joined some of them. */
static bool has_threads(const ls_crew *crew)
{
    bool has = false;
    for (size_t i = 1; i < crew->n; i++)
        has = has || crew->members[i].thread != NULL;
    return has;
}

void ls_crew_destroy(ls_crew **crew)
{
    if (crew == NULL || *crew == NULL)
        return;
    /* Without a thread maybe without a mutex. */
    if (has_threads(*crew)) {
        ls_crew_dismiss(*crew);
        const int status = ls_crew_join(*crew, LS_FOREVER);
        assert(status == LS_OK);
        (void)status;
    }
    ls_cond_fini(&(*crew)->returned);
    ls_cond_fini(&(*crew)->called);
    ls_mutex_fini(&(*crew)->mutex);
    free(*crew);
    *crew = NULL;
}
