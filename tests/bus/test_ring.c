/* A ring: frames of any size, whole, in order, and none lost; and whatever the
 * two sides say of themselves, nothing beyond it is touched. */

#include "base/seeds.h"
#include "lockstep/random.h"
#include "memory_ops.h"
#include "node_fixture.h"
#include "ring.h"
#include "runtime_ops.h"

enum { SESSION = 77 };

static struct ring ring;
static uint8_t frame[RING_FRAME_MAX], out[RING_FRAME_MAX];

/* Frame `number`: its size, into frame[]. */
static size_t make_frame(uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        frame[i] = (uint8_t)(number * 31 + i);
    return size;
}

static bool write_frame(uint64_t number, size_t size, uint64_t taken)
{
    const size_t n = make_frame(number, size);
    return ring_write(NULL, &ring, taken, frame, n / 3, frame + n / 3,
                      n - n / 3);
}

static bool is_frame(uint64_t number, size_t size)
{
    return memcmp(out, frame, make_frame(number, size)) == 0;
}

/* The sizes of frames, as both sides draw them. */
static size_t size_of(struct ls_rng *rng)
{
    return 1 + (size_t)ls_rng_below(
                   rng, ls_rng_below(rng, 8) == 0 ? RING_FRAME_MAX : 200);
}

TEST(frames_come_whole_and_in_order)
{
    const struct seeds seeds = seeds_of(200);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct ls_rng turns, write_sizes, read_sizes;
        uint64_t taken = 0, written = 0, read = 0;
        ls_rng_seed(&turns, seed, 0);
        ls_rng_seed(&write_sizes, seed, 1);
        ls_rng_seed(&read_sizes, seed, 1);
        ring_begin(NULL, &ring, SESSION);
        size_t next = size_of(&write_sizes);
        while (read < 500) {
            if (ls_rng_below(&turns, 2) == 0) {
                const uint64_t there = atomic_load(&ring.written) - taken;
                const bool fits = RING_BYTES - there >= ring_space(next);
                assert_int_equal(write_frame(written, next, taken), fits);
                written += fits;
                next = fits ? size_of(&write_sizes) : next;
                continue;
            }
            const size_t size = ring_read(NULL, &ring, SESSION, &taken, out);
            assert_int_equal(size != 0, read < written);
            if (size == 0)
                continue;
            assert_int_equal(size, size_of(&read_sizes));
            assert_true(is_frame(read++, size));
        }
    }
}

TEST(what_finds_no_room_is_not_written)
{
    uint64_t taken = 0, n = 0;
    ring_begin(NULL, &ring, SESSION);
    while (write_frame(n, 1000, taken))
        n++;
    assert_int_equal(n, RING_BYTES / ring_space(1000));
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(ring_read(NULL, &ring, SESSION, &taken, out), 1000);
        assert_true(is_frame(i, 1000));
    }
    assert_int_equal(ring_read(NULL, &ring, SESSION, &taken, out), 0);
    assert_true(write_frame(n, 1000, taken));
}

TEST(an_empty_one_and_one_that_is_too_long_are_refused)
{
    static const uint8_t longer[RING_FRAME_MAX + 1];
    uint64_t taken = 0;
    ring_begin(NULL, &ring, SESSION);
    assert_false(ring_write(NULL, &ring, 0, "", 0, NULL, 0));
    assert_false(ring_write(NULL, &ring, 0, longer, sizeof longer, NULL, 0));
    assert_false(ring_write(NULL, &ring, 0, "x", 1, longer, RING_FRAME_MAX));
    assert_int_equal(ring_read(NULL, &ring, SESSION, &taken, out), 0);
    assert_true(write_frame(1, RING_FRAME_MAX, 0));
    assert_int_equal(ring_read(NULL, &ring, SESSION, &taken, out),
                     RING_FRAME_MAX);
}

TEST(what_is_for_one_session_is_not_read_in_another)
{
    uint64_t taken = 0, before = 0;
    ring_begin(NULL, &ring, SESSION);
    assert_true(write_frame(1, 100, 0));
    ring_begin(NULL, &ring, SESSION + 1);
    assert_int_equal(ring_read(NULL, &ring, SESSION + 1, &taken, out), 0);
    assert_true(write_frame(2, 50, 0));
    assert_int_equal(ring_read(NULL, &ring, SESSION, &before, out), 0);
    assert_false(ring_has(NULL, &ring, SESSION, before));
    assert_int_equal(ring_read(NULL, &ring, SESSION + 1, &taken, out), 50);
}

