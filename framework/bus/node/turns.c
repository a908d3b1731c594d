/* Whose turn it is. Design notes:
 *
 * - A thread that waits for an answer would be woken by the bus thread, which
 *   was woken itself to read it: so it borrows the turn, and reads.
 * - The turn is borrowed only while the bus thread rests. Who finds that awake
 *   waits to be told what it waits for, or that it rests: under load the bus
 *   thread may not do so for long. Nobody waits for the turn alone: when a
 *   timer wakes the bus thread while that is lent, whoever has it looks after
 *   the timer, and the bus thread rests on.
 * - It is not borrowed on what is left of a step's stack, if that is less than
 *   the work may need: half of it is what it has needed at most in the tests.
 * - The bus thread rests on: the transport does not wake it for what comes
 *   meanwhile, but does for what is left when the turn is returned. */
#include "turns.h"

#include "lockstep/fiber.h"
#include "lockstep/log.h"

#include "bus.h"
#include "thread_here.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STACK_BYTES (160u << 10)
#endif
#endif
#if !defined(STACK_BYTES)
#define STACK_BYTES (40u << 10)
#endif

int turns_init(struct turns *turns, ls_runtime *runtime)
{
    return ls_mutex_init(&turns->lock, runtime);
}

void turns_fini(struct turns *turns)
{
    ls_mutex_fini(&turns->lock);
}

bool turns_is_borrower(const ls_node *node)
{
    return atomic_load(&node->turns.borrower) == ls_thread_here();
}

/* ---- the bus thread ---------------------------------------------------- */

/* Whoever waits to be told may read now. If that misses it, it is told. Lock
 * held. */
static void set_free(struct turns *turns)
{
    turns->state = TURN_FREE;
    if (turns->next != NULL)
        ls_cond_signal(turns->next);
}

static void let_go(struct turns *turns)
{
    ls_mutex_lock(&turns->lock);
    set_free(turns);
    ls_mutex_unlock(&turns->lock);
}

/* Returns false: it is lent. */
static bool come_back(struct turns *turns)
{
    ls_mutex_lock(&turns->lock);
    const bool is_free = turns->state != TURN_LENT;
    if (is_free)
        turns->state = TURN_OF_BUS;
    ls_mutex_unlock(&turns->lock);
    return is_free;
}

bool turns_rest(ls_node *node, bool begins)
{
    const bool lent = turns_is_borrower(node);
    if (!begins && !lent && !come_back(&node->turns))
        return false;
    const bool rests =
        !(begins && rings_look(node)) && rings_rest(node, begins);
    if (begins && !lent)
        let_go(&node->turns);
    return rests;
}

/* ---- who waits --------------------------------------------------------- */

bool turns_borrow(ls_node *node)
{
    struct turns *turns = &node->turns;
    if (ls_forked_since(node->forks) || ls_fiber_stack_left() < STACK_BYTES)
        return false;
    ls_mutex_lock(&turns->lock);
    const bool is_free = turns->state == TURN_FREE &&
                         !atomic_load(&node->loop.stopping) &&
                         transport_lend(node->transport, true, LS_FOREVER);
    if (is_free) {
        turns->state = TURN_LENT;
        atomic_store(&turns->borrower, ls_thread_here());
        atomic_store(&turns->lent, true);
    }
    ls_mutex_unlock(&turns->lock);
    if (is_free)
        (void)rings_rest(node, false);
    return is_free;
}

void turns_give_back(ls_node *node)
{
    struct turns *turns = &node->turns;
    const bool is_quiet = rings_rest(node, true) &&
                          !atomic_load(&node->loop.chores) &&
                          !atomic_load(&node->loop.stopping);
    ls_mutex_lock(&turns->lock);
    atomic_store(&turns->lent, false);
    atomic_store(&turns->borrower, NULL);
    (void)transport_lend(node->transport, false,
                         is_quiet ? node->loop.next : LS_NOW);
    set_free(turns);
    ls_mutex_unlock(&turns->lock);
}

/* Lock of `mutex` held, but while it waits. What the bus logs is not of the
 * step that waits. */
static int read_until(ls_node *node, ls_mutex *mutex,
                      bool (*is_over)(void *self), void *self, int64_t deadline)
{
    const int64_t node_before = ls_log_node();
    const char *step = ls_log_step();
    int status = LS_OK;
    ls_log_set_node(node->options.id);
    ls_log_set_step(NULL);
    while (!is_over(self) && status == LS_OK) {
        ls_mutex_unlock(mutex);
        bus_turn(node, deadline);
        if (node->loop.now >= deadline)
            status = LS_ETIMEDOUT;
        ls_mutex_lock(mutex);
    }
    ls_log_set_step(step);
    ls_log_set_node(node_before);
    return status;
}

/* The same, by who finds another one at it. */
static int be_told(ls_node *node, ls_cond *cond, ls_mutex *mutex,
                   int64_t deadline)
{
    struct turns *turns = &node->turns;
    ls_mutex_lock(&turns->lock);
    const bool is_next = turns->next == NULL;
    if (is_next)
        turns->next = cond;
    ls_mutex_unlock(&turns->lock);
    const int status = ls_cond_wait(cond, mutex, deadline);
    ls_mutex_lock(&turns->lock);
    if (is_next)
        turns->next = NULL;
    ls_mutex_unlock(&turns->lock);
    return status;
}

int turns_wait(ls_node *node, ls_cond *cond, ls_mutex *mutex,
               bool (*is_over)(void *self), void *self, int64_t deadline)
{
    int status = LS_OK;
    if (turns_is_borrower(node))
        return read_until(node, mutex, is_over, self, deadline);
    while (!is_over(self) && status == LS_OK) {
        if (!turns_borrow(node)) {
            status = be_told(node, cond, mutex, deadline);
            continue;
        }
        status = read_until(node, mutex, is_over, self, deadline);
        turns_give_back(node);
        return status;
    }
    return status;
}

void turns_ring(ls_node *node)
{
    if (atomic_load(&node->turns.lent) && !turns_is_borrower(node))
        transport_wake(node->transport);
}
