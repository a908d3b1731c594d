#include "profile.h"

#include <math.h>
#include <unistd.h>

#include "lockstep/file.h"

#include "profile_story.h"
#include "test.h"

enum { SEEDS = 300 };

TEST(times_of_all_nodes_are_of_the_first_ones_clock)
{
    const int64_t works[STORY_NODES] = {
        5 * STORY_MS, 5 * STORY_MS, 5 * STORY_MS, 5 * STORY_MS, 5 * STORY_MS};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct story story;
        struct profile profile;
        story_begin(&story, STORY_NODES, seed);
        int64_t at = 0, begins[40];
        for (uint64_t i = 0; i < 40; i++) {
            begins[i] = at;
            story_beat(&story, at);
            at = story_iteration(&story, i, at, works) + 20 * STORY_MS;
        }
        assert_ok(story_end(&story, &profile));
        const uint16_t step = (uint16_t)profile_name(&profile, "env_step");
        for (size_t node = 0; node < STORY_NODES; node++)
            for (uint64_t i = 0; i < 40; i++) {
                const struct ls_trace_record *const record =
                    profile_record(&profile, node, LS_TRACE_FORWARD, step, i);
                const int64_t truth =
                    story_clock(&story, 0, begins[i] + STORY_MS / 10);
                const double off = fabs((double)(record->begin_ns - truth));
                const double error =
                    profile_error(&profile, node, record->begin_ns);
                if (off > error || error > 150e3)
                    fail_msg("seed %d, node %zu: off by %.0f ns of %.0f",
                             (int)seed, node, off, error);
            }
        profile_clear(&profile);
    }
}

TEST(a_node_that_the_first_has_not_heard_is_compared_by_another)
{
    struct story story;
    struct profile profile;
    story_begin(&story, 3, 1);
    for (uint64_t i = 1; i <= 20; i++) {
        const int64_t at = (int64_t)i * 250 * STORY_MS;
        static const uint32_t pairs[][2] = {{0, 1}, {1, 0}, {1, 2}, {2, 1}};
        for (size_t k = 0; k < 3; k++)
            story_add(&story, k, LS_TRACE_BEAT, "?", at, at, i,
                      LS_TRACE_NOBODY);
        for (size_t k = 0; k < 4; k++)
            story_add(&story, pairs[k][0], LS_TRACE_HEARD, "?", at + 60000,
                      at + 60000, i, pairs[k][1]);
    }
    assert_ok(story_end(&story, &profile));
    assert_true(profile.nodes[2].aligned);
    assert_int_equal(1, profile.nodes[2].parent);
    const struct ls_trace_record *const record =
        profile_record(&profile, 2, LS_TRACE_BEAT, 0, 10);
    const int64_t truth = story_clock(&story, 0, 2500 * STORY_MS);
    const double error = profile_error(&profile, 2, record->begin_ns);
    assert_true(fabs((double)(record->begin_ns - truth)) <= error);
    assert_true(error > 100e3 && error < 150e3); /* two of 60 us */
    profile_clear(&profile);
}

TEST(of_no_recordings_there_is_no_profile)
{
    struct profile profile;
    assert_fails(profile_make(&profile, NULL, 0), LS_ENOENT);
}

TEST(a_node_that_nobody_has_heard_has_no_time)
{
    struct story story;
    struct profile profile;
    story_begin(&story, 2, 1);
    story_add(&story, 1, LS_TRACE_BEAT, "?", 0, 0, 1, LS_TRACE_NOBODY);
    assert_ok(story_end(&story, &profile));
    assert_false(profile.nodes[1].aligned);
    assert_true(isinf(profile_error(&profile, 1, 0)));
    profile_clear(&profile);
}

#define LARGEST (INT64_C(1) << 61)

