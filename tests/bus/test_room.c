/* Rooms of real nodes: what lockstep/room.h promises, and each of its errors.
 */
#include "lockstep/room.h"

#include <sched.h>
#include <sys/wait.h>

#include "room_inside.h"
#include "test.h"
#include "world_fixture.h"

enum { MEMBERS = 3, WORDS = 300000 };

static const uint32_t ids[MEMBERS] = {40, 3, 7}; /* places 2, 0, 1 */

struct rooms;

struct member {
    struct rooms *rooms;
    size_t index;
    ls_node *node;
    ls_room *room;
    ls_thread *thread;
    struct ls_room_options options;
    int status, cause;
    char text[LS_ERROR_TEXT_MAX];
    void (*fn)(struct member *member);
    size_t stays_out; /* which member does not take part, from 1 */
    unsigned lends;   /* the places that have theirs in stores: bits */
    float *in, *out;  /* WORDS each, there if it is one of them */
};

struct rooms {
    struct world world;
    struct member members[MEMBERS];
    char folder[32];
};

static void keep(struct member *m, int status)
{
    m->status = status;
    m->cause = status == LS_OK ? LS_OK : ls_error_cause();
    m->text[0] = '\0';
    if (status != LS_OK)
        (void)snprintf(m->text, sizeof m->text, "%s", ls_error_text());
}

static void run_one(void *arg)
{
    struct member *const m = arg;
    m->fn(m);
}

/* Each member does it, on a thread of its own, but the one that stays out. */
static void together(struct rooms *rooms, void (*fn)(struct member *member))
{
    for (size_t i = 0; i < MEMBERS; i++) {
        struct member *const m = &rooms->members[i];
        m->fn = fn;
        if (m->stays_out != i + 1)
            assert_ok(ls_thread_spawn(ls_runtime_threads(), &m->thread, "test",
                                      run_one, m));
    }
    for (size_t i = 0; i < MEMBERS; i++)
        assert_ok(ls_thread_join(&rooms->members[i].thread, LS_FOREVER));
}

static void all_end_with(const struct rooms *rooms, int status, const char *has)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct member *const m = &rooms->members[i];
        if (m->stays_out == i + 1)
            continue;
        if (m->status != status)
            fail_msg("node %u: %s \"%s\", not %s", ids[i],
                     ls_status_name(m->status), m->text,
                     ls_status_name(status));
        assert_has(m->text, has);
    }
}

