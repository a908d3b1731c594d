/* security_parts.h - what an ls_security is inside. */
#ifndef LOCKSTEP_BUS_SECURITY_PARTS_H
#define LOCKSTEP_BUS_SECURITY_PARTS_H

#include <stdatomic.h>

#include <sodium.h>

#include "access.h"
#include "certificate.h"
#include "keyring.h"

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

#endif
