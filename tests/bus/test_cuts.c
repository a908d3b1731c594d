/* Events over connections that are cut again and again: reliable ones all
 * arrive, once and in order; of those under policy drop every one that does not
 * is counted.
 *
 * CUTS_EVENTS: how many of each, 200000 by default. */
#include "severed_world.h"
#include "test.h"

#define CUT_EVERY_MS 50

struct check {
    struct counter ready, came;
    uint64_t next;     /* the number that comes next, if none is missing */
    uint64_t disorder; /* came twice, or out of order */
};

static uint64_t n_events(void)
{
    const char *text = getenv("CUTS_EVENTS");
    return text == NULL ? 200000 : strtoull(text, NULL, 10);
}

/* Each event is its number; those without one only show that it is heard. */
static int check_next(void *self, const struct ls_event *event)
{
    struct check *check = self;
    uint64_t number;
    if (event->size != sizeof number) {
        counter_add(&check->ready, 1);
        return LS_OK;
    }
    memcpy(&number, event->data, sizeof number);
    ls_mutex_lock(&check->came.mutex);
    if (number < check->next)
        check->disorder++;
    else
        check->next = number + 1;
    ls_mutex_unlock(&check->came.mutex);
    counter_add(&check->came, 1);
    return LS_OK;
}

static void check_begin(struct check *check, struct severed_world *world)
{
    *check = (struct check){.next = 0};
    counter_init(&check->ready);
    counter_init(&check->came);
    assert_ok(ls_on(world->at[1].node, "n", check_next, check));
    emit_until_heard(world->at[0].node, "n", &check->ready);
}

static void check_end(struct check *check)
{
    counter_fini(&check->ready);
    counter_fini(&check->came);
}

static void emit_number(struct severed_world *world, uint64_t number,
                        enum ls_delivery policy)
{
    assert_ok(ls_emit_with(world->at[0].node,
                           &(struct ls_emission){.event = "n",
                                                 .data = &number,
                                                 .size = sizeof number,
                                                 .delivery = policy,
                                                 .timeout_ms = LONG_MS}));
}

/* ---- somebody who cuts ------------------------------------------------- */

struct cutter {
    struct severed_world *world;
    ls_thread *thread;
    struct counter end;
    int cuts;
};

static void cut(void *self)
{
    struct cutter *cutter = self;
    bool ended = false;
    while (!ended) {
        const int64_t at = ls_deadline(ls_runtime_threads(), CUT_EVERY_MS);
        int status = LS_OK;
        ls_mutex_lock(&cutter->end.mutex);
        while (cutter->end.n == 0 && status == LS_OK)
            status = ls_cond_wait(&cutter->end.cond, &cutter->end.mutex, at);
        ended = cutter->end.n != 0;
        ls_mutex_unlock(&cutter->end.mutex);
        for (size_t i = 0; i < cutter->world->n && !ended; i++)
            severed_reset(&cutter->world->at[i].link, LINK_PASSES);
        cutter->cuts += ended ? 0 : 1;
    }
}

static void cutter_begin(struct cutter *cutter, struct severed_world *world)
{
    cutter->world = world;
    counter_init(&cutter->end);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &cutter->thread, "cutter",
                              cut, cutter));
}

static void cutter_end(struct cutter *cutter)
{
    counter_add(&cutter->end, 1);
    assert_ok(ls_thread_join(&cutter->thread, LS_FOREVER));
    counter_fini(&cutter->end);
}

static const struct severed_plan plan = {
    .n = 2, .heartbeat_ms = 50, .silence_ms = 60000};

/* ---- the promises ------------------------------------------------------ */

TEST(reliable_events_all_come_once_and_in_order)
{
    struct severed_world *world = severed_start(&plan);
    struct cutter cutter = {.cuts = 0};
    struct check check;
    const uint64_t n = n_events();
    check_begin(&check, world);
    cutter_begin(&cutter, world);
    for (uint64_t i = 0; i < n; i++)
        emit_number(world, i, LS_DELIVERY_RELIABLE);
    assert_reaches(&check.came, (int)n);
    cutter_end(&cutter);
    assert_int_equal(check.disorder, 0);
    assert_int_equal(check.next, n);
    assert_int_equal(counter_get(&check.came), n);
    const struct ls_node_stats stats = severed_stats(&world->at[0]);
    assert_int_equal(stats.unacknowledged, 0);
    print_message("%llu events, %d cuts, %llu transmitted again\n",
                  (unsigned long long)n, cutter.cuts,
                  (unsigned long long)stats.resent);
    severed_end(world);
    check_end(&check);
}

/* Emit until one comes: it shows how many did not before it. */
static uint64_t show_the_last_gap(struct severed_world *world,
                                  struct check *check, uint64_t i)
{
    bool shown = false;
    while (!shown) {
        int status = LS_OK;
        emit_number(world, i++, LS_DELIVERY_DROP);
        const int64_t soon = ls_deadline(ls_runtime_threads(), 20);
        ls_mutex_lock(&check->came.mutex);
        while (check->next != i && status == LS_OK)
            status = ls_cond_wait(&check->came.cond, &check->came.mutex, soon);
        shown = check->next == i;
        ls_mutex_unlock(&check->came.mutex);
    }
    return i;
}

TEST(of_those_that_may_be_dropped_every_one_is_counted)
{
    struct severed_world *world = severed_start(&plan);
    struct cutter cutter = {.cuts = 0};
    struct check check;
    uint64_t i = 0;
    check_begin(&check, world);
    i = show_the_last_gap(world, &check, i); /* now it counts */
    const uint64_t before = severed_stats(&world->at[1]).missed;
    const uint64_t first = i, came = (uint64_t)counter_get(&check.came);
    cutter_begin(&cutter, world);
    while (i < first + n_events())
        emit_number(world, i++, LS_DELIVERY_DROP);
    cutter_end(&cutter);
    i = show_the_last_gap(world, &check, i);
    assert_int_equal(check.disorder, 0);
    const uint64_t missed = severed_stats(&world->at[1]).missed - before;
    assert_int_equal((uint64_t)counter_get(&check.came) - came + missed,
                     i - first);
    print_message("%llu events, %d cuts, %llu missed\n",
                  (unsigned long long)(i - first), cutter.cuts,
                  (unsigned long long)missed);
    severed_end(world);
    check_end(&check);
}
