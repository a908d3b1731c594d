/* Making an exchange: where it is void, and what is refused. */
#include <string.h>

#include "lockstep/middleware.h"
#include "test.h"

static const struct ls_exchange_options data_exchange = {
    .from = "collector",
    .to = "learner",
    .fields = "trajectories",
};

TEST(it_is_void_without_a_node_and_for_other_roles)
{
    ls_task *task;
    const struct ls_task_options options = {.roles = "learner"};
    assert_ok(ls_task_create(&task, &options));
    const struct ls_middleware alone = ls_mw_exchange(task, &data_exchange);
    assert_int_equal(alone.status, LS_OK);
    assert_null(alone.fn);
    ls_task_destroy(&task);

    ls_node *node;
    struct ls_node_options of_node;
    ls_node_options_init(&of_node);
    of_node.bind = "inproc://exchange-void";
    assert_ok(ls_node_create(&node, &of_node));
    const struct ls_task_options other = {.node = node, .roles = "evaluator"};
    assert_ok(ls_task_create(&task, &other));
    const struct ls_middleware none = ls_mw_exchange(task, &data_exchange);
    assert_int_equal(none.status, LS_OK);
    assert_null(none.fn);
    ls_task_destroy(&task);
    ls_node_destroy(&node);
}

TEST(the_step_has_its_name)
{
    ls_node *node;
    ls_task *task;
    struct ls_node_options of_node;
    ls_node_options_init(&of_node);
    of_node.bind = "inproc://exchange-name";
    assert_ok(ls_node_create(&node, &of_node));
    const struct ls_task_options options = {.node = node, .roles = "learner"};
    assert_ok(ls_task_create(&task, &options));
    const struct ls_middleware made =
        ls_mw_exchange(task, &(struct ls_exchange_options){.name = "weights",
                                                           .from = "learner",
                                                           .to = "collector",
                                                           .fields = "policy"});
    assert_string_equal("weights", made.name);
    assert_ok(ls_task_use(task, made));
    ls_task_destroy(&task);
    ls_node_destroy(&node);
}

TEST(it_ends_though_its_listeners_were_taken_away)
{
    ls_node *node;
    ls_task *task;
    struct ls_node_options of_node;
    ls_node_options_init(&of_node);
    of_node.bind = "inproc://exchange-off";
    assert_ok(ls_node_create(&node, &of_node));
    const struct ls_task_options options = {.node = node, .roles = "learner"};
    assert_ok(ls_task_create(&task, &options));
    assert_ok(ls_task_use(task, ls_mw_exchange(task, &data_exchange)));
    const int n = ls_off_all(node, "*") + ls_off_all(node, "ls.*");
    assert_true(n >= 3); /* two of it, one of the task */
    assert_ok(ls_task_destroy(&task));
    ls_node_destroy(&node);
}

TEST(options_that_make_no_sense_are_refused)
{
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
    assert_ok(ls_node_create(&node, &options));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ls_task *task;
        const struct ls_task_options of_task = {.node = node};
        assert_ok(ls_task_create(&task, &of_task));
        assert_int_equal(
            ls_task_use(task, ls_mw_exchange(task, &rows[i].options)),
            rows[i].status);
        assert_error_has("exchange");
        ls_task_destroy(&task);
    }
    ls_node_destroy(&node);
}