static void prepare(struct rooms *rooms)
{
    const struct world_plan plan = {
        .n = MEMBERS, .ids = ids, .tune = share_no_memory};
    memset(rooms, 0, sizeof *rooms);
    strcpy(rooms->folder, "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(rooms->folder));
    world_start(&rooms->world, &plan);
    for (size_t i = 0; i < MEMBERS; i++) {
        struct member *const m = &rooms->members[i];
        m->rooms = rooms;
        m->index = i;
        m->node = rooms->world.at[i].node;
        ls_room_options_init(&m->options);
        m->options.folder = rooms->folder;
        m->options.timeout_ms = LONG_MS;
        m->options.alloc_bytes = 16u << 20;
    }
}

static void make_room(struct member *m)
{
    keep(m, ls_room_create(&m->room, m->node, &m->options));
}

static void start(struct rooms *rooms)
{
    prepare(rooms);
    together(rooms, make_room);
    all_end_with(rooms, LS_OK, "");
}

static void stop(struct rooms *rooms)
{
    for (size_t i = 0; i < MEMBERS; i++)
        ls_room_destroy(&rooms->members[i].room);
    world_destroy(&rooms->world);
    /* Nothing is left in the folder. */
    assert_int_equal(rmdir(rooms->folder), 0);
}

static void pass_barrier(struct member *m)
{
    keep(m, ls_room_barrier(m->room, "gate", LONG_MS));
}

TEST(members_have_places_in_the_order_of_their_ids)
{
    static struct rooms rooms;
    start(&rooms);
    for (size_t i = 0; i < MEMBERS; i++) {
        const ls_room *const room = rooms.members[i].room;
        assert_int_equal(ls_room_size(room), MEMBERS);
        assert_int_equal(ls_room_id(room, 0), 3);
        assert_int_equal(ls_room_id(room, 1), 7);
        assert_int_equal(ls_room_id(room, 2), 40);
        assert_int_equal(ls_room_id(room, ls_room_place(room)), ids[i]);
        assert_true(ls_room_counts(room, 2));
        assert_false(ls_room_counts(room, 3));
    }
    stop(&rooms);
}

/* ---- operations ---------------------------------------------------------- */

static atomic_uint n_in;

static void be_counted(struct member *m)
{
    (void)atomic_fetch_add(&n_in, 1);
    keep(m, ls_room_barrier(m->room, "count", LONG_MS));
    if (m->status == LS_OK && atomic_load(&n_in) != MEMBERS)
        m->status = LS_EINVARIANT;
}

TEST(nobody_leaves_a_barrier_before_all_are_there)
{
    static struct rooms rooms;
    start(&rooms);
    for (int i = 0; i < 50; i++) {
        atomic_store(&n_in, 0);
        together(&rooms, be_counted);
        all_end_with(&rooms, LS_OK, "");
    }
    stop(&rooms);
}

static void broadcast_one(struct member *m, size_t size)
{
    unsigned char *const data = malloc(size + 1);
    if (data == NULL)
        return;
    const bool is_root = ls_room_place(m->room) == 1;
    for (size_t i = 0; i < size; i++)
        data[i] = is_root ? (unsigned char)(i * 7 + (i >> 9)) : 0;
    keep(m, ls_room_broadcast(m->room, "b", 1, data, size, LONG_MS));
    for (size_t i = 0; i < size && m->status == LS_OK; i++)
        if (data[i] != (unsigned char)(i * 7 + (i >> 9)))
            m->status = LS_EINVARIANT;
    free(data);
}

static void broadcast(struct member *m)
{
    const size_t sizes[] = {0, 1, 8192, 8193, 262144, 3000001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (i == 0 || m->status == LS_OK)
            broadcast_one(m, sizes[i]);
}

TEST(a_broadcast_gives_all_what_its_root_has)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, broadcast);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void add_f32(const void *self, void *to, const void *left,
                    const void *right, size_t count)
{
    float *const sum = to;
    const float *const a = left, *const b = right;
    (void)self;
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

static void divide_f32(const void *self, void *numbers, size_t count,
                       unsigned n)
{
    float *const at = numbers;
    (void)self;
    for (size_t i = 0; i < count; i++)
        at[i] /= (float)n;
}

static const struct ls_room_fold mean = {
    .width = sizeof(float), .two = add_f32, .end = divide_f32, .sign = 5};

/* Of which the order of summation shows. */
static float number(unsigned place, size_t i)
{
    return (float)((i * 2654435761u + place * 40503u) % 10007) * 1e-3f +
           (place == 0 ? 1e7f : 0.0f);
}

static float mean_of(size_t i)
{
    return ((number(0, i) + number(1, i)) + number(2, i)) / 3.0f;
}

static void fill(const struct member *m, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = number(ls_room_place(m->room), i);
}

static bool is_mean(const float *of, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (of[i] != mean_of(first + i))
            return false;
    return true;
}

static void reduce_one(struct member *m, size_t n)
{
    float *const numbers = malloc(n * sizeof *numbers + 1);
    if (numbers == NULL)
        return;
    fill(m, numbers, n);
    keep(m,
         ls_room_all_reduce(m->room, "r", &mean, numbers, numbers, n, LONG_MS));
    if (m->status == LS_OK && !is_mean(numbers, 0, n))
        m->status = LS_EINVARIANT;
    free(numbers);
}

static void reduce(struct member *m)
{
    const size_t counts[] = {0,   1,   4,    5,    511,  512,  513,
                             700, 900, 1000, 2048, 2049, WORDS};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (i == 0 || m->status == LS_OK)
            reduce_one(m, counts[i]);
}

TEST(all_reduce_folds_in_the_order_of_places_to_the_bit)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, reduce);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

/* ---- waiting ------------------------------------------------------------- */

/* It has ended, and was a long one or not. */
static void ended(struct member *m, int status, bool is_long)
{
    if (m->status != LS_OK)
        return;
    if (status == LS_OK && m->room->core.is_long != is_long)
        status = ls_error(LS_EINVARIANT, "it is%s a long one",
                          is_long ? " not" : "");
    keep(m, status);
}

static void short_and_long(struct member *m)
{
    ls_room *const room = m->room;
    const size_t size = WORDS, all = MEMBERS * size * sizeof(float);
    float *const data = calloc(MEMBERS, size * sizeof *data);
    if (data == NULL)
        return;
    m->status = LS_OK;
    ended(m, ls_room_all_reduce(room, "r", &mean, data, data, size, LONG_MS),
          true);
    ended(m, ls_room_barrier(room, "b", LONG_MS), false);
    ended(m, ls_room_broadcast(room, "b", 0, data, size, LONG_MS), true);
    ended(m, ls_room_all_reduce(room, "r", &mean, data, data, 700, LONG_MS),
          false);
    ended(m,
          ls_room_all_gather(room, "g", data, size, data + size, all - size,
                             NULL, LONG_MS),
          true);
    ended(m,
          ls_room_all_gather(room, "g", data, 9, data + 9, 27, NULL, LONG_MS),
          false);
    free(data);
}

/* Those that wait while others copy find that yields are dear. */
TEST(who_waits_in_long_operations_learns_nothing_for_short_ones)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, short_and_long);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void scatter_one(struct member *m, size_t n)
{
    float *const in = malloc(MEMBERS * n * sizeof *in);
    float *const out = malloc(n * sizeof *out);
    if (in == NULL || out == NULL)
        return;
    fill(m, in, MEMBERS * n);
    keep(m, ls_room_reduce_scatter(m->room, "s", &mean, in, out, n, LONG_MS));
    if (m->status == LS_OK && !is_mean(out, ls_room_place(m->room) * n, n))
        m->status = LS_EINVARIANT;
    free(in);
    free(out);
}

static void scatter(struct member *m)
{
    scatter_one(m, 100);
    if (m->status == LS_OK)
        scatter_one(m, WORDS / MEMBERS);
}

TEST(reduce_scatter_gives_each_its_share)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, scatter);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

/* Place 1 brings nothing. */
static void gather_one(struct member *m, size_t most)
{
    const size_t wanted[MEMBERS] = {most, 0, most / 3};
    const unsigned place = ls_room_place(m->room);
    unsigned char *const data = malloc(most), *const out = malloc(2 * most);
    size_t sizes[MEMBERS];
    if (data == NULL || out == NULL)
        return;
    memset(data, (int)place + 1, most);
    keep(m, ls_room_all_gather(m->room, "g", data, wanted[place], out, 2 * most,
                               sizes, LONG_MS));
    if (m->status == LS_OK &&
        (memcmp(sizes, wanted, sizeof sizes) != 0 || out[0] != 1 ||
         out[most - 1] != 1 || out[most] != 3 || out[most + most / 3 - 1] != 3))
        m->status = LS_EINVARIANT;
    free(data);
    free(out);
}

