/* The pairs of a node, without any other: with whom it can become one, how many
 * it has, how long one stays; and what is lent, read and written in memory,
 * without a network. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "blocks_inside.h"
#include "delivery.h"
#include "lines.h"
#include "lockstep/codec.h"
#include "node_fixture.h"
#include "rings.h"
#include "test.h"

#define KIB 1024u

enum { MANY = BLOCK_READERS + 1 };

/* What a node knows of others, though there are none. */
static struct peer peers[MANY];
static ls_node *node;
static ls_memory *theirs; /* the memory of the first of them; NULL: none */
static int bell;          /* of that */

static void make(enum ls_topology topology, size_t shared)
{
    struct ls_node_options options = usual(500);
    options.topology = topology;
    options.shared_bytes = shared;
    node = create(&options);
}

static void start(void)
{
    assert_ok(ls_node_start(node));
    memset(peers, 0, sizeof peers);
    for (uint32_t i = 0; i < MANY; i++) {
        peers[i].member.id = i;
        peers[i].member.incarnation = i + 1;
        peers[i].member.endpoint = "tcp://127.0.0.1:1";
    }
    transport_lock(node->transport);
}

static void begin(enum ls_topology topology, size_t shared)
{
    make(topology, shared);
    start();
}

static void end(void)
{
    transport_unlock(node->transport);
    assert_ok(ls_node_destroy(&node));
    if (theirs != NULL)
        assert_int_equal(close(bell), 0);
    ls_memory_destroy(&theirs);
}

TEST(only_who_is_reached_by_itself_can_share_memory)
{
    begin(LS_TOPOLOGY_MESH, KIB);
    peers[0].member.via = &peers[1].member;
    assert_null(blocks_pair(node, &peers[0]));
    peers[0].member.via = NULL;
    peers[0].member.endpoint = "inproc://x";
    assert_true(blocks_pair(node, &peers[0])->here);
    peers[1].member.endpoint = "ipc:///x";
    assert_false(blocks_pair(node, &peers[1])->here);
    assert_ptr_equal(blocks_pair(node, &peers[1]), peers[1].blocks);
    end();
    begin(LS_TOPOLOGY_MESH, 0);
    assert_null(blocks_pair(node, &peers[0]));
    end();
    begin(LS_TOPOLOGY_STAR, KIB);
    assert_null(blocks_pair(node, &peers[0]));
    end();
}

TEST(a_node_has_so_many_pairs_at_a_time_and_no_more)
{
    begin(LS_TOPOLOGY_MESH, KIB);
    for (unsigned i = 0; i < BLOCK_READERS; i++) {
        const struct block_pair *const pair = blocks_pair(node, &peers[i]);
        assert_non_null(pair);
        assert_int_equal(pair->place, i);
        assert_int_equal(pair->id, i);
        assert_int_equal(pair->life, i + 1);
    }
    assert_null(blocks_pair(node, &peers[BLOCK_READERS]));
    blocks_part(node, &peers[7]);
    assert_null(peers[7].blocks);
    assert_int_equal(blocks_pair(node, &peers[BLOCK_READERS])->place, 7);
    end();
}

/* Its worker, a thread that listens to its line, a message that is read. */
TEST(one_that_is_over_stays_until_nobody_has_it)
{
    begin(LS_TOPOLOGY_MESH, KIB);
    for (int who = 0; who < 3; who++) {
        struct block_pair *const pair = blocks_pair(node, &peers[0]);
        assert_non_null(pair);
        pair->busy = who == 0;
        pair->listened = who == 1;
        atomic_fetch_add(&pair->users, who == 2);
        blocks_part(node, &peers[0]);
        blocks_reap(node);
        assert_ptr_equal(node->blocks->pairs[0], pair);
        pair->busy = false;
        pair->listened = 0;
        atomic_store(&pair->users, 1);
        blocks_reap(node);
        assert_null(node->blocks->pairs[0]);
    }
    end();
}

/* ---- windows ----------------------------------------------------------- */

static void write_handle(size_t size, uint8_t *out)
{
    const struct block_draft draft = {.offset = blocks_begin()};
    assert_non_null(blocks_pair(node, &peers[0]));
    blocks_handle(&peers[0], &draft, 1, size, out);
}

