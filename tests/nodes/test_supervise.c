/* supervise.h, as a specification, with a launcher whose nodes only say what a
 * test has them say. */
#include "supervise.h"

#include "lockstep/simulation.h"
#include "plan_reading.h"
#include "test.h"

#define SERVICE                                                                \
    "plugin: p\n"                                                              \
    "nodes:\n"                                                                 \
    "  - role: coordinator\n"                                                  \
    "  - role: learner\n"                                                      \
    "  - {role: collector, count: 2}\n"

enum { N = 4, LATE = 3 };

struct play {
    struct plan plan;
    render *render;
    supervisor *supervisor;
    bool started[N], stopped[N];
    ls_runtime *runtime; /* NULL: threads */
    ls_simulation *simulation;
    ls_host *host, *other;
};

static void reports(struct play *play, size_t index, enum report_kind kind)
{
    const struct report_sink sink = supervisor_sink(play->supervisor);
    struct report report = report_of(play->plan.nodes[index].id, kind);
    (void)snprintf(report.endpoint, sizeof report.endpoint, "inproc://%zu",
                   index);
    sink.put(sink.self, &report);
}

static void ends(struct play *play, size_t index)
{
    reports(play, index, REPORT_DONE);
    supervisor_note_end(play->supervisor, index, 0, 0);
}

/* The others are done with their job before the last one has come. */
static int start_three(void *self, size_t index, const struct launch *launch)
{
    struct play *play = self;
    (void)launch;
    play->started[index] = true;
    if (index == LATE) {
        for (size_t i = N - 1; i-- > 0;)
            ends(play, i);
        return LS_OK;
    }
    reports(play, index, REPORT_BOUND);
    reports(play, index, REPORT_STARTED);
    return LS_OK;
}

static void stop(void *self, size_t index, bool hard)
{
    struct play *play = self;
    (void)hard;
    if (play->stopped[index])
        return;
    play->stopped[index] = true;
    supervisor_note_end(play->supervisor, index, 143, 0);
}

static int run(struct play *play,
               int (*start)(void *, size_t, const struct launch *),
               const char *plan)
{
    bool left = true;
    read_good(&play->plan, plan);
    assert_ok(
        render_create(&play->render, &play->plan, true, N, play->runtime));
    assert_ok(supervisor_create(&play->supervisor, &play->plan, play->render,
                                play->runtime));
    const struct launcher launcher = {
        .start = start, .stop = stop, .self = play};
    const int code = supervise(play->supervisor, &launcher, 600, &left);
    assert_false(left);
    return code;
}

static void end_play(struct play *play)
{
    supervisor_destroy(&play->supervisor);
    render_destroy(&play->render);
    plan_fini(&play->plan);
}

TEST(who_comes_when_a_short_job_is_done_is_not_missed)
{
    struct play play = {.render = NULL};
    assert_int_equal(run(&play, start_three, SERVICE), 0);
    assert_true(play.started[LATE] && play.stopped[LATE]);
    assert_false(play.stopped[0] || play.stopped[1] || play.stopped[2]);
    assert_true(supervisor_is_done(play.supervisor));
    end_play(&play);
}

/* All but one are done at once. */
static int start_slow(void *self, size_t index, const struct launch *launch)
{
    struct play *play = self;
    (void)launch;
    reports(play, index, REPORT_BOUND);
    reports(play, index, REPORT_STARTED);
    if (index == LATE)
        for (size_t i = 0; i < LATE; i++)
            ends(play, i);
    return LS_OK;
}

static void end_late(void *arg)
{
    struct play *play = arg;
    ls_rest_until(ls_host_runtime(play->other), 69 * LS_NS_PER_S);
    ends(play, LATE);
}

static void stop_host(void *arg)
{
    ls_host_pause(arg);
}

static void go_on(void *arg)
{
    ls_host_resume(arg);
}

static void supervise_slow(void *arg)
{
    struct play *play = arg;
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_host_runtime(play->other), &thread, "late",
                              end_late, play));
    assert_int_equal(run(play, start_slow, SERVICE), 0);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
}

static void live_stopped(void *arg)
{
    struct play *play = arg;
    ls_thread *thread;
    assert_ok(ls_host_create(&play->host, play->simulation, "run"));
    assert_ok(ls_host_create(&play->other, play->simulation, "node"));
    assert_ok(ls_simulation_at(play->simulation, 5 * LS_NS_PER_S, stop_host,
                               play->host));
    assert_ok(ls_simulation_at(play->simulation, 65 * LS_NS_PER_S, go_on,
                               play->host));
    play->runtime = ls_host_runtime(play->host);
    assert_ok(
        ls_thread_spawn(play->runtime, &thread, "run", supervise_slow, play));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
}

/* As by Ctrl-Z, a minute: of its ten seconds the last node has had five. */
TEST(a_run_that_stood_still_waits_again_for_the_last_one)
{
    struct play play = {.render = NULL};
    const struct ls_simulation_options options = {.seed = 1};
    assert_ok(ls_simulation_create(&play.simulation, &options));
    assert_ok(ls_simulation_run(play.simulation, live_stopped, &play));
    assert_false(play.stopped[LATE]);
    end_play(&play);
    ls_simulation_destroy(&play.simulation);
}
