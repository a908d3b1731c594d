/* What a configuration comes to, and what is said of one that is wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan_reading.h"
#include "test.h"

TEST(smallest_file_gets_defaults)
{
    struct plan plan;
    read_good(&plan, FIVE);
    assert_string_equal(plan.job, "lockstep");
    assert_string_equal(plan.out, "out/lockstep");
    assert_int_equal(plan.seed, 0);
    assert_int_equal(plan.world.topology, LS_TOPOLOGY_MESH);
    assert_int_equal(plan.world.transport, PLAN_TCP);
    assert_int_equal(plan.world.first_port, 21500);
    assert_int_equal(plan.world.last_port, 21999);
    assert_int_equal(plan.episodes, 20);
    assert_true(isnan(plan.solved));
    plan_fini(&plan);
}

TEST(values_are_taken_over)
{
    struct plan plan;
    read_good(&plan, "job: a-job\nseed: 7\nout: some/where\n" FIVE
                     "world: {topology: star, transport: ipc, dir: /run/x,\n"
                     "        start_timeout_s: 2.5, heartbeat_ms: 100}\n"
                     "collector: {envs: 2, steps: 32}\n"
                     "evaluator: {episodes: 5, solved: -3, every: 2}\n"
                     "stop: {env_step: 1000, minutes: 1.5}\n");
    assert_string_equal(plan.job, "a-job");
    assert_string_equal(plan.out, "some/where");
    assert_int_equal(plan.seed, 7);
    assert_int_equal(plan.world.topology, LS_TOPOLOGY_STAR);
    assert_int_equal(plan.world.transport, PLAN_IPC);
    assert_string_equal(plan.world.dir, "/run/x");
    assert_int_equal(plan.world.start_timeout_ms, 2500);
    assert_int_equal(plan.world.heartbeat_ms, 100);
    assert_int_equal(plan.envs, 2);
    assert_int_equal(plan.steps, 32);
    assert_int_equal(plan.episodes, 5);
    assert_true(plan.solved == -3.0);
    assert_int_equal(plan.every, 2);
    assert_int_equal(plan.stop_env_step, 1000);
    assert_true(plan.stop_minutes == 1.5);
    plan_fini(&plan);
}

TEST(ports_are_a_range)
{
    struct plan plan;
    read_good(&plan, FIVE "world: {ports: 4000-4010}\n");
    assert_int_equal(plan.world.first_port, 4000);
    assert_int_equal(plan.world.last_port, 4010);
    plan_fini(&plan);
    read_good(&plan, FIVE "world: {ports: '4007'}\n");
    assert_int_equal(plan.world.first_port, 4007);
    assert_int_equal(plan.world.last_port, 4007);
    plan_fini(&plan);
}

TEST(ids_count_up_in_the_order_of_the_file)
{
    struct plan plan;
    read_good(&plan, FIVE);
    static const enum plan_role roles[] = {PLAN_LEARNER, PLAN_COLLECTOR,
                                           PLAN_COLLECTOR, PLAN_COLLECTOR,
                                           PLAN_EVALUATOR};
    assert_int_equal(plan.n_nodes, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(plan.nodes[i].id, i);
        assert_int_equal(plan.nodes[i].role, roles[i]);
    }
    assert_int_equal(plan.first, 0);
    plan_fini(&plan);
}

TEST(named_ids_are_kept_and_the_others_fill_the_gaps)
{
    struct plan plan;
    read_good(&plan, "plugin: p\n"
                     "nodes:\n"
                     "  - role: evaluator\n"
                     "  - {role: collector, count: 2, id: 1}\n"
                     "  - {role: collector, count: 2}\n"
                     "  - {role: learner, id: 4294967294}\n");
    static const uint32_t ids[] = {0, 1, 2, 3, 4, UINT32_MAX - 1};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(plan.nodes[i].id, ids[i]);
    assert_int_equal(plan.first, 5);
    size_t index = 99;
    assert_ok(plan_find(&plan, UINT32_MAX - 1, &index));
    assert_int_equal(index, 5);
    assert_fails(plan_find(&plan, 77, &index), LS_EINVAL);
    assert_error_has("0, 1, 2, 3, 4");
    plan_fini(&plan);
}

#define DIGITS_97                                                              \
    "1234567890123456789012345678901234567890123456789012345678901234567890"   \
    "123456789012345678901234567"

TEST(what_is_wrong_is_told_with_its_place)
{
    static const struct {
        const char *text, *place, *words;
    } cases[] = {
        {"nodes: [{role: learner}, {role: collector}]\n",
         "job.yaml:1:", "plugin"},
        {"plugin: p\n", "job.yaml", "nodes"},
        {"plugin: ''\nnodes: [{role: learner}, {role: collector}]\n",
         "job.yaml:1:9", "the plugin has no name"},
        {FIVE "sead: 1\n", "job.yaml:6:1", "did you mean \"seed\""},
        {"plugin: p\nnodes: [{role: lerner}, {role: collector}]\n",
         "job.yaml:2:16", "did you mean \"learner\""},
        {"plugin: p\nnodes: [{role: learner}]\n",
         "job.yaml:2:", "no collector"},
        {"plugin: p\nnodes: [{role: collector}]\n",
         "job.yaml:2:", "exactly one learner; here are 0"},
        {"plugin: p\nnodes: [{role: learner, count: 2}, {role: collector}]\n",
         "job.yaml:2:", "exactly one learner; here are 2. To have them share"},
        {"plugin: p\nnodes:\n- {role: learner, id: 3}\n"
         "- {role: collector, id: 2, count: 2}\n",
         "job.yaml:4:25", "id 3 is given twice; a learner has it"},
        {"plugin: p\nnodes:\n- role: learner\n"
         "- {role: collector, id: 4294967294, count: 2}\n",
         "job.yaml:4:", "past the largest"},
        {"plugin: p\nnodes:\n- {role: learner, id: 4294967295}\n"
         "- {role: collector}\n",
         "job.yaml:3:", "from 0 to 4294967294"},
        {"plugin: p\nnodes:\n- role: learner\n"
         "- {role: collector, count: 1024}\n",
         "job.yaml:4:", "1025 nodes; at most 1024"},
        {FIVE "world: {topology: ring}\n", "job.yaml:6:19", "mesh"},
        {FIVE "world: {ports: 9-8}\n", "job.yaml:6:", "range of ports"},
        {FIVE "world: {ports: 0-8}\n", "job.yaml:6:", "range of ports"},
        {FIVE "world: {ports: 1-65536}\n", "job.yaml:6:", "range of ports"},
        {FIVE "world: {ports: +1-8}\n", "job.yaml:6:", "range of ports"},
        {FIVE "world: {ports: 1-+8}\n", "job.yaml:6:", "range of ports"},
        {FIVE "world: {ports: ' 1-8'}\n", "job.yaml:6:", "range of ports"},
        {FIVE "world: {ports: 1-}\n", "job.yaml:6:", "range of ports"},
        {FIVE "world: {ports: '4294967297'}\n",
         "job.yaml:6:", "range of ports"},
        {FIVE "world: {heartbeat_ms: 1000, silence_ms: 1500}\n",
         "job.yaml:6:", "two heartbeats"},
        {FIVE "world: {dir: here}\n", "job.yaml:6:", "whole path"},
        {FIVE "collector: {steps: many}\n", "job.yaml:6:", "whole number"},
        {FIVE "job: a job\n", "job.yaml:6:", "letters, digits"},
        {FIVE "job: ..\n", "job.yaml:6:", "not dots alone"},
        {FIVE "world: {transport: ipc, dir: '/tmp/a b'}\n",
         "job.yaml:6:", "\"ipc:///tmp/a b/lockstep-0.ipc\": an address has no"},
        {FIVE "world: {transport: ipc, dir: /" DIGITS_97 "}\n",
         "job.yaml:6:", "at most 107 bytes"},
        {FIVE "world: {transport: ipc, dir: /" DIGITS_97 DIGITS_97 DIGITS_97
              "}\n",
         "job.yaml:6:", "at most 107 bytes"},
        {FIVE "out: ''\n", "job.yaml:6:", "no name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_problem(cases[i].text, cases[i].place, cases[i].words);
}

/* The learner's item with more in it. */
static void assert_node_problem(const char *more, const char *words)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "plugin: p\nnodes:\n- role: collector\n"
                   "- {role: learner, %s}\n",
                   more);
    assert_problem(text, "job.yaml:4:", words);
}

