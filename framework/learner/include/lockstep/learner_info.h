/* learner_info.h - figures of training: named numbers, reduced.
 *
 * Numbers of one name become one: the mean, or for a name that begins with
 * "min_" or "max_" the minimum or the maximum. A NaN is ignored; the result is
 * NaN if there is no other number. TD errors, one for each sample, are joined
 * in the order in which they are added. So an info can accumulate others: over
 * devices, over passes.
 * Thread: serial. */
#ifndef LOCKSTEP_LEARNER_INFO_H
#define LOCKSTEP_LEARNER_INFO_H

#include <stddef.h>

#include "lockstep/codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most names that an info holds. */
#define LS_LEARNER_INFO_MAX 32

typedef struct ls_learner_info ls_learner_info;

/* out: own; empty. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_learner_info_create(ls_learner_info **out);
/* NULL and a pointer to NULL are fine. */
LS_API void ls_learner_info_destroy(ls_learner_info **info);

/* Remove everything; the memory is kept. */
LS_API void ls_learner_info_clear(ls_learner_info *info);

/* Add a number.
 * name:   borrow, as long as this info and all that it is added to: a static
 *         text.
 * Errors: LS_ELIMIT: it has LS_LEARNER_INFO_MAX other names. */
LS_MUST_USE LS_API int ls_learner_info_add(ls_learner_info *info,
                                           const char *name, double value);

/* Append n TD errors. values: copied.
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_learner_info_add_td_errors(ls_learner_info *info,
                                                     const double *values,
                                                     size_t n);

/* Add everything that was added to `from`, which may be `info` itself.
 * Errors: LS_ELIMIT, LS_ENOMEM; info may then have some of it. */
LS_MUST_USE LS_API int ls_learner_info_merge(ls_learner_info *info,
                                             const ls_learner_info *from);

/* Exchange what two infos hold. */
LS_API void ls_learner_info_swap(ls_learner_info *one, ls_learner_info *other);

/* The number of names, and each name in the order of its first number, with
 * what its numbers came to. NULL and NaN: there are not so many. */
LS_API size_t ls_learner_info_count(const ls_learner_info *info);
LS_API const char *ls_learner_info_name(const ls_learner_info *info,
                                        size_t index);
LS_API double ls_learner_info_value(const ls_learner_info *info, size_t index);

/* The number of that name; NaN if there is none. */
LS_API double ls_learner_info_get(const ls_learner_info *info,
                                  const char *name);

/* Borrow: until the info is changed. NULL when *n is 0. */
LS_API const double *ls_learner_info_td_errors(const ls_learner_info *info,
                                               size_t *n);

/* Write a map of names and numbers; if there are TD errors, also "td_error", an
 * array, in place of a number of that name. */
LS_API void ls_learner_info_write(const ls_learner_info *info,
                                  ls_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
