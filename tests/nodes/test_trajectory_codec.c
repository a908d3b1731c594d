/* Trajectories as bytes: what goes in comes out, and what is not a trajectory
 * of the expected shape is refused, whatever the bytes are. */
#include "support/trajectory_room.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/random.h"

static const struct trajectory_shape shape = {
    .observation = {LS_F32, 1, {3}}, .n_extras = 2, .n_choices = 4, .n_max = 5};

/* A trajectory with a different number in every place. */
static void fill(struct trajectory *trajectory, size_t n)
{
    assert_ok(trajectory_init(trajectory, &shape));
    struct ls_trajectory *view = &trajectory->view;
    float *observations = view->observations;
    float *next_observations = view->next_observations;
    float *actions = view->actions;
    view->n = n;
    for (size_t i = 0; i < n * 3; i++) {
        observations[i] = (float)i;
        next_observations[i] = 100.0f + (float)i;
    }
    for (size_t i = 0; i < n; i++) {
        actions[i] = (float)(i % 4);
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
    other.observation.shape[0] = 2;
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
    size_t bytes = 0;
    assert_ok(trajectory_bytes(&longer, &bytes));
    memset(in.memory, 0, bytes);
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
        ((float *)in.view.actions)[2] = wrong[i];
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
    ((float *)in.view.next_observations)[3] = INFINITY;
    assert_fails(trajectory_write(&in.view, &shape, writer), LS_EHANDLER);
    assert_error_has("next_observations of step 1");
    trajectory_fini(&in);
    fill(&in, 4);
    ((float *)in.view.actions)[0] = 4.0f;
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

/* Every type, and a value of each step that says which step it is. */
static const struct trajectory_shape images = {
    .observation = {LS_U8, 3, {2, 3, 1}},
    .action = {LS_I32, 1, {3}},
    .n_extras = 1,
    .n_choices = 9,
    .n_max = 8};
static const struct trajectory_shape doubles = {
    .observation = {LS_F64, 2, {3, 2}}, .action = {.type = LS_U8}, .n_max = 8};

TEST(each_array_is_of_its_type)
{
    struct trajectory in, out;
    struct bytes bytes;
    assert_ok(trajectory_init(&in, &images));
    assert_ok(trajectory_init(&out, &images));
    in.view.n = 8;
    for (size_t i = 0; i < 8; i++) {
        memset((uint8_t *)in.view.observations + 6 * i, (int)i, 6);
        memset((uint8_t *)in.view.next_observations + 6 * i, (int)i + 100, 6);
        for (int32_t k = 0; k < 3; k++)
            ((int32_t *)in.view.actions)[3 * i + (size_t)k] =
                k == 0 ? (int32_t)i : -k;
        in.view.rewards[i] = in.view.extras[i] = (float)i;
        in.view.terminated[i] = in.view.truncated[i] = i == 7;
    }
    assert_int_equal((uintptr_t)in.view.rewards % TRAJECTORY_ALIGNMENT, 0);
    encode(&bytes, &in.view, &images);
    assert_ok(trajectory_read(&out.view, &images, bytes.data, bytes.size));
    assert_memory_equal(out.view.observations, in.view.observations, 48);
    assert_memory_equal(out.view.next_observations, in.view.next_observations,
                        48);
    assert_memory_equal(out.view.actions, in.view.actions, 96);
    ((int32_t *)in.view.actions)[6] = 9; /* of step 2 */
    assert_fails(trajectory_write(&in.view, &images, bytes.writer),
                 LS_EHANDLER);
    assert_error_has("action of step 2 is 9");
    ls_writer_destroy(&bytes.writer);
    trajectory_fini(&in);
    trajectory_fini(&out);
}

TEST(doubles_are_looked_at_too)
{
    struct trajectory in;
    ls_writer *writer;
    assert_ok(ls_writer_create(&writer));
    assert_ok(trajectory_init(&in, &doubles));
    size_t bytes = 0;
    assert_ok(trajectory_bytes(&doubles, &bytes));
    memset(in.memory, 0, bytes);
    in.view.n = 8;
    ((double *)in.view.observations)[6 * 3 + 5] = (double)NAN;
    assert_fails(trajectory_write(&in.view, &doubles, writer), LS_EHANDLER);
    assert_error_has("observations of step 3");
    ls_writer_destroy(&writer);
    trajectory_fini(&in);
}

TEST(a_part_has_its_steps)
{
    struct trajectory whole;
    fill(&whole, 5);
    for (size_t begin = 0; begin < 5; begin++)
        for (size_t n = 1; begin + n <= 5; n++) {
            struct ls_trajectory part;
            assert_ok(trajectory_part(&whole.view, &shape, begin, n, &part));
            assert_int_equal(part.n, n);
            assert_true(((float *)part.observations)[0] == (float)(3 * begin));
            assert_true(((float *)part.actions)[0] == (float)(begin % 4));
            assert_true(part.extras[1] == 2000.0f + (float)begin);
            assert_true(part.rewards[n - 1] == -0.5f * (float)(begin + n - 1));
            assert_int_equal(part.terminated[0], begin == 1);
            assert_int_equal(part.truncated[0], begin == 2);
        }
    trajectory_fini(&whole);
}

TEST(steps_that_are_not_there_are_refused)
{
    static const size_t cases[][2] = {{0, 0}, {0, 6},        {5, 1},
                                      {3, 3}, {SIZE_MAX, 1}, {1, SIZE_MAX}};
    struct trajectory whole;
    fill(&whole, 5);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ls_trajectory part = {.n = 77};
        assert_fails(trajectory_part(&whole.view, &shape, cases[i][0],
                                     cases[i][1], &part),
                     LS_EPROTO);
        assert_int_equal(part.n, 77);
    }
    trajectory_fini(&whole);
}
