/* What a barrier leaves in the recording of its node. */
#include "lockstep/barrier.h"
#include "lockstep/node.h"
#include "lockstep/trace.h"
#include "test.h"

TEST(a_wait_is_recorded_with_its_epoch_and_how_it_ended)
{
    ls_trace *trace = NULL;
    ls_node *node = NULL;
    ls_barrier *barrier = NULL;
    struct ls_node_options options;
    struct ls_trace_file file;
    assert_ok(ls_trace_create(&trace, &(struct ls_trace_options){.node = 4}));
    ls_node_options_init(&options);
    options.id = 4;
    options.bind = "inproc://barrier-trace";
    options.trace = trace;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_barrier_create(&barrier, node,
                                &(struct ls_barrier_options){.name = "alone"}));
    assert_ok(ls_node_start(node));
    struct ls_barrier_epoch_info info;
    assert_ok(ls_barrier_wait(barrier, 0, 1000, NULL));
    assert_ok(ls_barrier_wait(barrier, 0, 1000, &info));
    assert_ok(ls_barrier_destroy(&barrier));
    assert_ok(ls_barrier_create(
        &barrier, node,
        &(struct ls_barrier_options){.name = "two", .expected = 2}));
    assert_fails(ls_barrier_wait(barrier, 0, 1, NULL), LS_ETIMEDOUT);
    assert_ok(ls_barrier_destroy(&barrier));
    assert_ok(ls_node_destroy(&node));

    assert_ok(ls_trace_take(trace, 1, "a test", &file));
    const struct ls_trace_record *waits[3] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < file.n_records; i++)
        if (file.records[i].kind == LS_TRACE_BARRIER && n < 3)
            waits[n++] = &file.records[i];
    assert_int_equal(n, 3);
    assert_string_equal(file.names[waits[1]->name], "alone");
    assert_int_equal(waits[0]->number, 0);
    assert_int_equal(waits[1]->number, 1);
    assert_int_equal(waits[1]->begin_ns, info.entered_at);
    assert_int_equal(waits[1]->end_ns, info.left_at);
    assert_int_equal(waits[1]->peer, 4);
    assert_int_equal(waits[1]->size, 0);
    assert_string_equal(file.names[waits[2]->name], "two");
    assert_int_equal(waits[2]->size, -LS_ETIMEDOUT);
    assert_int_equal(waits[2]->peer, LS_TRACE_NOBODY);
    ls_trace_clear(&file);
    ls_trace_destroy(&trace);
}