TEST(a_node_fails_the_run_unless_its_entry_says_else)
{
    struct plan plan;
    read_good(&plan, FIVE);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(plan.nodes[i].on_loss, PLAN_FAIL);
    assert_false(plan_can_lose_nodes(&plan));
    plan_fini(&plan);

    read_good(&plan, "plugin: p\nnodes:\n"
                     "- {role: learner, on_loss: restart}\n"
                     "- {role: collector, count: 2, on_loss: restart,\n"
                     "   max_restarts: 7, restart_window_s: 60,\n"
                     "   backoff_ms: 50}\n"
                     "- {role: evaluator, on_loss: go_on}\n");
    assert_true(plan_can_lose_nodes(&plan));
    assert_int_equal(plan.nodes[0].on_loss, PLAN_RESTART);
    assert_int_equal(plan.nodes[0].max_restarts, 3);
    assert_int_equal(plan.nodes[0].backoff_ms, 100);
    assert_int_equal(plan.nodes[2].max_restarts, 7);
    assert_true(plan.nodes[0].restart_window_s == 0.0);
    assert_true(plan.nodes[2].restart_window_s == 60.0);
    assert_int_equal(plan.nodes[2].backoff_ms, 50);
    assert_int_equal(plan.nodes[3].on_loss, PLAN_GO_ON);
    plan_fini(&plan);
}

