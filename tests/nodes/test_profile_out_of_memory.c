/* The profile of a run, whose memory runs out at each place: it is the same, or
 * there is none. */
#include <math.h>
#include <unistd.h>

#include "allocations.h"
#include "lockstep/file.h"
#include "profile_show.h"
#include "profile_story.h"
#include "test.h"

enum { NODES = 3, ROWS = 16 };

struct bytes {
    void *data; /* own */
    size_t size;
};

static char path[64];

/* The last is slow, and the first takes what the others send. */
static void record(struct bytes out[NODES])
{
    static struct story story;
    const int64_t works[STORY_NODES] = {STORY_MS, 2 * STORY_MS, 9 * STORY_MS};
    int64_t at = 0;
    story_begin(&story, NODES, 0);
    for (uint64_t i = 0; i < 5; i++) {
        story_beat(&story, at);
        at = story_iteration(&story, i, at, works);
        for (size_t k = 1; k < NODES; k++) {
            story_add(&story, k, LS_TRACE_SEND, "ls.exchange.take",
                      at + STORY_MS, at + STORY_MS, i + 1, LS_TRACE_NOBODY);
            story_add(&story, 0, LS_TRACE_RECEIVE, "ls.exchange.take",
                      at + 2 * STORY_MS, at + 2 * STORY_MS, i + 1, (uint32_t)k);
        }
        story_add(&story, 0, LS_TRACE_FORWARD, "take", at, at + 3 * STORY_MS, i,
                  LS_TRACE_NOBODY);
        at += 4 * STORY_MS;
    }
    for (size_t i = 0; i < NODES; i++) {
        struct ls_trace_file *const file = &story.files[i];
        assert_ok(ls_trace_encode(file, &out[i].data, &out[i].size));
        ls_trace_clear(file);
    }
}

struct found {
    size_t n_rows;
    double worked_ns[ROWS], blamed_ns[ROWS], gain;
};

static bool is_same(const struct found *one, const struct found *other)
{
    bool same = one->n_rows == other->n_rows && one->gain == other->gain;
    for (size_t i = 0; i < one->n_rows && same; i++)
        same = one->worked_ns[i] == other->worked_ns[i] &&
               one->blamed_ns[i] == other->blamed_ns[i];
    return same;
}

static int show(const struct profile_table *table,
                const struct profile_graph *graph)
{
    int status = profile_write_metrics(table, path);
    if (status == LS_OK)
        status = profile_write_perfetto(graph, path);
    return status == LS_OK ? profile_write_html(table, graph, path) : status;
}

static int look(const struct profile *profile, struct found *out)
{
    struct profile_graph graph = {.lines = NULL};
    struct profile_table table = {.n_rows = 0};
    bool others;
    int status = profile_graph_make(&graph, profile);
    if (status != LS_OK)
        return status;
    status = profile_table_make(&table, &graph);
    if (status == LS_OK) {
        assert_true(table.n_rows > 0 && table.n_rows <= ROWS);
        out->n_rows = table.n_rows;
        for (size_t i = 0; i < table.n_rows; i++) {
            out->worked_ns[i] = table.rows[i].worked_ns;
            out->blamed_ns[i] = table.rows[i].blamed_ns;
        }
        status = profile_what_if(&table, &graph, &table.rows[table.n_rows - 1],
                                 &out->gain, &others);
    }
    if (status == LS_OK)
        status = show(&table, &graph);
    profile_table_clear(&table);
    profile_graph_clear(&graph);
    return status;
}

static int read_all(const struct bytes from[NODES], struct found *out)
{
    struct ls_trace_file files[NODES];
    struct profile profile;
    size_t n = 0;
    int status = LS_OK;
    memset(files, 0, sizeof files);
    while (n < NODES && status == LS_OK) {
        status = ls_trace_decode(&files[n], from[n].data, from[n].size);
        n += status == LS_OK;
    }
    if (status == LS_OK)
        status = profile_make(&profile, files, n);
    for (size_t i = 0; i < NODES; i++)
        ls_trace_clear(&files[i]);
    if (status != LS_OK)
        return status;
    status = look(&profile, out);
    profile_clear(&profile);
    return status;
}

TEST(it_is_the_same_or_there_is_none)
{
    struct bytes bytes[NODES];
    struct found whole = {.n_rows = 0}, found = {.n_rows = 0};
    (void)snprintf(path, sizeof path, "/tmp/lockstep-profile-%ld",
                   (long)getpid());
    record(bytes);
    assert_ok(read_all(bytes, &whole));
    for (long n = 0; allocations_fail_at(n); n++) {
        ls_error_clear();
        const int status = read_all(bytes, &found);
        if (status != LS_OK) {
            assert_int_equal(status, LS_ENOMEM);
            assert_string_not_equal(ls_error_text(), "");
            continue;
        }
        if (!is_same(&found, &whole))
            fail_msg("without allocation %ld: %zu rows, not %zu", n,
                     found.n_rows, whole.n_rows);
    }
    for (size_t i = 0; i < NODES; i++)
        free(bytes[i].data);
    assert_ok(ls_file_remove(path));
}