TEST(a_short_payload_counts_for_more_and_a_long_one_for_half_a_window)
{
    uint8_t handle[BLOCK_HANDLE_BYTES];
    enum { MIB = 1 << 20 };
    static const struct {
        size_t size, counts;
    } cases[] = {{1, 4},
                 {64 * KIB, 256 * KIB},
                 {MIB / 4 - 1, MIB - 4},
                 {MIB / 4, MIB},
                 {MIB - 1, MIB},
                 {MIB + 1, MIB + 1},
                 {4 * MIB - 1, 4 * MIB - 1},
                 {4 * MIB + 1, 4 * MIB},
                 {SIZE_MAX, 4 * MIB}};
    begin(LS_TOPOLOGY_MESH, KIB);
    node->options.window_bytes = 8 * MIB;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t size = cases[i].size, counts = cases[i].counts;
        write_handle(size, handle);
        assert_int_equal(blocks_weight(node, handle, sizeof handle), counts);
        peers[0].blocks->lends = true;
        peers[0].blocks->answer.window = 8 * MIB;
        assert_int_equal(blocks_charge(&peers[0], size), counts);
        peers[0].blocks->lends = false; /* until it is known */
        assert_int_equal(blocks_charge(&peers[0], size),
                         counts < WIRE_CHUNK_BYTES ? counts : WIRE_CHUNK_BYTES);
    }
    end();
}

TEST(what_is_no_handle_counts_as_the_bytes_that_it_has)
{
    uint8_t handle[BLOCK_HANDLE_BYTES + 1] = {0};
    begin(LS_TOPOLOGY_MESH, KIB);
    write_handle(64 * KIB, handle);
    assert_int_equal(blocks_weight(node, handle, BLOCK_HANDLE_BYTES),
                     256 * KIB);
    for (size_t size = 0; size <= sizeof handle; size++)
        if (size != BLOCK_HANDLE_BYTES)
            assert_int_equal(blocks_weight(node, handle, size), size);
    for (size_t at = 0; at < BLOCK_HANDLE_BYTES; at += at == 0 ? 1 : 9) {
        handle[at] ^= 1; /* the array, and what begins each number */
        assert_int_equal(blocks_weight(node, handle, BLOCK_HANDLE_BYTES),
                         BLOCK_HANDLE_BYTES);
        handle[at] ^= 1;
    }
    end();
}

/* ---- reading ----------------------------------------------------------- */

enum { SHARED = 256 * KIB };

static ls_memory *made_and_taken(void)
{
    ls_runtime *const runtime = ls_runtime_threads();
    const uint8_t key[LS_MEMORY_KEY_BYTES] = {7};
    const size_t size = blocks_begin() + SHARED;
    char folder[LS_OFFER_PATH_BYTES], path[LS_OFFER_PATH_BYTES];
    char name[LS_OFFER_NAME_BYTES];
    ls_memory *taken = NULL;
    ls_offer *offer = NULL;
    bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_ok(ls_memory_create(&theirs, runtime, "theirs", size));
    assert_ok(ls_memory_set_bell(theirs, bell, NULL, NULL));
    assert_ok(ls_offer_folder(runtime, folder, sizeof folder, NULL));
    ls_offer_name(runtime, name);
    assert_ok(ls_offer_path(folder, name, path));
    assert_ok(ls_offer_begin(&offer, theirs, path, key));
    assert_ok(
        ls_memory_take(&taken, runtime, path, key, size, long_deadline()));
    ls_offer_end(&offer);
    return taken;
}

/* This node and the first of the others have each other's memory. */
static struct block_pair *begin_to_share(void)
{
    begin(LS_TOPOLOGY_MESH, SHARED);
    struct block_pair *const pair = blocks_pair(node, &peers[0]);
    ls_memory **const own = &node->blocks->memory;
    assert_ok(ls_memory_create(own, ls_runtime_threads(), "own",
                               blocks_begin() + SHARED));
    assert_ok(ls_memory_reserve(*own, 0, blocks_begin()));
    pair->memory = made_and_taken();
    pair->row = &((struct block_words *)ls_memory_own(*own))->rows[0];
    pair->session = pair->answer.session = 7;
    block_row_begin(NULL, pair->row, pair->session);
    return pair;
}

