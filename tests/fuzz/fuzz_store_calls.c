/* Any bytes as what the nodes of a store on the bus say: the first says as
 * which message they are read. What is accepted is written as itself. */
#include "fuzz.h"
#include "store_calls.h"

FUZZ_RECORD(put, struct store_put_call, store_put_record)
FUZZ_RECORD(get, struct store_get_call, store_get_record)
FUZZ_RECORD(drop, struct store_drop_call, store_drop_record)
FUZZ_RECORD(answer, struct store_answer, store_answer_record)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(const uint8_t *data,
                                 size_t size) = {put, get, drop, answer};
    if (size > 0)
        kinds[data[0] % 4](data + 1, size - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 1);
}
