/* What a simulation notes, watches, and does at a time. */
#include "lockstep/simulation.h"

#include "lockstep/log.h"
#include "simulated.h"
#include "test.h"

static void note_something(void *arg)
{
    ls_simulation_note(arg, "saw %d\nof them", 3);
}

static void note_on_host(void *arg)
{
    ls_simulation *const simulation = arg;
    ls_host *const host = new_host(simulation, "node0");
    ls_thread *thread;
    assert_ok(
        ls_simulation_at(simulation, LS_NS_PER_S, note_something, simulation));
    spawn(ls_host_runtime(host), &thread, note_something, simulation);
    join(&thread);
    ls_rest_until(ls_simulation_runtime(simulation), 2 * LS_NS_PER_S);
}

TEST(a_line_says_when_who_and_what)
{
    ls_simulation *simulation = simulate(1);
    run(simulation, note_on_host, simulation);
    char lines[4096];
    read_lines(simulation, lines, sizeof lines);
    assert_non_null(strstr(lines, " -/main spawns node0/test\n"));
    assert_non_null(strstr(lines, " node0/test saw 3?of them\n"));
    assert_non_null(strstr(lines, " node0/test ends\n"));
    assert_non_null(strstr(lines, "\n1.000000000 -/- saw 3?of them\n"));
    assert_memory_equal(lines, "0.000000000 -/- spawns -/main\n", 30);
    ls_simulation_destroy(&simulation);
}

static void note_a_lot(void *arg)
{
    for (int i = 0; i < 100; i++)
        ls_simulation_note(arg, "line %d", i);
}

TEST(the_last_lines_are_kept)
{
    const struct ls_simulation_options options = {.keep = 3};
    ls_simulation *simulation;
    assert_ok(ls_simulation_create(&simulation, &options));
    run(simulation, note_a_lot, simulation);
    char lines[4096];
    read_lines(simulation, lines, sizeof lines);
    assert_null(strstr(lines, "line 97\n"));
    const char *const first = strstr(lines, "line 98\n");
    assert_non_null(first);
    assert_non_null(strstr(first, "line 99\n"));
    assert_non_null(strstr(first, "-/main ends\n"));
    ls_simulation_destroy(&simulation);
}

