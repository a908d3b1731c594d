#include "keyring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "key_file.h"
#include "keyring_folder.h"
#include "lockstep/log.h"

struct keyring {
    ls_mutex lock;
    ls_runtime *clock; /* borrow */
    char folder[GUARDED_PATH_MAX];
    struct keyring_entry own;
    struct keyring_table known;       /* what the folder has, and own */
    struct keyring_table trusted;     /* nothing that is in known */
    uint8_t hash[KEYRING_HASH_BYTES]; /* of the folder as it was last read */
    int64_t looked_at;
};

/* ---- the folder --------------------------------------------------------- */

/* This node's certificate counts as it stands in its secret file; the public
 * one is there for others to copy, and must be of the same key. */
static int put_own(const struct keyring *keyring, struct keyring_table *table)
{
    const struct keyring_entry *own = &keyring->own;
    struct keyring_entry *there =
        own->certificate.enrolment
            ? keyring_table_key(table, own->certificate.public_key)
            : keyring_table_id(table, own->certificate.id);
    if (there != NULL &&
        strcmp(there->certificate.public_key, own->certificate.public_key) == 0)
        keyring_table_remove(table, there);
    return keyring_table_put(table, own, keyring->folder);
}

static int read_folder(struct keyring *keyring, struct keyring_table *out,
                       uint8_t hash[KEYRING_HASH_BYTES])
{
    keyring_table_init(out);
    int status = keyring_folder_read(keyring->folder, out, hash);
    if (status == LS_OK)
        status = put_own(keyring, out);
    if (status != LS_OK)
        keyring_table_fini(out);
    return status;
}

/* Certificates go before keys that were only trusted. */
static void drop_trusted(struct keyring *keyring)
{
    struct keyring_table *trusted = &keyring->trusted;
    zlistx_t *all = zhashx_values(trusted->by_key);
    zlistx_set_destructor(all, NULL); /* a list of values would free them */
    for (struct keyring_entry *entry = zlistx_first(all); entry != NULL;
         entry = zlistx_next(all))
        if (keyring_table_id(&keyring->known, entry->certificate.id) != NULL ||
            keyring_table_key(&keyring->known, entry->certificate.public_key) !=
                NULL)
            keyring_table_remove(trusted, entry);
    zlistx_destroy(&all);
}

/* Look at the folder again, unless that was a moment ago. Whoever tries unknown
 * keys makes us look once a second, and read what is there only when it has
 * changed. */
static void look_again(struct keyring *keyring)
{
    const int64_t now = ls_now(keyring->clock);
    if (now - keyring->looked_at < KEYRING_PERIOD_NS)
        return;
    keyring->looked_at = now;
    uint8_t hash[KEYRING_HASH_BYTES];
    struct keyring_table table;
    int status = keyring_folder_read(keyring->folder, NULL, hash);
    if (memcmp(hash, keyring->hash, sizeof hash) == 0)
        return;
    memcpy(keyring->hash, hash, sizeof hash); /* so that it is said once */
    if (status == LS_OK)
        status = read_folder(keyring, &table, hash);
    if (status != LS_OK) {
        ls_log_warn("certificates stay as they were: %s", ls_error_text());
        return;
    }
    memcpy(keyring->hash, hash, sizeof hash);
    keyring_table_fini(&keyring->known);
    keyring->known = table;
    drop_trusted(keyring);
}

/* ---- create and destroy ------------------------------------------------- */

static int no_own_file(const struct keyring *keyring,
                       const struct keyring_owner *owner)
{
    char which[32] = "--enrolment";
    if (!owner->enrolment)
        (void)snprintf(which, sizeof which, "--id %" PRIu32, owner->id);
    return ls_error(LS_ENOENT,
                    "%s has no %s: make it by \"lockstep keygen %s %s\", or "
                    "copy it here from where it was made",
                    keyring->folder, keyring->own.file, keyring->folder, which);
}

/* bytes: CERTIFICATE_MAX + 1. */
static int read_own_file(const struct keyring *keyring,
                         const struct keyring_owner *owner, char *bytes,
                         size_t *size)
{
    struct guarded_folder folder;
    int status = guarded_open(&folder, keyring->folder, GUARD_WRITING, false);
    if (status == LS_OK)
        status = guarded_read(&folder, keyring->own.file, GUARD_ALL, bytes,
                              CERTIFICATE_MAX, size);
    if (status == LS_ENOENT && folder.fd >= 0)
        status = no_own_file(keyring, owner);
    guarded_close(&folder);
    return status;
}

