#include "certificate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <czmq.h>

#include "keyed_hash.h"

/* ---- what CZMQ would choke on ------------------------------------------- */

/* zconfig says what it dislikes on stdout, which is the program's own, so it is
 * only given what it takes. A certificate is two levels deep; names are ASCII
 * without '/', which zconfig makes paths of. */
#define NAME_CHARACTERS                                                        \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789$-_@.&+"
#define BLANK " \t\r\v\f"

static const char *rest_fault(const char *at)
{
    at += strspn(at, BLANK);
    return *at == '\0' || *at == '#' ? NULL : "text behind its end";
}

static const char *value_fault(const char *at)
{
    at += strspn(at, BLANK);
    if (*at != '=')
        return rest_fault(at);
    at += 1 + strspn(at + 1, BLANK);
    if (*at != '"' && *at != '\'')
        return NULL;
    const char *end = strchr(at + 1, *at);
    return end == NULL ? "a quote that does not end" : rest_fault(end + 1);
}

/* in_section: whether a line before this one began a section. */
static const char *line_fault(const char *line, bool *in_section)
{
    const size_t indent = strspn(line, " ");
    const char *at = line + indent;
    const char *first = at + strspn(at, BLANK);
    if (*first == '\0')
        return NULL;
    if (*first == '#')
        return indent % 4 == 0 ? NULL : "a wrong indentation";
    const size_t name = strspn(at, NAME_CHARACTERS);
    if (name == 0)
        return "no name";
    if (indent != 0 && (indent != 4 || !*in_section))
        return "a wrong indentation";
    *in_section = true;
    return value_fault(at + name);
}

/* text: wiped by the caller; cut into lines. */
static int check_text(char *text)
{
    bool in_section = false;
    unsigned number = 1;
    char *rest = NULL;
    for (char *line = text; line != NULL; line = rest, number++) {
        rest = strchr(line, '\n');
        if (rest != NULL)
            *rest++ = '\0';
        const char *fault = line_fault(line, &in_section);
        if (fault != NULL)
            return ls_error(LS_EPROTO, "line %u has %s", number, fault);
    }
    return LS_OK;
}

/* out: own. */
static int parse(const char *bytes, size_t size, zconfig_t **out)
{
    char text[CERTIFICATE_MAX + 1];
    if (size > CERTIFICATE_MAX)
        return ls_error(LS_EPROTO, "it has more than %d bytes",
                        CERTIFICATE_MAX);
    if (memchr(bytes, '\0', size) != NULL)
        return ls_error(LS_EPROTO, "it is not a text");
    memcpy(text, bytes, size);
    text[size] = '\0';
    const int status = check_text(text);
    sodium_memzero(text, sizeof text);
    if (status != LS_OK)
        return status;
    zchunk_t *chunk = zchunk_new(bytes, size);
    *out = zconfig_chunk_load(chunk);
    sodium_memzero(zchunk_data(chunk), size);
    sodium_stackzero(CERTIFICATE_MAX); /* where it had each line */
    zchunk_destroy(&chunk);
    return *out != NULL ? LS_OK : ls_error(LS_EPROTO, "CZMQ cannot read it");
}

/* ---- reading ------------------------------------------------------------ */

static int read_id(const char *text, uint32_t *out)
{
    char again[16];
    const unsigned long long id = strtoull(text, NULL, 10);
    (void)snprintf(again, sizeof again, "%" PRIu32, (uint32_t)id);
    if (id > UINT32_MAX || strcmp(text, again) != 0)
        return ls_error(LS_EPROTO,
                        "the id \"%.20s\" is not a number of 32 bits", text);
    *out = (uint32_t)id;
    return LS_OK;
}

static int read_owner(zconfig_t *root, struct certificate *out)
{
    const char *id = zconfig_get(root, "/metadata/id", NULL);
    const char *enrolment = zconfig_get(root, "/metadata/enrolment", NULL);
    if ((id == NULL) == (enrolment == NULL))
        return ls_error(LS_EPROTO,
                        "its metadata must have either an id or enrolment; "
                        "make certificates by \"lockstep keygen\"");
    out->enrolment = id == NULL;
    if (id != NULL)
        return read_id(id, &out->id);
    return strcmp(enrolment, "yes") == 0
               ? LS_OK
               : ls_error(LS_EPROTO, "enrolment must be \"yes\"");
}

