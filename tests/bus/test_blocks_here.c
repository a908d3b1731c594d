/* The nodes of one process that share memory: each has that of the others as it
 * is, with no descriptor of its own; and one may end at any time. */
#include "blocks_inside.h"
#include "lockstep/call.h"
#include "world_fixture.h"

enum { MANY = 6 };

struct talkers {
    struct world world;
    ls_rpc *calls[MANY];
};

static int serve_echo(void *self, ls_request *request)
{
    size_t size;
    const void *data = ls_request_data(request, &size);
    (void)self;
    return ls_request_complete(&request, data, size);
}

static void prepare(ls_node *node, size_t index, void *self)
{
    struct talkers *t = self;
    assert_ok(ls_rpc_open(&t->calls[index], node, NULL));
    assert_ok(ls_rpc_serve(t->calls[index], "echo", LS_CALL_ANYONE, serve_echo,
                           NULL));
}

static struct talkers *start(size_t n)
{
    struct talkers *t = calloc(1, sizeof *t);
    assert_non_null(t);
    world_start(&t->world,
                &(struct world_plan){.n = n, .prepare = prepare, .self = t});
    return t;
}

static void end(struct talkers *t)
{
    for (size_t i = 0; i < t->world.n; i++)
        ls_rpc_close(&t->calls[i]);
    world_destroy(&t->world);
    free(t);
}

static int ask(struct talkers *t, size_t from, size_t to)
{
    return ls_call_ask(t->calls[from],
                       &(struct ls_call_options){.to = (uint32_t)to + 1,
                                                 .name = "echo",
                                                 .timeout_ms = LONG_MS},
                       NULL, NULL);
}

/* Lock held. NULL: they are none. */
static struct block_pair *pair_of(ls_node *node, size_t with)
{
    const struct peer *peer = world_find(node, (uint32_t)with + 1);
    return peer != NULL && blocks_is_near(peer->blocks) ? peer->blocks : NULL;
}

static bool are_near(struct talkers *t, size_t one, size_t other)
{
    ls_node *node = t->world.at[one].node;
    transport_lock(node->transport);
    const bool near = pair_of(node, other) != NULL;
    transport_unlock(node->transport);
    return near;
}

/* The first call asks for it. */
static void become_near(struct talkers *t, size_t one, size_t other)
{
    const int64_t deadline = long_deadline();
    do
        assert_ok(ask(t, one, other));
    while ((!are_near(t, one, other) || !are_near(t, other, one)) &&
           ls_now(ls_runtime_threads()) < deadline);
    assert_true(are_near(t, one, other));
    assert_true(are_near(t, other, one));
}

TEST(each_has_the_memory_of_the_other_as_it_is)
{
    struct talkers *t = start(2);
    become_near(t, 0, 1);
    for (size_t i = 0; i < 2; i++) {
        ls_node *node = t->world.at[i].node;
        const struct blocks *theirs = t->world.at[1 - i].node->blocks;
        transport_lock(node->transport);
        const struct block_pair *pair = pair_of(node, 1 - i);
        assert_ptr_equal(pair->theirs, theirs);
        assert_ptr_equal(pair->memory, theirs->memory);
        assert_null(node->blocks->offer); /* to no other process */
        transport_unlock(node->transport);
    }
    end(t);
}

/* Of its memory, what others could take it by, and of its bell. */
TEST(a_node_has_three_descriptors_more_whoever_it_talks_to)
{
    struct talkers *t = start(MANY);
    const size_t before = open_descriptors();
    for (size_t i = 0; i < MANY; i++)
        for (size_t j = 0; j < i; j++)
            become_near(t, i, j);
    assert_int_equal(open_descriptors(), before + 3 * MANY);
    end(t);
}

