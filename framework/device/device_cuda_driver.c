#include "device_cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

static const struct symbol {
    const char *name;
    size_t member;
} symbols[] = {
#define SYMBOL(member, symbol, ...)                                            \
    {#symbol, offsetof(struct cuda_driver, member)},
    CUDA_DRIVER_MAP(SYMBOL)
#undef SYMBOL
};
#define N_SYMBOLS (sizeof symbols / sizeof symbols[0])

int cuda_driver_load(struct cuda_driver *out, const char *name)
{
    struct cuda_driver driver = {0};
    driver.library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (driver.library == NULL)
        return ls_error(LS_ENOENT,
                        "there is no driver for NVIDIA GPUs here (%s); without "
                        "a GPU use cpu",
                        dlerror());
    for (size_t i = 0; i < N_SYMBOLS; i++) {
        void *const found = dlsym(driver.library, symbols[i].name);
        if (found == NULL) {
            (void)dlclose(driver.library);
            return ls_error(LS_ENOENT,
                            "%s has no %s: a driver for CUDA 11.0 (450.36) or "
                            "newer is needed",
                            name, symbols[i].name);
        }
        memcpy((char *)&driver + symbols[i].member, &found, sizeof found);
    }
    *out = driver;
    return LS_OK;
}

int cuda_driver_error(const struct cuda_driver *driver, const char *function,
                      cuda_result result)
{
    const char *name = NULL;
    if (driver->get_error_name(result, &name) != CUDA_SUCCESS || name == NULL)
        name = "an error without a name";
    return ls_error(result == CUDA_OUT_OF_MEMORY ? LS_ENOMEM : LS_EIO,
                    "%s: %s (%d)", function, name, result);
}