/* Two nodes, of which the second has this record alone. */
static int make_of(struct profile *out, int64_t begin, int64_t end, int64_t now,
                   int64_t wall)
{
    struct story story;
    story_begin(&story, 2, 0);
    story_add(&story, 0, LS_TRACE_FORWARD, "a", 0, 1, 0, LS_TRACE_NOBODY);
    story_add(&story, 1, LS_TRACE_FORWARD, "a", 0, 1, 0, LS_TRACE_NOBODY);
    story.files[1].records[0].begin_ns = begin;
    story.files[1].records[0].end_ns = end;
    story.files[1].now_ns = now;
    story.files[1].wall_ns = wall;
    story.files[0].now_ns = story.files[0].wall_ns = 0;
    return story_end(&story, out);
}

TEST(a_time_that_no_clock_shows_is_refused)
{
    static const int64_t times[][4] = {
        {INT64_MIN, 0, 0, 0},
        {INT64_MIN, INT64_MAX - 1, 0, 0},
        {-LARGEST - 1, 0, 0, 0},
        {0, LARGEST + 1, 0, 0},
        {0, LS_TRACE_OPEN, INT64_MAX - 1, INT64_MAX - 1},
        {0, 1, INT64_MIN, 0},
        {0, 1, 0, INT64_MIN},
        {0, 1, -1, INT64_MAX},
        {LARGEST, LARGEST, 0, 1},
    };
    struct profile profile;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        assert_fails(make_of(&profile, times[i][0], times[i][1], times[i][2],
                             times[i][3]),
                     LS_EPROTO);
        assert_has(ls_error_text(), "the recording of node 1 has a time");
    }
    assert_ok(make_of(&profile, -LARGEST, LARGEST, LARGEST, LARGEST));
    profile_clear(&profile);
}

/* ---- files --------------------------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    (void)strcpy(folder, "/tmp/lockstep-profile-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_one(void *self, const char *name)
{
    char path[LS_PATH_MAX];
    (void)self;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return ls_file_remove(path);
}

static int remove_folder(void **state)
{
    (void)state;
    assert_ok(ls_folder_each(folder, remove_one, NULL));
    return ls_folder_remove(folder);
}

static void write_bytes(const char *name, const void *data, size_t size)
{
    char path[LS_PATH_MAX], temporary[LS_PATH_MAX];
    const struct ls_file_part part = {data, size};
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)snprintf(temporary, sizeof temporary, "%s/part", folder);
    assert_ok(ls_file_replace(path, temporary, &part, 1, false));
}

static void write_node(const char *name, uint32_t node, const char *job)
{
    static struct story story;
    void *data;
    size_t size;
    story_begin(&story, 1, 0);
    story.files[0].node = node;
    (void)snprintf(story.files[0].job, sizeof story.files[0].job, "%s", job);
    story_add(&story, 0, LS_TRACE_FORWARD, "a", 0, 1, 0, LS_TRACE_NOBODY);
    const int status = ls_trace_encode(&story.files[0], &data, &size);
    ls_trace_clear(&story.files[0]);
    assert_ok(status);
    write_bytes(name, data, size);
    free(data);
}

TEST_WITH(the_recordings_of_a_folder_are_read, make_folder, remove_folder)
{
    struct profile profile;
    write_node("node-7.lstrace", 7, "job");
    write_node("node-3.lstrace", 3, "job");
    write_bytes("note.txt", "x", 1);
    assert_ok(profile_read(&profile, folder));
    assert_int_equal(2, profile.n_nodes);
    assert_int_equal(3, profile.nodes[0].file.node);
    profile_clear(&profile);
}

static void refused(int status, const char *why)
{
    struct profile profile;
    assert_fails(profile_read(&profile, folder), status);
    if (strstr(ls_error_text(), why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", ls_error_text(), why);
}

TEST_WITH(what_is_no_recording_is_named, make_folder, remove_folder)
{
    refused(LS_ENOENT, folder);
    write_node("node-3.lstrace", 3, "job");
    write_bytes("node-4.lstrace", "nonsense", 8);
    refused(LS_EPROTO, "node-4.lstrace");
    write_node("node-4.lstrace", 5, "job");
    refused(LS_EMISMATCH, "node-4.lstrace: it is a recording of node 5");
    write_node("node-4.lstrace", 4, "other");
    refused(LS_EMISMATCH, "two jobs");
}