static void gather(struct member *m)
{
    gather_one(m, 300);
    if (m->status == LS_OK)
        gather_one(m, 900000);
}

TEST(all_gather_joins_what_each_brings)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, gather);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void gather_too_much(struct member *m)
{
    char data[10] = "", out[29];
    keep(m, ls_room_all_gather(m->room, "g", data, sizeof data, out, sizeof out,
                               NULL, LONG_MS));
}

TEST(a_gathering_beyond_its_capacity_fails_in_all)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, gather_too_much);
    all_end_with(&rooms, LS_ELIMIT, "29 bytes");
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void fold_buffers(struct member *m)
{
    ls_room_buffer *buffer;
    const void *result = NULL;
    keep(m, ls_room_alloc(m->room, &buffer, WORDS * sizeof(float), LONG_MS));
    for (int i = 0; i < 3 && m->status == LS_OK; i++) {
        fill(m, ls_room_buffer_own(buffer), WORDS);
        keep(m, ls_room_fold_buffer(m->room, "f", &mean, buffer, WORDS, &result,
                                    LONG_MS));
        if (m->status == LS_OK && !is_mean(result, 0, WORDS))
            m->status = LS_EINVARIANT;
    }
    if (m->status == LS_OK)
        keep(m, ls_room_barrier(m->room, "written", LONG_MS));
    const float *const other =
        m->status == LS_OK ? ls_room_buffer_at(buffer, 1) : NULL;
    if (m->status == LS_OK && (other == NULL || other[9] != number(1, 9) ||
                               ls_room_buffer_at(buffer, 3) != NULL))
        m->status = LS_EINVARIANT;
    if (m->status == LS_OK)
        keep(m, ls_room_barrier(m->room, "read", LONG_MS));
}

TEST(buffers_in_the_room_are_folded_where_they_lie)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, fold_buffers);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void alloc_too_much(struct member *m)
{
    ls_room_buffer *buffer;
    keep(m, ls_room_alloc(m->room, &buffer, 20u << 20, LONG_MS));
    if (buffer != NULL)
        m->status = LS_EINVARIANT;
}

TEST(a_buffer_beyond_alloc_bytes_is_refused_in_all)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, alloc_too_much);
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct member *const m = &rooms.members[i];
        assert_true(m->status == LS_ELIMIT ||
                    (m->status == LS_EABORTED && m->cause == LS_ELIMIT));
        assert_has(m->text, "alloc_bytes");
    }
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

/* ---- stores -------------------------------------------------------------- */

static void *place_in(struct member *m, size_t size)
{
    void *memory = NULL;
    if ((m->lends >> ls_room_place(m->room) & 1) == 0)
        return calloc(1, size);
    keep(m, ls_room_store_alloc(m->options.store, &memory, size));
    return memory;
}

static void have_lent(struct member *m, bool expected, const char *what)
{
    if (m->status == LS_OK && ls_room_has_lent(m->room) != expected)
        m->status = ls_error(LS_EINVARIANT, "%s has%s lent", what,
                             expected ? " not" : "");
    if (m->status == LS_EINVARIANT)
        keep(m, m->status);
}

static void lend_to_reductions(struct member *m)
{
    const bool all = (m->lends & 7) == 7;
    const unsigned place = ls_room_place(m->room);
    for (int apart = 0; apart < 2 && m->status == LS_OK; apart++) {
        float *const out = apart ? m->out : m->in;
        fill(m, m->in, WORDS);
        keep(m, ls_room_all_reduce(m->room, "r", &mean, m->in, out, WORDS,
                                   LONG_MS));
        have_lent(m, all, "all_reduce");
        if (m->status == LS_OK && !is_mean(out, 0, WORDS))
            m->status = LS_EINVARIANT;
    }
    fill(m, m->in, WORDS);
    if (m->status == LS_OK)
        keep(m, ls_room_reduce_scatter(m->room, "s", &mean, m->in, m->out,
                                       WORDS / 3, LONG_MS));
    have_lent(m, all, "reduce_scatter");
    if (m->status == LS_OK && !is_mean(m->out, place * (WORDS / 3), WORDS / 3))
        m->status = LS_EINVARIANT;
}

/* From place 1, and each brings another size: 0, 1 and 2 times PART. */
static void lend_to_others(struct member *m)
{
    enum { PART = 30000 };
    const unsigned place = ls_room_place(m->room);
    const bool own = (m->lends >> place & 1) != 0;
    float *const from = m->in + 5; /* wherever it begins */
    size_t sizes[MEMBERS];
    fill(m, m->in, WORDS);
    keep(m, ls_room_broadcast(m->room, "b", 1, from, PART * 4, LONG_MS));
    have_lent(m, own && place == 1, "broadcast");
    if (m->status == LS_OK && from[PART - 1] != number(1, PART + 4))
        m->status = LS_EINVARIANT;
    fill(m, m->in, WORDS);
    if (m->status == LS_OK)
        keep(m, ls_room_scatter(m->room, "c", 1, m->in, PART * 4, m->out,
                                LONG_MS));
    have_lent(m, own && place == 1, "scatter");
    if (m->status == LS_OK &&
        m->out[PART - 1] != number(1, (place + 1) * PART - 1))
        m->status = LS_EINVARIANT;
    if (m->status == LS_OK)
        keep(m,
             ls_room_all_gather(m->room, "g", m->in, place * PART * 4, m->out,
                                WORDS * sizeof(float), sizes, LONG_MS));
    have_lent(m, own && place > 0, "all_gather");
    if (m->status == LS_OK && (m->out[PART - 1] != number(1, PART - 1) ||
                               m->out[3 * PART - 1] != number(2, 2 * PART - 1)))
        m->status = LS_EINVARIANT;
    if (m->status == LS_OK)
        keep(m,
             ls_room_gather(m->room, "h", 1, m->in, PART * 4, m->out, LONG_MS));
    have_lent(m, own, "gather");
    if (m->status == LS_OK && place == 1 &&
        (m->out[0] != number(0, 0) ||
         m->out[3 * PART - 1] != number(2, PART - 1)))
        m->status = LS_EINVARIANT;
}