TEST(nodes_in_step_are_saved_each_ten_seconds_unless_the_file_says_else)
{
    struct plan plan;
    read_good(&plan, FIVE);
    assert_int_equal(plan.checkpoint.every, 0);
    assert_true(plan.checkpoint.seconds == 10.0);
    assert_int_equal(plan.checkpoint.keep_last, 2);
    assert_int_equal(plan.checkpoint.keep_every, 0);
    assert_int_equal(plan.checkpoint.best, 0);
    assert_false(plan.checkpoint.goes_on);
    assert_int_equal(plan.checkpoint.from, -1);
    plan_fini(&plan);
    read_good(&plan, FIVE "checkpoint: {every: 4, seconds: 0, keep_last: 3,\n"
                          "  keep_every: 100, best: 5, on_fail: go_on}\n");
    assert_int_equal(plan.checkpoint.every, 4);
    assert_true(plan.checkpoint.seconds == 0.0);
    assert_int_equal(plan.checkpoint.keep_last, 3);
    assert_int_equal(plan.checkpoint.keep_every, 100);
    assert_int_equal(plan.checkpoint.best, 5);
    assert_true(plan.checkpoint.goes_on);
    plan_fini(&plan);
}

TEST(a_learner_has_one_stack_unless_it_says_else)
{
    struct plan plan;
    read_good(&plan, FIVE);
    assert_int_equal(plan.learner.queue, 0);
    assert_int_equal(plan.learner.stacks, 1);
    assert_int_equal(plan.learner.loaders, 0);
    assert_int_equal(plan.learner.passes, 1);
    assert_int_equal(plan.learner.n_devices, 1);
    assert_string_equal(plan.learner.devices[0], "cpu");
    plan_fini(&plan);
    read_good(&plan, FIVE "learner: {queue: 4, stacks: 2, loaders: 1,\n"
                          "  passes: 5, device: [cpu, 'cuda:1']}\n");
    assert_int_equal(plan.learner.queue, 4);
    assert_int_equal(plan.learner.stacks, 2);
    assert_int_equal(plan.learner.loaders, 1);
    assert_int_equal(plan.learner.passes, 5);
    assert_int_equal(plan.learner.n_devices, 2);
    assert_string_equal(plan.learner.devices[1], "cuda:1");
    plan_fini(&plan);
    assert_problem(FIVE "learner: {stacks: 0}\n", "stacks", "1");
    assert_problem(FIVE "learner: {passes: 0}\n", "passes", "1");
    assert_problem(FIVE "learner: {queue: 1, loaders: 2}\n", "loaders",
                   "one loader, or no queue");
    const char *const names[] = {"gpu",       "cpu3",  "'cpu:'", "'cpu:x'",
                                 "'cuda:1x'", "cudas", "''"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, FIVE "learner: {device: %s}\n",
                       names[i]);
        assert_problem(text, "device", "expected cpu, cpu:CORE, cuda");
    }
}

