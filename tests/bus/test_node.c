/* A node by itself: its options, what it tells, where it is bound. */
#include "node_fixture.h"
#include "test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- options ----------------------------------------------------------- */

static void assert_refused(const struct ls_node_options *options,
                           const char *names)
{
    ls_node *node = (ls_node *)(void *)&node;
    assert_fails(ls_node_create(&node, options), LS_EINVAL);
    assert_error_has(names);
    assert_null(node);
}

/* Set one option to what is out of its range, and see it named. */
#define REFUSED(option, value, names)                                          \
    do {                                                                       \
        struct ls_node_options refused = usual(1);                             \
        refused.option = (value);                                              \
        assert_refused(&refused, (names));                                     \
    } while (0)
#define ALLOWED(option, value)                                                 \
    do {                                                                       \
        struct ls_node_options allowed = usual(1);                             \
        allowed.option = (value);                                              \
        ls_node *node = create(&allowed);                                      \
        ls_node_destroy(&node);                                                \
    } while (0)

TEST(texts_out_of_range_are_refused)
{
    char longer[LS_ENDPOINT_MAX + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    REFUSED(job, NULL, "job");
    REFUSED(job, "", "job");
    REFUSED(job, "a b", "job");
    REFUSED(job, "a/b", "job");
    REFUSED(job, longer, "job");
    REFUSED(role, "a/b", "role");
    REFUSED(role, longer, "role");
    REFUSED(labels, "a/b", "labels");
    REFUSED(labels, longer, "labels");
    REFUSED(bind, longer, "bind");
    REFUSED(advertise, longer, "advertise");
    ALLOWED(job, "Az09._-");
    ALLOWED(role, NULL);
    ALLOWED(role, "learner,gpu");
    ALLOWED(labels, NULL);
    ALLOWED(labels, "gpu,fast-1");
    longer[31] = '\0';
    ALLOWED(role, longer);
    longer[31] = 'x';
    longer[32] = '\0';
    REFUSED(role, longer, "role");
    longer[32] = 'x';
    longer[63] = '\0';
    ALLOWED(labels, longer);
    longer[63] = 'x';
    longer[LS_JOB_MAX] = '\0';
    REFUSED(labels, longer, "labels");
    ALLOWED(job, longer);
    longer[LS_JOB_MAX] = 'x';
    longer[LS_JOB_MAX + 1] = '\0';
    REFUSED(job, longer, "job");
}

TEST(addresses_out_of_range_are_refused)
{
    char longer[LS_ENDPOINT_MAX + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const none[] = {"inproc://a", NULL};
    const char *const huge[] = {longer};
    struct ls_node_options options = usual(1);
    options.n_attach = 1;
    assert_refused(&options, "attach");
    options.attach = none;
    options.n_attach = 2;
    assert_refused(&options, "attach");
    options.attach = huge;
    options.n_attach = 1;
    assert_refused(&options, "attach");
}

TEST(numbers_out_of_range_are_refused)
{
    REFUSED(world_size, 0, "world_size");
    REFUSED(world_size, 4097, "world_size");
    REFUSED(world_max, 4097, "world_max");
    ALLOWED(world_max, 4096);
    REFUSED(topology, (enum ls_topology)3, "topology");
    REFUSED(start_timeout_ms, -1, "timeout");
    REFUSED(emit_timeout_ms, -1, "timeout");
    REFUSED(linger_ms, -1, "timeout");
    REFUSED(heartbeat_ms, 9, "heartbeat_ms");
    REFUSED(heartbeat_ms, 60001, "heartbeat_ms");
    REFUSED(silence_ms, 499, "silence_ms");
    REFUSED(window_messages, 15, "window_messages");
    REFUSED(window_messages, (1u << 20) + 1, "window_messages");
    REFUSED(shared_bytes, ((size_t)64 << 30) + 1, "shared_bytes");
    REFUSED(window_bytes, (2u << 20) - 1, "window_bytes");
    REFUSED(window_bytes, ((size_t)64 << 30) + 1, "window_bytes");
    REFUSED(max_payload_bytes, ((size_t)1 << 30) + 1, "max_payload_bytes");
    ALLOWED(world_size, 4096);
    ALLOWED(start_timeout_ms, 0);
    ALLOWED(heartbeat_ms, 10);
    ALLOWED(silence_ms, 500);
    ALLOWED(window_messages, 16);
    ALLOWED(window_messages, 1u << 20);
    ALLOWED(shared_bytes, 0);
    ALLOWED(window_bytes, 2u << 20);
    ALLOWED(window_bytes, (size_t)64 << 30);
    ALLOWED(max_payload_bytes, (size_t)1 << 30);
    ALLOWED(id, UINT32_MAX);
}

TEST(silence_is_two_heartbeats_at_least)
{
    struct ls_node_options slow = usual(1);
    slow.heartbeat_ms = 60000;
    slow.silence_ms = 119999;
    assert_refused(&slow, "silence_ms");
    slow.silence_ms = 120000;
    ls_node *node = create(&slow);
    ls_node_destroy(&node);
}

TEST(members_are_the_ids_of_the_world)
{
    static const uint32_t twice[] = {1, 7, 7};
    static const uint32_t without[] = {2, 3, 4};
    struct ls_node_options options = usual(1);
    options.world_size = 3;
    options.members = twice;
    assert_refused(&options, "id 7 is there twice");
    options.members = without;
    assert_refused(&options, "own id, 1, is not among them");
}

TEST(plain_tcp_stays_on_this_host_unless_told)
{
    static const char *const beyond[] = {
        "tcp://0.0.0.0:1",         "tcp://*:1",
        "tcp://192.0.2.1:1",       "tcp://example.org:1",
        "tcp://127.example.org:1", "tcp://[2001:db8::1]:1",
        "tcp://127.0.0.1:0;a.b:1", "tcp://eth0:1",
        "tcp://localhost.evil:1"};
    static const char *const here[] = {"tcp://127.0.0.1:1", "tcp://127.1.2.3:1",
                                       "tcp://localhost:1", "tcp://[::1]:1",
                                       "ipc:///tmp/x.ipc",  "inproc://x"};
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        REFUSED(bind, beyond[i], "insecure");
        struct ls_node_options options = usual(1);
        options.attach = &beyond[i];
        options.n_attach = 1;
        assert_refused(&options, "insecure");
        assert_error_has(beyond[i]);
        options.insecure = true;
        ls_node *node = create(&options);
        ls_node_destroy(&node);
    }
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        ALLOWED(bind, here[i]);
}

/* ---- the object -------------------------------------------------------- */

TEST(destroy_takes_nothing_and_what_never_started)
{
    ls_node *node = NULL;
    ls_node_destroy(NULL);
    ls_node_destroy(&node);
    const struct ls_node_options options = usual(1);
    node = create(&options);
    ls_node_stop(node, LS_OK);
    ls_node_destroy(&node);
    assert_null(node);
}

TEST(options_are_copied_and_told)
{
    char job[] = "a-job";
    char role[] = "learner";
    struct ls_node_options options = usual(4000000000u);
    options.job = job;
    options.role = role;
    options.topology = LS_TOPOLOGY_ALONE;
    ls_node *node = create(&options);
    memset(job, 'x', 5);
    memset(role, 'x', 5);
    assert_int_equal(ls_node_id(node), 4000000000u);
    assert_string_equal(ls_node_job(node), "a-job");
    assert_string_equal(ls_node_role(node), "learner");
    assert_int_equal(ls_node_topology(node), LS_TOPOLOGY_ALONE);
    assert_int_equal(ls_node_world_size(node), 1);
    assert_ptr_equal(ls_node_runtime(node), ls_runtime_threads());
    assert_string_equal(ls_node_endpoint(node), "");
    assert_true(ls_node_incarnation(node) == 0);
    assert_int_equal(ls_node_members(node, NULL, 0), 0);
    assert_ok(ls_node_start(node));
    assert_string_equal(ls_node_endpoint(node), options.bind);
    assert_true(ls_node_incarnation(node) != 0);
    ls_node_destroy(&node);
}

TEST(a_node_is_in_the_groups_of_its_role_and_labels)
{
    struct ls_node_options options = usual(1);
    options.role = "learner,first";
    options.labels = "gpu";
    ls_node *node = create(&options);
    assert_true(ls_node_is_in(node, "learner"));
    assert_true(ls_node_is_in(node, "first"));
    assert_true(ls_node_is_in(node, "gpu"));
    assert_false(ls_node_is_in(node, "learn"));
    assert_false(ls_node_is_in(node, "learner,first"));
    assert_false(ls_node_is_in(node, ""));
    ls_node_destroy(&node);
}

TEST(how_many_may_be_there_is_told)
{
    const struct {
        uint32_t world_size, world_max;
        enum ls_topology topology;
        uint32_t told;
    } worlds[] = {{3, 0, LS_TOPOLOGY_MESH, 3},
                  {3, 7, LS_TOPOLOGY_MESH, 7},
                  {1, 0, LS_TOPOLOGY_MESH, 4096},
                  {1, 2, LS_TOPOLOGY_MESH, 2},
                  {1, 0, LS_TOPOLOGY_ALONE, 4096}};
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        struct ls_node_options options = usual(0);
        options.world_size = worlds[i].world_size;
        options.world_max = worlds[i].world_max;
        options.topology = worlds[i].topology;
        ls_node *node = create(&options);
        assert_int_equal(ls_node_world_max(node), worlds[i].told);
        ls_node_destroy(&node);
    }
}

