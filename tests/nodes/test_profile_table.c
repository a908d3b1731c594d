#include "profile_table.h"

#include <math.h>
#include <unistd.h>

#include "base/seeds.h"
#include "profile_show.h"
#include "profile_story.h"
#include "test.h"

struct analysis {
    struct story story;
    struct profile profile;
    struct profile_graph graph;
    struct profile_table table;
};

static void analyse(struct analysis *self)
{
    assert_ok(story_end(&self->story, &self->profile));
    assert_ok(profile_graph_make(&self->graph, &self->profile));
    assert_ok(profile_table_make(&self->table, &self->graph));
}

static void clear(struct analysis *self)
{
    profile_table_clear(&self->table);
    profile_graph_clear(&self->graph);
    profile_clear(&self->profile);
}

static double share(const struct analysis *self, size_t node)
{
    const struct profile_row *most;
    return profile_blame(&self->table, node, &most) / self->table.waited_ns;
}

static void near(double expected, double actual, double by)
{
    if (fabs(expected - actual) > by)
        fail_msg("expected %g, got %g", expected, actual);
}

static const struct profile_row *row_of(const struct analysis *self,
                                        size_t node, const char *name)
{
    for (size_t i = 0; i < self->table.n_rows; i++) {
        const struct profile_row *const row = &self->table.rows[i];
        if (row->node == node &&
            strcmp(profile_step_text(&self->profile, row->name), name) == 0)
            return row;
    }
    fail_msg("node %zu has no step %s", node, name);
    return NULL;
}

/* 40 iterations, in which node i works works[k % 2][i]. */
static void run(struct analysis *self, uint64_t seed, size_t n,
                const int64_t works[2][STORY_NODES])
{
    int64_t at = 0;
    story_begin(&self->story, n, seed);
    for (uint64_t i = 0; i < 40; i++) {
        story_beat(&self->story, at);
        at = story_iteration(&self->story, i, at, works[i % 2]);
    }
    story_beat(&self->story, at);
    analyse(self);
}

#define TEN (10 * STORY_MS)

TEST(the_one_that_is_slow_is_named_and_its_step_whatever_the_clocks)
{
    static const int64_t works[2][STORY_NODES] = {
        {TEN, TEN, TEN, 3 * TEN, TEN}, {TEN, TEN, TEN, 3 * TEN, TEN}};
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct analysis self;
        const struct profile_row *most;
        run(&self, seed, STORY_NODES, works);
        (void)profile_blame(&self.table, 3, &most);
        assert_ptr_equal(most, row_of(&self, 3, "env_step"));
        /* The barriers cost 0.2 ms for each of five, of 4 * 20 ms. */
        near(80.0 / 81.0, share(&self, 3), 0.05);
        near(0.0, share(&self, 2), 0.01);
        near(1.0,
             (profile_blame(&self.table, 3, &most) + self.table.messages_ns +
              self.table.undecided_ns) /
                 self.table.waited_ns,
             0.02);
        near(30e6, row_of(&self, 3, "env_step")->p50_ns, 1e5);
        near(10e6, row_of(&self, 4, "env_step")->p99_ns, 1e5);
        assert_int_equal(40, self.table.iterations);
        clear(&self);
    }
}

TEST(two_that_are_slow_in_turn_get_each_its_half)
{
    static const int64_t works[2][STORY_NODES] = {
        {TEN, TEN, 4 * TEN, TEN, TEN}, {TEN, TEN, TEN, 4 * TEN, TEN}};
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct analysis self;
        run(&self, seed, STORY_NODES, works);
        near(0.5, share(&self, 2), 0.05);
        near(0.5, share(&self, 3), 0.05);
        clear(&self);
    }
}

TEST(what_two_hold_up_together_belongs_to_both)
{
    static const int64_t works[2][STORY_NODES] = {{TEN, 2 * TEN, 3 * TEN},
                                                  {TEN, 2 * TEN, 3 * TEN}};
    struct analysis self;
    run(&self, 0, 3, works);
    /* Node 0 waits 10 ms for both and 10 for node 2, as node 1 does. */
    near(5.0 / 30.0, share(&self, 1), 0.01);
    near(25.0 / 30.0, share(&self, 2), 0.02);
    clear(&self);
}

TEST(nobody_is_named_within_the_error_of_the_clocks)
{
    static const int64_t works[2][STORY_NODES] = {
        {TEN, TEN + 20000, TEN, TEN - 20000, TEN},
        {TEN - 20000, TEN, TEN, TEN, TEN + 20000}};
    struct analysis self;
    run(&self, 5, STORY_NODES, works);
    for (size_t i = 0; i < STORY_NODES; i++)
        near(0.0, share(&self, i), 1e-9);
    assert_true(self.table.undecided_ns > 0);
    clear(&self);
}

