/* security.h - who may speak to a node, and how each proves who it is.
 *
 * Three modes. All nodes of a world use the same one.
 *
 *   none   No proof of identity. Anyone who reaches the socket may speak.
 *   plain  All nodes share one secret of 32 bytes. Each proves that it knows
 *          the secret; nothing is encrypted. For nodes on one host, where
 *          anyone who can read the traffic is root.
 *   curve  Every node has its own key, and a folder holds the certificates of
 *          all nodes. Everything is encrypted, and each node is known to be the
 *          one that its certificate names. For nodes on several hosts.
 *
 * An ls_security says who one node is and which nodes it accepts. In plain and
 * none, any number of nodes of a process may share one; in curve it holds the
 * key of one node, and nodes that share it speak as that node.
 *
 * Secrets and secret keys come only from files, never from an environment
 * variable or a command line, and are never logged. In memory they lie in
 * locked pages, and are wiped when the object is destroyed.
 * Thread: any.
 * Source: docs/security.md; docs/decisions/0022-authentication-libraries.md;
 * RFC 23 (ZMTP), 27 (ZAP) and 32 (Z85) of rfc.zeromq.org. */
#ifndef LOCKSTEP_SECURITY_H
#define LOCKSTEP_SECURITY_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The size of a shared secret. */
#define LS_SECRET_BYTES 32
/* Z85 text of a public key and its NUL. */
#define LS_PUBLIC_KEY_MAX 41

typedef struct ls_security ls_security;

enum ls_security_mode {
    LS_SECURITY_NONE,
    LS_SECURITY_PLAIN,
    LS_SECURITY_CURVE
};

/* ---- create and destroy ------------------------------------------------- */

/* In each of these functions, out is own, and NULL after an error; give it to
 * ls_security_destroy(). */

/* No proof of identity. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_none(ls_security **out);

/* A secret in memory.
 * secret: copied; wipe yours.
 * Errors: LS_EINVAL it is NULL or all zeros; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_plain(ls_security **out,
                                         const uint8_t secret[LS_SECRET_BYTES]);

/* A secret in a file: 32 bytes, as written by ls_secret_create() or
 * `head -c 32 /dev/urandom`. It must be a regular file, not a symbolic link,
 * belong to this user, and be accessible to nobody else (chmod 600).
 * path:   copied.
 * Errors: LS_EINVAL path is NULL or empty; LS_ENOENT there is no such file;
 *         LS_ECONFIG the file is not as above: the text says what is wrong and
 *         what to do; LS_EIO it cannot be read; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_file(ls_security **out, const char *path);

/* The secret of a job on this host. The first process that asks creates it,
 * even if several ask at once; all other processes of this user read it. It
 * lies at ls_secret_job_path(), in folders that only this user can access, and
 * stays there. To have a new one made, remove it while no node of the job runs.
 * job:    1 to 64 of [A-Za-z0-9._-], but not "." or "..".
 * Errors: LS_EINVAL job; LS_ECONFIG a folder on the path, or the file, belongs
 *         to another user, is open to others, or is a symbolic link: somebody
 *         else may have made it; the text says which and what to do; LS_EIO it
 *         cannot be made or read; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_job(ls_security **out, const char *job);

/* The keys of node `id`, and the certificates of all its peers, from a folder
 * filled by ls_keys_create() or `lockstep keygen`. The folder holds
 * node-<id>.cert_secret of this node and a *.cert for every node that may
 * speak; the secrets of other nodes do not belong there. It is read now, and
 * again, at most once a second, when an unknown node asks to be let in, or the
 * hub of a star shows a leaf, and the folder has changed: to add a node, add
 * its certificate; no restart is needed.
 * A certificate that cannot be read, or that others may write, is skipped, with
 * a warning in the log that names the file.
 * In a simulation, create and destroy it inside the simulation: the second is
 * measured by the runtime that it was created on.
 * folder: copied. id: any.
 * Errors: LS_EINVAL folder is NULL or empty; LS_ENOENT there is no such folder,
 *         or no secret key of that node in it; LS_ECONFIG two certificates name
 *         the same node or hold the same key (the text names both files), the
 *         secret key is open to others or does not belong to the certificate,
 *         or others may write to the folder; LS_ELIMIT over 16384 certificates;
 *         LS_EIO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_curve(ls_security **out, const char *folder,
                                         uint32_t id);

/* ---- ids that are given out --------------------------------------------- */

/* A node without a fixed id makes a key (ls_key_create()), asks for an id with
 * the enrolment key (ls_keys_create_enrolment()), and then speaks as that node
 * with its own key. The node that gives out the id tells all others which key
 * has it (ls_security_trust()). Everything that a node publishes goes to
 * everyone who is connected to it, so a separate node answers these requests:
 * the enrolment key opens that node and nothing else. */

/* For the node that gives out ids, opened beside node `id`, in a world of its
 * own: it accepts the holders of the enrolment key, under any id, and no one
 * else.
 * Errors: those of ls_security_curve(); LS_ENOENT the folder has no
 *         enrolment.cert. */
LS_MUST_USE LS_API int ls_security_giving(ls_security **out, const char *folder,
                                          uint32_t id);

/* For a node that asks for an id: it uses the enrolment key, and dials nodes
 * whose certificates are in the folder. The folder holds enrolment.cert_secret.
 * Errors: those of ls_security_curve(). */
LS_MUST_USE LS_API int ls_security_asking(ls_security **out,
                                          const char *folder);

/* For the node that was given `id`: as ls_security_curve(), with a secret key
 * from outside the folder.
 * path:   of ls_key_create(); copied.
 * Errors: LS_EINVAL path is NULL or empty; LS_ENOENT there is no such file, or
 *         folder; LS_ECONFIG the file is open to others, or holds no key, or
 *         the folder has a certificate of that node; else those of
 *         ls_security_curve(). */
