/* blobs.h - what a node's state is made of: named blobs.
 *
 * A blob is an array of numbers with a type and a shape, or bytes of any
 * number. Who owns the memory registers it, once; a checkpoint
 * (lockstep/checkpoint.h) then saves and loads all of them, or some by name.
 * Either the blob is a piece of the owner's memory, or two functions write and
 * read it, piece by piece.
 *
 * A global blob is part of a checkpoint. A private one belongs to one run of a
 * task and never is.
 *
 * Names are those of a vault: 1 to LS_VAULT_NAME_MAX bytes of
 * [A-Za-z0-9._@~-], without a dot at the beginning, and not "blob_names".
 * Thread: serial. */
#ifndef LOCKSTEP_BLOBS_H
#define LOCKSTEP_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"
#include "lockstep/vault.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LS_BLOB_DIMS_MAX 8
#define LS_BLOBS_MAX     (LS_VAULT_SHARDS_MAX - 1) /* of a node, global ones */
/* Room for "f32[3,4]", its NUL included. */
#define LS_BLOB_FORM_TEXT_MAX 192

enum ls_blob_type {
    LS_BLOB_BYTES, /* no array: any bytes */
    LS_BLOB_U8,
    LS_BLOB_I32,
    LS_BLOB_I64,
    LS_BLOB_F32,
    LS_BLOB_F64
};

/* Numbers are in the machine's order, which must be little-endian, and in C
 * order: row after row. */
struct ls_blob_form {
    enum ls_blob_type type;
    size_t n_dims;                    /* 0: one number; of bytes: always 1 */
    uint64_t shape[LS_BLOB_DIMS_MAX]; /* each may be 0; of bytes: how many */
};

/* "f32", "bytes"; NULL: there is no such type. */
LS_API const char *ls_blob_type_name(enum ls_blob_type type);
/* false: there is none of this name. */
LS_API bool ls_blob_type_read(const char *name, enum ls_blob_type *out);
/* Its size in bytes.
 * Errors: LS_EINVAL no such type, too many dimensions, over INT64_MAX bytes. */
LS_MUST_USE LS_API int ls_blob_form_bytes(const struct ls_blob_form *form,
                                          uint64_t *out);
/* "f32[3,4]", "i64", "bytes[17]". Returns text. */
LS_API const char *ls_blob_form_print(const struct ls_blob_form *form,
                                      char text[LS_BLOB_FORM_TEXT_MAX]);

/* Where a save writes to. */
typedef struct ls_blob_sink ls_blob_sink;
/* Append. Errors: LS_ELIMIT more bytes than the blob has; those of the disk,
 * to be returned. */
LS_MUST_USE LS_API int ls_blob_sink_add(ls_blob_sink *sink, const void *data,
                                        size_t size);

/* What a load reads from. */
typedef struct ls_blob_source ls_blob_source;
LS_API uint64_t ls_blob_source_size(const ls_blob_source *source);
/* Read the next `size` bytes, all of them.
 * Errors: LS_EPROTO fewer are left, or they are damaged; those of the disk. All
 *         to be returned. */
LS_MUST_USE LS_API int ls_blob_source_read(ls_blob_source *source, void *data,
                                           size_t size);

struct ls_blob_ops {
    /* How many bytes save() will write: called before it in each save. What has
     * to be encoded is encoded here. Of bytes only; NULL: as many as the shape
     * says. */
    int (*size)(void *self, uint64_t *out);
    /* Write all of it; it stays unchanged meanwhile. */
    int (*save)(void *self, ls_blob_sink *sink);
    /* Read all of it. The bytes are known to be whole only when it has read the
     * last of them. After an error, here or of another blob, the state is to be
     * loaded again, or discarded. */
    int (*load)(void *self, ls_blob_source *source);
};

struct ls_blob {
    const char *name; /* copied */
    struct ls_blob_form form;
    bool is_private;               /* to a run: not saved */
    void *memory;                  /* borrow; NULL: ops */
    const struct ls_blob_ops *ops; /* borrow */
    void *self;                    /* borrow: for ops */
};

typedef struct ls_blobs ls_blobs;

/* out: own; NULL after an error; give it to ls_blobs_destroy().
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_blobs_create(ls_blobs **out);
LS_API void ls_blobs_destroy(ls_blobs **blobs);

/* Register one; order is kept. Memory has the size that its form says.
 * With ops that have size(), n_dims and shape are ignored, and a blob of any
 * size is loaded.
 * Errors: LS_EINVAL the name or the form is none, both or neither of memory and
 *         ops, size() of what is not bytes; LS_EEXIST there is one of this
 *         name; LS_ELIMIT too many global ones; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_blobs_add(ls_blobs *blobs,
                                    const struct ls_blob *blob);
/* Errors: LS_ENOENT there is none of this name. */
LS_API int ls_blobs_remove(ls_blobs *blobs, const char *name);
/* All private ones: their run is over. */
LS_API void ls_blobs_remove_private(ls_blobs *blobs);

LS_API size_t ls_blobs_n(const ls_blobs *blobs);
/* Borrow: until one is added or removed. NULL: there is none. */
LS_API const struct ls_blob *ls_blobs_at(const ls_blobs *blobs, size_t at);
LS_API const struct ls_blob *ls_blobs_find(const ls_blobs *blobs,
                                           const char *name);

/* ---- as bytes, for a message --------------------------------------------- */

/* The bytes of one blob, as a checkpoint has them: to send them to another
 * node. data:   own: free() it; never NULL. Errors: what its ops return;
 * LS_ENOMEM. */
LS_MUST_USE LS_API int ls_blob_pack(const struct ls_blob *blob, void **data,
                                    size_t *size);
/* Load them.
 * Errors: LS_EMISMATCH there are more or fewer than its form has; what its ops
 *         return: the state is then to be loaded again, or discarded. */
LS_MUST_USE LS_API int ls_blob_unpack(const struct ls_blob *blob,
                                      const void *data, size_t size);

/* All global ones, with their names and forms.
 * data:   own: free() it. Written on success only.
 * Errors: what a blob's ops return; LS_EINVAL over INT64_MAX bytes together;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_blobs_pack(const ls_blobs *blobs, void **data,
                                     size_t *size);
/* Load them.
 * Errors: LS_EPROTO the bytes are none of that kind; LS_ENOENT and LS_EMISMATCH
 *         they do not fit, as of ls_checkpoints_load(): until here nothing was
 *         changed; what a blob's ops return. */
LS_MUST_USE LS_API int ls_blobs_unpack(const ls_blobs *blobs, const void *data,
                                       size_t size);
/* Blobs whose memory is in these bytes, to be saved as they are.
 * data:   borrow: until out is destroyed.
 * out:    own; written on success only.
 * Errors: LS_EPROTO; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_blobs_view(ls_blobs **out, const void *data,
                                     size_t size);

#ifdef __cplusplus
}
#endif

#endif
