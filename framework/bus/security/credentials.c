#include "credentials.h"

#include <inttypes.h>
#include <string.h>

#include "claim.h"
#include "keyed_hash.h"
#include "security_parts.h"

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

static bool signed_curve(ls_security *security, uint32_t id, const void *bytes,
                         size_t size, const char *signature)
{
    struct keyring_found found;
    uint8_t hash[CURVE_HASH_BYTES], given[crypto_sign_BYTES];
    if (!read_signature(signature, given) ||
        !keyring_find_id(security->keyring, id, false, &found) || !found.signs)
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

/* Whether a list of words has this one. */
static bool has_word(const char *list, const char *word, size_t size)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == size && memcmp(at, word, size) == 0)
            return true;
    }
    return false;
}

static bool all_in(const char *list, const char *words)
{
    while (*words != '\0') {
        const size_t size = strcspn(words, ",");
        if (size > 0 && !has_word(list, words, size))
            return false;
        words += size + (words[size] == ',');
    }
    return true;
}

bool credentials_suits(ls_security *security, uint32_t id, const char *role,
                       const char *labels)
{
    struct keyring_found found;
    if (security->mode != LS_SECURITY_CURVE || security->gives_ids)
        return true;
    if (!keyring_find_id(security->keyring, id, false, &found))
        return false;
    const struct certificate *certificate = &found.certificate;
    return (!certificate->has_role || strcmp(role, certificate->role) == 0) &&
           (!certificate->has_labels || all_in(certificate->labels, labels));
}
