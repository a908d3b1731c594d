/* A thread that waits reads what comes itself, while the bus thread rests. */
#include <stdlib.h>

#include "lockstep/channel.h"
#include "lockstep/fiber.h"
#include "test.h"
#include "turns.h"
#include "world_fixture.h"

/* Two nodes with a channel each; the second is waited for. */
struct talk {
    struct world world;
    ls_channel *channel[2];
    ls_mutex mutex;
    ls_cond cond;
    struct counter came;
    _Atomic(const void *) by; /* a mark of the thread that ran the last op */
    atomic_bool is_over;
    atomic_int n_sent, status;
    ls_thread *other;
};

static _Thread_local char mark;

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    struct talk *talk = self;
    (void)from;
    (void)incarnation;
    (void)data;
    (void)size;
    atomic_store(&talk->by, &mark);
    counter_add(&talk->came, 1);
}

static const struct ls_channel_ops ops = {.message = on_message};

static void open_channel(ls_node *node, size_t index, void *self)
{
    struct talk *talk = self;
    assert_ok(ls_channel_open(&talk->channel[index], node, "talk", &ops, talk));
}

static struct talk *talk_start(const char *over,
                               void (*tune)(struct ls_node_options *options,
                                            size_t index))
{
    struct talk *talk = calloc(1, sizeof *talk);
    assert_non_null(talk);
    counter_init(&talk->came);
    assert_ok(ls_mutex_init(&talk->mutex, ls_runtime_threads()));
    assert_ok(ls_cond_init(&talk->cond, ls_runtime_threads()));
    world_start(&talk->world, &(struct world_plan){.n = 2,
                                                   .transport = over,
                                                   .tune = tune,
                                                   .prepare = open_channel,
                                                   .self = talk});
    return talk;
}

static void talk_end(struct talk *talk)
{
    for (size_t i = 0; i < 2; i++)
        ls_channel_close(&talk->channel[i]);
    world_destroy(&talk->world);
    counter_fini(&talk->came);
    ls_cond_fini(&talk->cond);
    ls_mutex_fini(&talk->mutex);
    free(talk);
}

static int attend(struct talk *talk, bool (*is_over)(void *self),
                  int64_t deadline)
{
    ls_mutex_lock(&talk->mutex);
    const int status = ls_channel_attend(talk->channel[1], &talk->cond,
                                         &talk->mutex, is_over, deadline);
    ls_mutex_unlock(&talk->mutex);
    return status;
}

static void send_one(struct talk *talk)
{
    atomic_fetch_add(&talk->n_sent, 1);
    assert_ok(ls_channel_send(talk->channel[0],
                              ls_node_id(talk->world.at[1].node), "x", 1));
}

/* More at once would keep the bus thread at work. */
static void send_until_read(struct talk *talk)
{
    send_one(talk);
    assert_reaches(&talk->came, atomic_load(&talk->n_sent));
}

static bool never(void *self)
{
    (void)self;
    return false;
}

static bool was_read_here(void *self)
{
    const struct talk *talk = self;
    return atomic_load(&talk->by) == &mark;
}

/* One after the other, until one of them was read by who waits. */
static void send_until_over(void *self)
{
    struct talk *talk = self;
    while (!atomic_load(&talk->is_over)) {
        send_one(talk);
        if (!counter_reaches(&talk->came, atomic_load(&talk->n_sent)))
            return;
    }
}

static void read_by_who_waits(const char *over)
{
    struct talk *talk = talk_start(over, NULL);
    ls_thread *sender = NULL;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &sender, "sender",
                              send_until_over, talk));
    assert_ok(attend(talk, was_read_here, long_deadline()));
    atomic_store(&talk->is_over, true);
    assert_ok(ls_thread_join(&sender, long_deadline()));
    assert_reaches(&talk->came, atomic_load(&talk->n_sent));
    /* And by the bus thread again, when nobody waits. */
    for (int i = 0; i < 100; i++) {
        send_until_read(talk);
        assert_false(was_read_here(talk));
    }
    talk_end(talk);
}

TEST(what_comes_is_read_by_who_waits_and_by_the_bus_thread_afterwards)
{
    read_by_who_waits("tcp");
    read_by_who_waits("inproc");
}

TEST(who_waits_does_so_until_its_deadline)
{
    struct talk *talk = talk_start("inproc", NULL);
    assert_int_equal(attend(talk, never, LS_NOW), LS_ETIMEDOUT);
    assert_int_equal(attend(talk, never, ls_deadline(ls_runtime_threads(), 20)),
                     LS_ETIMEDOUT);
    talk_end(talk);
}

