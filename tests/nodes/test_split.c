/* split.h: the samples that one trajectory stands for. */
#include "split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct sample sample_of(bool split, int64_t begin, int64_t length)
{
    struct sample sample = {.data_id = "d.1",
                            .unroll_len = length,
                            .split = split,
                            .split_begin = begin};
    return sample;
}

static void the_parts_of_a_sample_make_the_whole(void **state)
{
    struct sample whole = sample_of(false, 0, 8), part;
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_sample_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
