/* keyed_hash.h - BLAKE2b over a purpose and some fields.
 *
 * The purpose and its NUL come first, so that a hash that was made for one
 * thing can never stand for another. Numbers are written with the high byte
 * first. The caller sees to it that the fields can be told apart: all but the
 * last are of fixed size, or come after their size.
 * Thread: pure functions. */
#ifndef LOCKSTEP_BUS_KEYED_HASH_H
#define LOCKSTEP_BUS_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#define KEYED_HASH_KEY_BYTES 32

struct keyed_hash {
    crypto_generichash_state state;
    size_t size;
};

/* key: KEYED_HASH_KEY_BYTES; NULL: without one. size: of the result, 16 to 64
 * bytes. */
void keyed_hash_begin(struct keyed_hash *hash, const uint8_t *key,
                      const char *purpose, size_t size);
void keyed_hash_u16(struct keyed_hash *hash, uint16_t value);
void keyed_hash_u32(struct keyed_hash *hash, uint32_t value);
void keyed_hash_u64(struct keyed_hash *hash, uint64_t value);
void keyed_hash_bytes(struct keyed_hash *hash, const void *bytes, size_t size);
/* out: as many bytes as were asked for. */
void keyed_hash_end(struct keyed_hash *hash, uint8_t *out);

#endif