static void end_it(void *self)
{
    struct talk *talk = self;
    ls_mutex_lock(&talk->mutex);
    atomic_store(&talk->is_over, true);
    ls_cond_signal(&talk->cond);
    ls_mutex_unlock(&talk->mutex);
    ls_channel_ring(talk->channel[1]);
}

/* By a thread that begins when the turn was borrowed. */
static bool is_ended_by_another(void *self)
{
    struct talk *talk = self;
    if (talk->other == NULL)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &talk->other, "other",
                                  end_it, talk));
    return atomic_load(&talk->is_over);
}

/* Nothing else wakes who waits. */
static void beat_seldom(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->heartbeat_ms = LONG_MS;
    options->silence_ms = 4 * LONG_MS;
}

TEST(another_thread_ends_it)
{
    struct talk *talk = talk_start("inproc", beat_seldom);
    assert_ok(attend(talk, is_ended_by_another,
                     ls_deadline(ls_runtime_threads(), LONG_MS / 2)));
    assert_ok(ls_thread_join(&talk->other, long_deadline()));
    talk_end(talk);
}

/* A second thread waits while the first has the turn, and reads after it. It
 * asks again: nobody tells it that the first one has gone. */
static void attend_next(void *self)
{
    struct talk *talk = self;
    const int64_t last = long_deadline();
    int status = LS_ETIMEDOUT;
    while (status == LS_ETIMEDOUT && ls_now(ls_runtime_threads()) < last)
        status =
            attend(talk, was_read_here, ls_deadline(ls_runtime_threads(), 20));
    atomic_store(&talk->status, status);
}

static bool let_another_begin(void *self)
{
    struct talk *talk = self;
    if (talk->other == NULL)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &talk->other, "other",
                                  attend_next, talk));
    return was_read_here(talk);
}

TEST(who_finds_another_at_it_reads_after_it)
{
    struct talk *talk = talk_start("inproc", NULL);
    ls_thread *sender = NULL;
    atomic_store(&talk->status, LS_EAGAIN);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &sender, "sender",
                              send_until_over, talk));
    assert_ok(attend(talk, let_another_begin, long_deadline()));
    assert_ok(ls_thread_join(&talk->other, long_deadline()));
    assert_ok(atomic_load(&talk->status));
    atomic_store(&talk->is_over, true);
    assert_ok(ls_thread_join(&sender, long_deadline()));
    talk_end(talk);
}

/* On the stack of a step. */
static void borrow_here(void *self)
{
    struct talk *talk = self;
    ls_node *node = talk->world.at[1].node;
    const bool borrowed = turns_borrow(node);
    atomic_store(&talk->status, borrowed);
    if (borrowed)
        turns_give_back(node);
}

static bool borrows_on(struct talk *talk, size_t stack_bytes)
{
    ls_fiber_pool *pool = NULL;
    ls_fiber *fiber = NULL;
    assert_ok(ls_fiber_pool_create(&pool, stack_bytes, 0));
    assert_ok(ls_fiber_create(&fiber, pool, borrow_here, talk));
    assert_false(ls_fiber_resume(fiber));
    ls_fiber_destroy(&fiber);
    ls_fiber_pool_destroy(&pool);
    return atomic_load(&talk->status);
}

TEST(a_short_stack_is_not_for_the_work_of_the_bus_thread)
{
    struct talk *talk = talk_start("inproc", beat_seldom);
    while (!borrows_on(talk, 0)) /* once the bus thread rests */
        send_until_read(talk);
    for (int i = 0; i < 20; i++)
        assert_false(borrows_on(talk, 32u << 10));
    assert_reaches(&talk->came, atomic_load(&talk->n_sent));
    talk_end(talk);
}

/* Until the bus thread rests, and lets go of its turn. */
static void borrow(struct talk *talk)
{
    while (!ls_channel_borrow(talk->channel[1]))
        send_until_read(talk);
}

TEST(who_has_borrowed_the_turn_reads_all_that_comes_until_it_is_given_back)
{
    struct talk *talk = talk_start("inproc", beat_seldom);
    borrow(talk);
    assert_false(ls_channel_borrow(talk->channel[1])); /* it is lent */
    for (int i = 0; i < 20; i++) {
        atomic_store(&talk->by, NULL);
        send_one(talk);
        assert_ok(attend(talk, was_read_here, long_deadline()));
    }
    ls_channel_give_back(talk->channel[1]);
    send_until_read(talk);
    assert_false(was_read_here(talk));
    talk_end(talk);
}
