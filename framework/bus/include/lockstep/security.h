/* security.h - who may speak to a node, and how each proves who it is.
 *
 * Three modes. All nodes of a world use the same one.
 *
 *   none   nobody is asked who it is. Whoever reaches the socket may speak.
 *   plain  every node knows one secret of 32 bytes. Each proves that it knows
 *          it; nothing is encrypted. For nodes of one host, where whoever can
 *          read the traffic is root.
 *   curve  every node has a key of its own, and a folder holds the
 *          certificates of all. Everything is encrypted, and each node is known
 *          to be the one that its certificate names. For nodes on several
 *          hosts.
 *
 * An object of this kind says who one node is and whom it listens to. In plain
 * and none any number of nodes of a process may share one; in curve it holds
 * the key of one node, and nodes that share it speak as that node.
 *
 * Secrets and secret keys come from files alone: never from an environment
 * variable or a command line, and they are never logged. In memory they lie in
 * locked pages and are wiped when the object is destroyed.
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

/* In each of these, out is own, and NULL after an error; give it to
 * ls_security_destroy(). */

/* Nobody is asked who it is. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_none(ls_security **out);

/* A secret that the caller has.
 * secret: copied; wipe yours.
 * Errors: LS_EINVAL it is NULL, or nothing but zeros; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_plain(ls_security **out,
                                         const uint8_t secret[LS_SECRET_BYTES]);

/* The secret that a file holds: 32 bytes, as ls_secret_create() writes them, or
 * `head -c 32 /dev/urandom`. The file must be a regular file, not a symbolic
 * link, belong to this user, and be open to nobody else (chmod 600).
 * path:   copied.
 * Errors: LS_EINVAL path is NULL or empty; LS_ENOENT there is no such file;
 *         LS_ECONFIG the file is not as above, with what is wrong and what to
 *         do; LS_EIO it cannot be read; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_file(ls_security **out, const char *path);

/* The secret of a job on this host. The first process that asks creates it,
 * also when several ask at once; all others of this user read it. It lies at
 * ls_secret_job_path(), in folders that are open to this user alone, and stays
 * there: remove it, while no node of the job runs, to have a new one made.
 * job:    1 to 64 of [A-Za-z0-9._-], but not "." or "..".
 * Errors: LS_EINVAL job; LS_ECONFIG a folder on the way, or the file, belongs
 *         to another user, is open to others, or is a symbolic link: somebody
 *         else may have made it, and the text says which and what to do;
 *         LS_EIO it cannot be made or read; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_security_job(ls_security **out, const char *job);

/* The keys of node `id`, and the certificates of all its peers, from a folder
 * that ls_keys_create() or `lockstep keygen` filled. The folder holds
 * node-<id>.cert_secret of this node and a *.cert for every node that may
 * speak; the secrets of others have no business there. It is read now, and
 * again, at most once a second, when an unknown node asks to come in and the
 * folder has changed: a new node needs its certificate there, and no restart.
 * A certificate that cannot be read, or that others may write, is skipped, with
 * a warning in the log that names the file.
 * In a simulation, create it there and destroy it before that ends: the second
 * is one of the runtime that it was created on.
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

/* A node that nobody knows beforehand makes a key (ls_key_create()), asks for
 * an id under the enrolment key (ls_keys_create_enrolment()), and speaks as
 * that node under its own key. Whoever gives out the id tells all others whose
 * key it is (ls_security_trust()). What a node publishes goes to whoever is
 * connected to it, so the asking is done at a node of its own: only there, and
 * nowhere else, the enrolment key opens anything. */

/* For that node, which is opened beside node `id`, in a world of its own:
 * whoever has the enrolment key comes in, under any id, and nobody else.
 * Errors: those of ls_security_curve(); LS_ENOENT the folder has no
 *         enrolment.cert. */
LS_MUST_USE LS_API int ls_security_giving(ls_security **out, const char *folder,
                                          uint32_t id);

/* For who asks there: it has the enrolment key, and dials nodes that the folder
 * has certificates of. The folder holds enrolment.cert_secret.
 * Errors: those of ls_security_curve(). */
LS_MUST_USE LS_API int ls_security_asking(ls_security **out,
                                          const char *folder);

/* For the node that was given `id`: as ls_security_curve(), with a secret key
 * that is not in the folder.
 * path:   of ls_key_create(); copied.
 * Errors: LS_EINVAL path is NULL or empty; LS_ENOENT there is no such file, or
 *         folder; LS_ECONFIG the file is open to others, or holds no key, or
 *         the folder has a certificate of that node; else those of
 *         ls_security_curve(). */
LS_MUST_USE LS_API int ls_security_leased(ls_security **out, const char *folder,
                                          uint32_t id, const char *path);

/* Wipe and free it, after the nodes that use it are destroyed. Sets *security
 * to NULL; NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE a node that was created with it is still there: nothing was
 *         done. */
LS_API int ls_security_destroy(ls_security **security);

LS_API enum ls_security_mode ls_security_mode(const ls_security *security);

/* ---- addresses ---------------------------------------------------------- */