TEST(advertised_is_what_others_dial)
{
    struct ls_node_options options = usual(1);
    options.bind = "tcp://127.0.0.1:*";
    options.advertise = "tcp://localhost:1234";
    ls_node *node = started(&options);
    assert_string_equal(ls_node_endpoint(node), "tcp://localhost:1234");
    ls_node_destroy(&node);
}

/* ---- binding ----------------------------------------------------------- */

TEST(a_range_gives_the_first_free_port)
{
    struct ls_node_options options = usual(1);
    options.bind = NULL; /* 21500-21999 */
    ls_node *first = started(&options);
    unsigned port = 0, other = 0;
    char bind[64];
    assert_int_equal(
        sscanf(ls_node_endpoint(first), "tcp://127.0.0.1:%u", &port), 1);
    assert_in_range(port, 21500, 21999);
    (void)snprintf(bind, sizeof bind, "tcp://127.0.0.1:%u-21999", port);
    options.bind = bind;
    ls_node *second = started(&options);
    assert_int_equal(
        sscanf(ls_node_endpoint(second), "tcp://127.0.0.1:%u", &other), 1);
    assert_in_range(other, port + 1, 21999);
    (void)snprintf(bind, sizeof bind, "tcp://127.0.0.1:%u-%u", port, port);
    ls_node *third = create(&options);
    assert_fails(ls_node_start(third), LS_EADDRINUSE);
    assert_error_has("another program has this address");
    ls_node_destroy(&first);
    ls_node_destroy(&second);
    ls_node_destroy(&third);
}

