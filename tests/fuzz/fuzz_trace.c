/* Any bytes as a recording. What is accepted is written, and read again as the
 * same bytes. */
#include "lockstep/trace.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ls_trace_file file, again;
    void *one = NULL, *other = NULL;
    size_t n_one = 0, n_other = 0;
    ls_error_clear();
    if (ls_trace_decode(&file, data, size) != LS_OK) {
        must(ls_error_text()[0] != '\0');
        return 0;
    }
    must(ls_trace_encode(&file, &one, &n_one) == LS_OK);
    must(ls_trace_decode(&again, one, n_one) == LS_OK);
    must(ls_trace_encode(&again, &other, &n_other) == LS_OK);
    must(n_one == n_other && memcmp(one, other, n_one) == 0);
    free(one);
    free(other);
    ls_trace_clear(&file);
    ls_trace_clear(&again);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 0);
}
