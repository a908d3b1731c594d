/* Trajectories as bytes: what goes in comes out, and what is no trajectory of
 * the expected shape is refused, whatever the bytes are. */
#include "trajectory_codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/random.h"
#include "test.h"

static const struct trajectory_shape shape = {.n_observation = 3,
                                              .n_action = 1,
                                              .n_extras = 2,
                                              .n_choices = 4,
                                              .n_max = 5};

/* A trajectory with a different number in every place. */
static void fill(struct trajectory *trajectory, size_t n)
{
    assert_ok(trajectory_init(trajectory, &shape));
    struct ls_trajectory *view = &trajectory->view;
    view->n = n;
    for (size_t i = 0; i < n * 3; i++) {
        view->observations[i] = (float)i;
        view->next_observations[i] = 100.0f + (float)i;
    }
    for (size_t i = 0; i < n; i++) {
        view->actions[i] = (float)(i % 4);
        view->rewards[i] = -0.5f * (float)i;
        view->extras[2 * i] = 1000.0f + (float)i;
        view->extras[2 * i + 1] = 2000.0f + (float)i;
        view->terminated[i] = i == 1;
        view->truncated[i] = i == 2;
    }
}

struct bytes {
    ls_writer *writer;
    const void *data;
    size_t size;
};

static void encode(struct bytes *out, const struct ls_trajectory *trajectory,
                   const struct trajectory_shape *as)
{
    assert_ok(ls_writer_create(&out->writer));
    assert_ok(trajectory_write(trajectory, as, out->writer));
    assert_ok(ls_writer_bytes(out->writer, &out->data, &out->size));
}

static void assert_floats(const float *a, const float *b, size_t n)
{
    assert_memory_equal(a, b, n * sizeof *a);
}

TEST(what_goes_in_comes_out)
{
    for (size_t n = 0; n <= shape.n_max; n++) {
        struct trajectory in, out;
        struct bytes bytes;
        fill(&in, n);
        encode(&bytes, &in.view, &shape);
        assert_ok(trajectory_init(&out, &shape));
        assert_ok(trajectory_read(&out.view, &shape, bytes.data, bytes.size));
        assert_int_equal(out.view.n, n);
        if (n > 0) {
            assert_floats(in.view.observations, out.view.observations, n * 3);
            assert_floats(in.view.next_observations, out.view.next_observations,
                          n * 3);
            assert_floats(in.view.actions, out.view.actions, n);
            assert_floats(in.view.rewards, out.view.rewards, n);
            assert_floats(in.view.extras, out.view.extras, n * 2);
            assert_memory_equal(in.view.terminated, out.view.terminated, n);
            assert_memory_equal(in.view.truncated, out.view.truncated, n);
        }
        ls_writer_destroy(&bytes.writer);
        trajectory_fini(&in);
        trajectory_fini(&out);
    }
}

/* Write it as `as`, and expect a reader of `shape` to refuse it. */
static void assert_refused(const struct ls_trajectory *trajectory,
                           const struct trajectory_shape *as,
                           const char *because)
{
    struct trajectory out;
    struct bytes bytes;
    encode(&bytes, trajectory, as);
    assert_ok(trajectory_init(&out, &shape));
    assert_fails(trajectory_read(&out.view, &shape, bytes.data, bytes.size),
                 LS_EPROTO);
    if (strstr(ls_error_text(), because) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", ls_error_text(), because);
    assert_int_equal(out.view.n, 0);
    trajectory_fini(&out);
    ls_writer_destroy(&bytes.writer);
}

TEST(reader_refuses_other_shapes)
{
    struct trajectory in;
    fill(&in, 4);
    struct trajectory_shape other = shape;
    other.n_observation = 2;
    assert_refused(&in.view, &other, "observations");
    other = shape;
    other.n_extras = 1;
    assert_refused(&in.view, &other, "extras");
    trajectory_fini(&in);
}

TEST(reader_refuses_too_many_steps)
{
    struct trajectory in;
    struct trajectory_shape longer = shape;
    longer.n_max = 6;
    assert_ok(trajectory_init(&in, &longer));
    memset(in.memory, 0, 6 * (10 * sizeof(float) + 2));
    in.view.n = 6;
    assert_refused(&in.view, &longer, "6 steps, expected at most 5");
    trajectory_fini(&in);
}

TEST(reader_refuses_choices_that_are_none)
{
    static const float wrong[] = {4.0f, -1.0f, 0.5f, 1e30f};
    struct trajectory_shape free_actions = shape;
    free_actions.n_choices = 0; /* so that the writer lets them through */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct trajectory in;
        fill(&in, 3);
        in.view.actions[2] = wrong[i];
        assert_refused(&in.view, &free_actions, "action of step 2");
        trajectory_fini(&in);
    }
}

