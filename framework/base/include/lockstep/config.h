/* config.h - a YAML file, read by asking for what is expected.
 *
 * Each getter names a key, its default and its range. What is asked for is
 * what the file may contain: after everything has been asked, ls_config_finish
 * reports every problem at once: wrong types, values out of range, missing
 * keys, and keys that nobody asked for, each as
 *   cartpole.yaml:7:5: unknown key "colector"; did you mean "collector"?
 *     7 |     colector: {steps: 64}
 *       |     ^
 * A getter that meets a problem notes it and returns the default, so reading
 * code runs straight through.
 *
 * The words of YAML 1.2: yes, no, on and off are text, 010 is ten. A number is
 * no text, a text in quotes no number. A section or list with nothing behind
 * its key is empty. Aliases and << are written out; tags, directives, and lines
 * that begin with "? ", are refused. A file holds 16,384 values in 32 levels at
 * most, counted with what aliases repeat.
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

/* A file, and all that was noted about it. */
typedef struct ls_config ls_config;

/* A mapping in it, or a place where one could be: getters on a section that
 * the file does not have return their defaults. Borrow: from the file. */
typedef struct ls_config_section ls_config_section;

/* Read a file; at most 1 MiB. An empty one is an empty mapping.
 * out:    own; NULL after an error; give it to ls_config_destroy().
 * Errors: LS_ENOENT no such file; LS_EIO; LS_ECONFIG not YAML (with the line
 *         and a caret), or its top is not a mapping; LS_ELIMIT; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_config_load(ls_config **out, const char *path);

/* The same from a string; `name` stands for the file in messages. */
LS_MUST_USE LS_API int ls_config_parse(ls_config **out, const char *name,
                                       const char *text);
LS_API void ls_config_destroy(ls_config **config);

LS_API ls_config_section *ls_config_root(ls_config *config);

/* Replace or add a value before it is read, as `--set learner.lr=0.1` does.
 * path: keys joined by dots; list items by number ("nodes.0.bind").
 *        Mappings that are missing on the way are made, list items are not.
 * value: YAML, so "3", "true" and "[a, b]" have their usual meaning. Problems
 *        with it are reported at the path, in place of a file.
 * Errors: LS_EINVAL the path does not lead through mappings and lists, or
 *         value is not YAML; LS_ESTATE something was read already; LS_ELIMIT;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_config_set(ls_config *config, const char *path,
                                     const char *value);

/* Whether the file has this key (which is thereby asked for). */
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
/* One of names[] (ends with NULL), as it is written in the file, so "1" may be
 * a name; returns its index. A value near one of them gets the suggestion. */
LS_API int ls_config_choice(ls_config_section *section, const char *key,
                            int fallback, const char *const *names);
/* A list of texts; a single text counts as a list of one. Returns how many (0
 * when one of them is no text); items by ls_config_string_at(), NULL when there
 * is none. */
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

/* Note a problem of the caller's own finding, at the place of `key` (NULL:
 * of the section itself). */
LS_API void ls_config_problem(ls_config_section *section, const char *key,
                              const char *format, ...) LS_PRINTF(3, 4);

/* Note that the key must be there; true when it is. What stands below a section
 * that is of another type is not missed. */
LS_API bool ls_config_require(ls_config_section *section, const char *key);

/* Take every key below this section as asked for: for parts that another
 * program reads. */
LS_API void ls_config_accept_all(ls_config_section *section);

/* All asked: report.
 * Errors: LS_ECONFIG; ls_config_report() has every problem, ls_error_text()
 *         the first; LS_ENOMEM now, or in a getter before. */
LS_MUST_USE LS_API int ls_config_finish(ls_config *config);

/* Every problem that ls_config_finish() found, by line (1,000 at most, then how
 * many more); "" when there is none. Borrow: until finished again. */
LS_API const char *ls_config_report(const ls_config *config);

/* A hash of the file's meaning, with what was set: the same for another layout
 * or key order, another for any other value. 16 and 0x10 are equal, and 1.0 and
 * 1.00; 1, 1.0 and "1" are not. For comparing two nodes' settings. */
LS_API uint64_t ls_config_hash(const ls_config *config);

/* The same of one section; one that the file does not have is as an empty one.
 */
LS_API uint64_t ls_config_section_hash(const ls_config_section *section);

/* Write all of it as one map. JSON is YAML too, so this takes JSON to msgpack
 * bytes; what is wrong in it has then been said by ls_config_parse(). */
LS_API void ls_config_write(const ls_config *config, ls_writer *out);

/* The word of names[n] nearest to `word`, if it is near enough to be what was
 * meant (edit distance at most a third of its length, 1 at least, but less than
 * all of it; two letters swapped count 1); or NULL. */
LS_API const char *ls_nearest(const char *word, const char *const *names,
                              size_t n);

#ifdef __cplusplus
}
#endif

#endif
