/* What a file of faults comes to, what is said of one that is wrong, and what
 * a seed draws. */
#include "faults.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct plan five; /* members with the ids 0 to 4 */

static int make_plan(void **state)
{
    ls_config *config = NULL;
    (void)state;
    return ls_config_parse(&config, "job.yaml",
                           "nodes: [{role: member, count: 5}]\n") == LS_OK &&
                   plan_read(&five, &config, "job.yaml") == LS_OK
               ? 0
               : -1;
}

static int drop_plan(void **state)
{
    (void)state;
    plan_fini(&five);
    return 0;
}

/* Load a file with this text. */
static int load(struct faults *out, const char *text)
{
    char path[] = "/tmp/lockstep-faults-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
    assert_int_equal(close(fd), 0);
    const int status = faults_load(out, path, &five);
    assert_int_equal(unlink(path), 0);
    return status;
}

static void assert_problem(const char *text, const char *place,
                           const char *words)
{
    struct faults faults;
    assert_fails(load(&faults, text), LS_ECONFIG);
    const char *report = ls_config_report(faults.config);
    if (strstr(report, place) == NULL || strstr(report, words) == NULL)
        fail_msg("expected %s … %s in:\n%s", place, words, report);
    faults_fini(&faults);
}

TEST(every_name_is_known)
{
    static const char *const names[] = {"none",    "lossy",    "cuts", "pauses",
                                        "crashes", "stranger", "all"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct faults faults;
        assert_non_null(faults_preset(names[i]));
        assert_ok(faults_load(&faults, names[i], &five));
        faults_fini(&faults);
    }
    assert_null(faults_preset("some"));
}

TEST(none_has_no_faults)
{
    struct faults faults;
    struct fault *list;
    struct ls_rng rng;
    size_t n = 9;
    assert_ok(faults_load(&faults, "none", &five));
    assert_int_equal(faults.path.delay_ns, 50 * LS_NS_PER_US);
    assert_true(faults.path.loss <= 0.0);
    ls_rng_seed(&rng, 1, 0);
    assert_ok(faults_draw(&faults, &five, &rng, &list, &n));
    assert_int_equal(n, 0);
    free(list);
    faults_fini(&faults);
}

TEST(unknown_name_is_refused_with_the_nearest)
{
    struct faults faults;
    assert_fails(faults_load(&faults, "lossey", &five), LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), "did you mean \"lossy\"?"));
    faults_fini(&faults);
    assert_fails(faults_load(&faults, "/nowhere/at.yaml", &five), LS_ENOENT);
    assert_error_has("lockstep help faults");
    faults_fini(&faults);
}

TEST(network_is_taken_over)
{
    struct faults faults;
    assert_ok(load(&faults, "network: {delay_ms: 20, jitter_ms: 2.5,\n"
                            "  loss: 0.25, duplicate: 0.5,\n"
                            "  reorder: 0.125, bytes_per_s: 1000}\n"));
    assert_int_equal(faults.path.delay_ns, 20 * LS_NS_PER_MS);
    assert_int_equal(faults.path.jitter_ns, 2500 * LS_NS_PER_US);
    assert_true(faults.path.loss >= 0.25 && faults.path.loss <= 0.25);
    assert_true(faults.path.duplicate >= 0.5 && faults.path.duplicate <= 0.5);
    assert_true(faults.path.reorder >= 0.125 && faults.path.reorder <= 0.125);
    assert_int_equal(faults.path.bytes_per_s, 1000);
    faults_fini(&faults);
}

static void assert_fault(const struct fault *fault, int64_t at_ms,
                         enum fault_kind kind, uint32_t from, uint32_t to,
                         bool both)
{
    assert_int_equal(fault->at, at_ms * LS_NS_PER_MS);
    assert_int_equal(fault->kind, kind);
    assert_int_equal(fault->from, from);
    assert_int_equal(fault->to, to);
    assert_int_equal(fault->both, both);
}

