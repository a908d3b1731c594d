/* Several middleware as one: ls_serial() and ls_parallel(). */
#include "task_help.h"
#include "test.h"

/* A step that waits for something before it says its word, and opens the way
 * for others afterwards. */
struct turn {
    struct trace *trace;
    const char *word;
    struct latch *before; /* or NULL */
    struct latch *after;  /* or NULL */
    struct latch *stay;   /* waited for at the end of the forward half */
    const char *back;     /* NULL: it does not yield */
    struct latch *before_back;
    struct latch *after_back;
    int status;
    int given;
};

static void pass(struct trace *trace, const char *word, struct latch *before,
                 struct latch *after)
{
    if (before != NULL)
        latch_wait(before);
    note(trace, word);
    if (after != NULL)
        latch_hit(after);
}

static int take_turn(ls_step *step, void *self)
{
    struct turn *turn = self;
    pass(turn->trace, turn->word, turn->before, turn->after);
    if (turn->stay != NULL)
        latch_wait(turn->stay);
    if (turn->status < 0)
        return ls_error(turn->status, "%s went wrong", turn->word);
    if (turn->back == NULL)
        return LS_OK;
    turn->given = ls_yield(step);
    pass(turn->trace, turn->back, turn->before_back, turn->after_back);
    return turn->given;
}

static struct ls_middleware taking(struct turn *turn)
{
    return (struct ls_middleware){
        .name = turn->word, .fn = take_turn, .self = turn};
}

static void counts_release(void *self)
{
    ++*(int *)self;
}

TEST(serial_runs_one_after_the_other)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct turn turns[4] = {{.trace = &trace, .word = "a", .back = "A"},
                            {.trace = &trace, .word = "b"},
                            {.trace = &trace, .word = "c", .back = "C"},
                            {.trace = &trace, .word = "d", .back = "D"}};
    const struct ls_middleware parts[] = {taking(&turns[0]), taking(&turns[1]),
                                          taking(&turns[2])};
    assert_ok(ls_task_use(task, ls_serial(task, parts, 3)));
    assert_ok(ls_task_use(task, taking(&turns[3])));
    assert_ok(ls_task_run(task, 2));
    assert_string_equal(trace.text, "a b c d D C A a b c d D C A");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(serial_unwinds_its_own_parts)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct turn turns[4] = {{.trace = &trace, .word = "z", .back = "Z"},
                            {.trace = &trace, .word = "a", .back = "A"},
                            {.trace = &trace, .word = "b", .status = LS_EIO},
                            {.trace = &trace, .word = "c", .back = "C"}};
    const struct ls_middleware parts[] = {taking(&turns[1]), taking(&turns[2]),
                                          taking(&turns[3])};
    assert_ok(ls_task_use(task, taking(&turns[0])));
    assert_ok(ls_task_use(task, ls_serial(task, parts, 3)));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_string_equal(trace.text, "z a b A Z");
    assert_string_equal(ls_error_text(),
                        "step serial<a,b,c>: step b: b went wrong");
    assert_int_equal(turns[1].given, LS_EIO);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static int notes_name(ls_step *step, void *self)
{
    (void)snprintf(self, 64, "%s", ls_step_name(step));
    return LS_OK;
}

static int wraps_and_names(ls_step *step, void *self)
{
    (void)snprintf(self, 64, "%s", ls_around_name(step));
    return ls_around_forward(step);
}

TEST(names_list_the_parts_of_this_role)
{
    char name[64] = "";
    char parts[2][64];
    ls_task *task = task_with((struct ls_task_options){.roles = "learner"});
    const struct ls_middleware inner[] = {
        {.name = "x", .fn = notes_name, .self = parts[0]},
        {.name = "y",
         .fn = notes_name,
         .self = parts[0],
         .roles = "collector"}};
    const struct ls_middleware outer[] = {
        {.name = "a", .fn = notes_name, .self = parts[1]},
        {.name = "void"},
        ls_serial(task, inner, 2)};
    assert_ok(ls_task_use(task, ls_parallel(task, outer, 3)));
    assert_ok(ls_task_use(task, (struct ls_middleware){.fn = wraps_and_names,
                                                       .self = name,
                                                       .wraps = true}));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(name, "parallel<a,serial<x>>");
    ls_task_destroy(&task);
}

TEST(parts_are_moved)
{
    int releases = 0;
    ls_task *task = task_plain();
    const struct ls_middleware parts[] = {
        {.fn = notes_name, .self = &releases, .release = counts_release},
        {.status = LS_EIO,
         .error = "no disk",
         .self = &releases,
         .release = counts_release},
        {.fn = NULL, .self = &releases, .release = counts_release}};
    assert_fails(ls_task_use(task, ls_serial(task, parts, 3)), LS_EIO);
    assert_string_equal(ls_error_text(), "no disk");
    assert_int_equal(releases, 3);
    ls_task_destroy(&task);
    assert_int_equal(releases, 3);

    task = task_plain();
    assert_ok(ls_task_use(task, ls_parallel(task, &parts[2], 1)));
    assert_int_equal(releases, 3);
    ls_task_destroy(&task);
    assert_int_equal(releases, 4);
}

