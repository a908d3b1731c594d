/* The figures of a run, from what its nodes report. */
#include "plan_reading.h"
#include "render_state.h"
#include "still_clock.h"

#include <unistd.h>

struct shown {
    struct plan plan;
    render *render;
};

static void show_job(struct shown *shown, const char *job, unsigned lives)
{
    stop_clock();
    clock_ns = 1000 * LS_NS_PER_S;
    read_good(&shown->plan, job);
    assert_ok(render_create(&shown->render, &shown->plan, true,
                            shown->plan.n_nodes, &runtime));
    render_run(shown->render,
               &(struct render_run){.folder = "out", .lives = lives});
    const struct report started = report_of(0, REPORT_STARTED);
    render_report(shown->render, 0, &started);
}

static void show(struct shown *shown, unsigned lives)
{
    show_job(shown, FIVE, lives);
}

static void hide(struct shown *shown)
{
    render_destroy(&shown->render);
    plan_fini(&shown->plan);
}

/* The learner has ended another iteration, `s` seconds after what it said last.
 */
static void progress(struct shown *shown, int64_t iteration, int64_t env_step,
                     int64_t s)
{
    struct report report = report_of(0, REPORT_PROGRESS);
    clock_ns += s * LS_NS_PER_S;
    report.iteration = iteration;
    report.env_step = env_step;
    render_report(shown->render, 0, &report);
}

/* What the summary for people says. own. */
static char *summary_of(render *shown)
{
    FILE *to = tmpfile();
    char *text = calloc(1, 8192);
    const int before = dup(STDOUT_FILENO);
    assert_non_null(to);
    assert_non_null(text);
    (void)fflush(stdout);
    assert_true(dup2(fileno(to), STDOUT_FILENO) >= 0);
    render_text_summary(shown);
    (void)fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    (void)close(before);
    rewind(to);
    assert_true(fread(text, 1, 8191, to) > 0);
    (void)fclose(to);
    return text;
}

TEST(a_new_run_counts_its_steps_from_when_the_world_was_formed)
{
    struct shown shown = {.render = NULL};
    show(&shown, 0);
    progress(&shown, 1, 500, 1);
    progress(&shown, 3, 2000, 1);
    assert_float_equal(render_totals(shown.render).env_steps_per_s, 1000, 0);
    hide(&shown);
}

TEST(what_a_run_counted_in_its_lives_before_is_no_part_of_its_rate)
{
    struct shown shown = {.render = NULL};
    show(&shown, 1);
    progress(&shown, 101, 50500, 1);
    assert_float_equal(render_totals(shown.render).env_steps_per_s, 0, 0);
    progress(&shown, 103, 51500, 2);
    assert_float_equal(render_totals(shown.render).env_steps_per_s, 500, 0);
    hide(&shown);
}

TEST(the_times_of_a_learner_are_means_over_what_it_learned_itself)
{
    struct shown shown = {.render = NULL};
    show(&shown, 1);
    struct report done = report_of(0, REPORT_DONE);
    done.iteration = 110;
    done.trained = 10;
    done.train_ns = 50 * LS_NS_PER_MS;
    render_report(shown.render, 0, &done);
    assert_float_equal(render_learners(shown.render).train_ms, 5, 0);
    hide(&shown);
}

static void end_of(struct shown *shown, size_t index, int64_t trained,
                   const char *told)
{
    struct report done = report_of((uint32_t)index, REPORT_DONE);
    done.trained = trained;
    report_set_metrics(&done, told, strlen(told));
    render_report(shown->render, index, &done);
}

static void assert_learned(const struct shown *shown, const char *told)
{
    const struct report_metrics *const is = render_learned(shown->render);
    assert_int_equal(is->size, strlen(told));
    assert_memory_equal(is->bytes, told, is->size);
}