/* Collectors 1 and 2 work and send; node 0 waits in "data" for both, learns,
 * and all wait for it. Node 2 is the slower. */
static void in_exchanges(struct analysis *self, uint64_t seed)
{
    static const int64_t works[] = {0, 10 * STORY_MS, 30 * STORY_MS};
    story_begin(&self->story, 3, seed);
    struct story *const story = &self->story;
    for (uint64_t k = 0; k < 30; k++) {
        const int64_t at = (int64_t)k * 36 * STORY_MS;
        const int64_t came = at + 31 * STORY_MS, done = at + 35 * STORY_MS;
        const int64_t end = at + 36 * STORY_MS;
        story_beat(story, at);
        for (size_t i = 1; i < 3; i++) {
            const int64_t sent = at + works[i];
            story_add(story, i, LS_TRACE_FORWARD, "collect", at, sent, k,
                      LS_TRACE_NOBODY);
            story_add(story, i, LS_TRACE_SEND, "ls.exchange.data", sent,
                      sent + 1000, k + 1, LS_TRACE_NOBODY);
            story_add(story, 0, LS_TRACE_RECEIVE, "ls.exchange.data",
                      sent + STORY_MS, sent + STORY_MS, k + 1, (uint32_t)i);
            story_add(story, i, LS_TRACE_BARRIER, "step", sent, end, k,
                      LS_TRACE_NOBODY);
            story_add(story, i, LS_TRACE_BACKWARD, "barrier", sent, end, k,
                      LS_TRACE_NOBODY);
        }
        story_add(story, 0, LS_TRACE_FORWARD, "data", at, came, k,
                  LS_TRACE_NOBODY);
        story_add(story, 0, LS_TRACE_FORWARD, "learn", came, done, k,
                  LS_TRACE_NOBODY);
        story_add(story, 0, LS_TRACE_BARRIER, "step", done, end, k,
                  LS_TRACE_NOBODY);
        story_add(story, 0, LS_TRACE_BACKWARD, "barrier", done, end, k,
                  LS_TRACE_NOBODY);
    }
    analyse(self);
}

TEST(who_waits_for_one_that_waits_waits_for_whom_it_waits)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct analysis self;
        in_exchanges(&self, seed);
        const double waited = 31 + 26 + 6 + 1; /* ms, of nodes 0, 1, 2 */
        near(waited * 30e6, self.table.waited_ns, 2e6);
        /* Node 0: 10 ms for both, 20 for node 2 alone. Node 1: at first for
         * both others; that half of node 0 that waits for node 2 is its, too.
         */
        near((5.0 + 20 + 20) / waited, share(&self, 2), 0.02);
        near(5.0 / waited, share(&self, 1), 0.01);
        near(8.0 / waited, share(&self, 0), 0.02); /* learns while two wait */
        near(31e6, row_of(&self, 0, "data")->waited_ns / 30, 3e5);
        clear(&self);
    }
}

/* Each is in a barrier of its own for a second, to which all others come in the
 * last millisecond. */
TEST(all_may_wait_for_all)
{
    const int64_t end = 1000 * STORY_MS;
    struct analysis self;
    char name[16];
    story_begin(&self.story, STORY_MOST, 0);
    for (size_t i = 0; i < STORY_MOST; i++) {
        story_add(&self.story, i, LS_TRACE_FORWARD, "step", 0, end, 0,
                  LS_TRACE_NOBODY);
        for (size_t j = 0; j < STORY_MOST; j++) {
            (void)snprintf(name, sizeof name, "barrier %zu", j);
            story_add(&self.story, i, LS_TRACE_BARRIER, name,
                      i == j ? 0 : end - STORY_MS, end, 0, LS_TRACE_NOBODY);
        }
    }
    analyse(&self);
    near(1.0, self.table.undecided_ns / self.table.waited_ns, 0.02);
    clear(&self);
}

TEST(a_step_as_fast_as_those_of_the_others)
{
    static const int64_t works[2][STORY_NODES] = {
        {TEN, TEN, TEN, 3 * TEN, TEN}, {TEN, TEN, TEN, 3 * TEN, TEN}};
    struct analysis self;
    double gain;
    bool others;
    run(&self, 3, STORY_NODES, works);
    assert_ok(profile_what_if(&self.table, &self.graph,
                              row_of(&self, 3, "env_step"), &gain, &others));
    assert_true(others);
    near(20.0 / 30.2, gain, 0.01);
    assert_ok(profile_what_if(&self.table, &self.graph,
                              row_of(&self, 2, "env_step"), &gain, &others));
    near(0.0, gain, 0.001); /* it is not waited for */
    clear(&self);
}

