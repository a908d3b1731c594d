/* blob_flow.h - how the bytes of a blob get from its owner to a checkpoint, and
 * back. Thread: serial. */
#ifndef LOCKSTEP_STATE_BLOB_FLOW_H
#define LOCKSTEP_STATE_BLOB_FLOW_H

#include "lockstep/blobs.h"

/* Pieces in which memory is written and read: they stay in the cache between
 * the disk and the checksum. */
#define BLOB_PIECE (256u << 10)

struct ls_blob_sink {
    int (*add)(void *self, const void *data, size_t size); /* size: not 0 */
    void *self;
    const char *name; /* of the blob */
    uint64_t left;
};

struct ls_blob_source {
    int (*read)(void *self, void *data, size_t size); /* size: not 0 */
    void *self;
    const char *name;
    uint64_t size, left;
};

/* Its form as it will be saved now. */
int blob_measure(const struct ls_blob *blob, struct ls_blob_form *out);
/* Write all of it; sink: add, self and left, its size, are set.
 * Errors: LS_EHANDLER save() wrote less; what it returns, with its name. */
int blob_save(const struct ls_blob *blob, ls_blob_sink *sink);
/* An `add` into memory; self: where, an unsigned char **, which moves on. */
int blob_copy(void *self, const void *data, size_t size);
/* Read all of it; source: read, self and size are set.
 * Errors: LS_EHANDLER load() left some; what it returns, with its name. */
int blob_load(const struct ls_blob *blob, ls_blob_source *source);
/* Whether what was saved as `found` can be loaded. Errors: LS_EMISMATCH. */
int blob_check_form(const struct ls_blob *blob,
                    const struct ls_blob_form *found);

#endif
