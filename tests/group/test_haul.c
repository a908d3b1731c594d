/* Plans on their way, without I/O: among 1 to 40 ranks, by messages that come
 * in any order, twice or not at all. */
#include "base/seeds.h"
#include "haul.h"
#include "load.h"
#include "lockstep/random.h"
#include "lockstep/runtime.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 40, POSTS_MAX = 20000 };

/* A message under way. */
struct post {
    bool is_data, again;
    uint32_t from, to, lane;
    size_t have, upto;
    unsigned char *data; /* own */
    size_t size;
};

struct crowd {
    struct plan_shape shape; /* but for the rank */
    struct haul hauls[RANKS_MOST];
    unsigned char *in[RANKS_MOST], *out[RANKS_MOST];
    struct post posts[POSTS_MAX];
    size_t n_posts;
    struct ls_rng rng;
    unsigned loss, twice; /* of a hundred */
    uint32_t rank;        /* who posts */
    int64_t now;
};

static struct crowd crowd; /* large */

static struct post *add_post(const struct plan_move *move)
{
    assert_true(crowd.n_posts < POSTS_MAX);
    struct post *post = &crowd.posts[crowd.n_posts++];
    *post =
        (struct post){.from = crowd.rank, .to = move->peer, .lane = move->lane};
    return post;
}

static void post_data(void *self, const struct plan_move *move, size_t offset,
                      const void *data, size_t size)
{
    struct post *post = add_post(move);
    (void)self;
    assert_true(size > 0 && size <= HAUL_PIECE);
    post->is_data = true;
    post->have = offset;
    post->data = malloc(size);
    post->size = size;
    memcpy(post->data, data, size);
}

static void post_want(void *self, const struct plan_move *move, size_t have,
                      size_t upto, bool again)
{
    struct post *post = add_post(move);
    (void)self;
    post->have = have;
    post->upto = upto;
    post->again = again;
}

static const struct haul_post posting = {.data = post_data, .want = post_want};

static void deliver(const struct post *post)
{
    struct haul *haul = &crowd.hauls[post->to];
    crowd.rank = post->to;
    if (post->is_data)
        assert_true(haul_take(haul, crowd.now, post->from, post->lane,
                              post->have, post->data, post->size, &posting));
    else
        assert_true(haul_wanted(haul, post->from, post->lane, post->have,
                                post->upto, post->again, &posting));
}

/* Any of those under way, and then it may be there still. */
static void deliver_one(void)
{
    const size_t i = (size_t)ls_rng_below(&crowd.rng, crowd.n_posts);
    struct post post = crowd.posts[i];
    const bool stays = ls_rng_below(&crowd.rng, 100) < crowd.twice;
    if (!stays)
        crowd.posts[i] = crowd.posts[--crowd.n_posts];
    if (ls_rng_below(&crowd.rng, 100) >= crowd.loss)
        deliver(&post);
    if (!stays)
        free(post.data);
}

static bool are_all_whole(void)
{
    for (uint32_t rank = 0; rank < crowd.shape.n; rank++)
        if (!haul_is_whole(&crowd.hauls[rank]))
            return false;
    return true;
}

static void run_all(void)
{
    for (uint32_t rank = 0; rank < crowd.shape.n; rank++) {
        crowd.rank = rank;
        haul_begin(&crowd.hauls[rank], crowd.now, &posting);
    }
    for (int i = 0; !are_all_whole(); i++) {
        assert_true(i < 2000000);
        while (crowd.n_posts > 0 && !are_all_whole())
            deliver_one();
        crowd.now += HAUL_ASK_LAST_NS;
        for (uint32_t rank = 0; rank < crowd.shape.n; rank++) {
            crowd.rank = rank;
            (void)haul_tick(&crowd.hauls[rank], crowd.now, &posting);
        }
    }
    while (crowd.n_posts > 0)
        free(crowd.posts[--crowd.n_posts].data);
}

/* What a rank brings at place i, as a number that sums exactly. */
static int32_t number_at(uint32_t rank, size_t i)
{
    return (int32_t)(rank * 1000 + i % 977);
}

static void make_memory(uint32_t rank, size_t in, size_t out)
{
    int32_t *numbers = malloc(in + 8);
    for (size_t i = 0; i < in / 4 + 1; i++)
        numbers[i] = number_at(rank, i);
    crowd.in[rank] = (unsigned char *)numbers;
    crowd.out[rank] = calloc(1, out + 8);
}

static void open_crowd(const struct group_form *form, uint32_t n, uint64_t seed,
                       bool in_place)
{
    const struct group_call call = {.form = *form};
    memset(&crowd, 0, sizeof crowd);
    ls_rng_seed(&crowd.rng, seed, n);
    crowd.loss = seed % 3 == 0 ? 10 : 0;
    crowd.twice = seed % 3 == 0 ? 10 : 0;
    crowd.shape = (struct plan_shape){.form = *form, .n = n};
    for (uint32_t rank = 0; rank < n; rank++) {
        struct plan_shape shape = crowd.shape;
        shape.rank = rank;
        make_memory(rank, group_call_in_bytes(&call, rank, n),
                    group_call_out_bytes(&call, rank, n));
        assert_ok(haul_init(&crowd.hauls[rank], &shape, crowd.in[rank],
                            in_place ? crowd.in[rank] : crowd.out[rank]));
    }
}