TEST(parts_with_nothing_to_run_are_void)
{
    ls_task *task = task_plain();
    const struct ls_middleware none = {.name = "void"};
    assert_ok(ls_task_use(task, ls_serial(task, NULL, 0)));
    assert_ok(ls_task_use(task, ls_parallel(task, &none, 1)));
    assert_ok(ls_task_run(task, UINT64_MAX));
    ls_task_destroy(&task);
}

TEST(parts_need_and_give_fields_together)
{
    char name[64];
    ls_task *task = task_plain();
    const struct ls_middleware parts[] = {
        {.fn = notes_name, .self = name, .needs = "policy", .gives = "a"},
        {.fn = notes_name, .self = name, .needs = "train_data"}};
    const struct ls_middleware giver = {
        .fn = notes_name, .self = name, .gives = "policy"};
    assert_ok(ls_task_use(task, ls_serial(task, parts, 2)));
    assert_ok(ls_task_use(task, giver));
    assert_fails(ls_task_run(task, 1), LS_EINVAL);
    assert_error_has("field train_data");
    ls_task_destroy(&task);
}

struct end {
    struct trace *trace;
    const char *word;
};

static int notes_end(void *self, ls_task *task, int status)
{
    const struct end *end = self;
    (void)task;
    note(end->trace, end->word);
    return status;
}

static int does_nothing(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return LS_OK;
}

TEST(finish_hooks_of_parts_run)
{
    struct trace trace;
    trace_init(&trace);
    struct end ends[3] = {{&trace, "a"}, {&trace, "b"}, {&trace, "c"}};
    struct ls_middleware what[3];
    for (int i = 0; i < 3; i++)
        what[i] = (struct ls_middleware){
            .fn = does_nothing, .self = &ends[i], .finish = notes_end};
    ls_task *task = task_plain();
    assert_ok(ls_task_use(task, what[0]));
    assert_ok(ls_task_use(task, ls_parallel(task, &what[1], 2)));
    assert_ok(ls_task_run(task, 2));
    assert_string_equal(trace.text, "c b a");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(parallel_in_sequential)
{
    struct trace trace;
    struct latch fast_done;
    trace_init(&trace);
    latch_init(&fast_done, 1);
    ls_task *task = task_plain();
    struct turn begin = {.trace = &trace, .word = "begin"};
    struct turn slow = {.trace = &trace, .word = "slow", .before = &fast_done};
    struct turn fast = {.trace = &trace, .word = "fast", .after = &fast_done};
    const struct ls_middleware both[] = {taking(&slow), taking(&fast)};
    const struct ls_middleware parts[] = {taking(&begin),
                                          ls_parallel(task, both, 2)};
    assert_ok(ls_task_use(task, ls_serial(task, parts, 2)));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "begin fast slow");
    ls_task_destroy(&task);
    latch_fini(&fast_done);
    trace_fini(&trace);
}

TEST(serial_in_parallel)
{
    struct trace trace;
    struct latch begun, slow_done;
    trace_init(&trace);
    latch_init(&begun, 1);
    latch_init(&slow_done, 1);
    ls_task *task = task_plain();
    struct turn begin = {.trace = &trace, .word = "begin", .after = &begun};
    struct turn slow = {
        .trace = &trace, .word = "slow", .before = &begun, .after = &slow_done};
    struct turn fast = {.trace = &trace, .word = "fast", .before = &slow_done};
    const struct ls_middleware chain[] = {taking(&slow), taking(&fast)};
    const struct ls_middleware parts[] = {ls_serial(task, chain, 2),
                                          taking(&begin)};
    assert_ok(ls_task_use(task, ls_parallel(task, parts, 2)));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "begin slow fast");
    ls_task_destroy(&task);
    latch_fini(&begun);
    latch_fini(&slow_done);
    trace_fini(&trace);
}

