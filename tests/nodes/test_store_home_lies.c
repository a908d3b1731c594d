/* A member of a store on the bus, whose home does not do as it should. */
#include "nodes/store_world.h"

#include "store_wire.h"

/* Node 1 is the home that lies, node 2 the member, node 3 a bystander. */
struct liar {
    struct world world;
    ls_node *nodes[3];
    ls_calls *calls[3];
    struct store *store;
    struct store_answer answer;
    const char *raw; /* says this instead */
    bool refuses;
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
    store_answer_write(&liar->answer, writer);
    if (data == NULL)
        assert_ok(ls_writer_bytes(writer, &data, &size));
    (void)ls_request_complete(&request, data, size);
    ls_writer_destroy(&writer);
    counter_add(&liar->asked, 1);
    return LS_OK;
}

static void prepare(ls_node *node, size_t index, void *self)
{
    struct liar *liar = self;
    liar->nodes[index] = node;
    assert_ok(ls_calls_open(&liar->calls[index], node, NULL));
    if (index == 0) {
        assert_ok(ls_on(node, STORE_PUT_EVENT, count, &liar->asked));
        assert_ok(ls_calls_serve(liar->calls[0], STORE_GET_CALL, LS_CALL_ANYONE,
                                 lie, liar));
        assert_ok(ls_calls_serve(liar->calls[0], STORE_PUT_CALL, LS_CALL_ANYONE,
                                 lie, liar));
    }
    if (index == 1)
        assert_ok(store_bus_open(
            &liar->store, &(struct store_bus_options){.node = node,
                                                      .calls = liar->calls[1],
                                                      .home = 1}));
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
    store_close(&liar->store);
    for (size_t i = 0; i < 3; i++)
        ls_calls_close(&liar->calls[i]);
    world_destroy(&liar->world);
    counter_fini(&liar->asked);
    free(liar);
    return 0;
}

static int get(struct liar *liar, int wait_ms)
{
    const char *const name = "a";
    struct store_blob blob = {NULL, 0};
    const int status = store_get(liar->store, &name, 1, &blob, wait_ms);
    if (status == LS_OK)
        store_blob_fini(&blob);
    else
        assert_null(blob.data);
    return status;
}

static void promise(struct liar *liar, const char *text)
{
    liar->answer.n = 1;
    liar->answer.values[0] = store_value_of(text, strlen(text));
}

static void send_from(ls_node *node, const char *text)
{
    assert_ok(
        ls_emit_with(node, &(struct ls_emission){.event = "ls.store.data.2",
                                                 .data = text,
                                                 .size = strlen(text),
                                                 .policy = LS_POLICY_RELIABLE,
                                                 .to_one = true,
                                                 .to = 2}));
}

static void test_bytes_that_never_come_end_a_get_at_its_deadline(void **state)
{
    struct liar *liar = *state;
    promise(liar, "never");
    assert_fails(get(liar, 30), LS_ETIMEDOUT);
}

static void test_bytes_of_another_node_are_none(void **state)
{
    struct liar *liar = *state;
    promise(liar, "false");
    send_from(liar->nodes[2], "false");
    assert_fails(get(liar, 30), LS_ETIMEDOUT);
}

static void get_and_wait(void *self)
{
    struct liar *liar = self;
    liar->answer.status = get(liar, LONG_MS);
}

static void test_a_home_that_is_lost_ends_a_get(void **state)
{
    struct liar *liar = *state;
    ls_thread *thread;
    promise(liar, "never");
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "get",
                              get_and_wait, liar));
    assert_reaches(&liar->asked, 1);
    ls_node_stop(liar->nodes[0], LS_OK);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(liar->answer.status, LS_ELOST);
}

static void test_bytes_that_nobody_asked_for_are_let_go(void **state)
{
    struct liar *liar = *state;
    struct counter came;
    counter_init(&came);
    assert_ok(ls_on(liar->nodes[1], "ls.store.data.2", count, &came));
    for (int i = 0; i < 10; i++)
        send_from(liar->nodes[0], "a gift");
    assert_reaches(&came, 10);
    promise(liar, "a gift"); /* it came before anyone asked */
    assert_fails(get(liar, 30), LS_ETIMEDOUT);
    assert_ok(ls_off(liar->nodes[1], "ls.store.data.2", count, &came));
    counter_fini(&came);
}

static void test_an_answer_that_breaks_the_format_is_refused(void **state)
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

static void test_a_status_is_passed_on_with_its_text(void **state)
{
    struct liar *liar = *state;
    liar->answer.status = LS_EIO;
    (void)snprintf(liar->answer.text, sizeof liar->answer.text,
                   "writing /p: the disk is full");
    const struct store_put put = {.name = "a", .data = "x", .size = 1};
    assert_fails(store_put(liar->store, &put), LS_EIO);
    assert_error_has("writing /p: the disk is full");
}

static void
test_a_refusal_means_try_again_and_no_handler_means_none(void **state)
{
    struct liar *liar = *state;
    liar->refuses = true;
    assert_fails(get(liar, LONG_MS), LS_EAGAIN);
    assert_error_has("not now");
    assert_fails(store_drop(liar->store, "a", LONG_MS), LS_EPROTO);
    assert_error_has("task name error");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_that_never_come_end_a_get_at_its_deadline),
        TEST(test_bytes_of_another_node_are_none),
        TEST(test_a_home_that_is_lost_ends_a_get),
        TEST(test_bytes_that_nobody_asked_for_are_let_go),
        TEST(test_an_answer_that_breaks_the_format_is_refused),
        TEST(test_a_status_is_passed_on_with_its_text),
        TEST(test_a_refusal_means_try_again_and_no_handler_means_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
