#include "restart.h"

void restart_note_working(struct restarts *restarts, int64_t now)
{
    restarts->working_at = now;
}

static int next_wait_ms(unsigned in_a_row, int first_ms)
{
    int64_t wait_ms = first_ms;
    for (unsigned i = 0; i < in_a_row && wait_ms < PLAN_BACKOFF_MAX_MS; i++)
        wait_ms *= 2;
    return wait_ms < PLAN_BACKOFF_MAX_MS ? (int)wait_ms : PLAN_BACKOFF_MAX_MS;
}

enum restart_verdict restart_decide(struct restarts *restarts,
                                    const struct plan_node *node, int64_t now,
                                    int *wait_ms)
{
    const bool worked = restarts->working_at != 0;
    if (node->on_loss == PLAN_GO_ON)
        return worked ? RESTART_LET_GO : RESTART_FAIL;
    if (node->on_loss == PLAN_FAIL || restarts->n >= node->max_restarts)
        return RESTART_FAIL;
    if (worked && now - restarts->working_at >= RESTART_GOOD_WORK_NS)
        restarts->in_a_row = 0;
    *wait_ms = next_wait_ms(restarts->in_a_row, node->backoff_ms);
    restarts->in_a_row++;
    restarts->n++;
    restarts->working_at = 0;
    return RESTART_AGAIN;
}
