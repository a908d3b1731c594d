/* options_parts.h - what the files of options share. */
#ifndef LOCKSTEP_OPTIONS_PARTS_H
#define LOCKSTEP_OPTIONS_PARTS_H

#include "options.h"

/* The value of an option, a whole number or seconds. Errors: LS_EINVAL. */
LS_MUST_USE int options_whole(const char *name, const char *text, uint64_t min,
                              uint64_t max, uint64_t *out);
LS_MUST_USE int options_seconds(const char *name, const char *text,
                                double *out);

/* Those of bench: the defaults; an option; a word; and whether all is there.
 * Errors: LS_EINVAL. */
void options_bench_init(struct options *out);
LS_MUST_USE int options_bench(struct options *out, const char *name,
                              const char *text);
LS_MUST_USE int options_bench_word(struct options *out, const char *text);
LS_MUST_USE int options_bench_complete(const struct options *options);

/* Those of keygen: --id, which may come several times; a word; and whether all
 * is there. Errors: LS_EINVAL. */
LS_MUST_USE int options_keygen_id(struct options *out, const char *text);
LS_MUST_USE int options_keygen_word(struct options *out, const char *text);
LS_MUST_USE int options_keygen_complete(const struct options *options);

#endif