LS_MUST_USE LS_API int ls_security_leased(ls_security **out, const char *folder,
                                          uint32_t id, const char *path);

/* Wipe and free it, after the nodes that use it are destroyed. Sets *security
 * to NULL; NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE a node that was created with it still exists: nothing was
 *         done. */
LS_API int ls_security_destroy(ls_security **security);

LS_API enum ls_security_mode ls_security_mode(const ls_security *security);

/* ---- addresses ---------------------------------------------------------- */

/* Allow a host to connect, or deny it, whatever it can prove. This is checked
 * first and grants nothing else. The rules are those of CZMQ's zauth: while no
 * address is allowed, all are accepted that are not denied; once one is
 * allowed, all others are denied. An address that is both is denied. Both apply
 * to connections made from now on.
 * address: copied; an IPv4 or IPv6 address as text, without port; or "": all
 *          ipc connections. Host names are not looked up. An IPv4 address
 *          mapped into IPv6 (::ffff:10.0.0.1) is that IPv4 address; the zone of
 *          an IPv6 address (%eth0) is ignored.
 * Errors:  LS_EINVAL it is none of these. */
LS_MUST_USE LS_API int ls_security_allow(ls_security *security,
                                         const char *address);
LS_MUST_USE LS_API int ls_security_deny(ls_security *security,
                                        const char *address);

/* ---- keys --------------------------------------------------------------- */

/* curve: accept one more node, whose key is not in the folder, such as one that
 * was given its id temporarily. Replaces the key that was trusted for this id
 * before, and ends when a certificate of the same node or key is added to the
 * folder. The node may have any role and labels. Its signatures cannot be
 * checked, since only certificates hold the key for that.
 * public_key: copied; Z85 text, as of ls_security_public_key().
 * Errors:     LS_ESTATE this is not curve; LS_EINVAL public_key is not a key;
 *             LS_EEXIST the folder has a certificate of this id; LS_EMISMATCH
 *             it has one of this key, or another id is trusted with this key.
 */
LS_MUST_USE LS_API int ls_security_trust(ls_security *security, uint32_t id,
                                         const char *public_key);

/* curve: stop trusting a key for this id, unless a certificate has it. Open
 * connections stay open. An id without a trusted key is fine.
 * Errors: LS_ESTATE this is not curve. */
LS_MUST_USE LS_API int ls_security_distrust(ls_security *security, uint32_t id);

/* curve: the public key of this node, as Z85 text.
 * Errors: LS_ESTATE this is not curve. */
LS_MUST_USE LS_API int ls_security_public_key(const ls_security *security,
                                              char out[LS_PUBLIC_KEY_MAX]);

/* ---- files -------------------------------------------------------------- */

/* Write a new secret into a new file that only this user can read (0600). The
 * file is written whole or not at all, whatever else happens.
 * secret: also written, on success; NULL: the caller does not need it.
 * Errors: LS_EINVAL path is NULL or empty; LS_EEXIST the file exists;
 *         LS_ENOENT its folder does not exist; LS_EIO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_secret_create(const char *path,
                                        uint8_t secret[LS_SECRET_BYTES]);

/* The path at which ls_security_job() keeps the secret of a job:
 * $XDG_RUNTIME_DIR/lockstep/JOB/secret; or /tmp/lockstep-UID/JOB/secret if that
 * variable is unset or does not name a folder that only this user can access.
 * Creates nothing.
 * out:    `size` bytes; 4096 are always enough.
 * Errors: LS_EINVAL job; LS_ELIMIT the path does not fit. */
LS_MUST_USE LS_API int ls_secret_job_path(const char *job, char *out,
                                          size_t size);

/* Make the certificate of a node: node-<id>.cert, which every other node needs,
 * and node-<id>.cert_secret, for that node only (0600). The folder is created
 * (0700) if its parent exists.
 * role:   the only role that the node may have, at most 31 of [A-Za-z0-9._,-];
 *         NULL: any.
 * labels: the labels that it may have, at most 63 of the same, joined by
 *         commas; NULL: any.
 * Errors: LS_EINVAL folder, role or labels; LS_EEXIST one of the two files
 *         exists: the text names it, and nothing is written; LS_ENOENT the
 *         parent of the folder does not exist; LS_ECONFIG others may write to
 *         the folder; LS_EIO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_keys_create(const char *folder, uint32_t id,
                                      const char *role, const char *labels);

/* The same for nodes without an id: enrolment.cert, for the nodes that give out
 * ids, and enrolment.cert_secret, for all nodes that may ask for one. The key
 * allows asking and nothing else.
 * Errors: those of ls_keys_create(). */
LS_MUST_USE LS_API int ls_keys_create_enrolment(const char *folder);

/* Make a key that belongs to no node yet: a new file that only this user can
 * read (0600), with the secret key as Z85 text, written whole or not at all.
 * public_key: written on success.
 * Errors:     LS_EINVAL path is NULL or empty; LS_EEXIST the file exists;
 *             LS_ENOENT its folder does not exist; LS_EIO. */
LS_MUST_USE LS_API int ls_key_create(const char *path,
                                     char public_key[LS_PUBLIC_KEY_MAX]);

/* The public key of such a file.
 * Errors: LS_EINVAL path is NULL or empty; LS_ENOENT; LS_ECONFIG the file is
 *         open to others, or holds no key; LS_EIO. */
LS_MUST_USE LS_API int ls_key_read(const char *path,
                                   char public_key[LS_PUBLIC_KEY_MAX]);

#ifdef __cplusplus
}
#endif

#endif
