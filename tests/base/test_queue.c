#include "lockstep/queue.h"

#include <string.h>

#include "huge_allocations.h"
#include "test.h"

static ls_queue *new_queue(size_t capacity, enum ls_when_full policy,
                           void (*drop)(void *item))
{
    const struct ls_queue_options options = {.capacity = capacity,
                                             .item_size = sizeof(int),
                                             .when_full = policy,
                                             .drop = drop};
    ls_queue *queue;
    assert_ok(ls_queue_create(&queue, ls_runtime_threads(), &options));
    return queue;
}

static void put(ls_queue *queue, int item)
{
    assert_ok(ls_queue_put(queue, &item, LS_NOW));
}

static void assert_get(ls_queue *queue, int wanted)
{
    int item = -1;
    assert_ok(ls_queue_get(queue, &item, LS_NOW));
    assert_int_equal(item, wanted);
}

static void assert_stats(ls_queue *queue, struct ls_queue_stats wanted)
{
    struct ls_queue_stats stats;
    ls_queue_stats(queue, &stats);
    assert_int_equal(stats.put, wanted.put);
    assert_int_equal(stats.got, wanted.got);
    assert_int_equal(stats.dropped, wanted.dropped);
    assert_int_equal(stats.refused, wanted.refused);
    assert_int_equal(stats.size, wanted.size);
    assert_int_equal(stats.peak, wanted.peak);
}

static int64_t soon(void)
{
    return ls_deadline(ls_runtime_threads(), 1);
}

/* What the drop function was called with. */
static int dropped[16];
static size_t n_dropped;

static void note_dropped(void *item)
{
    dropped[n_dropped++] = *(int *)item;
}

static int forget_dropped(void **state)
{
    (void)state;
    n_dropped = 0;
    return 0;
}

EACH_TEST(forget_dropped, NULL)

TEST(items_come_out_in_the_order_they_went_in)
{
    ls_queue *queue = new_queue(3, LS_QUEUE_BLOCK, NULL);
    for (int i = 0; i < 10; i += 2) { /* round the ring's end */
        put(queue, i);
        put(queue, i + 1);
        assert_get(queue, i);
        assert_get(queue, i + 1);
    }
    assert_stats(queue,
                 (struct ls_queue_stats){.put = 10, .got = 10, .peak = 2});
    ls_queue_destroy(&queue);
}

TEST(get_of_nothing_fails_at_once_or_at_the_deadline)
{
    ls_queue *queue = new_queue(1, LS_QUEUE_BLOCK, NULL);
    int item = 5;
    assert_fails(ls_queue_get(queue, &item, LS_NOW), LS_EAGAIN);
    assert_fails(ls_queue_get(queue, &item, soon()), LS_ETIMEDOUT);
    assert_int_equal(item, 5);
    ls_queue_destroy(&queue);
}

TEST(block_put_fails_at_once_or_at_the_deadline)
{
    ls_queue *queue = new_queue(1, LS_QUEUE_BLOCK, note_dropped);
    put(queue, 1);
    const int item = 2;
    assert_fails(ls_queue_put(queue, &item, LS_NOW), LS_EAGAIN);
    assert_fails(ls_queue_put(queue, &item, soon()), LS_ETIMEDOUT);
    assert_int_equal(n_dropped, 0);
    assert_stats(queue, (struct ls_queue_stats){
                            .put = 1, .refused = 2, .size = 1, .peak = 1});
    assert_get(queue, 1);
    ls_queue_destroy(&queue);
}

TEST(fail_put_fails_at_once_whatever_the_deadline)
{
    ls_queue *queue = new_queue(1, LS_QUEUE_FAIL, NULL);
    put(queue, 1);
    const int item = 2;
    assert_fails(ls_queue_put(queue, &item, LS_FOREVER), LS_EAGAIN);
    assert_stats(queue, (struct ls_queue_stats){
                            .put = 1, .refused = 1, .size = 1, .peak = 1});
    assert_get(queue, 1);
    put(queue, 3);
    assert_get(queue, 3);
    ls_queue_destroy(&queue);
}

