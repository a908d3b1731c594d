/* safetensors.h - tensors as a file that other programs load.
 *
 * The format is eight bytes, the size of the header; the header, which is JSON
 * and padded with blanks to a multiple of eight; then the numbers of each
 * tensor, little-endian, row after row, one after another.
 * Thread: serial.
 * Source: https://github.com/huggingface/safetensors, "Format". */
#ifndef LOCKSTEP_SAFETENSORS_H
#define LOCKSTEP_SAFETENSORS_H

#include "lockstep/plugin.h"

/* Its name there: F32, F64, I32, U8. */
const char *safetensors_type(enum ls_element type);

/* Make `path` this file; whoever opens it sees all of it, or what was there
 * before.
 * tensors: n of them; the data is borrowed.
 * notes:   n_notes texts under which keys, for "__metadata__"; UTF-8.
 * Errors:  LS_EHANDLER a tensor has no name, that of another or a reserved one,
 *          or is not UTF-8, or its shape is not one; LS_EIO it cannot be
 *          written; LS_ELIMIT the path is too long; LS_ENOMEM. */
struct safetensors_note {
    const char *key, *value;
};
LS_MUST_USE int safetensors_write(const char *path,
                                  const struct ls_tensor *tensors, size_t n,
                                  const struct safetensors_note *notes,
                                  size_t n_notes);

#endif