TEST(what_nobody_here_offers_is_not_had)
{
    struct talkers *t = start(2);
    become_near(t, 0, 1);
    struct blocks *const blocks = t->world.at[0].node->blocks;
    const unsigned users = atomic_load(&blocks->users);
    struct block_notice offer = blocks->own;
    offer.key[1] ^= 1;
    assert_null(blocks_here_take(&offer));
    offer = blocks->own;
    offer.proof[0] ^= 1;
    assert_null(blocks_here_take(&offer));
    assert_ptr_equal(blocks_here_take(&blocks->own), blocks);
    assert_int_equal(atomic_load(&blocks->users), users + 1);
    offer = blocks->own;
    end(t);
    assert_null(blocks_here_take(&offer)); /* it is no node's any more */
    assert_int_equal(atomic_load(&blocks->users), 1);
    blocks_drop(blocks);
}

/* ---- ends -------------------------------------------------------------- */

static void destroy(struct talkers *t, size_t i)
{
    ls_rpc_close(&t->calls[i]);
    assert_ok(ls_node_destroy(&t->world.at[i].node));
}

/* Its bus thread may have it before it for a moment longer. */
static void await_reaped(ls_node *node)
{
    const int64_t deadline = long_deadline();
    bool is_there = true;
    while (is_there && ls_now(ls_runtime_threads()) < deadline) {
        transport_lock(node->transport);
        blocks_reap(node);
        is_there = node->blocks->pairs[0] != NULL;
        transport_unlock(node->transport);
    }
    assert_false(is_there);
}

static void await_parted(struct talkers *t, size_t one, size_t other)
{
    const int64_t deadline = long_deadline();
    while (are_near(t, one, other) && ls_now(ls_runtime_threads()) < deadline)
        ls_yield_core(ls_runtime_threads());
    assert_false(are_near(t, one, other));
}

TEST(who_has_a_memory_before_it_may_read_it_when_its_node_is_gone)
{
    struct talkers *t = start(2);
    become_near(t, 0, 1);
    ls_node *const node = t->world.at[0].node;
    transport_lock(node->transport);
    struct block_pair *const pair = pair_of(node, 1);
    pair->listened++; /* as a thread that waits for its line */
    transport_unlock(node->transport);
    destroy(t, 1);
    await_parted(t, 0, 1);
    const struct block_words *const words = ls_memory_data(pair->memory);
    assert_true(words->magic == BLOCKS_MAGIC);
    ls_memory_ring(pair->memory);
    transport_lock(node->transport);
    pair->listened--;
    transport_unlock(node->transport);
    await_reaped(node);
    end(t);
}

struct asker {
    struct talkers *t;
    struct counter asked;
    int status; /* of the first that failed */
};

static void ask_until_it_fails(void *self)
{
    struct asker *asker = self;
    do {
        asker->status = ask(asker->t, 0, 1);
        counter_add(&asker->asked, 1);
    } while (asker->status == LS_OK);
}

TEST(one_may_be_destroyed_while_another_calls_it)
{
    for (int round = 0; round < 5; round++) {
        struct asker asker = {.t = start(2)};
        ls_thread *thread = NULL;
        counter_init(&asker.asked);
        become_near(asker.t, 0, 1);
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "asker",
                                  ask_until_it_fails, &asker));
        assert_reaches(&asker.asked, 10);
        destroy(asker.t, 1);
        assert_ok(ls_thread_join(&thread, LS_FOREVER));
        assert_true(asker.status == LS_ELOST || asker.status == LS_ENOENT ||
                    asker.status == LS_EABORTED || asker.status == LS_EHANDLER);
        end(asker.t);
        counter_fini(&asker.asked);
    }
}

TEST(the_next_life_of_a_node_shares_anew)
{
    struct talkers *t = start(2);
    for (int life = 0; life < 3; life++) {
        become_near(t, 0, 1);
        char bind[LS_ENDPOINT_MAX + 1];
        struct world_node *const at = &t->world.at[1];
        strcpy(bind, ls_node_endpoint(at->node));
        destroy(t, 1);
        await_parted(t, 0, 1);
        at->node = world_late(&t->world, &(struct world_plan){.n = 2}, 2, bind);
        prepare(at->node, 1, t);
        assert_ok(ls_node_start(at->node));
    }
    end(t);
}
