/* What an ls_security is, and what it says for a node. */
#include <inttypes.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "certificate.h"
#include "claim.h"
#include "credentials.h"
#include "keyed_hash.h"
#include "keyring.h"
#include "secret.h"
#include "word_list.h"

/* What nobody may see, in memory that is locked, guarded and wiped. Bytes only:
 * sodium_malloc() aligns to nothing more. */
struct security_secrets {
    uint8_t secret[LS_SECRET_BYTES];          /* PLAIN */
    struct certificate_secret key;            /* CURVE */
    uint8_t sign[crypto_sign_SECRETKEYBYTES]; /* CURVE */
};

/* All but the lists inside access and keyring, which have locks of their own,
 * is the same from creation on. */
struct ls_security {
    enum ls_security_mode mode;
    struct security_secrets *secrets; /* own; read-only; NULL in NONE */
    struct access *access;            /* own */
    struct keyring *keyring;          /* own; CURVE */
    bool gives_ids;    /* CURVE: only who has the enrolment key may come in */
    atomic_uint nodes; /* that use it */
};

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

/* A file of nothing but zeros is not a secret either. */
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

#define PRESENCE         "lockstep presence 2"
#define PLAIN_SIGN_BYTES 16
#define CURVE_HASH_BYTES 64

/* ---- who is it? --------------------------------------------------------- */

static int check_mode(const ls_security *security, enum ls_security_mode mode)
{
    static const char *const names[] = {[LS_SECURITY_NONE] = "none",
                                        [LS_SECURITY_PLAIN] = "plain",
                                        [LS_SECURITY_CURVE] = "curve"};
    if (security->mode == mode)
        return LS_OK;
    return ls_error(LS_ESTATE, "the security of this node is %s, not %s",
                    names[security->mode], names[mode]);
}

int credentials_password(const ls_security *security,
                         const struct credentials_claim *claim,
                         char user[CREDENTIALS_USER_MAX],
                         char password[CREDENTIALS_PASSWORD_MAX])
{
    const int status = check_mode(security, LS_SECURITY_PLAIN);
    return status == LS_OK
               ? claim_write(security->secrets->secret, claim, user, password)
               : status;
}

int credentials_check_plain(const ls_security *security, const void *user,
                            size_t user_size, const void *password,
                            size_t password_size, struct credentials_claim *out)
{
    const int status = check_mode(security, LS_SECURITY_PLAIN);
    return status == LS_OK ? claim_read(security->secrets->secret, user,
                                        user_size, password, password_size, out)
                           : status;
}

static int unknown_key(const ls_security *security, const uint8_t key[32])
{
    char text[CREDENTIALS_KEY_MAX];
    key_write(key, text);
    if (security->gives_ids)
        return ls_error(LS_ENOENT,
                        "its key %s is not that of %s/" ENROLMENT_FILE
                        ": only who has the secret one may ask for an id",
                        text, keyring_folder(security->keyring));
    return ls_error(LS_ENOENT,
                    "no certificate in %s has the key %s: if this peer "
                    "belongs to the job, copy its node-ID.cert there",
                    keyring_folder(security->keyring), text);
}

int credentials_check_curve(ls_security *security, const uint8_t key[32],
                            uint32_t *id, bool *enrolment)
{
    int status = check_mode(security, LS_SECURITY_CURVE);
    struct keyring_found found;
    if (status != LS_OK)
        return status;
    if (!keyring_find_key(security->keyring, key, &found))
        return unknown_key(security, key);
    *enrolment = found.certificate.enrolment;
    if (!*enrolment)
        *id = found.certificate.id;
    return LS_OK;
}

bool credentials_gives_ids(const ls_security *security)
{
    return security->gives_ids;
}

bool credentials_admits(const ls_security *security, const char *address)
{
    return access_admits(security->access, address);
}

/* ---- keys --------------------------------------------------------------- */

