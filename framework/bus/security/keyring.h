/* keyring.h - whose key is whose: the certificates in a folder, and keys that
 * were trusted besides.
 *
 * One key is of one node, and one node has one key. A folder that breaks this
 * is refused: at first as an error, later by staying with what was read before
 * and a warning.
 * Thread: any. */
#ifndef LOCKSTEP_BUS_KEYRING_H
#define LOCKSTEP_BUS_KEYRING_H

#include <stdbool.h>
#include <stdint.h>

#include "certificate.h"
#include "lockstep/runtime.h"

struct keyring;

/* After a look at the folder, the next look comes no sooner. */
#define KEYRING_PERIOD_NS LS_NS_PER_S

/* Whose keyring it is, and where its secret key lies. */
struct keyring_owner {
    bool enrolment;   /* who has the enrolment key, and no id; else: */
    uint32_t id;      /* this node, */
    const char *path; /* whose secret key this file holds, as of
                       * ls_key_create(); NULL: it is in the folder */
};

/* out:    own; written on success only.
 * clock:  borrow; longer than the keyring.
 * secret: written on success; the secret key of its owner; wipe it.
 * Errors: those of ls_security_curve() and ls_security_leased(). */
LS_MUST_USE int keyring_create(struct keyring **out, ls_runtime *clock,
                               const char *folder,
                               const struct keyring_owner *owner,
                               struct certificate_secret *secret);
void keyring_destroy(struct keyring **keyring);

/* Find a node's certificate, or whose key it is, with another look at the
 * folder when it is unknown. A key is looked for when it wants to come in, and
 * then the folder is looked at in any case, since the certificate may have been
 * taken away; so it is for an id with `look`. false: nobody's. */
struct keyring_found {
    struct certificate certificate;
    bool signs; /* it has a key for signatures: it was not only trusted */
};
bool keyring_find_id(struct keyring *keyring, uint32_t id, bool look,
                     struct keyring_found *out);
bool keyring_find_key(struct keyring *keyring, const uint8_t key[KEY_BYTES],
                      struct keyring_found *out);

/* The enrolment key, as the folder was last read. false: it has none. */
bool keyring_find_enrolment(struct keyring *keyring, struct keyring_found *out);

/* ls_security_trust(). Errors: LS_EINVAL; LS_EEXIST; LS_EMISMATCH. */
LS_MUST_USE int keyring_trust(struct keyring *keyring, uint32_t id,
                              const char *public_key);
/* ls_security_distrust(). */
void keyring_distrust(struct keyring *keyring, uint32_t id);

/* The certificate of this node, and the folder's path; borrow. */
const struct certificate *keyring_own(const struct keyring *keyring);
const char *keyring_folder(const struct keyring *keyring);

#endif
