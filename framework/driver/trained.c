/* Parameters, gradients and optimisers of models, in memory. Parameters lie
 * one after the other in one array, and their gradients in another: so
 * exchanging, zeroing and hashing are one operation each. */
#include "trained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With one more, and LS_SLOTS_MAX times, their bytes still have a number. */
#define COUNT_MAX (SIZE_MAX / sizeof(double) / LS_SLOTS_MAX - 1)

static size_t size_of(enum ls_blob_type type)
{
    return type == LS_BLOB_F32 ? sizeof(float) : sizeof(double);
}

size_t ls_parameter_count(const struct ls_parameter *parameter)
{
    size_t n = 1;
    for (size_t i = 0; i < parameter->form.n_dims; i++)
        n *= (size_t)parameter->form.shape[i];
    return n;
}

/* Parameters -------------------------------------------------------------- */

static int check_parameter(const struct trained *trained,
                           const struct ls_parameter *new)
{
    const char *const model = trained->ops->name;
    char text[LS_BLOB_FORM_TEXT_MAX];
    uint64_t bytes;
    if (memchr(new->name, '\0', sizeof new->name) == NULL)
        return ls_error(LS_EINVAL,
                        "the model %s: the name of parameter %zu is over %d "
                        "bytes",
                        model, trained->n, LS_PARAMETER_NAME_MAX);
    if (new->form.type != LS_BLOB_F32 &&new->form.type != LS_BLOB_F64)
        return ls_error(LS_EINVAL,
                        "the model %s: the parameter %s is %s, and must be of "
                        "f32 or f64",
                        model, new->name, ls_blob_form_print(&new->form, text));
    if (trained->n > 0 && new->form.type != trained->type)
        return ls_error(LS_EINVAL,
                        "the model %s: the parameter %s is %s, and those "
                        "before it are of %s: all are of one type",
                        model, new->name, ls_blob_form_print(&new->form, text),
                        ls_blob_type_name(trained->type));
    for (size_t i = 0; i < trained->n; i++) {
        if (strcmp(trained->parameters[i].name, new->name) == 0)
            return ls_error(LS_EINVAL,
                            "the model %s has two parameters named %s", model,
                            new->name);
    }
    if (ls_blob_form_bytes(&new->form, &bytes) != LS_OK)
        return ls_error_at(LS_EINVAL, "the model %s: the parameter %s", model,
                           new->name);
    return LS_OK;
}

static int list_parameters(struct trained *trained)
{
    struct ls_parameter new;
    trained->parameters =
        calloc(LS_PARAMETERS_MAX, sizeof trained->parameters[0]);
    if (trained->parameters == NULL)
        return ls_error(LS_ENOMEM, "no memory for parameters");
    while (memset(&new, 0, sizeof new),
           trained->ops->parameter(trained->state, trained->n, &new)) {
        if (trained->n == LS_PARAMETERS_MAX)
            return ls_error(LS_ELIMIT,
                            "the model %s has more than %d parameters",
                            trained->ops->name, LS_PARAMETERS_MAX);
        const int status = check_parameter(trained, &new);
        if (status != LS_OK)
            return status;
        if (ls_parameter_count(&new) > COUNT_MAX - trained->count)
            return ls_error(LS_ELIMIT,
                            "the model %s has too many numbers, with those of "
                            "the parameter %s",
                            trained->ops->name, new.name);
        trained->type = new.form.type;
        trained->parameters[trained->n++] = new;
        trained->count += ls_parameter_count(&new);
    }
    if (trained->count == 0)
        return ls_error(LS_EINVAL, "the model %s has no parameters",
                        trained->ops->name);
    return LS_OK;
}

static int place_parameters(struct trained *trained)
{
    const size_t size = size_of(trained->type);
    int status =
        ls_group_alloc(trained->group, &trained->values, trained->count * size);
    if (status == LS_OK)
        status = ls_group_alloc(trained->group, &trained->gradients,
                                (trained->count + 1) * size);
    if (status != LS_OK)
        return status;
    size_t offset = 0;
    for (size_t i = 0; i < trained->n; i++) {
        struct ls_parameter *const one = &trained->parameters[i];
        one->value = (char *)trained->values + offset;
        one->gradient = (char *)trained->gradients + offset;
        offset += ls_parameter_count(one) * size;
    }
    return LS_OK;
}

static int add_blobs(struct trained *trained, ls_blobs *blobs)
{
    for (size_t i = 0; i < trained->n; i++) {
        const struct ls_parameter *const one = &trained->parameters[i];
        char name[LS_VAULT_NAME_MAX + 1];
        (void)snprintf(name, sizeof name, "model.%s", one->name);
        const int status = ls_blobs_add(
            blobs, &(struct ls_blob){
                       .name = name, .form = one->form, .memory = one->value});
        if (status != LS_OK)
            return ls_error_at(status, "the model %s", trained->ops->name);
    }
    return LS_OK;
}

