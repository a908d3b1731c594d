/* What a rank does with its model. */
#include "driver_inside.h"

#include <string.h>

void driver_close_devices(ls_driver *driver)
{
    if (driver->data_device != driver->device)
        ls_device_close(&driver->data_device);
    driver->data_device = NULL;
    ls_device_close(&driver->device);
}

/* Both, or none: who has no GPU tries again with another name. */
static int open_devices(ls_driver *driver, const struct ls_driver_setup *setup)
{
    const char *const model = setup->device != NULL ? setup->device : "cpu";
    const char *const data =
        setup->data_device != NULL ? setup->data_device : model;
    int status = ls_device_open(&driver->device, driver->run->runtime, model);
    if (status == LS_OK && strcmp(model, data) == 0)
        driver->data_device = driver->device;
    else if (status == LS_OK)
        status =
            ls_device_open(&driver->data_device, driver->run->runtime, data);
    if (status == LS_OK)
        status = ls_device_bind_thread(driver->device);
    if (status != LS_OK)
        driver_close_devices(driver);
    return status;
}

static int make_model(ls_driver *driver, const struct ls_driver_setup *setup)
{
    struct ls_rng first;
    const struct ls_model_setup given = {.config = setup->config,
                                         .device = driver->device,
                                         .data_device = driver->data_device,
                                         .seed = ls_driver_seed(driver),
                                         .rank = driver->rank,
                                         .ranks = driver->size,
                                         .random = &driver->random,
                                         .blobs = driver->blobs,
                                         .rank_blobs = driver->rank_blobs};
    ls_rng_seed(&first, given.seed, STREAM_WEIGHTS);
    return trained_init(&driver->trained, driver->group, setup, &given, &first,
                        driver->run->timeout_ms);
}

int ls_driver_setup(ls_driver *driver, const struct ls_driver_setup *setup)
{
    if (driver->trained.ops != NULL)
        return ls_error(LS_ESTATE, "driver: the model %s was set up before",
                        driver->trained.ops->name);
    int status = driver_need_all(driver);
    if (status == LS_OK)
        status = open_devices(driver, setup);
    if (status == LS_OK)
        status = make_model(driver, setup);
    driver->is_ready = status == LS_OK;
    return status;
}

void *ls_driver_model(const ls_driver *driver)
{
    return driver->is_ready ? driver->trained.state : NULL;
}

const struct ls_parameter *ls_driver_parameters(const ls_driver *driver,
                                                size_t *n)
{
    *n = driver->trained.n;
    return driver->trained.parameters;
}

ls_device *ls_driver_device(const ls_driver *driver)
{
    return driver->device;
}

ls_device *ls_driver_data_device(const ls_driver *driver)
{
    return driver->data_device;
}

uint64_t ls_driver_hash(const ls_driver *driver)
{
    return driver->is_ready ? trained_hash(&driver->trained) : 0;
}

static int need_model(const ls_driver *driver)
{
    return driver->is_ready
               ? LS_OK
               : ls_error(LS_ESTATE,
                          "driver: there is no model: call ls_driver_setup()");
}

static int lacks(const ls_driver *driver, const char *what)
{
    return ls_error(LS_ENOENT, "driver: the model %s has no %s()",
                    driver->trained.ops->name, what);
}

/* Put the model's name before its error. */
static int of_model(const ls_driver *driver, int status)
{
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "the model %s", driver->trained.ops->name);
}

int ls_driver_set_mode(ls_driver *driver, enum ls_mode mode)
{
    const struct trained *const trained = &driver->trained;
    const int status = need_model(driver);
    if (status != LS_OK || trained->ops->set_mode == NULL)
        return status;
    return of_model(driver, trained->ops->set_mode(trained->state, mode));
}

int ls_driver_train(ls_driver *driver, const struct ls_batch *batch,
                    ls_learner_info *figures)
{
    const struct trained *const trained = &driver->trained;
    const int status = need_model(driver);
    if (status != LS_OK)
        return status;
    return of_model(driver,
                    trained->ops->train(trained->state, batch, figures));
}

int ls_driver_evaluate(ls_driver *driver, const struct ls_batch *batch,
                       ls_learner_info *figures)
{
    const struct trained *const trained = &driver->trained;
    const int status = need_model(driver);
    if (status != LS_OK)
        return status;
    if (trained->ops->evaluate == NULL)
        return lacks(driver, "evaluate");
    return of_model(driver,
                    trained->ops->evaluate(trained->state, batch, figures));
}

int driver_backward(ls_driver *driver, double scale, bool sync, bool *stop)
{
    struct trained *const trained = &driver->trained;
    bool none = false;
    int status = need_model(driver);
    if (status == LS_OK && sync)
        status = driver_need_all(driver);
    if (status == LS_OK)
        status =
            of_model(driver, trained->ops->backward(trained->state, scale));
    if (status != LS_OK || !sync)
        return status;
    return trained_exchange(trained, stop != NULL ? stop : &none,
                            driver->run->timeout_ms);
}

int ls_driver_backward(ls_driver *driver, double scale, bool sync)
{
    return driver_backward(driver, scale, sync, NULL);
}

int ls_driver_step_one(ls_driver *driver, size_t at)
{
    const int status = need_model(driver);
    if (status != LS_OK)
        return status;
    if (at >= driver->trained.n_optimisers)
        return ls_error(LS_EINVAL, "driver: there is no optimiser %zu, of %zu",
                        at, driver->trained.n_optimisers);
    return trained_step(&driver->trained, at);
}

int ls_driver_step(ls_driver *driver)
{
    int status = need_model(driver);
    for (size_t i = 0; i < driver->trained.n_optimisers && status == LS_OK; i++)
        status = trained_step(&driver->trained, i);
    return status;
}

int ls_driver_zero_grad(ls_driver *driver)
{
    const int status = need_model(driver);
    if (status == LS_OK)
        trained_zero(&driver->trained);
    return status;
}

int ls_driver_auto_cast(ls_driver *driver, bool on)
{
    const struct trained *const trained = &driver->trained;
    const int status = need_model(driver);
    if (status != LS_OK)
        return status;
    if (trained->ops->auto_cast == NULL)
        return lacks(driver, "auto_cast");
    return of_model(driver, trained->ops->auto_cast(trained->state, on));
}

int ls_driver_move(ls_driver *driver, const struct ls_batch *batch)
{
    int status = need_model(driver);
    if (status == LS_OK)
        status = ls_device_stack_upload(batch->stack, 0, batch->bytes);
    if (status == LS_OK)
        status = ls_device_stack_wait(
            batch->stack,
            ls_deadline(driver->run->runtime, driver->run->timeout_ms));
    return status;
}