/* The result is that of copies, where numbers do not lie as they should. */
static void lend_what_is_not_aligned(struct member *m)
{
    char *const odd = (char *)m->in + 1;
    for (size_t i = 0; i < WORDS - 1; i++) {
        const float one = number(ls_room_place(m->room), i);
        memcpy(odd + i * sizeof one, &one, sizeof one);
    }
    keep(m, ls_room_all_reduce(m->room, "o", &mean, odd, m->out, WORDS - 1,
                               LONG_MS));
    have_lent(m, false, "what is not aligned");
    if (m->status == LS_OK && !is_mean(m->out, 0, WORDS - 1))
        m->status = LS_EINVARIANT;
}

static void lend_what_is_short(struct member *m)
{
    char all[MEMBERS * 8192];
    keep(m, ls_room_all_gather(m->room, "g", m->in, 8192, all, sizeof all, NULL,
                               LONG_MS));
    have_lent(m, false, "what is short");
    if (m->status == LS_OK)
        keep(m, ls_room_broadcast(m->room, "b", 0, m->in, 8192, LONG_MS));
    have_lent(m, false, "what is short");
}

static void lend(struct member *m)
{
    m->in = place_in(m, WORDS * sizeof(float));
    m->out = place_in(m, WORDS * sizeof(float));
    if (m->status == LS_OK)
        lend_to_reductions(m);
    if (m->status == LS_OK)
        lend_to_others(m);
    if (m->status == LS_OK)
        lend_what_is_not_aligned(m);
    if (m->status == LS_OK)
        lend_what_is_short(m);
    if ((m->lends >> ls_room_place(m->room) & 1) == 0) {
        free(m->in);
        free(m->out);
    } else {
        ls_room_store_free(m->in);
        ls_room_store_free(m->out);
    }
}

static void prepare_stores(struct rooms *rooms)
{
    prepare(rooms);
    for (size_t i = 0; i < MEMBERS; i++)
        assert_ok(ls_room_store_create(&rooms->members[i].options.store,
                                       ls_runtime_threads(),
                                       (i + 1) * (4u << 20)));
    together(rooms, make_room);
    all_end_with(rooms, LS_OK, "");
}

static void destroy_stores(struct rooms *rooms)
{
    for (size_t i = 0; i < MEMBERS; i++)
        ls_room_store_destroy(&rooms->members[i].options.store);
}

TEST(what_lies_in_stores_is_read_there_and_results_are_the_same)
{
    static struct rooms rooms;
    prepare_stores(&rooms);
    destroy_stores(&rooms); /* the rooms have them */
    for (size_t i = 0; i < MEMBERS; i++)
        rooms.members[i].options.store = NULL;
    stop(&rooms);
    for (unsigned lends = 0; lends < 8; lends++) {
        prepare_stores(&rooms);
        for (size_t i = 0; i < MEMBERS; i++)
            rooms.members[i].lends = lends;
        together(&rooms, lend);
        all_end_with(&rooms, LS_OK, "");
        destroy_stores(&rooms);
        stop(&rooms);
    }
}

static void reduce_again(struct member *m)
{
    keep(m, ls_room_all_reduce(m->room, "r", &mean, m->in, m->out, WORDS,
                               LONG_MS));
    have_lent(m, true, "all_reduce");
    if (m->status == LS_OK && !is_mean(m->out, 0, WORDS))
        m->status = LS_EINVARIANT;
}

TEST(a_store_is_given_to_the_next_room_with_what_lies_there)
{
    static struct rooms rooms;
    void *memory;
    prepare_stores(&rooms);
    for (size_t i = 0; i < MEMBERS; i++) {
        struct member *const m = &rooms.members[i];
        m->lends = 7;
        m->in = place_in(m, WORDS * sizeof(float));
        m->out = place_in(m, WORDS * sizeof(float));
        fill(m, m->in, WORDS);
    }
    for (int round = 0; round < 2; round++) {
        together(&rooms, reduce_again);
        all_end_with(&rooms, LS_OK, "");
        for (size_t i = 0; i < MEMBERS; i++)
            ls_room_destroy(&rooms.members[i].room);
        together(&rooms, make_room);
        all_end_with(&rooms, LS_OK, "");
    }
    stop(&rooms);
    /* It needs none. */
    assert_ok(
        ls_room_store_alloc(rooms.members[0].options.store, &memory, 100));
    destroy_stores(&rooms);
    ls_room_store_free(memory);
    for (size_t i = 0; i < MEMBERS; i++) {
        ls_room_store_free(rooms.members[i].in);
        ls_room_store_free(rooms.members[i].out);
    }
}

