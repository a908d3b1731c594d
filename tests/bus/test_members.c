/* Members that come, leave, come back and die, and who is told. */
#define _GNU_SOURCE /* environ */
#include "test.h"
#include "world_fixture.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

/* What a node was told, events and members, as words in their order. */
struct told {
    struct counter n;
    char text[2048];
    struct ls_member last;
    struct counter ready, left, lost;
};

static void told_init(struct told *told)
{
    told->text[0] = '\0';
    counter_init(&told->n);
    counter_init(&told->ready);
    counter_init(&told->left);
    counter_init(&told->lost);
}

static void told_fini(struct told *told)
{
    counter_fini(&told->n);
    counter_fini(&told->ready);
    counter_fini(&told->left);
    counter_fini(&told->lost);
}

static void say(struct told *told, const char *word, uint32_t id)
{
    const size_t used = strlen(told->text);
    (void)snprintf(told->text + used, sizeof told->text - used, "%s%s %u",
                   used != 0 ? ", " : "", word, id);
    counter_add(&told->n, 1);
}

static void on_member(void *self, const struct ls_member *member)
{
    struct told *told = self;
    told->last = *member;
    if (member->state == LS_MEMBER_READY) {
        say(told, "ready", member->id);
        counter_add(&told->ready, 1);
    } else if (member->state == LS_MEMBER_LEFT) {
        say(told, "left", member->id);
        counter_add(&told->left, 1);
    } else {
        say(told, "lost", member->id);
        counter_add(&told->lost, 1);
    }
}

static int on_event(void *self, const struct ls_event *event)
{
    say(self, "event", event->origin);
    return LS_OK;
}

static void tell(ls_node *node, size_t index, void *self)
{
    struct told *told = (struct told *)self + index;
    told_init(told);
    assert_ok(ls_on(node, "x", on_event, told));
    assert_ok(ls_node_on_member(node, on_member, told));
}

/* ---- being told -------------------------------------------------------- */

TEST(a_member_that_comes_and_leaves_is_told_with_its_reason)
{
    struct world *world = calloc(1, sizeof *world);
    struct told told[2];
    world_start(world,
                &(struct world_plan){.n = 2, .prepare = tell, .self = told});
    assert_reaches(&told[0].ready, 1);
    assert_int_equal(told[0].last.id, 2);
    assert_true(told[0].last.incarnation ==
                ls_node_incarnation(world->at[1].node));
    ls_node_stop(world->at[1].node, LS_EABORTED);
    assert_reaches(&told[0].left, 1);
    assert_int_equal(told[0].last.state, LS_MEMBER_LEFT);
    assert_int_equal(told[0].last.reason, LS_EABORTED);
    world_destroy(world);
    assert_string_equal(told[0].text, "ready 2, left 2");
    told_fini(&told[0]);
    told_fini(&told[1]);
    free(world);
}

static void leave_behind_events(enum ls_topology topology)
{
    struct world *world = calloc(1, sizeof *world);
    struct told told[3];
    world_start(world, &(struct world_plan){.n = 3,
                                            .topology = topology,
                                            .prepare = tell,
                                            .self = told});
    for (size_t i = 0; i < 3; i++)
        assert_reaches(&told[i].ready, 2);
    for (int i = 0; i < 20; i++)
        assert_ok(ls_emit(world->at[2].node, "x", "data", 4));
    ls_node_stop(world->at[2].node, LS_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_reaches(&told[i].left, 1);
        assert_int_equal(counter_get(&told[i].n), 2 + 20 + 1);
        assert_string_equal(strrchr(told[i].text, ','), ", left 3");
    }
    world_destroy(world);
    for (size_t i = 0; i < 3; i++)
        told_fini(&told[i]);
    free(world);
}

TEST(what_a_member_emitted_is_handled_before_its_leaving)
{
    leave_behind_events(LS_TOPOLOGY_MESH);
    leave_behind_events(LS_TOPOLOGY_STAR);
}

TEST(those_that_are_ready_are_told_first)
{
    struct world *world = calloc(1, sizeof *world);
    struct told told[3], other;
    told_init(&other);
    world_start(world,
                &(struct world_plan){.n = 3, .prepare = tell, .self = told});
    assert_reaches(&told[0].ready, 2);
    assert_ok(ls_node_on_member(world->at[0].node, on_member, &other));
    assert_reaches(&other.ready, 2);
    assert_int_equal(counter_get(&told[0].ready), 2); /* not again */
    assert_ok(ls_node_on_member(world->at[0].node, NULL, &told[0]));
    assert_ok(ls_node_on_member(world->at[0].node, NULL, &told[0]));
    ls_node_destroy(&world->at[2].node);
    assert_reaches(&other.left, 1);
    assert_int_equal(counter_get(&told[0].left), 0); /* taken away */
    world_destroy(world);
    for (size_t i = 0; i < 3; i++)
        told_fini(&told[i]);
    told_fini(&other);
    free(world);
}

