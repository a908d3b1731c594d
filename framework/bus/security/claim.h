/* claim.h - what PLAIN's user names, passwords and proofs are made of, given
 * the secret: credentials.h has the layouts.
 *
 * Thread: pure functions. */
#ifndef LOCKSTEP_BUS_CLAIM_H
#define LOCKSTEP_BUS_CLAIM_H

#include "credentials.h"

/* Errors: LS_EINVAL the address. */
LS_MUST_USE int claim_write(const uint8_t secret[LS_SECRET_BYTES],
                            const struct credentials_claim *claim,
                            char user[CREDENTIALS_USER_MAX],
                            char password[CREDENTIALS_PASSWORD_MAX]);

/* Errors: LS_EPROTO; LS_EMISMATCH. */
LS_MUST_USE int claim_read(const uint8_t secret[LS_SECRET_BYTES],
                           const void *user, size_t user_size,
                           const void *password, size_t password_size,
                           struct credentials_claim *out);

void claim_prove(const uint8_t secret[LS_SECRET_BYTES], const char *challenge,
                 const struct credentials_claim *claim,
                 uint8_t out[CREDENTIALS_PROOF_BYTES]);

#endif
