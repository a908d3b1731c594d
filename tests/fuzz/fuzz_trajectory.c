/* Any bytes as a trajectory; the first says of which shape. What
 * is accepted is written as itself. */
#include "fuzz.h"
#include "support/trajectory_room.h"

static void check(const struct trajectory_shape *shape, const uint8_t *data,
                  size_t size)
{
    struct trajectory first, second;
    ls_writer *one = NULL, *other = NULL;
    must(trajectory_init(&first, shape) == LS_OK);
    must(trajectory_init(&second, shape) == LS_OK);
    must(ls_writer_create(&one) == LS_OK);
    must(ls_writer_create(&other) == LS_OK);
    ls_error_clear();
    if (trajectory_read(&first.view, shape, data, size) == LS_OK) {
        must(first.view.n <= shape->n_max);
        must(trajectory_write(&first.view, shape, one) == LS_OK);
        const struct fuzz_bytes before = fuzz_written(one);
        must(trajectory_read(&second.view, shape, before.data, before.size) ==
             LS_OK);
        must(trajectory_write(&second.view, shape, other) == LS_OK);
        const struct fuzz_bytes after = fuzz_written(other);
        must(before.size == after.size &&
             memcmp(before.data, after.data, after.size) == 0);
    } else {
        must(first.view.n == 0 && ls_error_text()[0] != '\0');
    }
    ls_writer_destroy(&one);
    ls_writer_destroy(&other);
    trajectory_fini(&first);
    trajectory_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct trajectory_shape shapes[] = {
        {.observation = {LS_F32, 1, {3}},
         .n_extras = 2,
         .n_choices = 4,
         .n_max = 5},
        {.observation = {LS_F32, 1, {2}},
         .action = {LS_F32, 1, {3}},
         .n_extras = 0,
         .n_choices = 0,
         .n_max = 4},
        {.observation = {LS_U8, 2, {2, 2}},
         .action = {.type = LS_I32},
         .n_extras = 1,
         .n_choices = 3,
         .n_max = 4},
        {.observation = {LS_F64, 1, {2}},
         .action = {.type = LS_U8},
         .n_max = 4},
    };
    if (size > 0)
        check(&shapes[data[0] % 4], data + 1, size - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 1);
}
