#include "lane.h"

#include <string.h>

#include "lockstep/log.h"

/* Wait for the next one; NULL: it is over. */
static ls_request *next(struct lane *lane)
{
    ls_request *request = NULL;
    ls_mutex_lock(&lane->asker->mutex);
    while (lane->n == 0 && lane->running)
        asker_wait(lane->asker);
    if (lane->running) {
        request = lane->waiting[0];
        lane->n--;
        memmove(&lane->waiting[0], &lane->waiting[1],
                lane->n * sizeof *lane->waiting);
    }
    ls_mutex_unlock(&lane->asker->mutex);
    return request;
}

static void serve(void *self)
{
    struct lane *lane = self;
    ls_request *request;
    ls_log_set_node(lane->id);
    while ((request = next(lane)) != NULL)
        question_serve(request, lane->fn, lane->self);
}

int lane_begin(struct lane *lane, const char *name)
{
    ls_mutex_lock(&lane->asker->mutex);
    lane->running = true;
    ls_mutex_unlock(&lane->asker->mutex);
    return ls_thread_spawn(lane->asker->runtime, &lane->thread, name, serve,
                           lane);
}

bool lane_put(struct lane *lane, ls_request *request)
{
    if (lane->n == LANE_MAX)
        return false;
    lane->waiting[lane->n++] = request;
    ls_cond_broadcast(&lane->asker->cond);
    return true;
}

ls_request *lane_pop(struct lane *lane)
{
    return lane->n > 0 ? lane->waiting[--lane->n] : NULL;
}

void lane_stop(struct lane *lane)
{
    lane->running = false;
    ls_cond_broadcast(&lane->asker->cond);
}

void lane_join(struct lane *lane)
{
    asker_join(&lane->thread);
}