TEST(arguments_out_of_range_are_refused)
{
    static struct rooms rooms;
    struct ls_room_fold odd = mean;
    char byte = 0;
    start(&rooms);
    ls_room *const room = rooms.members[0].room;
    odd.width = 3;
    assert_fails(ls_room_broadcast(room, "b", 3, &byte, 1, 0), LS_EINVAL);
    assert_error_has("no place 3");
    assert_fails(ls_room_all_reduce(room, "r", &odd, &byte, &byte, 0, 0),
                 LS_EINVAL);
    assert_fails(ls_room_reduce_scatter(room, "r", &odd, &byte, &byte, 0, 0),
                 LS_EINVAL);
    assert_fails(ls_room_gather(room, "g", 3, &byte, 1, NULL, 0), LS_EINVAL);
    assert_fails(ls_room_scatter(room, "s", 3, NULL, 1, &byte, 0), LS_EINVAL);
    stop(&rooms);
}

/* Each brings its place to the one in the middle, and gets it back. */
static void there_and_back(struct member *m, size_t size)
{
    const unsigned place = ls_room_place(m->room);
    unsigned char *own = malloc(size + 1);
    unsigned char *all = calloc(MEMBERS, size + 1);
    memset(own, (int)place + 5, size);
    int status = ls_room_gather(m->room, "there", 1, own, size,
                                place == 1 ? all : NULL, LONG_MS);
    for (size_t i = 0; i < MEMBERS * size && place == 1 && status == LS_OK; i++)
        if (all[i] != i / size + 5)
            status = ls_error(LS_EINVARIANT, "byte %zu is %u", i, all[i]);
    memset(own, 0, size);
    if (status == LS_OK)
        status = ls_room_scatter(m->room, "back", 1, place == 1 ? all : NULL,
                                 size, own, LONG_MS);
    for (size_t i = 0; i < size && status == LS_OK; i++)
        if (own[i] != place + 5)
            status = ls_error(LS_EINVARIANT, "byte %zu is %u", i, own[i]);
    keep(m, status);
    free(own);
    free(all);
}

static void short_ones(struct member *m)
{
    there_and_back(m, 0);
    if (m->status == LS_OK)
        there_and_back(m, 1000);
}

static void long_ones(struct member *m)
{
    there_and_back(m, WORDS);
    if (m->status == LS_OK)
        there_and_back(m, 3 * WORDS + 1);
}

TEST(a_root_gathers_what_each_brings_and_scatters_it_again)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, short_ones);
    all_end_with(&rooms, LS_OK, "");
    together(&rooms, long_ones);
    all_end_with(&rooms, LS_OK, "");
    char byte = 0;
    assert_fails(
        ls_room_gather(rooms.members[0].room, "g", MEMBERS, &byte, 1, &byte, 0),
        LS_EINVAL);
    assert_fails(ls_room_scatter(rooms.members[0].room, "s", MEMBERS, &byte, 1,
                                 &byte, 0),
                 LS_EINVAL);
    stop(&rooms);
}

/* ---- failures ------------------------------------------------------------ */

static void differ(struct member *m)
{
    char byte = 0;
    keep(m, m->index == 0
                ? ls_room_broadcast(m->room, "weights", 0, &byte, 1, LONG_MS)
                : ls_room_barrier(m->room, "gate", LONG_MS));
}

static void differ_in_size(struct member *m)
{
    char bytes[9] = "";
    keep(m, ls_room_broadcast(m->room, "b", 0, bytes, m->index == 0 ? 9 : 8,
                              LONG_MS));
}

TEST(who_calls_something_else_is_named_with_what_it_calls)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, differ);
    all_end_with(&rooms, LS_EMISMATCH,
                 "node 3 calls barrier gate, node 40 calls broadcast weights");
    together(&rooms, differ_in_size);
    all_end_with(&rooms, LS_EMISMATCH, "other sizes or settings");
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void wait_little(struct member *m)
{
    keep(m, ls_room_barrier(m->room, "early", 1));
}

static void set_out(struct rooms *rooms, size_t who)
{
    for (size_t i = 0; i < MEMBERS; i++)
        rooms->members[i].stays_out = who;
}

/* Another may be late as well: "node 3, 7", or "node 7, 40". */
static void all_lack_node_7(const struct rooms *rooms)
{
    all_end_with(rooms, LS_ETIMEDOUT, "had not come");
    all_end_with(rooms, LS_ETIMEDOUT, " 7");
}

TEST(who_does_not_come_in_time_is_named_and_may_come_to_the_next)
{
    static struct rooms rooms;
    start(&rooms);
    set_out(&rooms, 3);
    together(&rooms, wait_little);
    all_lack_node_7(&rooms);
    /* It comes to the one that has failed, and is told so. */
    set_out(&rooms, 0);
    pass_barrier(&rooms.members[2]);
    assert_int_equal(rooms.members[2].status, LS_ETIMEDOUT);
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

TEST(nobody_waits_for_a_leader_that_does_not_come)
{
    static struct rooms rooms;
    start(&rooms);
    assert_int_equal(ls_room_place(rooms.members[1].room), 0);
    for (int i = 0; i < 3; i++) {
        set_out(&rooms, 2);
        together(&rooms, wait_little);
        all_end_with(&rooms, LS_ETIMEDOUT, "and node 3");
        pass_barrier(&rooms.members[1]);
        assert_int_equal(rooms.members[1].status, LS_ETIMEDOUT);
        set_out(&rooms, 0);
        together(&rooms, pass_barrier);
        all_end_with(&rooms, LS_OK, "");
    }
    stop(&rooms);
}

TEST(who_resigns_fails_the_next_operation_and_is_not_lost)
{
    static struct rooms rooms;
    struct ls_room_fault fault;
    start(&rooms);
    set_out(&rooms, 2);
    ls_room_resign(rooms.members[1].room, LS_EHANDLER); /* node 3 */
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_EABORTED, "node 3 has failed");
    assert_int_equal(rooms.members[0].cause, LS_EHANDLER);
    ls_room_fault(rooms.members[0].room, &fault);
    assert_int_equal(fault.status, LS_EHANDLER);
    assert_int_equal(fault.place, 0);
    assert_true(ls_room_counts(rooms.members[0].room, 0));
    pass_barrier(&rooms.members[1]);
    assert_int_equal(rooms.members[1].status, LS_ESTATE);
    stop(&rooms);
}

