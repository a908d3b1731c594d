/* A member of a store on the bus, whose home does not do as it should. */
#include "nodes/store_world.h"

#include "store_calls.h"
#include "test.h"

/* Node 1 is the home that lies, node 2 the member, node 3 a bystander. */
struct liar {
    struct world world;
    ls_node *nodes[3];
    ls_rpc *calls[3];
    struct store *store;
    struct store_answer answer;
    const char *raw;    /* says this instead */
    bool refuses, sits; /* sits: it never answers */
    ls_request *request;
    const char *bytes; /* that come with it */
    struct counter asked;
};

static int lie(void *self, ls_request *request)
{
    struct liar *liar = self;
    ls_writer *writer;
    const void *data = liar->raw;
    size_t size = liar->raw != NULL ? strlen(liar->raw) : 0;
    if (liar->refuses)
        return ls_request_refuse(&request, LS_CALL_REFUSED, "not now");
    assert_ok(ls_writer_create(&writer));
    ls_record_write(&store_answer_record, &liar->answer, writer);
    if (data == NULL)
        assert_ok(ls_writer_bytes(writer, &data, &size));
    liar->request = request;
    const struct ls_body body = {
        .data = (void *)(uintptr_t)liar->bytes,
        .size = liar->bytes != NULL ? strlen(liar->bytes) : 0};
    if (!liar->sits)
        (void)ls_request_complete_with(&request, data, size, &body);
    ls_writer_destroy(&writer);
    counter_add(&liar->asked, 1);
    return LS_OK;
}

static void prepare(ls_node *node, size_t index, void *self)
{
    struct liar *liar = self;
    liar->nodes[index] = node;
    assert_ok(ls_rpc_open(&liar->calls[index], node, NULL));
    if (index == 0) {
        assert_ok(ls_rpc_serve(liar->calls[0], STORE_GET_CALL, LS_CALL_ANYONE,
                               lie, liar));
        assert_ok(ls_rpc_serve(liar->calls[0], STORE_PUT_CALL, LS_CALL_ANYONE,
                               lie, liar));
    }
    if (index == 1)
        assert_ok(store_bus_open(
            &liar->store, &(struct store_bus_options){.node = node,
                                                      .calls = liar->calls[1],
                                                      .coordinator = 1}));
}

static int up(void **state)
{
    struct liar *liar = calloc(1, sizeof *liar);
    assert_non_null(liar);
    counter_init(&liar->asked);
    world_start(&liar->world,
                &(struct world_plan){.n = 3, .prepare = prepare, .self = liar});
    *state = liar;
    return 0;
}

static int down(void **state)
{
    struct liar *liar = *state;
    for (size_t i = 0; i < 3; i++)
        ls_rpc_close(&liar->calls[i]);
    if (liar->sits && liar->request != NULL) /* on a busy machine none came */
        (void)ls_request_fail(&liar->request, "too late");
    store_close(&liar->store);
    world_destroy(&liar->world);
    counter_fini(&liar->asked);
    free(liar);
    return 0;
}

static int get(struct liar *liar, int wait_ms)
{
    const char *const name = "a";
    struct store_blob blob = {.data = NULL};
    const int status = store_get(liar->store, &name, 1, &blob, wait_ms);
    if (status == LS_OK)
        store_blob_fini(&blob);
    else
        assert_null(blob.data);
    return status;
}

EACH_TEST(up, down)

TEST(an_answer_that_never_comes_ends_a_get_at_its_deadline)
{
    struct liar *liar = *state;
    liar->sits = true;
    assert_fails(get(liar, 30), LS_ETIMEDOUT);
}

TEST(bytes_that_are_not_what_the_answer_says_are_refused)
{
    struct liar *liar = *state;
    liar->answer.n = 1;
    liar->answer.sizes[0] = 4;
    assert_fails(get(liar, LONG_MS), LS_EPROTO); /* none */
    liar->bytes = "abc";
    assert_fails(get(liar, LONG_MS), LS_EPROTO);
    liar->bytes = "abcde";
    assert_fails(get(liar, LONG_MS), LS_EPROTO);
    liar->answer.sizes[0] = UINT64_MAX;
    assert_fails(get(liar, LONG_MS), LS_EPROTO);
    liar->answer.sizes[0] = 5;
    assert_ok(get(liar, LONG_MS));
}

static void get_and_wait(void *self)
{
    struct liar *liar = self;
    liar->answer.status = get(liar, LONG_MS);
}

TEST(a_home_that_is_lost_ends_a_get)
{
    struct liar *liar = *state;
    ls_thread *thread;
    liar->sits = true;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "get",
                              get_and_wait, liar));
    assert_reaches(&liar->asked, 1);
    ls_node_stop(liar->nodes[0], LS_OK);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(liar->answer.status, LS_ELOST);
    (void)ls_request_fail(&liar->request, "too late");
}

TEST(an_answer_that_breaks_the_format_is_refused)
{
    struct liar *liar = *state;
    liar->raw = "\xc1";
    assert_fails(get(liar, LONG_MS), LS_EPROTO);
    liar->raw = NULL;
    liar->answer.n = 2; /* for one name */
    assert_fails(get(liar, LONG_MS), LS_EPROTO);
    const struct store_put put = {.name = "a", .data = "x", .size = 1};
    liar->raw = "\x80";
    assert_fails(store_put(liar->store, &put), LS_EPROTO);
}

TEST(a_status_is_passed_on_with_its_text)
{
    struct liar *liar = *state;
    liar->answer.status = LS_EIO;
    (void)snprintf(liar->answer.text, sizeof liar->answer.text,
                   "writing /p: the disk is full");
    const struct store_put put = {.name = "a", .data = "x", .size = 1};
    assert_fails(store_put(liar->store, &put), LS_EIO);
    assert_error_has("writing /p: the disk is full");
}

TEST(a_refusal_means_try_again_and_no_handler_means_none)
{
    struct liar *liar = *state;
    liar->refuses = true;
    assert_fails(get(liar, LONG_MS), LS_EAGAIN);
    assert_error_has("not now");
    assert_fails(store_drop(liar->store, "a", LONG_MS), LS_EPROTO);
    assert_error_has("task name error");
}
