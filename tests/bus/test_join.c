/* Starting: how it fails, and what it then says. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/security.h"
#include "node_fixture.h"
#include "test.h"

/* ---- joining ----------------------------------------------------------- */

static int start_with(struct ls_node_options *options, const char *attach)
{
    options->attach = &attach;
    options->n_attach = 1;
    ls_node *node = create(options);
    const int status = ls_node_start(node);
    ls_node_destroy(&node);
    return status;
}

TEST(a_node_that_waits_for_nobody_starts_alone)
{
    struct ls_node_options options = usual(1);
    options.start_timeout_ms = 0;
    assert_ok(start_with(&options, "tcp://127.0.0.1:1"));
}

TEST(silent_addresses_and_missing_ids_are_named)
{
    static const uint32_t members[] = {7, 1000000, 4294967295u};
    struct ls_node_options options = usual(7);
    options.world_size = 3;
    options.start_timeout_ms = 300;
    assert_fails(start_with(&options, "tcp://127.0.0.1:1"), LS_EUNREACHABLE);
    assert_error_has(
        "within 300 ms (start_timeout_ms): 1 of 3 nodes are ready");
    assert_error_has("2 more");
    assert_error_has("tcp://127.0.0.1:1: no answer");
    options.members = members;
    assert_fails(start_with(&options, "inproc://nobody"), LS_EUNREACHABLE);
    assert_error_has("missing: node 1000000, 4294967295");
    assert_error_has("inproc://nobody");
}

TEST(only_an_address_that_can_be_dialled_is_attached_to)
{
    static const char *const bad[] = {
        "",
        "nobody",
        "ipc://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:0",
        "tcp://127.0.0.1:*",
        "tcp://127.0.0.1:99999",
        "tcp://127.0.0.1:21500x",
        "tcp://127.0.0.1:21500-21501",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_node_options options = usual(7);
        options.world_size = 2;
        assert_fails(start_with(&options, bad[i]), LS_EINVAL);
        assert_error_has("is not an address to attach to");
        assert_error_has(bad[i]);
    }
}

/* One attaches to this node, which cannot dial it back: it is told so, once. */
static void attach_without_a_way_back(const struct ls_node_options *to,
                                      int timeout_ms)
{
    ls_node *there = started(to);
    struct ls_node_options options = usual(7);
    options.world_size = 2;
    options.start_timeout_ms = timeout_ms;
    options.advertise = "tcp://127.0.0.1:1";
    assert_fails(start_with(&options, ls_node_endpoint(there)),
                 LS_EUNREACHABLE);
    assert_error_has("node 3 answers, and has not come here, to "
                     "tcp://127.0.0.1:1");
    assert_null(strstr(ls_error_text(), "does not reach"));
    ls_node_destroy(&there);
}

TEST(who_answers_and_cannot_come_back_is_named)
{
    const struct ls_node_options options = usual(3);
    attach_without_a_way_back(&options, 300);
}

TEST(who_has_told_it_that_there_is_no_way_back_is_named_once)
{
    struct ls_node_options options = usual(3);
    options.heartbeat_ms = 10;
    options.silence_ms = 40;
    attach_without_a_way_back(&options, 500);
}

TEST(a_host_that_cannot_be_resolved_is_named)
{
    struct ls_node_options options = usual(7);
    options.world_size = 2;
    options.start_timeout_ms = 500;
    options.insecure = true;
    assert_fails(start_with(&options, "tcp://no-such-host.invalid:21500"),
                 LS_EUNREACHABLE);
    assert_error_has("\"no-such-host.invalid\" cannot be resolved");
}

TEST(an_address_that_is_none_is_named)
{
    struct ls_node_options options = usual(7);
    options.world_size = 2;
    options.start_timeout_ms = 30;
    assert_int_not_equal(start_with(&options, "nonsense"), LS_OK);
    assert_error_has("nonsense");
    assert_int_not_equal(start_with(&options, "udp://127.0.0.1:1"), LS_OK);
    assert_error_has("udp://127.0.0.1:1");
}

TEST(a_taken_id_names_both_endpoints)
{
    struct ls_node_options options = usual(3);
    ls_node *elder = started(&options);
    options = usual(3);
    options.world_size = 2;
    assert_fails(start_with(&options, ls_node_endpoint(elder)), LS_EEXIST);
    assert_error_has("node id 3");
    assert_error_has(options.bind);
    assert_error_has(ls_node_endpoint(elder));
    ls_node_destroy(&elder);
}

TEST(a_taken_id_is_found_through_a_third_node)
{
    struct world *world = calloc(1, sizeof *world);
    static const uint32_t ids[] = {1, 3};
    world_start(world, &(struct world_plan){.n = 2, .ids = ids});
    struct ls_node_options options = usual(3);
    options.world_size = 3;
    assert_fails(start_with(&options, ls_node_endpoint(world->at[0].node)),
                 LS_EEXIST);
    assert_error_has("node id 3");
    assert_error_has(ls_node_endpoint(world->at[1].node));
    world_destroy(world);
    free(world);
}

TEST(another_job_is_a_mismatch)
{
    struct ls_node_options options = usual(1);
    options.job = "this-job";
    ls_node *node = started(&options);
    options = usual(2);
    options.job = "that-job";
    options.world_size = 2;
    options.start_timeout_ms = LONG_MS;
    assert_fails(start_with(&options, ls_node_endpoint(node)), LS_EMISMATCH);
    assert_error_has("this-job");
    assert_error_has("that-job");
    ls_node_destroy(&node);
}

