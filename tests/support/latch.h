/* latch.h - something that happens once, or n times, and can be waited for. */
#ifndef SUPPORT_LATCH_H
#define SUPPORT_LATCH_H

#include <stdlib.h>

#include "lockstep/runtime.h"
#include "test.h"

struct latch {
    ls_mutex mutex;
    ls_cond cond;
    int left;
};

static inline void latch_init(struct latch *latch, int n)
{
    latch->left = n;
    assert_int_equal(ls_mutex_init(&latch->mutex, ls_runtime_threads()), LS_OK);
    assert_int_equal(ls_cond_init(&latch->cond, ls_runtime_threads()), LS_OK);
}

static inline void latch_fini(struct latch *latch)
{
    ls_cond_fini(&latch->cond);
    ls_mutex_fini(&latch->mutex);
}

static inline void latch_hit(struct latch *latch)
{
    ls_mutex_lock(&latch->mutex);
    latch->left--;
    ls_cond_broadcast(&latch->cond);
    ls_mutex_unlock(&latch->mutex);
}

static inline void latch_wait(struct latch *latch)
{
    ls_mutex_lock(&latch->mutex);
    while (latch->left > 0)
        if (ls_cond_wait(&latch->cond, &latch->mutex, LS_FOREVER) < 0)
            abort();
    ls_mutex_unlock(&latch->mutex);
}

#endif