TEST(policies_that_make_no_sense_are_told)
{
    assert_problem("plugin: p\nnodes:\n"
                   "- {role: learner}\n"
                   "- {role: collector, on_loss: retsart}\n",
                   "4:30", "did you mean \"restart\"?");
    assert_problem("plugin: p\nnodes:\n"
                   "- {role: learner, on_loss: go_on}\n"
                   "- {role: collector}\n",
                   "3:28", "nothing is learned without the learner");
    assert_problem("plugin: p\nnodes:\n"
                   "- {role: learner}\n"
                   "- {role: collector, on_loss: go_on, max_restarts: 3}\n",
                   "4:51", "max_restarts goes with on_loss: restart only");
    assert_problem("plugin: p\nnodes:\n"
                   "- {role: learner}\n"
                   "- {role: collector, restart_window_s: 3}\n",
                   "4:39", "restart_window_s goes with on_loss: restart only");
    assert_problem("plugin: p\nnodes:\n"
                   "- {role: learner}\n"
                   "- {role: collector, on_loss: restart, max_restarts: 65,\n"
                   "   restart_window_s: 3}\n",
                   "4:53", "65 restarts within restart_window_s: at most 64");
    assert_problem("plugin: p\nnodes:\n"
                   "- {role: learner}\n"
                   "- {role: collector, on_loss: restart, backoff_ms: 10001}\n",
                   "4:51", "10000");
}

TEST(endpoints_are_checked)
{
    assert_node_problem("bind: 'udp://x:1'", "expected tcp://HOST:PORT");
    assert_node_problem("bind: 'tcp://127.0.0.1'", "expected tcp://HOST:PORT");
    assert_node_problem("bind: 'tcp://127.0.0.1:x'", "a port");
    assert_node_problem("bind: 'tcp://127.0.0.1:70000'", "1 to 65535");
    assert_node_problem("bind: 'tcp://127.0.0.1:9-8'", "1 to 65535");
    assert_node_problem("bind: 'tcp://127.0.0.1:+9'", "a port");
    assert_node_problem("bind: 'tcp://127.0.0.1:8-+9'", "1 to 65535");
    assert_node_problem("attach: 'tcp://127.0.0.1: 9'", "a port");
    assert_node_problem("bind: 'tcp://[::1:21500'", "in brackets");
    assert_node_problem("bind: 'tcp://[::1]x:21500'", "in brackets");
    assert_node_problem("bind: 'tcp://127.0.0.1:0x5'", "1 to 65535");
    assert_node_problem("bind: 'ipc://'", "a name must follow");
    assert_node_problem("bind: 'ipc:///tmp/a b'", "no blanks");
    assert_node_problem("attach: 'ipc:///tmp/ü'", "nothing but ASCII");
    assert_node_problem("bind: 'ipc:///" DIGITS_97 "1234567890'",
                        "at most 107 bytes");
    assert_node_problem("attach: 'tcp://127.0.0.1:1-9'", "for bind only");
    assert_node_problem("advertise: 'tcp://127.0.0.1:1-9'", "for bind only");
    assert_node_problem("bind: 'tcp://0.0.0.0:1'", "insecure: true");
    assert_node_problem("attach: ['tcp://127.0.0.1:1', 'tcp://far:1']",
                        "insecure: true");
    assert_node_problem("host: far", "insecure: true");
    assert_node_problem("host: 'tcp://far'", "is not a host");
    assert_node_problem("host: 'fd00::7'", "in brackets");
    assert_node_problem("host: 'far:21500'", "has no port");
    assert_node_problem("bind: 'tcp://::1:21500'", "in brackets");
    assert_node_problem("host: 'x{hostname}'", "all of a host or none");
    assert_node_problem("host: localhost, bind: 'tcp://127.0.0.1:1'",
                        "give either");
}

TEST(nodes_of_one_item_need_places_of_their_own)
{
    static const char *const texts[] = {
        "plugin: p\nnodes:\n- role: learner\n"
        "- {role: collector, count: 2, bind: 'tcp://127.0.0.1:500'}\n",
        "plugin: p\nnodes:\n- role: learner\n"
        "- {role: collector, count: 2, bind: 'ipc:///tmp/a-b'}\n"};
    for (size_t i = 0; i < 2; i++)
        assert_problem(texts[i], "job.yaml:4:", "cannot all listen at");
    struct plan plan;
    read_good(&plan, "plugin: p\nnodes:\n- role: learner\n"
                     "- {role: collector, count: 2, bind: 'ipc:///t/{id}'}\n"
                     "- {role: evaluator, count: 2,\n"
                     "   bind: 'tcp://127.0.0.1:500-509'}\n");
    assert_string_equal(plan.nodes[1].bind, "ipc:///t/1");
    assert_string_equal(plan.nodes[2].bind, "ipc:///t/2");
    plan_fini(&plan);
}