TEST(writer_names_what_the_plugin_got_wrong)
{
    struct trajectory in;
    ls_writer *writer = NULL;
    assert_ok(ls_writer_create(&writer));
    fill(&in, 4);
    in.view.rewards[3] = NAN;
    assert_fails(trajectory_write(&in.view, &shape, writer), LS_EHANDLER);
    assert_error_has("rewards of step 3");
    trajectory_fini(&in);
    fill(&in, 4);
    in.view.next_observations[3] = INFINITY;
    assert_fails(trajectory_write(&in.view, &shape, writer), LS_EHANDLER);
    assert_error_has("next_observations of step 1");
    trajectory_fini(&in);
    fill(&in, 4);
    in.view.actions[0] = 4.0f;
    assert_fails(trajectory_write(&in.view, &shape, writer), LS_EHANDLER);
    assert_error_has("action of step 0 is 4");
    trajectory_fini(&in);
    ls_writer_destroy(&writer);
}

/* Replace the one float `from` in the bytes. */
static void poke(unsigned char *bytes, size_t size, float from, float to)
{
    for (size_t i = 0; i + sizeof from <= size; i++) {
        if (memcmp(bytes + i, &from, sizeof from) == 0) {
            memcpy(bytes + i, &to, sizeof to);
            return;
        }
    }
    fail();
}

TEST(reader_refuses_numbers_that_are_not_finite)
{
    struct trajectory in, out;
    struct bytes bytes;
    fill(&in, 4);
    encode(&bytes, &in.view, &shape);
    unsigned char *copy = malloc(bytes.size);
    assert_non_null(copy);
    memcpy(copy, bytes.data, bytes.size);
    poke(copy, bytes.size, 2001.0f, NAN);
    assert_ok(trajectory_init(&out, &shape));
    assert_fails(trajectory_read(&out.view, &shape, copy, bytes.size),
                 LS_EPROTO);
    assert_error_has("extras of step 1");
    free(copy);
    trajectory_fini(&in);
    trajectory_fini(&out);
    ls_writer_destroy(&bytes.writer);
}

TEST(every_cut_is_refused)
{
    struct trajectory in, out;
    struct bytes bytes;
    fill(&in, 5);
    encode(&bytes, &in.view, &shape);
    assert_ok(trajectory_init(&out, &shape));
    for (size_t size = 0; size < bytes.size; size++) {
        assert_fails(trajectory_read(&out.view, &shape, bytes.data, size),
                     LS_EPROTO);
        assert_int_equal(out.view.n, 0);
    }
    trajectory_fini(&in);
    trajectory_fini(&out);
    ls_writer_destroy(&bytes.writer);
}

/* Flipped bits give another good trajectory, or LS_EPROTO; a sanitizer sees
 * whether anything was touched that is not ours. */
TEST(flipped_bits_do_no_harm)
{
    struct trajectory in, out;
    struct bytes bytes;
    struct ls_rng rng;
    ls_rng_seed(&rng, 1, 0);
    fill(&in, 5);
    encode(&bytes, &in.view, &shape);
    unsigned char *copy = malloc(bytes.size);
    assert_non_null(copy);
    assert_ok(trajectory_init(&out, &shape));
    for (int round = 0; round < 5000; round++) {
        memcpy(copy, bytes.data, bytes.size);
        for (uint64_t k = ls_rng_below(&rng, 4) + 1; k > 0; k--)
            copy[ls_rng_below(&rng, bytes.size)] ^=
                (unsigned char)(1u << ls_rng_below(&rng, 8));
        const int status = trajectory_read(&out.view, &shape, copy, bytes.size);
        assert_true(status == LS_OK || status == LS_EPROTO);
        assert_true(out.view.n <= shape.n_max);
    }
    free(copy);
    trajectory_fini(&in);
    trajectory_fini(&out);
    ls_writer_destroy(&bytes.writer);
}

TEST(room_beyond_memory_is_refused)
{
    struct trajectory_shape huge = shape;
    huge.n_max = SIZE_MAX / 4;
    struct trajectory out;
    assert_fails(trajectory_init(&out, &huge), LS_ENOMEM);
}