static int loads_before; /* the ring goes to another */

static bool give_to_another(ls_runtime *runtime)
{
    (void)runtime;
    if (loads_before-- == 0) {
        ring_begin(NULL, &ring, SESSION + 1);
        (void)write_frame(2, 50, 0);
    }
    return true;
}

/* Its reader may have been stopped for long in the middle of a look. */
TEST(a_ring_that_goes_to_another_while_it_is_read_does_not_lie)
{
    const struct ls_memory_ops memory = {.touch = give_to_another};
    const struct ls_runtime_ops ops = {.memory = &memory};
    ls_runtime runtime = {.ops = &ops};
    for (int before = 0; before < 4; before++) {
        uint64_t taken = 0;
        ring_begin(NULL, &ring, SESSION);
        for (uint64_t number = 0; number < 3; number++) {
            assert_true(write_frame(number, 100, taken));
            assert_int_equal(ring_read(NULL, &ring, SESSION, &taken, out), 100);
        }
        assert_true(write_frame(1, 100, taken));
        loads_before = before;
        assert_int_equal(ring_read(&runtime, &ring, SESSION, &taken, out), 0);
        assert_true(loads_before < 0);
    }
}

enum { MANY = 20000 };
static _Atomic uint64_t taken_by_reader;

static void write_many(void *self)
{
    struct ls_rng rng;
    (void)self;
    ls_rng_seed(&rng, 5, 0);
    for (uint64_t number = 0; number < MANY; number++) {
        uint8_t mine[256];
        const size_t size = 1 + (size_t)ls_rng_below(&rng, sizeof mine);
        memset(mine, (int)(number % 251), size);
        while (!ring_write(NULL, &ring, atomic_load(&taken_by_reader), mine,
                           size, NULL, 0))
            ls_yield_core(ls_runtime_threads());
    }
}

TEST(a_reader_beside_the_writer_gets_all_of_them_whole)
{
    ls_thread *writer = NULL;
    struct ls_rng rng;
    uint64_t taken = 0;
    ls_rng_seed(&rng, 5, 0);
    atomic_store(&taken_by_reader, 0);
    ring_begin(NULL, &ring, SESSION);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &writer, "writer",
                              write_many, NULL));
    for (uint64_t number = 0; number < MANY;) {
        const size_t size = ring_read(NULL, &ring, SESSION, &taken, out);
        if (size == 0)
            continue;
        assert_int_equal(size, 1 + ls_rng_below(&rng, 256));
        assert_int_equal(out[0], number % 251);
        assert_int_equal(out[size - 1], number % 251);
        atomic_store(&taken_by_reader, taken);
        number++;
    }
    assert_ok(ls_thread_join(&writer, long_deadline()));
}

TEST(whatever_a_writer_says_reading_ends_and_stays_within_the_ring)
{
    const struct seeds seeds = seeds_of(2000);
    struct ls_rng rng;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        ls_rng_seed(&rng, seed, 0);
        for (size_t i = 0; i < RING_BYTES; i++)
            ring.bytes[i] =
                (uint8_t)(ls_rng_next(&rng) >> (seed % 2 == 0 ? 0 : 61));
        uint64_t taken = ls_rng_next(&rng), n = 0;
        atomic_store(&ring.session, SESSION);
        atomic_store(&ring.written,
                     seed % 3 == 0
                         ? ls_rng_next(&rng)
                         : taken + ls_rng_below(&rng, RING_BYTES + 16));
        size_t size;
        while ((size = ring_read(NULL, &ring, SESSION, &taken, out)) != 0) {
            assert_true(size == RING_LIES || size <= RING_FRAME_MAX);
            assert_true(++n <= RING_BYTES / RING_UNIT);
        }
        assert_int_equal(taken, atomic_load(&ring.written));
    }
}

TEST(a_receiver_that_says_it_has_taken_what_is_not_there_gets_no_more)
{
    ring_begin(NULL, &ring, SESSION);
    assert_false(write_frame(1, 10, 8));
    assert_false(write_frame(1, 10, UINT64_MAX / 2));
    assert_int_equal(atomic_load(&ring.written), 0);
}
