/* bench_device - batches through the stacks of a GPU, against its bare copies.
 *
 *   bench_device [--json] [--rounds N]
 *
 * copies alone:   batches of 64 MiB from one pinned buffer, one after the
 *                 other: what the bus to the GPU can carry.
 * kernels alone:  as much computing as 3/4 of such a copy takes.
 * four stacks:    each batch is uploaded and computed on, on the stack that is
 *                 free for longest; copies and kernels overlap.
 * one stack:      the same without anything to overlap with.
 * Skips where there is no GPU. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "process.h"

#include "device_cuda_driver.h"
#include "lockstep/device.h"

#define BATCH_BYTES (64u << 20)
#define N_BATCHES   48
#define N_STACKS    4
#define THREADS     256u
#define N_FLOATS    (BATCH_BYTES / (unsigned)sizeof(float))
#define OF_A_COPY   0.75 /* what the kernels of a batch take */

/* So many rounds of x = x * a + b on each of n floats. */
static const char kernel_text[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry compute(.param .u64 data, .param .u32 n,\n"
    "                        .param .u32 rounds)\n"
    "{\n"
    "    .reg .pred %p<3>;\n"
    "    .reg .b32 %r<8>;\n"
    "    .reg .b64 %rd<5>;\n"
    "    .reg .f32 %f<2>;\n"
    "    ld.param.u64 %rd1, [data];\n"
    "    ld.param.u32 %r1, [n];\n"
    "    ld.param.u32 %r2, [rounds];\n"
    "    mov.u32 %r3, %ctaid.x;\n"
    "    mov.u32 %r4, %ntid.x;\n"
    "    mov.u32 %r5, %tid.x;\n"
    "    mad.lo.u32 %r6, %r3, %r4, %r5;\n"
    "    setp.ge.u32 %p1, %r6, %r1;\n"
    "    @%p1 bra END;\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    mul.wide.u32 %rd3, %r6, 4;\n"
    "    add.u64 %rd4, %rd2, %rd3;\n"
    "    ld.global.f32 %f1, [%rd4];\n"
    "    mov.u32 %r7, 0;\n"
    "ROUND:\n"
    "    setp.ge.u32 %p2, %r7, %r2;\n"
    "    @%p2 bra STORE;\n"
    "    fma.rn.f32 %f1, %f1, 0f3F7FFFFF, 0f3A83126F;\n"
    "    add.u32 %r7, %r7, 1;\n"
    "    bra ROUND;\n"
    "STORE:\n"
    "    st.global.f32 [%rd4], %f1;\n"
    "END:\n"
    "    ret;\n"
    "}\n";

/* What only this program needs of the driver. */
struct kernels {
    cuda_result (*load)(void **module, const void *text);
    cuda_result (*find)(void **function, void *module, const char *name);
    cuda_result (*launch)(void *function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared_bytes, void *stream,
                          void **parameters, void **extra);
    void *compute;
};

static struct {
    struct cuda_driver driver;
    struct kernels kernels;
    ls_device *device;
    ls_device_stack *stacks[N_STACKS];
    unsigned rounds; /* of the kernel */
} bench;

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

static void must_cuda(cuda_result result, const char *function)
{
    if (result == CUDA_SUCCESS)
        return;
    (void)cuda_driver_error(&bench.driver, function, result);
    bench_fail("the GPU");
}

static void find_function(void *place, const char *name)
{
    void *const found = dlsym(bench.driver.library, name);
    if (found == NULL) {
        (void)ls_error(LS_ENOENT, "libcuda.so.1 has no %s", name);
        bench_fail("the GPU");
    }
    memcpy(place, &found, sizeof found);
}

static void load_kernel(void)
{
    struct kernels *const kernels = &bench.kernels;
    void *module = NULL;
    must(cuda_driver_load(&bench.driver, "libcuda.so.1"), "libcuda.so.1");
    find_function(&kernels->load, "cuModuleLoadData");
    find_function(&kernels->find, "cuModuleGetFunction");
    find_function(&kernels->launch, "cuLaunchKernel");
    must_cuda(kernels->load(&module, kernel_text), "cuModuleLoadData");
    must_cuda(kernels->find(&kernels->compute, module, "compute"),
              "cuModuleGetFunction");
}

static void compute(ls_device_stack *stack)
{
    cuda_address data = ls_device_stack_memory(stack);
    unsigned n = N_FLOATS;
    void *parameters[] = {&data, &n, &bench.rounds};
    must_cuda(bench.kernels.launch(
                  bench.kernels.compute, (N_FLOATS + THREADS - 1) / THREADS, 1,
                  1, THREADS, 1, 1, 0, ls_device_stack_stream(stack),
                  parameters, NULL),
              "cuLaunchKernel");
}

static double gigabytes_per_s(int64_t ns)
{
    return (double)N_BATCHES * BATCH_BYTES / (double)ns;
}

/* Nothing of the stack but its buffers: the driver's own calls. */
static double copies_alone(void *self)
{
    (void)self;
    ls_device_stack *const stack = bench.stacks[0];
    const int64_t from = bench_now();
    for (int i = 0; i < N_BATCHES; i++)
        must_cuda(bench.driver.upload(ls_device_stack_memory(stack),
                                      ls_device_stack_host(stack), BATCH_BYTES,
                                      ls_device_stack_stream(stack)),
                  "cuMemcpyHtoDAsync");
    must_cuda(bench.driver.stream_synchronize(ls_device_stack_stream(stack)),
              "cuStreamSynchronize");
    return gigabytes_per_s(bench_now() - from);
}

static double kernels_alone(void *self)
{
    (void)self;
    const int64_t from = bench_now();
    for (int i = 0; i < N_BATCHES; i++)
        compute(bench.stacks[0]);
    must(ls_device_stack_wait(bench.stacks[0], LS_FOREVER), "kernels");
    return gigabytes_per_s(bench_now() - from);
}

static double through(int n_stacks)
{
    const int64_t from = bench_now();
    for (int i = 0; i < N_BATCHES; i++) {
        ls_device_stack *const stack = bench.stacks[i % n_stacks];
        must(ls_device_stack_wait(stack, LS_FOREVER), "a stack");
        must(ls_device_stack_upload(stack, 0, BATCH_BYTES), "an upload");
        compute(stack);
    }
    for (int i = 0; i < n_stacks; i++)
        must(ls_device_stack_wait(bench.stacks[i], LS_FOREVER), "a stack");
    return gigabytes_per_s(bench_now() - from);
}

static double four_stacks(void *self)
{
    (void)self;
    return through(N_STACKS);
}

static double one_stack(void *self)
{
    (void)self;
    return through(1);
}

/* Choose the rounds of the kernel: its time grows with them. */
static void calibrate(void)
{
    enum { FEW = 100, MANY = 4100 };
    (void)copies_alone(NULL);
    const double copy_ns = 1 / copies_alone(NULL);
    bench.rounds = FEW;
    (void)kernels_alone(NULL);
    const double few_ns = 1 / kernels_alone(NULL);
    bench.rounds = MANY;
    const double each_ns = (1 / kernels_alone(NULL) - few_ns) / (MANY - FEW);
    const double rounds = FEW + (OF_A_COPY * copy_ns - few_ns) / each_ns;
    bench.rounds = rounds < 1 ? 1 : (unsigned)rounds;
}

/* Returns whether there is a GPU. */
static int open_gpu(void)
{
    const int status =
        ls_device_open(&bench.device, ls_runtime_threads(), "cuda");
    if (status == LS_ENOENT) {
        printf("skipped: no GPU: %s\n", ls_error_text());
        return 0;
    }
    must(status, "the GPU");
    must(ls_device_bind_thread(bench.device), "the GPU");
    load_kernel();
    for (int i = 0; i < N_STACKS; i++) {
        must(
            ls_device_stack_create(&bench.stacks[i], bench.device, BATCH_BYTES),
            "a stack");
        memset(ls_device_stack_host(bench.stacks[i]), 0, BATCH_BYTES);
    }
    return 1;
}

static void close_gpu(void)
{
    for (int i = 0; i < N_STACKS; i++)
        ls_device_stack_destroy(&bench.stacks[i]);
    ls_device_close(&bench.device);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    bench_options_read(&options, argc, argv);
    if (!open_gpu())
        return 0;
    struct ls_device_info info;
    ls_device_info(bench.device, &info);
    if (!options.json)
        printf("%s\n", info.description);
    calibrate();

    struct bench_figure figures[] = {
        {.name = "copies alone", .unit = "GB/s", .run = copies_alone},
        {.name = "kernels alone", .unit = "GB/s", .run = kernels_alone},
        {.name = "four stacks", .unit = "GB/s", .run = four_stacks},
        {.name = "one stack", .unit = "GB/s", .run = one_stack},
    };
    enum { COPIES = 0, FOUR = 2, ONE = 3, N_FIGURES = 4 };
    bench_run(figures, N_FIGURES, &options);
    bench_print("device", figures, N_FIGURES, &options);
    bench_print_derived(
        "device", "four stacks, of the copies alone (target >= 0.9)", "x",
        figures[FOUR].median / figures[COPIES].median, &options);
    bench_print_derived("device", "one stack, of the copies alone", "x",
                        figures[ONE].median / figures[COPIES].median, &options);
    close_gpu();
    return 0;
}