TEST(run_attaches_all_to_the_first_node)
{
    struct plan plan;
    struct plan_endpoints endpoints;
    read_good(&plan, FIVE);
    assert_ok(plan_endpoints_here(&plan, 0, NULL, NULL, &endpoints));
    assert_string_equal(endpoints.bind, "tcp://127.0.0.1:21500-21999");
    assert_int_equal(endpoints.n_attach, 0);
    assert_ok(plan_endpoints_here(&plan, 4, "tcp://127.0.0.1:21507", NULL,
                                  &endpoints));
    assert_int_equal(endpoints.n_attach, 1);
    assert_string_equal(endpoints.attach[0], "tcp://127.0.0.1:21507");
    plan_fini(&plan);
}

TEST(other_transports_get_names)
{
    struct plan plan;
    struct plan_endpoints endpoints;
    read_good(&plan, "job: j\n" FIVE "world: {transport: ipc}\n");
    assert_ok(plan_endpoints_here(&plan, 3, "x", "/run/d", &endpoints));
    assert_string_equal(endpoints.bind, "ipc:///run/d/j-3.ipc");
    char dir[300];
    memset(dir, 'd', sizeof dir);
    dir[sizeof dir - 1] = '\0';
    assert_fails(plan_endpoints_here(&plan, 3, "x", dir, &endpoints),
                 LS_ECONFIG);
    plan_fini(&plan);
    read_good(&plan, "job: j\n" FIVE /* nobody shows a secret */
                     "world: {transport: ipc, dir: '/tmp/a b', "
                     "insecure: true}\n");
    plan_fini(&plan);
    read_good(&plan, "job: j\n" FIVE "world: {transport: inproc}\n");
    assert_ok(plan_endpoints_here(&plan, 3, "x", NULL, &endpoints));
    assert_string_equal(endpoints.bind, "inproc://j-3");
    plan_fini(&plan);
}

TEST(hosts_are_for_nodes_that_run_alone)
{
    struct plan plan;
    struct plan_endpoints endpoints;
    read_good(&plan, "plugin: p\nworld: {insecure: true, ports: 500-509}\n"
                     "nodes:\n"
                     "- {role: learner, host: red}\n"
                     "- {role: collector, count: 2, host: 'blue{id}'}\n"
                     "- {role: evaluator, count: 2, host: red}\n");
    assert_ok(plan_endpoints_alone(&plan, 0, &endpoints));
    assert_string_equal(endpoints.bind, "tcp://0.0.0.0:500");
    assert_string_equal(endpoints.advertise, "tcp://red:500");
    assert_int_equal(endpoints.n_attach, 0);
    assert_ok(plan_endpoints_alone(&plan, 2, &endpoints));
    assert_string_equal(endpoints.advertise, "tcp://blue2:500");
    assert_int_equal(endpoints.n_attach, 1);
    assert_string_equal(endpoints.attach[0], "tcp://red:500");
    /* Several on one host listen one above the other. */
    assert_ok(plan_endpoints_alone(&plan, 4, &endpoints));
    assert_string_equal(endpoints.bind, "tcp://0.0.0.0:502");
    assert_string_equal(endpoints.advertise, "tcp://red:502");
    /* A loopback name stays one. */
    struct plan near;
    read_good(&near, "plugin: p\nworld: {ports: 500-509}\nnodes:\n"
                     "- {role: learner, host: localhost}\n"
                     "- {role: collector, host: '127.0.1.{id}'}\n");
    assert_ok(plan_endpoints_alone(&near, 1, &endpoints));
    assert_string_equal(endpoints.bind, "tcp://127.0.1.1:500");
    assert_string_equal(endpoints.attach[0], "tcp://localhost:500");
    plan_fini(&near);
    /* IPv6 listens at IPv6. */
    read_good(&near, "plugin: p\nworld: {insecure: true, ports: 500-509}\n"
                     "nodes:\n"
                     "- {role: learner, host: '[fd00::7]'}\n"
                     "- {role: collector, host: '[::1]'}\n");
    assert_ok(plan_endpoints_alone(&near, 0, &endpoints));
    assert_string_equal(endpoints.bind, "tcp://[::]:500");
    assert_string_equal(endpoints.advertise, "tcp://[fd00::7]:500");
    assert_ok(plan_endpoints_alone(&near, 1, &endpoints));
    assert_string_equal(endpoints.bind, "tcp://[::1]:500");
    assert_string_equal(endpoints.attach[0], "tcp://[fd00::7]:500");
    plan_fini(&near);
    /* One that is called as its machine is: others hear where from it. */
    char name[LS_ENDPOINT_MAX], expected[LS_ENDPOINT_MAX + 32];
    assert_int_equal(gethostname(name, sizeof name - 1), 0);
    read_good(&near, "plugin: p\nworld: {insecure: true, ports: 500-509}\n"
                     "nodes:\n"
                     "- {role: learner, host: '{hostname}'}\n"
                     "- {role: collector, count: 2, host: '{hostname}'}\n");
    assert_ok(plan_endpoints_alone(&near, 2, &endpoints));
    (void)snprintf(expected, sizeof expected, "tcp://%s:500", name);
    assert_string_equal(endpoints.advertise, expected);
    assert_int_equal(endpoints.n_attach, 0);
    plan_fini(&near);
    /* run has them all here, whatever their hosts. */
    assert_ok(
        plan_endpoints_here(&plan, 4, "tcp://127.0.0.1:500", NULL, &endpoints));
    assert_string_equal(endpoints.bind, "tcp://127.0.0.1:500-509");
    assert_string_equal(endpoints.advertise, "");
    plan_fini(&plan);
}

