/* Rooms of two to five members, some of nine to twelve, in one thread, over
 * thousands of schedules drawn from a seed: between any two loads and stores of
 * shared words another member may run. Members are killed, stopped, declared
 * lost while they live, late for their deadlines. Whatever happens:
 * - nobody ends an operation well that a member that is counted has not begun;
 * - of the members that nobody has declared lost, each has the same end of each
 *   operation, to the text, and a right result where it is good;
 * - everybody comes to an end, long before a deadline passes that is not now;
 * SEED=17 plays one, SEEDS=100000 that many. */
#include "base/seeds.h"
#include "lockstep/simulation.h"
#include "room_fixture.h"

enum {
    FEW = 5,
    MANY = 9,
    MEMBERS = 12,
    OPS = 8,
    WAIT_MS = 2000,
    GRACE_MS = 50
};

struct ending {
    int status;
    char text[200];
};

struct member {
    struct play *play;
    ls_host *host;
    ls_room *room;
    ls_thread *thread;
    unsigned begun; /* operations */
    unsigned ended;
    bool suspect; /* killed, or declared lost by anyone */
    struct ending endings[OPS];
    struct part_memory memory;
};

struct play {
    ls_simulation *simulation;
    struct ls_rng rng;
    unsigned n;
    struct part_op ops[OPS];
    bool hasty; /* an operation has no time */
    struct member members[MEMBERS];
};

/* That member is lost, for those in the set. */
struct loss {
    struct play *play;
    unsigned who;
    unsigned told;
};

static uint32_t draw(struct play *play, uint32_t bound)
{
    return (uint32_t)(((ls_rng_next(&play->rng) >> 32) * bound) >> 32);
}

static void draw_ops(struct play *play)
{
    const size_t sizes[] = {0, 1, 2, 100, 1024, 1025, 5000, PART_MOST};
    for (unsigned i = 0; i < OPS; i++)
        play->ops[i] = (struct part_op){
            .kind = draw(play, PART_N_KINDS),
            .number = i,
            .size = sizes[draw(play, sizeof sizes / sizeof *sizes)],
            .root = draw(play, play->n),
            .lends = part_lends(draw(play, UINT32_MAX)),
            .wait_ms = WAIT_MS};
}

/* All that this member counts have begun. */
static void check_begun(const struct member *member)
{
    const struct play *const play = member->play;
    for (unsigned i = 0; i < play->n; i++)
        if (ls_room_counts(member->room, i) &&
            play->members[i].begun < member->begun)
            ls_simulation_violation(play->simulation,
                                    "%u has ended %u, and %u has not begun it",
                                    member->room->me, member->begun - 1, i);
}

/* As its bus does. */
static void say_that_it_is_out(const struct member *member)
{
    struct play *const play = member->play;
    for (unsigned i = 0; i < play->n; i++)
        if (i != member->room->me)
            core_lose(&play->members[i].room->core, member->room->me);
}

static void take_part(void *arg)
{
    struct member *const member = arg;
    struct play *const play = member->play;
    for (unsigned i = 0; i < OPS; i++) {
        struct ending *const ending = &member->endings[i];
        member->begun = i + 1;
        const int64_t due = ls_deadline(member->room->runtime, WAIT_MS);
        ending->status = part_do(member->room, &play->ops[i], &member->memory);
        if (ls_host_is_dead(member->host))
            return;
        if (ending->status == LS_OK)
            check_begun(member);
        else
            (void)snprintf(ending->text, sizeof ending->text, "%s",
                           ls_error_text());
        /* Nothing here takes as long: somebody was not woken. */
        if (ls_now(member->room->runtime) >= due && !play->hasty)
            ls_simulation_violation(play->simulation, "%u was not woken: %s",
                                    member->room->me, ending->text);
        if (ending->status == LS_EINVARIANT)
            ls_simulation_violation(play->simulation, "%s", ending->text);
        member->ended = i + 1;
        if (member->room->core.out) {
            say_that_it_is_out(member);
            return;
        }
    }
}

static void tell(void *arg)
{
    const struct loss *const loss = arg;
    struct play *const play = loss->play;
    for (unsigned i = 0; i < play->n; i++)
        if (i != loss->who && (loss->told >> i & 1) != 0)
            core_lose(&play->members[i].room->core, loss->who);
}

static void kill_member(void *arg)
{
    const struct loss *const loss = arg;
    ls_host_kill(loss->play->members[loss->who].host);
}

static void pause_member(void *arg)
{
    const struct loss *const loss = arg;
    ls_host_pause(loss->play->members[loss->who].host);
}

static void resume_member(void *arg)
{
    const struct loss *const loss = arg;
    ls_host_resume(loss->play->members[loss->who].host);
}

static void at(struct play *play, int64_t when, void (*fn)(void *arg),
               struct loss *loss)
{
    assert_ok(ls_simulation_at(play->simulation, when, fn, loss));
}

