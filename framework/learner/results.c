#include "results.h"

#include <stdlib.h>

struct results {
    ls_queue *queue; /* own; of struct result_place * */
    ls_mutex mutex;
    struct result_place *free; /* own; under mutex */
};

void results_give_back(struct result_place *place)
{
    struct results *const results = place->results;
    ls_mutex_lock(&results->mutex);
    place->next = results->free;
    results->free = place;
    ls_mutex_unlock(&results->mutex);
}

static void drop(void *item)
{
    results_give_back(*(struct result_place **)item);
}

static int add_place(struct results *results, struct result_place **out)
{
    struct result_place *const place = calloc(1, sizeof *place);
    if (place == NULL)
        return ls_error(LS_ENOMEM, "no memory for a result");
    const int status = ls_learner_info_create(&place->result.info);
    if (status != LS_OK) {
        free(place);
        return status;
    }
    place->results = results;
    *out = place;
    return LS_OK;
}

/* One is being made, one is being read, and with when_full drop_oldest one is
 * being dropped, while the queue is full. */
static int add_places(struct results *results, size_t capacity)
{
    for (size_t i = 0; i < capacity + 3; i++) {
        struct result_place *place = NULL;
        const int status = add_place(results, &place);
        if (status != LS_OK)
            return status;
        results_give_back(place);
    }
    return LS_OK;
}

int results_create(struct results **out, ls_runtime *runtime, size_t capacity,
                   enum ls_when_full when_full)
{
    const struct ls_queue_options options = {.capacity = capacity,
                                             .item_size =
                                                 sizeof(struct result_place *),
                                             .when_full = when_full,
                                             .drop = drop};
    struct results *results = calloc(1, sizeof *results);
    if (results == NULL)
        return ls_error(LS_ENOMEM, "no memory for results");
    int status = ls_mutex_init(&results->mutex, runtime);
    if (status == LS_OK)
        status = ls_queue_create(&results->queue, runtime, &options);
    if (status == LS_OK)
        status = add_places(results, capacity);
    if (status != LS_OK) {
        results_destroy(&results);
        return status;
    }
    *out = results;
    return LS_OK;
}

int results_take(struct results *results, struct result_place **out)
{
    ls_mutex_lock(&results->mutex);
    struct result_place *const place = results->free;
    if (place != NULL)
        results->free = place->next;
    ls_mutex_unlock(&results->mutex);
    if (place == NULL)
        return add_place(results, out);
    ls_learner_info_clear(place->result.info);
    *out = place;
    return LS_OK;
}

void results_put(struct results *results, struct result_place *place)
{
    if (ls_queue_put(results->queue, &place, LS_FOREVER) != LS_OK)
        results_give_back(place);
}

int results_get(struct results *results, struct ls_learner_result *out,
                int64_t deadline)
{
    struct result_place *place;
    const int status = ls_queue_get(results->queue, &place, deadline);
    if (status != LS_OK)
        return status;
    ls_learner_info *const wanted = out->info;
    if (wanted != NULL)
        ls_learner_info_swap(wanted, place->result.info);
    *out = place->result;
    out->info = wanted;
    results_give_back(place);
    return LS_OK;
}

void results_close(struct results *results)
{
    ls_queue_close(results->queue);
}

void results_stats(struct results *results, struct ls_queue_stats *out)
{
    ls_queue_stats(results->queue, out);
}

void results_destroy(struct results **results)
{
    if (results == NULL || *results == NULL)
        return;
    struct results *const old = *results;
    *results = NULL;
    ls_queue_destroy(&old->queue); /* drops what is in it */
    while (old->free != NULL) {
        struct result_place *const place = old->free;
        old->free = place->next;
        ls_learner_info_destroy(&place->result.info);
        free(place);
    }
    ls_mutex_fini(&old->mutex);
    free(old);
}
