/* A learner and a collector whose coordinator gives them one work after the
 * other, closes them at any time, and is killed and begun again; members stand
 * still, some for so long that they are taken for dead; all drawn from a seed.
 * Nothing of a work outlives its close, no iteration is done or committed
 * twice, and no call is left open. */
#include "service_talk.h"

#include "base/seeds.h"
#include "quiet.h"
#include "test.h"

static ls_host *new_host(struct sweep *sweep, const char *name)
{
    ls_host *host = NULL;
    ok(ls_host_create(&host, sweep->simulation, name));
    ok(ls_network_join(sweep->network, host));
    return host;
}

static void begin_member(struct sweep *sweep, struct member *member,
                         uint32_t id, void (*fn)(void *))
{
    *member = (struct member){
        .sweep = sweep, .id = id, .host = new_host(sweep, "member")};
    ls_rng_seed(&member->random, sweep->seed, id);
    ok(ls_thread_spawn(ls_host_runtime(member->host), &member->thread, "member",
                       fn, member));
}

static struct life *begin_life(struct sweep *sweep)
{
    struct life *life = &sweep->lives[sweep->n_lives++];
    *life = (struct life){.sweep = sweep, .host = new_host(sweep, "life")};
    ls_rng_seed(&life->random, sweep->seed, 100 + sweep->n_lives);
    ok(ls_thread_spawn(ls_host_runtime(life->host), &life->thread, "life",
                       life_main, life));
    return life;
}

static void rest(struct sweep *sweep, int64_t ms)
{
    ls_rest_until(ls_simulation_runtime(sweep->simulation),
                  ls_simulation_now(sweep->simulation) + ms * LS_NS_PER_MS);
}

static void disturb(struct sweep *sweep, ls_host *host)
{
    struct ls_rng *random = ls_simulation_random(sweep->simulation);
    ls_host_pause(host);
    rest(sweep, (int64_t)ls_rng_below(random, sweep->pauses_long ? 6000 : 600));
    ls_host_resume(host);
}

static void story(void *arg)
{
    struct sweep *sweep = arg;
    struct ls_rng *random = ls_simulation_random(sweep->simulation);
    begin_member(sweep, &sweep->learner, LEARNER, learner_main);
    begin_member(sweep, &sweep->collector, COLLECTOR, collector_main);
    struct life *life = begin_life(sweep);
    const size_t kills = (size_t)ls_rng_below(random, LIVES);
    while (sweep->n_lives <= kills) {
        rest(sweep, 50 + (int64_t)ls_rng_below(random, 1500));
        disturb(sweep, ls_rng_below(random, 2) == 0 ? sweep->learner.host
                                                    : sweep->collector.host);
        if (life->over)
            break;
        if (sweep->pauses_long && ls_rng_below(random, 2) == 0)
            continue;
        ls_network_kill(sweep->network, life->host);
        life = begin_life(sweep);
    }
    for (size_t i = 0; i < sweep->n_lives; i++)
        ok(ls_thread_join(&sweep->lives[i].thread, LS_FOREVER));
    ok(ls_thread_join(&sweep->learner.thread, LS_FOREVER));
    ok(ls_thread_join(&sweep->collector.thread, LS_FOREVER));
    must(sweep, life->over, "the last coordinator has not come to its end");
}

/* What collectors act with. */
static void put_policy(struct sweep *sweep)
{
    struct item *item = &sweep->items[sweep->n_items++];
    const struct policy_value value = {.weights = {"w", 1}};
    ls_writer *writer;
    const void *data;
    size_t size;
    strcpy(item->name, "policy");
    ok(ls_writer_create(&writer));
    policy_value_write(&value, writer);
    ok(ls_writer_bytes(writer, &data, &size));
    ok(ls_bytes_set(&item->value, data, size));
    ls_writer_destroy(&writer);
}

static void one_seed(uint64_t seed, int64_t totals[5])
{
    static const struct ls_network_path paths[] = {
        {.delay_ns = LS_NS_PER_MS / 10},
        {.delay_ns = 2 * LS_NS_PER_MS, .jitter_ns = 5 * LS_NS_PER_MS},
        {.delay_ns = 2 * LS_NS_PER_MS,
         .jitter_ns = 5 * LS_NS_PER_MS,
         .loss = 0.05,
         .duplicate = 0.05,
         .reorder = 0.05}};
    const struct ls_simulation_options options = {.seed = seed};
    struct sweep *sweep = calloc(1, sizeof *sweep);
    sweep->seed = seed;
    sweep->pauses_long = seed % 4 == 3;
    sweep->store.ops = &store_ops;
    ok(ls_simulation_create(&sweep->simulation, &options));
    ok(ls_network_create(&sweep->network, sweep->simulation, &paths[seed % 3]));
    put_policy(sweep);
    if (ls_simulation_run(sweep->simulation, story, sweep) != LS_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, ls_error_text());
    if (sweep->wrong != NULL)
        fail_msg("seed %llu: %s", (unsigned long long)seed, sweep->wrong);
    totals[0] += (int64_t)sweep->n_works;
    totals[1] += sweep->iterations;
    totals[2] += sweep->adopted;
    totals[3] += sweep->failed;
    totals[4] += sweep->rejoined;
    for (size_t i = 0; i < sweep->n_items; i++)
        ls_bytes_clear(&sweep->items[i].value);
    ls_network_destroy(&sweep->network);
    ls_simulation_destroy(&sweep->simulation);
    free(sweep);
}

TEST(nothing_of_a_work_outlives_its_close)
{
    const struct seeds seeds = seeds_of(200);
    int64_t totals[5] = {0};
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        one_seed(seed, totals);
    print_message("%lld works, %lld iterations, %lld taken over, %lld ended "
                  "early, %lld members taken for dead\n",
                  (long long)totals[0], (long long)totals[1],
                  (long long)totals[2], (long long)totals[3],
                  (long long)totals[4]);
    for (size_t i = 0; i < 5 && seeds.end - seeds.first >= 40; i++)
        assert_true(totals[i] > 0);
}

int main(void)
{
    return tests_run_quietly();
}