TEST(a_step_that_no_other_has_in_half_the_time)
{
    struct analysis self;
    double gain;
    bool others;
    in_exchanges(&self, 3);
    assert_ok(profile_what_if(&self.table, &self.graph,
                              row_of(&self, 0, "learn"), &gain, &others));
    assert_false(others);
    near(2.0 / 36, gain, 0.005);
    assert_ok(profile_what_if(&self.table, &self.graph,
                              row_of(&self, 2, "collect"), &gain, &others));
    assert_true(others);
    near(20.0 / 36, gain, 0.01);
    clear(&self);
}

TEST(a_node_without_steps_is_in_no_row)
{
    struct analysis self;
    story_begin(&self.story, 2, 0);
    story_beat(&self.story, 0);
    analyse(&self);
    assert_int_equal(0, self.table.n_rows);
    clear(&self);
}

TEST(who_is_alone_waits_for_nobody)
{
    static const int64_t works[2][STORY_NODES] = {{TEN}, {TEN}};
    struct analysis self;
    run(&self, 0, 1, works);
    assert_true(self.table.waited_ns > 0);
    near(self.table.waited_ns, self.table.messages_ns, 1);
    near(0, share(&self, 0), 1e-9);
    clear(&self);
}

/* ---- of what another program wrote --------------------------------------- */

/* What is shown to people. own. */
static char *shown_of(const struct analysis *self)
{
    FILE *to = tmpfile();
    char *text = calloc(1, 8192);
    const int before = dup(STDOUT_FILENO);
    assert_non_null(to);
    assert_non_null(text);
    (void)fflush(stdout);
    assert_true(dup2(fileno(to), STDOUT_FILENO) >= 0);
    const int status = profile_print(&self->table, &self->graph, false);
    (void)fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    (void)close(before);
    assert_ok(status);
    rewind(to);
    assert_true(fread(text, 1, 8191, to) > 0);
    (void)fclose(to);
    return text;
}

/* U+009B begins what a terminal obeys, as ESC [ does. */
TEST(a_name_has_nothing_that_a_terminal_obeys)
{
    struct analysis self;
    story_begin(&self.story, 1, 0);
    (void)strcpy(self.story.files[0].job, "job\xc2\x9b");
    (void)strcpy(self.story.files[0].role, "role\xc2\x9b");
    story_add(&self.story, 0, LS_TRACE_FORWARD, "step\xc2\x9b", 0, STORY_MS, 0,
              LS_TRACE_NOBODY);
    self.story.files[0].lost = UINT64_MAX;
    analyse(&self);
    char *text = shown_of(&self);
    assert_null(strchr(text, '\x9b'));
    assert_has(text, "job?: 1 iterations");
    assert_has(text, "role?");
    assert_has(text, "step?");
    assert_has(text, "9,223,372,036,854,775,807 records had no room");
    free(text);
    clear(&self);
}

/* Anything that a recording may say: waits for what comes later, steps that lie
 * across each other, each as long as can be. */
static void tell_anything(struct story *story, uint64_t seed)
{
    static const enum ls_trace_kind kinds[] = {LS_TRACE_BARRIER,
                                               LS_TRACE_FORWARD};
    const double most = 0x1p61;
    struct ls_rng rng;
    ls_rng_seed(&rng, seed, 7);
    story_begin(story, 2 + ls_rng_below(&rng, 3), 0);
    for (uint64_t i = 0; i < 24 * story->n; i++) {
        const size_t node = i % story->n;
        struct ls_trace_file *const file = &story->files[node];
        story_add(story, node, kinds[i / story->n % 2], "env_step", 0, 0,
                  i / story->n / 2, LS_TRACE_NOBODY);
        struct ls_trace_record *const record =
            &file->records[file->n_records - 1];
        const double one = (2 * ls_rng_double(&rng) - 1) * most;
        const double other = (2 * ls_rng_double(&rng) - 1) * most;
        record->begin_ns = (int64_t)fmin(one, other);
        record->end_ns = ls_rng_below(&rng, 2) == 0 ? record->begin_ns + 1
                                                    : (int64_t)fmax(one, other);
        file->now_ns = 0;
    }
}

TEST(the_longest_times_are_summed_up)
{
    const struct seeds seeds = seeds_of(3000);
    const uint64_t n_seeds = seeds.end - seeds.first;
    size_t n = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct analysis self;
        double gain;
        bool others;
        tell_anything(&self.story, seed);
        if (story_end(&self.story, &self.profile) != LS_OK)
            continue; /* beyond what any clock shows, on that of the first */
        assert_ok(profile_graph_make(&self.graph, &self.profile));
        assert_ok(profile_table_make(&self.table, &self.graph));
        for (size_t i = 0; i < self.table.n_rows; i++) {
            assert_true(self.table.rows[i].worked_ns >= 0);
            assert_ok(profile_what_if(&self.table, &self.graph,
                                      &self.table.rows[i], &gain, &others));
            assert_true(isfinite(gain));
        }
        clear(&self);
        n++;
    }
    assert_true(30 * n > n_seeds || n_seeds < 100); /* of a few, maybe none */
}