TEST(who_gives_up_fails_what_it_comes_to_as_well)
{
    static struct rooms rooms;
    start(&rooms);
    ls_room_give_up(rooms.members[1].room, LS_EHANDLER); /* node 3 */
    for (int i = 0; i < 2; i++) {
        together(&rooms, pass_barrier);
        assert_int_equal(rooms.members[0].status, LS_EABORTED);
        assert_int_equal(rooms.members[0].cause, LS_EHANDLER);
        assert_int_equal(rooms.members[1].status, LS_EHANDLER);
    }
    stop(&rooms);
}

TEST(whoever_ends_it_for_no_reason_has_cancelled_it)
{
    static struct rooms rooms;
    start(&rooms);
    ls_room_give_up(rooms.members[1].room, LS_OK);
    together(&rooms, pass_barrier);
    assert_int_equal(rooms.members[0].status, LS_EABORTED);
    assert_int_equal(rooms.members[0].cause, LS_ECANCELED);
    assert_int_equal(rooms.members[1].status, LS_ECANCELED);
    ls_room_resign(rooms.members[2].room, LS_OK);
    together(&rooms, pass_barrier);
    assert_int_equal(rooms.members[0].status, LS_EABORTED);
    assert_int_equal(rooms.members[0].cause, LS_ECANCELED);
    assert_int_equal(rooms.members[2].status, LS_ESTATE);
    stop(&rooms);
}

TEST(how_operations_have_ended_is_known_after_all_others_have_gone)
{
    static struct rooms rooms;
    start(&rooms);
    set_out(&rooms, 3);
    together(&rooms, wait_little);
    all_lack_node_7(&rooms);
    for (size_t i = 0; i < MEMBERS - 1; i++) {
        ls_room_resign(rooms.members[i].room, LS_ECLOSED);
        ls_room_destroy(&rooms.members[i].room);
        assert_ok(ls_node_stop(rooms.members[i].node, LS_OK));
    }
    pass_barrier(&rooms.members[2]);
    assert_int_equal(rooms.members[2].status, LS_ETIMEDOUT);
    stop(&rooms);
}

/* As after many epochs more that all went well: just before the number of the
 * next one ends in so many zeros. By an even number: slots have parities. */
static void age(struct rooms *rooms, unsigned zeros)
{
    const uint32_t epoch = rooms->members[0].room->core.epoch;
    const uint32_t next = ((epoch >> zeros) + 1) << zeros;
    const uint32_t by = (next - epoch - 16) & ~UINT32_C(1);
    for (size_t i = 0; i < MEMBERS; i++) {
        struct room_core *const core = &rooms->members[i].room->core;
        const uint64_t ending = atomic_load(&core->own->ending);
        core->epoch += by;
        core->good += by;
        core->own->entered += by;
        core->own->same += by;
        atomic_store(&core->own->ending, room_ending(room_ended(ending) + by,
                                                     room_good(ending) + by));
    }
}

/* Nothing that was ever said of trouble is of an epoch to come. */
static void is_calm(const struct rooms *rooms)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct room_core *const core = &rooms->members[i].room->core;
        const uint32_t next = core->epoch + 1;
        assert_false(room_reached(core->frozen, next));
        assert_false(room_reached(core->given_up, next));
        assert_false(room_reached(core->own->frozen, next));
        assert_false(room_reached(core->own->gave_up, next));
    }
}

TEST(epochs_may_go_on_for_ever)
{
    static struct rooms rooms;
    start(&rooms);
    for (int quarter = 0; quarter < 9; quarter++) {
        age(&rooms, 30);
        for (int i = 0; i < 40; i++) {
            together(&rooms, i % 8 == 0 ? broadcast : pass_barrier);
            all_end_with(&rooms, LS_OK, "");
            is_calm(&rooms);
        }
    }
    stop(&rooms);
}

TEST(a_loss_fails_at_once_whoever_has_not_come)
{
    static struct rooms rooms;
    start(&rooms);
    ls_room_destroy(&rooms.members[0].room); /* node 40, the last */
    rooms.members[2].stays_out = 3;          /* the first alone is there */
    rooms.members[0].stays_out = 1;
    together(&rooms, pass_barrier);
    assert_int_equal(rooms.members[1].status, LS_ELOST);
    pass_barrier(&rooms.members[2]);
    assert_int_equal(rooms.members[2].status, LS_ELOST);
    rooms.members[2].stays_out = 0;
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_OK, "");
    ls_room_destroy(&rooms.members[2].room);
    stop(&rooms);
}