TEST(drop_oldest_makes_room)
{
    ls_queue *queue = new_queue(3, LS_QUEUE_DROP_OLDEST, note_dropped);
    for (int i = 0; i < 5; i++)
        put(queue, i);
    assert_int_equal(n_dropped, 2);
    assert_int_equal(dropped[0], 0);
    assert_int_equal(dropped[1], 1);
    assert_stats(queue, (struct ls_queue_stats){
                            .put = 5, .dropped = 2, .size = 3, .peak = 3});
    for (int i = 2; i < 5; i++)
        assert_get(queue, i);
    assert_stats(queue, (struct ls_queue_stats){
                            .put = 5, .got = 3, .dropped = 2, .peak = 3});
    ls_queue_destroy(&queue);
    assert_int_equal(n_dropped, 2);
}

TEST(drop_oldest_needs_no_drop_function)
{
    ls_queue *queue = new_queue(1, LS_QUEUE_DROP_OLDEST, NULL);
    put(queue, 1);
    put(queue, 2);
    assert_get(queue, 2);
    ls_queue_destroy(&queue);
}

static ls_queue *reentered;

static void look_at_the_queue(void *item)
{
    struct ls_queue_stats stats;
    ls_queue_stats(reentered, &stats);
    note_dropped(item);
    dropped[n_dropped++] = (int)stats.size;
}

TEST(drop_runs_outside_of_the_lock)
{
    reentered = new_queue(1, LS_QUEUE_DROP_OLDEST, look_at_the_queue);
    put(reentered, 8);
    put(reentered, 9);
    assert_int_equal(n_dropped, 2);
    assert_int_equal(dropped[0], 8);
    assert_int_equal(dropped[1], 1);
    assert_get(reentered, 9);
    ls_queue_destroy(&reentered);
}

struct large {
    int first;
    char rest[1000];
    int last;
};

static void note_large(void *item)
{
    const struct large *large = item;
    dropped[n_dropped++] = large->first;
    dropped[n_dropped++] = large->last;
}

TEST(large_items_are_dropped_whole)
{
    const struct ls_queue_options options = {.capacity = 1,
                                             .item_size = sizeof(struct large),
                                             .when_full = LS_QUEUE_DROP_OLDEST,
                                             .drop = note_large};
    ls_queue *queue;
    assert_ok(ls_queue_create(&queue, ls_runtime_threads(), &options));
    for (int i = 1; i <= 2; i++) {
        const struct large large = {.first = i, .last = 10 * i};
        assert_ok(ls_queue_put(queue, &large, LS_NOW));
    }
    assert_int_equal(n_dropped, 2);
    assert_int_equal(dropped[0], 1);
    assert_int_equal(dropped[1], 10);
    ls_queue_destroy(&queue);
    assert_int_equal(dropped[2], 2);
}

TEST(a_closed_queue_is_emptied_but_takes_no_more)
{
    static const enum ls_when_full policies[] = {
        LS_QUEUE_BLOCK, LS_QUEUE_DROP_OLDEST, LS_QUEUE_FAIL};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        ls_queue *queue = new_queue(2, policies[i], NULL);
        put(queue, 1);
        put(queue, 2);
        ls_queue_close(queue);
        ls_queue_close(queue);
        int item = 3;
        assert_fails(ls_queue_put(queue, &item, LS_FOREVER), LS_ECLOSED);
        assert_get(queue, 1);
        assert_fails(ls_queue_put(queue, &item, LS_FOREVER), LS_ECLOSED);
        assert_get(queue, 2);
        assert_fails(ls_queue_get(queue, &item, LS_FOREVER), LS_ECLOSED);
        assert_int_equal(item, 3);
        assert_stats(queue, (struct ls_queue_stats){
                                .put = 2, .got = 2, .refused = 2, .peak = 2});
        ls_queue_destroy(&queue);
    }
}

