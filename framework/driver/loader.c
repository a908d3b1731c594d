#include "lockstep/loader.h"

#include <stdlib.h>
#include <string.h>

struct ls_loader {
    ls_driver *driver;          /* borrow */
    const struct ls_data *data; /* borrow */
    ls_sampler *sampler;        /* own */
    ls_device_stack *stack;     /* own */
    uint64_t *indices;          /* own */
    char *blob;                 /* own; NULL: none */
    struct ls_batch batch;
};

static int make_room(ls_loader *loader, size_t batch_size)
{
    const size_t bytes = loader->data->item_bytes;
    if (bytes == 0)
        return ls_error(LS_EINVAL, "a loader: item_bytes of its data is 0");
    if (batch_size > SIZE_MAX / bytes)
        return ls_error(LS_EINVAL,
                        "a loader: %zu samples of %zu bytes are too "
                        "many",
                        batch_size, bytes);
    loader->indices = malloc(batch_size * sizeof loader->indices[0]);
    if (loader->indices == NULL)
        return ls_error(LS_ENOMEM, "no memory for batches of %zu samples",
                        batch_size);
    return ls_device_stack_create(&loader->stack,
                                  ls_driver_data_device(loader->driver),
                                  batch_size * bytes);
}

static int add_blob(ls_loader *loader, const char *name)
{
    const int status = ls_sampler_add_blob(
        loader->sampler, ls_driver_blobs(loader->driver), name);
    if (status != LS_OK)
        return status;
    loader->blob = strdup(name);
    if (loader->blob != NULL)
        return LS_OK;
    (void)ls_blobs_remove(ls_driver_blobs(loader->driver), name);
    return ls_error(LS_ENOMEM, "no memory for a loader");
}

static int init(ls_loader *loader, const struct ls_loader_options *options)
{
    const uint32_t batch_size =
        options->batch_size == 0 ? 1 : options->batch_size;
    if (ls_driver_data_device(loader->driver) == NULL)
        return ls_error(LS_ESTATE, "a loader needs the data's device: call "
                                   "ls_driver_setup() first");
    int status = ls_sampler_create(
        &loader->sampler,
        &(struct ls_sampler_options){.length = loader->data->length,
                                     .spread = options->spread,
                                     .in_order = options->in_order,
                                     .seed = ls_driver_seed(loader->driver),
                                     .rank = ls_driver_rank(loader->driver),
                                     .ranks = ls_driver_size(loader->driver),
                                     .batch_size = batch_size,
                                     .drop_last = options->drop_last});
    if (status == LS_OK)
        status = make_room(loader, batch_size);
    if (status == LS_OK && options->blob != NULL)
        status = add_blob(loader, options->blob);
    return status;
}

int ls_loader_create(ls_loader **out, ls_driver *driver,
                     const struct ls_loader_options *options)
{
    *out = NULL;
    ls_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return ls_error(LS_ENOMEM, "no memory for a loader");
    loader->driver = driver;
    loader->data = options->data;
    const int status = init(loader, options);
    if (status != LS_OK) {
        ls_loader_destroy(&loader);
        return status;
    }
    *out = loader;
    return LS_OK;
}

void ls_loader_destroy(ls_loader **gone)
{
    ls_loader *loader = gone == NULL ? NULL : *gone;
    if (loader == NULL)
        return;
    *gone = NULL;
    if (loader->blob != NULL)
        (void)ls_blobs_remove(ls_driver_blobs(loader->driver), loader->blob);
    ls_device_stack_destroy(&loader->stack);
    ls_sampler_destroy(&loader->sampler);
    free(loader->indices);
    free(loader->blob);
    free(loader);
}

ls_sampler *ls_loader_sampler(ls_loader *loader)
{
    return loader->sampler;
}

int ls_loader_next(ls_loader *loader, const struct ls_batch **batch)
{
    size_t n;
    int status = ls_sampler_next(loader->sampler, loader->indices, &n);
    if (status != LS_OK)
        return status;
    *batch = NULL;
    if (n == 0)
        return LS_OK;
    void *const host = ls_device_stack_host(loader->stack);
    loader->batch = (struct ls_batch){.n = n,
                                      .indices = loader->indices,
                                      .items = host,
                                      .bytes = n * loader->data->item_bytes,
                                      .stack = loader->stack};
    status = loader->data->load(loader->data->self, loader->indices, n, host);
    if (status != LS_OK)
        return ls_error_at(status, "loading %zu samples", n);
    status = ls_driver_move(loader->driver, &loader->batch);
    if (status == LS_OK)
        *batch = &loader->batch;
    return status;
}

int ls_loader_consume(ls_loader *loader)
{
    return ls_sampler_consume(loader->sampler, 1);
}
