/* store_files.h - a store that is a folder, or one for data and one for
 * policies, which all nodes share.
 *
 * It is a vault (lockstep/vault.h): a value is an entry of its name, or of
 * NAME~RANK, so readers need neither locks nor second tries, and what was cut
 * short or damaged is seen as that.
 * Thread: as store.h says; any number of processes. */
#ifndef LOCKSTEP_STORE_FILES_H
#define LOCKSTEP_STORE_FILES_H

#include "store.h"

struct store_files_options {
    const char *folder;   /* copied; made, with those above it, unless: */
    const char *policies; /* the same, of policies; NULL: the same folder */
    bool found;           /* another makes it, and clears it of leftovers */
    size_t max_bytes;     /* of one value; 0: default 1 GiB */
};

/* Open it, and remove what killed writers of this host left unfinished.
 * What is put with `keep` is on disk when the put returns.
 * out:    own; written on success only; give it to store_close().
 * Errors: LS_EIO, which names the folder; LS_ELIMIT its path is too long;
 *         LS_ENOMEM. */
LS_MUST_USE int store_files_open(struct store **out,
                                 const struct store_files_options *options);

/* Call fn with each name that is in `folder`, in no order, until it fails.
 * store:  one of store_files_open().
 * Errors: LS_ENOENT the folder is gone; what fn returns. */
LS_MUST_USE int store_files_each(struct store *store,
                                 int (*fn)(void *self, const char *name),
                                 void *self);

#endif
