/* A store whose bytes one node of the world keeps. */
#include "nodes/store_world.h"

#include "collector_service.h"
#include "file_bytes.h"
#include "lockstep/payload.h"
#include "state/folder_fixture.h"
#include "store_calls.h"
#include "test.h"

static int inproc_up(void **state)
{
    *state = store_world_start(NULL, NULL);
    return 0;
}

static int tcp_up(void **state)
{
    *state = store_world_start(NULL, &(struct world_plan){.transport = "tcp"});
    return 0;
}

static int star_up(void **state)
{
    *state = store_world_start(
        NULL, &(struct world_plan){.topology = LS_TOPOLOGY_STAR});
    return 0;
}

static int down(void **state)
{
    store_world_end(*state);
    return 0;
}

TEST_WITH(the_home_can_use_it_too, inproc_up, down)
{
    struct store_world *w = *state;
    struct store_pair pair = {w->stores[0], w->stores[2]};
    void *self = &pair;
    spec_gives_what_was_put(&self);
    spec_replaces(&self);
    pair = (struct store_pair){w->stores[1], w->stores[0]};
    spec_gives_several_or_none(&self);
}

/* What it keeps ----------------------------------------------------------- */

TEST(what_has_no_room_is_refused_until_there_is)
{
    struct store_world *w =
        store_world_start(&(struct store_bus_options){.max_bytes = 1000}, NULL);
    struct counter released;
    counter_init(&released);
    assert_ok(spec_put_moved(w->pair.here, "a", 600, &released));
    assert_fails(spec_put_moved(w->pair.here, "b", 500, &released), LS_EAGAIN);
    assert_error_has("no room for b of 500 bytes");
    assert_fails(spec_put_moved(w->pair.there, "c", 1001, &released),
                 LS_ELIMIT);
    spec_lacks(w->pair.here, "b");
    spec_lacks(w->pair.here, "c");
    assert_int_equal(home_stats(w).refused, 2);
    assert_int_equal(home_stats(w).bytes, 600);
    assert_ok(store_drop(w->pair.here, "a", 0));
    assert_ok(spec_put_moved(w->pair.here, "b", 500, &released));
    assert_int_equal(home_stats(w).names, 1);
    store_world_end(w);
    assert_int_equal(counter_get(&released), 4);
    counter_fini(&released);
}

TEST(a_value_has_the_room_of_the_one_that_it_replaces)
{
    struct store_world *w =
        store_world_start(&(struct store_bus_options){.max_bytes = 1000}, NULL);
    struct counter released;
    counter_init(&released);
    assert_ok(spec_put_moved(w->pair.here, "a", 600, &released));
    assert_ok(spec_put_moved(w->pair.here, "b", 300, &released));
    assert_ok(spec_put_moved(w->pair.there, "a", 700, &released));
    assert_fails(spec_put_moved(w->pair.there, "b", 301, &released), LS_EAGAIN);
    assert_error_has("700 of 1000");
    assert_int_equal(home_stats(w).bytes, 1000);
    store_world_end(w);
    counter_fini(&released);
}

TEST(names_of_nothing_take_room_as_well)
{
    struct store_world *w =
        store_world_start(&(struct store_bus_options){.max_bytes = 640}, NULL);
    char name[8];
    for (int i = 0; i <= 10; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        spec_put(w->pair.here, name, "", 0);
    }
    const struct store_put more = {.name = "more", .data = "", .size = 0};
    assert_fails(store_put(w->pair.there, &more), LS_EAGAIN);
    assert_error_has("no room for more: it has 11 names");
    spec_put(w->pair.there, name, "again", 5);
    assert_ok(store_drop(w->pair.there, "n0", 0));
    assert_ok(store_put(w->pair.there, &more));
    assert_int_equal(home_stats(w).refused, 1);
    store_world_end(w);
}