TEST(script_is_taken_over_in_order_of_time)
{
    struct faults faults;
    struct fault *list;
    struct ls_rng rng;
    size_t n;
    assert_ok(load(&faults, "script:\n"
                            "  - {at: 2, cut: 0 > 4, for_ms: 500}\n"
                            "  - {at: 1.5, cut: 3 - all}\n"
                            "  - {at: 4, heal: all - all}\n"
                            "  - {at: 0, reset: 1 - 2}\n"
                            "  - {at: 3, kill: 2, for_ms: 10}\n"));
    ls_rng_seed(&rng, 1, 0);
    assert_ok(faults_draw(&faults, &five, &rng, &list, &n));
    assert_int_equal(n, 7);
    assert_fault(&list[0], 0, FAULT_RESET, 1, 2, true);
    assert_fault(&list[1], 1500, FAULT_CUT, 3, FAULT_ALL, true);
    assert_fault(&list[2], 2000, FAULT_CUT, 0, 4, false);
    assert_fault(&list[3], 2500, FAULT_HEAL, 0, 4, false);
    assert_int_equal(list[4].kind, FAULT_KILL);
    assert_int_equal(list[5].kind, FAULT_RESTART);
    assert_int_equal(list[5].at, 3010 * LS_NS_PER_MS);
    assert_fault(&list[6], 4000, FAULT_HEAL, FAULT_ALL, FAULT_ALL, true);
    free(list);
    faults_fini(&faults);
}

TEST(shape_changes_a_link_and_changes_it_back)
{
    struct faults faults;
    assert_ok(load(&faults,
                   "network: {loss: 0.5}\n"
                   "script:\n"
                   "  - {at: 1, shape: 0 > 1, network: {delay_ms: 7},\n"
                   "     for_ms: 100}\n"));
    assert_int_equal(faults.n_script, 2);
    assert_int_equal(faults.script[0].path.delay_ns, 7 * LS_NS_PER_MS);
    assert_true(faults.script[0].path.loss >= 0.5); /* what is not said stays */
    assert_int_equal(faults.script[1].kind, FAULT_SHAPE);
    assert_int_equal(faults.script[1].path.delay_ns, 50 * LS_NS_PER_US);
    faults_fini(&faults);
}

TEST(a_stranger_stays_as_long_as_it_is_told)
{
    struct faults faults;
    char text[96];
    assert_ok(load(&faults, "script:\n"
                            "  - {at: 1.5, stranger: 2, for_ms: 250}\n"
                            "  - {at: 2, stranger: 4}\n"));
    assert_int_equal(faults.n_script, 2); /* it is undone by nothing */
    assert_fault(&faults.script[0], 1500, FAULT_STRANGER, 2, 0, false);
    assert_int_equal(faults.script[0].length_ns, 250 * LS_NS_PER_MS);
    assert_int_equal(faults.script[1].length_ns, 0);
    faults_print(&faults.script[0], text, sizeof text);
    assert_string_equal(text, "1.500 s: stranger 2, for_ms: 250");
    faults_print(&faults.script[1], text, sizeof text);
    assert_string_equal(text, "2.000 s: stranger 4");
    assert_true(faults_is_undone(faults.script, 2, 0));
    faults_fini(&faults);
}