/* Optimisers -------------------------------------------------------------- */

static size_t find_parameter(const struct trained *trained, const char *name)
{
    size_t i = 0;
    while (i < trained->n && strcmp(trained->parameters[i].name, name) != 0)
        i++;
    return i;
}

static int take(struct trained *trained, struct trained_optimiser *taker,
                size_t at, struct trained_optimiser **takers)
{
    if (takers[at] != NULL)
        return ls_error(
            LS_EINVAL, "the parameter %s has two optimisers, %s and %s",
            trained->parameters[at].name, takers[at]->name, taker->name);
    takers[at] = taker;
    taker->members[taker->n++] = at;
    taker->count += ls_parameter_count(&trained->parameters[at]);
    return LS_OK;
}

/* Those that are named first, so that who takes the rest knows it. */
static int take_named(struct trained *trained,
                      const struct ls_driver_setup *how,
                      struct trained_optimiser **takers)
{
    for (size_t i = 0; i < how->n_optimisers; i++) {
        const char *const *name = how->optimisers[i].parameters;
        for (; name != NULL && *name != NULL; name++) {
            const size_t at = find_parameter(trained, *name);
            const int status =
                at < trained->n
                    ? take(trained, &trained->optimisers[i], at, takers)
                    : ls_error(LS_EINVAL,
                               "the optimiser %s: the model %s has no "
                               "parameter %s",
                               trained->optimisers[i].name, trained->ops->name,
                               *name);
            if (status != LS_OK)
                return status;
        }
    }
    return LS_OK;
}

static int take_rest(struct trained *trained, const struct ls_driver_setup *how,
                     struct trained_optimiser **takers)
{
    int status = LS_OK;
    for (size_t i = 0; i < how->n_optimisers && status == LS_OK; i++) {
        for (size_t at = 0; how->optimisers[i].parameters == NULL &&
                            at < trained->n && status == LS_OK;
             at++) {
            if (takers[at] == NULL)
                status = take(trained, &trained->optimisers[i], at, takers);
        }
        if (status == LS_OK && trained->optimisers[i].n == 0)
            status = ls_error(LS_EINVAL, "the optimiser %s has no parameters",
                              trained->optimisers[i].name);
    }
    return status;
}

static int name_optimiser(struct trained *trained, size_t at,
                          const struct ls_optimiser *how)
{
    struct trained_optimiser *const one = &trained->optimisers[at];
    const char *const name = how->name != NULL ? how->name : how->ops->name;
    one->ops = how->ops;
    one->config = how->config;
    if (how->ops->n_slots > LS_SLOTS_MAX)
        return ls_error(LS_ELIMIT, "the optimiser %s has %zu slots, over %d",
                        name, how->ops->n_slots, LS_SLOTS_MAX);
    const int n = snprintf(one->name, sizeof one->name, "%s", name);
    if (n < 0 || (size_t)n >= sizeof one->name)
        return ls_error(LS_EINVAL, "the name of optimiser %zu is over %d bytes",
                        at, LS_PARAMETER_NAME_MAX);
    for (size_t i = 0; i < at; i++) {
        if (strcmp(trained->optimisers[i].name, name) == 0)
            return ls_error(LS_EINVAL, "there are two optimisers named %s",
                            name);
    }
    return LS_OK;
}

static int add_slots(struct trained *trained, struct trained_optimiser *one,
                     ls_blobs *blobs)
{
    char name[LS_VAULT_NAME_MAX + 1];
    const size_t n = one->ops->n_slots * one->count;
    one->slots = calloc(n > 0 ? n : 1, size_of(trained->type));
    if (one->slots == NULL)
        return ls_error(LS_ENOMEM, "no memory for the optimiser %s", one->name);
    (void)snprintf(name, sizeof name, "optimiser.%s", one->name);
    int status = ls_blobs_add(
        blobs, &(struct ls_blob){
                   .name = name,
                   .form = {trained->type, 2, {one->ops->n_slots, one->count}},
                   .memory = one->slots});
    (void)snprintf(name, sizeof name, "optimiser.%s.step", one->name);
    if (status == LS_OK)
        status =
            ls_blobs_add(blobs, &(struct ls_blob){.name = name,
                                                  .form = {.type = LS_BLOB_I64},
                                                  .memory = &one->step});
    return status;
}