static void put_kept(struct store *store, const char *name, const char *text)
{
    assert_ok(store_put(store, &(struct store_put){.name = name,
                                                   .data = text,
                                                   .size = strlen(text),
                                                   .keep = true}));
}

TEST_WITH(what_is_kept_is_there_in_the_next_life, folder_set_up,
          folder_tear_down)
{
    const struct place *place = *state;
    const struct store_bus_options options = {.keep = place->folder};
    struct store_world *w = store_world_start(&options, NULL);
    put_kept(w->pair.here, "policy", "the first");
    put_kept(w->pair.here, "policy", "the second");
    put_kept(w->pair.there, "old", "policy");
    spec_put_text(w->pair.here, "sample", "bytes");
    assert_ok(store_drop(w->pair.here, "old", 0));
    store_world_end(w);
    w = store_world_start(&options, NULL);
    spec_has_text(w->pair.there, "policy", "the second");
    spec_lacks(w->pair.there, "old");
    spec_lacks(w->pair.there, "sample");
    store_world_end(w);
}

TEST_WITH(a_damaged_kept_value_is_named_at_the_beginning, folder_set_up,
          folder_tear_down)
{
    const struct place *place = *state;
    struct ls_node_options options;
    ls_node *node;
    ls_rpc *calls;
    struct store *store = NULL;
    write_bytes(place->path, "", 0);
    ls_node_options_init(&options);
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&calls, node, NULL));
    struct store_bus_options home_options = {
        .node = node, .calls = calls, .keep = place->folder};
    assert_fails(store_bus_open(&store, &home_options), LS_EPROTO);
    assert_error_has(place->path);
    assert_null(store);
    ls_rpc_close(&calls);
    ls_node_destroy(&node);
}

TEST_WITH(values_are_kept_and_given_without_a_copy, inproc_up, down)
{
    struct store_world *w = *state;
    const char *const name = "a";
    struct counter released;
    struct store_blob blob;
    counter_init(&released);
    assert_ok(spec_put_moved(w->pair.here, name, 8000, &released));
    assert_ok(store_get(w->stores[0], &name, 1, &blob, 0));
    assert_int_equal(counter_get(&released), 0);
    assert_ok(store_drop(w->pair.here, name, 0));
    assert_int_equal(home_stats(w).bytes, 0);
    assert_int_equal(blob.size, 8000); /* what was got stays */
    assert_int_equal(((const char *)blob.data)[7999], 0);
    store_blob_fini(&blob);
    assert_reaches(&released, 1);
    counter_fini(&released);
}

static uint64_t held_by(ls_node *node)
{
    struct ls_node_stats stats;
    ls_node_stats(node, &stats);
    return stats.blocks_held;
}

/* Room as a collector has it, when its node and others share memory. */
static void await_room(struct collected_data *data, struct store_world *w)
{
    const char *const name = "first";
    const int64_t deadline = long_deadline();
    struct store_blob blob;
    *data = (struct collected_data){.node = w->nodes[0]};
    do {
        assert_true(ls_now(ls_runtime_threads()) < deadline);
        spec_put_text(w->stores[0], name, "this asks for it");
        assert_ok(store_get(w->pair.there, &name, 1, &blob, 0));
        store_blob_fini(&blob);
        assert_ok(collected_room(data, 100000));
    } while (held_by(w->nodes[0]) == 0);
}

