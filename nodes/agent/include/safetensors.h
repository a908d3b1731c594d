/* safetensors.h - tensors as a file that other programs load.
 *
 * The format is eight bytes, the size of the header; the header, which is JSON
 * and padded with blanks to a multiple of eight; then the numbers of each
 * tensor, little-endian, row after row, one after another.
 * Thread: serial.
 * Source: https://github.com/huggingface/safetensors, "Format". */
#ifndef LOCKSTEP_SAFETENSORS_H
#define LOCKSTEP_SAFETENSORS_H

#include "lockstep/blobs.h"
#include "lockstep/plugin.h"

struct safetensors_tensor {
    const char *name;         /* borrow; UTF-8, unique in its file */
    struct ls_blob_form form; /* bytes go out as U8 */
    const void *data;         /* borrow */
};

/* The type's name there: F32, F64, I32, I64, U8. */
const char *safetensors_type(enum ls_blob_type type);

/* What a policy acts by, in this form. out borrows from the tensor.
 * Errors: LS_EHANDLER it has no name that ends, or no shape of plugin.h. */
LS_MUST_USE int safetensors_of(const struct ls_tensor *tensor,
                               struct safetensors_tensor *out);

/* Make `path` this file; whoever opens it sees all of it, or what was there
 * before.
 * tensors: n of them.
 * notes:   n_notes texts under which keys, for "__metadata__"; UTF-8.
 * Errors:  LS_EHANDLER a tensor has no name, that of another or a reserved one,
 *          or is not UTF-8, or its form is not one; LS_EIO it cannot be
 *          written; LS_ELIMIT the path is too long; LS_ENOMEM. */
struct safetensors_note {
    const char *key, *value;
};
LS_MUST_USE int safetensors_write(const char *path,
                                  const struct safetensors_tensor *tensors,
                                  size_t n,
                                  const struct safetensors_note *notes,
                                  size_t n_notes);

#endif
