/* keyring_folder.h - the certificates in a folder, as two tables.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_KEYRING_FOLDER_H
#define LOCKSTEP_BUS_KEYRING_FOLDER_H

#include <czmq.h>

#include "certificate.h"
#include "guarded.h"

#define KEYRING_HASH_BYTES 32
#define KEYRING_FILES_MAX  16384

/* A certificate, and where it comes from. */
struct keyring_entry {
    struct certificate certificate;
    bool signs;
    char file[256]; /* its name; "": it was trusted */
};

/* All of them. */
struct keyring_table {
    zhashx_t *by_key; /* own; Z85 text to struct keyring_entry, own */
    zhashx_t *by_id;  /* own; decimal text to those of by_key that have an id */
};

void keyring_table_init(struct keyring_table *table);
void keyring_table_fini(struct keyring_table *table);

struct keyring_entry *keyring_table_id(const struct keyring_table *table,
                                       uint32_t id);
struct keyring_entry *keyring_table_key(const struct keyring_table *table,
                                        const char *public_key);

/* Copy an entry into the table. Errors: LS_ECONFIG id or key are there: names
 * both files; LS_ENOMEM. */
LS_MUST_USE int keyring_table_put(struct keyring_table *table,
                                  const struct keyring_entry *entry,
                                  const char *folder);
void keyring_table_remove(struct keyring_table *table,
                          struct keyring_entry *entry);

/* Read all *.cert of a folder.
 * into:   NULL: only the hash. Files that are not certificates are left out,
 *         with a warning each.
 * hash:   of the names and contents of all of them, or of what went wrong;
 *         always written.
 * Errors: LS_ECONFIG, LS_ENOENT, LS_ELIMIT, LS_EIO, LS_ENOMEM. */
LS_MUST_USE int keyring_folder_read(const char *path,
                                    struct keyring_table *into,
                                    uint8_t hash[KEYRING_HASH_BYTES]);

#endif
