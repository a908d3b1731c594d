/* The same in the memory of this machine's GPU, where it has one. */
#include "device_group_promises.h"

#include <stdio.h>

TEST(numbers_are_folded_in_the_memory_of_the_gpu)
{
    numbers_of_all_ranks_are_folded("cuda");
}

int main(void)
{
    enum { SKIPPED = 77 };
    ls_device *device = NULL;
    if (ls_device_open(&device, ls_runtime_threads(), "cuda") == LS_ENOENT) {
        printf("skipped: no GPU: %s\n", ls_error_text());
        return SKIPPED;
    }
    ls_device_close(&device);
    return tests_run();
}