static bool was_rung(void)
{
    uint64_t times;
    return read(bell, &times, sizeof times) == sizeof times;
}

struct named {
    uint64_t number, slot, offset, size;
};

static int take(const struct named *named, bool sure, size_t most,
                struct block_loan *loan)
{
    uint8_t handle[BLOCK_HANDLE_BYTES];
    const struct block_draft draft = {.slot = (unsigned)named->slot,
                                      .offset = (size_t)named->offset};
    blocks_handle(&peers[0], &draft, named->number, (size_t)named->size,
                  handle);
    transport_unlock(node->transport);
    const int status =
        blocks_take(node, &peers[0], handle, sizeof handle, sure, most, loan);
    transport_lock(node->transport);
    return status;
}

TEST(what_a_handle_names_is_read_where_it_lies_until_it_is_given_back)
{
    struct block_pair *const pair = begin_to_share();
    const size_t at = blocks_begin();
    const struct named named[] = {
        {1, 0, at, 1},
        {2, BLOCK_SLOTS - 1, at, SHARED}, /* all of it, in the last slot */
        {3, 5, at + SHARED - 1, 1},
        {UINT64_MAX / 2, 6, at + 8, 64 * KIB},
    };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        struct block_loan loan = {0};
        const block_word *const said = &pair->row->state[named[i].slot];
        assert_ok(take(&named[i], false, SHARED, &loan));
        assert_ptr_equal(loan.data,
                         (const uint8_t *)ls_memory_data(pair->memory) +
                             named[i].offset);
        assert_int_equal(loan.size, named[i].size);
        assert_int_equal(atomic_load(said), 2 * named[i].number);
        assert_int_equal(atomic_load(&pair->row->seen), named[i].number);
        assert_int_equal(atomic_load(&pair->users), 2);
        blocks_give_back(NULL, loan.hold);
        assert_int_equal(atomic_load(said), 2 * named[i].number + 1);
        assert_int_equal(atomic_load(&pair->users), 1);
    }
    end();
}

TEST(what_comes_in_a_stream_passes_over_nothing)
{
    struct block_pair *const pair = begin_to_share();
    struct block_loan later, loan;
    const size_t at = blocks_begin();
    assert_ok(take(&(struct named){9, 1, at, 1}, true, SHARED, &later));
    assert_int_equal(atomic_load(&pair->row->seen), 0);
    assert_ok(take(&(struct named){8, 2, at, 1}, false, SHARED, &loan));
    blocks_give_back(NULL, later.hold);
    blocks_give_back(NULL, loan.hold);
    end();
}

TEST(what_lies_outside_or_is_read_already_is_no_block)
{
    (void)begin_to_share();
    const size_t at = blocks_begin(), all = at + SHARED;
    const struct named lies[] = {
        {0, 0, at, 1},           {UINT64_MAX / 2 + 1, 0, at, 1},
        {2, BLOCK_SLOTS, at, 1}, {2, 0, at, 0},
        {2, 0, at - 1, 1},       {2, 0, all, 1},
        {2, 0, all + 1, 1},      {2, 0, at + 1, SHARED},
        {2, 0, at, SIZE_MAX},    {2, 9, at, 1}, /* a slot that it reads */
    };
    struct block_loan held, loan;
    assert_ok(take(&(struct named){1, 9, at, 1}, true, 1, &held));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        assert_fails(take(&lies[i], true, SIZE_MAX, &loan), LS_EPROTO);
        assert_has(ls_error_text(), "node 0 names a block that is none");
    }
    blocks_give_back(NULL, held.hold);
    assert_ok(take(&lies[9], true, 1, &loan));
    blocks_give_back(NULL, loan.hold);
    end();
}

TEST(what_is_too_long_is_told_from_what_is_none)
{
    (void)begin_to_share();
    const struct named named = {1, 0, blocks_begin(), 100};
    struct block_loan loan;
    assert_fails(take(&named, false, 99, &loan), LS_ELIMIT);
    assert_has(ls_error_text(), "a payload of 100 bytes, more than 99");
    assert_ok(take(&named, false, 100, &loan));
    blocks_give_back(NULL, loan.hold);
    end();
}

