/* profile_story.h - recordings of a run that was never run: what each node did
 * is known, on clocks that are known too. */
#ifndef TEST_PROFILE_STORY_H
#define TEST_PROFILE_STORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/random.h"

#include "profile.h"

#define STORY_MS INT64_C(1000000)

enum { STORY_NODES = 5, STORY_MOST = 16, STORY_RECORDS = 100000 };

struct story {
    struct ls_trace_file files[STORY_MOST];
    double offsets[STORY_MOST], drifts[STORY_MOST]; /* of the clocks */
    uint64_t sent[STORY_MOST];
    struct ls_rng rng;
    size_t n;
};

/* What the node's clock shows at a time of the story. */
static inline int64_t story_clock(const struct story *story, size_t node,
                                  int64_t at)
{
    return (int64_t)((double)at * (1.0 + story->drifts[node]) +
                     story->offsets[node]) +
           INT64_C(100000000000);
}

static inline uint16_t story_name(struct ls_trace_file *file, const char *text)
{
    for (size_t i = 0; i < file->n_names; i++)
        if (file->names[i] != NULL && strcmp(file->names[i], text) == 0)
            return (uint16_t)i;
    char *const name = strdup(text);
    if (name == NULL)
        abort();
    file->names[file->n_names] = name;
    return (uint16_t)file->n_names++;
}

static inline void *story_room(size_t size)
{
    void *const room = calloc(1, size);
    if (room == NULL)
        abort();
    return room;
}

/* node 0: a learner; the others: collectors. */
static inline void story_begin(struct story *story, size_t n, uint64_t seed)
{
    *story = (struct story){.n = n};
    ls_rng_seed(&story->rng, seed, 0);
    for (size_t i = 0; i < n; i++) {
        struct ls_trace_file *const file = &story->files[i];
        file->node = (uint32_t)i;
        file->incarnation = 100 + i;
        (void)snprintf(file->job, sizeof file->job, "story");
        (void)snprintf(file->role, sizeof file->role, "%s",
                       i == 0 ? "learner" : "collector");
        file->names = story_room(64 * sizeof *file->names);
        file->records = story_room(STORY_RECORDS * sizeof *file->records);
        (void)story_name(file, "?");
        if (seed > 0) {
            story->offsets[i] = (ls_rng_double(&story->rng) - 0.5) * 6e9;
            story->drifts[i] = (ls_rng_double(&story->rng) - 0.5) * 200e-6;
        }
    }
}

static inline void story_add(struct story *story, size_t node,
                             enum ls_trace_kind kind, const char *name,
                             int64_t begin, int64_t end, uint64_t number,
                             uint32_t peer)
{
    struct ls_trace_file *const file = &story->files[node];
    if (file->n_records == STORY_RECORDS)
        abort();
    file->records[file->n_records++] = (struct ls_trace_record){
        .begin_ns = story_clock(story, node, begin),
        .end_ns = story_clock(story, node, end),
        .number = number,
        .peer = peer,
        .life = peer == LS_TRACE_NOBODY ? 0 : 100 + peer,
        .name = story_name(file, name),
        .thread = story_name(file, "task"),
        .kind = (uint8_t)kind};
    file->now_ns = story_clock(story, node, end);
}

/* From each to each; it takes 50 us at least. */
static inline void story_beat(struct story *story, int64_t at)
{
    for (size_t i = 0; i < story->n; i++) {
        story->sent[i]++;
        story_add(story, i, LS_TRACE_BEAT, "?", at, at, story->sent[i],
                  LS_TRACE_NOBODY);
        for (size_t j = 0; j < story->n; j++) {
            const int64_t came =
                at + 50000 + (int64_t)(ls_rng_double(&story->rng) * 2e5);
            if (j != i)
                story_add(story, j, LS_TRACE_HEARD, "?", came, came,
                          story->sent[i], (uint32_t)i);
        }
    }
}

/* An iteration of nodes that work for so long in "env_step", between two
 * barriers, which take 100 us. Returns when it is over. */
static inline int64_t story_iteration(struct story *story, uint64_t number,
                                      int64_t at, const int64_t *works)
{
    const int64_t out = at + STORY_MS / 10;
    int64_t last = 0;
    for (size_t i = 0; i < story->n; i++)
        last = out + works[i] > last ? out + works[i] : last;
    const int64_t end = last + STORY_MS / 10;
    for (size_t i = 0; i < story->n; i++) {
        const int64_t done = out + works[i];
        story_add(story, i, LS_TRACE_BARRIER, "step", at, out, 2 * number,
                  LS_TRACE_NOBODY);
        story_add(story, i, LS_TRACE_FORWARD, "barrier", at, out, number,
                  LS_TRACE_NOBODY);
        story_add(story, i, LS_TRACE_FORWARD, "env_step", out, done, number,
                  LS_TRACE_NOBODY);
        story_add(story, i, LS_TRACE_BARRIER, "step", done, end, 2 * number + 1,
                  LS_TRACE_NOBODY);
        story_add(story, i, LS_TRACE_BACKWARD, "barrier", done, end, number,
                  LS_TRACE_NOBODY);
    }
    return end;
}

/* As the reader has them. */
static inline int story_end(struct story *story, struct profile *out)
{
    return profile_make(out, story->files, story->n);
}

#endif
