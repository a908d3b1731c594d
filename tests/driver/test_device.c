/* The processor, and the names of all devices. */
#include <dlfcn.h>
#include <stdio.h>

#include "device_promises.h"
#include "lockstep/simulation.h"

#include "device_cuda_driver.h"

static void assert_refused(const char *name, int status)
{
    ls_device *device = NULL;
    assert_int_equal(ls_device_open(&device, ls_runtime_threads(), name),
                     status);
    assert_null(device);
    assert_said(name, NULL);
}

static void a_device_goes_by_the_name_it_was_opened_by(void **state)
{
    (void)state;
    struct ls_device_info info;
    ls_device *any = open_device("cpu"), *first = open_device("cpu:0");
    ls_device_info(any, &info);
    assert_string_equal(info.name, "cpu");
    assert_int_equal(info.number, -1);
    assert_string_equal(info.description, "processor, any core");
    ls_device_info(first, &info);
    assert_string_equal(info.name, "cpu:0");
    assert_int_equal(info.number, 0);
    assert_string_equal(info.description, "processor, core 0");
    ls_device_close(&any);
    ls_device_close(&first);
    assert_null(any);
}

static void other_names_are_refused_with_the_allowed_forms(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",       "gpu",   "CPU",    "cpu ",      " cpu",   "cpu:",
        "cpu:-1", "cpu:x", "cpu:1x", "cpu:12345", "cpu:+1", "cpu3",
        "cuda:",  "cuda0", "cuda:a", "cuda:1:2",  "cudas",  "cpu:\n1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_refused(wrong[i], LS_EINVAL);
        assert_int_equal(ls_device_check_name(wrong[i]), LS_EINVAL);
        assert_said("expected cpu, cpu:CORE, cuda or cuda:NUMBER", NULL);
    }
}

static void a_name_is_right_wherever_the_device_is(void **state)
{
    (void)state;
    static const char *const right[] = {"cpu", "cpu:9999", "cuda", "cuda:7"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_int_equal(ls_device_check_name(right[i]), LS_OK);
}

static void a_core_that_is_not_there_is_refused(void **state)
{
    (void)state;
    char name[16], said[64];
    const int n = ls_core_count(ls_runtime_threads());
    (void)snprintf(name, sizeof name, "cpu:%d", n);
    (void)snprintf(said, sizeof said,
                   "there is no core %d: this machine has "
                   "%d, from 0 on",
                   n, n);
    assert_refused(name, LS_ENOENT);
    assert_said(said, NULL);
}

static void pin_in_a_simulation(void *arg)
{
    ls_runtime *const runtime = arg;
    ls_device *device = NULL;
    assert_int_equal(ls_device_open(&device, runtime, "cpu:1000"), LS_OK);
    assert_int_equal(ls_device_bind_thread(device), LS_OK);
    ls_device_close(&device);
    assert_int_equal(ls_device_open(&device, runtime, "cuda"), LS_EINVAL);
    assert_said("a GPU cannot be simulated", NULL);
}

static void a_simulation_has_every_core_and_no_gpu(void **state)
{
    (void)state;
    ls_simulation *simulation;
    assert_int_equal(ls_simulation_create(&simulation, NULL), LS_OK);
    assert_int_equal(ls_simulation_run(simulation, pin_in_a_simulation,
                                       ls_simulation_runtime(simulation)),
                     LS_OK);
    ls_simulation_destroy(&simulation);
}

static void without_a_driver_the_error_says_so(void **state)
{
    (void)state;
    struct cuda_driver driver;
    assert_int_equal(cuda_driver_load(&driver, "libcuda.so.not-there"),
                     LS_ENOENT);
    assert_said("no driver for NVIDIA GPUs here", "libcuda.so.not-there",
                "use cpu", NULL);
}

static void a_driver_that_lacks_a_function_is_too_old(void **state)
{
    (void)state;
    struct cuda_driver driver;
    assert_int_equal(cuda_driver_load(&driver, "libm.so.6"), LS_ENOENT);
    assert_said("libm.so.6 has no cuInit", "450.36", NULL);
}

/* A driver has threads of its own: they run on, whatever became of it. */
static void what_was_loaded_stays(void **state)
{
    static const char *const name = "libanl.so.1"; /* nobody else uses it */
    struct cuda_driver driver;
    (void)state;
    assert_null(dlopen(name, RTLD_NOW | RTLD_NOLOAD));
    assert_int_equal(cuda_driver_load(&driver, name), LS_ENOENT);
    assert_said("libanl.so.1 has no cuInit", NULL);
    assert_non_null(dlopen(name, RTLD_NOW | RTLD_NOLOAD));
}

#define ON_CPU(name)                                                           \
    static void name##_on_cpu(void **state)                                    \
    {                                                                          \
        (void)state;                                                           \
        ls_device *device = open_device("cpu");                                \
        name(device);                                                          \
        ls_device_close(&device);                                              \
    }
DEVICE_PROMISES(ON_CPU)
#undef ON_CPU

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test(name##_on_cpu),
        DEVICE_PROMISES(TEST)
#undef TEST
            cmocka_unit_test(a_device_goes_by_the_name_it_was_opened_by),
        cmocka_unit_test(other_names_are_refused_with_the_allowed_forms),
        cmocka_unit_test(a_name_is_right_wherever_the_device_is),
        cmocka_unit_test(a_core_that_is_not_there_is_refused),
        cmocka_unit_test(a_simulation_has_every_core_and_no_gpu),
        cmocka_unit_test(without_a_driver_the_error_says_so),
        cmocka_unit_test(a_driver_that_lacks_a_function_is_too_old),
        cmocka_unit_test(what_was_loaded_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