TEST(destroy_drops_what_is_left)
{
    ls_queue *queue = new_queue(2, LS_QUEUE_BLOCK, note_dropped);
    put(queue, 1);
    put(queue, 2);
    assert_get(queue, 1);
    put(queue, 3);
    ls_queue_destroy(&queue);
    assert_null(queue);
    assert_int_equal(n_dropped, 2);
    assert_int_equal(dropped[0], 2);
    assert_int_equal(dropped[1], 3);
    ls_queue_destroy(&queue);
    ls_queue_destroy(NULL);
}

TEST(create_refuses_bad_options)
{
    const struct ls_queue_options good = {.capacity = 1, .item_size = 8};
    struct ls_queue_options options = good;
    ls_runtime *runtime = ls_runtime_threads();
    ls_queue *queue = (ls_queue *)(void *)&queue;
    options.capacity = 0;
    assert_fails(ls_queue_create(&queue, runtime, &options), LS_EINVAL);
    options = good;
    options.item_size = 0;
    assert_fails(ls_queue_create(&queue, runtime, &options), LS_EINVAL);
    options = good;
    options.when_full = (enum ls_when_full)3;
    assert_fails(ls_queue_create(&queue, runtime, &options), LS_EINVAL);
    options = good;
    options.capacity = too_many;
    assert_fails(ls_queue_create(&queue, runtime, &options), LS_ENOMEM);
    options.item_size = too_many; /* more bytes than a size_t counts */
    assert_fails(ls_queue_create(&queue, runtime, &options), LS_ENOMEM);
    assert_null(queue);
}

enum { ITEMS_EACH = 2000, SIDES = 3 };

struct worker {
    ls_queue *queue;
    int first;
    int status;
    long sum;
    int n;
};

static void put_many(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < ITEMS_EACH && worker->status == LS_OK; i++) {
        const int item = worker->first + i;
        worker->status = ls_queue_put(worker->queue, &item, LS_FOREVER);
    }
}

static void get_all(void *arg)
{
    struct worker *worker = arg;
    int item;
    while ((worker->status = ls_queue_get(worker->queue, &item, LS_FOREVER)) ==
           LS_OK) {
        worker->sum += item;
        worker->n++;
    }
}

static void start(ls_thread **thread, void (*fn)(void *arg),
                  struct worker *worker)
{
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), thread, "worker", fn, worker));
}

TEST(many_threads_pass_every_item_once)
{
    ls_queue *queue = new_queue(4, LS_QUEUE_BLOCK, NULL);
    struct worker putters[SIDES], getters[SIDES];
    ls_thread *put_threads[SIDES], *get_threads[SIDES];
    for (int i = 0; i < SIDES; i++) {
        getters[i] = (struct worker){.queue = queue};
        start(&get_threads[i], get_all, &getters[i]);
        putters[i] = (struct worker){.queue = queue, .first = i * ITEMS_EACH};
        start(&put_threads[i], put_many, &putters[i]);
    }
    for (int i = 0; i < SIDES; i++)
        assert_ok(ls_thread_join(&put_threads[i], LS_FOREVER));
    ls_queue_close(queue);
    long sum = 0;
    int n = 0;
    for (int i = 0; i < SIDES; i++) {
        assert_ok(ls_thread_join(&get_threads[i], LS_FOREVER));
        assert_int_equal(putters[i].status, LS_OK);
        assert_int_equal(getters[i].status, LS_ECLOSED);
        sum += getters[i].sum;
        n += getters[i].n;
    }
    const long total = SIDES * ITEMS_EACH;
    assert_int_equal(n, total);
    assert_int_equal(sum, total * (total - 1) / 2);
    ls_queue_destroy(&queue);
}

TEST(closing_wakes_all_who_wait_to_put)
{
    ls_queue *queue = new_queue(1, LS_QUEUE_BLOCK, NULL);
    put(queue, 0);
    struct worker workers[SIDES];
    ls_thread *threads[SIDES];
    for (int i = 0; i < SIDES; i++) {
        workers[i] = (struct worker){.queue = queue};
        start(&threads[i], put_many, &workers[i]);
    }
    ls_queue_close(queue);
    for (int i = 0; i < SIDES; i++) {
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
        assert_int_equal(workers[i].status, LS_ECLOSED);
    }
    ls_queue_destroy(&queue);
}
