/* Any bytes as a record with a field of each type. What is accepted is written
 * as itself, and prints. */
#include "../base/record_example.h"
#include "fuzz.h"

FUZZ_RECORD(all, struct all, all_record)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    all(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 0);
}
