/* A table of things by their hash, which grows as they come. */
#include <stdlib.h>

#include "network_parts.h"

#define FIRST_BUCKETS 64

static struct hashed **bucket(const struct table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->n_buckets - 1)];
}

static int grow(struct table *table)
{
    struct table grown = {.n = table->n};
    grown.n_buckets =
        table->n_buckets == 0 ? FIRST_BUCKETS : 2 * table->n_buckets;
    grown.buckets = calloc(grown.n_buckets, sizeof(struct hashed *));
    if (grown.buckets == NULL)
        return ls_error(LS_ENOMEM, "no memory for a network");
    for (size_t i = 0; i < table->n_buckets; i++) {
        struct hashed *what = table->buckets[i];
        while (what != NULL) {
            struct hashed *next = what->next;
            struct hashed **at = bucket(&grown, what->hash);
            what->next = *at;
            *at = what;
            what = next;
        }
    }
    free(table->buckets);
    *table = grown;
    return LS_OK;
}

int table_add(struct table *table, struct hashed *what)
{
    if (table->n == table->n_buckets && grow(table) != LS_OK)
        return LS_ENOMEM;
    struct hashed **at = bucket(table, what->hash);
    what->next = *at;
    *at = what;
    table->n++;
    return LS_OK;
}

void table_remove(struct table *table, struct hashed *what)
{
    struct hashed **at = bucket(table, what->hash);
    while (*at != what)
        at = &(*at)->next;
    *at = what->next;
    table->n--;
}

struct hashed *table_first(const struct table *table, uint64_t hash)
{
    return table->n_buckets == 0 ? NULL : *bucket(table, hash);
}

void table_clear(struct table *table, void (*fn)(struct hashed *what))
{
    for (size_t i = 0; i < table->n_buckets; i++)
        while (table->buckets[i] != NULL) {
            struct hashed *what = table->buckets[i];
            table->buckets[i] = what->next;
            fn(what);
        }
    free(table->buckets);
    *table = (struct table){0};
}
