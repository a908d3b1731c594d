#include "store_table.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "store_parts.h"

#define N_BUCKETS 16384

struct store_entry {
    char name[SAFE_NAME_MAX + 1];
    struct store_bytes *bytes; /* own */
    uint64_t rank;
    bool keep;
    struct store_entry *next;
};

struct store_bytes *store_bytes_create(struct ls_body *body)
{
    struct store_bytes *bytes = malloc(sizeof *bytes);
    if (bytes == NULL) {
        ls_body_release(body);
        return NULL;
    }
    atomic_init(&bytes->users, 1);
    bytes->body = *body;
    bytes->data = body->data != NULL ? body->data : "";
    bytes->size = body->size;
    *body = (struct ls_body){.data = NULL};
    return bytes;
}

static struct store_bytes *share(struct store_bytes *bytes)
{
    (void)atomic_fetch_add(&bytes->users, 1);
    return bytes;
}

void store_bytes_release(struct store_bytes *bytes)
{
    if (bytes == NULL || atomic_fetch_sub(&bytes->users, 1) != 1)
        return;
    ls_body_release(&bytes->body);
    free(bytes);
}

static void release_bytes(void *data, void *hint)
{
    (void)data;
    store_bytes_release(hint);
}

struct store_blob store_bytes_blob(struct store_bytes *bytes, uint64_t at,
                                   size_t size)
{
    return (struct store_blob){.data = (char *)(uintptr_t)bytes->data + at,
                               .size = size,
                               .release = release_bytes,
                               .hint = share(bytes)};
}

int store_table_init(struct store_table *out)
{
    struct store_entry **buckets =
        calloc(N_BUCKETS, sizeof(struct store_entry *));
    if (buckets == NULL)
        return ls_error(LS_ENOMEM, "a store");
    *out = (struct store_table){.buckets = buckets};
    return LS_OK;
}

static void drop_at(struct store_table *table, struct store_entry **place)
{
    struct store_entry *entry = *place;
    *place = entry->next;
    table->n--;
    table->held -= entry->bytes->size;
    store_bytes_release(entry->bytes);
    free(entry);
}

void store_table_fini(struct store_table *table)
{
    for (size_t i = 0; table->buckets != NULL && i < N_BUCKETS; i++) {
        while (table->buckets[i] != NULL)
            drop_at(table, &table->buckets[i]);
    }
    free((void *)table->buckets);
    memset(table, 0, sizeof *table);
}

void store_table_drop_data(struct store_table *table)
{
    uint32_t home;
    for (size_t i = 0; i < N_BUCKETS; i++) {
        struct store_entry **at = &table->buckets[i];
        while (*at != NULL) {
            if (store_data_home((*at)->name, &home))
                drop_at(table, at);
            else
                at = &(*at)->next;
        }
    }
}

/* Where the pointer to it is, or would be. */
static struct store_entry **place_of(const struct store_table *table,
                                     const char *name)
{
    const uint64_t hash = XXH3_64bits(name, strlen(name));
    struct store_entry **at = &table->buckets[hash % N_BUCKETS];
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

int store_table_set(struct store_table *table, const char *name,
                    struct store_bytes *bytes, uint64_t rank, bool keep)
{
    struct store_entry **place = place_of(table, name);
    if (*place != NULL && (*place)->rank > rank)
        return store_outranked(name, rank, (*place)->rank);
    if (*place == NULL) {
        struct store_entry *entry = calloc(1, sizeof *entry);
        if (entry == NULL)
            return ls_error(LS_ENOMEM, "a store: %s", name);
        memcpy(entry->name, name, strlen(name) + 1);
        *place = entry;
        table->n++;
    } else {
        table->held -= (*place)->bytes->size;
        store_bytes_release((*place)->bytes);
    }
    (*place)->bytes = bytes;
    (*place)->rank = rank;
    (*place)->keep = keep;
    table->held += bytes->size;
    return LS_OK;
}

struct store_bytes *store_table_get(const struct store_table *table,
                                    const char *name)
{
    const struct store_entry *entry = *place_of(table, name);
    return entry != NULL ? entry->bytes : NULL;
}

bool store_table_keeps(const struct store_table *table, const char *name)
{
    const struct store_entry *entry = *place_of(table, name);
    return entry != NULL && entry->keep;
}

void store_table_drop(struct store_table *table, const char *name)
{
    struct store_entry **place = place_of(table, name);
    if (*place != NULL)
        drop_at(table, place);
}