static void assert_in_use(const char *bind)
{
    struct ls_node_options options = usual(1);
    options.bind = bind;
    ls_node *first = started(&options);
    options.bind = ls_node_endpoint(first);
    ls_node *second = create(&options);
    assert_fails(ls_node_start(second), LS_EADDRINUSE);
    assert_error_has(options.bind);
    ls_node_destroy(&second);
    ls_node_destroy(&first);
}

TEST(an_address_in_use_is_told)
{
    char directory[] = "/tmp/lockstep-test-XXXXXX";
    char bind[64];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(bind, sizeof bind, "ipc://%s/x", directory);
    assert_in_use("tcp://127.0.0.1:*");
    assert_in_use(bind);
    assert_in_use("inproc://in-use");
    assert_int_equal(rmdir(directory), 0); /* no socket file is left */
}

TEST(no_folder_of_an_address_that_libzmq_chose_is_left)
{
    struct ls_node_options options = usual(1);
    char folder[LS_ENDPOINT_MAX + 1];
    options.bind = "ipc://*";
    for (int i = 0; i < 20; i++) { /* whoever removes the file first */
        ls_node *node = started(&options);
        (void)snprintf(folder, sizeof folder, "%s",
                       ls_node_endpoint(node) + strlen("ipc://"));
        *strrchr(folder, '/') = '\0';
        assert_int_equal(access(folder, F_OK), 0);
        ls_node_destroy(&node);
        assert_int_equal(access(folder, F_OK), -1);
    }
}

