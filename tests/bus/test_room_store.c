/* Stores: memory of a member of a room, which outlives rooms. What operations
 * of real nodes make of it is in test_room.c. */
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/random.h"
#include "room_fixture.h"

enum { BYTES = 1 << 20, GRACE_MS = 1000, WAIT_MS = 10000 };

static ls_room_store *make(size_t bytes)
{
    ls_room_store *store;
    assert_ok(ls_room_store_create(&store, ls_runtime_threads(), bytes));
    assert_non_null(store);
    return store;
}

static unsigned char *get(ls_room_store *store, size_t size)
{
    void *memory;
    assert_ok(ls_room_store_alloc(store, &memory, size));
    return memory;
}

static bool are_all(const unsigned char *bytes, size_t n, int value)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

TEST(what_is_allocated_is_aligned_and_zeroed_also_when_it_was_used_before)
{
    ls_room_store *store = make(BYTES);
    const size_t sizes[] = {0, 1, 63, 64, 65, 5000, 300000};
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char *const memory = get(store, sizes[i]);
            assert_int_equal((uintptr_t)memory % 64, 0);
            assert_true(are_all(memory, sizes[i], 0));
            memset(memory, 0xff, sizes[i]);
            ls_room_store_free(memory);
        }
    ls_room_store_free(NULL);
    ls_room_store_destroy(&store);
    assert_null(store);
    ls_room_store_destroy(&store);
    ls_room_store_destroy(NULL);
}

/* Whatever is allocated and freed, no two overlap, and each keeps its bytes. */
TEST(in_any_order_nothing_overlaps_and_room_is_used_again)
{
    enum { N = 40, MOST = 20000 };
    ls_room_store *store = make(BYTES);
    unsigned char *at[N] = {NULL};
    size_t sizes[N];
    struct ls_rng rng;
    ls_rng_seed(&rng, 5, 1);
    for (unsigned round = 0; round < 5000; round++) {
        const unsigned i = (unsigned)ls_rng_below(&rng, N);
        if (at[i] != NULL) {
            assert_true(are_all(at[i], sizes[i], (int)i + 1));
            ls_room_store_free(at[i]);
            at[i] = NULL;
            continue;
        }
        sizes[i] = ls_rng_below(&rng, MOST);
        at[i] = get(store, sizes[i]);
        assert_true(are_all(at[i], sizes[i], 0));
        memset(at[i], (int)i + 1, sizes[i]);
    }
    ls_room_store_destroy(&store); /* what is allocated stays */
    for (unsigned i = 0; i < N; i++) {
        assert_true(at[i] == NULL || are_all(at[i], sizes[i], (int)i + 1));
        ls_room_store_free(at[i]);
    }
}

TEST(beyond_its_bytes_it_refuses_and_what_was_freed_can_be_had_again)
{
    ls_room_store *store;
    void *memory;
    assert_fails(ls_room_store_create(&store, ls_runtime_threads(), 0),
                 LS_EINVAL);
    assert_fails(ls_room_store_create(&store, ls_runtime_threads(), SIZE_MAX),
                 LS_EINVAL);
    assert_null(store);
    store = make(BYTES);
    assert_fails(ls_room_store_alloc(store, &memory, SIZE_MAX), LS_ELIMIT);
    assert_fails(ls_room_store_alloc(store, &memory, 2 * BYTES), LS_ELIMIT);
    assert_null(memory);
    unsigned char *const most = get(store, BYTES - 64);
    assert_fails(ls_room_store_alloc(store, &memory, 8192), LS_ELIMIT);
    assert_error_has("no room for 8192 bytes");
    ls_room_store_free(most);
    assert_ptr_equal(get(store, BYTES - 64), most);
    ls_room_store_free(most);
    ls_room_store_destroy(&store);
}