TEST(disks_are_among_the_faults)
{
    static const char text[] = "random: {power_cuts: 5, within_s: 2,\n"
                               "  full: {count: 5, length_ms: 300}}\n"
                               "script:\n"
                               "  - {at: 1, power: 2, for_ms: 100}\n"
                               "  - {at: 2, full: 3, for_ms: 200}\n";
    struct faults faults;
    struct fault *list;
    struct ls_rng rng;
    size_t n, powers = 0, full = 0;
    assert_ok(load(&faults, text));
    assert_int_equal(faults.n_script, 4);
    assert_fault(&faults.script[0], 1000, FAULT_POWER, 2, 0, false);
    assert_fault(&faults.script[1], 1100, FAULT_RESTART, 2, 0, false);
    assert_fault(&faults.script[2], 2000, FAULT_FULL, 3, 0, false);
    assert_fault(&faults.script[3], 2200, FAULT_ROOM, 3, 0, false);
    ls_rng_seed(&rng, 3, 0);
    assert_ok(faults_draw(&faults, &five, &rng, &list, &n));
    for (size_t i = 0; i < n; i++) {
        powers += list[i].kind == FAULT_POWER;
        full += list[i].kind == FAULT_FULL;
        assert_true(faults_is_undone(list, n, i));
    }
    assert_true(powers > 1 && powers <= 6 && full > 1 && full <= 6);
    assert_false(faults_is_undone(&(struct fault){.kind = FAULT_POWER}, 1, 0));
    assert_false(faults_is_undone(&(struct fault){.kind = FAULT_FULL}, 1, 0));
    free(list);
    faults_fini(&faults);
}

TEST(strangers_are_drawn_last)
{
    static const char kills[] = "random: {kills: 5, within_s: 2}\n";
    static const char both[] = "random: {kills: 5, within_s: 2,\n"
                               "  strangers: {count: 5, length_ms: 300}}\n";
    struct faults faults[2];
    struct fault *list[2];
    size_t n[2], same = 0;
    for (int i = 0; i < 2; i++) {
        struct ls_rng rng;
        ls_rng_seed(&rng, 3, 0);
        assert_ok(load(&faults[i], i == 0 ? kills : both));
        assert_ok(faults_draw(&faults[i], &five, &rng, &list[i], &n[i]));
    }
    assert_true(n[1] > n[0]);
    for (size_t i = 0; i < n[1]; i++) {
        if (list[1][i].kind != FAULT_STRANGER) {
            assert_int_equal(list[1][i].at, list[0][same++].at);
            continue;
        }
        assert_true(list[1][i].at <= 2 * LS_NS_PER_S);
        assert_true(list[1][i].length_ns > 0 &&
                    list[1][i].length_ns <= 1 + 300 * LS_NS_PER_MS);
    }
    assert_int_equal(same, n[0]); /* the others are as without */
    for (int i = 0; i < 2; i++) {
        free(list[i]);
        faults_fini(&faults[i]);
    }
}

TEST(every_problem_is_shown_at_its_place)
{
    assert_problem("netwrok: {loss: 0.1}\n",
                   ":1:1:", "did you mean \"network\"?");
    assert_problem("network: {loss: 2}\n", ":1:17:", "");
    assert_problem("random:\n  cuts: {cuont: 3}\n",
                   ":2:10:", "did you mean \"count\"?");
    assert_problem("script:\n  - {at: 1, cut: 0 + 2}\n",
                   ":2:18:", "is not a link: write \"0 > 2\" for one way");
    assert_problem("script:\n  - {at: 1, cut: 0 > 7}\n",
                   ":2:18:", "has no such node");
    assert_problem("script:\n  - {at: 1, kill: 7}\n",
                   ":2:19:", "has no node 7");
    assert_problem("script:\n  - {at: 1, stranger: 7}\n",
                   ":2:23:", "has no node 7");
    assert_problem("random:\n  strangers: {cuont: 3}\n",
                   ":2:15:", "did you mean \"count\"?");
    assert_problem("script:\n  - {at: 1}\n", ":2:5:", "what happens then?");
    assert_problem("script:\n  - {cut: 0 - 1}\n", ":2:5:", "at");
    assert_problem("script:\n  - {at: 1, kill: 1, pause: 2}\n",
                   ":2:", "one fault an item");
    assert_problem("script:\n  - {at: 1, reset: 0 - 1, for_ms: 10}\n",
                   ":2:", "for_ms");
}

