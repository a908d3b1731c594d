#include "keyed_hash.h"

#include <assert.h>
#include <string.h>

void keyed_hash_begin(struct keyed_hash *hash, const uint8_t *key,
                      const char *purpose, size_t size)
{
    assert(size >= crypto_generichash_BYTES_MIN &&
           size <= crypto_generichash_BYTES_MAX);
    hash->size = size;
    (void)crypto_generichash_init(&hash->state, key,
                                  key != NULL ? KEYED_HASH_KEY_BYTES : 0, size);
    keyed_hash_bytes(hash, purpose, strlen(purpose) + 1);
}

static void write_number(struct keyed_hash *hash, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    keyed_hash_bytes(hash, bytes, size);
}

void keyed_hash_u16(struct keyed_hash *hash, uint16_t value)
{
    write_number(hash, value, 2);
}

void keyed_hash_u32(struct keyed_hash *hash, uint32_t value)
{
    write_number(hash, value, 4);
}

void keyed_hash_u64(struct keyed_hash *hash, uint64_t value)
{
    write_number(hash, value, 8);
}

void keyed_hash_bytes(struct keyed_hash *hash, const void *bytes, size_t size)
{
    (void)crypto_generichash_update(&hash->state, bytes, size);
}

void keyed_hash_end(struct keyed_hash *hash, uint8_t *out)
{
    (void)crypto_generichash_final(&hash->state, out, hash->size);
    sodium_memzero(hash, sizeof *hash);
}
