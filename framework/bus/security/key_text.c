#include "key_text.h"

#include <string.h>

#include <czmq.h>
#include <sodium.h>

/* A certificate holds both keys in both forms, and CZMQ frees it as it is. */
static void wipe(zcert_t **cert)
{
    if (*cert == NULL)
        return;
    sodium_memzero((void *)(uintptr_t)zcert_public_key(*cert), KEY_BYTES);
    sodium_memzero((void *)(uintptr_t)zcert_secret_key(*cert), KEY_BYTES);
    sodium_memzero((void *)(uintptr_t)zcert_public_txt(*cert),
                   LS_PUBLIC_KEY_MAX - 1);
    sodium_memzero((void *)(uintptr_t)zcert_secret_txt(*cert),
                   LS_PUBLIC_KEY_MAX - 1);
    zcert_destroy(cert);
}

void key_write(const uint8_t key[KEY_BYTES], char out[LS_PUBLIC_KEY_MAX])
{
    static const uint8_t none[KEY_BYTES];
    zcert_t *cert = zcert_new_from(key, none);
    memcpy(out, zcert_public_txt(cert), LS_PUBLIC_KEY_MAX);
    wipe(&cert);
}

/* Of a text that is not a key, CZMQ's stable interface reads a part and does
 * not say so. */
bool key_read(const char *text, uint8_t out[KEY_BYTES])
{
    static const char digits[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        ".-:+=^!/*?&<>()[]{}@%$#";
    uint8_t key[KEY_BYTES];
    if (strnlen(text, LS_PUBLIC_KEY_MAX) != LS_PUBLIC_KEY_MAX - 1)
        return false;
    for (size_t group = 0; group < KEY_BYTES / 4; group++) {
        uint64_t value = 0;
        for (size_t i = 0; i < 5; i++) {
            const char *digit = strchr(digits, text[5 * group + i]);
            if (digit == NULL)
                return false;
            value = 85 * value + (uint64_t)(digit - digits);
        }
        if (value > UINT32_MAX)
            return false;
        for (size_t i = 0; i < 4; i++)
            key[4 * group + i] = (uint8_t)(value >> (24 - 8 * i));
    }
    memcpy(out, key, sizeof key);
    sodium_memzero(key, sizeof key);
    return true;
}

bool key_make(char public_key[LS_PUBLIC_KEY_MAX],
              char secret_key[LS_PUBLIC_KEY_MAX])
{
    zcert_t *cert = zcert_new();
    if (cert == NULL)
        return false;
    memcpy(public_key, zcert_public_txt(cert), LS_PUBLIC_KEY_MAX);
    memcpy(secret_key, zcert_secret_txt(cert), LS_PUBLIC_KEY_MAX);
    wipe(&cert);
    return strnlen(public_key, LS_PUBLIC_KEY_MAX) == LS_PUBLIC_KEY_MAX - 1;
}