static int read_word(zconfig_t *root, const char *path, char *out, size_t max,
                     bool *has)
{
    const char *text = zconfig_get(root, path, NULL);
    *has = text != NULL;
    if (text == NULL)
        return LS_OK;
    if (!wire_word_valid(text, max, "._-,"))
        return ls_error(LS_EPROTO,
                        "%s must be at most %zu of A-Z a-z 0-9 . _ "
                        "- ,",
                        path + 1, max);
    memcpy(out, text, strlen(text) + 1);
    return LS_OK;
}

static int read_sign(zconfig_t *root, struct certificate *out)
{
    const char *text = zconfig_get(root, "/metadata/sign", "");
    size_t size = 0;
    if (sodium_hex2bin(out->sign, sizeof out->sign, text, strlen(text), NULL,
                       &size, NULL) == 0 &&
        size == sizeof out->sign)
        return LS_OK;
    return ls_error(LS_EPROTO, "its metadata must have sign, 64 hexadecimal "
                               "digits; make certificates by \"lockstep "
                               "keygen\"");
}

static int read_public_key(zconfig_t *root, struct certificate *out)
{
    const char *text = zconfig_get(root, "/curve/public-key", "");
    uint8_t key[KEY_BYTES];
    if (!key_read(text, key))
        return ls_error(LS_EPROTO, "curve/public-key is not a key in Z85");
    memcpy(out->public_key, text, sizeof out->public_key);
    return LS_OK;
}

static int read_public(zconfig_t *root, struct certificate *out)
{
    int status = read_owner(root, out);
    if (status == LS_OK)
        status = read_word(root, "/metadata/role", out->role, WIRE_ROLE_MAX,
                           &out->has_role);
    if (status == LS_OK)
        status = read_word(root, "/metadata/labels", out->labels,
                           WIRE_LABELS_MAX, &out->has_labels);
    if (status == LS_OK)
        status = read_sign(root, out);
    if (status == LS_OK)
        status = read_public_key(root, out);
    return status;
}

int certificate_read(const char *bytes, size_t size, struct certificate *out)
{
    struct certificate certificate = {0};
    zconfig_t *root = NULL;
    int status = parse(bytes, size, &root);
    if (status == LS_OK)
        status = read_public(root, &certificate);
    if (status == LS_OK)
        *out = certificate;
    zconfig_destroy(&root);
    return status;
}

/* ---- secret files ------------------------------------------------------- */

void certificate_sign_keys(const uint8_t secret_key[KEY_BYTES],
                           uint8_t public_sign[crypto_sign_PUBLICKEYBYTES],
                           uint8_t secret_sign[crypto_sign_SECRETKEYBYTES])
{
    uint8_t seed[crypto_sign_SEEDBYTES];
    struct keyed_hash hash;
    keyed_hash_begin(&hash, secret_key, "lockstep sign 2", sizeof seed);
    keyed_hash_end(&hash, seed);
    (void)crypto_sign_seed_keypair(public_sign, secret_sign, seed);
    sodium_memzero(seed, sizeof seed);
}

/* Whether the public half, and what is signed with, follow from the secret. */
static bool belongs(const struct certificate *certificate,
                    const uint8_t secret_key[KEY_BYTES])
{
    uint8_t public_key[KEY_BYTES];
    char text[CREDENTIALS_KEY_MAX];
    uint8_t sign[crypto_sign_PUBLICKEYBYTES];
    uint8_t secret_sign[crypto_sign_SECRETKEYBYTES];
    (void)crypto_scalarmult_base(public_key, secret_key);
    key_write(public_key, text);
    certificate_sign_keys(secret_key, sign, secret_sign);
    sodium_memzero(secret_sign, sizeof secret_sign);
    return strcmp(text, certificate->public_key) == 0 &&
           memcmp(sign, certificate->sign, sizeof sign) == 0;
}