struct slow {
    struct counter entered, may_leave, left;
};

static void on_member_slowly(void *self, const struct ls_member *member)
{
    struct slow *slow = self;
    (void)member;
    counter_add(&slow->entered, 1);
    if (!counter_reaches(&slow->may_leave, 1))
        abort();
    counter_add(&slow->left, 1);
}

struct unwatch {
    ls_node *node;
    struct slow *slow;
    int left_before;
};

static void unwatch(void *self)
{
    struct unwatch *call = self;
    if (ls_node_on_member(call->node, NULL, call->slow) != LS_OK)
        abort();
    call->left_before = counter_get(&call->slow->left);
}

TEST(taking_a_watch_away_waits_until_it_does_not_run)
{
    struct world *world = calloc(1, sizeof *world);
    struct slow slow;
    ls_thread *thread;
    counter_init(&slow.entered);
    counter_init(&slow.may_leave);
    counter_init(&slow.left);
    world_start(world, &(struct world_plan){.n = 2});
    assert_ok(ls_node_on_member(world->at[0].node, on_member_slowly, &slow));
    assert_reaches(&slow.entered, 1);
    struct unwatch call = {world->at[0].node, &slow, 0};
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "unwatch", unwatch,
                              &call));
    assert_fails(ls_thread_join(&thread, ls_deadline(ls_runtime_threads(), 5)),
                 LS_ETIMEDOUT);
    counter_add(&slow.may_leave, 1);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(call.left_before, 1);
    world_destroy(world);
    counter_fini(&slow.entered);
    counter_fini(&slow.may_leave);
    counter_fini(&slow.left);
    free(world);
}

/* ---- the list of members ----------------------------------------------- */

static void give_roles(struct ls_node_options *options, size_t index)
{
    static const char *const roles[] = {"hub", "learner", "collector"};
    options->role = roles[index];
    options->labels = index == 2 ? "gpu,fast" : NULL;
}

TEST(members_are_listed_by_id)
{
    struct world *world = calloc(1, sizeof *world);
    static const uint32_t ids[] = {50, 4294967295u, 7};
    struct ls_member members[3];
    world_start(world,
                &(struct world_plan){.n = 3, .ids = ids, .tune = give_roles});
    members[2].id = 99;
    assert_int_equal(ls_node_members(world->at[0].node, members, 3), 2);
    assert_int_equal(members[0].id, 7);
    assert_int_equal(members[1].id, 4294967295u);
    assert_int_equal(members[2].id, 99); /* untouched */
    assert_string_equal(members[0].role, "collector");
    assert_string_equal(members[0].labels, "gpu,fast");
    assert_string_equal(members[1].labels, "");
    assert_string_equal(ls_node_labels(world->at[2].node), "gpu,fast");
    assert_string_equal(members[0].endpoint,
                        ls_node_endpoint(world->at[2].node));
    assert_true(members[0].incarnation ==
                ls_node_incarnation(world->at[2].node));
    assert_int_equal(members[0].state, LS_MEMBER_READY);
    assert_true(members[0].heard_at != 0);
    members[1].id = 99;
    assert_int_equal(ls_node_members(world->at[0].node, members, 1), 2);
    assert_int_equal(members[0].id, 7);
    assert_int_equal(members[1].id, 99);
    assert_int_equal(ls_node_members(world->at[0].node, NULL, 0), 2);
    world_destroy(world);
    free(world);
}

static void share(struct ls_node_options *options, size_t index)
{
    options->shared_bytes = index == 2 ? 0 : 4096;
}

TEST(members_that_share_memory_have_one_host)
{
    struct world *world = calloc(1, sizeof *world);
    struct ls_member member;
    world_start(
        world, &(struct world_plan){.n = 3, .transport = "tcp", .tune = share});
    ls_node *const node = world->at[0].node;
    assert_int_not_equal(ls_node_host(node), 0);
    assert_ok(ls_node_member(node, 2, &member));
    assert_true(member.host == ls_node_host(node));
    assert_true(member.host == ls_node_host(world->at[1].node));
    assert_ok(ls_node_member(node, 3, &member));
    assert_int_equal(member.host, 0);
    assert_int_equal(ls_node_host(world->at[2].node), 0);
    world_destroy(world);
    free(world);
}