TEST(sums_of_what_nodes_say_end_where_figures_do)
{
    struct shown shown = {.render = NULL};
    show(&shown, 1);
    progress(&shown, 1, INT64_MIN, 1);
    progress(&shown, 2, INT64_MAX, 1);
    struct report done = report_of(0, REPORT_DONE);
    done.iteration = 3;
    done.env_step = done.discarded = INT64_MAX;
    done.sent = done.sent_bytes = done.lost = done.dropped = INT64_MAX;
    done.refused = done.trained = done.train_ns = done.load_ns = INT64_MAX;
    done.wait_ns = done.overlap_ns = done.policy_only = INT64_MAX;
    for (size_t i = 0; i < shown.plan.n_nodes; i++)
        render_report(shown.render, i, &done);
    const struct totals totals = render_totals(shown.render);
    assert_true(totals.sent == INT64_MAX && totals.sent_bytes == INT64_MAX);
    assert_true(totals.lost == INT64_MAX && totals.refused == INT64_MAX);
    assert_true(totals.env_steps_per_s > 0);
    assert_true(render_learners(shown.render).iterations == INT64_MAX);
    free(summary_of(shown.render));
    hide(&shown);
}

TEST(what_a_service_job_learned_is_told_by_who_learned_most)
{
    struct shown shown = {.render = NULL};
    show_job(&shown,
             "job: j\nplugin: counter\nnodes:\n"
             "  - {role: coordinator}\n  - {role: learner, count: 3}\n"
             "  - {role: collector}\nstop: {env_step: 9}\n",
             0);
    assert_learned(&shown, "");
    end_of(&shown, 0, 0, "the coordinator");
    assert_learned(&shown, "the coordinator");
    end_of(&shown, 1, 3, "a few");
    end_of(&shown, 2, 5, "most");
    end_of(&shown, 3, 9, ""); /* had no figures */
    assert_learned(&shown, "most");
    hide(&shown);
}

TEST(what_the_members_of_a_service_job_counted_is_summed)
{
    struct shown shown = {.render = NULL};
    show_job(&shown,
             "job: j\nplugin: counter\nnodes:\n"
             "  - {role: coordinator}\n  - {role: learner}\n"
             "  - {role: collector}\nstop: {env_step: 9}\n",
             0);
    struct report done = report_of(0, REPORT_DONE);
    done.requeued = 4;
    done.refused_starts = 5;
    done.staleness = 0.5;
    done.staleness_max = 3;
    render_report(shown.render, 0, &done);
    for (size_t i = 1; i < 3; i++) {
        done = report_of((uint32_t)i, REPORT_DONE);
        done.works = 10;
        done.given_back = 1;
        done.failed_calls = 2;
        done.refused_calls = 3;
        done.dropped_samples = 4;
        done.store_refused = 6;
        render_report(shown.render, i, &done);
    }
    const struct member_totals totals = render_members(shown.render);
    assert_int_equal(totals.works, 20);
    char *text = summary_of(shown.render);
    static const char *const rows[] = {
        "  staleness      mean 0.50 versions of the policy, at most 3\n",
        "  not learned    taken by nobody 8\n",
        "  works          given out again 4, given back 2, not taken 5\n",
        ("  failed calls   for want of data or policy 4, "
         "for want of coordinator.data.max_mib 12, refused 6\n")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_non_null(strstr(text, rows[i]));
    free(text);
    hide(&shown);
}

TEST(the_memory_of_nodes_with_long_ids_is_told_of_all_of_them)
{
    struct shown shown = {.render = NULL};
    show_job(&shown,
             "plugin: p\nnodes:\n"
             "  - {role: learner, id: 4000000000}\n"
             "  - {role: collector, id: 4000000001, count: 15}\n",
             0);
    for (size_t i = 0; i < 16; i++) {
        struct report done = report_of(4000000000u + (uint32_t)i, REPORT_DONE);
        done.peak_kib = 1234567;
        render_launched(shown.render, i, 100 + (long)i);
        render_report(shown.render, i, &done);
    }
    char *text = summary_of(shown.render);
    assert_non_null(strstr(text, "1205.6, "));
    assert_non_null(strstr(text, "(nodes 4000000000 4000000001 "));
    assert_non_null(strstr(text, " 4000000015)\n"));
    free(text);
    hide(&shown);
}
