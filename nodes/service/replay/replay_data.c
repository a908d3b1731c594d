#include "replay_data.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

int replay_data_init(struct replay_data *out, size_t n_expected)
{
    size_t n = 16;
    while (n < n_expected)
        n *= 2;
    struct replay_datum **buckets = calloc(n, sizeof(struct replay_datum *));
    if (buckets == NULL)
        return ls_error(LS_ENOMEM, "a replay buffer of %zu items", n_expected);
    *out = (struct replay_data){.buckets = buckets, .n_buckets = n};
    out->last_dropped = &out->first_dropped;
    return LS_OK;
}

void replay_data_fini(struct replay_data *data)
{
    for (size_t i = 0; i < data->n_buckets; i++) {
        struct replay_datum *next;
        for (struct replay_datum *d = data->buckets[i]; d != NULL; d = next) {
            next = d->next_in_bucket;
            free(d);
        }
    }
    free((void *)data->buckets);
    memset(data, 0, sizeof *data);
}

/* Where the pointer to it is, or would be. */
static struct replay_datum **place_of(const struct replay_data *data,
                                      const char *id)
{
    const uint64_t hash = XXH3_64bits(id, strlen(id));
    struct replay_datum **at = &data->buckets[hash & (data->n_buckets - 1)];
    while (*at != NULL && strcmp((*at)->id, id) != 0)
        at = &(*at)->next_in_bucket;
    return at;
}

static bool is_used(const struct replay_datum *datum)
{
    return datum->items > 0 || datum->lent > 0;
}

int replay_data_use(struct replay_data *data, const char *id, uint64_t size,
                    struct replay_datum **out)
{
    struct replay_datum **place = place_of(data, id);
    if (*place == NULL) {
        struct replay_datum *datum = calloc(1, sizeof *datum);
        if (datum == NULL)
            return ls_error(LS_ENOMEM, "data %s", id);
        memcpy(datum->id, id, strlen(id) + 1);
        *place = datum;
    }
    if (!is_used(*place)) {
        (*place)->size = size;
        data->bytes += size;
    }
    (*place)->items++;
    *out = *place;
    return LS_OK;
}

/* It has lost a user. */
static void drop_if_unused(struct replay_data *data, struct replay_datum *datum)
{
    if (is_used(datum))
        return;
    data->bytes -= datum->size;
    if (datum->dropped)
        return;
    datum->dropped = true;
    datum->next_dropped = NULL;
    *data->last_dropped = datum;
    data->last_dropped = &datum->next_dropped;
}

void replay_data_unuse(struct replay_data *data, struct replay_datum *datum)
{
    datum->items--;
    drop_if_unused(data, datum);
}

void replay_data_lend(struct replay_data *data, struct replay_datum *datum)
{
    datum->lent++;
    data->lent++;
}

int replay_data_release(struct replay_data *data, const char *id)
{
    struct replay_datum *datum = *place_of(data, id);
    if (datum == NULL || datum->lent == 0)
        return ls_error(LS_ENOENT, "data %.64s is not lent", id);
    datum->lent--;
    data->lent--;
    drop_if_unused(data, datum);
    return LS_OK;
}

bool replay_data_uses(const struct replay_data *data, const char *id)
{
    const struct replay_datum *datum = *place_of(data, id);
    return datum != NULL && is_used(datum);
}

void replay_data_release_all(struct replay_data *data)
{
    for (size_t i = 0; i < data->n_buckets; i++) {
        for (struct replay_datum *datum = data->buckets[i]; datum != NULL;
             datum = datum->next_in_bucket) {
            if (!is_used(datum))
                continue;
            datum->items = datum->lent = 0;
            drop_if_unused(data, datum);
        }
    }
    data->lent = 0;
}

bool replay_data_take(struct replay_data *data, char id[SAFE_NAME_MAX + 1])
{
    while (data->first_dropped != NULL) {
        struct replay_datum *datum = data->first_dropped;
        data->first_dropped = datum->next_dropped;
        if (data->first_dropped == NULL)
            data->last_dropped = &data->first_dropped;
        datum->dropped = false;
        if (is_used(datum))
            continue;
        memcpy(id, datum->id, sizeof datum->id);
        struct replay_datum **place = place_of(data, id);
        *place = datum->next_in_bucket;
        free(datum);
        return true;
    }
    return false;
}
