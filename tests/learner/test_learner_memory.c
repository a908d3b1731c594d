/* Eight producers that are faster than the learner: what waits is bounded, and
 * all of it is accounted for. test_learner_learner_memory SECONDS does it for
 * so long with each policy, and shows the memory of the process once a second.
 */
#include "base/sanitized.h"
#include "test.h"
#include "trainer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    N_PRODUCERS = 8,
    N_BATCHES_EACH = SANITIZED ? 50 : 200,
    BATCH_BYTES = 1 << 18,
    QUEUE = 16,
    STACKS = 4,
    LOADERS = 2
};

static double seconds; /* 0: so many batches */

struct farm {
    ls_learner *learner;
    int64_t until; /* with seconds */
    atomic_long alive;
    atomic_long most_alive;
    atomic_ulong accepted;
    atomic_ulong checksum;
};

static struct farm farm;

static void *new_batch(void)
{
    unsigned char *const batch = malloc(BATCH_BYTES);
    assert(batch != NULL);
    memset(batch, 1, BATCH_BYTES);
    const long alive = atomic_fetch_add(&farm.alive, 1) + 1;
    long most = atomic_load(&farm.most_alive);
    while (alive > most &&
           !atomic_compare_exchange_weak(&farm.most_alive, &most, alive))
        ;
    return batch;
}

static void free_batch(void *self, struct ls_learner_batch *batch)
{
    (void)self;
    free(batch->data);
    atomic_fetch_sub(&farm.alive, 1);
}

static int load_batch(void *self, const struct ls_learner_place *place)
{
    (void)self;
    memcpy(ls_device_stack_host(place->memory), place->batch->data,
           BATCH_BYTES);
    return ls_device_stack_upload(place->memory, 0, BATCH_BYTES);
}

static int sum_slowly(void *self, const struct ls_learner_place *place,
                      unsigned pass, ls_learner_info *info)
{
    (void)self;
    (void)pass;
    const unsigned char *const bytes =
        (const unsigned char *)ls_device_stack_memory(place->memory);
    unsigned long sum = 0;
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < BATCH_BYTES; i++)
            sum = sum * 31 + bytes[i];
    atomic_fetch_add(&farm.checksum, sum);
    return ls_learner_info_add(info, "sum", (double)sum);
}

static const struct ls_learner_ops ops = {
    .load = load_batch, .compute = sum_slowly, .drop = free_batch};

static bool goes_on(size_t n)
{
    return seconds > 0.0 ? ls_now(ls_runtime_current()) < farm.until
                         : n < N_BATCHES_EACH;
}

static void produce(void *arg)
{
    (void)arg;
    for (size_t n = 0; goes_on(n); n++) {
        struct ls_learner_batch batch = {.data = new_batch(), .env_steps = 1};
        if (ls_learner_put(farm.learner, &batch, 20) == LS_OK)
            atomic_fetch_add(&farm.accepted, 1);
        else
            free_batch(NULL, &batch);
    }
}

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file != NULL)
        (void)fclose(file);
    return resident * 4;
}

/* Take results until the producers are done. */
static void take_results(ls_runtime *runtime)
{
    struct ls_learner_result result = {.info = NULL};
    int64_t shown = ls_now(runtime);
    while (seconds > 0.0 && ls_now(runtime) < farm.until) {
        const int status = ls_learner_get(farm.learner, &result, 100);
        assert_true(status == LS_OK || status == LS_ETIMEDOUT);
        if (ls_now(runtime) - shown < LS_NS_PER_S)
            continue;
        shown += LS_NS_PER_S;
        const struct ls_learner_counts counts = counts_of(farm.learner);
        printf("%8ld KiB  put %llu  trained %llu  dropped %llu\n",
               resident_kib(), (unsigned long long)counts.put,
               (unsigned long long)counts.trained,
               (unsigned long long)counts.dropped);
    }
}

static void assert_bounded(enum ls_when_full policy)
{
    ls_runtime *const runtime = ls_runtime_threads();
    ls_device *device;
    ls_thread *threads[N_PRODUCERS];
    memset(&farm, 0, sizeof farm);
    farm.until = ls_now(runtime) + (int64_t)(seconds * 1e9);
    assert_ok(ls_device_open(&device, runtime, "cpu"));
    const struct ls_learner_options options = {.ops = &ops,
                                               .queue = QUEUE,
                                               .when_full = policy,
                                               .out_when_full =
                                                   LS_QUEUE_DROP_OLDEST,
                                               .stacks = STACKS,
                                               .loaders = LOADERS,
                                               .devices = &device,
                                               .part_bytes = BATCH_BYTES};
    assert_ok(ls_learner_create(&farm.learner, runtime, &options));
    for (size_t i = 0; i < N_PRODUCERS; i++)
        spawn(runtime, &threads[i], produce, NULL);
    take_results(runtime);
    for (size_t i = 0; i < N_PRODUCERS; i++)
        join(&threads[i]);
    assert_ok(ls_learner_stop(farm.learner, -1));
    const struct ls_learner_counts counts = counts_of(farm.learner);
    assert_true(counts.put == atomic_load(&farm.accepted));
    assert_true(counts.put ==
                counts.trained + counts.dropped + counts.discarded);
    assert_true(counts.steps == counts.trained); /* one pass each */
    assert_int_equal(atomic_load(&farm.alive), 0);
    /* Each producer has one in its hand, and may push one out. */
    assert_true(atomic_load(&farm.most_alive) <=
                QUEUE + STACKS + 2 * N_PRODUCERS);
    ls_learner_destroy(&farm.learner);
    ls_device_close(&device);
}

TEST(memory_is_bounded_when_puts_wait)
{
    assert_bounded(LS_QUEUE_BLOCK);
}

TEST(memory_is_bounded_when_the_oldest_is_dropped)
{
    assert_bounded(LS_QUEUE_DROP_OLDEST);
}

TEST(memory_is_bounded_when_puts_fail)
{
    assert_bounded(LS_QUEUE_FAIL);
}

int main(int argc, char **argv)
{
    seconds = argc > 1 ? strtod(argv[1], NULL) : 0.0;
    return tests_run();
}
