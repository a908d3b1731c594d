/* Batches of a data set: drawn, loaded, moved. */
#include "lockstep/loader.h"

#include "line.h"

static int fail_at_second(void *self, const uint64_t *indices, size_t n,
                          void *items)
{
    unsigned *calls = self;
    return ++*calls == 2 ? ls_error(LS_EIO, "torn")
                         : line_load(NULL, indices, n, items);
}

static int go_through(void *self, ls_driver *driver)
{
    const uint32_t rank = ls_driver_rank(driver);
    const struct ls_batch *batch;
    ls_loader *loader;
    uint64_t next = rank;
    (void)self;
    TRY(line_setup(driver, &line_ops));
    TRY(ls_loader_create(&loader, driver,
                         &(struct ls_loader_options){.data = &line_data,
                                                     .in_order = true,
                                                     .batch_size = 6,
                                                     .blob = "position"}));
    CHECK(ls_blobs_find(ls_driver_blobs(driver), "position") != NULL);
    CHECK(ls_sampler_batches(ls_loader_sampler(loader)) == 4);
    for (int i = 0; i < 4; i++) {
        TRY(ls_loader_next(loader, &batch));
        CHECK(batch->n == (i < 3 ? 6u : 2u));
        CHECK(batch->bytes == batch->n * sizeof(struct line_item));
        CHECK(batch->items == ls_device_stack_host(batch->stack));
        for (size_t j = 0; j < batch->n; j++, next += 2) {
            struct line_item wanted;
            CHECK(batch->indices[j] == next);
            TRY(line_load(NULL, &next, 1, &wanted));
            CHECK(memcmp((const struct line_item *)batch->items + j, &wanted,
                         sizeof wanted) == 0);
        }
        TRY(ls_loader_consume(loader));
    }
    TRY(ls_loader_next(loader, &batch));
    CHECK(batch == NULL);
    CHECK_FAILS(ls_loader_consume(loader), LS_EINVAL);
    ls_loader_destroy(&loader);
    CHECK(loader == NULL);
    CHECK(ls_blobs_find(ls_driver_blobs(driver), "position") == NULL);
    ls_loader_destroy(NULL);
    return LS_OK;
}

TEST(a_rank_gets_its_batches_in_memory)
{
    assert_ok(run_threads(2, go_through, NULL));
}

static int try_again(void *self, ls_driver *driver)
{
    unsigned calls = 0;
    struct ls_data torn = line_data;
    const struct ls_batch *batch;
    ls_loader *loader;
    (void)self;
    torn.load = fail_at_second;
    torn.self = &calls;
    TRY(line_setup(driver, &line_ops));
    TRY(ls_loader_create(
        &loader, driver,
        &(struct ls_loader_options){.data = &torn, .in_order = true}));
    TRY(ls_loader_next(loader, &batch));
    TRY(ls_loader_consume(loader));
    CHECK_FAILS(ls_loader_next(loader, &batch), LS_EIO);
    CHECK_ERROR_HAS("loading 1 samples: torn");
    ls_sampler_end(ls_loader_sampler(loader));
    TRY(ls_loader_next(loader, &batch));
    CHECK(batch->indices[0] == 1);
    ls_loader_destroy(&loader);
    return LS_OK;
}

TEST(a_batch_that_could_not_be_loaded_is_tried_again)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, try_again, NULL));
}

static int be_refused(void *self, ls_driver *driver)
{
    struct ls_data empty = line_data;
    struct ls_loader_options options = {.data = &line_data};
    ls_loader *loader = (ls_loader *)&empty;
    (void)self;
    CHECK_FAILS(ls_loader_create(&loader, driver, &options), LS_ESTATE);
    CHECK(loader == NULL);
    CHECK_ERROR_HAS("ls_driver_setup()");
    TRY(line_setup(driver, &line_ops));
    options.blob = "model.w";
    CHECK_FAILS(ls_loader_create(&loader, driver, &options), LS_EEXIST);
    options.blob = NULL;
    empty.length = 0;
    options.data = &empty;
    CHECK_FAILS(ls_loader_create(&loader, driver, &options), LS_EINVAL);
    empty = line_data;
    empty.item_bytes = 0;
    CHECK_FAILS(ls_loader_create(&loader, driver, &options), LS_EINVAL);
    CHECK_ERROR_HAS("item_bytes");
    empty.item_bytes = SIZE_MAX / 2;
    options.batch_size = 3;
    CHECK_FAILS(ls_loader_create(&loader, driver, &options), LS_EINVAL);
    CHECK_ERROR_HAS("too many");
    return LS_OK;
}

TEST(what_cannot_be_loaded_is_refused)
{
    assert_ok(run_kind(LS_DRIVER_SINGLE, 0, be_refused, NULL));
}
