/* config.h - a YAML file, read by requesting what is expected.
 *
 * Each getter names a key, its default and its range. The keys requested are
 * the keys that the file may contain. After all have been requested,
 * ls_config_finish() reports every problem at once: wrong types, values out of
 * range, missing keys, and keys that were not requested, each as
 *   cartpole.yaml:7:5: unknown key "colector"; did you mean "collector"?
 *     7 |     colector: {steps: 64}
 *       |     ^
 * A getter that finds a problem notes it and returns the default, so reading
 * code needs no checks.
 *
 * The types are those of YAML 1.2: yes, no, on and off are text, 010 is ten. A
 * number is not text, and quoted text is not a number. A section or list with
 * nothing after its key is empty. Aliases and << are expanded; tags,
 * directives, and lines that begin with "? " are refused. A file holds at most
 * 16,384 values in 32 levels, including the expansion of aliases.
 * Thread: serial.
 * Source: YAML 1.2.2, 10.3 (core schema); yaml.org/type/merge.html. */
#ifndef LOCKSTEP_CONFIG_H
#define LOCKSTEP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/codec.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file, and all problems noted about it. */
typedef struct ls_config ls_config;

/* A mapping in it, or a place where one could be: getters on a section that the
 * file lacks return their defaults. Borrow: from the file. */
typedef struct ls_config_section ls_config_section;

/* Read a file; at most 1 MiB. An empty one is an empty mapping.
 * out:    own; NULL after an error; give it to ls_config_destroy().
 * Errors: LS_ENOENT no such file; LS_EIO; LS_ECONFIG not YAML (with the line
 *         and a caret), its top is not a mapping, or it is too long, too deep
 *         or has too many values; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_config_load(ls_config **out, const char *path);

/* The same from a string; `name` stands for the file in messages. */
LS_MUST_USE LS_API int ls_config_parse(ls_config **out, const char *name,
                                       const char *text);
LS_API void ls_config_destroy(ls_config **config);

LS_API ls_config_section *ls_config_root(ls_config *config);

/* Replace or add a value before it is read, as `--set learner.lr=0.1` does.
 * path:   keys joined by dots; list items by number ("nodes.0.bind"). Missing
 *         mappings on the path are created, missing list items are not.
 * value:  YAML, so "3", "true" and "[a, b]" have their usual meaning. Reports
 *         of problems with it name the path in place of a file.
 * Errors: LS_EINVAL the path does not lead through mappings and lists, or
 *         value is not YAML; LS_ESTATE something has been read already;
 *         LS_ELIMIT; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_config_set(ls_config *config, const char *path,
                                     const char *value);

/* Whether the file has this key. Counts as requesting it. */
LS_API bool ls_config_has(ls_config_section *section, const char *key);

/* A whole number in [min, max]. */
LS_API int64_t ls_config_int(ls_config_section *section, const char *key,
                             int64_t fallback, int64_t min, int64_t max);
/* A finite number in [min, max]. */
LS_API double ls_config_double(ls_config_section *section, const char *key,
                               double fallback, double min, double max);
/* true or false. */
LS_API bool ls_config_bool(ls_config_section *section, const char *key,
                           bool fallback);
/* Text. Borrow: from the file. fallback may be NULL. */
LS_API const char *ls_config_string(ls_config_section *section, const char *key,
                                    const char *fallback);
/* One of names[] (ends with NULL), as written in the file, so "1" may be a
 * name; returns its index. The report of a near miss suggests the name. */
LS_API int ls_config_choice(ls_config_section *section, const char *key,
                            int fallback, const char *const *names);
/* A list of texts; a single text counts as a list of one. Returns the number (0
 * if one of them is not text); ls_config_string_at() returns an item, NULL if
 * there is none. */
LS_API size_t ls_config_n_strings(ls_config_section *section, const char *key);
LS_API const char *ls_config_string_at(ls_config_section *section,
                                       const char *key, size_t index);
/* The mapping under key; never NULL. */
LS_API ls_config_section *ls_config_section_at(ls_config_section *section,
                                               const char *key);
/* A list of mappings: how many, and each; never NULL. */
LS_API size_t ls_config_n_sections(ls_config_section *section, const char *key);
LS_API ls_config_section *ls_config_item(ls_config_section *section,
                                         const char *key, size_t index);

/* Note a problem that the caller has found, at the place of `key` (NULL: of the
 * section itself). */
LS_API void ls_config_problem(ls_config_section *section, const char *key,
                              const char *format, ...) LS_PRINTF(3, 4);

/* Note that the key is required; true if it is there. Nothing is reported below
 * a section that has the wrong type. */
LS_API bool ls_config_require(ls_config_section *section, const char *key);

/* Count every key below this section as requested: for parts that another
 * program reads. */
LS_API void ls_config_accept_all(ls_config_section *section);

/* Call it after all requests, to report.
 * Errors: LS_ECONFIG; ls_config_report() has every problem, ls_error_text()
 *         the first; LS_ENOMEM now, or in a getter before. */
LS_MUST_USE LS_API int ls_config_finish(ls_config *config);

/* Every problem that ls_config_finish() found, by line (at most 1,000, then the
 * number of others); "" if there is none. Borrow: until finished again. */
LS_API const char *ls_config_report(const ls_config *config);

/* A hash of the file's meaning, including values set: independent of layout and
 * key order, different for any other value. 16 and 0x10 are equal, and so are
 * 1.0 and 1.00; 1, 1.0 and "1" are not. For comparing two nodes' settings. */
LS_API uint64_t ls_config_hash(const ls_config *config);

/* The same for one section; a missing one counts as empty. */
LS_API uint64_t ls_config_section_hash(const ls_config_section *section);

/* Write all of it as one map. JSON is YAML too, so this converts JSON to
 * msgpack; ls_config_parse() has already reported any errors in it. */
LS_API void ls_config_write(const ls_config *config, ls_writer *out);

/* The same for one section; a missing one, or NULL, is an empty map. */
LS_API void ls_config_section_write(const ls_config_section *section,
                                    ls_writer *out);

/* The word of names[n] nearest to `word`, if it is near enough to be what was
 * meant (edit distance at most a third of its length, at least 1, but less than
 * all of it; swapping two letters counts 1); or NULL. */
LS_API const char *ls_nearest(const char *word, const char *const *names,
                              size_t n);

#ifdef __cplusplus
}
#endif

#endif