int credentials_own_keys(const ls_security *security,
                         char public_key[CREDENTIALS_KEY_MAX],
                         char secret_key[CREDENTIALS_KEY_MAX])
{
    const int status = check_mode(security, LS_SECURITY_CURVE);
    if (status != LS_OK)
        return status;
    memcpy(public_key, keyring_own(security->keyring)->public_key,
           CREDENTIALS_KEY_MAX);
    memcpy(secret_key, security->secrets->key.key, CREDENTIALS_KEY_MAX);
    return LS_OK;
}

int credentials_server_key(ls_security *security, uint32_t id,
                           char public_key[CREDENTIALS_KEY_MAX])
{
    const int status = check_mode(security, LS_SECURITY_CURVE);
    struct keyring_found found;
    if (status != LS_OK)
        return status;
    const bool asks =
        security->gives_ids && id != keyring_own(security->keyring)->id;
    if (asks ? !keyring_find_enrolment(security->keyring, &found)
             : !keyring_find_id(security->keyring, id, true, &found))
        return ls_error(LS_ENOENT,
                        "no certificate of node %" PRIu32 " in %s: copy "
                        "node-%" PRIu32 ".cert there from where it was made",
                        id, keyring_folder(security->keyring), id);
    memcpy(public_key, found.certificate.public_key, CREDENTIALS_KEY_MAX);
    return LS_OK;
}

/* ---- proofs ------------------------------------------------------------- */

size_t credentials_prove(const ls_security *security, const char *challenge,
                         const struct credentials_claim *claim,
                         uint8_t out[CREDENTIALS_PROOF_BYTES])
{
    if (security->mode != LS_SECURITY_PLAIN)
        return 0;
    claim_prove(security->secrets->secret, challenge, claim, out);
    return CREDENTIALS_PROOF_BYTES;
}

bool credentials_proved(const ls_security *security, const char *challenge,
                        const struct credentials_claim *claim,
                        const uint8_t *proof, size_t size)
{
    uint8_t wanted[CREDENTIALS_PROOF_BYTES] = {0};
    if (size != credentials_prove(security, challenge, claim, wanted))
        return false;
    return size == 0 || sodium_memcmp(proof, wanted, size) == 0;
}

/* ---- signatures --------------------------------------------------------- */

static void hash_presence(const uint8_t *key, const void *bytes, size_t size,
                          uint8_t *out, size_t out_size)
{
    struct keyed_hash hash;
    keyed_hash_begin(&hash, key, PRESENCE, out_size);
    keyed_hash_bytes(&hash, bytes, size);
    keyed_hash_end(&hash, out);
}

static void write_hex(char *out, const uint8_t *bytes, size_t size)
{
    (void)sodium_bin2hex(out, CREDENTIALS_SIGNATURE_MAX, bytes, size);
}

static void sign_plain(const ls_security *security, const void *bytes,
                       size_t size, char out[CREDENTIALS_SIGNATURE_MAX])
{
    uint8_t hash[PLAIN_SIGN_BYTES];
    hash_presence(security->secrets->secret, bytes, size, hash, sizeof hash);
    write_hex(out, hash, sizeof hash);
}

static void sign_curve(const ls_security *security, const void *bytes,
                       size_t size, char out[CREDENTIALS_SIGNATURE_MAX])
{
    uint8_t hash[CURVE_HASH_BYTES], signature[crypto_sign_BYTES];
    hash_presence(NULL, bytes, size, hash, sizeof hash);
    (void)crypto_sign_detached(signature, NULL, hash, sizeof hash,
                               security->secrets->sign);
    write_hex(out, signature, sizeof signature);
}

int credentials_sign(const ls_security *security, const void *bytes,
                     size_t size, char out[CREDENTIALS_SIGNATURE_MAX])
{
    out[0] = '\0';
    if (security->mode == LS_SECURITY_PLAIN)
        sign_plain(security, bytes, size, out);
    else if (security->mode == LS_SECURITY_CURVE)
        sign_curve(security, bytes, size, out);
    return LS_OK;
}

