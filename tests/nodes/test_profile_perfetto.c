/* A timeline is whole however many an event has gone to. */
#include <stdlib.h>
#include <unistd.h>

#include "lockstep/file.h"

#include "profile_graph.h"
#include "profile_show.h"
#include "profile_story.h"
#include "test.h"

enum { RECEIVERS = 1024, BEGIN = 1, END = 2 };

struct bytes {
    const unsigned char *at, *end;
};

static uint64_t varint(struct bytes *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; from->at < from->end; shift += 7) {
        const unsigned char byte = *from->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            break;
    }
    return value;
}

/* The next field, and what is in it; 0: there is none. */
static unsigned next_field(struct bytes *from, uint64_t *value,
                           struct bytes *inside)
{
    if (from->at == from->end)
        return 0;
    const uint64_t key = varint(from);
    if (key % 8 == 0) {
        *value = varint(from);
    } else if (key % 8 == 1) {
        from->at += 8;
    } else {
        const uint64_t size = varint(from);
        assert_true(size <= (uint64_t)(from->end - from->at));
        *inside = (struct bytes){from->at, from->at + size};
        from->at += size;
    }
    return (unsigned)(key >> 3);
}

struct counts {
    size_t types[4]; /* of events */
    size_t flows;
};

static void count_event(struct bytes event, struct counts *counts)
{
    struct bytes inside;
    uint64_t value = 0;
    for (unsigned field; (field = next_field(&event, &value, &inside)) != 0;) {
        if (field == 9)
            counts->types[value % 4]++;
        counts->flows += field == 47;
    }
}

static void count_all(const char *path, struct counts *counts)
{
    struct bytes trace, packet, inside;
    uint64_t value;
    void *data;
    size_t size;
    assert_ok(ls_file_read(path, SIZE_MAX, &data, &size));
    trace = (struct bytes){data, (unsigned char *)data + size};
    while (next_field(&trace, &value, &packet) != 0)
        for (unsigned field;
             (field = next_field(&packet, &value, &inside)) != 0;)
            if (field == 11)
                count_event(inside, counts);
    free(data);
}

TEST(an_event_that_went_to_very_many_has_an_arrow_to_each)
{
    char path[] = "/tmp/lockstep-perfetto-XXXXXX";
    const int fd = mkstemp(path);
    struct story story;
    struct profile profile;
    struct profile_graph graph;
    struct counts counts = {.flows = 0};
    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    story_begin(&story, 2, 0);
    story_add(&story, 0, LS_TRACE_FORWARD, "env_step", 0, 9 * STORY_MS, 0,
              LS_TRACE_NOBODY);
    story_add(&story, 0, LS_TRACE_SEND, "policy", STORY_MS, 2 * STORY_MS, 1,
              LS_TRACE_NOBODY);
    for (int64_t i = 0; i < RECEIVERS; i++)
        story_add(&story, 1, LS_TRACE_RECEIVE, "policy", 3 * STORY_MS + 10 * i,
                  3 * STORY_MS + 10 * i + 5, 1, 0);
    assert_ok(story_end(&story, &profile));
    assert_ok(profile_graph_make(&graph, &profile));
    assert_ok(profile_write_perfetto(&graph, path));
    count_all(path, &counts);
    assert_int_equal(counts.types[BEGIN], RECEIVERS + 2);
    assert_int_equal(counts.types[END], RECEIVERS + 2);
    assert_int_equal(counts.flows, RECEIVERS);
    profile_graph_clear(&graph);
    profile_clear(&profile);
    (void)ls_file_remove(path);
}