static void close_crowd(void)
{
    for (uint32_t rank = 0; rank < crowd.shape.n; rank++) {
        haul_fini(&crowd.hauls[rank]);
        free(crowd.in[rank]);
        free(crowd.out[rank]);
    }
}

/* The integer at place i of what a rank has got. */
static int32_t got(uint32_t rank, size_t i, bool in_place)
{
    int32_t number;
    memcpy(&number, (in_place ? crowd.in : crowd.out)[rank] + 4 * i, 4);
    return number;
}

static int32_t sum_at(uint32_t n, size_t i)
{
    int32_t sum = 0;
    for (uint32_t rank = 0; rank < n; rank++)
        sum += number_at(rank, i);
    return sum;
}

static void check_all_reduce(uint32_t n, size_t count, uint64_t seed,
                             bool in_place)
{
    const struct group_form form = {
        .kind = LS_GROUP_ALL_REDUCE, .type = LS_GROUP_I32, .count = count};
    open_crowd(&form, n, seed, in_place);
    run_all();
    for (uint32_t rank = 0; rank < n; rank++)
        for (size_t i = 0; i < count; i += count / 50 + 1)
            assert_int_equal(got(rank, i, in_place), sum_at(n, i));
    close_crowd();
}

static void check_reduce_scatter(uint32_t n, size_t count, uint64_t seed)
{
    const struct group_form form = {
        .kind = LS_GROUP_REDUCE_SCATTER, .type = LS_GROUP_I32, .count = count};
    open_crowd(&form, n, seed, false);
    run_all();
    for (uint32_t rank = 0; rank < n; rank++)
        for (size_t i = 0; i < count; i++)
            assert_int_equal(got(rank, i, false), sum_at(n, rank * count + i));
    close_crowd();
}

static void check_broadcast(uint32_t n, size_t count, uint64_t seed)
{
    const uint32_t root = (uint32_t)(seed % n);
    const struct group_form form = {
        .kind = LS_GROUP_BROADCAST, .root = root, .count = 4 * count};
    open_crowd(&form, n, seed, false);
    run_all();
    for (uint32_t rank = 0; rank < n; rank++)
        for (size_t i = 0; i < count && rank != root; i += count / 50 + 1)
            assert_int_equal(got(rank, i, false), number_at(root, i));
    close_crowd();
}

static void check_gathers(uint32_t n, size_t count, uint64_t seed, bool to_all)
{
    const uint32_t root = (uint32_t)(seed % n);
    const struct group_form form = {.kind = to_all ? LS_GROUP_ALL_GATHER
                                                   : LS_GROUP_GATHER,
                                    .root = root,
                                    .count = 4 * count};
    open_crowd(&form, n, seed, false);
    run_all();
    for (uint32_t rank = 0; rank < n; rank++)
        for (uint32_t of = 0; of < n && (to_all || rank == root); of++)
            for (size_t i = 0; i < count; i += count / 20 + 1)
                assert_int_equal(got(rank, of * count + i, false),
                                 number_at(of, i));
    close_crowd();
}

static void check_scatter(uint32_t n, size_t count, uint64_t seed)
{
    const uint32_t root = (uint32_t)(seed % n);
    const struct group_form form = {
        .kind = LS_GROUP_SCATTER, .root = root, .count = 4 * count};
    open_crowd(&form, n, seed, false);
    run_all();
    for (uint32_t rank = 0; rank < n; rank++)
        for (size_t i = 0; i < count; i++)
            assert_int_equal(got(rank, i, false),
                             number_at(root, rank * count + i));
    close_crowd();
}

static void check_each(uint32_t n, size_t count, uint64_t seed)
{
    check_all_reduce(n, count, seed, false);
    check_all_reduce(n, count, seed, true);
    check_reduce_scatter(n, count / n, seed);
    check_broadcast(n, count, seed);
    check_gathers(n, count / n, seed, true);
    check_gathers(n, count / n, seed, false);
    check_scatter(n, count / n, seed);
}

TEST(every_plan_gives_the_right_result)
{
    const struct seeds seeds = seeds_of(4);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        for (uint32_t n = 1; n <= 17; n += 1 + (uint32_t)(seed % 2)) {
            check_each(n, 0, seed);
            check_each(n, n + 1, seed);
            check_each(n, 1000, seed);
        }
        check_each(RANKS_MOST, 50, seed);
        check_each(33, 3000, seed);
    }
}

TEST(long_plans_go_in_pieces_within_windows)
{
    check_each(2, HAUL_WINDOW / 2, 3);
    check_each(3, HAUL_WINDOW, 6);
    check_each(4, HAUL_WINDOW / 3 + 1, 1);
    check_all_reduce(33, HAUL_PIECE, 9, false);
}