TEST(what_comes_too_late_is_lost)
{
    struct block_pair *const pair = begin_to_share();
    const struct named named = {5, 0, blocks_begin(), 1};
    struct block_loan loan;
    pair->answer.session = 8; /* of another session */
    assert_fails(take(&named, false, 1, &loan), LS_ENOENT);
    pair->answer.session = 7;
    block_row_pass(NULL, pair->row, 5); /* or it was passed over */
    assert_fails(take(&named, false, 1, &loan), LS_ENOENT);
    assert_ok(take(&named, true, 1, &loan));
    blocks_give_back(NULL, loan.hold);
    peers[0].blocks = NULL; /* or they are no pair any more */
    uint8_t handle[BLOCK_HANDLE_BYTES];
    peers[1].blocks = pair;
    blocks_handle(&peers[1], &(struct block_draft){.slot = 0}, 9, 1, handle);
    transport_unlock(node->transport);
    assert_fails(
        blocks_take(node, &peers[0], handle, sizeof handle, false, 1, &loan),
        LS_ENOENT);
    transport_lock(node->transport);
    end();
}

static void attach(const char *name, bool is_copied)
{
    const struct named named = {1, 0, blocks_begin(), 8};
    const struct wire_header header = {.name = name, .name_size = strlen(name)};
    struct block_pair *const pair = begin_to_share();
    struct message message = {0};
    struct block_loan loan;
    assert_ok(take(&named, false, 8, &loan));
    const uint8_t *const lies_at = loan.data;
    assert_true(blocks_attach(&message, &header, &loan));
    if (is_copied) {
        assert_ptr_equal(loan.data, message.owned);
        assert_ptr_not_equal(loan.data, lies_at);
        assert_null(message.release);
        assert_int_equal(atomic_load(&pair->row->state[0]), 3);
        free(message.owned);
    } else {
        assert_ptr_equal(loan.data, lies_at);
        message.release(message.owned, message.hint);
        assert_int_equal(atomic_load(&pair->row->state[0]), 3);
    }
    end();
}

TEST(what_the_framework_reads_itself_is_copied_and_given_back_at_once)
{
    attach("ls.", true);
    attach("ls.member", true);
    attach("ls", false);
    attach("lsx", false);
    attach("x.ls.", false);
}

TEST(what_is_read_outlives_the_node_and_who_is_late_may_ring)
{
    const struct block_pair *const pair = begin_to_share();
    const struct block_row *const row = pair->row;
    ls_memory *const own = node->blocks->memory;
    struct block_loan loan;
    assert_ok(ls_memory_set_bell(own, bell, NULL, NULL));
    assert_ok(take(&(struct named){3, 0, blocks_begin(), 8}, true, 8, &loan));
    transport_unlock(node->transport);
    assert_ok(ls_node_destroy(&node));
    assert_int_equal(loan.data[7], 0); /* it is mapped */
    assert_int_equal(atomic_load(&row->state[0]), 2 * 3);
    assert_true(atomic_load(&row->seen) == BLOCK_SEEN_ALL);
    ls_memory_ring(own); /* as a thread may that was about to */
    assert_true(was_rung());
    blocks_give_back(NULL, loan.hold);
    (void)close(bell);
    ls_memory_destroy(&theirs);
}

/* ---- lending ----------------------------------------------------------- */

static struct block_draft drafted(size_t size)
{
    struct block_draft draft;
    assert_true(blocks_draft(node, BLOCK_FOR_EVENT, NULL, size, &draft));
    return draft;
}

static void fill(const struct block_draft *draft, size_t size)
{
    static const uint8_t data[SHARED] = {1};
    transport_unlock(node->transport);
    assert_true(blocks_fill(node, draft, data, size));
    transport_lock(node->transport);
    assert_memory_equal(draft->data, data, size);
}

