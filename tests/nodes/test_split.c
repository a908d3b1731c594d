/* split.h: which steps a sample means. */
#include "split.h"
#include "test.h"

#include <string.h>

static const struct trajectory_shape shape = {
    .n_observation = 3, .n_action = 2, .n_extras = 1, .n_max = 8};

static void make(struct trajectory *whole, size_t n)
{
    assert_ok(trajectory_init(whole, &shape));
    whole->view.n = n;
    for (size_t i = 0; i < n; i++) {
        whole->view.observations[3 * i] = (float)i;
        whole->view.next_observations[3 * i] = (float)i + 1.0f;
        whole->view.actions[2 * i + 1] = 10.0f + (float)i;
        whole->view.rewards[i] = 20.0f + (float)i;
        whole->view.extras[i] = 30.0f + (float)i;
        whole->view.terminated[i] = i == 5;
        whole->view.truncated[i] = i == 6;
    }
}

static struct sample sample_of(bool split, int64_t begin, int64_t length)
{
    struct sample sample = {.data_id = "d.1",
                            .unroll_len = length,
                            .split = split,
                            .split_begin = begin};
    return sample;
}

static void is_part(const struct ls_trajectory *part, size_t begin, size_t n)
{
    assert_int_equal(part->n, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(part->observations[3 * i] == (float)(begin + i));
        assert_true(part->next_observations[3 * i] == (float)(begin + i + 1));
        assert_true(part->actions[2 * i + 1] == 10.0f + (float)(begin + i));
        assert_true(part->rewards[i] == 20.0f + (float)(begin + i));
        assert_true(part->extras[i] == 30.0f + (float)(begin + i));
        assert_int_equal(part->terminated[i], begin + i == 5);
        assert_int_equal(part->truncated[i], begin + i == 6);
    }
}

TEST(a_sample_means_its_steps)
{
    static const struct {
        bool split;
        int64_t begin, length;
    } cases[] = {{true, 0, 1}, {true, 5, 1}, {true, 7, 1},  {true, 2, 4},
                 {true, 4, 4}, {true, 0, 8}, {false, 0, 8}, {false, 0, 8}};
    struct trajectory whole;
    make(&whole, 8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct sample sample =
            sample_of(cases[i].split, cases[i].begin, cases[i].length);
        struct ls_trajectory part;
        assert_ok(split_trajectory(&whole.view, &shape, &sample, &part));
        is_part(&part, (size_t)cases[i].begin, (size_t)cases[i].length);
    }
    trajectory_fini(&whole);
}

TEST(steps_that_are_not_there_are_refused)
{
    static const struct {
        bool split;
        int64_t begin, length;
    } cases[] = {{true, 8, 1},         {true, 5, 4}, {true, INT64_MAX, 1},
                 {true, 1, INT64_MAX}, {true, 0, 9}, {false, 0, 7},
                 {true, 0, 0},         {true, -1, 1}};
    struct trajectory whole;
    make(&whole, 8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct sample sample =
            sample_of(cases[i].split, cases[i].begin, cases[i].length);
        struct ls_trajectory part = {.n = 77};
        assert_fails(split_trajectory(&whole.view, &shape, &sample, &part),
                     LS_EPROTO);
        assert_error_has("sample d.1");
        assert_int_equal(part.n, 77);
    }
    trajectory_fini(&whole);
}

TEST(the_parts_of_a_sample_make_the_whole)
{
    struct sample whole = sample_of(false, 0, 8), part;
    whole.priority = 2.5;
    for (int64_t i = 0; i < 4; i++) {
        split_sample(&whole, i, 4, &part);
        assert_true(part.split);
        assert_int_equal(part.split_begin, 2 * i);
        assert_int_equal(part.unroll_len, 2);
        assert_string_equal(part.data_id, "d.1");
        assert_true(part.priority == 2.5);
    }
    split_sample(&whole, 0, 1, &part);
    assert_memory_equal(&part, &whole, sizeof part);
}