/* Each flow has two ends, of the same size. */
static void check_ends(const struct plan *plans, uint32_t n)
{
    for (uint32_t rank = 0; rank < n; rank++)
        for (size_t i = 0; i < plans[rank].n; i++) {
            const struct plan_move *move = &plans[rank].moves[i];
            size_t found = 0;
            if (move->what == PLAN_FOLD || move->what == PLAN_COPY)
                continue;
            const struct plan *peer = &plans[move->peer];
            for (size_t j = 0; j < peer->n; j++)
                found += peer->moves[j].peer == rank &&
                         peer->moves[j].lane == move->lane &&
                         peer->moves[j].size == move->size &&
                         (peer->moves[j].what == PLAN_SEND) !=
                             (move->what == PLAN_SEND) &&
                         (peer->moves[j].what == PLAN_SEND ||
                          peer->moves[j].what == PLAN_TAKE ||
                          peer->moves[j].what == PLAN_FOLD_IN);
            assert_int_equal(found, 1);
        }
}

TEST(what_one_sends_another_takes)
{
    static const enum ls_group_kind kinds[] = {
        LS_GROUP_BROADCAST,      LS_GROUP_ALL_GATHER, LS_GROUP_ALL_REDUCE,
        LS_GROUP_REDUCE_SCATTER, LS_GROUP_GATHER,     LS_GROUP_SCATTER};
    for (uint32_t n = 1; n <= RANKS_MOST; n++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (size_t count = 1; count < 3000000; count *= 37) {
                struct plan plans[RANKS_MOST];
                for (uint32_t rank = 0; rank < n; rank++) {
                    const struct plan_shape shape = {
                        .form = {.kind = kinds[k],
                                 .type = LS_GROUP_F64,
                                 .root = n / 3,
                                 .count = count},
                        .rank = rank,
                        .n = n};
                    assert_ok(plan_make(&plans[rank], &shape));
                    assert_true(plans[rank].n <= plans[rank].capacity);
                }
                check_ends(plans, n);
                for (uint32_t rank = 0; rank < n; rank++)
                    plan_fini(&plans[rank]);
            }
}

TEST(what_fits_no_plan_is_refused)
{
    const struct group_form form = {.kind = LS_GROUP_BROADCAST, .count = 100};
    unsigned char bytes[200] = "";
    open_crowd(&form, 2, 1, false);
    crowd.rank = 1;
    struct haul *haul = &crowd.hauls[1];
    assert_false(haul_take(haul, 0, 1, 0, 0, bytes, 10, &posting));
    assert_false(haul_take(haul, 0, 0, 1, 0, bytes, 10, &posting));
    assert_false(haul_take(haul, 0, 0, 0, 0, bytes, 101, &posting));
    assert_false(haul_take(haul, 0, 0, 0, 101, bytes, 1, &posting));
    assert_false(haul_take(haul, 0, 0, 0, 50, bytes, 51, &posting));
    assert_false(haul_take(haul, 0, 0, 0, 0, bytes, 0, &posting));
    assert_false(haul_take(haul, 0, 0, 0, SIZE_MAX, bytes, 2, &posting));
    assert_false(haul_wanted(haul, 0, 0, 0, 10, false, &posting));
    assert_false(haul_wanted(&crowd.hauls[0], 1, 0, 0, 101, false, &posting));
    assert_false(haul_wanted(&crowd.hauls[0], 1, 0, 11, 10, false, &posting));
    assert_int_equal(crowd.n_posts, 0);
    close_crowd();
}

TEST(short_results_are_those_of_plans)
{
    static const size_t counts[] = {0, 1, 7, 100};
    for (uint32_t n = 1; n <= 9; n++)
        for (size_t c = 0; c < 4; c++) {
            const struct plan_shape shape = {
                .form = {.kind = LS_GROUP_REDUCE_SCATTER,
                         .type = LS_GROUP_I32,
                         .count = counts[c]},
                .rank = n / 2,
                .n = n};
            struct load loads[9] = {{0}};
            const struct load *at[9];
            int32_t numbers[900], result[900], out[100];
            assert_true(load_rides(&shape));
            for (uint32_t rank = 0; rank < n; rank++) {
                for (size_t i = 0; i < n * counts[c]; i++)
                    numbers[i] = number_at(rank, i);
                assert_ok(load_set(&loads[rank], 5, &shape.form, numbers,
                                   load_brings(&shape, rank)));
                at[rank] = &loads[rank];
            }
            load_make(&shape, at, (unsigned char *)result);
            load_deliver(&shape, (unsigned char *)result, (unsigned char *)out);
            for (size_t i = 0; i < counts[c]; i++)
                assert_int_equal(out[i], sum_at(n, shape.rank * counts[c] + i));
            for (uint32_t rank = 0; rank < n; rank++)
                load_fini(&loads[rank]);
        }
}