/* It is written again, only here, to see whether it is the same memory. */
TEST_WITH(what_a_collector_has_made_is_got_where_it_lies, tcp_up, down)
{
    struct store_world *w = *state;
    const char *const name = "made";
    struct collected_data data;
    struct store_blob blob;
    await_room(&data, w);
    assert_int_equal(held_by(w->nodes[0]), 1); /* of all that it had */
    memset(data.bytes, 1, data.size);
    assert_ok(store_put(w->stores[0],
                        &(struct store_put){.name = name,
                                            .data = data.bytes,
                                            .size = data.size,
                                            .release = ls_payload_free}));
    assert_ok(store_get(w->pair.there, &name, 1, &blob, 0));
    assert_int_equal(blob.size, 100000);
    assert_int_equal(((const char *)blob.data)[99999], 1);
    memset(data.bytes, 2, data.size);
    assert_int_equal(((const char *)blob.data)[99999], 2);
    assert_ok(store_drop(w->stores[0], name, 0));
    assert_int_equal(held_by(w->nodes[0]), 0);
    assert_int_equal(((const char *)blob.data)[99999], 2);
    store_blob_fini(&blob);
    assert_ok(collected_room(&data, 100000));
    collected_clear(&data);
    collected_clear(&data);
    assert_int_equal(held_by(w->nodes[0]), 0);
}

TEST_WITH(a_get_of_much_is_done_in_several, inproc_up, down)
{
    struct store_world *w = *state;
    enum { N = 40, SIZE = 1 << 20 };
    static struct store_blob blobs[N];
    char names[N][16];
    const char *pointers[N];
    char *data = malloc(SIZE);
    assert_non_null(data);
    for (int i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "long-%d", i);
        pointers[i] = names[i];
        memset(data, i, SIZE);
        spec_put(w->pair.here, names[i], data, SIZE);
    }
    assert_ok(store_get(w->pair.there, pointers, N, blobs, LONG_MS));
    for (int i = 0; i < N; i++) {
        memset(data, i, SIZE);
        assert_int_equal(blobs[i].size, SIZE);
        assert_memory_equal(blobs[i].data, data, SIZE);
        store_blob_fini(&blobs[i]);
    }
    assert_ok(store_drop(w->pair.here, "long-39", 0));
    assert_fails(store_get(w->pair.there, pointers, N, blobs, LONG_MS),
                 LS_ENOENT);
    free(data);
}

/* Asking ------------------------------------------------------------------ */

TEST_WITH(a_call_that_breaks_the_format_is_refused, inproc_up, down)
{
    struct store_world *w = *state;
    static const char *const calls[] = {STORE_PUT_CALL, STORE_GET_CALL,
                                        STORE_DROP_CALL};
    for (size_t i = 0; i < 3; i++) {
        const struct ls_call_options options = {
            .to = 1, .name = calls[i], .data = "\x81\xa1x", .size = 3};
        assert_fails(ls_call_ask(w->calls[1], &options, NULL, NULL),
                     LS_EHANDLER);
    }
    assert_int_equal(home_stats(w).malformed, 3);
    spec_put_text(w->pair.here, "a", "one");
    spec_has_text(w->pair.there, "a", "one");
}

/* The home goes ------------------------------------------------------------ */

TEST_WITH(without_its_home_it_says_lost_at_once, inproc_up, down)
{
    struct store_world *w = *state;
    const char *const name = "a";
    struct store_blob blob;
    struct counter released;
    counter_init(&released);
    spec_put_text(w->pair.here, "a", "one");
    ls_node_stop(w->nodes[0], LS_OK);
    int status = LS_OK;
    const int64_t deadline = long_deadline();
    while (status == LS_OK && ls_now(ls_runtime_threads()) < deadline)
        status = store_get(w->pair.here, &name, 1, &blob, LONG_MS);
    assert_int_equal(status, LS_ELOST);
    assert_fails(spec_put_moved(w->pair.here, "a", 10, &released), LS_ELOST);
    assert_reaches(&released, 1);
    counter_fini(&released);
    assert_fails(store_drop(w->pair.here, "a", LONG_MS), LS_ELOST);
    /* Nothing of that is an error of the node. */
    assert_ok(ls_node_take_error(w->nodes[1]));
}

STORE_SPEC(inproc_up, down)
TEST_OF(spec_gives_what_was_put, tcp_up, down)
TEST_OF(spec_gives_no_mixture, tcp_up, down)
TEST_OF(spec_gives_what_was_put, star_up, down)
TEST_OF(spec_gives_no_mixture, star_up, down)
