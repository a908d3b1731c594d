/* The GPU of this machine, where it has one. */
#include <stdio.h>

#include "device_promises.h"

#define ON_CUDA(name)                                                          \
    static void name##_on_cuda(void **state)                                   \
    {                                                                          \
        (void)state;                                                           \
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
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test(name##_on_cuda),
        DEVICE_PROMISES(TEST)
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