TEST(who_shares_none_is_on_a_host_of_its_own)
{
    static const struct world_plan plans[] = {
        {.n = 2}, /* over inproc */
        {.n = 2, .transport = "ipc", .topology = LS_TOPOLOGY_STAR}};
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        struct world *world = calloc(1, sizeof *world);
        struct ls_member member;
        world_start(world, &plans[i]);
        assert_int_equal(ls_node_host(world->at[0].node), 0);
        assert_ok(ls_node_member(world->at[0].node, 2, &member));
        assert_int_equal(member.host, 0);
        world_destroy(world);
        free(world);
    }
}

TEST(those_that_left_stay_listed)
{
    struct world *world = calloc(1, sizeof *world);
    struct told told[2];
    struct ls_member member;
    world_start(world,
                &(struct world_plan){.n = 2, .prepare = tell, .self = told});
    ls_node_stop(world->at[1].node, LS_EIO);
    assert_reaches(&told[0].left, 1);
    assert_int_equal(ls_node_members(world->at[0].node, &member, 1), 1);
    assert_int_equal(member.state, LS_MEMBER_LEFT);
    assert_int_equal(member.reason, LS_EIO);
    world_destroy(world);
    told_fini(&told[0]);
    told_fini(&told[1]);
    free(world);
}

/* ---- coming back ------------------------------------------------------- */

/* Who has not read a farewell in time takes the member for lost. */
static void linger(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->linger_ms = 10000;
}

/* Node 3 stops, and another life of it starts at the same address. */
static void restart(const char *transport, enum ls_topology topology)
{
    struct world *world = calloc(1, sizeof *world);
    struct told told[3], again;
    const struct world_plan plan = {.n = 3,
                                    .transport = transport,
                                    .topology = topology,
                                    .tune = linger,
                                    .prepare = tell,
                                    .self = told};
    char bind[LS_ENDPOINT_MAX + 1];
    world_start(world, &plan);
    const uint64_t life = ls_node_incarnation(world->at[2].node);
    strcpy(bind, ls_node_endpoint(world->at[2].node));
    ls_node_destroy(&world->at[2].node);
    world->at[2].node = world_late(world, &plan, 3, bind);
    tell(world->at[2].node, 0, &again);
    assert_ok(ls_node_start(world->at[2].node));
    assert_true(ls_node_incarnation(world->at[2].node) != life);
    assert_ok(ls_emit(world->at[2].node, "x", NULL, 0));
    assert_ok(ls_emit(world->at[0].node, "x", NULL, 0));
    for (size_t i = 0; i < 2; i++) {
        assert_reaches(&told[i].ready, 3);
        assert_reaches(&told[i].n, 6); /* and left, and two events */
        assert_int_equal(counter_get(&told[i].left), 1);
        assert_int_equal(counter_get(&told[i].lost), 0);
    }
    assert_reaches(&again.n, 4);
    assert_reaches(&again.ready, 2);
    world_destroy(world);
    for (size_t i = 0; i < 3; i++)
        told_fini(&told[i]);
    told_fini(&again);
    free(world);
}

TEST(an_id_comes_back_in_a_new_life)
{
    restart("inproc", LS_TOPOLOGY_MESH);
    restart("ipc", LS_TOPOLOGY_MESH);
    restart("port", LS_TOPOLOGY_MESH);
    restart("port", LS_TOPOLOGY_STAR);
    restart("inproc", LS_TOPOLOGY_STAR);
}

#define WINDOW 16

static void small_windows(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->window_messages = WINDOW;
}

/* It handles nothing until it may. */
struct stuck {
    struct counter may, handled;
};

static int handle_late(void *self, const struct ls_event *event)
{
    struct stuck *stuck = self;
    (void)event;
    if (!counter_reaches(&stuck->may, 1))
        return LS_ETIMEDOUT;
    counter_add(&stuck->handled, 1);
    return LS_OK;
}

static void listen_late(ls_node *node, size_t index, void *self)
{
    if (index == 0)
        assert_ok(ls_on(node, "x", handle_late, self));
}

static int emit_within(ls_node *node, int ms)
{
    return ls_emit_with(node,
                        &(struct ls_emission){.event = "x", .timeout_ms = ms});
}

