/* Worlds: how they form, who is in them, how members come and go. */
#include "world_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/sanitized.h"
#include "test.h"

#define N_CROWD (SANITIZED ? 24 : 50)

/* ---- forming ----------------------------------------------------------- */

static void listen_first(ls_node *node, size_t index, void *self)
{
    struct counter *heard = self;
    counter_init(&heard[index]);
    assert_ok(ls_on(node, "first", count, &heard[index]));
}

static void join_and_emit(void *self)
{
    struct world_node *at = self;
    world_join_one(at);
    if (at->status != LS_OK)
        return;
    at->status = ls_emit(at->node, "first", NULL, 0);
    if (at->status != LS_OK)
        memcpy(at->text, ls_error_text(), strlen(ls_error_text()) + 1);
}

/* Start them one after another, beginning with `from`; each emits as soon as
 * it is started, and is heard by all. */
static void form(struct world_plan plan, size_t from)
{
    struct world *world = calloc(1, sizeof *world);
    struct counter *heard = calloc(plan.n, sizeof *heard);
    assert_true(world != NULL && heard != NULL);
    plan.prepare = listen_first;
    plan.self = heard;
    world_create(world, &plan);
    for (size_t i = 0; i < plan.n; i++)
        world_spawn(world, (from + i) % plan.n, join_and_emit);
    world_joined(world);
    for (size_t i = 0; i < plan.n; i++) {
        struct ls_node_stats stats;
        assert_reaches(&heard[i], (int)plan.n);
        assert_int_equal(ls_node_members(world->at[i].node, NULL, 0),
                         plan.n - 1);
        ls_node_stats(world->at[i].node, &stats);
        /* Not `refused`: a place where nobody answers for a while is. */
        assert_int_equal(stats.lost + stats.missed, 0);
    }
    world_destroy(world);
    for (size_t i = 0; i < plan.n; i++) {
        assert_int_equal(counter_get(&heard[i]), plan.n); /* and once */
        counter_fini(&heard[i]);
    }
    free(heard);
    free(world);
}

TEST(the_first_event_of_each_is_heard_by_all_in_a_mesh)
{
    static const char *const transports[] = {"tcp", "ipc", "inproc"};
    for (size_t i = 0; i < 3; i++)
        for (size_t from = 0; from < 8; from += 3)
            form((struct world_plan){.n = 8, .transport = transports[i]}, from);
}

TEST(the_first_event_of_each_is_heard_by_all_in_a_star)
{
    static const char *const transports[] = {"tcp", "ipc", "inproc"};
    for (size_t i = 0; i < 3; i++)
        for (size_t from = 0; from < 8; from += 3)
            form((struct world_plan){.n = 8,
                                     .transport = transports[i],
                                     .topology = LS_TOPOLOGY_STAR},
                 from);
}

TEST(ids_may_be_any)
{
    static const uint32_t ids[] = {7, 1000000, 4294967295u, 0};
    form((struct world_plan){.n = 4, .ids = ids}, 1);
    form((struct world_plan){.n = 4, .ids = ids, .topology = LS_TOPOLOGY_STAR},
         2);
}

static void name_members(struct ls_node_options *options, size_t index)
{
    static const uint32_t members[] = {3, 1, 2};
    (void)index;
    options->members = members;
}

TEST(members_may_be_named)
{
    form((struct world_plan){.n = 3, .tune = name_members}, 0);
}

/* Presences of 242 to 256 bytes, where a port has five digits. */
static void long_presence(struct ls_node_options *options, size_t index)
{
    static char job[LS_JOB_MAX + 1], labels[8][64];
    memset(job, 'j', LS_JOB_MAX);
    memset(labels[index], 'l', 48 + 2 * index);
    options->job = job;
    options->role = "a-role-of-thirty-one-characters";
    options->labels = labels[index];
    options->config_hash = UINT64_MAX;
}

