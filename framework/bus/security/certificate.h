/* certificate.h - the key of a node, and what it may call itself: a file in
 * CZMQ's format for certificates.
 *
 * The file is text in ZPL, as zcert_save() writes it and zcert_load() reads it:
 *
 *   metadata
 *       id = "3"             decimal; or enrolment = "yes" in its place
 *       role = "collector"   may be left out: any
 *       labels = "fast,gpu"  may be left out: any
 *       sign = "5c0f…"       the public key for signatures, 64 digits
 *   curve
 *       public-key = "…"     40 characters of Z85
 *       secret-key = "…"     in the file *.cert_secret only
 *
 * Thread: pure functions.
 * Source: RFC 4 (ZPL) of rfc.zeromq.org; zcert(3). */
#ifndef LOCKSTEP_BUS_CERTIFICATE_H
#define LOCKSTEP_BUS_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#include "credentials.h"
#include "key_text.h"
#include "wire.h"

/* A file is never longer. */
#define CERTIFICATE_MAX 4096

struct certificate {
    bool enrolment; /* it names no node, and may only ask for an id */
    uint32_t id;    /* else */
    bool has_role, has_labels;
    char role[WIRE_ROLE_MAX + 1];
    char labels[WIRE_LABELS_MAX + 1];
    char public_key[CREDENTIALS_KEY_MAX];
    uint8_t sign[KEY_BYTES];
};

/* The file of the key with which ids are asked for; its secret one ends in
 * "_secret". */
#define ENROLMENT_FILE "enrolment.cert"

/* A secret key, as text. Wipe it after use. */
struct certificate_secret {
    char key[CREDENTIALS_KEY_MAX];
};

/* Read the public part of a file's bytes. Errors: LS_EPROTO with what is
 * wrong. */
LS_MUST_USE int certificate_read(const char *bytes, size_t size,
                                 struct certificate *out);
/* The same of a secret file, which has both keys; and that they, and the key
 * for signatures, belong together. */
LS_MUST_USE int certificate_read_secret(const char *bytes, size_t size,
                                        struct certificate *out,
                                        struct certificate_secret *secret);

/* Fill in fresh keys. Errors: LS_EIO. */
LS_MUST_USE int certificate_make(struct certificate *certificate,
                                 struct certificate_secret *secret);
/* Write a file: the public one, or with secret not NULL the other. out:
 * CERTIFICATE_MAX bytes. Returns its size. */
size_t certificate_write(const struct certificate *certificate,
                         const struct certificate_secret *secret, char *out);

/* The keys for signatures that follow from a secret key: credentials.h.
 * secret: wipe it after use. */
void certificate_sign_keys(const uint8_t secret_key[KEY_BYTES],
                           uint8_t public_sign[crypto_sign_PUBLICKEYBYTES],
                           uint8_t secret_sign[crypto_sign_SECRETKEYBYTES]);

#endif