/* That the certificate in the file is its owner's. */
static int check_owner(const struct certificate *certificate,
                       const struct keyring_owner *owner)
{
    if (certificate->enrolment != owner->enrolment && owner->enrolment)
        return ls_error(LS_EPROTO, "it is not the enrolment key");
    if (!owner->enrolment &&
        (certificate->enrolment || certificate->id != owner->id))
        return ls_error(LS_EPROTO, "it is not of node %" PRIu32, owner->id);
    return LS_OK;
}

static int read_own_certificate(struct keyring *keyring,
                                const struct keyring_owner *owner,
                                struct certificate_secret *secret)
{
    struct keyring_entry *own = &keyring->own;
    char bytes[CERTIFICATE_MAX + 1];
    size_t size = 0;
    if (owner->enrolment)
        (void)snprintf(own->file, sizeof own->file, ENROLMENT_FILE "_secret");
    else
        (void)snprintf(own->file, sizeof own->file,
                       "node-%" PRIu32 ".cert_secret", owner->id);
    int status = read_own_file(keyring, owner, bytes, &size);
    if (status == LS_OK) {
        status =
            certificate_read_secret(bytes, size, &own->certificate, secret);
        if (status == LS_OK)
            status = check_owner(&own->certificate, owner);
        if (status != LS_OK)
            status = ls_error_at(status == LS_EPROTO ? LS_ECONFIG : status,
                                 "%s/%s", keyring->folder, own->file);
    }
    sodium_memzero(bytes, sizeof bytes);
    return status;
}

static int read_own(struct keyring *keyring, const struct keyring_owner *owner,
                    struct certificate_secret *secret)
{
    struct keyring_entry *own = &keyring->own;
    own->signs = true;
    if (owner->path == NULL)
        return read_own_certificate(keyring, owner, secret);
    own->certificate.id = owner->id;
    const char *slash = strrchr(owner->path, '/');
    (void)snprintf(own->file, sizeof own->file, "%s",
                   slash != NULL ? slash + 1 : owner->path);
    return key_file_read(owner->path, &own->certificate, secret);
}

/* The folder is read again when this process may be somewhere else. */
static int set_folder(struct keyring *keyring, const char *folder)
{
    char here[GUARDED_PATH_MAX] = "";
    if (folder == NULL || folder[0] == '\0')
        return ls_error(LS_EINVAL, "no folder of certificates is named");
    if (folder[0] != '/' && getcwd(here, sizeof here) == NULL)
        return ls_error_from(errno, "finding the current folder");
    const size_t size = sizeof keyring->folder;
    const int n = snprintf(keyring->folder, size, "%s%s%s", here,
                           here[0] != '\0' ? "/" : "", folder);
    if ((size_t)n >= size)
        return ls_error(LS_EINVAL,
                        "the path of a folder of certificates has "
                        "%d bytes; at most are %zu",
                        n, size - 1);
    return LS_OK;
}

static int create(struct keyring *keyring, const char *folder,
                  const struct keyring_owner *owner,
                  struct certificate_secret *secret)
{
    int status = set_folder(keyring, folder);
    if (status == LS_OK)
        status = read_own(keyring, owner, secret);
    if (status == LS_OK)
        status = read_folder(keyring, &keyring->known, keyring->hash);
    return status;
}

int keyring_create(struct keyring **out, ls_runtime *clock, const char *folder,
                   const struct keyring_owner *owner,
                   struct certificate_secret *secret)
{
    struct keyring *keyring = calloc(1, sizeof *keyring);
    if (keyring == NULL)
        return ls_error(LS_ENOMEM, "no memory for keys");
    int status = ls_mutex_init(&keyring->lock, ls_runtime_threads());
    keyring->clock = clock;
    keyring->looked_at = ls_now(clock);
    if (status == LS_OK)
        status = create(keyring, folder, owner, secret);
    if (status != LS_OK) {
        ls_mutex_fini(&keyring->lock);
        free(keyring);
        return status;
    }
    keyring_table_init(&keyring->trusted);
    *out = keyring;
    return LS_OK;
}

void keyring_destroy(struct keyring **keyring)
{
    if (keyring == NULL || *keyring == NULL)
        return;
    keyring_table_fini(&(*keyring)->known);
    keyring_table_fini(&(*keyring)->trusted);
    ls_mutex_fini(&(*keyring)->lock);
    free(*keyring);
    *keyring = NULL;
}