/* Then no pages are asked for any more. */
TEST(what_has_pages_is_known_as_far_as_there_is_no_gap)
{
    (void)begin_to_share();
    const size_t *const has = &node->blocks->reserved[BLOCK_FOR_EVENT];
    const size_t at = blocks_begin(), page = ls_memory_pages(1);
    assert_int_equal(*has, at);
    const struct block_draft low = drafted(page + 1), high = drafted(1);
    fill(&high, 1); /* first */
    assert_int_equal(*has, at);
    fill(&low, page + 1);
    assert_int_equal(*has, at + 2 * page); /* they are whole */
    fill(&high, 1);
    assert_int_equal(*has, at + 3 * page);
    fill(&low, page + 1);
    assert_int_equal(*has, at + 3 * page);
    assert_int_equal(node->blocks->reserved[BLOCK_FOR_BODY],
                     node->blocks->pool.middle);
    end();
}

TEST(one_that_finds_no_room_is_counted_and_room_that_was_given_up_is_found)
{
    struct block_draft none;
    (void)begin_to_share();
    const struct block_draft all = drafted(SHARED);
    assert_false(blocks_draft(node, BLOCK_FOR_EVENT, NULL, 1, &none));
    assert_int_equal(node->figures.stats.blocks_full, 1);
    blocks_give_up(node, &all);
    (void)drafted(SHARED);
    assert_int_equal(node->figures.stats.blocks_full, 1);
    end();
}

TEST(what_is_lent_is_counted_and_its_number_kept_for_who_may_miss_it)
{
    struct block_pair *const pair = begin_to_share();
    struct peer *const to = &peers[0];
    struct block_draft draft = drafted(1);
    block_pool_add(&node->blocks->pool, 0, pair->row, pair->session);
    const uint64_t first = blocks_lend(node, &draft, &to, 1, false);
    assert_int_equal(pair->last, first);
    draft = drafted(1);
    assert_true(blocks_lend(node, &draft, &to, 1, true) > first);
    assert_int_equal(pair->last, first);
    assert_int_equal(node->figures.stats.blocks, 2);
    end();
}

/* What its reader says: that it is done, that it reads nothing any more; or
 * nothing, since it is no more. */
static void lent_until(void (*end_of_it)(struct block_row *row,
                                         uint64_t number))
{
    struct block_pair *const pair = begin_to_share();
    struct peer *const to = &peers[0];
    struct block_row *const row =
        &((struct block_words *)ls_memory_own(theirs))->rows[0];
    const struct block_draft draft = drafted(1);
    block_row_begin(NULL, row, 7);
    const struct block_words *const taken = ls_memory_data(pair->memory);
    block_pool_add(&node->blocks->pool, 0, &taken->rows[0], 7);
    const uint64_t number = blocks_lend(node, &draft, &to, 1, false);
    block_row_take(NULL, row, draft.slot, number);
    blocks_part(node, &peers[0]);
    blocks_reap(node);
    assert_ptr_equal(node->blocks->pairs[0], pair);
    assert_int_equal(node->blocks->pool.n, 1);
    end_of_it(row, number);
    blocks_reap(node);
    assert_null(node->blocks->pairs[0]);
    assert_int_equal(node->blocks->pool.n, 0);
    end();
}

static void say_done(struct block_row *row, uint64_t number)
{
    block_row_done(NULL, row, 0, number);
}

static void say_that_none_is_read(struct block_row *row, uint64_t number)
{
    (void)number;
    block_store(NULL, &row->session, 0);
}

static void be_no_more(struct block_row *row, uint64_t number)
{
    (void)row;
    (void)number;
    ls_memory_destroy(&theirs);
    assert_int_equal(close(bell), 0);
}

TEST(what_is_lent_in_a_pair_that_is_over_comes_back_when_its_reader_is_done)
{
    lent_until(say_done);
    lent_until(say_that_none_is_read);
    lent_until(be_no_more);
}

TEST(one_in_which_nothing_is_lent_is_let_go_of_at_once)
{
    const struct block_row *const row = begin_to_share()->row;
    blocks_part(node, &peers[0]);
    assert_null(node->blocks->pairs[0]);
    assert_int_equal(atomic_load(&row->session), 0);
    end();
}

/* ---- rings and lines --------------------------------------------------- */

/* What the other says, in its memory. */
static struct block_words *begin_to_write(void)
{
    struct block_pair *const pair = begin_to_share();
    struct block_words *const words = ls_memory_own(theirs);
    const struct block_words *const taken = ls_memory_data(pair->memory);
    block_pool_add(&node->blocks->pool, 0, &taken->rows[3], 7);
    pair->lends = true;
    pair->answer.row = 3;
    words->lines[3].heeds = 1;
    return words;
}

