#include "claim.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "keyed_hash.h"

#define PASSWORD_VERSION "2 "
#define HASH_BYTES       32
#define HASH_DIGITS      (2 * HASH_BYTES)
#define DECIMAL          "0123456789"
#define HEXADECIMAL      "0123456789abcdef"

static void hash_password(const uint8_t *secret,
                          const struct credentials_claim *claim,
                          uint8_t out[HASH_BYTES])
{
    struct keyed_hash hash;
    keyed_hash_begin(&hash, secret, "lockstep password 2", HASH_BYTES);
    keyed_hash_u32(&hash, claim->id);
    keyed_hash_u64(&hash, claim->incarnation);
    keyed_hash_bytes(&hash, claim->address, strlen(claim->address));
    keyed_hash_end(&hash, out);
}

void claim_prove(const uint8_t secret[LS_SECRET_BYTES], const char *challenge,
                 const struct credentials_claim *claim,
                 uint8_t out[CREDENTIALS_PROOF_BYTES])
{
    const size_t size = strnlen(claim->address, sizeof claim->address);
    struct keyed_hash hash;
    keyed_hash_begin(&hash, secret, "lockstep proof 2",
                     CREDENTIALS_PROOF_BYTES);
    keyed_hash_u32(&hash, claim->id);
    keyed_hash_u64(&hash, claim->incarnation);
    keyed_hash_u16(&hash, (uint16_t)size);
    keyed_hash_bytes(&hash, claim->address, size);
    keyed_hash_bytes(&hash, challenge, strlen(challenge));
    keyed_hash_end(&hash, out);
}

/* Visible ASCII: an address goes into logs and messages. */
static bool is_address(const char *text, size_t size)
{
    if (size == 0 || size > LS_ENDPOINT_MAX)
        return false;
    for (size_t i = 0; i < size; i++)
        if (text[i] < '!' || text[i] > '~')
            return false;
    return true;
}

int claim_write(const uint8_t secret[LS_SECRET_BYTES],
                const struct credentials_claim *claim,
                char user[CREDENTIALS_USER_MAX],
                char password[CREDENTIALS_PASSWORD_MAX])
{
    const size_t size = strnlen(claim->address, sizeof claim->address);
    if (!is_address(claim->address, size))
        return ls_error(LS_EINVAL,
                        "an address must be 1 to %d bytes of "
                        "visible ASCII",
                        LS_ENDPOINT_MAX);
    uint8_t hash[HASH_BYTES];
    char digits[HASH_DIGITS + 1];
    hash_password(secret, claim, hash);
    (void)sodium_bin2hex(digits, sizeof digits, hash, sizeof hash);

    char text[CREDENTIALS_PASSWORD_MAX];
    const int n =
        snprintf(text, sizeof text, PASSWORD_VERSION "%" PRIx64 " %s %s",
                 claim->incarnation, digits, claim->address);
    if ((size_t)n >= sizeof text)
        return ls_error(LS_EINVAL,
                        "%s: the address is %zu bytes too long for a password; "
                        "give the node a shorter one",
                        claim->address, (size_t)n - sizeof text + 1);
    memcpy(password, text, (size_t)n + 1);
    (void)snprintf(user, CREDENTIALS_USER_MAX, "%" PRIu32, claim->id);
    return LS_OK;
}

/* ---- a stranger's ------------------------------------------------------- */

static int malformed(const char *what)
{
    return ls_error(LS_EPROTO, "malformed credentials: %s", what);
}

/* Copy bytes that must be text. */
static bool copy_text(char *out, size_t room, const void *bytes, size_t size)
{
    if (size >= room || memchr(bytes, '\0', size) != NULL)
        return false;
    memcpy(out, bytes, size);
    out[size] = '\0';
    return true;
}

static bool read_id(const char *user, uint32_t *id)
{
    const size_t size = strlen(user);
    if (size == 0 || size > 10 || strspn(user, DECIMAL) != size)
        return false;
    const unsigned long long value = strtoull(user, NULL, 10);
    *id = (uint32_t)value;
    return value <= UINT32_MAX;
}

/* Find incarnation and address. Whether all of it is as it should be is seen
 * when it is written again. */
static int find_parts(const char *password, struct credentials_claim *out)
{
    if (strncmp(password, PASSWORD_VERSION, strlen(PASSWORD_VERSION)) != 0)
        return malformed("a password of an unknown version");
    const char *at = password + strlen(PASSWORD_VERSION);
    const size_t digits = strspn(at, HEXADECIMAL);
    if (digits == 0 || digits > 16 || at[digits] != ' ')
        return malformed("no incarnation in the password");
    out->incarnation = strtoull(at, NULL, 16);
    at += digits + 1;
    if (strspn(at, HEXADECIMAL) != HASH_DIGITS || at[HASH_DIGITS] != ' ')
        return malformed("no hash in the password");
    at += HASH_DIGITS + 1;
    const size_t size = strlen(at);
    if (!is_address(at, size))
        return malformed("no address in the password");
    memcpy(out->address, at, size + 1);
    return LS_OK;
}

int claim_read(const uint8_t secret[LS_SECRET_BYTES], const void *user,
               size_t user_size, const void *password, size_t password_size,
               struct credentials_claim *out)
{
    char name[CREDENTIALS_USER_MAX], wanted_name[CREDENTIALS_USER_MAX];
    char given[CREDENTIALS_PASSWORD_MAX] = {0};
    char wanted[CREDENTIALS_PASSWORD_MAX] = {0};
    struct credentials_claim claim;
    if (user == NULL || !copy_text(name, sizeof name, user, user_size) ||
        !read_id(name, &claim.id))
        return malformed("the user name is not an id");
    if (password == NULL ||
        !copy_text(given, sizeof given, password, password_size))
        return malformed("the password is not a text of up to 255 bytes");
    const int status = find_parts(given, &claim);
    if (status != LS_OK)
        return status;
    if (claim_write(secret, &claim, wanted_name, wanted) != LS_OK)
        return malformed("the address is too long");
    /* Whole buffers, so that the time tells nothing of where they differ; what
     * follows the texts are zeros. */
    const bool same = strcmp(name, wanted_name) == 0 &&
                      sodium_memcmp(given, wanted, sizeof given) == 0;
    sodium_memzero(wanted, sizeof wanted);
    if (!same)
        return ls_error(LS_EMISMATCH,
                        "node %" PRIu32 " does not know the secret of this "
                        "node",
                        claim.id);
    *out = claim;
    return LS_OK;
}