/* Each member learns it at a time of its own. */
static void tell_each(struct play *play, int64_t from, struct loss *losses,
                      unsigned who, unsigned told)
{
    for (unsigned i = 0; i < play->n; i++) {
        losses[i] = (struct loss){play, who, told & 1u << i};
        at(play, from + draw(play, 200000), tell, &losses[i]);
    }
}

/* What goes wrong with one member: from when on, how long the story is. */
static void hurt(struct play *play, struct loss *losses, int64_t story)
{
    const unsigned who = draw(play, play->n);
    struct loss *const self = &losses[MEMBERS];
    const int64_t when = draw(play, (uint32_t)story);
    const int64_t until = when + draw(play, 2 * (uint32_t)story);
    *self = (struct loss){play, who, 0};
    switch (draw(play, 5)) {
    case 0: /* killed */
    case 1:
        play->members[who].suspect = true;
        at(play, when, kill_member, self);
        tell_each(play, when, losses, who, UINT32_MAX);
        break;
    case 2: /* stopped, and declared lost by all */
        play->members[who].suspect = true;
        at(play, when, pause_member, self);
        at(play, until, resume_member, self);
        tell_each(play, when, losses, who, UINT32_MAX);
        break;
    case 3: /* stopped, and nobody says so */
        at(play, when, pause_member, self);
        at(play, until, resume_member, self);
        break;
    default: /* declared lost by some, in error */
        play->members[who].suspect = true;
        tell_each(play, when, losses, who, draw(play, 1u << play->n));
    }
}

static void compare_endings(const struct play *play)
{
    const struct member *first = NULL;
    for (unsigned i = 0; i < play->n; i++) {
        const struct member *const m = &play->members[i];
        if (m->suspect)
            continue;
        if (m->ended != OPS)
            ls_simulation_violation(play->simulation, "%u has ended %u", i,
                                    m->ended);
        for (unsigned o = 0; first != NULL && o < OPS; o++)
            if (m->endings[o].status != first->endings[o].status ||
                strcmp(m->endings[o].text, first->endings[o].text) != 0)
                ls_simulation_violation(
                    play->simulation,
                    "operation %u: %s \"%s\" in %u, %s "
                    "\"%s\" in %u",
                    o, ls_status_name(first->endings[o].status),
                    first->endings[o].text, first->room->me,
                    ls_status_name(m->endings[o].status), m->endings[o].text,
                    i);
        if (first == NULL)
            first = m;
    }
}

static void make_rooms(struct play *play)
{
    struct part_offers offers[MEMBERS];
    for (unsigned i = 0; i < play->n; i++) {
        struct member *const m = &play->members[i];
        assert_ok(ls_host_create(&m->host, play->simulation, "host"));
        m->play = play;
        m->room = part_create(ls_host_runtime(m->host), play->n, i,
                              PART_CHUNK_BYTES, GRACE_MS);
        offers[i] = part_offer(m->room, "sim");
    }
    for (unsigned i = 0; i < play->n; i++)
        part_join(play->members[i].room, "sim");
    for (unsigned i = 0; i < play->n; i++)
        part_offers_end(&offers[i]);
}

static void whole_play(void *arg)
{
    struct play *const play = arg;
    static struct loss losses[2][MEMBERS + 1];
    const int64_t stories[] = {20000, 200000, 1500000};
    const unsigned n_hurt = draw(play, 3);
    draw_ops(play);
    make_rooms(play);
    play->hasty = draw(play, 4) == 0;
    if (play->hasty)
        play->ops[draw(play, OPS)].wait_ms = 0;
    for (unsigned i = 0; i < n_hurt; i++)
        hurt(play, losses[i], stories[draw(play, 3)]);
    for (unsigned i = 0; i < play->n; i++) {
        struct member *const m = &play->members[i];
        assert_ok(ls_thread_spawn(ls_host_runtime(m->host), &m->thread,
                                  "member", take_part, m));
    }
    for (unsigned i = 0; i < play->n; i++)
        assert_ok(ls_thread_join(&play->members[i].thread, LS_FOREVER));
    compare_endings(play);
    for (unsigned i = 0; i < play->n; i++)
        part_end(play->members[i].room, &play->members[i].memory);
}

static int play_seed(uint64_t seed)
{
    static struct play play;
    const struct ls_simulation_options options = {
        .seed = seed, .limit_ns = 600 * LS_NS_PER_S};
    memset(&play, 0, sizeof play);
    ls_rng_seed(&play.rng, seed, 77);
    /* Many bring more to each stage of a reduction. */
    play.n = draw(&play, 16) == 0 ? MANY + draw(&play, MEMBERS - MANY + 1)
                                  : 2 + draw(&play, FEW - 1);
    assert_ok(ls_simulation_create(&play.simulation, &options));
    const int status = ls_simulation_run(play.simulation, whole_play, &play);
    if (status != LS_OK)
        print_error("SEED=%llu: %s\n", (unsigned long long)seed,
                    ls_error_text());
    ls_simulation_destroy(&play.simulation);
    return status;
}

TEST(whatever_happens_members_agree_and_nobody_is_early)
{
    const struct seeds seeds = seeds_of(400);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        assert_int_equal(play_seed(seed), LS_OK);
}