TEST(a_new_life_gets_no_window_on_top_of_what_waits_of_the_one_before)
{
    struct world *world = calloc(1, sizeof *world);
    struct stuck stuck;
    char bind[LS_ENDPOINT_MAX + 1];
    const struct world_plan plan = {
        .n = 2, .tune = small_windows, .prepare = listen_late, .self = &stuck};
    counter_init(&stuck.may);
    counter_init(&stuck.handled);
    world_start(world, &plan);
    strcpy(bind, ls_node_endpoint(world->at[1].node));
    for (int i = 0; i < WINDOW; i++)
        assert_ok(emit_within(world->at[1].node, LONG_MS));
    for (int life = 0; life < 2; life++) {
        ls_node_destroy(&world->at[1].node);
        world->at[1].node = world_late(world, &plan, 2, bind);
        assert_ok(ls_node_start(world->at[1].node));
        assert_fails(emit_within(world->at[1].node, 100), LS_EAGAIN);
    }
    counter_add(&stuck.may, 1);
    assert_ok(emit_within(world->at[1].node, LONG_MS));
    assert_reaches(&stuck.handled, WINDOW + 1);
    world_destroy(world);
    counter_fini(&stuck.may);
    counter_fini(&stuck.handled);
    free(world);
}

/* ---- dying ------------------------------------------------------------- */

extern char **environ;

/* This program again, as a member that stays until it is killed. */
static pid_t spawn_member(const char *seed, const char *bind)
{
    char arg0[] = "test_members", arg1[] = "member";
    char arg2[LS_ENDPOINT_MAX + 1], arg3[LS_ENDPOINT_MAX + 1];
    char *argv[] = {arg0, arg1, arg2, arg3, NULL};
    pid_t pid;
    strcpy(arg2, seed);
    strcpy(arg3, bind);
    assert_int_equal(
        posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    return pid;
}

static int be_a_member(const char *seed, const char *bind)
{
    struct ls_node_options options;
    ls_node *node;
    struct counter never;
    ls_node_options_init(&options);
    options.id = 9;
    options.bind = bind;
    options.attach = &seed;
    options.n_attach = 1;
    options.world_size = 2;
    counter_init(&never);
    if (ls_node_create(&node, &options) != LS_OK ||
        ls_node_start(node) != LS_OK)
        return 1;
    return counter_reaches(&never, 1) ? 0 : 1;
}

struct death {
    char folder[32];
    ls_node *node;
    struct told told;
    pid_t pid;
};

static void death_begin(struct death *death)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = 1;
    options.heartbeat_ms = 50;
    options.silence_ms = 1000;
    assert_ok(ls_node_create(&death->node, &options));
    tell(death->node, 0, &death->told);
    assert_ok(ls_node_start(death->node));
    /* By a file of its own: nobody else takes the address of the dead, who is
     * gone for sure only when nobody answers there. */
    strcpy(death->folder, "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(death->folder));
    char bind[64];
    (void)snprintf(bind, sizeof bind, "ipc://%s/member", death->folder);
    death->pid = spawn_member(ls_node_endpoint(death->node), bind);
    assert_reaches(&death->told.ready, 1);
}

static void death_end(struct death *death)
{
    int status;
    (void)kill(death->pid, SIGKILL);
    assert_int_equal(waitpid(death->pid, &status, 0), death->pid);
    ls_node_destroy(&death->node);
    char file[64];
    (void)snprintf(file, sizeof file, "%s/member", death->folder);
    (void)unlink(file);
    assert_int_equal(rmdir(death->folder), 0);
    told_fini(&death->told);
}

TEST(a_killed_member_is_lost)
{
    struct death death;
    death_begin(&death);
    (void)kill(death.pid, SIGKILL);
    assert_reaches(&death.told.lost, 1);
    assert_int_equal(death.told.last.id, 9);
    assert_int_equal(death.told.last.state, LS_MEMBER_LOST);
    assert_int_equal(death.told.last.reason, LS_ELOST);
    death_end(&death);
}

TEST(a_silent_member_is_lost_and_comes_back_as_a_new_one)
{
    struct death death;
    death_begin(&death);
    (void)kill(death.pid, SIGSTOP);
    assert_reaches(&death.told.lost, 1);
    assert_int_equal(death.told.last.reason, LS_ETIMEDOUT);
    const uint64_t life = death.told.last.incarnation;
    (void)kill(death.pid, SIGCONT);
    assert_reaches(&death.told.ready, 2);
    assert_int_equal(death.told.last.state, LS_MEMBER_READY);
    assert_true(death.told.last.incarnation != life);
    assert_int_equal(counter_get(&death.told.lost), 1);
    death_end(&death);
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return be_a_member(argv[2], argv[3]);
    return tests_run();
}