TEST(parallel_runs_both_halves_at_the_same_time)
{
    struct trace trace;
    struct latch there[2], back[2];
    trace_init(&trace);
    struct turn turns[2];
    for (int i = 0; i < 2; i++) {
        latch_init(&there[i], 1);
        latch_init(&back[i], 1);
    }
    /* Both forward halves meet, so they are on two threads; then a's backward
     * half waits for b's. */
    turns[0] = (struct turn){.trace = &trace,
                             .word = "a",
                             .after = &there[0],
                             .stay = &there[1],
                             .back = "A",
                             .before_back = &back[1]};
    turns[1] = (struct turn){.trace = &trace,
                             .word = "b",
                             .before = &there[0],
                             .after = &there[1],
                             .back = "B",
                             .after_back = &back[1]};
    ls_task *task = task_plain();
    struct turn after = {.trace = &trace, .word = "c", .back = "C"};
    const struct ls_middleware parts[] = {taking(&turns[0]), taking(&turns[1])};
    assert_ok(ls_task_use(task, ls_parallel(task, parts, 2)));
    assert_ok(ls_task_use(task, taking(&after)));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "a b c C B A");
    ls_task_destroy(&task);
    for (int i = 0; i < 2; i++) {
        latch_fini(&there[i]);
        latch_fini(&back[i]);
    }
    trace_fini(&trace);
}

static void wakes(void *self, int status)
{
    (void)status;
    latch_hit(self);
}

/* Waits until the run is ended. */
static int waits_for_the_end(ls_step *step, void *self)
{
    ls_task *task = ls_step_task(step);
    struct latch never;
    (void)self;
    latch_init(&never, 1);
    if (ls_task_on_cancel(task, wakes, &never) < 0)
        return LS_ENOMEM;
    latch_wait(&never);
    if (ls_task_on_cancel(task, NULL, &never) < 0)
        return LS_ENOMEM;
    latch_fini(&never);
    return ls_task_cancelled(task);
}

TEST(a_failing_part_ends_the_others_waits)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct turn turns[3] = {{.trace = &trace, .word = "z", .back = "Z"},
                            {.trace = &trace, .word = "a", .status = LS_EPROTO},
                            {.trace = &trace, .word = "b", .back = "B"}};
    const struct ls_middleware parts[] = {
        {.name = "waits", .fn = waits_for_the_end}, taking(&turns[1])};
    assert_ok(ls_task_use(task, taking(&turns[0])));
    assert_ok(ls_task_use(task, ls_parallel(task, parts, 2)));
    assert_ok(ls_task_use(task, taking(&turns[2])));
    assert_fails(ls_task_run(task, 1), LS_EPROTO);
    assert_string_equal(ls_error_text(), "step a: a went wrong");
    assert_string_equal(trace.text, "z a Z");
    assert_int_equal(turns[0].given, LS_EPROTO);
    assert_ok(ls_task_cancelled(task));
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(a_later_failure_unwinds_parallel_parts)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct turn turns[3] = {{.trace = &trace, .word = "p", .back = "P"},
                            {.trace = &trace, .word = "p", .back = "P"},
                            {.trace = &trace, .word = "f", .status = LS_EIO}};
    const struct ls_middleware parts[] = {taking(&turns[0]), taking(&turns[1])};
    assert_ok(ls_task_use(task, ls_parallel(task, parts, 2)));
    assert_ok(ls_task_use(task, taking(&turns[2])));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_string_equal(ls_error_text(), "step f: f went wrong");
    assert_string_equal(trace.text, "p p f P P");
    assert_int_equal(turns[0].given, LS_EIO);
    assert_int_equal(turns[1].given, LS_EIO);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(nested_parallel_needs_no_more_workers)
{
    struct trace trace;
    trace_init(&trace);
    for (int async = 0; async < 2; async++) {
        ls_task *task = task_with(
            (struct ls_task_options){.n_workers = 1, .async = async == 1});
        struct turn turns[4];
        struct ls_middleware parts[4], pairs[2];
        for (int i = 0; i < 4; i++) {
            turns[i] = (struct turn){.trace = &trace, .word = "p", .back = "P"};
            parts[i] = taking(&turns[i]);
        }
        pairs[0] = ls_parallel(task, &parts[0], 2);
        pairs[1] = ls_parallel(task, &parts[2], 2);
        assert_ok(ls_task_use(task, ls_parallel(task, pairs, 2)));
        trace.text[0] = '\0';
        assert_ok(ls_task_run(task, 3));
        assert_string_equal(trace.text, "p p p p P P P P p p p p P P P P "
                                        "p p p p P P P P");
        ls_task_destroy(&task);
    }
    trace_fini(&trace);
}

static int wraps_twice(ls_step *step, void *self)
{
    ls_wrapped *first, *second;
    const int status = ls_wrap(step, self, &first);
    return status < 0 ? status : ls_wrap(step, self, &second);
}

TEST(one_with_parts_is_in_one_place_at_a_time)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct turn turn = {.trace = &trace, .word = "a", .back = "A"};
    const struct ls_middleware part = taking(&turn);
    struct ls_middleware serial = ls_serial(task, &part, 1);
    assert_ok(ls_task_use_fn(task, wraps_twice, &serial));
    assert_fails(ls_task_run(task, 1), LS_ESTATE);
    assert_error_has("serial<a>");
    assert_string_equal(trace.text, "a A");
    ls_task_destroy(&task);
    serial.release(serial.self);
    trace_fini(&trace);
}