TEST(own_words_go_before_what_follows_from_others)
{
    struct plan plan;
    struct plan_endpoints endpoints;
    read_good(&plan, "plugin: p\nnodes:\n"
                     "- {role: learner, bind: 'tcp://127.0.0.1:7000'}\n"
                     "- {role: collector, attach: ['ipc:///t/a', "
                     "'inproc://b']}\n"
                     "- {role: evaluator}\n");
    assert_ok(plan_endpoints_alone(&plan, 1, &endpoints));
    assert_int_equal(endpoints.n_attach, 2);
    assert_string_equal(endpoints.attach[0], "ipc:///t/a");
    assert_string_equal(endpoints.attach[1], "inproc://b");
    assert_ok(plan_endpoints_alone(&plan, 2, &endpoints));
    assert_int_equal(endpoints.n_attach, 1);
    assert_string_equal(endpoints.attach[0], "tcp://127.0.0.1:7000");
    assert_ok(plan_endpoints_here(&plan, 1, "tcp://127.0.0.1:7000", NULL,
                                  &endpoints));
    assert_int_equal(endpoints.n_attach, 2);
    plan_fini(&plan);
}

TEST(nobody_is_known_before_the_first_has_a_place)
{
    struct plan plan;
    struct plan_endpoints endpoints;
    read_good(&plan, FIVE);
    assert_ok(plan_endpoints_alone(&plan, 1, &endpoints));
    assert_int_equal(endpoints.n_attach, 0);
    plan_fini(&plan);
}

TEST(settings_that_differ_have_another_hash)
{
    struct plan one, same, other;
    read_good(&one, "seed: 1\n" FIVE);
    read_good(&same, FIVE "seed: 1\n");
    read_good(&other, "seed: 2\n" FIVE);
    assert_true(one.hash == same.hash);
    assert_true(one.hash != other.hash);
    plan_set_run(&one, 4711);
    plan_set_run(&other, 4711);
    assert_true(one.hash != other.hash && one.hash != same.hash);
    plan_set_run(&same, 4711);
    assert_true(one.hash == same.hash);
    plan_fini(&one);
    plan_fini(&same);
    plan_fini(&other);
}

TEST(members_need_no_plugin_and_no_learner)
{
    struct plan plan;
    read_good(&plan, "nodes: [{role: member, count: 3}]\n"
                     "barrier: {epochs: 7, timeout_ms: 50, failures: 2,\n"
                     "          pace_ms: 4, events: 5}\n"
                     "sim: {epochs: 3, pace_ms: 9, events: 6, blocking: 8}\n");
    assert_true(plan_is_of_members(&plan));
    assert_int_equal(plan.n_nodes, 3);
    assert_int_equal(plan.first, 0);
    assert_int_equal(plan.barrier.epochs, 7);
    assert_int_equal(plan.barrier.timeout_ms, 50);
    assert_int_equal(plan.barrier.failures, 2);
    assert_int_equal(plan.barrier.pace_ms, 4);
    assert_int_equal(plan.barrier.events, 5);
    assert_int_equal(plan.sim.events, 6);
    assert_int_equal(plan.sim.blocking, 8);
    assert_int_equal(plan.sim.epochs, 3);
    assert_int_equal(plan.sim.pace_ms, 9);
    plan_fini(&plan);
}

TEST(members_are_alone_in_a_job)
{
    assert_problem(FIVE "  - role: member\n", "nodes",
                   "members keep step among themselves");
    assert_problem("nodes: [{role: learner}, {role: collector}]\n", "plugin",
                   "");
}
