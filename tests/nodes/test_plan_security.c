/* The section `security`: what it comes to, what is wrong with one, and the ids
 * that it puts before addresses. */
#include "plan_reading.h"
#include "test.h"

#define CURVE "security: {mode: curve, keys: keys}\n"

TEST(a_secret_unless_the_file_says_otherwise)
{
    struct plan plan;
    read_good(&plan, FIVE);
    assert_int_equal(plan.security.mode, LS_SECURITY_PLAIN);
    assert_true(plan_has_secret(&plan));
    assert_false(plan_has_keys(&plan));
    assert_null(plan.security.keys);
    assert_null(plan_security_warning(&plan));
    plan_fini(&plan);
    read_good(&plan, FIVE "world: {transport: inproc}\n");
    assert_false(plan_has_secret(&plan)); /* it is known who speaks */
    plan_fini(&plan);
}

TEST(keys_lie_where_the_file_lies)
{
    static const struct {
        const char *file, *keys, *folder;
    } cases[] = {{"job.yaml", "keys", "keys"},
                 {"/etc/jobs/job.yaml", "keys", "/etc/jobs/keys"},
                 {"jobs/job.yaml", "../keys", "jobs/../keys"},
                 {"jobs/job.yaml", "/keys", "/keys"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan plan;
        ls_config *config = NULL;
        assert_ok(ls_config_parse(&config, cases[i].file, FIVE CURVE));
        assert_ok(ls_config_set(config, "security.keys", cases[i].keys));
        assert_ok(plan_read(&plan, &config, cases[i].file));
        assert_ok(ls_config_finish(plan.config));
        assert_string_equal(plan.security.keys, cases[i].folder);
        assert_true(plan_has_keys(&plan));
        assert_false(plan_has_secret(&plan));
        plan_fini(&plan);
    }
}

TEST(addresses_are_taken_over)
{
    struct plan plan;
    read_good(&plan, FIVE "security: {allow: [10.0.0.7, 'fd00::7', ''],\n"
                          "           deny: 10.0.0.8}\n");
    assert_int_equal(plan.security.allow.n, 3);
    assert_string_equal(plan.security.allow.items[1], "fd00::7");
    assert_string_equal(plan.security.allow.items[2], "");
    assert_int_equal(plan.security.deny.n, 1);
    assert_string_equal(plan.security.deny.items[0], "10.0.0.8");
    plan_fini(&plan);
}

TEST(what_is_wrong_is_told_with_its_line)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"security: {mode: curv}\n", "did you mean \"curve\"?"},
        {"security: {mdoe: plain}\n", "did you mean \"mode\"?"},
        {"security: {mode: curve}\n", "security.keys"},
        {"security: {mode: curve, keys: ''}\n", "lockstep keygen keys"},
        {"security: {keys: keys}\n", "keys are for mode: curve"},
        {"security: {allow: [box7]}\n", "\"box7\" is no IPv4 or IPv6"},
        {"security: {deny: 10.0.0.7:80}\n", "\"10.0.0.7:80\" is no IPv4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s%s", FIVE, cases[i].text);
        assert_problem(text, "job.yaml:6:", cases[i].words);
    }
}

TEST(insecure_goes_with_no_mode)
{
    struct plan plan;
    read_good(&plan, FIVE "world: {insecure: true}\n"
                          "security: {allow: 10.0.0.7}\n");
    assert_int_equal(plan.security.mode, LS_SECURITY_NONE);
    assert_false(plan_has_secret(&plan));
    assert_non_null(strstr(plan_security_warning(&plan), "insecure: true"));
    plan_fini(&plan);
    assert_problem(FIVE "world: {insecure: true}\nsecurity: {mode: plain}\n",
                   "job.yaml:7:", "leave one of them out");
}

TEST(keys_go_beyond_this_machine)
{
    struct plan plan;
    read_good(&plan, "plugin: p\n" CURVE "nodes:\n"
                     "- {role: learner, host: red}\n"
                     "- {role: collector, bind: 'tcp://0.0.0.0:500',\n"
                     "   advertise: 'tcp://blue:500'}\n");
    plan_fini(&plan);
}