/* ---- finding ------------------------------------------------------------ */

/* By key where there is one, else by id. */
static const struct keyring_entry *find_now(const struct keyring *keyring,
                                            uint32_t id, const char *key)
{
    const struct keyring_table *tables[] = {&keyring->known, &keyring->trusted};
    const struct keyring_entry *found = NULL;
    for (size_t i = 0; i < 2 && found == NULL; i++)
        found = key != NULL ? keyring_table_key(tables[i], key)
                            : keyring_table_id(tables[i], id);
    return found;
}

/* look: also when it is known, for it may have been taken away or replaced. */
static bool find(struct keyring *keyring, uint32_t id, const char *key,
                 bool look, struct keyring_found *out)
{
    ls_mutex_lock(&keyring->lock);
    const struct keyring_entry *found = find_now(keyring, id, key);
    if (found == NULL || look) {
        look_again(keyring);
        found = find_now(keyring, id, key);
    }
    if (found != NULL)
        *out = (struct keyring_found){.certificate = found->certificate,
                                      .signs = found->signs};
    ls_mutex_unlock(&keyring->lock);
    return found != NULL;
}

bool keyring_find_id(struct keyring *keyring, uint32_t id, bool look,
                     struct keyring_found *out)
{
    return find(keyring, id, NULL, look, out);
}

bool keyring_find_key(struct keyring *keyring, const uint8_t key[KEY_BYTES],
                      struct keyring_found *out)
{
    char text[CREDENTIALS_KEY_MAX];
    key_write(key, text);
    return find(keyring, 0, text, true, out);
}

bool keyring_find_enrolment(struct keyring *keyring, struct keyring_found *out)
{
    ls_mutex_lock(&keyring->lock);
    const struct keyring_entry *entry = zhashx_first(keyring->known.by_key);
    while (entry != NULL && strcmp(entry->file, ENROLMENT_FILE) != 0)
        entry = zhashx_next(keyring->known.by_key);
    if (entry != NULL)
        *out = (struct keyring_found){.certificate = entry->certificate,
                                      .signs = entry->signs};
    ls_mutex_unlock(&keyring->lock);
    return entry != NULL;
}

/* ---- trusting ----------------------------------------------------------- */

static int check_trust(const struct keyring *keyring, uint32_t id,
                       const char *public_key)
{
    if (keyring_table_id(&keyring->known, id) != NULL)
        return ls_error(LS_EEXIST,
                        "%s has a certificate of node %" PRIu32 ", which is "
                        "not replaced",
                        keyring->folder, id);
    if (keyring_table_key(&keyring->known, public_key) != NULL)
        return ls_error(LS_EMISMATCH, "%s has a certificate with this key",
                        keyring->folder);
    const struct keyring_entry *there =
        keyring_table_key(&keyring->trusted, public_key);
    if (there != NULL && there->certificate.id != id)
        return ls_error(LS_EMISMATCH,
                        "this key is trusted as that of node %" PRIu32,
                        there->certificate.id);
    return LS_OK;
}

int keyring_trust(struct keyring *keyring, uint32_t id, const char *public_key)
{
    struct keyring_entry entry = {.certificate = {.id = id}};
    uint8_t key[KEY_BYTES];
    if (public_key == NULL || !key_read(public_key, key))
        return ls_error(LS_EINVAL, "a public key must be 40 characters of Z85");
    memcpy(entry.certificate.public_key, public_key,
           sizeof entry.certificate.public_key);
    ls_mutex_lock(&keyring->lock);
    int status = check_trust(keyring, id, public_key);
    struct keyring_entry *before = keyring_table_id(&keyring->trusted, id);
    if (status == LS_OK && before != NULL)
        keyring_table_remove(&keyring->trusted, before);
    if (status == LS_OK)
        status = keyring_table_put(&keyring->trusted, &entry, keyring->folder);
    ls_mutex_unlock(&keyring->lock);
    return status;
}

void keyring_distrust(struct keyring *keyring, uint32_t id)
{
    ls_mutex_lock(&keyring->lock);
    struct keyring_entry *there = keyring_table_id(&keyring->trusted, id);
    if (there != NULL)
        keyring_table_remove(&keyring->trusted, there);
    ls_mutex_unlock(&keyring->lock);
}

const struct certificate *keyring_own(const struct keyring *keyring)
{
    return &keyring->own.certificate;
}

const char *keyring_folder(const struct keyring *keyring)
{
    return keyring->folder;
}
