/* Replicas: how many ids there are, who gives them out, and where. */
#include "plan_lease.h"

#include "plan_reading.h"
#include "test.h"

#define REPLICAS                                                               \
    "plugin: p\n"                                                              \
    "nodes:\n"                                                                 \
    "  - role: learner\n"                                                      \
    "  - {role: collector, replicas: 3}\n"                                     \
    "  - role: evaluator\n"
#define CURVE "security: {mode: curve, keys: keys}\n"

TEST(replicas_are_nodes_that_are_given_their_ids)
{
    struct plan plan;
    read_good(&plan, REPLICAS);
    assert_int_equal(plan.n_nodes, 5);
    assert_true(plan_has_leases(&plan));
    assert_int_equal(plan_n_leases(&plan, PLAN_COLLECTOR), 3);
    assert_int_equal(plan_n_leases(&plan, PLAN_LEARNER), 0);
    for (size_t i = 0; i < plan.n_nodes; i++) {
        assert_int_equal(plan.nodes[i].id, i);
        assert_int_equal(plan.nodes[i].leased, i >= 1 && i <= 3);
    }
    plan_fini(&plan);
    read_good(&plan, FIVE);
    assert_false(plan_has_leases(&plan));
    plan_fini(&plan);
}

TEST(the_coordinator_or_the_lowest_id_gives_them)
{
    static const struct {
        const char *nodes;
        uint32_t id;
    } cases[] = {
        {"[{role: learner}, {role: collector, replicas: 2}]", 0},
        {"[{role: learner, id: 9}, {role: collector, replicas: 2},\n"
         " {role: evaluator, id: 4}]",
         4},
        {"[{role: member, replicas: 2}, {role: member}]", 2},
        {"[{role: learner}, {role: collector, replicas: 2},\n"
         " {role: coordinator, id: 7}]",
         7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        struct plan plan;
        (void)snprintf(text, sizeof text, "%snodes: %s\n",
                       strstr(cases[i].nodes, "member") != NULL ? ""
                                                                : "plugin: p\n",
                       cases[i].nodes);
        read_good(&plan, text);
        assert_int_equal(plan.nodes[plan_lease_giver(&plan)].id, cases[i].id);
        plan_fini(&plan);
    }
}

TEST(where_is_known_from_the_file)
{
    static const struct {
        const char *text, *bind, *advertise;
    } cases[] = {
        {REPLICAS, "tcp://127.0.0.1:21999", "tcp://127.0.0.1:21999"},
        {REPLICAS "world: {ports: 4000-4010}\n", "tcp://127.0.0.1:4010",
         "tcp://127.0.0.1:4010"},
        {REPLICAS "world: {transport: ipc, dir: /run/x}\n",
         "ipc:///run/x/lockstep-leases.ipc",
         "ipc:///run/x/lockstep-leases.ipc"},
        {REPLICAS "world: {transport: ipc}\n", "ipc:///tmp/lockstep-leases.ipc",
         "ipc:///tmp/lockstep-leases.ipc"},
        {REPLICAS CURVE "world: {leases: 'tcp://[fd00::7]:77'}\n",
         "tcp://[::]:77", "tcp://[fd00::7]:77"},
        {REPLICAS CURVE "world: {leases: 'tcp://red:77'}\n", "tcp://0.0.0.0:77",
         "tcp://red:77"},
        {"plugin: p\nnodes: [{role: learner, host: red},\n"
         "  {role: collector, replicas: 2}]\n" CURVE,
         "tcp://0.0.0.0:21999", "tcp://red:21999"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan plan;
        struct plan_lease_place place;
        read_good(&plan, cases[i].text);
        assert_ok(plan_lease_place(&plan, &place));
        assert_string_equal(place.bind, cases[i].bind);
        assert_string_equal(place.advertise, cases[i].advertise);
        plan_fini(&plan);
    }
}

TEST(an_endpoint_that_is_too_long_is_refused)
{
    char text[1024], dir[LS_ENDPOINT_MAX];
    struct plan plan;
    struct plan_lease_place place;
    memset(dir, 'x', sizeof dir - 1);
    dir[sizeof dir - 1] = '\0';
    (void)snprintf(text, sizeof text,
                   REPLICAS "world: {transport: ipc, dir: /%s}\n", dir);
    read_plan(&plan, text);
    assert_fails(plan_lease_place(&plan, &place), LS_ECONFIG);
    assert_error_has("world.leases");
    plan_fini(&plan);
}

TEST(its_world_has_a_name_of_its_own)
{
    char name[PLAN_LEASE_JOB_MAX], job[LS_JOB_MAX + 1];
    struct plan plan = {.job = "train"};
    plan_lease_job(&plan, name);
    assert_string_equal(name, "train.leases");
    memset(job, 'x', LS_JOB_MAX);
    job[LS_JOB_MAX] = '\0';
    plan.job = job;
    plan_lease_job(&plan, name);
    assert_int_equal(strlen(name), LS_JOB_MAX);
    assert_string_equal(name + LS_JOB_MAX - 7, ".leases");
}

TEST(what_does_not_go_together_is_told)
{
    assert_problem("plugin: p\nnodes:\n- role: learner\n"
                   "- {role: collector, count: 2, replicas: 2}\n",
                   "job.yaml:4:", "say one of them");
    assert_problem("plugin: p\nnodes:\n- {role: learner, replicas: 1}\n"
                   "- {role: collector, replicas: 2}\n",
                   "job.yaml:2:", "give the replicas their ids");
    assert_problem("plugin: p\nnodes: [{role: learner}, {role: collector},\n"
                   "{role: coordinator, replicas: 1}]\n",
                   "job.yaml:2:", "count for the coordinator");
    assert_problem(REPLICAS CURVE "world: {topology: star}\n",
                   "job.yaml:2:", "topology: mesh");
    assert_problem(FIVE "world: {leases: 'tcp://a:1'}\n",
                   "job.yaml:6:", "no item of nodes says replicas");
    assert_problem(REPLICAS "world: {leases: 'tcp://red:1'}\n",
                   "job.yaml:6:", "beyond this machine");
    assert_problem(REPLICAS "world: {leases: here}\n",
                   "job.yaml:6:", "expected tcp://");
    assert_problem(REPLICAS "world: {leases: 'tcp://127.0.0.1:1-9'}\n",
                   "job.yaml:6:", "a range of ports");
    assert_problem(REPLICAS "world: {leases: 'inproc://x'}\n",
                   "job.yaml:6:", "separate processes");
}