TEST(with_keys_an_address_names_its_node)
{
    struct plan plan;
    struct plan_endpoints endpoints;
    read_good(&plan,
              "plugin: p\n" CURVE "nodes:\n"
              "- {role: learner, host: red, id: 7}\n"
              "- {role: collector, host: blue, id: 8}\n"
              "- {role: collector, id: 9, attach: ['tcp://blue:21500',\n"
              "                                    '7@tcp://10.0.0.7:1']}\n"
              "- {role: collector, id: 10, attach: 'tcp://other:1'}\n");
    assert_ok(
        plan_endpoints_here(&plan, 1, "tcp://127.0.0.1:1", NULL, &endpoints));
    assert_string_equal(endpoints.attach[0], "7@tcp://127.0.0.1:1");
    assert_ok(plan_endpoints_alone(&plan, 1, &endpoints));
    assert_string_equal(endpoints.attach[0], "7@tcp://red:21500");
    assert_ok(plan_endpoints_alone(&plan, 2, &endpoints));
    assert_string_equal(endpoints.attach[0], "8@tcp://blue:21500");
    assert_string_equal(endpoints.attach[1], "7@tcp://10.0.0.7:1");
    assert_fails(plan_endpoints_alone(&plan, 3, &endpoints), LS_ECONFIG);
    assert_error_has("7@tcp://other:1");
    plan_fini(&plan);
}

TEST(an_address_is_an_endpoint_behind_an_id)
{
    assert_string_equal(plan_address_endpoint("3@tcp://a:1"), "tcp://a:1");
    assert_string_equal(plan_address_endpoint("tcp://a:1"), "tcp://a:1");
    assert_null(plan_address_fault("4294967295@tcp://a:1"));
    assert_null(plan_address_fault("tcp://a:1"));
    assert_non_null(plan_address_fault("4294967296@tcp://a:1"));
    assert_non_null(plan_address_fault("00000000000000003@tcp://a:1"));
    assert_non_null(plan_address_fault("x@tcp://a:1"));
    assert_non_null(plan_address_fault("3@tcp://a:1-9"));
}

TEST(no_other_node_may_call_itself_what_these_are)
{
    struct plan plan;
    read_good(&plan, "plugin: p\nnodes:\n"
                     "- {role: learner, id: 9}\n"
                     "- {role: evaluator, id: 1}\n"
                     "- {role: collector, id: 10, count: 3}\n"
                     "- {role: collector, id: 2}\n"
                     "- {role: learner, id: 0}\n"
                     "learner: {driver: bus}\n");
    assert_true(plan_suits(&plan, 0, "learner,learner.0", PLAN_LABEL));
    assert_true(plan_suits(&plan, 1, "evaluator", PLAN_LABEL));
    assert_false(plan_suits(&plan, 0, "learner,learner.1", PLAN_LABEL));
    assert_false(plan_suits(&plan, 1, "learner", PLAN_LABEL));
    assert_false(plan_suits(&plan, 1, "evaluator", ""));
    assert_false(plan_suits(&plan, 77, "evaluator", PLAN_LABEL));
    assert_false(plan_suits(&plan, 77, "learner", ""));
    assert_false(plan_suits(&plan, 77, "client,collector.1", ""));
    assert_false(plan_suits(&plan, 77, "client", "fast,collector"));
    assert_false(plan_suits(&plan, 77, "client", "fast," PLAN_LABEL));
    assert_false(plan_suits(&plan, 77, PLAN_LABEL, ""));
    assert_true(plan_suits(&plan, 77, "client", "fast"));
    assert_true(plan_suits(&plan, 77, "", ""));
    assert_true(plan_suits(&plan, 1, "client", ""));
    plan_fini(&plan);
    read_good(&plan, "plugin: p\nnodes:\n"
                     "- {role: coordinator, on_loss: restart}\n"
                     "- {role: learner}\n"
                     "- {role: collector}\n");
    assert_true(plan_suits(&plan, 77, "collector", ""));
    assert_false(plan_suits(&plan, 77, "collector", PLAN_LABEL));
    plan_fini(&plan);
}
