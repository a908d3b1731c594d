#include "restart.h"

#include "lockstep/runtime.h"

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

unsigned restart_spent(const struct restarts *restarts,
                       const struct plan_node *node, int64_t now)
{
    const unsigned most =
        restarts->n < node->max_restarts ? restarts->n : node->max_restarts;
    unsigned n = 0;
    if (node->restart_window_s <= 0.0)
        return most;
    const int64_t window =
        (int64_t)(node->restart_window_s * (double)LS_NS_PER_S);
    while (
        n < most && n < PLAN_WINDOW_RESTARTS_MAX &&
        now - restarts->at[(restarts->n - 1 - n) % PLAN_WINDOW_RESTARTS_MAX] <
            window)
        n++;
    return n;
}

/* LS_EEXIST and LS_EMISMATCH are told by others, who may see the life before.
 */
static bool could_not_begin(const struct node_end *end)
{
    return end->reported
               ? end->status == LS_ECONFIG || end->status == LS_ENOENT ||
                     end->status == LS_EPROTO
               : end->exit_code == ls_status_exit_code(LS_ECONFIG) ||
                     end->exit_code == ls_status_exit_code(LS_EINVAL);
}

enum restart_verdict restart_decide(struct restarts *restarts,
                                    const struct plan_node *node,
                                    const struct node_end *end, int64_t now,
                                    int *wait_ms)
{
    const bool worked = restarts->working_at != 0;
    if (node->on_loss == PLAN_GO_ON)
        return worked ? RESTART_LET_GO : RESTART_FAIL;
    if (node->on_loss == PLAN_FAIL || (!worked && could_not_begin(end)) ||
        restart_spent(restarts, node, now) >= node->max_restarts)
        return RESTART_FAIL;
    if (worked && now - restarts->working_at >= RESTART_GOOD_WORK_NS)
        restarts->in_a_row = 0;
    *wait_ms = next_wait_ms(restarts->in_a_row, node->backoff_ms);
    restarts->in_a_row++;
    restarts->at[restarts->n++ % PLAN_WINDOW_RESTARTS_MAX] = now;
    restarts->working_at = 0;
    return RESTART_AGAIN;
}
