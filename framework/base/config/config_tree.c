/* The tree of a configuration, its memory and its hash. */
#include "config_parts.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BLOCK_SIZE 4096

struct config_block {
    struct config_block *next;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

static struct config_block *add_block(ls_config *config, size_t size)
{
    struct config_block *const block = calloc(1, sizeof *block + size);
    if (block == NULL) {
        config->no_memory = true;
        return NULL;
    }
    block->size = size;
    block->next = config->blocks;
    config->blocks = block;
    return block;
}

void *ls_config_allocate(ls_config *config, size_t size)
{
    const size_t unit = alignof(max_align_t);
    const size_t rounded = (size + unit - 1) / unit * unit;
    struct config_block *block = config->blocks;
    if (block == NULL || block->size - block->used < rounded)
        block = add_block(config, rounded > BLOCK_SIZE ? rounded : BLOCK_SIZE);
    if (block == NULL)
        return NULL;
    void *const memory = block->bytes + block->used;
    block->used += rounded;
    return memory;
}

const char *ls_config_copy(ls_config *config, const char *text, size_t size)
{
    char *const copy = ls_config_allocate(config, size + 1);
    if (copy != NULL && size > 0)
        memcpy(copy, text, size);
    return copy;
}

void *ls_config_grow(ls_config *config, void *array, size_t n, size_t *capacity,
                     size_t element_size)
{
    if (n < *capacity)
        return array;
    const size_t wanted = *capacity == 0 ? 4 : 2 * *capacity;
    void *const grown = ls_config_allocate(config, wanted * element_size);
    if (grown == NULL)
        return NULL;
    if (n > 0)
        memcpy(grown, array, n * element_size);
    *capacity = wanted;
    return grown;
}

void ls_config_free_blocks(ls_config *config)
{
    while (config->blocks != NULL) {
        struct config_block *const block = config->blocks;
        config->blocks = block->next;
        free(block);
    }
}

int ls_config_no_memory(void)
{
    return ls_error(LS_ENOMEM, "no memory for the configuration");
}

int ls_config_new_node(ls_config *config, const struct config_place *place,
                       enum config_kind kind, struct config_node **out)
{
    if (config->n_values >= LS_CONFIG_VALUES_MAX)
        return ls_config_error(LS_ECONFIG, place,
                               "more than %d values, with what aliases repeat",
                               LS_CONFIG_VALUES_MAX);
    struct config_node *const node = ls_config_allocate(config, sizeof *node);
    if (node == NULL)
        return ls_config_no_memory();
    config->n_values++;
    node->kind = kind;
    node->place = *place;
    *out = node;
    return LS_OK;
}

int ls_config_copy_node(ls_config *config, const struct config_node *node,
                        const struct config_place *alias, size_t depth,
                        struct config_node **out)
{
    const bool nested =
        node->kind == CONFIG_LIST || node->kind == CONFIG_MAPPING;
    if (nested && depth >= LS_CONFIG_DEPTH_MAX)
        return ls_config_error(LS_ECONFIG, alias, "nested over %d levels deep",
                               LS_CONFIG_DEPTH_MAX);
    struct config_node *copy = NULL;
    int status = ls_config_new_node(config, alias, node->kind, &copy);
    if (copy == NULL)
        return status;
    copy->place = node->place;
    copy->text = node->text;
    copy->as = node->as;
    for (size_t i = 0; i < node->n_entries && status == LS_OK; i++) {
        const struct config_entry *const entry = &node->entries[i];
        struct config_node *value = NULL;
        status =
            ls_config_copy_node(config, entry->value, alias, depth + 1, &value);
        if (status == LS_OK)
            status =
                ls_config_add(config, copy, entry->key, &entry->place, value);
    }
    if (status == LS_OK)
        *out = copy;
    return status;
}

static uint64_t hash_key(const char *key)
{
    return XXH3_64bits(key, strlen(key));
}

/* The hash first: a file may have thousands of keys in one mapping, and each is
 * looked for when it is added. */
struct config_entry *ls_config_find(const struct config_node *mapping,
                                    const char *key)
{
    const uint64_t hash = hash_key(key);
    for (size_t i = 0; i < mapping->n_entries; i++) {
        struct config_entry *const entry = &mapping->entries[i];
        if (entry->key_hash == hash && strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

int ls_config_add(ls_config *config, struct config_node *parent,
                  const char *key, const struct config_place *place,
                  struct config_node *value)
{
    struct config_entry *const entries =
        ls_config_grow(config, parent->entries, parent->n_entries,
                       &parent->capacity, sizeof *entries);
    if (entries == NULL)
        return ls_config_no_memory();
    parent->entries = entries;
    entries[parent->n_entries++] =
        (struct config_entry){.key = key,
                              .key_hash = key != NULL ? hash_key(key) : 0,
                              .place = *place,
                              .value = value};
    return LS_OK;
}

static uint64_t hash_scalar(const struct config_node *node)
{
    const uint64_t seed = node->kind;
    switch (node->kind) {
    case CONFIG_BOOL:
        return XXH3_64bits_withSeed(node->as.truth ? "1" : "0", 1, seed);
    case CONFIG_INTEGER:
        return XXH3_64bits_withSeed(&node->as.integer, sizeof(int64_t), seed);
    case CONFIG_NUMBER: {
        const double number = node->as.number + 0.0; /* -0.0 is 0.0 */
        return XXH3_64bits_withSeed(&number, sizeof number, seed);
    }
    case CONFIG_TEXT:
        return XXH3_64bits_withSeed(node->text, strlen(node->text), seed);
    default:
        return XXH3_64bits_withSeed("", 0, seed);
    }
}

/* A mapping's pairs are hashed one by one and summed up, which makes their
 * order no matter; a list's items in a chain. */
uint64_t ls_config_hash_node(const struct config_node *node)
{
    if (node->kind != CONFIG_LIST && node->kind != CONFIG_MAPPING)
        return hash_scalar(node);
    uint64_t total = 0;
    for (size_t i = 0; i < node->n_entries; i++) {
        const struct config_entry *const entry = &node->entries[i];
        const uint64_t value = ls_config_hash_node(entry->value);
        const bool mapping = node->kind == CONFIG_MAPPING;
        const uint64_t parts[2] = {mapping ? entry->key_hash : total, value};
        const uint64_t both = XXH3_64bits(parts, sizeof parts);
        total = mapping ? total + both : both;
    }
    const uint64_t whole[2] = {node->n_entries, total};
    return XXH3_64bits_withSeed(whole, sizeof whole, node->kind);
}
