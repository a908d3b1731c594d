/* Any bytes as a record with a field of each type. What is accepted is written
 * as itself, and prints. */
#include "../base/record_example.h"
#include "fuzz.h"

static int read_all(struct all *out, const void *data, size_t size)
{
    return ls_record_decode(&all_record, out, data, size, NULL);
}

static void write_all(const struct all *all, ls_writer *out)
{
    char text[64];
    must(ls_record_print(&all_record, all, text, sizeof text) > strlen(text));
    ls_record_write(&all_record, all, out);
}

static void clear_all(struct all *all)
{
    ls_record_clear(&all_record, all);
}

FUZZ_MESSAGE(all, struct all, read_all, write_all, clear_all)

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
