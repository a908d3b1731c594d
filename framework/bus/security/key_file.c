#include "key_file.h"

#include <string.h>
#include <sys/stat.h>

#include "guarded.h"

/* The key, and the line's end. */
#define FILE_BYTES (CREDENTIALS_KEY_MAX - 1 + 1)

/* What follows from the secret key. false: it is none. */
static bool derive(const struct certificate_secret *secret,
                   struct certificate *certificate)
{
    uint8_t key[KEY_BYTES], public_key[KEY_BYTES];
    uint8_t sign[crypto_sign_SECRETKEYBYTES];
    if (!key_read(secret->key, key))
        return false;
    (void)crypto_scalarmult_base(public_key, key);
    key_write(public_key, certificate->public_key);
    certificate_sign_keys(key, certificate->sign, sign);
    sodium_memzero(key, sizeof key);
    sodium_memzero(sign, sizeof sign);
    return true;
}

static int read_bytes(const char *path, char bytes[FILE_BYTES + 1],
                      size_t *size)
{
    struct guarded_folder folder;
    const char *name;
    int status = guarded_open_parent(&folder, path, &name);
    if (status == LS_OK)
        status =
            guarded_read(&folder, name, GUARD_ALL, bytes, FILE_BYTES, size);
    guarded_close(&folder);
    return status;
}

int key_file_read(const char *path, struct certificate *certificate,
                  struct certificate_secret *secret)
{
    char bytes[FILE_BYTES + 1];
    size_t size = 0;
    if (sodium_init() < 0)
        return ls_error(LS_EIO, "libsodium finds no source of random numbers");
    int status = read_bytes(path, bytes, &size);
    if (status != LS_OK)
        return status;
    const bool whole = size == FILE_BYTES && bytes[FILE_BYTES - 1] == '\n';
    bytes[FILE_BYTES - 1] = '\0';
    memcpy(secret->key, bytes, sizeof secret->key);
    sodium_memzero(bytes, sizeof bytes);
    if (whole && derive(secret, certificate))
        return LS_OK;
    sodium_memzero(secret, sizeof *secret);
    return ls_error(LS_ECONFIG,
                    "%s holds no key: remove it, and another one is made",
                    path);
}

int ls_key_read(const char *path, char public_key[LS_PUBLIC_KEY_MAX])
{
    struct certificate certificate = {0};
    struct certificate_secret secret;
    const int status = key_file_read(path, &certificate, &secret);
    sodium_memzero(&secret, sizeof secret);
    if (status == LS_OK)
        memcpy(public_key, certificate.public_key, LS_PUBLIC_KEY_MAX);
    return status;
}

static int write_key(const struct guarded_folder *folder, const char *name,
                     const struct certificate_secret *secret)
{
    char bytes[FILE_BYTES];
    memcpy(bytes, secret->key, FILE_BYTES - 1);
    bytes[FILE_BYTES - 1] = '\n';
    const int status =
        guarded_create(folder, name, S_IRUSR | S_IWUSR, bytes, sizeof bytes);
    sodium_memzero(bytes, sizeof bytes);
    return status;
}

int ls_key_create(const char *path, char public_key[LS_PUBLIC_KEY_MAX])
{
    struct guarded_folder folder;
    struct certificate certificate = {0};
    struct certificate_secret secret;
    const char *name;
    if (sodium_init() < 0)
        return ls_error(LS_EIO, "libsodium finds no source of random numbers");
    int status = guarded_open_parent(&folder, path, &name);
    if (status == LS_OK)
        status = certificate_make(&certificate, &secret);
    if (status == LS_OK) {
        status = write_key(&folder, name, &secret);
        sodium_memzero(&secret, sizeof secret);
    }
    guarded_close(&folder);
    if (status == LS_OK)
        memcpy(public_key, certificate.public_key, LS_PUBLIC_KEY_MAX);
    return status;
}
