/* checkpoint_state.h - what a node's state is in tests: a few blobs of each
 * kind, which a number fills. */
#ifndef STATE_CHECKPOINT_STATE_H
#define STATE_CHECKPOINT_STATE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/checkpoint.h"
#include "test.h"

#define N_WEIGHTS 12

struct node_state {
    float weights[N_WEIGHTS];
    int64_t counter;
    char *text; /* own; of any size */
    ls_blobs *blobs;
    int64_t scratch; /* private */
};

static inline int text_size(void *self, uint64_t *out)
{
    *out = strlen(((struct node_state *)self)->text);
    return LS_OK;
}

static inline int text_save(void *self, ls_blob_sink *sink)
{
    const char *text = ((struct node_state *)self)->text;
    return ls_blob_sink_add(sink, text, strlen(text));
}

static inline int text_load(void *self, ls_blob_source *source)
{
    struct node_state *node = self;
    const size_t size = (size_t)ls_blob_source_size(source);
    char *text = calloc(1, size + 1);
    assert_non_null(text);
    const int status = ls_blob_source_read(source, text, size);
    free(node->text);
    node->text = text;
    return status;
}

static const struct ls_blob_ops text_ops = {text_size, text_save, text_load};

static inline void state_fill(struct node_state *node, int64_t number)
{
    for (size_t i = 0; i < N_WEIGHTS; i++)
        node->weights[i] = (float)number + (float)i / 16;
    node->counter = number;
    free(node->text);
    node->text = calloc(1, (size_t)(number % 50) + 1);
    assert_non_null(node->text);
    memset(node->text, 'a' + (int)(number % 26), (size_t)(number % 50));
}

/* Whether state_fill() was called with this number. */
static inline bool state_is(const struct node_state *node, int64_t number)
{
    bool same = node->counter == number &&
                strlen(node->text) == (size_t)(number % 50) &&
                strspn(node->text, (const char[]){(char)('a' + number % 26),
                                                  0}) == strlen(node->text);
    for (size_t i = 0; i < N_WEIGHTS; i++)
        same = same && node->weights[i] == (float)number + (float)i / 16;
    return same;
}

static inline void state_make(struct node_state *node, int64_t number)
{
    *node = (struct node_state){.scratch = 0};
    state_fill(node, number);
    assert_ok(ls_blobs_create(&node->blobs));
    const struct ls_blob blobs[] = {
        {.name = "weights",
         .form = {LS_BLOB_F32, 2, {3, 4}},
         .memory = node->weights},
        {.name = "scratch",
         .form = {.type = LS_BLOB_I64},
         .is_private = true,
         .memory = &node->scratch},
        {.name = "counter",
         .form = {.type = LS_BLOB_I64},
         .memory = &node->counter},
        {.name = "text", .ops = &text_ops, .self = node},
    };
    for (size_t i = 0; i < sizeof blobs / sizeof blobs[0]; i++)
        assert_ok(ls_blobs_add(node->blobs, &blobs[i]));
}

static inline void state_free(struct node_state *node)
{
    ls_blobs_destroy(&node->blobs);
    free(node->text);
}

static inline ls_checkpoints *
open_checkpoints(const struct ls_checkpoints_options *options)
{
    ls_checkpoints *checkpoints;
    assert_ok(ls_checkpoints_open(&checkpoints, options));
    return checkpoints;
}

/* A checkpoint of one node, which commits. */
static inline int save_one(ls_checkpoints *checkpoints, int64_t epoch,
                           const struct node_state *node)
{
    struct ls_checkpoint_entry entry;
    const int status =
        ls_checkpoints_write(checkpoints, epoch, node->blobs, &entry);
    return status != LS_OK
               ? status
               : ls_checkpoints_commit(
                     checkpoints,
                     &(struct ls_checkpoint_manifest){
                         .epoch = epoch, .entries = &entry, .n_entries = 1});
}

/* Fill and save. */
static inline void save_epoch(ls_checkpoints *checkpoints, int64_t epoch,
                              struct node_state *node)
{
    state_fill(node, epoch);
    assert_ok(save_one(checkpoints, epoch, node));
}

/* Load what the manifest says of the first node. */
static inline int load_one(ls_checkpoints *checkpoints, int64_t epoch,
                           struct node_state *node)
{
    struct ls_checkpoint_manifest manifest;
    int status = ls_checkpoints_manifest(checkpoints, epoch, &manifest);
    if (status != LS_OK)
        return status;
    status = ls_checkpoints_load(checkpoints, epoch, &manifest.entries[0],
                                 node->blobs, NULL);
    ls_checkpoint_manifest_clear(&manifest);
    return status;
}

/* Which epochs there are: "0 5 12". */
static inline void has_epochs(ls_checkpoints *checkpoints, const char *expected)
{
    char text[256] = "";
    int64_t *epochs;
    size_t n;
    assert_ok(ls_checkpoints_list(checkpoints, &epochs, &n));
    for (size_t i = 0; i < n; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "%s%lld", i > 0 ? " " : "", (long long)epochs[i]);
    free(epochs);
    assert_string_equal(text, expected);
}

static inline int64_t newest(ls_checkpoints *checkpoints)
{
    int64_t epoch = 77777;
    assert_ok(ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, false,
                                    NULL, NULL, &epoch));
    return epoch;
}

#endif