TEST(a_seed_draws_the_same_faults_again)
{
    struct faults faults;
    size_t n_differ = 0;
    assert_ok(faults_load(&faults, "all", &five));
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fault *list[3];
        struct ls_rng rng;
        size_t n[3];
        for (size_t i = 0; i < 3; i++) {
            ls_rng_seed(&rng, i < 2 ? seed : seed + 1, 0);
            assert_ok(faults_draw(&faults, &five, &rng, &list[i], &n[i]));
        }
        assert_int_equal(n[0], n[1]);
        for (size_t i = 0; i < n[0]; i++) {
            assert_int_equal(list[0][i].at, list[1][i].at);
            assert_int_equal(list[0][i].kind, list[1][i].kind);
        }
        n_differ += n[0] != n[2] || n[0] == 0 || list[0]->at != list[2]->at;
        for (size_t i = 0; i < 3; i++)
            free(list[i]);
    }
    assert_true(n_differ > 40);
    faults_fini(&faults);
}

TEST(what_is_drawn_is_within_bounds_and_undone)
{
    struct faults faults;
    assert_ok(faults_load(&faults, "all", &five));
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fault *list;
        struct ls_rng rng;
        size_t n;
        ls_rng_seed(&rng, seed, 0);
        assert_ok(faults_draw(&faults, &five, &rng, &list, &n));
        assert_true(n <= 2 * (2 + 3 + 2 + 2 + 1 + 1));
        for (size_t i = 0; i < n; i++) {
            assert_true(i == 0 || list[i].at >= list[i - 1].at);
            assert_true(list[i].from < 5 && list[i].to < 5);
            assert_int_not_equal(list[i].from, list[i].to);
            assert_true(faults_is_undone(list, n, i));
        }
        free(list);
    }
    faults_fini(&faults);
}

TEST(a_scripted_cut_lasts_until_it_is_healed)
{
    const struct fault list[] = {
        {.kind = FAULT_CUT, .from = 0, .to = 1, .both = true},
        {.kind = FAULT_HEAL, .from = 0, .to = 1},
        {.kind = FAULT_KILL, .from = 2},
        {.kind = FAULT_RESTART, .from = 3},
        {.kind = FAULT_CUT, .from = 3, .to = 1},
        {.kind = FAULT_HEAL, .from = FAULT_ALL, .to = 1},
        {.kind = FAULT_RESET, .from = 0, .to = 1},
    };
    const size_t n = sizeof list / sizeof list[0];
    assert_false(faults_is_undone(list, n, 0)); /* one way of it only */
    assert_false(faults_is_undone(list, n, 2)); /* another came back */
    assert_true(faults_is_undone(list, n, 4));
    assert_true(faults_is_undone(list, n, 6)); /* nothing to undo */
}

TEST(clocks_are_drawn_within_bounds)
{
    struct faults faults;
    struct ls_rng rng;
    assert_ok(load(&faults, "random: {skew: {offset_ms: 3, drift: 0.01}}\n"));
    ls_rng_seed(&rng, 5, 0);
    for (int i = 0; i < 100; i++) {
        int64_t offset;
        double drift;
        faults_draw_skew(&faults, &rng, &offset, &drift);
        assert_true(offset >= 0 && offset <= 3000000);
        assert_true(drift >= -0.01 && drift <= 0.01);
    }
    faults_fini(&faults);
}

TEST(clocks_are_set_ahead_and_back)
{
    struct faults faults;
    struct ls_rng rng;
    size_t ahead = 0, back = 0;
    assert_ok(load(&faults, "random: {steps: {count: 3, by_ms: 7}}\n"));
    ls_rng_seed(&rng, 5, 0);
    for (int i = 0; i < 100; i++) {
        struct fault *list;
        size_t n;
        assert_ok(faults_draw(&faults, &five, &rng, &list, &n));
        assert_in_range(n, 0, 3);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(list[k].kind, FAULT_CLOCK);
            assert_true(list[k].length_ns >= -7000000 &&
                        list[k].length_ns <= 7000000);
            ahead += list[k].length_ns > 0 ? 1 : 0;
            back += list[k].length_ns < 0 ? 1 : 0;
        }
        free(list);
    }
    assert_true(ahead > 30 && back > 30);
    faults_fini(&faults);
    assert_ok(load(&faults, "script: [{at: 1, clock: 1, by_ms: -300}]\n"));
    assert_int_equal(faults.script[0].kind, FAULT_CLOCK);
    assert_true(faults.script[0].length_ns == -300000000);
    faults_fini(&faults);
}