static int add_optimisers(struct trained *trained,
                          const struct ls_driver_setup *how, ls_blobs *blobs)
{
    struct trained_optimiser *takers[LS_PARAMETERS_MAX] = {NULL};
    if (how->n_optimisers == 0)
        return LS_OK;
    trained->optimisers =
        calloc(how->n_optimisers, sizeof trained->optimisers[0]);
    if (trained->optimisers == NULL)
        return ls_error(LS_ENOMEM, "no memory for optimisers");
    trained->n_optimisers = how->n_optimisers;
    int status = LS_OK;
    for (size_t i = 0; i < how->n_optimisers && status == LS_OK; i++)
        status = name_optimiser(trained, i, &how->optimisers[i]);
    if (status == LS_OK)
        status = take_named(trained, how, takers);
    if (status == LS_OK)
        status = take_rest(trained, how, takers);
    for (size_t i = 0; i < how->n_optimisers && status == LS_OK; i++)
        status = add_slots(trained, &trained->optimisers[i], blobs);
    return status;
}

/* Made and gone ----------------------------------------------------------- */

static int begin(struct trained *trained, struct ls_rng *first, int timeout_ms)
{
    int status =
        trained->ops->begin(trained->state, trained->parameters, first);
    if (status != LS_OK)
        return ls_error_at(status, "the model %s", trained->ops->name);
    /* A model may draw from elsewhere: what counts is that all are equal. */
    return ls_group_broadcast(trained->group, trained->values,
                              trained->count * size_of(trained->type), 0,
                              timeout_ms);
}

int trained_init(struct trained *trained, ls_group *group,
                 const struct ls_driver_setup *how,
                 const struct ls_model_setup *setup, struct ls_rng *first,
                 int timeout_ms)
{
    *trained = (struct trained){.copy = *how->model, .group = group};
    const struct ls_model_ops *const ops = trained->ops = &trained->copy;
    trained->state = calloc(1, ops->state_bytes > 0 ? ops->state_bytes : 1);
    if (trained->state == NULL)
        return ls_error(LS_ENOMEM, "no memory for the model %s", ops->name);
    int status = ops->init != NULL ? ops->init(trained->state, setup) : LS_OK;
    if (status != LS_OK)
        return ls_error_at(status, "the model %s", ops->name);
    trained->is_init = true;
    status = list_parameters(trained);
    if (status == LS_OK)
        status = place_parameters(trained);
    if (status == LS_OK)
        status = add_blobs(trained, setup->blobs);
    if (status == LS_OK)
        status = add_optimisers(trained, how, setup->blobs);
    return status == LS_OK ? begin(trained, first, timeout_ms) : status;
}

void trained_fini(struct trained *trained)
{
    if (trained->is_init && trained->ops->fini != NULL)
        trained->ops->fini(trained->state);
    for (size_t i = 0; i < trained->n_optimisers; i++)
        free(trained->optimisers[i].slots);
    free(trained->optimisers);
    if (trained->group != NULL) {
        (void)ls_group_free(trained->group, trained->gradients);
        (void)ls_group_free(trained->group, trained->values);
    }
    free(trained->parameters);
    free(trained->state);
    *trained = (struct trained){.ops = NULL};
}

/* Used -------------------------------------------------------------------- */

int trained_exchange(struct trained *trained, bool *stop, int timeout_ms)
{
    const bool is_f32 = trained->type == LS_BLOB_F32;
    float *const flag_f32 = (float *)trained->gradients + trained->count;
    double *const flag_f64 = (double *)trained->gradients + trained->count;
    if (is_f32)
        *flag_f32 = *stop ? 1.0f : 0.0f;
    else
        *flag_f64 = *stop ? 1.0 : 0.0;
    const int status = ls_group_all_reduce(
        trained->group, trained->gradients, trained->count + 1,
        is_f32 ? LS_GROUP_F32 : LS_GROUP_F64, LS_GROUP_MEAN, timeout_ms);
    if (status == LS_OK)
        *stop = is_f32 ? *flag_f32 > 0.0f : *flag_f64 > 0.0;
    return status;
}

void trained_zero(struct trained *trained)
{
    memset(trained->gradients, 0, trained->count * size_of(trained->type));
}

int trained_step(struct trained *trained, size_t at)
{
    struct trained_optimiser *const one = &trained->optimisers[at];
    const size_t size = size_of(trained->type);
    size_t offset = 0;
    one->step++;
    for (size_t i = 0; i < one->n; i++) {
        const struct ls_parameter *const parameter =
            &trained->parameters[one->members[i]];
        void *slots[LS_SLOTS_MAX];
        for (size_t slot = 0; slot < one->ops->n_slots; slot++)
            slots[slot] =
                (char *)one->slots + (slot * one->count + offset) * size;
        const int status =
            one->ops->step(one->config, parameter, slots, one->step);
        if (status != LS_OK)
            return ls_error_at(status, "the optimiser %s, parameter %s",
                               one->name, parameter->name);
        offset += ls_parameter_count(parameter);
    }
    return LS_OK;
}

/* FNV-1a: Fowler, Noll, Vo; RFC 9923. */
uint64_t trained_hash(const struct trained *trained)
{
    const unsigned char *const bytes = trained->values;
    const size_t size = trained->count * size_of(trained->type);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}
