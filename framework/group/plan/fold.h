/* fold.h - numbers of several ranks made into one, always in the order of the
 * ranks: ((0 and 1) and 2) and so on, whatever way they come.
 * Thread: any. */
#ifndef GROUP_FOLD_H
#define GROUP_FOLD_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/group.h"

/* to[i] = left[i] and right[i]; `to` may be either of them. A mean is a sum
 * until fold_end(). */
void fold_two(enum ls_group_type type, enum ls_group_fold fold, void *to,
              const void *left, const void *right, size_t count);

/* Make the folds of all n ranks what the caller asked for. */
void fold_end(enum ls_group_type type, enum ls_group_fold fold, void *numbers,
              size_t count, uint32_t n);

#endif
