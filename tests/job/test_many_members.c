/* A job of a node that knows more members than any real test has. */
#include "bus.h"
#include "lockstep/job.h"
#include "test.h"

#define MEMBERS   1100
#define LONG_MS   60000
#define HEARTBEAT 30000 /* so none of them falls silent */

static int nothing(void *self, ls_turn *turn)
{
    (void)self;
    (void)turn;
    return LS_OK;
}

/* Members that nobody is: only the last one is ready. Before the node starts:
 * from then on its bus thread reads of them without the lock. */
static void meet_many(ls_node *node)
{
    for (uint32_t id = 1; id <= MEMBERS; id++)
        assert_non_null(membership_note(&node->world, id, 1));
    struct member *last = membership_find(&node->world, MEMBERS);
    last->state = LS_MEMBER_READY;
    last->heard_at = ls_now(ls_runtime_threads());
}

TEST(a_task_is_placed_on_the_last_of_many_members)
{
    struct ls_node_options options;
    const struct ls_job_task task = {.name = "nothing", .fn = nothing};
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_job *job = NULL;
    char text[4096];
    (void)state;
    ls_node_options_init(&options);
    options.bind = "inproc://job-of-many";
    options.topology = LS_TOPOLOGY_ALONE;
    options.heartbeat_ms = HEARTBEAT;
    options.silence_ms = LONG_MS;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&calls, node, NULL));
    assert_ok(ls_job_create(&job, node, calls,
                            &(struct ls_job_options){.name = "many"}));
    assert_ok(ls_job_add(job, LS_JOB_EPOCH, &task));
    meet_many(node);
    assert_ok(ls_node_start(node));
    assert_ok(ls_job_compile(job));
    (void)ls_job_print(job, false, text, sizeof text);
    assert_has(text, "1100"); /* all that are ready */
    assert_ok(ls_rpc_close(&calls));
    assert_ok(ls_job_destroy(&job));
    assert_ok(ls_node_destroy(&node));
}