static bool signed_plain(const ls_security *security, const void *bytes,
                         size_t size, const char *signature)
{
    char wanted[CREDENTIALS_SIGNATURE_MAX];
    sign_plain(security, bytes, size, wanted);
    const size_t length = strlen(wanted);
    return strnlen(signature, CREDENTIALS_SIGNATURE_MAX) == length &&
           sodium_memcmp(signature, wanted, length) == 0;
}

/* One signature has one text: upper case is refused. */
static bool read_signature(const char *text, uint8_t out[crypto_sign_BYTES])
{
    char again[CREDENTIALS_SIGNATURE_MAX];
    size_t n = 0;
    const size_t length = strnlen(text, CREDENTIALS_SIGNATURE_MAX);
    if (length != 2 * crypto_sign_BYTES ||
        sodium_hex2bin(out, crypto_sign_BYTES, text, length, NULL, &n, NULL) !=
            0 ||
        n != crypto_sign_BYTES)
        return false;
    write_hex(again, out, crypto_sign_BYTES);
    return strcmp(text, again) == 0;
}

/* Who signed it comes in with that, so the folder is looked at as for a key. */
static bool signed_curve(ls_security *security, uint32_t id, const void *bytes,
                         size_t size, const char *signature)
{
    struct keyring_found found;
    uint8_t hash[CURVE_HASH_BYTES], given[crypto_sign_BYTES];
    if (!read_signature(signature, given) ||
        !keyring_find_id(security->keyring, id, true, &found) || !found.signs)
        return false;
    hash_presence(NULL, bytes, size, hash, sizeof hash);
    return crypto_sign_verify_detached(given, hash, sizeof hash,
                                       found.certificate.sign) == 0;
}

bool credentials_signed(ls_security *security, uint32_t id, const void *bytes,
                        size_t size, const char *signature)
{
    if (security->mode == LS_SECURITY_PLAIN)
        return signed_plain(security, bytes, size, signature);
    if (security->mode == LS_SECURITY_CURVE)
        return signed_curve(security, id, bytes, size, signature);
    return signature[0] == '\0';
}

/* ---- what may it be? ---------------------------------------------------- */

static bool all_in(const char *list, const char *words)
{
    const char *word;
    size_t size;
    while ((word = word_list_next(&words, &size)) != NULL)
        if (!word_list_has(list, word, size))
            return false;
    return true;
}

static bool gives(const struct certificate *certificate, const char *role,
                  const char *labels)
{
    return (!certificate->has_role || strcmp(role, certificate->role) == 0) &&
           (!certificate->has_labels || all_in(certificate->labels, labels));
}

bool credentials_suits(ls_security *security, uint32_t id, const char *role,
                       const char *labels)
{
    struct keyring_found found;
    if (security->mode != LS_SECURITY_CURVE || security->gives_ids)
        return true;
    return keyring_find_id(security->keyring, id, false, &found) &&
           gives(&found.certificate, role, labels);
}

int credentials_check_own(ls_security *security, uint32_t id, const char *role,
                          const char *labels)
{
    struct keyring_found found;
    const struct certificate *own = &found.certificate;
    if (security->mode != LS_SECURITY_CURVE || security->gives_ids ||
        !keyring_find_id(security->keyring, id, false, &found) ||
        gives(own, role, labels))
        return LS_OK;
    return ls_error(
        LS_EMISMATCH,
        "it has role \"%s\" and labels \"%s\", but its certificate in %s gives "
        "it role \"%s\" and labels \"%s\", so no other node would let it in: "
        "start it as its certificate says, or make its keys again",
        role, labels, keyring_folder(security->keyring),
        own->has_role ? own->role : "(any)",
        own->has_labels ? own->labels : "(any)");
}
