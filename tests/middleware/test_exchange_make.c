/* Making an exchange: where it is void, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lockstep/middleware.h"

static const struct ls_exchange_options data_exchange = {
    .from = "collector",
    .to = "learner",
    .fields = "trajectories",
};

static void test_it_is_void_without_a_node_and_for_other_roles(void **state)
{
    (void)state;
    ls_task *task;
    const struct ls_task_options options = {.roles = "learner"};
    assert_int_equal(ls_task_create(&task, &options), LS_OK);
    const struct ls_middleware alone = ls_mw_exchange(task, &data_exchange);
    assert_int_equal(alone.status, LS_OK);
    assert_null(alone.fn);
    ls_task_destroy(&task);

    ls_node *node;
    struct ls_node_options of_node;
    ls_node_options_init(&of_node);
    of_node.bind = "inproc://exchange-void";
    assert_int_equal(ls_node_create(&node, &of_node), LS_OK);
    const struct ls_task_options other = {.node = node, .roles = "evaluator"};
    assert_int_equal(ls_task_create(&task, &other), LS_OK);
    const struct ls_middleware none = ls_mw_exchange(task, &data_exchange);
    assert_int_equal(none.status, LS_OK);
    assert_null(none.fn);
    ls_task_destroy(&task);
    ls_node_destroy(&node);
}

static void test_options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static char long_name[200];
    memset(long_name, 'x', sizeof long_name - 1);
    const struct {
        struct ls_exchange_options options;
        int status;
    } rows[] = {
        {{.to = "learner", .fields = "policy"}, LS_EINVAL},
        {{.from = "learner", .to = " ,", .fields = "policy"}, LS_EINVAL},
        {{.from = "learner", .to = "collector"}, LS_EINVAL},
        {{.from = "learner", .to = "collector", .fields = "polcy"}, LS_ENOENT},
        {{.from = "learner", .to = "collector", .increments = "policy"},
         LS_EINVAL},
        {{.from = "learner", .to = "collector", .fields = "policy", .stale = 2},
         LS_EINVAL},
        {{.from = "learner", .to = "collector", .fields = "policy", .every = 2},
         LS_EINVAL},
        {{.from = "learner",
          .to = "collector",
          .fields = "policy",
          .timeout_ms = -1},
         LS_EINVAL},
        {{.name = long_name,
          .from = "learner",
          .to = "collector",
          .fields = "policy"},
         LS_EINVAL},
    };
    ls_node *node;
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.bind = "inproc://exchange-refused";
    assert_int_equal(ls_node_create(&node, &options), LS_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ls_task *task;
        const struct ls_task_options of_task = {.node = node};
        assert_int_equal(ls_task_create(&task, &of_task), LS_OK);
        assert_int_equal(
            ls_task_use(task, ls_mw_exchange(task, &rows[i].options)),
            rows[i].status);
        assert_non_null(strstr(ls_error_text(), "exchange"));
        ls_task_destroy(&task);
    }
    ls_node_destroy(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_void_without_a_node_and_for_other_roles),
        cmocka_unit_test(test_options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