static bool send_frame(const char *text)
{
    return rings_send(node, &peers[0], text, 1, text + 1, strlen(text) - 1);
}

TEST(a_frame_is_written_for_who_reads_it_and_read_when_that_says_so)
{
    struct block_words *const words = begin_to_write();
    const struct ring *const ring =
        &((struct block_words *)ls_memory_own(node->blocks->memory))->rings[0];
    assert_true(rings_are_read(node, &peers[0])); /* there is none */
    assert_true(send_frame("one"));
    assert_int_equal(node->figures.stats.near, 1);
    assert_memory_equal(ring->bytes + sizeof(uint32_t), "one", 3);
    assert_false(rings_are_read(node, &peers[0]));
    atomic_store(&words->rings[3].taken, ring->written);
    assert_true(rings_are_read(node, &peers[0]));
    words->lines[3].heeds = 0;
    assert_false(send_frame("two"));
    words->lines[3].heeds = 1;
    peers[0].blocks->lends = false;
    assert_false(send_frame("two"));
    assert_false(rings_are_read(node, &peers[0]));
    assert_false(rings_send(node, &peers[1], "", 1, NULL, 0)); /* no pair */
    assert_false(rings_are_read(node, &peers[1]));
    assert_int_equal(node->figures.stats.near, 1);
    end();
}

TEST(the_bell_is_rung_only_for_who_rests)
{
    struct block_words *const words = begin_to_write();
    assert_true(send_frame("one"));
    assert_false(was_rung());
    words->rests = 1;
    assert_true(send_frame("two"));
    assert_true(was_rung());
    end();
}

TEST(the_bell_is_rung_once_in_each_rest)
{
    struct block_words *const words = begin_to_write();
    words->rests = 1;
    assert_true(send_frame("one"));
    assert_true(was_rung());
    assert_true(send_frame("two"));
    assert_false(was_rung());
    words->rests = 0; /* it reads them */
    assert_true(send_frame("three"));
    assert_false(was_rung());
    words->rests = 2;
    assert_true(send_frame("four"));
    assert_true(was_rung());
    end();
}

static void await_rung(void)
{
    const int64_t deadline = long_deadline();
    while (!was_rung()) {
        assert_true(ls_now(ls_runtime_threads()) < deadline);
        ls_yield_core(ls_runtime_threads());
    }
}

/* Nobody counts what begins to lend here. */
static void let_the_bus_thread_look(void)
{
    (void)atomic_fetch_add(&node->n_near, 1);
    blocks_tell_news(node);
    node_wake(node);
}

TEST(what_is_left_to_the_bus_thread_is_rung_by_it)
{
    struct block_words *const words = begin_to_write();
    rings_later(node, true);
    assert_true(send_frame("one"));
    assert_int_equal(node->blocks->to_ring, 0); /* it is awake */
    words->rests = 1;
    assert_true(send_frame("two"));
    assert_true(send_frame("three"));
    rings_later(node, false);
    assert_int_equal(node->blocks->to_ring, 1);
    assert_false(was_rung());
    let_the_bus_thread_look();
    transport_unlock(node->transport);
    await_rung();
    transport_lock(node->transport);
    assert_true(send_frame("four"));
    assert_false(was_rung());
    words->rests = 2;
    assert_true(send_frame("five"));
    assert_true(was_rung());
    end();
}

TEST(what_fits_into_a_slot_goes_into_the_line_of_who_heeds_it)
{
    static const char text[LINE_BYTES];
    struct block_words *const words = begin_to_write();
    const size_t most = LINE_BYTES - 1 - 4;
    assert_true(lines_send(node, &peers[0], "name", 4, text, most));
    assert_false(lines_send(node, &peers[0], "name", 4, text, most + 1));
    assert_true(lines_send(node, &peers[0], "name", 4, NULL, 0));
    words->lines[3].heeds = 0;
    assert_false(lines_send(node, &peers[0], "name", 4, text, 1));
    assert_int_equal(node->figures.stats.near, 2);
    end();
}

/* ---- notices ----------------------------------------------------------- */

enum { OTHER = 9, LIFE = 77 };