static void note_at_length(void *arg)
{
    char text[1000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    ls_simulation_note(arg, "%s", text);
    for (size_t at = 0; at + 2 < sizeof text; at += 2)
        memcpy(text + at, "\xC3\xA4", 2);
    ls_simulation_note(arg, "%s", text);
    ls_simulation_note(arg, "x%s", text);
}

TEST(a_long_line_is_cut_between_characters)
{
    ls_simulation *simulation = simulate(1);
    run(simulation, note_at_length, simulation);
    char lines[4096];
    read_lines(simulation, lines, sizeof lines);
    for (char *line = strtok(lines, "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        const size_t length = strlen(line);
        assert_in_range(length, 1, 239);
        assert_true((unsigned char)line[length - 1] != 0xC3);
    }
    ls_simulation_destroy(&simulation);
}

static void ignore_line(void *self, const char *line)
{
    ++*(int *)self;
    (void)line;
}

static void warn_and_inform(void *arg)
{
    (void)arg;
    ls_log_error("something is wrong");
    ls_log_warn("it may be");
    ls_log_info("nothing is");
}

static uint64_t log_with(const char *setting, int *n_written, char *lines,
                         size_t size)
{
    assert_ok(ls_log_setup(setting));
    ls_log_redirect(ignore_line, n_written);
    ls_simulation *simulation = simulate(1);
    run(simulation, warn_and_inform, simulation);
    ls_log_redirect(NULL, NULL);
    read_lines(simulation, lines, size);
    const uint64_t hash = ls_simulation_hash(simulation);
    ls_simulation_destroy(&simulation);
    return hash;
}

TEST(what_threads_log_is_noted_whatever_people_want_to_see)
{
    char lines[4096];
    int quiet = 0, loud = 0;
    const uint64_t hash = log_with("error", &quiet, lines, sizeof lines);
    assert_non_null(strstr(lines, "-/main error: something is wrong\n"));
    assert_non_null(strstr(lines, "-/main warn: it may be\n"));
    assert_null(strstr(lines, "nothing is"));
    assert_true(log_with("trace", &loud, lines, sizeof lines) == hash);
    assert_int_equal(quiet, 1);
    assert_int_equal(loud, 3);
}

static void keep_text(void *self, const char *line)
{
    (void)snprintf(self, 256, "%s", line);
}

static void log_a_line_of_its_own(void *arg)
{
    ls_log_set_node(7);
    ls_rest_until(ls_simulation_runtime(arg), 3661 * LS_NS_PER_S);
    ls_log_error("late");
}

TEST(a_logged_line_has_the_time_and_the_node_of_its_thread)
{
    char line[256] = "";
    ls_log_set_node(3);
    const struct ls_simulation_options options = {.limit_ns =
                                                      7200 * LS_NS_PER_S};
    ls_simulation *simulation;
    assert_ok(ls_simulation_create(&simulation, &options));
    assert_ok(ls_log_setup("warn"));
    ls_log_redirect(keep_text, line);
    run(simulation, log_a_line_of_its_own, simulation);
    ls_log_redirect(NULL, NULL);
    assert_string_equal(line, "01:01:01.000 error node 7 late");
    assert_int_equal(ls_log_node(), 3);
    ls_log_set_node(-1);
    ls_simulation_destroy(&simulation);
}

/* ---- invariants ---------------------------------------------------------- */

static void break_promises(void *arg)
{
    assert_false(ls_simulation_is_violated(arg));
    ls_simulation_violation(arg, "promise %d is broken", 1);
    assert_true(ls_simulation_is_violated(arg));
    ls_simulation_violation(arg, "promise %d is broken", 2);
    ls_rest_until(ls_simulation_runtime(arg), LS_NS_PER_S);
}

TEST(the_first_violation_is_what_a_run_returns)
{
    ls_simulation *simulation = simulate(1);
    assert_fails(ls_simulation_run(simulation, break_promises, simulation),
                 LS_EINVARIANT);
    assert_string_equal(ls_error_text(), "promise 1 is broken");
    assert_true(ls_simulation_now(simulation) >= LS_NS_PER_S);
    char lines[4096];
    read_lines(simulation, lines, sizeof lines);
    assert_non_null(strstr(lines, "-/main violation: promise 2 is broken\n"));
    ls_simulation_destroy(&simulation);
}

struct watch {
    int calls;
    int64_t last;
};

static void count_calls(void *self, ls_simulation *simulation)
{
    struct watch *const watch = self;
    watch->calls++;
    watch->last = ls_simulation_now(simulation);
    if (watch->last > LS_NS_PER_S)
        ls_simulation_violation(simulation, "it is late");
}

static void rest_twice(void *arg)
{
    ls_runtime *const runtime = ls_simulation_runtime(arg);
    ls_rest_until(runtime, LS_NS_PER_MS);
    ls_rest_until(runtime, 2 * LS_NS_PER_S);
}

TEST(checks_come_before_time_jumps_and_at_the_end)
{
    ls_simulation *simulation = simulate(1);
    struct watch watches[2] = {{0, 0}, {0, 0}};
    for (int i = 0; i < 2; i++)
        assert_ok(ls_simulation_watch(simulation, count_calls, &watches[i]));
    assert_fails(ls_simulation_run(simulation, rest_twice, simulation),
                 LS_EINVARIANT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(watches[i].calls, 3);
        assert_true(watches[i].last > 2 * LS_NS_PER_S);
    }
    ls_simulation_destroy(&simulation);
}

/* ---- calls at a time ----------------------------------------------------- */

struct calls {
    ls_simulation *simulation;
    char order[16];
    int64_t times[16];
    size_t n;
};

struct call {
    struct calls *calls;
    char letter;
};

static void be_called(void *arg)
{
    const struct call *const call = arg;
    struct calls *const calls = call->calls;
    calls->times[calls->n] = ls_simulation_now(calls->simulation);
    calls->order[calls->n++] = call->letter;
}

static void ask_for_calls(void *arg)
{
    struct calls *const calls = arg;
    static struct call made[6];
    static const int64_t times[] = {30, 10, 20, 10, 20, LS_NOW};
    for (int i = 0; i < 6; i++) {
        made[i] = (struct call){calls, (char)('a' + i)};
        const int64_t at =
            times[i] == LS_NOW ? LS_NOW : times[i] * LS_NS_PER_MS;
        assert_ok(ls_simulation_at(calls->simulation, at, be_called, &made[i]));
    }
    ls_rest_until(ls_simulation_runtime(calls->simulation), 25 * LS_NS_PER_MS);
    assert_string_equal(calls->order, "fbdce");
}

TEST(calls_come_at_their_time_in_the_order_of_asking)
{
    struct calls calls = {.simulation = simulate(1)};
    run(calls.simulation, ask_for_calls, &calls);
    assert_string_equal(calls.order, "fbdce"); /* a was not due */
    assert_true(calls.times[0] < LS_NS_PER_MS);
    assert_int_equal(calls.times[1], 10 * LS_NS_PER_MS);
    assert_int_equal(calls.times[4], 20 * LS_NS_PER_MS);
    ls_simulation_destroy(&calls.simulation);
}

TEST(drawing_for_faults_changes_no_schedule)
{
    uint64_t hashes[2];
    for (int i = 0; i < 2; i++) {
        ls_simulation *simulation = simulate(1);
        for (int n = 0; n < i * 10; n++)
            (void)ls_rng_next(ls_simulation_random(simulation));
        run(simulation, note_on_host, simulation);
        hashes[i] = ls_simulation_hash(simulation);
        ls_simulation_destroy(&simulation);
    }
    assert_true(hashes[0] == hashes[1]);
}