TEST(names_may_be_of_any_length)
{
    form((struct world_plan){.n = 8, .transport = "tcp", .tune = long_presence},
         0);
    form((struct world_plan){.n = 8,
                             .transport = "tcp",
                             .topology = LS_TOPOLOGY_STAR,
                             .tune = long_presence},
         0);
}

/* The first node's own address, as the others have it. */
static void attach_all_alike(struct ls_node_options *options, size_t index)
{
    static const char *attach;
    if (index > 0)
        return;
    attach = options->bind;
    options->attach = &attach;
    options->n_attach = 1;
}

TEST(the_hub_of_a_star_may_be_given_its_own_address)
{
    form((struct world_plan){.n = 3,
                             .transport = "ipc",
                             .topology = LS_TOPOLOGY_STAR,
                             .tune = attach_all_alike},
         1);
}

static void crowd_options(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->heartbeat_ms = 2000;
    options->silence_ms = 60000;
    options->start_timeout_ms = 4 * LONG_MS;
}

TEST(one_process_holds_a_crowd)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    size_t n = N_CROWD;
    while (n * (n + 4) > limit.rlim_cur) /* a socket for each pair */
        n /= 2;
    form((struct world_plan){.n = n, .tune = crowd_options}, 0);
}

/* ---- topology alone ---------------------------------------------------- */

TEST(alone_knows_whom_it_was_told_and_who_came)
{
    struct world *world = calloc(1, sizeof *world);
    struct counter heard[3];
    struct ls_member member;
    world_create(world, &(struct world_plan){.n = 3,
                                             .topology = LS_TOPOLOGY_ALONE,
                                             .prepare = listen_first,
                                             .self = heard});
    /* 2 and 3 know 1 alone, so a world of three is none for them. */
    for (size_t i = 0; i < 3; i++) {
        ls_node_destroy(&world->at[i].node);
        counter_fini(&heard[i]);
    }
    const char *seed = world->seed;
    for (size_t i = 0; i < 3; i++) {
        char bind[LS_ENDPOINT_MAX + 1];
        struct ls_node_options options;
        ls_node_options_init(&options);
        fresh_endpoint(bind, sizeof bind);
        options.bind = i == 0 ? seed : bind;
        options.id = (uint32_t)i + 1;
        options.topology = LS_TOPOLOGY_ALONE;
        options.world_size = i == 0 ? 3 : 2;
        options.attach = &seed;
        options.n_attach = i == 0 ? 0 : 1;
        assert_ok(ls_node_create(&world->at[i].node, &options));
        listen_first(world->at[i].node, i, heard);
    }
    world_join(world);
    assert_int_equal(ls_node_members(world->at[0].node, NULL, 0), 2);
    assert_int_equal(ls_node_members(world->at[1].node, &member, 1), 1);
    assert_int_equal(member.id, 1);
    assert_ok(ls_emit(world->at[1].node, "first", NULL, 0));
    assert_ok(ls_emit(world->at[0].node, "first", NULL, 0));
    assert_reaches(&heard[0], 2);
    assert_reaches(&heard[1], 2);
    assert_reaches(&heard[2], 1); /* of 1, and not of 2 */
    world_destroy(world);
    for (size_t i = 0; i < 3; i++)
        counter_fini(&heard[i]);
    free(world);
}

/* ---- addresses --------------------------------------------------------- */

TEST(two_addresses_of_one_node_are_one_member)
{
    struct ls_node_options options;
    struct counter heard;
    ls_node *a, *b;
    char other[LS_ENDPOINT_MAX + 1];
    ls_node_options_init(&options);
    counter_init(&heard);
    options.id = 1;
    assert_ok(ls_node_create(&a, &options));
    assert_ok(ls_node_start(a));
    (void)snprintf(other, sizeof other, "tcp://localhost%s",
                   strrchr(ls_node_endpoint(a), ':'));
    const char *const both[] = {ls_node_endpoint(a), other};
    options.id = 2;
    options.world_size = 2;
    options.attach = both;
    options.n_attach = 2;
    assert_ok(ls_node_create(&b, &options));
    assert_ok(ls_on(b, "first", count, &heard));
    assert_ok(ls_node_start(b));
    assert_int_equal(ls_node_members(b, NULL, 0), 1);
    for (int i = 0; i < 100; i++)
        assert_ok(ls_emit(a, "first", NULL, 0));
    assert_reaches(&heard, 100);
    ls_node_destroy(&a);
    ls_node_destroy(&b);
    assert_int_equal(counter_get(&heard), 100);
    counter_fini(&heard);
}

