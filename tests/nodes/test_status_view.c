/* What nodes say of themselves and of each other, as a table. */
#include "status_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"
#include "test.h"

enum { N = 4 };
static const uint32_t ids[N] = {0, 1, 2, 3};

/* Two that answer, one that does not, one that is gone; node 9 is on another
 * host. */
struct moment {
    struct health_answer answers[N];
    struct health_peer peers[3];
};

static struct moment moment(int64_t clock_s, int64_t iterations)
{
    struct moment made;
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < 2; i++)
        made.answers[i].health = (struct health){
            .state = HEALTH_RUNNING,
            .iterations = iterations,
            .role = "collector",
            .host = "box",
            .pid = 4711 + (int64_t)i,
            .clock_ns = clock_s * LS_NS_PER_S,
            .running_ns = 41 * LS_NS_PER_S,
            .step = "collect",
            .step_ns = 3200 * LS_NS_PER_MS,
            .env_step = 100 * iterations,
            .events = 2 * (uint64_t)iterations,
            .waited_ns = LS_NS_PER_S,
            .window_ns = 4 * LS_NS_PER_S,
        };
    made.answers[2].status = LS_ETIMEDOUT;
    made.answers[3].status = LS_ENOENT;
    made.peers[0] = (struct health_peer){
        .id = 2, .state = "ready", .role = "learner", .heard_ms = 12300};
    made.peers[1] = (struct health_peer){.id = 3,
                                         .state = "lost",
                                         .role = "evaluator",
                                         .heard_ms = 4000,
                                         .awaited_ns = LS_NS_PER_S / 2};
    made.peers[2] = (struct health_peer){.id = 9,
                                         .state = "ready",
                                         .role = "collector",
                                         .endpoint = "tcp://far:21500",
                                         .heard_ms = 100};
    return made;
}

static struct status_view view_of(struct moment *now, struct moment *before)
{
    struct status_view view;
    now->answers[0].health.peers = now->peers;
    now->answers[0].health.n_peers = 3;
    assert_ok(status_view_make(
        &view, &(struct status_asked){ids, now->answers, N},
        before != NULL ? &(struct status_asked){ids, before->answers, N}
                       : NULL));
    view.job = "job";
    view.folder = "out/job/3";
    return view;
}

/* own */
static char *text_of(const struct status_view *view)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    status_view_print(view, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

TEST(each_node_has_a_line_whatever_became_of_it)
{
    (void)state;
    struct moment now = moment(12, 30), before = moment(10, 10);
    struct status_view view = view_of(&now, &before);
    assert_int_equal(view.n, 5);
    assert_int_equal(view.n_answer, 2);
    assert_float_equal(view.nodes[0].iterations_per_s, 10.0, 1e-9);
    assert_float_equal(view.nodes[0].env_steps_per_s, 1000.0, 1e-9);
    assert_float_equal(view.nodes[1].events_per_s, 20.0, 1e-9);
    char *text = text_of(&view);
    assert_has(text,
               "job, in out/job/3: 2 of 5 nodes answer, running for 41 s");
    assert_has(text,
               "     0  collector    box 4711                       30  "
               "    10.0      1000      20.0    25%  collect for 3.2 s\n");
    assert_has(text, "     2  learner      does not answer, last heard by "
                     "others 12.3 s ago\n");
    assert_has(text, "     3  evaluator    gone, last heard by others 4.0 s "
                     "ago\n");
    assert_has(text, "     9  collector    not on this host: tcp://far:21500, "
                     "last heard by others 0.1 s ago\n");
    assert_has(text, "  slowest  node 3 (evaluator): 25% of all waiting");
    free(text);
    status_view_clear(&view);
}

TEST(a_node_that_was_started_again_has_no_rate_yet)
{
    (void)state;
    struct moment now = moment(12, 30), before = moment(10, 10);
    now.answers[0].health.incarnation = 2;
    struct status_view view = view_of(&now, &before);
    assert_true(isnan(view.nodes[0].iterations_per_s) != 0);
    assert_true(isnan(view.nodes[1].iterations_per_s) == 0);
    status_view_clear(&view);
    view = view_of(&now, NULL);
    assert_true(isnan(view.nodes[1].iterations_per_s) != 0);
    status_view_clear(&view);
}

TEST(who_alone_is_not_at_the_barrier_is_waited_for)
{
    (void)state;
    struct moment now = moment(12, 30);
    now.answers[0].health.waiting_ns = now.answers[1].health.waiting_ns =
        LS_NS_PER_S;
    struct status_view view = view_of(&now, NULL);
    assert_int_equal(view.slowest, 2);
    assert_int_equal(view.nodes[2].awaited_ns, 2 * LS_NS_PER_S);
    status_view_clear(&view);
    now.answers[1].health.waiting_ns = 0; /* so does node 1: either of them */
    view = view_of(&now, NULL);
    assert_int_equal(view.nodes[2].awaited_ns, 0);
    status_view_clear(&view);
}

TEST(what_was_lost_is_told_and_nothing_that_a_terminal_obeys)
{
    (void)state;
    struct moment now = moment(12, 30);
    struct health *health = &now.answers[1].health;
    health->lost = 2;
    health->dropped = 3;
    (void)strcpy(health->losses, "\"a\" from 0 to 1: 2 missed\nand \033[2J");
    (void)strcpy(health->step, "\033]0;x\007");
    (void)strcpy(health->host, "a\nb");
    now.answers[2].status = LS_EPROTO;
    (void)strcpy(now.answers[2].text, "the answer of a node: \001");
    struct status_view view = view_of(&now, NULL);
    char *text = text_of(&view);
    assert_null(strpbrk(text, "\033\007\001"));
    assert_has(text, "node 1: 2 lost, 3 dropped\n"
                     "             \"a\" from 0 to 1: 2 missed\n"
                     "             and ?[2J\n");
    assert_has(text, "a?b 4712 ");
    assert_has(text, "the answer of a node: ?\n");
    free(text);
    status_view_clear(&view);
}

TEST(sums_of_what_nodes_say_end_where_figures_do)
{
    (void)state;
    struct moment now = moment(12, 30), before = moment(10, 10);
    for (size_t i = 0; i < 2; i++) {
        now.answers[i].health.waited_ns = INT64_MAX;
        now.answers[i].health.waiting_ns = INT64_MAX;
        now.answers[i].health.iterations = INT64_MAX;
        now.answers[i].health.clock_ns = INT64_MAX;
        now.answers[i].health.lost = UINT64_MAX;
        before.answers[i].health.iterations = INT64_MIN;
        before.answers[i].health.clock_ns = INT64_MIN;
    }
    now.peers[0].awaited_ns = now.peers[1].awaited_ns = INT64_MAX;
    now.peers[2] = now.peers[1];
    struct status_view view = view_of(&now, &before);
    assert_true(view.waited_ns == INT64_MAX);
    assert_true(view.nodes[2].awaited_ns == INT64_MAX);
    assert_true(view.nodes[3].awaited_ns == INT64_MAX);
    assert_true(view.nodes[0].iterations_per_s > 0);
    free(text_of(&view));
    assert_ok(status_view_json(&view));
    status_view_clear(&view);
}