/* What all of it draws, written down and read again. */
static void assert_loads_as_the_same(const char *from)
{
    struct faults faults, again;
    struct ls_rng rng;
    struct fault *list;
    size_t n, size;
    char *text = NULL;
    assert_ok(load(&faults, from));
    ls_rng_seed(&rng, 5, 0);
    assert_ok(faults_draw(&faults, &five, &rng, &list, &n));
    assert_true(n > 20);
    struct faults whole = faults;
    whole.script = list;
    whole.n_script = n;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    faults_write(&whole, out);
    assert_int_equal(fclose(out), 0);
    assert_ok(load(&again, text));
    assert_memory_equal(&again.path, &faults.path, sizeof faults.path);
    assert_int_equal(again.random.offset_ns, faults.random.offset_ns);
    assert_true(again.random.drift == faults.random.drift);
    assert_int_equal(again.n_script, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(again.script[i].at == list[i].at);
        assert_int_equal(again.script[i].kind, list[i].kind);
        assert_int_equal(again.script[i].from, list[i].from);
        assert_true(again.script[i].length_ns == list[i].length_ns);
        if (list[i].kind < FAULT_PAUSE) {
            assert_int_equal(again.script[i].to, list[i].to);
            assert_int_equal(again.script[i].both, list[i].both);
        }
        if (list[i].kind == FAULT_SHAPE)
            assert_true(again.script[i].path.loss == list[i].path.loss);
    }
    free(text);
    free(list);
    faults_fini(&again);
    faults_fini(&faults);
}

TEST(what_is_written_loads_as_the_same)
{
    assert_loads_as_the_same(
        "network: {delay_ms: 0.1, jitter_ms: 3, loss: 0.05}\n"
        "random:\n"
        "  {cuts: {count: 9}, resets: 9, pauses: {count: 9}, kills: 9,\n"
        "   strangers: {count: 9}, steps: {count: 9},\n"
        "   skew: {offset_ms: 0.3, drift: 0.001}}\n"
        "script: [{at: 0.7, shape: all > 2, network: {loss: 0.3}}]\n");
}

TEST(so_does_what_takes_as_long_as_it_may)
{
    assert_loads_as_the_same(
        "random:\n"
        "  {cuts: {count: 9, length_ms: 86400000}, kills: 9,\n"
        "   restart_ms: 86400000, full: {count: 9, length_ms: 86400000},\n"
        "   strangers: {count: 9, length_ms: 86400000},\n"
        "   within_s: 86400}\n");
}

TEST(a_fault_prints_as_a_script_says_it)
{
    char text[96];
    faults_print(&(struct fault){.at = 1500000000,
                                 .kind = FAULT_CUT,
                                 .from = 0,
                                 .to = FAULT_ALL,
                                 .both = true},
                 text, sizeof text);
    assert_string_equal(text, "1.500 s: cut 0 - all");
    faults_print(&(struct fault){.kind = FAULT_KILL, .from = 3}, text,
                 sizeof text);
    assert_string_equal(text, "0.000 s: kill 3");
    faults_print(&(struct fault){.kind = FAULT_CLOCK, .length_ns = -300000000},
                 text, sizeof text);
    assert_string_equal(text, "0.000 s: clock 0, by_ms: -300");
}

int main(void)
{
    return tests_run_with(make_plan, drop_plan);
}