static void attach_to_all(struct ls_node_options *options, size_t index)
{
    static char names[3][LS_ENDPOINT_MAX + 1];
    static const char *all[3] = {names[0], names[1], names[2]};
    (void)snprintf(names[index], sizeof names[index], "%s", options->bind);
    if (index == 2) { /* all of them, itself among them */
        options->attach = all;
        options->n_attach = 3;
    }
}

TEST(ones_own_address_is_passed_over)
{
    form((struct world_plan){.n = 3, .tune = attach_to_all}, 0);
}

TEST(another_name_of_ones_own_address_is_passed_over)
{
    struct ls_node_options options;
    struct counter heard;
    ls_node *node;
    char other[LS_ENDPOINT_MAX + 1];
    counter_init(&heard);
    ls_node_options_init(&options);
    options.bind = "tcp://127.0.0.1:*";
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_open(node)); /* to take a port that is free */
    (void)snprintf(other, sizeof other, "tcp://localhost%s",
                   strrchr(ls_node_endpoint(node), ':'));
    char bind[LS_ENDPOINT_MAX + 1];
    strcpy(bind, ls_node_endpoint(node));
    ls_node_destroy(&node);
    const char *attach = other;
    options.bind = bind;
    options.attach = &attach;
    options.n_attach = 1;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_on(node, "first", count, &heard));
    assert_ok(ls_node_start(node));
    assert_ok(ls_emit(node, "first", NULL, 0));
    assert_reaches(&heard, 1);
    assert_int_equal(ls_node_members(node, NULL, 0), 0);
    ls_node_destroy(&node);
    assert_int_equal(counter_get(&heard), 1);
    counter_fini(&heard);
}

/* ---- ends --------------------------------------------------------------- */

static void count_left(void *self, const struct ls_member *member)
{
    if (member->state == LS_MEMBER_LEFT)
        counter_add(self, 1);
}

static void watch_second(ls_node *node, size_t index, void *self)
{
    if (index == 1)
        assert_ok(ls_node_on_member(node, count_left, self));
}

static void linger_long(struct ls_node_options *options, size_t index)
{
    if (index == 1)
        options->linger_ms = 600000;
}

/* Wait until somebody dials this address of a world over "port". */
static void answer_once(const char *endpoint)
{
    const int one = 1;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = inet_addr(loopback()),
        .sin_port = htons((uint16_t)atoi(strrchr(endpoint, ':') + 1))};
    assert_int_equal(
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(
        bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    const int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    close(fd);
    close(listener);
}

/* libzmq dials on, to say again what was subscribed there: this would take the
 * ten minutes of linger_ms. */
TEST(who_leaves_does_not_wait_for_one_that_has_left)
{
    char endpoint[LS_ENDPOINT_MAX + 1];
    struct world world;
    struct counter left;
    counter_init(&left);
    world_start(&world, &(struct world_plan){.n = 2,
                                             .transport = "port",
                                             .tune = linger_long,
                                             .prepare = watch_second,
                                             .self = &left});
    strcpy(endpoint, ls_node_endpoint(world.at[0].node));
    assert_ok(ls_node_destroy(&world.at[0].node));
    assert_reaches(&left, 1);
    answer_once(endpoint);
    assert_ok(ls_node_destroy(&world.at[1].node));
    counter_fini(&left);
}
