/* The GPU of this machine, where it has one. */
#include <stdio.h>

#include "device_promises.h"
#include "test.h"

#define ON_CUDA(name)                                                          \
    TEST(name##_on_cuda)                                                       \
    {                                                                          \
        ls_device *device = open_device("cuda");                               \
        name(device);                                                          \
        ls_device_close(&device);                                              \
    }
DEVICE_PROMISES(ON_CUDA)
#undef ON_CUDA

int main(void)
{
    enum { SKIPPED = 77 };
    ls_device *device = NULL;
    const int status = ls_device_open(&device, ls_runtime_threads(), "cuda");
    if (status == LS_ENOENT) {
        printf("skipped: no GPU: %s\n", ls_error_text());
        return SKIPPED;
    }
    ls_device_close(&device);
    return tests_run();
}