TEST(another_configuration_is_a_mismatch)
{
    struct ls_node_options options = usual(1);
    options.config_hash = 0xabc;
    ls_node *node = started(&options);
    options = usual(2);
    options.config_hash = 0xdef;
    options.world_size = 2;
    options.start_timeout_ms = LONG_MS;
    assert_fails(start_with(&options, ls_node_endpoint(node)), LS_EMISMATCH);
    assert_error_has("configuration");
    assert_error_has("abc");
    assert_error_has("def");
    options.config_hash = 0; /* any */
    options.start_timeout_ms = LONG_MS;
    assert_ok(start_with(&options, ls_node_endpoint(node)));
    ls_node_destroy(&node);
}

/* A password is for one spelling of an address. 127.1 is the same host. */
TEST(an_address_in_another_spelling_is_named_in_both)
{
    char folder[] = "/tmp/lockstep-XXXXXX", secret[64], other[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(secret, sizeof secret, "%s/secret", folder);
    assert_ok(ls_secret_create(secret, NULL));
    struct ls_node_options options = usual(1), second = usual(2);
    assert_ok(ls_security_file(&options.security, secret));
    options.bind = second.bind = "tcp://127.0.0.1:*";
    ls_node *node = started(&options);
    const char *const is = ls_node_endpoint(node);
    (void)snprintf(other, sizeof other, "tcp://127.1%s", strrchr(is, ':'));
    second.security = options.security;
    second.world_size = 2;
    assert_fails(start_with(&second, other), LS_EMISMATCH);
    assert_error_has(other);
    assert_error_has("another address than the one that was dialled");
    /* And it may have tried for longer than a connection may be silent. */
    struct ls_refusal refusals[8];
    const size_t n = ls_node_refusals(node, refusals, 8);
    bool is_named = false;
    for (size_t i = 0; i < n && i < 8; i++)
        is_named = is_named || (refusals[i].kind == LS_REFUSAL_STRANGER &&
                                strstr(refusals[i].why, is) != NULL &&
                                strstr(refusals[i].why, other) != NULL);
    assert_true(is_named);
    ls_node_destroy(&node);
    ls_security_destroy(&options.security);
    assert_int_equal(unlink(secret), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST(who_is_denied_hears_that_it_may_be_its_address)
{
    struct ls_node_options options = usual(1), second = usual(2);
    assert_ok(ls_security_none(&options.security));
    assert_ok(ls_security_deny(options.security, "127.0.0.1"));
    options.bind = second.bind = "tcp://127.0.0.1:*";
    ls_node *node = started(&options);
    second.insecure = true;
    second.world_size = 2;
    assert_fails(start_with(&second, ls_node_endpoint(node)), LS_EMISMATCH);
    assert_error_has("or does not allow this node's address");
    ls_node_destroy(&node);
    ls_security_destroy(&options.security);
}

/* ---- out of order ------------------------------------------------------ */

TEST(starting_twice_is_refused)
{
    const struct ls_node_options options = usual(1);
    ls_node *node = create(&options);
    assert_fails(ls_node_join(node), LS_ESTATE);
    assert_ok(ls_node_open(node));
    assert_fails(ls_node_open(node), LS_ESTATE);
    assert_fails(ls_node_start(node), LS_ESTATE);
    assert_ok(ls_node_join(node));
    assert_fails(ls_node_join(node), LS_ESTATE);
    ls_node_destroy(&node);
}

TEST(a_stopped_node_does_not_start)
{
    const struct ls_node_options options = usual(1);
    ls_node *node = create(&options);
    ls_node_stop(node, LS_OK);
    assert_fails(ls_node_start(node), LS_ECLOSED);
    ls_node_destroy(&node);
    node = create(&options);
    assert_ok(ls_node_open(node));
    ls_node_stop(node, LS_OK);
    assert_fails(ls_node_join(node), LS_ECLOSED);
    ls_node_destroy(&node);
}

static void start_one(void *self)
{
    struct world_node *one = self;
    one->status = ls_node_start(one->node);
}

/* Wherever the start is just then. */
TEST(stop_ends_a_start)
{
    for (int i = 0; i < 100; i++) {
        struct world_node one = {.status = LS_OK};
        struct ls_node_options options = usual(1);
        options.world_size = 2;
        one.node = create(&options);
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &one.thread, "start",
                                  start_one, &one));
        for (int j = 0; j < 10 * i; j++)
            (void)sched_yield();
        assert_ok(ls_node_stop(one.node, LS_OK));
        assert_ok(ls_thread_join(&one.thread, LS_FOREVER));
        assert_int_equal(one.status, LS_ECLOSED);
        assert_ok(ls_node_destroy(&one.node));
    }
}

TEST(stop_ends_a_join)
{
    for (int i = 0; i < 10; i++) {
        struct world *world = calloc(1, sizeof *world);
        struct ls_node_options options = usual(1);
        options.world_size = 2;
        options.start_timeout_ms = LONG_MS;
        world->at[0].node = create(&options);
        assert_ok(ls_node_open(world->at[0].node));
        world_spawn(world, 0, world_join_one);
        ls_node_stop(world->at[0].node, LS_OK);
        assert_ok(ls_thread_join(&world->at[0].thread, LS_FOREVER));
        assert_int_equal(world->at[0].status, LS_ECLOSED);
        ls_node_destroy(&world->at[0].node);
        free(world);
    }
}