TEST(in_a_copy_of_the_process_it_can_only_be_read)
{
    ls_room_store *store = make(BYTES);
    unsigned char *const memory = get(store, 100);
    void *more;
    memory[99] = 7;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bool refused = ls_room_store_alloc(store, &more, 1) == LS_ESTATE;
        ls_room_store_free(memory);
        _exit(refused && memory[99] == 7 ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    unsigned char *const other = get(store, 100);
    assert_true(other != memory); /* that is still allocated here */
    ls_room_store_free(memory);
    ls_room_store_free(other);
    ls_room_store_destroy(&store);
}

/* ---- who is shut out ----------------------------------------------------- */

static void make_two(ls_room *rooms[2], const char *folder)
{
    struct part_offers offers[2];
    for (unsigned i = 0; i < 2; i++) {
        rooms[i] =
            part_create(ls_runtime_threads(), 2, i, PART_CHUNK_BYTES, GRACE_MS);
        offers[i] = part_offer(rooms[i], folder);
    }
    for (unsigned i = 0; i < 2; i++)
        part_join(rooms[i], folder);
    for (unsigned i = 0; i < 2; i++)
        part_offers_end(&offers[i]);
}

/* The one that was shut out learns it from its next operation, and what it
 * writes after that is its own. */
TEST(a_store_is_closed_when_its_member_is_shut_out)
{
    char folder[] = "/tmp/lockstep-store-XXXXXX";
    ls_room *rooms[2];
    void *more;
    assert_non_null(mkdtemp(folder));
    make_two(rooms, folder);
    ls_room_store *const store = rooms[1]->store;
    unsigned char *const memory = get(store, 20000);
    memset(memory, 1, 20000);
    const uint64_t place = room_store_place(store, memory, 20000);
    const unsigned char *const seen =
        (const unsigned char *)ls_memory_data(rooms[0]->members[1].store) +
        place;
    assert_true(place != 0 && are_all(seen, 20000, 1));
    core_lose(&rooms[0]->core, 1);
    assert_fails(ls_room_barrier(rooms[0], "without it", WAIT_MS), LS_ELOST);
    assert_false(ls_room_store_is_closed(store));
    assert_fails(ls_room_barrier(rooms[1], "too late", WAIT_MS), LS_ELOST);
    assert_true(ls_room_store_is_closed(store));
    memset(memory, 2, 20000);
    assert_true(are_all(memory, 20000, 2) && are_all(seen, 20000, 1));
    assert_int_equal(room_store_place(store, memory, 20000), 0);
    assert_fails(ls_room_store_alloc(store, &more, 1), LS_ESTATE);
    ls_room_store_free(memory);
    for (unsigned i = 0; i < 2; i++) {
        room_shut(rooms[i]);
        free(rooms[i]);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* ---- who lies ------------------------------------------------------------ */

static const unsigned char *look(ls_room *rooms[2], uint64_t says, size_t bytes,
                                 size_t width)
{
    const unsigned slot = room_slot(rooms[0]);
    atomic_store(&rooms[1]->core.own->brings_at[slot], says);
    atomic_store(&rooms[1]->core.own->gets_at[slot], says);
    const unsigned char *const at = room_brings(rooms[0], 1, bytes, width);
    assert_ptr_equal(room_gets(rooms[0], 1, bytes, width), at);
    return at;
}

TEST(what_a_member_says_lies_beyond_its_store_is_read_nowhere)
{
    char folder[] = "/tmp/lockstep-store-XXXXXX";
    ls_room *rooms[2];
    assert_non_null(mkdtemp(folder));
    make_two(rooms, folder);
    const size_t size = ls_memory_size(rooms[1]->store->memory);
    const unsigned char *const base =
        ls_memory_data(rooms[0]->members[1].store);
    assert_ptr_equal(look(rooms, 64, size - 64, 16), base + 64);
    assert_ptr_equal(look(rooms, size - 8, 8, 8), base + size - 8);
    assert_null(look(rooms, 0, 8, 8));
    assert_null(look(rooms, 64, size - 63, 1));
    assert_null(look(rooms, 64, SIZE_MAX, 1));
    assert_null(look(rooms, size - 8, 9, 1));
    assert_null(look(rooms, size + 8, 0, 8));
    assert_null(look(rooms, UINT64_MAX - 7, 8, 8));
    assert_null(look(rooms, UINT64_MAX - 7, 16, 8));
    assert_null(look(rooms, 68, 8, 8)); /* no number lies there */
    ls_memory_destroy(&rooms[0]->members[1].store);
    assert_null(look(rooms, 64, 8, 8)); /* it has told of none */
    for (unsigned i = 0; i < 2; i++) {
        room_shut(rooms[i]);
        free(rooms[i]);
    }
    assert_int_equal(rmdir(folder), 0);
}
