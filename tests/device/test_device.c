/* The processor, and the names of all devices. */
#include <dlfcn.h>
#include <stdio.h>

#include "device_promises.h"
#include "lockstep/simulation.h"

#include "device_cuda_driver.h"
#include "test.h"

static void assert_refused(const char *name, int status)
{
    ls_device *device = NULL;
    assert_int_equal(ls_device_open(&device, ls_runtime_threads(), name),
                     status);
    assert_null(device);
    assert_said(name, NULL);
}

TEST(a_device_goes_by_the_name_it_was_opened_by)
{
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

TEST(other_names_are_refused_with_the_allowed_forms)
{
    static const char *const wrong[] = {
        "",       "gpu",   "CPU",    "cpu ",      " cpu",   "cpu:",
        "cpu:-1", "cpu:x", "cpu:1x", "cpu:12345", "cpu:+1", "cpu3",
        "cuda:",  "cuda0", "cuda:a", "cuda:1:2",  "cudas",  "cpu:\n1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_refused(wrong[i], LS_EINVAL);
        assert_fails(ls_device_check_name(wrong[i]), LS_EINVAL);
        assert_said("expected cpu, cpu:CORE, cuda or cuda:NUMBER", NULL);
    }
}

TEST(a_name_is_right_wherever_the_device_is)
{
    static const char *const right[] = {"cpu", "cpu:9999", "cuda", "cuda:7"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_ok(ls_device_check_name(right[i]));
}

TEST(a_core_that_is_not_there_is_refused)
{
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
    assert_ok(ls_device_open(&device, runtime, "cpu:1000"));
    assert_ok(ls_device_bind_thread(device));
    ls_device_close(&device);
    assert_fails(ls_device_open(&device, runtime, "cuda"), LS_EINVAL);
    assert_said("a GPU cannot be simulated", NULL);
}

TEST(a_simulation_has_every_core_and_no_gpu)
{
    ls_simulation *simulation;
    assert_ok(ls_simulation_create(&simulation, NULL));
    assert_ok(ls_simulation_run(simulation, pin_in_a_simulation,
                                ls_simulation_runtime(simulation)));
    ls_simulation_destroy(&simulation);
}

TEST(without_a_driver_the_error_says_so)
{
    struct cuda_driver driver;
    assert_fails(cuda_driver_load(&driver, "libcuda.so.not-there"), LS_ENOENT);
    assert_said("no driver for NVIDIA GPUs here", "libcuda.so.not-there",
                "use cpu", NULL);
}

TEST(a_driver_that_lacks_a_function_is_too_old)
{
    struct cuda_driver driver;
    assert_fails(cuda_driver_load(&driver, "libm.so.6"), LS_ENOENT);
    assert_said("libm.so.6 has no cuInit", "450.36", NULL);
}

/* A driver has threads of its own: they run on, whatever became of it. */
TEST(what_was_loaded_stays)
{
    static const char *const name = "libanl.so.1"; /* nobody else uses it */
    struct cuda_driver driver;
    assert_null(dlopen(name, RTLD_NOW | RTLD_NOLOAD));
    assert_fails(cuda_driver_load(&driver, name), LS_ENOENT);
    assert_said("libanl.so.1 has no cuInit", NULL);
    assert_non_null(dlopen(name, RTLD_NOW | RTLD_NOLOAD));
}

#define ON_CPU(name)                                                           \
    TEST(name##_on_cpu)                                                        \
    {                                                                          \
        ls_device *device = open_device("cpu");                                \
        name(device);                                                          \
        ls_device_close(&device);                                              \
    }
DEVICE_PROMISES(ON_CPU)
#undef ON_CPU
