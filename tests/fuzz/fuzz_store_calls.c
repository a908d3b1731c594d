/* Any bytes as what the members of a store on the bus say: the first says as
 * which message they are read. What is accepted is written as itself. */
#include "fuzz.h"
#include "store_calls.h"

static void write_names(const struct store_names *in, ls_writer *out)
{
    const char *names[STORE_GET_MAX];
    must(in->n > 0 && in->n <= STORE_GET_MAX);
    for (size_t i = 0; i < in->n; i++) {
        must(safe_name_is(in->at[i]));
        names[i] = in->at[i];
    }
    store_names_write(names, in->n, out);
}

FUZZ_MESSAGE(put, struct store_put_call, store_put_read, store_put_write,
             fuzz_owns_nothing)
FUZZ_MESSAGE(names, struct store_names, store_names_read, write_names,
             fuzz_owns_nothing)
FUZZ_MESSAGE(answer, struct store_answer, store_answer_read, store_answer_write,
             fuzz_owns_nothing)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(const uint8_t *data,
                                 size_t size) = {put, names, answer};
    if (size > 0)
        kinds[data[0] % 3](data + 1, size - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 1);
}
