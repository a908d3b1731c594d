/* All global blobs as bytes: what is packed is unpacked, and bytes that are
 * none of that kind, or do not fit, are refused and change nothing. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint_state.h"

struct packed {
    unsigned char *data;
    size_t size;
};

static struct packed pack(const struct node_state *node)
{
    void *data;
    struct packed packed;
    assert_ok(ls_blobs_pack(node->blobs, &data, &packed.size));
    packed.data = data;
    return packed;
}

TEST(what_was_packed_is_unpacked)
{
    struct node_state from, to;
    (void)state;
    for (int64_t number = 0; number < 60; number++) {
        state_make(&from, number);
        state_make(&to, 7);
        to.scratch = 5; /* private: not packed */
        const struct packed packed = pack(&from);
        assert_ok(ls_blobs_unpack(to.blobs, packed.data, packed.size));
        assert_true(state_is(&to, number));
        assert_int_equal(to.scratch, 5);
        free(packed.data);
        state_free(&from);
        state_free(&to);
    }
}

TEST(it_can_be_looked_at_as_blobs)
{
    struct node_state node;
    ls_blobs *view;
    (void)state;
    state_make(&node, 3);
    const struct packed packed = pack(&node);
    assert_ok(ls_blobs_view(&view, packed.data, packed.size));
    const struct ls_blob *weights = ls_blobs_find(view, "weights");
    assert_non_null(weights);
    assert_memory_equal(weights->memory, node.weights, sizeof node.weights);
    assert_int_equal(ls_blobs_find(view, "text")->form.shape[0], 3);
    assert_null(ls_blobs_find(view, "scratch"));
    ls_blobs_destroy(&view);
    free(packed.data);
    state_free(&node);
}

/* Cut anywhere, or with any byte of the head changed, it is read as what it is
 * or refused: it never reads beyond its end. */
TEST(bytes_that_are_none_are_refused)
{
    struct node_state node;
    ls_blobs *view;
    (void)state;
    state_make(&node, 5);
    const struct packed packed = pack(&node);
    for (size_t size = 0; size < packed.size; size++) {
        unsigned char *cut = malloc(size + 1);
        assert_non_null(cut);
        memcpy(cut, packed.data, size);
        assert_fails(ls_blobs_view(&view, cut, size), LS_EPROTO);
        assert_fails(ls_blobs_unpack(node.blobs, cut, size), LS_EPROTO);
        free(cut);
    }
    unsigned char *more = malloc(packed.size + 1);
    assert_non_null(more);
    memcpy(more, packed.data, packed.size);
    more[packed.size] = 0;
    assert_fails(ls_blobs_view(&view, more, packed.size + 1), LS_EPROTO);
    assert_null(view);
    assert_fails(ls_blobs_unpack(node.blobs, more, packed.size + 1), LS_EPROTO);
    assert_true(state_is(&node, 5));
    free(more);
    for (size_t at = 0; at < 120 && at < packed.size; at++) {
        packed.data[at] ^= 0xff;
        if (ls_blobs_view(&view, packed.data, packed.size) == LS_OK)
            ls_blobs_destroy(&view);
        packed.data[at] ^= 0xff;
    }
    free(packed.data);
    state_free(&node);
}

TEST(what_does_not_fit_is_named_and_changes_nothing)
{
    struct node_state from, to;
    (void)state;
    state_make(&from, 5);
    state_make(&to, 6);
    const struct packed packed = pack(&from);
    assert_ok(ls_blobs_remove(to.blobs, "weights"));
    assert_fails(ls_blobs_unpack(to.blobs, packed.data, packed.size),
                 LS_EMISMATCH);
    assert_error_has("weights");
    assert_ok(
        ls_blobs_add(to.blobs, &(struct ls_blob){.name = "weights",
                                                 .form = {LS_BLOB_F32, 1, {12}},
                                                 .memory = to.weights}));
    assert_fails(ls_blobs_unpack(to.blobs, packed.data, packed.size),
                 LS_EMISMATCH);
    assert_ok(ls_blobs_remove(from.blobs, "text"));
    free(packed.data);
    const struct packed fewer = pack(&from);
    assert_fails(ls_blobs_unpack(to.blobs, fewer.data, fewer.size), LS_ENOENT);
    assert_error_has("text");
    assert_true(state_is(&to, 6));
    free(fewer.data);
    state_free(&from);
    state_free(&to);
}

static int save_nothing(void *self, ls_blob_sink *sink)
{
    (void)self;
    (void)sink;
    return ls_error(LS_ENOENT, "no weights yet");
}

TEST(a_blob_that_fails_is_named)
{
    const struct ls_blob_ops fails = {.save = save_nothing, .load = text_load};
    struct node_state node;
    void *data = &data;
    size_t size;
    (void)state;
    state_make(&node, 5);
    assert_ok(ls_blobs_add(node.blobs,
                           &(struct ls_blob){.name = "late",
                                             .form = {.type = LS_BLOB_I64},
                                             .ops = &fails}));
    assert_fails(ls_blobs_pack(node.blobs, &data, &size), LS_ENOENT);
    assert_error_has("the blob late: no weights yet");
    assert_ptr_equal(data, &data); /* written on success only */
    state_free(&node);
}

static int most_bytes(void *self, uint64_t *out)
{
    (void)self;
    *out = INT64_MAX;
    return LS_OK;
}

/* Their sum would begin at 0 again, and the bytes be written to where there is
 * no room. */
TEST(blobs_that_are_too_large_together_are_refused)
{
    static const char *const names[] = {"a", "b", "c"};
    const struct ls_blob_ops large = {
        .size = most_bytes, .save = save_nothing, .load = text_load};
    ls_blobs *blobs;
    void *data;
    size_t size;
    (void)state;
    assert_ok(ls_blobs_create(&blobs));
    for (size_t i = 0; i < 3; i++)
        assert_ok(ls_blobs_add(
            blobs, &(struct ls_blob){.name = names[i], .ops = &large}));
    assert_fails(ls_blobs_pack(blobs, &data, &size), LS_EINVAL);
    assert_error_has("together");
    ls_blobs_destroy(&blobs);
}
