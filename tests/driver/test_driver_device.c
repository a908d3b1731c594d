/* Models and batches on devices of their own, with a CUDA driver in host
 * memory. */
#include "fake_cuda.h"
#include "line.h"
#include "lockstep/loader.h"

static int reset(void **state)
{
    (void)state;
    fake_cuda_reset();
    return 0;
}

EACH_TEST(reset, NULL)

static int set_up(ls_driver *driver, const char *device, const char *data)
{
    return ls_driver_setup(
        driver, &(struct ls_driver_setup){
                    .model = &line_ops, .device = device, .data_device = data});
}

static int number_of(const ls_device *device)
{
    struct ls_device_info info;
    ls_device_info(device, &info);
    return info.kind == LS_DEVICE_CUDA ? info.number : -1;
}

/* Each rank its own GPU for batches; the model stays on the processor. */
static int move(void *self, ls_driver *driver)
{
    const int rank = (int)ls_driver_rank(driver);
    const struct ls_batch *batch;
    ls_loader *loader;
    (void)self;
    TRY(set_up(driver, "cpu", rank == 0 ? "cuda:0" : "cuda:1"));
    CHECK(number_of(ls_driver_device(driver)) == -1);
    CHECK(number_of(ls_driver_data_device(driver)) == rank);
    TRY(ls_loader_create(
        &loader, driver,
        &(struct ls_loader_options){.data = &line_data, .batch_size = 8}));
    for (int i = 0; i < 2; i++) {
        TRY(ls_loader_next(loader, &batch));
        const void *there = (const void *)ls_device_stack_memory(batch->stack);
        CHECK(there != batch->items);
        CHECK(memcmp(there, batch->items, batch->bytes) == 0);
        TRY(ls_loader_consume(loader));
    }
    ls_loader_destroy(&loader);
    return LS_OK;
}

TEST(batches_are_in_the_memory_of_their_device)
{
    assert_ok(run_threads(2, move, NULL));
    assert_int_equal(fake_cuda_n_alive(), 0);
}

static int fall_back(void *self, ls_driver *driver)
{
    (void)self;
    CHECK_FAILS(set_up(driver, "cuda:0", "cuda:99"), LS_ENOENT);
    CHECK(ls_driver_device(driver) == NULL);
    return set_up(driver, "cuda:0", "cpu");
}

TEST(who_lacks_a_device_may_take_another)
{
    assert_ok(run_threads(1, fall_back, NULL));
    assert_int_equal(fake_cuda_n_alive(), 0);
}

static int share(void *self, ls_driver *driver)
{
    (void)self;
    TRY(set_up(driver, "cuda:1", NULL));
    CHECK(ls_driver_device(driver) == ls_driver_data_device(driver));
    CHECK(number_of(ls_driver_device(driver)) == 1);
    CHECK(fake_cuda_is_bound(1)); /* for kernels of the model */
    return LS_OK;
}

TEST(batches_go_where_the_model_is_unless_told_otherwise)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, share, NULL));
    assert_int_equal(fake_cuda_n_alive(), 0);
}

static int fail_to_move(void *self, ls_driver *driver)
{
    const struct ls_batch *batch;
    ls_loader *loader;
    (void)self;
    TRY(set_up(driver, "cpu", "cuda"));
    TRY(ls_loader_create(
        &loader, driver,
        &(struct ls_loader_options){.data = &line_data, .batch_size = 8}));
    fake_cuda_fail_copy(FAKE_ILLEGAL_ADDRESS);
    const int status = ls_loader_next(loader, &batch);
    ls_loader_destroy(&loader);
    return status;
}

TEST(a_copy_that_fails_is_told)
{
    assert_fails(run_kind(LS_DRIVER_SINGLE, 0, fail_to_move, NULL), LS_EIO);
    assert_error_has("CUDA_ERROR_ILLEGAL_ADDRESS");
}

static int ask_for_none(void *self, ls_driver *driver)
{
    (void)self;
    return set_up(driver, "cpu", "cuda:7");
}

TEST(a_device_that_is_not_there_is_refused)
{
    assert_fails(run_kind(LS_DRIVER_SINGLE, 0, ask_for_none, NULL), LS_ENOENT);
    assert_error_has("no GPU 7");
}