static int check_secret(const char *text, const struct certificate *certificate)
{
    uint8_t key[KEY_BYTES];
    if (!key_read(text, key))
        return ls_error(LS_EPROTO, "curve/secret-key is not a key in Z85");
    const bool ours = belongs(certificate, key);
    sodium_memzero(key, sizeof key);
    return ours ? LS_OK
                : ls_error(LS_EPROTO, "public-key or sign does not belong to "
                                      "its secret-key");
}

static int read_both(zconfig_t *root, struct certificate *out,
                     struct certificate_secret *secret)
{
    static char none[1] = "";
    char *text = zconfig_get(root, "/curve/secret-key", none);
    int status = read_public(root, out);
    if (status == LS_OK)
        status = check_secret(text, out);
    if (status == LS_OK)
        memcpy(secret->key, text, sizeof secret->key);
    sodium_memzero(text, strlen(text));
    return status;
}

int certificate_read_secret(const char *bytes, size_t size,
                            struct certificate *out,
                            struct certificate_secret *secret)
{
    struct certificate certificate = {0};
    zconfig_t *root = NULL;
    int status = parse(bytes, size, &root);
    if (status == LS_OK)
        status = read_both(root, &certificate, secret);
    if (status == LS_OK)
        *out = certificate;
    zconfig_destroy(&root);
    return status;
}

/* ---- making ------------------------------------------------------------- */

int certificate_make(struct certificate *certificate,
                     struct certificate_secret *secret)
{
    uint8_t key[KEY_BYTES];
    uint8_t secret_sign[crypto_sign_SECRETKEYBYTES];
    if (!key_make(certificate->public_key, secret->key) ||
        !key_read(secret->key, key))
        return ls_error(LS_EIO, "libzmq made no keys: is it built without "
                                "CURVE?");
    certificate_sign_keys(key, certificate->sign, secret_sign);
    sodium_memzero(key, sizeof key);
    sodium_memzero(secret_sign, sizeof secret_sign);
    return LS_OK;
}

static const char enrolment_comment[] =
    "#   The key with which nodes of Lockstep may ask for an id. Those that\n"
    "#   give out ids need a copy.\n";

static const char enrolment_secret_comment[] =
    "#   The SECRET key with which nodes of Lockstep may ask for an id, for "
    "all\n"
    "#   that may. Keep it readable by their user only.\n";

static const char public_comment[] =
    "#   The certificate of a Lockstep node: it says which key is whose.\n"
    "#   Every node that this one may speak to needs a copy. It is not a "
    "secret,\n"
    "#   but who can exchange it can speak in the node's name.\n";

static const char secret_comment[] =
    "#   The SECRET key of a Lockstep node, for that node alone. Keep it\n"
    "#   readable by its user only, and copy it nowhere else.\n";

static const char *comment_of(bool enrolment, bool secret)
{
    if (enrolment)
        return secret ? enrolment_secret_comment : enrolment_comment;
    return secret ? secret_comment : public_comment;
}

size_t certificate_write(const struct certificate *certificate,
                         const struct certificate_secret *secret, char *out)
{
    char id[16], sign[2 * KEY_BYTES + 1];
    (void)snprintf(id, sizeof id, "%" PRIu32, certificate->id);
    (void)sodium_bin2hex(sign, sizeof sign, certificate->sign, KEY_BYTES);
    const bool node = !certificate->enrolment;
    const bool role = certificate->has_role, labels = certificate->has_labels;
    return (size_t)snprintf(
        out, CERTIFICATE_MAX,
        "%s\nmetadata\n    %s = \"%s\"\n%s%s%s%s%s%s    sign = \"%s\"\n"
        "curve\n    public-key = \"%s\"\n%s%s%s",
        comment_of(certificate->enrolment, secret != NULL),
        node ? "id" : "enrolment", node ? id : "yes",
        role ? "    role = \"" : "", role ? certificate->role : "",
        role ? "\"\n" : "", labels ? "    labels = \"" : "",
        labels ? certificate->labels : "", labels ? "\"\n" : "", sign,
        certificate->public_key, secret != NULL ? "    secret-key = \"" : "",
        secret != NULL ? secret->key : "", secret != NULL ? "\"\n" : "");
}