TEST(who_is_lost_is_named_and_the_others_go_on_without_it)
{
    static struct rooms rooms;
    start(&rooms);
    assert_int_equal(ls_room_place(rooms.members[1].room), 0);
    ls_room_destroy(&rooms.members[1].room); /* the one that leads */
    set_out(&rooms, 2);
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_ELOST, "node 3 is lost");
    for (int i = 0; i < 3; i++) {
        together(&rooms, pass_barrier);
        all_end_with(&rooms, LS_OK, "");
    }
    for (size_t i = 0; i < MEMBERS; i += 2) {
        assert_false(ls_room_counts(rooms.members[i].room, 0));
        assert_true(ls_room_counts(rooms.members[i].room, 1));
    }
    stop(&rooms);
}

/* What each has seen of place 0. */
static ls_room_buffer *buffers[MEMBERS];
static const float *seen[MEMBERS];

static void look_at_first(struct member *m)
{
    ls_room_buffer **const buffer = &buffers[m->index];
    keep(m, ls_room_alloc(m->room, buffer, WORDS * sizeof(float), LONG_MS));
    if (m->status != LS_OK)
        return;
    fill(m, ls_room_buffer_own(*buffer), WORDS);
    seen[m->index] = ls_room_buffer_at(*buffer, 0);
    pass_barrier(m);
}

TEST(what_was_seen_of_one_that_is_lost_stays_until_the_next_operation)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, look_at_first);
    all_end_with(&rooms, LS_OK, "");
    ls_room_destroy(&rooms.members[1].room); /* place 0 */
    set_out(&rooms, 2);
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_ELOST, "node 3 is lost");
    for (size_t i = 0; i < MEMBERS; i += 2) {
        assert_true(seen[i][9] == number(0, 9));
        assert_null(ls_room_buffer_at(buffers[i], 0));
        assert_non_null(ls_room_buffer_at(buffers[i], 1));
    }
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void pass_or_stop(struct member *m)
{
    if (m->index == 2)
        (void)ls_node_stop(m->node, LS_OK);
    pass_barrier(m);
}

TEST(a_node_that_stops_is_out_of_its_rooms)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, pass_or_stop);
    assert_int_equal(rooms.members[2].status, LS_ECLOSED);
    set_out(&rooms, 3);
    all_end_with(&rooms, LS_ELOST, "node 7 is lost");
    stop(&rooms);
}

static void pass_or_interrupt(struct member *m)
{
    if (m->index == 2)
        ls_node_interrupt(m->node, LS_ECANCELED);
    pass_barrier(m);
}

TEST(an_interrupt_of_one_ends_the_operation_for_all)
{
    static struct rooms rooms;
    start(&rooms);
    together(&rooms, pass_or_interrupt);
    assert_int_equal(rooms.members[2].status, LS_ECANCELED);
    set_out(&rooms, 3);
    all_end_with(&rooms, LS_EABORTED, "node 7 has failed");
    assert_int_equal(rooms.members[0].cause, LS_ECANCELED);
    set_out(&rooms, 0);
    stop(&rooms);
}

/* ---- how rooms are made -------------------------------------------------- */

TEST(members_that_do_not_share_a_folder_have_no_room_at_all)
{
    static struct rooms rooms;
    prepare(&rooms);
    rooms.members[0].options.folder = "/tmp";
    together(&rooms, make_room);
    all_end_with(&rooms, LS_EUNREACHABLE, "room \"room\"");
    stop(&rooms);
}

/* They do not wait for it until their time is up. Who hears that from another
 * may find that one's offer ended. */
TEST(who_can_offer_nothing_says_so_to_all)
{
    static struct rooms rooms;
    prepare(&rooms);
    rooms.members[2].options.folder = "/nowhere/at/all";
    together(&rooms, make_room);
    assert_int_equal(rooms.members[2].status, LS_ENOENT);
    assert_has(rooms.members[2].text, "/nowhere/at/all");
    for (size_t i = 0; i < MEMBERS; i++) {
        const int status = rooms.members[i].status;
        assert_true(status == LS_ENOENT || status == LS_EUNREACHABLE);
        assert_has(rooms.members[i].text, "room \"room\"");
    }
    stop(&rooms);
}

TEST(members_with_other_lists_are_refused)
{
    static const uint32_t two[] = {40, 3};
    static struct rooms rooms;
    prepare(&rooms);
    rooms.members[0].options.members = two;
    rooms.members[0].options.n_members = 2;
    set_out(&rooms, 3);
    for (size_t i = 0; i < MEMBERS; i++)
        rooms.members[i].options.timeout_ms = 300;
    together(&rooms, make_room);
    all_end_with(&rooms, LS_EMISMATCH, "room \"room\"");
    stop(&rooms);
}

TEST(who_does_not_come_to_meet_is_named)
{
    static struct rooms rooms;
    prepare(&rooms);
    set_out(&rooms, 3);
    for (size_t i = 0; i < MEMBERS; i++)
        rooms.members[i].options.timeout_ms = 50;
    together(&rooms, make_room);
    all_end_with(&rooms, LS_ETIMEDOUT, "room \"room\"");
    stop(&rooms);
}

static void begin_one(struct member *m, void (*fn)(struct member *member))
{
    m->fn = fn;
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &m->thread, "test", run_one, m));
}

TEST(an_interrupt_ends_the_wait_for_members)
{
    static struct rooms rooms;
    prepare(&rooms);
    begin_one(&rooms.members[0], make_room);
    int status;
    do /* until it waited */
        ls_node_interrupt(rooms.members[0].node, LS_ECANCELED);
    while ((status = ls_thread_join(&rooms.members[0].thread,
                                    ls_deadline(ls_runtime_threads(), 2))) ==
           LS_ETIMEDOUT);
    assert_ok(status);
    assert_int_equal(rooms.members[0].status, LS_ECANCELED);
    assert_has(rooms.members[0].text, "room \"room\"");
    assert_null(rooms.members[0].room);
    stop(&rooms);
}