/* What the one in the world says of a pair. */
struct notice {
    enum block_said said;
    uint64_t to, session, number, window, row;
    uint32_t from;
    uint64_t life;
};

/* Before the start: the bus thread alone changes the world that it walks. */
static struct peer *begin_with_one_in_the_world(void)
{
    make(LS_TOPOLOGY_MESH, SHARED);
    struct member *const member = membership_note(&node->world, OTHER, LIFE);
    assert_non_null(member);
    start();
    member->endpoint = "tcp://127.0.0.1:1";
    member->state = LS_MEMBER_READY;
    atomic_store(&member->heard_at, ls_now(ls_runtime_threads()));
    return peer_of(member);
}

static struct notice right_notice(enum block_said said)
{
    return (struct notice){.said = said,
                           .to = node->me.incarnation,
                           .session = 5,
                           .number = 3,
                           .window = 2 * (uint64_t)WIRE_CHUNK_BYTES,
                           .row = 2,
                           .from = OTHER,
                           .life = LIFE};
}

static void say(const struct notice *notice)
{
    const struct wire_header header = {.origin = notice->from,
                                       .incarnation = notice->life};
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, 6);
    ls_write_string(writer, "said");
    ls_write_uint(writer, notice->said);
    ls_write_string(writer, "to");
    ls_write_uint(writer, notice->to);
    ls_write_string(writer, "session");
    ls_write_uint(writer, notice->session);
    ls_write_string(writer, "number");
    ls_write_uint(writer, notice->number);
    ls_write_string(writer, "window");
    ls_write_uint(writer, notice->window);
    ls_write_string(writer, "row");
    ls_write_uint(writer, notice->row);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    transport_unlock(node->transport);
    blocks_message(node, &header, data, size);
    transport_lock(node->transport);
    ls_writer_destroy(&writer);
}

/* One that would be heeded, but for this. */
#define WITH(field, value)                                                     \
    do {                                                                       \
        struct notice wrong = right_notice(BLOCKS_TAKEN);                      \
        wrong.field = (value);                                                 \
        say(&wrong);                                                           \
        assert_int_equal(pair->answer.session, 0);                             \
    } while (0)

TEST(an_answer_is_heeded_once_and_only_if_it_is_right)
{
    struct peer *const peer = begin_with_one_in_the_world();
    const struct block_pair *const pair = blocks_pair(node, peer);
    struct notice notice = right_notice(BLOCKS_TAKEN);
    say(&notice);
    assert_int_equal(pair->answer.session, 0); /* nothing was offered */
    peer->blocks->offered = true;
    WITH(said, BLOCKS_N_SAID);
    WITH(to, node->me.incarnation + 1);
    WITH(window, 2 * (uint64_t)WIRE_CHUNK_BYTES - 1);
    WITH(row, BLOCK_READERS);
    WITH(from, OTHER + 1);
    WITH(life, LIFE + 1);
    peer->member.state = LS_MEMBER_LOST;
    say(&notice);
    assert_int_equal(pair->answer.session, 0);
    peer->member.state = LS_MEMBER_READY;
    say(&notice);
    assert_int_equal(pair->answer.session, 5);
    assert_int_equal(pair->answer.row, 2);
    assert_false(pair->lends); /* its memory was not taken */
    notice.session = 6;
    say(&notice);
    assert_int_equal(pair->answer.session, 5);
    end();
}

TEST(what_is_passed_is_never_behind_and_only_of_this_session)
{
    struct peer *const peer = begin_with_one_in_the_world();
    struct block_pair *const pair = blocks_pair(node, peer);
    static struct block_row row;
    struct notice notice = right_notice(BLOCKS_PASSED);
    say(&notice); /* it reads nothing yet */
    block_row_begin(NULL, &row, 5);
    pair->row = &row;
    pair->session = 5;
    const struct {
        uint64_t session, number, seen;
    } cases[] = {{4, 3, 0},
                 {5, 3, 3},
                 {5, 2, 3},
                 {5, UINT64_MAX / 2 + 1, 3},
                 {5, UINT64_MAX / 2, UINT64_MAX / 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        notice.session = cases[i].session;
        notice.number = cases[i].number;
        say(&notice);
        assert_true(row.seen == cases[i].seen);
    }
    end();
}
