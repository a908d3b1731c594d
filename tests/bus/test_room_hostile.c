/* A member of a room that writes anything into its own memory, at any time: the
 * others may get wrong results, since they believe what members say; but they
 * touch no memory that is not theirs, and come to an end. */
#include "base/seeds.h"
#include "lockstep/simulation.h"
#include "room_fixture.h"

enum { MEMBERS = 3, LIAR = MEMBERS - 1, OPS = 12, WAIT_MS = 1, GRACE_MS = 1 };

struct lair {
    ls_simulation *simulation;
    struct ls_rng rng;
    ls_host *hosts[MEMBERS];
    ls_room *rooms[MEMBERS];
    ls_thread *threads[MEMBERS];
    struct part_memory memories[MEMBERS];
    struct part_op ops[OPS];
    unsigned ended;
    bool plausible; /* it keeps near to what is true */
};

static struct lair lair;

/* A word that is likely to mean something, or any. */
static uint32_t draw_word(void)
{
    const uint64_t bits = ls_rng_next(&lair.rng);
    return lair.plausible ? (uint32_t)(bits % 40) : (uint32_t)bits;
}

static void scribble(unsigned char *at, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i += 4) {
        const uint32_t word = draw_word();
        if (draw_word() % 4 == 0)
            memcpy(at + i, &word, 4);
    }
}

static void lie(void *arg)
{
    ls_room *const room = arg;
    struct room_words *const words = room->core.own;
    while (lair.ended < LIAR) {
        const unsigned what = (unsigned)(ls_rng_next(&lair.rng) % 4);
        if (what == 0)
            scribble((unsigned char *)words,
                     offsetof(struct room_words, magic));
        else if (what == 1)
            scribble((unsigned char *)words, 192);
        else
            scribble((unsigned char *)&words->ending, 320);
        for (unsigned i = 0; i < MEMBERS; i++)
            ls_memory_ring(room->members[i].memory);
        ls_rest_until(room->runtime,
                      ls_now(room->runtime) + (int64_t)(draw_word() % 20000));
    }
}

static void take_part(void *arg)
{
    ls_room *const room = arg;
    for (unsigned i = 0; i < OPS; i++) {
        const int status =
            part_do(room, &lair.ops[i], &lair.memories[room->me]);
        if (status != LS_OK)
            assert_true(strlen(ls_error_text()) > 0);
    }
    lair.ended++;
}

static void whole_story(void *arg)
{
    struct part_offers offers[MEMBERS];
    (void)arg;
    for (unsigned i = 0; i < MEMBERS; i++) {
        assert_ok(ls_host_create(&lair.hosts[i], lair.simulation, "host"));
        lair.rooms[i] = part_create(ls_host_runtime(lair.hosts[i]), MEMBERS, i,
                                    PART_CHUNK_BYTES, GRACE_MS);
        offers[i] = part_offer(lair.rooms[i], "sim");
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        part_join(lair.rooms[i], "sim");
    for (unsigned i = 0; i < MEMBERS; i++) {
        part_offers_end(&offers[i]);
        assert_ok(ls_thread_spawn(ls_host_runtime(lair.hosts[i]),
                                  &lair.threads[i], "member",
                                  i == LIAR ? lie : take_part, lair.rooms[i]));
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_ok(ls_thread_join(&lair.threads[i], LS_FOREVER));
    for (unsigned i = 0; i < MEMBERS; i++)
        part_end(lair.rooms[i], &lair.memories[i]);
}

TEST(a_member_that_lies_harms_no_memory_and_holds_up_nobody_for_ever)
{
    const struct seeds seeds = seeds_of(300);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        const struct ls_simulation_options options = {
            .seed = seed, .limit_ns = 100 * LS_NS_PER_S};
        memset(&lair, 0, sizeof lair);
        ls_rng_seed(&lair.rng, seed, 3);
        lair.plausible = seed % 2 == 0;
        for (unsigned i = 0; i < OPS; i++)
            lair.ops[i] = (struct part_op){
                .kind = (enum part_kind)(ls_rng_next(&lair.rng) % PART_N_KINDS),
                .number = i,
                .size = ls_rng_next(&lair.rng) % PART_MOST,
                .root = (unsigned)(ls_rng_next(&lair.rng) % MEMBERS),
                .lends = part_lends((uint32_t)ls_rng_next(&lair.rng)),
                .wait_ms = WAIT_MS};
        assert_ok(ls_simulation_create(&lair.simulation, &options));
        const int status =
            ls_simulation_run(lair.simulation, whole_story, NULL);
        if (status != LS_OK)
            fail_msg("SEED=%llu: %s", (unsigned long long)seed,
                     ls_error_text());
        ls_simulation_destroy(&lair.simulation);
    }
}