/* As the end of a run does it, while another thread is in a room. */
TEST(the_end_of_an_interrupt_ends_no_operation)
{
    static struct rooms rooms;
    start(&rooms);
    begin_one(&rooms.members[0], pass_barrier);
    begin_one(&rooms.members[1], pass_barrier);
    for (int i = 0; i < 200; i++) {
        ls_node_interrupt(rooms.members[0].node, LS_OK);
        (void)sched_yield();
    }
    pass_barrier(&rooms.members[2]);
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&rooms.members[i].thread, LS_FOREVER));
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

static void refused(ls_node *node, const struct ls_room_options *options,
                    int status, const char *has)
{
    ls_room *room;
    assert_fails(ls_room_create(&room, node, options), status);
    assert_null(room);
    assert_error_has(has);
}

TEST(options_out_of_range_are_refused)
{
    static const uint32_t others[] = {3, 7}, twice[] = {40, 3, 3};
    static uint32_t many[LS_ROOM_MEMBERS_MAX + 1];
    static struct rooms rooms;
    prepare(&rooms);
    ls_node *const node = rooms.members[0].node; /* 40 */
    struct ls_room_options options = rooms.members[0].options;
    options.name = "a b";
    refused(node, &options, LS_EINVAL, "\"a b\"");
    options.name = "room";
    options.members = others;
    options.n_members = 2;
    refused(node, &options, LS_EINVAL, "node 40 (this one) is not in it");
    options.members = twice;
    options.n_members = 3;
    refused(node, &options, LS_EINVAL, "node 3 is in it twice");
    options.members = many;
    options.n_members = LS_ROOM_MEMBERS_MAX + 1;
    refused(node, &options, LS_EINVAL, "at most 64");
    options.members = &ids[0];
    options.n_members = 1;
    options.folder = "/nowhere/at/all";
    refused(node, &options, LS_ENOENT, "/nowhere/at/all");
    options.folder = "/tmp/a-folder-whose-name-is-much-too-long-for-the-path-"
                     "of-a-unix-socket-which-has-at-most-107-bytes-in-linux";
    refused(node, &options, LS_EINVAL, "too long for a socket");
    stop(&rooms);
}

TEST(a_world_that_is_not_complete_has_no_room_of_all)
{
    struct ls_node_options options;
    ls_node *node;
    ls_node_options_init(&options);
    options.bind = "inproc://room-early";
    options.world_size = 3;
    assert_ok(ls_node_create(&node, &options));
    refused(node, NULL, LS_ESTATE, "1 of 3 nodes are ready");
    ls_node_destroy(&node);
}

TEST(a_node_has_one_room_of_a_name)
{
    static struct rooms rooms;
    start(&rooms);
    refused(rooms.members[0].node, &rooms.members[0].options, LS_EEXIST,
            "ls.room.room");
    stop(&rooms);
}

TEST(a_store_is_in_one_room_at_a_time)
{
    static struct rooms rooms;
    prepare_stores(&rooms);
    struct ls_room_options options = rooms.members[0].options;
    options.name = "another";
    refused(rooms.members[0].node, &options, LS_ESTATE, "in another room");
    destroy_stores(&rooms);
    stop(&rooms);
}

TEST(a_room_of_one_is_a_room)
{
    static struct rooms rooms;
    prepare(&rooms);
    struct member *const m = &rooms.members[0];
    m->options.members = ids;
    m->options.n_members = 1;
    make_room(m);
    assert_int_equal(m->status, LS_OK);
    float one[3] = {1, 2, 3};
    assert_ok(ls_room_barrier(m->room, "alone", 0));
    assert_ok(ls_room_barrier(m->room, NULL, 0)); /* without a name */
    assert_ok(ls_room_all_reduce(m->room, "alone", &mean, one, one, 3, 0));
    assert_true(one[2] == 3.0f);
    stop(&rooms);
}

/* As a copy does at its end, in a language that destroys what it has. */
static void uses_the_parents(ls_room *room)
{
    ls_room *const same = room;
    if (ls_room_barrier(room, "gate", LONG_MS) != LS_ESTATE ||
        strstr(ls_error_text(), "forked") == NULL)
        _exit(1);
    ls_room_give_up(room, LS_ECANCELED);
    ls_room_resign(room, LS_ECANCELED);
    ls_room_destroy(&room);
    _exit(room == same ? 0 : 2);
}

TEST(a_copy_of_the_process_takes_no_part_and_takes_nobody_out)
{
    static struct rooms rooms;
    int status = -1;
    start(&rooms);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(10); /* it ends by that if something waits */
        uses_the_parents(rooms.members[0].room);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    together(&rooms, pass_barrier);
    all_end_with(&rooms, LS_OK, "");
    stop(&rooms);
}

/* ---- nothing is left ----------------------------------------------------- */

TEST(a_room_leaves_no_descriptor_and_no_file)
{
    static struct rooms rooms;
    prepare(&rooms);
    const size_t before = open_descriptors();
    for (int i = 0; i < 3; i++) {
        together(&rooms, make_room);
        all_end_with(&rooms, LS_OK, "");
        together(&rooms, pass_barrier);
        all_end_with(&rooms, LS_OK, "");
        for (size_t m = 0; m < MEMBERS; m++)
            ls_room_destroy(&rooms.members[m].room);
    }
    assert_int_equal(open_descriptors(), before);
    stop(&rooms);
}
