#include "security_parts.h"

#include <stdlib.h>
#include <string.h>

#include "secret.h"

/* ---- create and destroy ------------------------------------------------- */

/* secrets: whether it has some, to be filled and then closed. */
static int create(ls_security **out, enum ls_security_mode mode, bool secrets)
{
    if (sodium_init() < 0)
        return ls_error(LS_EIO, "libsodium finds no source of random numbers");
    ls_security *security = calloc(1, sizeof *security);
    if (security == NULL)
        return ls_error(LS_ENOMEM, "no memory for a security");
    security->mode = mode;
    int status = access_create(&security->access);
    if (status == LS_OK && secrets) {
        security->secrets = sodium_malloc(sizeof *security->secrets);
        if (security->secrets == NULL)
            status = ls_error(LS_ENOMEM, "no memory for a secret");
    }
    if (status != LS_OK)
        ls_security_destroy(&security);
    else
        *out = security;
    return status;
}

/* From here on a write to the secrets is a crash. */
static void close_secrets(ls_security *security)
{
    (void)sodium_mprotect_readonly(security->secrets);
}

int ls_security_none(ls_security **out)
{
    *out = NULL;
    return create(out, LS_SECURITY_NONE, false);
}

int ls_security_plain(ls_security **out, const uint8_t secret[LS_SECRET_BYTES])
{
    *out = NULL;
    if (secret == NULL || sodium_is_zero(secret, LS_SECRET_BYTES))
        return ls_error(LS_EINVAL,
                        "a secret must be %d random bytes, and "
                        "these are none",
                        LS_SECRET_BYTES);
    ls_security *security = NULL;
    const int status = create(&security, LS_SECURITY_PLAIN, true);
    if (status != LS_OK)
        return status;
    memcpy(security->secrets->secret, secret, LS_SECRET_BYTES);
    close_secrets(security);
    *out = security;
    return LS_OK;
}

/* A file of nothing but zeros is no secret either. */
static int plain_of(ls_security **out, const uint8_t *secret, const char *where)
{
    const int status = ls_security_plain(out, secret);
    return status == LS_EINVAL ? ls_error_at(LS_ECONFIG, "%s", where) : status;
}

int ls_security_file(ls_security **out, const char *path)
{
    *out = NULL;
    uint8_t secret[LS_SECRET_BYTES];
    int status = secret_read(path, secret);
    if (status == LS_OK)
        status = plain_of(out, secret, path);
    sodium_memzero(secret, sizeof secret);
    return status;
}

int ls_security_job(ls_security **out, const char *job)
{
    *out = NULL;
    if (sodium_init() < 0)
        return ls_error(LS_EIO, "libsodium finds no source of random numbers");
    uint8_t secret[LS_SECRET_BYTES];
    int status = secret_of_job(job, secret);
    if (status == LS_OK)
        status = plain_of(out, secret, job);
    sodium_memzero(secret, sizeof secret);
    return status;
}

static void derive_sign(struct security_secrets *secrets)
{
    uint8_t key[KEY_BYTES], public_sign[crypto_sign_PUBLICKEYBYTES];
    (void)key_read(secrets->key.key, key);
    certificate_sign_keys(key, public_sign, secrets->sign);
    sodium_memzero(key, sizeof key);
}

static int create_curve(ls_security **out, const char *folder,
                        const struct keyring_owner *owner)
{
    ls_security *security = NULL;
    int status = create(&security, LS_SECURITY_CURVE, true);
    if (status == LS_OK)
        status = keyring_create(&security->keyring, ls_runtime_current(),
                                folder, owner, &security->secrets->key);
    if (status != LS_OK) {
        ls_security_destroy(&security);
        return status;
    }
    derive_sign(security->secrets);
    close_secrets(security);
    *out = security;
    return LS_OK;
}

int ls_security_curve(ls_security **out, const char *folder, uint32_t id)
{
    *out = NULL;
    return create_curve(out, folder, &(struct keyring_owner){.id = id});
}

int ls_security_giving(ls_security **out, const char *folder, uint32_t id)
{
    *out = NULL;
    ls_security *security = NULL;
    struct keyring_found found;
    int status =
        create_curve(&security, folder, &(struct keyring_owner){.id = id});
    if (status == LS_OK && !keyring_find_enrolment(security->keyring, &found))
        status = ls_error(LS_ENOENT,
                          "%s has no " ENROLMENT_FILE ", without which nobody "
                          "can ask for an id: make it by \"lockstep keygen %s "
                          "--enrolment\"",
                          folder, folder);
    if (status != LS_OK) {
        ls_security_destroy(&security);
        return status;
    }
    security->gives_ids = true;
    *out = security;
    return LS_OK;
}

int ls_security_asking(ls_security **out, const char *folder)
{
    *out = NULL;
    return create_curve(out, folder,
                        &(struct keyring_owner){.enrolment = true});
}

int ls_security_leased(ls_security **out, const char *folder, uint32_t id,
                       const char *path)
{
    *out = NULL;
    if (path == NULL || path[0] == '\0')
        return ls_error(LS_EINVAL, "no file of a key is named");
    return create_curve(out, folder,
                        &(struct keyring_owner){.id = id, .path = path});
}

void credentials_hold(ls_security *security, bool on)
{
    atomic_fetch_add(&security->nodes, on ? 1u : 0u - 1u);
}

int ls_security_destroy(ls_security **security)
{
    if (security == NULL || *security == NULL)
        return LS_OK;
    if (atomic_load(&(*security)->nodes) != 0)
        return ls_error(LS_ESTATE, "the security cannot be destroyed before "
                                   "the nodes that use it");
    sodium_free((*security)->secrets); /* wipes */
    access_destroy(&(*security)->access);
    keyring_destroy(&(*security)->keyring);
    free(*security);
    *security = NULL;
    return LS_OK;
}

enum ls_security_mode ls_security_mode(const ls_security *security)
{
    return security->mode;
}

/* ---- addresses and keys ------------------------------------------------- */

int ls_security_allow(ls_security *security, const char *address)
{
    return access_allow(security->access, address);
}

int ls_security_deny(ls_security *security, const char *address)
{
    return access_deny(security->access, address);
}

static int check_curve(const ls_security *security)
{
    if (security->mode == LS_SECURITY_CURVE)
        return LS_OK;
    return ls_error(LS_ESTATE, "there are keys in curve only, and this is %s",
                    security->mode == LS_SECURITY_PLAIN ? "plain" : "none");
}

int ls_security_trust(ls_security *security, uint32_t id,
                      const char *public_key)
{
    const int status = check_curve(security);
    return status == LS_OK ? keyring_trust(security->keyring, id, public_key)
                           : status;
}

int ls_security_distrust(ls_security *security, uint32_t id)
{
    const int status = check_curve(security);
    if (status == LS_OK)
        keyring_distrust(security->keyring, id);
    return status;
}

int ls_security_public_key(const ls_security *security,
                           char out[LS_PUBLIC_KEY_MAX])
{
    const int status = check_curve(security);
    if (status == LS_OK)
        memcpy(out, keyring_own(security->keyring)->public_key,
               LS_PUBLIC_KEY_MAX);
    return status;
}
