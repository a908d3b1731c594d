/* split.h: the samples that one trajectory stands for. */
#include "split.h"
#include "test.h"

#include <string.h>

static struct sample sample_of(bool split, int64_t begin, int64_t length)
{
    struct sample sample = {.data_id = "d.1",
                            .unroll_len = length,
                            .split = split,
                            .split_begin = begin};
    return sample;
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
