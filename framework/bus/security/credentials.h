/* credentials.h - how nodes prove to each other who they are, for transport and
 * membership.
 *
 * PLAIN. Whoever knows the secret may be anyone, but a proof holds for one
 * place only: the dialler's password is a keyed hash over its id, its
 * incarnation and the address that it dials, so a listener that was given one
 * cannot use it elsewhere. The listener answers the dialler's challenge with a
 * hash of its own, since ZMTP's PLAIN proves the dialler only.
 * CURVE. The handshake of ZMTP proves both keys, and a certificate says whose
 * they are.
 *
 * Hashes are BLAKE2b with the secret as the key, over the bytes
 *
 *   what                size  message
 *   password            32    "lockstep password 2" 00 id incarnation address
 *   proof               32    "lockstep proof 2" 00 id incarnation
 *                             size-of-address address challenge
 *   signature in PLAIN  16    "lockstep presence 2" 00 bytes
 *
 * with id in 4 bytes, incarnation in 8 and size-of-address in 2, the high byte
 * first, and texts without a NUL. 16 and 32 are BLAKE2b's own digest size, not
 * a cut. In CURVE the signature is Ed25519 over the 64 bytes of BLAKE2b,
 * without a key, of the same message; the seed of the signing key is the 32
 * bytes of BLAKE2b of "lockstep sign 2" 00 with the node's secret CURVE key as
 * the key. tests/bus/credentials_vectors.py computes them with Python's own
 * library.
 *
 * What is compared with a secret is compared in constant time.
 * Thread: any. */
#ifndef LOCKSTEP_BUS_CREDENTIALS_H
#define LOCKSTEP_BUS_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/node.h"
#include "lockstep/security.h"

/* Z85 text of a key and its NUL. */
#define CREDENTIALS_KEY_MAX LS_PUBLIC_KEY_MAX

struct credentials_claim {
    uint32_t id;
    uint64_t incarnation;
    char address[LS_ENDPOINT_MAX + 1];
};

/* A node uses it from now on, or does no more. */
void credentials_hold(ls_security *security, bool on);

/* Sizes of ZMTP's PLAIN; both with their NUL. */
#define CREDENTIALS_USER_MAX     16
#define CREDENTIALS_PASSWORD_MAX 256

/* PLAIN, dialler: the user name, its id in decimal, and the password,
 * "2 <incarnation> <hash> <address>": incarnation and hash in lower-case
 * hexadecimal, the former without leading zeros.
 * claim:  id and incarnation of the dialler, and the address of the listener in
 *         its canonical form; 1 to 171 bytes from '!' to '~', more where the
 *         incarnation is short.
 * Errors: LS_EINVAL the address is none of these, or too long for a password;
 *         LS_ESTATE this is not PLAIN. */
LS_MUST_USE int credentials_password(const ls_security *security,
                                     const struct credentials_claim *claim,
                                     char user[CREDENTIALS_USER_MAX],
                                     char password[CREDENTIALS_PASSWORD_MAX]);

/* PLAIN, listener: bytes of a stranger. The caller compares out->address with
 * its own.
 * out:    written on success only.
 * Errors: LS_EPROTO they have not the form above; LS_EMISMATCH the hash was not
 *         made with this secret; LS_ESTATE this is not PLAIN. */
LS_MUST_USE int credentials_check_plain(const ls_security *security,
                                        const void *user, size_t user_size,
                                        const void *password,
                                        size_t password_size,
                                        struct credentials_claim *out);

/* CURVE, listener: whose is this long-term key of a client? May read the folder
 * again.
 * id:        written when it is a node's.
 * enrolment: written on success: whether it is the enrolment key, whose owner
 *            may only ask for an id.
 * Errors: LS_ENOENT nobody's that is known; LS_ESTATE this is not CURVE. */
LS_MUST_USE int credentials_check_curve(ls_security *security,
                                        const uint8_t key[32], uint32_t *id,
                                        bool *enrolment);

/* CURVE, listener: whether this node gives out ids, so that only the owner of
 * the enrolment key may come in; at all others he may not. */
bool credentials_gives_ids(const ls_security *security);

/* Whether a connection from this address is let in at all: ls_security_allow()
 * and ls_security_deny(). address: an address as ZAP has it; "": it comes over
 * ipc. */
bool credentials_admits(const ls_security *security, const char *address);

/* CURVE: the keys of this node, for its sockets; wipe the secret one
 * (sodium_memzero) after use. Errors: LS_ESTATE this is not CURVE. */
LS_MUST_USE int credentials_own_keys(const ls_security *security,
                                     char public_key[CREDENTIALS_KEY_MAX],
                                     char secret_key[CREDENTIALS_KEY_MAX]);

/* CURVE, dialler: the key that node `id` must have; where ids are given out,
 * all others have the enrolment key. May read the folder again.
 * Errors: LS_ENOENT none is known: names the folder, and what to do; LS_ESTATE
 *         this is not CURVE. */
LS_MUST_USE int credentials_server_key(ls_security *security, uint32_t id,
                                       char public_key[CREDENTIALS_KEY_MAX]);

/* The listener's answer to a dialler's challenge. Returns its size: 32 in
 * PLAIN, else 0 (NONE proves nothing, and CURVE has proved the key in its
 * handshake).
 * challenge: fresh from the dialler, never used twice.
 * claim:     of the listener: its id, incarnation and canonical address. */
#define CREDENTIALS_PROOF_BYTES 32
size_t credentials_prove(const ls_security *security, const char *challenge,
                         const struct credentials_claim *claim,
                         uint8_t out[CREDENTIALS_PROOF_BYTES]);
bool credentials_proved(const ls_security *security, const char *challenge,
                        const struct credentials_claim *claim,
                        const uint8_t *proof, size_t size);

/* A signature of some bytes by this node, as lower-case hexadecimal text: "" in
 * NONE, 32 digits in PLAIN, 128 in CURVE. In PLAIN it says that a member of the
 * job wrote them, in CURVE that this node did.
 * Errors: none so far. */
#define CREDENTIALS_SIGNATURE_MAX 129
LS_MUST_USE int credentials_sign(const ls_security *security, const void *bytes,
                                 size_t size,
                                 char out[CREDENTIALS_SIGNATURE_MAX]);
/* Whether it is one, by node `id`. In CURVE false also when no certificate of
 * that node is known. May read the folder again. signature: borrow. */
bool credentials_signed(ls_security *security, uint32_t id, const void *bytes,
                        size_t size, const char *signature);

/* Whether node `id` may call itself so: in CURVE a certificate may fix its role
 * and list the labels that it may carry, and one must be there. */
bool credentials_suits(ls_security *security, uint32_t id, const char *role,
                       const char *labels);
/* The same of this node, before others refuse it. LS_OK also where the folder
 * has no certificate of it. Errors: LS_EMISMATCH: names both. */
LS_MUST_USE int credentials_check_own(ls_security *security, uint32_t id,
                                      const char *role, const char *labels);

#endif