TEST(what_cannot_be_bound_is_told)
{
    static const char *const bad[] = {"nonsense",
                                      "tcp://127.0.0.1:x",
                                      "tcp://127.0.0.1",
                                      "tcp://127.0.0.1:0-5",
                                      "tcp://127.0.0.1:600-500",
                                      "tcp://127.0.0.1:1-70000",
                                      "tcp://127.0.0.1:99999",
                                      "tcp://127.0.0.1:-5",
                                      "tcp://127.0.0.1:21500x",
                                      "tcp://127.0.0.1:21500-21501-21502",
                                      "tcp://192.0.2.1:21500",
                                      "epgm://lo;239.192.1.1:21500",
                                      "udp://127.0.0.1:21500",
                                      ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_node_options options = usual(1);
        options.bind = bad[i];
        options.insecure = true;
        ls_node *node = create(&options);
        assert_fails(ls_node_start(node), LS_EINVAL);
        assert_error_has("cannot bind");
        assert_error_has(bad[i]);
        ls_node_destroy(&node);
    }
}

TEST(of_an_address_with_two_parts_it_is_told_that_none_has)
{
    struct ls_node_options options = usual(1);
    options.bind = "tcp://127.0.0.1;127.0.0.1:21500";
    options.insecure = true;
    ls_node *node = create(&options);
    assert_fails(ls_node_start(node), LS_EINVAL);
    assert_error_has("no tcp:// address has a ;");
    ls_node_destroy(&node);
}

/* libzmq aborts a process in which its threads find no file. */
TEST(a_node_without_files_says_so)
{
    struct rlimit before, few;
    const int next = open("/dev/null", O_RDONLY);
    int status = LS_ELIMIT;
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    for (few.rlim_cur = (rlim_t)next; status != LS_OK; few.rlim_cur++) {
        struct ls_node_options options = usual(1);
        ls_node *node = NULL;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        status = ls_node_create(&node, &options);
        if (status == LS_OK)
            status = ls_node_open(node);
        assert_true(status == LS_OK || strstr(ls_error_text(), "files"));
        ls_node_destroy(&node);
    }
    assert_true(few.rlim_cur > (rlim_t)next + 10);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* As somebody with so few threads that none can be had, then with ever more. */
static int run_out_of_threads(void)
{
    struct rlimit few;
    int status = LS_EAGAIN, failed = 0;
    if ((geteuid() == 0 && setuid(65533) != 0) ||
        getrlimit(RLIMIT_NPROC, &few) != 0)
        return 1;
    for (few.rlim_cur = 1; status != LS_OK; few.rlim_cur++) {
        struct ls_node_options options = usual(1);
        ls_node *node = NULL;
        options.bind = "inproc://threads";
        if (setrlimit(RLIMIT_NPROC, &few) != 0 ||
            ls_node_create(&node, &options) != LS_OK)
            return 2;
        status = ls_node_open(node);
        if (status != LS_OK && strstr(ls_error_text(), "ulimit -u") == NULL)
            return 3;
        failed += status == LS_EAGAIN;
        ls_node_destroy(&node);
    }
    return failed < 3 ? 4 : 0;
}

/* Nor does it find room for its threads. The limit is not for root, and counts
 * all that a user has. */
TEST(a_node_without_threads_says_so)
{
    int ended = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_out_of_threads());
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}
