/* Any bytes as a message of a barrier: what is read comes back, byte for byte,
 * when it is written again. */
#include "barrier_wire.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    struct ls_barrier_message message;
    unsigned char again[LS_BARRIER_WIRE_MAX];
    if (ls_barrier_wire_decode(data, size, &message, scratch) != LS_OK)
        return 0;
    must(message.n_missing <= LS_BARRIER_MISSING_MAX);
    must(message.reason_size <= LS_BARRIER_REASON_MAX);
    must(ls_barrier_wire_encode(&message, again) == size);
    must(memcmp(again, data, size) == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 0);
}