/* Let a host speak, or keep it out, whatever it can prove; this comes first and
 * grants nothing else. The rules are those of CZMQ's zauth: while nothing is
 * allowed, everyone is who is not denied; once something is allowed, all else
 * is denied. One that is both is denied. Both hold for connections that are
 * made from now on.
 * address: copied; an IPv4 or IPv6 address as text, without port; or "":
 * whoever comes over ipc. Names of hosts are not looked up. An IPv4 address
 *          that is mapped into IPv6 (::ffff:10.0.0.1) is that IPv4 address, and
 *          the zone of an IPv6 address (%eth0) does not count.
 * Errors: LS_EINVAL it is none of these. */
LS_MUST_USE LS_API int ls_security_allow(ls_security *security,
                                         const char *address);
LS_MUST_USE LS_API int ls_security_deny(ls_security *security,
                                        const char *address);

/* ---- keys --------------------------------------------------------------- */

/* curve: listen to one more node, whose key is not in the folder: one that
 * was given its id for a while. Replaces the key that was trusted for this id
 * before, and ends when a certificate of the same node or key comes into the
 * folder. Such a node may have any role and labels. What it signs cannot be
 * checked, since only a certificate has the key for that.
 * public_key: copied; Z85 text, as of ls_security_public_key().
 * Errors: LS_ESTATE this is not curve; LS_EINVAL public_key is not a key;
 *         LS_EEXIST the folder has a certificate of this id; LS_EMISMATCH it
 * has one of this key, or another id is trusted with this key. */
LS_MUST_USE LS_API int ls_security_trust(ls_security *security, uint32_t id,
                                         const char *public_key);

/* curve: trust no key for this id any more, unless a certificate has it.
 * Connections that are open stay open. One that nobody has is fine. Errors:
 * LS_ESTATE this is not curve. */
LS_MUST_USE LS_API int ls_security_distrust(ls_security *security, uint32_t id);

/* curve: the public key of this node, as Z85 text. Errors: LS_ESTATE this is
 * not curve. */
LS_MUST_USE LS_API int ls_security_public_key(const ls_security *security,
                                              char out[LS_PUBLIC_KEY_MAX]);

/* ---- files -------------------------------------------------------------- */

/* Write a fresh secret into a new file that only this user can read (0600).
 * The file is there whole or not at all, whatever happens meanwhile.
 * secret: written on success, too; NULL: the caller does not need it.
 * Errors: LS_EINVAL path is NULL or empty; LS_EEXIST there is such a file;
 *         LS_ENOENT its folder is not there; LS_EIO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_secret_create(const char *path,
                                        uint8_t secret[LS_SECRET_BYTES]);

/* Where ls_security_job() keeps the secret of a job:
 * $XDG_RUNTIME_DIR/lockstep/JOB/secret; or /tmp/lockstep-UID/JOB/secret, where
 * that variable is unset or names no folder of this user alone. Nothing is
 * created.
 * out:    `size` bytes; 4096 are always enough.
 * Errors: LS_EINVAL job; LS_ELIMIT the path does not fit. */
LS_MUST_USE LS_API int ls_secret_job_path(const char *job, char *out,
                                          size_t size);

/* Make the certificate of a node: node-<id>.cert, which every other node needs,
 * and node-<id>.cert_secret, for that node alone (0600). The folder is made
 * (0700), if its parent is there.
 * role:   what the node may call itself, at most 31 of [A-Za-z0-9._,-]; NULL:
 *         anything.
 * labels: those that it may carry, at most 63 of the same, joined by commas;
 *         NULL: any.
 * Errors: LS_EINVAL folder, role or labels; LS_EEXIST one of the two files is
 *         there: it names the file, and nothing is written; LS_ENOENT the
 *         parent of the folder is not there; LS_ECONFIG others may write to
 *         the folder; LS_EIO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_keys_create(const char *folder, uint32_t id,
                                      const char *role, const char *labels);

/* The same for nodes that have no id yet: enrolment.cert, for those that give
 * out ids, and enrolment.cert_secret, for all that may ask for one. Its owner
 * may do nothing but ask.
 * Errors: those of ls_keys_create(). */
LS_MUST_USE LS_API int ls_keys_create_enrolment(const char *folder);

/* Make a key that is of no node yet: a new file that only this user can read
 * (0600), with the secret key as Z85 text. It is there whole or not at all.
 * public_key: written on success.
 * Errors: LS_EINVAL path is NULL or empty; LS_EEXIST there is such a file;
 *         LS_ENOENT its folder is not there; LS_EIO. */
LS_MUST_USE LS_API int ls_key_create(const char *path,
                                     char public_key[LS_PUBLIC_KEY_MAX]);

/* The public key that belongs to such a file.
 * Errors: LS_EINVAL path is NULL or empty; LS_ENOENT; LS_ECONFIG the file is
 *         open to others, or holds no key; LS_EIO. */
LS_MUST_USE LS_API int ls_key_read(const char *path,
                                   char public_key[LS_PUBLIC_KEY_MAX]);

#ifdef __cplusplus
}
#endif

#endif
